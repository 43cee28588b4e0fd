/* Mutations of lines of words (tree.h): tables, lists and command lines. Blanks and commas separate words. */
#ifndef BLINK_FUZZ_TABLE_MUTATOR_H
#define BLINK_FUZZ_TABLE_MUTATOR_H

#include "tree.h"

/* Kinds of nodes. The key of a word is what separates it from the one before it. */
#define TABLE_ALL 'a'
#define TABLE_LINE 'l'
#define TABLE_WORD 'w'

static int
table_parse(const char *text, size_t size)
{
	const char *at = text, *end = text + size;
	int root = tree_new(TABLE_ALL), last_line = -1;
	while (root >= 0 && at < end) {
		const char *feed = memchr(at, '\n', (size_t)(end - at)), *stop = feed ? feed : end;
		int line = tree_new(TABLE_LINE), last_word = -1;
		if (line < 0)
			return -1;
		tree_append(root, &last_line, line);
		while (at < stop) {
			int word = tree_new(TABLE_WORD);
			if (word < 0)
				return -1;
			node[word].key = at;
			while (at < stop && strchr(" \t,\r", *at))
				at++;
			node[word].key_size = (size_t)(at - node[word].key);
			const char *first = at;
			while (at < stop && !strchr(" \t,\r", *at))
				at++;
			tree_text(word, first, (size_t)(at - first));
			if (at == first && at < stop)
				return -1;	/* a NUL */
			tree_append(line, &last_word, word);
		}
		at = feed ? feed + 1 : end;
	}
	return root;
}

static void
table_put(Text *out, int root)
{
	for (int line = node[root].first; line >= 0 && out->size < INPUT_MAX; line = node[line].next) {
		for (int i = node[line].first; i >= 0 && out->size < INPUT_MAX; i = node[i].next) {
			const struct node *v = &node[i];
			if (v->key)
				text_add(out, v->key, v->key_size);
			else if (i != node[line].first)
				text_put(out, " ");
			text_add(out, v->text ? v->text : v->own, v->text ? v->size : strlen(v->own));
		}
		text_put(out, "\n");
	}
}

static int
table_word(int line, size_t column)
{
	int at = node[line].first;
	while (at >= 0 && column-- > 0)
		at = node[at].next;
	return at;
}

/* A column of all lines goes, comes twice, or changes places with another. */
static void
table_column(int root)
{
	size_t column = tree_below(12), other = tree_below(12), what = tree_below(3);
	for (int line = node[root].first; line >= 0; line = node[line].next) {
		int at = table_word(line, column);
		if (at >= 0 && what == 0)
			tree_drop(at);
		else if (at >= 0 && what == 1)
			tree_twice(at);
		else if (at >= 0)
			tree_swap(at, table_word(line, other), false);
	}
}

static void
table_value(int at)
{
	size_t n = 0;
	while (dictionary[n])
		n++;
	const char *word = dictionary[tree_below(n)];
	if (tree_below(12) == 0)
		tree_long(at);
	else if (tree_below(3) == 0)
		tree_text(at, word, strlen(word));
	else if (tree_below(2))
		tree_set(at, "%d", (int)tree_below(10));
	else
		tree_set(at, "%s", tree_extreme());
}

static void
table_change(int root)
{
	int line = tree_pick("l", true), other_line = tree_pick("l", false);
	int word = tree_pick("w", true), other = tree_pick("w", false);
	switch (tree_below(13)) {
	case 0:
		tree_drop(line);
		break;
	case 1:
		tree_twice(line);
		break;
	case 2:
		tree_swap(line, other_line, true);
		break;
	case 3:
		tree_add(root, other_line);
		break;
	case 4:
		tree_drop(word);
		break;
	case 5:
		tree_twice(word);
		break;
	case 6:
		tree_swap(word, other, false);
		break;
	case 7:
		if (word >= 0 && other >= 0)
			tree_become(word, &node[other], false);
		break;
	case 8:
		tree_add(line, other);
		break;
	case 9:
		table_column(root);
		break;
	default:
		table_value(word);
		break;
	}
}

static inline size_t
table_mutate(uint8_t *data, size_t size, size_t most, uint64_t seed)
{
	static const Format format = { table_parse, table_put, table_change };
	return tree_mutate(&format, data, size, most, seed);
}

#endif
