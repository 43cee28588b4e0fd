#include "job.h"
#include "report.h"
#include "verb/verb.h"
#include "watch.h"

/* The GPUs of the job, by --gpus. */
static Status
select_gpus(Ctx *ctx, const char *label, Job *job)
{
	const char *gpus = job->opt->value[OPT_GPUS];
	int *gpu;
	TRY(NEW(ctx, gpu, job->machine->n_ranks));
	TRY(topo_select(ctx, job->machine, gpus, gpu, &job->n));
	job->gpu = gpu;
	if (job->n < 2)
		return fail(ctx, BAD_INPUT, "%s: 1 GPU: want at least 2 for a collective", gpus ? "--gpus" : label);
	return OK;
}

/* What is written is what was read back and verified, not what we meant. */
static Status
compile_text(Ctx *ctx, const Options *opt, const char *format, const char *label, const Text *in, Text *json)
{
	Job job;
	Topology *machine;
	Schedule *sched, *again;
	Frac best;
	Sizes sizes;
	int64_t budget;
	TRY(job_parse(ctx, opt, &job));
	TRY(request_sizes(ctx, opt->value[OPT_SIZE], &sizes));
	if (opt->value[OPT_BUDGET]) {
		TRY(request_budget(ctx, opt->value[OPT_BUDGET], &budget));
		watch_limit(budget);
	}
	ctx->step = watch_step;
	TRY(topo_read(ctx, label, topology_dirs(), in->data, in->size, &machine));
	job.machine = machine;
	TRY(select_gpus(ctx, label, &job));
	TRY(job_induce(ctx, &job));
	TRY(request_root(ctx, job.topo, job.ask.coll, opt->value[OPT_ROOT], &job.ask.root));
	TRY(job_plan(ctx, &job, &best, &sched));
	if (!sched)
		return OK;
	progress(ctx, "writing and verifying %d trees", sched->n_segments);
	TRY(job_write(ctx, &job, sched, json, &again));
	TRY(output_schedule(ctx, format, again, json, output_path(opt)));
	watch_hide();
	if (opt->value[OPT_QUIET])
		return OK;
	TRY(report_summary(ctx, stderr, &sizes, again));
	if (!job.hybrid)
		report_best(&job.ask, best);
	return OK;
}

Status
verb_compile(Ctx *ctx, const Options *opt)
{
	static const char *const formats[] = { "json", "cu", NULL };
	const char *format, *label;
	Text in = { 0 }, json = { 0 };
	TRY(request_format(ctx, opt, formats, "json", &format));
	Status status = input_topology(ctx, opt, &label, &in);
	if (status == OK)
		status = compile_text(ctx, opt, format, label, &in, &json);
	text_free(&in);
	text_free(&json);
	return status;
}
