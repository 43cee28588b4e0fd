/* blinkc advise --job: which GPU each rank of a job should have. */
#include "base/json_write.h"
#include "verb/advise/advise.h"
#include "verb/job/job.h"
#include "verb/verb.h"

#include <math.h>
#include <string.h>

static void
put_gpus(const int *gpu, int n, Text *out)
{
	for (int i = 0; i < n; i++)
		text_printf(out, "%s%d", i ? "," : "", gpu[i]);
}

/* "  tp          0,3 1,2 4,7 5,6": the GPUs of the groups. */
static void
put_kind(const GroupKind *kind, const int *gpu, bool all, Text *out)
{
	enum { MOST_GROUPS = 8 };
	text_printf(out, "  %-10s", kind->name);
	for (int g = 0; g < kind->n_groups && (all || g < MOST_GROUPS); g++) {
		text_put(out, " ");
		for (int i = 0; i < kind->group[g].n; i++)
			text_printf(out, "%s%d", i ? "," : "", gpu[kind->group[g].rank[i]]);
	}
	if (!all && kind->n_groups > MOST_GROUPS)
		text_printf(out, " and %d more", kind->n_groups - MOST_GROUPS);
	text_put(out, "\n");
}

static void
put_times_as_long(double seconds, double best, Text *out)
{
	if (!isfinite(seconds))
		text_put(out, "none: no links connect some group");
	else
		job_put_seconds(out, seconds);
	if (isfinite(seconds) && seconds > best * (1 + RATE_ROUNDING))
		text_printf(out, ", %.3f times as long", seconds / best);
}

static void
put_text(const JobRequest *req, const Placements *found, const int *gpu, Text *out)
{
	const Workload *w = req->workload;
	bool all = req->opt->value[OPT_VERBOSE] != NULL;
	text_printf(out, "job         %d ranks on %d GPUs of %s\n", w->n_ranks, req->n_gpus, req->machine->name);
	text_put(out, "in order    ");
	put_times_as_long(found->in_order, found->seconds, out);
	text_put(out, "\nslowest     ");
	put_times_as_long(found->slowest, found->seconds, out);
	text_put(out, "\nbest        ");
	job_put_seconds(out, found->seconds);
	text_put(out, " for all phases of a step\n");
	for (int k = 0; k < w->n_kinds; k++)
		put_kind(&w->kind[k], gpu, all, out);
	text_printf(out, found->n_looked == 1 ? "placements  %d was looked at; %s\n"
	    : "placements  %d that differ were looked at; %s\n", found->n_looked,
	    found->proven ? "no other is faster" : "others may be faster");
	text_put(out, "job file    \"gpus\": \"");
	put_gpus(gpu, w->n_ranks, out);
	text_put(out, "\"\n");
}

static void
put_json(const JobRequest *req, const Placements *found, const int *gpu, Text *out)
{
	JsonWriter w = { .out = out };
	json_file(&w, JSON_BLOCK, "blink-placement");
	json_string(&w, "file", req->label);
	json_string(&w, "topology", req->machine->name);
	json_int(&w, "ranks", req->workload->n_ranks);
	json_ints(&w, "gpus", gpu, req->workload->n_ranks);
	json_number(&w, "time", found->seconds * 1e6);
	if (isfinite(found->in_order))
		json_number(&w, "in_order", found->in_order * 1e6);
	else
		json_null(&w, "in_order");
	json_number(&w, "slowest", found->slowest * 1e6);
	json_int(&w, "placements", found->n_looked);
	json_bool(&w, "proven", found->proven);
	json_file_end(&w);
}

/* What chooses sets of GPUs, or plans of them, has no effect on a job. */
static Status
check_options(Ctx *ctx, const Options *opt, const char *format)
{
	static const struct {
		int option;
		const char *name;
	} of_sets[] = { { OPT_SIZES, "sizes" }, { OPT_GPUS, "gpus" }, { OPT_COLLECTIVE, "collective" },
		{ OPT_ALGORITHM, "algorithm" }, { OPT_RADIX, "radix" }, { OPT_HIERARCHY, "hierarchy" },
		{ OPT_JOBS, "jobs" }, { OPT_SYNTHETIC, "synthetic" } };
	for (size_t i = 0; i < sizeof of_sets / sizeof *of_sets; i++)
		if (opt->value[of_sets[i].option])
			return fail(ctx, USAGE, "--%s: no use with --job: the job's file says what counts",
			    of_sets[i].name);
	if (strcmp(format, "slurm") == 0)
		return fail(ctx, USAGE, "--format slurm: with --job want text or json");
	if (opt->n_files > 1)
		return fail(ctx, USAGE, "%d topologies: want one, or the one that the job names", opt->n_files);
	return OK;
}

Status
advise_job(Ctx *ctx, const Options *opt, const char *format)
{
	JobRequest req;
	Placements found;
	Text out = { 0 };
	int *gpu;
	TRY(check_options(ctx, opt, format));
	TRY(job_request(ctx, opt, opt->value[OPT_JOB], opt->n_files ? opt->file[0] : NULL, &req));
	TRY(workload_place(ctx, req.workload, req.machine, req.gpu, req.n_gpus, &req.ask, &found));
	TRY(NEW(ctx, gpu, req.workload->n_ranks));
	for (int r = 0; r < req.workload->n_ranks; r++)
		for (int i = 0; i < req.n_gpus; i++)
			if (req.gpu[i] == found.gpu[r])
				gpu[r] = req.whole_gpu[i];
	if (strcmp(format, "json") == 0)
		put_json(&req, &found, gpu, &out);
	else
		put_text(&req, &found, gpu, &out);
	return output_text(ctx, opt, OK, &out);
}
