/* blinkc tune --format ompi-rules: for each number of ranks one set of GPUs, since Open MPI knows no more of a job. */
#include "choice/ompi.h"
#include "verb/batch/batch.h"
#include "verb/formats.h"
#include "verb/progress.h"
#include "verb/verb.h"

/* The sets by the number of their GPUs, one of each. */
static Status
sort_sets(Ctx *ctx, const Batch *b, const GpuSet ***out)
{
	const GpuSet **set;
	TRY(NEW(ctx, set, b->n_jobs));
	for (int j = 0; j < b->n_jobs; j++) {
		int at = j;
		for (; at > 0 && set[at - 1]->n >= b->job[j].n; at--) {
			if (set[at - 1]->n == b->job[j].n)
				return fail(ctx, USAGE, "--format " FORMAT_OMPI_RULES ": two sets of %d GPUs: want one "
				    "of each number, with --gpus FILE", b->job[j].n);
			set[at] = set[at - 1];
		}
		set[at] = &b->job[j];
	}
	*out = set;
	return OK;
}

static Status
find_rules(Ctx *ctx, const Batch *b, const GpuSet *set, Collective coll, OmpiRules *out)
{
	Ask ask = b->ask;
	const Sizes *sizes = &b->tuning->sizes;
	int *gpu;
	Job *job;
	ask.coll = coll;
	ask.root = collective_rooted(coll) ? 0 : -1;
	ask.routes = b->base.routes;
	TRY(NEW(ctx, job, 1));
	TRY(NEW(ctx, gpu, set->n));
	for (int i = 0; i < set->n; i++) {
		gpu[i] = b->base.gpu ? b->base.gpu[set->gpu[i]] : set->gpu[i];
		if (gpu[i] < 0)
			return fail(ctx, BAD_INPUT, "%s is lost", b->machine->vertex[set->gpu[i]].id);
	}
	TRY(job_induce(ctx, b->base.topo, gpu, set->n, &ask, job));
	return ompi_rules_find(ctx, job, &b->tuning->p, sizes->m, sizes->n, out);
}

static void
print_rules(FILE *to, const OmpiRules *rules, int n)
{
	fprintf(to, "%-14s %5s  %11s  %10s  %10s  %9s  algorithm\n", "collective", "ranks", "from bytes", "time us",
	    "least us", "segment");
	for (int k = 0; k < n; k++) {
		for (int i = 0; i < rules[k].n; i++) {
			const OmpiRule *rule = &rules[k].rule[i];
			fprintf(to, "%-14s %5d  %11lld  %10.5g  %10.5g  %9lld  %s\n", collective_name(rules[k].coll),
			    rules[k].n_ranks, (long long)rule->from, (double)rule->time / 1e6,
			    (double)rule->least / 1e6, (long long)rule->segment, rule->name);
		}
	}
}

static Status
find_all(Ctx *ctx, const Batch *b, OmpiRules **out, int *n)
{
	const GpuSet **set = NULL;
	OmpiRules *rules;
	TRY(sort_sets(ctx, b, &set));
	TRY(NEW(ctx, rules, b->n_jobs * N_COLLECTIVES));
	*n = 0;
	for (int c = 0; c < N_COLLECTIVES; c++) {
		for (int j = 0; j < b->n_jobs && b->colls >> c & 1; j++) {
			TRY(find_rules(ctx, b, set[j], (Collective)c, &rules[*n]));
			*n += rules[*n].n > 0;
		}
	}
	*out = rules;
	return *n > 0 ? OK : fail(ctx, INFEASIBLE, "%s: Open MPI has no algorithm whose hops are all there: want other "
	    "links, as --links all", b->machine->name);
}

Status
rules_run(Ctx *ctx, const Options *opt, Tuning *tuning)
{
	Batch b;
	OmpiRules *rules = NULL;
	Text out = { 0 };
	int n = 0;
	TRY(batch_jobs(ctx, opt, tuning, false, &b));
	Status status = find_all(ctx, &b, &rules, &n);
	if (status == OK)
		ompi_rules_write(rules, n, b.machine->name, &out);
	status = output_text(ctx, opt, status, &out);
	if (status == OK && !opt->value[OPT_QUIET])
		print_rules(stderr, rules, n);
	batch_free(&b);
	return status;
}
