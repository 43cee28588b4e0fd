/* Replay of a schedule. The state of a rank is the multiset of ranks whose contributions its value holds, as a count
 * per contributor. A tree moves only its own segment and starts from the input, so trees are replayed one by one; then
 * for each rank the segments that serve it must tile what it needs. */
#include "passes.h"

#include <stdlib.h>
#include <string.h>

struct replay {
	Ctx *ctx;
	const char *label;
	const Schedule *sched;
	int n;
	int *count;		/* n * n: count[rank * n + contributor] */
};

static int64_t
block_of(const Schedule *sched, const Segment *segment)
{
	return frac_floor_mul(segment->offset, collective_blocks(sched->coll, sched->topo->n_ranks));
}

static bool
rank_in(const Segment *segment, int rank)
{
	int lo = 0, hi = segment->n_to;
	while (lo < hi) {
		int mid = (lo + hi) / 2;
		if (segment->to[mid] < rank)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < segment->n_to && segment->to[lo] == rank;
}

bool
segment_serves(const Schedule *sched, const Segment *segment, int rank)
{
	int needer = collective_needer(sched->coll, sched->topo->n_ranks, sched->root, block_of(sched, segment));
	return (needer == EVERY_RANK || needer == rank) && (segment->n_to == 0 || rank_in(segment, rank));
}

static void
move(struct replay *p, const Edge *edge, bool add)
{
	int *src = p->count + (size_t)edge->src * (size_t)p->n, *dst = p->count + (size_t)edge->dst * (size_t)p->n;
	for (int c = 0; c < p->n; c++)
		dst[c] = add ? dst[c] + src[c] : src[c];
}

/* Where a rank that was to be served ends with anything but each wanted contribution once. */
static Status
check_result(struct replay *p, int t, int rank, int holder)
{
	const int *count = p->count + (size_t)rank * (size_t)p->n;
	for (int c = 0; c < p->n; c++) {
		int want = holder == EVERY_RANK || holder == c;
		if (count[c] != want)
			return fail(p->ctx, UNVERIFIED, "%s: trees[%d]: rank %d ends with %d times the data of rank %d: want %d",
			    p->label, t, rank, count[c], c, want);
	}
	return OK;
}

static Status
replay_tree(struct replay *p, int t)
{
	const Schedule *sched = p->sched;
	const Segment *segment = &sched->segment[t];
	const Tree *tree = &segment->tree;
	int64_t block = block_of(sched, segment);
	int holder = collective_holder(sched->coll, p->n, sched->root, block);
	int needer = collective_needer(sched->coll, p->n, sched->root, block);
	memset(p->count, 0, (size_t)p->n * (size_t)p->n * sizeof *p->count);
	for (int r = 0; r < p->n; r++)
		p->count[(size_t)r * (size_t)p->n + (size_t)r] = holder == EVERY_RANK || holder == r;
	for (int e = 0; e < tree->n_up; e++)
		move(p, &tree->up[e], collective_reduces(sched->coll));
	for (int e = 0; e < tree->n_down; e++)
		move(p, &tree->down[e], false);
	for (int i = 0; i < segment->n_to; i++)
		if (needer != EVERY_RANK && needer != segment->to[i])
			return fail(p->ctx, UNVERIFIED, "%s: trees[%d].to[%d]: rank %d needs none of this segment", p->label, t, i,
			    segment->to[i]);
	for (int r = 0; r < p->n; r++)
		if (segment_serves(sched, segment, r))
			TRY(check_result(p, t, r, holder));
	return OK;
}

/* ---- tiling ---- */

struct start {
	Frac offset;
	int tree;
};

static int
by_offset(const void *a, const void *b)
{
	const struct start *s = a, *t = b;
	int order = frac_cmp(s->offset, t->offset);
	return order ? order : (s->tree > t->tree) - (s->tree < t->tree);
}

/* The trees that serve `rank`, from *next on in order of offset, must tile block b; *next moves behind them. */
static Status
tile_block(struct replay *p, const struct start *start, int rank, int64_t b, int *next)
{
	const Schedule *sched = p->sched;
	int64_t blocks = collective_blocks(sched->coll, p->n);
	bool own = !collective_reduces(sched->coll) && collective_holder(sched->coll, p->n, sched->root, b) == rank;
	Frac at, end;
	bool any = false;
	if (!frac_make(b, blocks, &at) || !frac_make(b + 1, blocks, &end))
		return fail(p->ctx, LIMIT, "%s: trees: too many blocks", p->label);
	for (; *next < sched->n_segments; ++*next) {
		int t = start[*next].tree;
		const Segment *segment = &sched->segment[t];
		if (frac_cmp(segment->offset, end) >= 0)
			break;
		if (!segment_serves(sched, segment, rank))
			continue;
		if (frac_cmp(segment->offset, at) != 0)
			return fail(p->ctx, UNVERIFIED, "%s: trees[%d].segment: starts at %lld/%lld: rank %d wants %lld/%lld next",
			    p->label, t, (long long)segment->offset.num, (long long)segment->offset.den, rank,
			    (long long)at.num, (long long)at.den);
		if (!frac_add(at, segment->length, &at))
			return fail(p->ctx, LIMIT, "%s: trees[%d].segment: needs more than 64 bits", p->label, t);
		any = true;
	}
	if (frac_cmp(at, end) != 0 && (any || !own))
		return fail(p->ctx, UNVERIFIED, "%s: trees: no segment at %lld/%lld of the buffer serves rank %d", p->label,
		    (long long)at.num, (long long)at.den, rank);
	return OK;
}

static Status
check_tiling(struct replay *p)
{
	const Schedule *sched = p->sched;
	int64_t blocks = collective_blocks(sched->coll, p->n);
	struct start *start;
	TRY(TEMP(p->ctx, start, sched->n_segments));
	for (int t = 0; t < sched->n_segments; t++)
		start[t] = (struct start){ sched->segment[t].offset, t };
	qsort(start, (size_t)sched->n_segments, sizeof *start, by_offset);
	for (int r = 0; r < p->n; r++) {
		int next = 0;
		for (int64_t b = 0; b < blocks; b++) {
			int needer = collective_needer(sched->coll, p->n, sched->root, b);
			if (needer == EVERY_RANK || needer == r)
				TRY(tile_block(p, start, r, b, &next));
		}
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
check_rates(struct replay *p)
{
	const Schedule *sched = p->sched;
	Frac achieved, bound;
	TRY(sched_achieved(p->ctx, p->label, sched, &achieved));
	TRY(bound_from_certificate(p->ctx, p->label, sched->topo, sched->coll, sched->root, &sched->bound, &bound));
	if (!states(sched->stated_achieved, achieved))
		return fail(p->ctx, UNVERIFIED, "%s: rate.achieved: %.15g: the trees achieve %.15g GB/s", p->label,
		    sched->stated_achieved, frac_double(achieved) / 1e9);
	if (!states(sched->stated_bound, bound))
		return fail(p->ctx, UNVERIFIED, "%s: rate.bound: %.15g: the certificate proves %.15g GB/s", p->label,
		    sched->stated_bound, frac_double(bound) / 1e9);
	if (frac_cmp(achieved, bound) > 0)
		return fail(p->ctx, UNVERIFIED, "%s: rate.achieved: %.15g GB/s is above the bound of %.15g GB/s", p->label,
		    frac_double(achieved) / 1e9, frac_double(bound) / 1e9);
	return OK;
}

Status
sched_verify(Ctx *ctx, const char *label, const Schedule *sched)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct replay p = { .ctx = ctx, .label = label, .sched = sched, .n = sched->topo->n_ranks };
	TRY(sched_check(ctx, label, sched));
	TRY(TEMP(ctx, p.count, (size_t)p.n * (size_t)p.n));
	for (int t = 0; t < sched->n_segments; t++)
		TRY(replay_tree(&p, t));
	TRY(check_tiling(&p));
	TRY(check_rates(&p));
	arena_release(&ctx->scratch, mark);
	return OK;
}
