/* Trees of any kind without limits: runs the packers that serve a job (packers.c), and keeps the best of their packings
 * (better.c). */
#include "plan/packers.h"
#include "plan/pack/linear/linear.h"
#include "plan/work.h"

static const double MISSED = 0.9999;	/* of the bound, by less: a lower bound is looked for */

/* -v, where there was a choice: not where the linear program alone ran over few ranks. */
static void
log_packer(Ctx *ctx, const struct portfolio *p, const struct packer *row, const Packing *pack, double seconds,
    const char *better)
{
	Frac rate;
	bool alone = p->n_ran == 1 && row->work == work_programs;
	if (!ctx->log || (alone && p->in->topo->n_ranks <= LIMIT_ILP_RANKS))
		return;
	work_lap(ctx);
	if (!pack || !pack_rate(pack, p->in->ask->coll, p->in->topo->n_ranks, &rate)) {
		log_verbose(ctx, "packer %s: no trees, %.3g of %.3g s", row->name, seconds, row->work(p->in));
		return;
	}
	log_verbose(ctx, "packer %s: %.6g GB/s, %d trees, depth %d, 64 MiB in %.5g us, %.3g of %.3g s: %s", row->name,
	    frac_double(rate) / 1e9, pack->n_trees, pack_depth(pack, p->work),
	    pack_time(p->in->topo, pack, rate, PLAN_MESSAGE, p->work) * 1e6, seconds, row->work(p->in),
	    better ? better : "not better");
}

static Status
run_packer(Ctx *ctx, struct portfolio *p, const struct packer *row)
{
	Packing *pack = NULL;
	double start = work_seconds();
	TRY(row->pack(ctx, p, &pack));
	TRY(portfolio_make_shallower(ctx, p, &pack));
	p->n_ran++;
	p->over_servers |= pack && row->traits & OVER_SERVERS;
	p->planned |= pack && row->traits & ENDS;
	p->optimal |= pack && row->traits & OPTIMAL;
	const char *better = pack == p->best ? NULL : plan_better(p->in, pack, p->best, p->work);
	log_packer(ctx, p, row, pack, work_seconds() - start, better);
	p->by = better ? row : p->by;
	p->best = better ? pack : p->best;
	portfolio_note_rate(p, pack);
	return OK;
}

/* The rows that serve the job: those that take long after all others, where none of these has planned it. */
static Status
run_packers(Ctx *ctx, struct portfolio *p, bool long_ones)
{
	const struct packer *row;
	for (size_t i = 0; (row = packer_row(i)); i++) {
		bool done = p->optimal || portfolio_is_at(p, 1);
		bool refines = row->traits & REFINES && !long_ones;
		bool over_servers = row->traits & OVER_SERVERS;
		bool skips = long_ones && (p->planned || (portfolio_over_servers(p) && !over_servers));
		if (work_is_long(row->work(p->in)) == long_ones && !skips && (!done || refines) && row->serves(p))
			TRY(run_packer(ctx, p, row));
	}
	return OK;
}

/* Where an allreduce misses the bound, whose partitions count links that trees cannot use together. */
static Status
prove_less(Ctx *ctx, struct portfolio *p)
{
	const Planning *in = p->in;
	if (in->ask->coll != ALLREDUCE || !p->best || p->optimal || portfolio_is_at(p, MISSED)
	    || in->topo->n_vertices == in->topo->n_ranks || tree_shares(in->topo, ALLREDUCE)
	    || work_is_long(work_pairs(in)))
		return OK;
	double start = work_seconds(), known = frac_double(p->proof.rate);
	TRY(pack_kind_prices(ctx, in->topo, in->bound, in->ask, &p->proof));
	log_verbose(ctx, "prices of kinds of links: a bound of %.6g GB/s instead of %.6g, %.3g of %.3g s",
	    frac_double(p->proof.rate) / 1e9, known / 1e9, work_seconds() - start, work_pairs(in));
	work_lap(ctx);
	return OK;
}

Status
plan_free(Ctx *ctx, const Planning *in, Packing **out, Bound *proof)
{
	struct portfolio p = { .in = in, .proof = *in->bound };
	TRY(TEMP(ctx, p.work, pack_work(in->topo)));
	TRY(run_packers(ctx, &p, false));
	TRY(prove_less(ctx, &p));
	TRY(run_packers(ctx, &p, true));
	if (p.n_ran > 1 && p.by)
		log_verbose(ctx, "packer %s is kept; from %s", p.by->name, p.by->source);
	*out = p.best;
	*proof = p.proof;
	pack_note_reached(p.best, in->ask->coll, in->topo->n_ranks, proof);
	return OK;
}
