/* Cheapest one-hop and three-phase trees against all of them, over random servers with links that cost little or
 * nothing. */
#include "graph/graph.h"
#include "plan/family.h"
#include "random.h"

#include <string.h>

enum { SERVERS = 3, MOST = 3, RANKS = SERVERS * MOST, VERTICES = RANKS + SERVERS + 1, LINKS = 128, FAR = 1000000 };

struct machine {
	Topology topo;
	Vertex vertex[VERTICES];
	Link link[LINKS];
	int64_t price[LINKS];
	const char *node[SERVERS];
	int first[SERVERS + 1];			/* rank of each server */
	/* What a hop costs over the links of a server, and over the network. */
	int64_t local[RANKS][RANKS], net[RANKS][RANKS];
};

static void
add_link(struct machine *m, int from, int to)
{
	m->link[m->topo.n_links] = (Link){ .from = from, .to = to, .count = 1, .capacity = 1 };
	m->price[m->topo.n_links++] = below(5);
}

static int64_t
last_price(const struct machine *m, int back)
{
	return m->price[m->topo.n_links - 1 - back];
}

static int64_t
least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* Direct links, perhaps a switch; and a link each way of every rank to the network. */
static Status
make(Ctx *ctx, struct machine *m, int n_servers)
{
	int64_t up[RANKS], down[RANKS];
	memset(m, 0, sizeof *m);
	for (int s = 0; s < n_servers; s++)
		m->first[s + 1] = m->first[s] + 1 + below(MOST);
	int n = m->first[n_servers], net = n + n_servers;
	m->topo = (Topology){ .name = "machine",
		.n_nodes = n_servers,
		.node = m->node,
		.n_ranks = n,
		.n_vertices = net + 1,
		.vertex = m->vertex,
		.link = m->link };
	m->vertex[net] = (Vertex){ .id = "net", .kind = VERTEX_SWITCH, .node = -1 };
	for (int s = 0; s < n_servers; s++) {
		bool switched = below(2);
		m->node[s] = "server";
		m->vertex[n + s] = (Vertex){ .id = "switch", .kind = VERTEX_SWITCH, .node = s };
		for (int v = m->first[s]; v < m->first[s + 1]; v++) {
			m->vertex[v] = (Vertex){ .id = "rank", .kind = VERTEX_GPU, .node = s };
			up[v] = down[v] = FAR;
			if (!switched)
				continue;
			add_link(m, v, n + s);
			add_link(m, n + s, v);
			up[v] = last_price(m, 1);
			down[v] = last_price(m, 0);
		}
		for (int v = m->first[s]; v < m->first[s + 1]; v++)
			for (int w = m->first[s]; w < m->first[s + 1]; w++) {
				m->local[v][w] = least(up[v] + down[w], FAR);
				if (v == w || below(3) == 0)
					continue;
				add_link(m, v, w);
				m->local[v][w] = least(m->local[v][w], last_price(m, 0));
			}
	}
	for (int v = 0; v < n; v++) {
		add_link(m, v, net);
		add_link(m, net, v);
		up[v] = last_price(m, 1);
		down[v] = last_price(m, 0);
	}
	for (int v = 0; v < n; v++)
		for (int w = 0; w < n; w++)
			m->net[v][w] = up[v] + down[w];
	return topo_index(ctx, &m->topo);
}

static int64_t
hop(const struct machine *m, int v, int w)
{
	return m->vertex[v].node == m->vertex[w].node ? least(m->local[v][w], m->net[v][w]) : m->net[v][w];
}

/* ---- one hop ---- */

static int64_t
star(const struct machine *m, int v, bool into, int but)
{
	int64_t sum = 0;
	for (int w = 0; w < m->topo.n_ranks; w++)
		sum += w == v || w == but ? 0 : into ? hop(m, w, v) : hop(m, v, w);
	return sum;
}

static int64_t
onehop_least(const struct machine *m, const Demand *d)
{
	int root = d->kind == DEMAND_BROADCAST ? d->from : d->to;
	bool into = d->kind == DEMAND_REDUCE;
	int64_t best = FAR;
	if (d->kind == DEMAND_PATH)
		return hop(m, d->from, d->to);
	for (int v = 0; v < m->topo.n_ranks; v++)
		best = least(best, d->kind == DEMAND_ALLREDUCE ? star(m, v, true, v) + star(m, v, false, v)
		    : star(m, v, into, root) + (v == root ? 0 : into ? hop(m, v, root) : hop(m, root, v)));
	return best;
}

/* ---- three phases ---- */

/* Of at most three ranks: a star, or either of two chains. */
static int64_t
arborescence(const struct machine *m, int root, bool into)
{
	int s = m->vertex[root].node, other[2], n = 0;
	for (int v = m->first[s]; v < m->first[s + 1]; v++)
		if (v != root)
			other[n++] = v;
#define HOP(a, b) (into ? m->local[b][a] : m->local[a][b])
	if (n < 2)
		return n ? HOP(root, other[0]) : 0;
	int64_t near = HOP(root, other[0]), far = HOP(root, other[1]);
	return least(near + far, least(near + HOP(other[0], other[1]), far + HOP(other[1], other[0])));
#undef HOP
}

static int64_t
path(const struct machine *m, int from, int to)
{
	int s = m->vertex[from].node;
	int64_t best = from == to ? 0 : m->local[from][to];
	for (int v = m->first[s]; v < m->first[s + 1]; v++)
		if (v != from && v != to)
			best = least(best, m->local[from][v] + m->local[v][to]);
	return best;
}

/* What all servers but w's and `but` cost if each takes its best local root. */
static int64_t
others(const struct machine *m, int w, int but, bool out, bool into)
{
	int64_t sum = 0;
	for (int s = 0; s < m->topo.n_nodes; s++) {
		int64_t best = FAR;
		for (int v = m->first[s]; v < m->first[s + 1]; v++)
			best = least(best,
			    (out ? m->net[w][v] + arborescence(m, v, false) : 0)
				+ (into ? m->net[v][w] + arborescence(m, v, true) : 0));
		sum += s == m->vertex[w].node || s == but ? 0 : best;
	}
	return sum;
}

/* From w to all other servers (into: from them to w), itself or by a rank of another one. */
static int64_t
leave(const struct machine *m, int w, bool into)
{
	int64_t best = others(m, w, -1, !into, into);
	for (int v = 0; v < m->topo.n_ranks; v++)
		if (m->vertex[v].node != m->vertex[w].node)
			best = least(best, (into ? m->net[v][w] : m->net[w][v]) + arborescence(m, v, into)
			    + others(m, v, m->vertex[w].node, !into, into));
	return best;
}

static int64_t
threephase_least(const struct machine *m, const Demand *d)
{
	int root = d->kind == DEMAND_BROADCAST ? d->from : d->to;
	bool into = d->kind == DEMAND_REDUCE;
	int64_t best = FAR;
	if (d->kind == DEMAND_PATH && m->vertex[d->from].node == m->vertex[d->to].node)
		return path(m, d->from, d->to);
	for (int v = 0; v < m->topo.n_ranks; v++) {
		if (d->kind == DEMAND_ALLREDUCE)
			best = least(
			    best, arborescence(m, v, true) + arborescence(m, v, false) + others(m, v, -1, true, true));
		else if (d->kind != DEMAND_PATH && m->vertex[v].node == m->vertex[root].node)
			best = least(best, arborescence(m, root, into) + leave(m, v, into));
		for (int w = 0; w < m->topo.n_ranks && d->kind == DEMAND_PATH; w++)
			if (m->vertex[v].node == m->vertex[d->from].node && m->vertex[w].node == m->vertex[d->to].node)
				best = least(best, path(m, d->from, v) + m->net[v][w] + path(m, w, d->to));
	}
	return best;
}

/* ---- both ---- */

/* Is the cheapest as cheap as the least of all, and does its tree cost that? Without any it is said to be infeasible.
 */
static bool
agrees(Cheapest *c, const struct machine *m, Demand d, int64_t want)
{
	int64_t cost, sum = 0;
	Tree tree;
	Status status = cheapest_find(c, d, &cost);
	if (want >= FAR || status != OK) {
		c->ctx->error = (Error){ 0 };
		return want >= FAR && status == INFEASIBLE;
	}
	if (cheapest_tree(c, false, &tree) != OK || cost != want)
		return false;
	for (int e = 0; e < tree.n_down + tree.n_up; e++)
		for (int i = 0; i < tree_edge(&tree, e)->n_links; i++)
			sum += m->price[tree_edge(&tree, e)->link[i]];
	return sum == want;
}

static int
check(Cheapest *c, const struct machine *m, const Family *family)
{
	int wrong = 0, n = m->topo.n_ranks;
	for (int coll = 0; coll < N_COLLECTIVES && n > 1; coll++) {
		int root = collective_rooted((Collective)coll) ? below(n) : -1;
		for (int i = 0; i < collective_demands((Collective)coll, n); i++) {
			Demand d = collective_demand((Collective)coll, n, root, i);
			wrong += !agrees(
			    c, m, d, family == &onehop_family ? onehop_least(m, &d) : threephase_least(m, &d));
		}
	}
	return wrong;
}

static int
families(Ctx *ctx, const Family *family, const char *name)
{
	int wrong = 0;
	for (int round = 0; round < 2000; round++) {
		struct machine m;
		Cheapest c;
		ArenaMark run = arena_mark(&ctx->run), scratch = arena_mark(&ctx->scratch);
		if (make(ctx, &m, 2 + below(SERVERS - 1)) != OK || cheapest_new(ctx, &m.topo, NULL, &c) != OK)
			return report(1, name);
		if (cheapest_limit(&c, family, NULL) == OK) {
			cheapest_price(&c, m.price);
			wrong += check(&c, &m, family);
		} else {
			wrong++;
		}
		arena_release(&ctx->scratch, scratch);
		arena_release(&ctx->run, run);
	}
	return report(wrong, name);
}

int
main(void)
{
	Ctx ctx;
	ctx_init(&ctx);
	int failed = families(&ctx, &onehop_family, "one-hop trees and all of them")
	    + families(&ctx, &threephase_family, "three-phase trees and all of them");
	ctx_free(&ctx);
	return failed != 0;
}
