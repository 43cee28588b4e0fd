/* From a compact alltoall to what one rank does: without a look at images that the rank takes no part in, of which
 * there are thousands for each that it does.
 *
 * A rank that the group moves is the image of each rank of its orbit under one element. So each hop of a representative
 * that begins or ends in the orbit is one hop of this rank, in the image under that element. A rank that stays has a
 * hop of its own in the images under all elements. The place of an image among all follows from the block and from the
 * trees of a block: a key, by which the rank's images are sorted. Of a block that stays the images of a tree follow
 * each other by their elements.
 *
 * Rings of a rank that this one receives from, and the numbers of segments, count keys below one: of the images in
 * which that rank publishes, of those in the same row of blocks. These are points that an orbit has once; an element
 * takes those of the first rank of the orbit to those of another. A rank that stays has all of them, as an orbit of its
 * own.
 *
 * Of 2048 ranks with a path for each pair 4094 images are sorted, not 4192256. */
#include "base/array.h"
#include "schedule/projection.h"

#include <stdlib.h>
#include <string.h>

/* An edge of a representative that carries something. */
struct hop {
	int tree, src, dst;
	int hops;		/* to dst */
	bool first;		/* of those of its tree that begin at src, which publishes for all of them */
};

/* What a rank takes part in, as if it were the first of its orbit: the block, and the place of the tree in it. */
struct point {
	int from, to, place;
	int element;		/* of the image, in a block that stays; -1: it has one place */
};

/* By orbits of ranks: first[orbit] to first[orbit + 1] - 1. */
struct points {
	int *first;
	struct point *point;
};

/* How many keys of a rank are lower? */
struct question {
	int rank;
	int64_t key;
	int *answer;
};

/* A hop of this rank. */
struct part {
	int64_t key;		/* of the image */
	int hop, element;
	bool sends;
	int other;		/* the rank at the other end */
	int ring, segment;	/* of what is received: the sender's ring; the number of the image */
};

struct paths {
	struct projection *p;
	RankOrbits orbits;
	int n;
	int *class;		/* of each rank: its orbit; one of its own, where it stays */
	int n_classes;
	int64_t stride;		/* keys of a block */
	int n_hops, hops_room;
	struct hop *hop;	/* by trees, each in the order of its edges */
	int *place;		/* of each tree: in its block */
	int64_t *block;		/* of each tree */
	bool *stays;		/* of each tree: its block does */
	int n_parts, parts_room;
	struct part *part;
	struct points sources, publishers;
	int64_t *row;		/* of each rank: images of blocks before those that it sends */
	int *sum, *image;	/* of each element, and each rank, under the current element */
	int *count;
};

/* ---- trees ---- */

struct placed {
	int64_t block;		/* that stands for its orbit */
	Frac begin;		/* in the block */
	int tree;
};

static int
by_place(const void *a, const void *b)
{
	const struct placed *x = a, *y = b;
	if (x->block != y->block)
		return x->block < y->block ? -1 : 1;
	int order = frac_cmp(x->begin, y->begin);
	return order ? order : x->tree - y->tree;
}

static Status
place_trees(struct paths *m)
{
	const Schedule *sched = m->p->sched;
	struct placed *placed;
	Frac end;
	TRY(TEMP(m->p->ctx, placed, sched->n_segments));
	TRY(TEMP(m->p->ctx, m->place, sched->n_segments));
	TRY(TEMP(m->p->ctx, m->block, sched->n_segments));
	TRY(TEMP(m->p->ctx, m->stays, sched->n_segments));
	for (int t = 0; t < sched->n_segments; t++) {
		m->block[t] = sched_segment_block(sched, &sched->segment[t]);
		m->stays[t] = block_stays(&m->orbits, sched->coll, m->block[t]);
		placed[t] = (struct placed){ .tree = t,
		    .block = block_representative(&m->orbits, sched->coll, m->block[t]) };
		sched_block_extent(sched, &sched->segment[t], &placed[t].begin, &end);
	}
	qsort(placed, (size_t)sched->n_segments, sizeof *placed, by_place);
	m->stride = 1;
	for (int i = 0, next = 0; i < sched->n_segments; i++) {
		int t = placed[i].tree;
		next = i > 0 && placed[i].block == placed[i - 1].block ? next : 0;
		m->place[t] = next;
		next += m->stays[t] ? sched->symmetry->size : 1;
		m->stride = next > m->stride ? next : m->stride;
	}
	return OK;
}

/* In how many images of a tree the rank does what it does in the tree. */
static int
images_of(const struct paths *m, int rank)
{
	return m->orbits.orbit[rank] < 0 ? m->orbits.sym->size : 1;
}

/* Hops that carry something, as project_segment has them. */
static Status
follow(struct paths *m, int t)
{
	struct projection *p = m->p;
	const Segment *seg = &p->sched->segment[t];
	const Tree *tree = &seg->tree;
	int holder = collective_holder(p->sched->coll, m->n, p->sched->root, m->block[t]);
	for (int i = 0; i < tree->n_up + tree->n_down; i++) {
		const Edge *e = tree_edge(tree, i);
		p->has[e->src] = p->has[e->dst] = false;
		p->hops[e->src] = p->hops[e->dst] = 0;
		p->ring[DOWN][e->src] = -1;
	}
	p->has[holder] = true;
	p->hops[holder] = 0;
	for (int i = 0; i < tree->n_up + tree->n_down; i++) {
		const Edge *e = tree_hop(tree, i);
		p->segments[e->src] += p->last[e->src] != t + 1 ? images_of(m, e->src) : 0;
		p->last[e->src] = t + 1;
		p->segments[e->dst] += p->last[e->dst] != t + 1 ? images_of(m, e->dst) : 0;
		p->last[e->dst] = t + 1;
		if (!p->has[e->src] || p->has[e->dst])
			continue;
		p->has[e->dst] = true;
		p->hops[e->dst] = p->hops[e->src] + 1;
		TRY(GROW_TEMP(p->ctx, m->hop, m->n_hops, m->hops_room));
		m->hop[m->n_hops++] = (struct hop){ t, e->src, e->dst, p->hops[e->dst], p->ring[DOWN][e->src] < 0 };
		p->ring[DOWN][e->src] = 0;
	}
	p->has[holder] = false;
	return project_extremes(p, seg);
}

/* All ranks of an orbit take part in as many images, and publish as often. */
static Status
total_orbits(struct paths *m)
{
	struct projection *p = m->p;
	int *segments, *rings;
	TRY(TEMP(p->ctx, segments, m->n_classes));
	TRY(TEMP(p->ctx, rings, m->n_classes));
	for (int r = 0; r < m->n; r++)
		segments[m->class[r]] += p->segments[r];
	for (int h = 0; h < m->n_hops; h++)
		rings[m->class[m->hop[h].src]] += m->hop[h].first ? images_of(m, m->hop[h].src) : 0;
	for (int r = 0; r < m->n; r++) {
		p->segments[r] = segments[m->class[r]];
		p->rings[r] = rings[m->class[r]];
	}
	return OK;
}

static Status
number_classes(struct paths *m)
{
	TRY(TEMP(m->p->ctx, m->class, m->n));
	m->n_classes = m->orbits.n_orbits;
	for (int r = 0; r < m->n; r++)
		m->class[r] = m->orbits.orbit[r] >= 0 ? m->orbits.orbit[r] : m->n_classes++;
	return OK;
}

/* ---- keys ---- */

static int64_t
key_of(const struct paths *m, int64_t from, int to, int place)
{
	return (from * m->n + to) * m->stride + place;
}

/* The element that takes the first rank of an orbit to rank r takes each element's rank to that of the sum. */
static void
take_element(struct paths *m, int rank)
{
	const RankOrbits *o = &m->orbits;
	element_sums(o, o->orbit[rank] < 0 ? 0 : o->element[rank], 1, m->sum);
	for (int r = 0; r < m->n; r++)
		m->image[r] = o->orbit[r] < 0 ? r
		    : o->member[(size_t)o->orbit[r] * (size_t)o->sym->size + (size_t)m->sum[o->element[r]]];
}

/* Of tree t, under an element. */
static struct point
point_of(const struct paths *m, int t, int element)
{
	const RankOrbits *o = &m->orbits;
	return (struct point){ .from = rank_image(o, element, (int)(m->block[t] / m->n)),
	    .to = rank_image(o, element, (int)(m->block[t] % m->n)), .place = m->place[t],
	    .element = m->stays[t] ? element : -1 };
}

/* rank: that takes part in tree t. */
static void
add_points(struct paths *m, struct points *points, int *next, int t, int rank)
{
	const RankOrbits *o = &m->orbits;
	struct point *point = points->point + next[m->class[rank]];
	int n = images_of(m, rank);
	next[m->class[rank]] += n;
	for (int e = 0; e < n && n > 1; e++)
		point[e] = point_of(m, t, e);
	if (n == 1)
		*point = point_of(m, t, element_between(o, rank,
		    o->member[(size_t)o->orbit[rank] * (size_t)o->sym->size]));
}

/* Of hops that publish, or, sources, of all trees at the ranks that hold their blocks. */
static Status
list_points(struct paths *m, bool sources, struct points *out)
{
	Ctx *ctx = m->p->ctx;
	int n = sources ? m->p->sched->n_segments : m->n_hops, *next;
	TRY(TEMP(ctx, out->first, m->n_classes + 1));
	TRY(TEMP(ctx, next, m->n_classes));
	for (int i = 0; i < n; i++) {
		int rank = sources ? (int)(m->block[i] / m->n) : m->hop[i].src;
		if (sources || m->hop[i].first)
			out->first[m->class[rank] + 1] += images_of(m, rank);
	}
	for (int i = 0; i < m->n_classes; i++) {
		next[i] = out->first[i];
		out->first[i + 1] += out->first[i];
	}
	TRY(TEMP(ctx, out->point, out->first[m->n_classes]));
	for (int i = 0; i < n; i++)
		if (sources || m->hop[i].first)
			add_points(m, out, next, sources ? i : m->hop[i].tree,
			    sources ? (int)(m->block[i] / m->n) : m->hop[i].src);
	return OK;
}

static int
by_rank_and_key(const void *a, const void *b)
{
	const struct question *x = a, *y = b;
	if (x->rank != y->rank)
		return x->rank - y->rank;
	return (x->key > y->key) - (x->key < y->key);
}

/* n questions of one rank, ascending. count: work space of n + 1. */
static void
answer(struct paths *m, const struct points *points, const struct question *question, int n)
{
	int class = m->class[question->rank];
	take_element(m, question->rank);
	memset(m->count, 0, (size_t)(n + 1) * sizeof *m->count);
	for (int i = points->first[class]; i < points->first[class + 1]; i++) {
		const struct point *point = &points->point[i];
		int64_t key = key_of(m, m->image[point->from], m->image[point->to],
		    point->place + (point->element < 0 ? 0 : m->sum[point->element]));
		/* The first question above it. */
		int low = 0;
		for (int high = n; low < high;) {
			int middle = low + (high - low) / 2;
			if (question[middle].key > key)
				high = middle;
			else
				low = middle + 1;
		}
		m->count[low]++;
	}
	for (int i = 0, before = 0; i < n; i++) {
		before += m->count[i];
		*question[i].answer = before;
	}
}

static void
answer_all(struct paths *m, const struct points *points, struct question *question, int n)
{
	qsort(question, (size_t)n, sizeof *question, by_rank_and_key);
	for (int i = 0, same; i < n; i += same) {
		for (same = 1; i + same < n && question[i + same].rank == question[i].rank; same++)
			;
		answer(m, points, question + i, same);
	}
}

/* ---- this rank ---- */

static int
by_key(const void *a, const void *b)
{
	const struct part *x = a, *y = b;
	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return x->hop - y->hop;
}

static Status
add_part(struct paths *m, int h, bool sends, int element)
{
	const struct hop *hop = &m->hop[h];
	struct point at = point_of(m, hop->tree, element);
	TRY(GROW_TEMP(m->p->ctx, m->part, m->n_parts, m->parts_room));
	m->part[m->n_parts++] = (struct part){
	    .key = key_of(m, at.from, at.to, at.place + (at.element < 0 ? 0 : element)), .hop = h, .element = element,
	    .sends = sends, .other = rank_image(&m->orbits, element, sends ? hop->dst : hop->src) };
	return OK;
}

/* Of this rank in the images of a hop. */
static Status
add_parts(struct paths *m, int h, bool sends)
{
	int me = m->p->prog->rank, mine = sends ? m->hop[h].src : m->hop[h].dst;
	if (m->class[mine] != m->class[me])
		return OK;
	if (m->orbits.orbit[me] >= 0)
		return add_part(m, h, sends, element_between(&m->orbits, mine, me));
	for (int e = 0; e < m->orbits.sym->size; e++)
		TRY(add_part(m, h, sends, e));
	return OK;
}

static Status
list_parts(struct paths *m)
{
	struct question *question;
	int n = 0;
	for (int h = 0; h < m->n_hops; h++) {
		TRY(add_parts(m, h, false));
		TRY(add_parts(m, h, true));
	}
	qsort(m->part, (size_t)m->n_parts, sizeof *m->part, by_key);
	TRY(TEMP(m->p->ctx, question, m->n_parts));
	TRY(TEMP(m->p->ctx, m->count, (size_t)m->n_parts + 1));
	for (int i = 0; i < m->n_parts; i++) {
		int from = (int)(m->part[i].key / m->stride / m->n);
		question[i] = (struct question){ from, m->part[i].key, &m->part[i].segment };
	}
	answer_all(m, &m->sources, question, m->n_parts);
	for (int i = 0; i < m->n_parts; i++)
		if (!m->part[i].sends)
			question[n++] = (struct question){ m->part[i].other, m->part[i].key, &m->part[i].ring };
	answer_all(m, &m->publishers, question, n);
	return OK;
}

/* Images of blocks that ranks before this one send. */
static Status
count_rows(struct paths *m)
{
	TRY(TEMP(m->p->ctx, m->row, m->n));
	for (int r = 1; r < m->n; r++)
		m->row[r] = m->row[r - 1] + m->sources.first[m->class[r - 1] + 1] - m->sources.first[m->class[r - 1]];
	return OK;
}

/* Parts first to last - 1, which are of one image. *rings: of this rank before. */
static Status
project_image(struct paths *m, int first, int last, int *rings)
{
	struct projection *p = m->p;
	struct stage *mine = &p->stage[DOWN];
	const struct hop *hop = &m->hop[m->part[first].hop];
	Segment seg = p->sched->segment[hop->tree];
	int64_t block = m->part[first].key / m->stride;
	int from = (int)(block / m->n), to = (int)(block % m->n);
	Frac by, behind = FRAC_ZERO;
	if ((m->stays[hop->tree] && !frac_mul(seg.length, (Frac){ m->part[first].element, 1 }, &behind))
	    || !frac_make((Wide)block - m->block[hop->tree], (Wide)m->n * m->n, &by)
	    || !frac_add(seg.offset, by, &seg.offset) || !frac_add(seg.offset, behind, &seg.offset))
		return fail(p->ctx, LIMIT, "%s: trees[%d].segment: image %d needs more than 64 bits",
		    p->sched->topo->name, hop->tree, m->part[first].element);
	project_clear(p);
	p->hops[p->prog->rank] = 0;
	for (int i = first; i < last; i++) {
		const struct part *part = &m->part[i];
		if (part->sends) {
			mine->ring = *rings;
			mine->to[mine->n_to++] = (RankLane){ part->other, p->lanes_out[part->other]++, *rings };
		} else {
			p->hops[p->prog->rank] = m->hop[part->hop].hops;
			mine->from[mine->n_from++] = (RankLane){ part->other, p->lanes_in[part->other]++, part->ring };
		}
	}
	*rings += mine->n_to > 0;
	return project_tasks(p, (int)(m->row[from] + m->part[first].segment), &seg, from, to);
}

Status
project_paths(struct projection *p, const RankOrbits *orbits)
{
	struct paths m = { .p = p, .orbits = *orbits, .n = orbits->n };
	int rings = 0;
	TRY(TEMP(p->ctx, m.sum, orbits->sym->size));
	TRY(TEMP(p->ctx, m.image, m.n));
	TRY(number_classes(&m));
	TRY(place_trees(&m));
	for (int t = 0; t < p->sched->n_segments; t++)
		TRY(follow(&m, t));
	TRY(total_orbits(&m));
	TRY(list_points(&m, true, &m.sources));
	TRY(list_points(&m, false, &m.publishers));
	TRY(count_rows(&m));
	TRY(list_parts(&m));
	for (int i = 0, last; i < m.n_parts; i = last) {
		for (last = i + 1; last < m.n_parts && m.part[last].key == m.part[i].key; last++)
			;
		TRY(project_image(&m, i, last, &rings));
	}
	return OK;
}
