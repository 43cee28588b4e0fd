/* A round over trees: a vertex takes another link, and blocks of all ranks behind it go there. */
#include "plan/pack/alltoall/in_trees.h"

#include <string.h>

void
in_tree_measure(struct in_trees *s, int root, const int *next)
{
	int n = 0;
	memset(s->inner, 0, (size_t)s->n_vertices * sizeof *s->inner);
	for (int v = 0; v < s->n_vertices; v++) {
		s->size[v] = v < s->n && v != root;
		if (next[v] >= 0)
			s->inner[s->link[next[v]].to]++;
	}
	for (int v = 0; v < s->n_vertices; v++)
		if (s->inner[v] == 0)
			s->placed[n++] = v;
	for (int i = 0; i < n; i++) {
		int v = s->placed[i];
		if (next[v] < 0)
			continue;
		int to = s->link[next[v]].to;
		s->size[to] += s->size[v];
		if (--s->inner[to] == 0)
			s->placed[n++] = to;
	}
	s->n_placed = n;
}

/* Of a block on a link, where `more` are added, or, below 0, taken away: what it costs half the way. */
static inline double
cost_of(const struct in_trees *s, const struct in_link *link, double more)
{
	double cost = link->price + s->stiffness * ((link->load + 0.5 * more) * link->per_load - s->use);
	return cost > 0 ? cost : 0;
}

static void
find_costs(struct in_trees *s, const int *next)
{
	for (int i = s->n_placed - 1; i >= 0; i--) {
		int v = s->placed[i];
		const struct in_link *link = next[v] < 0 ? NULL : &s->link[next[v]];
		s->cost[v] = link ? cost_of(s, link, 0) + s->cost[link->to] : 0;
	}
}

/* The path from v, and what its links cost less without the blocks of v. */
static void
mark_path(struct in_trees *s, int root, const int *next, int v, double blocks)
{
	double saved = 0;
	s->mark++;
	for (int u = v; u != root;) {
		const struct in_link *link = &s->link[next[u]];
		saved += cost_of(s, link, -blocks);
		u = link->to;
		s->seen[u] = s->mark;
		s->saved[u] = saved;
	}
}

/* What v saves by another link, up to where the path from there meets the marked one. Below 0: nothing, or that path
 * comes back to v. */
static double
gain_of(const struct in_trees *s, int root, const int *next, int v, int l, double blocks)
{
	const struct in_link *link = &s->link[l];
	double cost = cost_of(s, link, blocks);
	int u = link->to;
	while (s->seen[u] != s->mark) {
		if (u == v || next[u] < 0 || cost >= s->saved[root])
			return -1;
		link = &s->link[next[u]];
		cost += cost_of(s, link, blocks);
		u = link->to;
	}
	return s->saved[u] - cost;
}

static void
take_link(struct in_trees *s, int root, int *next, int v, int l, int weight)
{
	int blocks = s->size[v];
	for (int u = v; u != root;) {
		struct in_link *link = &s->link[next[u]];
		link->load -= (double)blocks * weight;
		u = link->to;
		s->size[u] -= blocks;
	}
	next[v] = l;
	for (int u = v; u != root;) {
		struct in_link *link = &s->link[next[u]];
		link->load += (double)blocks * weight;
		u = link->to;
		s->size[u] += blocks;
	}
}

/* What saves less than this part of a path's cost is no gain. */
#define LEAST_GAIN 1e-7

/* A switch that no block passes gets the path that one block would take. Costs of paths are those before the first move
 * in the tree; both paths differ in their first links at least. */
static void
move(struct in_trees *s, int root, int *next, int v, int weight)
{
	const Topology *topo = s->topo;
	double blocks = (double)weight * (s->size[v] > 0 ? s->size[v] : 1), best = 0;
	const struct in_link *now = &s->link[next[v]];
	double most = (1 - LEAST_GAIN) * s->cost[v] - cost_of(s, now, 0) + cost_of(s, now, -blocks);
	int link = -1;
	bool marked = false;
	for (int i = topo->first_out[v]; i < topo->first_out[v + 1]; i++) {
		int l = topo->out[i];
		if (l == next[v] || cost_of(s, &s->link[l], blocks) + s->cost[s->link[l].to] >= most)
			continue;
		if (!marked) {
			mark_path(s, root, next, v, blocks);
			best = LEAST_GAIN * s->saved[root];
			marked = true;
		}
		double gain = gain_of(s, root, next, v, l, blocks);
		if (gain > best) {
			best = gain;
			link = l;
		}
	}
	if (link < 0)
		return;
	take_link(s, root, next, v, link, weight);
	s->moves++;
}

void
in_trees_round(struct in_trees *s)
{
	s->moves = 0;
	for (int root = 0; root < s->n && !out_of_time(s->ctx, s->n_links); root++)
		for (int t = s->first; t < s->n_trees; t++) {
			int *next = in_tree_at(s, s->next, root, t);
			in_tree_measure(s, root, next);
			find_costs(s, next);
			for (int v = 0; v < s->n_vertices; v++)
				if (v != root && next[v] >= 0)
					move(s, root, next, v, s->weight[t]);
		}
}
