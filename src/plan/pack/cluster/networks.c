/* How the networks of a cluster hang together, by the links between their switches: planes, networks that are one, and
 * what leaf switches have room for. */
#include "plan/pack/cluster/servers.h"

bool
cluster_find_planes(const Cluster *c, int *plane, int *n_planes)
{
	int n = c->n_ends;
	bool good = true;
	*n_planes = 0;
	for (int a = 0; a < n; a++) {
		int b = 0;
		while (b < a && cluster_between_ends(c, a, b)->n < 0)
			b++;
		plane[a] = b < a ? plane[b] : (*n_planes)++;
	}
	for (int a = 0; a < n; a++)
		for (int b = 0; b < n && good; b++)
			good = (cluster_between_ends(c, a, b)->n >= 0) == (plane[a] == plane[b]);
	return good;
}

/* Of each link between switches: what the uplinks have, in units, from which routes come that pass it, or to which they
 * lead. */
static Status
load_between(const Cluster *c, Side side, int64_t *load)
{
	int64_t *capacity;
	int *mark;
	TRY(TEMP(c->ctx, capacity, c->n_ends));
	TRY(TEMP(c->ctx, mark, c->topo->n_links));
	for (int i = 0; i < c->n_uplinks[side]; i++)
		capacity[c->uplink[side][i].end] += c->uplink[side][i].capacity;
	for (int a = 0; a < c->n_ends; a++)
		for (int b = 0; b < c->n_ends; b++) {
			const struct uplink *route = side == UPLINK_OUT ? cluster_between_ends(c, a, b)
			    : cluster_between_ends(c, b, a);
			for (int i = 0; i < route->n; i++) {
				load[route->link[i]] += mark[route->link[i]] == a + 1 ? 0 : capacity[a];
				mark[route->link[i]] = a + 1;
			}
		}
	return OK;
}

Status
cluster_merge_networks(Cluster *c)
{
	const Topology *topo = c->topo;
	int64_t *load[2];
	int *plane, *number, n_planes;
	bool *narrow;
	TRY(TEMP_EACH(c->ctx, c->n_ends, plane, number, narrow));
	TRY(TEMP_EACH(c->ctx, topo->n_links, load[0], load[1]));
	if (!cluster_find_planes(c, plane, &n_planes) || n_planes == c->n_ends)
		return OK;
	for (int side = 0; side < 2; side++)
		TRY(load_between(c, side, load[side]));
	for (int a = 0; a < c->n_ends; a++)
		for (int b = 0; b < c->n_ends; b++)
			for (int i = 0; i < cluster_between_ends(c, a, b)->n; i++) {
				int l = cluster_between_ends(c, a, b)->link[i];
				int64_t most = load[0][l] < load[1][l] ? load[0][l] : load[1][l];
				narrow[plane[a]] |= most > topo->link[l].capacity / c->unit;
			}
	c->n_networks = 0;
	for (int a = 0; a < c->n_ends; a++) {
		int b = 0;
		while (b < a && (plane[b] != plane[a] || narrow[plane[a]]))
			b++;
		number[a] = b < a ? number[b] : c->n_networks++;
	}
	for (int side = 0; side < 2; side++)
		for (int i = 0; i < c->n_uplinks[side]; i++)
			c->uplink[side][i].network = number[c->uplink[side][i].end];
	return cluster_find_types(c);
}

/* The servers that share no network with one. mark: of each network, the last server that it belongs to, plus one. */
static int
count_apart(const Cluster *c, int server, int *mark)
{
	const struct cluster_server *own = &c->server[server];
	int n = 0;
	for (int i = 0; i < own->n_uplinks[UPLINK_OUT]; i++)
		mark[c->uplink[UPLINK_OUT][own->first_uplink[UPLINK_OUT] + i].network] = server + 1;
	for (int s = 0; s < c->n_servers; s++) {
		const struct cluster_server *other = &c->server[s];
		bool apart = true;
		for (int i = 0; apart && i < other->n_uplinks[UPLINK_IN]; i++)
			apart = mark[c->uplink[UPLINK_IN][other->first_uplink[UPLINK_IN] + i].network] != server + 1;
		n += apart;
	}
	return n;
}

Status
cluster_room_between(const Cluster *c, double *room, int *hops)
{
	double *most;	/* of each switch: what its uplinks bring, or, if these have less, all links that lead on */
	int *mark, *from;
	TRY(TEMP(c->ctx, most, c->n_ends));
	TRY(TEMP(c->ctx, mark, c->n_networks));
	TRY(TEMP(c->ctx, from, c->topo->n_links));
	*room = 0;
	*hops = c->n_servers;
	for (int i = 0; i < c->n_uplinks[UPLINK_OUT]; i++)
		most[c->uplink[UPLINK_OUT][i].end] += (double)c->uplink[UPLINK_OUT][i].capacity;
	for (int a = 0; a < c->n_ends; a++) {
		double on = 0;
		for (int b = 0; b < c->n_ends; b++) {
			int l = cluster_between_ends(c, a, b)->n > 0 ? cluster_between_ends(c, a, b)->link[0] : -1;
			if (l >= 0 && from[l] == 0)
				on += (double)c->topo->link[l].capacity / (double)c->unit;
			if (l >= 0)
				from[l] = 1;
		}
		*room += on < most[a] ? on : most[a];
	}
	for (int s = 0; s < c->n_servers && *hops > 0; s++) {
		int apart = count_apart(c, s, mark);
		*hops = apart < *hops ? apart : *hops;
	}
	return OK;
}
