/* The page of `blinkc report`: schedules that `blinkc batch` made, the jobs that they serve, and how the page is
 * written. */
#ifndef BLINK_VERB_REPORT_REPORT_H
#define BLINK_VERB_REPORT_REPORT_H

#include "base/json_write.h"
#include "base/text.h"
#include "choice/choice.h"
#include "choice/nccl.h"
#include "model/model.h"
#include "schedule/schedule.h"
#include "verb/request.h"
#include "view/view.h"

/* A schedule file. The jobs that it serves are isomorphic: equal up to the names of their GPUs. */
typedef struct {
	int series;
	const char *path;		/* relative to its directory */
	const IndexEntry *first;	/* job */
	int n_jobs;
	const char *algorithm, *generator;	/* generator: "blinkc 0.1.0" */
	Frac achieved, bound;		/* bytes/s */
	Assumed assumed;		/* what the bound depends on */
	IndexedFile facts;
} PageFile;

/* One directory. */
typedef struct {
	const char *dir, *label;	/* label: the algorithm of its files; no two series have the same */
	const Index *index;
	int first_file, n_files;
	int *file, *set, *order;	/* of each entry */
} PageSeries;

/* The job of a class with the best root, or the worst; both are the same job where there is no root. */
typedef struct {
	const IndexEntry *job;
	int file;			/* -1: the series has none */
} PageJob;

/* An isomorphism class: sets of GPUs for which each series has the same files, root for root. */
typedef struct {
	Collective coll;
	int set, n_sets;		/* set: the first of them */
	PageJob *best, *worst;		/* n_series */
} PageClass;

/* GPUs of a job, or their ranks in its file. */
typedef struct {
	int n;
	const int *value;
} PageList;

/* What a message of m bytes takes, ps; -1: it was not simulated. */
typedef struct {
	int64_t m;
	int64_t ours, least;		/* the choice; what no algorithm goes below, by any protocol */
	char name[CANDIDATE_NAME];	/* of the choice */
	int64_t ring[LIMIT_BASELINES];	/* rings of each row of plan/baseline.c, executed as ours are */
	NcclChoice nccl[N_NCCL_VERSIONS];
	int64_t nccl_time[N_NCCL_VERSIONS];
} PagePoint;

/* Of a class: the job of its best root. */
typedef struct {
	const IndexEntry *job;
	int n_points, n_rings;
	PagePoint point[SIZES_MAX];
	const char *why_not, *left_out;	/* as NcclBeside has them */
} PageTimes;

typedef struct {
	const char *name, *digest;	/* of the machine */
	int n_gpus;
	const char **gpu;
	int n_series, n_files, n_sets, n_orders, n_classes;
	PageSeries *series;
	PageFile *file;			/* of all series, one after the other; by collective, then as in an index */
	PageList *set, *order;		/* each once, by length */
	int n_baselines;		/* of all files */
	const char *baseline[LIMIT_BASELINES];	/* their names, each once */
	PageClass *class;		/* by collective, number of GPUs, and bound, the highest first */
	int n_times;			/* of the first classes; 0: sizes are not asked for */
	PageTimes *times;		/* by shared_array */
	const char *executor;
} Page;

/* All schedules of these directories, verified, by n_workers processes.
 * *drawing: freed by the caller, also on failure; an array with what html_schedule writes of each file.
 * Fails: as file_read, index_read, sched_read and sched_verify do; BAD_INPUT directories of different machines, or an
 * index that differs from its files; LIMIT more text than a file may have. */
Status page_read(Ctx *ctx, char *const *dir, int n_dirs, int n_workers, Page **out, Text *drawing);

/* group.c: fill set, order and class of a page that has all else. */
Status page_group(Ctx *ctx, Page *page);

/* times.c: fill n_times and times, from --topology and --size, for at most PAGE_TIMES classes, by n_workers processes.
 * Nothing is done without --topology. Fails: as read_topology does; BAD_INPUT another machine; as choice_prepare. */
Status page_times(Ctx *ctx, const Options *opt, int n_workers, Page *page);

enum { PAGE_TIMES = 512 };

/* ---- html_words.c, html_chart.c: pieces of the page ---- */

/* As text, or as an attribute in double quotes; control characters become U+FFFD. */
void html_text(Text *out, const char *string);

void html_count(Text *out, long long n);		/* 1,263 */
void html_plural(Text *out, long long n, const char *one);	/* 1 file, 1,263 files */
void html_rate(Text *out, Frac bytes);			/* GB/s, 6 significant digits */
void html_ratio(Text *out, Frac achieved, Frac bound);	/* 1.000 is for what reaches the bound */

/* GPUs by their numbers in the machine: 0,1,2,5; short: 0-2,5 */
void html_gpus(Text *out, const int *gpu, int n, bool brief);

/* The fragment of the page's address for a job: allreduce/0,1,4 or broadcast/0,1,4/1, where 1 is the root's GPU; then
 * the label of the series, if there are several. */
void html_place(Text *out, const Page *page, int series, const IndexEntry *job);

/* Achieved rate and bound of each class: a chart for each number of GPUs and collective. */
void html_charts(const Page *page, Text *out);

/* Of a file, by the number of its name in the page; NULL: it has none. */
const Baseline *page_baseline(const Page *page, const PageFile *file, int number);

/* The legend of its colours. */
void html_legend(const Page *page, Text *out);

/* ---- html_times.c ---- */

/* A section with two charts and a table for each class of page->times; nothing where there are none. */
void html_times(const Page *page, Text *out);

/* The same as JSON. */
void html_times_data(JsonWriter *w, const Page *page);

/* ---- html_data.c ---- */

/* One file as JSON, with what the script needs to draw it; and all data of the page. */
void html_schedule(const Explained *e, const Layout *layout, Text *out);
void html_data(const Page *page, const Text *drawing, Text *out);

/* ---- html.c ---- */

/* The page. Fails: NO_MEMORY. */
Status emit_html(Ctx *ctx, const Page *page, const Text *drawing, Text *out);

#endif
