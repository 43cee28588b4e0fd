#include "verb/batch/batch.h"
#include "base/complete.h"
#include "format/format.h"
#include "plan/plan.h"
#include "simulate/simulate.h"
#include "verb/formats.h"
#include "verb/verb.h"

#include <string.h>

/* Without help, which is from option_help. */
static const CompleteOption options[] = {
#define X(name, text, letter, argument, verbs, help) { text, letter, argument, verbs, NULL },
	OPTION_LIST(X)
#undef X
};

static const CompleteVerb completed[] = {
#define X(bit, name, group, arguments, summary, ...) { VERB_TEXT(bit, name), summary, bit },
	VERB_LIST(X)
#undef X
};

#define FIRST(name, text, ...) text,
static const char *const shells[] = { SHELL_LIST(FIRST) NULL };
static const char *const collectives[] = { COLLECTIVE_LIST(FIRST) NULL };
static const char *const some_collectives[] = { COLLECTIVE_LIST(FIRST) "all", NULL };
static const char *const classes[] = { LINK_CLASS_LIST(FIRST) "all", NULL };
static const char *const packings[] = { PACKING_LIST(FIRST) NULL };
static const char *const hybrids[] = { HYBRID_LIST(FIRST) NULL };
static const char *const routes[] = { ROUTES_LIST(FIRST) NULL };
static const char *const roots[] = { ROOTS_LIST(FIRST) NULL };
static const char *const differences[] = { DIFFERENCE_LIST(FIRST) "any", NULL };
static const char *const executors[] = { EXECUTOR_LIST(FIRST) NULL };
#undef FIRST
static const char *const summaries[] = { "text", "json", NULL };
static const char *const chunks[] = { "auto", NULL };
static const char *const relays[] = { "rest", NULL };
static const char *const layouts[] = { "own", "dot", "neato", NULL };

static const CompleteValues values[] = {
	{ NULL, COMPLETION, false, shells },
	{ "collective", ~0u, false, collectives },
	{ "collectives", ~0u, true, some_collectives },
	{ "links", ~0u, true, classes },
	{ "packing", ~0u, false, packings },
	{ "hybrid", ~0u, false, hybrids },
	{ "routes", ~0u, false, routes },
	{ "roots", ~0u, false, roots },
	{ "relay", ~0u, true, relays },
	{ "executor", ~0u, false, executors },
	{ "chunk", ~0u, false, chunks },
	{ "layout", ~0u, false, layouts },
	{ "summary", ~0u, false, summaries },
	{ "fail-on", ~0u, true, differences },
};

enum { N_VALUES = sizeof values / sizeof *values, N_VERBS = sizeof completed / sizeof *completed };

static void
add_once(const char **names, int *n, const char *name)
{
	for (int i = 0; i < *n; i++)
		if (strcmp(names[i], name) == 0)
			return;
	names[(*n)++] = name;
}

/* The values of --algorithm, those that are other names for a row last. */
static Status
complete_algorithms(Ctx *ctx, CompleteValues *out)
{
	const char **names;
	int n = 0, n_aliases = 0;
	while (algorithm_alias(n_aliases))
		n_aliases++;
	TRY(NEW(ctx, names, algorithm_count() + n_aliases + 1));
	for (int i = 0; i < algorithm_count(); i++)
		add_once(names, &n, algorithm_row(i)->name);
	for (int i = 0; i < n_aliases; i++)
		add_once(names, &n, algorithm_alias(i));
	*out = (CompleteValues){ "algorithm", ~0u, false, names };
	return OK;
}

/* The values of --from. */
static Status
complete_from(Ctx *ctx, CompleteValues *out)
{
	const char **names;
	TRY(NEW(ctx, names, FORMATS_MAX));
	formats_read(names);
	*out = (CompleteValues){ "from", ~0u, false, names };
	return OK;
}

/* Topologies that come along, of verbs that take one. */
static Status
complete_names(Ctx *ctx, CompleteValues *out)
{
	Shipped *list;
	const char **names;
	int n, used = 0;
	TRY(shipped_list(ctx, &list, &n));
	TRY(NEW(ctx, names, n + 1));
	for (int i = 0; i < n; i++)
		if (topo_id_valid(list[i].name))
			names[used++] = list[i].name;
	*out = (CompleteValues){ NULL, NAMES_TOPOLOGY, true, names };
	return OK;
}

/* The values of --format, for each verb that has it. */
static Status
complete_formats(Ctx *ctx, CompleteValues *out, int *n)
{
	for (size_t v = 0; v < N_VERBS; v++) {
		FormatName list[FORMATS_MAX];
		const char **word, *otherwise;
		int n_formats = formats_of((int)completed[v].bit, list, &otherwise);
		TRY(NEW(ctx, word, FORMATS_MAX));
		for (int i = 0; i < n_formats; i++)
			word[i] = list[i].name;
		if (n_formats > 0)
			out[(*n)++] = (CompleteValues){ "format", completed[v].bit, false, word };
	}
	return OK;
}

static Status
complete_help(Ctx *ctx, CompleteOption *out)
{
	for (int i = 0; i < N_OPTIONS; i++) {
		Text help = { 0 };
		option_help(i, EVERY, &help);
		out[i] = options[i];
		out[i].help = text_keep(&ctx->run, &help);
		if (!out[i].help)
			return fail_memory(ctx);
	}
	return OK;
}

Status
verb_completion(Ctx *ctx, const Options *opt)
{
	CompleteOption option[N_OPTIONS];
	CompleteValues value[N_VALUES + 3 + N_VERBS];
	Complete all = { .program = "blinkc", .n_options = N_OPTIONS, .option = option,
		.n_verbs = N_VERBS, .verb = completed, .n_values = N_VALUES, .values = value };
	Shell shell;
	if (opt->n_files != 1 || !shell_parse(opt->file[0], &shell))
		return fail(ctx, USAGE, "completion: %.40s: want one shell: bash, zsh or fish",
		    opt->n_files == 1 ? opt->file[0] : opt->n_files ? "several" : "none");
	memcpy(value, values, sizeof values);
	TRY(complete_help(ctx, option));
	TRY(complete_algorithms(ctx, &value[all.n_values++]));
	TRY(complete_from(ctx, &value[all.n_values++]));
	TRY(complete_names(ctx, &value[all.n_values++]));
	TRY(complete_formats(ctx, value, &all.n_values));
	complete_print(&all, shell);
	return OK;
}
