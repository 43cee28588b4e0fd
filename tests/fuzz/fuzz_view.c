/* A schedule that is valid is shown, as text, as SVG and for Graphviz, in lines that a terminal and a parser can take;
 * it does not differ from itself, and a comparison with its ranks renamed ends. */
#define COST_FLOOR_MS 1000	/* pictures of many GPUs */
#include "schedule_mutator.h"
#include "format/format.h"
#include "schedule/schedule.h"
#include "verb/diff/diff.h"
#include "view/view.h"

const Mutator mutators[] = { schedule_mutate, NULL };

const char *const dictionary[] = { "broadcast", "allreduce", "nvlink", "pcie", "net", "\"sw\"", "multicast", "reduce",
	"setup", "parts", "\\u001b[31m", "\\u0085", "\\u202e", "\\u2028", "<script>", "&amp;", "--", "]]>", "\\n",
	"\"0/1\"", "[0, 1, [0]]", NULL };

static const char label[] = "input";

/* No control character but tabs and line ends, and UTF-8. */
static void
judge_output(const Text *out)
{
	REQUIRE(!out->failed && out->size > 0, "nothing is shown");
	REQUIRE(utf8_valid(out->data, out->size) == out->size, "%s", out->data);
	for (size_t i = 0; i < out->size; i++) {
		unsigned char c = (unsigned char)out->data[i];
		REQUIRE(c == '\n' || c == '\t' || (c >= ' ' && c != 127), "0x%02x in %s", c, out->data);
	}
}

static void
show(Ctx *ctx, const Schedule *sched)
{
	Schedule copy = *sched;
	Topology topo = *sched->topo;
	Explained e;
	const ShowRequest ask = { .trees = NULL };
	copy.topo = &topo;
	REQUIRE(printable_line(ctx, topo.name, &topo.name) == OK, "%s", ctx->error.text);
	Status status = explain(ctx, label, &copy, &e);
	REQUIRE(status == OK || status == LIMIT, "%s", ctx->error.text);
	for (int format = 0; format < 3 && status == OK; format++) {
		Text out = { 0 };
		if (format == 0 && (status = show_trees(ctx, &e, &ask, &out)) == OK
		    && (status = show_links(ctx, &e, &ask, &out)) == OK)
			status = show_proof(ctx, &e, &out);
		else if (format > 0)
			status = (format == 1 ? emit_svg : emit_dot)(ctx, &e, &ask, &out);
		REQUIRE(status == OK || status == LIMIT, "%s", ctx->error.text);
		if (status == OK)
			judge_output(&out);
		text_free(&out);
	}
	ctx->error = (Error){ 0 };
}

static void
compare(Ctx *ctx, const Schedule *sched)
{
	int n = sched->topo->n_ranks, *rank;
	Differences same = { 0 }, other = { 0 };
	Schedule *renamed;
	Status status = diff_schedules(ctx, sched, sched, &same);
	REQUIRE(status == OK && same.n == 0, "%d differences from itself: %s", same.n,
	    same.n ? same.difference[0].text : "");
	REQUIRE(TEMP(ctx, rank, n) == OK, "no memory");
	for (int r = 0; r < n; r++)
		rank[r] = n - 1 - r;
	if (sched_relabel(ctx, sched, rank, &renamed) == OK) {
		status = diff_schedules(ctx, sched, renamed, &other);
		REQUIRE(status == OK || status == LIMIT, "%s", ctx->error.text);
	}
	ctx->error = (Error){ 0 };
}

static void
test_input(const uint8_t *data, size_t size)
{
	Ctx ctx;
	Schedule *sched;
	ctx_init(&ctx);
	if (sched_read(&ctx, label, (const char *)data, size, &sched) == OK && sched_verify(&ctx, label, sched) == OK) {
		show(&ctx, sched);
		compare(&ctx, sched);
		outcome = (uint64_t)sched->coll << 24 | (uint64_t)sched->n_segments << 16
		    | (uint64_t)sched->topo->n_links << 8 | (uint64_t)sched->topo->n_ranks;
		n_accepted++;
	}
	ctx_free(&ctx);
}
