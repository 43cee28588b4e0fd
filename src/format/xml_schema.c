#include "format/xml_schema.h"
#include "base/file_read.h"
#include "base/text.h"
#include "base/xml_errors.h"
#include "format/doc.h"

#include <libxml/xmlreader.h>
#include <libxml/xmlschemas.h>
#include <string.h>

struct validation {
	Ctx *ctx;
	XmlFault *fault;
	int n;
	bool no_memory;
};

/* What is not well formed is for doc_read_xml to say. */
static void
on_fault(void *user, XmlError error)
{
	struct validation *v = user;
	bool of_schema = error->domain == XML_FROM_SCHEMASV || error->domain == XML_FROM_SCHEMASP;
	v->no_memory |= error->code == XML_ERR_NO_MEMORY;
	if (error->level < XML_ERR_ERROR || !of_schema || v->n == XML_FAULTS_MOST)
		return;
	const char *text = error->message ? error->message : "not valid";
	size_t length = strcspn(text, "\n");
	length -= length && text[length - 1] == '.';
	text = arena_text(&v->ctx->run, text, length);
	v->no_memory |= !text;
	v->fault[v->n++] = (XmlFault){ error->line, text };
}

/* NULL: it cannot be read, or there is no memory. */
static xmlSchemaPtr
parse_schema(struct validation *v, const Text *text)
{
	xmlSchemaParserCtxtPtr parser = xmlSchemaNewMemParserCtxt(text->data, (int)text->size);
	if (!parser)
		return NULL;
	xmlSchemaSetParserStructuredErrors(parser, (xmlStructuredErrorFunc)on_fault, v);
	xmlSchemaPtr schema = xmlSchemaParse(parser);
	xmlSchemaFreeParserCtxt(parser);
	return schema;
}

/* Errors of the reader come through the thread's handler: with one of its own, libxml2 2.9 takes the context of the
 * validation for that of the parser, and crashes. */
static bool
validate(struct validation *v, xmlSchemaPtr schema, const char *data, size_t size)
{
	xmlTextReaderPtr reader = xmlReaderForMemory(data, (int)size, NULL, "UTF-8",
	    XML_PARSE_NONET | XML_PARSE_IGNORE_ENC | XML_PARSE_COMPACT);
	xmlSchemaValidCtxtPtr valid = xmlSchemaNewValidCtxt(schema);
	bool ready = reader && valid && xmlTextReaderSchemaValidateCtxt(reader, valid, 0) == 0;
	if (valid)
		xmlSchemaSetValidStructuredErrors(valid, (xmlStructuredErrorFunc)on_fault, v);
	while (ready && v->n < XML_FAULTS_MOST && xmlTextReaderRead(reader) == 1)
		;
	xmlFreeTextReader(reader);
	xmlSchemaFreeValidCtxt(valid);
	return ready;
}

static Status
find_faults(struct validation *v, const char *path, const Text *text, const char *data, size_t size)
{
	xmlSchemaPtr schema = parse_schema(v, text);
	if (!schema && !v->no_memory && v->n)
		return fail(v->ctx, INTERNAL, "%s:%d: %s", path, v->fault[0].line, v->fault[0].text);
	bool done = schema && validate(v, schema, data, size);
	xmlSchemaFree(schema);
	return done && !v->no_memory ? OK : fail_memory(v->ctx);
}

Status
xml_schema_faults(Ctx *ctx, const char *label, const char *data, size_t size, const char *schema, XmlFault **out,
    int *n)
{
	struct validation v = { .ctx = ctx };
	XmlErrors errors;
	Text text = { 0 };
	TRY(doc_check_xml(ctx, label, data, size));
	TRY(NEW(ctx, v.fault, XML_FAULTS_MOST));
	TRY(file_read(ctx, schema, &text));
	xml_errors_begin(&errors, on_fault, &v);
	Status status = find_faults(&v, schema, &text, data, size);
	xml_errors_end(&errors);
	text_free(&text);
	*out = v.fault;
	*n = v.n;
	return status;
}
