/* Trees of one length for an allreduce over servers whose switches and uplinks both limit it, turned back: of T trees k
 * cross a link, if k / T of the rate is no more than both its directions have room for. Every rank is in all trees: so
 * T less those of its own hub enter it, over its uplink and the switch of its server (unequal_level.c). Of all T that
 * one is taken with which the rate is highest:
 *
 *     16 racks of 72 GPUs, one of which lost a GPU    T = 1160    61 over the NIC and 1098 over the switch, and one
 *                                                                 of its own: 0.999993 of the bound
 *
 * Where that is not close to the bound, or a schedule may not have as many, most trees stand for several that are the
 * same: of T = 1681 771 for two. The two kinds are planned one after the other, each with rooms of its own. A server
 * that is no hub would not send what its uplinks have room for: each has as many hubs as that takes.
 *
 * Which trees enter over which uplink unequal_hops.c and unequal_deal.c say, and which GPUs send to how many others of
 * their server unequal_spread.c. One that has no uplink, and so is no entry, is the hub of as many trees as it can
 * send. */
#include "plan/pack/cluster/unequal_deal.h"
#include "plan/pack/cluster/unequal_slots.h"

#include <string.h>

enum { LONE = 6 };	/* trees that are alone, where others are not: for each server, and each GPU of a server */

struct slots {
	struct plan *p;
	struct rails rails;
	double rate, chosen;	/* bound; that of the slots, bytes/s */
	/* Of T trees: what links have room for in both directions, of each uplink and each rank's to its switch. */
	int64_t *uplink_room, *switch_room;
	int64_t *uplink_enters, *beside, *enters;	/* of uplinks; over those of each rank; over its switch */
	int64_t *hubs;		/* of each server */
};

/* n trees of one length, `weight` slots. */
struct kind {
	int64_t n, weight;
	int64_t *uplink_room, *switch_room, *hubs;
};

static Status
new_slots(struct plan *p, struct slots *out)
{
	int n = p->topo->n_ranks;
	*out = (struct slots){ .p = p, .rate = frac_double(p->rate) * (double)p->c.unit };
	TRY(unequal_find_rails(p, &out->rails));
	TRY(TEMP_EACH(p->ctx, p->c.n_uplinks[0], out->uplink_room, out->uplink_enters));
	TRY(TEMP_EACH(p->ctx, n, out->switch_room, out->beside, out->enters));
	return TEMP(p->ctx, out->hubs, p->c.n_servers);
}

/* ---- how many trees ---- */

/* What enters ranks over uplinks. */
static void
add_up_ranks(struct slots *x)
{
	const Cluster *c = &x->p->c;
	memset(x->beside, 0, (size_t)x->p->topo->n_ranks * sizeof *x->beside);
	for (int i = 0; i < c->n_uplinks[0]; i++)
		x->beside[c->uplink[0][i].rank] += x->uplink_enters[i];
}

/* Of these rooms. */
static void
set_beside(struct slots *x, const int64_t *uplink_room)
{
	unequal_rails_enter(&x->rails, uplink_room, x->uplink_enters);
	add_up_ranks(x);
}

/* Of a server: as many as send what leaves it over each uplink, to all others, and one where that is uneven. */
static int64_t
sending_hubs(const struct slots *x, const struct cluster_server *server)
{
	int64_t most = 0, others = x->p->c.n_servers - 1;
	for (int i = 0; i < server->n_uplinks[0]; i++) {
		int64_t sends = x->uplink_enters[server->first_uplink[0] + i];
		most = sends > most ? sends : most;
	}
	return most / others + 1;
}

/* Of a server: those of its GPUs that must be, and of it as a whole. */
static int64_t
least_hubs(const struct slots *x, const struct cluster_server *server, int64_t n_slots)
{
	int64_t sum = 0, outside = 0;
	for (int i = 0; i < server->n; i++) {
		int v = x->p->c.rank[server->first + i];
		int64_t lack = n_slots - x->enters[v] - x->beside[v];
		sum += lack > 0 ? lack : 0;
		outside += x->beside[v];
	}
	int64_t least = sending_hubs(x, server);
	least = sum > least ? sum : least;
	return n_slots - outside > least ? n_slots - outside : least;
}

/* How many hubs a server may have at most, as it has as many hops out as in: each of h hubs sends to all other servers,
 * and hops that turn take a hub with them (unequal_hops.c), so that h less t enter n - 1 servers with t hops less. */
static int64_t
most_hubs(const struct slots *x, int s)
{
	const Cluster *c = &x->p->c;
	const struct cluster_server *server = &c->server[s];
	int64_t spare = -x->hubs[s];
	for (int i = 0; i < server->n; i++)
		spare += x->beside[c->rank[server->first + i]];
	return spare > 0 ? spare / (c->n_servers - 2) : 0;
}

/* Rooms, and the hubs of each server, with this rate, bytes/s. Returns how many slots remain, or may be more; below 0:
 * it is too high. */
static int64_t
slots_left(struct slots *x, int64_t n_slots, double rate)
{
	const struct plan *p = x->p;
	const Cluster *c = &p->c;
	const double times = 2 * (double)n_slots / rate, least = 1e-9;
	int64_t left = n_slots, more = -n_slots, before = 0, shared = 0;
	/* Of uplinks that share a link what it has room for, as evenly as may be. */
	for (int i = 0; i < c->n_uplinks[0]; i++) {
		bool first = i == 0 || !cluster_share_link(c, i - 1, i);
		before = first ? 0 : before + x->uplink_room[i - 1];
		shared = (first ? 0 : shared) + c->uplink[0][i].capacity;
		x->uplink_room[i] = (int64_t)((double)shared * (double)c->unit * times + least) - before;
	}
	for (int v = 0; v < p->topo->n_ranks; v++)
		x->switch_room[v] = c->down[v] < 0 ? 0
		    : (int64_t)((double)p->topo->link[c->down[v]].capacity * times + least);
	set_beside(x, x->uplink_room);
	unequal_level(p, x->switch_room, x->beside, x->enters);
	for (int s = 0; s < c->n_servers; s++)
		left -= x->hubs[s] = least_hubs(x, &c->server[s], n_slots);
	for (int s = 0; s < c->n_servers && c->n_servers > 2; s++)
		more += most_hubs(x, s);
	/* Below narrow leaf switches other servers pass trees on. */
	return c->n_servers > 2 && more < 0 && !p->leaf ? more : left;
}

/* The highest rate of T trees, if it is higher than `rate`. */
static double
slots_rate(struct slots *x, int64_t n_slots, double rate)
{
	enum { HALVINGS = 40 };
	double low = rate, high = x->rate;
	if (slots_left(x, n_slots, low) < 0)
		return rate;
	for (int i = 0; i < HALVINGS; i++) {
		double middle = (low + high) / 2;
		bool fits = slots_left(x, n_slots, middle) >= 0;
		low = fits ? middle : low;
		high = fits ? high : middle;
	}
	return low;
}

/* Trees that are alone where others are not: as many as uplinks can be dealt to, or half of all. */
static int
lone_trees(const struct slots *x, int most)
{
	const Cluster *c = &x->p->c;
	int n = c->n_servers;
	for (int s = 0; s < c->n_servers; s++)
		n = c->server[s].n > n ? c->server[s].n : n;
	return LONE * n < most / 2 ? LONE * n : most / 2;
}

/* Rooms and hubs of as many slots as have the highest rate; *n_slots: 0: none. most: trees; weight: of one at most. */
static void
choose_slots(struct slots *x, int most, int weight, int *n_slots)
{
	const double gain = 1e-6, gain_of_two = 2e-5;	/* for which slots are more; trees are of two lengths */
	int most_slots = weight > 1 ? weight * (most - lone_trees(x, most)) : 0;
	double rate = x->rate / 2;
	*n_slots = 0;
	for (int slots = most / 2; slots <= most || slots <= most_slots; slots++) {
		double least = rate * (1 + (slots > most ? gain_of_two : gain));
		double found = slots_rate(x, slots, least);
		*n_slots = found > least ? slots : *n_slots;
		rate = *n_slots == slots ? found : rate;
	}
	if (*n_slots == 0)
		return;
	x->chosen = rate;
	int64_t left = slots_left(x, *n_slots, rate), n_servers = x->p->c.n_servers;
	for (int64_t s = 0; s < n_servers; s++)
		x->hubs[s] += left * (s + 1) / n_servers - left * s / n_servers;
}

/* ---- two kinds ---- */

static Status
new_kind(const struct plan *p, struct kind *out)
{
	*out = (struct kind){ .weight = 1 };
	TRY(TEMP(p->ctx, out->uplink_room, p->c.n_uplinks[0]));
	TRY(TEMP(p->ctx, out->switch_room, p->topo->n_ranks));
	return TEMP(p->ctx, out->hubs, p->c.n_servers);
}

/* Part i of n that is divided in proportion to weights, of which `before` and `sum` come before and up to it. */
static int64_t
share_of(int64_t n, int64_t before, int64_t own, int64_t sum)
{
	return sum > 0 ? (int64_t)((Wide)n * (before + own) / sum - (Wide)n * before / sum) : 0;
}

/* How many are of what weight, where slots are more than trees. */
static void
divide_slots(const struct slots *x, int64_t n_slots, int most, struct kind *multiples, struct kind *lone)
{
	int n_lone = lone_trees(x, most);
	multiples->weight = 2;
	while (n_slots > multiples->weight * (most - n_lone))
		multiples->weight++;
	multiples->n = (n_slots - n_lone) / multiples->weight;
	lone->n = n_slots - multiples->weight * multiples->n;
}

/* Multiples have about their part of the uplinks, in both directions of each as much: what rounding takes from one rail
 * others have. */
static void
divide_uplinks(const struct slots *x, int64_t n_slots, struct kind *multiples, struct kind *lone)
{
	for (int64_t r = 0; r < x->rails.n; r++)
		for (int k = x->rails.first[r]; k < x->rails.first[r + 1]; k++) {
			int i = x->rails.uplink[k];
			int64_t room = x->uplink_room[i], most = room / (2 * multiples->weight);
			int64_t half = share_of(room * multiples->n, r, 1, 2 * n_slots);
			half = half < most ? half : most;
			multiples->uplink_room[i] = 2 * half;
			lone->uplink_room[i] = room - multiples->weight * 2 * half;
		}
}

/* The server of which lone trees have most, or least, more hubs than their part, within bounds. -1: none. */
static int
server_to_change(const struct slots *x, const struct kind *multiples, const struct kind *lone, const int64_t *bound,
    int sign)
{
	int64_t n_slots = lone->n + multiples->weight * multiples->n, most = INT64_MIN;
	int best = -1;
	for (int s = 0; s < x->p->c.n_servers; s++) {
		int64_t own = x->hubs[s] - multiples->weight * multiples->hubs[s];
		int64_t more = sign * (own * n_slots - x->hubs[s] * lone->n);
		if (more > most && multiples->hubs[s] != bound[s]) {
			most = more;
			best = s;
		}
	}
	return best;
}

/* And of the hubs: each server has what it takes to send, of either kind. *good: false: it has not as many. */
static Status
divide_hubs(struct slots *x, struct kind *multiples, struct kind *lone, bool *good)
{
	const Cluster *c = &x->p->c;
	int64_t n_slots = lone->n + multiples->weight * multiples->n, left = multiples->n, *least, *most;
	TRY(TEMP_EACH(x->p->ctx, c->n_servers, least, most));
	set_beside(x, lone->uplink_room);
	for (int s = 0; s < c->n_servers; s++)
		most[s] = (x->hubs[s] - sending_hubs(x, &c->server[s])) / multiples->weight;
	set_beside(x, multiples->uplink_room);
	for (int s = 0; s < c->n_servers; s++) {
		int64_t hubs = x->hubs[s] * multiples->n / n_slots;
		least[s] = sending_hubs(x, &c->server[s]);
		hubs = hubs > most[s] ? most[s] : hubs;
		left -= multiples->hubs[s] = hubs < least[s] ? least[s] : hubs;
		*good = *good && least[s] <= most[s];
	}
	while (left != 0 && *good) {
		int sign = left > 0 ? 1 : -1, s = server_to_change(x, multiples, lone, left > 0 ? most : least, sign);
		*good = s >= 0;
		if (*good)
			multiples->hubs[s] += sign;
		left -= sign;
	}
	for (int s = 0; s < c->n_servers; s++)
		lone->hubs[s] = x->hubs[s] - multiples->weight * multiples->hubs[s];
	return OK;
}

/* Multiples have of switches what they need, with these uplinks and hubs. */
static void
set_multiples(struct slots *x, struct kind *multiples)
{
	const Cluster *c = &x->p->c;
	for (int s = 0; s < c->n_servers; s++) {
		const struct cluster_server *server = &c->server[s];
		int64_t inside = server->n * multiples->n, all = 0, sum = 0;
		for (int i = 0; i < server->n; i++) {
			inside -= x->beside[c->rank[server->first + i]];
			all += x->switch_room[c->rank[server->first + i]];
		}
		inside = 2 * (inside - multiples->hubs[s]);
		for (int i = 0; i < server->n; i++) {
			int v = c->rank[server->first + i];
			multiples->switch_room[v] = share_of(inside, sum, x->switch_room[v], all);
			sum += x->switch_room[v];
		}
	}
}

/* What multiples leave. *good: false: that is not there. */
static void
set_lone(const struct slots *x, const struct kind *multiples, struct kind *lone, bool *good)
{
	for (int v = 0; v < x->p->topo->n_ranks; v++) {
		lone->switch_room[v] = x->switch_room[v] - multiples->weight * multiples->switch_room[v];
		*good = *good && lone->switch_room[v] >= 0;
	}
}

/* ---- trees of a kind ---- */

/* Of n hubs of a server, those of a GPU that would be entry too seldom to send what it may. */
static int64_t
own_hubs(const struct slots *x, const struct kind *kind, const struct cluster_server *server, int v)
{
	int64_t sends = kind->switch_room[v] - (kind->n - x->beside[v]) - x->beside[v] * server->n / 2;
	return sends > 0 && server->n > 2 ? (sends + server->n - 3) / (server->n - 2) : 0;
}

/* own: of each rank of a server how many hubs it is: those that it would be, or in proportion to these, where they are
 * more than there are; the others are of all other ranks, as many of each. */
static void
share_hubs(const struct slots *x, const struct kind *kind, const struct cluster_server *server, int64_t n_hubs,
    int64_t *own)
{
	const Cluster *c = &x->p->c;
	int64_t sum = 0, before = 0, n = 0;
	for (int i = 0; i < server->n; i++) {
		int v = c->rank[server->first + i];
		sum += own[v] = own_hubs(x, kind, server, v);
		n += own[v] == 0;
	}
	for (int i = 0, k = 0; i < server->n; i++) {
		int v = c->rank[server->first + i];
		int64_t wanted = own[v];
		if (sum > n_hubs)
			own[v] = share_of(n_hubs, before, wanted, sum);
		else if (wanted == 0 || n == 0)
			own[v] += share_of(n_hubs - sum, k++, 1, n > 0 ? n : server->n);
		before += wanted;
	}
}

static Status
place_hubs(struct slots *x, const struct kind *kind, struct plan *p)
{
	const Cluster *c = &p->c;
	int64_t *own;
	TRY(TEMP(p->ctx, own, p->topo->n_ranks));
	TRY(TEMP(p->ctx, p->hub, kind->n));
	p->n_hubs = 0;
	for (int s = 0; s < c->n_servers; s++) {
		share_hubs(x, kind, &c->server[s], kind->hubs[s], own);
		for (int i = 0; i < c->server[s].n; i++) {
			int v = c->rank[c->server[s].first + i];
			x->beside[v] += own[v];
			for (int64_t t = 0; t < own[v]; t++)
				p->hub[p->n_hubs++] = (struct hub){ .rank = v, .server = s, .uplink = -1, .length = 1 };
		}
	}
	return OK;
}

static Status
set_switch_rooms(const struct slots *x, const struct kind *kind, struct plan *p)
{
	int n = p->topo->n_ranks;
	TRY(TEMP_EACH(p->ctx, n, p->switch_room[UPLINK_OUT], p->switch_room[UPLINK_IN]));
	unequal_level(p, kind->switch_room, x->beside, p->switch_room[UPLINK_IN]);
	for (int v = 0; v < n; v++)
		p->switch_room[UPLINK_OUT][v] = kind->switch_room[v] - p->switch_room[UPLINK_IN][v];
	for (int side = 0; side < 2; side++)
		TRY(TEMP(p->ctx, p->room[side], p->c.n_uplinks[side]));
	return OK;
}

/* Over rails. */
static Status
enter_by_hops(struct slots *x, const struct kind *kind, struct plan *p, bool *good)
{
	struct hops hops;
	TRY(unequal_put_hops(p, &x->rails, kind->uplink_room, &hops));
	TRY(unequal_turn_hops(&hops, kind->hubs));
	unequal_exchange_hops(&hops, kind->hubs);
	unequal_hops_enter(&hops, x->uplink_enters);
	add_up_ranks(x);
	TRY(place_hubs(x, kind, p));
	TRY(set_switch_rooms(x, kind, p));
	return unequal_deal(p, &hops, good);
}

/* Below narrow leaf switches, with as much room of uplinks and links between these as trees have of all slots. */
static Status
enter_leaves(struct slots *x, const struct kind *kind, struct plan *p, bool *good)
{
	double excess;
	set_beside(x, kind->uplink_room);
	TRY(place_hubs(x, kind, p));
	TRY(set_switch_rooms(x, kind, p));
	for (int i = 0; i < p->c.n_uplinks[0]; i++) {
		p->room[UPLINK_IN][i] = x->uplink_enters[i];
		p->room[UPLINK_OUT][i] = kind->uplink_room[i] - x->uplink_enters[i];
	}
	TRY(unequal_fill_leaves(p, (double)kind->n / x->chosen, good));
	return *good ? unequal_add_copies(p, &excess) : OK;
}

/* Appended to *pack. */
static Status
add_kind(struct slots *x, const struct kind *kind, Packing *pack, bool *good)
{
	struct plan p = *x->p;
	Packing own = { 0 };
	TRY(p.leaf ? enter_leaves(x, kind, &p, good) : enter_by_hops(x, kind, &p, good));
	if (*good)
		TRY(unequal_spread_trees(&p, &own, good));
	for (int t = 0; t < own.n_trees && *good; t++) {
		pack->tree[pack->n_trees] = own.tree[t];
		pack->demand[pack->n_trees] = own.demand[t];
		pack->weight[pack->n_trees++] = own.weight[t] * kind->weight;
	}
	return OK;
}

static Status
add_multiples(struct slots *x, int n_slots, int most, struct kind *lone, Packing *pack, bool *good)
{
	struct kind multiples;
	TRY(new_kind(x->p, &multiples));
	TRY(new_kind(x->p, lone));
	divide_slots(x, n_slots, most, &multiples, lone);
	divide_uplinks(x, n_slots, &multiples, lone);
	TRY(divide_hubs(x, &multiples, lone, good));
	set_multiples(x, &multiples);
	set_lone(x, &multiples, lone, good);
	return *good ? add_kind(x, &multiples, pack, good) : OK;
}

static Status
add_slots(struct slots *x, int most, int weight, Packing *pack, bool *good)
{
	int n_slots;
	choose_slots(x, most, weight, &n_slots);
	*good = n_slots > 0;
	if (!*good)
		return OK;
	struct kind lone = { n_slots, 1, x->uplink_room, x->switch_room, x->hubs };
	pack->n_trees = 0;
	if (n_slots > most)
		TRY(add_multiples(x, n_slots, most, &lone, pack, good));
	return *good ? add_kind(x, &lone, pack, good) : OK;
}

Status
unequal_slot_trees(struct plan *p, Packing *pack, bool *good)
{
	int most = 2 * p->topo->n_ranks;
	struct slots x;
	*good = cluster_sides_agree(&p->c);
	if (!*good)
		return OK;
	TRY(cluster_near_uplinks(&p->c));
	/* A rail has uplinks of servers below all leaf switches. */
	for (int side = 0; side < 2 && p->leaf; side++)
		for (int i = 0; i < p->c.n_uplinks[side]; i++)
			p->c.uplink[side][i].network = 0;
	p->c.n_networks = p->leaf ? 1 : p->c.n_networks;
	while (!unequal_may_have(p, most))
		most--;
	TRY(new_slots(p, &x));
	TRY(pack_room(p->ctx, (size_t)most, true, pack));
	return add_slots(&x, most, p->max_ratio, pack, good);
}
