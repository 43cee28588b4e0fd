/* XML, element by element, by libxml2's xmlTextWriter: it puts line breaks, indentation and tags. */
#ifndef BLINK_XML_WRITE_H
#define BLINK_XML_WRITE_H

#include "base/text.h"
#include "base/xml_errors.h"

#include <libxml/xmlwriter.h>
#include <stdbool.h>

/* Begins as { .out = text }, and has memory until the root ends. */
typedef struct {
	Text *out;		/* failed: memory ran out */
	xmlTextWriterPtr writer;
	XmlErrors errors;
	bool open;		/* there is a writer, or there was no memory for it */
	bool elements;		/* of the innermost element: elements are to come, and none has */
	int depth;
} XmlWriter;

void xml_declaration(XmlWriter *w);
void xml_begin(XmlWriter *w, const char *name);		/* an element, on a line of its own */
void xml_end(XmlWriter *w);

/* Attributes of the element that was begun last, before its content. */
void xml_attribute(XmlWriter *w, const char *name, const char *value);	/* NULL: none */
void xml_attribute_int(XmlWriter *w, const char *name, int value);
void xml_attribute_gb(XmlWriter *w, const char *name, Frac bytes);	/* as text_gb */

/* An attribute of several texts; NULL ends them. */
void xml_attribute_joined(XmlWriter *w, const char *name, const char *const *part);

/* Its content is elements, of which there may be none; without this an element without content is <name/>. */
void xml_elements(XmlWriter *w);

/* Text as content; an element has either that or elements. */
void xml_text(XmlWriter *w, const char *string);

#endif
