/* XML against an XML Schema (xs:schema), by libxml2. */
#ifndef BLINK_XML_SCHEMA_H
#define BLINK_XML_SCHEMA_H

#include "base/status.h"

typedef struct {
	int line;
	const char *text;	/* as libxml2 has it, in one line */
} XmlFault;

/* Where a file does not do what the schema asks, as far as it is well formed: *n faults in the order of the file, at
 * most XML_FAULTS_MOST. Fails as doc_check_xml. schema: a path.
 * Fails: BAD_INPUT, LIMIT, NO_MEMORY; IO, INTERNAL the schema. Memory: run arena. */
enum { XML_FAULTS_MOST = 20 };
Status xml_schema_faults(Ctx *ctx, const char *label, const char *data, size_t size, const char *schema, XmlFault **out,
    int *n);

#endif
