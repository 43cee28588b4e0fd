/* blinkc what-if: one batch over the machine and what is left of it, without files; rates before and after are
 * compared. */
#include "verb/whatif/whatif.h"
#include "base/sort.h"
#include "verb/request.h"
#include "verb/verb.h"

#include <stdlib.h>
#include <string.h>

static int
by_loss(const void *x, const void *y)
{
	const JobChange *a = x, *b = y;
	if (a->loss != b->loss)
		return a->loss > b->loss ? -1 : 1;
	return (a->set > b->set) - (a->set < b->set);
}

static int
by_mean(const void *x, const void *y)
{
	const LossCost *a = x, *b = y;
	if (a->mean != b->mean)
		return a->mean > b->mean ? -1 : 1;
	return (a->machine > b->machine) - (a->machine < b->machine);
}

/* p, q: the plans before and after; q may be -1. */
static JobChange
compare(const Batch *b, const Machine *machine, int s, int p, int q)
{
	JobChange job = { .set = s, .before = b->result[p].rate, .after = FRAC_ZERO, .loss = 1,
	    .guessed = { b->result[p].assumed },
	    .state = machine_lost(machine, &b->set[s]) ? JOB_LOST : JOB_DISCONNECTED };
	if (q < 0)
		return job;
	int order = frac_cmp(b->result[q].rate, job.before);
	job.after = b->result[q].rate;
	job.guessed[1] = b->result[q].assumed;
	job.state = order < 0 ? JOB_SLOWER : order > 0 ? JOB_FASTER : JOB_SAME;
	job.loss = order ? 1 - frac_double(job.after) / frac_double(job.before) : 0;
	return job;
}

static Status
cost_of(Ctx *ctx, const WhatIf *w, int m, LossCost *out)
{
	const Batch *b = w->b;
	double sum = 0;
	*out = (LossCost){ .machine = &b->of[m] };
	TRY(NEW(ctx, out->job, b->n_sets));
	for (int s = 0; s < b->n_sets; s++) {
		int root, p = batch_best(b, w->coll, s, &root), q = batch_best(b, w->coll, m * b->n_sets + s, &root);
		if (p < 0)
			continue;
		JobChange *job = &out->job[out->n_jobs++];
		*job = compare(b, &b->of[m], s, p, q);
		out->count[job->state]++;
		sum += job->loss;
	}
	qsort(out->job, (size_t)out->n_jobs, sizeof *out->job, by_loss);
	out->mean = out->n_jobs ? sum / out->n_jobs : 0;
	return OK;
}

static Status
find_costs(Ctx *ctx, WhatIf *w)
{
	TRY(NEW(ctx, w->cost, w->b->n_machines));
	for (int m = 1; m < w->b->n_machines; m++)
		TRY(cost_of(ctx, w, m, &w->cost[w->n++]));
	sort_array(w->cost, w->n, sizeof *w->cost, by_mean);
	return OK;
}

static Status
find_losses(Ctx *ctx, const Options *opt, Batch *b)
{
	const char *text = opt->value[OPT_WITHOUT];
	Loss *loss;
	int n;
	if (text)
		TRY(request_blame(ctx, topo_losses(ctx, b->machine, text, &loss, &n)));
	else
		TRY(topo_single_losses(ctx, b->machine, &loss, &n));
	TRY(batch_machines(ctx, b, loss, n, text != NULL));
	if (b->n_machines > 1)
		return OK;
	return fail(ctx, BAD_INPUT, "%.200s: fewer than 2 GPUs are left: want at least 2 for a collective",
	    b->machine->name);
}

static Status
write_costs(Ctx *ctx, const Options *opt, const Batch *b, const char *format)
{
	WhatIf w = { .b = b, .coll = batch_collective(b), .ranked = !opt->value[OPT_WITHOUT] };
	Text out = { 0 };
	TRY(find_costs(ctx, &w));
	if (strcmp(format, "json") == 0)
		whatif_json(&w, &out);
	else
		whatif_text(&w, opt->value[OPT_VERBOSE], &out);
	return output_text(ctx, opt, OK, &out);
}

Status
verb_what_if(Ctx *ctx, const Options *opt)
{
	Batch b;
	const char *format;
	TRY(request_format(ctx, opt, WHATIF, &format));
	TRY(batch_rates(ctx, opt, false, find_losses, &b));
	Status status = write_costs(ctx, opt, &b, format);
	batch_free(&b);
	return status;
}
