#include "format/xml_markup.h"

#include <string.h>

bool
xml_begins(const char *data, size_t size, size_t at, const char *with)
{
	size_t n = strlen(with);
	return size - at >= n && memcmp(data + at, with, n) == 0;
}

/* The end of a tag, and its equals signs outside quotes: an attribute each. */
static void
scan_tag(const char *data, size_t size, Markup *m)
{
	char quote = 0;
	size_t at = m->begin;
	for (; at < size && (quote || data[at] != '>'); at++) {
		char c = data[at];
		if (quote)
			quote = c == quote ? 0 : quote;
		else if (c == '"' || c == '\'')
			quote = c;
		else
			m->n_attributes += c == '=';
	}
	m->closed = at < size;
	m->end = at + m->closed;
}

Markup
xml_markup(const char *data, size_t size, size_t at)
{
	static const char *const aside[][2] = { { "<!--", "-->" }, { "<![CDATA[", "]]>" }, { "<?", "?>" } };
	const char *found = at < size ? memchr(data + at, '<', size - at) : NULL;
	Markup m = { .kind = MARKUP_NONE, .begin = size, .end = size };
	if (!found)
		return m;
	m.begin = (size_t)(found - data);
	for (size_t i = 0; i < sizeof aside / sizeof *aside; i++) {
		if (!xml_begins(data, size, m.begin, aside[i][0]))
			continue;
		size_t from = m.begin + strlen(aside[i][0]), n = strlen(aside[i][1]);
		const char *end = memmem(data + from, size - from, aside[i][1], n);
		m.kind = MARKUP_ASIDE;
		m.closed = end != NULL;
		m.end = end ? (size_t)(end - data) + n : size;
		return m;
	}
	m.kind = xml_begins(data, size, m.begin, "</") ? MARKUP_END
	    : xml_begins(data, size, m.begin, "<!") ? MARKUP_DOCTYPE : MARKUP_BEGIN;
	scan_tag(data, size, &m);
	return m;
}
