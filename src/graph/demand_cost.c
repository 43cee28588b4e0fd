/* The cost of the cheapest trees of all demands.
 *
 * A path is a shortest path over all vertices, since GPUs relay: a search from each source. An arborescence is made of
 * hops, each of which pays for its whole route, which passes through no third GPU: a search from each rank gives the
 * matrix of all hops, and each root contracts a copy of it. Without switches hops are links. */
#include "graph/demand_cost.h"
#include "graph/shortest.h"

#include <string.h>

/* Steps, measured as ns: of a search, for a vertex or link; of a contraction, for an entry of the matrix or for a
 * link. */
enum { STEPS_ROW = 6, STEPS_LINK = 60 };

/* No hop that a schedule can have costs more: LIMIT_ROUTE_LINKS links. */
#define HOP_MOST ((int64_t)LIMIT_ROUTE_LINKS << SEARCH_PRICE_BITS)

struct pricing {
	Ctx *ctx;
	const char *label;
	const Topology *topo;
	int64_t *distance;	/* of each vertex from the source; -1: none */
	Paths paths;
	Search search;
	int64_t *hops;		/* as search_rows_cost takes them, for arborescences out of a root */
};

/* ---- shortest paths ---- */

/* relay: through GPUs, too. against: links are walked from their ends, for distances to the source. */
static Status
distances(struct pricing *p, int source, bool relay, bool against)
{
	p->paths.relay = relay;
	TRY(count_steps(p->ctx, p->label, STEPS_SEARCH * ((int64_t)p->topo->n_vertices + p->topo->n_links)));
	shortest_paths(&p->paths, source, against, p->distance, NULL);
	return OK;
}

/* The sum of the paths from a rank to all others, or, with `against`, from all others to it. */
static Status
paths_cost(struct pricing *p, int rank, bool against, Wide *cost)
{
	TRY(distances(p, rank, true, against));
	for (int r = 0; r < p->topo->n_ranks && *cost >= 0; r++)
		*cost = p->distance[r] < 0 ? -1 : *cost + p->distance[r];
	return OK;
}

/* ---- arborescences ---- */

/* The cost of each hop: of its route through switches. */
static Status
find_hops(struct pricing *p)
{
	size_t n = (size_t)p->topo->n_ranks;
	TRY(count_steps(p->ctx, p->label, STEPS_ROW * (int64_t)(n * n)));
	TRY(search_rows_new(p->ctx, p->topo, &p->search));
	TRY(TEMP(p->ctx, p->hops, n * n));
	for (size_t u = 0; u < n; u++) {
		TRY(distances(p, (int)u, false, false));
		for (size_t v = 0; v < n; v++)
			p->hops[v * n + u] = u == v ? -1 : p->distance[v] > HOP_MOST ? HOP_MOST : p->distance[v];
	}
	return OK;
}

static Status
start_arborescences(struct pricing *p)
{
	if (p->topo->n_vertices > p->topo->n_ranks)
		return find_hops(p);
	TRY(search_new(p->ctx, p->topo, &p->search));
	search_price(&p->search, p->paths.price);
	return OK;
}

/* Of the cheapest one out of (into) a rank; -1: there is none. */
static Status
arborescence_cost(struct pricing *p, int root, bool into, int64_t *cost)
{
	size_t n = (size_t)p->topo->n_ranks;
	if (!p->hops) {
		TRY(count_steps(p->ctx, p->label, STEPS_LINK * ((int64_t)n + p->topo->n_links)));
		*cost = search_links_cost(&p->search, root, into);
		return OK;
	}
	TRY(count_steps(p->ctx, p->label, STEPS_ROW * (int64_t)(n * n)));
	if (!into)
		memcpy(p->search.row, p->hops, n * n * sizeof *p->hops);
	for (size_t v = 0; into && v < n; v++)
		for (size_t u = 0; u < n; u++)
			p->search.row[u * n + v] = p->hops[v * n + u];
	*cost = search_rows_cost(&p->search, root);
	return OK;
}

/* The cheapest pair of arborescences into and out of one rank. */
static Status
pair_cost(struct pricing *p, Wide *cost)
{
	*cost = -1;
	for (int r = 0; r < p->topo->n_ranks; r++) {
		int64_t up, down;
		TRY(arborescence_cost(p, r, true, &up));
		TRY(arborescence_cost(p, r, false, &down));
		if (up >= 0 && down >= 0 && (*cost < 0 || up + down < *cost))
			*cost = up + down;
	}
	return OK;
}

/* Those of ranks from .. to - 1. */
static Status
arborescences_cost(struct pricing *p, int from, int to, bool into, Wide *cost)
{
	for (int r = from; r < to && *cost >= 0; r++) {
		int64_t one;
		TRY(arborescence_cost(p, r, into, &one));
		*cost = one < 0 ? -1 : *cost + one;
	}
	return OK;
}

static bool
keeps_prices(const Topology *topo, const Symmetry *sym, const int64_t *price)
{
	for (int m = 0; m < sym->n_maps; m++)
		for (int l = 0; l < topo->n_links; l++)
			if (price[sym->map[m].link[l]] != price[l])
				return false;
	return true;
}

/* From each rank, or to it, to all others. */
static Status
all_paths_cost(struct pricing *p, const Symmetry *sym, Wide *cost)
{
	if (!sym || !keeps_prices(p->topo, sym, p->paths.price)) {
		for (int r = 0; r < p->topo->n_ranks && *cost >= 0; r++)
			TRY(paths_cost(p, r, false, cost));
		return OK;
	}
	for (int i = 0; i < sym->n_representatives && *cost >= 0; i++) {
		Wide one = 0;
		TRY(paths_cost(p, sym->representative[i], false, &one));
		*cost = one < 0 ? -1 : *cost + one * (symmetry_moves(sym, sym->representative[i]) ? sym->size : 1);
	}
	return OK;
}

Status
demands_cost(Ctx *ctx, const char *label, const Topology *topo, Collective coll, int root, const Symmetry *sym,
    const int64_t *price, Wide *cost)
{
	struct pricing p = { .ctx = ctx, .label = label, .topo = topo,
		.paths = { .topo = topo, .price = price, .classes = ~0u } };
	DemandKind kind = collective_demand(coll, topo->n_ranks, root, 0).kind;
	bool rooted = collective_rooted(coll);
	TRY(TEMP(ctx, p.distance, topo->n_vertices));
	TRY(TEMP(ctx, p.paths.room, PATHS_ROOM * (size_t)topo->n_vertices));
	*cost = 0;
	if (kind == DEMAND_PATH)
		return rooted ? paths_cost(&p, root, coll == GATHER, cost) : all_paths_cost(&p, sym, cost);
	TRY(start_arborescences(&p));
	if (kind == DEMAND_ALLREDUCE)
		return pair_cost(&p, cost);
	int from = rooted ? root : 0, to = rooted ? root + 1 : topo->n_ranks;
	return arborescences_cost(&p, from, to, kind == DEMAND_REDUCE, cost);
}

Status
demands_least(Ctx *ctx, const char *label, const Topology *topo, Collective coll, int root, const int64_t *price,
    Wide *cost)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct pricing p = { .ctx = ctx, .label = label, .topo = topo,
		.paths = { .topo = topo, .price = price, .classes = ~0u } };
	DemandKind kind = collective_demand(coll, topo->n_ranks, root, 0).kind;
	const bool enter = kind != DEMAND_REDUCE, leave = kind == DEMAND_REDUCE || kind == DEMAND_ALLREDUCE;
	int64_t *least, most = 0;
	*cost = 0;
	if (kind == DEMAND_PATH)
		return OK;
	TRY(TEMP(ctx, p.distance, topo->n_vertices));
	TRY(TEMP(ctx, p.paths.room, PATHS_ROOM * (size_t)topo->n_vertices));
	TRY(TEMP(ctx, least, topo->n_ranks));
	for (int against = 0; against < 2; against++) {
		if (!(against ? leave : enter))
			continue;
		TRY(distances(&p, -1, false, against));
		for (int r = 0; r < topo->n_ranks; r++)
			least[r] += p.distance[r] > 0 ? p.distance[r] : 0;
	}
	for (int r = 0; r < topo->n_ranks; r++) {
		*cost += least[r];
		most = least[r] > most ? least[r] : most;
	}
	if (collective_has_blocks(coll))
		*cost *= topo->n_ranks - 1;
	else
		*cost -= collective_rooted(coll) ? least[root] : most;
	arena_release(&ctx->scratch, mark);
	return OK;
}

/* Distances are less than 2^56. */
Status
pairs_cost(Ctx *ctx, const char *label, const Topology *topo, const int64_t *bytes, const int64_t *price, Wide *cost)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct pricing p = { .ctx = ctx, .label = label, .topo = topo,
		.paths = { .topo = topo, .price = price, .classes = ~0u } };
	size_t n = (size_t)topo->n_ranks;
	TRY(TEMP(ctx, p.distance, topo->n_vertices));
	TRY(TEMP(ctx, p.paths.room, PATHS_ROOM * (size_t)topo->n_vertices));
	*cost = 0;
	for (size_t from = 0; from < n; from++) {
		TRY(distances(&p, (int)from, true, false));
		for (size_t to = 0; to < n; to++)
			if (to != from && p.distance[to] > 0)
				*cost += (Wide)bytes[from * n + to] * p.distance[to];
	}
	arena_release(&ctx->scratch, mark);
	return OK;
}
