/* The arrow of model.h. */
#include "compile.h"
#include "base/limits.h"
#include "format/format.h"
#include "plan/baseline.h"
#include "plan/work.h"
#include "schedule/schedule.h"
#include "topology/topology.h"

#include <limits.h>
#include <string.h>

static Status
induce_hybrid(Ctx *ctx, const Topology *machine, const int *gpu, int n, Job *job)
{
	Topology *planning_topology, *topo;
	TRY(hybrid_parts(ctx, machine, gpu, n, job->ask.hybrid, job->part));
	TRY(hybrid_induce(ctx, machine, gpu, n, job->part, job->ask.hybrid, &planning_topology, &topo));
	job->classes = job->part[0].classes | job->part[1].classes;
	job->planning_topology = planning_topology;
	job->topo = topo;
	return OK;
}

/* Of a list as "gpu4,gpu5". */
static bool
word_in_list(const char *word, const char *list)
{
	size_t n = strlen(word);
	for (const char *at = list;; at++) {
		size_t length = strcspn(at, ",");
		if (length == n && memcmp(at, word, n) == 0)
			return true;
		at += length;
		if (!*at)
			return false;
	}
}

/* GPUs that forward become switches; the others have new numbers. */
static Status
add_relays(Ctx *ctx, const char *relays, const Topology **machine, const int **gpu, int n)
{
	const Topology *whole = *machine;
	Topology *topo;
	const int *now;
	bool *relay;
	int *renumbered;
	TRY(NEW(ctx, relay, whole->n_ranks));
	for (int g = 0; g < whole->n_ranks; g++)
		relay[g] = strcmp(relays, "rest") == 0 || word_in_list(whole->vertex[g].id, relays);
	for (int i = 0; i < n; i++)
		relay[(*gpu)[i]] = false;
	TRY(topo_relays(ctx, whole, relay, &topo, &now));
	TRY(NEW(ctx, renumbered, n));
	for (int i = 0; i < n; i++)
		renumbered[i] = now[(*gpu)[i]];
	*machine = topo;
	*gpu = renumbered;
	return OK;
}

Status
job_induce(Ctx *ctx, const Topology *machine, const int *gpu, int n, const Ask *ask, Job *out)
{
	Topology *topo;
	JobLinks links;
	/* Other trees than those of pack_templates are chosen among all pairs of ranks. */
	if (ask->algorithm || ask->hybrid)
		TRY(n > LIMIT_PAIR_RANKS ? topo_check_pairs(ctx, machine) : OK);
	*out = (Job){ .ask = *ask, .machine = machine, .gpu = gpu };
	TRY(algorithm_find(ctx, ask->algorithm, ask->coll, &out->algorithm));
	if (ask->relays)
		TRY(add_relays(ctx, ask->relays, &machine, &gpu, n));
	if (ask->hybrid)
		return induce_hybrid(ctx, machine, gpu, n, out);
	bool hosts = algorithm_staged(out->algorithm->name);
	unsigned classes = hosts && !ask->links && ask->routes != ROUTES_PAIR ? topo_classes(machine) : ask->links;
	TRY(topo_of_job(ctx, machine, gpu, n, classes, ask->routes, hosts, &links, &topo));
	/* Halves of PCIe switches and NICs, for what leaves a server and what comes in, are vertices of a job. */
	if (topo->n_vertices > LIMIT_VERTICES)
		return fail(ctx, LIMIT, "%s: %d vertices of a job over %d GPUs: want at most %d", topo->name,
		    topo->n_vertices, n, LIMIT_VERTICES);
	out->ask.routes = links.pairs ? ROUTES_PAIR : ROUTES_ANY;
	out->classes = links.classes;
	out->topo = topo;
	return OK;
}

/* Once for all that share it. Of the time that is left, it has two fifths. */
static Status
share(Ctx *ctx, const Job *job, SymmetryKind kind, JobShared *shared)
{
	const Ask *ask = &job->ask;
	int left = progress(ctx, "symmetries and bound"), finishing = ctx->reserve;
	if (shared->from[kind].known)
		return OK;
	ctx->reserve += left < INT_MAX && left > 0 ? left / 5 * 3 : 0;
	work_done(ctx, job->topo, "the machine, and its links");
	TRY(topo_symmetry(ctx, job->topo, ask->root, kind, &shared->from[kind].sym));
	TRY(plan_check_ranks(ctx, job->topo, shared->from[kind].sym, ask));
	TRY(bound_compute(ctx, job->topo, shared->from[kind].sym, ask->coll, ask->root, &shared->from[kind].bound));
	ctx->reserve = finishing;
	ctx->late = false;
	work_done(ctx, job->topo, "symmetries and bound");
	shared->from[kind].known = true;
	return OK;
}

/* Symmetry and bound, from which planning starts. */
static Status
prepare(Ctx *ctx, const Job *job, const Algorithm *planner, JobShared *shared, Planning *out)
{
	const Ask *ask = &job->ask;
	SymmetryKind kind = planner->wants_symmetry(job->topo, ask);
	TRY(share(ctx, job, kind, shared));
	*out = (Planning){ .row = planner, .topo = job->topo, .sym = shared->from[kind].sym,
		.bound = &shared->from[kind].bound, .ask = ask, .known = shared->known, .proven = &shared->proven,
		.soon = shared->soon };
	if (ask->hybrid) {
		out->planning_topology = job->planning_topology;
		out->part = job->part;
		out->n_parts = 2;
	}
	return OK;
}

/* ms to write a schedule, and to read and verify it: about 0.5 us for each edge and link; no more than half of what is
 * left. */
static int
finishing_time(const Job *job, int left)
{
	enum { TREES = 32, PATH_EDGES = 6 };
	const Topology *topo = job->topo;
	Collective coll = job->ask.coll;
	int64_t trees = collective_demands(coll, topo->n_ranks), edges = 2 * ((int64_t)topo->n_ranks - 1);
	if (collective_has_blocks(coll))
		edges = collective_demand(coll, topo->n_ranks, 0, 0).kind == DEMAND_PATH ? PATH_EDGES : edges / 2;
	else
		trees = TREES;
	int64_t ms = (trees * edges + topo->n_links) / 2000;
	return ms < left / 2 ? (int)ms : left > 0 ? left / 2 : 0;
}

/* Searches for the cheapest trees that verify prices (graph/demand_cost.c). */
static int64_t
proof_searches(const Topology *topo, Collective coll, const Symmetry *sym)
{
	if (coll == ALLTOALL)		/* from each rank */
		return sym ? sym->n_representatives : topo->n_ranks;
	return coll == ALLREDUCE ? 2 * (int64_t)topo->n_ranks : collective_demands(coll, topo->n_ranks);
}

/* Their steps, about. Paths take few. */
static int64_t
proof_steps(const Topology *topo, Collective coll)
{
	enum { STEPS_PAIR = 6, STEPS_LINK = 60 };
	int64_t n = topo->n_ranks;
	if (collective_demand(coll, topo->n_ranks, 0, 0).kind == DEMAND_PATH)
		return 0;
	return proof_searches(topo, coll, NULL)
	    * (topo->n_vertices > n ? STEPS_PAIR * n * n : STEPS_LINK * (n + topo->n_links));
}

/* Prices are verified by a search for the cheapest trees. Where that takes more steps than a reader allows, or there is
 * no time for it, the bound remains, which takes a few additions. */
static void
choose_proof(Ctx *ctx, const Job *job, const Bound *bound, Plan *plan)
{
	const Topology *topo = job->topo;
	bool paths = collective_demand(job->ask.coll, topo->n_ranks, 0, 0).kind == DEMAND_PATH;
	int64_t n = topo->n_ranks, hops = topo->n_vertices > n && !paths ? n * n : topo->n_links;
	if (plan->proof.kind != CERTIFICATE_PRICES && plan->proof.kind != CERTIFICATE_LENGTHS)
		return;
	if (proof_searches(topo, job->ask.coll, plan->pack->symmetry) * hops / 10000 > progress(ctx, "a proof")
	    || proof_steps(topo, job->ask.coll) > LIMIT_VERIFY_STEPS / 10 * 9)
		plan->proof = *bound;
}

Status
job_baselines(Ctx *ctx, const Job *job, Schedule *sched)
{
	BaselineJob of = { .machine = job->machine, .gpu = job->gpu, .n = job->topo->n_ranks };
	if (!job->ask.hybrid) {
		of.topo = job->topo;
		of.classes = job->classes;
		of.pairs = job->ask.routes == ROUTES_PAIR;
	}
	return baselines_find(ctx, &of, job->ask.coll, &sched->baseline, &sched->n_baselines);
}

/* The machine has links that are not in use, which may have what an algorithm lacks. */
static Status
name_other_links(Ctx *ctx, const Job *job, Status status)
{
	const Error error = ctx->error;
	if (status != INFEASIBLE || !job->algorithm->classic || !(topo_classes(job->machine) & ~job->classes))
		return status;
	ctx->error.status = OK;
	return fail(ctx, status, "%s; or other links, as --links all", error.text);
}

Status
job_plan(Ctx *ctx, const Job *job, JobShared *shared, Plan *out)
{
	const Algorithm *planner = job->ask.hybrid ? &hybrid_algorithm : job->algorithm;
	Planning planning;
	ctx->reserve = 0;
	ctx->reserve = finishing_time(job, progress(ctx, "symmetries and bound"));
	TRY(prepare(ctx, job, planner, shared, &planning));
	TRY(name_other_links(ctx, job, planner->plan(ctx, &planning, out)));
	choose_proof(ctx, job, planning.bound, out);
	work_done(ctx, job->topo, "the rest of planning");
	return OK;
}

Status
job_rate(Ctx *ctx, const Job *job, Frac above, Frac *out)
{
	JobShared shared = { 0 };
	Planning planning;
	*out = FRAC_ZERO;
	TRY(prepare(ctx, job, job->algorithm, &shared, &planning));
	return frac_cmp(planning.bound->rate, above) > 0 ? plan_rate(ctx, &planning, out) : OK;
}

Status
job_build(Ctx *ctx, const Job *job, const Plan *plan, Schedule **out)
{
	Ask ask = job->ask;
	/* Another run may end elsewhere. */
	ask.budget = ask.budget || ctx->cut_short;
	TRY(sched_build(ctx, job->topo, &plan->proof, &ask, job->algorithm->name, plan->pack, out));
	if (plan->length)
		TRY(sched_add_matrix(ctx, ask.matrix, plan->length, *out));
	return sched_record(ctx, &ask, job->classes, *out);
}

/* Maps that move less are left out one by one, those of the GPUs of a server first. */
static Status
fold_by(Ctx *ctx, const Schedule *sched, const Symmetry *sym, Schedule **out)
{
	*out = NULL;
	for (int skip = 0; skip < sym->n_maps && !*out; skip++) {
		Symmetry *group;
		TRY(NEW(ctx, group, 1));
		*group = (Symmetry){ .n_maps = sym->n_maps - skip, .map = sym->map + skip, .size = 1 };
		for (int i = 0; i < group->n_maps; i++)
			group->size *= group->map[i].order;
		TRY(symmetry_find_orbits(ctx, sched->topo, group));
		TRY(sched_fold(ctx, sched, group, out));
	}
	return OK;
}

Status
compile_compact(Ctx *ctx, const char *label, const Schedule *sched, Schedule **out)
{
	static const SymmetryKind kind[] = { SYMMETRY_ANY, SYMMETRY_SERVERS };
	Schedule *found = NULL;
	for (int i = 0; i < 2 && !found; i++) {
		Symmetry *sym;
		TRY(topo_symmetry(ctx, sched->topo, sched->root, kind[i], &sym));
		TRY(fold_by(ctx, sched, sym, &found));
	}
	if (!found)
		return fail(ctx, INFEASIBLE,
		    "%s: no compact form: no symmetry of its links makes its %d trees from fewer", label,
		    sched->n_segments);
	*out = found;
	return OK;
}

Status
job_finish(Ctx *ctx, const Job *job, const Plan *plan, Compiled *out)
{
	static const char label[] = "the compiled schedule";
	Schedule *sched;
	out->cut_short = ctx->cut_short;
	TRY(job_build(ctx, job, plan, &sched));
	TRY(job_baselines(ctx, job, sched));
	if (job->ask.compact && sched_is_list(sched))
		TRY(compile_compact(ctx, job->topo->name, sched, &sched));
	progress(ctx, "writing and verifying %lld trees", (long long)sched_trees(sched));
	sched_write_json(sched, &out->json);
	if (out->json.failed)
		return fail_memory(ctx);
	out->best = plan->best;
	out->unlimited = plan->unlimited;
	out->reached = plan->proof.reached;
	out->other_trees = plan->pack->other_trees;
	out->other_depth = plan->pack->other_depth;
	/* What counts is what readers of the file get, not what was meant. */
	TRY(sched_read_verified(ctx, label, out->json.data, out->json.size, &out->sched));
	work_done(ctx, job->topo, "the schedule, written, read and verified");
	out->routes = job->ask.routes;
	return job->ask.routes == ROUTES_PAIR ? sched_check_routes(ctx, label, out->sched) : OK;
}

Status
job_compile(Ctx *ctx, const Job *job, Compiled *out)
{
	JobShared shared = { 0 };
	Plan plan;
	TRY(job_plan(ctx, job, &shared, &plan));
	return job_finish(ctx, job, &plan, out);
}

Status
job_pareto(Ctx *ctx, const Job *job, Bound *bound, ParetoPoint **out, int *n)
{
	JobShared shared = { 0 };
	Planning planning;
	TRY(prepare(ctx, job, job->algorithm, &shared, &planning));
	*bound = *planning.bound;
	return plan_pareto(ctx, &planning, out, n);
}

Status
compile(Ctx *ctx, const Topology *machine, const int *gpu, int n, const Ask *ask, Compiled *out)
{
	Job job;
	TRY(job_induce(ctx, machine, gpu, n, ask, &job));
	return job_compile(ctx, &job, out);
}
