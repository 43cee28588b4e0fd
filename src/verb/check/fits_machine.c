#include "verb/check/fits_machine.h"
#include "compile.h"
#include "schedule/schedule.h"
#include "verb/request.h"

#include <stdlib.h>
#include <string.h>

/* What the options of a schedule ask for cannot be had: neither bad usage nor a job that cannot be, but a file that
 * states what is not so. */
static Status
blame_options(Ctx *ctx, const char *label, Status status)
{
	if (status == OK || status == NO_MEMORY)
		return status;
	request_blame(ctx, status);
	Error error = ctx->error;
	ctx->error.status = OK;
	return fail(ctx, BAD_INPUT, "%s: generator.options: %.400s", label, error.text);
}

/* The job of these GPUs, with the links that the schedule may use, and its canonical form, in which mark[r] is rank
 * r's own. */
static Status
job_form(Ctx *ctx, const char *label, const Match *match, const Topology *machine, const int *gpu, int n,
    const int *mark, unsigned char form[CANONICAL_FORM_BYTES], const Topology **out)
{
	Job job;
	TRY(blame_options(ctx, label, job_induce(ctx, machine, gpu, n, &match->ask, &job)));
	*out = job.topo;
	return topo_canonical_form(ctx, job.topo, mark, form, NULL, NULL);
}

/* The machine without these parts; NULL: all of it. */
static Status
left_of(Ctx *ctx, const char *label, const Topology *machine, const char *without, const Topology **out,
    const int **gpu)
{
	Loss *loss;
	Topology *left;
	int n;
	*out = machine;
	*gpu = NULL;
	if (!without)
		return OK;
	TRY(blame_options(ctx, label, topo_losses(ctx, machine, without, &loss, &n)));
	TRY(topo_without(ctx, machine, loss, n, &left, gpu));
	*out = left;
	return OK;
}

Status
match_index(Ctx *ctx, const char *label, const Index *index, Match *match)
{
	TRY(left_of(ctx, label, match->whole, index->without, &match->entry_machine, &match->entry_gpu));
	if (strcmp(index->digest, match->entry_machine->digest) != 0)
		return fail(ctx, BAD_INPUT, "%s: topology.digest: %.80s: --topology has %.80s", label, index->digest,
		    match->entry_machine->digest);
	return OK;
}

struct rank {
	const char *id;
	int rank;
};

static int
by_id(const void *a, const void *b)
{
	return strcmp(((const struct rank *)a)->id, ((const struct rank *)b)->id);
}

Status
find_gpus(Ctx *ctx, const Topology *machine, const Topology *topo, int *gpu)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct rank *sorted;
	TRY(TEMP(ctx, sorted, topo->n_ranks));
	for (int r = 0; r < topo->n_ranks; r++) {
		sorted[r] = (struct rank){ topo->vertex[r].id, r };
		gpu[r] = -1;
	}
	qsort(sorted, (size_t)topo->n_ranks, sizeof *sorted, by_id);
	for (int g = 0; g < machine->n_ranks; g++) {
		const struct rank want = { machine->vertex[g].id, 0 };
		const struct rank *found = bsearch(&want, sorted, (size_t)topo->n_ranks, sizeof *sorted, by_id);
		if (found)
			gpu[found->rank] = g;
	}
	arena_release(&ctx->scratch, mark);
	return OK;
}

Status
match_schedule(Ctx *ctx, const char *label, const Topology *machine, const Schedule *sched, Match *out)
{
	const Topology *topo = sched->topo;
	Match match = { .whole = machine };
	const Topology *job;
	const int *now;
	int *gpu, *mark;
	TRY(blame_options(ctx, label, sched_recorded_links(ctx, sched, &match.ask)));
	if (algorithm_staged(sched->algorithm)) {
		match.ask.algorithm = sched->algorithm;
		match.ask.coll = sched->coll;
	}
	TRY(left_of(ctx, label, machine, match.ask.without, &machine, &now));
	match.machine = machine;
	*out = match;
	if (strcmp(topo->digest, machine->digest) != 0)
		return fail(ctx, BAD_INPUT, "%s: topology.digest: %.80s: --topology has %.80s", label, topo->digest,
		    machine->digest);
	TRY(NEW_EACH(ctx, topo->n_ranks, gpu, mark));
	TRY(find_gpus(ctx, machine, topo, gpu));
	for (int r = 0; r < topo->n_ranks; r++) {
		mark[r] = r;
		if (gpu[r] < 0)
			return fail(ctx, BAD_INPUT, "%s: topology.ranks[%d]: %s: --topology has no such GPU", label, r,
			    topo->vertex[r].id);
	}
	if (match.ask.routes == ROUTES_PAIR)
		TRY(sched_check_routes(ctx, label, sched));
	TRY(job_form(ctx, label, &match, machine, gpu, topo->n_ranks, mark, match.form, &job));
	if (!topo_same_in_files(topo, job))
		return fail(ctx, BAD_INPUT, "%s: topology.links: not those that --topology has between these GPUs",
		    label);
	*out = match;
	return OK;
}

Status
match_entry(Ctx *ctx, const char *label, const Match *match, const IndexEntry *entry)
{
	unsigned char form[CANONICAL_FORM_BYTES];
	const Topology *job;
	ArenaMark mark = arena_mark(&ctx->run);
	int *gpu;
	TRY(NEW(ctx, gpu, entry->n));
	for (int i = 0; i < entry->n; i++) {
		gpu[i] = match->entry_gpu ? match->entry_gpu[entry->gpu[i]] : entry->gpu[i];
		if (gpu[i] < 0)
			return fail(ctx, BAD_INPUT, "%s: gpus: %s is lost: want GPUs that are left", label,
			    match->whole->vertex[entry->gpu[i]].id);
	}
	TRY(job_form(ctx, label, match, match->entry_machine, gpu, entry->n, entry->rank, form, &job));
	if (memcmp(form, match->form, sizeof form) != 0)
		return fail(ctx, BAD_INPUT,
		    "%s: ranks: the links of these GPUs are not those of their ranks in the file", label);
	arena_release(&ctx->run, mark);
	return OK;
}
