/* Trees with the places that they have at servers (places.c). */
#include "plan/pack/cluster/places.h"

#include <string.h>

struct maker {
	struct few *f;
	int *places;		/* of each server: extra ones */
	int *order;		/* servers of the tree's plane: those with most places first */
	int *from;		/* uplinks with places, in the order of the servers */
	Edge *there, *back;
	int n_edges;
};

static Status
add_server(struct maker *m, int s, int entry)
{
	const Cluster *c = &m->f->c;
	for (int i = 0; i < c->server[s].n; i++) {
		int v = c->rank[c->server[s].first + i];
		if (v == entry)
			continue;
		TRY(cluster_near_edge(c, entry, v, &m->there[m->n_edges]));
		TRY(cluster_near_edge(c, v, entry, &m->back[m->n_edges++]));
	}
	return OK;
}

static Status
add_far(struct maker *m, int from, int to)
{
	const Cluster *c = &m->f->c;
	TRY(cluster_far_edge(c, from, to, &m->there[m->n_edges]));
	return cluster_far_edge(c, to, from, &m->back[m->n_edges++]);
}

/* Servers of the tree's plane, those with most places first. */
static int
order_servers(struct maker *m, int t)
{
	const struct few *f = m->f;
	int n = 0;
	memset(m->places, 0, (size_t)f->c.n_servers * sizeof *m->places);
	for (int i = f->first_extra[t]; i < f->first_extra[t + 1]; i++)
		m->places[f->c.of[f->c.uplink[0][f->extra[i].uplink].rank]] += f->extra[i].n;
	for (int s = 0; s < f->c.n_servers; s++) {
		int at = n;
		if (f->partner[(size_t)t * (size_t)f->c.n_servers + (size_t)s] >= 0)
			continue;
		for (; at > 0 && m->places[m->order[at - 1]] < m->places[s]; at--)
			m->order[at] = m->order[at - 1];
		m->order[at] = s;
		n++;
	}
	return n;
}

/* A tree that uses all planes. */
static Status
make_mixed(struct maker *m, int t, Tree *out)
{
	const struct few *f = m->f;
	size_t first = (size_t)t * (size_t)f->c.n_servers;
	int root = -1;
	m->n_edges = 0;
	for (int s = 0; s < f->c.n_servers; s++) {
		size_t at = first + (size_t)s;
		int entry = f->c.uplink[0][f->uplink[at]].rank;
		if (f->parent[at] < 0)
			root = entry;
		else
			TRY(add_far(m, f->from[at], f->uplink[at]));
		TRY(add_server(m, s, entry));
	}
	return tree_arrange(f->ctx, f->c.topo->n_ranks, ALLREDUCE, root, m->there, m->back, m->n_edges, out);
}

static Status
make_tree(struct maker *m, int t, Tree *out)
{
	const struct few *f = m->f;
	if (f->mixed)
		return make_mixed(m, t, out);
	const int *uplink = f->uplink + (size_t)t * (size_t)f->c.n_servers;
	const int *partner = f->partner + (size_t)t * (size_t)f->c.n_servers;
	int n = order_servers(m, t), n_from = 0, at = 0;
	m->n_edges = 0;
	m->from[n_from++] = uplink[m->order[0]];
	for (int i = 0; i < n; i++) {
		int s = m->order[i];
		if (i > 0)
			TRY(add_far(m, m->from[at++], uplink[s]));
		for (int k = f->first_extra[t]; k < f->first_extra[t + 1] && m->places[s] > 0; k++)
			if (f->c.of[f->c.uplink[0][f->extra[k].uplink].rank] == s)
				for (int e = 0; e < f->extra[k].n; e++)
					m->from[n_from++] = f->extra[k].uplink;
	}
	for (int s = 0; s < f->c.n_servers; s++) {
		if (partner[s] >= 0)
			TRY(add_far(m, partner[s], uplink[s]));
		TRY(add_server(m, s, f->c.uplink[0][uplink[s]].rank));
	}
	return tree_arrange(f->ctx, f->c.topo->n_ranks, ALLREDUCE, f->c.uplink[0][uplink[m->order[0]]].rank, m->there,
	    m->back, m->n_edges, out);
}

Status
places_trees(struct few *f, const struct choice *choice, Packing **out)
{
	const Topology *topo = f->c.topo;
	struct maker m = { .f = f };
	Packing *pack;
	int64_t *load;
	int n = choice->p + choice->q;
	bool good;
	places_set_kind(f, choice->mixed);
	TRY(places_take(f, choice, &good));
	if (!good)
		return fail(f->ctx, INTERNAL, "%s: few trees: places do not suffice", topo->name);
	TRY(TEMP(f->ctx, m.places, f->c.n_servers));
	TRY(TEMP(f->ctx, m.order, f->c.n_servers));
	TRY(TEMP(f->ctx, m.from, f->c.n_servers + 1));
	TRY(TEMP(f->ctx, m.there, topo->n_ranks));
	TRY(TEMP(f->ctx, m.back, topo->n_ranks));
	TRY(TEMP(f->ctx, load, topo->n_links));
	TRY(pack_new(f->ctx, n, true, &pack));
	int64_t common = choice->q > 0 ? gcd64(choice->first, choice->second) : choice->first;
	for (int t = 0; t < n; t++) {
		pack->weight[t] = (t < choice->p ? choice->first : choice->second) / common;
		TRY(make_tree(&m, t, &pack->tree[pack->n_trees++]));
	}
	if (pack_widest_unit(topo, pack, load, &pack->unit))
		*out = pack;
	return OK;
}
