/* What enters GPUs over the switch of their server, in trees that an allreduce turns back. A link carries what enters
 * over it one way down these trees, and the other way up them; so what enters and what leaves may differ, if together
 * they are no more than both directions have room for. Every GPU receives all trees but its own: so GPUs of a server
 * have as much each, over switch and uplinks, and those that lack an uplink receive more over the switch, and send
 * less:
 *
 *     GPU with 900 GB/s and an uplink of 50    receives 899.3 + 50    sends 900.7 + 50    72 GPUs, of which one
 *     GPU without one                          receives 949.3         sends 850.7         lacks an uplink */
#include "plan/pack/cluster/unequal_pieces.h"

static int64_t
clamp(int64_t a, int64_t most)
{
	return a < 0 ? 0 : a > most ? most : a;
}

/* What GPUs of a server receive over its switch if that raises each to a level. */
static Wide
sum_at(const struct plan *p, const struct cluster_server *server, const int64_t *room, const int64_t *beside,
    int64_t level)
{
	Wide sum = 0;
	for (int i = 0; i < server->n; i++) {
		int v = p->c.rank[server->first + i];
		sum += clamp(level - beside[v], room[v]);
	}
	return sum;
}

/* The highest level that half of the room allows, and one more of the first GPUs. */
static void
level_server(const struct plan *p, const struct cluster_server *server, const int64_t *room, const int64_t *beside,
    int64_t *enters)
{
	int64_t low = 0, high = 0;
	Wide half = 0;
	for (int i = 0; i < server->n; i++) {
		int v = p->c.rank[server->first + i];
		half += room[v];
		high = room[v] + beside[v] > high ? room[v] + beside[v] : high;
	}
	half /= 2;
	while (low < high) {
		int64_t middle = low + (high - low + 1) / 2;
		bool fits = sum_at(p, server, room, beside, middle) <= half;
		low = fits ? middle : low;
		high = fits ? high : middle - 1;
	}
	half -= sum_at(p, server, room, beside, low);
	for (int i = 0; i < server->n; i++) {
		int v = p->c.rank[server->first + i];
		bool more = half > 0 && clamp(low + 1 - beside[v], room[v]) > clamp(low - beside[v], room[v]);
		enters[v] = clamp(low - beside[v], room[v]) + more;
		half -= more;
	}
}

void
unequal_level(const struct plan *p, const int64_t *room, const int64_t *beside, int64_t *enters)
{
	for (int s = 0; s < p->c.n_servers; s++)
		level_server(p, &p->c.server[s], room, beside, enters);
}

static int64_t
switch_room(const struct plan *p, int v)
{
	const Cluster *c = &p->c;
	if (c->up[v] < 0)
		return 0;
	Wide room = ((Wide)p->topo->link[c->up[v]].capacity + p->topo->link[c->down[v]].capacity) * p->times / c->unit;
	return room >> 60 != 0 ? INT64_C(1) << 60 : (int64_t)room;
}

Status
unequal_level_switches(struct plan *p)
{
	const struct uplink *uplink = p->c.uplink[UPLINK_IN];
	int n = p->topo->n_ranks;
	int64_t *room, *beside;
	TRY(TEMP_EACH(p->ctx, n, room, beside));
	TRY(TEMP_EACH(p->ctx, n, p->switch_room[0], p->switch_room[1]));
	for (int i = 0; i < p->c.n_uplinks[UPLINK_IN]; i++)
		beside[uplink[i].rank] += p->room[UPLINK_IN][i];
	for (int v = 0; v < n; v++)
		room[v] = switch_room(p, v);
	unequal_level(p, room, beside, p->switch_room[UPLINK_IN]);
	for (int v = 0; v < n; v++)
		p->switch_room[UPLINK_OUT][v] = room[v] - p->switch_room[UPLINK_IN][v];
	return OK;
}
