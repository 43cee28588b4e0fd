/* Clusters of unequal servers: each has a switch of its own that all of its GPUs are on, and uplinks to one network or
 * to several, as rails, which some of its GPUs may share (servers.c). The linear program knows no symmetry between
 * servers of different sizes, and one that lost a GPU is enough. Here trees have one hop between servers:
 *
 *     tree of a hub      hub -> over an uplink of its server and one of the other -> one GPU of each other server
 *                        each of these, and the hub -> the GPUs of its server, over its switch
 *
 * Allgather, reducescatter: every rank is the hub of its own tree. Allreduce: there is a hub for each uplink of a
 * server. A tree of rate x over n servers loads the hub's server n - 1 times and every other one once, so that at the
 * rate R of all trees together
 *
 *     R - x[s] + (n - 1) x[s] = capacity[s]     x[s] in proportion to capacity[s] - R
 *
 * and hubs of a server are in proportion to the capacities of their uplinks. What remains is which uplinks a tree
 * takes. They are filled one tree after the other: first, between uplinks of the same number or the same network; then,
 * what is left, whole trees where there is most room; and at last trees are divided among several uplinks:
 *
 *     rail                    0     1     2     3      4 servers of 4 GPUs, one of which lost that on rail 3;
 *     hubs of others on it    3     3     3     3      trees that enter it over their rails, and those of rail 3
 *     enter it over           3+1   3+1   3+1   -      over the other three
 *
 * Where servers of equal sizes form units, as those of a DGX SuperPOD, a tree begins with the servers of its hub's unit
 * that come after it, around, and goes on to the next unit. So hubs do not all send to the same server first, and trees
 * are images of each other, edge by edge.
 *
 * So there are hardly more trees than hubs. What does not fit is put where it overloads least, unless the linear
 * program of unequal_program.c has a better division, and the rate is that of the most loaded link.
 *
 * Where that is below the bound, as the switches of large servers are what limits it, trees enter a server over several
 * uplinks (unequal_copies.c), and GPUs pass on what their links have room for (unequal_spread.c); below narrow leaf
 * switches servers pass trees on as well (unequal_leaves.c). An allreduce then has
 * the trees of an allgather, turned back (unequal_lengths.c), or such trees of one length (unequal_slots.c). */
#include "plan/pack/cluster/cluster.h"
#include "plan/pack/cluster/unequal_slots.h"

#include <math.h>
#include <string.h>

enum {
	WEIGHT_BITS = 60
};

/* ---- weights ---- */

/* False: more than WEIGHT_BITS. */
static bool
multiply(int64_t a, int64_t b, int64_t *out)
{
	Wide product = (Wide)a * b;
	if (product < 0 || product >> WEIGHT_BITS != 0)
		return false;
	*out = (int64_t)product;
	return true;
}

/* Each rank; of an allreduce, turned, with the lengths that this takes. */
static Status
hub_each_rank(struct plan *p, bool *good)
{
	const Cluster *c = &p->c;
	int n = p->topo->n_ranks;
	p->n_hubs = n;
	TRY(TEMP(p->ctx, p->hub, n));
	for (int v = 0; v < n; v++)
		p->hub[v] = (struct hub){ .rank = v, .server = c->of[v], .uplink = -1, .length = 1 };
	for (int i = c->n_uplinks[p->hub_side] - 1; i >= 0; i--)
		p->hub[c->uplink[p->hub_side][i].rank].uplink = i;
	*good = true;
	if (p->turned)
		TRY(unequal_set_lengths(p, good));
	/* Of an allreduce each rank that has an uplink. */
	if (p->coll == ALLREDUCE)
		p->n_hubs = 0;
	for (int v = 0; v < n && p->coll == ALLREDUCE; v++)
		if (p->hub[v].uplink >= 0)
			p->hub[p->n_hubs++] = p->hub[v];
	return OK;
}

static int64_t
least_multiple(const Cluster *c)
{
	int64_t common = 1;
	for (int s = 0; s < c->n_servers; s++)
		if (!multiply(common / gcd64(common, c->server[s].capacity[0]), c->server[s].capacity[0], &common))
			return 0;
	return common;
}

/* Servers one after the other; with p->per_server a hub for several uplinks, which none of them belongs to. */
static Status
hub_each_uplink(struct plan *p, bool *good)
{
	const Cluster *c = &p->c;
	int64_t common = least_multiple(c);
	*good = common > 0 && cluster_sides_agree(c);
	TRY(TEMP(p->ctx, p->hub, c->n_uplinks[0]));
	for (int s = 0; s < c->n_servers && *good; s++) {
		const struct cluster_server *server = &c->server[s];
		int64_t spare = 0, share = 0;
		*good = multiply(server->capacity[0], p->rate.den, &spare) && spare >= p->rate.num
		    && multiply(spare - (int64_t)p->rate.num, common / server->capacity[0], &spare);
		for (int i = 0; i < server->n_uplinks[0] && *good; i++) {
			int w = server->first_uplink[0] + i;
			*good = multiply(spare, c->uplink[0][w].capacity, &share);
			if (share == 0)
				continue;
			if (p->per_server && p->n_hubs > 0 && p->hub[p->n_hubs - 1].server == s
			    && (i - 1) * p->per_server / server->n_uplinks[0]
			    == i * p->per_server / server->n_uplinks[0])
				p->hub[p->n_hubs - 1].length += share;
			else
				p->hub[p->n_hubs++] = (struct hub){ c->uplink[0][w].rank, s, p->per_server ? -1 : w,
				    share };
		}
	}
	return OK;
}

/* Units are such that rooms of switches are whole numbers as well, and halves of all rooms. */
static int64_t
finer_units(const struct plan *p)
{
	const Cluster *c = &p->c;
	int64_t finer = 1;
	bool fits = true;
	for (int v = 0; v < p->topo->n_ranks && fits && p->copies; v++)
		for (int side = 0; side < 2 && c->up[v] >= 0; side++) {
			int64_t capacity = p->topo->link[side ? c->up[v] : c->down[v]].capacity, common;
			common = gcd64(capacity, c->unit);
			fits = fits && multiply(finer / gcd64(finer, c->unit / common), c->unit / common, &finer);
		}
	return fits && p->copies ? 2 * finer : 1;
}

/* Weights of hubs and rooms of uplinks in units that make all of them whole numbers: the rate is that of `sum`. */
/* What the ranks of a server have together is counted, too, and what all uplinks have. all: weight of all trees. */
static bool
sums_fit(const struct plan *p, Wide all)
{
	enum { SUM_BITS = 62 };
	Wide sum[2] = { 0 };
	int most = 0;
	for (int side = 0; side < 2; side++)
		for (int i = 0; i < p->c.n_uplinks[side]; i++)
			sum[side] += p->room[side][i];
	for (int s = 0; s < p->c.n_servers; s++)
		most = p->c.server[s].n > most ? p->c.server[s].n : most;
	return all >> WEIGHT_BITS == 0 && all * most >> WEIGHT_BITS == 0 && sum[0] >> SUM_BITS == 0
	    && sum[1] >> SUM_BITS == 0;
}

static Status
scale(struct plan *p, bool *good)
{
	const Cluster *c = &p->c;
	int64_t sum = 0, common = (int64_t)p->rate.num, times = 0, room = 0;
	*good = frac_fits(p->rate) && p->rate.num >> WEIGHT_BITS == 0;
	for (int h = 0; h < p->n_hubs && *good; h++) {
		sum += p->hub[h].length;
		*good = sum >> WEIGHT_BITS == 0;
	}
	*good = *good && sum > 0 && multiply(sum, p->rate.den, &times);
	if (!*good)
		return OK;
	common = gcd64(times, common);
	times /= common;
	int64_t length = (int64_t)p->rate.num / common, finer = finer_units(p);
	*good = multiply(times, finer, &times) && multiply(length, finer, &length);
	p->times = times;
	for (int side = 0; side < 2; side++)
		TRY(TEMP(p->ctx, p->room[side], c->n_uplinks[side]));
	TRY(TEMP(p->ctx, p->reserved, c->n_uplinks[0]));
	for (int side = 0; side < 2; side++)
		for (int i = 0; i < c->n_uplinks[side] && *good; i++) {
			*good = multiply(c->uplink[side][i].capacity, times, &room);
			p->room[side][i] = room;
		}
	for (int h = 0; h < p->n_hubs && *good; h++)
		*good = multiply(p->hub[h].length, length, &p->hub[h].length)
		    && (sum * (Wide)length) >> WEIGHT_BITS == 0;
	*good = *good && (!p->copies || sums_fit(p, sum * (Wide)length));
	if (p->coll == ALLREDUCE)
		p->room[1] = p->room[0];
	return *good && p->turned ? unequal_level_switches(p) : OK;
}

/* ---- filling the uplinks ---- */

/* What trees of this hub find on an uplink of its server. */
static int64_t
own_room(const struct plan *p, const struct hub *hub, int own)
{
	return p->room[p->hub_side][own] + (p->coll == ALLREDUCE && own == hub->uplink ? p->reserved[own] : 0);
}

/* Whole trees over uplinks of the same number or network, between servers of one type, or of two. */
static Status
fill_like(struct plan *p, bool one_type)
{
	const struct cluster_server *server = p->c.server;
	for (int h = 0; h < p->n_hubs; h++) {
		const struct hub *hub = &p->hub[h];
		for (int s = 0; s < p->c.n_servers && hub->uplink >= 0; s++) {
			if (s == hub->server || (server[s].type == server[hub->server].type) != one_type)
				continue;
			int uplink = unequal_like_uplink(p, hub->uplink, hub->server, s);
			if (uplink >= 0 && p->room[p->leaf_side][uplink] >= hub->length
			    && own_room(p, hub, hub->uplink) >= hub->length)
				TRY(unequal_add_piece(p, h, s, uplink, hub->uplink, hub->length));
		}
	}
	return OK;
}

/* The two uplinks with the most room, of those that lead to each other; *uplink -1: there are none. Returns the room,
 * which counts up to `length`; then the hub's own uplink is better, and then most room of the other. */
static int64_t
widest_uplinks(const struct plan *p, const struct hub *hub, int s, int64_t length, int *uplink, int *own)
{
	const struct cluster_server *from = &p->c.server[hub->server], *to = &p->c.server[s];
	int64_t best = INT64_MIN;
	*uplink = -1;
	for (int i = 0; i < from->n_uplinks[p->hub_side]; i++) {
		int a = from->first_uplink[p->hub_side] + i;
		int64_t there = own_room(p, hub, a);
		for (int k = 0; k < to->n_uplinks[p->leaf_side]; k++) {
			int b = to->first_uplink[p->leaf_side] + k;
			int64_t room = p->room[p->leaf_side][b], least = room < there ? room : there;
			least = least > length ? length : least;
			if (*uplink >= 0 && (least < best || (least == best
			    && ((*own == hub->uplink && a != hub->uplink)
			    || ((*own == hub->uplink) == (a == hub->uplink)
			    && room <= p->room[p->leaf_side][*uplink])))))
				continue;
			if (!unequal_joined(p, a, b))
				continue;
			best = least;
			*uplink = b;
			*own = a;
		}
	}
	return best;
}

/* Server s enters the trees of hub h over any uplinks. */
static Status
fill_server(struct plan *p, int h, int s, bool *good)
{
	const struct hub *hub = &p->hub[h];
	int uplink, own;
	for (int64_t left = hub->length, part; left > 0 && *good; left -= part) {
		int64_t room = widest_uplinks(p, hub, s, left, &uplink, &own);
		*good = uplink >= 0;
		part = room <= 0 || room > left || p->whole ? left : room;
		if (*good)
			TRY(unequal_add_piece(p, h, s, uplink, own, part));
	}
	return OK;
}

/* Reserved for trees of its own hub that enter like uplinks. */
static void
reserve(struct plan *p)
{
	for (int h = 0; h < p->n_hubs && p->coll == ALLREDUCE && !p->whole; h++) {
		const struct hub *hub = &p->hub[h];
		for (int s = 0; s < p->c.n_servers; s++)
			if (s != hub->server
			    && (p->c.n_networks == 1 || unequal_like_uplink(p, hub->uplink, hub->server, s) >= 0))
				p->reserved[hub->uplink] += hub->length;
		p->room[0][hub->uplink] -= p->reserved[hub->uplink];
	}
}

/* No uplink is overloaded. */
static bool
fits(const struct plan *p)
{
	bool fit = true;
	for (int side = 0; side < 2; side++)
		for (int i = 0; i < p->c.n_uplinks[side] && fit; i++)
			fit = p->room[side][i] + (p->coll == ALLREDUCE ? p->reserved[i] : 0) >= 0;
	return fit;
}

static Status
fill(struct plan *p, bool *good)
{
	size_t n = (size_t)p->n_hubs * (size_t)p->c.n_servers;
	TRY(TEMP(p->ctx, p->first, n));
	TRY(TEMP(p->ctx, p->last, n));
	memset(p->first, -1, n * sizeof *p->first);
	memset(p->last, -1, n * sizeof *p->last);
	reserve(p);
	TRY(fill_like(p, true));
	TRY(fill_like(p, false));
	for (int s = 0; s < p->c.n_servers && *good; s++)
		for (int h = 0; h < p->n_hubs && *good; h++)
			if (p->hub[h].server != s && p->first[(size_t)h * (size_t)p->c.n_servers + (size_t)s] < 0)
				TRY(fill_server(p, h, s, good));
	return OK;
}

/* ---- the packing ---- */

/* Weights of fewer binary digits, where their sum has more than PACKING_BITS. Returns it. */
static int64_t
round_weights(Packing *pack, int64_t sum)
{
	int digits = 0;
	while (sum >> (PACKING_BITS - 1 + digits) != 0)
		digits++;
	sum = 0;
	for (int t = 0; t < pack->n_trees; t++) {
		pack->weight[t] = pack->weight[t] >> digits > 0 ? pack->weight[t] >> digits : 1;
		sum += pack->weight[t];
	}
	return sum;
}

/* The unit is that of the bound, or less, where some link is overloaded. */
static Status
set_unit(struct plan *p, const Bound *bound, Packing *pack, bool *good)
{
	int64_t common = 0, sum = 0, *load;
	Frac exact;
	for (int t = 0; t < pack->n_trees; t++)
		common = gcd64(pack->weight[t], common);
	for (int t = 0; t < pack->n_trees; t++)
		sum += pack->weight[t] /= common;
	/* Trees of an allgather have equal sums for each root. */
	*good = sum >> PACKING_BITS == 0 || p->coll == ALLREDUCE || p->turned;
	if (*good && sum >> PACKING_BITS != 0)
		sum = round_weights(pack, sum);
	TRY(TEMP(p->ctx, load, p->topo->n_links));
	*good = *good && frac_div(bound->rate, (Frac){ sum, 1 }, &exact)
	    && pack_widest_unit(p->topo, pack, load, &pack->unit);
	if (*good && frac_cmp(pack->unit, exact) > 0)
		pack->unit = exact;
	return OK;
}

/* One tree after the other; where uplinks of several networks do not suffice for that, by a linear program, unless it
 * has more trees than a schedule may have. */
static Status
fill_best(struct plan *p, int *n, bool *good)
{
	bool better = false;
	int n_better;
	TRY(fill(p, good));
	if (!*good)
		return OK;
	TRY(unequal_count_trees(p, n, good));
	if (p->c.n_networks == 1 || p->whole || fits(p))
		return OK;
	struct plan other = *p;
	TRY(unequal_by_program(&other, &better));
	if (better)
		TRY(unequal_count_trees(&other, &n_better, &better));
	if (!better)
		return OK;
	*p = other;
	*n = n_better;
	return *good = true, OK;
}

/* *n: of trees. */
static Status
fill_hubs(struct plan *p, int *n, bool *good)
{
	*good = true;
	p->n_hubs = p->n_pieces = 0;
	TRY(p->coll == ALLREDUCE ? hub_each_uplink(p, good) : hub_each_rank(p, good));
	*good = *good && unequal_may_have(p, p->n_hubs);
	if (*good)
		TRY(scale(p, good));
	return *good ? fill_best(p, n, good) : OK;
}

/* The same with whole trees alone, and of an allreduce with as few hubs as it takes: a little below the bound. */
static Status
fill_whole(struct plan *p, int *n, bool *good)
{
	int64_t each = (int64_t)p->c.n_servers * (p->topo->n_ranks - 1) * 2;
	int most = (int)(LIMIT_TREE_EDGES / each);
	p->whole = true;
	p->per_server = p->coll == ALLREDUCE && most < p->c.n_uplinks[0] / p->c.n_servers ? most : 0;
	*good = p->coll != ALLREDUCE || most > 0;
	return *good ? fill_hubs(p, n, good) : OK;
}

static Status
fill_evenly(struct plan *p, double *excess, bool *good)
{
	TRY(unequal_even_lengths(p));
	*good = unequal_may_have(p, p->n_hubs);
	if (*good)
		TRY(scale(p, good));
	if (*good)
		TRY(unequal_even_pieces(p, good));
	return *good ? unequal_add_copies(p, excess) : OK;
}

/* Hubs of equal lengths first, which make fewest pieces. */
static Status
fill_copies_at(struct plan *p, double *excess, bool *good)
{
	int n;
	p->n_pieces = 0;
	if (p->even)
		return fill_evenly(p, excess, good);
	TRY(hub_each_rank(p, good));
	*good = *good && unequal_may_have(p, p->n_hubs);
	if (*good)
		TRY(scale(p, good));
	if (*good)
		TRY(p->leaf ? unequal_fill_leaves(p, (double)p->times / (double)p->c.unit, good) : fill(p, good));
	if (p->coll == ALLREDUCE && !(*good && fits(p)))
		TRY(fill_hubs(p, &n, good));
	for (int i = 0; i < p->c.n_uplinks[0] && *good; i++) {
		p->room[0][i] += p->coll == ALLREDUCE ? p->reserved[i] : 0;
		p->reserved[i] = 0;
	}
	return *good ? unequal_add_copies(p, excess) : OK;
}

/* A little less than this rate, of BITS binary digits, as weights have room for no more. */
static bool
few_digits(double rate, Frac *out)
{
	enum { BITS = 20 };
	int exponent, few = (int)ldexp(frexp(rate, &exponent), BITS);
	exponent -= BITS;
	return exponent > -WEIGHT_BITS / 2 && exponent < WEIGHT_BITS - BITS
	    && frac_make((Wide)few << (exponent > 0 ? exponent : 0), (Wide)1 << (exponent < 0 ? -exponent : 0), out);
}

/* The bound may be above what any trees have: then at a lower rate. */
static Status
fill_copies(struct plan *p, bool *good)
{
	enum { MOST_TIMES = 6 };
	*good = (p->coll != ALLREDUCE || cluster_sides_agree(&p->c)) && (!p->even || p->c.n_networks > 1);
	double excess = 1;
	for (int i = 0; i < MOST_TIMES && *good && excess > 0; i++) {
		TRY(fill_copies_at(p, &excess, good));
		if (*good && excess > 0 && i + 1 < MOST_TIMES)
			*good = few_digits(frac_double(p->rate) * (1 - excess), &p->rate);
	}
	return OK;
}

static int64_t
switch_rate(const Cluster *c, int v)
{
	return c->down[v] < 0 ? 0 : c->topo->link[c->down[v]].capacity;
}

/* Equal servers of ranks that have the same links: the linear program has few rows. */
static bool
is_even(const Cluster *c)
{
	const struct cluster_server *server = &c->server[0];
	bool even = c->n_types == 1 && server->n_uplinks[0] % server->n == 0;
	for (int i = 0; i < server->n && even; i++) {
		int n = 0, v = c->rank[server->first + i];
		for (int k = 0; k < server->n_uplinks[0]; k++)
			n += c->uplink[0][server->first_uplink[0] + k].rank == v;
		even = n == server->n_uplinks[0] / server->n;
	}
	for (int v = 1; v < c->topo->n_ranks && even; v++)
		even = switch_rate(c, v) == switch_rate(c, 0);
	return even;
}

/* Each tree has a hop to each server but one, and an allreduce's one back: have all uplinks together room for these,
 * at a rate that is worth a search? Not where GPUs of different servers have links that are part of the bound, as in
 * HammingMeshes; nor where leaf switches have too little room for the hops between them. */
static Status
has_room(const struct plan *p, bool *good)
{
	const Cluster *c = &p->c;
	const double fair = 0.9, need = fair * frac_double(p->rate) * (p->coll == ALLREDUCE ? 2 : 1);
	double room = 0;
	int hops;
	for (int s = 0; s < c->n_servers; s++)
		room += (double)c->server[s].capacity[UPLINK_OUT];
	*good = room >= need * (c->n_servers - 1) && (!p->leaf || unequal_leaves_serve(p, fair));
	if (!*good || c->n_networks == 1 || p->leaf)
		return OK;
	TRY(cluster_room_between(c, &room, &hops));
	return *good = room >= need * hops, OK;
}

/* Of an allgather each GPU of a server receives all but its own block, over its switch or uplinks: where these are
 * fewer than GPUs, at a lower rate than a cut around any of them has. An allreduce's trees, turned, begin at any. */
static void
limit_rate(struct plan *p)
{
	const Cluster *c = &p->c;
	const Side leaf = p->leaf_side;
	const int n = p->topo->n_ranks;
	for (int s = 0; s < c->n_servers; s++) {
		const struct cluster_server *server = &c->server[s];
		Wide room = (Wide)server->capacity[leaf] * c->unit;
		Frac most;
		for (int i = server->first; i < server->first + server->n; i++) {
			const int *near = leaf == UPLINK_IN ? c->down : c->up;
			room += near[c->rank[i]] < 0 ? 0 : p->topo->link[near[c->rank[i]]].capacity;
		}
		if (frac_make(room * n, (Wide)server->n * (n - 1) * c->unit, &most) && frac_cmp(most, p->rate) < 0)
			p->rate = most;
	}
}

/* Where trees at the bound, whose parts have other entries, are too many for a schedule: the highest rate, or the next
 * one, and so on, at which the switch has room for a whole number of trees, so that as many come over uplinks. */
static bool
fit_whole_trees(struct plan *p)
{
	int64_t capacity = 0, n = p->topo->n_ranks;
	Frac trees, rate;
	for (int v = 0; v < p->topo->n_ranks; v++)
		capacity = switch_rate(&p->c, v) > capacity ? switch_rate(&p->c, v) : capacity;
	if (!frac_make((Wide)capacity * n, p->c.unit, &rate) || !frac_div(rate, p->rate, &trees) || trees.num <= 0)
		return false;
	return frac_div(rate, (Frac){ (trees.num - 1) / trees.den + p->whole_copies, 1 }, &p->rate);
}

static Status
plan_hubs(struct plan *p, const Bound *bound, Packing *pack, bool *good)
{
	int n;
	TRY((p->leaves == ALL_LEAVES ? cluster_read_leaves : cluster_read)(p->ctx, p->topo, &p->c, good));
	if (!*good || (is_even(&p->c) && !p->whole_copies))
		return *good = false, OK;
	TRY(cluster_merge_networks(&p->c));
	if (p->leaves != NO_LEAVES) {
		TRY(unequal_find_leaves(p));
		if (!p->leaf)
			return *good = false, OK;
	}
	*good = frac_div(bound->rate, (Frac){ p->c.unit, 1 }, &p->rate);
	if (*good)
		TRY(has_room(p, good));
	if (!*good)
		return OK;
	if (p->copies && p->coll != ALLREDUCE && !p->turned)
		limit_rate(p);
	if (p->whole_copies)
		*good = fit_whole_trees(p);
	if (!*good)
		return OK;
	if (p->max_ratio > 0) {
		TRY(unequal_slot_trees(p, pack, good));
		return *good ? set_unit(p, bound, pack, good) : OK;
	}
	if (p->copies)
		TRY(fill_copies(p, good));
	else if (!p->whole)
		TRY(fill_hubs(p, &n, good));
	if (p->whole || (!*good && !p->copies))
		TRY(fill_whole(p, &n, good));
	if (*good)
		TRY(p->copies ? unequal_spread_trees(p, pack, good) : unequal_make_trees(p, n, pack));
	return *good ? set_unit(p, bound, pack, good) : OK;
}

/* *out: NULL where there are none. p: what is planned, and whether of whole trees. */
static Status
pack_hubs(struct plan *p, const Bound *bound, Packing **out)
{
	Ctx *ctx = p->ctx;
	ArenaMark mark = arena_mark(&ctx->scratch);
	Collective coll = p->coll;
	bool good = (coll == ALLREDUCE || coll == ALLGATHER || coll == REDUCESCATTER) && bound->rate.num > 0
	    && !p->topo->route && !tree_shares(p->topo, coll);
	Packing *pack;
	*out = NULL;
	if (!good)
		return OK;
	p->hub_side = coll == REDUCESCATTER ? UPLINK_IN : UPLINK_OUT;
	p->leaf_side = coll == REDUCESCATTER ? UPLINK_OUT : UPLINK_IN;
	TRY(NEW(ctx, pack, 1));
	TRY(plan_hubs(p, bound, pack, &good));
	arena_release(&ctx->scratch, mark);
	*out = good ? pack : NULL;
	return OK;
}

/* b: may be NULL, as a may be. */
static bool
is_faster(const Packing *a, const Packing *b, Collective coll, int n_ranks)
{
	Frac rate, other;
	return a && pack_rate(a, coll, n_ranks, &rate)
	    && (!b || !pack_rate(b, coll, n_ranks, &other) || frac_cmp(rate, other) > 0);
}

Status
pack_unequal(Ctx *ctx, const Topology *topo, Collective coll, const Bound *bound, Packing **out, Packing **lower)
{
	struct plan p = { .ctx = ctx, .topo = topo, .coll = coll };
	Bound proof = *bound;
	Packing *pack, *other = NULL;
	*out = *lower = NULL;
	TRY(pack_hubs(&p, bound, &pack));
	pack_note_reached(pack, coll, topo->n_ranks, &proof);
	bool whole = pack && p.whole, wanted = !whole || coll == ALLREDUCE;
	for (int leaves = NO_LEAVES; leaves <= ALL_LEAVES && wanted && !proof.reached; leaves++) {
		struct plan more = { .ctx = ctx, .topo = topo, .coll = coll, .copies = true, .leaves = leaves };
		TRY(pack_hubs(&more, bound, &other));
		pack = is_faster(other, pack, coll, topo->n_ranks) ? other : pack;
		pack_note_reached(pack, coll, topo->n_ranks, &proof);
		wanted = coll != ALLREDUCE && (leaves == NO_LEAVES || more.c.has_single);
	}
	if (!pack)
		return OK;
	/* The linear program would have no fewer edges. */
	*(proof.reached || whole ? out : lower) = pack;
	pack->too_large = whole && !proof.reached;
	if (pack->too_large)
		log_verbose(ctx, "unequal servers: %d trees below the bound: those at it have more than %d edges",
		    pack->n_trees, LIMIT_TREE_EDGES);
	return OK;
}

/* Are trees of an allgather hardly below the bound? pack: may be NULL. */
static bool
is_near(const Packing *pack, const Bound *bound, int n_ranks)
{
	const double near = 0.9999;
	Frac rate;
	return pack && pack_rate(pack, ALLGATHER, n_ranks, &rate)
	    && frac_double(rate) >= near * frac_double(bound->rate);
}

Status
pack_unequal_turned(Ctx *ctx, const Topology *topo, const Bound *bound, int max_ratio, Packing **out)
{
	Bound twice = *bound;
	Packing *pack = NULL;
	bool wanted = true;
	*out = NULL;
	if (!frac_mul(bound->rate, (Frac){ 2, 1 }, &twice.rate))
		return OK;
	for (int leaves = NO_LEAVES; leaves <= ALL_LEAVES && wanted; leaves++) {
		struct plan p = { .ctx = ctx, .topo = topo, .coll = ALLGATHER, .copies = true, .turned = true,
			.max_ratio = max_ratio, .leaves = leaves };
		TRY(pack_hubs(&p, &twice, &pack));
		*out = is_faster(pack, *out, ALLGATHER, topo->n_ranks) ? pack : *out;
		wanted = (leaves == NO_LEAVES || p.c.has_single) && !is_near(*out, &twice, topo->n_ranks);
	}
	return OK;
}

Status
pack_unequal_even(Ctx *ctx, const Topology *topo, const Bound *bound, Packing **out)
{
	struct plan p = { .ctx = ctx, .topo = topo, .coll = ALLREDUCE, .copies = true, .even = true };
	return pack_hubs(&p, bound, out);
}

Status
pack_unequal_whole(Ctx *ctx, const Topology *topo, Collective coll, const Bound *bound, Packing **out)
{
	struct plan p = { .ctx = ctx, .topo = topo, .coll = coll, .whole = true };
	return pack_hubs(&p, bound, out);
}

Status
pack_unequal_whole_copies(Ctx *ctx, const Topology *topo, Collective coll, const Bound *bound, Packing **out)
{
	enum { TRIES = 2 };
	*out = NULL;
	for (int i = 0; i < 2 * TRIES && !*out; i++) {
		struct plan p = { .ctx = ctx, .topo = topo, .coll = coll, .copies = true,
			.whole_copies = 1 + i % TRIES, .leaves = i < TRIES ? NO_LEAVES : LEAVES };
		TRY(pack_hubs(&p, bound, out));
	}
	return OK;
}
