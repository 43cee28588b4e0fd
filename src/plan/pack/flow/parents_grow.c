/* The first trees of an allreduce in which each rank chooses its parent: from the roots, by hops with most room. */
#include "plan/pack/flow/parents_grow.h"

#include <string.h>

void
parents_put(struct parents *p, int place, int h)
{
	p->up[place] = h;
	for (int k = 0, e; k < 2 && (e = p->over[h][k]) >= 0; k++) {
		int at = 2 * place + k;
		p->prev[at] = -1;
		p->next[at] = p->head[e];
		if (p->head[e] >= 0)
			p->prev[p->head[e]] = at;
		p->head[e] = at;
		parents_add_room(p, e, -p->weight[place / p->n]);
	}
}

/* Of the ranks at a switch that were not reached the one with most room for others: on edges to such ranks, and to
 * switches. -1: all were reached. */
static int
roomiest(const struct parents *p, int s, const short *hops)
{
	int best = -1;
	int64_t most = 0;
	for (int i = p->first_edge[s]; i < p->first_edge[s + 1]; i++) {
		int v = parents_across(p, s, p->edge[i]);
		int64_t room = 0;
		for (int k = p->first_edge[v]; hops[v] < 0 && k < p->first_edge[v + 1]; k++) {
			int w = parents_across(p, v, p->edge[k]);
			room += w >= p->n || hops[w] < 0 ? p->room[p->edge[k]] : 0;
		}
		if (hops[v] < 0 && (best < 0 || room > most)) {
			best = v;
			most = room;
		}
	}
	return best;
}

int
parents_hops(struct parents *p, int root, int fan_out, short *hops)
{
	int tail = 0;
	for (int v = 0; v < p->n; v++)
		hops[v] = -1;
	hops[root] = 0;
	p->queue[tail++] = root;
	for (int head = 0; head < tail; head++)
		for (int v = p->queue[head], i = p->first_edge[v]; i < p->first_edge[v + 1]; i++) {
			int w = parents_across(p, v, p->edge[i]), s = w;
			for (int k = 0; k < (s < p->n ? 1 : fan_out); k++) {
				w = s < p->n ? s : roomiest(p, s, hops);
				if (w < 0 || hops[w] >= 0)
					break;
				hops[w] = (short)(hops[v] + 1);
				p->queue[tail++] = w;
			}
		}
	return tail == p->n ? hops[p->queue[tail - 1]] : -1;
}

/* What all edges of a hop have. */
static int64_t
room_of(const struct parents *p, int h)
{
	int64_t near = p->room[p->over[h][0]], far = p->over[h][1] < 0 ? near : p->room[p->over[h][1]];
	return near < far ? near : far;
}

/* Each rank by the hop with most room to one of fewer hops from the root. Returns the most. */
static int
grow_tree(struct parents *p, int t, int fan_out)
{
	int base = t * p->n;
	short *level = p->level + base;
	int deepest = parents_hops(p, p->root[t], fan_out, level);
	p->up[base + p->root[t]] = -1;
	for (int k = 1; k < p->n; k++) {
		int v = p->queue[k], best = -1;
		for (int h = p->first[v]; h < p->first[v + 1]; h++)
			if (level[p->other[h]] < level[v] && (best < 0 || room_of(p, h) > room_of(p, best)))
				best = h;
		parents_put(p, base + v, best);
		p->children[base + p->other[best]]++;
	}
	return deepest;
}

int
parents_grow(struct parents *p, int fan_out)
{
	int deepest = 0;
	memset(p->head, -1, (size_t)p->n_edges * sizeof *p->head);
	memset(p->children, 0, (size_t)p->n_trees * (size_t)p->n * sizeof *p->children);
	for (int t = 0; t < p->n_trees; t++) {
		int depth = grow_tree(p, t, fan_out);
		deepest = depth > deepest ? depth : deepest;
	}
	return deepest;
}
