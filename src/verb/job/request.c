/* What is asked of a job: its file, its machine, and the GPUs of its ranks. */
#include "base/file.h"
#include "format/format.h"
#include "topology/topology.h"
#include "verb/job/job.h"
#include "verb/request.h"
#include "verb/verb.h"

#include <stdio.h>
#include <string.h>

/* The machine of the command line, else that of the file: beside it, or as --topology. */
static Status
read_job_machine(Ctx *ctx, JobRequest *req)
{
	const char *named = req->topology ? req->topology : req->workload->topology,
	    *label;
	const char *slash = strrchr(req->label, '/');
	char beside[FILE_PATH_ROOM];
	Text in = { 0 };
	if (!named)
		return fail(ctx, USAGE, "%s: topology: missing: want it there, or %s", req->label,
		    req->opt->value[OPT_JOB] ? "after the options" : "--topology");
	bool relative = !req->topology && slash && *named != '/'
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
take_losses(Ctx *ctx, JobRequest *req, int *n)
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
choose_gpus(Ctx *ctx, JobRequest *req)
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
	req->n_gpus = n;
	return w->n_ranks <= n ? OK : fail(ctx, BAD_INPUT, "%s: groups are over %d ranks: the job has %d GPUs",
	    req->label, w->n_ranks, n);
}

Status
job_request(Ctx *ctx, const Options *opt, const char *label, const char *topology, JobRequest *out)
{
	Text in = { 0 };
	*out = (JobRequest){ .label = label, .opt = opt, .topology = topology };
	TRY(request_from(ctx, opt, &(const char *){ NULL }));
	TRY(request_parse(ctx, opt, ALLREDUCE, &out->ask));
	TRY(request_time(ctx, NULL));
	TRY(file_read(ctx, label, &in));
	Status status = workload_read(ctx, label, in.data ? in.data : "", in.size, &out->workload);
	text_free(&in);
	TRY(status);
	TRY(read_job_machine(ctx, out));
	return choose_gpus(ctx, out);
}
