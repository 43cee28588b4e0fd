#include "format/xml_markup.h"

#include "base/limits.h"
#include "format/doc.h"

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

static int
line_of(const char *data, size_t at)
{
	int line = 1;
	for (size_t i = 0; i < at; i++)
		line += data[i] == '\n';
	return line;
}

static Status
check_piece(Ctx *ctx, const char *label, const char *data, size_t begin, size_t end)
{
	return end - begin <= LIMIT_XML_BYTES ? OK
	    : fail(ctx, LIMIT, "%s:%d: a tag, a comment or text of %zu bytes: want at most %d", label,
	    line_of(data, begin), end - begin, LIMIT_XML_BYTES);
}

/* A DOCTYPE may declare entities, and libxml2 compares all attributes of an element with each other. */
Status
doc_check_xml(Ctx *ctx, const char *label, const char *data, size_t size)
{
	size_t at = 0;
	TRY(doc_check_bytes(ctx, label, data, size));
	for (Markup m = xml_markup(data, size, 0); m.kind != MARKUP_NONE; m = xml_markup(data, size, at)) {
		TRY(check_piece(ctx, label, data, at, m.begin));
		TRY(check_piece(ctx, label, data, m.begin, m.end));
		if (m.kind == MARKUP_DOCTYPE)
			return fail(ctx, BAD_INPUT, "%s:%d: a DOCTYPE: want none", label, line_of(data, m.begin));
		if (m.n_attributes > LIMIT_ATTRIBUTES)
			return fail(ctx, LIMIT, "%s:%d: an element with more than %d attributes", label,
			    line_of(data, m.begin), LIMIT_ATTRIBUTES);
		at = m.end;
	}
	return check_piece(ctx, label, data, at, size);
}
