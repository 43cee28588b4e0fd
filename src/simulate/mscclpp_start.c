/* What a plan of MSCCL++ begins with: messages and operations by the bytes of the call, rates, latencies, and the state
 * of GPUs and channels. */
#include "base/limits.h"
#include "simulate/mscclpp_run.h"

int64_t
mscclpp_range_bytes(const struct plan_run *p, const struct block *b, const MscclppOp *loop, const MscclppOp *op)
{
	int64_t all = op->n_src > 0 ? op->src->size * p->chunk : 0;
	if (!loop)
		return op->n_shares > 1 ? (all - 1) / op->n_shares + 1 : all;
	all -= b->unit * loop->unit;
	return all < loop->unit ? all : loop->unit;
}

int64_t
mscclpp_units(const struct plan_run *p, const MscclppOp *loop)
{
	return (loop->n_chunks * p->chunk - 1) / loop->unit + 1;
}

/* Messages and operations. */
static Status
cut(struct plan_run *p)
{
	int64_t n = sim_mscclpp_chunks(p->of->of), most_units = 1, longest = 0;
	Wide messages = 0, steps = 0;
	p->chunk = (p->all.asked->m - 1) / n + 1;
	for (int t = 0; t < p->of->n_blocks; t++) {
		const MscclppBlock *of = p->of->place[t].block;
		const MscclppOp *loop = NULL;
		for (int i = 0; i < of->n_ops; i++) {
			const MscclppOp *op = &of->op[i];
			int o = p->of->place[t].first_op + i, hops = p->of->first_transfer[o + 1]
			    - p->of->first_transfer[o];
			loop = op->kind == MSCCLPP_PIPELINE ? op : loop && op > loop + loop->n_inner ? NULL : loop;
			int64_t units = loop ? mscclpp_units(p, loop) : 1;
			int64_t bytes = mscclpp_range_bytes(p, &(struct block){ 0 }, loop, op);
			most_units = units > most_units ? units : most_units;
			longest = hops && bytes > longest ? bytes : longest;
			messages += (Wide)units * hops;
			steps += units;
		}
	}
	p->all.run.out->chunk = longest;
	p->all.run.out->n_chunks = most_units;
	return blocks_room(&p->all, messages, steps, "units of the plan");
}

/* The slowest link by which a summand comes. */
static void
set_rates(struct plan_run *p)
{
	const SimMscclpp *m = p->of;
	SimParameters by_link = p->all.asked->p;
	by_link.reduce = 0;
	for (int h = 0; h < m->plan.n_hops; h++) {
		const MscclppTransfer *of = &m->transfer[h];
		int o = m->place[of->block].first_op + of->op;
		int64_t rate = sim_add_rate(&by_link, m->plan.sched->topo, &m->plan.hop[h]);
		for (int i = of->reads ? -1 : 0; rate && i < of->n_readers; i++) {
			int64_t *to = &p->add[i < 0 ? o : m->reader[of->first_reader + i]];
			*to = *to == 0 || rate < *to ? rate : *to;
		}
	}
}

static void
set_latencies(struct plan_run *p)
{
	const SimMscclpp *m = p->of;
	const SimParameters *of = &p->all.ask.p;
	for (int i = 0; i < m->n_pairs; i++)
		for (int k = 0; k < m->route[i].n_links; k++) {
			const Link *link = &m->plan.sched->topo->link[m->route[i].link[k]];
			p->latency[i] += sim_link_latency(of, SIM_CHUNKS, link);
			p->relaxed[i] += sim_link_latency(of, SIM_PACKETS, link);
		}
}

static Status
new_gpus(struct plan_run *p)
{
	const Mscclpp *plan = p->of->of;
	int t = 0;
	TRY(TEMP(p->all.run.ctx, p->gpu, plan->n_gpus));
	for (int g = 0; g < plan->n_gpus; g++) {
		struct gpu *gpu = &p->gpu[g];
		int n_barriers = 0;
		gpu->first_block = t;
		t += plan->gpu[g].n_blocks;
		gpu->end_block = t;
		for (int i = 0; i < plan->gpu[g].n_blocks; i++)
			for (int k = 0; k < plan->gpu[g].block[i].n_ops; k++)
				if (plan->gpu[g].block[i].op[k].barrier >= n_barriers)
					n_barriers = plan->gpu[g].block[i].op[k].barrier + 1;
		TRY(TEMP(p->all.run.ctx, gpu->semaphore, plan->gpu[g].n_semaphores));
		TRY(TEMP(p->all.run.ctx, gpu->barrier, n_barriers));
		for (int k = 0; k < plan->gpu[g].n_semaphores; k++)
			gpu->semaphore[k] = (struct semaphore){ plan->gpu[g].semaphore[k], NOBODY };
	}
	return OK;
}

static Status
new_state(struct plan_run *p)
{
	const SimMscclpp *m = p->of;
	Ctx *ctx = p->all.run.ctx;
	TRY(TEMP(ctx, p->block, m->n_blocks));
	TRY(TEMP(ctx, p->end, m->n_ends));
	TRY(TEMP(ctx, p->message, m->plan.n_hops));
	TRY(TEMP_EACH(ctx, m->n_ops, p->n_packets, p->add));
	TRY(TEMP_EACH(ctx, m->n_pairs, p->latency, p->relaxed));
	for (int t = 0; t < m->n_blocks; t++)
		p->block[t] = (struct block){ .loop = -1, .cause = NOBODY };
	for (int e = 0; e < m->n_ends; e++)
		p->end[e] = (struct channel_end){ .waiter = NOBODY, .flusher = NOBODY };
	for (int o = 0; o < m->n_ops; o++)
		p->n_packets[o] = m->n_packets[o];
	set_rates(p);
	set_latencies(p);
	return new_gpus(p);
}

Status
mscclpp_start(struct plan_run *p)
{
	TRY(cut(p));
	return new_state(p);
}
