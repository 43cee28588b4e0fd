/* Hamiltonian cycles, as many at once as the capacities of links allow.
 *
 * Capacities are counted in units of the slowest physical link. Where links join the ranks directly and have few
 * Hamiltonian cycles, all of these are listed, and branch and bound takes as many at once as fit: each ring leaves each
 * rank once and enters it once, so k rings need k units of capacity out of each rank and into it, and a rank with no
 * more than k left has to use all its links. DGX-1V: 6 links out of each GPU, 6 rings. Elsewhere (switches, many ranks)
 * rings are found one after the other, by a walk that prefers fast links, finishes a server before it leaves it, and
 * backtracks where it is stuck. */
#include "graph/hamiltonian.h"
#include "graph/cycles.h"

#include <string.h>

enum {
	NO_HOP = -1,
	FULL_PRICE = 1 << 30,
	FINEST = 16	/* parts of a unit, at most: a ring may have to pass a link more than once */
};

struct walk {
	struct finder *p;
	bool by_server;		/* leave no server before all its ranks are visited */
	int start, depth;
	int *hop, *tried;	/* of each step; and how many of the hops of its rank were tried */
	int64_t *price;		/* of each link */
	int *order, *n_ordered;	/* hops of each rank, the better first: as many as were asked for */
	enum ordered { NONE_YET, SOME_NEAR, ALL_NEAR, SOME_FAR, ALL_HOPS } *ordered;	/* near: in its server */
	int *server;		/* of each rank */
	int *server_rank, *first_rank;	/* ranks by server, and where those of each begin */
	bool *visited;
	int *server_left;	/* ranks of each server that are not visited */
	int64_t calls;		/* of next_hop */
};

static int
server_of(const struct walk *w, int rank)
{
	return w->server[rank];
}

/* What makes a hop better than others from the same rank: it stays in the server; has faster and fewer links; leads to
 * the next number. */
struct merit {
	bool far;
	int64_t cost;
	int step, hop;
};

static inline struct merit
merit_of(const struct walk *w, int hop)
{
	const struct hop *h = &w->p->search.hop[hop];
	int step = h->dst - h->src;
	return (struct merit){ server_of(w, h->dst) != server_of(w, h->src), h->cost,
		step < 0 ? step + w->p->topo->n_ranks : step, hop };
}

static inline bool
better(const struct merit *a, const struct merit *b)
{
	if (a->far != b->far)
		return b->far;
	if (a->cost != b->cost)
		return a->cost < b->cost;
	return a->step != b->step ? a->step < b->step : a->hop < b->hop;
}

static bool
may_follow(const struct walk *w, int hop)
{
	const struct hop *h = &w->p->search.hop[hop];
	int here = server_of(w, h->src);
	if (w->depth == w->p->topo->n_ranks - 1 ? h->dst != w->start : w->visited[h->dst])
		return false;
	return !w->by_server || server_of(w, h->dst) == here || w->server_left[here] == 0;
}

/* Take the links of a hop, or (sign -1) give them back. False: they do not have the capacity. */
static bool
use_hop(struct walk *w, int hop, int sign)
{
	int route[LIMIT_ROUTE_LINKS], n = search_route(&w->p->search, hop, route);
	bool fits = n > 0;
	for (int i = 0; i < n; i++) {
		w->p->left[route[i]] -= sign;
		fits = fits && w->p->left[route[i]] >= 0;
	}
	if (sign > 0 && !fits)
		use_hop(w, hop, -1);
	return fits;
}

/* Of one rank: n hops in order, and behind them the best others so far, m of at most `most`. */
struct ordering {
	const struct walk *w;
	int *order, n, m, most;
	struct merit last, worst;	/* of those in order, if n > 0; of the others, if m == most */
};

static inline void
order_one(struct ordering *o, int h)
{
	int *next = o->order + o->n, at;
	struct merit one = merit_of(o->w, h), other;
	if (one.cost < 0 || (o->m == o->most && !better(&one, &o->worst)) || (o->n > 0 && !better(&o->last, &one)))
		return;
	at = o->m < o->most ? o->m++ : o->m - 1;
	for (; at > 0 && (other = merit_of(o->w, next[at - 1]), better(&one, &other)); at--)
		next[at] = next[at - 1];
	next[at] = h;
	if (o->m == o->most)
		o->worst = merit_of(o->w, next[o->m - 1]);
}

/* Within the server of the rank. Between switches they are priced here. */
static void
order_near(struct walk *w, struct ordering *o, int rank)
{
	int here = server_of(w, rank);
	for (int i = w->first_rank[here]; i < w->first_rank[here + 1]; i++) {
		int other = w->server_rank[i];
		if (other == rank)
			continue;
		if (w->ordered[rank] == NONE_YET)
			search_price_hop(&w->p->search, rank, other, w->price);
		order_one(o, search_hop_between(&w->p->search, rank, other));
	}
}

static void
order_any(struct walk *w, struct ordering *o, int rank)
{
	Search *s = &w->p->search;
	int n = w->p->topo->n_ranks;
	if (w->ordered[rank] < SOME_FAR)
		search_price_rank(s, rank, w->price);
	/* Between switches in the order that hops of equal cost are to have. */
	for (int step = 1; step < n && s->switched; step++)
		order_one(o, search_hop_between(s, rank, rank + step < n ? rank + step : rank + step - n));
	for (int i = 0, h; !s->switched && (h = search_hop_at(s, rank, i, false)) >= 0; i++)
		order_one(o, h);
}

/* Put the next best hops of a rank behind those in order, each time as many as there are, so that they are looked
 * through seldom: most walks go on by one of the first, and most of these stay in the server. */
static void
order_more(struct walk *w, int rank, int *order)
{
	enum { FIRST = 16 };
	int n = w->n_ordered[rank];
	struct ordering o = { .w = w, .order = order, .n = n, .most = n > FIRST ? n : FIRST };
	if (n > 0)
		o.last = merit_of(w, order[n - 1]);
	if (w->ordered[rank] < ALL_NEAR && w->p->search.switched) {
		order_near(w, &o, rank);
		w->ordered[rank] = o.m < o.most ? ALL_NEAR : SOME_NEAR;
	}
	if (o.m == 0) {
		order_any(w, &o, rank);
		w->ordered[rank] = o.m < o.most ? ALL_HOPS : SOME_FAR;
	}
	w->n_ordered[rank] += o.m;
}

/* The hop that closes a ring: between switches there is one at most. */
static int
last_hop(struct walk *w, int at, int *tried)
{
	Search *s = &w->p->search;
	if ((*tried)++ > 0)
		return NO_HOP;
	search_price_hop(s, at, w->start, w->price);
	int h = search_hop_between(s, at, w->start);
	return s->hop[h].cost >= 0 ? h : NO_HOP;
}

/* The best hop of a rank after those tried that the walk may take, or NO_HOP. */
static int
next_hop(struct walk *w, int at, int *tried)
{
	const Topology *topo = w->p->topo;
	int *order = w->order + (w->p->search.switched ? at * (topo->n_ranks - 1) : topo->first_out[at]);
	w->calls++;
	if (w->p->search.switched && w->depth == topo->n_ranks - 1)
		return last_hop(w, at, tried);
	for (;;) {
		if (*tried == w->n_ordered[at] && w->ordered[at] != ALL_HOPS)
			order_more(w, at, order);
		if (*tried == w->n_ordered[at])
			return NO_HOP;
		int h = order[(*tried)++];
		if (may_follow(w, h))
			return h;
	}
}

static void
visit(struct walk *w, int rank, bool enter)
{
	w->visited[rank] = enter;
	w->server_left[server_of(w, rank)] += enter ? -1 : 1;
}

/* Close a ring from w->start, or give up after LIMIT_RING_WALK hops beyond those of a walk that never backtracks. The
 * links of a ring that is found are given back. */
static bool
walk_ring(struct walk *w)
{
	int n = w->p->topo->n_ranks;
	int64_t most_calls = 2 * n + LIMIT_RING_WALK / n;
	bool found = false;
	visit(w, w->start, true);
	w->depth = w->tried[0] = 0;
	w->calls = 0;
	while (w->depth >= 0 && !found && w->calls < most_calls) {
		int at = w->depth ? w->p->search.hop[w->hop[w->depth - 1]].dst : w->start;
		int h = next_hop(w, at, &w->tried[w->depth]);
		w->hop[w->depth] = h;
		if (h != NO_HOP && !use_hop(w, h, 1))
			continue;
		if (h == NO_HOP) {
			if (w->depth-- > 0) {
				visit(w, at, false);
				use_hop(w, w->hop[w->depth], -1);
			}
		} else if (w->depth == n - 1) {
			found = true;
		} else {
			visit(w, w->p->search.hop[h].dst, true);
			w->tried[++w->depth] = 0;
		}
	}
	for (int i = 0; i < w->depth + found; i++)
		use_hop(w, w->hop[i], -1);
	for (int r = 0; r < n; r++)
		if (w->visited[r])
			visit(w, r, false);
	return found;
}

/* Fast links are cheap, and full ones are dearer than any route around them. */
static void
reprice(struct walk *w)
{
	struct finder *p = w->p;
	int64_t top = 1;
	for (int l = 0; l < p->topo->n_links; l++)
		top = p->topo->link[l].capacity > top ? p->topo->link[l].capacity : top;
	for (int l = 0; l < p->topo->n_links; l++)
		w->price[l] = p->left[l] < 1 ? FULL_PRICE
		    : 1 + (int64_t)(16.0 * (double)top / (double)p->topo->link[l].capacity);
	search_price_hubs(&p->search, w->price);
	for (int r = 0; r < p->topo->n_ranks; r++) {
		w->n_ordered[r] = 0;
		w->ordered[r] = NONE_YET;
	}
}

/* Units of each link that the ring of the walk leaves to others: how wide it can be. */
static Status
width_of(struct walk *w, int64_t *out)
{
	struct finder *p = w->p;
	int64_t *uses, width = INT64_MAX;
	int route[LIMIT_ROUTE_LINKS];
	ArenaMark mark = arena_mark(&p->ctx->scratch);
	TRY(TEMP(p->ctx, uses, p->topo->n_links));
	for (int i = 0; i < p->topo->n_ranks; i++) {
		int n = search_route(&p->search, w->hop[i], route);
		for (int k = 0; k < n; k++)
			uses[route[k]]++;
	}
	for (int l = 0; l < p->topo->n_links; l++)
		if (uses[l] && p->left[l] / uses[l] < width)
			width = p->left[l] / uses[l];
	arena_release(&p->ctx->scratch, mark);
	*out = width;
	return OK;
}

/* One more ring, from whichever rank of the first server. */
static Status
find_ring(struct walk *w, bool *found)
{
	struct finder *p = w->p;
	int64_t width;
	int starts = p->topo->n_nodes > 1 ? p->topo->n_ranks : 1;
	reprice(w);
	*found = false;
	for (w->start = 0; w->start < starts && !*found; w->start++) {
		if (server_of(w, w->start) != server_of(w, 0))
			continue;
		if (progress(p->ctx, "ring %d", p->n_rings + 1) <= 0)
			return OK;
		*found = walk_ring(w);
	}
	if (!*found)
		return OK;
	TRY(width_of(w, &width));
	return add_ring(p, w->hop, width);
}

static Status
new_walk(struct finder *p, struct walk *w)
{
	int n = p->topo->n_ranks, n_nodes = p->topo->n_nodes + 1, *next;
	*w = (struct walk){ .p = p };
	TRY(TEMP_EACH(p->ctx, n, w->hop, w->tried));
	TRY(TEMP(p->ctx, w->price, p->topo->n_links));
	TRY(TEMP(p->ctx, w->order, p->search.n_hops));
	TRY(TEMP_EACH(p->ctx, n, w->n_ordered, w->ordered, w->visited));
	TRY(TEMP(p->ctx, w->server_left, n_nodes));
	TRY(TEMP_EACH(p->ctx, n, w->server, w->server_rank));
	TRY(TEMP(p->ctx, w->first_rank, n_nodes + 1));
	TRY(TEMP(p->ctx, next, n_nodes));
	for (int r = 0; r < n; r++) {
		int node = p->topo->vertex[r].node;
		w->server[r] = node < 0 ? 0 : node;
		w->server_left[w->server[r]]++;
	}
	for (int s = 0; s < n_nodes; s++)
		w->first_rank[s + 1] = w->first_rank[s] + w->server_left[s];
	memcpy(next, w->first_rank, (size_t)n_nodes * sizeof *next);
	for (int r = 0; r < n; r++)
		w->server_rank[next[server_of(w, r)]++] = r;
	return OK;
}

static Status
find_rings(struct finder *p)
{
	struct walk w;
	bool found;
	TRY(new_walk(p, &w));
	/* A server at a time where that is possible; a ring that has to pass a link more than once needs finer units.
	 */
	for (int parts = 1; parts <= FINEST && p->n_rings == 0; parts *= 2) {
		set_units(p, parts);
		int64_t most = units_of_ranks(p);
		for (int tries = 0; tries < 2 && p->n_rings == 0; tries++) {
			w.by_server = tries == 0;
			for (found = true; found && p->n_rings < p->most_rings;)
				TRY(find_ring(&w, &found));
		}
		p->proven = parts == 1 && p->units == most;
	}
	return OK;
}

static Status
find_all(struct finder *p)
{
	struct cycle_list cycles = { .n = 0 };
	int n = p->topo->n_ranks;
	set_units(p, 1);
	if (!p->search.switched && n * n < LIMIT_RINGS)
		TRY(list_cycles(p, &cycles));
	if (cycles.n > 0)
		return choose_cycles(p, &cycles);
	return cycles.all ? OK : find_rings(p);
}

Status
cycles_pack(Ctx *ctx, const Topology *topo, int most, CyclePacking *out)
{
	struct finder p = { .ctx = ctx, .topo = topo, .most_rings = most };
	ArenaMark mark = arena_mark(&ctx->scratch);
	TRY(NEW(ctx, p.ring, most));
	TRY(TEMP(ctx, p.left, topo->n_links));
	TRY(search_new_lazy(ctx, topo, &p.search));
	TRY(find_all(&p));
	arena_release(&ctx->scratch, mark);
	*out = (CyclePacking){ p.n_rings, p.ring, p.unit, p.units, p.proven };
	return OK;
}
