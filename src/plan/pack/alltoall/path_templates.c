/* An alltoall over machines so large and so symmetric that a schedule is a few paths and their images: a path for each
 * pair of ranks of which the first stands for its orbit. A group that moves every rank, each to as many as it has
 * elements, takes these pairs to all others:
 *
 *     2048 ranks in servers of 8, one orbit of ranks:  4192256 pairs, images of 2047
 *     the same with two kinds of GPUs in a server:     4192256 pairs, images of 4094
 *
 * Paths are those of the optimal columns of a linear program (path_columns.c). Cuts around what the group's maps make
 * of a representative, as its server and its row of servers, often prove that no algorithm has a higher rate: there it
 * ends with the first column. */
#include "base/array.h"
#include "graph/flow.h"
#include "plan/pack/alltoall/alltoall.h"
#include "plan/pack/alltoall/path_columns.h"
#include "plan/pack/alltoall/path_tree.h"
#include "schedule/schedule.h"

#include <string.h>

enum { COARSE_PARTS = 64 };

/* ---- the packing ---- */

static int
count_kept(struct path_columns *s)
{
	int n = 0;
	for (int k = 0; k < s->n_known; k++)
		s->known[k].weight = 0;
	for (int c = 0; c < s->n_columns; c++)
		for (int d = 0; d < s->topo->n_ranks - 1; d++)
			s->known[s->column[c].found[d]].weight += s->column[c].parts;
	for (int k = 0; k < s->n_known; k++)
		n += s->known[k].weight > 0;
	return n;
}

/* n: paths that are kept. */
static Status
make_packing(struct path_columns *s, int n, Packing **out)
{
	Packing *pack;
	TRY(pack_new(s->ctx, n, true, &pack));
	pack->unit = FRAC_ONE;
	pack->symmetry = s->sym;
	int ranks = s->topo->n_ranks;
	for (int d = 0; d < s->n_demands; d++) {
		int from = s->sym->representative[d / (ranks - 1)], to = d % (ranks - 1);
		for (int k = s->head[d]; k >= 0; k = s->known[k].next) {
			if (s->known[k].weight == 0)
				continue;
			TRY(pack_path_tree(s->ctx, s->topo, s->link + s->known[k].first, s->known[k].n,
			    &pack->tree[pack->n_trees]));
			pack->demand[pack->n_trees] = collective_demand_of(ALLTOALL, ranks, -1, from,
			    to + (to >= from));
			pack->weight[pack->n_trees++] = s->known[k].weight;
		}
	}
	*out = pack;
	return OK;
}

/* ---- the bound ---- */

struct side {
	Ctx *ctx;
	const Topology *topo;
	Flow flow;
	bool *inside;		/* of each rank */
	int *part;
};

/* The least capacity between the ranks inside and the others. */
static Status
try_side(struct side *side, Bound *proof)
{
	const Topology *topo = side->topo;
	Bound cut = { .kind = CERTIFICATE_CUT };
	int inside = 0;
	for (int r = 0; r < topo->n_ranks; r++)
		inside += side->inside[r];
	if (inside == 0 || inside == topo->n_ranks)
		return OK;
	flow_reset(&side->flow, 1, false);
	for (int r = 0; r < topo->n_ranks; r++)
		(side->inside[r] ? flow_from_source : flow_to_sink)(&side->flow, r, FLOW_INFINITE);
	flow_max(&side->flow);
	cut.part = side->part;
	for (int v = 0; v < topo->n_vertices; v++)
		cut.part[v] = flow_side(&side->flow, v);
	TRY(bound_from_certificate(side->ctx, topo->name, topo, ALLTOALL, -1, &cut, &cut.rate));
	if (frac_cmp(cut.rate, proof->rate) >= 0)
		return OK;
	TRY(NEW(side->ctx, cut.part, topo->n_vertices));
	memcpy(cut.part, side->part, (size_t)topo->n_vertices * sizeof *cut.part);
	*proof = cut;
	return OK;
}

/* Those that maps `first` to `last` - 1 make of a rank, with all ranks of their servers, or without. */
static void
grow_side(struct side *side, const Symmetry *sym, int first, int last, int rank, int *queue, bool *node)
{
	const Topology *topo = side->topo;
	int n = 0;
	memset(side->inside, 0, (size_t)topo->n_ranks * sizeof *side->inside);
	queue[n++] = rank;
	side->inside[rank] = true;
	for (int at = 0; at < n; at++)
		for (int m = first; m < last; m++) {
			int image = sym->map[m].vertex[queue[at]];
			if (!side->inside[image])
				queue[n++] = image;
			side->inside[image] = true;
		}
	if (!node)
		return;
	memset(node, 0, (size_t)topo->n_nodes * sizeof *node);
	for (int r = 0; r < topo->n_ranks; r++)
		if (side->inside[r] && topo->vertex[r].node >= 0)
			node[topo->vertex[r].node] = true;
	for (int r = 0; r < topo->n_ranks; r++)
		if (topo->vertex[r].node >= 0)
			side->inside[r] = node[topo->vertex[r].node];
}

static Status
prove(Ctx *ctx, const Topology *topo, const Symmetry *sym, Bound *proof)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct side side = { .ctx = ctx, .topo = topo };
	int *queue;
	bool *node;
	TRY(flow_new(ctx, topo, &side.flow));
	TRY(TEMP(ctx, side.inside, topo->n_ranks));
	TRY(TEMP(ctx, side.part, topo->n_vertices));
	TRY(TEMP(ctx, queue, topo->n_ranks));
	TRY(TEMP(ctx, node, topo->n_nodes));
	for (int i = 0; i < sym->n_representatives; i++) {
		int rank = sym->representative[i];
		for (int m = 0; m <= sym->n_maps && !out_of_time(ctx, 4 * FLOW_WORK(topo)); m++) {
			grow_side(&side, sym, 0, m, rank, queue, NULL);
			TRY(try_side(&side, proof));
			grow_side(&side, sym, 0, m, rank, queue, node);
			TRY(try_side(&side, proof));
			grow_side(&side, sym, m, sym->n_maps, rank, queue, NULL);
			TRY(try_side(&side, proof));
			grow_side(&side, sym, m, sym->n_maps, rank, queue, node);
			TRY(try_side(&side, proof));
		}
	}
	arena_release(&ctx->scratch, mark);
	return OK;
}

/* ---- all of it ---- */

Status
pack_path_templates(Ctx *ctx, const Topology *topo, const Symmetry *sym, Packing **out, Bound *proof)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	int64_t n = topo->n_ranks, demands = (int64_t)sym->n_representatives * (n - 1), kept;
	struct path_columns s = { .ctx = ctx, .topo = topo, .sym = sym, .n_demands = (int)demands, .bound = FRAC_ZERO };
	Frac top, rate;
	*out = NULL;
	if (sym->size < 2 || (int64_t)sym->n_representatives * sym->size != n || demands > LIMIT_TREES
	    || n * (n - 1) > LIMIT_PATH_IMAGES || topo->route)
		return OK;
	TRY(prove(ctx, topo, sym, proof));
	TRY(path_columns_new(&s));
	if (!frac_div(proof->rate, (Frac){ collective_shares(ALLTOALL, topo->n_ranks), 1 }, &top))
		return OK;
	TRY(path_columns_find(&s, top, &rate));
	kept = rate.num > 0 ? count_kept(&s) : 0;
	/* Where these are too many, fewer columns have a lower rate. */
	const int64_t most = LIMIT_PATH_IMAGES / sym->size < LIMIT_TREES ? LIMIT_PATH_IMAGES / sym->size : LIMIT_TREES;
	for (int parts = COARSE_PARTS; kept > most && parts >= 1; parts /= 2)
		kept = path_columns_parts(&s, parts, &rate) ? count_kept(&s) : kept;
	if (kept > 0 && kept <= most)
		TRY(make_packing(&s, (int)kept, out));
	if (*out)
		TRY(path_columns_bound(&s, proof));
	arena_release(&ctx->scratch, mark);
	return OK;
}
