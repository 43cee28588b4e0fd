/* The table of verbs, and what is printed of it. */
#include "verb/verb.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

const Verb verb_rows[] = {
#define X(bit, name, arguments, summary, exits, examples) \
	{ #name, bit, arguments, summary, (exits) | ON_EVERY_VERB, examples, verb_##name },
	VERB_LIST(X)
#undef X
	{ .name = NULL },
};

const Verb *
verb_find(const char *name)
{
	const Verb *verb = verb_rows;
	while (verb->name && strcmp(verb->name, name) != 0)
		verb++;
	return verb->name ? verb : NULL;
}

static void
print_exits(unsigned exits)
{
	printf("\nExit status:\n");
#define X(name, code, text)                                                                                            \
	if (exits & ON(name))                                                                                          \
		printf("  %d  %s\n", code, text);
	STATUS_LIST(X)
#undef X
}

/* A comment and a command by turns. */
static void
print_examples(const char *line)
{
	bool comment = true;
	printf("\nExamples:\n");
	while (*line) {
		int n = (int)strcspn(line, "\n");
		printf("  %s%.*s\n", comment ? "# " : "", n, line);
		comment = !comment;
		line += n + (line[n] == '\n');
	}
}

/* "Plan a schedule ...", as a sentence. */
static void
print_verb(const Verb *verb)
{
	char sentence[160];
	snprintf(sentence, sizeof sentence, "%s.", verb->summary);
	sentence[0] = (char)toupper(sentence[0]);
	printf("Usage: blinkc %s %s\n\n", verb->name, verb->arguments);
	print_wrapped(0, sentence);
}

static void
print_verbs(void)
{
	printf("Usage: blinkc [VERB] [options] FILE\n\n");
	for (const Verb *verb = verb_rows; verb->name; verb++) {
		printf("  blinkc %-10s", verb->name);
		print_wrapped(19, verb->summary);
	}
	printf("\n");
	print_wrapped(0, "blinkc VERB --help has the options of a verb, with examples. A FILE of - is standard input.");
}

void
help_print(const Verb *only)
{
	if (only)
		print_verb(only);
	else
		print_verbs();
	printf("\nOptions:\n");
	options_print(only ? only->bit : EVERY);
	if (only)
		print_examples(only->examples);
	print_exits(only ? only->exits : ~0u);
}

static Names
verb_names(void)
{
	static const char *const name[] = {
#define X(bit, name, ...) #name,
		VERB_LIST(X)
#undef X
	};
	return (Names){ sizeof name / sizeof *name, name };
}

NamesText
verbs_text(int bits)
{
	const char *name[sizeof verb_rows / sizeof *verb_rows];
	Names some = { 0, name };
	for (const Verb *verb = verb_rows; verb->name; verb++)
		if (verb->bit & bits)
			name[some.n++] = verb->name;
	return names_wanted(some);
}

static Status
fail_verb(Ctx *ctx, const char *word, const char *found)
{
	return fail(ctx, USAGE, "%.80s: %s: blinkc help lists the verbs%s", word, found,
	    names_hint(verb_names(), word).text);
}

Status
verb_check_word(Ctx *ctx, const char *word, const char *next)
{
	if (*word == '-' || strpbrk(word, "/.") || access(word, F_OK) == 0
	    || names_shipped(ctx, word))
		return OK;
	bool operand = next && *next != '-';
	return operand || names_like(verb_names(), word) ? fail_verb(ctx, word, "no such verb, and no such file") : OK;
}

Status
verb_help(Ctx *ctx, const Options *opt)
{
	const Verb *verb = opt->n_files == 1 ? verb_find(opt->file[0]) : NULL;
	if (opt->n_files > 1)
		return fail(ctx, USAGE, "%d verbs: want one, or none for all", opt->n_files);
	if (opt->n_files == 1 && !verb)
		return fail_verb(ctx, opt->file[0], "no such verb");
	help_print(verb);
	return OK;
}
