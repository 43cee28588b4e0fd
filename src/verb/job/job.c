#include "verb/job/job.h"
#include "base/file.h"
#include "format/format.h"
#include "topology/topology.h"
#include "verb/progress.h"
#include "verb/request.h"
#include "verb/verb.h"

#include <stdio.h>
#include <string.h>

struct job_request {
	const char *label;
	const Options *opt;
	Workload *workload;
	Topology *whole, *machine;	/* before losses; what is left */
	int *whole_gpu, *gpu;		/* of each rank, in both */
	Ask ask;
	bool json;
};

/* The machine of the command line, else that of the file: beside it, or as --topology. */
static Status
read_job_machine(Ctx *ctx, struct job_request *req)
{
	const char *named = req->opt->value[OPT_TOPOLOGY] ? req->opt->value[OPT_TOPOLOGY] : req->workload->topology,
	    *label;
	const char *slash = strrchr(req->label, '/');
	char beside[FILE_PATH_ROOM];
	Text in = { 0 };
	if (!named)
		return fail(ctx, USAGE, "%s: topology: missing: want it there, or --topology", req->label);
	bool relative = !req->opt->value[OPT_TOPOLOGY] && slash && *named != '/'
	    && snprintf(beside, sizeof beside, "%.*s/%s", (int)(slash - req->label), req->label, named)
	    < (int)sizeof beside && file_is_there(beside);
	TRY(topology_file(ctx, false, relative ? arena_text(&ctx->run, beside, strlen(beside)) : named, &label));
	TRY(file_read(ctx, label, &in));
	Status status = read_topology(ctx, req->opt, label, &in, &req->whole);
	text_free(&in);
	return status;
}

/* The machine without what --without has; ranks keep their order. */
static Status
take_losses(Ctx *ctx, struct job_request *req, int *n)
{
	Loss *loss;
	const int *now;
	int n_losses, left = 0;
	req->machine = req->whole;
	req->gpu = req->whole_gpu;
	if (!req->opt->value[OPT_WITHOUT])
		return OK;
	TRY(topo_losses(ctx, req->whole, req->opt->value[OPT_WITHOUT], &loss, &n_losses));
	TRY(topo_losses_name(ctx, req->whole, loss, n_losses, &req->ask.without));
	TRY(topo_without(ctx, req->whole, loss, n_losses, &req->machine, &now));
	TRY(NEW(ctx, req->gpu, *n));
	for (int i = 0; i < *n; i++) {
		int gpu = req->whole_gpu[i];
		if (now[gpu] < 0 && req->workload->gpus)
			return fail(ctx, BAD_INPUT, "%s: gpus: %s: --without takes it out: want GPUs that are left",
			    req->label, req->whole->vertex[gpu].id);
		req->gpu[left] = now[gpu];
		req->whole_gpu[left] = gpu;
		left += now[gpu] >= 0;
	}
	*n = left;
	return OK;
}

/* Ranks of groups are numbers of the GPUs that the file lists; without a list, those that are left. */
static Status
choose_gpus(Ctx *ctx, struct job_request *req)
{
	const Workload *w = req->workload;
	int n;
	TRY(NEW(ctx, req->whole_gpu, req->whole->n_ranks));
	Status status = request_gpus(ctx, req->whole, w->gpus, req->whole_gpu, &n);
	if (status != OK && strncmp(ctx->error.text, "--gpus: ", 8) == 0) {
		Error error = ctx->error;
		ctx->error.status = OK;
		return fail(ctx, status, "%s: gpus: %s", req->label, error.text + 8);
	}
	TRY(status);
	TRY(take_losses(ctx, req, &n));
	return w->n_ranks <= n ? OK : fail(ctx, BAD_INPUT, "%s: groups are over %d ranks: the job has %d GPUs",
	    req->label, w->n_ranks, n);
}

static Status
parse(Ctx *ctx, const Options *opt, struct job_request *req)
{
	Text in = { 0 };
	*req = (struct job_request){ .opt = opt };
	TRY(request_summary(ctx, opt, &req->json));
	TRY(request_from(ctx, opt, &(const char *){ NULL }));
	TRY(request_parse(ctx, opt, ALLREDUCE, &req->ask));
	TRY(request_time(ctx, NULL));
	if (opt->n_files != 1)
		return fail(ctx, USAGE, "%d job files: want one; see blinkc job --help", opt->n_files);
	req->label = opt->file[0];
	TRY(file_read(ctx, req->label, &in));
	Status status = workload_read(ctx, req->label, in.data ? in.data : "", in.size, &req->workload);
	text_free(&in);
	TRY(status);
	TRY(read_job_machine(ctx, req));
	return choose_gpus(ctx, req);
}

static Status
plan_all(Ctx *ctx, const struct job_request *req, const JoinedWorkload *in, JobPlans *out)
{
	out->in = in;
	out->whole = req->whole;
	out->gpu = req->whole_gpu;
	TRY(NEW(ctx, out->plan, req->workload->n_phases));
	for (int p = 0; p < req->workload->n_phases; p++)
		TRY(phase_plan(ctx, in, &req->workload->phase[p], &out->plan[p]));
	TRY(bundle_phases(ctx, out));
	return req->opt->value[OPT_OUTPUT] ? bundle_write(ctx, out, req->opt->value[OPT_OUTPUT]) : OK;
}

static Status
print(Ctx *ctx, const struct job_request *req, const JobPlans *plans)
{
	Text text = { 0 };
	progress_hide();
	if (req->json)
		job_json(plans, req->label, &text);
	else if (!req->opt->value[OPT_QUIET])
		job_text(plans, &text);
	if (!req->json && !req->opt->value[OPT_QUIET] && !req->opt->value[OPT_OUTPUT])
		text_put(&text, "schedules   -o DIR writes one for each group\n");
	bool failed = text.failed;
	if (!failed && text.size > 0)
		fputs(text.data, stdout);
	text_free(&text);
	return failed ? fail_memory(ctx) : OK;
}

Status
verb_job(Ctx *ctx, const Options *opt)
{
	struct job_request req;
	JoinedWorkload in;
	JobPlans plans = { 0 };
	TRY(parse(ctx, opt, &req));
	TRY(workload_join(ctx, req.workload, req.machine, req.gpu, &req.ask, &in));
	Status status = plan_all(ctx, &req, &in, &plans);
	if (status == OK)
		status = print(ctx, &req, &plans);
	for (int p = 0; plans.plan && p < req.workload->n_phases; p++)
		if (plans.plan[p].phase)
			phase_free(&in, &plans.plan[p]);
	return status;
}
