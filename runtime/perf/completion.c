#include "perf/completion.h"
#include "base/complete.h"
#include "perf/names.h"

#include <stddef.h>

static const CompleteOption completed[] = {
#define X(letter, name, argument, scope, text) \
	{ name, (char)(letter < 256 ? letter : 0), sizeof(argument) > 1 ? argument : NULL, 1, text },
	OPTION_LIST(X)
#undef X
};

bool
print_completion(const char *name)
{
	static const char *const checks[] = { "0", "1", NULL }, *const shells[] = { "bash", "zsh", "fish", NULL };
	const char *type[N_TYPES + 2] = { NULL }, *op[N_OPS + 2] = { NULL };
	const CompleteValues values[] = { { "check", 1, false, checks }, { "datatype", 1, false, type },
	    { "op", 1, false, op },
		{ "collective", 1, false, collectives }, { "backend", 1, false, backend_names },
		{ "format", 1, false, format_names }, { "completion", 1, false, shells } };
	const CompleteVerb verb = { "", "", 1 };
	const Complete all = { .program = "blink-perf", .n_options = sizeof completed / sizeof *completed,
	    .option = completed, .n_verbs = 1,
		.verb = &verb, .n_values = sizeof values / sizeof *values, .values = values };
	Shell shell;
	for (int t = 0; t < N_TYPES; t++)
		type[t] = types[t].name;
	for (int o = 0; o < N_OPS; o++)
		op[o] = ops[o].name;
	type[N_TYPES] = op[N_OPS] = "all";
	if (!shell_parse(name, &shell))
		return false;
	complete_print(&all, shell);
	return true;
}
