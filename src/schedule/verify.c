/* Replay of a schedule. The state of a rank is the multiset of ranks whose contributions its value holds. Values are
 * shared and never change: value 0 is empty, value 1 + r is the contribution of rank r, and later ones are sums of
 * two earlier ones, which reducing edges make; every other edge copies a number.
 *
 *   up 2->1, 1->0, down 0->1 of three ranks:     rank 0    1    2
 *   at first                                          1    2    3
 *   2->1: 4 = 2 + 3                                   1    4    3
 *   1->0: 5 = 1 + 4                                   5    4    3
 *   0->1                                              5    5    3      and rank 2 ends without the data of 0 and 1
 *
 * So the cost of an edge does not depend on the number of ranks, and the contributions to a value are counted once,
 * where a rank ends with it. A tree moves only its own segment and starts from the input, so trees are replayed one
 * by one; then for each rank the segments that serve it must tile what it needs. The cost of a tree is its edges and
 * the ranks in `to`: a tree that has to serve every rank, or to reduce what every rank has, and has fewer edges than
 * ranks is invalid, and ends the replay. */
#include "schedule/by_tree.h"
#include "schedule/images.h"
#include "schedule/in_trees.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

struct sum {
	int a, b;		/* values, both made before this one */
	bool valid;		/* known: each wanted contribution is in it once */
};

struct replay {
	Ctx *ctx;
	const char *label;
	const Schedule *sched;
	int n;
	int *value, *tree;	/* of each rank: its value, if an edge of the current tree, tree[rank] - 1, made it */
	int n_sums, sums_room;
	struct sum *sum;	/* value 1 + n + i is sum[i] */
	int *count;		/* of each value: work space of count_contributions */
};

/* ---- values ---- */

static int
value_of(const struct replay *p, int t, int rank, int holder)
{
	if (p->tree[rank] == t + 1)
		return p->value[rank];
	return holder == EVERY_RANK || holder == rank ? 1 + rank : 0;
}

static void
set_value(struct replay *p, int t, int rank, int value)
{
	p->tree[rank] = t + 1;
	p->value[rank] = value;
}

static int
sum_of(struct replay *p, int a, int b)
{
	p->sum[p->n_sums] = (struct sum){ .a = a, .b = b };
	return 1 + p->n + p->n_sums++;
}

static int
add_counts(int a, int b)
{
	return a > INT_MAX - b ? INT_MAX : a + b;
}

/* count[1 + r]: how many times `value` holds the contribution of rank r. A sum adds its own count to those of its two
 * terms, the last sum first: so the cost is the number of sums, however many terms they share. */
static void
count_contributions(struct replay *p, int value)
{
	memset(p->count, 0, (size_t)(1 + p->n + p->n_sums) * sizeof *p->count);
	p->count[value] = 1;
	for (int v = value; v > p->n; v--) {
		const struct sum *sum = &p->sum[v - p->n - 1];
		p->count[sum->a] = add_counts(p->count[sum->a], p->count[v]);
		p->count[sum->b] = add_counts(p->count[sum->b], p->count[v]);
	}
}

/* A rank that is served has to end with each wanted contribution once. */
static Status
check_result(struct replay *p, int t, int rank, int holder)
{
	int value = value_of(p, t, rank, holder);
	struct sum *sum = value > p->n ? &p->sum[value - p->n - 1] : NULL;
	if (sum ? sum->valid : holder != EVERY_RANK && value == 1 + holder)
		return OK;
	count_contributions(p, value);
	for (int c = 0; c < p->n; c++) {
		int want = holder == EVERY_RANK || holder == c;
		if (p->count[1 + c] != want)
			return fail(p->ctx, UNVERIFIED,
			    "%s: trees[%d]: rank %d ends with %d times the data of rank %d: want %d",
			    p->label, t, rank, p->count[1 + c], c, want);
	}
	if (sum)
		sum->valid = true;
	return OK;
}

/* ---- trees ---- */

static Status
check_results(struct replay *p, int t, int holder, int needer)
{
	const Segment *segment = &p->sched->segment[t];
	for (int i = 0; i < segment->n_to; i++)
		if (needer != EVERY_RANK && needer != segment->to[i])
			return fail(p->ctx, UNVERIFIED, "%s: trees[%d].to[%d]: rank %d needs none of this segment",
			    p->label, t, i, segment->to[i]);
	if (needer != EVERY_RANK)
		return check_result(p, t, needer, holder);
	int n = segment->n_to ? segment->n_to : p->n;
	for (int i = 0; i < n; i++) {
		int rank = segment->n_to ? segment->to[i] : i;
		/* Most ranks get what the holder has. */
		if (holder == EVERY_RANK || p->tree[rank] != t + 1 || p->value[rank] != 1 + holder)
			TRY(check_result(p, t, rank, holder));
	}
	return OK;
}

static Status
replay_tree(struct replay *p, int t)
{
	const Schedule *sched = p->sched;
	const Segment *segment = &sched->segment[t];
	const Tree *tree = &segment->tree;
	int64_t block = sched_segment_block(sched, segment);
	int holder = collective_holder(sched->coll, p->n, sched->root, block);
	bool add = collective_reduces(sched->coll);
	p->n_sums = 0;
	for (int e = 0; e < tree->n_up; e++) {
		const Edge *edge = &tree->up[e];
		int value = value_of(p, t, edge->src, holder);
		set_value(p, t, edge->dst, add ? sum_of(p, value_of(p, t, edge->dst, holder), value) : value);
	}
	for (int e = 0; e < tree->n_down; e++)
		set_value(p, t, tree->down[e].dst, value_of(p, t, tree->down[e].src, holder));
	return check_results(p, t, holder, collective_needer(sched->coll, p->n, sched->root, block));
}

static Status
replay_begin(struct replay *p)
{
	TRY(TEMP(p->ctx, p->value, p->n));
	return TEMP(p->ctx, p->tree, p->n);
}

/* Room for the sums of a tree; what was there is not kept. */
static Status
replay_room(struct replay *p, int n_up)
{
	if (p->sum && n_up <= p->sums_room)
		return OK;
	p->sums_room = n_up > 2 * p->sums_room ? n_up : 2 * p->sums_room;
	TRY(TEMP(p->ctx, p->sum, p->sums_room));
	return TEMP(p->ctx, p->count, 1 + (size_t)p->n + (size_t)p->sums_room);
}

static Status
replay_trees(struct replay *p)
{
	int most_sums = 0;
	for (int t = 0; t < p->sched->n_segments; t++)
		if (p->sched->segment[t].tree.n_up > most_sums)
			most_sums = p->sched->segment[t].tree.n_up;
	TRY(replay_begin(p));
	TRY(replay_room(p, most_sums));
	for (int t = 0; t < p->sched->n_segments; t++)
		TRY(replay_tree(p, t));
	return OK;
}

/* ---- tiling ---- */

struct start {
	Frac offset;
	int tree;
};

/* The trees of one block in order of offset, and how far they have come for each rank that needs the block. */
struct block {
	int64_t b;
	Frac begin, end;
	int n;			/* ranks that need it: `needer`, or every one */
	int needer;
	Frac *at;		/* of each rank of the schedule */
};

static int
by_offset(const void *a, const void *b)
{
	const struct start *s = a, *t = b;
	int order = frac_cmp(s->offset, t->offset);
	return order ? order : (s->tree > t->tree) - (s->tree < t->tree);
}

static bool
frac_same(Frac a, Frac b)
{
	return a.num == b.num && a.den == b.den;
}

static int
needer_of(const struct block *block, int i)
{
	return block->needer == EVERY_RANK ? i : block->needer;
}

/* Tree t has to begin where the trees before it ended, for each rank that it serves. The replay has checked the ranks
 * in `to`. */
static Status
tile_segment(struct replay *p, int t, const struct block *block)
{
	const Segment *segment = &p->sched->segment[t];
	Frac end;
	if (!frac_add(segment->offset, segment->length, &end))
		return fail(p->ctx, LIMIT, "%s: trees[%d].segment: needs more than 64 bits", p->label, t);
	int n = segment->n_to ? segment->n_to : block->n;
	for (int i = 0; i < n; i++) {
		int rank = segment->n_to ? segment->to[i] : needer_of(block, i);
		Frac *at = &block->at[rank];
		if (!frac_same(segment->offset, *at))
			return fail(p->ctx, UNVERIFIED,
			    "%s: trees[%d].segment: starts at %lld/%lld: rank %d wants %lld/%lld next",
			    p->label, t, (long long)segment->offset.num, (long long)segment->offset.den, rank,
			    (long long)at->num, (long long)at->den);
		*at = end;
	}
	return OK;
}

/* Do trees that serve all who need the block tile it? So it is of nearly all; if not, the trees are looked at rank by
 * rank. *next: behind them. */
static bool
tile_evenly(const struct replay *p, const struct start *start, const struct block *block, int *next)
{
	const Schedule *sched = p->sched;
	Frac at = block->begin;
	int i = *next;
	for (; i < sched->n_segments && frac_cmp(start[i].offset, block->end) < 0; i++) {
		const Segment *segment = &sched->segment[start[i].tree];
		if (segment->n_to || !frac_same(segment->offset, at) || !frac_add(at, segment->length, &at))
			return false;
	}
	if (!frac_same(at, block->end))
		return false;
	*next = i;
	return true;
}

/* A rank may get nothing of its own block, or all of it. */
static Status
tile_block(struct replay *p, const struct start *start, const struct block *block, int *next)
{
	const Schedule *sched = p->sched;
	int owner = collective_reduces(sched->coll) ? -1 : collective_holder(sched->coll, p->n, sched->root, block->b);
	if (tile_evenly(p, start, block, next))
		return OK;
	for (int i = 0; i < block->n; i++)
		block->at[needer_of(block, i)] = block->begin;
	for (; *next < sched->n_segments && frac_cmp(start[*next].offset, block->end) < 0; ++*next)
		TRY(tile_segment(p, start[*next].tree, block));
	for (int i = 0; i < block->n; i++) {
		int rank = needer_of(block, i);
		Frac at = block->at[rank];
		if (!frac_same(at, block->end) && !(rank == owner && frac_same(at, block->begin)))
			return fail(p->ctx, UNVERIFIED,
			    "%s: trees: no segment at %lld/%lld of the buffer serves rank %d", p->label,
			    (long long)at.num, (long long)at.den, rank);
	}
	return OK;
}

/* The first block that no tree serves is an error, unless it stays where it is: so this is fast, though an alltoall
 * of LIMIT_RANKS has 2^24 blocks. */
static Status
check_tiling(struct replay *p)
{
	const Schedule *sched = p->sched;
	int64_t blocks = collective_blocks(sched->coll, p->n);
	struct block block = { .end = FRAC_ZERO };
	struct start *start;
	int next = 0;
	TRY(TEMP(p->ctx, block.at, p->n));
	TRY(TEMP(p->ctx, start, sched->n_segments));
	for (int t = 0; t < sched->n_segments; t++)
		start[t] = (struct start){ sched->segment[t].offset, t };
	qsort(start, (size_t)sched->n_segments, sizeof *start, by_offset);
	for (block.b = 0; block.b < blocks; block.b++) {
		block.begin = block.end;
		block.needer = collective_needer(sched->coll, p->n, sched->root, block.b);
		block.n = block.needer == EVERY_RANK ? p->n : 1;
		if (!frac_make(block.b + 1, blocks, &block.end))
			return fail(p->ctx, LIMIT, "%s: trees: too many blocks", p->label);
		TRY(tile_block(p, start, &block, &next));
	}
	return OK;
}

/* ---- rates ---- */

/* A file states rates as decimals of 15 digits. */
static bool
states(double stated, Frac exact)
{
	double gb = frac_double(exact) / 1e9, gap = stated > gb ? stated - gb : gb - stated;
	return gap <= 1e-12 * gb;
}

static Status
check_rates(struct replay *p, Frac achieved, Frac *out)
{
	const Schedule *sched = p->sched;
	Frac bound = FRAC_ZERO;
	TRY(bound_from_certificate(p->ctx, p->label, sched->topo, sched->coll, sched->root, &sched->bound, &bound));
	if (!states(sched->stated_achieved, achieved))
		return fail(p->ctx, UNVERIFIED, "%s: rate.achieved: %.15g: the trees achieve %.15g GB/s", p->label,
		    sched->stated_achieved, frac_double(achieved) / 1e9);
	if (!states(sched->stated_bound, bound))
		return fail(p->ctx, UNVERIFIED, "%s: rate.bound: %.15g: the certificate proves %.15g GB/s", p->label,
		    sched->stated_bound, frac_double(bound) / 1e9);
	TRY(certificate_check(p->ctx, p->label, sched->topo, sched->coll, sched->root, sched->symmetry,
	    &sched->bound));
	if (frac_cmp(achieved, bound) > 0)
		return fail(p->ctx, UNVERIFIED, "%s: rate.achieved: %.15g GB/s is above the bound of %.15g GB/s",
		    p->label, frac_double(achieved) / 1e9, frac_double(bound) / 1e9);
	*out = bound;
	return OK;
}

/* Shares are in proportion to rates if each part, with its share, achieves by itself what all achieve together. */
static Status
check_parts(struct replay *p, Frac all)
{
	const Schedule *sched = p->sched;
	Part *part;
	PartEnd *split;
	Frac share, alone;
	TRY(TEMP(p->ctx, part, sched->n_parts));
	TRY(sched_parts(p->ctx, p->label, sched, part));
	for (int i = 0; i < sched->n_parts; i++) {
		if (!states(sched->part[i].stated_rate, part[i].rate))
			return fail(p->ctx, UNVERIFIED, "%s: parts[%d].rate: %.15g: its trees carry %.15g GB/s",
			    p->label, i, sched->part[i].stated_rate, frac_double(part[i].rate) / 1e9);
		if (!frac_sub(part[i].end, part[i].begin, &share) || !frac_div(part[i].rate, share, &alone))
			return fail(p->ctx, LIMIT, "%s: parts[%d]: its share needs more than 64 bits", p->label, i);
		if (!frac_same(alone, all))
			return fail(p->ctx, UNVERIFIED,
			    "%s: parts[%d]: %.15g of the buffer at %.15g GB/s: want shares in proportion to "
			    "the rates", p->label, i, frac_double(share), frac_double(part[i].rate) / 1e9);
	}
	for (int t = 0; t < sched->n_segments && sched->n_parts; t++)
		if (!sched_extent(sched, &sched->segment[t], &share, &alone))
			return fail(p->ctx, LIMIT,
			    "%s: trees[%d].segment: its place in its part needs more than 64 bits", p->label, t);
	return sched->n_parts ? sched_split(p->ctx, p->label, sched, &split) : OK;
}

/* Of all but the certificate: an edge is checked, replayed and added to loads, some of them twice. */
static int64_t
steps_of(const Segment *s)
{
	enum { STEPS_EDGE = 20, STEPS_LINK = 20, STEPS_TREE = 400 };
	int64_t steps = STEPS_TREE + STEPS_EDGE * s->n_to;
	for (int e = 0; e < s->tree.n_up + s->tree.n_down; e++)
		steps += STEPS_EDGE + STEPS_LINK * tree_edge(&s->tree, e)->n_links;
	return steps;
}

Status
sched_verify_read(Ctx *ctx, const char *label, Schedule *sched)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct replay p = { .ctx = ctx, .label = label, .sched = sched, .n = sched->topo->n_ranks };
	Frac bound;
	int64_t steps = 0;
	limit_steps(ctx, LIMIT_VERIFY_STEPS);
	for (int t = 0; t < sched->n_segments; t++)
		steps += steps_of(&sched->segment[t]);
	steps += (int64_t)IN_TREE_STEPS * sched->n_in_trees * sched->topo->n_vertices;
	TRY(count_steps(ctx, label, steps));
	TRY(replay_trees(&p));
	/* Trees of each rank that pass sched_check tile blocks, and move nothing else. */
	if (!sched->n_in_trees)
		TRY(sched->symmetry ? sched_check_image_tiling(ctx, label, sched) : check_tiling(&p));
	TRY(check_parts(&p, sched->achieved));
	TRY(check_rates(&p, sched->achieved, &bound));
	TRY(sched_check_matrix(ctx, label, sched));
	limit_steps(ctx, 0);
	arena_release(&ctx->scratch, mark);
	sched->bound.rate = bound;
	return OK;
}

Status
sched_verify(Ctx *ctx, const char *label, Schedule *sched)
{
	TRY(sched_check(ctx, label, sched));
	TRY(sched_achieved(ctx, label, sched, &sched->achieved));
	return sched_verify_read(ctx, label, sched);
}

/* ---- tree by tree ---- */

struct Verification {
	struct replay replay;
	struct checking checking;
	struct loading loading;
	Schedule *sched;
	ArenaMark mark;
};

Status
verify_begin(Ctx *ctx, const char *label, Schedule *sched, Verification **out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	Verification *v;
	TRY(TEMP(ctx, v, 1));
	v->replay = (struct replay){ .ctx = ctx, .label = label, .sched = sched, .n = sched->topo->n_ranks };
	v->sched = sched;
	v->mark = mark;
	limit_steps(ctx, LIMIT_VERIFY_STEPS);
	TRY(check_begin(&v->checking, ctx, label, sched));
	TRY(loads_begin(&v->loading, ctx, label, sched));
	TRY(replay_begin(&v->replay));
	*out = v;
	return OK;
}

Status
verify_tree(Verification *v, int t)
{
	const Segment *segment = &v->sched->segment[t];
	TRY(count_steps(v->replay.ctx, v->replay.label, steps_of(segment)));
	TRY(check_tree(&v->checking, t));
	TRY(loads_tree(&v->loading, t));
	TRY(replay_room(&v->replay, segment->tree.n_up));
	return replay_tree(&v->replay, t);
}

Status
verify_end(Verification *v)
{
	Ctx *ctx = v->replay.ctx;
	Schedule *sched = v->sched;
	Frac bound;
	if (sched->n_segments < 1)
		return fail(ctx, BAD_INPUT, "%s: trees: none: want at least one", v->replay.label);
	TRY(check_tiling(&v->replay));
	TRY(loads_achieved(&v->loading, &sched->achieved));
	TRY(check_rates(&v->replay, sched->achieved, &bound));
	limit_steps(ctx, 0);
	arena_release(&ctx->scratch, v->mark);
	sched->bound.rate = bound;
	return OK;
}
