/* What the page of `blinkc report` shows: schedules that `blinkc batch` made, with the jobs that they are for. (report.h is what people
 * read of one schedule on a terminal.) */
#ifndef BLINK_PAGE_H
#define BLINK_PAGE_H

#include "base/text.h"
#include "layout.h"
#include "model.h"

/* A schedule file. The jobs that it is for are a class: the same up to the names of their GPUs. */
typedef struct {
	int series;
	const char *path;		/* relative to its directory */
	const IndexEntry *first;	/* job */
	int n_jobs;
	const char *algorithm, *maker;	/* maker: "blinkc 0.1.0" */
	Collective coll;
	int n, root;			/* rank in the file; -1: none */
	Frac achieved, bound;		/* bytes/s */
	double stated_achieved, stated_bound;	/* GB/s, as the file says */
	int trees, depth;
} PageFile;

/* One directory. */
typedef struct {
	const char *dir, *label;	/* label: the algorithm of its files; no two series have the same */
	const Index *index;
	int first_file, n_files;
	int *file, *set, *order;	/* of each entry */
} PageSeries;

/* The best and the worst root of a series; both are the same job where there is no root. */
typedef struct {
	const IndexEntry *job;
	int file;			/* -1: the series has none */
} PageJob;

/* Sets of GPUs for which each series has the same files, root for root. */
typedef struct {
	Collective coll;
	int set, n_sets;		/* set: the first of them */
	PageJob *best, *worst;		/* n_series */
} PageClass;

/* GPUs of a job, or the ranks that they play. */
typedef struct {
	int n;
	const int *value;
} PageList;

typedef struct {
	const char *name, *digest;	/* of the machine */
	int n_gpus;
	const char **gpu;
	int n_series, n_files, n_sets, n_orders, n_classes;
	PageSeries *series;
	PageFile *file;			/* of all series, one after the other; by collective, then as in an index */
	PageList *set, *order;		/* each once, by length */
	PageClass *class;		/* by collective, number of GPUs, and bound, the highest first */
} Page;

/* All schedules of these directories, verified, by n_workers processes.
 * *drawing: the caller's to free, whatever is returned; gets an array with what html_schedule writes of each file.
 * Fails: as file_read, index_read, sched_read and sched_verify do; BAD_INPUT directories of different machines, or an index that says
 * something else than its files; LIMIT more text than a file may have. */
Status page_read(Ctx *ctx, char *const *dir, int n_dirs, int n_workers, Page **out, Text *drawing);

/* page_group.c: fill set, order and class of a page that has all else. */
Status page_group(Ctx *ctx, Page *page);

/* emit/html.c: one file, as JSON that a page may hold in a script; all that is needed to draw it. */
void html_schedule(const Explained *e, const Layout *layout, Text *out);

/* The page. Fails: NO_MEMORY. */
Status emit_html(Ctx *ctx, const Page *page, const Text *drawing, Text *out);

#endif
