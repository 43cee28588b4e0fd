/* An algorithm of MSCCL, with a way for each connection, as it is simulated. */
#include "simulate/msccl_prepare.h"

#include <string.h>

int64_t
sim_msccl_slice(const Msccl *algo)
{
	/* Of Simple 4 of the 8 parts of a buffer of 4 MiB; of LL a part of 512 KiB, half of it flags; of LL128 a part
	 * of 4800 KiB, a sixteenth of it flags. */
	if (strcmp(algo->protocol, "LL") == 0)
		return INT64_C(1) << 15;
	return strcmp(algo->protocol, "LL128") == 0 ? 576000 : INT64_C(1) << 21;
}

int64_t
sim_msccl_chunks(const Msccl *algo)
{
	return (int64_t)msccl_block_chunks(algo) * (collective_has_blocks(algo->coll) ? algo->n_gpus : 1);
}

SimParameters
sim_msccl_parameters(const Msccl *algo, const SimParameters *p)
{
	SimParameters own = *p;
	own.packet_most = strncmp(algo->protocol, "LL", 2) == 0 ? LIMIT_MESSAGE : 0;
	return own;
}

/* The threadblock that receives what this one sends. first: of its peer. -1: none, where this one has a peer and no
 * step that sends. */
static int
receiver_of(const SimMsccl *m, int t, int first)
{
	const MscclPlace *from = &m->place[t];
	int end = first + m->algo->gpu[from->block->send].n_blocks;
	for (int o = first; o < end; o++)
		if (m->place[o].block->recv == from->gpu && m->place[o].block->channel == from->block->channel)
			return o;
	return -1;
}

/* The k-th step that sends meets the k-th that receives. */
static void
join_steps(SimMsccl *m, int t)
{
	const MscclBlock *from = m->place[t].block, *to = m->place[m->place[t].to].block;
	int k = 0;
	for (int i = 0; i < from->n_steps; i++) {
		if (!msccl_ops[from->step[i].op].sends)
			continue;
		while (k < to->n_steps && !msccl_ops[to->step[k].op].receives)
			k++;
		m->place[t].adds[i] = k < to->n_steps && msccl_ops[to->step[k].op].reads;
		k++;
	}
}

static Status
place_blocks(Ctx *ctx, SimMsccl *m, int *first)
{
	int t = 0;
	for (int g = 0; g < m->algo->n_gpus; g++) {
		first[g] = t;
		for (int i = 0; i < m->algo->gpu[g].n_blocks; i++, t++) {
			const MscclBlock *b = &m->algo->gpu[g].block[i];
			m->place[t] = (MscclPlace){ .block = b, .gpu = g, .first = first[g], .in = -1, .to = -1 };
			TRY(NEW(ctx, m->place[t].adds, b->n_steps));
		}
	}
	return OK;
}

Status
sim_msccl_prepare(Ctx *ctx, const Msccl *algo, const Schedule *sched, const SimRoute *route, int slots,
    SimMsccl *out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	SimMsccl m = { .algo = algo, .slots = slots, .plan = { .sched = sched } };
	int *first;
	for (int g = 0; g < algo->n_gpus; g++)
		m.plan.n_hops += algo->gpu[g].n_blocks;
	TRY(NEW_EACH(ctx, m.plan.n_hops, m.place, m.plan.hop));
	TRY(TEMP(ctx, first, algo->n_gpus));
	TRY(place_blocks(ctx, &m, first));
	for (int t = 0; t < m.plan.n_hops; t++) {
		MscclPlace *place = &m.place[t];
		m.plan.hop[t] = (SimHop){ .segment = t, .src = place->gpu, .dst = place->block->send,
			.edge = place->block->channel, .n_links = route[t].n_links, .link = route[t].link,
			.n_path = route[t].n_links, .path = route[t].link, .feeder = -1, .from = place->gpu,
			.to = place->block->send };
		if (place->block->send < 0)
			continue;
		place->to = receiver_of(&m, t, first[place->block->send]);
		if (place->to < 0)
			continue;
		m.place[place->to].in = t;
		join_steps(&m, t);
	}
	arena_release(&ctx->scratch, mark);
	*out = m;
	return OK;
}
