/* Reads what a page shows. The files are read and verified by processes, which leave what they found in memory that all share: numbers in
 * a slot for each file, text wherever the next free byte is. */
#include "page.h"

#include "base/file.h"
#include "base/pool.h"
#include "passes.h"
#include "watch.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of `text` that a worker has filled. */
struct piece {
	size_t at, size;
};

struct slot {
	PageFile file;		/* without what it points to */
	struct piece algorithm, maker, drawing;
};

struct reading {
	const Page *page;
	struct slot *slot;	/* n_files, shared */
	char *text;		/* LIMIT_FILE_BYTES, shared */
	atomic_size_t *used;	/* shared */
};

/* ---- files, by workers ---- */

static Status
keep(Ctx *ctx, struct reading *all, const char *data, size_t size, struct piece *out)
{
	size_t at = atomic_fetch_add(all->used, size + 1);
	if (at >= LIMIT_FILE_BYTES || size >= LIMIT_FILE_BYTES - at)
		return fail(ctx, LIMIT, "%s: a page of more than %d MiB: want fewer schedules", all->page->series[0].dir, LIMIT_FILE_BYTES >> 20);
	memcpy(all->text + at, data, size);
	all->text[at + size] = 0;
	*out = (struct piece){ at, size };
	return OK;
}

static Status
keep_schedule(Ctx *ctx, struct reading *all, const Schedule *sched, struct slot *slot)
{
	Text text = { 0 };
	PageFile *file = &slot->file;
	*file = (PageFile){ .coll = sched->coll, .n = sched->topo->n_ranks, .root = sched->root, .achieved = sched->achieved,
		.bound = sched->bound.rate, .stated_achieved = sched->stated_achieved, .stated_bound = sched->stated_bound,
		.trees = sched->n_segments };
	TRY(sched_depth(ctx, sched, &file->depth));
	TRY(keep(ctx, all, sched->algorithm, strlen(sched->algorithm), &slot->algorithm));
	text_put(&text, sched->generator);
	text_put(&text, " ");
	text_put(&text, sched->version);
	Status status = text.failed ? fail_memory(ctx) : keep(ctx, all, text.data, text.size, &slot->maker);
	text_free(&text);
	if (status != OK)
		return status;
	html_schedule(sched, &text);
	status = text.failed ? fail_memory(ctx) : keep(ctx, all, text.data, text.size, &slot->drawing);
	text_free(&text);
	return status;
}

static Status
read_text(Ctx *ctx, struct reading *all, int file, const char *path, const Text *in)
{
	const Index *index = all->page->series[all->page->file[file].series].index;
	Schedule *sched;
	TRY(sched_read(ctx, path, in->data, in->size, &sched));
	TRY(sched_verify(ctx, path, sched));
	if (strcmp(sched->topo->digest, index->digest) != 0)
		return fail(ctx, BAD_INPUT, "%s: topology.digest: %.80s: want %.80s, as the index has it", path, sched->topo->digest, index->digest);
	return keep_schedule(ctx, all, sched, &all->slot[file]);
}

static Status
join(Ctx *ctx, const char *dir, const char *name, const char **out)
{
	Text path = { 0 };
	size_t n = strlen(dir);
	text_put(&path, dir);
	text_put(&path, n > 0 && dir[n - 1] == '/' ? "" : "/");
	text_put(&path, name);
	*out = path.failed ? NULL : arena_text(&ctx->run, path.data, path.size);
	text_free(&path);
	return *out ? OK : fail_memory(ctx);
}

static Status
read_file(Ctx *ctx, void *of, int file)
{
	struct reading *all = of;
	const PageFile *at = &all->page->file[file];
	const char *path;
	Text in = { 0 };
	TRY(join(ctx, all->page->series[at->series].dir, at->path, &path));
	TRY(file_read(ctx, path, &in));
	Status status = read_text(ctx, all, file, path, &in);
	text_free(&in);
	return status;
}

static void
show_progress(void *of, int n_done)
{
	const struct reading *all = of;
	watch_bar("reading and verifying schedules", n_done, all->page->n_files);
}

/* ---- what workers have found ---- */

static Status
take_text(Ctx *ctx, const struct reading *all, struct piece piece, const char **out)
{
	*out = arena_text(&ctx->run, all->text + piece.at, piece.size);
	return *out ? OK : fail_memory(ctx);
}

static Status
take_files(Ctx *ctx, const struct reading *all, const TaskEnd *end, Page *page, Text *drawing)
{
	for (int f = 0; f < page->n_files; f++)
		if (end[f].status != OK)
			return fail(ctx, end[f].status, "%s", end[f].text);
	text_put(drawing, "[\n");
	for (int f = 0; f < page->n_files; f++) {
		const struct slot *slot = &all->slot[f];
		PageFile *file = &page->file[f], was = *file;
		*file = slot->file;
		file->series = was.series;
		file->path = was.path;
		file->first = was.first;
		file->n_jobs = was.n_jobs;
		TRY(take_text(ctx, all, slot->algorithm, &file->algorithm));
		TRY(take_text(ctx, all, slot->maker, &file->maker));
		text_add(drawing, all->text + slot->drawing.at, slot->drawing.size);
		text_put(drawing, f + 1 < page->n_files ? ",\n" : "\n");
	}
	text_put(drawing, "]");
	return drawing->failed ? fail_memory(ctx) : OK;
}

static Status
read_files(Ctx *ctx, Page *page, int n_workers, Text *drawing)
{
	struct reading all = { .page = page };
	Pool pool = { .n_tasks = page->n_files, .n_workers = n_workers, .run = read_file, .done = show_progress, .of = &all };
	size_t n = (size_t)page->n_files;
	TaskEnd *end = shared_array(n, sizeof *end);
	all.slot = shared_array(n, sizeof *all.slot);
	all.text = shared_array(LIMIT_FILE_BYTES, 1);
	all.used = shared_array(1, sizeof *all.used);
	Status status = end && all.slot && all.text && all.used ? pool_run(ctx, &pool, end) : fail_memory(ctx);
	watch_hide();
	if (status == OK)
		status = take_files(ctx, &all, end, page, drawing);
	shared_free(end);
	shared_free(all.slot);
	shared_free(all.text);
	shared_free(all.used);
	return status;
}

/* ---- indexes ---- */

static int
by_path(const void *a, const void *b)
{
	const IndexEntry *p = *(const IndexEntry *const *)a, *q = *(const IndexEntry *const *)b;
	int order = strcmp(p->file, q->file);
	return order ? order : index_order(p, q);
}

static int
by_job(const void *a, const void *b)
{
	const IndexEntry *p = ((const PageFile *)a)->first, *q = ((const PageFile *)b)->first;
	return p->coll != q->coll ? (p->coll > q->coll) - (p->coll < q->coll) : index_order(p, q);
}

static int
by_file(const void *path, const void *entry)
{
	return strcmp(path, (*(const IndexEntry *const *)entry)->file);
}

/* The files that an index names, each once, by their first jobs. */
static Status
list_files(Ctx *ctx, int s, PageSeries *series, PageFile **out)
{
	const Index *index = series->index;
	const IndexEntry **entry;
	PageFile *file;
	int n = 0;
	TRY(NEW(ctx, entry, index->n_entries));
	for (int i = 0; i < index->n_entries; i++)
		entry[i] = &index->entry[i];
	qsort(entry, (size_t)index->n_entries, sizeof *entry, by_path);
	for (int i = 0; i < index->n_entries; i++)
		n += i == 0 || strcmp(entry[i]->file, entry[i - 1]->file) != 0;
	TRY(NEW(ctx, file, n));
	n = 0;
	for (int i = 0; i < index->n_entries; i++) {
		if (i == 0 || strcmp(entry[i]->file, entry[i - 1]->file) != 0)
			file[n++] = (PageFile){ .series = s, .path = entry[i]->file, .first = entry[i] };
		file[n - 1].n_jobs++;
	}
	qsort(file, (size_t)n, sizeof *file, by_job);
	TRY(NEW(ctx, series->file, index->n_entries));
	for (int f = 0; f < n; f++) {
		const IndexEntry **at = bsearch(file[f].path, entry, (size_t)index->n_entries, sizeof *entry, by_file);
		while (at > entry && strcmp(at[-1]->file, file[f].path) == 0)
			at--;
		for (int k = 0; k < file[f].n_jobs; k++)
			series->file[at[k] - index->entry] = f;
	}
	series->n_files = n;
	*out = file;
	return OK;
}

static Status
read_index(Ctx *ctx, int s, const Page *page, PageSeries *series)
{
	const char *path;
	Text in = { 0 };
	Index *index;
	TRY(join(ctx, series->dir, "index.json", &path));
	TRY(file_read(ctx, path, &in));
	Status status = index_read(ctx, path, in.data, in.size, &index);
	text_free(&in);
	if (status != OK)
		return status;
	if (index->n_entries < 1)
		return fail(ctx, BAD_INPUT, "%s: schedules: none: want at least one", path);
	series->index = index;
	const Index *first = page->series[0].index;
	bool same = strcmp(index->digest, first->digest) == 0 && index->n_gpus == first->n_gpus;
	for (int g = 0; g < index->n_gpus && same; g++)
		same = strcmp(index->gpu[g], first->gpu[g]) == 0;
	return same || s == 0 ? OK : fail(ctx, BAD_INPUT, "%s: topology: not the machine of %s: want schedules of one machine", path,
	    page->series[0].dir);
}

static Status
read_indexes(Ctx *ctx, Page *page)
{
	PageFile **file;
	TRY(NEW(ctx, file, page->n_series));
	for (int s = 0; s < page->n_series; s++) {
		TRY(read_index(ctx, s, page, &page->series[s]));
		TRY(list_files(ctx, s, &page->series[s], &file[s]));
		page->series[s].first_file = page->n_files;
		page->n_files += page->series[s].n_files;
	}
	TRY(NEW(ctx, page->file, page->n_files));
	for (int s = 0; s < page->n_series; s++) {
		PageSeries *series = &page->series[s];
		memcpy(page->file + series->first_file, file[s], (size_t)series->n_files * sizeof **file);
		for (int i = 0; i < series->index->n_entries; i++)
			series->file[i] += series->first_file;
	}
	const Index *index = page->series[0].index;
	page->name = index->name;
	page->digest = index->digest;
	page->n_gpus = index->n_gpus;
	page->gpu = index->gpu;
	return OK;
}

/* ---- does the index say what its files are? ---- */

static bool
alike(double a, double b)
{
	return fabs(a - b) <= 1e-9 * (a > b ? a : b);
}

static Status
check_entry(Ctx *ctx, const PageSeries *series, const IndexEntry *entry, const PageFile *file)
{
	const char *what = NULL;
	int root = entry->root < 0 ? -1 : entry->rank[entry->root];
	if (entry->coll != file->coll)
		what = "collective";
	else if (entry->n != file->n)
		what = "gpus";
	else if (root != file->root)
		what = "root";
	else if (!alike(entry->rate, file->stated_achieved))
		what = "rate";
	else if (!alike(entry->bound, file->stated_bound))
		what = "bound";
	else if (entry->trees != file->trees)
		what = "trees";
	else if (entry->depth != file->depth)
		what = "depth";
	return !what ? OK : fail(ctx, BAD_INPUT, "%s/index.json: %s of an entry for %s: not as in that file: want an index of these files",
	    series->dir, what, entry->file);
}

static Status
check_entries(Ctx *ctx, const Page *page)
{
	for (int s = 0; s < page->n_series; s++)
		for (int i = 0; i < page->series[s].index->n_entries; i++)
			TRY(check_entry(ctx, &page->series[s], &page->series[s].index->entry[i], &page->file[page->series[s].file[i]]));
	return OK;
}

/* The algorithm, if all files have one; where two series have the same, their directories tell them apart. */
static Status
label_series(Ctx *ctx, Page *page)
{
	for (int s = 0; s < page->n_series; s++) {
		PageSeries *series = &page->series[s];
		const PageFile *file = &page->file[series->first_file];
		series->label = file->algorithm;
		for (int f = 1; f < series->n_files; f++)
			if (strcmp(file[f].algorithm, series->label) != 0)
				series->label = "mixed";
	}
	const char **label;
	TRY(NEW(ctx, label, page->n_series));
	for (int s = 0; s < page->n_series; s++) {
		bool alone = true;
		for (int t = 0; t < page->n_series; t++)
			alone = alone && (s == t || strcmp(page->series[s].label, page->series[t].label) != 0);
		Text text = { 0 };
		text_put(&text, page->series[s].label);
		if (!alone) {
			text_put(&text, " of ");
			text_put(&text, page->series[s].dir);
		}
		label[s] = text.failed ? NULL : arena_text(&ctx->run, text.data, text.size);
		text_free(&text);
		if (!label[s])
			return fail_memory(ctx);
	}
	for (int s = 0; s < page->n_series; s++)
		page->series[s].label = label[s];
	return OK;
}

/* ---- sets and orders, each once ---- */

struct listed {
	PageList list;
	int *to;		/* where its number goes */
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
		*all[i].to = k - 1;
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
	TRY(NEW(ctx, set, n));
	TRY(NEW(ctx, order, n));
	for (int s = 0; s < page->n_series; s++) {
		PageSeries *series = &page->series[s];
		TRY(NEW(ctx, series->set, series->index->n_entries));
		TRY(NEW(ctx, series->order, series->index->n_entries));
		for (int i = 0; i < series->index->n_entries; i++, k++) {
			const IndexEntry *entry = &series->index->entry[i];
			set[k] = (struct listed){ { entry->n, entry->gpu }, &series->set[i] };
			order[k] = (struct listed){ { entry->n, entry->rank }, &series->order[i] };
		}
	}
	TRY(number_lists(ctx, set, n, &page->set, &page->n_sets));
	return number_lists(ctx, order, n, &page->order, &page->n_orders);
}

/* ---- classes of sets ---- */

/* A job of one collective. */
struct mark {
	int set, file;
	const IndexEntry *job;
};

/* The jobs of a set. */
struct cell {
	const Page *page;
	int n;
	const struct mark *mark;
};

static int
by_set(const void *a, const void *b)
{
	const struct mark *p = a, *q = b;
	if (p->set != q->set)
		return p->set < q->set ? -1 : 1;
	return p->file != q->file ? (p->file > q->file) - (p->file < q->file) : index_order(p->job, q->job);
}

static int
by_files(const struct cell *p, const struct cell *q)
{
	if (p->mark->job->n != q->mark->job->n)
		return p->mark->job->n < q->mark->job->n ? -1 : 1;
	if (p->n != q->n)
		return p->n < q->n ? -1 : 1;
	for (int i = 0; i < p->n; i++)
		if (p->mark[i].file != q->mark[i].file)
			return p->mark[i].file < q->mark[i].file ? -1 : 1;
	return 0;
}

static int
by_files_and_set(const void *a, const void *b)
{
	const struct cell *p = a, *q = b;
	int order = by_files(p, q);
	return order ? order : (p->mark->set > q->mark->set) - (p->mark->set < q->mark->set);
}

static Status
make_class(Ctx *ctx, const Page *page, const struct cell *cell, int n_sets, PageClass *out)
{
	*out = (PageClass){ .coll = cell->mark->job->coll, .set = cell->mark->set, .n_sets = n_sets };
	TRY(NEW(ctx, out->best, page->n_series));
	TRY(NEW(ctx, out->worst, page->n_series));
	for (int s = 0; s < page->n_series; s++)
		out->best[s].file = out->worst[s].file = -1;
	for (int i = 0; i < cell->n; i++) {
		const struct mark *mark = &cell->mark[i];
		const PageFile *file = &page->file[mark->file];
		PageJob *best = &out->best[file->series], *worst = &out->worst[file->series];
		if (best->file < 0 || frac_cmp(file->achieved, page->file[best->file].achieved) > 0)
			*best = (PageJob){ mark->job, mark->file };
		if (worst->file < 0 || frac_cmp(file->achieved, page->file[worst->file].achieved) < 0)
			*worst = (PageJob){ mark->job, mark->file };
	}
	return OK;
}

/* Of one collective: its jobs by set, then sets by their files. */
static Status
list_classes(Ctx *ctx, Page *page, struct mark *mark, int n, PageClass *out, int *n_out)
{
	struct cell *cell;
	int n_cells = 0, n_classes = 0;
	TRY(TEMP(ctx, cell, n));
	qsort(mark, (size_t)n, sizeof *mark, by_set);
	for (int i = 0; i < n; i++) {
		if (i == 0 || mark[i].set != mark[i - 1].set)
			cell[n_cells++] = (struct cell){ page, 0, &mark[i] };
		cell[n_cells - 1].n++;
	}
	qsort(cell, (size_t)n_cells, sizeof *cell, by_files_and_set);
	for (int i = 0, next; i < n_cells; i = next) {
		for (next = i + 1; next < n_cells && by_files(&cell[i], &cell[next]) == 0;)
			next++;
		TRY(make_class(ctx, page, &cell[i], next - i, &out[n_classes++]));
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
	ArenaMark before = arena_mark(&ctx->scratch);
	struct mark *mark;
	int n_jobs = 0;
	for (int f = 0; f < page->n_files; f++)
		n_jobs += page->file[f].n_jobs;
	TRY(TEMP(ctx, mark, n_jobs));
	TRY(NEW(ctx, page->class, n_jobs));
	for (int c = 0; c < N_COLLECTIVES; c++) {
		int n = 0, found;
		for (int s = 0; s < page->n_series; s++) {
			const PageSeries *series = &page->series[s];
			for (int i = 0; i < series->index->n_entries; i++)
				if (series->index->entry[i].coll == (Collective)c)
					mark[n++] = (struct mark){ series->set[i], series->file[i], &series->index->entry[i] };
		}
		TRY(list_classes(ctx, page, mark, n, page->class + page->n_classes, &found));
		page->n_classes += found;
	}
	TRY(sort_classes(ctx, page));
	arena_release(&ctx->scratch, before);
	return OK;
}

Status
page_read(Ctx *ctx, char *const *dir, int n_dirs, int n_workers, Page **out, Text *drawing)
{
	Page *page;
	TRY(NEW(ctx, page, 1));
	page->n_series = n_dirs;
	TRY(NEW(ctx, page->series, n_dirs));
	for (int s = 0; s < n_dirs; s++)
		page->series[s].dir = dir[s];
	TRY(read_indexes(ctx, page));
	TRY(read_files(ctx, page, n_workers, drawing));
	TRY(check_entries(ctx, page));
	TRY(label_series(ctx, page));
	TRY(number_all(ctx, page));
	TRY(find_classes(ctx, page));
	*out = page;
	return OK;
}
