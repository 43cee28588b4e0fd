/* JSON to Doc.
 *
 * A strict scan comes first: it names the line and column of a fault, counts the values, and then the children of each
 * array and object, so that each gets its place at once. What is built from then on is well formed. A value takes
 * 72 bytes, for at least two of the file. */
#include "format/doc.h"
#include "format/json_scan.h"

#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct build {
	Ctx *ctx;
	const char *label;
	Arena *texts;		/* where names and texts go */
	const char *at, *end;	/* the next byte of the file, and its end */
	const char *skip, *skip_to;	/* at `skip`, entries of a list are left out up to `skip_to` */
	const int *children;	/* of the arrays and objects that are still to come, with content */
	locale_t c;
};

static char
next_token(struct build *b)
{
	while (*b->at == ' ' || *b->at == '\n' || *b->at == '\t' || *b->at == '\r')
		b->at++;
	return *b->at;
}

/* ---- strings ---- */

static unsigned
hex4(const char *at)
{
	unsigned value = 0;
	for (int i = 0; i < 4; i++)
		value = value * 16 + (unsigned)(at[i] <= '9' ? at[i] - '0' : (at[i] | 32) - 'a' + 10);
	return value;
}

static char *
put_utf8(char *to, unsigned c)
{
	static const unsigned char first[] = { 0, 0, 0xc0, 0xe0, 0xf0 };
	int n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
	for (int i = n - 1; i > 0; i--, c >>= 6)
		to[i] = (char)(0x80 | (c & 0x3f));
	to[0] = (char)(first[n > 1 ? n : 0] | c);
	return to + n;
}

/* An escape, behind its backslash: at most as long as what it stands for. */
static char *
unescape(const char **from, char *to)
{
	static const char plain[] = "\"\\/bfnrt", means[] = "\"\\/\b\f\n\r\t";
	char c = *(*from)++;
	if (c != 'u') {
		*to = means[strchr(plain, c) - plain];
		return to + 1;
	}
	unsigned unit = hex4(*from);
	*from += 4;
	if (unit >= 0xd800 && unit <= 0xdbff) {
		unit = 0x10000 + ((unit - 0xd800) << 10) + (hex4(*from + 2) - 0xdc00);
		*from += 6;
	}
	return put_utf8(to, unit);
}

/* The closing quote of the string whose text begins at `at`. */
static const char *
string_end(const char *at, bool *escaped)
{
	*escaped = false;
	for (; *at != '"'; at++) {
		if (*at == '\\') {
			*escaped = true;
			at++;
		}
	}
	return at;
}

/* The string that begins here. like: NULL, or a text to be shared where it is the same. */
static Status
take_string(struct build *b, const char *like, const char **out)
{
	bool escaped;
	const char *from = b->at + 1, *end = string_end(from, &escaped);
	size_t length = (size_t)(end - from);
	b->at = end + 1;
	if (like && !escaped && strncmp(like, from, length) == 0 && like[length] == 0) {
		*out = like;
		return OK;
	}
	char *copy = arena_text(b->texts, from, length), *to = copy;
	if (!copy)
		return fail_memory(b->ctx);
	*out = copy;
	while (escaped && from < end) {
		if (*from == '\\') {
			from++;
			to = unescape(&from, to);
		} else {
			*to++ = *from++;
		}
	}
	if (escaped)
		*to = 0;
	return OK;
}

/* ---- numbers ---- */

/* A whole number of more than 2^53, which a double may take for another one. */
static bool
is_rounded(const char *text, double number)
{
	const char *digits = text + (*text == '-');
	return fabs(number) >= 0x1p53 && strspn(digits, "0123456789") == strlen(digits)
	    && strcmp(digits, "9007199254740992") != 0;
}

static Status
take_number(struct build *b, Doc *out)
{
	char text[LIMIT_NUMBER_BYTES + 1];
	int64_t whole = 0;
	size_t digits = 0, left = (size_t)(b->end - b->at);
	/* Most are short and whole. */
	while (digits < left && digits < 15 && b->at[digits] >= '0' && b->at[digits] <= '9')
		whole = 10 * whole + (b->at[digits++] - '0');
	out->kind = DOC_NUMBER;
	out->number = (double)whole;
	if (digits == 0 || (digits < left && strchr("0123456789.eE", b->at[digits]))) {
		digits = doc_number_length(b->at, left);
		memcpy(text, b->at, digits);
		text[digits] = 0;
		out->number = strtod_l(text, NULL, b->c);
		if (is_rounded(text, out->number) && !(out->text = arena_text(b->texts, text, digits)))
			return fail_memory(b->ctx);
	}
	b->at += digits;
	return isfinite(out->number) ? OK : doc_fail(b->ctx, b->label, out, BAD_INPUT, "a number beyond 1.8e308");
}

/* ---- values ---- */

/* The key of a member. In an array, objects with equal keys share them. */
static Status
take_key(struct build *b, const Doc *object, int i, const char **out)
{
	const Doc *array = object->parent;
	/* The array of a DocList has no children. */
	bool first = !array || array->kind != DOC_ARRAY || object->index == 0 || object->index >= array->n;
	const Doc *like = first ? NULL : array->child[object->index - 1];
	next_token(b);
	TRY(take_string(b, like && like->kind == DOC_OBJECT && i < like->n ? like->child[i]->name : NULL, out));
	next_token(b);
	b->at++;		/* the colon */
	return OK;
}

static Status take_value(struct build *b, Doc *to);

/* Recurses as deep as the scan allowed: LIMIT_DEPTH. */
static Status
take_children(struct build *b, Doc *to)
{
	Doc *children;
	b->at++;
	if (next_token(b) == (to->kind == DOC_OBJECT ? '}' : ']')) {
		b->at++;
		return OK;
	}
	int n = *b->children++;
	if (b->at == b->skip)
		b->at = b->skip_to;
	to->child = arena_raw(&b->ctx->scratch, (size_t)n, sizeof(Doc *));
	children = arena_raw(&b->ctx->scratch, (size_t)n, sizeof *children);
	if (!to->child || !children)
		return fail_memory(b->ctx);
	for (int i = 0; i < n; i++) {
		children[i] = (Doc){ .parent = to, .index = i };
		to->child[i] = &children[i];
		to->n = i + 1;
		if (to->kind == DOC_OBJECT)
			TRY(take_key(b, to, i, &children[i].name));
		TRY(take_value(b, &children[i]));
		if (next_token(b) == ',')
			b->at++;
	}
	b->at++;
	return to->kind == DOC_OBJECT ? doc_check_unique(b->ctx, b->label, to) : OK;
}

static Status
take_value(struct build *b, Doc *to)
{
	switch (next_token(b)) {
	case '{':
	case '[':
		to->kind = *b->at == '{' ? DOC_OBJECT : DOC_ARRAY;
		return take_children(b, to);
	case '"':
		to->kind = DOC_STRING;
		return take_string(b, NULL, &to->text);
	case 'n':
		to->kind = DOC_NULL;
		b->at += strlen("null");
		return OK;
	case 't':
	case 'f':
		to->kind = DOC_BOOL;
		to->flag = *b->at == 't';
		b->at += strlen(to->flag ? "true" : "false");
		return OK;
	default:
		return take_number(b, to);
	}
}

/* From b->at on. strtod reads the decimal point of the locale. newlocale("C") takes no memory. */
static Status
build(struct build *b, Doc *out)
{
	b->c = newlocale(LC_ALL_MASK, "C", NULL);
	if (!b->c)
		return fail_memory(b->ctx);
	Status status = take_value(b, out);
	freelocale(b->c);
	return status;
}

/* ---- files ---- */

Status
doc_read_json_list(Ctx *ctx, const char *label, const char *data, size_t size, const char *name, Doc **out,
    DocList *list)
{
	Doc *root;
	int *children, *of_entry;
	TRY(doc_check_bytes(ctx, label, data, size));
	size_t mark = size >= 3 && memcmp(data, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
	JsonScan first = { .ctx = ctx, .label = label, .data = data, .size = size, .at = mark, .list.name = name };
	TRY(json_scan_file(&first));
	TRY(TEMP(ctx, of_entry, first.list.most_open));
	TRY(TEMP(ctx, children, first.n_open));
	JsonScan counts = { .ctx = ctx, .label = label, .data = data, .size = size, .at = mark, .list = first.list,
		.children = children };
	TRY(json_scan_file(&counts));
	struct build b = { .ctx = ctx, .label = label, .texts = &ctx->run, .at = data + mark, .end = data + size,
		.children = children };
	if (first.list.begin) {
		b.skip = data + first.list.begin;
		b.skip_to = data + first.list.end;
	}
	TRY(TEMP(ctx, root, 1));
	TRY(build(&b, root));
	if (first.list.begin)
		*list = (DocList){ doc_get(root, name), first.list.n, 0, b.skip, (size_t)(b.skip_to - b.skip),
			of_entry };
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

/* Only blanks lie between the entry and its comma. */
static void
pass_entry(DocList *list, const char *at)
{
	const char *end = list->text + list->size;
	while (at < end && *at++ != ',')
		;
	list->text = at;
	list->size = (size_t)(end - at);
}

Status
doc_list_next(Ctx *ctx, const char *label, DocList *list, const Doc **out)
{
	Doc *entry;
	if (!list->text) {
		*out = list->array->child[list->next++];
		return OK;
	}
	JsonScan scan = { .ctx = ctx, .label = label, .data = list->text, .size = list->size,
		.children = list->children };
	TRY(json_scan_value(&scan));
	TRY(TEMP(ctx, entry, 1));
	*entry = (Doc){ .parent = list->array, .index = list->next++ };
	struct build b = { .ctx = ctx, .label = label, .texts = &ctx->scratch, .at = list->text,
		.end = list->text + list->size, .children = list->children };
	TRY(build(&b, entry));
	pass_entry(list, list->text + scan.at);
	*out = entry;
	return OK;
}

JsonTokens
doc_list_tokens(const DocList *list)
{
	return (JsonTokens){ list->text, list->text ? list->text + list->size : NULL };
}

void
doc_list_took(DocList *list, const char *at)
{
	list->next++;
	pass_entry(list, at);
}
