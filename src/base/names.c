#include "base/names.h"

#include <stdio.h>
#include <string.h>

static bool
find(Names names, const char *text, size_t length, int *out)
{
	for (int i = 0; i < names.n; i++) {
		if (names.name[i] && strlen(names.name[i]) == length && memcmp(names.name[i], text, length) == 0) {
			*out = i;
			return true;
		}
	}
	return false;
}

bool
names_find(Names names, const char *text, int *out)
{
	return find(names, text, strlen(text), out);
}

const char *
names_parse_set(Names names, const char *text, unsigned *out)
{
	unsigned set = 0;
	for (const char *at = text;; at++) {
		size_t length = strcspn(at, ",");
		int i;
		if (!find(names, at, length, &i))
			return at;
		set |= 1u << i;
		at += length;
		if (!*at)
			break;
	}
	*out = set;
	return NULL;
}

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
