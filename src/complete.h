/* Completion scripts for shells, from the lists that the parsers of options come from. */
#ifndef BLINK_COMPLETE_H
#define BLINK_COMPLETE_H

#include <stdbool.h>

/* name */
#define SHELL_LIST(X)                                                          \
	X(SHELL_BASH, "bash")                                                  \
	X(SHELL_ZSH, "zsh")                                                    \
	X(SHELL_FISH, "fish")

typedef enum {
#define X(name, text) name,
	SHELL_LIST(X)
#undef X
	N_SHELLS
} Shell;

typedef struct {
	const char *name;
	char letter;			/* or 0 */
	const char *argument;		/* NULL: none; in brackets if it may be left out; FILE: files are offered */
	unsigned verbs;			/* bit set */
	const char *help;
} CompleteOption;

/* What an argument may be. */
typedef struct {
	const char *option;		/* NULL: of the verb itself */
	unsigned verbs;
	bool list;			/* any of them, comma separated */
	const char *const *word;	/* ended by NULL */
} CompleteValues;

typedef struct {
	const char *name, *help;
	unsigned bit;
} CompleteVerb;

/* A program without verbs has one, without a name, and options of bit 1. */
typedef struct {
	const char *program;
	int n_options, n_verbs, n_values;
	const CompleteOption *option;
	const CompleteVerb *verb;	/* the first is meant where none is named */
	const CompleteValues *values;
} Complete;

bool shell_parse(const char *text, Shell *out);

/* On standard output. */
void complete_print(const Complete *c, Shell shell);

#endif
