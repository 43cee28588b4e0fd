/* The arrow of model.h. */
#include "job.h"

#include "report.h"
#include "watch.h"

Status
job_parse(Ctx *ctx, const Options *opt, Job *job)
{
	*job = (Job){ .opt = opt, .hybrid = opt->value[OPT_HYBRID] };
	TRY(request_parse(ctx, opt, &job->ask));
	return job->hybrid ? request_hybrid(ctx, opt, &job->kind) : OK;
}

Status
job_induce(Ctx *ctx, Job *job)
{
	const char *links = job->opt->value[OPT_LINKS];
	Topology *plane, *topo;
	if (job->hybrid) {
		TRY(hybrid_parts(ctx, job->machine, job->gpu, job->n, job->kind, job->part));
		job->classes = job->part[0].classes | job->part[1].classes;
		TRY(hybrid_induce(ctx, job->machine, job->gpu, job->n, job->part, job->kind, &plane, &topo));
		job->plane = plane;
	} else {
		if (links)
			TRY(request_links(ctx, links, &job->classes));
		else
			TRY(topo_default_classes(ctx, job->machine, job->gpu, job->n, &job->classes));
		TRY(topo_induce(ctx, job->machine, job->gpu, job->n, job->classes, &topo));
	}
	job->topo = topo;
	return OK;
}

static Status
print_pareto(Ctx *ctx, const Topology *topo, const Symmetry *sym, const Bound *bound, const Request *ask)
{
	ParetoPoint *point;
	int n;
	TRY(plan_pareto(ctx, topo, sym, bound, ask, &point, &n));
	watch_hide();
	report_pareto(bound, point, n);
	return OK;
}

Status
job_plan(Ctx *ctx, const Job *job, Frac *best, Schedule **out)
{
	const Topology *topo = job->topo;
	const Request *ask = &job->ask;
	Symmetry *sym;
	Bound bound, proof;
	Packing *pack;
	*best = FRAC_ZERO;
	if (job->hybrid)
		return plan_hybrid(ctx, job->plane, topo, job->part, 2, ask, out);
	TRY(topo_symmetry(ctx, topo, ask->root, plan_by_symmetry(topo, ask), &sym));
	TRY(bound_compute(ctx, topo, sym, ask->coll, ask->root, &bound));
	*out = NULL;
	if (job->opt->value[OPT_PARETO])
		return print_pareto(ctx, topo, sym, &bound, ask);
	TRY(plan_algorithm(ctx, topo, sym, &bound, ask, &pack, &proof, best));
	return sched_build(ctx, topo, &proof, ask, algorithm_name(ask->algorithm), pack, out);
}

Status
job_write(Ctx *ctx, const Job *job, Schedule *sched, Text *json, Schedule **again)
{
	TRY(request_record(ctx, job->opt, &job->ask, job->classes, job->kind, sched));
	emit_sched_json(sched, json);
	if (json->failed)
		return fail_memory(ctx);
	TRY(sched_read(ctx, "the compiled schedule", json->data, json->size, again));
	return sched_verify(ctx, "the compiled schedule", *again);
}
