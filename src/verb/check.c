#include "base/file.h"
#include "report.h"
#include "verb/verb.h"

#include <stdio.h>

static Status
check_text(Ctx *ctx, const Options *opt, const Sizes *sizes, const char *label, const Text *in)
{
	Schedule *sched;
	TRY(sched_read(ctx, label, in->data, in->size, &sched));
	TRY(sched_verify(ctx, label, sched));
	if (opt->value[OPT_QUIET])
		return OK;
	printf("%s: right\n", label);
	return report_summary(ctx, stdout, sizes, sched);
}

static Status
check_one(Ctx *ctx, const Options *opt, const Sizes *sizes, const char *path)
{
	Text in = { 0 };
	TRY(file_read(ctx, path, &in));
	Status status = check_text(ctx, opt, sizes, path, &in);
	text_free(&in);
	return status;
}

/* Every file, whatever is wrong with others; the status of the first that is wrong. */
Status
verb_check(Ctx *ctx, const Options *opt)
{
	Status first = OK;
	Sizes sizes;
	TRY(request_sizes(ctx, opt->value[OPT_SIZE], &sizes));
	if (opt->n_files < 1)
		return fail(ctx, USAGE, "no schedule file: want at least one");
	for (int i = 0; i < opt->n_files; i++) {
		Ctx own;
		ctx_init(&own);
		Status status = check_one(&own, opt, &sizes, opt->file[i]);
		ctx_free(&own);
		if (status == OK)
			continue;
		if (first != OK)
			fprintf(stderr, "blinkc: %s\n", ctx->error.text);
		first = first == OK ? status : first;
		ctx->error = own.error;
		ctx->error.status = first;
	}
	return first;
}
