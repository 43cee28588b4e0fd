/* Mutations of XML (tree.h). Reading is lenient: an end tag ends the innermost element, whatever its name. */
#ifndef BLINK_FUZZ_XML_MUTATOR_H
#define BLINK_FUZZ_XML_MUTATOR_H

#include "tree.h"

/* Kinds of nodes. Attributes are children of their element, before all others. */
#define XML_DOCUMENT 'd'
#define XML_ELEMENT '<'
#define XML_ATTRIBUTE '='
#define XML_TEXT 't'		/* as it is in the file; also comments, declarations and sections */

/* ---- reading ---- */

struct xml_at {
	const char *c, *end;
};

static bool
xml_is_blank(char c)
{
	return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

static void
xml_blanks(struct xml_at *at)
{
	while (at->c < at->end && xml_is_blank(*at->c))
		at->c++;
}

static bool
xml_begins(const struct xml_at *at, const char *with)
{
	size_t n = strlen(with);
	return (size_t)(at->end - at->c) >= n && memcmp(at->c, with, n) == 0;
}

static bool
xml_name(struct xml_at *at, const char **name, size_t *size)
{
	*name = at->c;
	while (at->c < at->end && !xml_is_blank(*at->c) && !strchr("<>=/\"'", *at->c))
		at->c++;
	*size = (size_t)(at->c - *name);
	return *size > 0;
}

/* name="value" */
static bool
xml_attribute(struct xml_at *at, int element, int *last)
{
	int me = tree_new(XML_ATTRIBUTE);
	if (me < 0 || !xml_name(at, &node[me].key, &node[me].key_size))
		return false;
	xml_blanks(at);
	if (at->c == at->end || *at->c++ != '=')
		return false;
	xml_blanks(at);
	if (at->c == at->end || (*at->c != '"' && *at->c != '\''))
		return false;
	const char *first = at->c + 1, *quote = memchr(first, *at->c, (size_t)(at->end - first));
	if (!quote)
		return false;
	tree_text(me, first, (size_t)(quote - first));
	at->c = quote + 1;
	tree_append(element, last, me);
	return true;
}

/* "<!--...-->" and the like, up to the first `end`. */
static bool
xml_section(struct xml_at *at, const char *end, int parent, int *last)
{
	const char *stop = memmem(at->c, (size_t)(at->end - at->c), end, strlen(end));
	int me = tree_new(XML_TEXT);
	if (me < 0 || !stop)
		return false;
	tree_text(me, at->c, (size_t)(stop - at->c) + strlen(end));
	tree_append(parent, last, me);
	at->c = stop + strlen(end);
	return true;
}

/* "<name ...>" or "<name .../>". */
static bool
xml_start(struct xml_at *at, int me, int *last)
{
	at->c++;
	if (!xml_name(at, &node[me].key, &node[me].key_size))
		return false;
	for (xml_blanks(at); at->c < at->end && *at->c != '>' && *at->c != '/'; xml_blanks(at))
		if (!xml_attribute(at, me, last))
			return false;
	return at->c < at->end;
}

/* What is neither a tag nor a section, but for blanks around it. */
static bool
xml_content(struct xml_at *at, int parent, int *last)
{
	const char *end = memchr(at->c, '<', (size_t)(at->end - at->c)), *first = at->c;
	at->c = end = end ? end : at->end;
	while (first < end && xml_is_blank(*first))
		first++;
	while (first < end && xml_is_blank(end[-1]))
		end--;
	int me = first < end ? tree_new(XML_TEXT) : -1;
	if (me >= 0) {
		tree_text(me, first, (size_t)(end - first));
		tree_append(parent, last, me);
	}
	return me >= 0 || first == end;
}

/* A tag: *depth elements are open. */
static bool
xml_tag(struct xml_at *at, int within[NESTED], int last[NESTED], int *depth)
{
	if (xml_begins(at, "</")) {
		const char *end = memchr(at->c, '>', (size_t)(at->end - at->c));
		at->c = end ? end + 1 : at->end;
		return end && (*depth)-- > 0;
	}
	int me = tree_new(XML_ELEMENT), last_child = -1;
	if (me < 0 || !xml_start(at, me, &last_child))
		return false;
	tree_append(within[*depth], &last[*depth], me);
	bool open = *at->c == '>';
	if (!open && !xml_begins(at, "/>"))
		return false;
	at->c += open ? 1 : 2;
	if (open && ++*depth < NESTED) {
		within[*depth] = me;
		last[*depth] = last_child;
	}
	return *depth < NESTED;
}

static int
xml_parse(const char *text, size_t size)
{
	static const char *const section[][2] = { { "<!--", "-->" }, { "<![CDATA[", "]]>" }, { "<?", "?>" },
		{ "<!", ">" } };
	enum { SECTIONS = sizeof section / sizeof *section };
	struct xml_at at = { text, text + size };
	int root = tree_new(XML_DOCUMENT), within[NESTED] = { root }, last[NESTED] = { -1 }, depth = 0;
	bool good = root >= 0 && memchr(text, '<', size);
	while (good && at.c < at.end) {
		int k = 0;
		while (k < SECTIONS && !xml_begins(&at, section[k][0]))
			k++;
		good = *at.c != '<' ? xml_content(&at, within[depth], &last[depth])
		    : k < SECTIONS  ? xml_section(&at, section[k][1], within[depth], &last[depth])
				    : xml_tag(&at, within, last, &depth);
	}
	return good && depth == 0 && tree_child(root, "<") >= 0 ? root : -1;
}

/* ---- writing ---- */

static void
xml_put_text(Text *out, const struct node *v)
{
	text_add(out, v->text ? v->text : v->own, v->text ? v->size : strlen(v->own));
}

static void
xml_put_attribute(Text *out, const struct node *v)
{
	const char *quote = v->text && memchr(v->text, '"', v->size) ? "'" : "\"";
	text_put(out, " ");
	text_add(out, v->key, v->key_size);
	text_put(out, "=");
	text_put(out, quote);
	xml_put_text(out, v);
	text_put(out, quote);
}

static void
xml_put_node(Text *out, int at, int depth)
{
	const struct node *v = &node[at];
	bool closed = false;
	if (v->kind == XML_TEXT)
		xml_put_text(out, v);
	if (v->kind != XML_ELEMENT && v->kind != XML_DOCUMENT)
		return;
	if (v->kind == XML_ELEMENT) {
		text_put(out, "<");
		text_add(out, v->key, v->key_size);
		for (int i = v->first; i >= 0 && out->size < INPUT_MAX; i = node[i].next)
			if (node[i].kind == XML_ATTRIBUTE)
				xml_put_attribute(out, &node[i]);
	}
	for (int i = v->first; i >= 0 && depth < 2 * NESTED && out->size < INPUT_MAX; i = node[i].next) {
		if (node[i].kind == XML_ATTRIBUTE)
			continue;
		if (!closed && v->kind == XML_ELEMENT)
			text_put(out, ">");
		closed = true;
		xml_put_node(out, i, depth + 1);
	}
	if (v->kind == XML_ELEMENT && closed) {
		text_put(out, "</");
		text_add(out, v->key, v->key_size);
	}
	if (v->kind == XML_ELEMENT)
		text_put(out, closed ? ">\n" : "/>\n");
}

static void
xml_put(Text *out, int root)
{
	xml_put_node(out, root, 0);
}

/* ---- changing ---- */

/* The value of another attribute, half of the time of one with the same name: ids and references to them. */
static void
xml_take_value(int at)
{
	for (int tries = 0; at >= 0 && tries < 20; tries++) {
		int other = tree_pick("=", false);
		bool same = other >= 0 && node[other].key_size == node[at].key_size
		    && memcmp(node[other].key, node[at].key, node[at].key_size) == 0;
		if (other < 0 || other == at || (!same && tree_state >> 40 & 1))
			continue;
		memcpy(node[at].own, node[other].own, sizeof node[at].own);
		tree_text(at, node[other].text, node[other].size);
		return;
	}
}

static void
xml_extreme(int at)
{
	static const char *const odd[] = { "", " ", "nan", "-nan", "inf", "-inf", "0x", "0xffffffffffffffff", "%n",
		"&lt;", "&#0;", "&#10;", "&bad;", "../..", "\xff", "\xc3\xa9" };
	if (at < 0)
		return;
	switch (tree_below(8)) {
	case 0:
		tree_long(at);
		break;
	case 1:
	case 2:
		tree_set(at, "%s", odd[tree_below(sizeof odd / sizeof *odd)]);
		break;
	case 3:
		tree_set(at, "%d", (int)tree_below(9));
		break;
	default:
		tree_set(at, "%s", tree_extreme());
		break;
	}
}

static void
xml_rename(int at, int other)
{
	if (at < 0 || other < 0)
		return;
	node[at].key = node[other].key;
	node[at].key_size = node[other].key_size;
}

/* An element becomes one that is inside of it: often the outermost one, or one right below. */
static void
xml_lift(int root)
{
	int at = tree_below(4) ? tree_child(root, "<") : tree_pick("<", true);
	if (at >= 0 && tree_below(2))
		at = tree_child(at, "<");
	int inside = tree_inside(at, "<");
	if (inside >= 0)
		tree_become(at, &node[inside], true);
}

static void
xml_change_elements(int root)
{
	int at = tree_pick("<", true), other = tree_pick("<", false);
	switch (tree_below(10)) {
	case 0:
	case 1:
		tree_drop(at);
		break;
	case 2:
		tree_twice(at);
		break;
	case 3:
		tree_swap(at, other, true);
		break;
	case 4:
		tree_move(other, at);
		break;
	case 5:
		xml_rename(at, other);
		break;
	case 6:
		tree_wrap(at, other);
		if (at >= 0 && other >= 0)
			xml_rename(at, other);
		break;
	case 7:
		tree_add(at, other);
		break;
	case 8:
		if (at >= 0 && other >= 0)
			tree_become(at, &node[other], true);
		break;
	default:
		xml_lift(root);
		break;
	}
}

static void
xml_change_attributes(void)
{
	int at = tree_pick("=", true), other = tree_pick("=", false);
	switch (tree_below(10)) {
	case 0:
		tree_drop(at);
		break;
	case 1:
		tree_twice(at);
		break;
	case 2:
		tree_swap(at, other, false);
		break;
	case 3:
		xml_rename(at, other);
		break;
	case 4:
		tree_add(tree_pick("<", true), other);
		break;
	case 5:
	case 6:
	case 7:
		xml_take_value(at);
		break;
	default:
		xml_extreme(at);
		break;
	}
}

static void
xml_change(int root)
{
	int text = tree_below(16) ? -1 : tree_pick("t", true);
	if (text >= 0 && tree_below(2))
		xml_extreme(text);
	else if (text >= 0)
		tree_drop(text);
	else if (tree_below(2))
		xml_change_elements(root);
	else
		xml_change_attributes();
}

static inline size_t
xml_mutate(uint8_t *data, size_t size, size_t most, uint64_t seed)
{
	static const Format format = { xml_parse, xml_put, xml_change };
	return tree_mutate(&format, data, size, most, seed);
}

#endif
