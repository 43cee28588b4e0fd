#include "verb/options.h"
#include "plan/plan.h"
#include "verb/formats.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

static const struct {
	const char *name;
	char letter;
	const char *argument;
	int verbs;
	const char *help;
} list[N_OPTIONS] = {
#define X(name, text, letter, argument, verbs, help) { text, letter, argument, verbs, help },
	OPTION_LIST(X)
#undef X
};

Status
options_parse(Ctx *ctx, int argc, char **argv, const char *verb, int bit, Options *out)
{
	enum { FIRST = 256 };	/* above every letter */
	struct option names[N_OPTIONS + 1] = { { 0 } };
	char letters[2 * N_OPTIONS + 2] = ":", *at = letters + 1;
	Options opt = { .n_files = 0 };
	for (int i = 0; i < N_OPTIONS; i++) {
		const char *argument = list[i].argument;
		int has = !argument ? no_argument : *argument == '[' ? optional_argument : required_argument;
		names[i] = (struct option){ list[i].name, has, NULL, FIRST + i };
		if (list[i].letter)
			*at++ = list[i].letter;
		if (list[i].letter && list[i].argument)
			*at++ = ':';
	}
	opterr = 0;
	for (int letter; (letter = getopt_long(argc, argv, letters, names, NULL)) != -1;) {
		int i = letter - FIRST;
		if (letter == ':')
			return fail(ctx, USAGE, "%.80s: needs an argument", argv[optind - 1]);
		/* Of several letters in one word getopt names the one; the word may be no option at all. */
		if (letter == '?' && optopt && optopt < FIRST)
			return fail(ctx, USAGE, "-%c: no such option; blinkc --help lists them", optopt);
		if (letter == '?' && optopt)
			return fail(ctx, USAGE, "%.80s: takes no argument", argv[optind - 1]);
		if (letter == '?')
			return fail(ctx, USAGE, "%.80s: no such option; blinkc --help lists them", argv[optind - 1]);
		for (int k = 0; k < N_OPTIONS && letter < FIRST; k++)
			if (list[k].letter == letter)
				i = k;
		if (!(list[i].verbs & bit))
			return fail(ctx, USAGE, "--%s: not an option of blinkc %s", list[i].name, verb);
		opt.value[i] = list[i].argument && optarg ? optarg : "";
	}
	opt.n_files = argc - optind;
	opt.file = argv + optind;
	*out = opt;
	return OK;
}

void
print_wrapped(int first, const char *text)
{
	int column = first;
	while (*text) {
		int n = (int)strcspn(text, " ");
		if (column + 1 + n > 79) {
			printf("\n%*s", first, "");
			column = first;
		}
		column += printf(column ? " %.*s" : "%.*s", n, text);
		text += n + (text[n] == ' ');
	}
	printf("\n");
}

/* What an option means to verbs that differ. Returns whether it is all there is to say. */
static bool
put_of_verbs(int option, int verbs, Text *out)
{
#define X(of, bit, verb, argument, help) \
	if (option == (of) && verbs == (bit)) { \
		text_put(out, help); \
		return true; \
	}
	OPTION_OF_VERB_LIST(X)
#undef X
	text_put(out, list[option].help);
#define X(of, bit, verb, argument, help) \
	if (option == (of) && verbs & (bit)) \
		text_put(out, "; " verb ": " help);
	OPTION_OF_VERB_LIST(X)
#undef X
	return false;
}

void
option_help(int option, int verbs, Text *out)
{
	if (option == OPT_FORMAT) {
		formats_help(verbs, out);
		return;
	}
	if (option == OPT_FROM) {
		formats_from_help(out);
		return;
	}
	if (put_of_verbs(option, verbs, out))
		return;
	for (int i = 0; option == OPT_ALGORITHM && i < algorithm_count(); i++)
		text_printf(out, "; %s: %s", algorithm_row(i)->name, algorithm_row(i)->what);
}

/* Of an option; NULL: none. */
static const char *
argument_of(int option, int verbs)
{
#define X(of, bit, verb, argument, help) \
	if (option == (of) && verbs == (bit)) \
		return argument;
	OPTION_OF_VERB_LIST(X)
#undef X
	return list[option].argument;
}

void
options_print(int verbs)
{
	for (int i = 0; i < N_OPTIONS; i++) {
		char left[40], letter = list[i].letter;
		const char *argument = argument_of(i, verbs);
		if (!(list[i].verbs & verbs))
			continue;
		argument = argument ? argument : "";
		snprintf(left, sizeof left, *argument == '[' ? "%c%c%s--%s[=%s" : "%c%c%s--%s %s", letter ? '-' : ' ',
		    letter ? letter : ' ', letter ? ", " : "  ", list[i].name, argument + (*argument == '['));
		printf("  %-24s", left);
		Text help = { 0 };
		option_help(i, verbs, &help);
		print_wrapped(26, help.data ? help.data : "");
		text_free(&help);
	}
}
