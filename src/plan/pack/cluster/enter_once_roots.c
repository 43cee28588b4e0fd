/* How many trees of enter_once.c have each rank as their root, and how often these leave it. */
#include "plan/pack/cluster/enter_once_roots.h"

#include <string.h>

static bool
has_others(const struct grower *g, int v, int server)
{
	const TreeNetwork *net = &g->net;
	for (int i = 0; i < net->n_below[v]; i++)
		if (net->server[net->way[net->at[v] + i]] != server)
			return true;
	return false;
}

/* The first vertex of a way up that has other servers below; -1. */
static int
outside_of(const struct grower *g, int way)
{
	int v = g->net.above[way];
	while (v >= 0 && !has_others(g, v, g->net.server[way]))
		v = g->net.above[v];
	return v;
}

/* Units of all ways out of a server, or into it: those of ways that share links, one after the other. */
static int64_t
ways_of(struct grower *g, const int *arcs, int server, int64_t *units)
{
	const TreeNetwork *net = &g->net;
	int64_t all = 0;
	for (int i = net->first[server]; i < net->first[server + 1]; i++) {
		int w = net->member[i], top = outside_of(g, w);
		units[i] = top < 0 ? 0 : entering_left(g, arcs, w, top);
		entering_use(g, arcs, w, top < 0 ? w : top, units[i]);
		all += units[i];
	}
	for (int i = net->first[server]; i < net->first[server + 1]; i++) {
		int w = net->member[i], top = outside_of(g, w);
		entering_use(g, arcs, w, top < 0 ? w : top, -units[i]);
	}
	return all;
}

/* How many trees have their roots in a group: those that do not enter it. */
struct shares {
	int64_t all;		/* units */
	int64_t *into;		/* of each server: what may enter it */
};

static int
count_ranks(const struct grower *g, const Group *group)
{
	const TreeNetwork *net = &g->net;
	int c = group->child, n = 0;
	if (c < 0)
		return net->end[group->server] - net->first[group->server];
	for (int i = net->first_group[c]; i < net->first_group[c + 1]; i++)
		n += count_ranks(g, &net->group[i]);
	return n;
}

/* Units that have their roots in a group, at the least, as its links have no room for all trees to enter. */
static int64_t
need_of(const struct grower *g, const struct shares *s, const Group *group)
{
	const TreeNetwork *net = &g->net;
	int c = group->child;
	int64_t into = c < 0 ? s->into[group->server] : entering_left(g, net->fall, c, net->above[c]);
	int64_t need = 0, own = s->all - into;
	for (int i = c < 0 ? 0 : net->first_group[c]; c >= 0 && i < net->first_group[c + 1]; i++)
		need += need_of(g, s, &net->group[i]);
	return own > need ? own : need;
}

/* Each group gets what it needs, and of the rest a part like that of its ranks. False: there is too little. */
static bool
share_among(struct grower *g, const struct shares *s, const Group *group, int n, int64_t units)
{
	const TreeNetwork *net = &g->net;
	int64_t rest = units, given = 0;
	int ranks = 0, sum = 0;
	bool good = true;
	for (int i = 0; i < n; i++) {
		rest -= need_of(g, s, &group[i]);
		ranks += count_ranks(g, &group[i]);
	}
	good = rest >= 0;
	for (int i = 0; good && i < n; i++) {
		int c = group[i].child, r = count_ranks(g, &group[i]);
		sum += r;
		int64_t more = (int64_t)((Wide)rest * sum / ranks) - given, all = need_of(g, s, &group[i]) + more;
		given += more;
		if (c >= 0)
			good = share_among(g, s, &net->group[net->first_group[c]],
			    net->first_group[c + 1] - net->first_group[c], all);
		for (int k = 0; c < 0 && k < r; k++)
			g->own[net->member[net->first[group[i].server] + k]] = all / r + (k < all % r);
	}
	return good;
}

/* Trees of an allgather that an allreduce uses in both directions: in each server, and below each switch, there are
 * enough roots that all trees with other roots have room to enter. On several networks, as rails, servers alone count.
 * *good: false: together these need more roots than there are trees. */
static Status
share_roots(struct grower *g, int64_t units, int64_t *used, bool *good)
{
	const TreeNetwork *net = &g->net;
	struct shares s = { .all = units };
	Group *servers;
	TRY(TEMP(g->ctx, s.into, net->n_servers));
	TRY(TEMP(g->ctx, servers, net->n_servers));
	for (int k = 0; k < net->n_servers; k++) {
		s.into[k] = ways_of(g, net->fall, k, used);
		servers[k] = (Group){ -1, k };
	}
	int top = net->n_tops == 1 ? net->top[0] : -1;
	if (top >= 0 && count_ranks(g, &(Group){ top, -1 }) == g->n)
		*good = share_among(g, &s, &net->group[net->first_group[top]],
		    net->first_group[top + 1] - net->first_group[top], units);
	else
		*good = share_among(g, &s, servers, net->n_servers, units);
	return OK;
}

/* Of an allreduce: each server has trees of its own in proportion to what its ways have when all trees entered it once,
 * and its ranks have these in turn. */
static Status
share_units(struct grower *g, int64_t units)
{
	const TreeNetwork *net = &g->net;
	int64_t *more, all = 0, given = 0;
	TRY(TEMP(g->ctx, more, net->n_servers));
	for (int s = 0; s < net->n_servers; s++) {
		more[s] = g->pool[s] > units ? g->pool[s] - units : 0;
		all += more[s];
	}
	/* Server s gets what it should together with those before it, less what these have. */
	for (int64_t s = 0, sum = 0; s < net->n_servers; s++) {
		sum += more[s];
		int64_t now = all > 0 ? (int64_t)((Wide)units * sum / all) - given : 0;
		int n = net->end[s] - net->first[s];
		for (int i = 0; i < n; i++)
			g->own[net->member[net->first[s] + i]] = now / n + (i < now % n);
		given += now;
	}
	return OK;
}

/* Groups at a vertex that cover all servers below it: those of several rails have the same ones. */
static int
count_entries(struct grower *g, int v)
{
	const TreeNetwork *net = &g->net;
	int n = 0;
	memset(g->entered, 0, (size_t)net->n_servers * sizeof *g->entered);
	for (int i = net->first_group[v]; i < net->first_group[v + 1]; i++) {
		int c = net->group[i].child, s = net->group[i].server;
		bool fresh = c < 0 && !g->entered[s];
		if (c < 0)
			g->entered[s] = true;
		for (int k = 0; c >= 0 && k < net->n_below[c]; k++) {
			s = net->server[net->way[net->at[c] + k]];
			fresh |= !g->entered[s];
			g->entered[s] = true;
		}
		n += fresh;
	}
	return n;
}

/* How often the tree of a rank leaves it where it sends to all that has to be entered once; of the only root: once. */
static Status
count_times(struct grower *g)
{
	const TreeNetwork *net = &g->net;
	int *entries;
	TRY(TEMP(g->ctx, entries, net->topo->n_vertices));
	for (int v = 0; v < net->topo->n_vertices; v++)
		entries[v] = count_entries(g, v);
	for (int r = 0; r < g->n; r++) {
		for (int v = net->above[r]; v >= 0; v = net->above[v])
			g->times[r] += entries[v] > 0 ? entries[v] - 1 : 0;
		g->times[r] = g->sole_root < 0 ? g->times[r] : 1;
		entering_need(g, r, g->own[r] * g->times[r]);
	}
	return OK;
}

Status
entering_share(struct grower *g, int64_t units, bool *good)
{
	const TreeNetwork *net = &g->net;
	int64_t *used;
	TRY(TEMP(g->ctx, used, net->first[net->n_servers]));
	for (int r = 0; r < g->n; r++)
		g->own[r] = g->sole_root < 0 || r == g->sole_root ? units : 0;
	for (int s = 0; s < net->n_servers; s++)
		g->pool[s] = ways_of(g, net->rise, s, used);
	*good = true;
	if (g->both)
		TRY(share_units(g, units));
	else if (g->shared)
		TRY(share_roots(g, units, used, good));
	if (!*good)
		return OK;
	TRY(count_times(g));
	for (int r = 0; r < g->n; r++) {
		g->ahead += g->own[r];
		g->pool[net->server[r]] -= g->both ? g->needs[r] : g->own[r];
	}
	*good = g->ahead > 0;
	return OK;
}
