/* Mutations of JSON (tree.h). Reading is lenient in commas and words. */
#ifndef BLINK_FUZZ_JSON_MUTATOR_H
#define BLINK_FUZZ_JSON_MUTATOR_H

#include "tree.h"

/* Kinds of nodes: containers are '[' and '{'. Keys and strings are with their quotes. */
#define JSON_SCALAR '0'

/* ---- reading ---- */

struct json_at {
	const char *c, *end;
};

static void
json_blanks(struct json_at *at)
{
	while (at->c < at->end && (*at->c == ' ' || *at->c == '\n' || *at->c == '\t' || *at->c == '\r'))
		at->c++;
}

static bool
json_word(struct json_at *at, const char **text, size_t *size)
{
	const char *c = at->c;
	if (c < at->end && *c == '"') {
		for (c++; c < at->end && *c != '"'; c++)
			c += *c == '\\' && c + 1 < at->end;
		if (c == at->end)
			return false;
		c++;
	} else {
		while (c < at->end && !strchr(" \n\t\r,:[]{}\"", *c))
			c++;
	}
	*text = at->c;
	*size = (size_t)(c - at->c);
	at->c = c;
	return *size > 0;
}

/* The number of the node; -1: no JSON, or too much of it. */
static int
json_value(struct json_at *at, int depth)
{
	json_blanks(at);
	int me = at->c == at->end || depth == NESTED ? -1 : tree_new(JSON_SCALAR), last = -1;
	if (me < 0)
		return -1;
	if (*at->c != '[' && *at->c != '{')
		return json_word(at, &node[me].text, &node[me].size) ? me : -1;
	char open = node[me].kind = *at->c++, close = open == '[' ? ']' : '}';
	for (json_blanks(at); at->c < at->end && *at->c != close; json_blanks(at)) {
		const char *key = NULL;
		size_t size = 0;
		if (open == '{') {
			if (!json_word(at, &key, &size))
				return -1;
			json_blanks(at);
			if (at->c == at->end || *at->c++ != ':')
				return -1;
		}
		int child = json_value(at, depth + 1);
		if (child < 0)
			return -1;
		node[child].key = key;
		node[child].key_size = size;
		tree_append(me, &last, child);
		json_blanks(at);
		if (at->c < at->end && *at->c == ',')
			at->c++;
	}
	return at->c < at->end ? (at->c++, me) : -1;
}

/* Of objects. */
static int
json_parse(const char *text, size_t size)
{
	struct json_at at = { text, text + size };
	int root = json_value(&at, 0);
	return root >= 0 && node[root].kind == '{' ? root : -1;
}

/* ---- writing ---- */

/* A value that changed places with one inside it would have no end. */
static void
json_put_value(Text *out, int at, int depth)
{
	const struct node *v = &node[at];
	if (v->kind == JSON_SCALAR) {
		text_add(out, v->text ? v->text : v->own, v->text ? v->size : strlen(v->own));
		return;
	}
	text_add(out, &v->kind, 1);
	for (int i = v->first; i >= 0 && depth < 2 * NESTED && out->size < INPUT_MAX; i = node[i].next) {
		if (i != v->first)
			text_put(out, ",");
		if (v->kind == '{') {
			text_add(out, node[i].key ? node[i].key : "\"x\"", node[i].key ? node[i].key_size : 3);
			text_put(out, ":");
		}
		json_put_value(out, i, depth + 1);
	}
	text_put(out, v->kind == '[' ? "]" : "}");
}

static void
json_put(Text *out, int root)
{
	json_put_value(out, root, 0);
}

/* ---- changing ---- */

/* The value of a member, whose key has quotes. */
static inline int
json_member(int of, const char *name)
{
	char key[48];
	snprintf(key, sizeof key, "\"%s\"", name);
	return tree_member(of, key);
}

static inline int
json_any(int of)
{
	return tree_child(of, NULL);
}

static void __attribute__((format(printf, 2, 3)))
json_set(int at, const char *format, ...)
{
	char text[sizeof node->own];
	va_list args;
	if (at < 0)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	tree_set(at, "%s", text);
	node[at].kind = JSON_SCALAR;
}

static void
json_extreme(int at)
{
	static const char *const odd[] = { "\"0/1\"", "\"1/1\"", "\"1/9223372036854775807\"",
		"\"9223372036854775806/9223372036854775807\"", "null", "true", "[]", "{}", "[[]]", "\"\"",
		"\"\\u001b[31m\"", "\"\\u202e\"", "\"\\u0000\"", "\"..\"", "\"/\"", "nan", "1e", "\xff" };
	if (tree_below(3) == 0)
		json_set(at, "%s", odd[tree_below(sizeof odd / sizeof *odd)]);
	else
		json_set(at, "%s", tree_extreme());
}

/* A member is called as another one. */
static void
json_rename(int at, int other)
{
	if (at < 0 || other < 0 || !node[at].key || !node[other].key)
		return;
	node[at].key = node[other].key;
	node[at].key_size = node[other].key_size;
}

static void
json_change(int root)
{
	int at = tree_pick("0[{", true), other = tree_pick("0[{", false), list = tree_pick("[{", true);
	(void)root;
	switch (tree_below(12)) {
	case 0:
		tree_drop(at);
		break;
	case 1:
		tree_twice(at);
		break;
	case 2:
		tree_swap(at, other, tree_below(2));
		break;
	case 3:
		tree_move(list, at);
		break;
	case 4:
		tree_add(list, other);
		break;
	case 5:
		json_rename(at, other);
		break;
	case 6:
		tree_wrap(at, list);
		break;
	case 7:
		if (at >= 0 && other >= 0)
			tree_become(at, &node[other], false);
		break;
	case 8:
		json_extreme(at);
		break;
	default:
		json_extreme(tree_pick("0", true));
		break;
	}
}

static inline size_t
json_mutate(uint8_t *data, size_t size, size_t most, uint64_t seed)
{
	static const Format format = { json_parse, json_put, json_change };
	return tree_mutate(&format, data, size, most, seed);
}

#endif
