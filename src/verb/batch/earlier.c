/* Is an earlier file what would be written? Then it stays, and its trees are not planned again. */
#include "compile.h"
#include "format/format.h"
#include "schedule/schedule.h"
#include "verb/batch/batch.h"

#include <string.h>

Status
result_take(Ctx *ctx, const Schedule *sched, BatchResult *result)
{
	result->rate = sched->achieved;
	result->bound = sched->bound.rate;
	result->assumed = bound_assumed(sched->topo, sched->coll, &sched->bound);
	result->stated_rate = sched->stated_achieved;
	result->stated_bound = sched->stated_bound;
	result->trees = (int)sched_trees(sched);
	result->n_baselines = sched->n_baselines;
	for (int i = 0; i < sched->n_baselines; i++)
		result->baseline[i] = sched->baseline[i];
	return sched_depth(ctx, sched, &result->depth);
}

/* The schedule over the job's own topology, whose links have the same numbers, and whose switches may have others. */
static Status
adopt(Ctx *ctx, const Topology *topo, Schedule *sched)
{
	Bound *bound = &sched->bound;
	int *part;
	if (bound->kind == CERTIFICATE_CUT || bound->kind == CERTIFICATE_PARTITION) {
		TRY(NEW(ctx, part, topo->n_vertices));
		for (int l = 0; l < topo->n_links; l++) {
			part[topo->link[l].from] = bound->part[sched->topo->link[l].from];
			part[topo->link[l].to] = bound->part[sched->topo->link[l].to];
		}
		bound->part = part;
	}
	sched->topo = topo;
	return OK;
}

/* Is the file what this job would write, and valid? */
static Status
examine(Ctx *ctx, const Job *job, const char *path, const Text *in, bool *same, BatchResult *result)
{
	Schedule *sched;
	Text again = { 0 };
	TRY(sched_read(ctx, path, in->data, in->size, &sched));
	TRY(sched_verify(ctx, path, sched));
	*same = sched->coll == job->ask.coll && sched->root == job->ask.root
	    && topo_same_in_files(sched->topo, job->topo) && strcmp(sched->algorithm, job->algorithm->name) == 0;
	if (!*same)
		return OK;
	TRY(adopt(ctx, job->topo, sched));
	sched->generator = "blinkc";
	sched->version = BLINK_VERSION;
	TRY(sched_record(ctx, &job->ask, job->classes, sched));
	TRY(job_baselines(ctx, job, sched));
	sched_write_json(sched, &again);
	*same = !again.failed && again.size == in->size && memcmp(again.data, in->data, in->size) == 0;
	text_free(&again);
	return result_take(ctx, sched, result);
}

void
earlier_keep(const Job *job, const char *path, BatchResult *result)
{
	Ctx own;
	Text in = { 0 };
	bool same = false;
	ctx_init(&own);
	Status status = file_read_regular(&own, path, &in);
	if (status == OK) {
		status = examine(&own, job, path, &in, &same, result);
		if (status != OK)
			snprintf(result->note, sizeof result->note, "%.*s", (int)sizeof result->note - 1,
			    own.error.text);
		else if (!same)
			snprintf(result->note, sizeof result->note,
			    "%.200s: different options, version or machine", path);
	}
	result->kept = status == OK && same;
	text_free(&in);
	ctx_free(&own);
}
