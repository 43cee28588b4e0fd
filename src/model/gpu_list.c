#include "model/gpu_list.h"

#include <string.h>

enum { SHOWN = 80, DIGITS = 9 };

struct list {
	const GpuNames *names;
	bool strict, *seen;
	int n, *gpu;
	const char *item;		/* as messages show it */
	size_t item_length;
	const char *server;		/* that numbers count in; NULL: the machine */
	size_t server_length;
	GpuListError *error;
};

static bool
is_wrong(struct list *list, GpuListFault fault)
{
	size_t n = list->item_length;
	*list->error = (GpuListError){ fault, list->item, (int)(n < SHOWN ? n : SHOWN), -1 };
	return false;
}

static bool
same(const char *id, const char *text, size_t n)
{
	return strlen(id) == n && memcmp(id, text, n) == 0;
}

/* ---- servers ---- */

/* The server of a GPU, and the length of its id. */
static const char *
server_of(const GpuNames *names, int g, size_t *length)
{
	if (names->node) {
		const char *id = names->node[g] >= 0 ? names->node_id[names->node[g]] : "";
		*length = strlen(id);
		return id;
	}
	const char *slash = strrchr(names->id[g], '/');
	*length = slash ? (size_t)(slash - names->id[g]) : 0;
	return names->id[g];
}

static bool
is_of(const struct list *list, int g)
{
	size_t n;
	const char *server = server_of(list->names, g, &n);
	return !list->server || (n == list->server_length && memcmp(server, list->server, n) == 0);
}

/* "s0:" at the start of an item: does any GPU have this server? The longest one. */
static bool
take_server(struct list *list, const char **item, size_t *n)
{
	for (size_t k = *n; k-- > 1;) {
		const struct list other = { .names = list->names, .server = *item, .server_length = k };
		for (int g = 0; (*item)[k] == ':' && g < list->names->n; g++) {
			if (!is_of(&other, g))
				continue;
			list->server = *item;
			list->server_length = k;
			*item += k + 1;
			*n -= k + 1;
			return true;
		}
	}
	return false;
}

/* ---- items ---- */

static bool
take(struct list *list, int g)
{
	if (g < 0)
		return is_wrong(list, list->server ? GPU_LIST_NODE : GPU_LIST_UNKNOWN);
	if (list->seen[g]) {
		is_wrong(list, GPU_LIST_TWICE);
		list->error->gpu = g;
		return false;
	}
	list->seen[g] = true;
	list->gpu[list->n++] = g;
	return true;
}

/* By its id, of the server if one was named. */
static int
find_id(const struct list *list, const char *id, size_t n)
{
	for (int g = 0; g < list->names->n; g++)
		if (same(list->names->id[g], id, n) && is_of(list, g))
			return g;
	for (int g = 0; list->server && g < list->names->n; g++) {
		const char *full = list->names->id[g];
		size_t k = list->server_length;
		if (is_of(list, g) && strncmp(full, list->server, k) == 0 && full[k] == '/'
		    && same(full + k + 1, id, n))
			return g;
	}
	return -1;
}

/* Number i of the server, or of the machine; -1: none. */
static int
find_number(const struct list *list, int i)
{
	if (!list->server)
		return i < list->names->n ? i : -1;
	for (int g = 0; g < list->names->n; g++)
		if (is_of(list, g) && i-- == 0)
			return g;
	return -1;
}

/* Digits at the start, and how many; a number that is too large is one that no GPU has. */
static size_t
take_digits(const char *text, size_t n, int *out)
{
	size_t digits = 0;
	*out = 0;
	for (; digits < n && text[digits] >= '0' && text[digits] <= '9'; digits++)
		*out = digits < DIGITS ? *out * 10 + (text[digits] - '0') : 999999999;
	return digits;
}

static bool
take_numbers(struct list *list, const char *item, size_t n)
{
	int first, last;
	size_t digits = take_digits(item, n, &first), more = 0;
	last = first;
	if (digits > 0 && digits < n && item[digits] == '-')
		more = take_digits(item + digits + 1, n - digits - 1, &last);
	if (digits == 0)
		return take(list, -1);
	if ((digits < n && digits + 1 + more < n) || (digits < n && more == 0) || last < first)
		return is_wrong(list, GPU_LIST_RANGE);
	/* Before a GPU of the range is taken that is there. */
	if (find_number(list, last) < 0)
		return take(list, -1);
	for (; first <= last; first++)
		if (!take(list, find_number(list, first)))
			return false;
	return true;
}

static bool
take_item(struct list *list, const char *item, size_t n)
{
	int g = find_id(list, item, n);
	list->item = item;
	list->item_length = n;
	if (g < 0 && take_server(list, &item, &n))
		g = find_id(list, item, n);
	if (n == 0)
		return is_wrong(list, GPU_LIST_EMPTY);
	return g >= 0 ? take(list, g) : take_numbers(list, item, n);
}

/* ---- words ---- */

static bool
take_items(struct list *list, const char *items, size_t n)
{
	const char *end = items + n, *at = items;
	for (;;) {
		const char *comma = memchr(at, ',', (size_t)(end - at));
		size_t length = (size_t)((comma ? comma : end) - at);
		if (length > 0 && !take_item(list, at, length))
			return false;
		if (length == 0 && list->strict) {
			list->item = items;
			list->item_length = n;
			return is_wrong(list, GPU_LIST_EMPTY);
		}
		if (!comma)
			return true;
		at = comma + 1;
	}
}

/* Without what schedulers write around it. */
static bool
take_word(struct list *list, const char *word, size_t n)
{
	static const char index[] = "(IDX:";
	const char *idx = memmem(word, n, index, sizeof index - 1), *equals = memchr(word, '=', n);
	list->server = NULL;
	list->item = word;
	list->item_length = n;
	if (idx) {
		if (word[n - 1] != ')')
			return is_wrong(list, GPU_LIST_BRACKET);
		idx += sizeof index - 1;
		return take_items(list, idx, (size_t)(word + n - 1 - idx));
	}
	if (equals)
		return take_items(list, equals + 1, (size_t)(word + n - equals - 1));
	return take_items(list, word, n);
}

static bool
take_words(struct list *list, const char *at, size_t size)
{
	static const char between[] = " \t\r;";
	const char *end = at + size;
	while (at < end) {
		const char *word = at;
		while (at < end && !memchr(between, *at, sizeof between - 1))
			at++;
		if (at > word && !take_word(list, word, (size_t)(at - word)))
			return false;
		at++;
	}
	return true;
}

int
gpu_list_parse(const GpuNames *names, const char *text, size_t size, bool strict, bool *seen, int *gpu,
    GpuListError *error)
{
	struct list list = { .names = names, .strict = strict, .seen = seen, .gpu = gpu, .item = text, .error = error };
	bool right = take_words(&list, text, size);
	if (right && strict && list.n == 0)
		right = is_wrong(&list, GPU_LIST_EMPTY);
	for (int i = 0; i < list.n; i++)
		seen[gpu[i]] = false;
	return right ? list.n : -1;
}

const char *
gpu_list_wanted(GpuListFault fault)
{
	switch (fault) {
	case GPU_LIST_UNKNOWN:
		return "a GPU of the machine, by index or id";
	case GPU_LIST_NODE:
		return "a GPU of that server, by index or id";
	case GPU_LIST_TWICE:
		return "each GPU once";
	case GPU_LIST_RANGE:
		return "a GPU by index or id, or a range as 0-3";
	case GPU_LIST_BRACKET:
		return "indices in (IDX:...)";
	case GPU_LIST_EMPTY:
		return "GPUs by index or id, or ranges as 0-3, comma separated";
	}
	return "";
}
