/* Text under construction. When memory runs out it no longer changes and `failed` is set: check once, at the end. */
#ifndef BLINK_TEXT_H
#define BLINK_TEXT_H

#include "base/arena.h"
#include "base/frac.h"
#include "base/printable.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct {
	char *data;		/* `size` bytes and a NUL; NULL while empty */
	size_t size, room;
	bool failed;
} Text;

void text_free(Text *text);

/* The end of a piece that was made for `text`: freed; if it has failed, so has the text. */
void text_drop(Text *text, Text *piece);

/* Room for `more` bytes and a NUL behind data[size], which the caller writes and counts in `size`; false: no memory. */
bool text_reserve(Text *text, size_t more);

/* The finished text, copied into an arena; `text` is freed. NULL: no memory, for the copy or while it was written. */
const char *text_keep(Arena *arena, Text *text);

void text_add(Text *text, const char *data, size_t size);
void text_put(Text *text, const char *string);
/* Doubles as the locale has them: none in a file of ours, and none in libblink. */
void text_printf(Text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

void text_int(Text *text, int value);			/* as "%d", but faster: files have millions of them */
char *text_digits(char *to, int value);			/* the same, at most 11 bytes, into memory; returns their end */
void text_json(Text *text, const char *string);		/* in double quotes, escaped for JSON */
void text_xml(Text *text, const char *string);		/* escaped for an attribute in double quotes; adds no quotes */
void text_c_string(Text *text, const char *string);	/* in double quotes, escaped for C */
void text_c_comment(Text *text, const char *string);	/* safe inside a C comment */
void text_printable(Text *text, const char *string);	/* as make_printable leaves it */

void text_gb(Text *text, Frac bytes);			/* bytes/s as GB/s, 15 significant digits */
void text_number(Text *text, double value);		/* 1e-4 to 1e15, 15 significant digits; below as 0 */
void text_us(Text *text, int64_t ns);			/* ns as us */

/* NULL equals NULL only. */
bool text_same(const char *a, const char *b);

#endif
