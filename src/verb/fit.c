/* blinkc fit: parameters of an executor, from times that schedules took. */
#include "base/frac.h"
#include "base/file.h"
#include "base/json_write.h"
#include "format/format.h"
#include "schedule/schedule.h"
#include "simulate/fit.h"
#include "verb/progress.h"
#include "verb/simulate/simulation.h"
#include "verb/verb.h"

#include <string.h>

#define MEASURED_MOST INT64_C(1000000000000000)		/* ns: 11 days */

/* A schedule that lines name. */
struct fit_file {
	const char *path;
	const SimPlan *plan;
};

struct fit {
	Ctx *ctx;
	const char *label;
	int n, n_files;
	SimMeasured *measured;
	struct fit_file *file;		/* in the order of the lines */
};

static Status
plan_of(struct fit *f, const char *path, size_t length, const SimPlan **out)
{
	Ctx *ctx = f->ctx;
	Text in = { 0 };
	Schedule *sched;
	SimPlan *plan;
	char *name;
	for (int i = 0; i < f->n_files; i++) {
		if (strlen(f->file[i].path) == length && memcmp(f->file[i].path, path, length) == 0) {
			*out = f->file[i].plan;
			return OK;
		}
	}
	TRY(NEW(ctx, name, length + 1));
	memcpy(name, path, length);
	TRY(file_read(ctx, name, &in));
	Status status = sched_read(ctx, name, in.data ? in.data : "", in.size, &sched);
	text_free(&in);
	TRY(status);
	TRY(sched_verify(ctx, name, sched));
	TRY(sim_prepare(ctx, sched, &plan));
	f->file[f->n_files++] = (struct fit_file){ name, plan };
	*out = plan;
	return OK;
}

static const char *
last_comma(const char *from, const char *to)
{
	while (to > from && to[-1] != ',')
		to--;
	return to > from ? to - 1 : NULL;
}

/* schedule,bytes,us: names of files may have commas. */
static Status
read_line(struct fit *f, int number, const char *line, const char *end)
{
	const char *us = last_comma(line, end), *bytes = us ? last_comma(line, us) : NULL;
	SimMeasured *out = &f->measured[f->n];
	int64_t ns;
	if (!bytes || bytes == line)
		return fail(f->ctx, BAD_INPUT, "%.200s:%d: want schedule,bytes,us, as ring.json,65536,81.5", f->label,
		    number);
	if (!decimal_parse(bytes + 1, (size_t)(us - bytes - 1), 1, &out->m) || out->m < 1 || out->m > LIMIT_MESSAGE)
		return fail(f->ctx, BAD_INPUT, "%.200s:%d: bytes: want a number from 1 to 2^53", f->label, number);
	if (!decimal_parse(us + 1, (size_t)(end - us - 1), NS_PER_US, &ns) || ns < 1 || ns > MEASURED_MOST)
		return fail(f->ctx, BAD_INPUT, "%.200s:%d: us: want a number above 0, at most 1e12", f->label, number);
	out->time = ns * PS_PER_NS;
	out->line = number;
	TRY(plan_of(f, line, (size_t)(bytes - line), &out->plan));
	f->n++;
	return OK;
}

static Status
read_lines(struct fit *f, const Text *in)
{
	const char *text = in->data, *end = text + in->size;
	int lines = 1, number = 0;
	for (const char *at = text; at < end; at++)
		lines += *at == '\n';
	if (lines > LIMIT_MEASUREMENTS)
		return fail(f->ctx, LIMIT, "%.200s: %d lines: want at most %d", f->label, lines, LIMIT_MEASUREMENTS);
	TRY(NEW(f->ctx, f->measured, lines));
	TRY(NEW(f->ctx, f->file, lines));
	while (text < end) {
		const char *feed = memchr(text, '\n', (size_t)(end - text)), *stop = feed ? feed : end;
		number++;
		if (stop > text && *text != '#')
			TRY(read_line(f, number, text, stop));
		text = feed ? feed + 1 : end;
	}
	return f->n > 0 ? OK
	    : fail(f->ctx, BAD_INPUT, "%.200s: no measurement: want lines of schedule,bytes,us", f->label);
}

static Status
write_parameters(Ctx *ctx, const char *path, Executor executor, const SimParameters *p)
{
	Text out = { 0 };
	JsonWriter w = { .out = &out };
	json_object(&w, NULL, JSON_BLOCK);
	simulation_parameters(&w, executor_names.name[executor], p);
	json_end(&w);
	text_put(&out, "\n");
	Status status = out.failed ? fail_memory(ctx) : file_write(ctx, path, &out);
	text_free(&out);
	return status;
}

Status
verb_fit(Ctx *ctx, const Options *opt)
{
	struct fit f = { .ctx = ctx };
	Executor executor;
	Parameters given;
	SimParameters p;
	SimFit fit;
	Text in = { 0 };
	TRY(request_executor(ctx, opt->value[OPT_EXECUTOR] ? opt->value[OPT_EXECUTOR] : "host", &executor));
	if (opt->n_files != 1)
		return fail(ctx, USAGE, "%d files: want one", opt->n_files);
	TRY(request_parameters(ctx, opt->value[OPT_PARAMETERS], &given));
	sim_parameters_for(executor, NULL, &given, &p);
	f.label = opt->file[0];
	TRY(file_read(ctx, f.label, &in));
	Status status = in.size > 0 ? read_lines(&f, &in) : fail(ctx, BAD_INPUT, "%.200s: empty", f.label);
	text_free(&in);
	TRY(status);
	TRY(sim_fit(ctx, f.measured, f.n, &p, &fit));
	progress_hide();
	TRY(write_parameters(ctx, output_path(opt), executor, &p));
	if (!opt->value[OPT_QUIET])
		fprintf(stderr, "fit         %d measurements, %.1f %% of them within 15 %%, mean deviation %.1f %%, "
		    "worst %.3g times in line %d\n", f.n, 100 * fit.within, 100 * fit.off, fit.ratio,
		    f.measured[fit.worst].line);
	return OK;
}
