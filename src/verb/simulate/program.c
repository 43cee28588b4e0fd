#include "verb/simulate/program.h"

#include "format/msccl/msccl.h"
#include "format/mscclpp/mscclpp.h"
#include "msccl/msccl.h"
#include "mscclpp/mscclpp.h"
#include "plan/plan.h"
#include "topology/topology.h"
#include "verb/simulate/ways.h"

/* What all that is printed refers to: a schedule without trees, with what no algorithm exceeds on these links. */
static Status
frame(Ctx *ctx, const char *name, Collective coll, const Topology *topo, int root, Schedule **out)
{
	Symmetry *sym;
	TRY(NEW(ctx, *out, 1));
	**out = (Schedule){ .generator = "", .version = "", .topo = topo, .coll = coll, .root = root,
		.algorithm = name };
	TRY(topo_symmetry(ctx, topo, root, SYMMETRY_ANY, &sym));
	return bound_compute(ctx, topo, sym, coll, root, &(*out)->bound);
}

static int64_t
chunks_sent(const MscclBlock *block)
{
	int64_t n = 0;
	for (int i = 0; i < block->n_steps; i++)
		n += msccl_ops[block->step[i].op].sends ? block->step[i].count : 0;
	return n;
}

/* A pair for each threadblock that sends; the routes of all threadblocks. */
static Status
read_msccl(Ctx *ctx, const Options *opt, const char *label, const Text *in, const Topology **whole, SimMsccl *out)
{
	Msccl *algo;
	RuleFindings found;
	Topology *topo;
	Schedule *sched;
	SimPair *pair;
	SimRoute *route, *of_pair;
	int n_blocks = 0, n = 0, t = 0;
	TRY(msccl_read(ctx, label, in->data, in->size, &algo));
	TRY(msccl_check(ctx, label, algo, &found));
	for (int g = 0; g < algo->n_gpus; g++)
		n_blocks += algo->gpu[g].n_blocks;
	TRY(NEW_EACH(ctx, n_blocks, pair, route, of_pair));
	for (int g = 0; g < algo->n_gpus; g++)
		for (int i = 0; i < algo->gpu[g].n_blocks; i++) {
			const MscclBlock *b = &algo->gpu[g].block[i];
			if (b->send >= 0)
				pair[n++] = (SimPair){ g, b->send, chunks_sent(b) };
		}
	TRY(ways_find(ctx, opt, label, "an algorithm of MSCCL", algo->n_gpus, pair, n, whole, &topo, of_pair));
	n = 0;
	for (int g = 0; g < algo->n_gpus; g++)
		for (int i = 0; i < algo->gpu[g].n_blocks; i++, t++)
			if (algo->gpu[g].block[i].send >= 0)
				route[t] = of_pair[n++];
	TRY(frame(ctx, algo->name, algo->coll, topo, found.root, &sched));
	return sim_msccl_prepare(ctx, algo, sched, route, found.slots, out);
}

static Status
read_mscclpp(Ctx *ctx, const Options *opt, const char *label, const Text *in, const Topology **whole, SimMscclpp *out)
{
	Mscclpp *plan;
	RuleFindings found;
	Topology *topo;
	Schedule *sched;
	SimRoute *route;
	TRY(mscclpp_read(ctx, label, in->data, in->size, &plan));
	TRY(mscclpp_check(ctx, label, plan, &found));
	TRY(sim_mscclpp_list(ctx, plan, out));
	TRY(NEW(ctx, route, out->n_pairs));
	TRY(ways_find(ctx, opt, label, "a plan of MSCCL++", plan->n_gpus, out->pair, out->n_pairs, whole, &topo,
	    route));
	TRY(frame(ctx, plan->name, plan->coll, topo, found.root, &sched));
	return sim_mscclpp_route(ctx, label, sched, route, out);
}

Status
program_read(Ctx *ctx, const Options *opt, const char *label, const Text *in, const Topology **whole, SimProgram *out)
{
	SimMsccl *msccl;
	SimMscclpp *mscclpp;
	*out = (SimProgram){ NULL, NULL };
	if (msccl_is(in->data, in->size)) {
		TRY(NEW(ctx, msccl, 1));
		out->msccl = msccl;
		return read_msccl(ctx, opt, label, in, whole, msccl);
	}
	TRY(NEW(ctx, mscclpp, 1));
	out->mscclpp = mscclpp;
	return read_mscclpp(ctx, opt, label, in, whole, mscclpp);
}

const SimPlan *
program_plan(const SimProgram *program)
{
	return program->msccl ? &program->msccl->plan : &program->mscclpp->plan;
}
