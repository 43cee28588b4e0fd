/* The content of a file before its meaning is known: one tree for JSON and XML, so that each noun has one reader.
 * Foreign parser types die inside doc_xml.c (libxml2's) and doc_json.c (cJSON's).
 *
 * XML becomes the equivalent JSON: an element is an object, its attributes are string members, and
 * its child elements are gathered by name into arrays under the plural: <link/><link/> is "links": [{}, {}]. */
#ifndef BLINK_DOC_H
#define BLINK_DOC_H

#include "base/limits.h"
#include "base/status.h"
#include "format/json_token.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum { DOC_NULL, DOC_BOOL, DOC_NUMBER, DOC_STRING, DOC_ARRAY, DOC_OBJECT } DocKind;

typedef struct Doc Doc;
struct Doc {
	DocKind kind;
	const char *name;	/* key in its object; NULL in an array and at the root */
	const char *text;	/* STRING: no NUL inside, well-formed UTF-8; XML OBJECT, ARRAY: name of the element;
				 * JSON NUMBER that is whole and beyond 2^53: its digits; of others NULL */
	union {
		double number;			/* NUMBER: finite */
		const char *const *plural;	/* XML root: as given to doc_read_xml */
	};
	bool flag;		/* BOOL */
	int line;		/* XML: where its element begins; JSON: 0 */
	const Doc *parent;
	int index;		/* among its parent's children */
	int n;			/* ARRAY, OBJECT: children, in the file's order */
	Doc **child;
};

/* Parse; no meaning yet. Refused: not well formed (with line and column), not UTF-8, NUL bytes, duplicate keys or
 * attributes, nesting past LIMIT_DEPTH, files past LIMIT_FILE_BYTES or LIMIT_DOC_VALUES; in XML also any DOCTYPE,
 * namespace and text content. A byte order mark is skipped.
 * plural: for XML, pairs { "link", "links", ... , NULL }: what repeated children are called; an element that
 * is not in the list keeps its name, and one whose name is a plural is refused. It outlives *out.
 * Fails: BAD_INPUT, LIMIT, NO_MEMORY. Memory: the tree lies in the scratch arena, its names and texts in the run arena,
 * so that a reader may keep a text and release the tree. */
Status doc_read_json(Ctx *ctx, const char *label, const char *data, size_t size, Doc **out);
Status doc_read_xml(Ctx *ctx, const char *label, const char *data, size_t size, const char *const *plural, Doc **out);

/* As doc_read_xml, but elements in texts (ended by NULL) may have text, which becomes their member "text". */
Status doc_read_xml_texts(Ctx *ctx, const char *label, const char *data, size_t size, const char *const *plural,
    const char *const *texts, Doc **out);

/* What libxml2 must not see: bytes that are not text, a DOCTYPE, and more in one piece than LIMIT_XML_BYTES or
 * LIMIT_ATTRIBUTES. Fails: BAD_INPUT, LIMIT, NO_MEMORY. */
Status doc_check_xml(Ctx *ctx, const char *label, const char *data, size_t size);

/* A long array of a JSON file, read entry by entry: the Docs of all entries would take many times the size of the
 * file. */
typedef struct {
	const Doc *array;	/* without children, if `text` is set; NULL: the root has no such member */
	int n, next;		/* entries; the next one */
	const char *text;	/* of the entries from that one on; NULL: they are children of the array */
	size_t size;
} DocList;

/* As doc_read_json, without cJSON: for files of which libblink reads some, too. name: NULL, or a member of the root. If
 * that is an array, its entries are left out, and doc_list_next returns them: parsed into the scratch arena, with their
 * texts, so that the reader may release an entry before the next. All of the file is read only if it is called list->n
 * times; duplicate keys and numbers that are too large are errors when it comes to them. LIMIT_DOC_VALUES is for an
 * entry and all that is not in entries. data and *out outlive *list. doc_read_json_lists: of two such arrays. */
Status doc_read_json_list(Ctx *ctx, const char *label, const char *data, size_t size, const char *name, Doc **out,
    DocList *list);
enum { DOC_LISTS = 2 };
Status doc_read_json_lists(Ctx *ctx, const char *label, const char *data, size_t size,
    const char *const name[DOC_LISTS], Doc **out, DocList list[DOC_LISTS]);
Status doc_list_next(Ctx *ctx, const char *label, DocList *list, const Doc **out);

/* The text of the next entry and all that follow, for a reader that needs no Doc of it; at = NULL: there is none, the
 * entries are children of the array. doc_list_took: the entry ended before `at`. */
JsonTokens doc_list_tokens(const DocList *list);
void doc_list_took(DocList *list, const char *at);

const Doc *doc_get(const Doc *object, const char *name);	/* member, or NULL */

/* Fail with "label: links[12].capacity: <message>" (XML: "label:31: link capacity: <message>"). */
Status doc_fail(Ctx *ctx, const char *label, const Doc *at, Status status, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* Fail with "label: links[12].capacity: <what is there>: want <want>". */
Status doc_want(Ctx *ctx, const char *label, const Doc *at, const char *want);

/* Fail with "label: links[12].capacity: missing: want <want>". */
Status doc_missing(Ctx *ctx, const char *label, const Doc *object, const char *name, const char *want);

/* The member `name` of `object`, which must be there and of that kind. Messages say what was found and wanted.
 * A string is at most LIMIT_TEXT_BYTES long. doc_int and doc_scaled also take an XML attribute that spells a number.
 * doc_scaled: value * scale, scale a power of ten, rounded to an integer, lo..hi; `unit` ("GB/s") is for the
 * message; LIMIT above hi. It reads decimals of up to 15 digits exactly, so that both spellings give one integer. */
Status doc_need(Ctx *ctx, const char *label, const Doc *object, const char *name, DocKind kind, const Doc **out);
Status doc_format(Ctx *ctx, const char *label, const Doc *root, const char *name);	/* "format", with this name */
Status doc_string(Ctx *ctx, const char *label, const Doc *object, const char *name, const char **out);
Status doc_int(Ctx *ctx, const char *label, const Doc *at, int64_t lo, int64_t hi, int64_t *out);
Status doc_scaled(Ctx *ctx, const char *label, const Doc *at, int64_t scale, int64_t lo, int64_t hi, const char *unit,
    int64_t *out);

/* Members of `object` are among names[] (ended by NULL); anything else is refused by name. */
Status doc_only(Ctx *ctx, const char *label, const Doc *object, const char *const *names);

/* A value as messages show it: -3, "gpu9", true, an array. Cut where it is long. */
typedef struct {
	char text[64];
} DocFound;
DocFound doc_found(const Doc *at);

/* ---- for the parsers ---- */

/* Size, NUL bytes, UTF-8. */
Status doc_check_bytes(Ctx *ctx, const char *label, const char *data, size_t size);

/* Fail with "label:LINE:COLUMN: <message>", for a byte of the file. */
Status doc_fail_byte(Ctx *ctx, const char *label, const char *data, size_t offset, Status status, const char *format,
    ...) __attribute__((format(printf, 6, 7)));

/* No two members of `object` have one name. */
Status doc_check_unique(Ctx *ctx, const char *label, const Doc *object);

/* A number as JSON spells it: -12.5e3. Length of the longest one at the start of text; 0: none. */
size_t doc_number_length(const char *text, size_t size);

/* The number of a NUMBER, or of an XML attribute that spells one, as decimal text, which may lie in `space`; NULL:
 * neither. */
enum { DOC_NUMBER_SPACE = 56 };
const char *doc_decimal(const Doc *at, char space[DOC_NUMBER_SPACE]);

#endif
