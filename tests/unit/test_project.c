/* Rank programs (schedule/project.c) against each other and against sched_lower's: each rank's is made without
 * knowledge of the others, so what one publishes has to be what the other reads, lane by lane and ring by ring; and a
 * replay of all of them gives each rank what its collective demands, added in the same order. Prints TAP. Arguments:
 * seed, schedules of each collective. */
#include "random_schedule.h"

enum { EACH = 50, LONG = 2048, SHORT = 64, SMALL = 4096 };

struct ranks {
	Ctx ctx;
	const Schedule *sched;
	int n;
	RankProgram *of[MAX_RANKS];
	Program *lowered;
};

/* What a rank has of a segment: how often each rank's contribution, and a number for the order of the additions. */
struct value {
	bool there;
	int count[MAX_RANKS];
	uint64_t order;
};

static struct value
contribution(int rank)
{
	struct value v = { .there = true, .order = (uint64_t)rank + 1 };
	v.count[rank] = 1;
	return v;
}

static struct value
sum(struct value a, struct value b)
{
	a.there = a.there && b.there;
	for (int r = 0; r < MAX_RANKS; r++)
		a.count[r] += b.count[r];
	a.order = a.order * UINT64_C(0x9e3779b97f4a7c15) + b.order * UINT64_C(0xbf58476d1ce4e5b9) + 1;
	return a;
}

static bool
same(struct value a, struct value b)
{
	return a.there == b.there && (!a.there || (a.order == b.order && !memcmp(a.count, b.count, sizeof a.count)));
}

/* ---- what a segment demands ---- */

static int
holder_of(const Schedule *sched, const Segment *seg)
{
	return collective_reduces(sched->coll) ? EVERY_RANK
	    : collective_holder(sched->coll, sched->topo->n_ranks, sched->root, sched_segment_block(sched, seg));
}

/* Has the rank to be given it? The holder has it already. */
static bool
is_demanded(const Schedule *sched, const Segment *seg, int rank)
{
	int needer = collective_needer(sched->coll, sched->topo->n_ranks, sched->root, sched_segment_block(sched, seg));
	bool listed = seg->n_to == 0;
	for (int i = 0; i < seg->n_to; i++)
		listed = listed || seg->to[i] == rank;
	return listed && (needer == EVERY_RANK || needer == rank) && holder_of(sched, seg) != rank;
}

static bool
is_whole(const Schedule *sched, const Segment *seg, struct value v)
{
	int holder = holder_of(sched, seg);
	bool whole = v.there;
	for (int r = 0; r < sched->topo->n_ranks; r++)
		whole = whole && v.count[r] == (holder == EVERY_RANK || holder == r);
	return whole;
}

/* ---- lanes and rings ---- */

static bool
same_lane(const RankLane *a, int rank_of_a, const RankLane *b, int rank_of_b)
{
	return a->rank == rank_of_b && b->rank == rank_of_a && a->lane == b->lane && a->ring == b->ring;
}

/* How many lanes of the rank's tasks in that segment are this one, seen from the other side. */
static int
count_partners(const RankProgram *prog, int segment, const RankLane *lane, int rank, bool readers)
{
	int found = 0;
	for (int i = 0; i < prog->n_tasks; i++) {
		const RankTask *t = &prog->task[i];
		const RankLane *other = readers ? t->from : t->to;
		for (int k = 0; k < (readers ? t->n_from : t->n_to) && t->segment == segment; k++)
			found += same_lane(lane, rank, &other[k], prog->rank);
	}
	return found;
}

static bool
lanes_meet(const struct ranks *all)
{
	bool good = true;
	for (int p = 0; p < all->n; p++) {
		for (int i = 0; i < all->of[p]->n_tasks; i++) {
			const RankTask *t = &all->of[p]->task[i];
			for (int k = 0; k < t->n_to; k++)
				good = good && t->to[k].ring == t->ring
				    && count_partners(all->of[t->to[k].rank], t->segment, &t->to[k], p, true) == 1;
			for (int k = 0; k < t->n_from; k++)
				good = good
				    && count_partners(all->of[t->from[k].rank], t->segment, &t->from[k], p, false)
					== 1;
		}
	}
	return good;
}

/* Lanes of each pair, rings and segments of a rank count upwards from 0, in the order of its tasks. */
static bool
counts_without_gaps(const struct ranks *all, const RankProgram *prog)
{
	int out[MAX_RANKS] = { 0 }, in[MAX_RANKS] = { 0 }, rings = 0, extents = 0, most = 0, peers = 0;
	bool good = true;
	for (int i = 0; i < prog->n_tasks; i++) {
		const RankTask *t = &prog->task[i], *before = i > 0 ? t - 1 : NULL;
		good = good && t->ring == (t->n_to > 0 ? rings++ : -1) && (!before || before->segment <= t->segment);
		extents += !before || before->segment < t->segment;
		good = good && t->extent == extents - 1 && (i < 2 || t[-2].segment < t->segment);
		for (int k = 0; k < t->n_to; k++)
			good = good && t->to[k].lane == out[t->to[k].rank]++;
		for (int k = 0; k < t->n_from; k++)
			good = good && t->from[k].lane == in[t->from[k].rank]++;
	}
	for (int r = 0; r < all->n; r++) {
		const bool *joined = prog->joined;
		good = good && (!joined || (joined[prog->rank * all->n + r] == (out[r] > 0)
		    && joined[r * all->n + prog->rank] == (in[r] > 0)));
		most = out[r] > most ? out[r] : most;
		most = in[r] > most ? in[r] : most;
		if (out[r] + in[r] > 0)
			good = good && peers < prog->n_peers && prog->peer[peers++] == r;
	}
	return good && rings == prog->n_rings && extents == prog->n_extents && most == prog->lanes_max
	    && peers == prog->n_peers && out[prog->rank] + in[prog->rank] == 0;
}

/* The hops of the task that publishes this lane in that segment; -1: there is none. */
static int
hops_of_source(const struct ranks *all, int segment, const RankLane *lane)
{
	const RankProgram *prog = all->of[lane->rank];
	for (int i = 0; i < prog->n_tasks; i++)
		if (prog->task[i].segment == segment && prog->task[i].ring == lane->ring)
			return prog->task[i].hops;
	return -1;
}

static bool
counts_hops(const struct ranks *all, const RankProgram *prog)
{
	bool good = true;
	for (int i = 0; i < prog->n_tasks && !collective_reduces(prog->coll); i++) {
		const RankTask *t = &prog->task[i];
		int before = t->n_from > 0 ? hops_of_source(all, t->segment, &t->from[0]) : -1;
		good = good && t->hops == before + 1 && t->own == (t->n_from == 0);
	}
	return good;
}

/* What is of all ranks. */
static bool
agrees_on_maxima(const struct ranks *all, const RankProgram *prog)
{
	int rings = 0, lanes = 0;
	Frac longest[3] = { FRAC_ZERO, FRAC_ZERO, FRAC_ZERO };
	bool good = prog->n_parts <= 3;
	for (int r = 0; r < all->n; r++) {
		rings = all->of[r]->n_rings > rings ? all->of[r]->n_rings : rings;
		lanes = all->of[r]->lanes_max > lanes ? all->of[r]->lanes_max : lanes;
	}
	for (int s = 0; s < all->sched->n_segments; s++) {
		const Extent *e = &all->lowered->extent[s];
		Frac length = FRAC_ONE;
		good = good && frac_sub(e->end, e->begin, &length);
		if (good && frac_cmp(length, longest[e->part]) > 0)
			longest[e->part] = length;
	}
	for (int p = 0; p < prog->n_parts && good; p++)
		good = frac_cmp(prog->longest[p], longest[p]) == 0;
	return good && prog->rings_max == rings && prog->pair_lanes_max == lanes;
}

static bool
same_extent(const Extent *a, const Extent *b)
{
	return a->send_block == b->send_block && a->recv_block == b->recv_block && a->part == b->part
	    && frac_cmp(a->begin, b->begin) == 0 && frac_cmp(a->end, b->end) == 0;
}

static bool
agrees_with_lowered(const struct ranks *all, const RankProgram *prog)
{
	const Program *low = all->lowered;
	bool good = prog->n_parts == low->n_parts && prog->keep_input == low->keep_input
	    && prog->coll == all->sched->coll && prog->root == all->sched->root && prog->n_ranks == all->n;
	for (int i = 0; i < prog->n_tasks; i++)
		good = good && same_extent(&prog->extent[prog->task[i].extent], &low->extent[prog->task[i].segment]);
	good = good && (all->sched->n_parts > 0) == (prog->classes != NULL);
	for (int i = 0; i < all->sched->n_parts && good; i++)
		good = prog->classes[i] == all->sched->part[i].classes;
	for (int i = 0; i < prog->n_parts * (prog->n_parts - 1) && good; i++) {
		const PartEnd *a = &prog->part_end[i], *b = &low->part_end[i];
		good = a->from == b->from && a->num == b->num && a->den == b->den && a->add == b->add;
	}
	return good;
}

/* ---- replay ---- */

/* The value of a task, once all that it reads has been published; lane by lane, as its rank knows them. */
static struct value
value_of(const struct ranks *all, int rank, const RankTask *t, struct value *const *ring)
{
	const Segment *seg = &all->sched->segment[t->segment];
	int holder = holder_of(all->sched, seg);
	struct value v = contribution(rank);
	v.there = !t->own || holder == EVERY_RANK || holder == rank;
	for (int k = 0; k < t->n_from; k++) {
		struct value read = ring[t->from[k].rank][t->from[k].ring];
		v = t->own || k > 0 ? sum(v, read) : read;
	}
	return v;
}

static bool
run_task(const struct ranks *all, int rank, const RankTask *t, struct value *const *ring, struct value *output)
{
	struct value v = value_of(all, rank, t, ring);
	if (!v.there)
		return false;
	if (t->n_to > 0)
		ring[rank][t->ring] = v;
	if (t->output)
		output[t->segment * MAX_RANKS + rank] = v;
	return true;
}

/* Tasks in any order that data allow. output: of each segment, of each rank. False: some task waits for ever, or has a
 * value that is complete and does not say so, or the other way round. */
static bool
replay_ranks(struct ranks *all, struct value *output)
{
	struct value *ring[MAX_RANKS];
	bool *done[MAX_RANKS], moved = true, good = true;
	for (int r = 0; r < all->n; r++) {
		MAKE(&all->ctx, ring[r], all->of[r]->n_rings);
		MAKE(&all->ctx, done[r], all->of[r]->n_tasks);
	}
	while (moved) {
		moved = false;
		for (int r = 0; r < all->n; r++)
			for (int i = all->of[r]->n_tasks - 1; i >= 0; i--)
				if (!done[r][i])
					moved |= done[r][i] = run_task(all, r, &all->of[r]->task[i], ring, output);
	}
	for (int r = 0; r < all->n; r++) {
		for (int i = 0; i < all->of[r]->n_tasks; i++) {
			const RankTask *t = &all->of[r]->task[i];
			const Segment *seg = &all->sched->segment[t->segment];
			good = good && done[r][i]
			    && t->complete == is_whole(all->sched, seg, value_of(all, r, t, ring));
		}
	}
	return good;
}

static struct value *
at_place(const Place *p, struct value *input, struct value *output, struct value *ring)
{
	if (p->kind == PLACE_SCRATCH)
		return &ring[p->ring];
	if (p->kind == PLACE_INPUT)
		input[p->rank] = contribution(p->rank);
	return p->kind == PLACE_INPUT ? &input[p->rank] : &output[p->rank];
}

static void
replay_lowered(struct ranks *all, struct value *output)
{
	const Program *low = all->lowered;
	struct value input[MAX_RANKS], *ring;
	MAKE(&all->ctx, ring, low->n_rings);
	for (int s = 0; s < all->sched->n_segments; s++) {
		for (int i = low->first_step[s]; i < low->first_step[s + 1]; i++) {
			const Step *step = &low->step[i];
			struct value *out = &output[s * MAX_RANKS];
			struct value v = *at_place(&step->from, input, out, ring);
			if (step->op == STEP_REDUCE)
				v = sum(v, *at_place(&step->with, input, out, ring));
			*at_place(&step->to, input, out, ring) = v;
		}
	}
}

/* All who are to be given something have all of it, and the same as by sched_lower; nobody else has anything. */
static bool
results_are_right(struct ranks *all)
{
	struct value *ours, *theirs;
	int n = all->sched->n_segments * MAX_RANKS;
	MAKE(&all->ctx, ours, n);
	MAKE(&all->ctx, theirs, n);
	bool good = replay_ranks(all, ours);
	replay_lowered(all, theirs);
	for (int s = 0; s < all->sched->n_segments; s++) {
		const Segment *seg = &all->sched->segment[s];
		for (int r = 0; r < all->n; r++) {
			struct value v = ours[s * MAX_RANKS + r];
			good = good && v.there == is_demanded(all->sched, seg, r);
			good = good
			    && (!v.there || (is_whole(all->sched, seg, v) && same(v, theirs[s * MAX_RANKS + r])));
		}
	}
	return good;
}

/* ---- random schedules ---- */

enum { LANES, GAPS, MAXIMA, LOWERED, HOPS, RESULTS, N_LAWS };

static const char *const laws[N_LAWS] = {
	[LANES] = "what a rank publishes is what the other reads",
	[GAPS] = "lanes, rings, extents and peers are counted without gaps",
	[MAXIMA] = "maxima are those of all ranks",
	[LOWERED] = "extents, parts and their links are those of sched_lower",
	[HOPS] = "what moves is one hop further than where it comes from",
	[RESULTS] = "replayed, all ranks have what is demanded, by the same additions as sched_lower's program"
};

static bool
project(struct ranks *all)
{
	bool good = sched_lower(&all->ctx, all->sched, &all->lowered) == OK;
	for (int r = 0; r < all->n && good; r++)
		good = sched_project(&all->ctx, all->sched, r, &all->of[r]) == OK && all->of[r]->rank == r;
	return good;
}

static void
test_laws(struct ranks *all, bool *good)
{
	good[LANES] = good[LANES] && lanes_meet(all);
	for (int r = 0; r < all->n; r++) {
		good[GAPS] = good[GAPS] && counts_without_gaps(all, all->of[r]);
		good[MAXIMA] = good[MAXIMA] && agrees_on_maxima(all, all->of[r]);
		good[LOWERED] = good[LOWERED] && agrees_with_lowered(all, all->of[r]);
		good[HOPS] = good[HOPS] && counts_hops(all, all->of[r]);
	}
	good[RESULTS] = good[RESULTS] && good[LANES] && good[GAPS] && results_are_right(all);
}

static void
test_collective(Collective coll, int each)
{
	bool good[N_LAWS], made = true;
	char what[160];
	memset(good, true, sizeof good);
	for (int i = 0; i < each; i++) {
		struct ranks all = { .n = 1 + i % MAX_RANKS };
		ctx_init(&all.ctx);
		all.sched = random_schedule(&all.ctx, coll, all.n, i % 3 == 0);
		made = made && project(&all);
		if (made)
			test_laws(&all, good);
		ctx_free(&all.ctx);
	}
	for (int law = 0; law < N_LAWS; law++) {
		snprintf(what, sizeof what, "%s: %s", collective_name(coll), laws[law]);
		ok(made && good[law], what);
	}
}

/* ---- memory ---- */

/* Up along ranks n - 1, n - 2 ... 0, and down again; or the blocks of a gather, straight to rank 0. */
static Schedule *
chain(Ctx *ctx, int n)
{
	Schedule *sched;
	Topology *topo;
	MAKE(ctx, sched, 1);
	MAKE(ctx, topo, 1);
	*topo = (Topology){ .name = "chain", .n_ranks = n };
	*sched = (Schedule){ .topo = topo, .coll = ALLREDUCE, .root = -1, .n_segments = 1 };
	MAKE(ctx, sched->segment, 1);
	Segment *s = sched->segment;
	*s = (Segment){ .offset = FRAC_ZERO, .length = FRAC_ONE, .tree = { .n_up = n - 1, .n_down = n - 1 } };
	MAKE(ctx, s->tree.up, n);
	MAKE(ctx, s->tree.down, n);
	for (int r = 1; r < n; r++) {
		s->tree.up[n - 1 - r] = (Edge){ .src = r, .dst = r - 1 };
		s->tree.down[r - 1] = (Edge){ .src = r - 1, .dst = r };
	}
	return sched;
}

static Schedule *
star(Ctx *ctx, int n)
{
	Schedule *sched = chain(ctx, n);
	sched->coll = GATHER;
	sched->root = 0;
	MAKE(ctx, sched->segment, n);
	for (int r = 1; r < n; r++) {
		Segment *s = &sched->segment[r - 1];
		*s = (Segment){ .tree = { .root = r, .n_down = 1 } };
		frac_make(r, n, &s->offset);
		frac_make(1, n, &s->length);
		MAKE(ctx, s->tree.down, 1);
		*s->tree.down = (Edge){ .src = r, .dst = 0 };
	}
	sched->n_segments = n - 1;
	return sched;
}

/* Bytes of a rank's program. They lie in the first block of an arena, or in so many that the answer is "many". */
static size_t
memory_of(Schedule *(*make)(Ctx *ctx, int n), int n, int rank, RankProgram *out)
{
	Ctx from, to;
	RankProgram *prog;
	ctx_init(&from);
	ctx_init(&to);
	const Schedule *sched = make(&from, n);
	need(arena_array(&to.run, 1, 1));
	ArenaMark before = arena_mark(&to.run);
	size_t bytes = SIZE_MAX;
	if (sched_project(&to, sched, rank, &prog) == OK) {
		ArenaMark after = arena_mark(&to.run);
		*out = *prog;
		bytes = before.block == after.block ? after.used - before.used : SIZE_MAX;
	}
	ctx_free(&from);
	ctx_free(&to);
	return bytes;
}

static void
test_memory(void)
{
	RankProgram of_short, of_long;
	size_t in_short = memory_of(chain, SHORT, SHORT / 2, &of_short);
	size_t in_long = memory_of(chain, LONG, LONG / 2, &of_long);
	ok(in_short == in_long && in_long < SMALL && of_long.n_tasks == 2 && of_long.n_peers == 2,
	    "a rank of a chain has a program of the same few KB, of 64 ranks or of 2048");
	in_short = memory_of(star, SHORT, SHORT / 2, &of_short);
	in_long = memory_of(star, LONG, LONG / 2, &of_long);
	ok(in_short == in_long && in_long < SMALL && of_long.n_tasks == 1 && of_long.lanes_max == 1,
	    "and so has a rank of a gather");
	size_t of_root = memory_of(star, SHORT, 0, &of_short);
	ok(of_root > in_long && of_root < SIZE_MAX && of_short.n_tasks == SHORT - 1 && of_short.n_peers == SHORT - 1,
	    "whose root has a task for each of them");
}

int
main(int argc, char **argv)
{
	state = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
	for (int c = 0; c < N_COLLECTIVES; c++)
		test_collective((Collective)c, argc > 2 ? atoi(argv[2]) : EACH);
	test_memory();
	return end_tests();
}
