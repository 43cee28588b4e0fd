/* What changed between two indexes of schedules. The machines may number their GPUs differently, so the GPUs of both
 * get common numbers by their ids, and the entries of both are sorted by these. */
#include "verb/diff/diff.h"

#include <stdlib.h>
#include <string.h>

struct named {
	const char *id;
	int *number;	/* of which this is the common number */
};

static int
by_name(const void *a, const void *b)
{
	return strcmp(((const struct named *)a)->id, ((const struct named *)b)->id);
}

static void
sort_gpus(const Index *index, int *number, struct named *out)
{
	for (int g = 0; g < index->n_gpus; g++)
		out[g] = (struct named){ index->gpu[g], &number[g] };
	qsort(out, (size_t)index->n_gpus, sizeof *out, by_name);
}

/* GPUs of old keep their numbers; GPUs of new alone get the next ones. */
static Status
number_gpus(Ctx *ctx, const Index *old, const Index *new, int *new_number)
{
	struct named *a, *b;
	int *old_number, next = old->n_gpus;
	TRY(TEMP(ctx, a, old->n_gpus));
	TRY(TEMP(ctx, b, new->n_gpus));
	TRY(TEMP(ctx, old_number, old->n_gpus));
	for (int g = 0; g < old->n_gpus; g++)
		old_number[g] = g;
	sort_gpus(old, old_number, a);
	sort_gpus(new, new_number, b);
	for (int i = 0, j = 0; j < new->n_gpus; j++) {
		while (i < old->n_gpus && by_name(&a[i], &b[j]) < 0)
			i++;
		*b[j].number = i < old->n_gpus && by_name(&a[i], &b[j]) == 0 ? *a[i].number : next++;
	}
	return OK;
}

struct job {
	IndexEntry key;		/* the entry with common numbers of GPUs */
	const IndexEntry *entry;
};

static int
by_job(const void *a, const void *b)
{
	return index_order(&((const struct job *)a)->key, &((const struct job *)b)->key);
}

/* number: the common number of each GPU; NULL: its own. */
static Status
sort_jobs(Ctx *ctx, const Index *index, const int *number, struct job **out)
{
	struct job *job;
	TRY(TEMP(ctx, job, index->n_entries));
	for (int i = 0; i < index->n_entries; i++) {
		const IndexEntry *entry = &index->entry[i];
		int *gpu = NULL;
		job[i] = (struct job){ *entry, entry };
		if (!number)
			continue;
		TRY(TEMP(ctx, gpu, entry->n));
		for (int g = 0; g < entry->n; g++)
			gpu[g] = number[entry->gpu[g]];
		job[i].key.gpu = gpu;
	}
	if (number)
		qsort(job, (size_t)index->n_entries, sizeof *job, by_job);
	*out = job;
	return OK;
}

/* ---- texts ---- */

/* "broadcast of gpu0,gpu3 from gpu3, 0 to 8192 bytes" */
static void
put_job(Text *text, const Index *index, const IndexEntry *entry)
{
	enum { SOME = 16 };
	text_printf(text, "%s of ", collective_name(entry->coll));
	for (int g = 0; g < entry->n && g < SOME; g++)
		text_printf(text, g ? ",%s" : "%s", index->gpu[entry->gpu[g]]);
	if (entry->n > SOME)
		text_printf(text, ",... (%d GPUs)", entry->n);
	if (entry->root >= 0)
		text_printf(text, " from %s", index->gpu[entry->gpu[entry->root]]);
	if (entry->sized)
		text_printf(text, ", %lld to %lld bytes", (long long)entry->from, (long long)entry->to);
}

static void
put_job_json(Text *text, const Index *index, const IndexEntry *entry)
{
	text_put(text, "{ \"gpus\": [");
	for (int g = 0; g < entry->n; g++) {
		text_put(text, g ? ", " : "");
		text_json(text, index->gpu[entry->gpu[g]]);
	}
	text_printf(text, "], \"collective\": \"%s\", \"root\": ", collective_name(entry->coll));
	entry->root < 0 ? text_put(text, "null") : text_json(text, index->gpu[entry->gpu[entry->root]]);
	if (entry->sized)
		text_printf(text, ", \"bytes\": [%lld, %lld]", (long long)entry->from, (long long)entry->to);
	text_put(text, " }");
}

static void
put_file_json(Text *text, const IndexEntry *entry)
{
	text_put(text, "{ \"file\": ");
	text_json(text, entry->file);
	text_put(text, ", \"ranks\": [");
	for (int r = 0; r < entry->n; r++) {
		text_put(text, r ? ", " : "");
		text_int(text, entry->rank[r]);
	}
	text_put(text, "] }");
}

/* ---- jobs ---- */

static Difference
of_job(DifferenceKind kind, const char *job)
{
	return (Difference){ .kind = kind, .old_tree = -1, .new_tree = -1, .job = job };
}

static Status
diff_file(Ctx *ctx, const IndexEntry *was, const IndexEntry *is, const char *job, const char *place, Differences *list)
{
	Text text = { 0 }, a = { 0 }, b = { 0 };
	bool other = strcmp(was->file, is->file) != 0;
	if (!other && memcmp(was->rank, is->rank, (size_t)is->n * sizeof *is->rank) == 0)
		return OK;
	text_put(&text, place);
	text_short(&text, is->file, 200);
	text_put(&text, other ? ", was " : ": its GPUs have different ranks");
	if (other)
		text_short(&text, was->file, 200);
	put_file_json(&a, was);
	put_file_json(&b, is);
	return difference_put(ctx, list, of_job(DIFF_FILE, job), &text, &a, &b);
}

/* Of the same job. */
static bool
equal_entries(const IndexEntry *a, const IndexEntry *b)
{
	return a->rate == b->rate && a->bound == b->bound && a->trees == b->trees && a->depth == b->depth
	    && strcmp(a->file, b->file) == 0 && memcmp(a->rank, b->rank, (size_t)b->n * sizeof *b->rank) == 0;
}

/* was, is: either may be NULL; index, entry: those of one that is not. */
static Status
diff_job(Ctx *ctx, const IndexEntry *was, const IndexEntry *is, const Index *index, const IndexEntry *entry,
    Differences *list)
{
	Text job = { 0 }, place = { 0 }, file = { 0 };
	/* Most are equal, and need no text. */
	if (was && is && equal_entries(was, is))
		return OK;
	put_job_json(&job, index, entry);
	put_job(&place, index, entry);
	const char *json = text_keep(&ctx->run, &job);
	if (!json) {
		text_free(&place);
		return fail_memory(ctx);
	}
	if (!was || !is) {
		put_file_json(&file, entry);
		return difference_put(ctx, list, of_job(is ? DIFF_NEW : DIFF_MISSING, json), &place, is ? NULL : &file,
		    is ? &file : NULL);
	}
	text_put(&place, ": ");
	const char *words = text_keep(&ctx->run, &place);
	if (!words)
		return fail_memory(ctx);
	TRY(difference_rate(ctx, list, DIFF_RATE, json, words, (was->rate > is->rate) - (was->rate < is->rate),
	    was->rate, is->rate));
	TRY(difference_rate(ctx, list, DIFF_BOUND, json, words, (was->bound > is->bound) - (was->bound < is->bound),
	    was->bound, is->bound));
	TRY(difference_count(ctx, list, DIFF_TREES, json, words, was->trees, is->trees));
	TRY(difference_count(ctx, list, DIFF_DEPTH, json, words, was->depth, is->depth));
	return diff_file(ctx, was, is, json, words, list);
}

static Status
diff_machine(Ctx *ctx, const Index *old, const Index *new, Differences *list)
{
	Text text = { 0 }, a = { 0 }, b = { 0 };
	enum { SHORT = 19 };	/* "sha256:" and 12 digits */
	bool digest = strcmp(old->digest, new->digest) != 0, gpus = old->n_gpus != new->n_gpus;
	for (int g = 0; g < old->n_gpus && !gpus; g++)
		gpus = strcmp(old->gpu[g], new->gpu[g]) != 0;
	if (!digest && !gpus)
		return OK;
	text_put(&text, "machine ");
	text_short(&text, new->name, 60);
	text_printf(&text, " of %d GPUs, ", new->n_gpus);
	text_short(&text, new->digest, SHORT);
	text_put(&text, "; was ");
	text_short(&text, old->name, 60);
	text_printf(&text, " of %d GPUs, ", old->n_gpus);
	text_short(&text, old->digest, SHORT);
	text_json(&a, old->digest);
	text_json(&b, new->digest);
	return difference_put(ctx, list, of_job(DIFF_TOPOLOGY, NULL), &text, &a, &b);
}

Status
diff_indexes(Ctx *ctx, const Index *old, const Index *new, Differences *list)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct job *a, *b;
	int *number;
	TRY(diff_machine(ctx, old, new, list));
	TRY(TEMP(ctx, number, new->n_gpus));
	TRY(number_gpus(ctx, old, new, number));
	TRY(sort_jobs(ctx, old, NULL, &a));
	TRY(sort_jobs(ctx, new, number, &b));
	for (int i = 0, j = 0; i < old->n_entries || j < new->n_entries;) {
		int order = i == old->n_entries ? 1 : j == new->n_entries ? -1 : by_job(&a[i], &b[j]);
		const IndexEntry *was = order <= 0 ? a[i].entry : NULL, *is = order >= 0 ? b[j].entry : NULL;
		TRY(diff_job(ctx, was, is, is ? new : old, is ? is : was, list));
		i += order <= 0;
		j += order >= 0;
	}
	arena_release(&ctx->scratch, mark);
	return differences_sort(ctx, list);
}
