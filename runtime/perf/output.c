/* What is printed: for people the table of nccl-tests, for programs CSV and JSON, which have the same columns with
 * their units in the names. Numbers depend on no locale: the program sets none. A JSON document is printed whole, at
 * the end; lines of the other formats as they are measured. */
#include "base/json_write.h"
#include "base/printable.h"
#include "perf/perf.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* name, value of the side: the columns that are there out of place and in place */
#define SIDE_LIST(X)                    \
	X("time_us", side->time * 1e6)  \
	X("algbw_GBps", side->algbw)    \
	X("busbw_GBps", side->busbw)

struct output {
	const struct format *format;
	Text text;			/* of JSON */
	JsonWriter json;
	char schedule[256];		/* the last one that was named */
};

struct format {
	void (*begin)(struct output *o, const struct perf *p);
	void (*row)(struct output *o, const struct perf *p, const struct row *row);
	void (*end)(struct output *o, const struct perf *p);
};

static const char *const place[] = { "out_of_place", "in_place" };

static const char *
op_name(const struct perf *p)
{
	return p->op ? p->op->name : "none";
}

/* The schedule that a row had. */
static const char *
schedule(const struct perf *p, const struct row *row)
{
	return p->job ? row->choice.text : p->path;
}

static const char *
backend(const struct perf *p)
{
	return !p->job ? p->info.backend : p->opt.backend ? p->opt.backend : "host";
}

static double
mean_busbw(const struct perf *p)
{
	return p->n_rows ? p->busbw_sum / p->n_rows : 0;
}

/* ---- text ---- */

static void
put_name(const char *before, const char *name, const char *after)
{
	fputs(before, stdout);
	print_name(stdout, name);
	fputs(after, stdout);
}

static void
put_of_schedule(const struct perf *p)
{
	const blinkScheduleInfo_t *i = &p->info;
	put_name("# schedule     ", p->path, "\n");
	put_name("#              ", i->digest, "\n");
	printf("# collective   %s over %d ranks", i->collectiveName, i->nRanks);
	if (i->root >= 0)
		printf(", root %d", i->root);
	if (p->opt.gpus)
		put_name(", of GPUs ", p->opt.gpus, "");
	put_name("\n# algorithm    ", i->algorithm, "");
	printf(", %d tree%s", i->nTrees, i->nTrees == 1 ? "" : "s");
	put_name(", for ", i->topology, "\n");
	put_name("# backend      ", i->backend, "");
	printf("%s\n",
	    strcmp(i->backend, "host") == 0 ? " (emulated: times are of memory copies on this machine)" : "");
}

static void
put_of_job(const struct perf *p)
{
	const blinkScheduleInfo_t *i = &p->info;
	printf("# job          %d ranks, %s\n", i->nRanks,
	    p->opt.threads_as_ranks ? "threads of one process" : "each a process");
	if (p->opt.path)
		put_name("# schedules    ", p->opt.path, "\n");
	printf("# collective   %s over %d ranks", i->collectiveName, i->nRanks);
	if (i->root >= 0)
		printf(", root %d", i->root);
	if (p->opt.gpus)
		put_name(", of GPUs ", p->opt.gpus, "");
	put_name("\n# backend      ", backend(p), "");
	if (p->device_name)
		put_name(", rank 0 on ", p->device_name, "");
	printf("\n");
}

static void
put_titles(void)
{
	printf("#%56s%22s%37s\n", "", "out-of-place", "in-place");
	printf("#%11s  %12s  %8s  %6s  %6s  %9s  %7s  %7s  %5s  %9s  %7s  %7s  %5s\n", "size", "count", "type", "redop",
	    "root", "time", "algbw", "busbw", "#wrong", "time", "algbw", "busbw", "#wrong");
	printf("#%11s  %12s  %8s  %6s  %6s  %9s  %7s  %7s  %5s  %9s  %7s  %7s  %5s\n", "(B)", "(elements)", "", "", "",
	    "(us)", "(GB/s)", "(GB/s)", "", "(us)", "(GB/s)", "(GB/s)", "");
}

static void
begin_text(struct output *o, const struct perf *p)
{
	(void)o;
	printf("# blink-perf   %s\n", blinkVersion());
	if (p->job)
		put_of_job(p);
	else
		put_of_schedule(p);
	if (p->opt.miad)
		printf("# chunk        searched for each size, out of place: doubled from 16 KiB on, then lowered "
		       "(MIAD)\n");
	else if (p->opt.chunk)
		printf("# chunk        %" PRId64 " bytes\n", p->opt.chunk);
	else if (!p->job)
		printf("# chunk        by segment: a sixteenth, 64 KiB to 4 MiB\n");
	printf("# iterations   %" PRId64 " after %" PRId64 " of warm-up, check %s\n", p->opt.iters, p->opt.warmup,
	    p->opt.check ? "on" : "off");
	if (p->opt.graph)
		printf("# graph        of %" PRId64 " calls, replayed in each iteration\n", p->opt.graph);
	printf("#\n");
	put_titles();
}

static void
put_side(const struct side *side)
{
	printf("  %9.2f  %7.2f  %7.2f", side->time * 1e6, side->algbw, side->busbw);
	if (side->n_wrong < 0)
		printf("    N/A");
	else
		printf("  %5" PRId64, side->n_wrong);
}

static void
row_text(struct output *o, const struct perf *p, const struct row *row)
{
	if (p->job && strcmp(o->schedule, row->choice.text) != 0) {
		put_name("# schedule     ", row->choice.text, "\n");
		snprintf(o->schedule, sizeof o->schedule, "%s", row->choice.text);
	}
	printf("%12" PRId64 "  %12zu  %8s  %6s  %6d", row->bytes, p->count, p->type->name, op_name(p), p->info.root);
	put_side(&row->side[0]);
	put_side(&row->side[1]);
	printf("\n");
	fflush(stdout);
}

static void
end_text(struct output *o, const struct perf *p)
{
	(void)o;
	if (p->opt.check)
		printf("# Out of bounds values : %" PRId64 " %s\n", p->n_wrong, p->n_wrong ? "FAILED" : "OK");
	printf("# Avg bus bandwidth    : %g\n", mean_busbw(p));
}

void
output_note(const struct perf *p, const char *format, ...)
{
	va_list args;
	if (!p->out || p->opt.format != FORMAT_TEXT)
		return;
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
}

/* ---- CSV ---- */

static void
begin_csv(struct output *o, const struct perf *p)
{
	(void)o;
	(void)p;
	printf("size_B,count_elements,type,redop,root");
	for (int s = 0; s < 2; s++) {
#define X(name, value) printf(",%s_%s", place[s], name);
		SIDE_LIST(X)
#undef X
		printf(",%s_wrong", place[s]);
	}
	printf(",schedule\n");
}

static void
put_quoted(const char *text)
{
	char line[1024];
	snprintf(line, sizeof line, "%s", text);
	make_printable(line);
	putchar('"');
	for (const char *c = line; *c; c++)
		printf(*c == '"' ? "\"\"" : "%c", *c);
	putchar('"');
}

static void
row_csv(struct output *o, const struct perf *p, const struct row *row)
{
	(void)o;
	printf("%" PRId64 ",%zu,%s,%s,%d", row->bytes, p->count, p->type->name, op_name(p), p->info.root);
	for (int s = 0; s < 2; s++) {
		const struct side *side = &row->side[s];
#define X(name, value) printf(",%.4f", value);
		SIDE_LIST(X)
#undef X
		if (side->n_wrong < 0)
			printf(",");
		else
			printf(",%" PRId64, side->n_wrong);
	}
	putchar(',');
	put_quoted(schedule(p, row));
	putchar('\n');
	fflush(stdout);
}

static void
end_csv(struct output *o, const struct perf *p)
{
	(void)o;
	(void)p;
}

/* ---- JSON ---- */

static void
begin_json(struct output *o, const struct perf *p)
{
	char machine[256] = "";
	gethostname(machine, sizeof machine - 1);
	JsonWriter *w = &o->json;
	*w = (JsonWriter){ .out = &o->text };
	json_object(w, NULL, JSON_BLOCK);
	json_string(w, "program", "blink-perf");
	json_string(w, "version", blinkVersion());
	json_string(w, "machine", machine);
	json_string(w, "backend", backend(p));
	json_string(w, "device", p->device_name);
	json_string(w, "ranks_as", !p->job ? NULL : p->opt.threads_as_ranks ? "threads" : "processes");
	json_int(w, "ranks", p->info.nRanks);
	json_string(w, "collective", p->info.collectiveName);
	json_rank(w, "root", p->info.root);
	json_string(w, "gpus", p->opt.gpus);
	json_string(w, "schedules", p->opt.path);
	json_int64(w, "iterations", p->opt.iters);
	json_int64(w, "warmup_iterations", p->opt.warmup);
	json_int64(w, "graph_calls", p->opt.graph);
	json_array(w, "rows", JSON_BLOCK);
}

static void
json_side(JsonWriter *w, const char *name, const struct side *side)
{
	json_object(w, name, JSON_LINE);
#define X(column, value) json_number(w, column, value);
	SIDE_LIST(X)
#undef X
	if (side->n_wrong < 0)
		json_null(w, "wrong");
	else
		json_int64(w, "wrong", side->n_wrong);
	json_end(w);
}

static void
row_json(struct output *o, const struct perf *p, const struct row *row)
{
	JsonWriter *w = &o->json;
	json_object(w, NULL, JSON_LINE);
	json_int64(w, "size_B", row->bytes);
	json_int64(w, "count_elements", (int64_t)p->count);
	json_string(w, "type", p->type->name);
	json_string(w, "redop", op_name(p));
	json_int(w, "root", p->info.root);
	for (int s = 0; s < 2; s++)
		json_side(w, place[s], &row->side[s]);
	json_string(w, "schedule", schedule(p, row));
	json_end(w);
}

static void
end_json(struct output *o, const struct perf *p)
{
	JsonWriter *w = &o->json;
	json_end(w);
	if (p->opt.check)
		json_int64(w, "wrong", p->n_wrong);
	else
		json_null(w, "wrong");
	json_number(w, "mean_busbw_GBps", mean_busbw(p));
	json_end(w);
	if (!o->text.failed)
		printf("%s\n", o->text.data);
}

/* ---- any ---- */

static const struct format formats[N_FORMATS] = {
	[FORMAT_TEXT] = { begin_text, row_text, end_text },
	[FORMAT_CSV] = { begin_csv, row_csv, end_csv },
	[FORMAT_JSON] = { begin_json, row_json, end_json },
};

struct output *
output_begin(const struct perf *p)
{
	struct output *o = calloc(1, sizeof *o);
	if (!o) {
		complain(blinkOutOfMemory, "out of memory");
		return NULL;
	}
	o->format = &formats[p->opt.format];
	o->format->begin(o, p);
	fflush(stdout);
	return o;
}

void
output_row(struct output *o, const struct perf *p, const struct row *row)
{
	o->format->row(o, p, row);
}

int
output_end(struct output *o, const struct perf *p)
{
	o->format->end(o, p);
	return o->text.failed ? complain(blinkOutOfMemory, "out of memory") : 0;
}

void
output_free(struct output *o)
{
	if (!o)
		return;
	text_free(&o->text);
	free(o);
}
