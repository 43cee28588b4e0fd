/* GPUs of fibers (fibers.h), and the tables of rank programs that their kernels interpret: for test_kernels.c. */
#ifndef KERNEL_GPUS_H
#define KERNEL_GPUS_H

#include "blink_device.h"
#include "choose/choose.h"
#include "compiled.h"
#include "cuda/multicast_call.h"
#include "fibers.h"
#include "random_schedule.h"

enum { RING_BYTES = 32 << 10, PACKET_BYTES = 32 << 10, LINES_BYTES = 32 << 10, CHANNELS = 4, SLOT_BYTES = 4 << 10 };

/* ---- GPUs ---- */

/* A rank's memory for one peer. */
struct pair_memory {
	struct gpu_flag ready[GPU_FLAGS];
	uint64_t done[GPU_FLAGS];
	_Alignas(128) char packets[2][PACKET_BYTES + LINES_BYTES], ring[2][RING_BYTES];
	struct gpu_channel channel[CHANNELS];
	_Alignas(16) char slots[CHANNELS * GPU_CHANNEL_SLOTS][SLOT_BYTES];
};

struct gpus {
	int n;
	struct pair_memory *of[MAX_RANKS];	/* [peer] */
	struct gpu_state *state[MAX_RANKS];
	struct gpu_status status[MAX_RANKS];
	uint64_t sent[MAX_RANKS][MAX_RANKS][GPU_CHANNELS], received[MAX_RANKS][MAX_RANKS][GPU_CHANNELS];
};

static void *
zeroed(size_t bytes)
{
	void *p = need(aligned_alloc(128, (bytes + 127) / 128 * 128));
	memset(p, 0, bytes);
	return p;
}

static struct gpus *
gpus_new(int n)
{
	struct gpus *g = zeroed(sizeof *g);
	g->n = n;
	n_regions = 0;
	for (int r = 0; r < n; r++) {
		g->of[r] = zeroed((size_t)n * sizeof *g->of[r]);
		g->state[r] = zeroed(sizeof *g->state[r]);
		g->state[r]->sent = g->sent[r][0];
		g->state[r]->received = g->received[r][0];
		g->status[r].awaits = -1;
		add_region(g->of[r], (size_t)n * sizeof *g->of[r], r, true);
		add_region(g->state[r], sizeof *g->state[r], r, false);
		add_region(g->sent[r], sizeof g->sent[r], r, false);
		add_region(g->received[r], sizeof g->received[r], r, false);
		add_region(&g->status[r], sizeof g->status[r], NOBODY, true);
	}
	return g;
}

static void
gpus_free(struct gpus *g)
{
	for (int r = 0; r < g->n; r++) {
		free(g->of[r]);
		free(g->state[r]);
	}
	free(g);
	n_regions = 0;
}

static uint32_t
now_of(const uint32_t *at)
{
	return __atomic_load_n(at, __ATOMIC_RELAXED);
}

/* What a host would do: one that stops is seen by all. */
static void
stop_together(struct gpus *g)
{
	for (int r = 0; r < g->n; r++)
		for (int q = 0; q < g->n && now_of(&g->status[r].stop); q++)
			__atomic_store_n(&g->status[q].stop, 1, __ATOMIC_RELAXED);
}

/* ---- plans ---- */

struct plan {
	Collective coll;
	int root, n, lanes_max, n_parts;
	bool switched;			/* its values are in the memory of `team` */
	RankProgram *of[MAX_RANKS];
	struct gpu_program program[MAX_RANKS];
};

static struct gpu_lane
lane_between(struct gpus *g, int publisher, int reader, bool reads, int lane)
{
	struct pair_memory *at = &g->of[reader][publisher];
	struct gpu_lane l = { .peer = reads ? publisher : reader, .lane = lane,
		.pair = { at->ready, g->of[publisher][reader].done, { at->packets[0], at->packets[1] },
		    { at->ring[0], at->ring[1] } } };
	return l;
}

/* Extents are of 128 bits; here they fit into 64. */
static void
make_task(struct gpus *g, int rank, const RankTask *task, const Extent *x, struct gpu_program *p, int *n_lanes,
    struct gpu_task *t, struct gpu_lane *lane)
{
	*t = (struct gpu_task){ x->send_block, x->recv_block, (int64_t)x->begin.num, (int64_t)x->begin.den,
	    (int64_t)x->end.num, (int64_t)x->end.den, x->part, task->n_from, task->n_to, *n_lanes,
	    *n_lanes + task->n_from, p->n_publishes, task->own, task->output, task->complete, 0, { 0 } };
	for (int i = 0; i < task->n_from; i++)
		lane[(*n_lanes)++] = lane_between(g, task->from[i].rank, rank, true, task->from[i].lane);
	for (int i = 0; i < task->n_to; i++)
		lane[(*n_lanes)++] = lane_between(g, rank, task->to[i].rank, false, task->to[i].lane);
	p->n_publishes += task->n_to;
}

static void
make_tables(Ctx *ctx, struct gpus *g, const RankProgram *prog, struct gpu_program *p)
{
	int lanes = 0, n_lanes = 0;
	struct gpu_task *task;
	struct gpu_lane *lane;
	for (int t = 0; t < prog->n_tasks; t++)
		lanes += prog->task[t].n_from + prog->task[t].n_to;
	MAKE(ctx, task, prog->n_tasks + 1);
	MAKE(ctx, lane, lanes + 1);
	*p = (struct gpu_program){ prog->n_tasks, 0, task, lane };
	for (int t = 0; t < prog->n_tasks; t++)
		make_task(g, prog->rank, &prog->task[t], &prog->extent[prog->task[t].extent], p, &n_lanes, &task[t],
		    lane);
	add_region(task, (size_t)prog->n_tasks * sizeof *task, prog->rank, false);
	add_region(lane, (size_t)lanes * sizeof *lane, prog->rank, false);
}

static struct plan *
finish_plan(Ctx *ctx, struct gpus *g, struct plan *plan)
{
	for (int r = 0; r < g->n; r++) {
		make_tables(ctx, g, plan->of[r], &plan->program[r]);
		if (plan->of[r]->lanes_max > plan->lanes_max)
			plan->lanes_max = plan->of[r]->lanes_max;
	}
	plan->n_parts = plan->of[0]->n_parts;
	return plan;
}

static struct plan *
random_plan(Ctx *ctx, struct gpus *g, Collective coll)
{
	struct plan *plan;
	MAKE(ctx, plan, 1);
	const Schedule *sched = random_schedule(ctx, coll, g->n, below(2));
	*plan = (struct plan){ .coll = coll, .root = sched->root, .n = g->n };
	for (int r = 0; r < g->n; r++)
		must(ctx, sched_project(ctx, sched, r, &plan->of[r]));
	return finish_plan(ctx, g, plan);
}

static struct plan *
built_in_plan(Ctx *ctx, struct gpus *g, Collective coll, bool small)
{
	static const int server[MAX_RANKS];
	const struct job job = { .n_ranks = g->n, .server = server, .n_servers = 1 };
	const struct built_in which = { coll, 0, small };
	struct plan *plan;
	MAKE(ctx, plan, 1);
	*plan = (struct plan){ .coll = coll, .n = g->n };
	for (int r = 0; r < g->n; r++)
		must(ctx, built_in_program(ctx, &job, &which, r, &plan->of[r]));
	return finish_plan(ctx, g, plan);
}

#endif
