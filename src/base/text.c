#include "base/text.h"
#include "base/pages.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void
text_free(Text *text)
{
	free(text->data);
	*text = (Text){ 0 };
}

void
text_drop(Text *text, Text *piece)
{
	text->failed |= piece->failed;
	text_free(piece);
}

const char *
text_keep(Arena *arena, Text *text)
{
	const char *copy = text->failed ? NULL : arena_text(arena, text->data ? text->data : "", text->size);
	text_free(text);
	return copy;
}

bool
text_reserve(Text *text, size_t more)
{
	if (text->failed || (text->data && text->room - text->size > more))
		return !text->failed;
	size_t room = text->room ? text->room : 4096;
	if (more >= PAGES_LEAST && more < SIZE_MAX / 4)
		room = text->size + more + PAGES_LEAST;
	while (room - text->size <= more && room < SIZE_MAX / 2)
		room *= 2;
	char *grown = room - text->size > more ? realloc(text->data, room) : NULL;
	if (!grown) {
		text->failed = true;
		return false;
	}
	pages_large(grown, room);
	text->data = grown;
	text->room = room;
	return true;
}

void
text_add(Text *text, const char *data, size_t size)
{
	if (!text_reserve(text, size))
		return;
	memcpy(text->data + text->size, data, size);
	text->size += size;
	text->data[text->size] = 0;
}

void
text_put(Text *text, const char *string)
{
	text_add(text, string, strlen(string));
}

void
text_printf(Text *text, const char *format, ...)
{
	char line[1024];
	va_list args, again;
	va_start(args, format);
	va_copy(again, args);
	int n = vsnprintf(line, sizeof line, format, args);
	if (n < 0)
		text->failed = true;
	else if ((size_t)n < sizeof line)
		text_add(text, line, (size_t)n);
	else if (text_reserve(text, (size_t)n))
		text->size += (size_t)vsnprintf(text->data + text->size, (size_t)n + 1, format, again);
	va_end(again);
	va_end(args);
}

char *
text_digits(char *to, int value)
{
	unsigned rest = value < 0 ? 0u - (unsigned)value : (unsigned)value;
	char digits[10];
	int n = 0;
	if (value < 0)
		*to++ = '-';
	do
		digits[n++] = (char)('0' + rest % 10);
	while ((rest /= 10) > 0);
	while (n > 0)
		*to++ = digits[--n];
	return to;
}

void
text_int(Text *text, int value)
{
	char digits[16];
	text_add(text, digits, (size_t)(text_digits(digits, value) - digits));
}

/* A log of GitHub that shows the file would read ##[ as a command. */
static bool
is_command(const char *string, const char *c)
{
	return *c == '[' && c >= string + 2 && c[-1] == '#' && c[-2] == '#';
}

/* \u escapes, of two halves above U+FFFF; U+FFFD for a byte that is not UTF-8. */
static void
json_code(Text *text, int32_t code)
{
	unsigned c = code < 0 ? 0xfffd : (unsigned)code;
	if (c > 0xffff)
		text_printf(text, "\\u%04x\\u%04x", 0xd7c0 + (c >> 10), 0xdc00 + (c & 0x3ff));
	else
		text_printf(text, "\\u%04x", c);
}

void
text_json(Text *text, const char *string)
{
	const char *plain = string, *c = string;
	text_add(text, "\"", 1);
	for (; *c; c++) {
		bool escaped = *c == '"' || *c == '\\';
		bool command = is_command(string, c);
		if (!escaped && !command && *c >= ' ' && *c < 127)
			continue;
		int32_t code = *c;
		size_t n = escaped ? 1 : character_at(c, CHARACTER_MOST, &code);
		if (!escaped && !command && is_printable(code)) {
			c += n - 1;
			continue;
		}
		text_add(text, plain, (size_t)(c - plain));
		escaped ? text_printf(text, "\\%c", *c) : json_code(text, code);
		c += n - 1;
		plain = c + 1;
	}
	text_add(text, plain, (size_t)(c - plain));
	text_add(text, "\"", 1);
}

/* One that is not printable as its number. Returns its length. */
static size_t
xml_character(Text *text, const char *c)
{
	int32_t code;
	size_t n = character_at(c, CHARACTER_MOST, &code);
	if (code < 0 || is_printable(code))
		text_add(text, c, n);
	else
		text_printf(text, "&#%d;", (int)code);
	return n;
}

void
text_xml(Text *text, const char *string)
{
	for (const char *c = string; *c; c++) {
		if (*c == '&')
			text_put(text, "&amp;");
		else if (*c == '<')
			text_put(text, "&lt;");
		else if (*c == '>')
			text_put(text, "&gt;");
		else if (*c == '"')
			text_put(text, "&quot;");
		else if (*c >= ' ' && *c < 127)
			text_add(text, c, 1);
		else
			c += xml_character(text, c) - 1;
	}
}

void
text_c_string(Text *text, const char *string)
{
	text_put(text, "\"");
	for (const char *c = string; *c; c++) {
		/* Octal escapes end after three digits, and ?? would start a trigraph. */
		if (strchr("\"\\?", *c) || is_command(string, c) || *c < ' ' || *c > 126)
			text_printf(text, "\\%03o", (unsigned char)*c);
		else
			text_add(text, c, 1);
	}
	text_put(text, "\"");
}

void
text_c_comment(Text *text, const char *string)
{
	for (const char *c = string; *c; c++) {
		/* Neither the end nor the start of a comment, nor of a trigraph, nor a command of GitHub. */
		static const char *const pairs[] = { "*/", "/*", "??", "#[" };
		char pair[] = { c > string ? c[-1] : ' ', *c, 0 };
		for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
			if (strcmp(pair, pairs[i]) == 0)
				text_put(text, " ");
		int32_t code;
		size_t n = character_at(c, CHARACTER_MOST, &code);
		/* A backslash could join lines, a control character end one. */
		if (*c == '\\' || !is_printable(code))
			text_put(text, "?");
		else
			text_add(text, c, n);
		c += n - 1;
	}
}

void
text_printable(Text *text, const char *string)
{
	size_t before = text->size;
	text_put(text, string);
	if (!text->failed && text->data)
		make_printable(text->data + before);
}

void
text_gb(Text *text, Frac bytes)
{
	char digits[48];
	decimal_text(bytes.num, (Wide)bytes.den * 1000000000, 15, digits);
	text_put(text, digits);
}

void
text_number(Text *text, double value)
{
	char digits[48];
	int64_t mantissa = 0;
	Wide den = 1;
	int exponent, n = 0;
	snprintf(digits, sizeof digits, "%.14e", value);
	/* Digits, a point of whatever kind, digits, the exponent of the first. */
	for (const char *c = digits; *c && *c != 'e' && n < 15; c++)
		if (*c >= '0' && *c <= '9') {
			mantissa = 10 * mantissa + (*c - '0');
			n++;
		}
	const char *e = strchr(digits, 'e');
	exponent = e ? atoi(e + 1) - 14 : 0;
	for (; exponent < 0 && mantissa % 10 == 0 && mantissa; exponent++)
		mantissa /= 10;
	for (; exponent > 0 && mantissa <= INT64_MAX / 10; exponent--)
		mantissa *= 10;
	for (; exponent < 0 && den < (Wide)INT64_MAX * 1000000000; exponent++)
		den *= 10;
	decimal_text(exponent < 0 ? 0 : mantissa, den, 15, digits);
	text_put(text, digits);
}

void
text_us(Text *text, int64_t ns)
{
	char digits[48];
	decimal_text(ns, 1000, 15, digits);
	text_put(text, digits);
}

bool
text_same(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}
