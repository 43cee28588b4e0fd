/* blinkc tune: what it is asked. */
#include "base/limits.h"
#include "format/format.h"
#include "verb/batch/batch.h"
#include "verb/formats.h"
#include "verb/simulate/simulation.h"
#include "verb/verb.h"

#include <string.h>

#define DEFAULT_SIZES "1K-1G"

static Status
parse_tuning(Ctx *ctx, const Options *opt, Tuning *out)
{
	const char *text = opt->value[OPT_SIZE] ? opt->value[OPT_SIZE] : DEFAULT_SIZES;
	TRY(request_sizes(ctx, text, &out->sizes));
	for (int i = 1; i < out->sizes.n; i++)
		if (out->sizes.m[i] <= out->sizes.m[i - 1])
			return fail(ctx, USAGE, "--size: %.80s: want ascending sizes", text);
	if (out->sizes.m[out->sizes.n - 1] > LIMIT_MESSAGE)
		return fail(ctx, USAGE, "--size: %.80s: want sizes up to 2^53, as an index has them", text);
	if (opt->value[OPT_FORMAT]) {
		const char *format;
		TRY(request_format(ctx, opt, TUNE, &format));
		out->plans = strcmp(format, SCHEDULE_MSCCLPP) == 0;
		out->rules = strcmp(format, FORMAT_OMPI_RULES) == 0;
	}
	if (opt->value[OPT_IN_PLACE] && !out->plans)
		return fail(ctx, USAGE, "--in-place: want --format mscclpp with it");
	out->in_place = opt->value[OPT_IN_PLACE];
	TRY(request_executor(ctx, opt->value[OPT_EXECUTOR], &out->executor));
	if (out->rules && !opt->value[OPT_EXECUTOR])
		out->executor = EXECUTOR_HOST;
	return request_parameters(ctx, opt->value[OPT_PARAMETERS], &out->given);
}

Status
verb_tune(Ctx *ctx, const Options *opt)
{
	Tuning tuning = { .plans = false };
	TRY(parse_tuning(ctx, opt, &tuning));
	return tuning.rules ? rules_run(ctx, opt, &tuning) : batch_run(ctx, opt, &tuning);
}
