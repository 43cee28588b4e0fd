/* Mutations of a tree: what mutators of JSON, XML and tables share. An input is parsed, leniently, into nodes; some are
 * dropped, doubled, moved, nested, exchanged, or taken from an earlier input; and the tree is written again. What
 * cannot be parsed is left to mutations of bytes.
 *
 * A target includes the mutators that it wants and names them in `mutators`, ended by NULL: the first one that can
 * parse the input changes it. They serve the driver and, as LLVMFuzzerCustomMutator, libFuzzer. */
#ifndef BLINK_FUZZ_TREE_H
#define BLINK_FUZZ_TREE_H

#include "driver.h"

#include <stdarg.h>

/* The new size; 0: it cannot parse the input, or the result is larger than `most`. */
typedef size_t (*Mutator)(uint8_t *data, size_t size, size_t most, uint64_t seed);

extern const Mutator mutators[];

enum { NODES = 1 << 14, NESTED = 48, KEPT = 16 };

/* A container with children in order, or a leaf. Copies of a node share its children. */
struct node {
	char kind;			/* its format has the kinds */
	const char *key, *text;		/* in the input; text NULL: it is `own` */
	size_t key_size, size;
	int first, next;		/* -1: none */
	char own[48];
};

static struct node node[NODES];
static int n_nodes, n_targets;		/* those of the input itself come first, then those of an earlier input */
static uint64_t tree_state;

static inline size_t
tree_below(size_t n)
{
	tree_state = tree_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return n ? (size_t)((tree_state >> 33) % n) : 0;
}

/* -1: there are too many. */
static inline int
tree_new(char of)
{
	if (n_nodes == NODES)
		return -1;
	node[n_nodes] = (struct node){ .kind = of, .first = -1, .next = -1 };
	return n_nodes++;
}

/* A child behind *last, which becomes the last one. */
static inline void
tree_append(int parent, int *last, int child)
{
	*(*last < 0 ? &node[parent].first : &node[*last].next) = child;
	*last = child;
}

/* ---- finding ---- */

static inline int
tree_member(int of, const char *name)
{
	size_t n = strlen(name);
	for (int i = of < 0 ? -1 : node[of].first; i >= 0; i = node[i].next)
		if (node[i].key && node[i].key_size == n && memcmp(node[i].key, name, n) == 0)
			return i;
	return -1;
}

/* A random child of a kind in `kinds`; NULL: of any. */
static inline int
tree_child(int of, const char *kinds)
{
	int found = -1, n = 0;
	for (int i = of < 0 ? -1 : node[of].first; i >= 0; i = node[i].next)
		if ((!kinds || strchr(kinds, node[i].kind)) && tree_below((size_t)++n) == 0)
			found = i;
	return found;
}

/* A random node of a kind in `kinds`, of the input itself; else also of the earlier one. Node 0 is the root. */
static inline int
tree_pick(const char *kinds, bool own)
{
	for (int tries = 0; tries < 40; tries++) {
		int i = (int)tree_below((size_t)(own ? n_targets : n_nodes));
		if (i > 0 && strchr(kinds, node[i].kind))
			return i;
	}
	return -1;
}

/* A random node of such a kind inside of another. */
static inline int
tree_inside(int of, const char *kinds)
{
	int found = -1, at = of;
	for (int depth = 0; depth < NESTED && (at = tree_child(at, kinds)) >= 0; depth++) {
		found = at;
		if (tree_below(3) == 0)
			break;
	}
	return found;
}

/* Where the tree refers to a node: a first or a next. NULL: nowhere. */
static inline int *
tree_link(int at)
{
	for (int i = 0; i < n_nodes; i++) {
		if (node[i].first == at)
			return &node[i].first;
		if (node[i].next == at)
			return &node[i].next;
	}
	return NULL;
}

/* ---- changing ---- */

static inline void
tree_text(int at, const char *text, size_t size)
{
	if (at < 0)
		return;
	node[at].text = text;
	node[at].size = size;
}

static inline void __attribute__((format(printf, 2, 3)))
tree_set(int at, const char *format, ...)
{
	va_list args;
	if (at < 0)
		return;
	va_start(args, format);
	vsnprintf(node[at].own, sizeof node[at].own, format, args);
	va_end(args);
	tree_text(at, NULL, 0);
}

static inline void
tree_drop(int at)
{
	int *link = at < 0 ? NULL : tree_link(at);
	if (link)
		*link = node[at].next;
}

static inline void
tree_twice(int at)
{
	int copy = at < 0 ? -1 : tree_new(0);
	if (copy < 0)
		return;
	node[copy] = node[at];
	node[at].next = copy;
}

/* All but its place in the tree. */
static inline void
tree_become(int at, const struct node *other, bool with_key)
{
	struct node old = node[at];
	node[at] = *other;
	node[at].next = old.next;
	if (!with_key) {
		node[at].key = old.key;
		node[at].key_size = old.key_size;
	}
}

/* Two change places; keys go with them or stay. One that gets inside of itself ends where its writer does. */
static inline void
tree_swap(int a, int b, bool with_key)
{
	if (a < 0 || b < 0 || a == b)
		return;
	struct node x = node[a], y = node[b];
	tree_become(a, &y, with_key);
	tree_become(b, &x, with_key);
}

/* A copy becomes a child of another, the first or a later one. */
static inline void
tree_add(int parent, int at)
{
	int copy = parent < 0 || at < 0 || parent == at ? -1 : tree_new(0);
	if (copy < 0)
		return;
	node[copy] = node[at];
	int before = tree_child(parent, NULL), *link = before >= 0 ? &node[before].next : &node[parent].first;
	node[copy].next = *link;
	*link = copy;
}

static inline void
tree_move(int parent, int at)
{
	if (parent < 0 || at < 0 || parent == at)
		return;
	tree_drop(at);
	tree_add(parent, at);
}

/* A container like `like` around it. */
static inline void
tree_wrap(int at, int like)
{
	int inner = at < 0 || like < 0 ? -1 : tree_new(0);
	if (inner < 0)
		return;
	node[inner] = node[at];
	node[inner].next = -1;
	node[at].kind = node[like].kind;
	node[at].first = inner;
}

/* ---- values ---- */

/* Of numbers, as text. */
static inline const char *
tree_extreme(void)
{
	static const char *const odd[] = { "0", "1", "-1", "2", "31", "32", "33", "64", "255", "1023", "1024", "1025",
		"4096", "65535", "65536", "2147483647", "2147483648", "-2147483648", "-2147483649", "4294967295",
		"4294967296", "9007199254740992", "9007199254740993", "9223372036854775807", "9223372036854775808",
		"-9223372036854775808", "18446744073709551615", "18446744073709551616", "1e308", "1e309", "1e-308",
		"-1e308", "0.1", "1.5", "1000000.000000001", "123456789.123456", "1e15", "-0", "0.0" };
	return odd[tree_below(sizeof odd / sizeof *odd)];
}

/* Longer than any text may be, or about as long as ids may be. */
static inline void
tree_long(int at)
{
	static char text[5000];
	static const size_t sizes[] = { 39, 41, 63, 64, 65, 127, 1000, 4095, 4096, 4097, sizeof text };
	memset(text, '7', sizeof text);
	tree_text(at, text, sizes[tree_below(sizeof sizes / sizeof *sizes)]);
}

/* ---- from an input to the next one ---- */

struct kept {
	size_t size;
	uint8_t *data;
};

/* Inputs that were given to mutate: some of them are the other input of a later one. */
static inline struct kept *
tree_kept(const uint8_t *data, size_t size)
{
	static struct kept kept[KEPT];
	static uint8_t room[KEPT][INPUT_MAX], other[INPUT_MAX];
	static struct kept chosen = { 0, other };
	static size_t n;
	struct kept *to = &kept[n % KEPT], *from = &kept[tree_below(n < KEPT ? n : KEPT)];
	chosen.size = n ? from->size : 0;
	if (n)
		memcpy(other, from->data, from->size);
	if (n < KEPT || tree_below(4) == 0) {
		to->data = room[n++ % KEPT];
		to->size = size;
		memcpy(to->data, data, size);
	}
	return &chosen;
}

/* A format: parse appends nodes to the table and returns the root's number, or -1; put writes them. */
typedef struct {
	int (*parse)(const char *text, size_t size);
	void (*put)(Text *out, int root);
	void (*change)(int root);
} Format;

static inline size_t
tree_mutate(const Format *format, uint8_t *data, size_t size, size_t most, uint64_t seed)
{
	static char copy[INPUT_MAX];
	Text out = { 0 };
	if (size > sizeof copy || size == 0)
		return 0;
	memcpy(copy, data, size);
	n_nodes = 0;
	tree_state = seed ^ UINT64_C(0x9e3779b97f4a7c15);
	int root = format->parse(copy, size);
	if (root != 0)
		return 0;
	n_targets = n_nodes;
	const struct kept *other = tree_kept(data, size);
	if (other->size && tree_below(2))
		format->parse((const char *)other->data, other->size);
	for (size_t n = 1 + tree_below(4); n > 0; n--)
		format->change(root);
	format->put(&out, root);
	size = !out.failed && out.size <= most ? out.size : 0;
	if (size)
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
	size_t made = 0;
	for (const Mutator *mutator = mutators; *mutator && !made && seed % 4; mutator++)
		made = (*mutator)(data, size, most, seed);
	return made ? made : LLVMFuzzerMutate(data, size, most);
}

#endif
