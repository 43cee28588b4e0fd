/* Wherever the time of a plan ends, there is a valid schedule, with a bound that is proven: time is counted in
 * questions for it, so that each question is the last in some case. */
#include "compile.h"
#include "format/format.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const machines[] = {
	"gpu:5 ring:25", "gpu:5 mesh:25", "server:2 gpu:3 switch:50 nic:2@10 pcie:8", "gpu:4 switch:25 reduce",
	"gpu:4 switch:25 multicast reduce", "server:3 gpu:2 mesh:20 net:7",
};

struct clock {
	Ctx *ctx;
	int questions, after;
};

/* The next question of an inner loop is asked at once. */
static int
step(void *of, const char *line)
{
	struct clock *clock = of;
	(void)line;
	clock->ctx->unasked = INT64_MAX / 2;
	return clock->questions++ < clock->after ? 1000000 : 0;
}

/* Returns the number of questions; -1: something is wrong. */
static int
plan(const char *line, const Ask *asked, int after, char *why, size_t size)
{
	Ctx ctx;
	Topology *topo;
	Compiled made = { 0 };
	Ask ask = *asked;
	int gpu[16];
	ctx_init(&ctx);
	struct clock clock = { &ctx, 0, after };
	ctx.step = step;
	ctx.step_of = &clock;
	ctx.unasked = INT64_MAX / 2;
	static const char *const none[] = { NULL };
	Text text = { 0 };
	Status status = synthetic_write(&ctx, line, &text);
	if (status == OK)
		status = topo_read(&ctx, line, none, text.data, text.size, &topo);
	text_free(&text);
	for (int i = 0; status == OK && i < topo->n_ranks; i++)
		gpu[i] = i;
	if (status == OK)
		status = compile(&ctx, topo, gpu, topo->n_ranks, &ask, &made);
	snprintf(why, size, "%s", ctx.error.text);
	/* The last question is of what follows the plan. */
	if (status == OK && made.cut_short != (clock.questions - 1 > after)) {
		snprintf(why, size, "it is not said that time was over");
		status = INTERNAL;
	}
	text_free(&made.json);
	ctx_free(&ctx);
	return status == OK ? clock.questions : -1;
}

/* All numbers of questions up to the one with which the plan is not cut short. */
static void
every_end(const char *line, const Ask *ask, const char *options)
{
	char why[1024];
	int all = plan(line, ask, INT_MAX, why, sizeof why);
	for (int after = 0; all >= 0 && after < all; after += 1 + after / 8) {
		if (plan(line, ask, after, why, sizeof why) < 0) {
			printf("not ok %s of %s%s, after %d questions: %s\n", collective_name(ask->coll), line, options,
			    after, why);
			return;
		}
	}
	printf("%s %s of %s%s: %d questions%s%s\n", all < 0 ? "not ok" : "ok", collective_name(ask->coll), line,
	    options, all, all < 0 ? ": " : "", all < 0 ? why : "");
}

int
main(void)
{
	for (size_t i = 0; i < sizeof machines / sizeof *machines; i++) {
		for (int c = 0; c < N_COLLECTIVES; c++) {
			Ask ask = { .coll = (Collective)c,
				.root = collective_rooted((Collective)c) ? 1 : -1,
				.packing = PACKING_EXACT,
				.epsilon = { 1, 20 },
				.tolerance = FRAC_ZERO,
				.minimise = true };
			every_end(machines[i], &ask, "");
			if (!collective_has_blocks(ask.coll)) {
				ask.packing = PACKING_MWU;
				every_end(machines[i], &ask, ", mwu");
			}
		}
	}
	return 0;
}
