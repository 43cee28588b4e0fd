/* Formats on the command line. */
#include "verb/formats.h"
#include "verb/request.h"

#include <string.h>

/* --server is for formats that can be for one, --chunks for those with a file for each rank, --in-place for plans. */
static Status
check_options_of(Ctx *ctx, const Options *opt, int verb, const char *name)
{
	const ScheduleFormat *row = verb == COMPILE || verb == CONVERT ? schedule_format(name) : NULL;
	if (opt->value[OPT_CHUNKS] && !(row && row->of_ranks))
		return fail(ctx, USAGE, "--chunks: --format %s: want chakra", name);
	if (verb == CONVERT && opt->value[OPT_SIZE] && !(row && row->of_ranks))
		return fail(ctx, USAGE, "--size: convert --format %s: want chakra", name);
	if (opt->value[OPT_IN_PLACE] && strncmp(name, SCHEDULE_MSCCLPP, strlen(SCHEDULE_MSCCLPP)) != 0)
		return fail(ctx, USAGE, "--in-place: --format %s: want mscclpp or mscclpp-packets", name);
	if (row && row->of_ranks && strcmp(opt->value[OPT_OUTPUT] ? opt->value[OPT_OUTPUT] : "-", "-") == 0)
		return fail(ctx, USAGE, "--format %s: want -o PREFIX, as it writes a file for each rank", name);
	return !opt->value[OPT_SERVER] || (row && row->of_a_server) ? OK
	    : fail(ctx, USAGE, "--server: --format %s: want nccl-graph", name);
}

Status
request_format(Ctx *ctx, const Options *opt, int verb, const char **out)
{
	FormatName list[FORMATS_MAX];
	const char *name = opt->value[OPT_FORMAT], *word[FORMATS_MAX], *otherwise;
	const char *dot = opt->value[OPT_OUTPUT] ? strrchr(opt->value[OPT_OUTPUT], '.') : NULL;
	const Names names = { formats_of(verb, list, &otherwise), word };
	if (!name)
		name = dot && !strchr(dot, '/') ? dot + 1 : otherwise;
	for (int i = 0; i < names.n; i++) {
		word[i] = *out = list[i].name;
		if (strcmp(name, list[i].name) == 0 || strcmp(name, list[i].suffix) == 0)
			return check_options_of(ctx, opt, verb, *out);
	}
	if (opt->value[OPT_FORMAT])
		return fail(ctx, USAGE, "--format: %.40s: want %s%s", name, names_wanted(names).text,
		    names_hint(names, name).text);
	return fail(ctx, USAGE, "-o: %.200s: no format ends in \".%.40s\": name one with --format: %s",
	    opt->value[OPT_OUTPUT], name, names_wanted(names).text);
}

Status
request_chunks(Ctx *ctx, const Options *opt, const char *format, FormatInput *in)
{
	enum { DEFAULT_CHUNKS = 16, MOST_CHUNKS = 1 << 20 };
	const ScheduleFormat *row = schedule_format(format);
	const char *text = opt->value[OPT_CHUNKS];
	int64_t chunks = DEFAULT_CHUNKS;
	Sizes sizes;
	TRY(request_sizes(ctx, opt->value[OPT_SIZE], &sizes));
	if (!row || !row->of_ranks)
		return OK;
	if (text && (!decimal_parse(text, strlen(text), 1, &chunks) || strspn(text, "0123456789") != strlen(text)
	    || chunks < 1 || chunks > MOST_CHUNKS))
		return fail(ctx, USAGE, "--chunks: %.40s: want 1 to %d", text, (int)MOST_CHUNKS);
	in->chunks = (int)chunks;
	in->bytes = sizes.n ? sizes.m[0] : INT64_C(64) << 20;
	return OK;
}

Status
request_from(Ctx *ctx, const Options *opt, const char **out)
{
	const char *text = opt->value[OPT_FROM], *name[FORMATS_MAX];
	const TopologyFormat *format = text ? topology_format(text) : NULL;
	const Names names = { formats_read(name), name };
	*out = text;
	return !text || (format && format->read) ? OK : fail(ctx, USAGE, "--from: %.40s: want one of %s", text,
	    names_text(names, ~0u, ", ", ", ").text);
}
