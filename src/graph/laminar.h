/* What the searches for trees share: the laminar family of sets that the dual solution pays for, and components of
 * ranks.
 *
 * What Edmonds (or Kruskal) pays for each rank and each contracted set is a dual solution. A tree is cheapest if all
 * its hops are tight, that is cost just what is paid for the sets that they enter, and no contracted set that was
 * paid for is entered twice. Tight hops connect each such set strongly, so a breadth-first search that keeps to these
 * two rules reaches every rank, wherever it enters, and early: so among the cheapest trees a shallow one is found. */
#ifndef BLINK_GRAPH_LAMINAR_H
#define BLINK_GRAPH_LAMINAR_H

#include "graph/search.h"

/* A hop in a leftist heap. */
struct heap_hop {
	int left, right, height;
	int64_t cost, add;	/* add: owed to the whole subtree below */
};

/* Ranks that are joined, by union-find. */
struct component {
	int heap;		/* of entering hops; -1: empty */
	int seen;		/* start of the walk that passed here; -1 */
	int up, size;
};

/* An edge of a spanning tree. */
struct tree_edge {
	int64_t cost;
	int v, w;
};

/* A rank (0 .. n_ranks-1) or a set that was contracted. */
struct laminar_set {
	int parent;		/* the least set around it that was paid for; -1: none */
	int depth;		/* sets around it */
	int64_t paid;
	bool entered;		/* by the search for a shallow tree */
};

static inline int
find(const Search *s, int v)
{
	for (; s->component[v].up >= 0; v = s->component[v].up) {
		int above = s->component[s->component[v].up].up;
		if (above >= 0)
			s->component[v].up = above;
	}
	return v;
}

static inline bool
join(Search *s, int v, int w)
{
	v = find(s, v);
	w = find(s, w);
	if (v == w)
		return false;
	if (s->component[v].size < s->component[w].size) {
		int t = v;
		v = w;
		w = t;
	}
	s->component[w].up = v;
	s->component[v].size += s->component[w].size;
	return true;
}

/* Sets that were not paid for go, and each set knows its depth. Parents have higher numbers than children. */
static inline void
settle_sets(Search *s, int n_sets)
{
	struct laminar_set *set = s->set;
	for (int i = n_sets - 1; i >= 0; i--) {
		int up = set[i].parent;
		if (up >= 0 && set[up].paid == 0)
			set[i].parent = up = set[up].parent;
		set[i].depth = up < 0 ? 0 : set[up].depth + 1;
		set[i].entered = false;
	}
}

/* May the tree grow from u to w by a hop (or an edge) of this cost? It enters the sets around w that u is not in. */
static inline bool
is_open(const Search *s, int u, int w, int64_t cost)
{
	const struct laminar_set *set = s->set;
	int a = w, b = u;
	while (a != b) {
		if (b < 0 || (a >= 0 && set[a].depth >= set[b].depth)) {
			if (set[a].entered || set[a].paid > cost)
				return false;
			cost -= set[a].paid;
			a = set[a].parent;
		} else {
			b = set[b].parent;
		}
	}
	return cost == 0;
}

static inline void
enter(Search *s, int w)
{
	for (; w >= 0 && !s->set[w].entered; w = s->set[w].parent)
		s->set[w].entered = true;
}

#endif
