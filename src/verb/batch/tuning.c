/* blinkc tune: what it is asked. */
#include "base/limits.h"
#include "verb/batch/batch.h"
#include "verb/simulate/simulation.h"
#include "verb/verb.h"

#include <string.h>

#define DEFAULT_SIZES "1K-1G"

/* Times jump where messages get too long for packets: both sides of that are looked at. */
static void
add_end_of_packets(int64_t most, Sizes *sizes)
{
	int at = 0, twice;
	while (at < sizes->n && sizes->m[at] < most)
		at++;
	twice = at < sizes->n && sizes->m[at] == most ? 1 : 2;
	if (at == 0 || at == sizes->n || sizes->n + twice > SIZES_MAX)
		return;
	memmove(&sizes->m[at + 2], &sizes->m[at + 2 - twice], (size_t)(sizes->n - at - 2 + twice) * sizeof *sizes->m);
	sizes->m[at] = most;
	sizes->m[at + 1] = most + 1;
	sizes->n += twice;
}

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
	TRY(request_executor(ctx, opt->value[OPT_EXECUTOR], &out->executor));
	TRY(request_parameters(ctx, opt->value[OPT_PARAMETERS], out->executor, &out->p));
	add_end_of_packets(out->p.packet_most, &out->sizes);
	return OK;
}

Status
verb_tune(Ctx *ctx, const Options *opt)
{
	Tuning tuning;
	TRY(parse_tuning(ctx, opt, &tuning));
	return batch_run(ctx, opt, &tuning);
}
