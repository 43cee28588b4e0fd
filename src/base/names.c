#include "base/names.h"

#include <stdio.h>
#include <string.h>

/* Whatever the locale. */
static int
lower(char c)
{
	return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : (unsigned char)c;
}

/* The next letter that counts in a name as people spell it; 0: none. */
static int
next_letter(const char **text, const char *end)
{
	while (*text < end && (**text == '-' || **text == '_'))
		(*text)++;
	return *text < end ? lower(*(*text)++) : 0;
}

static bool
same(const char *name, const char *text, size_t length, bool spelled)
{
	const char *name_end = name + strlen(name), *end = text + length;
	if (!spelled)
		return (size_t)(name_end - name) == length && memcmp(name, text, length) == 0;
	for (;;) {
		int x = next_letter(&name, name_end), y = next_letter(&text, end);
		if (x != y)
			return false;
		if (!x)
			return true;
	}
}

static bool
find(Names names, const char *text, size_t length, bool spelled, int *out)
{
	for (int i = 0; i < names.n; i++) {
		if (names.name[i] && same(names.name[i], text, length, spelled)) {
			*out = i;
			return true;
		}
	}
	return false;
}

bool
names_find(Names names, const char *text, int *out)
{
	return find(names, text, strlen(text), false, out);
}

bool
names_find_spelled(Names names, const char *text, int *out)
{
	return find(names, text, strlen(text), true, out);
}

static const char *
parse_set(Names names, const char *text, bool spelled, unsigned *out)
{
	unsigned set = 0;
	for (const char *at = text;; at++) {
		size_t length = strcspn(at, ",");
		int i;
		if (!find(names, at, length, spelled, &i))
			return at;
		set |= 1u << i;
		at += length;
		if (!*at)
			break;
	}
	*out = set;
	return NULL;
}

const char *
names_parse_set(Names names, const char *text, unsigned *out)
{
	return parse_set(names, text, false, out);
}

const char *
names_parse_set_spelled(Names names, const char *text, unsigned *out)
{
	return parse_set(names, text, true, out);
}

/* ---- what was meant ---- */

enum { WORD = 32 };		/* longer ones are like no name */

/* How many letters must be added, removed, replaced, or swapped with the next, to make one of the other. */
static int
distance(const char *a, size_t n_a, const char *b, size_t n_b)
{
	int row[3][WORD + 1];	/* of the last two letters of a, and this one */
	for (size_t j = 0; j <= n_b; j++)
		row[0][j] = (int)j;
	for (size_t i = 1; i <= n_a; i++) {
		int *now = row[i % 3];
		const int *last = row[(i + 2) % 3], *before = row[(i + 1) % 3];
		now[0] = (int)i;
		for (size_t j = 1; j <= n_b; j++) {
			int x = lower(a[i - 1]), y = lower(b[j - 1]);
			int best = last[j - 1] + (x != y);
			best = last[j] + 1 < best ? last[j] + 1 : best;
			best = now[j - 1] + 1 < best ? now[j - 1] + 1 : best;
			if (i > 1 && j > 1 && x == lower(b[j - 2])
			    && y == lower(a[i - 2]) && before[j - 2] + 1 < best)
				best = before[j - 2] + 1;
			now[j] = best;
		}
	}
	return row[n_a % 3][n_b];
}

int
names_like_all(Names names, const char *text, const char **found, int most)
{
	size_t n = strlen(text);
	int least = n < 3 ? 0 : n < 6 ? 1 : n < 9 ? 2 : 3, n_found = 0;
	for (int i = 0; i < names.n && n <= WORD; i++) {
		const char *name = names.name[i];
		size_t k = name ? strlen(name) : WORD + 1;
		int d = k <= WORD ? distance(text, n, name, k) : WORD;
		if (d > least)
			continue;
		n_found = d < least ? 0 : n_found;
		least = d;
		if (n_found < most)
			found[n_found++] = name;
	}
	return n_found;
}

const char *
names_like(Names names, const char *text)
{
	const char *found;
	return names_like_all(names, text, &found, 1) ? found : NULL;
}

NamesText
names_hint(Names names, const char *text)
{
	NamesText out = { "" };
	const char *name = names_like(names, text);
	if (name)
		snprintf(out.text, sizeof out.text, "; did you mean %s?", name);
	return out;
}

/* ---- lists ---- */

NamesText
names_text(Names names, unsigned set, const char *between, const char *last)
{
	NamesText out = { "" };
	size_t used = 0;
	set &= (1u << names.n) - 1;
	for (int i = 0; i < names.n && used < sizeof out.text; i++) {
		if (!names.name[i] || !(set >> i & 1))
			continue;
		const char *before = used == 0 ? "" : set >> i >> 1 ? between : last;
		used += (size_t)snprintf(out.text + used, sizeof out.text - used, "%s%s", before, names.name[i]);
	}
	return out;
}

NamesText
names_wanted(Names names)
{
	return names_text(names, ~0u, ", ", " or ");
}
