/* A plan of MSCCL++: what its operations move, by which channels, and which operations wait for packets. */
#include "simulate/mscclpp_prepare.h"

#include "base/array.h"

int64_t
sim_mscclpp_chunks(const Mscclpp *plan)
{
	return (int64_t)mscclpp_block_chunks(plan) * (collective_has_blocks(plan->coll) ? plan->n_gpus : 1);
}

SimParameters
sim_mscclpp_parameters(const Mscclpp *plan, const SimParameters *p)
{
	SimParameters own = *p;
	own.packet_most = mscclpp_has_packets(plan) ? LIMIT_MESSAGE : 0;
	return own;
}

/* What grows, and the part of the buffer that each packet range covers. */
struct part {
	int at;			/* a transfer, or an operation */
	int gpu;
	int64_t first, end, parts;	/* of chunks of scratch, in `parts` of them */
};

struct parts {
	struct part *part;
	int n, room;
};

struct list {
	Ctx *ctx;
	SimMscclpp *m;
	int transfer_room, pair_room;
	struct parts written, read;	/* packets */
};

static Status
add_pair(struct list *l, int src, int dst, int64_t chunks)
{
	SimMscclpp *m = l->m;
	TRY(GROW(l->ctx, m->pair, m->n_pairs, l->pair_room));
	m->pair[m->n_pairs++] = (SimPair){ src, dst, chunks };
	return OK;
}

static Status
add_part(struct list *l, struct parts *parts, int at, int gpu, const MscclppOp *op, const MscclppRange *range)
{
	int64_t first = (int64_t)range->index * op->n_shares + (int64_t)op->share * range->size;
	TRY(GROW_TEMP(l->ctx, parts->part, parts->n, parts->room));
	parts->part[parts->n++] = (struct part){ at, gpu, first, first + range->size, op->n_shares };
	return OK;
}

/* Of the k-th range; none: what stays in the GPU, but for packets, which others wait for. */
static Status
add_transfer(struct list *l, int t, int o, bool src, int k)
{
	SimMscclpp *m = l->m;
	const MscclppPlace *place = &m->place[t];
	const MscclppOp *op = &place->block->op[o];
	const MscclppRange *range = src ? &op->src[k] : &op->dst[k];
	const MscclppGpu *gpu = &m->of->gpu[place->gpu];
	const MscclppSwitch *group = NULL;
	bool packets = mscclpp_is_packets(op, src, k), by_port = op->type == MSCCLPP_PORT && !src;
	int other = place->gpu, g = place->gpu, n = m->plan.n_hops, chunks = range->size;
	if (range->where == MSCCLPP_REMOTE)
		other = gpu->remote[place->block->remote[op->type][range->id]].rank;
	if (range->where == MSCCLPP_MULTICAST)
		group = &gpu->multicast[place->block->channel[MSCCLPP_SWITCH][range->id]];
	if (src && packets)
		TRY(add_part(l, &l->read, place->first_op + o, g, op, range));
	if (!group && other == g && (src || !packets))
		return OK;
	TRY(GROW(l->ctx, m->transfer, n, l->transfer_room));
	m->transfer[n] = (MscclppTransfer){ .block = t, .op = o, .reads = src, .packets = packets,
		.channel = by_port ? m->first_end[MSCCLPP_PORT][g] + place->block->channel[MSCCLPP_PORT][op->channel[k]]
		    : -1, .first_pair = m->n_pairs };
	for (int i = 0; i < (group ? group->n_ranks : 1); i++) {
		int rank = group ? group->rank[i] : other;
		if (packets)
			TRY(add_part(l, &l->written, n, rank, op, range));
		if (rank != g)
			TRY(add_pair(l, src ? rank : g, src ? g : rank, chunks));
	}
	m->transfer[n].n_pairs = m->n_pairs - m->transfer[n].first_pair;
	m->plan.n_hops++;
	return OK;
}

static Status
list_transfers(struct list *l)
{
	SimMscclpp *m = l->m;
	TRY(NEW(l->ctx, m->first_transfer, m->n_ops + 1));
	for (int t = 0; t < m->n_blocks; t++)
		for (int o = 0; o < m->place[t].block->n_ops; o++) {
			const MscclppOp *op = &m->place[t].block->op[o];
			m->first_transfer[m->place[t].first_op + o] = m->plan.n_hops;
			bool moves = *mscclpp_ops[op->kind].src;	/* a flush has ranges, too */
			for (int k = 0; k < op->n_src && moves; k++)
				TRY(add_transfer(l, t, o, true, k));
			for (int k = 0; k < op->n_dst && moves; k++)
				TRY(add_transfer(l, t, o, false, k));
		}
	m->first_transfer[m->n_ops] = m->plan.n_hops;
	return OK;
}

static bool
overlap(const struct part *a, const struct part *b)
{
	return a->first * b->parts < b->end * a->parts && b->first * a->parts < a->end * b->parts;
}

/* Which operations wait for which packets. Operations were listed GPU by GPU. */
static Status
join_packets(struct list *l)
{
	SimMscclpp *m = l->m;
	int room = 0, *first;
	TRY(NEW(l->ctx, m->n_packets, m->n_ops));
	TRY(TEMP(l->ctx, first, m->of->n_gpus + 1));
	for (int k = 0; k < l->read.n; k++)
		first[l->read.part[k].gpu + 1] = k + 1;
	for (int g = 0; g < m->of->n_gpus; g++)
		first[g + 1] = first[g + 1] ? first[g + 1] : first[g];
	for (int i = 0; i < l->written.n; i++) {
		MscclppTransfer *of = &m->transfer[l->written.part[i].at];
		if (i == 0 || l->written.part[i - 1].at != l->written.part[i].at)
			of->first_reader = m->n_readers;
		for (int k = first[l->written.part[i].gpu]; k < first[l->written.part[i].gpu + 1]; k++) {
			if (!overlap(&l->written.part[i], &l->read.part[k]))
				continue;
			TRY(GROW(l->ctx, m->reader, m->n_readers, room));
			m->reader[m->n_readers++] = l->read.part[k].at;
			m->n_packets[l->read.part[k].at]++;
		}
		of->n_readers = m->n_readers - of->first_reader;
	}
	return OK;
}

static Status
list_ends(struct list *l)
{
	SimMscclpp *m = l->m;
	const Mscclpp *plan = m->of;
	for (int type = 0; type <= MSCCLPP_PORT; type++) {
		TRY(NEW(l->ctx, m->first_end[type], plan->n_gpus));
		for (int g = 0; g < plan->n_gpus; g++) {
			m->first_end[type][g] = m->n_ends;
			m->n_ends += plan->gpu[g].n_channels[type];
		}
	}
	TRY(NEW(l->ctx, m->end, m->n_ends));
	for (int type = 0; type <= MSCCLPP_PORT; type++)
		for (int g = 0; g < plan->n_gpus; g++)
			for (int k = 0; k < plan->gpu[g].n_channels[type]; k++) {
				int peer = plan->gpu[g].peer[type][k], other = mscclpp_other_end(plan, g, type, k);
				m->end[m->first_end[type][g] + k] = (MscclppEnd){
					other < 0 ? -1 : m->first_end[type][peer] + other, m->n_pairs };
				TRY(add_pair(l, g, peer, 0));
			}
	return OK;
}

Status
sim_mscclpp_list(Ctx *ctx, const Mscclpp *plan, SimMscclpp *out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	SimMscclpp m = { .of = plan };
	struct list l = { .ctx = ctx, .m = &m };
	int t = 0;
	for (int g = 0; g < plan->n_gpus; g++)
		m.n_blocks += plan->gpu[g].n_blocks;
	TRY(NEW(ctx, m.place, m.n_blocks));
	for (int g = 0; g < plan->n_gpus; g++)
		for (int i = 0; i < plan->gpu[g].n_blocks; i++, t++) {
			m.place[t] = (MscclppPlace){ &plan->gpu[g].block[i], g, m.n_ops };
			m.n_ops += plan->gpu[g].block[i].n_ops;
		}
	TRY(NEW(ctx, m.block_of, m.n_ops));
	for (t = 0; t < m.n_blocks; t++)
		for (int o = 0; o < m.place[t].block->n_ops; o++)
			m.block_of[m.place[t].first_op + o] = t;
	TRY(list_ends(&l));
	TRY(list_transfers(&l));
	TRY(join_packets(&l));
	arena_release(&ctx->scratch, mark);
	*out = m;
	return OK;
}

/* ---- links ---- */

/* Does the first link of a way lead to a switch that copies; or the last come from one that adds? */
static bool
is_shared(const Topology *topo, const SimRoute *route, bool adds)
{
	const Link *link = &topo->link[route->link[adds ? route->n_links - 1 : 0]];
	const Vertex *v = &topo->vertex[adds ? link->from : link->to];
	return adds ? v->reduce : v->multicast;
}

/* Each link once, as a switch carries once what it copies or adds. */
static Status
join_links(Ctx *ctx, const char *label, const Topology *topo, const SimMscclpp *m, const MscclppTransfer *of,
    SimHop *hop)
{
	int n = 0, *link;
	for (int i = 0; i < of->n_pairs; i++)
		n += m->route[of->first_pair + i].n_links;
	TRY(NEW(ctx, link, n));
	for (int i = n = 0; i < of->n_pairs; i++) {
		const SimRoute *route = &m->route[of->first_pair + i];
		if (of->n_pairs > 1 && !is_shared(topo, route, of->reads))
			return fail(ctx, INFEASIBLE, "%s: gpu %d, tb %d, op %d, %s: no switch that %s joins its GPUs",
			    label, m->place[of->block].gpu, m->place[of->block].block->id, of->op,
			    mscclpp_ops[m->place[of->block].block->op[of->op].kind].name,
			    of->reads ? "adds" : "copies");
		for (int k = 0, had; k < route->n_links; k++, n += !had) {
			link[n] = route->link[k];
			for (had = 0; had < n && link[had] != link[n]; had++)
				;
			had = had < n;
		}
	}
	hop->n_links = n;
	hop->link = link;
	hop->n_path = of->n_pairs > 0 ? m->route[of->first_pair].n_links : 0;
	hop->path = of->n_pairs > 0 ? m->route[of->first_pair].link : NULL;
	return OK;
}

Status
sim_mscclpp_route(Ctx *ctx, const char *label, const Schedule *sched, SimRoute *route, SimMscclpp *m)
{
	m->plan.sched = sched;
	m->route = route;
	TRY(NEW(ctx, m->plan.hop, m->plan.n_hops));
	for (int h = 0; h < m->plan.n_hops; h++) {
		const MscclppTransfer *of = &m->transfer[h];
		int g = m->place[of->block].gpu;
		const SimPair *pair = of->n_pairs == 1 ? &m->pair[of->first_pair] : &(SimPair){ g, g, 0 };
		m->plan.hop[h] = (SimHop){ .segment = h, .src = pair->src, .dst = pair->dst, .edge = h, .feeder = -1,
			.from = pair->src, .to = pair->dst };
		TRY(join_links(ctx, label, sched->topo, m, of, &m->plan.hop[h]));
	}
	return OK;
}
