/* Vocabularies, as link classes or collectives: the names of the enumerators of a type. */
#ifndef BLINK_NAMES_H
#define BLINK_NAMES_H

#include <stdbool.h>

/* Of enumerators 0 .. n-1; NULL: one without a name. n is below the bits of an unsigned. */
typedef struct {
	int n;
	const char *const *name;
} Names;

/* Names in a row, for messages. */
typedef struct {
	char text[512];
} NamesText;

bool names_find(Names names, const char *text, int *out);

/* Names, comma separated, to a bit set. NULL, or the rest of the text from the first item that is not a name. */
const char *names_parse_set(Names names, const char *text, unsigned *out);

/* "nvlink, pcie or net": those of a bit set, with `last` before the last. */
NamesText names_text(Names names, unsigned set, const char *between, const char *last);

/* All of them: "a, b or c". */
NamesText names_wanted(Names names);

#endif
