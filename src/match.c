#include "match.h"

#include "job.h"

#include <string.h>

/* The options of a schedule that say which links it may use, as on a command line. */
static Status
options_of(Ctx *ctx, const Schedule *sched, Options *out)
{
	char *text;
	*out = (Options){ .n_files = 0 };
	for (int i = 0; i < sched->n_options; i++) {
		const char *key = sched->option[i].key, *value = sched->option[i].value;
		int which = strcmp(key, "links") == 0 ? OPT_LINKS : strcmp(key, "hybrid") == 0 ? OPT_HYBRID : -1;
		if (which < 0)
			continue;
		/* ["nvlink","pcie"] becomes nvlink,pcie. What is no list of classes is refused as such a list would be. */
		TRY(NEW(ctx, text, strlen(value) + 1));
		for (size_t n = 0; *value; value++)
			if (!strchr("[]\" ", *value))
				text[n++] = *value;
		out->value[which] = text;
	}
	if (out->value[OPT_HYBRID])
		out->value[OPT_LINKS] = NULL;
	return OK;
}

static Status
induce(Ctx *ctx, const Match *match, const int *gpu, int n, const Topology **out)
{
	Options opt;
	Job job;
	TRY(options_of(ctx, match->sched, &opt));
	TRY(job_parse(ctx, &opt, &job));
	job.machine = match->machine;
	job.gpu = gpu;
	job.n = n;
	TRY(job_induce(ctx, &job));
	*out = job.topo;
	return OK;
}

/* The job of these GPUs, with the links that the schedule may use; ranks are told apart by mark. */
static Status
job_form(Ctx *ctx, const char *label, const Match *match, const int *gpu, int n, const int *mark, unsigned char form[TOPO_FORM_BYTES],
    const Topology **out)
{
	Status status = induce(ctx, match, gpu, n, out);
	if (status != OK && status != NO_MEMORY) {
		/* Neither bad usage nor a job that cannot be: a file that says what is not so. */
		Error error = ctx->error;
		ctx->error.status = OK;
		return fail(ctx, BAD_INPUT, "%s: generator.options: %.400s", label, error.text);
	}
	TRY(status);
	return topo_form(ctx, *out, mark, form, NULL, NULL);
}

static int
gpu_by_id(const Topology *machine, const char *id)
{
	for (int g = 0; g < machine->n_ranks; g++)
		if (strcmp(machine->vertex[g].id, id) == 0)
			return g;
	return -1;
}

Status
match_schedule(Ctx *ctx, const char *label, const Topology *machine, const Schedule *sched, Match *out)
{
	const Topology *topo = sched->topo;
	Match match = { .machine = machine, .sched = sched };
	const Topology *job;
	int *gpu, *mark;
	if (strcmp(topo->digest, machine->digest) != 0)
		return fail(ctx, BAD_INPUT, "%s: topology.digest: %.80s: --topology has %.80s", label, topo->digest, machine->digest);
	TRY(NEW(ctx, gpu, topo->n_ranks));
	TRY(NEW(ctx, mark, topo->n_ranks));
	for (int r = 0; r < topo->n_ranks; r++) {
		mark[r] = r;
		if ((gpu[r] = gpu_by_id(machine, topo->vertex[r].id)) < 0)
			return fail(ctx, BAD_INPUT, "%s: topology.ranks[%d]: %s: --topology has no such GPU", label, r, topo->vertex[r].id);
	}
	TRY(job_form(ctx, label, &match, gpu, topo->n_ranks, mark, match.form, &job));
	if (!topo_same_in_files(topo, job))
		return fail(ctx, BAD_INPUT, "%s: topology.links: not those that --topology has between these GPUs", label);
	*out = match;
	return OK;
}

Status
match_entry(Ctx *ctx, const char *label, const Match *match, const IndexEntry *entry)
{
	unsigned char form[TOPO_FORM_BYTES];
	const Topology *job;
	ArenaMark mark = arena_mark(&ctx->run);
	TRY(job_form(ctx, label, match, entry->gpu, entry->n, entry->rank, form, &job));
	if (memcmp(form, match->form, sizeof form) != 0)
		return fail(ctx, BAD_INPUT, "%s: ranks: these GPUs have other links than the ranks of the file that they are to play", label);
	arena_release(&ctx->run, mark);
	return OK;
}
