#include "schedule/schedule.h"

/* From a schedule to what each rank does, segment by segment, by following the value that every rank holds.
 *
 * Two rules define where a value lies, and so which copies there are:
 *
 *   - In a reducing collective an `up` edge brings the child's value into a ring of the parent, and the parent
 *     reduces it with its own, in the order of the edges, so that the same schedule gives the same bits. The sum lies
 *     in the parent's output where it has one for this segment (it is overwritten by the final value, or is that
 *     value), else in a ring: NCCL's reduce gives a receive buffer to the root alone.
 *   - Every other edge moves a value: into the output of a rank that this tree serves, else into a relay ring.
 *     In a collective that does not reduce all values of a segment are the same, so a rank that has it needs no second
 *     one, and a rank that has none sends none: such edges become nothing.
 *
 * Example, allreduce, `up` 1->0 2->0, `down` 0->1 0->2, at rank 0:
 *
 *   stream up 1->0       COPY   arrival 1 = input of 1
 *   stream reduce at 0   REDUCE output of 0 = input of 0 + arrival 1       after COPY 1->0
 *   stream up 2->0       COPY   arrival 2 = input of 2
 *   stream reduce at 0   REDUCE output of 0 = output of 0 + arrival 2      after COPY 2->0
 *   stream down 0->1     COPY   output of 1 = output of 0                  after the second REDUCE
 *   stream down 0->2     COPY   output of 2 = output of 0                  after the second REDUCE
 *
 * A step waits for one of two reasons: it reads what another step makes (`after`), or it fills the slot of a ring
 * where others still read the chunk of PROGRAM_RING chunks ago (`before`). No other reason is needed, since the bytes
 * of chunks are disjoint elsewhere. And a copy down into an output, where the rank's sum lies, or its input if the
 * call is in place, comes after every step that uses those: the value that it copies holds every rank's contribution,
 * this rank's too, and so descends from each of those steps. */

enum { NONE = -1, FROM_INPUT = -2 };

struct lowering {
	Ctx *ctx;
	const Schedule *sched;
	Program *prog;
	int s;			/* the segment, and below it what each rank does in it */
	Place *value;
	int *maker;		/* step that made the value; NONE: no value; FROM_INPUT: the rank's own input */
	int *reducer;		/* stream that reduces on the rank, or NONE */
	bool *served;		/* its output takes the segment */
	int *filler;		/* of each ring: the first step of a chunk that writes it */
	bool *needs_event;
};

static int
add_stream(struct lowering *l, int rank, bool up, const Edge *edge)
{
	l->prog->stream[l->prog->n_streams] = (Stream){ .rank = rank, .segment = l->s, .up = up, .edge = edge };
	return l->prog->n_streams++;
}

static Place
add_ring(struct lowering *l, int rank, RingUse use, const Edge *edge)
{
	int ring = l->prog->n_rings++;
	l->prog->ring[ring] = (Ring){ .rank = rank, .segment = l->s, .use = use, .edge = edge };
	l->filler[ring] = l->prog->n_steps;
	return (Place){ PLACE_SCRATCH, rank, ring };
}

/* after: the step that makes what it reads, NONE or FROM_INPUT. */
static int
add_step(struct lowering *l, Step step, int after)
{
	step.after = after < 0 ? NONE : after;
	if (after >= 0)
		l->needs_event[after] = true;
	l->prog->step[l->prog->n_steps] = step;
	return l->prog->n_steps++;
}

static void
up_reduce(struct lowering *l, const Edge *e)
{
	/* The ring is filled by the step that comes next: add_ring notes it. */
	Place arrival = add_ring(l, e->dst, RING_ARRIVAL, e);
	Step copy = { .op = STEP_COPY, .up = true, .edge = e, .to = arrival, .from = l->value[e->src] };
	copy.stream = add_stream(l, e->src, true, e);
	int arrived = add_step(l, copy, l->maker[e->src]);

	if (l->reducer[e->dst] == NONE)
		l->reducer[e->dst] = add_stream(l, e->dst, true, NULL);
	Step reduce = { .op = STEP_REDUCE, .up = true, .edge = e, .from = l->value[e->dst], .with = arrival };
	reduce.stream = l->reducer[e->dst];
	if (l->maker[e->dst] != FROM_INPUT)
		reduce.to = l->value[e->dst];
	else if (l->served[e->dst])
		reduce.to = (Place){ PLACE_OUTPUT, e->dst, 0 };
	else
		reduce.to = add_ring(l, e->dst, RING_SUM, NULL);
	/* The rank's sum so far is made on the same stream, in order. */
	l->maker[e->dst] = add_step(l, reduce, arrived);
	l->value[e->dst] = reduce.to;
}

static void
move(struct lowering *l, const Edge *e, bool up)
{
	Step copy = { .op = STEP_COPY, .up = up, .edge = e, .from = l->value[e->src] };
	copy.stream = add_stream(l, e->src, up, e);
	if (l->served[e->dst])
		copy.to = (Place){ PLACE_OUTPUT, e->dst, 0 };
	else
		copy.to = add_ring(l, e->dst, RING_RELAY, e);
	l->maker[e->dst] = add_step(l, copy, l->maker[e->src]);
	l->value[e->dst] = copy.to;
}

/* The step of another stream that fills the slot which `step` reads at `place`. Its own stream keeps its order by
 * itself. */
static Step *
filler_of(const struct lowering *l, const Step *step, const Place *place)
{
	if (place->kind != PLACE_SCRATCH || (place == &step->with && step->op != STEP_REDUCE))
		return NULL;
	Step *fill = &l->prog->step[l->filler[place->ring]];
	return fill->stream == step->stream ? NULL : fill;
}

/* For each step that fills a slot, the list of those that read it: count, allocate, list. */
static Status
link_slots(struct lowering *l)
{
	Step *first = &l->prog->step[l->prog->first_step[l->s]], *end = &l->prog->step[l->prog->n_steps];
	for (Step *step = first; step < end; step++) {
		Step *from = filler_of(l, step, &step->from), *with = filler_of(l, step, &step->with);
		if (from)
			from->n_before++;
		if (with)
			with->n_before++;
	}
	for (Step *step = first; step < end; step++) {
		TRY(NEW(l->ctx, step->before, step->n_before));
		step->n_before = 0;
	}
	for (Step *step = first; step < end; step++) {
		Step *fill[2] = { filler_of(l, step, &step->from), filler_of(l, step, &step->with) };
		for (int i = 0; i < 2; i++) {
			if (fill[i]) {
				fill[i]->before[fill[i]->n_before++] = (int)(step - l->prog->step);
				l->needs_event[step - l->prog->step] = true;
			}
		}
	}
	return OK;
}

static Status
lower_segment(struct lowering *l)
{
	const Schedule *sched = l->sched;
	const Segment *seg = &sched->segment[l->s];
	const Tree *tree = &seg->tree;
	int n = sched->topo->n_ranks;
	bool reduces = collective_reduces(sched->coll);
	int64_t block = sched_segment_block(sched, seg);
	int holder = collective_holder(sched->coll, n, sched->root, block);
	int needer = collective_needer(sched->coll, n, sched->root, block);

	TRY(sched_segment_extent(l->ctx, sched, seg, &l->prog->extent[l->s]));
	for (int r = 0; r < n; r++) {
		l->value[r] = (Place){ PLACE_INPUT, r, 0 };
		l->maker[r] = holder == EVERY_RANK || holder == r ? FROM_INPUT : NONE;
		l->reducer[r] = NONE;
		l->served[r] = seg->n_to == 0 && (needer == EVERY_RANK || needer == r);
	}
	for (int i = 0; i < seg->n_to; i++)
		l->served[seg->to[i]] = needer == EVERY_RANK || needer == seg->to[i];

	for (int i = 0; i < tree->n_up + tree->n_down; i++) {
		bool up = i < tree->n_up;
		const Edge *e = tree_hop(tree, i);
		if (reduces && up)
			up_reduce(l, e);
		else if (reduces || (l->maker[e->src] != NONE && l->maker[e->dst] == NONE))
			move(l, e, up);
	}
	return link_slots(l);
}

static Status
lower_all(struct lowering *l)
{
	Ctx *ctx = l->ctx;
	const Schedule *sched = l->sched;
	Program *prog = l->prog;
	int n = sched->topo->n_ranks, n_up = 0, n_down = 0;
	for (int s = 0; s < sched->n_segments; s++) {
		n_up += sched->segment[s].tree.n_up;
		n_down += sched->segment[s].tree.n_down;
	}
	/* An edge is a copy; an `up` edge may be a reduction too. */
	int most = 2 * n_up + n_down;
	prog->sched = sched;
	prog->n_parts = sched->n_parts ? sched->n_parts : 1;
	if (sched->n_parts)
		TRY(sched_split(ctx, sched->topo->name, sched, &prog->part_end));
	TRY(NEW(ctx, prog->extent, sched->n_segments));
	TRY(NEW(ctx, prog->first_step, sched->n_segments + 1));
	TRY(NEW(ctx, prog->stream, most));
	TRY(NEW(ctx, prog->ring, most));
	TRY(NEW(ctx, prog->step, most));
	TRY(TEMP(ctx, l->filler, most));
	TRY(TEMP(ctx, l->needs_event, most));
	TRY(TEMP(ctx, l->value, n));
	TRY(TEMP(ctx, l->maker, n));
	TRY(TEMP(ctx, l->reducer, n));
	TRY(TEMP(ctx, l->served, n));
	TRY(sched_overlaps(ctx, sched, &prog->keep_input));
	for (l->s = 0; l->s < sched->n_segments; l->s++) {
		prog->first_step[l->s] = prog->n_steps;
		TRY(lower_segment(l));
	}
	prog->first_step[sched->n_segments] = prog->n_steps;
	for (int k = 0; k < prog->n_steps; k++)
		prog->step[k].event = l->needs_event[k] ? prog->n_events++ : -1;
	return OK;
}

Status
sched_lower(Ctx *ctx, const Schedule *sched, Program **out)
{
	Program *prog;
	ArenaMark mark = arena_mark(&ctx->scratch);
	TRY(NEW(ctx, prog, 1));
	struct lowering l = { .ctx = ctx, .sched = sched, .prog = prog };
	Status status = lower_all(&l);
	arena_release(&ctx->scratch, mark);
	if (status == OK)
		*out = prog;
	return status;
}
