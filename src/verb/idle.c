#include "verb/idle.h"
#include "topology/topology.h"

enum {
	BUS = 1u << LINK_PCIE | 1u << LINK_QPI,
	FEW_PLANNED = 16,	/* GPUs of which other plans are made */
	FEW_BOUND = 32		/* and of which the bound is computed */
};

/* From which on routes of pairs are the default. */
#define GAIN 1.05

struct job {
	const Topology *machine;
	const int *gpu;
	int n;
	const Ask *ask;
	const Compiled *made;
};

static bool
one_server(const struct job *job)
{
	for (int i = 1; i < job->n; i++)
		if (job->machine->vertex[job->gpu[i]].node != job->machine->vertex[job->gpu[0]].node)
			return false;
	return true;
}

/* The rate of another plan for these GPUs, if it may be above this one; FRAC_ZERO: there is none. */
static Frac
rate_with(const Ctx *ctx, const struct job *job, unsigned links, Routes routes, Frac above)
{
	Ctx own;
	Ask ask = *job->ask;
	Job other;
	Frac rate = FRAC_ZERO;
	ctx_init(&own);
	own.step = ctx->step;
	own.step_of = ctx->step_of;
	ask.links = links;
	ask.routes = routes;
	if (job_induce(&own, job->machine, job->gpu, job->n, &ask, &other) != OK
	    || job_rate(&own, &other, above, &rate) != OK || own.cut_short)
		rate = FRAC_ZERO;
	ctx_free(&own);
	return rate;
}

/* ---- the default of a machine ---- */

/* Does a class that the fastest links do not have carry data at a guess? */
static bool
has_guesses(const Topology *topo, unsigned but)
{
	for (int l = 0; l < topo->n_links; l++)
		if (topo->link[l].assumed && !(but >> topo->link[l].class & 1))
			return true;
	return false;
}

/* All its GPUs over its fastest links, which join them, and by the routes of pairs over others, too. */
static bool
both_ways(Ctx *own, const Topology *machine, const int *gpu, const Ask *ask, Job *fastest, Job *pairs)
{
	const unsigned direct = 1u << LINK_NVLINK | 1u << LINK_XGMI;
	Ask by_pairs = *ask;
	by_pairs.routes = ROUTES_PAIR;
	return job_induce(own, machine, gpu, machine->n_ranks, ask, fastest) == OK
	    && fastest->ask.routes == ROUTES_ANY && !(fastest->classes & ~direct)
	    && job_induce(own, machine, gpu, machine->n_ranks, &by_pairs, pairs) == OK
	    && pairs->classes & ~fastest->classes && !has_guesses(pairs->topo, fastest->classes);
}

static Frac
bound_of(Ctx *own, const Topology *topo)
{
	Symmetry *sym;
	Bound bound;
	bool known = topo_symmetry(own, topo, -1, SYMMETRY_ANY, &sym) == OK
	    && bound_compute(own, topo, sym, ALLREDUCE, -1, &bound) == OK;
	return known ? bound.rate : FRAC_ZERO;
}

Routes
routes_default(const Ctx *ctx, const Topology *machine, const Ask *ask, PairGain *out)
{
	const Ask plain = { .coll = ALLREDUCE, .root = -1, .epsilon = ask->epsilon, .minimise = true };
	int gpu[FEW_PLANNED];
	Ctx own;
	Job fastest, pairs;
	*out = (PairGain){ .taken = false };
	if (ask->links || ask->routes != ROUTES_CHOSEN || ask->algorithm || ask->hybrid || ask->relays
	    || ask->packing != PACKING_EXACT || machine->n_nodes != 1 || machine->n_ranks > FEW_PLANNED)
		return ask->routes;
	for (int g = 0; g < machine->n_ranks; g++)
		gpu[g] = g;
	ctx_init(&own);
	own.step = ctx->step;
	own.step_of = ctx->step_of;
	if (both_ways(&own, machine, gpu, &plain, &fastest, &pairs)) {
		out->links = fastest.classes;
		out->fastest = bound_of(&own, fastest.topo);
		if (out->fastest.num > 0 && job_rate(&own, &pairs, out->fastest, &out->pairs) == OK && !own.cut_short)
			out->taken = frac_double(out->pairs) > GAIN * frac_double(out->fastest);
	}
	ctx_free(&own);
	return out->taken ? ROUTES_PAIR : ask->routes;
}

/* ---- what is idle ---- */

/* The parts of a hybrid schedule: this one, and trees over PCIe, which can start after a setup. */
static void
find_hybrid(Ctx *ctx, const struct job *job, Idle *out)
{
	Frac rate = job->made->sched->achieved, bus = rate_with(ctx, job, BUS, ROUTES_ANY, FRAC_ZERO);
	int64_t time;
	if (bus.num == 0 || !topo_peer_access(job->machine, job->n, &time) || !frac_add(rate, bus, &out->hybrid))
		return;
	out->hybrid_from = frac_double(rate) * (double)time / 1e9;
}

static void
find_pairs(Ctx *ctx, const struct job *job, Idle *out)
{
	Frac rate = job->made->sched->achieved, pairs = rate_with(ctx, job, 0, ROUTES_PAIR, rate);
	if (frac_cmp(pairs, rate) > 0)
		out->pairs = pairs;
}

/* What no algorithm exceeds over all links. */
static void
find_bound(Ctx *own, const struct job *job, const Topology *all, Idle *out)
{
	const Schedule *sched = job->made->sched;
	Symmetry *sym;
	Bound bound;
	if (topo_symmetry(own, all, sched->root, SYMMETRY_ANY, &sym) == OK
	    && bound_compute(own, all, sym, sched->coll, sched->root, &bound) == OK)
		out->bound = bound.rate;
}

/* Every class, for the links that are idle. Of one server the network, which leads out of it, does not count. */
static Status
induce_all(Ctx *ctx, const struct job *job, Topology **out)
{
	unsigned classes = topo_classes(job->machine);
	JobLinks links;
	classes &= one_server(job) ? ~(1u << LINK_NET) : ~0u;
	TRY(topo_nic_paths(ctx, job->machine, job->gpu, job->n, classes, NULL, &links));
	return topo_induce(ctx, job->machine, job->gpu, job->n, &links, out);
}

/* all: the job over every class. */
static void
find(Ctx *own, const struct job *job, const Topology *all, Idle *out)
{
	const Ask *ask = job->ask;
	bool whole = !job->made->cut_short, few = one_server(job) && job->n <= FEW_PLANNED,
	    chosen = !ask->links && ask->routes == ROUTES_CHOSEN && !ask->algorithm && !ask->max_depth
	    && !ask->max_trees && ask->packing == PACKING_EXACT;
	out->classes = topo_classes(all) & ~topo_classes(job->made->sched->topo);
	if (!out->classes || !whole)
		return;
	if (chosen && few && out->classes & BUS)
		find_hybrid(own, job, out);
	if (chosen && few)
		find_pairs(own, job, out);
	if (out->hybrid.num == 0 && out->pairs.num == 0 && job->n <= FEW_BOUND)
		find_bound(own, job, all, out);
}

void
idle_find(const Ctx *ctx, const Topology *machine, const int *gpu, int n, const Ask *ask, const Compiled *made,
    Idle *out)
{
	const struct job job = { machine, gpu, n, ask, made };
	Topology *all;
	Ctx own;
	*out = (Idle){ .hybrid = FRAC_ZERO, .pairs = FRAC_ZERO, .bound = FRAC_ZERO };
	if (ask->hybrid)
		return;
	ctx_init(&own);
	own.step = ctx->step;
	own.step_of = ctx->step_of;
	if (induce_all(&own, &job, &all) == OK)
		find(&own, &job, all, out);
	ctx_free(&own);
}
