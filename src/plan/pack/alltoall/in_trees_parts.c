/* The trees into each rank and the parts of blocks that they have: the first ones, more of fewer parts, the best. */
#include "plan/pack/alltoall/in_trees.h"

#include <math.h>
#include <string.h>

bool
in_trees_first(struct in_trees *s)
{
	enum { UNIT = 1 << 12 };
	for (int root = 0; root < s->n; root++) {
		double mean = 0;
		int *next = in_tree_at(s, s->next, root, 0);
		for (int l = 0; l < s->n_links; l++)
			mean += in_trees_use(s, l) / s->n_links;
		for (int l = 0; l < s->n_links; l++)
			s->price[l] = 1 + (int64_t)(UNIT / s->capacity[l] * (root ? 4 + in_trees_use(s, l) / mean : 1));
		shortest_paths(&s->paths, root, true, s->distance, next);
		in_tree_measure(s, root, next);
		for (int v = 0; v < s->n_vertices; v++) {
			if (next[v] >= 0)
				s->link[next[v]].load += s->size[v];
			else if (v < s->n && v != root)
				return false;
		}
	}
	return true;
}

/* Each part in as many. */
static void
divide_parts(struct in_trees *s, int pieces)
{
	s->parts *= pieces;
	for (int t = 0; t < s->n_trees; t++)
		s->weight[t] *= pieces;
	for (int l = 0; l < s->n_links; l++) {
		s->link[l].load *= pieces;
		s->link[l].per_load /= pieces;
	}
}

/* Each tree from `first` on twice. */
static void
double_trees(struct in_trees *s, int first)
{
	size_t bytes = (size_t)s->n_vertices * sizeof *s->next;
	int n = 2 * s->n_trees - first;
	for (int root = 0; root < s->n; root++)
		for (int t = n - 1; t > first; t--)
			memcpy(in_tree_at(s, s->next, root, t),
			    in_tree_at(s, s->next, root, first + (t - first) / 2), bytes);
	s->n_trees = n;
	s->first = first;
}

void
in_trees_split(struct in_trees *s)
{
	divide_parts(s, 2);
	double_trees(s, 0);
	for (int t = s->n_trees - 1; t >= 0; t--)
		s->weight[t] = s->weight[t / 2] / 2;
}

void
in_trees_cut_last(struct in_trees *s)
{
	int pieces = 2, last = s->n_trees - 1, weight = s->weight[last];
	while (s->parts * pow(pieces, s->most_trees - s->n_trees) < FINEST)
		pieces *= 2;
	divide_parts(s, pieces);
	double_trees(s, last);
	s->weight[last] = weight * (pieces - 1);
	s->weight[last + 1] = weight;
}

void
in_trees_keep_best(struct in_trees *s)
{
	double most = 0;
	for (int l = 0; l < s->n_links; l++)
		most = fmax(most, in_trees_use(s, l));
	if (most >= s->best_use)
		return;
	s->best_use = most;
	s->best_parts = s->parts;
	s->n_best = s->n_trees;
	memcpy(s->best_weight, s->weight, (size_t)s->n_trees * sizeof *s->weight);
	for (int root = 0; root < s->n; root++)
		memcpy(in_tree_at(s, s->best, root, 0), in_tree_at(s, s->next, root, 0),
		    (size_t)s->n_vertices * (size_t)s->n_trees * sizeof *s->best);
}
