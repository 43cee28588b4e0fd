/* What losses cost, as JSON (schemas/what-if.schema.json): of each loss the jobs that it changes, a line for each. */
#include "base/json_write.h"
#include "verb/whatif/whatif.h"

#include <math.h>

static const char *
job_state_name(JobState state)
{
	static const char *const names[] = { "same", "slower", "faster", "disconnected", "lost" };
	return names[state];
}

/* Quotients of other libraries may differ in their last digits. */
static double
rounded(double share)
{
	return floor(share * 1e9 + 0.5) / 1e9;
}

static void
put_job(JsonWriter *json, const WhatIf *w, const JobChange *job)
{
	const GpuSet *set = &w->b->set[job->set];
	json_object(json, NULL, JSON_LINE);
	json_ints(json, "gpus", set->gpu, set->n);
	json_string(json, "state", job_state_name(job->state));
	json_gb(json, "before", job->before);
	if (job->after.num > 0)
		json_gb(json, "after", job->after);
	else
		json_null(json, "after");
	if (job->guessed[0].classes | job->guessed[1].classes)
		json_names(json, "assumed_links", link_class_names, job->guessed[0].classes | job->guessed[1].classes);
	json_end(json);
}

static void
put_loss(JsonWriter *json, const WhatIf *w, const LossCost *cost)
{
	json_object(json, NULL, JSON_BLOCK);
	json_string(json, "without", cost->machine->without);
	json_string(json, "digest", cost->machine->topo->digest);
	json_number(json, "mean_loss", cost->mean < 0 ? 0 : rounded(cost->mean));
	for (int state = 0; state <= JOB_LOST; state++)
		json_int(json, job_state_name((JobState)state), cost->count[state]);
	json_array(json, "jobs", JSON_ROWS);
	for (int i = 0; i < cost->n_jobs; i++)
		if (cost->job[i].state != JOB_SAME)
			put_job(json, w, &cost->job[i]);
	json_end(json);
	json_end(json);
}

void
whatif_json(const WhatIf *w, Text *out)
{
	JsonWriter json = { .out = out };
	json_file(&json, JSON_BLOCK, "blink-what-if");
	batch_put_machine(w->b, w->b->machine, &json);
	json_string(&json, "collective", collective_name(w->coll));
	json_array(&json, "losses", JSON_BLOCK);
	for (int i = 0; i < w->n; i++)
		put_loss(&json, w, &w->cost[i]);
	json_end(&json);
	json_file_end(&json);
}
