/* Calls whose values a switch adds and copies (kernels/multicast.h), on GPUs of fibers: for test_kernels.c. Plans are
 * what the compiler makes of a machine with such a switch, and what `sched_project` says of them. */
#ifndef KERNEL_SWITCH_H
#define KERNEL_SWITCH_H

#include "kernel_calls.h"

/* Each GPU's part is its own alone, for whom it is no multicast memory. */
static void
team_open(const struct gpus *g)
{
	team.n = g->n;
	team.bytes = (size_t)g->n * 2 * RING_BYTES;
	team.all = zeroed(team.bytes);
	for (int r = 0; r < g->n; r++) {
		team.own[r] = zeroed(team.bytes);
		add_region(team.own[r], team.bytes, r, false);
	}
}

static void
team_close(void)
{
	for (int r = 0; r < team.n; r++)
		free(team.own[r]);
	free(team.all);
	team = (struct team){ .all = NULL };
}

static Collective
switched_collective(void)
{
	static const Collective all[] = { ALLREDUCE, REDUCE, REDUCESCATTER, BROADCAST, ALLGATHER };
	return all[below(sizeof all / sizeof *all)];
}

/* A lane to or from the root of a tree, as cuda/tables.c numbers it. */
static void
switch_lane(const struct plan *plan, int rank, int root, int tree, int reader, struct gpu_lane *lane)
{
	int stages = plan->coll == ALLREDUCE ? 2 : 1;
	lane->lane = stages * tree + (stages > 1 && reader != root);
	for (int half = 0; half < 2; half++)
		lane->pair.ring[half] = team.own[rank] + (root * 2 + half) * RING_BYTES;
}

static void
switch_lanes(struct plan *plan, int rank)
{
	const RankProgram *prog = plan->of[rank];
	struct gpu_lane *lane = (struct gpu_lane *)plan->program[rank].lane;
	int trees[MAX_RANKS] = { 0 }, segment = -1, tree = 0;
	for (int t = 0; t < prog->n_tasks; t++) {
		const RankTask *task = &prog->task[t];
		bool adds = collective_reduces(plan->coll);
		int root = task->own && (!adds || task->n_from > 0) ? rank : task->own ? task->to[0].rank
		    : task->from[0].rank;
		if (task->segment != segment)
			tree = trees[root]++;
		segment = task->segment;
		for (int i = 0; i < task->n_from; i++)
			switch_lane(plan, rank, root, tree, rank, lane++);
		for (int i = 0; i < task->n_to; i++)
			switch_lane(plan, rank, root, tree, task->to[i].rank, lane++);
		plan->lanes_max = 2 * (tree + 1) > plan->lanes_max ? 2 * (tree + 1) : plan->lanes_max;
	}
}

static struct plan *
switched_plan(Ctx *ctx, struct gpus *g, Collective coll)
{
	char line[64];
	struct plan *plan;
	Text json;
	MAKE(ctx, plan, 1);
	snprintf(line, sizeof line, "gpu:%d switch:300 multicast reduce", g->n);
	const Schedule *sched = schedule_of_all(ctx, line, coll, below(g->n), &json);
	*plan = (struct plan){ .coll = coll, .root = sched->root, .n = g->n };
	for (int r = 0; r < g->n; r++) {
		must(ctx, sched_project(ctx, sched, r, &plan->of[r]));
		if (!plan->of[r]->switched) {
			printf("Bail out! the trees of %s are for no switch\n", collective_name(coll));
			exit(1);
		}
	}
	text_free(&json);
	finish_plan(ctx, g, plan);
	plan->switched = true;
	for (int r = 0; r < g->n; r++)
		switch_lanes(plan, r);
	return plan;
}

/* Of what has one result in any order: integers. */
static struct call *
switched_call(struct gpus *g, const struct plan *plan, int64_t count)
{
	static const struct { int type, op; enum multicast_sum sum; } all[] = {
		{ blinkInt32, blinkSum, MULTICAST_SUM_INT32 }, { blinkUint64, blinkSum, MULTICAST_SUM_INT64 },
		{ blinkInt32, blinkMax, MULTICAST_MAX_INT32 }, { blinkUint32, blinkMax, MULTICAST_MAX_UINT32 },
		{ blinkInt64, blinkMax, MULTICAST_MAX_INT64 }, { blinkUint64, blinkMax, MULTICAST_MAX_UINT64 },
		{ blinkInt32, blinkMin, MULTICAST_MIN_INT32 }, { blinkUint32, blinkMin, MULTICAST_MIN_UINT32 },
		{ blinkInt64, blinkMin, MULTICAST_MIN_INT64 }, { blinkUint64, blinkMin, MULTICAST_MIN_UINT64 },
	};
	int i = below(sizeof all / sizeof *all);
	struct call *c = new_call(g, plan, all[i].type, all[i].op, count, GPU_FLAGS_ALONE, -1);
	for (const struct virtual_kernel *k = virtual_gpu_kernels; k->name; k++)
		c->kernel = strcmp(k->name, "blink_multicast") == 0 ? k : c->kernel;
	for (int r = 0; r < g->n; r++)
		c->switched[r] = (struct gpu_multicast_call){ .call = c->given[r], .to_all = team.all - team.own[r],
			.sum = collective_reduces(plan->coll) ? (int32_t)all[i].sum : MULTICAST_NONE };
	return c;
}

#endif
