#include "perf/options.h"
#include "base/names.h"
#include "base/printable.h"
#include "perf/completion.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Thread_local char *complaint;

static const struct {
	int letter;
	const char *name, *argument;
	enum scope scope;
	const char *text;
} all[] = {
#define X(letter, name, argument, scope, text) { letter, name, argument, scope, text },
	OPTION_LIST(X)
#undef X
};
enum { N_OPTIONS = sizeof all / sizeof *all };

int
complain(int code, const char *format, ...)
{
	char line[COMPLAINT];
	va_list args;
	va_start(args, format);
	vsnprintf(line, sizeof line, format, args);
	va_end(args);
	make_printable(line);
	if (!complaint)
		fprintf(stderr, "blink-perf: %s\n", line);
	else if (!*complaint)
		snprintf(complaint, COMPLAINT, "%s", line);
	return code;
}

static int
help(void)
{
	printf("usage: blink-perf [options] schedule.json|program.so|index\n"
	       "       blink-perf --ranks N [options] [schedule.json|index]\n\n");
	for (int i = 0; i < N_OPTIONS; i++) {
		bool has = all[i].letter < 256;
		printf("  %c%c%c --%-17s%-7s%s\n", has ? '-' : ' ', has ? all[i].letter : ' ', has ? ',' : ' ',
		    all[i].name, all[i].argument, all[i].text);
	}
	return 0;
}

/* Digits and, with `bytes`, optionally one of K M G. */
static bool
parse(const char *text, bool bytes, int64_t lo, int64_t hi, int64_t *out)
{
	char *end;
	int shift = 0;
	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	long long n = strtoll(text, &end, 10);
	if (bytes && *end)
		shift = *end == 'K' || *end == 'k' ? 10 : *end == 'M' || *end == 'm' ? 20 : *end == 'G'
		    || *end == 'g' ? 30 : 0;
	if (errno || end[shift > 0] || n > hi >> shift || n << shift < lo)
		return false;
	*out = n << shift;
	return true;
}

static bool
known_type(const char *name)
{
	for (int t = 0; t < N_TYPES; t++)
		if (strcmp(name, types[t].name) == 0 || (types[t].also && strcmp(name, types[t].also) == 0))
			return true;
	return strcmp(name, "all") == 0;
}

static bool
find_collective(const char *name, int *out)
{
	return names_find_spelled((Names){ blinkCollAlltoAll + 1, collectives }, name, out);
}

static bool
known_op(const char *name)
{
	for (int o = 0; o < N_OPS; o++)
		if (strcmp(name, ops[o].name) == 0)
			return true;
	return strcmp(name, "all") == 0;
}

static int
bad_value(int letter, const char *value)
{
	const Names names = { blinkCollAlltoAll + 1, collectives };
	if (letter == OPT_COLLECTIVE)
		return complain(USAGE, "--collective: %.40s: want %s%s", value, names_wanted(names).text,
		    names_hint(names, value).text);
	int i = 0;
	while (all[i].letter != letter)
		i++;
	return complain(USAGE, "--%s: %s: want %s: %s", all[i].name, value, all[i].argument, all[i].text);
}

static bool
find_name(const char *const *names, int n, const char *name, int *out)
{
	return names_find((Names){ n, names }, name, out);
}

static int
take_option(struct options *opt, int letter, const char *value)
{
	const int64_t most = INT64_C(1) << 40;
	bool good = true;
	int backend;
	switch (letter) {
	case 'b':
		good = parse(value, true, 0, most, &opt->min);
		break;
	case 'e':
		good = parse(value, true, 0, most, &opt->max);
		break;
	case 'i':
		good = parse(value, true, 1, most, &opt->step);
		break;
	case 'f':
		good = parse(value, false, 2, 1024, &opt->factor);
		break;
	case 'n':
		good = parse(value, false, 1, 1000000000, &opt->iters);
		break;
	case 'w':
		good = parse(value, false, 0, 1000000000, &opt->warmup);
		break;
	case 'c':
		good = parse(value, false, 0, 1, &opt->check);
		break;
	case 'd':
		opt->type = value;
		good = known_type(value);
		break;
	case 'o':
		opt->op = value;
		good = known_op(value);
		break;
	case 'C':
		good = parse(value, true, 0, most, &opt->chunk);
		break;
	case 't':
		good = parse(value, false, 0, 256, &opt->threads);
		break;
	case 'g':
		opt->gpus = value;
		break;
	case 'r':
		opt->root = value;
		break;
	case OPT_COLLECTIVE:
		good = find_collective(value, &opt->collective);
		break;
	case OPT_WITHOUT:
		opt->without = value;
		break;
	case OPT_MIAD:
		opt->miad = true;
		break;
	case OPT_DATA_ONLY:
		opt->data_only = true;
		break;
	case OPT_RANKS:
		good = parse(value, false, 1, 1024, &opt->ranks);
		break;
	case OPT_THREADS_AS_RANKS:
		opt->threads_as_ranks = true;
		break;
	case OPT_BACKEND:
		opt->backend = value;
		good = find_name(backend_names, 2, value, &backend);
		break;
	case OPT_GRAPH:
		good = parse(value, false, 1, 10000, &opt->graph);
		break;
	case OPT_FORMAT:
		good = find_name(format_names, N_FORMATS, value, &opt->format);
		break;
	case OPT_COMPLETION:
		if (print_completion(value))
			return 0;
		good = false;
		break;
	case 'h':
		return help();
	case 'V':
		printf("blink-perf %s\n", blinkVersion());
		return 0;
	}
	return good ? MORE : bad_value(letter, value);
}

/* "--gpu-list=0,1" */
static int
bad_option(const char *word)
{
	const char *name[N_OPTIONS];
	char text[40];
	for (int i = 0; i < N_OPTIONS; i++)
		name[i] = all[i].name;
	snprintf(text, sizeof text, "%.*s", (int)strcspn(word, "="), word);
	const char *like = strncmp(text, "--", 2) == 0
	    ? names_like((Names){ N_OPTIONS, name }, text + 2) : NULL;
	if (like)
		return complain(USAGE, "%s: unknown option; did you mean --%s?", word, like);
	return complain(USAGE, "%s: unknown option; see blink-perf --help", word);
}

/* given: whether each option, in the order of the list. */
static int
check_scopes(const struct options *opt, const bool *given)
{
	for (int i = 0; i < N_OPTIONS; i++) {
		if (given[i] && all[i].scope == JOB && !opt->ranks)
			return complain(USAGE, "--%s: is of a job: want --ranks, too", all[i].name);
		if (given[i] && all[i].scope == ONE && opt->ranks)
			return complain(USAGE, "--%s: a job has no such option: want it without --ranks", all[i].name);
	}
	return MORE;
}

static int
check_job(struct options *opt)
{
	const char *named = getenv("BLINK_BACKEND");
	if (!opt->backend && named && *named)
		opt->backend = named;
	if (opt->graph && (!opt->backend || strcmp(opt->backend, "cuda") != 0))
		return complain(USAGE, "--graph: backend %s: want cuda, which has graphs",
		    opt->backend ? opt->backend : "host");
	if (opt->gpus && !opt->path)
		return complain(USAGE, "--gpus: of no machine: want the index that has it, too");
	return MORE;
}

static int
check_options(struct options *opt, const bool *given, int n_files)
{
	int code = check_scopes(opt, given);
	if (code != MORE)
		return code;
	if (opt->ranks ? n_files > 1 : n_files != 1)
		return complain(USAGE, "%d files: want one, a schedule, %san index; see blink-perf --help", n_files,
		    opt->ranks ? "or none, or " : "a shared object or ");
	if (opt->max < 0)
		opt->max = opt->min > 32 << 20 ? opt->min : 32 << 20;
	if (opt->max < opt->min)
		return complain(USAGE, "--maxbytes: %" PRId64 ": less than --minbytes %" PRId64, opt->max, opt->min);
	return opt->ranks ? check_job(opt) : MORE;
}

int
take_options(struct options *opt, int argc, char **argv)
{
	struct option longs[N_OPTIONS + 1] = { 0 };
	bool given[N_OPTIONS] = { false };
	int letter;
	opterr = 0;
	for (int i = 0; i < N_OPTIONS; i++)
		longs[i] = (struct option){ all[i].name, *all[i].argument ? required_argument : no_argument, NULL,
			all[i].letter };
	*opt = (struct options){ .min = 32 << 20, .max = -1, .step = 1 << 20, .iters = 20, .warmup = 5, .check = 1,
		.type = "float", .op = "sum", .collective = -1 };
	while ((letter = getopt_long(argc, argv, ":b:e:i:f:n:w:c:d:o:C:t:g:r:hV", longs, NULL)) != -1) {
		if (letter == ':')
			return complain(USAGE, "%s: needs a value; see blink-perf --help", argv[optind - 1]);
		if (letter == '?')
			return bad_option(argv[optind - 1]);
		int code = take_option(opt, letter, optarg);
		if (code != MORE)
			return code;
		for (int i = 0; i < N_OPTIONS; i++)
			given[i] |= all[i].letter == letter;
	}
	opt->path = optind < argc ? argv[optind] : NULL;
	return check_options(opt, given, argc - optind);
}
