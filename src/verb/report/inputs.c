/* The schedules of a page. Workers read and verify the files, and leave results in shared memory: numbers in a slot for
 * each file, texts one after the other. */
#include "base/file.h"
#include "base/pool.h"
#include "format/format.h"
#include "verb/progress.h"
#include "verb/report/report.h"
#include "verb/verb.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of the shared text. */
struct span {
	size_t at, size;
};

struct slot {
	PageFile file;		/* without texts and job */
	struct span algorithm, generator, drawing;
};

struct reading {
	const Page *page;
	struct slot *slot;	/* n_files, shared */
	char *text;		/* LIMIT_FILE_BYTES, shared */
	atomic_size_t *used;	/* shared */
};

/* ---- files, by workers ---- */

static Status
share(Ctx *ctx, struct reading *all, const char *data, size_t size, struct span *out)
{
	size_t at = atomic_fetch_add(all->used, size + 1);
	if (at >= LIMIT_FILE_BYTES || size >= LIMIT_FILE_BYTES - at)
		return fail(ctx, LIMIT, "%s: a page of more than %d MiB: want fewer schedules",
		    all->page->series[0].dir, LIMIT_FILE_BYTES >> 20);
	memcpy(all->text + at, data, size);
	all->text[at + size] = 0;
	*out = (struct span){ at, size };
	return OK;
}

static Status
share_schedule(Ctx *ctx, struct reading *all, const char *path, const Schedule *sched, struct slot *slot)
{
	Explained e;
	Layout layout;
	Text text = { 0 };
	PageFile *file = &slot->file;
	*file = (PageFile){ .achieved = sched->achieved, .bound = sched->bound.rate,
		.assumed = bound_assumed(sched->topo, sched->coll, &sched->bound) };
	TRY(index_describe(ctx, sched, &file->facts));
	TRY(explain(ctx, path, sched, &e));
	TRY(layout_own(ctx, &e, &layout));
	TRY(share(ctx, all, sched->algorithm, strlen(sched->algorithm), &slot->algorithm));
	text_put(&text, sched->generator);
	text_put(&text, " ");
	text_put(&text, sched->version);
	Status status = text.failed ? fail_memory(ctx) : share(ctx, all, text.data, text.size, &slot->generator);
	text_free(&text);
	if (status != OK)
		return status;
	html_schedule(&e, &layout, &text);
	status = text.failed ? fail_memory(ctx) : share(ctx, all, text.data, text.size, &slot->drawing);
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
		return fail(ctx, BAD_INPUT, "%s: topology.digest: %.80s: want %.80s, as in the index", path,
		    sched->topo->digest, index->digest);
	return share_schedule(ctx, all, path, sched, &all->slot[file]);
}

static Status
join(Ctx *ctx, const char *dir, const char *name, const char **out)
{
	Text path = { 0 };
	size_t n = strlen(dir);
	text_put(&path, dir);
	text_put(&path, n > 0 && dir[n - 1] == '/' ? "" : "/");
	text_put(&path, name);
	*out = text_keep(&ctx->run, &path);
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
	TRY(file_read_regular(ctx, path, &in));
	Status status = read_text(ctx, all, file, path, &in);
	text_free(&in);
	return status;
}

static void
show_progress(void *of, int n_done)
{
	const struct reading *all = of;
	progress_bar("reading and verifying schedules", n_done, all->page->n_files);
}

/* ---- results of workers ---- */

static Status
take_text(Ctx *ctx, const struct reading *all, struct span piece, const char **out)
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
		TRY(take_text(ctx, all, slot->generator, &file->generator));
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
	Pool pool = { .n_tasks = page->n_files, .n_workers = n_workers, .run = read_file, .done = show_progress,
	    .of = &all };
	size_t n = (size_t)page->n_files;
	TaskEnd *end = shared_array(n, sizeof *end);
	all.slot = shared_array(n, sizeof *all.slot);
	all.text = shared_array(LIMIT_FILE_BYTES, 1);
	all.used = shared_array(1, sizeof *all.used);
	Status status = end && all.slot && all.text && all.used ? pool_run(ctx, &pool, end) : fail_memory(ctx);
	progress_hide();
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

/* The files of an index, each once, by their first jobs. */
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
	TRY(check_batch_directory(ctx, series->dir));
	TRY(join(ctx, series->dir, "index.json", &path));
	TRY(file_read_regular(ctx, path, &in));
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
	return same
	    || s == 0 ? OK : fail(ctx, BAD_INPUT, "%s: topology: not the machine of %s: want schedules of one machine",
	    path, page->series[0].dir);
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

/* ---- indexes against their files ---- */

static Status
check_entry(Ctx *ctx, const PageSeries *series, const IndexEntry *entry, const PageFile *file)
{
	EntryMember member = index_compare(entry, &file->facts);
	if (member == ENTRY_EQUAL)
		return OK;
	return fail(ctx, BAD_INPUT,
	    "%s/index.json: %s of the entry for %s: differs from the file: want an index of these files", series->dir,
	    entry_member_name(member), entry->file);
}

static Status
check_entries(Ctx *ctx, const Page *page)
{
	for (int s = 0; s < page->n_series; s++)
		for (int i = 0; i < page->series[s].index->n_entries; i++)
			TRY(check_entry(ctx, &page->series[s], &page->series[s].index->entry[i],
			    &page->file[page->series[s].file[i]]));
	return OK;
}

/* ---- labels of series ---- */

/* The last part of a path: "fast" of "schedules/fast/". */
static Status
last_part(Ctx *ctx, const char *path, const char **out)
{
	size_t end = strlen(path), begin;
	while (end > 1 && path[end - 1] == '/')
		end--;
	for (begin = end; begin > 0 && path[begin - 1] != '/';)
		begin--;
	*out = arena_text(&ctx->run, path + begin, end - begin);
	return *out ? OK : fail_memory(ctx);
}

/* The algorithm, and the directory that distinguishes the series. */
static Status
label_by(Ctx *ctx, PageSeries *series, const char *algorithm, const char *directory)
{
	Text text = { 0 };
	text_put(&text, algorithm);
	text_put(&text, " of ");
	text_put(&text, directory);
	const char *label = text_keep(&ctx->run, &text);
	if (!label)
		return fail_memory(ctx);
	series->label = label;
	return OK;
}

static void
find_repeated(const Page *page, bool *repeated)
{
	for (int s = 0; s < page->n_series; s++)
		repeated[s] = false;
	for (int s = 0; s < page->n_series; s++)
		for (int t = 0; t < s; t++)
			if (strcmp(page->series[s].label, page->series[t].label) == 0)
				repeated[s] = repeated[t] = true;
}

/* The algorithm, if all files have the same; two series of the same algorithm are distinguished by their
 * directories. */
static Status
label_series(Ctx *ctx, Page *page)
{
	const char **algorithm, *name;
	bool *repeated;
	TRY(TEMP_EACH(ctx, page->n_series, algorithm, repeated));
	for (int s = 0; s < page->n_series; s++) {
		const PageFile *file = &page->file[page->series[s].first_file];
		algorithm[s] = file->algorithm;
		for (int f = 1; f < page->series[s].n_files; f++)
			if (strcmp(file[f].algorithm, file->algorithm) != 0)
				algorithm[s] = "mixed";
		page->series[s].label = algorithm[s];
	}
	find_repeated(page, repeated);
	for (int s = 0; s < page->n_series; s++) {
		TRY(last_part(ctx, page->series[s].dir, &name));
		if (repeated[s])
			TRY(label_by(ctx, &page->series[s], algorithm[s], name));
	}
	find_repeated(page, repeated);
	for (int s = 0; s < page->n_series; s++)
		if (repeated[s])
			TRY(label_by(ctx, &page->series[s], algorithm[s], page->series[s].dir));
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
	TRY(page_group(ctx, page));
	*out = page;
	return OK;
}
