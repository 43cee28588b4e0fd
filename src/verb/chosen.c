#include "verb/chosen.h"
#include "choice/nccl.h"
#include "format/format.h"
#include "plan/baseline.h"
#include "verb/progress.h"
#include "verb/simulate/simulation.h"

#include <stdio.h>

/* Options that say which trees leave nothing to choose. */
static Status
check_conflicts(Ctx *ctx, const Options *opt, const Ask *ask, const ChoiceRequest *request)
{
	const char *size = opt->value[OPT_SIZE];
	if (request->wanted && (ask->max_depth || ask->max_trees || ask->packing != PACKING_EXACT))
		return fail(ctx, USAGE, "--size: %.80s: want none of --max-depth, --max-trees and --packing mwu with "
		    "one size, for which trees are chosen; or --algorithm trees", size);
	for (int i = 0; i < 2 && !request->wanted; i++) {
		int option = i ? OPT_PARAMETERS : OPT_EXECUTOR;
		if (opt->value[option])
			return fail(ctx, USAGE, "--%s: %.80s: want one --size with it, and no --algorithm and no "
			    "--hybrid", i ? "parameters" : "executor", opt->value[option]);
	}
	return OK;
}

Status
request_choice(Ctx *ctx, const Options *opt, const Ask *ask, const char *format, const Sizes *sizes,
    ChoiceRequest *out)
{
	const ScheduleFormat *row = schedule_format(format);
	bool open = !opt->value[OPT_ALGORITHM] && !ask->hybrid && !(row && row->of_ranks);
	*out = (ChoiceRequest){ .wanted = open && (sizes->n == 1 || (sizes->n > 1 && opt->value[OPT_PARETO])) };
	TRY(check_conflicts(ctx, opt, ask, out));
	TRY(request_executor(ctx, opt->value[OPT_EXECUTOR], &out->executor));
	return request_parameters(ctx, opt->value[OPT_PARAMETERS], &out->given);
}

/* time: below 0: there is none. */
static void
add_other(Chosen *out, int64_t time, const char *name, const char *by)
{
	OtherWay *other = &out->other[out->n_others];
	if (time <= 0)
		return;
	other->time = time;
	snprintf(other->name, sizeof other->name, "%s", name);
	snprintf(other->by, sizeof other->by, "%s", by);
	out->n_others++;
}

/* Rings of each kind, executed as ours are, and what the newest version of NCCL would choose. */
static Status
time_nccl(Ctx *ctx, const Job *job, const SimParameters *p, int64_t m, Chosen *out)
{
	NcclBeside *beside;
	NcclChoice choice;
	int64_t time;
	char name[24], by[48];
	TRY(nccl_prepare(ctx, job, p, &beside));
	for (int i = 0; i < beside->n_rings; i++) {
		TRY(nccl_ring_time(ctx, beside, i, m, &time));
		add_other(out, time, baseline_name(i), "rings");
	}
	if (beside->why_not || beside->n_rings == 0)
		return OK;
	TRY(nccl_time(ctx, beside, N_NCCL_VERSIONS - 1, m, &choice, &time));
	snprintf(name, sizeof name, "nccl-%s", nccl_version_name[N_NCCL_VERSIONS - 1]);
	snprintf(by, sizeof by, "%s, %s, its choice", nccl_algorithm_name[choice.algorithm],
	    nccl_protocol_name[choice.protocol]);
	add_other(out, time, name, by);
	return OK;
}

Status
compile_chosen(Ctx *ctx, const Topology *machine, const int *gpu, int n, const ChoiceRequest *request, int64_t m,
    bool beside, Ask *ask, Compiled *made, Chosen *out)
{
	Job job;
	Choices *choices;
	ChoicePoint point;
	SimParameters p;
	TRY(job_induce(ctx, machine, gpu, n, ask, &job));
	sim_parameters_for(request->executor, &machine->parameters, &request->given, &p);
	TRY(choice_prepare(ctx, &job, &p, &choices));
	TRY(choice_of_size(ctx, choices, m, &point));
	const Candidate *best = &choices->candidate[point.best];
	const Job asked = job;
	job = best->job;
	job.ask.size = m;
	job.ask.chunk = point.chunk;
	job.ask.executor = executor_names.name[request->executor];
	*ask = job.ask;
	*out = (Chosen){ .way = best->name, .n_ways = choices->n, .executor = job.ask.executor, .bytes = m,
		.chunk = point.chunk, .time = point.time, .least = point.least, .at_least = best->sim->too_large };
	if (!beside)
		return job_finish(ctx, &job, &best->plan, made);
	TRY(time_nccl(ctx, &asked, &p, m, out));
	for (int i = 0; i < out->n_others; i++)
		if (out->other[i].time < out->least)
			TRY(choice_least(ctx, choices, m, &out->least));
	return job_finish(ctx, &job, &best->plan, made);
}

/* ---- --pareto ---- */

/* Lower is better: latency first, then the highest rate. */
static void
sort_by_latency(const Choices *choices, const int64_t *latency, int *order, int n)
{
	for (int i = 1; i < n; i++)
		for (int k = i; k > 0 && (latency[order[k]] < latency[order[k - 1]]
		    || (latency[order[k]] == latency[order[k - 1]]
		    && frac_cmp(choices->candidate[order[k]].rate, choices->candidate[order[k - 1]].rate) > 0)); k--) {
			int other = order[k];
			order[k] = order[k - 1];
			order[k - 1] = other;
		}
}

static void
print_head(const Sizes *sizes)
{
	printf("latency us    rate GB/s  trees  depth");
	for (int s = 0; s < sizes->n; s++) {
		char text[40];
		snprintf(text, sizeof text, "us, %lld B", (long long)sizes->m[s]);
		printf("  %16s", text);
	}
	printf("  algorithm\n");
}

static void
print_row(const Candidate *c, int64_t latency, const int64_t *time, int n_sizes)
{
	printf("%10.4g  %11.6g  %5d  %5d", (double)latency / 1e6, frac_double(c->rate) / 1e9, c->trees, c->depth);
	for (int s = 0; s < n_sizes; s++)
		printf("  %16.5g", (double)time[s * CANDIDATES_MOST] / 1e6);
	printf("  %s\n", c->name);
}

Status
print_candidates(Ctx *ctx, const Topology *machine, const int *gpu, int n, const ChoiceRequest *request,
    const Sizes *sizes, const Ask *ask)
{
	int64_t latency[CANDIDATES_MOST], *time;
	bool optimal[CANDIDATES_MOST];
	int order[CANDIDATES_MOST], n_rows = 0;
	Job job;
	Choices *choices;
	SimParameters p;
	TRY(NEW(ctx, time, sizes->n * CANDIDATES_MOST));
	TRY(job_induce(ctx, machine, gpu, n, ask, &job));
	sim_parameters_for(request->executor, &machine->parameters, &request->given, &p);
	TRY(choice_prepare(ctx, &job, &p, &choices));
	TRY(choice_pareto(ctx, choices, latency, optimal));
	for (int s = 0; s < sizes->n; s++)
		TRY(choice_times(ctx, choices, sizes->m[s], time + (size_t)s * CANDIDATES_MOST, NULL));
	for (int i = 0; i < choices->n; i++)
		if (optimal[i])
			order[n_rows++] = i;
	sort_by_latency(choices, latency, order, n_rows);
	progress_hide();
	print_head(sizes);
	for (int i = 0; i < n_rows; i++)
		print_row(&choices->candidate[order[i]], latency[order[i]], time + order[i], sizes->n);
	return OK;
}
