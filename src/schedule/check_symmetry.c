/* Is the group of a compact schedule one of automorphisms of its links, as model/symmetry.h has it? Exactly, since all
 * that the schedule means follows from it:
 *
 *   - each map takes every link to one of the same class, capacity and latency, from the image of its source to the
 *     image of its destination, and switches to switches that do the same. Each link is taken once. So the image of a
 *     tree is a tree, over links as fast.
 *   - maps commute and have their orders, on ranks (rank_orbits) and on links: so the elements are a group, and each
 *     link of an orbit is the image of another one for as many elements: the loads of all images are equal over an
 *     orbit, and are counted by the trees of representatives alone.
 *   - the root stays: so the collective is the same for all images of ranks. */
#include "base/limits.h"
#include "schedule/images.h"

#include <stdlib.h>

static Status
bad_link(Ctx *ctx, const char *label, int map, int l, int image, const char *want)
{
	return fail(ctx, BAD_INPUT, "%s: symmetry[%d].links[%d]: %d: want %s", label, map, l, image, want);
}

static Status
check_permutation(Ctx *ctx, const char *label, int map, const char *name, const int *image, int n)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	bool *taken;
	TRY(TEMP(ctx, taken, n));
	for (int i = 0; i < n; i++) {
		if (image[i] < 0 || image[i] >= n || taken[image[i]])
			return fail(ctx, BAD_INPUT, "%s: symmetry[%d].%s[%d]: %d: want each of 0 to %d once", label,
			    map, name, i, image[i], n - 1);
		taken[image[i]] = true;
	}
	arena_release(&ctx->scratch, mark);
	return OK;
}

static Status
check_links(Ctx *ctx, const char *label, const Topology *topo, const SymmetryMap *map, int m)
{
	for (int l = 0; l < topo->n_links; l++) {
		const Link *a = &topo->link[l], *b = &topo->link[map->link[l]];
		if (map->vertex[a->from] != b->from || map->vertex[a->to] != b->to)
			return bad_link(ctx, label, m, l, map->link[l], "a link between the images of its ends");
		if (a->class != b->class || a->capacity != b->capacity || a->latency != b->latency)
			return bad_link(ctx, label, m, l, map->link[l],
			    "a link of the same class, capacity and latency");
	}
	for (int v = topo->n_ranks; v < topo->n_vertices; v++) {
		const Vertex *a = &topo->vertex[v], *b = &topo->vertex[map->vertex[v]];
		if (map->vertex[v] < topo->n_ranks || a->multicast != b->multicast || a->reduce != b->reduce)
			return fail(ctx, BAD_INPUT,
			    "%s: symmetry[%d]: %s: want a switch that does the same as its image", label, m, a->id);
	}
	return OK;
}

/* Lengths of its cycles divide the order. */
static Status
check_order(Ctx *ctx, const char *label, const Topology *topo, const SymmetryMap *map, int m)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	bool *seen;
	TRY(TEMP(ctx, seen, topo->n_links));
	for (int first = 0; first < topo->n_links; first++) {
		int length = 0;
		for (int l = first; !seen[l]; l = map->link[l], length++)
			seen[l] = true;
		if (length > 0 && map->order % length != 0)
			return fail(ctx, BAD_INPUT, "%s: symmetry[%d].order: %d: want a multiple of %d, "
			    "after which link %d is back in its place", label, m, map->order, length, first);
	}
	arena_release(&ctx->scratch, mark);
	return OK;
}

static Status
check_map(Ctx *ctx, const char *label, const Schedule *sched, int m)
{
	const Topology *topo = sched->topo;
	const SymmetryMap *map = &sched->symmetry->map[m];
	TRY(check_permutation(ctx, label, m, "ranks", map->vertex, topo->n_ranks));
	TRY(check_permutation(ctx, label, m, "links", map->link, topo->n_links));
	TRY(check_links(ctx, label, topo, map, m));
	TRY(check_order(ctx, label, topo, map, m));
	if (sched->root >= 0 && map->vertex[sched->root] != sched->root)
		return fail(ctx, BAD_INPUT, "%s: symmetry[%d].ranks[%d]: %d: want the root in its place", label, m,
		    sched->root, map->vertex[sched->root]);
	for (int k = 0; k < m; k++) {
		const int *other = sched->symmetry->map[k].link;
		for (int l = 0; l < topo->n_links; l++)
			if (map->link[other[l]] != other[map->link[l]])
				return fail(ctx, BAD_INPUT, "%s: symmetry[%d].links: takes link %d elsewhere "
				    "before map %d than after it: want maps that commute", label, m, l, k);
	}
	return OK;
}

/* All images of a tree lie in its block, where the block stays. */
static Status
check_span(Ctx *ctx, const char *label, const Schedule *sched, const RankOrbits *o, int t)
{
	const Segment *s = &sched->segment[t];
	int64_t block = sched_segment_block(sched, s);
	Frac span, end, last;
	if (s->n_to || sched->n_parts)
		return fail(ctx, BAD_INPUT,
		    "%s: trees[%d]: want neither parts nor \"to\" where there is a symmetry", label, t);
	if (!block_stays(o, sched->coll, block))
		return OK;
	if (!frac_mul(s->length, (Frac){ sched->symmetry->size, 1 }, &span) || !frac_add(s->offset, span, &end)
	    || !frac_make((Wide)block + 1, collective_blocks(sched->coll, o->n), &last))
		return fail(ctx, LIMIT, "%s: trees[%d].segment: the end of its images needs more than 64 bits", label,
		    t);
	return frac_cmp(end, last) <= 0 ? OK : fail(ctx, BAD_INPUT,
	    "%s: trees[%d].segment: its %d images end beyond its block", label, t, sched->symmetry->size);
}

/* Edges of an alltoall that begin or end at a rank that stays, with their images. */
static int64_t
staying_hops(const Schedule *sched, const RankOrbits *o)
{
	int64_t n = 0;
	for (int t = 0; t < sched->n_segments && sched->coll == ALLTOALL; t++)
		for (int e = 0; e < sched->segment[t].tree.n_down + sched->segment[t].tree.n_up; e++) {
			const Edge *edge = tree_edge(&sched->segment[t].tree, e);
			n += o->orbit[edge->src] < 0 || o->orbit[edge->dst] < 0;
		}
	return n * sched->symmetry->size;
}

Status
sched_check_symmetry(Ctx *ctx, const char *label, const Schedule *sched)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	const Symmetry *sym = sched->symmetry;
	RankOrbits o;
	for (int m = 0; m < sym->n_maps; m++)
		TRY(check_map(ctx, label, sched, m));
	TRY(rank_orbits(ctx, label, sched->topo, sym, &o));
	if (o.n_orbits == 0)
		return fail(ctx, BAD_INPUT, "%s: symmetry: moves no rank: want some that it moves", label);
	int most = sched->coll == ALLTOALL ? LIMIT_PATH_IMAGES : LIMIT_IMAGES;
	if (sched_trees(sched) > most)
		return fail(ctx, LIMIT, "%s: symmetry: %lld trees: want at most %d", label,
		    (long long)sched_trees(sched), most);
	int64_t staying = staying_hops(sched, &o);
	if (staying > LIMIT_STAYING_HOPS)
		return fail(ctx, LIMIT, "%s: symmetry: %lld edges at ranks that stay, in all images: want at most %d",
		    label, (long long)staying, LIMIT_STAYING_HOPS);
	for (int t = 0; t < sched->n_segments; t++)
		TRY(check_span(ctx, label, sched, &o, t));
	arena_release(&ctx->scratch, mark);
	return OK;
}

/* ---- tiling ---- */

struct start {
	int64_t block;
	Frac offset, end;
	int tree;
};

static int
by_start(const void *a, const void *b)
{
	const struct start *s = a, *t = b;
	int order = (s->block > t->block) - (s->block < t->block);
	order = order ? order : frac_cmp(s->offset, t->offset);
	return order ? order : (s->tree > t->tree) - (s->tree < t->tree);
}

/* Where the images of each tree lie in the block that stands for the orbit of its block. */
static Status
find_starts(Ctx *ctx, const char *label, const Schedule *sched, const RankOrbits *o, struct start *start)
{
	int64_t blocks = collective_blocks(sched->coll, o->n);
	for (int t = 0; t < sched->n_segments; t++) {
		const Segment *s = &sched->segment[t];
		int64_t block = sched_segment_block(sched, s), stands = block_representative(o, sched->coll, block);
		int images = block_stays(o, sched->coll, block) ? sched->symmetry->size : 1;
		Frac by, span;
		start[t] = (struct start){ .block = stands, .tree = t };
		if (!frac_make((Wide)stands - block, blocks, &by) || !frac_add(s->offset, by, &start[t].offset)
		    || !frac_mul(s->length, (Frac){ images, 1 }, &span)
		    || !frac_add(start[t].offset, span, &start[t].end))
			return fail(ctx, LIMIT, "%s: trees[%d].segment: needs more than 64 bits", label, t);
	}
	qsort(start, (size_t)sched->n_segments, sizeof *start, by_start);
	return OK;
}

struct tiling {
	Ctx *ctx;
	const char *label;
	const Schedule *sched;
	const struct start *start;
	int next;
};

/* What needs none of the block that it has may get nothing of it. */
static Status
tile_block(struct tiling *p, int64_t block)
{
	const Schedule *sched = p->sched;
	int n = sched->topo->n_ranks, needer = collective_needer(sched->coll, n, sched->root, block);
	int holder = collective_reduces(sched->coll) ? -2 : collective_holder(sched->coll, n, sched->root, block);
	int64_t blocks = collective_blocks(sched->coll, n);
	Frac begin, at, end;
	if (!frac_make(block, blocks, &begin) || !frac_make((Wide)block + 1, blocks, &end))
		return fail(p->ctx, LIMIT, "%s: trees: too many blocks", p->label);
	at = begin;
	for (; p->next < sched->n_segments && p->start[p->next].block == block; p->next++) {
		const struct start *start = &p->start[p->next];
		if (frac_cmp(start->offset, at) != 0)
			return fail(p->ctx, UNVERIFIED,
			    "%s: trees[%d].segment: its images start at %lld/%lld of block %lld: want %lld/%lld next",
			    p->label, start->tree, (long long)start->offset.num, (long long)start->offset.den,
			    (long long)block, (long long)at.num, (long long)at.den);
		at = start->end;
	}
	bool none = needer == holder && frac_cmp(at, begin) == 0;
	return none || frac_cmp(at, end) == 0 ? OK : fail(p->ctx, UNVERIFIED,
	    "%s: trees: no image of a segment at %lld/%lld of the buffer", p->label, (long long)at.num,
	    (long long)at.den);
}

/* One block of each orbit is looked at, since an element that takes a block to another takes the trees of the one to
 * those of the other, at the same place, and who needs the one to who needs the other. */
Status
sched_check_image_tiling(Ctx *ctx, const char *label, const Schedule *sched)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	int n = sched->topo->n_ranks;
	int64_t blocks = collective_blocks(sched->coll, n), each = blocks > n ? n : 1;
	struct start *start;
	RankOrbits o;
	TRY(rank_orbits(ctx, label, sched->topo, sched->symmetry, &o));
	TRY(TEMP(ctx, start, sched->n_segments));
	TRY(find_starts(ctx, label, sched, &o, start));
	struct tiling p = { .ctx = ctx, .label = label, .sched = sched, .start = start };
	for (int64_t first = 0; first < blocks; first += each) {
		/* Blocks of a rank that is moved, and is not the first of its orbit, stand for none. */
		if (each > 1 && o.orbit[first / n] >= 0 && o.element[first / n] != 0)
			continue;
		for (int64_t block = first; block < first + each; block++)
			if (block_representative(&o, sched->coll, block) == block)
				TRY(tile_block(&p, block));
	}
	arena_release(&ctx->scratch, mark);
	return OK;
}
