#include "base/xml_write.h"

#include <assert.h>
#include <string.h>

/* Length of the character at the start of a string that is not empty: one byte where it is not UTF-8. */
static size_t
character_length(const char *c)
{
	size_t n = 1;
	while (n < 4 && ((unsigned char)c[n] & 0xc0) == 0x80)
		n++;
	return utf8_valid(c, n) == n ? n : 1;
}

/* Can XML 1.0 hold it? Not most control characters, U+FFFE, U+FFFF, and bytes that are not UTF-8. */
static bool
allowed(const char *c, size_t n)
{
	if (utf8_valid(c, n) != n || ((unsigned char)*c < ' ' && !strchr("\t\n\r", *c)))
		return false;
	return n != 3 || (memcmp(c, "\xef\xbf\xbe", 3) != 0 && memcmp(c, "\xef\xbf\xbf", 3) != 0);
}

/* U+FFFD replaces what XML cannot hold. In content a newline is itself. */
static void
escape(Text *out, const char *string, bool content)
{
	for (size_t n; *string; string += n) {
		char character[5] = "";
		n = character_length(string);
		memcpy(character, string, n);
		if (!allowed(string, n))
			text_put(out, "\xef\xbf\xbd");
		else if (content && *string == '\n')
			text_add(out, "\n", 1);
		else
			text_xml(out, character);
	}
}

static void
indent(XmlWriter *w)
{
	for (int i = 0; i < w->depth; i++)
		text_put(w->out, "  ");
}

void
xml_declaration(XmlWriter *w)
{
	text_put(w->out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
}

void
xml_elements(XmlWriter *w)
{
	if (!w->open[w->depth - 1].filled)
		text_put(w->out, ">\n");
	w->open[w->depth - 1].filled = true;
}

void
xml_begin(XmlWriter *w, const char *name)
{
	assert(w->depth < XML_DEPTH);
	if (w->depth)
		xml_elements(w);
	indent(w);
	text_printf(w->out, "<%s", name);
	w->open[w->depth].name = name;
	w->open[w->depth].filled = false;
	w->open[w->depth++].text = false;
}

void
xml_end(XmlWriter *w)
{
	w->depth--;
	if (!w->open[w->depth].filled) {
		text_put(w->out, "/>\n");
		return;
	}
	if (!w->open[w->depth].text)
		indent(w);
	text_printf(w->out, "</%s>\n", w->open[w->depth].name);
}

static void
begin_attribute(XmlWriter *w, const char *name)
{
	text_printf(w->out, " %s=\"", name);
}

static void
end_attribute(XmlWriter *w)
{
	text_add(w->out, "\"", 1);
}

void
xml_attribute_joined(XmlWriter *w, const char *name, const char *const *part)
{
	begin_attribute(w, name);
	for (; *part; part++)
		escape(w->out, *part, false);
	end_attribute(w);
}

void
xml_attribute(XmlWriter *w, const char *name, const char *value)
{
	if (value)
		xml_attribute_joined(w, name, (const char *const[]){ value, NULL });
}

void
xml_attribute_int(XmlWriter *w, const char *name, int value)
{
	begin_attribute(w, name);
	text_int(w->out, value);
	end_attribute(w);
}

void
xml_attribute_gb(XmlWriter *w, const char *name, Frac bytes)
{
	begin_attribute(w, name);
	text_gb(w->out, bytes);
	end_attribute(w);
}

void
xml_attribute_us(XmlWriter *w, const char *name, int64_t ns)
{
	begin_attribute(w, name);
	text_us(w->out, ns);
	end_attribute(w);
}

void
xml_text(XmlWriter *w, const char *string)
{
	if (!w->open[w->depth - 1].filled)
		text_put(w->out, ">");
	w->open[w->depth - 1].filled = w->open[w->depth - 1].text = true;
	escape(w->out, string, true);
}
