/* XML to Doc, by libxml2's xmlTextReader: we build from its events, so that each limit holds before memory is spent.
 *
 * It reads ahead of its events, and counts lines in 16 bits. So we go through the text beside it, from tag to tag
 * (xml_markup.h): before it, to refuse what it must not see, and then with it, to say on which line a tag begins. */
#include "format/doc.h"

#include "base/limits.h"
#include "base/text.h"
#include "base/xml_errors.h"
#include "format/xml_markup.h"

#include <ctype.h>
#include <libxml/xmlreader.h>
#include <stdio.h>
#include <string.h>

/* An element, in the list of its parent's children. */
struct element {
	Doc doc;		/* first, so that a Doc * of ours is one of these */
	struct element *next;
};

struct open {
	struct element *element, *first, *last;
	int n;
};

/* Children of one name, in the order of the names' first elements. There are few: known names, and LIMIT_ATTRIBUTES
 * others. */
struct group {
	const char *name;
	int n, first;		/* its elements, and the place of the first of them in a list of all */
};

struct build {
	Ctx *ctx;
	const char *label, *data;
	size_t size;
	const char *const *plural, *const *texts;	/* texts: elements that may have text; NULL: none */
	Text text;			/* of the innermost element that may have some */
	xmlTextReaderPtr reader;
	struct {
		int code, line, column;	/* code: 0: none so far */
		char text[256];
	} error;			/* the first one that libxml2 found */
	size_t at, counted;		/* behind the last tag; up to where lines are counted */
	int line;			/* at `counted` */
	Doc *root;
	int depth, n_values, n_unknown;
	struct group *group;	/* work space of gather */
	struct open open[LIMIT_DEPTH];
};

/* ---- the text beside the reader ---- */

static Markup
markup(const struct build *b, size_t at)
{
	return xml_markup(b->data, b->size, at);
}

/* The line of a byte. Those that are asked for come in the order of the file. */
static int
line_of(struct build *b, size_t at)
{
	const char *c;
	while (b->counted < at && (c = memchr(b->data + b->counted, '\n', at - b->counted))) {
		b->counted = (size_t)(c - b->data) + 1;
		b->line++;
	}
	b->counted = at;
	return b->line;
}

/* Go past the next tag of this kind, and return its line. */
static int
pass(struct build *b, MarkupKind kind)
{
	Markup m;
	do {
		m = markup(b, b->at);
		b->at = m.end;
	} while (m.kind != kind && m.kind != MARKUP_NONE);
	return line_of(b, m.begin);
}

/* ---- names and texts ---- */

static Status
copy_text(struct build *b, const char *text, size_t length, const char **out)
{
	*out = arena_text(&b->ctx->run, text, length);
	return *out ? OK : fail_memory(b->ctx);
}

/* A name; elements in a row with equal names share it. */
static Status
copy_name(struct build *b, const char *name, const char *like, const char **out)
{
	if (!like || strcmp(name, like) != 0)
		return copy_text(b, name, strlen(name), out);
	*out = like;
	return OK;
}

static Status
count_values(struct build *b, int line, int n)
{
	if (n > LIMIT_DOC_VALUES - b->n_values)
		return fail(b->ctx, LIMIT, "%s:%d: more than %d values", b->label, line, LIMIT_DOC_VALUES);
	b->n_values += n;
	return OK;
}

/* ---- elements begin ---- */

/* The attribute that the reader stands at. */
static Status
add_attribute(struct build *b, Doc *element, const Doc *like, int i, Doc *out)
{
	const char *name = (const char *)xmlTextReaderConstName(b->reader);
	const char *value = (const char *)xmlTextReaderConstValue(b->reader);
	element->child[i] = out;
	if (!name || !value)
		return fail_memory(b->ctx);
	*out = (Doc){ .kind = DOC_STRING, .line = element->line, .parent = element, .index = i };
	TRY(copy_name(b, name, like && i < like->n ? like->child[i]->name : NULL, &out->name));
	TRY(copy_text(b, value, strlen(value), &out->text));
	if (xmlTextReaderIsNamespaceDecl(b->reader))
		return doc_fail(b->ctx, b->label, element, BAD_INPUT, "a namespace: want none");
	return strchr(name, ':') ? doc_fail(b->ctx, b->label, out, BAD_INPUT, "a namespace prefix: want none") : OK;
}

static Status
add_attributes(struct build *b, Doc *element, const Doc *like, int n)
{
	Doc *members;
	element->n = n;
	if (n == 0)
		return OK;
	TRY(TEMP(b->ctx, element->child, n));
	TRY(TEMP(b->ctx, members, n));
	for (int i = 0; i < n; i++) {
		if (xmlTextReaderMoveToNextAttribute(b->reader) != 1)
			return fail_memory(b->ctx);
		TRY(add_attribute(b, element, like, i, &members[i]));
	}
	return OK;
}

static Status
read_name(struct build *b, const char *name, const Doc *like, Doc *element)
{
	for (const char *const *p = b->plural; *p; p += 2) {
		if (strcmp(p[0], name) == 0) {
			element->text = p[0];
			return OK;
		}
	}
	TRY(copy_name(b, name, like ? like->text : NULL, &element->text));
	for (const char *const *p = b->plural; *p; p += 2)
		if (strcmp(p[1], element->text) == 0)
			return doc_fail(b->ctx, b->label, element, BAD_INPUT, "unknown element: want <%s>", p[0]);
	/* The first is reported by whoever knows what its place is for, but not after a million of them. */
	b->n_unknown += b->depth > 0;
	return b->n_unknown <= LIMIT_ATTRIBUTES ? OK
	    : doc_fail(b->ctx, b->label, element, BAD_INPUT, "unknown element: one of more than %d",
	    LIMIT_ATTRIBUTES);
}

static bool
has_text(const struct build *b, const struct open *open)
{
	for (const char *const *t = b->texts; t && *t; t++)
		if (strcmp(*t, open->element->doc.text) == 0)
			return true;
	return false;
}

static Status
begin(struct build *b, const char *name, int line)
{
	struct element *element;
	struct open *parent = b->depth ? &b->open[b->depth - 1] : NULL;
	const Doc *like = parent && parent->last ? &parent->last->doc : NULL;
	int n = xmlTextReaderAttributeCount(b->reader);
	if (!name || n < 0)
		return fail_memory(b->ctx);
	if (b->depth == LIMIT_DEPTH)
		return fail(b->ctx, LIMIT, "%s:%d: nesting: want at most %d deep", b->label, line, LIMIT_DEPTH);
	TRY(count_values(b, line, 1 + n));
	TRY(TEMP(b->ctx, element, 1));
	Doc *doc = &element->doc;
	*doc = (Doc){ .kind = DOC_OBJECT, .line = line };
	TRY(read_name(b, name, like, doc));
	if (strchr(name, ':'))
		return doc_fail(b->ctx, b->label, doc, BAD_INPUT, "a namespace: want none");
	if (parent && has_text(b, parent))
		return doc_fail(b->ctx, b->label, doc, BAD_INPUT, "inside <%s>: want text only",
		    parent->element->doc.text);
	b->text.size = 0;
	TRY(add_attributes(b, doc, like, n));
	if (parent) {
		*(parent->last ? &parent->last->next : &parent->first) = element;
		parent->last = element;
		doc->index = parent->n++;
	}
	b->open[b->depth++] = (struct open){ .element = element };
	return OK;
}

/* ---- elements end ---- */

static const char *
plural_of(const struct build *b, const char *name)
{
	for (const char *const *p = b->plural; *p; p += 2)
		if (strcmp(p[0], name) == 0)
			return p[1];
	return name;
}

/* child[0 .. n-1] have one name: an array of them. */
static Status
make_group(struct build *b, Doc *parent, int index, Doc **child, int n, Doc **out)
{
	Doc *group;
	TRY(TEMP(b->ctx, group, 1));
	*group = (Doc){
		.kind = DOC_ARRAY,
		.name = plural_of(b, child[0]->text),
		.text = child[0]->text,
		.line = child[0]->line,
		.parent = parent,
		.index = index,
		.n = n,
		.child = child,
	};
	for (int i = 0; i < n; i++) {
		child[i]->parent = group;
		child[i]->index = i;
	}
	*out = group;
	return OK;
}

/* Sets the index of each element to its group. */
static int
count_groups(const struct open *open, struct group *group)
{
	int n = 0;
	for (struct element *e = open->first; e; e = e->next) {
		int g = 0;
		while (g < n && group[g].name != e->doc.text && strcmp(group[g].name, e->doc.text) != 0)
			g++;
		if (g == n)
			group[n++] = (struct group){ .name = e->doc.text };
		group[g].n++;
		e->doc.index = g;
	}
	for (int g = 1; g < n; g++)
		group[g].first = group[g - 1].first + group[g - 1].n;
	return n;
}

/* Attributes, then one array for each name of an element, in the order in which the names first appear. */
static Status
gather(struct build *b, struct open *open)
{
	Doc *doc = &open->element->doc, **child, **members;
	struct group *group = b->group;
	int n_groups = count_groups(open, group);
	TRY(TEMP(b->ctx, child, open->n));
	for (struct element *e = open->first; e; e = e->next)
		child[group[e->doc.index].first++] = &e->doc;
	TRY(TEMP(b->ctx, members, doc->n + n_groups));
	if (doc->n)
		memcpy(members, doc->child, (size_t)doc->n * sizeof *members);
	for (int g = 0; g < n_groups; g++) {
		int first = group[g].first - group[g].n;
		TRY(make_group(b, doc, doc->n + g, child + first, group[g].n, &members[doc->n + g]));
	}
	doc->child = members;
	doc->n += n_groups;
	return doc_check_unique(b->ctx, b->label, doc);
}

/* The text of an element, as its member "text". */
static Status
add_text(struct build *b, Doc *doc)
{
	Doc *text, **members;
	TRY(count_values(b, doc->line, 1));
	TRY(TEMP(b->ctx, text, 1));
	TRY(TEMP(b->ctx, members, doc->n + 1));
	*text = (Doc){ .kind = DOC_STRING, .name = "text", .line = doc->line, .parent = doc, .index = doc->n };
	if (b->text.failed)
		return fail_memory(b->ctx);
	TRY(copy_text(b, b->text.data, b->text.size, &text->text));
	if (doc->n)
		memcpy(members, doc->child, (size_t)doc->n * sizeof *members);
	members[doc->n++] = text;
	doc->child = members;
	return doc_check_unique(b->ctx, b->label, doc);
}

static Status
end(struct build *b)
{
	struct open *open = &b->open[b->depth - 1];
	if (has_text(b, open))
		TRY(add_text(b, &open->element->doc));
	if (open->n)
		TRY(gather(b, open));
	if (--b->depth == 0) {
		b->root = &open->element->doc;
		b->root->plural = b->plural;
	}
	return OK;
}

/* ---- the rest of a file ---- */

/* The line of the text that comes next. */
static int
text_line(struct build *b)
{
	size_t at = b->at;
	for (;;) {
		while (at < b->size && strchr(" \t\r\n", b->data[at]))
			at++;
		if (at == b->size || b->data[at] != '<' || xml_begins(b->data, b->size, at, "<![CDATA["))
			return line_of(b, at);
		at = markup(b, at).end;
	}
}

static Status
take_text(struct build *b, const char *text)
{
	if (!text)
		return fail_memory(b->ctx);
	if (b->depth && has_text(b, &b->open[b->depth - 1]))
		text_put(&b->text, text);
	else if (text[strspn(text, " \t\r\n")])
		return fail(b->ctx, BAD_INPUT, "%s:%d: text between tags: want elements and attributes only", b->label,
		    text_line(b));
	return OK;
}

/* What the reader stands at. */
static Status
take_node(struct build *b)
{
	switch (xmlTextReaderNodeType(b->reader)) {
	case XML_READER_TYPE_ELEMENT: {
		bool empty = xmlTextReaderIsEmptyElement(b->reader);
		TRY(begin(b, (const char *)xmlTextReaderConstName(b->reader), pass(b, MARKUP_BEGIN)));
		return empty ? end(b) : OK;
	}
	case XML_READER_TYPE_END_ELEMENT:
		pass(b, MARKUP_END);
		return end(b);
	case XML_READER_TYPE_TEXT:
	case XML_READER_TYPE_CDATA:
	case XML_READER_TYPE_WHITESPACE:
	case XML_READER_TYPE_SIGNIFICANT_WHITESPACE:
		return take_text(b, (const char *)xmlTextReaderConstValue(b->reader));
	default:
		return OK;
	}
}

/* ---- not well formed ---- */

/* The first error; in our words where those of libxml2 say too little. Namespaces are refused by begin(). */
static void
on_error(void *user, XmlError error)
{
	struct build *b = user;
	char *text = b->error.text;
	if (error->level < XML_ERR_ERROR || error->domain == XML_FROM_NAMESPACE
	    || (b->error.code && error->code != XML_ERR_NO_MEMORY))
		return;
	b->error.code = error->code;
	b->error.line = error->line;
	b->error.column = error->int2;
	if (error->code == XML_ERR_TAG_NAME_MISMATCH)
		snprintf(text, sizeof b->error.text, "an end tag: want </%s>, for the tag on line %d", error->str1,
		    error->int1);
	else if (error->code == XML_ERR_UNDECLARED_ENTITY)
		strcpy(text, "an entity that XML has not: want &lt; &gt; &amp; &apos; or &quot;");
	else if (error->code == XML_ERR_ATTRIBUTE_REDEFINED)
		strcpy(text, "an attribute: given twice: want it once");
	else
		snprintf(text, sizeof b->error.text, "%s", error->message && *error->message ? error->message
		    : "not well-formed XML");
	text[strcspn(text, "\n")] = 0;
	if (text[1] >= 'a' && text[1] <= 'z')
		text[0] = (char)tolower((unsigned char)text[0]);
}

/* Has the root ended? Goes on from what the reader has returned. *last: what the file ends inside of; MARKUP_NONE:
 * nothing. */
static bool
root_ends(const struct build *b, Markup *last)
{
	int depth = b->depth;
	bool ended = false;
	for (*last = markup(b, b->at); last->kind != MARKUP_NONE && last->closed; *last = markup(b, last->end)) {
		depth += (last->kind == MARKUP_BEGIN && b->data[last->end - 2] != '/') - (last->kind == MARKUP_END);
		ended |= depth == 0 && last->kind <= MARKUP_END;
	}
	return ended;
}

static Status
refuse_form(struct build *b)
{
	Markup last;
	const Doc *open = b->depth ? &b->open[b->depth - 1].element->doc : NULL;
	bool ended = root_ends(b, &last), cut = last.kind != MARKUP_NONE;
	bool none = b->error.code == XML_ERR_DOCUMENT_EMPTY || !b->error.code;
	if (b->error.code == XML_ERR_NO_MEMORY)
		return fail_memory(b->ctx);
	/* The reader has returned all that is before the end of the file. */
	if (cut && (none || line_of(b, last.begin) <= b->error.line))
		return doc_fail_byte(b->ctx, b->label, b->data, last.begin, BAD_INPUT,
		    "end of file: want an end of what begins here");
	if (open && !ended && (none || b->error.code == XML_ERR_DOCUMENT_END))
		return doc_fail_byte(b->ctx, b->label, b->data, b->size, BAD_INPUT,
		    "end of file: want </%s>, for the tag on line %d", open->text, open->line);
	if (none)
		return doc_fail_byte(b->ctx, b->label, b->data, b->size, BAD_INPUT, "end of file: want an element");
	return fail(b->ctx, BAD_INPUT, "%s:%d:%d: %s", b->label, b->error.line, b->error.column, b->error.text);
}

static Status
parse(struct build *b)
{
	int more;
	/* The bytes are UTF-8, whatever the prolog says. */
	b->reader = xmlReaderForMemory(b->data, (int)b->size, NULL, "UTF-8",
	    XML_PARSE_NONET | XML_PARSE_IGNORE_ENC | XML_PARSE_COMPACT);
	if (!b->reader)
		return fail_memory(b->ctx);
	xmlTextReaderSetStructuredErrorHandler(b->reader, on_error, b);
	while ((more = xmlTextReaderRead(b->reader)) == 1)
		TRY(take_node(b));
	return more < 0 || b->error.code || !b->root ? refuse_form(b) : OK;
}

Status
doc_read_xml(Ctx *ctx, const char *label, const char *data, size_t size, const char *const *plural, Doc **out)
{
	return doc_read_xml_texts(ctx, label, data, size, plural, NULL, out);
}

Status
doc_read_xml_texts(Ctx *ctx, const char *label, const char *data, size_t size, const char *const *plural,
    const char *const *texts, Doc **out)
{
	struct build *b;
	XmlErrors errors;
	int n_names = 0;
	TRY(doc_check_xml(ctx, label, data, size));
	TRY(TEMP(ctx, b, 1));
	*b = (struct build){ .ctx = ctx, .label = label, .data = data, .size = size, .line = 1, .plural = plural,
		.texts = texts };
	while (plural[n_names])
		n_names++;
	TRY(TEMP(ctx, b->group, n_names / 2 + LIMIT_ATTRIBUTES + 1));
	xml_errors_begin(&errors, on_error, b);
	Status status = parse(b);
	xmlFreeTextReader(b->reader);
	xml_errors_end(&errors);
	text_free(&b->text);
	if (status == OK)
		*out = b->root;
	return status;
}
