#include "batch.h"
#include "complete.h"
#include "verb/verb.h"

static const CompleteOption options[] = {
#define X(name, text, letter, argument, verbs, help) { text, letter, argument, verbs, help },
	OPTION_LIST(X)
#undef X
};

static const CompleteVerb verbs[] = {
#define X(bit, name, arguments, summary) { #name, summary, bit },
	VERB_LIST(X)
#undef X
};

#define FIRST(name, text, ...) text,
static const char *const shells[] = { SHELL_LIST(FIRST) NULL };
static const char *const collectives[] = { COLLECTIVE_LIST(FIRST) NULL };
static const char *const some_collectives[] = { COLLECTIVE_LIST(FIRST) "all", NULL };
static const char *const classes[] = { LINK_CLASS_LIST(FIRST) "all", NULL };
static const char *const algorithms[] = { ALGORITHM_LIST(FIRST) NULL };
static const char *const packings[] = { PACKING_LIST(FIRST) NULL };
static const char *const hybrids[] = { HYBRID_LIST(FIRST) NULL };
static const char *const roots[] = { ROOTS_LIST(FIRST) NULL };
static const char *const differences[] = { DIFFERENCE_LIST(FIRST) "any", NULL };
#undef FIRST
static const char *const layouts[] = { "own", "dot", "neato", NULL };
static const char *const schedule_formats[] = { "json", "cu", NULL };
static const char *const convert_formats[] = { "json", "xml", "canonical", "cu", NULL };
static const char *const diff_formats[] = { "text", "json", NULL };
static const char *const show_formats[] = { "text", "svg", "dot", NULL };
static const char *const topology_formats[] = { "json", "xml", "canonical", "cluster", NULL };

static const CompleteValues values[] = {
	{ NULL, COMPLETION, false, shells },
	{ "collective", ~0u, false, collectives },
	{ "collectives", ~0u, true, some_collectives },
	{ "links", ~0u, true, classes },
	{ "algorithm", ~0u, false, algorithms },
	{ "packing", ~0u, false, packings },
	{ "hybrid", ~0u, false, hybrids },
	{ "roots", ~0u, false, roots },
	{ "layout", ~0u, false, layouts },
	{ "fail-on", ~0u, true, differences },
	{ "format", COMPILE, false, schedule_formats },
	{ "format", DIFF, false, diff_formats },
	{ "format", SHOW, false, show_formats },
	{ "format", CONVERT, false, convert_formats },
	{ "format", TOPOLOGY, false, topology_formats },
};

Status
verb_completion(Ctx *ctx, const Options *opt)
{
	const Complete all = { .program = "blinkc", .n_options = N_OPTIONS, .option = options, .n_verbs = sizeof verbs / sizeof *verbs,
		.verb = verbs, .n_values = sizeof values / sizeof *values, .values = values };
	Shell shell;
	if (opt->n_files != 1 || !shell_parse(opt->file[0], &shell))
		return fail(ctx, USAGE, "completion: %.40s: want one shell: bash, zsh or fish", opt->n_files == 1 ? opt->file[0] :
		    opt->n_files ? "several" : "none");
	complete_print(&all, shell);
	return OK;
}
