/* XML, element by element: the writer puts line breaks, indentation and escapes. */
#ifndef BLINK_XML_WRITE_H
#define BLINK_XML_WRITE_H

#include "base/text.h"

enum { XML_DEPTH = 8 };

/* Begins as { .out = text }. */
typedef struct {
	Text *out;
	int depth;
	struct {
		const char *name;
		bool filled;	/* its start tag has ended */
		bool text;	/* it has text */
	} open[XML_DEPTH];
} XmlWriter;

void xml_declaration(XmlWriter *w);
void xml_begin(XmlWriter *w, const char *name);		/* an element, on a line of its own */
void xml_end(XmlWriter *w);

/* Attributes of the element that was begun last, before its content. */
void xml_attribute(XmlWriter *w, const char *name, const char *value);	/* NULL: none */
void xml_attribute_int(XmlWriter *w, const char *name, int value);
void xml_attribute_gb(XmlWriter *w, const char *name, Frac bytes);	/* as text_gb */
void xml_attribute_us(XmlWriter *w, const char *name, int64_t ns);	/* as text_us */

/* An attribute of several texts; NULL ends them. */
void xml_attribute_joined(XmlWriter *w, const char *name, const char *const *part);

/* Its content is elements, of which there may be none; without this an element without content is <name/>. */
void xml_elements(XmlWriter *w);

/* Text as content; an element has either that or elements. */
void xml_text(XmlWriter *w, const char *string);

#endif
