/* Tasks of a rank from what its stages of a segment hold. */
#include "base/array.h"
#include "schedule/projection.h"

#include <string.h>

static Status
copy_lanes(Ctx *ctx, const RankLane *lane, int n, RankLane **out)
{
	TRY(NEW(ctx, *out, n));
	memcpy(*out, lane, (size_t)n * sizeof *lane);
	return OK;
}

/* from: whose sources it has; to: whose readers. */
static Status
add_task(struct projection *p, int s, const struct stage *from, const struct stage *to, bool own, bool output)
{
	RankProgram *prog = p->prog;
	TRY(GROW(p->ctx, prog->task, prog->n_tasks, p->task_capacity));
	RankTask *task = &prog->task[prog->n_tasks++];
	*task = (RankTask){ .segment = s, .extent = prog->n_extents, .own = own, .output = output,
	    .complete = to == &p->stage[DOWN], .ring = to->ring, .hops = p->reduces ? 0 : p->hops[prog->rank],
	    .n_from = from->n_from, .n_to = to->n_to };
	TRY(copy_lanes(p->ctx, from->from, from->n_from, &task->from));
	return copy_lanes(p->ctx, to->to, to->n_to, &task->to);
}

static bool
is_served(const Segment *seg, int needer, int rank)
{
	bool listed = seg->n_to == 0;
	for (int i = 0; i < seg->n_to && !listed; i++)
		listed = seg->to[i] == rank;
	return listed && (needer == EVERY_RANK || needer == rank);
}

Status
project_tasks(struct projection *p, int s, const Segment *seg, int holder, int needer)
{
	const struct stage *up = &p->stage[UP], *down = &p->stage[DOWN];
	RankProgram *prog = p->prog;
	bool served = is_served(seg, needer, prog->rank), takes = down->n_from > 0;
	int before = prog->n_tasks;
	if (up->n_to > 0)
		TRY(add_task(p, s, up, up, true, false));
	else if (p->reduces && !takes && (up->n_from > 0 || down->n_to > 0))
		TRY(add_task(p, s, up, down, true, served));
	if (takes)
		TRY(add_task(p, s, down, down, false, served));
	else if (!p->reduces && down->n_to > 0 && holder == prog->rank)
		TRY(add_task(p, s, down, down, true, false));
	if (prog->n_tasks > before) {
		TRY(GROW(p->ctx, prog->extent, prog->n_extents, p->extent_capacity));
		TRY(sched_segment_extent(p->ctx, p->sched, seg, &prog->extent[prog->n_extents++]));
	}
	return OK;
}

Status
project_extremes(struct projection *p, const Segment *seg)
{
	Extent extent;
	int depth = tree_depth(&seg->tree, p->depth);
	Frac length = FRAC_ZERO, *longest = &p->prog->longest[seg->part];
	TRY(sched_segment_extent(p->ctx, p->sched, seg, &extent));
	frac_sub(extent.end, extent.begin, &length);
	if (frac_cmp(length, *longest) > 0)
		*longest = length;
	p->prog->depth = depth > p->prog->depth ? depth : p->prog->depth;
	return OK;
}

void
project_clear(struct projection *p)
{
	for (int stage = 0; stage < N_STAGES; stage++) {
		p->stage[stage].n_from = p->stage[stage].n_to = 0;
		p->stage[stage].ring = -1;
	}
}
