/* Mutations that know what a schedule is: the JSON is parsed, one thing in it is changed, and it is written again. A
 * tree gets another edge, segment or root, trees change places, a certificate changes, ranks change names, numbers
 * become extreme. What is not JSON is left to mutations of bytes. A target that includes this file is mutated by it in
 * the driver and, as LLVMFuzzerCustomMutator, in libFuzzer. */
#ifndef BLINK_FUZZ_JSON_MUTATOR_H
#define BLINK_FUZZ_JSON_MUTATOR_H

#include "driver.h"

#include <stdarg.h>

enum { NODES = 1 << 14, NESTED = 48 };

/* A value: a container with children in order, or the text of a scalar. */
struct node {
	const char *key, *text;		/* in the input, with their quotes, or in `own` */
	size_t key_size, size;
	char bracket;			/* '[', '{', or 0 */
	int first, next;		/* -1: none */
	char own[48];
};

static struct node node[NODES];
static int n_nodes;
static uint64_t json_state;

static size_t
json_below(size_t n)
{
	json_state = json_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return n ? (size_t)((json_state >> 33) % n) : 0;
}

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
json_token(struct json_at *at, const char **text, size_t *size)
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
	if (at->c == at->end || n_nodes == NODES || depth == NESTED)
		return -1;
	int me = n_nodes++, last = -1;
	node[me] = (struct node){ .first = -1, .next = -1 };
	if (*at->c != '[' && *at->c != '{')
		return json_token(at, &node[me].text, &node[me].size) ? me : -1;
	char open = node[me].bracket = *at->c++, close = open == '[' ? ']' : '}';
	for (json_blanks(at); at->c < at->end && *at->c != close; json_blanks(at)) {
		const char *key = NULL;
		size_t size = 0;
		if (open == '{') {
			if (!json_token(at, &key, &size))
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
		*(last < 0 ? &node[me].first : &node[last].next) = child;
		last = child;
		json_blanks(at);
		if (at->c < at->end && *at->c == ',')
			at->c++;
	}
	return at->c < at->end ? (at->c++, me) : -1;
}

/* ---- writing ---- */

/* A value that changed places with one inside it would have no end. */
static void
json_put(Text *out, int at, int depth)
{
	const struct node *v = &node[at];
	if (!v->bracket) {
		text_add(out, v->text ? v->text : v->own, v->text ? v->size : strlen(v->own));
		return;
	}
	text_add(out, &v->bracket, 1);
	for (int i = v->first; i >= 0 && depth < 2 * NESTED && out->size < INPUT_MAX; i = node[i].next) {
		if (i != v->first)
			text_put(out, ",");
		if (v->bracket == '{') {
			text_add(out, node[i].key ? node[i].key : "\"x\"", node[i].key ? node[i].key_size : 3);
			text_put(out, ":");
		}
		json_put(out, i, depth + 1);
	}
	text_put(out, v->bracket == '[' ? "]" : "}");
}

/* ---- finding ---- */

static int
json_member(int of, const char *name)
{
	size_t n = strlen(name);
	for (int i = of < 0 ? -1 : node[of].first; i >= 0; i = node[i].next)
		if (node[i].key && node[i].key_size == n + 2 && memcmp(node[i].key + 1, name, n) == 0)
			return i;
	return -1;
}

static int
json_any(int of)
{
	int n = 0;
	for (int i = of < 0 ? -1 : node[of].first; i >= 0; i = node[i].next)
		n++;
	int i = n ? node[of].first : -1;
	for (size_t skip = json_below((size_t)n); i >= 0 && skip > 0; skip--)
		i = node[i].next;
	return i;
}

/* A random scalar or container of the whole. */
static int
json_somewhere(int root, bool container)
{
	for (int tries = 0; tries < 20; tries++) {
		int i = (int)json_below((size_t)n_nodes);
		if (i != root && (node[i].bracket != 0) == container)
			return i;
	}
	return -1;
}

/* ---- changing ---- */

static void __attribute__((format(printf, 2, 3)))
json_set(int at, const char *format, ...)
{
	va_list args;
	if (at < 0)
		return;
	node[at].bracket = 0;
	node[at].text = NULL;
	va_start(args, format);
	vsnprintf(node[at].own, sizeof node[at].own, format, args);
	va_end(args);
}

static void
json_extreme(int at)
{
	static const char *const odd[] = { "0", "1", "-1", "2", "31", "32", "33", "1023", "1024", "1025", "4096",
		"65536", "2147483647", "2147483648", "9007199254740993", "1e308", "1e-308", "0.1", "1.5",
		"1000000.000000001", "123456789.123456", "\"0/1\"", "\"1/1\"", "\"1/9223372036854775807\"",
		"\"9223372036854775806/9223372036854775807\"", "null", "true", "[]", "{}", "[[]]", "\"\"",
		"\"\\u001b[31m\"", "\"\\u202e\"" };
	json_set(at, "%s", odd[json_below(sizeof odd / sizeof *odd)]);
}

static void
json_twice(int at)
{
	if (at < 0 || n_nodes == NODES)
		return;
	node[n_nodes] = node[at];
	node[at].next = n_nodes++;
}

static void
json_drop(int of)
{
	if (of < 0 || node[of].first < 0)
		return;
	int at = json_any(of);
	int *link = &node[of].first;
	while (*link != at)
		link = &node[*link].next;
	*link = node[at].next;
}

/* Values change places, keys stay. */
static void
json_swap(int a, int b)
{
	if (a < 0 || b < 0 || a == b)
		return;
	struct node x = node[a], y = node[b];
	node[a] = y;
	node[a].key = x.key, node[a].key_size = x.key_size, node[a].next = x.next;
	node[b] = x;
	node[b].key = y.key, node[b].key_size = y.key_size, node[b].next = y.next;
}

/* An edge [from, to, [link...]]: another end, another link, turned round, or away. */
static void
json_edge(int tree)
{
	int edges = json_member(tree, json_below(2) ? "down" : "up"), edge = json_any(edges);
	if (edge < 0)
		return;
	int from = node[edge].first, to = from < 0 ? -1 : node[from].next, links = to < 0 ? -1 : node[to].next;
	switch (json_below(6)) {
	case 0:
		json_set(from, "%d", (int)json_below(9));
		break;
	case 1:
		json_set(to, "%d", (int)json_below(9));
		break;
	case 2:
		json_set(json_any(links), "%d", (int)json_below(32));
		break;
	case 3:
		json_swap(from, to);
		break;
	case 4:
		json_twice(edge);
		break;
	default:
		json_drop(edges);
		break;
	}
}

/* Ranks a and b change names in every edge, link and certificate: mostly still a schedule. */
static void
json_rename_ranks(int root)
{
	int a = (int)json_below(8), b = (int)json_below(8), links = json_member(json_member(root, "topology"), "links");
	for (int l = links < 0 ? -1 : node[links].first; l >= 0; l = node[l].next) {
		int end[2] = { json_member(l, "from"), json_member(l, "to") };
		for (int k = 0; k < 2; k++)
			if (end[k] >= 0 && node[end[k]].text && node[end[k]].size == 1) {
				int value = *node[end[k]].text - '0';
				json_set(end[k], "%d", value == a ? b : value == b ? a : value);
			}
	}
}

static void
json_change(int root)
{
	int trees = json_member(root, "trees"), tree = json_any(trees), rate = json_member(root, "rate");
	int certificate = json_member(rate, "certificate"), topology = json_member(root, "topology");
	int links = json_member(topology, "links");
	static const char *const collectives[] = { "\"broadcast\"", "\"reduce\"", "\"allreduce\"", "\"gather\"",
		"\"scatter\"", "\"allgather\"", "\"reducescatter\"", "\"alltoall\"" };
	switch (json_below(16)) {
	case 0:
	case 1:
	case 2:
		json_edge(tree);
		break;
	case 3:
		json_set(
		    json_any(json_member(tree, "segment")), "\"%d/%d\"", (int)json_below(5), 1 + (int)json_below(6));
		break;
	case 4:
		json_set(json_member(json_below(2) ? tree : root, "root"), "%d", (int)json_below(5));
		break;
	case 5:
		json_extreme(json_any(json_any(certificate)));
		break;
	case 6:
		json_swap(json_any(certificate), json_any(certificate));
		break;
	case 7:
		json_twice(json_any(json_any(certificate)));
		break;
	case 8:
		json_swap(tree, json_any(trees));
		break;
	case 9:
		json_twice(tree);
		break;
	case 10:
		json_drop(json_below(2) ? trees : links);
		break;
	case 11:
		json_set(json_member(root, "collective"), "%s", collectives[json_below(8)]);
		break;
	case 12:
		json_set(json_member(json_any(links), "capacity"), "%d.%0*d", 1 + (int)json_below(60),
		    (int)json_below(9) + 1, (int)json_below(10));
		break;
	case 13:
		json_rename_ranks(root);
		break;
	case 14:
		json_swap(json_somewhere(root, json_below(2)), json_somewhere(root, json_below(2)));
		break;
	default:
		if (json_below(2))
			json_extreme(json_somewhere(root, json_below(4) == 0));
		else
			json_drop(json_somewhere(root, true));
		break;
	}
}

/* The new size; 0: this is not JSON. */
static size_t
json_mutate(uint8_t *data, size_t size, size_t most, uint64_t seed)
{
	static char copy[INPUT_MAX];
	struct json_at at = { copy, copy + size };
	Text out = { 0 };
	if (size > sizeof copy || size == 0)
		return 0;
	memcpy(copy, data, size);
	n_nodes = 0;
	json_state = seed ^ UINT64_C(0x9e3779b97f4a7c15);
	int root = json_value(&at, 0);
	if (root < 0 || node[root].bracket != '{')
		return 0;
	for (size_t n = 1 + json_below(4); n > 0; n--)
		json_change(root);
	json_put(&out, root, 0);
	size = !out.failed && out.size <= most ? out.size : 0;
	memcpy(data, out.data, size);
	text_free(&out);
	return size;
}

#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);
#else
#define LLVMFuzzerMutate(data, size, most) 0
#endif

/* One in four is of bytes. */
size_t
LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed)
{
	size_t made = seed % 4 ? json_mutate(data, size, most, seed) : 0;
	return made ? made : LLVMFuzzerMutate(data, size, most);
}

#endif
