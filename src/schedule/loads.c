/* The load of each link and the rate that follows from it; the depth of a schedule. */
#include "schedule/by_tree.h"
#include "schedule/in_trees.h"

#include <stdlib.h>
#include <string.h>

/* num / den, not in lowest terms: den is a multiple of each denominator so far. num <= den * 2^44, since it is a sum
 * of at most LIMIT_TREE_EDGES * LIMIT_ROUTE_LINKS lengths of at most LIMIT_RANKS each. With a symmetry it is that of
 * the trees of representatives over all links of an orbit; times the images, at most LIMIT_RANKS, it fits a Wide. */
struct load {
	Wide num;
	int64_t den;
};

static Status
add_load(Ctx *ctx, const char *label, int link, Frac length, struct load *load)
{
	/* Lengths of one file have few denominators: usually only the numerator changes. */
	if (load->den == length.den) {
		load->num += length.num;
		return OK;
	}
	if (load->den % length.den != 0) {
		Wide den = (Wide)(load->den / gcd64(load->den, length.den)) * length.den;
		Frac sum;
		if (den > INT64_MAX) {
			/* In lowest terms the sum may still fit. */
			if (!frac_make(load->num, load->den, &sum) || !frac_add(sum, length, &sum))
				return fail(ctx, LIMIT, "%s: trees: the load of link %d needs more than 64 bits", label,
				    link);
			*load = (struct load){ sum.num, sum.den };
			return OK;
		}
		load->num *= (int64_t)den / load->den;
		load->den = (int64_t)den;
	}
	load->num += (Wide)length.num * (load->den / length.den);
	return OK;
}

/* sym: links of one orbit are counted together; NULL: each link alone. */
static Status
add_loads(Ctx *ctx, const char *label, const Symmetry *sym, const Edge *edge, int n, Frac length, struct load *load)
{
	for (int e = 0; e < n; e++)
		for (int i = 0; i < edge[e].n_links; i++) {
			int l = edge[e].link[i];
			TRY(add_load(ctx, label, l, length, &load[sym ? sym->link_orbit[l] : l]));
		}
	return OK;
}

/* Trees at the beginning that have one length are counted: of many trees all have it. */
static void
count_links(int32_t *count, const Symmetry *sym, const Edge *edge, int n)
{
	for (int e = 0; e < n; e++)
		for (int i = 0; i < edge[e].n_links; i++)
			count[sym ? sym->link_orbit[edge[e].link[i]] : edge[e].link[i]]++;
}

/* As if each had been added. */
static void
end_counts(struct loading *l)
{
	for (int i = 0; i < l->sched->topo->n_links && l->counts; i++)
		if (l->count[i] > 0)
			l->load[i] = (struct load){ (Wide)l->count[i] * l->counted.num, l->counted.den };
	l->counts = false;
}

/* Of one link, in lowest terms. The images of a link go around its orbit, each link of which is the image for
 * size / orbit_size elements. */
static bool
load_of(const Symmetry *sym, const struct load *load, int l, Frac *out)
{
	if (!sym)
		return frac_make(load[l].num, load[l].den, out);
	int orbit = sym->link_orbit[l];
	return frac_make(load[orbit].num * (sym->size / sym->orbit_size[orbit]), load[orbit].den, out);
}

Status
loads_begin(struct loading *l, Ctx *ctx, const char *label, const Schedule *sched)
{
	*l = (struct loading){ .ctx = ctx, .label = label, .sched = sched, .counted = FRAC_ZERO, .counts = true };
	TRY(TEMP(ctx, l->load, sched->topo->n_links));
	TRY(TEMP(ctx, l->count, sched->topo->n_links));
	for (int i = 0; i < sched->topo->n_links; i++)
		l->load[i].den = 1;
	return OK;
}

Status
loads_tree(struct loading *l, int t)
{
	const Schedule *sched = l->sched;
	const Segment *s = &sched->segment[t];
	Frac length = s->length;
	int64_t n = sched->topo->n_ranks, bytes = l->bytes ? l->bytes[sched_segment_block(sched, s)] : 0;
	/* Of alltoall's n * n blocks one rank sends n: M counts those. */
	if (sched->coll == ALLTOALL && !frac_mul(length, (Frac){ l->bytes ? (Wide)n * n * bytes : n, 1 }, &length))
		return fail(l->ctx, LIMIT, "%s: trees[%d].segment: needs more than 64 bits", l->label, t);
	if (length.num == 0)
		return OK;
	if (l->counts && (l->counted.num == 0 || frac_cmp(l->counted, length) == 0)) {
		l->counted = length;
		count_links(l->count, sched->symmetry, s->tree.down, s->tree.n_down);
		count_links(l->count, sched->symmetry, s->tree.up, s->tree.n_up);
		return OK;
	}
	end_counts(l);
	TRY(add_loads(l->ctx, l->label, sched->symmetry, s->tree.down, s->tree.n_down, length, l->load));
	return add_loads(l->ctx, l->label, sched->symmetry, s->tree.up, s->tree.n_up, length, l->load);
}

/* Of trees into each rank: a link carries its vertex's part of the blocks of all ranks behind it. */
static Status
load_in_trees(struct loading *l)
{
	ArenaMark mark = arena_mark(&l->ctx->scratch);
	const Schedule *sched = l->sched;
	InTreeWalk w;
	int *size;
	TRY(in_tree_walk(l->ctx, sched, &w));
	TRY(TEMP(l->ctx, size, sched->topo->n_vertices));
	while (in_tree_next(&w)) {
		Frac part;
		if (!frac_mul(sched->in_tree[w.t].length, (Frac){ 1, sched->topo->n_ranks }, &part))
			return fail(l->ctx, LIMIT, "%s: trees[%d].segment: needs more than 64 bits", l->label, w.t);
		in_tree_sizes(&w, size);
		for (int i = 1; i < w.n; i++) {
			int v = w.order[i], link = w.next[v];
			if (size[v] > 0)
				TRY(add_load(l->ctx, l->label, link, (Frac){ part.num * size[v], part.den },
				    &l->load[link]));
		}
	}
	arena_release(&l->ctx->scratch, mark);
	return OK;
}

/* Of trees of edges: how often each edge is used, in a unit of which the lengths of all trees are multiples. */
static Status
load_edges(struct loading *l)
{
	ArenaMark mark = arena_mark(&l->ctx->scratch);
	const Schedule *sched = l->sched;
	int64_t n = sched->topo->n_ranks, unit = 1, *uses;
	InTreeWalk w;
	TRY(in_tree_walk(l->ctx, sched, &w));
	TRY(TEMP(l->ctx, uses, sched->n_edges));
	for (int t = 0; t < sched->n_in_trees; t++) {
		int64_t den = sched->in_tree[t].length.den;
		if ((Wide)(unit / gcd64(unit, den)) * den > INT64_MAX / n)
			return fail(l->ctx, LIMIT, "%s: trees[%d].segment: needs more than 64 bits", l->label, t);
		unit = unit / gcd64(unit, den) * den;
	}
	/* The trees of a root add up to one unit for each edge at most: n units of n roots fit 63 bits. */
	for (int t = 0; t < sched->n_in_trees; t++) {
		const InTree *tree = &sched->in_tree[t];
		int64_t times = (int64_t)tree->length.num * (unit / tree->length.den);
		in_tree_take(&w, t);
		for (int r = 0; r < n; r++)
			if (r != tree->root)
				uses[w.next[r]] += times;
	}
	for (int e = 0; e < sched->n_edges; e++)
		for (int i = 0; i < sched->edge[e].n_links && uses[e] > 0; i++) {
			int link = sched->edge[e].link[i];
			TRY(add_load(l->ctx, l->label, link, (Frac){ uses[e], unit * n }, &l->load[link]));
		}
	arena_release(&l->ctx->scratch, mark);
	return OK;
}

/* In lowest terms. */
Status
loads_end(struct loading *l, Frac *out)
{
	end_counts(l);
	for (int i = 0; i < l->sched->topo->n_links; i++)
		if (!load_of(l->sched->symmetry, l->load, i, &out[i]))
			return fail(l->ctx, LIMIT, "%s: trees: the load of link %d needs more than 64 bits", l->label,
			    i);
	return OK;
}

/* Of the trees of one part, or, -1, of all. */
static Status
add_trees(struct loading *l, int part)
{
	for (int t = 0; t < l->sched->n_segments; t++)
		if (part < 0 || l->sched->segment[t].part == part)
			TRY(loads_tree(l, t));
	return l->sched->n_edges ? load_edges(l) : l->sched->n_in_trees ? load_in_trees(l) : OK;
}

Status
sched_loads(Ctx *ctx, const char *label, const Schedule *sched, Frac *load)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct loading l;
	TRY(loads_begin(&l, ctx, label, sched));
	TRY(add_trees(&l, -1));
	TRY(loads_end(&l, load));
	arena_release(&ctx->scratch, mark);
	return OK;
}

Status
loads_achieved(struct loading *l, Frac *out)
{
	const Topology *topo = l->sched->topo;
	Frac *load, achieved;
	TRY(TEMP(l->ctx, load, topo->n_links));
	TRY(loads_end(l, load));
	/* The rate over link i is capacity / load: its numerator may need 126 bits, the least of them only what it
	 * needs in lowest terms. */
	Wide num = 0, den = 1;
	for (int i = 0; i < topo->n_links; i++) {
		Wide over = (Wide)topo->link[i].capacity * load[i].den;
		if (load[i].num > 0 && (num == 0 || ratio_cmp(over, load[i].num, num, den) < 0)) {
			num = over;
			den = load[i].num;
		}
	}
	if (!frac_make(num, den, &achieved))
		return fail(l->ctx, LIMIT, "%s: trees: the rate that they achieve needs more than %d bits", l->label,
		    (int)FRAC_BITS);
	*out = achieved;
	return OK;
}

/* By the trees of one part, or, -1, by all. */
static Status
achieved_by(Ctx *ctx, const char *label, const Schedule *sched, int part, Frac *out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct loading l;
	TRY(loads_begin(&l, ctx, label, sched));
	TRY(add_trees(&l, part));
	TRY(loads_achieved(&l, out));
	arena_release(&ctx->scratch, mark);
	return OK;
}

Status
sched_achieved(Ctx *ctx, const char *label, const Schedule *sched, Frac *out)
{
	return achieved_by(ctx, label, sched, -1, out);
}

/* The trees of a part carry its share of the buffer; of a whole one their loads would be larger by that. */
Status
sched_parts(Ctx *ctx, const char *label, const Schedule *sched, Part *part)
{
	Frac achieved, share;
	sched_part_spans(sched, part);
	for (int i = 0; i < sched->n_parts; i++) {
		TRY(achieved_by(ctx, label, sched, i, &achieved));
		if (achieved.num == 0)
			return fail(ctx, BAD_INPUT, "%s: parts[%d]: its trees have no edge: want some that move data",
			    label, i);
		if (!frac_sub(part[i].end, part[i].begin, &share) || !frac_mul(achieved, share, &part[i].rate))
			return fail(ctx, LIMIT, "%s: parts[%d]: its rate needs more than 64 bits", label, i);
	}
	return OK;
}

Status
sched_depth(Ctx *ctx, const Schedule *sched, int *out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	int *work, deepest = 0;
	if (sched->n_in_trees)
		return in_trees_depth(ctx, sched, out);
	TRY(TEMP(ctx, work, sched->topo->n_ranks));
	for (int t = 0; t < sched->n_segments; t++) {
		int depth = tree_depth(&sched->segment[t].tree, work);
		deepest = depth > deepest ? depth : deepest;
	}
	arena_release(&ctx->scratch, mark);
	*out = deepest;
	return OK;
}
