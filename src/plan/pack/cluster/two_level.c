/* Trees over a cluster in two levels (servers.c): first over its servers, each as one rank, then inside of each server.
 *
 *     servers            a --- b          hops between servers are over uplinks: a tree of all servers
 *                          \-- c
 *     in server b        uplink 2 -> gpu 2 -> gpu 0, gpu 1, gpu 3        over its switch; b sends on over any uplink,
 *                                                                     from the GPU of that uplink
 *
 * A cut of whole servers is a cut of the machine with each server as one rank, and no bound there is lower. So where
 * such a cut is what limits the rate, trees of servers by maximum flows (branchings.c) have it, whatever networks their
 * uplinks lead to; and these are a small machine: 128 ranks for 1024 GPUs. Of an allgather each server is the root of
 * as much as its GPUs have together, and they take its trees one after the other.
 *
 * In a server the GPU that a tree enters sends to the others, as long as its link to the switch has room; then those
 * that have it pass it on. Where that overloads a link, the rate is lower. */
#include "plan/pack/cluster/cluster.h"
#include "plan/pack/cluster/servers.h"
#include "plan/pack/flow/flow.h"

#include <stdlib.h>
#include <string.h>

/* What a link between servers stands for: an uplink of a side, or a link between switches of no server. */
struct origin {
	bool uplink;
	Side side;
	int index;
};

struct levels {
	Ctx *ctx;
	const Topology *topo;
	Collective coll;
	int root;
	bool into, both;	/* towards the root; allreduce */
	bool many;		/* a root for each rank */
	Cluster c;
	Topology servers;
	int *vertex;		/* of it, of each switch of no server */
	struct origin *origin;	/* of its links */
	const Packing *upper;	/* trees over it */
	Packing *pack;
	/* Of each rank, in units of trees: what it may still send in its server, and what later trees need of that. */
	int64_t *room, *due;
	int *entry;		/* of each server: the rank that the current tree enters */
	int *member;
	Edge *there, *back;
	int n_edges;
};

/* ---- servers as ranks ---- */

static void
add_link(struct levels *p, int from, int to, int64_t capacity, struct origin origin)
{
	Topology *topo = &p->servers;
	p->origin[topo->n_links] = origin;
	topo->link[topo->n_links++] = (Link){ .from = from, .to = to, .class = LINK_NET, .count = 1,
	    .capacity = capacity };
}

/* Each uplink out is followed by the uplink in, if both are the same: the opposite of a link is that of its own
 * uplink. */
static void
add_uplinks(struct levels *p)
{
	const Cluster *c = &p->c;
	for (int s = 0; s < c->n_servers; s++)
		for (int i = 0; i < c->server[s].n_uplinks[0] || i < c->server[s].n_uplinks[1]; i++)
			for (Side side = UPLINK_OUT; side <= UPLINK_IN; side++) {
				int w = c->server[s].first_uplink[side] + i;
				const struct uplink *uplink = &c->uplink[side][w];
				if (i >= c->server[s].n_uplinks[side])
					continue;
				int network = p->vertex[c->network[uplink->network]];
				add_link(p, side == UPLINK_OUT ? s : network, side == UPLINK_OUT ? network : s,
				    uplink->capacity * c->unit, (struct origin){ true, side, w });
			}
}

static Status
make_servers(struct levels *p)
{
	const Cluster *c = &p->c;
	const Topology *topo = p->topo;
	Topology *servers = &p->servers;
	int links = c->n_uplinks[0] + c->n_uplinks[1] + topo->n_links;
	*servers = (Topology){ .name = topo->name, .n_nodes = c->n_servers, .n_ranks = c->n_servers,
	    .n_vertices = c->n_servers };
	TRY(TEMP(p->ctx, servers->vertex, c->n_servers + topo->n_vertices));
	TRY(TEMP(p->ctx, servers->link, links));
	TRY(TEMP(p->ctx, p->origin, links));
	TRY(TEMP(p->ctx, p->vertex, topo->n_vertices));
	for (int s = 0; s < c->n_servers; s++)
		servers->vertex[s] = (Vertex){ .id = topo->name, .kind = VERTEX_GPU, .node = s };
	for (int v = topo->n_ranks; v < topo->n_vertices; v++) {
		p->vertex[v] = c->home[v] < 0 ? servers->n_vertices : -1;
		if (c->home[v] < 0)
			servers->vertex[servers->n_vertices++] = (Vertex){ .id = topo->vertex[v].id,
			    .kind = VERTEX_SWITCH, .node = -1 };
	}
	add_uplinks(p);
	for (int l = 0; l < topo->n_links; l++) {
		const Link *link = &topo->link[l];
		if (link->from >= topo->n_ranks && link->to >= topo->n_ranks && p->vertex[link->from] >= 0
		    && p->vertex[link->to] >= 0)
			add_link(p, p->vertex[link->from], p->vertex[link->to], link->capacity,
			    (struct origin){ false, UPLINK_OUT, l });
	}
	return topo_index(p->ctx, servers);
}

/* Trees over servers; *upper: NULL where none are found. */
static Status
pack_servers(struct levels *p, const Bound *bound)
{
	Ask ask = { .coll = p->coll, .root = p->root >= 0 ? p->c.of[p->root] : -1, .packing = PACKING_EXACT };
	int64_t *shares;
	Packing *upper;
	Frac rate;
	if (!frac_div(bound->rate, (Frac){ collective_shares(p->coll, p->topo->n_ranks), 1 }, &rate))
		return OK;
	TRY(TEMP(p->ctx, shares, p->c.n_servers));
	for (int s = 0; s < p->c.n_servers; s++)
		shares[s] = p->c.server[s].n;
	TRY(pack_branchings_of(p->ctx, &p->servers, bound, &ask, rate,
	    p->many ? shares : NULL, &upper));
	p->upper = upper;
	return OK;
}

/* ---- inside servers ---- */

/* What capacity the hops of a rank to others of its server have, for trees of this unit. */
static Status
measure_rooms(struct levels *p)
{
	const Cluster *c = &p->c;
	const Frac unit = p->upper->unit;
	for (int v = 0; v < p->topo->n_ranks; v++) {
		if (c->up[v] < 0)
			continue;
		int64_t up = p->topo->link[c->up[v]].capacity, down = p->topo->link[c->down[v]].capacity;
		int64_t capacity = p->both ? (up < down ? up : down) : p->into ? down : up;
		Wide units = (Wide)capacity * unit.den / unit.num;
		p->room[v] = units > INT64_MAX / 4 ? INT64_MAX / 4 : (int64_t)units;
	}
	return OK;
}

/* The first of n ranks that has room; where none has, the one that is overloaded least. */
static int
choose_sender(const struct levels *p, int n, int64_t weight)
{
	int best = 0;
	for (int i = 0; i < n; i++) {
		int64_t left = p->room[p->member[i]] - p->due[p->member[i]];
		if (left >= weight)
			return i;
		if (left > p->room[p->member[best]] - p->due[p->member[best]])
			best = i;
	}
	return best;
}

static Status
add_near(struct levels *p, int from, int to, int64_t weight)
{
	int e = p->n_edges++;
	p->room[from] -= weight;
	p->room[to] -= p->both ? weight : 0;
	TRY(cluster_near_edge(&p->c, p->into ? to : from, p->into ? from : to, &p->there[e]));
	return p->both ? cluster_near_edge(&p->c, to, from, &p->back[e]) : OK;
}

/* From the rank that the tree enters to all others: those with most room first, if they have to pass it on. */
static Status
spread(struct levels *p, int s, int64_t weight)
{
	const struct cluster_server *server = &p->c.server[s];
	int *member = p->member, n = server->n;
	memcpy(member, p->c.rank + server->first, (size_t)n * sizeof *member);
	for (int i = 0; i < n; i++) {
		p->due[member[i]] -= p->both && n > 1 ? weight : 0;
		if (member[i] == p->entry[s]) {
			member[i] = member[0];
			member[0] = p->entry[s];
		}
	}
	p->due[member[0]] -= !p->both && n > 1 ? weight : 0;
	bool star = n < 2 || (p->room[member[0]] - p->due[member[0]]) / weight >= n - 1;
	for (int i = 2; i < n && !star; i++)
		for (int k = i; k > 1 && p->room[member[k]] - p->due[member[k]]
		    > p->room[member[k - 1]] - p->due[member[k - 1]]; k--) {
			int other = member[k];
			member[k] = member[k - 1];
			member[k - 1] = other;
		}
	for (int i = 1; i < n; i++)
		TRY(add_near(p, member[choose_sender(p, i, weight)], member[i], weight));
	return OK;
}

/* ---- trees ---- */

/* The uplink at an end of a hop, of the server that sends in the direction of the root, or that receives. */
static const struct origin *
end_of(const struct levels *p, const Edge *edge, bool last)
{
	return &p->origin[edge->link[last ? edge->n_links - 1 : 0]];
}

static int
rank_at(const struct levels *p, const struct origin *origin)
{
	return p->c.uplink[origin->side][origin->index].rank;
}

/* Entries of the servers of a tree whose root is to be this rank, -1: of some uplink. */
static void
find_entries(struct levels *p, const Tree *tree, int root)
{
	int n = p->into ? tree->n_up : tree->n_down;
	const Edge *edge = p->into ? tree->up : tree->down;
	for (int s = 0; s < p->c.n_servers; s++)
		p->entry[s] = -1;
	for (int e = 0; e < n; e++)
		p->entry[p->into ? edge[e].src : edge[e].dst] = rank_at(p, end_of(p, &edge[e], !p->into));
	for (int e = 0; e < n; e++) {
		int s = p->into ? edge[e].dst : edge[e].src;
		if (p->entry[s] < 0)
			p->entry[s] = root >= 0 ? root : rank_at(p, end_of(p, &edge[e], p->into));
	}
}

/* The links of a hop between servers, in the machine. */
static Status
far_edge(const struct levels *p, const Edge *edge, Edge *out)
{
	int n = 0, *link;
	for (int i = 0; i < edge->n_links; i++) {
		const struct origin *o = &p->origin[edge->link[i]];
		n += o->uplink ? p->c.uplink[o->side][o->index].n : 1;
	}
	TRY(NEW(p->ctx, link, n));
	*out = (Edge){ rank_at(p, end_of(p, edge, false)), rank_at(p, end_of(p, edge, true)), n, link };
	n = 0;
	for (int i = 0; i < edge->n_links; i++) {
		const struct origin *o = &p->origin[edge->link[i]];
		const struct uplink *uplink = o->uplink ? &p->c.uplink[o->side][o->index] : NULL;
		if (uplink)
			memcpy(link + n, uplink->link, (size_t)uplink->n * sizeof *link);
		else
			link[n] = o->index;
		n += uplink ? uplink->n : 1;
	}
	return OK;
}

/* Of an allreduce the edge from dst to src over the same links: the tree over servers has it as well. */
static const Edge *
opposite(const Tree *tree, const Edge *edge)
{
	for (int e = 0; e < tree->n_up; e++)
		if (tree->up[e].src == edge->dst && tree->up[e].dst == edge->src)
			return &tree->up[e];
	return NULL;
}

static Status
add_far(struct levels *p, const Tree *tree, const Edge *edge)
{
	int e = p->n_edges++;
	TRY(far_edge(p, edge, &p->there[e]));
	const Edge *back = p->both ? opposite(tree, edge) : NULL;
	if (p->both && !back)
		return fail(p->ctx, INTERNAL, "trees over servers: a hop without its opposite");
	return back ? far_edge(p, back, &p->back[e]) : OK;
}

static Status
add_tree(struct levels *p, const Tree *tree, int root, int64_t weight)
{
	Packing *pack = p->pack;
	int n = p->into ? tree->n_up : tree->n_down;
	p->n_edges = 0;
	find_entries(p, tree, root);
	for (int e = 0; e < n; e++)
		TRY(add_far(p, tree, p->into ? &tree->up[e] : &tree->down[e]));
	for (int s = 0; s < p->c.n_servers; s++)
		TRY(spread(p, s, weight));
	if (pack->demand)
		pack->demand[pack->n_trees] = root;
	pack->weight[pack->n_trees] = weight;
	return tree_arrange(p->ctx, p->topo->n_ranks, p->both ? ALLREDUCE : p->into ? REDUCE : BROADCAST,
	    p->both ? -1 : root, p->there, p->both ? p->back : NULL, p->n_edges, &pack->tree[pack->n_trees++]);
}

/* ---- shares of ranks ---- */

/* A part of a tree over servers, for a root. */
struct share {
	int root, tree;
	int64_t weight;
};

static int
compare_shares(const void *a, const void *b)
{
	const struct share *x = a, *y = b;
	return x->root != y->root ? (x->root > y->root) - (x->root < y->root)
	    : (x->tree > y->tree) - (x->tree < y->tree);
}

/* Ranks take the trees of their server one after the other, each as much; with one root all trees are its own.
 * *n: 0: these do not go into equal parts. */
static Status
share_trees(const struct levels *p, struct share **out, int *n)
{
	const Packing *upper = p->upper;
	int room = upper->n_trees + p->topo->n_ranks;
	struct share *share;
	int64_t *each, *left;
	int *at;
	bool even = true;
	*n = 0;
	TRY(TEMP(p->ctx, share, room));
	TRY(TEMP(p->ctx, each, p->c.n_servers));
	TRY(TEMP(p->ctx, left, p->c.n_servers));
	TRY(TEMP(p->ctx, at, p->c.n_servers));
	for (int t = 0; t < upper->n_trees && p->many; t++)
		each[upper->demand[t]] += upper->weight[t];
	for (int s = 0; s < p->c.n_servers; s++) {
		even = even && each[s] % p->c.server[s].n == 0;
		each[s] /= p->c.server[s].n;
		left[s] = each[s];
	}
	for (int t = 0; t < upper->n_trees && even; t++) {
		int s = p->many ? upper->demand[t] : 0;
		for (int64_t rest = upper->weight[t], part; rest > 0; rest -= part) {
			part = !p->many || rest < left[s] ? rest : left[s];
			share[(*n)++] = (struct share){ p->many ? p->c.rank[p->c.server[s].first + at[s]] : p->root,
			    t, part };
			left[s] -= part;
			if (left[s] == 0 && p->many) {
				left[s] = each[s];
				at[s]++;
			}
		}
	}
	*out = share;
	qsort(share, (size_t)*n, sizeof *share, compare_shares);
	return OK;
}

/* What each rank will need at least to send in its server. */
static void
set_due(struct levels *p, const struct share *share, int n)
{
	for (int i = 0; i < n; i++) {
		find_entries(p, &p->upper->tree[share[i].tree], share[i].root);
		for (int s = 0; s < p->c.n_servers; s++) {
			const struct cluster_server *server = &p->c.server[s];
			for (int k = 0; k < server->n && p->both && server->n > 1; k++)
				p->due[p->c.rank[server->first + k]] += share[i].weight;
			if (!p->both && server->n > 1)
				p->due[p->entry[s]] += share[i].weight;
		}
	}
}

static Status
make_trees(struct levels *p, bool *good)
{
	struct share *share;
	int n, n_ranks = p->topo->n_ranks;
	int64_t *load, sum = 0;
	Frac unit;
	TRY(share_trees(p, &share, &n));
	int64_t edges = (int64_t)n * (n_ranks - 1) * (p->both ? 2 : 1);
	*good = n > 0 && n <= LIMIT_TREES && edges <= LIMIT_TREE_EDGES;
	for (int i = 0; i < n && *good; i++) {
		sum += share[i].weight;
		*good = sum >> PACKING_BITS == 0;
	}
	if (!*good)
		return OK;
	TRY(TEMP(p->ctx, p->room, n_ranks));
	TRY(TEMP(p->ctx, p->due, n_ranks));
	TRY(TEMP(p->ctx, p->entry, p->c.n_servers));
	TRY(TEMP(p->ctx, p->member, n_ranks));
	TRY(TEMP(p->ctx, p->there, n_ranks));
	TRY(TEMP(p->ctx, p->back, n_ranks));
	TRY(TEMP(p->ctx, load, p->topo->n_links));
	TRY(pack_new(p->ctx, n, false, &p->pack));
	if (p->many)
		TRY(NEW(p->ctx, p->pack->demand, n));
	TRY(measure_rooms(p));
	set_due(p, share, n);
	for (int i = 0; i < n; i++)
		TRY(add_tree(p, &p->upper->tree[share[i].tree], share[i].root, share[i].weight));
	*good = pack_widest_unit(p->topo, p->pack, load, &unit);
	p->pack->unit = *good && frac_cmp(unit, p->upper->unit) < 0 ? unit : p->upper->unit;
	return OK;
}

Status
pack_two_level(Ctx *ctx, const Topology *topo, Collective coll, int root, const Bound *bound, Packing **out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct levels p = { .ctx = ctx, .topo = topo, .coll = coll, .root = collective_rooted(coll) ? root : -1,
	    .into = coll == REDUCE || coll == REDUCESCATTER, .both = coll == ALLREDUCE,
	    .many = coll == ALLGATHER || coll == REDUCESCATTER };
	bool good = (coll == BROADCAST || coll == REDUCE || coll == ALLREDUCE || coll == ALLGATHER
	    || coll == REDUCESCATTER) && bound->rate.num > 0 && !topo->route && !tree_shares(topo, coll);
	*out = NULL;
	if (good)
		TRY(cluster_read(ctx, topo, &p.c, &good));
	good = good && (!p.both || cluster_sides_agree(&p.c));
	if (good) {
		TRY(make_servers(&p));
		TRY(pack_servers(&p, bound));
		good = p.upper != NULL;
	}
	if (good)
		TRY(make_trees(&p, &good));
	arena_release(&ctx->scratch, mark);
	if (good) {
		*out = p.pack;
		log_verbose(ctx, "two levels: %d trees over servers, %d over their GPUs", p.upper->n_trees,
		    p.pack->n_trees);
	}
	return OK;
}
