/* Which rank stands at which position: branch and bound over orders. Positions are placed one by one, those next to
 * placed ones first; each brings its hops to them. An order whose busiest link is no less busy than that of the best
 * one so far is given up. The first order that is tried has the servers one after the other, so on machines where all
 * GPUs are alike it stays. */
#include "plan/classic/classic.h"

#include <string.h>

/* A load, and the capacity of the link that has it. */
struct busy {
	int64_t load, capacity;
};

struct orders {
	Ctx *ctx;
	const Topology *topo;
	Hops *hops;
	const Traffic *traffic;
	int n, first;
	int *natural, *place_of;	/* ranks, server by server, and the inverse */
	int *first_of, *touching;	/* of each position: the arcs that begin or end there */
	int *sequence;			/* positions in the order in which they are placed */
	int *level_of;			/* of each position: its place in that */
	int *tried;			/* of each level: candidates that were tried */
	int *rank_at, *best;		/* of each position; -1: not yet */
	bool *used;			/* of each rank */
	int64_t *load;			/* of each link */
	struct busy *worst;		/* after each level */
	struct busy least, found;	/* what no order is below; the best so far */
	bool any;
	int64_t hops_left;
};

static int
compare(struct busy a, struct busy b)
{
	return ratio_cmp(a.load, a.capacity, b.load, b.capacity);
}

/* ---- preparations ---- */

/* Servers in turn from that of `first` on; and within it the ranks in turn from first on. */
static void
put_natural(struct orders *o)
{
	const Topology *topo = o->topo;
	int n = 0, from = o->first < 0 ? 0 : o->first, node = topo->vertex[from].node;
	for (int s = 0; s < topo->n_nodes + 1; s++) {
		int of = (node + 1 + s) % (topo->n_nodes + 1) - 1;	/* -1: in no server */
		for (int i = 0; i < o->n; i++) {
			int r = (from + i) % o->n;
			if (topo->vertex[r].node == of)
				o->natural[n++] = r;
		}
	}
	for (int i = 0; i < o->n; i++)
		o->place_of[o->natural[i]] = i;
}

static Status
put_touching(struct orders *o)
{
	const Traffic *traffic = o->traffic;
	int *at;
	TRY(TEMP(o->ctx, o->first_of, o->n + 1));
	TRY(TEMP(o->ctx, o->touching, 2 * (size_t)traffic->n_arcs));
	TRY(TEMP(o->ctx, at, o->n));
	for (int a = 0; a < traffic->n_arcs; a++) {
		o->first_of[traffic->arc[a].src + 1]++;
		o->first_of[traffic->arc[a].dst + 1]++;
	}
	for (int p = 0; p < o->n; p++) {
		o->first_of[p + 1] += o->first_of[p];
		at[p] = o->first_of[p];
	}
	for (int a = 0; a < traffic->n_arcs; a++) {
		o->touching[at[traffic->arc[a].src]++] = a;
		o->touching[at[traffic->arc[a].dst]++] = a;
	}
	return OK;
}

static int
other_end(const struct orders *o, int arc, int p)
{
	const struct traffic_arc *a = &o->traffic->arc[arc];
	return a->src == p ? a->dst : a->src;
}

/* Breadth first from position 0 over hops. */
static void
put_sequence(struct orders *o)
{
	int tail = 0;
	memset(o->level_of, -1, (size_t)o->n * sizeof *o->level_of);
	o->level_of[0] = 0;
	o->sequence[tail++] = 0;
	for (int head = 0; head < tail; head++) {
		int p = o->sequence[head];
		for (int i = o->first_of[p]; i < o->first_of[p + 1]; i++) {
			int q = other_end(o, o->touching[i], p);
			if (o->level_of[q] >= 0)
				continue;
			o->level_of[q] = tail;
			o->sequence[tail++] = q;
		}
	}
}

static int64_t
capacity_of(const Topology *topo, int rank, bool out)
{
	const int *first = out ? topo->first_out : topo->first_in, *link = out ? topo->out : topo->in;
	int64_t sum = 0;
	for (int i = first[rank]; i < first[rank + 1]; i++)
		sum += topo->link[link[i]].capacity;
	return sum;
}

/* Whatever the order: the busiest position has the ports of one rank, and the busiest hop at most the best link. */
static void
put_least(struct orders *o)
{
	struct busy port = { 0, 1 }, hop = { 0, 1 };
	for (int r = 0; r < o->n; r++)
		for (int out = 0; out < 2; out++) {
			int64_t capacity = capacity_of(o->topo, r, out);
			port.capacity = capacity > port.capacity ? capacity : port.capacity;
		}
	for (int l = 0; l < o->topo->n_links; l++)
		hop.capacity = o->topo->link[l].capacity > hop.capacity ? o->topo->link[l].capacity : hop.capacity;
	for (int p = 0; p < o->n; p++) {
		int64_t in = 0, out = 0;
		for (int i = o->first_of[p]; i < o->first_of[p + 1]; i++) {
			const struct traffic_arc *a = &o->traffic->arc[o->touching[i]];
			*(a->src == p ? &out : &in) += a->weight;
			hop.load = a->weight > hop.load ? a->weight : hop.load;
		}
		port.load = in > port.load ? in : port.load;
		port.load = out > port.load ? out : port.load;
	}
	o->least = compare(port, hop) > 0 ? port : hop;
}

static Status
orders_new(struct orders *o)
{
	int n = o->n;
	TRY(TEMP(o->ctx, o->natural, n));
	TRY(TEMP(o->ctx, o->place_of, n));
	TRY(TEMP(o->ctx, o->sequence, n));
	TRY(TEMP(o->ctx, o->level_of, n));
	TRY(TEMP(o->ctx, o->tried, n));
	TRY(TEMP(o->ctx, o->rank_at, n));
	TRY(TEMP(o->ctx, o->used, n));
	TRY(TEMP(o->ctx, o->worst, n + 1));
	TRY(TEMP(o->ctx, o->load, o->topo->n_links));
	put_natural(o);
	TRY(put_touching(o));
	put_sequence(o);
	put_least(o);
	o->worst[0] = (struct busy){ 0, 1 };
	memset(o->rank_at, -1, (size_t)n * sizeof *o->rank_at);
	o->hops_left = CLASSIC_HOPS + o->traffic->n_arcs;
	return OK;
}

/* ---- the search ---- */

/* The hop of an arc between placed positions, with its weight or the opposite. False: there is none. */
static bool
add_hop(struct orders *o, const struct traffic_arc *arc, int sign, struct busy *worst)
{
	int link[LIMIT_ROUTE_LINKS], n = hops_route(o->hops, o->rank_at[arc->src], o->rank_at[arc->dst], link);
	for (int i = 0; i < n; i++) {
		o->load[link[i]] += sign * arc->weight;
		struct busy at = { o->load[link[i]], o->topo->link[link[i]].capacity };
		*worst = compare(at, *worst) > 0 ? at : *worst;
	}
	return n > 0;
}

/* Takes back the hops that position p brought, up to `end` of those that touch it. */
static void
take_back(struct orders *o, int p, int end)
{
	struct busy unused = { 0, 1 };
	for (int i = o->first_of[p]; i < end; i++)
		if (o->rank_at[other_end(o, o->touching[i], p)] >= 0)
			add_hop(o, &o->traffic->arc[o->touching[i]], -1, &unused);
	o->used[o->rank_at[p]] = false;
	o->rank_at[p] = -1;
}

/* False: it stays as it was, since a hop is missing or the order would be no better than the best. */
static bool
put_rank(struct orders *o, int level, int rank)
{
	int p = o->sequence[level];
	struct busy worst = o->worst[level];
	o->rank_at[p] = rank;
	o->used[rank] = true;
	for (int i = o->first_of[p]; i < o->first_of[p + 1]; i++) {
		if (o->rank_at[other_end(o, o->touching[i], p)] < 0)
			continue;
		o->hops_left--;
		bool hop = add_hop(o, &o->traffic->arc[o->touching[i]], 1, &worst);
		if (hop && (!o->any || compare(worst, o->found) < 0))
			continue;
		take_back(o, p, hop ? i + 1 : i);
		return false;
	}
	o->worst[level + 1] = worst;
	return true;
}

/* The next candidate of a level that fits: that of the natural order, then those after it. */
static bool
put_next(struct orders *o, int level)
{
	int p = o->sequence[level];
	bool pinned = p == 0 && o->first >= 0;
	for (; o->tried[level] < (pinned ? 1 : o->n) && o->hops_left > 0; o->tried[level]++) {
		int rank = o->natural[(p + o->tried[level]) % o->n];
		if (!o->used[rank] && put_rank(o, level, rank)) {
			o->tried[level]++;
			return true;
		}
	}
	return false;
}

static void
search_orders(struct orders *o)
{
	int level = 0;
	while (level >= 0 && o->hops_left > 0 && !(o->any && compare(o->found, o->least) <= 0)) {
		if (level < o->n && put_next(o, level)) {
			if (++level < o->n)
				o->tried[level] = 0;
			continue;
		}
		if (level == o->n) {
			o->any = true;
			o->found = o->worst[level];
			memcpy(o->best, o->rank_at, (size_t)o->n * sizeof *o->best);
		}
		/* An order that is as busy as before is not wanted: back to where it was not so busy yet. */
		for (level--; level >= 0; level--) {
			take_back(o, o->sequence[level], o->first_of[o->sequence[level] + 1]);
			if (!o->any || compare(o->worst[level], o->found) < 0)
				break;
		}
	}
}

/* The first hop that an order misses: the ranks at its ends. */
static bool
misses_hop(Hops *hops, const Traffic *traffic, const int *order, int *src, int *dst)
{
	int link[LIMIT_ROUTE_LINKS];
	for (int a = 0; a < traffic->n_arcs; a++) {
		*src = order[traffic->arc[a].src];
		*dst = order[traffic->arc[a].dst];
		if (hops_route(hops, *src, *dst, link) == 0)
			return true;
	}
	return false;
}

/* Names the first hop that the natural order misses: it is tried first, so it misses one. */
static Status
fail_missing(struct orders *o, const char *name)
{
	const Vertex *vertex = o->topo->vertex;
	const char *what = o->hops_left > 0 ? "has" : "was found that has";
	int src, dst;
	if (misses_hop(o->hops, o->traffic, o->natural, &src, &dst))
		return fail(o->ctx, INFEASIBLE,
		    "%s: %s: no order of the GPUs %s a %s for every edge: want one as from %s to %s",
		    o->topo->name, name, what, hops_kind(o->hops), vertex[src].id, vertex[dst].id);
	return fail(o->ctx, INTERNAL, "%s: %s: no order", o->topo->name, name);
}

Status
order_choose(Ctx *ctx, const Topology *topo, Hops *hops, const Traffic *traffic, int first, const char *name,
    int *order, bool *best)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct orders o = { .ctx = ctx, .topo = topo, .hops = hops, .traffic = traffic, .n = topo->n_ranks,
		.first = first, .best = order };
	TRY(orders_new(&o));
	search_orders(&o);
	if (!o.any)
		return fail_missing(&o, name);
	*best = compare(o.found, o.least) <= 0 || (o.hops_left > 0 && topo->n_vertices == topo->n_ranks);
	arena_release(&ctx->scratch, mark);
	return OK;
}

/* Of a number below the power of two n. */
static int
reversed_bits(int number, int n)
{
	int out = 0;
	for (int bit = 1; bit < n; bit *= 2, number /= 2)
		out = 2 * out + number % 2;
	return out;
}

Status
order_of_ranks(Ctx *ctx, const Topology *topo, Hops *hops, const Traffic *traffic, RankOrder kind, int first,
    const char *name, int *order)
{
	int n = topo->n_ranks, src, dst;
	for (int p = 0; p < n; p++) {
		int after = kind == ORDER_BACKWARDS ? n - p : kind == ORDER_BITS && (n & (n - 1)) == 0
		    ? reversed_bits(p, n) : p;
		order[p] = ((first < 0 ? 0 : first) + after) % n;
	}
	if (misses_hop(hops, traffic, order, &src, &dst))
		return fail(ctx, INFEASIBLE, "%s: %s: no %s from %s to %s", topo->name, name, hops_kind(hops),
		    topo->vertex[src].id, topo->vertex[dst].id);
	return OK;
}
