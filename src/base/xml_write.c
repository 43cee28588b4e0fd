#include "base/xml_write.h"

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

static int
keep_bytes(void *to, const char *bytes, int n)
{
	Text *out = to;
	text_add(out, bytes, (size_t)n);
	return out->failed ? -1 : n;
}

/* Whatever goes wrong is memory. */
static void
keep_error(void *to, XmlError error)
{
	Text *out = to;
	out->failed |= error->level >= XML_ERR_ERROR;
}

static void
settle(XmlWriter *w, int written)
{
	w->out->failed |= written < 0;
}

/* Each of libxml2's functions fails without a writer. */
static void
open_writer(XmlWriter *w)
{
	xml_errors_begin(&w->errors, keep_error, w->out);
	xmlOutputBufferPtr bytes = xmlOutputBufferCreateIO(keep_bytes, NULL, w->out, NULL);
	w->writer = bytes ? xmlNewTextWriter(bytes) : NULL;
	if (!w->writer && bytes)
		xmlOutputBufferClose(bytes);
	settle(w, xmlTextWriterSetIndent(w->writer, 1));
	settle(w, xmlTextWriterSetIndentString(w->writer, BAD_CAST "  "));
	w->open = true;
}

static void
close_writer(XmlWriter *w)
{
	settle(w, xmlTextWriterFlush(w->writer));
	xmlFreeTextWriter(w->writer);
	xml_errors_end(&w->errors);
	w->open = false;
}

static void
put_raw(XmlWriter *w, const char *text)
{
	settle(w, xmlTextWriterWriteRaw(w->writer, BAD_CAST text));
}

/* Escaped by us: libxml2 leaves characters as they are that a terminal takes for commands. */
static void
put_escaped(XmlWriter *w, const char *string, bool content)
{
	Text text = { 0 };
	escape(&text, string, content);
	w->out->failed |= text.failed;
	if (text.size && !text.failed)
		put_raw(w, text.data);
	text_free(&text);
}

void
xml_declaration(XmlWriter *w)
{
	open_writer(w);
	settle(w, xmlTextWriterStartDocument(w->writer, NULL, "UTF-8", NULL));
}

void
xml_elements(XmlWriter *w)
{
	w->elements = true;
}

void
xml_begin(XmlWriter *w, const char *name)
{
	if (!w->open)
		open_writer(w);
	settle(w, xmlTextWriterStartElement(w->writer, BAD_CAST name));
	w->elements = false;
	w->depth++;
}

void
xml_end(XmlWriter *w)
{
	w->depth--;
	if (w->elements) {
		put_raw(w, "\n");
		for (int i = 0; i < w->depth; i++)
			put_raw(w, "  ");
	}
	w->elements = false;
	settle(w, xmlTextWriterEndElement(w->writer));
	if (w->depth == 0)
		close_writer(w);
}

static void
begin_attribute(XmlWriter *w, const char *name)
{
	settle(w, xmlTextWriterStartAttribute(w->writer, BAD_CAST name));
}

static void
end_attribute(XmlWriter *w)
{
	settle(w, xmlTextWriterEndAttribute(w->writer));
}

void
xml_attribute_joined(XmlWriter *w, const char *name, const char *const *part)
{
	begin_attribute(w, name);
	for (; *part; part++)
		put_escaped(w, *part, false);
	end_attribute(w);
}

void
xml_attribute(XmlWriter *w, const char *name, const char *value)
{
	if (value)
		xml_attribute_joined(w, name, (const char *const[]){ value, NULL });
}

/* A number, which is freed. */
static void
put_number(XmlWriter *w, const char *name, Text *number)
{
	w->out->failed |= number->failed;
	xml_attribute(w, name, number->failed ? NULL : number->data);
	text_free(number);
}

void
xml_attribute_int(XmlWriter *w, const char *name, int value)
{
	Text number = { 0 };
	text_int(&number, value);
	put_number(w, name, &number);
}

void
xml_attribute_gb(XmlWriter *w, const char *name, Frac bytes)
{
	Text number = { 0 };
	text_gb(&number, bytes);
	put_number(w, name, &number);
}

void
xml_text(XmlWriter *w, const char *string)
{
	put_escaped(w, string, true);
}
