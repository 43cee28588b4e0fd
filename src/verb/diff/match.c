/* Which trees of two schedules are equal, or similar.
 *
 * Trees are paired in rounds, each among those that are left: equal edges and segment; equal edges and length of the
 * segment; equal edges; equal segment and root; and at last most edges in common. Candidates have equal hashes, sums
 * over edges that do not depend on their order. A comparison by rank decides: a rank has one edge down into it, and one
 * up out of it. */
#include "verb/diff/match.h"

#include "base/hash.h"

#include <stdlib.h>
#include <string.h>

enum {
	MAX_CANDIDATES = 64,		/* of one hash: more only occur in hostile files, and then count as different */
	MAX_COMPARED = 1 << 26		/* edges, to find similar trees */
};

/* ---- edges ---- */

bool
match_equal_edge(const struct match *m, const Edge *was, const Edge *is)
{
	if (was->src != is->src || was->dst != is->dst || was->n_links != is->n_links)
		return false;
	for (int i = 0; i < was->n_links; i++)
		if (m->old.number[was->link[i]] != m->new.number[is->link[i]])
			return false;
	return true;
}

static uint64_t
hash_edges(const Edge *edge, int n, const int *number, uint64_t seed)
{
	uint64_t sum = 0;
	for (int e = 0; e < n; e++) {
		uint64_t h = hash64(seed ^ (uint64_t)edge[e].src << 32 ^ (uint64_t)edge[e].dst);
		for (int i = 0; i < edge[e].n_links; i++)
			h = hash64(h ^ (uint64_t)number[edge[e].link[i]]);
		sum += h;
	}
	return sum;
}

/* How many ranks `to` names; 0 if all that need the block. */
static int
count_to(const Schedule *sched, const Segment *s)
{
	int n = sched->topo->n_ranks;
	int64_t block = frac_floor_mul(s->offset, collective_blocks(sched->coll, n));
	int needer = collective_needer(sched->coll, n, sched->root, block);
	bool all = needer == EVERY_RANK ? s->n_to == n : s->n_to == 1 && s->to[0] == needer;
	return all ? 0 : s->n_to;
}

static Status
hash_side(Ctx *ctx, struct side *side)
{
	const Schedule *sched = side->sched;
	TRY(TEMP_EACH(ctx, sched->n_segments, side->edges_hash, side->mate, side->n_to));
	for (int t = 0; t < sched->n_segments; t++) {
		const Tree *tree = &sched->segment[t].tree;
		side->mate[t] = -1;
		side->n_to[t] = count_to(sched, &sched->segment[t]);
		side->edges_hash[t] = hash64((uint64_t)tree->root)
		    + hash_edges(tree->down, tree->n_down, side->number, 1)
		    + hash_edges(tree->up, tree->n_up, side->number, UINT64_C(1) << 63);
	}
	return OK;
}

int
match_phase(const Tree *tree, bool up, const Edge **edge)
{
	*edge = up ? tree->up : tree->down;
	return up ? tree->n_up : tree->n_down;
}

int
match_rank(const Edge *edge, bool up)
{
	return up ? edge->src : edge->dst;
}

void
match_by_rank(struct match *m, const Edge *edge, int n, bool up)
{
	memset(m->edge_of, 0, (size_t)m->old.sched->topo->n_ranks * sizeof *m->edge_of);
	for (int e = 0; e < n; e++)
		m->edge_of[match_rank(&edge[e], up)] = &edge[e];
}

/* The number of edges of a phase that two trees have in common. */
static int
common_edges(struct match *m, const Tree *was, const Tree *is, bool up)
{
	const Edge *a, *b;
	int n_was = match_phase(was, up, &a), n_is = match_phase(is, up, &b), n = 0;
	match_by_rank(m, a, n_was, up);
	for (int e = 0; e < n_is; e++) {
		const Edge *other = m->edge_of[match_rank(&b[e], up)];
		n += other && match_equal_edge(m, other, &b[e]);
	}
	return n;
}

/* ---- pairs ---- */

bool
match_same_tree(struct match *m, int o, int n)
{
	const Tree *was = &m->old.sched->segment[o].tree, *is = &m->new.sched->segment[n].tree;
	return was->root == is->root && was->n_down == is->n_down && was->n_up == is->n_up
	    && common_edges(m, was, is, false) == is->n_down && common_edges(m, was, is, true) == is->n_up;
}

bool
match_same_ranks(const struct match *m, int o, int n)
{
	const int *was = m->old.sched->segment[o].to, *is = m->new.sched->segment[n].to, n_to = m->old.n_to[o];
	return n_to == m->new.n_to[n] && (n_to == 0 || memcmp(was, is, (size_t)n_to * sizeof *was) == 0);
}

static bool
same_length(const struct match *m, int o, int n)
{
	const Segment *was = &m->old.sched->segment[o], *is = &m->new.sched->segment[n];
	return was->part == is->part && frac_cmp(was->length, is->length) == 0 && match_same_ranks(m, o, n);
}

static bool
same_segment(const struct match *m, int o, int n)
{
	return same_length(m, o, n) && frac_cmp(m->old.sched->segment[o].offset, m->new.sched->segment[n].offset) == 0;
}

static uint64_t
hash_length(const struct side *side, int t)
{
	const Segment *s = &side->sched->segment[t];
	uint64_t h = hash64((uint64_t)s->length.num) ^ hash64((uint64_t)s->length.den + (uint64_t)s->part);
	for (int i = 0; i < side->n_to[t]; i++)
		h = hash64(h ^ (uint64_t)s->to[i]);
	return h;
}

static uint64_t
hash_segment(const struct side *side, int t)
{
	const Frac *offset = &side->sched->segment[t].offset;
	return hash64(hash_length(side, t) ^ hash64((uint64_t)offset->num) ^ (uint64_t)offset->den);
}

enum round { SAME, SAME_LENGTH, SAME_EDGES, SAME_SEGMENT, N_ROUNDS };

static uint64_t
round_key(const struct side *side, int t, enum round round)
{
	switch (round) {
	case SAME:
		return hash64(side->edges_hash[t]) ^ hash_segment(side, t);
	case SAME_LENGTH:
		return hash64(side->edges_hash[t]) ^ hash_length(side, t);
	case SAME_EDGES:
		return side->edges_hash[t];
	default:
		return hash_segment(side, t) ^ hash64((uint64_t)side->sched->segment[t].tree.root);
	}
}

static bool
round_same(struct match *m, int o, int n, enum round round)
{
	switch (round) {
	case SAME:
		return same_segment(m, o, n) && match_same_tree(m, o, n);
	case SAME_LENGTH:
		return same_length(m, o, n) && match_same_tree(m, o, n);
	case SAME_EDGES:
		return match_same_tree(m, o, n);
	default:
		return same_segment(m, o, n)
		    && m->old.sched->segment[o].tree.root == m->new.sched->segment[n].tree.root;
	}
}

struct keyed {
	uint64_t key;
	int tree;
};

static int
by_key(const void *a, const void *b)
{
	const struct keyed *k = a, *l = b;
	return k->key != l->key ? (k->key < l->key ? -1 : 1) : (k->tree > l->tree) - (k->tree < l->tree);
}

/* Unmatched trees, by their keys. */
static int
sort_unmatched(const struct side *side, enum round round, struct keyed *out)
{
	int n = 0;
	for (int t = 0; t < side->sched->n_segments; t++)
		if (side->mate[t] < 0)
			out[n++] = (struct keyed){ round_key(side, t, round), t };
	qsort(out, (size_t)n, sizeof *out, by_key);
	return n;
}

static void
mate(struct match *m, int o, int n)
{
	m->old.mate[o] = n;
	m->new.mate[n] = o;
}

static void
pair_round(struct match *m, enum round round, struct keyed *a, struct keyed *b)
{
	int n_a = sort_unmatched(&m->old, round, a), n_b = sort_unmatched(&m->new, round, b);
	for (int i = 0, j = 0; i < n_a && j < n_b; i++) {
		while (j < n_b && (b[j].key < a[i].key || (b[j].key == a[i].key && m->new.mate[b[j].tree] >= 0)))
			j++;
		for (int k = j; k < n_b && b[k].key == a[i].key && k < j + MAX_CANDIDATES; k++) {
			if (m->new.mate[b[k].tree] < 0 && round_same(m, a[i].tree, b[k].tree, round)) {
				mate(m, a[i].tree, b[k].tree);
				break;
			}
		}
	}
}

/* Of each old tree in turn, the new tree with most edges in common, at least half of them. */
static void
pair_similar(struct match *m)
{
	const Schedule *old = m->old.sched, *new = m->new.sched;
	int64_t n_old = 0, n_new = 0;
	for (int t = 0; t < old->n_segments; t++)
		n_old += m->old.mate[t] < 0;
	for (int t = 0; t < new->n_segments; t++)
		n_new += m->new.mate[t] < 0;
	if (n_old * n_new > MAX_COMPARED / (4 * old->topo->n_ranks))
		return;
	for (int o = 0; o < old->n_segments; o++) {
		const Tree *was = &old->segment[o].tree;
		int best = -1, most = 0;
		for (int n = 0; n < new->n_segments && m->old.mate[o] < 0; n++) {
			const Tree *is = &new->segment[n].tree;
			int n_was = was->n_down + was->n_up, n_is = is->n_down + is->n_up;
			int all = n_was > n_is ? n_was : n_is;
			if (m->new.mate[n] >= 0)
				continue;
			int common = common_edges(m, was, is, false) + common_edges(m, was, is, true);
			if (2 * common >= all && common > most) {
				most = common;
				best = n;
			}
		}
		if (best >= 0)
			mate(m, o, best);
	}
}

Status
match_trees(struct match *m)
{
	struct keyed *a, *b;
	TRY(hash_side(m->ctx, &m->old));
	TRY(hash_side(m->ctx, &m->new));
	TRY(TEMP(m->ctx, m->edge_of, m->old.sched->topo->n_ranks));
	TRY(TEMP(m->ctx, a, m->old.sched->n_segments));
	TRY(TEMP(m->ctx, b, m->new.sched->n_segments));
	for (int round = 0; round < N_ROUNDS; round++)
		pair_round(m, (enum round)round, a, b);
	pair_similar(m);
	return OK;
}
