/* Flows: hops whose steps share links alike.
 *
 * Steps of equal weights over the same links go at the same rate, whatever else shares these links: each link gives
 * them the same level. So links look at flows, not at steps: where hundreds of trees use the same few routes, as
 * those of a server, there are as many flows as routes, for each length of segments. */
#include "simulate/run.h"

struct finding {
	const struct net *net;
	int n_keys;		/* of the table of flows: a power of two */
	int *key;		/* a flow, + 1; 0: free */
};

static uint64_t
hash_of(const struct net *net, const struct net_hop *hop)
{
	uint64_t hash = (uint64_t)hop->weight;
	for (int i = hop->first_place; i < hop->first_place + hop->n_places; i++) {
		const struct net_place *place = &net->place[i];
		hash = (hash ^ ((uint64_t)place->link << 32 | (uint64_t)place->times)) * UINT64_C(0x9e3779b97f4a7c15);
		hash ^= hash >> 29;
	}
	return hash;
}

static bool
is_of(const struct net *net, const struct net_hop *hop, const struct net_flow *flow)
{
	bool same = hop->weight == flow->weight && hop->n_places == flow->n_places;
	for (int i = 0; same && i < hop->n_places; i++) {
		const struct net_place *a = &net->place[hop->first_place + i], *b = &net->place[flow->first_place + i];
		same = a->link == b->link && a->times == b->times;
	}
	return same;
}

/* The place of a hop's flow in the table. */
static int
key_of(const struct finding *f, const struct net_hop *hop)
{
	for (uint64_t at = hash_of(f->net, hop);; at++) {
		int key = (int)(at & (uint64_t)(f->n_keys - 1));
		if (!f->key[key] || is_of(f->net, hop, &f->net->flow[f->key[key] - 1]))
			return key;
	}
}

Status
flows_find(Ctx *ctx, struct net *net)
{
	struct finding f = { .net = net, .n_keys = 2 };
	while (f.n_keys < 2 * net->n_hops)
		f.n_keys *= 2;
	TRY(TEMP(ctx, f.key, f.n_keys));
	TRY(TEMP(ctx, net->flow, net->n_hops));
	for (int h = 0; h < net->n_hops; h++) {
		struct net_hop *hop = &net->hop[h];
		int key = key_of(&f, hop);
		if (!f.key[key]) {
			net->flow[net->n_flows] = (struct net_flow){ hop->first_place, hop->n_places, hop->weight };
			f.key[key] = ++net->n_flows;
		}
		hop->flow = f.key[key] - 1;
	}
	return OK;
}
