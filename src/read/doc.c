/* Questions that a reader asks of a Doc, and the messages where the answer is wrong. No foreign types. */
#include "read/doc.h"

#include "base/frac.h"
#include "base/limits.h"
#include "base/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBER_TEXT = 56, NAME_SHOWN = 40, PATH_BYTES = 384 };

/* ---- Numbers as text ------------------------------------------------------------------------------------ */

/* 15 significant digits, which give back any decimal of up to 15 digits; in a place where neither the locale's
 * decimal point nor the C library's rounding plays a part. Beyond the sizes that any reader accepts: one digit. */
static void
number_text(double number, char text[NUMBER_TEXT])
{
	double size = fabs(number);
	int exponent;
	if (size != 0 && (size < 1e-12 || size >= 1e18)) {
		snprintf(text, NUMBER_TEXT, "%.0e", number);
		return;
	}
	Wide num = (Wide)ldexp(frexp(size, &exponent), 53), den = 1;
	exponent -= 53;
	if (exponent > 0)
		num <<= exponent;
	else
		den <<= -exponent;
	if (number < 0)
		*text++ = '-';
	decimal_text(num, den, 15, text);
}

static size_t
digits_at(const char *text, size_t size, size_t at)
{
	size_t n = 0;
	while (at + n < size && text[at + n] >= '0' && text[at + n] <= '9')
		n++;
	return n;
}

size_t
doc_number_length(const char *text, size_t size)
{
	size_t at = size && text[0] == '-', n = digits_at(text, size, at);
	if (n == 0 || (n > 1 && text[at] == '0'))
		return 0;
	at += n;
	if (at < size && text[at] == '.') {
		n = digits_at(text, size, at + 1);
		if (n == 0)
			return 0;
		at += 1 + n;
	}
	if (at < size && (text[at] == 'e' || text[at] == 'E')) {
		size_t sign = at + 1 < size && (text[at + 1] == '+' || text[at + 1] == '-');
		n = digits_at(text, size, at + 1 + sign);
		if (n == 0)
			return 0;
		at += 1 + sign + n;
	}
	return at;
}

/* The number as decimal text, whichever way the file spells it; NULL: it is none. */
static const char *
decimal_of(const Doc *at, char room[NUMBER_TEXT])
{
	if (at->kind == DOC_NUMBER) {
		number_text(at->number, room);
		return room;
	}
	if (at->kind != DOC_STRING || !at->line)
		return NULL;
	size_t length = strlen(at->text);
	return length && length <= LIMIT_NUMBER_BYTES && doc_number_length(at->text, length) == length ? at->text : NULL;
}

/* ---- Messages ------------------------------------------------------------------------------------------ */

/* As much of `text` as fits, cut between characters and not inside one. */
static void
copy_short(char *to, size_t room, const char *text)
{
	size_t length = strlen(text);
	if (length < room) {
		memcpy(to, text, length + 1);
		return;
	}
	length = room - sizeof "...";
	while (length && ((unsigned char)text[length] & 0xc0) == 0x80)
		length--;
	memcpy(to, text, length);
	strcpy(to + length, "...");
}

DocFound
doc_found(const Doc *at)
{
	DocFound found;
	char number[NUMBER_TEXT], string[NAME_SHOWN];
	switch (at->kind) {
	case DOC_NULL:
		strcpy(found.text, "null");
		break;
	case DOC_BOOL:
		strcpy(found.text, at->flag ? "true" : "false");
		break;
	case DOC_NUMBER:
		number_text(at->number, number);
		strcpy(found.text, number);
		break;
	case DOC_STRING:
		copy_short(string, sizeof string, at->text);
		/* A number in an XML attribute reads as it does in JSON. */
		snprintf(found.text, sizeof found.text, decimal_of(at, number) ? "%s" : "\"%s\"", string);
		break;
	case DOC_ARRAY:
		strcpy(found.text, at->line ? "an element" : "an array");
		break;
	case DOC_OBJECT:
		strcpy(found.text, at->line ? "an element" : "an object");
		break;
	}
	return found;
}

/* link capacity */
static void
xml_path(const Doc *at, const char *member, char path[PATH_BYTES])
{
	const Doc *element = at->kind == DOC_STRING ? at->parent : at;
	char of[NAME_SHOWN] = "", name[NAME_SHOWN] = "";
	copy_short(of, sizeof of, element->text);
	if (element != at)
		member = at->name;
	if (member)
		copy_short(name, sizeof name, member);
	snprintf(path, PATH_BYTES, "%s%s%s", of, member ? " " : "", name);
}

/* links[12].capacity */
static void
json_path(const Doc *at, const char *member, char path[PATH_BYTES])
{
	const Doc *way[LIMIT_DEPTH + 2];
	int n = 0;
	size_t used = 0;
	for (; at->parent && n <= LIMIT_DEPTH; at = at->parent)
		way[n++] = at;
	path[0] = 0;
	while (n-- > 0 && used < PATH_BYTES - 2 * NAME_SHOWN) {
		char name[NAME_SHOWN];
		copy_short(name, sizeof name, way[n]->name ? way[n]->name : "");
		used += (size_t)(way[n]->name
		    ? snprintf(path + used, PATH_BYTES - used, "%s%s", used ? "." : "", name)
		    : snprintf(path + used, PATH_BYTES - used, "[%d]", way[n]->index));
	}
	if (member) {
		char name[NAME_SHOWN];
		copy_short(name, sizeof name, member);
		snprintf(path + used, PATH_BYTES - used, "%s%s", used ? "." : "", name);
	}
}

static Status
fail_at(Ctx *ctx, const char *label, const Doc *at, const char *member, Status status, const char *message)
{
	char path[PATH_BYTES];
	if (at->line) {
		xml_path(at, member, path);
		return fail(ctx, status, "%s:%d: %s: %s", label, at->line, path, message);
	}
	json_path(at, member, path);
	return fail(ctx, status, "%s: %s%s%s", label, path, *path ? ": " : "", message);
}

Status
doc_fail(Ctx *ctx, const char *label, const Doc *at, Status status, const char *format, ...)
{
	char message[sizeof ctx->error.text];
	va_list args;
	va_start(args, format);
	vsnprintf(message, sizeof message, format, args);
	va_end(args);
	return fail_at(ctx, label, at, NULL, status, message);
}

Status
doc_missing(Ctx *ctx, const char *label, const Doc *object, const char *name, const char *want)
{
	char message[128];
	snprintf(message, sizeof message, "missing: want %s", want);
	return fail_at(ctx, label, object, name, BAD_INPUT, message);
}


Status
doc_fail_byte(Ctx *ctx, const char *label, const char *data, size_t offset, Status status, const char *format, ...)
{
	char message[sizeof ctx->error.text];
	size_t line = 1, column = 1;
	for (size_t i = 0; i < offset; i++) {
		column = data[i] == '\n' ? 1 : column + 1;
		line += data[i] == '\n';
	}
	va_list args;
	va_start(args, format);
	vsnprintf(message, sizeof message, format, args);
	va_end(args);
	return fail(ctx, status, "%s:%zu:%zu: %s", label, line, column, message);
}

/* ---- Members ------------------------------------------------------------------------------------------- */

const Doc *
doc_get(const Doc *object, const char *name)
{
	for (int i = 0; i < object->n; i++)
		if (object->child[i]->name && strcmp(object->child[i]->name, name) == 0)
			return object->child[i];
	return NULL;
}

static const char *
kind_text(DocKind kind, bool xml)
{
	static const char *const text[] = { "null", "true or false", "a number", "a string", "an array", "an object" };
	return xml ? kind == DOC_ARRAY ? "elements" : "an attribute" : text[kind];
}

Status
doc_need(Ctx *ctx, const char *label, const Doc *object, const char *name, DocKind kind, const Doc **out)
{
	const Doc *at = doc_get(object, name);
	if (!at)
		return doc_missing(ctx, label, object, name, kind_text(kind, object->line));
	if (at->kind != kind)
		return doc_fail(ctx, label, at, BAD_INPUT, "%s: want %s", doc_found(at).text,
		    kind_text(kind, object->line));
	*out = at;
	return OK;
}

Status
doc_string(Ctx *ctx, const char *label, const Doc *object, const char *name, const char **out)
{
	const Doc *at;
	TRY(doc_need(ctx, label, object, name, DOC_STRING, &at));
	size_t length = strlen(at->text);
	if (length > LIMIT_TEXT_BYTES)
		return doc_fail(ctx, label, at, LIMIT, "%zu bytes: want at most %d", length, LIMIT_TEXT_BYTES);
	*out = at->text;
	return OK;
}

/* What doc_only wants, as the file spells it: links, or <link> in XML. */
static void
wanted_text(const Doc *object, const char *const *names, char *text, size_t room)
{
	const Doc *root = object;
	size_t used = 0;
	while (root->parent)
		root = root->parent;
	for (text[0] = 0; *names && used < room; names++) {
		const char *element = NULL;
		for (const char *const *p = root->line ? root->plural : NULL; p && *p; p += 2)
			if (strcmp(p[1], *names) == 0)
				element = p[0];
		int n = snprintf(text + used, room - used, element ? "%s<%s>" : "%s%s", used ? ", " : "",
		    element ? element : *names);
		used += (size_t)n;
	}
}

Status
doc_only(Ctx *ctx, const char *label, const Doc *object, const char *const *names)
{
	for (int i = 0; i < object->n; i++) {
		const Doc *at = object->child[i];
		const char *const *name = names;
		while (*name && strcmp(*name, at->name) != 0)
			name++;
		if (*name)
			continue;
		char want[384];
		wanted_text(object, names, want, sizeof want);
		return doc_fail(ctx, label, at, BAD_INPUT, "unknown %s: want %s",
		    !at->line ? "member" : at->kind == DOC_STRING ? "attribute" : "element", want);
	}
	return OK;
}

/* By name; of one name, by place. */
static int
by_name(const void *a, const void *b)
{
	const Doc *l = *(Doc *const *)a, *r = *(Doc *const *)b;
	int order = strcmp(l->name, r->name);
	return order ? order : l->index - r->index;
}

Status
doc_check_unique(Ctx *ctx, const char *label, const Doc *object)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	Doc **sorted;
	const Doc *twice = NULL;
	size_t n = (size_t)object->n;
	TRY(TEMP(ctx, sorted, n));
	if (n)
		memcpy(sorted, object->child, n * sizeof *sorted);
	qsort(sorted, n, sizeof *sorted, by_name);
	for (size_t i = 1; i < n; i++)
		if (strcmp(sorted[i - 1]->name, sorted[i]->name) == 0 && (!twice || sorted[i]->index < twice->index))
			twice = sorted[i];
	arena_release(&ctx->scratch, mark);
	return twice ? doc_fail(ctx, label, twice, BAD_INPUT, "given twice: want it once") : OK;
}

/* ---- Numbers ------------------------------------------------------------------------------------------- */

static bool
whole(const Doc *at, int64_t *out)
{
	if (at->kind == DOC_NUMBER) {
		/* Beyond 2^53 a double no longer says which integer the file meant. */
		if (fabs(at->number) > 9007199254740992.0)
			return false;
		*out = (int64_t)at->number;
		return (double)*out == at->number;
	}
	char room[NUMBER_TEXT];
	const char *text = decimal_of(at, room);
	if (!text || strpbrk(text, ".eE"))
		return false;
	bool negative = *text == '-';
	if (!decimal_parse(text + negative, strlen(text + negative), 1, out))
		return false;
	*out = negative ? -*out : *out;
	return true;
}

Status
doc_int(Ctx *ctx, const char *label, const Doc *at, int64_t lo, int64_t hi, int64_t *out)
{
	int64_t value;
	if (whole(at, &value) && lo <= value && value <= hi) {
		*out = value;
		return OK;
	}
	DocFound found = doc_found(at);
	if (lo == hi)
		return doc_fail(ctx, label, at, BAD_INPUT, "%s: want %" PRId64, found.text, lo);
	if (hi == INT64_MAX)
		return doc_fail(ctx, label, at, BAD_INPUT, "%s: want a whole number, %" PRId64 " or more", found.text, lo);
	return doc_fail(ctx, label, at, BAD_INPUT, "%s: want a whole number, %" PRId64 " to %" PRId64, found.text, lo, hi);
}

Status
doc_scaled(Ctx *ctx, const char *label, const Doc *at, int64_t scale, int64_t lo, int64_t hi, const char *unit,
    int64_t *out)
{
	char room[NUMBER_TEXT], limit[48], of[16] = "";
	const char *text = decimal_of(at, room);
	DocFound found = doc_found(at);
	int64_t value = 0;
	if (*unit)
		snprintf(of, sizeof of, " (%s)", unit);
	if (!text)
		return doc_fail(ctx, label, at, BAD_INPUT, "%s: want a number%s", found.text, of);
	bool negative = *text == '-', huge = !decimal_parse(text + negative, strlen(text + negative), scale, &value);
	if (negative && (huge || value > 0))
		value = -1;
	else if (huge || value > hi) {
		decimal_text(hi, scale, 15, limit);
		return doc_fail(ctx, label, at, LIMIT, "%s: want at most %s%s", found.text, limit, of);
	}
	if (value >= lo) {
		*out = value;
		return OK;
	}
	decimal_text(lo, scale, 15, limit);
	return value <= 0 && lo > 0
	    ? doc_fail(ctx, label, at, BAD_INPUT, "%s: want a number above 0%s", found.text, of)
	    : doc_fail(ctx, label, at, BAD_INPUT, "%s: want at least %s%s", found.text, limit, of);
}

/* ---- Bytes --------------------------------------------------------------------------------------------- */

Status
doc_check_bytes(Ctx *ctx, const char *label, const char *data, size_t size)
{
	if (size > LIMIT_FILE_BYTES)
		return fail(ctx, LIMIT, "%s: %zu bytes: want at most %d", label, size, LIMIT_FILE_BYTES);
	if (size == 0)
		return fail(ctx, BAD_INPUT, "%s: empty: want JSON or XML", label);
	size_t good = utf8_valid(data, size);
	if (good < size)
		return doc_fail_byte(ctx, label, data, good, BAD_INPUT, "byte 0x%02x: want UTF-8", (unsigned char)data[good]);
	const char *nul = memchr(data, 0, size);
	if (nul)
		return doc_fail_byte(ctx, label, data, (size_t)(nul - data), BAD_INPUT, "a NUL byte: want text");
	return OK;
}
