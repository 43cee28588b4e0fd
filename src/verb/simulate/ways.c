#include "verb/simulate/ways.h"

#include "graph/search.h"
#include "topology/topology.h"
#include "verb/request.h"
#include "verb/shipped.h"
#include "verb/verb.h"

enum { PRICE_BITS = 40, FINE = 1 << 10, REPRICED = 256 };

struct ways {
	const Topology *topo;
	Search search;
	int64_t *price, *load;	/* load: chunks that cross the link */
	int64_t heaviest;
	const SimPair *pair;
	int n_pairs;
	SimRoute *route;
	int src, dst;			/* that no links join */
};

/* Slow links cost more; of links that cost the same, those that carry more. */
static void
set_prices(struct ways *w)
{
	int64_t most = 0;
	for (int l = 0; l < w->topo->n_links; l++)
		most = w->topo->link[l].capacity > most ? w->topo->link[l].capacity : most;
	for (int l = 0; l < w->topo->n_links; l++) {
		Wide base = (Wide)most * FINE / w->topo->link[l].capacity + 1;
		Wide price = base + base * w->load[l] / (w->heaviest + 1);
		w->price[l] = price < INT64_C(1) << PRICE_BITS ? (int64_t)price : INT64_C(1) << PRICE_BITS;
	}
	search_price(&w->search, w->price);
}

/* False: no links join the two. */
static Status
find_way(Ctx *ctx, struct ways *w, const SimPair *pair, SimRoute *out, bool *found)
{
	int hop = search_cheapest_hop(&w->search, pair->src, pair->dst), link[LIMIT_ROUTE_LINKS], *kept;
	int n = hop < 0 ? 0 : search_route(&w->search, hop, link);
	*found = n > 0;
	if (n <= 0) {
		w->src = pair->src;
		w->dst = pair->dst;
		return OK;
	}
	TRY(NEW(ctx, kept, n));
	for (int i = 0; i < n; i++) {
		kept[i] = link[i];
		w->load[link[i]] += pair->chunks;
		w->heaviest = w->load[link[i]] > w->heaviest ? w->load[link[i]] : w->heaviest;
	}
	*out = (SimRoute){ n, kept };
	return OK;
}

/* All of them, one after the other. */
static Status
find_ways(Ctx *ctx, struct ways *w, bool *found)
{
	int next = 0, every = w->n_pairs / REPRICED + 1;
	*found = true;
	for (int i = 0; i < w->n_pairs && *found; i++) {
		if (i >= next && w->search.switched) {
			set_prices(w);
			next = i + every;
		}
		TRY(find_way(ctx, w, &w->pair[i], &w->route[i], found));
	}
	return OK;
}

static Status
try_links(Ctx *ctx, struct ways *w, const Topology *topo, bool *found)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	w->topo = topo;
	w->heaviest = 0;
	TRY(TEMP_EACH(ctx, topo->n_links, w->price, w->load));
	TRY(search_new(ctx, topo, &w->search));
	set_prices(w);
	TRY(find_ways(ctx, w, found));
	arena_release(&ctx->scratch, mark);
	return OK;
}

static Status
read_gpus(Ctx *ctx, const Options *opt, const char *label, const char *what, int n, Topology **machine, int **gpu)
{
	const char *path;
	int n_gpus;
	if (!opt->value[OPT_TOPOLOGY])
		return fail(ctx, USAGE, "%s: %s, which names no links: want --topology", label, what);
	TRY(read_machine_of(ctx, opt, &path, machine));
	TRY(NEW(ctx, *gpu, (*machine)->n_ranks));
	TRY(request_gpus(ctx, *machine, opt->value[OPT_GPUS], *gpu, &n_gpus));
	if (n_gpus != n)
		return fail(ctx, BAD_INPUT, "%s: ngpus: %d: --topology has %d GPUs: want --gpus with as many", label, n,
		    n_gpus);
	return OK;
}

Status
ways_over(Ctx *ctx, const Topology *topo, const SimPair *pair, int n_pairs, SimRoute *route, bool *found)
{
	struct ways w = { .pair = pair, .n_pairs = n_pairs, .route = route };
	return try_links(ctx, &w, topo, found);
}

Status
ways_find(Ctx *ctx, const Options *opt, const char *label, const char *what, int n, const SimPair *pair, int n_pairs,
    const Topology **whole, Topology **topo, SimRoute *route)
{
	static const Routes kinds[] = { ROUTES_CHOSEN, ROUTES_PAIR };
	struct ways w = { .pair = pair, .n_pairs = n_pairs, .route = route };
	Topology *machine;
	JobLinks links;
	bool found = false;
	int *gpu = NULL;
	TRY(read_gpus(ctx, opt, label, what, n, &machine, &gpu));
	*whole = machine;
	for (int i = 0; i < 2 && !found; i++) {
		TRY(topo_of_job(ctx, machine, gpu, n, 0, kinds[i], false, &links, topo));
		TRY(try_links(ctx, &w, *topo, &found));
	}
	if (!found)
		return fail(ctx, INFEASIBLE, "%s: gpu %d sends to gpu %d: no links join %s and %s", label, w.src,
		    w.dst, (*topo)->vertex[w.src].id, (*topo)->vertex[w.dst].id);
	return OK;
}
