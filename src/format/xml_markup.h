/* The text of an XML file from tag to tag, beside the parser. It is exact for well-formed XML. */
#ifndef BLINK_XML_MARKUP_H
#define BLINK_XML_MARKUP_H

#include <stdbool.h>
#include <stddef.h>

/* MARKUP_ASIDE: a comment, a processing instruction, or a section of characters (CDATA). */
typedef enum { MARKUP_BEGIN, MARKUP_END, MARKUP_DOCTYPE, MARKUP_ASIDE, MARKUP_NONE } MarkupKind;

typedef struct {
	MarkupKind kind;
	size_t begin, end;
	bool closed;		/* false: the file ends inside of it */
	int n_attributes;
} Markup;

/* The first one that begins at `at` or behind it. */
Markup xml_markup(const char *data, size_t size, size_t at);

bool xml_begins(const char *data, size_t size, size_t at, const char *with);

#endif
