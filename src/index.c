/* Does an index of schedules say what is in their files? */
#include "passes.h"

#include <string.h>

static bool
index_has_gpu(const Index *index, const char *id)
{
	for (int g = 0; g < index->n_gpus; g++)
		if (strcmp(index->gpu[g], id) == 0)
			return true;
	return false;
}

Status
index_check_machine(Ctx *ctx, const char *label, const Index *index, const Schedule *sched)
{
	const Topology *topo = sched->topo;
	if (strcmp(topo->digest, index->digest) != 0)
		return fail(ctx, BAD_INPUT, "%s: topology.digest: %.80s: the file has %.80s", label, index->digest, topo->digest);
	for (int r = 0; r < topo->n_ranks; r++)
		if (!index_has_gpu(index, topo->vertex[r].id))
			return fail(ctx, BAD_INPUT, "%s: topology.gpus: no %s: the file has it as rank %d", label, topo->vertex[r].id, r);
	return OK;
}

Status
index_check_gpus(Ctx *ctx, const char *label, const Index *index, const Topology *machine)
{
	if (index->n_gpus != machine->n_ranks)
		return fail(ctx, BAD_INPUT, "%s: topology.gpus: %d entries: the machine has %d GPUs", label, index->n_gpus, machine->n_ranks);
	for (int g = 0; g < index->n_gpus; g++)
		if (strcmp(index->gpu[g], machine->vertex[g].id) != 0)
			return fail(ctx, BAD_INPUT, "%s: topology.gpus[%d]: %s: the machine has %s", label, g, index->gpu[g], machine->vertex[g].id);
	return OK;
}

/* A rate as files have it: 15 significant digits. */
static Status
check_rate(Ctx *ctx, const char *label, const char *name, double said, double there)
{
	Text a = { 0 }, b = { 0 };
	Status status = OK;
	text_number(&a, said);
	text_number(&b, there);
	if (a.failed || b.failed)
		status = fail_memory(ctx);
	else if (strcmp(a.data, b.data) != 0)
		status = fail(ctx, BAD_INPUT, "%s: %s: %s: the file has %s GB/s", label, name, a.data, b.data);
	text_free(&a);
	text_free(&b);
	return status;
}

static Status
check_number(Ctx *ctx, const char *label, const char *name, int said, int there)
{
	return said == there ? OK : fail(ctx, BAD_INPUT, "%s: %s: %d: the file has %d", label, name, said, there);
}

Status
index_check_entry(Ctx *ctx, const char *label, const IndexEntry *entry, const Schedule *sched)
{
	int depth;
	if (entry->coll != sched->coll)
		return fail(ctx, BAD_INPUT, "%s: collective: %s: the file has %s", label, collective_name(entry->coll),
		    collective_name(sched->coll));
	if (entry->n != sched->topo->n_ranks)
		return fail(ctx, BAD_INPUT, "%s: gpus: %d entries: the file has %d ranks", label, entry->n, sched->topo->n_ranks);
	if (entry->root >= 0 && entry->rank[entry->root] != sched->root)
		return fail(ctx, BAD_INPUT, "%s: root: %d, which is rank %d of the file: the file has root %d", label, entry->root,
		    entry->rank[entry->root], sched->root);
	TRY(check_rate(ctx, label, "rate", entry->rate, sched->stated_achieved));
	TRY(check_rate(ctx, label, "bound", entry->bound, sched->stated_bound));
	TRY(check_number(ctx, label, "trees", entry->trees, sched->n_segments));
	TRY(sched_depth(ctx, sched, &depth));
	return check_number(ctx, label, "depth", entry->depth, depth);
}
