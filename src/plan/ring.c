/* Rings: closed walks through all ranks, each rank once, as NCCL has them. As many as the links allow at once: of whole
 * links; or of parts of links, whose rates a linear program finds (pack/rings.c) up to RINGS_EXACT_RANKS ranks. GPUs
 * 0, 1, 2, 4, 5 and 6 of a DGX-1P, a prism, have two rings of whole links, but carry 3/2 of their rate in parts.
 *
 * A ring of n ranks with y bytes/s for each of its hops is a packing of chains, whatever the collective:
 *
 *     broadcast, reduce   one chain of n - 1 hops out of the root, or into it, at rate y
 *     allgather           for the block of each rank a chain out of it, at rate y / (n - 1)
 *     reducescatter       for the block of each rank a chain into it, at rate y / (n - 1)
 *     allreduce           for each rank a chain into it and on out of it, at rate y / (2 (n - 1)): n segments of the
 *                         buffer, each over all hops but one on the way in, and over all but one on the way out.
 *                         Together n y / (2 (n - 1)). Where n is large fewer roots suffice: a single one reaches y / 2
 *
 *          0 --> 1            block 2 of an allreduce, n = 4:   up 3 -> 0 -> 1 -> 2, down 2 -> 3 -> 0 -> 1
 *          ^     |
 *          3 <-- 2 */
#include "graph/hamiltonian.h"
#include "plan/classic/classic.h"
#include "plan/family.h"
#include "plan/pack/rings/rings.h"

#include <string.h>

enum { RING_EDGES = 1 << 20 };	/* of all trees: an allreduce with more has fewer roots */

/* n_ranks - 1 edges, which begin with hop `first` of the ring. */
static Status
put_chain(Ctx *ctx, const Cycle *ring, int n_ranks, int first, Edge **out)
{
	Edge *edge;
	TRY(NEW(ctx, edge, n_ranks - 1));
	for (int i = 0; i < n_ranks - 1; i++)
		edge[i] = ring->edge[(first + i) % n_ranks];
	*out = edge;
	return OK;
}

/* The chain of a demand: the ring without the hop that leads to where data starts, or away from where it ends.
 * root: for an allreduce, where chains meet. */
static Status
put_tree(Ctx *ctx, const Cycle *ring, int n, Demand demand, int root, Tree *out)
{
	int at = 0;
	*out = (Tree){ .root = root };
	if (demand.kind != DEMAND_ALLREDUCE)
		out->root = demand.kind == DEMAND_BROADCAST ? demand.from : demand.to;
	while (ring->edge[at].src != out->root)
		at++;
	if (demand.kind != DEMAND_BROADCAST) {
		out->n_up = n - 1;
		TRY(put_chain(ctx, ring, n, at + 1, &out->up));
	}
	if (demand.kind != DEMAND_REDUCE) {
		out->n_down = n - 1;
		TRY(put_chain(ctx, ring, n, at, &out->down));
	}
	return OK;
}

Status
ring_trees(Ctx *ctx, const Topology *topo, const Ask *ask, const Cycle *ring, int n_rings, int roots, Packing **out)
{
	int n = topo->n_ranks, demands = collective_demands(ask->coll, n);
	Packing *pack;
	int64_t *load;
	TRY(pack_new(ctx, n_rings * demands * roots, demands > 1, &pack));
	for (int d = 0; d < demands; d++) {
		Demand demand = collective_demand(ask->coll, n, ask->root, d);
		for (int i = 0; i < n_rings * roots; i++, pack->n_trees++) {
			int root = (int)((int64_t)(i % roots) * n / roots);
			TRY(put_tree(ctx, &ring[i / roots], n, demand, root, &pack->tree[pack->n_trees]));
			pack->weight[pack->n_trees] = ring[i / roots].width;
			if (demands > 1)
				pack->demand[pack->n_trees] = d;
		}
	}
	TRY(TEMP(ctx, load, topo->n_links));
	if (!pack_widest_unit(topo, pack, load, &pack->unit))
		return fail(ctx, INTERNAL, "ring: no links in use");
	*out = pack;
	return OK;
}

static void
log_rings(Ctx *ctx, const CyclePacking *rings, int most)
{
	log_verbose(ctx, "ring: %d ring%s of %.6g GB/s together%s", rings->n, rings->n == 1 ? "" : "s",
	    (double)rings->units * (double)rings->unit / BYTES_PER_GB,
	    rings->proven ? ", as many as the links allow"
	    : rings->n == most ? ", as many as a schedule can hold" : "");
}

static Status
whole_links(Ctx *ctx, const Topology *topo, int most, CyclePacking *out)
{
	return cycles_pack(ctx, topo, most, out);
}

/* Of any widths; none where there are more than that. */
static Status
parts_of_links(Ctx *ctx, const Topology *topo, int most, CyclePacking *out)
{
	RingPacking best;
	*out = (CyclePacking){ .n = 0 };
	TRY(pack_rings(ctx, topo, false, &best));
	if (best.n == 0 || best.n > most)
		return OK;
	*out = (CyclePacking){ .n = best.n, .ring = best.ring, .unit = best.rate.num / best.rate.den, .units = 1,
		.proven = best.proven };
	return OK;
}

/* One, from each rank to the next; none where a hop is missing. */
static Status
order_of_numbers(Ctx *ctx, const Topology *topo, int most, CyclePacking *out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	int n = topo->n_ranks, link[LIMIT_ROUTE_LINKS], *kept;
	Hops *hops;
	Cycle *ring;
	(void)most;
	*out = (CyclePacking){ .unit = 1, .units = 1 };
	TRY(NEW(ctx, ring, 1));
	TRY(NEW(ctx, ring->edge, n));
	TRY(hops_new(ctx, topo, false, &hops));
	ring->width = 1;
	for (int r = 0; r < n; r++) {
		Edge *edge = &ring->edge[r];
		*edge = (Edge){ .src = r, .dst = (r + 1) % n };
		edge->n_links = hops_route(hops, edge->src, edge->dst, link);
		if (edge->n_links == 0)
			return OK;
		TRY(NEW(ctx, kept, edge->n_links));
		memcpy(kept, link, (size_t)edge->n_links * sizeof *link);
		edge->link = kept;
	}
	arena_release(&ctx->scratch, mark);
	out->ring = ring;
	out->n = 1;
	return OK;
}

/* Schedules have a limit on their edges: an allreduce may have fewer roots, other collectives fewer rings. */
static Status
plan_rings(Ctx *ctx, const Planning *in, Status (*find)(Ctx *, const Topology *, int, CyclePacking *), Plan *out)
{
	Collective coll = in->ask->coll;
	int n = in->topo->n_ranks, chains = collective_demands(coll, n) * (coll == ALLREDUCE ? 2 : 1), roots = 1;
	int64_t edges = (int64_t)chains * (n - 1), most = LIMIT_TREE_EDGES / edges;
	CyclePacking rings;
	Frac rate = FRAC_ZERO;
	*out = (Plan){ .proof = *in->bound, .best = FRAC_ZERO };
	TRY(plan_check_size(ctx, in->topo, coll));
	most = most < LIMIT_MOST_RINGS ? most : LIMIT_MOST_RINGS;
	TRY(find(ctx, in->topo, (int)most, &rings));
	if (rings.n == 0)
		return fail(ctx, INFEASIBLE, "%s: no ring through all %d GPUs over these links", in->topo->name, n);
	log_rings(ctx, &rings, (int)most);
	if (coll == ALLREDUCE) {
		int64_t room = RING_EDGES / (rings.n * edges);
		roots = room < 1 ? 1 : room < n ? (int)room : n;
	}
	TRY(ring_trees(ctx, in->topo, in->ask, rings.ring, rings.n, roots, &out->pack));
	if (pack_rate(out->pack, coll, n, &rate) && rings.proven && (coll != ALLREDUCE || roots == n))
		out->best = rate;
	return plan_compare(ctx, in, rate, out);
}

Status
plan_ring(Ctx *ctx, const Planning *in, Plan *out)
{
	return plan_rings(ctx, in, in->ask->order ? order_of_numbers : whole_links, out);
}

Status
plan_shared_ring(Ctx *ctx, const Planning *in, Plan *out)
{
	return plan_rings(ctx, in, parts_of_links, out);
}
