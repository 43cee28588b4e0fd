/* Flows: hops whose steps share links alike.
 *
 * Steps over the same links get the same for each weight, whatever else shares these links: each link gives them the
 * same level. So links look at flows, not at steps: where hundreds of trees use the same few routes, as those of a
 * server, there are as many flows as routes.
 *
 * Links that have the same flows, as those from a GPU to its leaf switch, are full together or not at all: the slowest
 * of them is simulated for all. */
#include "simulate/run.h"

struct finding {
	const struct net *net;
	int n_keys;		/* of the table of flows: a power of two */
	int *key;		/* a flow, + 1; 0: free */
};

static uint64_t
hash_of(const struct net *net, const struct net_hop *hop)
{
	uint64_t hash = 1;
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
	bool same = hop->n_places == flow->n_places;
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

/* The flows of each link, in order, and which links have the same. */
struct sharing {
	int *first, *flow, *times;	/* of link l: flow[first[l] .. first[l + 1] - 1], and how often each uses it */
	int *slowest;			/* of links that have the same flows, by the first of them */
};

static Status
list_flows(Ctx *ctx, const struct net *net, struct sharing *s)
{
	int n = 0;
	TRY(TEMP(ctx, s->first, net->n_links + 2));
	for (int f = 0; f < net->n_flows; f++)
		for (int i = 0; i < net->flow[f].n_places; i++, n++)
			s->first[net->place[net->flow[f].first_place + i].link + 2]++;
	TRY(TEMP_EACH(ctx, n, s->flow, s->times));
	for (int l = 0; l < net->n_links; l++)
		s->first[l + 2] += s->first[l + 1];
	for (int f = 0; f < net->n_flows; f++)
		for (int i = 0; i < net->flow[f].n_places; i++) {
			const struct net_place *place = &net->place[net->flow[f].first_place + i];
			int at = s->first[place->link + 1]++;
			s->flow[at] = f;
			s->times[at] = place->times;
		}
	return OK;
}

static bool
same_flows(const struct sharing *s, int a, int b)
{
	int n = s->first[a + 1] - s->first[a];
	bool same = n == s->first[b + 1] - s->first[b];
	for (int i = 0; same && i < n; i++)
		same = s->flow[s->first[a] + i] == s->flow[s->first[b] + i] &&
		    s->times[s->first[a] + i] == s->times[s->first[b] + i];
	return same;
}

/* Of the links of the first flow of this one, the first that has the same flows: itself, if no other does. */
static int
first_alike(const struct net *net, const struct sharing *s, int link)
{
	const struct net_flow *flow = &net->flow[s->flow[s->first[link]]];
	int first = link;
	for (int i = 0; i < flow->n_places; i++) {
		int other = net->place[flow->first_place + i].link;
		if (other < first && same_flows(s, other, link))
			first = other;
	}
	return first;
}

static Status
find_slowest(Ctx *ctx, const struct net *net, struct sharing *s, int *same)
{
	TRY(TEMP(ctx, s->slowest, net->n_links));
	for (int l = 0; l < net->n_links; l++) {
		same[l] = s->first[l] < s->first[l + 1] ? first_alike(net, s, l) : l;
		if (same[l] == l || net->rate[l] < net->rate[s->slowest[same[l]]])
			s->slowest[same[l]] = l;
	}
	for (int l = 0; l < net->n_links; l++)
		same[l] = s->slowest[same[l]];
	return OK;
}

/* Of links that have the same flows one is kept. */
static Status
merge_links(Ctx *ctx, struct net *net)
{
	struct sharing s;
	int *same, n = 0;
	TRY(list_flows(ctx, net, &s));
	TRY(TEMP(ctx, same, net->n_links));
	TRY(find_slowest(ctx, net, &s, same));
	TRY(TEMP(ctx, net->flow_place, s.first[net->n_links]));
	for (int f = 0; f < net->n_flows; f++) {
		struct net_flow *flow = &net->flow[f];
		int first = n;
		for (int i = 0; i < flow->n_places; i++) {
			struct net_place place = net->place[flow->first_place + i];
			if (same[place.link] == place.link)
				net->flow_place[n++] = place;
		}
		*flow = (struct net_flow){ first, n - first };
	}
	for (int l = 0; l < net->plan->sched->topo->n_links; l++)
		net->link_class[l] = same[net->link_class[l]];
	return OK;
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
			net->flow[net->n_flows] = (struct net_flow){ hop->first_place, hop->n_places };
			f.key[key] = ++net->n_flows;
		}
		hop->flow = f.key[key] - 1;
	}
	return merge_links(ctx, net);
}
