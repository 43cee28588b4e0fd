/* Images of trees under a group: where they lie, and schedules with all of them. */
#include "base/limits.h"
#include "schedule/images.h"
#include "schedule/in_trees.h"

#include <stdlib.h>
#include <string.h>

/* ---- ranks ---- */

/* Elements are numbers whose digits count maps: their sum, digit by digit, without carry. */
static int
element_sum(const Symmetry *sym, int a, int b, int sign)
{
	int sum = 0;
	for (int i = 0, weight = 1; i < sym->n_maps; weight *= sym->map[i++].order) {
		int order = sym->map[i].order;
		sum += (a % order + sign * (b % order) + order) % order * weight;
		a /= order;
		b /= order;
	}
	return sum;
}

static Status
bad_orbit(Ctx *ctx, const char *label, int map, int rank)
{
	return fail(ctx, BAD_INPUT, "%s: symmetry[%d].ranks: rank %d: want maps that commute, each with its order, and "
	    "that every element but the identity moves the rank, or none", label, map, rank);
}

/* The images of a rank, element by element: those before by the next map. Each map must then take every one of them to
 * the next by that map, around: so on this orbit the maps commute, and have their orders. */
static Status
trace_orbit(Ctx *ctx, const char *label, int first, RankOrbits *o)
{
	const Symmetry *sym = o->sym;
	int *member = o->member + (size_t)o->n_orbits * (size_t)sym->size;
	member[0] = first;
	for (int i = 0, known = 1; i < sym->n_maps; known *= sym->map[i++].order)
		for (int e = known; e < known * sym->map[i].order; e++)
			member[e] = sym->map[i].vertex[member[e - known]];
	for (int e = 0; e < sym->size; e++) {
		if (o->orbit[member[e]] >= 0)
			return bad_orbit(ctx, label, sym->n_maps - 1, first);
		o->orbit[member[e]] = o->n_orbits;
		o->element[member[e]] = e;
	}
	for (int i = 0, weight = 1; i < sym->n_maps; weight *= sym->map[i++].order)
		for (int e = 0; e < sym->size; e++)
			if (sym->map[i].vertex[member[e]] != member[element_sum(sym, e, weight, 1)])
				return bad_orbit(ctx, label, i, member[e]);
	o->n_orbits++;
	return OK;
}

Status
rank_orbits(Ctx *ctx, const char *label, const Topology *topo, const Symmetry *sym, RankOrbits *out)
{
	RankOrbits o = { .sym = sym, .n = topo->n_ranks };
	TRY(TEMP(ctx, o.orbit, o.n));
	TRY(TEMP(ctx, o.element, o.n));
	/* Orbits do not meet, but the last one may be found to be too large. */
	TRY(TEMP(ctx, o.member, o.n + sym->size));
	memset(o.orbit, -1, (size_t)o.n * sizeof *o.orbit);
	for (int r = 0; r < o.n; r++)
		if (o.orbit[r] < 0 && symmetry_moves(sym, r))
			TRY(trace_orbit(ctx, label, r, &o));
	*out = o;
	return OK;
}

int
rank_image(const RankOrbits *o, int element, int rank)
{
	return o->orbit[rank] < 0 ? rank : o->member[(size_t)o->orbit[rank] * (size_t)o->sym->size
	    + (size_t)element_sum(o->sym, o->element[rank], element, 1)];
}

int
rank_origin(const RankOrbits *o, int element, int image)
{
	return o->orbit[image] < 0 ? image : o->member[(size_t)o->orbit[image] * (size_t)o->sym->size
	    + (size_t)element_sum(o->sym, o->element[image], element, -1)];
}

int
element_between(const RankOrbits *o, int rank, int image)
{
	return element_sum(o->sym, o->element[image], o->element[rank], -1);
}

/* As element_sum, without a division for each element. */
void
element_sums(const RankOrbits *o, int at, int sign, int *sum)
{
	const Symmetry *sym = o->sym;
	sum[0] = 0;
	for (int i = 0, known = 1; i < sym->n_maps; known *= sym->map[i++].order) {
		int order = sym->map[i].order, mine = at % order;
		at /= order;
		/* Downwards, since the sums of the digits before are in the first places. */
		for (int digit = order - 1; digit >= 0; digit--) {
			int by = (mine + sign * digit + order) % order * known;
			for (int e = 0; e < known; e++)
				sum[digit * known + e] = by + sum[e];
		}
	}
}

/* ---- blocks ---- */

/* Where an element takes a block of the buffer. */
static int64_t
block_image(const RankOrbits *o, Collective coll, int element, int64_t block)
{
	int64_t blocks = collective_blocks(coll, o->n);
	if (blocks == 1)
		return block;
	if (blocks == o->n)
		return rank_image(o, element, (int)block);
	int from = (int)(block / o->n), to = (int)(block % o->n);
	return (int64_t)rank_image(o, element, from) * o->n + rank_image(o, element, to);
}

bool
block_stays(const RankOrbits *o, Collective coll, int64_t block)
{
	int64_t blocks = collective_blocks(coll, o->n);
	return blocks == 1 || (o->orbit[block % o->n] < 0 && (blocks == o->n || o->orbit[block / o->n] < 0));
}

int64_t
block_representative(const RankOrbits *o, Collective coll, int64_t block)
{
	int64_t blocks = collective_blocks(coll, o->n);
	if (block_stays(o, coll, block))
		return block;
	int rank = (int)(blocks > o->n && o->orbit[block / o->n] >= 0 ? block / o->n : block % o->n);
	return block_image(o, coll, element_sum(o->sym, 0, o->element[rank], -1), block);
}

/* ---- trees ---- */

static int
by_offset(const void *a, const void *b)
{
	const Image *p = a, *q = b;
	int order = frac_cmp(p->offset, q->offset);
	if (order)
		return order;
	return p->tree != q->tree ? (p->tree > q->tree) - (p->tree < q->tree)
	    : (p->element > q->element) - (p->element < q->element);
}

static bool
image_offset(const Schedule *sched, const RankOrbits *o, const Segment *segment, int64_t block, bool stays, int element,
    Frac *out)
{
	Frac by;
	if (stays)
		return frac_mul(segment->length, (Frac){ element, 1 }, &by) && frac_add(segment->offset, by, out);
	return frac_make((Wide)block_image(o, sched->coll, element, block) - block,
	    collective_blocks(sched->coll, sched->topo->n_ranks), &by) && frac_add(segment->offset, by, out);
}

Status
sched_images(Ctx *ctx, const char *label, const Schedule *sched, const RankOrbits *o, Image **out)
{
	int size = sched->symmetry->size;
	size_t n = 0;
	Image *image;
	TRY(TEMP(ctx, image, (size_t)sched->n_segments * (size_t)size));
	for (int t = 0; t < sched->n_segments; t++) {
		const Segment *segment = &sched->segment[t];
		int64_t block = sched_segment_block(sched, segment);
		bool stays = block_stays(o, sched->coll, block);
		for (int e = 0; e < size; e++, n++) {
			image[n] = (Image){ .tree = t, .element = e };
			if (!image_offset(sched, o, segment, block, stays, e, &image[n].offset))
				return fail(ctx, LIMIT, "%s: trees[%d].segment: image %d needs more than 64 bits",
				    label, t, e);
		}
	}
	qsort(image, n, sizeof *image, by_offset);
	*out = image;
	return OK;
}

static Status
check_expanded(Ctx *ctx, const char *label, const Schedule *sched)
{
	int64_t trees = sched_trees(sched), edges = 0;
	for (int t = 0; t < sched->n_segments; t++)
		edges += sched->segment[t].tree.n_down + sched->segment[t].tree.n_up;
	edges *= sched->symmetry->size;
	return trees <= LIMIT_TREES && edges <= LIMIT_TREE_EDGES ? OK : fail(ctx, LIMIT,
	    "%s: %lld trees with %lld edges, where all are listed: want at most %d and %d", label, (long long)trees,
	    (long long)edges, LIMIT_TREES, LIMIT_TREE_EDGES);
}

static Status
expand_images(Ctx *ctx, const char *label, const Schedule *in, Schedule **out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	const Symmetry *sym = in->symmetry;
	int n, *place;
	RankOrbits o;
	Image *image;
	SymmetryWalk walk;
	Schedule *sched;
	TRY(check_expanded(ctx, label, in));
	n = (int)sched_trees(in);
	TRY(rank_orbits(ctx, label, in->topo, sym, &o));
	TRY(sched_images(ctx, label, in, &o, &image));
	TRY(NEW(ctx, sched, 1));
	*sched = *in;
	sched->symmetry = NULL;
	sched->n_segments = n;
	TRY(NEW(ctx, sched->segment, n));
	/* An element is at hand once: all images under it, wherever they lie. */
	TRY(TEMP(ctx, place, n));
	for (int i = 0; i < n; i++)
		place[(size_t)image[i].element * (size_t)in->n_segments + (size_t)image[i].tree] = i;
	TRY(symmetry_walk(ctx, in->topo, sym, &walk));
	int e = 0;
	do {
		for (int t = 0; t < in->n_segments; t++) {
			int i = place[(size_t)e * (size_t)in->n_segments + (size_t)t];
			sched->segment[i] = in->segment[t];
			sched->segment[i].offset = image[i].offset;
			TRY(tree_image(ctx, &in->segment[t].tree, walk.vertex, walk.link, &sched->segment[i].tree));
		}
		e++;
	} while (symmetry_next(&walk));
	arena_release(&ctx->scratch, mark);
	*out = sched;
	return OK;
}

Status
sched_expand(Ctx *ctx, const char *label, const Schedule *in, Schedule **out)
{
	return in->n_in_trees ? in_trees_expand(ctx, label, in, out) : expand_images(ctx, label, in, out);
}
