/* From a compact schedule to what one rank does.
 *
 * In the image of a tree under element e this rank does what its origin under e does in the tree itself, with the
 * images of the ranks there. So each tree is followed once, and what each rank does in it is kept: its edges in their
 * order, which ring of those that the tree adds to it, how many hops away it is. An image is then a look at the edges
 * of one rank.
 *
 * To find the slots of those that it receives from, the rank counts their rings in all images before. It knows them
 * after a first look at all images, and counts for one after another: an image adds what its tree adds to the origin
 * there. Of 16384 ranks in servers of 8 these are 2054 at most, an eighth. */
#include "base/array.h"
#include "schedule/projection.h"

#include <stdlib.h>
#include <string.h>

/* One end of an edge that carries something. */
struct end {
	int other, stage;
	bool source;
};

struct followed {
	int *first;			/* of each rank and one more: its first end */
	struct end *end;		/* of all ranks, in order of the edges */
	signed char *ring[N_STAGES];	/* of each rank: its ring of the stage, counted from those before; -1: none */
	int *hops;
	signed char *n_rings;		/* that the tree adds to each rank */
	signed char *of_member;		/* the same in the order of orbits.member */
	int holder, needer;
};

/* That this rank receives from another in an image. */
struct arrival {
	int image, from;
	int ring;			/* rings of that rank in the images before */
};

struct images {
	struct projection *p;
	RankOrbits orbits;
	struct followed *tree;
	int n;
	const Image *image;
	int *origin;			/* under each element: as which element's image a rank of an orbit comes */
	int n_arrivals, arrivals_room;
	struct arrival *arrival;	/* in order of images and ends */
};

/* ---- trees ---- */

static Status
new_followed(struct images *m, const Tree *tree, struct followed *out)
{
	Ctx *ctx = m->p->ctx;
	int n = m->orbits.n;
	TRY(TEMP(ctx, out->first, n + 1));
	TRY(TEMP(ctx, out->end, 2 * ((size_t)tree->n_up + (size_t)tree->n_down)));
	for (int stage = 0; stage < N_STAGES; stage++) {
		TRY(TEMP(ctx, out->ring[stage], n));
		memset(out->ring[stage], -1, (size_t)n);
	}
	TRY(TEMP(ctx, out->hops, n));
	TRY(TEMP(ctx, out->of_member, n));
	return TEMP(ctx, out->n_rings, n);
}

/* What an edge carries, and whether it does: as project_segment has it. */
static bool
carries(struct projection *p, const Edge *e)
{
	bool carried = p->reduces || (p->has[e->src] && !p->has[e->dst]);
	if (carried) {
		p->has[e->dst] = true;
		p->hops[e->dst] = p->hops[e->src] + 1;
	}
	return carried;
}

static void
publish_in(struct followed *out, int rank, int stage)
{
	if (out->ring[stage][rank] < 0)
		out->ring[stage][rank] = out->n_rings[rank]++;
}

/* Ends by rank, each rank's in the order of the edges. */
static Status
list_ends(struct images *m, const Tree *tree, const bool *carried, struct followed *out)
{
	int n = m->orbits.n, n_edges = tree->n_up + tree->n_down, *next;
	TRY(TEMP(m->p->ctx, next, n));
	for (int i = 0; i < n_edges; i++) {
		const Edge *e = tree_hop(tree, i);
		out->first[e->src + 1] += carried[i];
		out->first[e->dst + 1] += carried[i];
	}
	for (int r = 0; r < n; r++)
		out->first[r + 1] += out->first[r];
	memcpy(next, out->first, (size_t)n * sizeof *next);
	for (int i = 0; i < n_edges; i++) {
		bool up = i < tree->n_up && m->p->reduces;
		const Edge *e = tree_hop(tree, i);
		if (!carried[i])
			continue;
		out->end[next[e->src]++] = (struct end){ e->dst, up ? UP : DOWN, true };
		out->end[next[e->dst]++] = (struct end){ e->src, up ? UP : DOWN, false };
	}
	return OK;
}

/* How many segments a rank takes part in: of an orbit, all of its ranks in as many. */
static void
count_parts(struct images *m, const Tree *tree)
{
	struct projection *p = m->p;
	const RankOrbits *o = &m->orbits;
	for (int i = 0; i < 2 * (tree->n_up + tree->n_down); i++) {
		const Edge *e = tree_edge(tree, i / 2);
		int rank = i % 2 ? e->src : e->dst, orbit = o->orbit[rank];
		if (p->last[rank])
			continue;
		p->last[rank] = 1;
		int first = orbit < 0 ? rank : o->member[(size_t)orbit * (size_t)o->sym->size];
		p->segments[first] += orbit < 0 ? o->sym->size : 1;
	}
	for (int i = 0; i < tree->n_up + tree->n_down; i++)
		p->last[tree_edge(tree, i)->src] = p->last[tree_edge(tree, i)->dst] = 0;
}

static Status
follow(struct images *m, const Segment *seg, struct followed *out)
{
	struct projection *p = m->p;
	const Schedule *sched = p->sched;
	const Tree *tree = &seg->tree;
	int n = m->orbits.n, n_edges = tree->n_up + tree->n_down;
	int64_t block = sched_segment_block(sched, seg);
	bool *carried;
	TRY(new_followed(m, tree, out));
	out->holder = collective_holder(sched->coll, n, sched->root, block);
	out->needer = collective_needer(sched->coll, n, sched->root, block);
	TRY(TEMP(p->ctx, carried, n_edges));
	for (int r = 0; r < n; r++) {
		p->has[r] = out->holder == EVERY_RANK || r == out->holder;
		p->hops[r] = 0;
	}
	for (int i = 0; i < n_edges; i++) {
		const Edge *e = tree_hop(tree, i);
		carried[i] = carries(p, e);
		if (carried[i])
			publish_in(out, e->src, i < tree->n_up && p->reduces ? UP : DOWN);
	}
	memcpy(out->hops, p->hops, (size_t)n * sizeof *out->hops);
	for (int i = 0; i < m->orbits.n_orbits * m->orbits.sym->size; i++)
		out->of_member[i] = out->n_rings[m->orbits.member[i]];
	count_parts(m, tree);
	TRY(project_extremes(p, seg));
	return list_ends(m, tree, carried, out);
}

/* ---- rings of others ---- */

/* By rank, then in the order that they are in. */
static int
by_rank(const void *a, const void *b)
{
	const struct arrival *x = *(struct arrival *const *)a, *y = *(struct arrival *const *)b;
	return x->from != y->from ? (x->from > y->from) - (x->from < y->from) : (x > y) - (x < y);
}

/* n arrivals from one rank. */
static void
count_rings(struct images *m, struct arrival **arrival, int n)
{
	const RankOrbits *o = &m->orbits;
	int from = arrival[0]->from, orbit = o->orbit[from], rings = 0;
	size_t first = orbit < 0 ? 0 : (size_t)orbit * (size_t)o->sym->size;
	if (orbit >= 0)
		element_sums(o, o->element[from], -1, m->origin);
	for (int i = 0, next = 0; next < n; i++) {
		const struct followed *tree = &m->tree[m->image[i].tree];
		for (; next < n && arrival[next]->image == i; next++)
			arrival[next]->ring = rings;
		rings += orbit < 0 ? tree->n_rings[from]
		    : tree->of_member[first + (size_t)m->origin[m->image[i].element]];
	}
}

static Status
add_arrivals(struct images *m, int i)
{
	const Image *image = &m->image[i];
	const struct followed *tree = &m->tree[image->tree];
	int origin = rank_origin(&m->orbits, image->element, m->p->prog->rank);
	for (int k = tree->first[origin]; k < tree->first[origin + 1]; k++) {
		if (tree->end[k].source)
			continue;
		TRY(GROW_TEMP(m->p->ctx, m->arrival, m->n_arrivals, m->arrivals_room));
		m->arrival[m->n_arrivals++] = (struct arrival){ .image = i,
			.from = rank_image(&m->orbits, image->element, tree->end[k].other) };
	}
	return OK;
}

static Status
find_arrivals(struct images *m)
{
	struct arrival **by;
	for (int i = 0; i < m->n; i++)
		TRY(add_arrivals(m, i));
	TRY(TEMP(m->p->ctx, by, m->n_arrivals));
	for (int k = 0; k < m->n_arrivals; k++)
		by[k] = &m->arrival[k];
	qsort(by, (size_t)m->n_arrivals, sizeof *by, by_rank);
	for (int k = 0, n; k < m->n_arrivals; k += n) {
		for (n = 1; k + n < m->n_arrivals && by[k + n]->from == by[k]->from; n++)
			;
		count_rings(m, by + k, n);
	}
	return OK;
}

/* In all images each rank of an orbit comes from each of them once. */
static void
total_rings(struct images *m)
{
	const RankOrbits *o = &m->orbits;
	int size = o->sym->size;
	for (int t = 0; t < m->p->sched->n_segments; t++) {
		for (int r = 0; r < o->n; r++)
			m->p->rings[o->orbit[r] < 0 ? r : o->member[(size_t)o->orbit[r] * (size_t)size]]
			    += m->tree[t].n_rings[r] * (o->orbit[r] < 0 ? size : 1);
	}
	for (int r = 0; r < o->n; r++)
		if (o->orbit[r] >= 0)
			m->p->rings[r] = m->p->rings[o->member[(size_t)o->orbit[r] * (size_t)size]];
}

/* ---- images ---- */

/* rings: of this rank in the images before. */
static void
take_ends(struct images *m, const Image *image, int origin, int rings, const struct arrival **arrival)
{
	struct projection *p = m->p;
	const struct followed *tree = &m->tree[image->tree];
	for (int i = tree->first[origin]; i < tree->first[origin + 1]; i++) {
		const struct end *end = &tree->end[i];
		struct stage *mine = &p->stage[end->stage];
		if (end->source) {
			int to = rank_image(&m->orbits, image->element, end->other);
			mine->ring = rings + tree->ring[end->stage][origin];
			mine->to[mine->n_to++] = (RankLane){ to, p->lanes_out[to]++, mine->ring };
		} else {
			const struct arrival *a = (*arrival)++;
			mine->from[mine->n_from++] = (RankLane){ a->from, p->lanes_in[a->from]++,
			    a->ring + tree->ring[end->stage][end->other] };
		}
	}
}

static Status
project_image(struct images *m, int s, int *rings, const struct arrival **arrival)
{
	struct projection *p = m->p;
	const Image *image = &m->image[s];
	const struct followed *tree = &m->tree[image->tree];
	const RankOrbits *o = &m->orbits;
	int me = p->prog->rank, origin = rank_origin(o, image->element, me);
	Segment seg = p->sched->segment[image->tree];
	seg.offset = image->offset;
	project_clear(p);
	take_ends(m, image, origin, *rings, arrival);
	*rings += tree->n_rings[origin];
	p->hops[me] = tree->hops[origin];
	return project_tasks(p, s, &seg, tree->holder < 0 ? tree->holder : rank_image(o, image->element, tree->holder),
	    tree->needer < 0 ? tree->needer : rank_image(o, image->element, tree->needer));
}

Status
project_images(struct projection *p)
{
	const Schedule *sched = p->sched;
	const char *label = sched->topo->name;
	struct images m = { .p = p, .n = (int)sched_trees(sched) };
	Image *image;
	int rings = 0;
	TRY(rank_orbits(p->ctx, label, sched->topo, sched->symmetry, &m.orbits));
	if (sched->coll == ALLTOALL)
		return project_paths(p, &m.orbits);
	TRY(sched_images(p->ctx, label, sched, &m.orbits, &image));
	m.image = image;
	TRY(TEMP(p->ctx, m.tree, sched->n_segments));
	TRY(TEMP(p->ctx, m.origin, sched->symmetry->size));
	for (int t = 0; t < sched->n_segments; t++)
		TRY(follow(&m, &sched->segment[t], &m.tree[t]));
	TRY(find_arrivals(&m));
	const struct arrival *arrival = m.arrival;
	for (int s = 0; s < m.n; s++)
		TRY(project_image(&m, s, &rings, &arrival));
	total_rings(&m);
	return OK;
}
