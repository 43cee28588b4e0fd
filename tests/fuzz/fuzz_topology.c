/* A topology file is refused, or it passes topo_check, and both spellings and the digest survive writing and reading. A
 * small one that is accepted also compiles, and is shown. */
#define COST_FLOOR_MS 5000	/* some are compiled */
#include "json_mutator.h"
#include "xml_mutator.h"
#include "format/format.h"
#include "plan/plan.h"
#include "schedule/schedule.h"
#include "topology/lint.h"
#include "topology/topology.h"
#include "view/view.h"

const Mutator mutators[] = { json_mutate, xml_mutate, NULL };

const char *const dictionary[] = { "blink-topology", "format", "version", "name", "source", "classes", "nodes",
	"switches", "links", "gpus", "cpus", "nics", "id", "from", "to", "class", "count", "capacity", "latency",
	"duplex", "full", "simplex", "nvlink", "xgmi", "c2c", "pcie", "qpi", "net", "gpu0", "gpu1", "gpu2", "n0", "sw0",
	"<gpu", "/>", "<link", "<node>", "</node>", "<class", "<switch", "</topology>", "<topology", "<!DOCTYPE x>",
	"<![CDATA[", "]]>", "<peer_access", "peer_accesses", "time", "<fabric", "fabrics", "file", "dgx1v.xml",
	"pcie-8gpu.xml", "ports", "rails", "servers", "oversubscription", "multicast", "reduce", "<!--", "-->", "<?xml",
	"&lt;", "&#10;", "&#0;", "&bad;", "xmlns=\"x\"", "null", "true", "[]", "{}", "[", "{", "\"", "\\u0000",
	"\\u000a", "\\ud800", "\\ud83d\\ude00", "\xef\xbb\xbf", "\xc3\xa9", "\xe2\x80\xa8", "\xef\xbf\xbe", "\xff", ",",
	":", NULL };

enum { COMPILE_RANKS = 4, COMPILE_LINKS = 16, LOOK_RANKS = 16 };

static const char label[] = "input";

/* Text that we wrote must read; compare what it becomes. */
static void
reread(Ctx *ctx, const Text *text, const Topology *topo, const Text *json)
{
	Topology *again;
	Text json_again = { 0 };
	Status status = topo_read(ctx, label, NULL, text->data, text->size, &again);
	REQUIRE(status == OK, "%s\nfor what we wrote:\n%s", ctx->error.text, text->data);
	REQUIRE(topo_check(ctx, label, again) == OK, "%s", ctx->error.text);
	REQUIRE(
	    strcmp(again->digest, topo->digest) == 0, "%s became %s in\n%s", topo->digest, again->digest, text->data);
	topo_write_json(again, &json_again);
	REQUIRE(
	    !json_again.failed && json_again.size == json->size && memcmp(json_again.data, json->data, json->size) == 0,
	    "%s\nbecame\n%s", json->data, json_again.data);
	text_free(&json_again);
}

static void
round_trip(Ctx *ctx, const Topology *topo, Text *json)
{
	Text xml = { 0 }, canonical = { 0 };
	topo_write_json(topo, json);
	topo_write_xml(topo, &xml);
	topo_canonical_text(topo, &canonical);
	REQUIRE(!json->failed && !xml.failed && !canonical.failed, "no memory");
	reread(ctx, json, topo, json);
	reread(ctx, &xml, topo, json);
	text_free(&xml);
	text_free(&canonical);
}

static void
compile(Ctx *ctx, const Topology *machine, Collective coll, const Algorithm *algorithm)
{
	Ask ask = { .algorithm = algorithm->name, .coll = coll,
	    .root = coll == ALLREDUCE ? -1 : 0, .epsilon = { 1, 5 }, .tolerance = { 1, 5 },
		.minimise = true };
	Topology *job;
	Symmetry *sym;
	Bound bound;
	Plan plan;
	Schedule *sched, *again;
	Program *prog;
	Text json = { 0 }, cu = { 0 };
	int gpu[COMPILE_RANKS] = { 0, 1, 2, 3 };
	JobLinks links;
	Status status = topo_choose_links(ctx, machine, gpu, machine->n_ranks, ROUTES_CHOSEN, &links);
	REQUIRE(status == OK, "%s", ctx->error.text);
	status = links.pairs ? topo_induce_pairs(ctx, machine, gpu, machine->n_ranks, links.classes, &job)
	    : topo_induce(ctx, machine, gpu, machine->n_ranks, &links, &job);
	if (status == INFEASIBLE)
		return;
	REQUIRE(status == OK, "%s", ctx->error.text);
	status = topo_symmetry(
	    ctx, job, ask.root, algorithm->plan == plan_threephase ? SYMMETRY_SERVERS : SYMMETRY_ANY, &sym);
	REQUIRE(status == OK, "%s", ctx->error.text);
	status = bound_compute(ctx, job, sym, coll, ask.root, &bound);
	REQUIRE(status == OK, "%s", ctx->error.text);
	status = algorithm->plan(ctx, &(Planning){ .row = algorithm, .topo = job, .sym = sym, .bound = &bound,
	    .ask = &ask }, &plan);
	if (status == INFEASIBLE && algorithm != algorithm_row(0))
		return;
	if (status == OK)
		status = sched_build(ctx, job, &plan.proof, &ask, algorithm->name, plan.pack, &sched);
	REQUIRE(status == OK, "%d: %s", (int)status, ctx->error.text);
	sched_write_json(sched, &json);
	REQUIRE(!json.failed, "no memory");
	status = sched_read(ctx, label, json.data, json.size, &again);
	REQUIRE(status == OK, "%s\n%s", ctx->error.text, json.data);
	status = sched_verify(ctx, label, again);
	if (status == OK && links.pairs)
		status = sched_check_routes(ctx, label, again);
	REQUIRE(status == OK, "%s\n%s", ctx->error.text, json.data);
	status = sched_lower(ctx, again, &prog);
	if (status == OK)
		status = program_write_cu(ctx, prog, "sha256:", &cu);
	REQUIRE(status == OK && !cu.failed, "%s\n%s", ctx->error.text, json.data);
	text_free(&json);
	text_free(&cu);
}

/* What people see of it: in lines that a terminal and a parser can take. */
static void
look(Ctx *ctx, Topology *topo)
{
	Explained e;
	LintFinding *found;
	int n;
	REQUIRE(printable_line(ctx, topo->name, &topo->name) == OK && explain_machine(ctx, topo, &e) == OK, "%s",
	    ctx->error.text);
	for (int format = 0; format < 3; format++) {
		Text out = { 0 };
		Status status = format == 0 ? machine_text(ctx, &e, &out)
		    : format == 1           ? machine_svg(ctx, &e, NULL, &out)
					    : machine_dot(ctx, &e, &out);
		REQUIRE(status == OK && !out.failed && out.size > 0, "%s", ctx->error.text);
		for (size_t i = 0; i < out.size; i++)
			REQUIRE(out.data[i] == '\n' || out.data[i] == '\t' || (unsigned char)out.data[i] >= ' ', "%s",
			    out.data);
		text_free(&out);
	}
	REQUIRE(topo_lint(ctx, topo, &found, &n) == OK, "%s", ctx->error.text);
	for (int i = 0; i < n; i++)
		REQUIRE(found[i].at && found[i].text && *found[i].text, "finding %d", i);
}

static void
test_input(const uint8_t *data, size_t size)
{
	Ctx ctx;
	Topology *topo;
	Text json = { 0 };
	ctx_init(&ctx);
	/* Files by reference are those of blinkc, if the caller says where they are. */
	const char *dirs[] = { getenv("FUZZ_TOPOLOGIES"), NULL };
	Status status = topo_read(&ctx, label, dirs[0] ? dirs : NULL, (const char *)data, size, &topo);
	if (status != OK) {
		judge_refusal(&ctx, status, 1u << BAD_INPUT | 1u << LIMIT, label);
	} else {
		REQUIRE(topo_check(&ctx, label, topo) == OK, "%s", ctx.error.text);
		n_accepted++;
		round_trip(&ctx, topo, &json);
		cost_stands_for = json.size;
		/* Some of them, for it takes long. */
		uint64_t hash = hash_bytes(1, json.data, json.size);
		outcome = (uint64_t)topo->n_vertices << 8 | (uint64_t)topo->n_links;
		if (topo->n_ranks >= 2 && topo->n_ranks <= COMPILE_RANKS && topo->n_links <= COMPILE_LINKS
		    && hash % 8 == 0) {
			Collective coll = (Collective)(hash / 8 % (ALLREDUCE + 1));
			const Algorithm *row = algorithm_row((int)(hash / 64 % (uint64_t)algorithm_count()));
			if (row->serves(coll))
				compile(&ctx, topo, coll, row);
		}
		text_free(&json);
		if (topo->n_ranks <= LOOK_RANKS)
			look(&ctx, topo);
	}
	ctx_free(&ctx);
}
