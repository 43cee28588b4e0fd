/* libxml2 as a part of a program: what it finds goes to whoever uses it, and nothing to stderr. */
#ifndef BLINK_XML_ERRORS_H
#define BLINK_XML_ERRORS_H

#include <libxml/xmlerror.h>
#include <libxml/xmlversion.h>

#if LIBXML_VERSION >= 21200
typedef const xmlError *XmlError;
#else
typedef xmlErrorPtr XmlError;
#endif

/* This thread's handlers of errors that libxml2 raises without a parser, such as a buffer that cannot grow: `found`
 * from begin to end, and then again those before. The two come in pairs, on one thread. Errors that are text alone are
 * for memory that ran out, and come as XML_ERR_NO_MEMORY. */
typedef struct {
	void (*found)(void *user, XmlError error);
	void *user;
	xmlStructuredErrorFunc structured;
	void *structured_user;
	xmlGenericErrorFunc generic;
	void *generic_user;
} XmlErrors;

void xml_errors_begin(XmlErrors *errors, void (*found)(void *user, XmlError error), void *user);
void xml_errors_end(const XmlErrors *errors);

#endif
