#include "base/text.h"

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
	while (room - text->size <= more && room < SIZE_MAX / 2)
		room *= 2;
	char *grown = room - text->size > more ? realloc(text->data, room) : NULL;
	if (!grown) {
		text->failed = true;
		return false;
	}
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
	va_list args;
	va_start(args, format);
	int n = vsnprintf(line, sizeof line, format, args);
	va_end(args);
	if (n < 0 || (size_t)n >= sizeof line)
		text->failed = true;
	else
		text_add(text, line, (size_t)n);
}

void
text_int(Text *text, int value)
{
	char digits[16], *first = digits + sizeof digits;
	unsigned rest = value < 0 ? 0u - (unsigned)value : (unsigned)value;
	do
		*--first = (char)('0' + rest % 10);
	while ((rest /= 10) > 0);
	if (value < 0)
		*--first = '-';
	text_add(text, first, (size_t)(digits + sizeof digits - first));
}

void
text_json(Text *text, const char *string)
{
	const char *plain = string, *c = string;
	text_add(text, "\"", 1);
	for (; *c; c++) {
		bool escaped = *c == '"' || *c == '\\';
		if (!escaped && (unsigned char)*c >= ' ' && *c != 127)
			continue;
		text_add(text, plain, (size_t)(c - plain));
		text_printf(text, escaped ? "\\%c" : "\\u%04x", (unsigned char)*c);
		plain = c + 1;
	}
	text_add(text, plain, (size_t)(c - plain));
	text_add(text, "\"", 1);
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
		else if ((unsigned char)*c < ' ')
			text_printf(text, "&#%d;", *c);
		else
			text_add(text, c, 1);
	}
}

void
text_c_string(Text *text, const char *string)
{
	text_put(text, "\"");
	for (const char *c = string; *c; c++) {
		/* Octal escapes end after three digits, and ?? would start a trigraph. */
		if (*c == '"' || *c == '\\' || *c == '?' || (unsigned char)*c < ' ' || (unsigned char)*c > 126)
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
		/* Neither the end nor the start of a comment, nor of a trigraph. */
		char before = c > string ? c[-1] : ' ';
		if ((before == '*' && *c == '/') || (before == '/' && *c == '*') || (before == '?' && *c == '?'))
			text_put(text, " ");
		/* A backslash could join lines, a control character end one. */
		if (*c == '\\' || (unsigned char)*c < ' ' || (unsigned char)*c > 126)
			text_put(text, "?");
		else
			text_add(text, c, 1);
	}
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
	int64_t mantissa = 0, den = 1;
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
	for (; exponent < 0 && den <= INT64_MAX / 10; exponent++)
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

size_t
utf8_valid(const char *data, size_t size)
{
	const unsigned char *d = (const unsigned char *)data;
	size_t i = 0;
	while (i < size) {
		/* Eight bytes of ASCII at once, which is what nearly all files are. */
		uint64_t eight;
		if (size - i >= sizeof eight) {
			memcpy(&eight, d + i, sizeof eight);
			if ((eight & UINT64_C(0x8080808080808080)) == 0) {
				i += sizeof eight;
				continue;
			}
		}
		int more = d[i] < 0x80 ? 0 : d[i] >= 0xc2 && d[i] < 0xe0 ? 1 : d[i] >= 0xe0 && d[i] < 0xf0 ? 2
		    : d[i] >= 0xf0 && d[i] < 0xf5 ? 3 : -1;
		if (more < 0 || (size_t)more >= size - i)
			return i;
		/* Overlong forms, surrogates and what lies above U+10FFFF show in the second byte. */
		if (more > 0) {
			int low = d[i] == 0xe0 ? 0xa0 : d[i] == 0xf0 ? 0x90 : 0x80;
			int high = d[i] == 0xed ? 0x9f : d[i] == 0xf4 ? 0x8f : 0xbf;
			if (d[i + 1] < low || d[i + 1] > high)
				return i;
		}
		for (int k = 2; k <= more; k++)
			if (d[i + k] < 0x80 || d[i + k] > 0xbf)
				return i;
		i += 1 + (size_t)more;
	}
	return i;
}

bool
text_same(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}
