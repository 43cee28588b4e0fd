/* XML to Doc, by expat: we build as it parses, so that each limit holds before memory is spent, and there is no second
 * tree. A DOCTYPE stops the parser before any entity could be declared; so the only entities are XML's own five. Expat
 * and not a larger library, as its start is a large part of what blinkc takes for a small machine. */
#include "format/doc.h"

#include "base/limits.h"
#include "base/text.h"

#include <expat.h>
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
	const char *label;
	const char *const *plural, *const *texts;	/* texts: elements that may have text; NULL: none */
	Text text;			/* of the innermost element that may have some */
	XML_Parser parser;
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
		XML_StopParser(b->parser, XML_FALSE);
}

/* The line on which what the parser stands at begins: a tag, or text. */
static int
here(const struct build *b)
{
	return (int)XML_GetCurrentLineNumber(b->parser);
}

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
count_values(struct build *b, int n)
{
	if (n > LIMIT_DOC_VALUES - b->n_values)
		return fail(b->ctx, LIMIT, "%s:%d: more than %d values", b->label, here(b), LIMIT_DOC_VALUES);
	b->n_values += n;
	return OK;
}

/* ---- elements begin ---- */

static Status
add_attributes(struct build *b, Doc *element, const Doc *like, int n, const char **attribute)
{
	Doc *members;
	element->n = n;
	if (n == 0)
		return OK;
	TRY(TEMP(b->ctx, element->child, n));
	TRY(TEMP(b->ctx, members, n));
	for (int i = 0; i < n; i++) {
		const char *name = attribute[2 * i], *value = attribute[2 * i + 1];
		element->child[i] = &members[i];
		members[i] = (Doc){ .kind = DOC_STRING, .line = element->line, .parent = element, .index = i };
		TRY(copy_name(b, name, like && i < like->n ? like->child[i]->name : NULL, &members[i].name));
		TRY(copy_text(b, value, strlen(value), &members[i].text));
		if (strchr(name, ':'))
			return doc_fail(b->ctx, b->label, &members[i], BAD_INPUT, "a namespace prefix: want none");
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

/* A namespace, declared or used: of its attributes or its name. */
static bool
has_namespace(const char *name, const char **attribute)
{
	bool found = strchr(name, ':') != NULL;
	for (const char **a = attribute; *a; a += 2)
		found |= strncmp(*a, "xmlns", 5) == 0 && ((*a)[5] == 0 || (*a)[5] == ':');
	return found;
}

static int
count_attributes(const char **attribute)
{
	int n = 0;
	while (attribute[2 * n])
		n++;
	return n;
}

static Status
begin(struct build *b, const char *name, const char **attribute)
{
	struct element *element;
	struct open *parent = b->depth ? &b->open[b->depth - 1] : NULL;
	const Doc *like = parent && parent->last ? &parent->last->doc : NULL;
	int n = count_attributes(attribute);
	if (n > LIMIT_ATTRIBUTES)
		return fail(b->ctx, LIMIT, "%s:%d: an element with more than %d attributes", b->label, here(b),
		    LIMIT_ATTRIBUTES);
	if (b->depth == LIMIT_DEPTH)
		return fail(b->ctx, LIMIT, "%s:%d: nesting: want at most %d deep", b->label, here(b), LIMIT_DEPTH);
	TRY(count_values(b, 1 + n));
	TRY(TEMP(b->ctx, element, 1));
	Doc *doc = &element->doc;
	*doc = (Doc){ .kind = DOC_OBJECT, .line = here(b) };
	TRY(read_name(b, name, like, doc));
	if (has_namespace(name, attribute))
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
on_begin(void *user, const char *name, const char **attribute)
{
	struct build *b = user;
	if (b->status == OK)
		settle(b, begin(b, name, attribute));
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

static void
on_end(void *user, const char *name)
{
	(void)name;
	struct build *b = user;
	if (b->status == OK)
		settle(b, end(b));
}

/* ---- the rest of a file ---- */

/* Expat gives a line at a time, and line ends by themselves. */
static void
on_text(void *user, const char *text, int length)
{
	struct build *b = user;
	int blank = 0;
	if (b->status == OK && b->depth && has_text(b, &b->open[b->depth - 1])) {
		text_add(&b->text, text, (size_t)length);
		return;
	}
	while (blank < length && strchr(" \t\r\n", text[blank]))
		blank++;
	if (b->status == OK && blank < length)
		settle(b, fail(b->ctx, BAD_INPUT, "%s:%d: text between tags: want elements and attributes only",
		    b->label, here(b)));
}

static void
on_doctype(void *user, const char *name, const char *system_id, const char *public_id, int has_subset)
{
	(void)name, (void)system_id, (void)public_id, (void)has_subset;
	struct build *b = user;
	if (b->status == OK)
		settle(b, fail(b->ctx, BAD_INPUT, "%s:%d: a DOCTYPE: want none", b->label, here(b)));
}

/* ---- not well formed ---- */

static Status
refuse_end(struct build *b, int line, int column, const char *found)
{
	const Doc *open = &b->open[b->depth - 1].element->doc;
	return fail(b->ctx, BAD_INPUT, "%s:%d:%d: %s: want </%s>, for the tag on line %d", b->label, line, column,
	    found, open->text, open->line);
}

/* What expat found, in our words where its own say too little. */
static Status
refuse_form(struct build *b)
{
	enum XML_Error error = XML_GetErrorCode(b->parser);
	const char *words = XML_ErrorString(error);
	int line = here(b), column = (int)XML_GetCurrentColumnNumber(b->parser) + 1;
	if (error == XML_ERROR_NO_MEMORY)
		return fail_memory(b->ctx);
	if (error == XML_ERROR_TAG_MISMATCH && b->depth)
		return refuse_end(b, line, column, "an end tag");
	if (error == XML_ERROR_NO_ELEMENTS && b->depth)
		return refuse_end(b, line, column, "end of file");
	if (error == XML_ERROR_UNDEFINED_ENTITY)
		words = "an entity that XML has not: want &lt; &gt; &amp; &apos; or &quot;";
	if (error == XML_ERROR_UNCLOSED_TOKEN)
		words = "end of file: want an end of what begins here";
	if (error == XML_ERROR_DUPLICATE_ATTRIBUTE)
		words = "an attribute: given twice: want it once";
	return fail(b->ctx, BAD_INPUT, "%s:%d:%d: %s", b->label, line, column, words ? words : "not well-formed XML");
}

static Status
parse(struct build *b, const char *data, size_t size)
{
	/* The bytes are UTF-8, whatever the prolog says. */
	b->parser = XML_ParserCreate("UTF-8");
	if (!b->parser)
		return fail_memory(b->ctx);
	XML_SetUserData(b->parser, b);
	XML_SetElementHandler(b->parser, on_begin, on_end);
	XML_SetCharacterDataHandler(b->parser, on_text);
	XML_SetStartDoctypeDeclHandler(b->parser, on_doctype);
	if (XML_Parse(b->parser, data, (int)size, XML_TRUE) != XML_STATUS_OK && b->status == OK)
		b->status = refuse_form(b);
	XML_ParserFree(b->parser);
	return b->status;
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
	TRY(TEMP(ctx, b, 1));
	*b = (struct build){ .ctx = ctx, .label = label, .plural = plural, .texts = texts };
	while (plural[n_names])
		n_names++;
	TRY(TEMP(ctx, b->group, n_names / 2 + LIMIT_ATTRIBUTES + 1));
	Status status = parse(b, data, size);
	text_free(&b->text);
	if (status == OK)
		*out = b->root;
	return status;
}
