#include "compile.h"
#include "format/file_kind.h"
#include "schedule/schedule.h"
#include "verb/formats.h"
#include "verb/request.h"
#include "verb/verb.h"

#include <string.h>

/* From a list of all trees to the compact form, or the other way. */
static Status
convert_form(Ctx *ctx, const Options *opt, const char *format, const char *label, const Text *in)
{
	Schedule *sched;
	Text out = { 0 };
	bool compact = strcmp(format, SCHEDULE_COMPACT) == 0;
	TRY(sched_read_verified(ctx, label, in->data, in->size, &sched));
	if (compact && sched_is_list(sched))
		TRY(compile_compact(ctx, label, sched, &sched));
	else if (!compact && !sched_is_list(sched))
		TRY(sched_expand(ctx, label, sched, &sched));
	sched_write_json(sched, &out);
	return output_text(ctx, opt, OK, &out);
}

/* A schedule of any origin: it is verified first. */
static Status
convert_schedule(Ctx *ctx, const Options *opt, const char *format, const char *label, const Text *in)
{
	Schedule *sched;
	Text note = { 0 };
	if (!schedule_format(format)->write)
		return convert_form(ctx, opt, format, label, in);
	TRY(sched_read(ctx, label, in->data, in->size, &sched));
	TRY(sched_verify(ctx, label, sched));
	Status status = opt->value[OPT_QUIET] ? OK : format_note(ctx, opt, format, sched, &note);
	if (status == OK)
		status = output_schedule(ctx, opt, format, sched, in);
	if (status == OK && note.data)
		fputs(note.data, stderr);
	text_free(&note);
	return status;
}

/* Topologies, schedules and indexes may all be JSON. */
static Status
convert_by_content(Ctx *ctx, const Options *opt, const char *format, const char *label, const Text *in)
{
	FileKind kind = file_kind(in->data ? in->data : "", in->size);
	if (!topology_format(format) || (schedule_format(format) && kind == FILE_SCHEDULE))
		return convert_schedule(ctx, opt, format, label, in);
	if (kind == FILE_INDEX)
		return fail(ctx, BAD_INPUT, "%s: %s: --format %s: want --format %s", label, file_kind_name(kind),
		    format, FORMAT_LOOKUP);
	return output_topology(ctx, opt, format, label, in, output_path(opt));
}

/* An index as its lookup file. */
static Status
convert_index(Ctx *ctx, const Options *opt, const char *label, const Text *in)
{
	Index *index;
	Text out = { 0 };
	TRY(index_read(ctx, label, in->data ? in->data : "", in->size, &index));
	Status status = lookup_write(ctx, index, in->data, in->size, &out);
	return output_text(ctx, opt, status, &out);
}

Status
verb_convert(Ctx *ctx, const Options *opt)
{
	const char *format, *label;
	Text in = { 0 };
	TRY(request_format(ctx, opt, CONVERT, &format));
	Status status = input_topology(ctx, opt, &label, &in);
	if (status == OK && strcmp(format, FORMAT_LOOKUP) == 0)
		status = convert_index(ctx, opt, label, &in);
	else if (status == OK)
		status = convert_by_content(ctx, opt, format, label, &in);
	text_free(&in);
	return status;
}
