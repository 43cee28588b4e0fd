/* From a schedule to what one rank does.
 *
 * One pass over the edges, in their order, follows who has a value, as lower.c does, and keeps what concerns this
 * rank. An edge carries something in the same cases: `up` in a reducing collective, every edge of `down` there, and
 * elsewhere an edge from a rank that has the value to one that has not. What other ranks do is needed for two numbers
 * alone: lanes are counted for each ordered pair with this rank, and rings for every rank.
 *
 * Example, allreduce, `up` 1->0 2->0, `down` 0->1 0->2. Rank 0 has one task: own + 1 + 2, output, to 1 and 2. Rank 1
 * has two: own, to 0; and what 0 publishes, output. */
#include "base/array.h"
#include "schedule/schedule.h"

#include <string.h>

enum { UP, DOWN, N_STAGES };

/* What this rank does in a stage of the current segment. */
struct stage {
	int n_from, n_to, ring;
	RankLane *from, *to;		/* n_ranks each */
};

struct projection {
	Ctx *ctx;
	const Schedule *sched;
	RankProgram *prog;
	bool reduces;
	int task_capacity, extent_capacity;
	int *lanes_out, *lanes_in;	/* of each other rank: lanes counted so far, from and to this one */
	int *rings;			/* of each rank */
	int *segments, *last;		/* likewise: in how many it takes part; number + 1 of the last */
	int *ring[N_STAGES];		/* of each rank in this segment; -1: none yet */
	bool *has;			/* this segment's value has come to the rank */
	int *hops;			/* over so many edges */
	struct stage stage[N_STAGES];
};

/* The ring that the source of an edge publishes in. */
static int
ring_of(struct projection *p, int rank, int stage)
{
	int *ring = &p->ring[stage][rank];
	if (*ring < 0)
		*ring = p->rings[rank]++;
	return *ring;
}

static void
take_part(struct projection *p, int rank, int segment)
{
	p->segments[rank] += p->last[rank] != segment + 1;
	p->last[rank] = segment + 1;
}

static void
carry(struct projection *p, const Edge *e, int stage)
{
	int me = p->prog->rank, ring = ring_of(p, e->src, stage);
	struct stage *mine = &p->stage[stage];
	p->has[e->dst] = true;
	p->hops[e->dst] = p->hops[e->src] + 1;
	if (e->src == me) {
		mine->ring = ring;
		mine->to[mine->n_to++] = (RankLane){ e->dst, p->lanes_out[e->dst]++, ring };
	} else if (e->dst == me) {
		mine->from[mine->n_from++] = (RankLane){ e->src, p->lanes_in[e->src]++, ring };
	}
}

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

static Status
add_tasks(struct projection *p, int s, int holder, int needer)
{
	const Segment *seg = &p->sched->segment[s];
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

/* The segments of a part differ in length; the longest decides how large chunks are. */
static Status
note_longest(struct projection *p, const Segment *seg)
{
	Extent extent;
	Frac length = FRAC_ZERO, *longest = &p->prog->longest[seg->part];
	TRY(sched_segment_extent(p->ctx, p->sched, seg, &extent));
	frac_sub(extent.end, extent.begin, &length);
	if (frac_cmp(length, *longest) > 0)
		*longest = length;
	return OK;
}

static Status
project_segment(struct projection *p, int s)
{
	const Schedule *sched = p->sched;
	const Segment *seg = &sched->segment[s];
	const Tree *tree = &seg->tree;
	int n = sched->topo->n_ranks;
	int64_t block = sched_segment_block(sched, seg);
	int holder = p->reduces ? EVERY_RANK : collective_holder(sched->coll, n, sched->root, block);
	int needer = collective_needer(sched->coll, n, sched->root, block);
	for (int i = 0; i < tree->n_up + tree->n_down; i++) {
		const Edge *e = i < tree->n_up ? &tree->up[i] : &tree->down[i - tree->n_up];
		for (int stage = 0; stage < N_STAGES; stage++)
			p->ring[stage][e->src] = -1;
		p->has[e->src] = holder == EVERY_RANK || e->src == holder;
		p->has[e->dst] = holder == EVERY_RANK || e->dst == holder;
		p->hops[e->src] = p->hops[e->dst] = 0;
	}
	for (int stage = 0; stage < N_STAGES; stage++) {
		p->stage[stage].n_from = p->stage[stage].n_to = 0;
		p->stage[stage].ring = -1;
	}
	for (int i = 0; i < tree->n_up + tree->n_down; i++) {
		bool up = i < tree->n_up;
		const Edge *e = up ? &tree->up[i] : &tree->down[i - tree->n_up];
		take_part(p, e->src, s);
		take_part(p, e->dst, s);
		if (p->reduces)
			carry(p, e, up ? UP : DOWN);
		else if (p->has[e->src] && !p->has[e->dst])
			carry(p, e, DOWN);
	}
	TRY(note_longest(p, seg));
	return add_tasks(p, s, holder, needer);
}

Status
sched_list_peers(Ctx *ctx, const int *lanes_out, const int *lanes_in, RankProgram *prog)
{
	for (int r = 0; r < prog->n_ranks; r++)
		prog->n_peers += lanes_out[r] + lanes_in[r] > 0;
	TRY(NEW(ctx, prog->peer, prog->n_peers));
	prog->n_peers = 0;
	for (int r = 0; r < prog->n_ranks; r++) {
		int most = lanes_out[r] > lanes_in[r] ? lanes_out[r] : lanes_in[r];
		if (most > 0)
			prog->peer[prog->n_peers++] = r;
		prog->lanes_max = most > prog->lanes_max ? most : prog->lanes_max;
	}
	return OK;
}

static Status
project_all(struct projection *p)
{
	Ctx *ctx = p->ctx;
	const Schedule *sched = p->sched;
	RankProgram *prog = p->prog;
	int n = sched->topo->n_ranks;
	prog->n_parts = sched->n_parts ? sched->n_parts : 1;
	if (sched->n_parts) {
		TRY(sched_split(ctx, sched->topo->name, sched, &prog->part_end));
		TRY(NEW(ctx, prog->classes, sched->n_parts));
	}
	for (int i = 0; i < sched->n_parts; i++)
		prog->classes[i] = sched->part[i].classes;
	TRY(NEW(ctx, prog->longest, prog->n_parts));
	for (int i = 0; i < prog->n_parts; i++)
		prog->longest[i] = FRAC_ZERO;
	TRY(sched_overlaps(ctx, sched, &prog->keep_input));
	TRY(sched_depth(ctx, sched, &prog->depth));
	TRY(TEMP(ctx, p->lanes_out, n));
	TRY(TEMP(ctx, p->lanes_in, n));
	TRY(TEMP(ctx, p->rings, n));
	TRY(TEMP(ctx, p->segments, n));
	TRY(TEMP(ctx, p->last, n));
	TRY(TEMP(ctx, p->has, n));
	TRY(TEMP(ctx, p->hops, n));
	for (int stage = 0; stage < N_STAGES; stage++) {
		TRY(TEMP(ctx, p->ring[stage], n));
		TRY(TEMP(ctx, p->stage[stage].from, n));
		TRY(TEMP(ctx, p->stage[stage].to, n));
	}
	for (int s = 0; s < sched->n_segments; s++)
		TRY(project_segment(p, s));
	for (int r = 0; r < n; r++) {
		prog->rings_max = p->rings[r] > prog->rings_max ? p->rings[r] : prog->rings_max;
		prog->segments_max = p->segments[r] > prog->segments_max ? p->segments[r] : prog->segments_max;
	}
	prog->n_rings = p->rings[prog->rank];
	return sched_list_peers(ctx, p->lanes_out, p->lanes_in, prog);
}

Status
sched_project(Ctx *ctx, const Schedule *sched, int rank, RankProgram **out)
{
	RankProgram *prog;
	ArenaMark mark = arena_mark(&ctx->scratch);
	TRY(NEW(ctx, prog, 1));
	*prog = (RankProgram){ .coll = sched->coll, .root = sched->root, .n_ranks = sched->topo->n_ranks,
	    .rank = rank };
	struct projection p = { .ctx = ctx, .sched = sched, .prog = prog, .reduces = collective_reduces(sched->coll) };
	Status status = project_all(&p);
	arena_release(&ctx->scratch, mark);
	if (status == OK)
		*out = prog;
	return status;
}
