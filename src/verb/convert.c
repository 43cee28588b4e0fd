#include "base/file.h"
#include "request.h"
#include "verb/verb.h"

#include <string.h>

/* A schedule, whoever made it, as source code: only once it is verified. */
static Status
convert_schedule(Ctx *ctx, const char *format, const char *label, const Text *in, const char *path)
{
	Schedule *sched;
	TRY(sched_read(ctx, label, in->data, in->size, &sched));
	TRY(sched_verify(ctx, label, sched));
	return output_schedule(ctx, format, sched, in, path);
}

Status
verb_convert(Ctx *ctx, const Options *opt)
{
	static const char *const formats[] = { "json", "xml", "canonical", "cu", NULL };
	const char *format, *label;
	Text in = { 0 };
	TRY(request_format(ctx, opt, formats, "json", &format));
	Status status = input_topology(ctx, opt, &label, &in);
	if (status == OK)
		status = strcmp(format, "cu") == 0 ? convert_schedule(ctx, format, label, &in, output_path(opt))
		    : output_topology(ctx, format, label, &in, output_path(opt));
	text_free(&in);
	return status;
}
