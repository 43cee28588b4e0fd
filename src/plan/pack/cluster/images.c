/* Trees of an allgather or reducescatter over a cluster that is too large for a list of them: of the GPUs of one whole
 * server, and of those of servers that lost parts, under the group that rotates the whole ones. Each server has a
 * switch of its own, and uplinks (servers.c).
 *
 *     tree of a root     root, or others of its server -> over uplinks: one GPU of each other server
 *                        the same -> more of them, where their uplinks are less full than their links from the switch
 *                        these -> over the switch: all others of their server
 *
 * Loads are those of orbits of links, of all images together. Each hop goes where the fullest link that it takes is the
 * least full. Trees of ranks that are moved come first: on links of a server that stays each weighs as much as the
 * group has elements, and those of ranks that stay as one, so that these level what the others leave. Each round adds
 * a tree of each root; the rounds so far with the highest rate are the packing, or, where that is higher, some of their
 * trees, each as much as a linear program says.
 *
 * A tree into its root is the same with all links turned. */
#include "plan/pack/cluster/cluster.h"
#include "plan/pack/cluster/servers.h"
#include "plan/pack/lp/weights.h"

#include <math.h>
#include <string.h>

enum {
	MOST_ROUNDS = 8,
	MOST_HOPS = 1 << 23,	/* of the trees of all rounds: 16 bytes each */
	MOST_CELLS = 1 << 24,	/* likewise, orbits times trees: 8 bytes each */
	MOST_STEPS = 1 << 14,	/* of the simplex method */
	MOST_FAR_DEPTH = 3,	/* of a rank that sends to other servers */
	MOST_SENDER_DEPTH = 5,	/* of a rank that sends to others of its server */
	FEW_ROWS = 1024,	/* of a linear program that takes a second; larger ones are solved when they may be
				 * the last */
	ENOUGH = 10000		/* parts of the bound: one of them is too little to go on for */
};

#define SLIGHT 1e-3	/* weight of how full the other links of a hop are */

/* How a rank gets its data: over the uplink `out` of its parent and `in` of its own, -1: over the switch. depth -1: it
 * has no parent yet. */
struct hop {
	int parent, out, in, depth;
};

struct images {
	Ctx *ctx;
	const Topology *topo;
	const Symmetry *sym;
	Cluster c;
	Side out, in;		/* of parents, of children */
	int *near_out, *near_in;	/* links of each rank to the switch, and from it, as data of the tree go */
	int64_t *load;		/* of each orbit, in trees */
	double *room;		/* 1 / capacity of all of its links */
	int *first_in, *n_in;	/* of each rank: its uplinks of side `in` */

	/* The current tree. */
	int t, home, root_rank;
	int64_t images;
	struct hop *hop;	/* of each rank */
	struct outs {
		int *best;	/* of each network: the least full uplink of some ranks that leads to it; -1: none */
		double *cost;
	} home_outs, other_outs;	/* of the root's server; of ranks of others that have a parent */
	bool others_known;	/* for the current server, as loads are */

	/* All trees. */
	double level;		/* how full links are at the bound after this round */
	int n_trees, n_roots, *root;
	int n_moved;		/* of the roots, those that are moved, which are first */
	struct hop *hops;	/* [tree * n_ranks + rank] */
	int64_t *uses;		/* [tree * n_orbits + orbit]: of all images */
};

/* ---- loads ---- */

/* How full link l is with one tree more. */
static double
cost_of(const struct images *s, int l)
{
	int o = s->sym->link_orbit[l];
	return (double)(s->load[o] + s->images) * s->room[o];
}

static double
cost_of_uplink(const struct images *s, const struct uplink *uplink)
{
	double cost = 0;
	for (int i = 0; i < uplink->n; i++)
		cost = fmax(cost, cost_of(s, uplink->link[i]));
	return cost;
}

static void
add_load(struct images *s, int l)
{
	int o = s->sym->link_orbit[l];
	s->load[o] += s->images;
	s->uses[(size_t)s->t * (size_t)s->sym->n_orbits + (size_t)o] += s->images;
}

static const struct uplink *
between(const struct images *s, int out, int in)
{
	const Cluster *c = &s->c;
	const struct uplink *a = &c->uplink[s->out][out], *b = &c->uplink[s->in][in];
	return s->out == UPLINK_OUT ? cluster_between(c, a, b) : cluster_between(c, b, a);
}

static void
take_near(struct images *s, int parent, int v)
{
	add_load(s, s->near_out[parent]);
	s->hop[v] = (struct hop){ parent, -1, -1, s->hop[parent].depth + 1 };
}

static void
take_far(struct images *s, int out, int in)
{
	const struct uplink *part[3] = { &s->c.uplink[s->out][out], between(s, out, in), &s->c.uplink[s->in][in] };
	int u = part[0]->rank, v = part[2]->rank;
	if (s->hop[u].depth < 0) {
		add_load(s, s->near_in[u]);
		take_near(s, s->root_rank, u);
	}
	for (int k = 0; k < 3; k++)
		for (int i = 0; i < part[k]->n; i++)
			add_load(s, part[k]->link[i]);
	s->hop[v] = (struct hop){ u, out, in, s->hop[u].depth + 1 };
}

/* ---- one tree ---- */

/* What an uplink of a rank costs where others may be less full: less than nothing where the bound has room for it. So
 * the root sends as much as it may. */
static double
cost_of_sender(const struct images *s, const struct uplink *uplink)
{
	double cost = cost_of_uplink(s, uplink);
	return uplink->rank == s->root_rank && cost <= s->level ? cost - s->level : cost;
}

static void
clear_outs(const struct images *s, struct outs *outs)
{
	for (int k = 0; k < s->c.n_networks; k++)
		outs->best[k] = -1;
}

static void
add_out(const struct images *s, int w, struct outs *outs)
{
	const struct uplink *uplink = &s->c.uplink[s->out][w];
	double cost = cost_of_sender(s, uplink);
	int k = uplink->network;
	if (outs->best[k] >= 0 && cost >= outs->cost[k])
		return;
	outs->best[k] = w;
	outs->cost[k] = cost;
}

/* Ranks of the root's server may send also where they have no parent yet: it is the root then. */
static void
find_home_outs(struct images *s)
{
	const struct cluster_server *server = &s->c.server[s->home];
	clear_outs(s, &s->home_outs);
	for (int i = 0; i < server->n_uplinks[s->out]; i++)
		add_out(s, server->first_uplink[s->out] + i, &s->home_outs);
}

/* Of ranks outside of a server and of the root's. */
static void
find_other_outs(struct images *s, const struct cluster_server *server)
{
	const Cluster *c = &s->c;
	clear_outs(s, &s->other_outs);
	for (int w = 0; w < c->n_uplinks[s->out]; w++) {
		int v = c->uplink[s->out][w].rank, depth = s->hop[v].depth;
		if (depth >= 0 && depth <= MOST_FAR_DEPTH && c->of[v] != s->home && &c->server[c->of[v]] != server)
			add_out(s, w, &s->other_outs);
	}
}

/* The least full way over an uplink `in`, if it is less full than *cost. */
static void
consider_in(const struct images *s, const struct outs *outs, int in, int *best_out, int *best_in, double *cost)
{
	const struct uplink *uplink = &s->c.uplink[s->in][in];
	double here = cost_of_uplink(s, uplink);
	for (int k = 0; k < s->c.n_networks && here < *cost; k++) {
		int out = outs->best[k];
		if (out < 0 || outs->cost[k] >= *cost || between(s, out, in)->n < 0)
			continue;
		double on = cost_of_uplink(s, between(s, out, in));
		double all = fmax(fmax(here, outs->cost[k]), on) + SLIGHT * (here + outs->cost[k] + on);
		if (all >= *cost)
			continue;
		*cost = all;
		*best_out = out;
		*best_in = in;
	}
}

/* The least full way into a server from ranks of these uplinks, if it is less full than *cost. */
static void
consider_server(const struct images *s, const struct outs *outs, const struct cluster_server *server, int *out, int *in,
    double *cost)
{
	for (int i = 0; i < server->n_uplinks[s->in]; i++)
		consider_in(s, outs, server->first_uplink[s->in] + i, out, in, cost);
}

/* One GPU of a server; from another one than the root's where the way from there has no room. False: no network leads
 * there. */
static bool
enter(struct images *s, const struct cluster_server *server)
{
	int out = -1, in = -1;
	double cost = INFINITY;
	find_home_outs(s);
	consider_server(s, &s->home_outs, server, &out, &in, &cost);
	if (cost > s->level) {
		find_other_outs(s, server);
		consider_server(s, &s->other_outs, server, &out, &in, &cost);
	}
	if (out >= 0)
		take_far(s, out, in);
	return out >= 0;
}

/* A rank of the server that can send to others of it: the least full one. */
static int
best_sender(const struct images *s, const struct cluster_server *server)
{
	int best = -1;
	double least = 0;
	for (int i = 0; i < server->n; i++) {
		int v = s->c.rank[server->first + i], depth = s->hop[v].depth;
		if (depth < 0 || depth > MOST_SENDER_DEPTH)
			continue;
		double cost = cost_of(s, s->near_out[v]);
		if (best >= 0 && (cost > least || (cost == least && depth >= s->hop[best].depth)))
			continue;
		best = v;
		least = cost;
	}
	return best;
}

/* Rank v over an uplink, if that is less full than its link from the switch. */
static bool
enter_rank(struct images *s, int v, bool home)
{
	int out = -1, in = -1;
	double near = cost_of(s, s->near_in[v]), cost = near, least = INFINITY;
	for (int k = 0; k < s->n_in[v]; k++)
		least = fmin(least, cost_of_uplink(s, &s->c.uplink[s->in][s->first_in[v] + k]));
	if (least >= near)
		return false;
	if (!home)
		find_home_outs(s);
	for (int k = 0; k < s->n_in[v] && !home; k++)
		consider_in(s, &s->home_outs, s->first_in[v] + k, &out, &in, &cost);
	if (out < 0) {
		if (!s->others_known)
			find_other_outs(s, &s->c.server[s->c.of[v]]);
		for (int k = 0; k < s->n_in[v]; k++)
			consider_in(s, &s->other_outs, s->first_in[v] + k, &out, &in, &cost);
		s->others_known = out < 0;
	}
	if (out >= 0)
		take_far(s, out, in);
	return out >= 0;
}

/* GPUs of the server over uplinks, where the switch is fuller; those over the switch are placed later, and only count
 * on their links from it. */
static void
enter_more(struct images *s, const struct cluster_server *server, bool home)
{
	s->others_known = false;
	for (int i = 0; i < server->n; i++) {
		int v = s->c.rank[server->first + i];
		if (s->hop[v].depth < 0 && !enter_rank(s, v, home))
			add_load(s, s->near_in[v]);
	}
}

/* The rank without a parent whose link to the switch is the least full, so that it sends next, or, where it will not
 * send, the fullest one; -1: there is none. */
static int
next_receiver(const struct images *s, const struct cluster_server *server, bool sends)
{
	int best = -1;
	double least = 0;
	for (int i = 0; i < server->n; i++) {
		int v = s->c.rank[server->first + i];
		if (s->hop[v].depth >= 0)
			continue;
		double cost = sends ? cost_of(s, s->near_out[v]) : -cost_of(s, s->near_out[v]);
		if (best >= 0 && cost >= least)
			continue;
		least = cost;
		best = v;
	}
	return best;
}

static void
fill_server(struct images *s, const struct cluster_server *server)
{
	for (int n = server->n; n > 0; n--) {
		int from = best_sender(s, server);
		int v = next_receiver(s, server, s->hop[from].depth < MOST_SENDER_DEPTH);
		if (v < 0)
			return;
		take_near(s, from, v);
	}
}

enum phase { ENTER, ENTER_MORE, FILL, N_PHASES };

/* *good: false: some server is not reached. */
static void
grow_tree(struct images *s, int t, int root, enum phase phase, bool *good)
{
	const Cluster *c = &s->c;
	s->t = t;
	s->root_rank = root;
	s->home = c->of[root];
	s->images = symmetry_moves(s->sym, root) ? s->sym->size : 1;
	s->hop = s->hops + (size_t)t * (size_t)s->topo->n_ranks;
	for (int v = 0; v < s->topo->n_ranks && phase == ENTER; v++)
		s->hop[v].depth = v == root ? 0 : -1;
	/* The root's server last: others send to it. */
	for (int i = 1; i <= c->n_servers && *good; i++) {
		const struct cluster_server *server = &c->server[(s->home + i) % c->n_servers];
		bool home = i == c->n_servers;
		if (phase == ENTER && !home)
			*good = enter(s, server);
		else if (phase == ENTER_MORE)
			enter_more(s, server, home);
		else if (phase == FILL && server->n > 1)
			fill_server(s, server);
	}
}

/* A tree of each of these roots. */
static void
grow_trees(struct images *s, int first, int n, bool *good)
{
	for (enum phase phase = ENTER; phase < N_PHASES; phase++)
		for (int k = first; k < first + n && *good; k++)
			grow_tree(s, s->n_trees + k, s->root[k], phase, good);
}

/* ---- rounds ---- */

/* The least capacity by load of any orbit, in trees of each root. */
static double
rate_of(const struct images *s, const int64_t *load, double trees)
{
	double most = 0;
	for (int o = 0; o < s->sym->n_orbits; o++)
		most = fmax(most, (double)load[o] * s->room[o]);
	return trees / most;
}

/* Has a schedule room for the trees that have a weight? */
static bool
has_room(const struct images *s, const int64_t *weight)
{
	int64_t n = 0;
	for (int t = 0; t < s->n_trees; t++)
		n += weight[t] > 0;
	return n * (s->topo->n_ranks - 1) <= LIMIT_TREE_EDGES && n * s->sym->size <= LIMIT_IMAGES;
}

/* Weights by the linear program, if their rate is higher than *best. */
static Status
weigh(struct images *s, double *best, int64_t *weight)
{
	int n = s->n_trees, n_orbits = s->sym->n_orbits, *demand;
	int64_t *other, *load, *capacity, sum;
	double *price;
	TRY(TEMP(s->ctx, demand, n));
	TRY(TEMP(s->ctx, other, n));
	TRY(TEMP(s->ctx, load, n_orbits));
	TRY(TEMP(s->ctx, price, n_orbits));
	TRY(TEMP(s->ctx, capacity, n_orbits));
	for (int t = 0; t < n; t++)
		demand[t] = t % s->n_roots;
	for (int l = 0; l < s->topo->n_links; l++)
		capacity[s->sym->link_orbit[l]] += s->topo->link[l].capacity;
	TRY(template_weights(s->ctx, &(struct template_pool){ .n_orbits = n_orbits, .n_demands = s->n_roots,
	    .capacity = capacity, .n = n, .demand = demand, .load = s->uses,
	    .most_steps = MOST_STEPS }, other, &sum, price));
	for (int t = 0; t < n && sum > 0; t++)
		for (int o = 0; o < n_orbits; o++)
			load[o] += other[t] * s->uses[(size_t)t * (size_t)n_orbits + (size_t)o];
	if (sum == 0 || !has_room(s, other) || rate_of(s, load, (double)sum) <= *best)
		return OK;
	*best = rate_of(s, load, (double)sum);
	memcpy(weight, other, (size_t)n * sizeof *weight);
	return OK;
}

/* All trees with equal weights, if their rate is higher than *best, and they have room. *full: they have none. */
static void
weigh_equally(const struct images *s, int rounds, double *best, int64_t *weight, int64_t *one, bool *full)
{
	double rate = rate_of(s, s->load, rounds);
	for (int t = 0; t < s->n_trees; t++)
		one[t] = 1;
	*full = !has_room(s, one);
	if (rate <= *best || *full)
		return;
	*best = rate;
	memcpy(weight, one, (size_t)s->n_trees * sizeof *weight);
}

/* weight: of each tree. top: the rate of the bound. *good: false: there are none. */
static Status
grow_rounds(struct images *s, double top, int most, int64_t *weight, bool *good)
{
	int rows = s->n_roots + s->sym->n_orbits, first = rows <= FEW_ROWS ? 2 : 4;
	double best = 0;
	int64_t *one;
	bool full = false;
	TRY(TEMP(s->ctx, one, most * s->n_roots));
	for (int i = 1; i <= most && *good && best < top * (1 - 1.0 / ENOUGH) && (!full || rows <= WEIGHT_ROWS)
	    && progress(s->ctx, "trees of %d GPUs: round %d", s->topo->n_ranks, i) > 0; i++) {
		s->level = i / top;
		grow_trees(s, 0, s->n_moved, good);
		grow_trees(s, s->n_moved, s->n_roots - s->n_moved, good);
		s->n_trees += s->n_roots;
		if (!*good)
			return OK;
		weigh_equally(s, i, &best, weight, one, &full);
		if (i >= first || i == most)
			TRY(weigh(s, &best, weight));
		log_verbose(s->ctx, "images: round %d, %d orbits: %.9g of the bound", i, s->sym->n_orbits, best / top);
	}
	*good = best > 0;
	return OK;
}

/* ---- the packing ---- */

static Status
make_tree(const struct images *s, int t, int root, Tree *out)
{
	const struct hop *hop = s->hops + (size_t)t * (size_t)s->topo->n_ranks;
	ArenaMark mark = arena_mark(&s->ctx->scratch);
	bool into = s->out == UPLINK_IN;
	Edge *edge;
	int n = 0;
	TRY(TEMP(s->ctx, edge, s->topo->n_ranks));
	for (int v = 0; v < s->topo->n_ranks; v++) {
		const struct hop *h = &hop[v];
		if (v == root)
			continue;
		int src = into ? v : h->parent, dst = into ? h->parent : v;
		TRY(h->in < 0 ? cluster_near_edge(&s->c, src, dst, &edge[n]) : cluster_far_edge(&s->c, into ? h->in
		    : h->out, into ? h->out : h->in, &edge[n]));
		n++;
	}
	TRY(tree_arrange(s->ctx, s->topo->n_ranks, into ? REDUCE : BROADCAST, root, edge, NULL, n, out));
	arena_release(&s->ctx->scratch, mark);
	return OK;
}

static Status
make_packing(struct images *s, const int64_t *weight, Packing **out)
{
	Packing *pack;
	TRY(pack_new(s->ctx, s->n_trees, true, &pack));
	pack->unit = FRAC_ONE;
	pack->symmetry = s->sym;
	for (int i = 0; i < s->n_roots; i++) {
		int k = 0, root = s->sym->representative[i];
		while (s->root[k] != root)
			k++;
		for (int t = k; t < s->n_trees; t += s->n_roots) {
			if (weight[t] == 0)
				continue;
			TRY(make_tree(s, t, root, &pack->tree[pack->n_trees]));
			pack->demand[pack->n_trees] = root;
			pack->weight[pack->n_trees++] = weight[t];
		}
	}
	*out = pack;
	return OK;
}

/* ---- all of it ---- */

static Status
new_images(struct images *s, int most)
{
	const Topology *topo = s->topo;
	size_t n = (size_t)topo->n_ranks, trees = (size_t)most * (size_t)s->n_roots, orbits = (size_t)s->sym->n_orbits;
	Ctx *ctx = s->ctx;
	TRY(TEMP(ctx, s->load, orbits));
	TRY(TEMP(ctx, s->room, orbits));
	TRY(TEMP(ctx, s->uses, trees * orbits));
	TRY(TEMP(ctx, s->hops, trees * n));
	TRY(TEMP(ctx, s->first_in, n));
	TRY(TEMP(ctx, s->n_in, n));
	for (int i = s->c.n_uplinks[s->in] - 1; i >= 0; i--) {
		s->first_in[s->c.uplink[s->in][i].rank] = i;
		s->n_in[s->c.uplink[s->in][i].rank]++;
	}
	TRY(TEMP(ctx, s->home_outs.best, s->c.n_networks));
	TRY(TEMP(ctx, s->home_outs.cost, s->c.n_networks));
	TRY(TEMP(ctx, s->other_outs.best, s->c.n_networks));
	TRY(TEMP(ctx, s->other_outs.cost, s->c.n_networks));
	for (int l = 0; l < topo->n_links; l++)
		s->room[s->sym->link_orbit[l]] += (double)topo->link[l].capacity;
	for (size_t o = 0; o < orbits; o++)
		s->room[o] = 1 / s->room[o];
	return OK;
}

/* Those that are moved first, as the trees of the others level what theirs leave. */
static Status
order_roots(struct images *s)
{
	int n = 0;
	TRY(TEMP(s->ctx, s->root, s->n_roots));
	for (int moved = 1; moved >= 0; moved--)
		for (int k = 0; k < s->n_roots; k++)
			if (symmetry_moves(s->sym, s->sym->representative[k]) == moved)
				s->root[n++] = s->sym->representative[k];
	for (s->n_moved = 0; s->n_moved < n && symmetry_moves(s->sym, s->root[s->n_moved]); s->n_moved++)
		;
	return OK;
}

Status
pack_images_serves(Ctx *ctx, const Topology *topo, const Symmetry *sym, bool *serves)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	Cluster c;
	*serves = false;
	for (int k = 0; k < sym->n_representatives && !*serves; k++)
		*serves = !symmetry_moves(sym, sym->representative[k]);
	if (*serves)
		TRY(cluster_read(ctx, topo, &c, serves));
	arena_release(&ctx->scratch, mark);
	return OK;
}

Status
pack_images(Ctx *ctx, const Topology *topo, const Symmetry *sym, Collective coll, const Bound *bound, Packing **out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct images s = { .ctx = ctx, .topo = topo, .sym = sym, .n_roots = sym->n_representatives };
	int64_t *weight;
	bool good;
	*out = NULL;
	TRY(order_roots(&s));
	TRY(cluster_read(ctx, topo, &s.c, &good));
	s.out = coll == ALLGATHER ? UPLINK_OUT : UPLINK_IN;
	s.in = coll == ALLGATHER ? UPLINK_IN : UPLINK_OUT;
	s.near_out = coll == ALLGATHER ? s.c.up : s.c.down;
	s.near_in = coll == ALLGATHER ? s.c.down : s.c.up;
	int64_t hops = (int64_t)s.n_roots * topo->n_ranks;
	int64_t cells = (int64_t)s.n_roots * sym->n_orbits;
	int most = MOST_HOPS / hops < MOST_ROUNDS ? (int)(MOST_HOPS / hops) : MOST_ROUNDS;
	most = MOST_CELLS / cells < most ? (int)(MOST_CELLS / cells) : most;
	if (good && most > 0) {
		TRY(new_images(&s, most));
		TRY(TEMP(ctx, weight, most * s.n_roots));
		TRY(grow_rounds(&s, frac_double(bound->rate) / topo->n_ranks, most, weight, &good));
		if (good)
			TRY(make_packing(&s, weight, out));
	}
	arena_release(&ctx->scratch, mark);
	return OK;
}
