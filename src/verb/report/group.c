/* The sets of GPUs of a page, and their isomorphism classes: sets with the same schedules. */
#include "verb/report/report.h"

#include <stdlib.h>
#include <string.h>

/* ---- sets and orders, each once ---- */

struct listed {
	PageList list;
	int *number;		/* set to its number */
};

static int
by_list(const void *a, const void *b)
{
	const PageList *p = &((const struct listed *)a)->list, *q = &((const struct listed *)b)->list;
	if (p->n != q->n)
		return p->n < q->n ? -1 : 1;
	for (int i = 0; i < p->n; i++)
		if (p->value[i] != q->value[i])
			return p->value[i] < q->value[i] ? -1 : 1;
	return 0;
}

static Status
number_lists(Ctx *ctx, struct listed *all, int n, PageList **out, int *n_out)
{
	PageList *list;
	int k = 0;
	qsort(all, (size_t)n, sizeof *all, by_list);
	for (int i = 0; i < n; i++)
		k += i == 0 || by_list(&all[i - 1], &all[i]) != 0;
	TRY(NEW(ctx, list, k));
	k = 0;
	for (int i = 0; i < n; i++) {
		if (i == 0 || by_list(&all[i - 1], &all[i]) != 0)
			list[k++] = all[i].list;
		*all[i].number = k - 1;
	}
	*out = list;
	*n_out = k;
	return OK;
}

static Status
number_all(Ctx *ctx, Page *page)
{
	struct listed *set, *order;
	int n = 0, k = 0;
	for (int s = 0; s < page->n_series; s++)
		n += page->series[s].index->n_entries;
	TRY(NEW_EACH(ctx, n, set, order));
	for (int s = 0; s < page->n_series; s++) {
		PageSeries *series = &page->series[s];
		TRY(NEW_EACH(ctx, series->index->n_entries, series->set, series->order));
		for (int i = 0; i < series->index->n_entries; i++, k++) {
			const IndexEntry *entry = &series->index->entry[i];
			set[k] = (struct listed){ { entry->n, entry->gpu }, &series->set[i] };
			order[k] = (struct listed){ { entry->n, entry->rank }, &series->order[i] };
		}
	}
	TRY(number_lists(ctx, set, n, &page->set, &page->n_sets));
	return number_lists(ctx, order, n, &page->order, &page->n_orders);
}

/* ---- isomorphism classes ---- */

/* A job of one collective. */
struct job {
	int set, file;
	const IndexEntry *entry;
};

/* The jobs of a set. */
struct set_jobs {
	int n;
	const struct job *job;
};

static int
by_set(const void *a, const void *b)
{
	const struct job *p = a, *q = b;
	if (p->set != q->set)
		return p->set < q->set ? -1 : 1;
	return p->file != q->file ? (p->file > q->file) - (p->file < q->file) : index_order(p->entry, q->entry);
}

static int
by_files(const struct set_jobs *p, const struct set_jobs *q)
{
	if (p->job->entry->n != q->job->entry->n)
		return p->job->entry->n < q->job->entry->n ? -1 : 1;
	if (p->n != q->n)
		return p->n < q->n ? -1 : 1;
	for (int i = 0; i < p->n; i++)
		if (p->job[i].file != q->job[i].file)
			return p->job[i].file < q->job[i].file ? -1 : 1;
	return 0;
}

static int
by_files_and_set(const void *a, const void *b)
{
	const struct set_jobs *p = a, *q = b;
	int order = by_files(p, q);
	return order ? order : (p->job->set > q->job->set) - (p->job->set < q->job->set);
}

/* The longest message of a job for which the set has a file of this series; an entry without sizes has all. */
static int64_t
longest_message(const Page *page, const struct set_jobs *jobs, int series)
{
	int64_t longest = 0;
	for (int i = 0; i < jobs->n; i++) {
		const struct job *job = &jobs->job[i];
		if (page->file[job->file].series == series && job->entry->sized && job->entry->to > longest)
			longest = job->entry->to;
	}
	return longest;
}

/* Rates are those of the longest messages: a file for short ones has a low rate on purpose. */
static Status
make_class(Ctx *ctx, const Page *page, const struct set_jobs *jobs, int n_sets, PageClass *out)
{
	*out = (PageClass){ .coll = jobs->job->entry->coll, .set = jobs->job->set, .n_sets = n_sets };
	TRY(NEW_EACH(ctx, page->n_series, out->best, out->worst));
	int64_t *longest;
	TRY(NEW(ctx, longest, page->n_series));
	for (int s = 0; s < page->n_series; s++) {
		out->best[s].file = out->worst[s].file = -1;
		longest[s] = longest_message(page, jobs, s);
	}
	for (int i = 0; i < jobs->n; i++) {
		const struct job *job = &jobs->job[i];
		const PageFile *file = &page->file[job->file];
		PageJob *best = &out->best[file->series], *worst = &out->worst[file->series];
		if (job->entry->sized && job->entry->to < longest[file->series])
			continue;
		if (best->file < 0 || frac_cmp(file->achieved, page->file[best->file].achieved) > 0)
			*best = (PageJob){ job->entry, job->file };
		if (worst->file < 0 || frac_cmp(file->achieved, page->file[worst->file].achieved) < 0)
			*worst = (PageJob){ job->entry, job->file };
	}
	return OK;
}

/* Of one collective: jobs are sorted by set, and sets by their files; a class is a run of equal ones. */
static Status
list_classes(Ctx *ctx, Page *page, struct job *job, int n, PageClass *out, int *n_out)
{
	struct set_jobs *jobs;
	int n_sets = 0, n_classes = 0;
	TRY(TEMP(ctx, jobs, n));
	qsort(job, (size_t)n, sizeof *job, by_set);
	for (int i = 0; i < n; i++) {
		if (i == 0 || job[i].set != job[i - 1].set)
			jobs[n_sets++] = (struct set_jobs){ 0, &job[i] };
		jobs[n_sets - 1].n++;
	}
	qsort(jobs, (size_t)n_sets, sizeof *jobs, by_files_and_set);
	for (int i = 0, next; i < n_sets; i = next) {
		for (next = i + 1; next < n_sets && by_files(&jobs[i], &jobs[next]) == 0;)
			next++;
		TRY(make_class(ctx, page, &jobs[i], next - i, &out[n_classes++]));
	}
	*n_out = n_classes;
	return OK;
}

struct sorted {
	PageClass class;
	int n;
	Frac bound;
};

static int
by_bound(const void *a, const void *b)
{
	const struct sorted *p = a, *q = b;
	if (p->class.coll != q->class.coll)
		return p->class.coll < q->class.coll ? -1 : 1;
	if (p->n != q->n)
		return p->n < q->n ? -1 : 1;
	int order = frac_cmp(q->bound, p->bound);
	return order ? order : (p->class.set > q->class.set) - (p->class.set < q->class.set);
}

static Status
sort_classes(Ctx *ctx, Page *page)
{
	struct sorted *sorted;
	TRY(TEMP(ctx, sorted, page->n_classes));
	for (int c = 0; c < page->n_classes; c++) {
		sorted[c] = (struct sorted){ page->class[c], page->set[page->class[c].set].n, FRAC_ZERO };
		for (int s = 0; s < page->n_series; s++) {
			int f = page->class[c].best[s].file;
			if (f >= 0 && frac_cmp(page->file[f].bound, sorted[c].bound) > 0)
				sorted[c].bound = page->file[f].bound;
		}
	}
	qsort(sorted, (size_t)page->n_classes, sizeof *sorted, by_bound);
	for (int c = 0; c < page->n_classes; c++)
		page->class[c] = sorted[c].class;
	return OK;
}

static Status
find_classes(Ctx *ctx, Page *page)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct job *job;
	int n_jobs = 0;
	for (int f = 0; f < page->n_files; f++)
		n_jobs += page->file[f].n_jobs;
	TRY(TEMP(ctx, job, n_jobs));
	TRY(NEW(ctx, page->class, n_jobs));
	for (int c = 0; c < N_COLLECTIVES; c++) {
		int n = 0, found;
		for (int s = 0; s < page->n_series; s++) {
			const PageSeries *series = &page->series[s];
			for (int i = 0; i < series->index->n_entries; i++)
				if (series->index->entry[i].coll == (Collective)c)
					job[n++] = (struct job){ series->set[i], series->file[i],
					    &series->index->entry[i] };
		}
		TRY(list_classes(ctx, page, job, n, page->class + page->n_classes, &found));
		page->n_classes += found;
	}
	TRY(sort_classes(ctx, page));
	arena_release(&ctx->scratch, mark);
	return OK;
}

const Baseline *
page_baseline(const Page *page, const PageFile *file, int number)
{
	for (int i = 0; i < file->facts.n_baselines; i++)
		if (strcmp(file->facts.baseline[i].name, page->baseline[number]) == 0)
			return &file->facts.baseline[i];
	return NULL;
}

static void
name_baselines(Page *page)
{
	for (int f = 0; f < page->n_files; f++) {
		const IndexedFile *facts = &page->file[f].facts;
		for (int i = 0; i < facts->n_baselines; i++) {
			int k = 0;
			while (k < page->n_baselines && strcmp(page->baseline[k], facts->baseline[i].name) != 0)
				k++;
			if (k == page->n_baselines && k < LIMIT_BASELINES)
				page->baseline[page->n_baselines++] = facts->baseline[i].name;
		}
	}
}

Status
page_group(Ctx *ctx, Page *page)
{
	name_baselines(page);
	TRY(number_all(ctx, page));
	return find_classes(ctx, page);
}
