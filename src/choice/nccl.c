/* NCCL beside a choice. */
#include "choice/nccl.h"

#include "base/limits.h"
#include "schedule/schedule.h"
#include "topology/topology.h"

#include <string.h>

enum { LL128_DATA = 120, LL128_LINE = 128, LATENCY_PARTS = 1000, LL128_FAST = 559, LL128_SLOW = 439, LL128_NET = 286 };

/* ---- NCCL's trees ---- */

/* The link in the other direction, of the same class; -1: none. */
static int
opposite(const Topology *topo, int l)
{
	const Link *link = &topo->link[l];
	for (int i = topo->first_out[link->to]; i < topo->first_out[link->to + 1]; i++) {
		const Link *back = &topo->link[topo->out[i]];
		if (back->to == link->from && back->class == link->class)
			return topo->out[i];
	}
	return -1;
}

/* *out has no links where one has no opposite. */
static Status
opposite_hop(Ctx *ctx, const Topology *topo, const Edge *edge, Edge *out)
{
	int *link;
	TRY(NEW(ctx, link, edge->n_links));
	*out = (Edge){ .src = edge->dst, .dst = edge->src, .n_links = edge->n_links, .link = link };
	for (int i = 0; i < edge->n_links; i++) {
		link[i] = opposite(topo, edge->link[edge->n_links - 1 - i]);
		if (link[i] < 0)
			out->n_links = 0;
	}
	return OK;
}

/* The hop that a chain does best without: of the most links, the first of them. */
static int
longest_hop(const Cycle *ring, int n)
{
	int at = 0;
	for (int i = 1; i < n; i++)
		if (ring->edge[i].n_links > ring->edge[at].n_links)
			at = i;
	return at;
}

/* From the end of the ring's chain up to its head, and down again. *possible: all links have opposite ones. */
static Status
chain_tree(Ctx *ctx, const Topology *topo, const Cycle *ring, Tree *out, bool *possible)
{
	int n = topo->n_ranks, without = longest_hop(ring, n);
	*out = (Tree){ .root = ring->edge[without].dst, .n_up = n - 1, .n_down = n - 1 };
	TRY(NEW_EACH(ctx, n - 1, out->up, out->down));
	for (int i = 0; i < n - 1; i++) {
		out->down[i] = ring->edge[(without + 1 + i) % n];
		TRY(opposite_hop(ctx, topo, &out->down[i], &out->up[n - 2 - i]));
		*possible = *possible && out->up[n - 2 - i].n_links > 0;
	}
	return OK;
}

static Status
chain_trees(Ctx *ctx, const RingPacking *rings, Packing **out)
{
	Packing *pack;
	bool possible = true;
	TRY(pack_new(ctx, rings->n, false, &pack));
	for (int i = 0; i < rings->n; i++) {
		TRY(chain_tree(ctx, rings->topo, &rings->ring[i], &pack->tree[i], &possible));
		pack->weight[i] = rings->ring[i].width;
	}
	pack->n_trees = rings->n;
	*out = possible ? pack : NULL;
	return OK;
}

/* ---- simulations ---- */

/* Of a hop's latency, by ring in 2.30.7: 1.9 of 3.4, 4 of 14, and 2.5 of 5.7 us. */
static int
ll128_part(LinkClass class)
{
	if (1u << class & (1u << LINK_NVLINK | 1u << LINK_XGMI | 1u << LINK_C2C))
		return LL128_FAST;
	return class == LINK_NET ? LL128_NET : LL128_SLOW;
}

/* The same over links as LL128 has them. */
static Status
slow_links(Ctx *ctx, const Schedule *sched, const SimParameters *p, Schedule **out)
{
	const Topology *topo = sched->topo;
	Topology *slow;
	Schedule *copy;
	TRY(NEW_EACH(ctx, 1, slow, copy));
	*slow = *topo;
	TRY(NEW(ctx, slow->link, topo->n_links));
	for (int l = 0; l < topo->n_links; l++) {
		Link *link = &slow->link[l];
		*link = topo->link[l];
		int64_t latency = link->latency ? link->latency : p->latency[link->class];
		link->capacity -= link->capacity / LL128_LINE * (LL128_LINE - LL128_DATA);
		link->latency = latency * ll128_part(link->class) / LATENCY_PARTS;
	}
	*copy = *sched;
	copy->topo = slow;
	*out = copy;
	return OK;
}

static Status
prepare_one(Ctx *ctx, const NcclBeside *beside, const Ask *ask, NcclAlgorithm a, const Topology *topo,
    const Packing *pack, NcclRings *of)
{
	Bound none = { .rate = FRAC_ZERO };
	Schedule *sched, *slow;
	TRY(sched_build(ctx, topo, &none, ask, nccl_algorithm_name[a], pack, &sched));
	TRY(slow_links(ctx, sched, &beside->p, &slow));
	TRY(sim_prepare(ctx, sched, &of->plan[a]));
	TRY(sim_prepare(ctx, slow, &of->ll128[a]));
	of->sched[a] = sched;
	return OK;
}

/* Edges of all trees, so many that no simulation pays. */
static bool
too_large(const NcclRings *of, Collective coll, int n)
{
	int64_t trees = coll == ALLREDUCE ? 2 * (int64_t)n : collective_demands(coll, n);
	return trees * of->rings.n * (n - 1) > LIMIT_TREE_EDGES;
}

/* All links of the job. *out: NULL: they do not join its GPUs. */
static Status
all_links(Ctx *ctx, const BaselineJob *of, const Topology **out)
{
	unsigned all = (1u << N_LINK_CLASSES) - 1;
	JobLinks links;
	Topology *topo;
	*out = NULL;
	TRY(topo_nic_paths(ctx, of->machine, of->gpu, of->n, all, NULL, &links));
	Status status = topo_induce(ctx, of->machine, of->gpu, of->n, &links, &topo);
	if (status == INFEASIBLE) {
		ctx->error = (Error){ .status = OK };
		return OK;
	}
	TRY(status);
	*out = topo;
	return OK;
}

/* NCCL never leaves a server on the way between two of its GPUs. */
static bool
stays_in_servers(const RingPacking *rings)
{
	const Topology *topo = rings->topo;
	for (int i = 0; i < rings->n; i++)
		for (int e = 0; e < topo->n_ranks; e++) {
			const Edge *edge = &rings->ring[i].edge[e];
			bool inner = topo->vertex[edge->src].node == topo->vertex[edge->dst].node;
			for (int l = 0; inner && l < edge->n_links; l++)
				if (topo->link[edge->link[l]].class == LINK_NET)
					return false;
		}
	return true;
}

static int
roots_of(const Ask *ask, int n)
{
	return ask->coll == ALLREDUCE ? n : 1;
}

/* NCCL's own rings instead of those that were found, if these are slower, or none of NCCL's. */
static Status
take_server_rings(Ctx *ctx, const NcclBeside *beside, const Ask *ask, NcclRings *of, const Topology **topo,
    Packing **pack)
{
	int n = (*topo)->n_ranks;
	Packing *other;
	Cycle *ring;
	Frac found, own;
	int64_t *load;
	TRY(nccl_server_rings(ctx, of->all, &beside->servers, &of->inner, beside->cards.n, &ring));
	if (!ring)
		return OK;
	TRY(ring_trees(ctx, of->all, ask, ring, beside->cards.n, roots_of(ask, n), &other));
	TRY(NEW(ctx, load, of->all->n_links > (*topo)->n_links ? of->all->n_links : (*topo)->n_links));
	if (stays_in_servers(&of->rings) && pack_achieved(*topo, *pack, ask->coll, load, &found)
	    && pack_achieved(of->all, other, ask->coll, load, &own) && frac_cmp(own, found) <= 0)
		return OK;
	*topo = of->all;
	*pack = other;
	return OK;
}

static Status
prepare_trees(Ctx *ctx, const NcclBeside *beside, const Ask *ask, NcclRings *of)
{
	const Topology *topo = of->rings.topo;
	Packing *pack = NULL;
	if (beside->servers.n == 1)
		TRY(chain_trees(ctx, &of->rings, &pack));
	else if (of->all) {
		topo = of->all;
		TRY(nccl_server_trees(ctx, topo, &beside->servers, &of->inner, beside->cards.n, &pack));
	}
	return pack ? prepare_one(ctx, beside, ask, NCCL_TREE, topo, pack, of) : OK;
}

static Status
prepare_rings(Ctx *ctx, const NcclBeside *beside, const Ask *ask, NcclRings *of)
{
	const Topology *topo = of->rings.topo;
	int n = of->rings.n ? topo->n_ranks : 0;
	Packing *pack;
	if (n == 0 || too_large(of, ask->coll, n))
		return OK;
	TRY(ring_trees(ctx, topo, ask, of->rings.ring, of->rings.n, roots_of(ask, n), &pack));
	if (of->all)
		TRY(take_server_rings(ctx, beside, ask, of, &topo, &pack));
	TRY(prepare_one(ctx, beside, ask, NCCL_RING, topo, pack, of));
	return ask->coll == ALLREDUCE ? prepare_trees(ctx, beside, ask, of) : OK;
}

/* Baselines are found by the same search: of one rate over the same links they are the same rings. */
static bool
same_rings(const RingPacking *a, const RingPacking *b)
{
	return a->n == b->n && a->classes == b->classes && a->through == b->through && frac_cmp(a->rate, b->rate) == 0;
}

/* Rings of the first server alone, by the places of its GPUs. */
static Status
inner_rings(Ctx *ctx, const BaselineJob *of, const NcclBeside *beside, RingPacking *out)
{
	int *gpu;
	BaselineJob inner = *of;
	*out = (RingPacking){ .rate = FRAC_ZERO };
	if (beside->why_not || beside->servers.n == 1 || beside->servers.gpus == 1)
		return OK;
	TRY(NEW(ctx, gpu, beside->servers.gpus));
	for (int i = 0; i < beside->servers.gpus; i++)
		gpu[i] = of->gpu[beside->servers.rank[i]];
	inner.gpu = gpu;
	inner.n = beside->servers.gpus;
	return baseline_rings(ctx, &inner, beside->n_rings, out);
}

static Status
add_rings(Ctx *ctx, const BaselineJob *of, const Ask *ask, NcclBeside *beside)
{
	NcclRings *rings;
	TRY(NEW(ctx, rings, 1));
	TRY(baseline_rings(ctx, of, beside->n_rings, &rings->rings));
	TRY(inner_rings(ctx, of, beside, &rings->inner));
	if (beside->servers.n > 1 && !beside->why_not)
		TRY(all_links(ctx, of, &rings->all));
	for (int i = 0; i < beside->n_rings; i++)
		if (same_rings(&beside->rings[i]->rings, &rings->rings)
		    && same_rings(&beside->rings[i]->inner, &rings->inner)) {
			beside->rings[beside->n_rings++] = beside->rings[i];
			return OK;
		}
	beside->rings[beside->n_rings++] = rings;
	return prepare_rings(ctx, beside, ask, rings);
}

Status
nccl_prepare(Ctx *ctx, const Job *job, const SimParameters *p, NcclBeside **out)
{
	NcclBeside *beside;
	BaselineJob of = { .machine = job->machine, .gpu = job->gpu, .n = job->topo->n_ranks };
	bool equal;
	TRY(NEW(ctx, beside, 1));
	*beside = (NcclBeside){ .p = *p, .coll = job->ask.coll };
	TRY(nccl_servers(ctx, job->machine, job->gpu, of.n, &beside->servers, &equal));
	if (equal && beside->servers.n > 1)
		TRY(nccl_cards(ctx, job->machine, job->gpu, &beside->servers, &beside->cards, &beside->far));
	beside->why_not = nccl_why_not(job, beside, equal);
	beside->left_out = nccl_left_out(job, beside);
	if (!nccl_serves(job->ask.coll))
		beside->why_not = "NCCL sends blocks from rank to rank for this collective";
	else if (of.n > BASELINE_RANKS)
		beside->why_not = "so many GPUs have no rings here";
	else
		while (baseline_name(beside->n_rings))
			TRY(add_rings(ctx, &of, &job->ask, beside));
	if (!beside->why_not)
		nccl_set_versions(job, beside);
	*out = beside;
	return OK;
}

/* *time: -1: too large. */
static Status
simulate(Ctx *ctx, const SimPlan *plan, const SimParameters *p, int64_t m, int64_t *time)
{
	SimAsk ask = { .p = *p, .m = m };
	SimResult result;
	ArenaMark mark = arena_mark(&ctx->run);
	*time = -1;
	if (!plan)
		return OK;
	Status status = sim_run_best(ctx, plan, &ask, &result);
	if (status == LIMIT) {
		ctx->error = (Error){ .status = OK };
		return OK;
	}
	TRY(status);
	*time = result.time;
	arena_release(&ctx->run, mark);
	return OK;
}

/* What was simulated of other messages is forgotten. */
static void
select_message(NcclRings *of, int64_t m)
{
	if (of->m != m) {
		memset(of->time, 0, sizeof of->time);
		of->ring_time = 0;
	}
	of->m = m;
}

/* By a protocol, if not simulated before: versions often agree. */
static Status
protocol_time(Ctx *ctx, const NcclBeside *beside, NcclRings *of, NcclAlgorithm a, NcclProtocol protocol, int64_t m,
    int64_t *time)
{
	SimParameters p = beside->p;
	select_message(of, m);
	p.packet_most = protocol == NCCL_LL ? m : 0;
	p.line_most = 0;
	if (protocol == NCCL_LL128)
		p.step = p.packet_step;
	if (of->time[a][protocol] == 0)
		TRY(simulate(ctx, protocol == NCCL_LL128 ? of->ll128[a] : of->plan[a], &p, m, &of->time[a][protocol]));
	*time = of->time[a][protocol];
	return OK;
}

Status
nccl_ring_time(Ctx *ctx, NcclBeside *beside, int row, int64_t m, int64_t *time)
{
	NcclRings *of = beside->rings[row];
	select_message(of, m);
	if (of->ring_time == 0)
		TRY(simulate(ctx, of->plan[NCCL_RING], &beside->p, m, &of->ring_time));
	*time = of->ring_time;
	return OK;
}

Status
nccl_time(Ctx *ctx, NcclBeside *beside, int version, int64_t m, NcclChoice *choice, int64_t *time)
{
	NcclRings *of = beside->rings[beside->row[version]];
	*time = -1;
	*choice = (NcclChoice){ .algorithm = NCCL_RING, .protocol = NCCL_SIMPLE };
	if (!of->rings.n)
		return OK;
	nccl_choose(version, &beside->job[version], beside->coll, m, choice);
	return protocol_time(ctx, beside, of, choice->algorithm, choice->protocol, m, time);
}
