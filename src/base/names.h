/* Vocabularies, as link classes or collectives: the names of the enumerators of a type. */
#ifndef BLINK_NAMES_H
#define BLINK_NAMES_H

#include <stdbool.h>

/* What a list of enumerators, LIST(X) with a row X(name, text, ...) for each, becomes: "name," and "text,". */
#define ROW_NAME(name, ...) name,
#define ROW_TEXT(name, text, ...) text,

/* Of enumerators 0 .. n-1; NULL: one without a name. For bit sets n is below the bits of an unsigned. */
typedef struct {
	int n;
	const char *const *name;
} Names;

/* Names in a row, for messages. */
typedef struct {
	char text[512];
} NamesText;

bool names_find(Names names, const char *text, int *out);

/* As people spell names: case, - and _ do not count, so that AllReduce and all_reduce are allreduce. */
bool names_find_spelled(Names names, const char *text, int *out);

/* The name that was meant by a text that is none: with few letters more, fewer, other or swapped; NULL: there is none
 * like it. Ties go to the first. */
const char *names_like(Names names, const char *text);

/* All that are as near as that one, in their order, `most` at most. Returns how many. */
int names_like_all(Names names, const char *text, const char **found, int most);

/* "; did you mean allreduce?", or nothing, for the end of a message. */
NamesText names_hint(Names names, const char *text);

/* Names, comma separated, to a bit set. NULL, or the rest of the text from the first item that is not a name. */
const char *names_parse_set(Names names, const char *text, unsigned *out);
const char *names_parse_set_spelled(Names names, const char *text, unsigned *out);

/* "nvlink, pcie or net": those of a bit set, with `last` before the last. */
NamesText names_text(Names names, unsigned set, const char *between, const char *last);

/* All of them: "a, b or c". */
NamesText names_wanted(Names names);

#endif
