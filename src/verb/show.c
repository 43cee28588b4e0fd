/* A schedule as a person wants to see it: text, a drawing, or input of Graphviz. */
#include "base/file.h"
#include "emit/draw.h"
#include "report.h"
#include "verb/verb.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Names of files become parts of lines. */
static Status
clean_names(Ctx *ctx, const Schedule *sched, Schedule **out)
{
	Topology *topo;
	TRY(NEW(ctx, *out, 1));
	TRY(NEW(ctx, topo, 1));
	**out = *sched;
	*topo = *sched->topo;
	TRY(explain_line(ctx, topo->name, &topo->name));
	(*out)->topo = topo;
	return OK;
}

static Status
put_summary(Ctx *ctx, const Schedule *sched, Text *out)
{
	static const Sizes none;
	char *data = NULL;
	size_t size = 0;
	FILE *to = open_memstream(&data, &size);
	if (!to)
		return fail_memory(ctx);
	Status status = report_summary(ctx, to, &none, sched);
	if (fclose(to) != 0 && status == OK)
		status = fail_memory(ctx);
	if (status == OK)
		text_add(out, data, size);
	free(data);
	return status;
}

static Status
put_text(Ctx *ctx, const Explained *e, const ShowRequest *ask, Text *out)
{
	TRY(put_summary(ctx, e->sched, out));
	TRY(show_trees(ctx, e, ask, out));
	TRY(show_links(ctx, e, ask, out));
	return show_proof(ctx, e, out);
}

static Status
show_schedule(Ctx *ctx, const char *format, const char *label, const Schedule *sched, const ShowRequest *ask, Text *out)
{
	Explained e;
	Schedule *clean;
	TRY(clean_names(ctx, sched, &clean));
	TRY(explain(ctx, label, clean, &e));
	if (strcmp(format, "svg") == 0)
		return emit_svg(ctx, &e, ask, out);
	if (strcmp(format, "dot") == 0)
		return emit_dot(ctx, &e, ask, out);
	return put_text(ctx, &e, ask, out);
}

static Status
show_parse(Ctx *ctx, const Options *opt, const char *format, ShowRequest *ask)
{
	const char *layout = opt->value[OPT_LAYOUT];
	*ask = (ShowRequest){ .trees = opt->value[OPT_TREE] };
	if (opt->value[OPT_LINKS])
		TRY(request_links(ctx, opt->value[OPT_LINKS], &ask->classes));
	if (opt->value[OPT_LINKS] && strcmp(format, "text") != 0)
		return fail(ctx, USAGE, "--links: want it with --format text only");
	if (layout && strcmp(format, "svg") != 0)
		return fail(ctx, USAGE, "--layout: want it with --format svg only");
	if (layout && strcmp(layout, "own") != 0) {
		if (strcmp(layout, "dot") != 0 && strcmp(layout, "neato") != 0)
			return fail(ctx, USAGE, "--layout: %.40s: want own, dot or neato", layout);
		ask->layout = layout;
	}
	return OK;
}

static Status
show_text(Ctx *ctx, const char *format, const char *label, const Text *in, const ShowRequest *ask, Text *out)
{
	Schedule *sched;
	TRY(sched_read(ctx, label, in->data, in->size, &sched));
	TRY(sched_verify(ctx, label, sched));
	return show_schedule(ctx, format, label, sched, ask, out);
}

Status
verb_show(Ctx *ctx, const Options *opt)
{
	static const char *const formats[] = { "text", "txt", "svg", "dot", NULL };
	const char *format;
	ShowRequest ask;
	Text in = { 0 }, out = { 0 };
	TRY(request_format(ctx, opt, formats, "text", &format));
	if (strcmp(format, "txt") == 0)
		format = "text";
	TRY(show_parse(ctx, opt, format, &ask));
	if (opt->n_files != 1)
		return fail(ctx, USAGE, "%d schedule files: want one", opt->n_files);
	Status status = file_read(ctx, opt->file[0], &in);
	if (status == OK)
		status = show_text(ctx, format, opt->file[0], &in, &ask, &out);
	if (status == OK)
		status = file_write(ctx, output_path(opt), &out);
	text_free(&in);
	text_free(&out);
	return status;
}
