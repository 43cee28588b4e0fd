/* JSON to Doc.
 *
 * cJSON takes more than JSON (01, 1., control characters, any byte up to a blank as white space, \u0000 as the end
 * of a string), recurses, and returns NULL for an invalid file as it does without memory. So a strict scan comes first:
 * it needs no memory and no stack, names the line and column of a fault, and counts the values. If cJSON then still
 * returns NULL, memory ran out. */
#include "format/doc.h"

#include "base/limits.h"

#include <cjson/cJSON.h>
#include <locale.h>
#include <math.h>
#include <string.h>

/* ---- scan ---- */

/* The array of the root object whose entries stay text. */
struct span {
	const char *name;	/* NULL: none is wanted */
	bool due, inside;	/* the next value is that of the name; the scan is between begin and end */
	size_t begin, end;	/* after '[', and at ']'; 0: not found, or empty */
	int n;			/* entries */
	int before;		/* values of the file before the first of them */
};

struct scan {
	Ctx *ctx;
	const char *label, *data;
	size_t size, at;
	int depth, n_values;
	bool object[LIMIT_DEPTH];	/* of each open value: an object, not an array */
	struct span list;
};

static bool
is_blank(char c)
{
	return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

static Status
unexpected(struct scan *s, const char *want)
{
	if (s->at == s->size)
		return doc_fail_byte(s->ctx, s->label, s->data, s->at, BAD_INPUT, "end of file: want %s", want);
	size_t more = 1;
	while (s->at + more < s->size && ((unsigned char)s->data[s->at + more] & 0xc0) == 0x80)
		more++;
	return doc_fail_byte(s->ctx, s->label, s->data, s->at, BAD_INPUT, "'%.*s': want %s", (int)more,
	    s->data + s->at, want);
}

static char
next_token(struct scan *s)
{
	while (s->at < s->size && is_blank(s->data[s->at]))
		s->at++;
	return s->at < s->size ? s->data[s->at] : 0;
}

/* The four hex digits of an escape; -1: they are not. */
static int
hex4(const struct scan *s, size_t at)
{
	int value = 0;
	if (s->size - at < 4)
		return -1;
	for (size_t i = at; i < at + 4; i++) {
		const char *digits = "0123456789abcdef0123456789ABCDEF", *digit = strchr(digits, s->data[i]);
		if (!digit)
			return -1;
		value = value * 16 + (int)((digit - digits) % 16);
	}
	return value;
}

static Status
scan_escape(struct scan *s)
{
	s->at++;
	if (s->at == s->size || !strchr("\"\\/bfnrtu", s->data[s->at]))
		return unexpected(s, "an escape of JSON");
	if (s->data[s->at++] != 'u')
		return OK;
	int unit = hex4(s, s->at), low = -1;
	if (unit < 0)
		return unexpected(s, "four hex digits");
	if (unit == 0)
		return unexpected(s, "text without NUL");
	if (unit >= 0xdc00 && unit <= 0xdfff)
		return unexpected(s, "the first half of a surrogate pair");
	s->at += 4;
	if (unit < 0xd800 || unit > 0xdbff)
		return OK;
	if (s->size - s->at >= 2 && s->data[s->at] == '\\' && s->data[s->at + 1] == 'u')
		low = hex4(s, s->at + 2);
	if (low < 0xdc00 || low > 0xdfff)
		return unexpected(s, "the second half of a surrogate pair");
	s->at += 6;
	return OK;
}

static Status
scan_string(struct scan *s)
{
	s->at++;
	while (s->at < s->size && s->data[s->at] != '"') {
		if ((unsigned char)s->data[s->at] < ' ')
			return doc_fail_byte(s->ctx, s->label, s->data, s->at, BAD_INPUT,
			    "control character 0x%02x in a string: want an escape", s->data[s->at]);
		if (s->data[s->at] == '\\')
			TRY(scan_escape(s));
		else
			s->at++;
	}
	if (s->at == s->size)
		return unexpected(s, "'\"'");
	s->at++;
	return OK;
}

static Status
scan_key(struct scan *s)
{
	if (next_token(s) != '"')
		return unexpected(s, "a key in double quotes");
	const char *key = s->data + s->at + 1;
	TRY(scan_string(s));
	size_t length = (size_t)(s->data + s->at - 1 - key);
	/* Only the first array of that name: duplicates are for doc_check_unique to report. */
	s->list.due = s->depth == 1 && s->list.name && !s->list.begin && strlen(s->list.name) == length
	    && memcmp(key, s->list.name, length) == 0;
	if (next_token(s) != ':')
		return unexpected(s, "':'");
	s->at++;
	return OK;
}

static Status
scan_scalar(struct scan *s)
{
	static const char *const word[] = { "null", "true", "false" };
	const char *text = s->data + s->at;
	size_t left = s->size - s->at, length = doc_number_length(text, left);
	if (left && *text == '"')
		return scan_string(s);
	for (int i = 0; i < 3 && length == 0; i++)
		if (left >= strlen(word[i]) && memcmp(text, word[i], strlen(word[i])) == 0)
			length = strlen(word[i]);
	if (length == 0)
		return unexpected(s, left && strchr("-0123456789", *text) ? "a number in JSON syntax"
		    : "a JSON value");
	if (length > LIMIT_NUMBER_BYTES)
		return doc_fail_byte(s->ctx, s->label, s->data, s->at, BAD_INPUT,
		    "a number of %zu characters: want at most %d", length, LIMIT_NUMBER_BYTES);
	s->at += length;
	return OK;
}

/* Before a value. An entry that was released counts as one value. */
static Status
count_value(struct scan *s)
{
	if (s->list.inside && s->depth == 2)
		s->n_values = s->list.before + s->list.n++;
	return ++s->n_values <= LIMIT_DOC_VALUES ? OK
	    : doc_fail_byte(s->ctx, s->label, s->data, s->at, LIMIT, "more than %d values", LIMIT_DOC_VALUES);
}

/* One value up to the first value inside it: a scalar, {} or [], or the start of one with content. */
static Status
scan_value(struct scan *s, bool *opened)
{
	char c = next_token(s);
	bool due = s->list.due && c == '[';
	s->list.due = *opened = false;
	TRY(count_value(s));
	if (c != '{' && c != '[')
		return scan_scalar(s);
	if (s->depth == LIMIT_DEPTH)
		return doc_fail_byte(s->ctx, s->label, s->data, s->at, LIMIT, "nesting: want at most %d deep",
		    LIMIT_DEPTH);
	s->at++;
	if (next_token(s) == c + 2) {	/* '}' is '{' + 2, as ']' is '[' + 2 */
		s->at++;
		return OK;
	}
	s->object[s->depth++] = c == '{';
	*opened = true;
	if (due) {
		s->list.inside = true;
		s->list.begin = s->at;
		s->list.before = s->n_values;
	}
	return c == '{' ? scan_key(s) : OK;
}

/* After a value: close what ends here, up to the next value or the end. */
static Status
scan_after(struct scan *s)
{
	while (s->depth) {
		bool object = s->object[s->depth - 1];
		char c = next_token(s);
		if (c == ',') {
			s->at++;
			return object ? scan_key(s) : OK;
		}
		if (c != (object ? '}' : ']'))
			return unexpected(s, object ? "',' or '}'" : "',' or ']'");
		if (s->list.inside && s->depth == 2) {
			s->list.inside = false;
			s->list.end = s->at;
		}
		s->at++;
		s->depth--;
	}
	return OK;
}

static Status
scan_file(struct scan *s)
{
	do {
		bool opened;
		TRY(scan_value(s, &opened));
		if (!opened)
			TRY(scan_after(s));
	} while (s->depth);
	next_token(s);
	return s->at == s->size ? OK : unexpected(s, "the end of the file");
}

/* ---- build ---- */

struct build {
	Ctx *ctx;
	const char *label;
	Arena *texts;		/* where names and texts go */
};

static Status
copy_text(const struct build *b, const char *text, const char **out)
{
	*out = arena_text(b->texts, text, strlen(text));
	return *out ? OK : fail_memory(b->ctx);
}

/* A key. In an array, objects with equal keys share them. */
static Status
copy_key(const struct build *b, const char *key, const Doc *object, int i, const char **out)
{
	const Doc *array = object->parent;
	/* The array of a DocList has no children. */
	bool first = !array || array->kind != DOC_ARRAY || object->index == 0 || object->index >= array->n;
	const Doc *like = first ? NULL : array->child[object->index - 1];
	if (!like || like->kind != DOC_OBJECT || i >= like->n || strcmp(like->child[i]->name, key) != 0)
		return copy_text(b, key, out);
	*out = like->child[i]->name;
	return OK;
}

static Status fill(const struct build *b, const cJSON *from, Doc *to);

static Status
fill_children(const struct build *b, const cJSON *from, Doc *to)
{
	Doc *children;
	const cJSON *item;
	cJSON_ArrayForEach(item, from)
		to->n++;
	TRY(TEMP(b->ctx, to->child, to->n));
	TRY(TEMP(b->ctx, children, to->n));
	int i = 0;
	cJSON_ArrayForEach(item, from) {
		children[i] = (Doc){ .parent = to, .index = i };
		to->child[i] = &children[i];
		if (to->kind == DOC_OBJECT)
			TRY(copy_key(b, item->string, to, i, &children[i].name));
		TRY(fill(b, item, &children[i]));
		i++;
	}
	return to->kind == DOC_OBJECT ? doc_check_unique(b->ctx, b->label, to) : OK;
}

/* Recurses as deep as the scan allowed: LIMIT_DEPTH. */
static Status
fill(const struct build *b, const cJSON *from, Doc *to)
{
	if (cJSON_IsObject(from) || cJSON_IsArray(from)) {
		to->kind = cJSON_IsObject(from) ? DOC_OBJECT : DOC_ARRAY;
		return fill_children(b, from, to);
	}
	if (cJSON_IsString(from)) {
		to->kind = DOC_STRING;
		return copy_text(b, from->valuestring, &to->text);
	}
	if (cJSON_IsNumber(from)) {
		to->kind = DOC_NUMBER;
		to->number = from->valuedouble;
		return isfinite(to->number) ? OK : doc_fail(b->ctx, b->label, to, BAD_INPUT, "a number beyond 1.8e308");
	}
	to->kind = cJSON_IsBool(from) ? DOC_BOOL : DOC_NULL;
	to->flag = cJSON_IsTrue(from);
	return OK;
}

/* The value at the start of the text; *size becomes its length. cJSON replaces the dot of a number by the first byte of
 * the locale's decimal point, which in some locales has two bytes. So this thread parses in the C locale;
 * newlocale("C") takes no memory. */
static cJSON *
parse(const char *data, size_t *size)
{
	const char *end = data;
	locale_t c = newlocale(LC_ALL_MASK, "C", NULL), before = c ? uselocale(c) : NULL;
	cJSON *json = c ? cJSON_ParseWithLengthOpts(data, *size, &end, false) : NULL;
	if (c) {
		uselocale(before);
		freelocale(c);
	}
	*size = (size_t)(end - data);
	return json;
}

static Status
parse_into(const struct build *b, const char *data, size_t *size, Doc *out)
{
	cJSON *json = parse(data, size);
	Status status = json ? fill(b, json, out) : fail_memory(b->ctx);
	cJSON_Delete(json);
	return status;
}

/* The file without the entries of the list. */
static Status
leave_out(Ctx *ctx, const char *data, size_t size, const struct span *list, const char **out)
{
	char *rest;
	TRY(TEMP(ctx, rest, size - (list->end - list->begin)));
	memcpy(rest, data, list->begin);
	memcpy(rest + list->begin, data + list->end, size - list->end);
	*out = rest;
	return OK;
}

Status
doc_read_json_list(Ctx *ctx, const char *label, const char *data, size_t size, const char *name, Doc **out,
    DocList *list)
{
	const struct build build = { ctx, label, &ctx->run };
	Doc *root;
	TRY(doc_check_bytes(ctx, label, data, size));
	size_t mark = size >= 3 && memcmp(data, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
	struct scan scan = { .ctx = ctx, .label = label, .data = data, .size = size, .at = mark, .list.name = name };
	TRY(scan_file(&scan));
	TRY(TEMP(ctx, root, 1));
	const char *rest = data;
	size_t rest_size = size - mark;
	if (scan.list.begin) {
		TRY(leave_out(ctx, data, size, &scan.list, &rest));
		rest_size -= scan.list.end - scan.list.begin;
	}
	TRY(parse_into(&build, rest + mark, &rest_size, root));
	if (scan.list.begin)
		*list = (DocList){ doc_get(root, name), scan.list.n, 0, data + scan.list.begin,
			scan.list.end - scan.list.begin };
	else if (name)
		*list = (DocList){ .array = doc_get(root, name) };
	if (name && list->array && list->array->kind == DOC_ARRAY && !list->text)
		list->n = list->array->n;
	*out = root;
	return OK;
}

Status
doc_read_json(Ctx *ctx, const char *label, const char *data, size_t size, Doc **out)
{
	return doc_read_json_list(ctx, label, data, size, NULL, out, NULL);
}

Status
doc_list_next(Ctx *ctx, const char *label, DocList *list, const Doc **out)
{
	const struct build build = { ctx, label, &ctx->scratch };
	size_t length = list->size;
	Doc *entry;
	if (!list->text) {
		*out = list->array->child[list->next++];
		return OK;
	}
	TRY(TEMP(ctx, entry, 1));
	*entry = (Doc){ .parent = list->array, .index = list->next++ };
	TRY(parse_into(&build, list->text, &length, entry));
	/* Only blanks lie between the entry and its comma. */
	while (length < list->size && list->text[length++] != ',')
		;
	list->text += length;
	list->size -= length;
	*out = entry;
	return OK;
}
