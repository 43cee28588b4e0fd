/* A schedule file is refused, or it passes sched_check and survives writing and reading. One that sched_verify
 * accepts is accepted when read back, and in other ranks, too, and lowers to a program. A compact one is valid exactly
 * if the list of its trees is, and gives each rank the same program. */
#include "schedule_mutator.h"
#include "format/format.h"
#include "schedule/schedule.h"

const Mutator mutators[] = { schedule_mutate, NULL };

const char *const dictionary[] = { "blink-schedule", "format", "version", "generator", "name", "options", "topology",
	"digest", "ranks", "gpu", "node", "links", "from", "to", "class", "nvlink", "pcie", "net", "capacity",
	"latency", "collective", "root", "algorithm", "rate", "achieved", "bound", "certificate", "kind", "cut", "side",
	"partition", "parts", "part", "setup", "prices", "price", "trees", "segment", "symmetry", "order", "down", "up",
	"broadcast",
	"reduce", "allreduce", "gather", "scatter", "allgather", "reducescatter", "alltoall", "null", "true", "false",
	"[]", "{}", "\"sw\"", "\"0/1\"", "\"1/1\"", "\"1/2\"", "[0, 1, [0]]", "[1, 0, [1]]", "[0, 1, []]",
	"\"to\": [0],", "\"to\": [1, 0],", "\"up\": [],", "[", "]", "{", "}", "\"", ",", ":", "\\u0000", "\\n",
	"\\ud800", "\xc3\xa9", "\xff", NULL };

static const char label[] = "input";

static void
reread(Ctx *ctx, const Text *json, bool right)
{
	Schedule *again;
	Text json_again = { 0 };
	Status status = sched_read(ctx, label, json->data, json->size, &again);
	REQUIRE(status == OK, "%s\nfor what we wrote:\n%s", ctx->error.text, json->data);
	/* The bound comes from the certificate when it is verified. */
	if (right)
		REQUIRE(sched_verify(ctx, label, again) == OK, "%s\n%s", ctx->error.text, json->data);
	sched_write_json(again, &json_again);
	REQUIRE(
	    !json_again.failed && json_again.size == json->size && memcmp(json_again.data, json->data, json->size) == 0,
	    "%s\nbecame\n%s", json->data, json_again.data);
	text_free(&json_again);
}

static void
execute(Ctx *ctx, const Schedule *sched)
{
	Program *prog;
	Text cu = { 0 };
	int depth;
	REQUIRE(sched_lower(ctx, sched, &prog) == OK, "%s", ctx->error.text);
	REQUIRE(program_write_cu(ctx, prog, "sha256:", &cu) == OK && !cu.failed, "%s", ctx->error.text);
	REQUIRE(sched_depth(ctx, sched, &depth) == OK && depth >= 0, "%s", ctx->error.text);
	text_free(&cu);
}

/* The last rank first. Positions may need more than 64 bits then. */
static void
relabel(Ctx *ctx, const Schedule *sched)
{
	int n = sched->topo->n_ranks, *rank;
	Schedule *other;
	REQUIRE(TEMP(ctx, rank, n) == OK, "no memory");
	for (int r = 0; r < n; r++)
		rank[r] = n - 1 - r;
	Status status = sched_relabel(ctx, sched, rank, &other);
	if (status == OK)
		status = sched_verify(ctx, label, other);
	REQUIRE(status == OK || status == LIMIT, "%s", ctx->error.text);
	ctx->error = (Error){ 0 };
}

static void
judge_compact(Ctx *ctx, const uint8_t *data, size_t size, unsigned allowed)
{
	Ctx own;
	Schedule *sched, *all;
	RankProgram *of, *of_all;
	Text json = { 0 };
	ctx_init(&own);
	if (sched_read_compact(&own, label, (const char *)data, size, &sched) == OK && sched->symmetry) {
		Status status = sched_verify(&own, label, sched);
		REQUIRE(status == OK || allowed >> status & 1, "%s", own.error.text);
		own.error = (Error){ 0 };
		sched_write_json(sched, &json);
		REQUIRE(!json.failed, "no memory");
		Status listed = sched_expand(&own, label, sched, &all);
		REQUIRE(listed == OK || listed == LIMIT, "%s", own.error.text);
		own.error = (Error){ 0 };
		if (listed == OK) {
			listed = sched_verify(&own, label, all);
			/* A list may take more steps than are allowed. */
			REQUIRE((listed == OK) == (status == OK) || listed == LIMIT || status == LIMIT, "compact %d, "
			    "listed %d: %s", (int)status, (int)listed, own.error.text);
			own.error = (Error){ 0 };
		}
		if (status == OK && listed == OK && sched_project(&own, sched, 0, &of) == OK
		    && sched_project(&own, all, 0, &of_all) == OK)
			REQUIRE(rank_program_fingerprint(of) == rank_program_fingerprint(of_all), "another program");
		ctx_free(ctx);
		ctx_init(ctx);
		REQUIRE(sched_read_compact(ctx, label, json.data, json.size, &all) == OK, "%s", ctx->error.text);
		ctx_free(ctx);
		ctx_init(ctx);
		text_free(&json);
	}
	ctx_free(&own);
}

static void
test_input(const uint8_t *data, size_t size)
{
	const unsigned allowed = 1u << BAD_INPUT | 1u << LIMIT | 1u << UNVERIFIED;
	Ctx ctx;
	Schedule *sched;
	Text json = { 0 };
	ctx_init(&ctx);
	judge_compact(&ctx, data, size, allowed);
	Status status = sched_read(&ctx, label, (const char *)data, size, &sched);
	if (status != OK) {
		judge_refusal(&ctx, status, allowed, label);
		ctx_free(&ctx);
		return;
	}
	REQUIRE(sched_check(&ctx, label, sched) == OK, "%s", ctx.error.text);
	status = sched_verify(&ctx, label, sched);
	if (status != OK) {
		judge_refusal(&ctx, status, allowed, label);
		ctx.error = (Error){ 0 };
	} else {
		outcome = (uint64_t)sched->coll << 24 | (uint64_t)sched->n_segments << 16
		    | (uint64_t)sched->topo->n_links << 8 | (uint64_t)sched->topo->n_ranks;
		n_accepted++;
		execute(&ctx, sched);
		relabel(&ctx, sched);
	}
	sched_write_json(sched, &json);
	REQUIRE(!json.failed, "no memory");
	reread(&ctx, &json, status == OK);
	text_free(&json);
	ctx_free(&ctx);
}
