/* Does an index agree with the schedules that it names? */
#include "schedule/schedule.h"
#include "graph/isomorphism.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int
id_order(const void *key, const void *id)
{
	return strcmp(key, *(const char *const *)id);
}

/* Of an index that was read. */
static bool
index_has_gpu(const Index *index, const char *id)
{
	return bsearch(id, index->by_id, (size_t)index->n_gpus, sizeof *index->by_id, id_order) != NULL;
}

Status
index_check_machine(Ctx *ctx, const char *label, const Index *index, const Schedule *sched)
{
	const Topology *topo = sched->topo;
	if (!index_has_digest(index, topo->digest))
		return fail(ctx, BAD_INPUT, "%s: topology.digest: %.80s: the file has %.80s", label, index->digest,
		    topo->digest);
	for (int r = 0; r < topo->n_ranks; r++)
		if (!index_has_gpu(index, topo->vertex[r].id))
			return fail(ctx, BAD_INPUT, "%s: topology.gpus: no %s: the file has it as rank %d", label,
			    topo->vertex[r].id, r);
	return OK;
}

Status
index_check_gpus(Ctx *ctx, const char *label, const Index *index, const Topology *machine)
{
	if (index->n_gpus != machine->n_ranks)
		return fail(ctx, BAD_INPUT, "%s: topology.gpus: %d entries: the machine has %d GPUs", label,
		    index->n_gpus, machine->n_ranks);
	for (int g = 0; g < index->n_gpus; g++)
		if (strcmp(index->gpu[g], machine->vertex[g].id) != 0)
			return fail(ctx, BAD_INPUT, "%s: topology.gpus[%d]: %s: the machine has %s", label, g,
			    index->gpu[g], machine->vertex[g].id);
	return OK;
}

/* ---- isomorphic jobs ---- */

static int
by_file(const void *a, const void *b)
{
	const IndexEntry *x = *(const IndexEntry *const *)a, *y = *(const IndexEntry *const *)b;
	int order = strcmp(x->file, y->file);
	return order ? order : (x > y) - (x < y);
}

Status
index_candidates(Ctx *ctx, const Index *index, Collective coll, int n, uint64_t form, const IndexEntry ***out,
    int *n_out)
{
	const IndexEntry **list;
	int all = 0, unique = 0;
	TRY(NEW(ctx, list, index->n_entries));
	for (int i = 0; i < index->n_entries; i++) {
		const IndexEntry *entry = &index->entry[i];
		if (entry->n == n && entry->coll == coll && (!form || !entry->form || entry->form == form))
			list[all++] = entry;
	}
	if (all > 0)
		qsort(list, (size_t)all, sizeof *list, by_file);
	for (int i = 0; i < all; i++)
		if (i == 0 || strcmp(list[i]->file, list[unique - 1]->file) != 0)
			list[unique++] = list[i];
	*out = list;
	*n_out = unique;
	return OK;
}

Status
index_match(Ctx *ctx, const char *label, const Topology *job, int root, const Schedule *sched, int *rank, bool *found)
{
	Ask ask;
	int *map;
	*found = false;
	TRY(sched_recorded_links(ctx, sched, &ask));
	if (job->n_vertices != sched->topo->n_vertices || (ask.routes == ROUTES_PAIR) != (job->route != NULL))
		return OK;
	TRY(NEW(ctx, map, job->n_vertices));
	TRY(topo_isomorphism(ctx, label, job, root, sched->topo, sched->root, map, found));
	for (int r = 0; r < job->n_ranks && *found; r++)
		rank[r] = map[r];
	return OK;
}

Status
index_rank_again(Ctx *ctx, const IndexEntry *entry, const IndexEntry *other, int *rank)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	int *of_entry;
	TRY(TEMP(ctx, of_entry, entry->n));
	for (int i = 0; i < entry->n; i++)
		of_entry[entry->rank[i]] = i;
	for (int i = 0; i < entry->n; i++)
		rank[i] = other->rank[of_entry[rank[i]]];
	arena_release(&ctx->scratch, mark);
	return OK;
}

/* ---- entries ---- */

Status
index_describe(Ctx *ctx, const Schedule *sched, IndexedFile *out)
{
	*out = (IndexedFile){ .coll = sched->coll, .n_ranks = sched->topo->n_ranks, .root = sched->root,
		.rate = sched->stated_achieved, .bound = sched->stated_bound, .trees = (int)sched_trees(sched),
		.n_baselines = sched->n_baselines };
	for (int i = 0; i < sched->n_baselines; i++)
		out->baseline[i] = sched->baseline[i];
	return sched_depth(ctx, sched, &out->depth);
}

/* The root of an entry as a rank of its file. */
static int
file_root(const IndexEntry *entry)
{
	return entry->root < 0 ? -1 : entry->rank[entry->root];
}

bool
index_same_job(const IndexEntry *entry, const Schedule *sched)
{
	return entry->coll == sched->coll && entry->n == sched->topo->n_ranks && file_root(entry) == sched->root;
}

/* Below this rate, in GB/s, files of earlier versions have 0. */
#define LEAST_RATE 1e-4

/* Equal in the 15 significant digits that files have. */
static bool
equal_rates(double a, double b)
{
	char x[32], y[32];
	snprintf(x, sizeof x, "%.14e", a);
	snprintf(y, sizeof y, "%.14e", b);
	return strcmp(x, y) == 0 || (a < LEAST_RATE && b < LEAST_RATE);
}

/* An entry may have none, as those of other programs and of earlier versions. */
static bool
equal_baselines(const IndexEntry *entry, const IndexedFile *file)
{
	if (entry->n_baselines == 0)
		return true;
	for (int i = 0; i < entry->n_baselines && entry->n_baselines == file->n_baselines; i++)
		if (strcmp(entry->baseline[i].name, file->baseline[i].name) != 0
		    || !equal_rates(entry->baseline[i].rate, file->baseline[i].rate))
			return false;
	return entry->n_baselines == file->n_baselines;
}

EntryMember
index_compare(const IndexEntry *entry, const IndexedFile *file)
{
	if (entry->coll != file->coll)
		return ENTRY_COLLECTIVE;
	if (entry->n != file->n_ranks)
		return ENTRY_GPUS;
	if (file_root(entry) != file->root)
		return ENTRY_ROOT;
	if (!equal_rates(entry->rate, file->rate))
		return ENTRY_RATE;
	if (!equal_rates(entry->bound, file->bound))
		return ENTRY_BOUND;
	if (entry->trees != file->trees)
		return ENTRY_TREES;
	if (entry->depth != file->depth)
		return ENTRY_DEPTH;
	return equal_baselines(entry, file) ? ENTRY_EQUAL : ENTRY_BASELINES;
}

const char *
entry_member_name(EntryMember member)
{
	static const char *const names[] = {
#define X(name, text) [name] = text,
		ENTRY_MEMBER_LIST(X)
#undef X
	};
	return names[member];
}

static Status
fail_rate(Ctx *ctx, const char *label, EntryMember member, double stated, double found)
{
	Text a = { 0 }, b = { 0 };
	text_number(&a, stated);
	text_number(&b, found);
	Status status = a.failed || b.failed ? fail_memory(ctx)
	    : fail(ctx, BAD_INPUT, "%s: %s: %s: the file has %s GB/s", label, entry_member_name(member),
	    a.data, b.data);
	text_free(&a);
	text_free(&b);
	return status;
}

static Status
fail_number(Ctx *ctx, const char *label, EntryMember member, int stated, int found)
{
	return fail(ctx, BAD_INPUT, "%s: %s: %d: the file has %d", label, entry_member_name(member), stated, found);
}

Status
index_check_entry(Ctx *ctx, const char *label, const IndexEntry *entry, const IndexedFile *file)
{
	EntryMember member = index_compare(entry, file);
	switch (member) {
	case ENTRY_COLLECTIVE:
		return fail(ctx, BAD_INPUT, "%s: collective: %s: the file has %s", label, collective_name(entry->coll),
		    collective_name(file->coll));
	case ENTRY_GPUS:
		return fail(ctx, BAD_INPUT, "%s: gpus: %d entries: the file has %d ranks", label, entry->n,
		    file->n_ranks);
	case ENTRY_ROOT:
		return fail(ctx, BAD_INPUT, "%s: root: %d, which is rank %d of the file: the file has root %d", label,
		    entry->root, file_root(entry), file->root);
	case ENTRY_RATE:
		return fail_rate(ctx, label, member, entry->rate, file->rate);
	case ENTRY_BOUND:
		return fail_rate(ctx, label, member, entry->bound, file->bound);
	case ENTRY_TREES:
		return fail_number(ctx, label, member, entry->trees, file->trees);
	case ENTRY_DEPTH:
		return fail_number(ctx, label, member, entry->depth, file->depth);
	case ENTRY_BASELINES:
		return fail(ctx, BAD_INPUT, "%s: baselines: not those of the file: want the same names and rates",
		    label);
	default:
		return OK;
	}
}
