#include "format/msccl/segments.h"
#include "schedule/schedule.h"

#include <stdio.h>

Status
segments_grid(Ctx *ctx, const Schedule *sched, int all, const char *why, int *out, int *offset, int *count)
{
	int64_t k = 1, most = all / (collective_has_blocks(sched->coll) ? sched->topo->n_ranks : 1);
	for (int s = 0; s < sched->n_segments; s++) {
		Frac end[2];
		sched_block_extent(sched, &sched->segment[s], &end[0], &end[1]);
		for (int i = 0; i < 2; i++) {
			int64_t times = end[i].den / gcd64(k, end[i].den);
			if (times > most / k)
				return fail(ctx, LIMIT, "%s: segments end at multiples of less than 1/%lld of a "
				    "block: want at most %lld chunks, %s; see --tolerance", sched->topo->name,
				    (long long)most, (long long)most, why);
			k *= times;
		}
	}
	*out = (int)k;
	for (int s = 0; s < sched->n_segments; s++) {
		Frac begin, end;
		sched_block_extent(sched, &sched->segment[s], &begin, &end);
		offset[s] = (int)(begin.num * (k / begin.den));
		count[s] = (int)(end.num * (k / end.den)) - offset[s];
	}
	return OK;
}

int
segment_holder(const Schedule *sched, int s)
{
	return collective_holder(sched->coll, sched->topo->n_ranks, sched->root,
	    sched_segment_block(sched, &sched->segment[s]));
}

bool
segment_serves(const Schedule *sched, int s, int r)
{
	const Segment *seg = &sched->segment[s];
	int needer = collective_needer(sched->coll, sched->topo->n_ranks, sched->root, sched_segment_block(sched, seg));
	bool named = seg->n_to == 0;
	for (int i = 0; i < seg->n_to; i++)
		named |= seg->to[i] == r;
	return named && (needer == EVERY_RANK || needer == r);
}

bool
hop_moves(const Schedule *sched, const Edge *e, bool up, const bool *has)
{
	return collective_reduces(sched->coll) ? up || has[e->src] : has[e->src] && !has[e->dst];
}

void
segments_plan_name(const Schedule *sched, char name[64])
{
	int length = snprintf(name, 64, "blinkc %s %s", sched->algorithm, collective_name(sched->coll));
	if (sched->root >= 0 && length < 64)
		snprintf(name + length, (size_t)(64 - length), " root %d", sched->root);
}
