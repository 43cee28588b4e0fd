/* Messages about a Doc: the place in the file, and what was found there. */
#include "format/doc.h"
#include "base/frac.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { NAME_SHOWN = 40, PATH_BYTES = 384, MESSAGE_BYTES = 768 };	/* libblink has little stack */

/* ---- numbers as text ---- */

/* 15 significant digits, which give back any decimal of up to 15 digits. Neither the locale's decimal point nor the C
 * library's rounding plays a part. Beyond the sizes that any reader accepts: one digit. */
static void
number_text(double number, char text[DOC_NUMBER_SPACE])
{
	double size = fabs(number);
	int exponent;
	if (size != 0 && (size < 1e-12 || size >= 1e18)) {
		snprintf(text, DOC_NUMBER_SPACE, "%.0e", number);
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

const char *
doc_decimal(const Doc *at, char space[DOC_NUMBER_SPACE])
{
	if (at->kind == DOC_NUMBER) {
		number_text(at->number, space);
		return space;
	}
	if (at->kind != DOC_STRING || !at->line)
		return NULL;
	size_t length = strlen(at->text);
	return length && length <= LIMIT_NUMBER_BYTES && doc_number_length(at->text, length) == length ? at->text
	    : NULL;
}

/* ---- messages ---- */

/* As much of `text` as fits, cut between characters and not inside one. */
static void
copy_short(char *to, size_t space, const char *text)
{
	size_t length = strlen(text);
	if (length < space) {
		memcpy(to, text, length + 1);
		return;
	}
	length = space - sizeof "...";
	while (length && ((unsigned char)text[length] & 0xc0) == 0x80)
		length--;
	memcpy(to, text, length);
	strcpy(to + length, "...");
}

DocFound
doc_found(const Doc *at)
{
	DocFound found;
	char number[DOC_NUMBER_SPACE], string[NAME_SHOWN];
	switch (at->kind) {
	case DOC_NULL:
		strcpy(found.text, "null");
		break;
	case DOC_BOOL:
		strcpy(found.text, at->flag ? "true" : "false");
		break;
	case DOC_NUMBER:
		number_text(at->number, number);
		copy_short(found.text, sizeof found.text, at->text ? at->text : number);
		break;
	case DOC_STRING:
		copy_short(string, sizeof string, at->text);
		/* A number in an XML attribute reads as it does in JSON. */
		snprintf(found.text, sizeof found.text, doc_decimal(at, number) ? "%s" : "\"%s\"", string);
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
	const Doc *path_to[LIMIT_DEPTH + 2];
	int n = 0;
	size_t used = 0;
	for (; at->parent && n <= LIMIT_DEPTH; at = at->parent)
		path_to[n++] = at;
	path[0] = 0;
	while (n-- > 0 && used < PATH_BYTES - 2 * NAME_SHOWN) {
		char name[NAME_SHOWN];
		copy_short(name, sizeof name, path_to[n]->name ? path_to[n]->name : "");
		used += (size_t)(path_to[n]->name
		    ? snprintf(path + used, PATH_BYTES - used, "%s%s", used ? "." : "", name)
		    : snprintf(path + used, PATH_BYTES - used, "[%d]", path_to[n]->index));
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
	char message[MESSAGE_BYTES];
	va_list args;
	va_start(args, format);
	vsnprintf(message, sizeof message, format, args);
	va_end(args);
	return fail_at(ctx, label, at, NULL, status, message);
}

Status
doc_want(Ctx *ctx, const char *label, const Doc *at, const char *want)
{
	return doc_fail(ctx, label, at, BAD_INPUT, "%s: want %s", doc_found(at).text, want);
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
	char message[MESSAGE_BYTES];
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
