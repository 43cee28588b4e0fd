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

/* A list that is given in several parts. */
static Status
join(Ctx *ctx, const char *before, const char **value)
{
	Text text = { 0 };
	text_put(&text, before);
	text_put(&text, ",");
	text_put(&text, *value);
	*value = text_keep(&ctx->run, &text);
	return *value ? OK : fail_memory(ctx);
}

enum { FIRST = 256 };	/* above every letter */

/* Whose options are parsed. */
struct of_verb {
	const char *name;
	int bit;
	NamesText (*text)(int bits);
};

/* Whether the names differ by a plural alone: "size", "sizes". */
static bool
is_plural(const char *one, const char *many)
{
	size_t n = strlen(one);
	return strncmp(one, many, n) == 0 && strcmp(many + n, "s") == 0;
}

/* An option of the verb that is easily taken for this one; NULL: none. */
static const char *
option_beside(int option, int bit)
{
	for (int i = 0; i < N_OPTIONS; i++)
		if ((list[i].verbs & bit) && (is_plural(list[i].name, list[option].name)
		    || is_plural(list[option].name, list[i].name)))
			return list[i].name;
	return NULL;
}

/* "--sizes: not an option of blinkc compile: want it with batch; or --size" */
static Status
fail_of_others(Ctx *ctx, int option, const struct of_verb *verb)
{
	const char *beside = option_beside(option, verb->bit);
	bool reports = option == OPT_FORMAT && list[OPT_JUNIT].verbs & verb->bit;
	return fail(ctx, USAGE, "--%s: not an option of blinkc %s: want it with %s%s%s%s", list[option].name,
	    verb->name, verb->text(list[option].verbs).text, beside ? "; or --" : "", beside ? beside : "",
	    reports ? "; or --junit FILE, --github" : "");
}

/* A word that is no option: "--colective=reduce". */
static Status
fail_unknown(Ctx *ctx, const char *word, const struct of_verb *verb)
{
	const char *name[N_OPTIONS], *longer = NULL;
	char text[40];
	Names names = { 0, name };
	snprintf(text, sizeof text, "%.*s", (int)strcspn(word + 2, "="), word + 2);
	for (int i = 0; i < N_OPTIONS; i++) {
		if (strcmp(list[i].name, text) == 0)
			return fail_of_others(ctx, i, verb);
		if (!(list[i].verbs & verb->bit))
			continue;
		name[names.n++] = list[i].name;
		if (*text && strncmp(list[i].name, text, strlen(text)) == 0)
			longer = list[i].name;
	}
	const char *like = longer ? longer : names_like(names, text);
	if (like)
		return fail(ctx, USAGE, "%.80s: no such option; did you mean --%s?", word, like);
	return fail(ctx, USAGE, "%.80s: no such option; blinkc %s --help lists them", word, verb->name);
}

/* A prefix of several options: "--v". */
static bool
is_ambiguous(const char *word, int bit, NamesText *out)
{
	size_t used = 0, length = strcspn(word + 2, "=");
	int n = 0;
	for (int i = 0; i < N_OPTIONS && length > 0; i++) {
		if (strncmp(list[i].name, word + 2, length) != 0 || !(list[i].verbs & bit))
			continue;
		if (used < sizeof out->text)
			used += (size_t)snprintf(out->text + used, sizeof out->text - used, "%s--%s",
			    used ? ", " : "", list[i].name);
		n++;
	}
	return n > 1;
}

/* What getopt found: a letter, or a word. */
static Status
fail_option(Ctx *ctx, int found, const char *word, const struct of_verb *verb)
{
	NamesText several;
	if (found == ':')
		return fail(ctx, USAGE, "%.80s: needs an argument", word);
	/* Of several letters in one word getopt names the one; the word may be no option at all. */
	if (optopt && optopt < FIRST)
		return fail(ctx, USAGE, "-%c: no such option; blinkc %s --help lists them", optopt, verb->name);
	if (optopt)
		return fail(ctx, USAGE, "%.80s: takes no argument", word);
	if (is_ambiguous(word, verb->bit, &several))
		return fail(ctx, USAGE, "%.80s: no such option: want one of %s", word, several.text);
	return fail_unknown(ctx, word, verb);
}

Status
options_parse(Ctx *ctx, int argc, char **argv, const char *verb, int bit, NamesText (*verbs_text)(int bits),
    Options *out)
{
	const struct of_verb of = { verb, bit, verbs_text };
	struct option names[N_OPTIONS + 1] = { { 0 } };
	char letters[2 * N_OPTIONS + 2] = ":", *at = letters + 1;
	Options opt = { .n_files = 0 };
	for (int i = 0, n = 0; i < N_OPTIONS; i++) {
		const char *argument = list[i].argument;
		int has = !argument ? no_argument : *argument == '[' ? optional_argument : required_argument;
		/* A singular of another verb is refused below; getopt would take it for a prefix. */
		const char *beside = option_beside(i, bit);
		if ((list[i].verbs & bit) || (beside && is_plural(list[i].name, beside)))
			names[n++] = (struct option){ list[i].name, has, NULL, FIRST + i };
		if (list[i].letter)
			*at++ = list[i].letter;
		if (list[i].letter && list[i].argument)
			*at++ = ':';
	}
	opterr = 0;
	for (int letter; (letter = getopt_long(argc, argv, letters, names, NULL)) != -1;) {
		int i = letter - FIRST;
		if (letter == ':' || letter == '?')
			return fail_option(ctx, letter, argv[optind - 1], &of);
		for (int k = 0; k < N_OPTIONS && letter < FIRST; k++)
			if (list[k].letter == letter)
				i = k;
		if (!(list[i].verbs & bit))
			return fail_of_others(ctx, i, &of);
		const char *value = list[i].argument && optarg ? optarg : "";
		if (i == OPT_WITHOUT && opt.value[i])
			TRY(join(ctx, opt.value[i], &value));
		opt.value[i] = value;
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
