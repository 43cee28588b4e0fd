/* Are two schedules equal, what ranks do by them, and what comes of it? And schedules of other ranks. */
#ifndef BLINK_TEST_EQUAL_H
#define BLINK_TEST_EQUAL_H

#include "blink.h"
#include "compiled.h"
#include "api/schedule.h"
#include "random.h"
#include "schedule/schedule.h"

#include <string.h>

static inline bool
same_schedule(const Schedule *a, const Schedule *b)
{
	bool same = a->n_segments == b->n_segments && frac_cmp(a->achieved, b->achieved) == 0;
	for (int t = 0; t < a->n_segments && same; t++) {
		const Segment *s = &a->segment[t], *u = &b->segment[t];
		same = frac_cmp(s->offset, u->offset) == 0 && frac_cmp(s->length, u->length) == 0
		    && s->tree.root == u->tree.root && s->tree.n_down == u->tree.n_down && s->tree.n_up == u->tree.n_up
		    && s->n_to == u->n_to && tree_same_edges(s->tree.down, u->tree.down, s->tree.n_down)
		    && tree_same_edges(s->tree.up, u->tree.up, s->tree.n_up);
	}
	return same;
}

static inline bool
same_lanes(const RankLane *a, const RankLane *b, int n)
{
	for (int i = 0; i < n; i++)
		if (a[i].rank != b[i].rank || a[i].lane != b[i].lane || a[i].ring != b[i].ring)
			return false;
	return true;
}

static inline bool
same_extent(const Extent *a, const Extent *b)
{
	return frac_cmp(a->begin, b->begin) == 0 && frac_cmp(a->end, b->end) == 0 && a->part == b->part
	    && a->send_block == b->send_block && a->recv_block == b->recv_block;
}

static inline bool
same_program(const RankProgram *a, const RankProgram *b)
{
	bool same = a->n_tasks == b->n_tasks && a->n_extents == b->n_extents && a->n_rings == b->n_rings
	    && a->rings_max == b->rings_max && a->n_peers == b->n_peers && a->lanes_max == b->lanes_max
	    && a->segments_max == b->segments_max && a->depth == b->depth && a->keep_input == b->keep_input
	    && frac_cmp(a->longest[0], b->longest[0]) == 0
	    && memcmp(a->peer, b->peer, (size_t)a->n_peers * sizeof *a->peer) == 0;
	for (int i = 0; i < a->n_extents && same; i++)
		same = same_extent(&a->extent[i], &b->extent[i]);
	for (int i = 0; i < a->n_tasks && same; i++) {
		const RankTask *t = &a->task[i], *u = &b->task[i];
		same = t->segment == u->segment && t->extent == u->extent && t->own == u->own && t->output == u->output
		    && t->complete == u->complete && t->ring == u->ring && t->hops == u->hops && t->n_from == u->n_from
		    && t->n_to == u->n_to && same_lanes(t->from, u->from, t->n_from)
		    && same_lanes(t->to, u->to, t->n_to);
	}
	return same;
}

static inline bool
same_programs(Ctx *ctx, const Schedule *a, const Schedule *b)
{
	bool same = true;
	for (int r = 0; r < a->topo->n_ranks && same; r++) {
		RankProgram *p, *q;
		must(ctx, sched_project(ctx, a, r, &p));
		must(ctx, sched_project(ctx, b, r, &q));
		same = same_program(p, q);
	}
	return same;
}

/* ---- execution ---- */

/* What libblink makes of a file: of each rank the bytes that it has in the end. Steps are made for a communicator. */
static inline float *
results(const Ctx *ctx, const Text *json, int n, size_t count, size_t size)
{
	float *memory = calloc(2 * (size_t)n * size, sizeof *memory);
	const void *send[64];
	void *recv[64];
	blinkSchedule_t sched;
	blinkComm_t comm;
	if (!memory || blinkScheduleParse("x", json->data, json->size, &sched, NULL) != blinkSuccess
	    || sched->is_lowered || blinkCommCreate(sched, NULL, &comm, NULL) != blinkSuccess || !sched->is_lowered)
		must(ctx, NO_MEMORY);
	for (int r = 0; r < n; r++) {
		float *own = memory + (size_t)(n + r) * size;
		for (size_t i = 0; i < size; i++)
			own[i] = (float)(r + 1) / (float)(3 + i % 97);
		send[r] = own;
		recv[r] = memory + (size_t)r * size;
	}
	if (blinkRun(comm, send, recv, count, blinkFloat32, blinkSum) != blinkSuccess)
		must(ctx, INTERNAL);
	blinkCommDestroy(comm);
	blinkScheduleDestroy(sched);
	return memory;
}

/* Sums of numbers that round: so their bits depend on the order of additions. */
static inline bool
same_bits(const Ctx *ctx, const Schedule *listed, const Text *compact)
{
	enum { COUNT = 1001 };
	int n = listed->topo->n_ranks;
	size_t size = (size_t)n * COUNT;
	Text json = { 0 };
	sched_write_json(listed, &json);
	float *a = results(ctx, &json, n, COUNT, size), *b = results(ctx, compact, n, COUNT, size);
	bool same = memcmp(a, b, (size_t)n * size * sizeof *a) == 0, moved = false;
	for (size_t i = 0; i < (size_t)n * size; i++)
		moved = moved || a[i] != 0;
	free(a);
	free(b);
	text_free(&json);
	return same && moved;
}

static inline void
swap(int *a, int *b)
{
	int t = *a;
	*a = *b;
	*b = t;
}

/* Its ranks in another order. */
static inline Schedule *
relabelled(Ctx *ctx, const Schedule *sched)
{
	int n = sched->topo->n_ranks, *rank;
	Schedule *out;
	must(ctx, NEW(ctx, rank, n));
	for (int r = 0; r < n; r++)
		rank[r] = r;
	for (int r = n - 1; r > 0; r--)
		swap(&rank[r], &rank[below(r + 1)]);
	must(ctx, sched_relabel(ctx, sched, rank, &out));
	return out;
}

#endif
