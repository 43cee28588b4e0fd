#include "verb/job/job.h"
#include "verb/progress.h"
#include "verb/request.h"
#include "verb/verb.h"

#include <stdio.h>

static Status
plan_all(Ctx *ctx, const JobRequest *req, const JoinedWorkload *in, JobPlans *out)
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
print(Ctx *ctx, const JobRequest *req, bool json, const JobPlans *plans)
{
	Text text = { 0 };
	progress_hide();
	if (json)
		job_json(plans, req->label, &text);
	else if (!req->opt->value[OPT_QUIET])
		job_text(plans, &text);
	if (!json && !req->opt->value[OPT_QUIET] && !req->opt->value[OPT_OUTPUT])
		text_put(&text, "schedules   -o DIR writes one for each group\n");
	bool failed = text.failed;
	if (!failed && text.size > 0)
		fputs(text.data, stdout);
	text_free(&text);
	return failed ? fail_memory(ctx) : OK;
}

static Status
request_schedules(Ctx *ctx, const char *text, int *out)
{
	*out = SCHEDULES_TOGETHER;
	return !text || names_find(group_schedules_names, text, out) ? OK : fail(ctx, USAGE,
	    "--schedules: %.40s: want %s", text, names_wanted(group_schedules_names).text);
}

Status
verb_job(Ctx *ctx, const Options *opt)
{
	JobRequest req;
	int schedules;
	bool json;
	JoinedWorkload in;
	JobPlans plans = { 0 };
	TRY(request_summary(ctx, opt, &json));
	if (opt->n_files != 1)
		return fail(ctx, USAGE, "%d job files: want one; see blinkc job --help", opt->n_files);
	TRY(job_request(ctx, opt, opt->file[0], opt->value[OPT_TOPOLOGY], &req));
	TRY(request_schedules(ctx, opt->value[OPT_SCHEDULES], &schedules));
	TRY(workload_join(ctx, req.workload, req.machine, req.gpu, &req.ask, &in));
	in.schedules = (GroupSchedules)schedules;
	Status status = plan_all(ctx, &req, &in, &plans);
	if (status == OK)
		status = print(ctx, &req, json, &plans);
	for (int p = 0; plans.plan && p < req.workload->n_phases; p++)
		if (plans.plan[p].phase)
			phase_free(&in, &plans.plan[p]);
	return status;
}
