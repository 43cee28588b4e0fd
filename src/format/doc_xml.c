/* XML to Doc, by libxml2's SAX2 interface: we build as it parses, so that each limit holds before memory is spent,
 * and there is no second tree. A DOCTYPE stops the parser at its name, before any entity could be declared; so the
 * only entities are XML's own five, and expanding them (XML_PARSE_NOENT) is safe. */
#include "format/doc.h"

#include "base/limits.h"
#include "base/text.h"

#include <ctype.h>
#include <libxml/parser.h>
#include <libxml/parserInternals.h>
#include <libxml/xmlerror.h>
#include <stdio.h>
#include <stdlib.h>
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
	const char *label, *data;	/* data: `left` bytes not given to the parser yet */
	size_t left;
	const char *const *plural, *const *texts;	/* texts: elements that may have text; NULL: none */
	Text text;			/* of the innermost element that may have some */
	xmlParserCtxtPtr parser;
	Status status;
	Doc *root;
	int depth, n_values, n_unknown;
	struct group *group;	/* work space of gather */
	struct open open[LIMIT_DEPTH];
};

/* Keep the status of a step; after a failure the parser makes no more calls. */
static void
settle(struct build *b, Status status)
{
	b->status = status;
	if (status != OK)
		xmlStopParser(b->parser);
}

static int
here(const struct build *b)
{
	return xmlSAX2GetLineNumber(b->parser);
}

/* The line on which the tag begins whose end the parser stands at. A '<' inside an attribute is not well formed. */
static int
tag_line(const struct build *b)
{
	int line = here(b);
	for (const xmlChar *c = b->parser->input->cur; c > b->parser->input->base && *c != '<'; c--)
		line -= *c == '\n';
	return line;
}

static Status
copy_text(struct build *b, const xmlChar *text, size_t length, const char **out)
{
	*out = arena_text(&b->ctx->run, (const char *)text, length);
	return *out ? OK : fail_memory(b->ctx);
}

/* A name; elements in a row with equal names share it. */
static Status
copy_name(struct build *b, const xmlChar *name, const char *like, const char **out)
{
	if (!like || strcmp((const char *)name, like) != 0)
		return copy_text(b, name, strlen((const char *)name), out);
	*out = like;
	return OK;
}

static Status
count_values(struct build *b, int n)
{
	if (n > LIMIT_DOC_VALUES - b->n_values)
		return fail(b->ctx, LIMIT, "%s:%d: more than %d values", b->label, here(b), LIMIT_DOC_VALUES);
	b->n_values += n;
	return OK;
}

/* ---- elements begin ---- */

static Status
add_attributes(struct build *b, Doc *element, const Doc *like, int n, const xmlChar **attribute)
{
	Doc *members;
	element->n = n;
	if (n == 0)
		return OK;
	TRY(TEMP(b->ctx, element->child, n));
	TRY(TEMP(b->ctx, members, n));
	for (int i = 0; i < n; i++) {
		/* local name, prefix, URI, value, end of value */
		const xmlChar **a = attribute + 5 * i;
		element->child[i] = &members[i];
		members[i] = (Doc){ .kind = DOC_STRING, .line = element->line, .parent = element, .index = i };
		TRY(copy_name(b, a[0], like && i < like->n ? like->child[i]->name : NULL, &members[i].name));
		TRY(copy_text(b, a[3], (size_t)(a[4] - a[3]), &members[i].text));
		if (a[1])
			return doc_fail(b->ctx, b->label, &members[i], BAD_INPUT, "a namespace prefix: want none");
	}
	return OK;
}

static Status
read_name(struct build *b, const xmlChar *name, const Doc *like, Doc *element)
{
	for (const char *const *p = b->plural; *p; p += 2) {
		if (strcmp(p[0], (const char *)name) == 0) {
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
begin(struct build *b, const xmlChar *name, const xmlChar *prefix, int n_namespaces, int n, const xmlChar **attribute)
{
	struct element *element;
	struct open *parent = b->depth ? &b->open[b->depth - 1] : NULL;
	const Doc *like = parent && parent->last ? &parent->last->doc : NULL;
	if (b->depth == LIMIT_DEPTH)
		return fail(b->ctx, LIMIT, "%s:%d: nesting: want at most %d deep", b->label, here(b), LIMIT_DEPTH);
	TRY(count_values(b, 1 + n));
	TRY(TEMP(b->ctx, element, 1));
	Doc *doc = &element->doc;
	*doc = (Doc){ .kind = DOC_OBJECT, .line = tag_line(b) };
	TRY(read_name(b, name, like, doc));
	if (n_namespaces || prefix)
		return doc_fail(b->ctx, b->label, doc, BAD_INPUT, "a namespace: want none");
	if (parent && has_text(b, parent))
		return doc_fail(b->ctx, b->label, doc, BAD_INPUT, "inside <%s>: want text only",
		    parent->element->doc.text);
	b->text.size = 0;
	TRY(add_attributes(b, doc, like, n, attribute));
	if (parent) {
		*(parent->last ? &parent->last->next : &parent->first) = element;
		parent->last = element;
		doc->index = parent->n++;
	}
	b->open[b->depth++] = (struct open){ .element = element };
	return OK;
}

static void
on_begin(void *user, const xmlChar *name, const xmlChar *prefix, const xmlChar *uri, int n_namespaces,
    const xmlChar **namespace, int n, int n_defaulted, const xmlChar **attribute)
{
	(void)uri, (void)namespace, (void)n_defaulted;
	struct build *b = user;
	if (b->status == OK)
		settle(b, begin(b, name, prefix, n_namespaces, n, attribute));
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
	TRY(count_values(b, 1));
	TRY(TEMP(b->ctx, text, 1));
	TRY(TEMP(b->ctx, members, doc->n + 1));
	*text = (Doc){ .kind = DOC_STRING, .name = "text", .line = doc->line, .parent = doc, .index = doc->n };
	if (b->text.failed)
		return fail_memory(b->ctx);
	TRY(copy_text(b, (const xmlChar *)b->text.data, b->text.size, &text->text));
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

static void
on_end(void *user, const xmlChar *name, const xmlChar *prefix, const xmlChar *uri)
{
	(void)name, (void)prefix, (void)uri;
	struct build *b = user;
	if (b->status == OK)
		settle(b, end(b));
}

/* ---- the rest of a file ---- */

static Status
refuse_text(struct build *b, const xmlChar *text, int length)
{
	int line = here(b);
	for (int i = length - 1; i >= 0 && strchr(" \t\r\n", text[i]); i--)
		line -= text[i] == '\n';
	return fail(b->ctx, BAD_INPUT, "%s:%d: text between tags: want elements and attributes only", b->label, line);
}

static void
on_text(void *user, const xmlChar *text, int length)
{
	struct build *b = user;
	int blank = 0;
	if (b->status == OK && b->depth && has_text(b, &b->open[b->depth - 1])) {
		text_add(&b->text, (const char *)text, (size_t)length);
		return;
	}
	while (blank < length && strchr(" \t\r\n", text[blank]))
		blank++;
	if (b->status == OK && blank < length)
		settle(b, refuse_text(b, text, length));
}

static void
on_doctype(void *user, const xmlChar *name, const xmlChar *public_id, const xmlChar *system_id)
{
	(void)name, (void)public_id, (void)system_id;
	struct build *b = user;
	if (b->status == OK)
		settle(b, fail(b->ctx, BAD_INPUT, "%s:%d: a DOCTYPE: want none", b->label, here(b)));
}

#if LIBXML_VERSION >= 21200
typedef const xmlError *ErrorPtr;
#else
typedef xmlErrorPtr ErrorPtr;
#endif

static void
on_error(void *user, ErrorPtr error)
{
	struct build *b = user;
	char text[256] = "not well-formed XML";
	if (error->level == XML_ERR_WARNING || error->level == XML_ERR_NONE)
		return;
	/* The parser stops by itself; stopping it here would free the input that it reads. */
	if (b->status != OK)
		return;
	if (error->code == XML_ERR_NO_MEMORY) {
		b->status = fail_memory(b->ctx);
		return;
	}
	if (error->message)
		snprintf(text, sizeof text, "%s", error->message);
	text[strcspn(text, "\n")] = 0;
	text[0] = (char)tolower((unsigned char)text[0]);
	b->status = fail(b->ctx, BAD_INPUT, "%s:%d:%d: %s", b->label, error->line, error->int2, text);
}

/* The file in small pieces, so that the parser keeps no second copy of it. After an error there are none: the parser
 * would go on to look for more errors, with tags that nobody has counted the attributes of. */
static int
next_piece(void *user, char *to, int room)
{
	enum { PIECE = 4096 };
	struct build *b = user;
	size_t n = b->left < (size_t)room ? b->left : (size_t)room;
	n = b->status != OK ? 0 : n < PIECE ? n : PIECE;
	memcpy(to, b->data, n);
	b->data += n;
	b->left -= n;
	return (int)n;
}

static Status
parse(struct build *b)
{
	b->parser = xmlNewParserCtxt();
	if (!b->parser)
		return fail_memory(b->ctx);
	*b->parser->sax = (xmlSAXHandler){
		.initialized = XML_SAX2_MAGIC,
		.startElementNs = on_begin,
		.endElementNs = on_end,
		.characters = on_text,
		.cdataBlock = on_text,
		.internalSubset = on_doctype,
		.serror = on_error,
	};
	b->parser->userData = b;
	/* The bytes are UTF-8, whatever the prolog says. No xmlDoc comes back, as our handler makes none. */
	xmlCtxtReadIO(b->parser, next_piece, NULL, b, NULL, NULL,
	    XML_PARSE_NONET | XML_PARSE_NOENT | XML_PARSE_IGNORE_ENC);
	if (b->status == OK && b->parser->errNo == XML_ERR_NO_MEMORY)
		b->status = fail_memory(b->ctx);
	if (b->status == OK && (!b->parser->wellFormed || !b->root))
		b->status = fail(b->ctx, BAD_INPUT, "%s: not well-formed XML", b->label);
	xmlFreeParserCtxt(b->parser);
	return b->status;
}

/* What a `<` begins that is not a tag, and what ends it. */
static const struct aside {
	const char *begin, *end;
} asides[] = { { "<!--", "-->" }, { "<![CDATA[", "]]>" }, { "<?", "?>" } };

/* Where a comment or the like that begins at `at` ends; 0: none begins there. */
static size_t
aside_end(const char *data, size_t size, size_t at)
{
	for (size_t i = 0; i < sizeof asides / sizeof *asides; i++) {
		size_t n = strlen(asides[i].begin), end = strlen(asides[i].end);
		if (size - at < n || memcmp(data + at, asides[i].begin, n) != 0)
			continue;
		const char *found = memmem(data + at + n, size - at - n, asides[i].end, end);
		return found ? (size_t)(found - data) + end : size;
	}
	return 0;
}

/* The end of the tag that begins at `at`, and its equals signs outside quotes: an attribute each. */
static size_t
scan_tag(const char *data, size_t size, size_t at, int *n_attributes)
{
	char quote = 0;
	*n_attributes = 0;
	for (; at < size && (quote || data[at] != '>'); at++) {
		char c = data[at];
		if (quote)
			quote = c == quote ? 0 : quote;
		else if (c == '"' || c == '\'')
			quote = c;
		else
			*n_attributes += c == '=';
	}
	return at;
}

/* Attributes of each tag, before libxml2 takes quadratic time over them. This is exact for well-formed XML; where the
 * file is not, libxml2 finds that, and gets no more of it than it has by then (next_piece). */
static Status
check_attributes(Ctx *ctx, const char *label, const char *data, size_t size)
{
	const char *tag;
	for (size_t at = 0; at < size && (tag = memchr(data + at, '<', size - at)) != NULL;) {
		size_t begin = (size_t)(tag - data);
		int n;
		at = aside_end(data, size, begin);
		if (at > 0)
			continue;
		at = scan_tag(data, size, begin, &n);
		if (n > LIMIT_ATTRIBUTES)
			return doc_fail_byte(ctx, label, data, begin, LIMIT, "an element with more than %d attributes",
			    LIMIT_ATTRIBUTES);
	}
	return OK;
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
	int n_names = 0;
	TRY(doc_check_bytes(ctx, label, data, size));
	TRY(check_attributes(ctx, label, data, size));
	TRY(TEMP(ctx, b, 1));
	*b = (struct build){ .ctx = ctx, .label = label, .data = data, .left = size, .plural = plural,
		.texts = texts };
	while (plural[n_names])
		n_names++;
	TRY(TEMP(ctx, b->group, n_names / 2 + LIMIT_ATTRIBUTES + 1));
	/* Errors that libxml2 raises without a parser, such as a buffer that cannot grow, go to this thread's
	 * handler, and without one to stderr. */
	xmlStructuredErrorFunc before = xmlStructuredError;
	void *before_user = xmlStructuredErrorContext;
	xmlSetStructuredErrorFunc(b, on_error);
	Status status = parse(b);
	xmlResetLastError();
	xmlSetStructuredErrorFunc(before_user, before);
	text_free(&b->text);
	if (status == OK)
		*out = b->root;
	return status;
}
