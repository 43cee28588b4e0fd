#include "base/file.h"
#include "format/format.h"
#include "schedule/schedule.h"
#include "verb/request.h"
#include "verb/verb.h"

/* A schedule of any origin: it is verified first. */
static Status
convert_schedule(Ctx *ctx, const Options *opt, const char *format, const char *label, const Text *in)
{
	Schedule *sched;
	Text note = { 0 };
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

Status
verb_convert(Ctx *ctx, const Options *opt)
{
	const char *format, *label;
	Text in = { 0 };
	TRY(request_format(ctx, opt, CONVERT, "json", &format));
	Status status = input_topology(ctx, opt, &label, &in);
	if (status == OK)
		status = topology_format(format) ? output_topology(ctx, opt, format, label, &in, output_path(opt))
		    : convert_schedule(ctx, opt, format, label, &in);
	text_free(&in);
	return status;
}
