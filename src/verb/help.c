/* The table of verbs, and what is printed of it. */
#include "verb/verb.h"

#include <ctype.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

const Verb verb_rows[] = {
#define X(bit, name, group, arguments, summary, exits, examples) \
	{ VERB_TEXT(bit, name), group, bit, arguments, summary, (exits) | ON_EVERY_VERB, examples, verb_##name },
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
	char sentence[80];
	snprintf(sentence, sizeof sentence, "%s.", verb->summary);
	sentence[0] = (char)toupper(sentence[0]);
	printf("Usage: blinkc %s %s\n\n", verb->name, verb->arguments);
	print_wrapped(0, sentence);
}

/* On one screen of 24 lines and 80 columns: what a verb's own help has is left to that. */
static void
print_verbs(void)
{
	printf("Usage: blinkc [VERB] [options] FILE\n\n");
	for (const Verb *verb = verb_rows; verb->name; verb++) {
		bool first = verb == verb_rows || strcmp(verb->group, verb[-1].group) != 0;
		printf("  %-8s %-11s%s\n", first ? verb->group : "", verb->name, verb->summary);
	}
	printf("\nOptions of a verb: blinkc VERB --help, with examples; manual: man blinkc.\n");
}

void
help_print(const Verb *verb)
{
	/* A reader that has seen enough ends it without a word. */
	signal(SIGPIPE, SIG_DFL);
	if (!verb) {
		print_verbs();
		return;
	}
	print_verb(verb);
	printf("\nOptions:\n");
	options_print(verb->bit);
	print_examples(verb->examples);
	print_exits(verb->exits);
}

static Names
verb_names(void)
{
	static const char *const name[] = {
#define X(bit, name, ...) VERB_TEXT(bit, name),
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
	Collective coll;
	if (operand && collective_parse_spelled(word, &coll))
		return fail(ctx, USAGE, "%s: a collective: want the topology first, then -c %s", word, word);
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
