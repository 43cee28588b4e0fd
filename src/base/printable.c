#include "base/printable.h"

#include <string.h>

/* Code points that may not be printed, ascending. */
static const struct range {
	int32_t first, last;
} unprintable[] = {
	{ 0, 0x1f },		/* C0 */
	{ 0x7f, 0x9f },		/* DEL, C1 */
	{ 0xad, 0xad },		/* soft hyphen */
	{ 0x34f, 0x34f },	/* combining grapheme joiner */
	{ 0x61c, 0x61c },	/* Arabic letter mark */
	{ 0x115f, 0x1160 },	/* Hangul fillers */
	{ 0x17b4, 0x17b5 },	/* Khmer vowels without a form */
	{ 0x180b, 0x180f },	/* Mongolian selectors and separator */
	{ 0x200b, 0x200f },	/* of no width; marks of direction */
	{ 0x2028, 0x202e },	/* line and paragraph separators; embeddings and overrides */
	{ 0x2060, 0x206f },	/* joiners, isolates, deprecated formats */
	{ 0x3164, 0x3164 },	/* Hangul filler */
	{ 0xfeff, 0xfeff },	/* byte order mark */
	{ 0xffa0, 0xffa0 },	/* Hangul filler */
	{ 0xfff0, 0xfffb },	/* interlinear annotations */
	{ 0xfffe, 0xffff },	/* no characters */
	{ 0x1bca0, 0x1bca3 },	/* shorthand formats */
	{ 0x1d173, 0x1d17a },	/* musical formats */
	{ 0xe0000, 0xe0fff },	/* tags */
};

/* What takes no column or two, ascending: the blocks of marks, and those that Unicode's East Asian Width calls wide. */
static const struct wide {
	int32_t first, last;
	int columns;
} columns_of[] = {
	{ 0x300, 0x36f, 0 },		/* combining marks */
	{ 0x483, 0x489, 0 }, { 0x591, 0x5bd, 0 }, { 0x610, 0x61a, 0 }, { 0x64b, 0x65f, 0 },
	{ 0x1100, 0x115f, 2 },		/* Hangul */
	{ 0x1ab0, 0x1aff, 0 }, { 0x1dc0, 0x1dff, 0 }, { 0x20d0, 0x20ff, 0 },
	{ 0x2e80, 0x303e, 2 },		/* CJK */
	{ 0x3041, 0x33ff, 2 }, { 0x3400, 0x4dbf, 2 }, { 0x4e00, 0x9fff, 2 }, { 0xa000, 0xa4cf, 2 },
	{ 0xac00, 0xd7a3, 2 }, { 0xf900, 0xfaff, 2 },
	{ 0xfe00, 0xfe0f, 0 },		/* variants of the one before */
	{ 0xfe20, 0xfe2f, 0 },
	{ 0xfe30, 0xfe6f, 2 }, { 0xff00, 0xff60, 2 }, { 0xffe0, 0xffe6, 2 },
	{ 0x1f300, 0x1f64f, 2 },	/* pictures */
	{ 0x1f680, 0x1f6ff, 2 }, { 0x1f900, 0x1f9ff, 2 }, { 0x20000, 0x3fffd, 2 },
};

/* Columns of a terminal that it takes: 0 if it joins the one before, 2 of the wide scripts of East Asia and of
 * pictures. */
static int
character_columns(int32_t code)
{
	for (size_t i = 0; i < sizeof columns_of / sizeof *columns_of; i++)
		if (code <= columns_of[i].last)
			return code < columns_of[i].first ? 1 : columns_of[i].columns;
	return 1;
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

size_t
character_at(const char *text, size_t size, int32_t *code)
{
	unsigned char c = (unsigned char)*text;
	size_t n = c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
	*code = -1;
	if (n > size || utf8_valid(text, n) != n)
		return 1;
	*code = n == 1 ? c : c & (0x7f >> n);
	for (size_t i = 1; i < n; i++)
		*code = *code << 6 | (text[i] & 0x3f);
	return n;
}

size_t
bytes_of_columns(const char *line, int columns, int *used)
{
	size_t at = 0;
	*used = 0;
	while (line[at]) {
		int32_t code;
		size_t n = character_at(line + at, CHARACTER_MOST, &code);
		int more = character_columns(code);
		if (*used + more > columns)
			break;
		*used += more;
		at += n;
	}
	return at;
}

bool
is_printable(int32_t code)
{
	if (code < 0)
		return false;
	for (size_t i = 0; i < sizeof unprintable / sizeof *unprintable; i++)
		if (code <= unprintable[i].last)
			return code < unprintable[i].first;
	return true;
}

/* Is the start of the text a command of GitHub? :: is one at the start of a line only. */
static bool
is_command(const char *text, bool first)
{
	return (first && text[0] == ':' && text[1] == ':') || strncmp(text, "##[", 3) == 0;
}

/* Bytes at the start of the text that are to be printed as they are; 0: *n bytes as ?. */
static size_t
printable_bytes(const char *text, bool first, size_t *n)
{
	int32_t code;
	*n = character_at(text, CHARACTER_MOST, &code);
	return is_printable(code) && !is_command(text, first) ? *n : 0;
}

void
make_printable(char *line)
{
	bool first = true;
	for (size_t n; *line; line += n) {
		if (printable_bytes(line, first, &n) == 0)
			memset(line, '?', n);
		first = first && *line == ' ';
	}
}

void
print_name(FILE *to, const char *name)
{
	bool first = true;
	for (size_t n; *name; name += n) {
		size_t as_is = printable_bytes(name, first, &n);
		fwrite(as_is ? name : "????", 1, n, to);
		first = first && *name == ' ';
	}
}
