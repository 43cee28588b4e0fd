/* One-hop trees (Blink 3.5), for GPUs that a switch or a full mesh connects: each of n ranks collects 1/n of the data
 * from all others, and sends the result to all others.
 *
 *     to every rank, from r:   a star out of r, or r -> v and a star out of v to the others
 *     from every rank, to r:   the same with all hops reversed
 *     allreduce:               a star into v and out of it again
 *     from a to b:             the hop itself
 *
 * With two hops a broadcast uses the links of many ranks v where those of r alone are the bottleneck. A demand has n
 * such trees at most, and the cost of each follows from the sums over the hops of each rank. */
#include "graph/graph.h"
#include "plan/family.h"

struct onehop {
	int64_t *in, *out;	/* of each rank: what all hops into it cost, or out of it */
};

static int64_t
hop_cost(const Cheapest *c, int src, int dst)
{
	return c->search.hop[search_cheapest_hop(&c->search, src, dst)].cost;
}

static void
onehop_price(Cheapest *c, const int64_t *price)
{
	struct onehop *o = c->family_state;
	int n = c->topo->n_ranks;
	(void)price;
	for (int v = 0; v < n; v++)
		o->in[v] = o->out[v] = 0;
	for (int v = 0; v < n; v++)
		for (int w = 0; w < n; w++) {
			int64_t cost = v == w ? 0 : hop_cost(c, v, w);
			o->out[v] += cost;
			o->in[w] += cost;
		}
}

/* hop[w]: the hop between v and w, for all w but v. */
static void
put_star(const Cheapest *c, int v, bool into, int *hop)
{
	for (int w = 0; w < c->topo->n_ranks; w++)
		if (w != v)
			hop[w] = into ? search_cheapest_hop(&c->search, w, v) : search_cheapest_hop(&c->search, v, w);
}

/* The star of the root itself, or a hop to another rank and its star, the cheapest. */
static int64_t
spread(Cheapest *c, int root, bool into)
{
	const struct onehop *o = c->family_state;
	const int64_t *star = into ? o->in : o->out;
	int best = root;
	int64_t least = star[root];
	for (int v = 0; v < c->topo->n_ranks; v++) {
		if (v == root)
			continue;
		int64_t there = into ? hop_cost(c, v, root) : hop_cost(c, root, v), back = into ? hop_cost(c, root, v)
		    : hop_cost(c, v, root);
		if (star[v] - back + there >= least)
			continue;
		least = star[v] - back + there;
		best = v;
	}
	put_star(c, best, into, c->there);
	if (best != root) {
		c->there[root] = -1;
		c->there[best] = into ? search_cheapest_hop(&c->search, best, root)
		    : search_cheapest_hop(&c->search, root, best);
	}
	return least;
}

static int64_t
both(Cheapest *c)
{
	const struct onehop *o = c->family_state;
	int64_t least = -1;
	for (int i = 0; i < c->n_roots; i++) {
		int v = c->roots ? c->roots[i] : i;
		if (least >= 0 && o->in[v] + o->out[v] >= least)
			continue;
		least = o->in[v] + o->out[v];
		c->root = v;
	}
	put_star(c, c->root, true, c->there);
	put_star(c, c->root, false, c->back);
	return least;
}

static Status
onehop_find(Cheapest *c, int64_t *cost)
{
	const Demand *d = &c->demand;
	if (d->kind == DEMAND_BROADCAST) {
		*cost = spread(c, d->from, false);
	} else if (d->kind == DEMAND_REDUCE) {
		*cost = spread(c, d->to, true);
	} else if (d->kind == DEMAND_ALLREDUCE) {
		*cost = both(c);
	} else {
		c->there[d->to] = search_cheapest_hop(&c->search, d->from, d->to);
		*cost = hop_cost(c, d->from, d->to);
	}
	return OK;
}

/* search_cheapest_hop finds a hop that has a route. */
static Status
check_mesh(Cheapest *c)
{
	const Topology *topo = c->topo;
	for (int v = 0; v < topo->n_ranks; v++)
		for (int w = 0; w < topo->n_ranks; w++)
			if (v != w && search_cheapest_hop(&c->search, v, w) < 0)
				return fail(c->ctx, INFEASIBLE,
				    "%s: %s: no direct hop from %s to %s: want one from each GPU to each other",
				    topo->name, c->family->trees, topo->vertex[v].id, topo->vertex[w].id);
	return OK;
}

static Status
onehop_start(Cheapest *c, const Symmetry *sym)
{
	struct onehop *o;
	int64_t *free;
	(void)sym;
	TRY(TEMP(c->ctx, free, c->topo->n_links));
	search_price(&c->search, free);
	TRY(check_mesh(c));
	TRY(TEMP(c->ctx, o, 1));
	TRY(TEMP(c->ctx, o->in, c->topo->n_ranks));
	TRY(TEMP(c->ctx, o->out, c->topo->n_ranks));
	c->family_state = o;
	/* Up and down are stars of their own. */
	c->paired = true;
	return OK;
}

const Family onehop_family = { ONEHOP_TREES, onehop_start, onehop_price, onehop_find };

Status
plan_onehop(Ctx *ctx, const Planning *in, Plan *out)
{
	return plan_family(ctx, in, &onehop_family, out);
}

bool
onehop_is_even_mesh(const Topology *topo)
{
	bool even = topo->n_vertices == topo->n_ranks && topo->n_ranks <= LIMIT_ILP_RANKS;
	for (int r = 0; r < topo->n_ranks && even; r++) {
		bool from[LIMIT_ILP_RANKS] = { false };
		int n = 0;
		for (int i = topo->first_in[r]; i < topo->first_in[r + 1]; i++) {
			const Link *link = &topo->link[topo->in[i]];
			n += !from[link->from];
			from[link->from] = true;
			even &= link->capacity == topo->link[0].capacity;
		}
		even &= n == topo->n_ranks - 1 && topo->first_in[r + 1] - topo->first_in[r] == n;
	}
	return even;
}
