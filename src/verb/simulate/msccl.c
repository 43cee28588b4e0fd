#include "verb/simulate/msccl.h"

#include "format/msccl/msccl.h"
#include "graph/search.h"
#include "msccl/msccl.h"
#include "plan/plan.h"
#include "topology/topology.h"
#include "verb/request.h"
#include "verb/shipped.h"
#include "verb/verb.h"

/* ---- the way of each connection ---- */

enum { PRICE_BITS = 40, FINE = 1 << 10, REPRICED = 256 };

struct ways {
	const Topology *topo;
	const Msccl *algo;
	Search search;
	int64_t *price, *base, *load;	/* load: chunks that cross the link */
	int64_t heaviest;
	MscclRoute *route;
	int n_blocks;
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

static int64_t
chunks_sent(const MscclBlock *block)
{
	int64_t n = 0;
	for (int i = 0; i < block->n_steps; i++)
		n += msccl_ops[block->step[i].op].sends ? block->step[i].count : 0;
	return n;
}

/* False: no links join the two. */
static Status
find_way(Ctx *ctx, struct ways *w, int src, const MscclBlock *block, MscclRoute *out, bool *found)
{
	int hop = search_cheapest_hop(&w->search, src, block->send), link[LIMIT_ROUTE_LINKS], *kept;
	int n = hop < 0 ? 0 : search_route(&w->search, hop, link);
	int64_t chunks = chunks_sent(block);
	*found = n > 0;
	if (n <= 0) {
		w->src = src;
		w->dst = block->send;
		return OK;
	}
	TRY(NEW(ctx, kept, n));
	for (int i = 0; i < n; i++) {
		kept[i] = link[i];
		w->load[link[i]] += chunks;
		w->heaviest = w->load[link[i]] > w->heaviest ? w->load[link[i]] : w->heaviest;
	}
	*out = (MscclRoute){ n, kept };
	return OK;
}

/* All of them, one after the other. */
static Status
find_ways(Ctx *ctx, struct ways *w, bool *found)
{
	int t = 0, next = 0, every = w->n_blocks / REPRICED + 1;
	*found = true;
	for (int g = 0; g < w->algo->n_gpus; g++)
		for (int i = 0; i < w->algo->gpu[g].n_blocks; i++, t++) {
			const MscclBlock *block = &w->algo->gpu[g].block[i];
			if (block->send < 0)
				continue;
			if (t >= next && w->search.switched) {
				set_prices(w);
				next = t + every;
			}
			TRY(find_way(ctx, w, g, block, &w->route[t], found));
			if (!*found)
				return OK;
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

/* The links of a job, and where these do not do, one route of each pair. */
static Status
choose_links(Ctx *ctx, const char *label, const Topology *machine, const int *gpu, struct ways *w)
{
	int n = w->algo->n_gpus;
	JobLinks links;
	Topology *topo;
	bool found = false;
	for (int g = 0; g < n; g++)
		w->n_blocks += w->algo->gpu[g].n_blocks;
	TRY(NEW(ctx, w->route, w->n_blocks));
	TRY(topo_of_job(ctx, machine, gpu, n, 0, ROUTES_CHOSEN, false, &links, &topo));
	TRY(try_links(ctx, w, topo, &found));
	if (!found) {
		TRY(topo_of_job(ctx, machine, gpu, n, 0, ROUTES_PAIR, false, &links, &topo));
		TRY(try_links(ctx, w, topo, &found));
	}
	if (!found)
		return fail(ctx, INFEASIBLE, "%s: gpu %d sends to gpu %d: no links join %s and %s", label, w->src,
		    w->dst, topo->vertex[w->src].id, topo->vertex[w->dst].id);
	return OK;
}

/* ---- the machine ---- */

static Status
read_gpus(Ctx *ctx, const Options *opt, const char *label, int n, Topology **machine, int **gpu)
{
	const char *path;
	int n_gpus;
	if (!opt->value[OPT_TOPOLOGY])
		return fail(ctx, USAGE, "%s: an algorithm of MSCCL, which names no links: want --topology", label);
	TRY(read_machine_of(ctx, opt, &path, machine));
	TRY(NEW(ctx, *gpu, (*machine)->n_ranks));
	TRY(request_gpus(ctx, *machine, opt->value[OPT_GPUS], *gpu, &n_gpus));
	if (n_gpus != n)
		return fail(ctx, BAD_INPUT, "%s: ngpus: %d: --topology has %d GPUs: want --gpus with as many", label, n,
		    n_gpus);
	return OK;
}

/* What all that is printed refers to: a schedule without trees, with what no algorithm exceeds on these links. */
static Status
frame(Ctx *ctx, const Msccl *algo, const Topology *topo, int root, Schedule **out)
{
	Symmetry *sym;
	TRY(NEW(ctx, *out, 1));
	**out = (Schedule){ .generator = "", .version = "", .topo = topo, .coll = algo->coll, .root = root,
		.algorithm = algo->name };
	TRY(topo_symmetry(ctx, topo, root, SYMMETRY_ANY, &sym));
	return bound_compute(ctx, topo, sym, algo->coll, root, &(*out)->bound);
}

Status
program_read(Ctx *ctx, const Options *opt, const char *label, const Text *in, const Topology **whole, SimMsccl **out)
{
	Msccl *algo;
	MscclFindings found;
	Topology *machine;
	Schedule *sched;
	int *gpu = NULL;
	struct ways w = { .n_blocks = 0 };
	TRY(msccl_read(ctx, label, in->data, in->size, &algo));
	TRY(msccl_check(ctx, label, algo, &found));
	TRY(read_gpus(ctx, opt, label, algo->n_gpus, &machine, &gpu));
	*whole = machine;
	w.algo = algo;
	TRY(choose_links(ctx, label, machine, gpu, &w));
	TRY(frame(ctx, algo, w.topo, found.root, &sched));
	TRY(NEW(ctx, *out, 1));
	return sim_msccl_prepare(ctx, algo, sched, w.route, found.slots, *out);
}
