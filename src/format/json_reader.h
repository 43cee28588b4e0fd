/* JSON (RFC 8259), read strictly: no memory but that of Docs, and the line and column of a fault. This is what libblink
 * reads schedules and indexes by, which links no library for it. cJSON reads documents (doc_json.c); what it would take
 * besides JSON is refused here before.
 *
 * A schedule of 2048 ranks by cJSON's tree would take 64 bytes for each of 14 million values. */
#ifndef BLINK_JSON_READER_H
#define BLINK_JSON_READER_H

#include "format/doc.h"

#include <locale.h>

typedef struct {
	Ctx *ctx;
	const char *label, *data, *at, *end;	/* at: the next byte */
	const char *list_name[DOC_LISTS];	/* arrays of the root whose entries are left out; NULL: none */
	DocList list[DOC_LISTS];
	Arena *texts;		/* of Docs: where names and texts go */
	locale_t c;		/* strtod reads the decimal point of the locale */
	int depth, n_values;
} JsonReader;

/* Check the size and the bytes of a file, and all of it as JSON but that names differ and numbers are not too large. A
 * byte order mark is skipped. What is read from then on is well formed. */
Status json_check(Ctx *ctx, const char *label, const char *data, size_t size, const char *const list_name[DOC_LISTS],
    JsonReader *out);

/* A number of `length` characters. */
Status json_read_number(JsonReader *r, const char *text, size_t length, Doc *out);

#endif
