/* Rings of the highest rate: a linear program with a column for each ring and a row for each link,
 *
 *     max sum x_ring    for each link: sum of x_ring * (times that the ring passes it) <= capacity
 *
 * whose columns are found under prices by the dynamic program of Held and Karp: the cheapest path from rank 0 through
 * each set of ranks to each of its members; of more ranks, in several servers, the cheapest ring that visits one server
 * after the other (server_ring.h). GPUs 0, 2 and 3 of a DGX-1V have links of 1 (0-2), 2 and 2: two rings, one
 * in each direction, and no third, as link 0-2 is full. The prices that prove it are 1 for each direction of 0-2. */
#include "plan/pack/rings/rings.h"

#include "graph/flow.h"
#include "graph/hamiltonian.h"
#include "graph/search.h"
#include "plan/pack/rings/server_ring.h"
#include "plan/pack/lp/simplex.h"

#include <string.h>

enum {
	NO_RANK = -1,
	MOST_PIVOTS = 1 << 10,
	MOST_ROWS = 1 << 8,	/* of the program: a pivot takes their square */
	MOST_RINGS = 1 << 8,	/* that are searched for where there is no linear program */
	RING_LINKS = MOST_ROWS
};

#define NO_HOP (INT64_MAX / 4)

struct column {
	Edge *edge;		/* of each hop, in the scratch arena */
	unsigned classes;
	bool through;		/* another rank */
};

struct program {
	Ctx *ctx;
	const Topology *topo;
	bool through;
	int64_t cut;		/* no rings have a higher rate */
	Search search;
	Simplex simplex;
	int64_t *cost;		/* n * n: of the cheapest hop from one rank to another, or NO_HOP */
	int *via;		/* n * n: the rank that it leads through, or NO_RANK */
	int64_t *path;		/* 2^(n - 1) * (n - 1): of the cheapest path from rank 0 */
	signed char *before;	/* likewise: the member before the last */
	ServerRing *servers;	/* NULL: rings visit ranks in any order */
	int *order;		/* ranks of the cheapest ring */
	int n_columns;
	struct column column[MOST_PIVOTS];
};

/* ---- cuts ---- */

/* Capacity of the links that lead from vertices of one key to others, and back, each key with ranks inside and outside:
 * a rank by itself, or a server. */
static Status
simple_cuts(Ctx *ctx, const Topology *topo, bool servers, int64_t *least)
{
	int n = servers ? topo->n_nodes : topo->n_ranks;
	int64_t *out, *in;
	bool *inside;
	TRY(TEMP(ctx, out, n));
	TRY(TEMP(ctx, in, n));
	TRY(TEMP(ctx, inside, n));
	for (int l = 0; l < topo->n_links; l++) {
		const Link *link = &topo->link[l];
		int from = servers ? topo->vertex[link->from].node : link->from;
		int to = servers ? topo->vertex[link->to].node : link->to;
		if (from != to && from >= 0 && from < n)
			out[from] += link->capacity;
		if (from != to && to >= 0 && to < n)
			in[to] += link->capacity;
	}
	for (int r = 0; r < topo->n_ranks; r++)
		if (!servers || topo->vertex[r].node >= 0)
			inside[servers ? topo->vertex[r].node : r] = true;
	for (int i = 0; i < n; i++) {
		if (!inside[i])
			continue;
		*least = out[i] < *least ? out[i] : *least;
		*least = in[i] < *least ? in[i] : *least;
	}
	return OK;
}

/* Each ring leaves every set of ranks, and enters it. One of these flows is the least of all cuts. */
static Status
least_cut(Ctx *ctx, const Topology *topo, int64_t *out)
{
	Flow f;
	bool *known;
	*out = INT64_MAX;
	TRY(simple_cuts(ctx, topo, false, out));
	if (topo->n_nodes > 1)
		TRY(simple_cuts(ctx, topo, true, out));
	if (topo->n_ranks > RINGS_CUT_RANKS)
		return OK;
	TRY(flow_new(ctx, topo, &f));
	TRY(TEMP(ctx, known, topo->n_ranks));
	known[0] = true;
	for (int r = 1; r < topo->n_ranks; known[r++] = true) {
		int64_t there = flow_past(&f, known, r, false), back = flow_past(&f, known, r, true);
		*out = there < *out ? there : *out;
		*out = back < *out ? back : *out;
	}
	return OK;
}

/* ---- the cheapest ring ---- */

static void
set_costs(struct program *p)
{
	int n = p->topo->n_ranks;
	search_price(&p->search, p->simplex.price);
	for (int src = 0; src < n; src++) {
		for (int dst = 0; dst < n; dst++) {
			int hop = src == dst ? -1 : search_cheapest_hop(&p->search, src, dst);
			p->cost[src * n + dst] = hop < 0 ? NO_HOP : p->search.hop[hop].cost;
			p->via[src * n + dst] = NO_RANK;
		}
	}
}

/* Between ranks without a hop of their own. */
static void
set_costs_through(struct program *p)
{
	int n = p->topo->n_ranks;
	for (int src = 0; src < n; src++) {
		for (int dst = 0; dst < n; dst++) {
			int64_t least = NO_HOP;
			if (src == dst || p->cost[src * n + dst] < NO_HOP)
				continue;
			for (int v = 0; v < n; v++) {
				bool hops = v != src && v != dst && p->via[src * n + v] == NO_RANK
				    && p->via[v * n + dst] == NO_RANK;
				int64_t cost = hops ? p->cost[src * n + v] + p->cost[v * n + dst] : NO_HOP;
				if (cost < least) {
					least = cost;
					p->via[src * n + dst] = v;
				}
			}
			p->cost[src * n + dst] = least;
		}
	}
}

/* From rank 0 through each set of other ranks, by a bit for each, to each of its members. */
static void
find_paths(struct program *p)
{
	int n = p->topo->n_ranks, others = n - 1;
	for (int i = 0; i < (1 << others) * others; i++)
		p->path[i] = NO_HOP;
	for (int v = 0; v < others; v++)
		p->path[(1 << v) * others + v] = p->cost[v + 1];
	for (int set = 1; set < 1 << others; set++) {
		for (int last = 0; last < others; last++) {
			int64_t so_far = p->path[set * others + last];
			for (int v = 0; so_far < NO_HOP && v < others; v++) {
				int64_t cost = so_far + p->cost[(last + 1) * n + v + 1];
				int at = (set | 1 << v) * others + v;
				if (set >> v & 1 || cost >= p->path[at])
					continue;
				p->path[at] = cost;
				p->before[at] = (signed char)last;
			}
		}
	}
}

/* Its cost, or NO_HOP; its ranks in p->order. */
static int64_t
cheapest_ring(struct program *p)
{
	if (p->servers)
		return server_ring_cheapest(p->servers, p->cost, p->order);
	int n = p->topo->n_ranks, others = n - 1, set = (1 << others) - 1, last = 0;
	int64_t least = NO_HOP;
	find_paths(p);
	for (int v = 0; v < others; v++) {
		int64_t cost = p->path[set * others + v] + p->cost[(v + 1) * n];
		if (cost < least) {
			least = cost;
			last = v;
		}
	}
	p->order[0] = 0;
	for (int i = others; i > 0 && least < NO_HOP; i--) {
		int before = p->before[set * others + last];
		p->order[i] = last + 1;
		set &= ~(1 << last);
		last = before;
	}
	return least;
}

/* ---- columns ---- */

/* Links from a rank of the ring to the next one. */
static Status
route_hop(const struct program *p, int src, int dst, Edge *out)
{
	int route[2 * LIMIT_ROUTE_LINKS], via = p->via[src * p->topo->n_ranks + dst], length, more = 0, *link;
	const Search *search = &p->search;
	length = search_route(search, search_cheapest_hop(search, src, via == NO_RANK ? dst : via), route);
	if (length >= 0 && via != NO_RANK)
		more = search_route(search, search_cheapest_hop(search, via, dst), route + length);
	if (length < 0 || more < 0)
		return fail(p->ctx, LIMIT, "%s: a hop of a ring takes more than %d links", p->topo->name,
		    LIMIT_ROUTE_LINKS);
	TRY(TEMP(p->ctx, link, length + more));
	memcpy(link, route, (size_t)(length + more) * sizeof *link);
	*out = (Edge){ .src = src, .dst = dst, .n_links = length + more, .link = link };
	return OK;
}

/* The ring of p->order as a column. */
static Status
make_column(const struct program *p, struct column *out)
{
	int n = p->topo->n_ranks;
	*out = (struct column){ 0 };
	TRY(TEMP(p->ctx, out->edge, n));
	for (int i = 0; i < n; i++) {
		int src = p->order[i], dst = p->order[(i + 1) % n];
		Edge *edge = &out->edge[i];
		TRY(route_hop(p, src, dst, edge));
		out->through |= p->via[src * n + dst] != NO_RANK;
		for (int k = 0; k < edge->n_links; k++)
			out->classes |= 1u << p->topo->link[edge->link[k]].class;
	}
	return OK;
}

/* Links of an edge, counted; n: of them so far. */
static int
count_links(const Edge *edge, int *link, int *times, int n)
{
	for (int i = 0; i < edge->n_links; i++) {
		int k = 0;
		while (k < n && link[k] != edge->link[i])
			k++;
		if (k == n) {
			link[n] = edge->link[i];
			times[n++] = 0;
		}
		times[k]++;
	}
	return n;
}

/* The ring of p->order comes into the basis. *entered: numbers did not become too large. */
static Status
enter_ring(struct program *p, bool *entered)
{
	int link[RING_LINKS], times[RING_LINKS], n = 0;
	struct column *column = &p->column[p->n_columns];
	TRY(make_column(p, column));
	for (int i = 0; i < p->topo->n_ranks; i++)
		n = count_links(&column->edge[i], link, times, n);
	*entered = simplex_enter(&p->simplex, p->n_columns++, link, times, n);
	return OK;
}

/* *proven: the basis is optimal, or reaches the cut. *ended: numbers did not become too large before. */
static Status
improve(struct program *p, bool *proven, bool *ended)
{
	Simplex *s = &p->simplex;
	int pivots = MOST_PIVOTS;
	*proven = *ended = false;
	while (simplex_price(s, &pivots)) {
		bool entered;
		set_costs(p);
		if (p->through)
			set_costs_through(p);
		*proven = simplex_sum(s) == (Wide)p->cut * s->den;
		*ended = *proven || cheapest_ring(p) >= s->den || --pivots <= 0;
		*proven = *proven || (*ended && pivots > 0 && !p->servers);
		if (*ended)
			return OK;
		TRY(enter_ring(p, &entered));
		if (!entered)
			return OK;
	}
	*ended = pivots <= 0;
	return OK;
}

/* ---- the result ---- */

/* Widths in proportion to the values of the basis: exactly, but where these are large. */
static void
set_widths(const Simplex *s, RingPacking *out)
{
	Wide divisor = 0, most = (Wide)1 << (PACKING_BITS - 10);
	int n = 0;
	for (int i = 0; i < s->m; i++)
		if (s->column[i] != SIMPLEX_SLACK)
			divisor = gcd_wide(divisor, s->value[i]);
	while (divisor && simplex_sum(s) / divisor > most)
		divisor *= 2;
	for (int i = 0; i < s->m; i++)
		if (s->column[i] != SIMPLEX_SLACK && s->value[i] != 0)
			out->ring[n++].width = s->value[i] < divisor ? 1 : (int64_t)(s->value[i] / divisor);
}

static Status
copy_ring(Ctx *ctx, const Edge *edge, int n, Cycle *out)
{
	TRY(NEW(ctx, out->edge, n));
	for (int i = 0; i < n; i++) {
		int *link;
		TRY(NEW(ctx, link, edge[i].n_links));
		memcpy(link, edge[i].link, (size_t)edge[i].n_links * sizeof *link);
		out->edge[i] = edge[i];
		out->edge[i].link = link;
	}
	return OK;
}

/* *fits: the rate needs no more than 64 bits. */
static Status
read_basis(const struct program *p, RingPacking *out, bool *fits)
{
	const Simplex *s = &p->simplex;
	TRY(NEW(p->ctx, out->ring, s->m));
	for (int i = 0; i < s->m; i++) {
		if (s->column[i] == SIMPLEX_SLACK || s->value[i] == 0)
			continue;
		const struct column *column = &p->column[s->column[i]];
		TRY(copy_ring(p->ctx, column->edge, p->topo->n_ranks, &out->ring[out->n++]));
		out->classes |= column->classes;
		out->through |= column->through;
	}
	set_widths(s, out);
	*fits = frac_make(simplex_sum(s), s->den, &out->rate);
	return OK;
}

/* *ended: there is a result. servers: NULL, or what rings visit one after the other. */
static Status
pack_exactly(Ctx *ctx, const Topology *topo, bool through, ServerRing *servers, int64_t cut, RingPacking *out,
    bool *ended)
{
	struct program *p;
	int n = topo->n_ranks, paths = servers ? 0 : (1 << (n - 1)) * (n - 1);
	int64_t *limit;
	TRY(TEMP(ctx, p, 1));
	*p = (struct program){ .ctx = ctx, .topo = topo, .through = through, .servers = servers, .cut = cut };
	TRY(TEMP(ctx, limit, topo->n_links));
	for (int l = 0; l < topo->n_links; l++)
		limit[l] = topo->link[l].capacity;
	TRY(search_new(ctx, topo, &p->search));
	TRY(simplex_new(ctx, limit, topo->n_links, &p->simplex));
	TRY(TEMP(ctx, p->cost, n * n));
	TRY(TEMP(ctx, p->via, n * n));
	TRY(TEMP(ctx, p->order, n));
	TRY(TEMP(ctx, p->path, paths));
	TRY(TEMP(ctx, p->before, paths));
	*out = (RingPacking){ .rate = FRAC_ZERO, .topo = topo };
	TRY(improve(p, &out->proven, ended));
	return *ended ? read_basis(p, out, ended) : OK;
}

/* ---- rings of whole links ---- */

static Status
pack_searched(Ctx *ctx, const Topology *topo, int64_t cut, RingPacking *out)
{
	CyclePacking rings;
	*out = (RingPacking){ .rate = FRAC_ZERO, .topo = topo };
	TRY(cycles_pack(ctx, topo, MOST_RINGS, &rings));
	out->n = rings.n;
	out->ring = rings.ring;
	for (int i = 0; i < rings.n; i++)
		for (int e = 0; e < topo->n_ranks; e++)
			for (int k = 0; k < rings.ring[i].edge[e].n_links; k++)
				out->classes |= 1u << topo->link[rings.ring[i].edge[e].link[k]].class;
	if (!frac_make((Wide)rings.units * rings.unit, 1, &out->rate))
		return fail(ctx, LIMIT, "%s: the rate of rings needs more than 64 bits", topo->name);
	out->proven = out->rate.num == cut;
	return OK;
}

/* Those of servers one after the other, where these are faster. */
static Status
pack_servers(Ctx *ctx, const Topology *topo, bool through, int64_t cut, RingPacking *out)
{
	ServerRing servers;
	RingPacking found;
	bool fits, ended;
	TRY(server_ring_new(ctx, topo, &servers, &fits));
	if (!fits)
		return OK;
	TRY(pack_exactly(ctx, topo, through, &servers, cut, &found, &ended));
	if (ended && frac_cmp(found.rate, out->rate) > 0)
		*out = found;
	return OK;
}

Status
pack_rings(Ctx *ctx, const Topology *topo, bool through, RingPacking *out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	bool ended = false;
	int64_t cut;
	TRY(least_cut(ctx, topo, &cut));
	if (topo->n_ranks <= RINGS_EXACT_RANKS && topo->n_links <= MOST_ROWS)
		TRY(pack_exactly(ctx, topo, through, NULL, cut, out, &ended));
	if (!ended)
		TRY(pack_searched(ctx, topo, cut, out));
	if (!out->proven && topo->n_ranks > RINGS_EXACT_RANKS && topo->n_ranks <= RINGS_SERVER_RANKS
	    && topo->n_links <= MOST_ROWS)
		TRY(pack_servers(ctx, topo, through, cut, out));
	out->at_cut = out->rate.num == (Wide)cut * out->rate.den;
	arena_release(&ctx->scratch, mark);
	return OK;
}
