/* Completion scripts for shells, from the same lists as the parsers of options. */
#ifndef BLINK_COMPLETE_H
#define BLINK_COMPLETE_H

#include "base/names.h"

/* name */
#define SHELL_LIST(X)                                                          \
	X(SHELL_BASH, "bash")                                                  \
	X(SHELL_ZSH, "zsh")                                                    \
	X(SHELL_FISH, "fish")

typedef enum { SHELL_LIST(ROW_NAME) N_SHELLS } Shell;

typedef struct {
	const char *name;
	char letter;			/* or 0 */
	const char *argument;		/* NULL: none; in brackets if optional; FILE: files are offered */
	unsigned verbs;			/* bit set */
	const char *help;
} CompleteOption;

/* The values of an argument. */
typedef struct {
	const char *option;		/* NULL: of the verb itself */
	unsigned verbs;
	bool list;			/* several, comma separated; of a verb: files, too */
	const char *const *word;	/* ended by NULL */
} CompleteValues;

typedef struct {
	const char *name, *help;
	unsigned bit;
} CompleteVerb;

/* A program without verbs has one verb, whose name is empty, and options of bit 1. */
typedef struct {
	const char *program;
	int n_options, n_verbs, n_values;
	const CompleteOption *option;
	const CompleteVerb *verb;	/* the first is the default */
	const CompleteValues *values;
} Complete;

bool shell_parse(const char *text, Shell *out);

/* On standard output. */
void complete_print(const Complete *c, Shell shell);

#endif
