/* Topologies from a line of text, as hwloc has them, for tests and for machines that nobody has yet. What the line asks for is
 * written as a topology file, and that is read like any other. */
#include "passes.h"

#include <string.h>

/* key, what its value is: a whole number up to a limit, a capacity, both as N@R, a ratio, or none; its help is in blinkc(1) */
#define KEY_LIST(X)                                                            \
	X(KEY_SERVER, "server", COUNT, LIMIT_NODES)                            \
	X(KEY_GPU, "gpu", COUNT, LIMIT_RANKS)                                  \
	X(KEY_SWITCH, "switch", CAPACITY, 0)                                   \
	X(KEY_MESH, "mesh", CAPACITY, 0)                                       \
	X(KEY_RING, "ring", CAPACITY, 0)                                       \
	X(KEY_PCIE, "pcie", CAPACITY, 0)                                       \
	X(KEY_NIC, "nic", COUNT_AT, LIMIT_RANKS)                               \
	X(KEY_NET, "net", CAPACITY, 0)                                         \
	X(KEY_LEAF, "leaf", COUNT, LIMIT_NODES)                                \
	X(KEY_RAILS, "rails", NONE, 0)                                         \
	X(KEY_OVERSUBSCRIPTION, "oversubscription", RATIO, 0)                  \
	X(KEY_MULTICAST, "multicast", NONE, 0)                                 \
	X(KEY_REDUCE, "reduce", NONE, 0)

enum {
#define X(id, text, value, most) id,
	KEY_LIST(X)
#undef X
	N_KEYS
};

enum value { NONE, COUNT, CAPACITY, COUNT_AT, RATIO };

static const struct {
	const char *name;
	enum value value;
	int most;
} keys[N_KEYS] = {
#define X(id, text, value, most) { text, value, most },
	KEY_LIST(X)
#undef X
};

struct synthetic {
	bool given[N_KEYS];
	int count[N_KEYS];
	int64_t capacity[N_KEYS];	/* bytes/s; a ratio times 1e9 */
};

/* ---- the line ---- */

static bool
parse_count(const char *text, size_t n, int most, int *out)
{
	int64_t value;
	if (strspn(text, "0123456789") < n || !decimal_parse(text, n, 1, &value) || value < 1 || value > most)
		return false;
	*out = (int)value;
	return true;
}

static bool
parse_value(const char *text, size_t n, int key, struct synthetic *s)
{
	const char *at = memchr(text, '@', n);
	int64_t lo = LIMIT_CAPACITY_MIN, hi = LIMIT_CAPACITY_MAX;
	switch (keys[key].value) {
	case NONE:
		return n == 0;
	case COUNT:
		return parse_count(text, n, keys[key].most, &s->count[key]);
	case COUNT_AT:
		if (!at || !parse_count(text, (size_t)(at - text), keys[key].most, &s->count[key]))
			return false;
		n -= (size_t)(at + 1 - text);
		text = at + 1;
		break;
	case RATIO:
		lo = BYTES_PER_GB / 1000;
		hi = BYTES_PER_GB * 1000;
		break;
	case CAPACITY:
		break;
	}
	return n > 0 && n <= LIMIT_NUMBER_BYTES && decimal_parse(text, n, BYTES_PER_GB, &s->capacity[key]) && s->capacity[key] >= lo
	    && s->capacity[key] <= hi;
}

static Status
parse_item(Ctx *ctx, const char *item, size_t n, struct synthetic *s)
{
	static const char *const wants[] = { "no value", "a whole number", "a number above 0", "NUMBER@GB/s", "0.001 to 1000" };
	size_t length = strcspn(item, ":");
	length = length < n ? length : n;
	for (int k = 0; k < N_KEYS; k++) {
		if (strlen(keys[k].name) != length || memcmp(keys[k].name, item, length) != 0)
			continue;
		if (s->given[k])
			return fail(ctx, USAGE, "--synthetic: %s: given twice: want it once", keys[k].name);
		s->given[k] = true;
		size_t skip = length + (length < n);
		if (!parse_value(item + skip, n - skip, k, s) || (length < n && keys[k].value == NONE))
			return fail(ctx, USAGE, "--synthetic: %.*s: want %s, %s", (int)(n < 80 ? n : 80), item, keys[k].name, wants[keys[k].value]);
		return OK;
	}
	return fail(ctx, USAGE, "--synthetic: %.*s: want one of"
#define X(id, text, value, most) " " text
	    KEY_LIST(X)
#undef X
	    , (int)(n < 80 ? n : 80), item);
}

static Status
parse_line(Ctx *ctx, const char *line, struct synthetic *s)
{
	for (const char *at = line; *(at += strspn(at, " ")); at += strcspn(at, " "))
		TRY(parse_item(ctx, at, strcspn(at, " "), s));
	if (!s->given[KEY_SERVER])
		s->count[KEY_SERVER] = 1;
	if (!s->given[KEY_GPU])
		return fail(ctx, USAGE, "--synthetic: gpu: missing: want the GPUs of a server, as gpu:8");
	if (s->given[KEY_NIC] && !s->given[KEY_PCIE])
		return fail(ctx, USAGE, "--synthetic: pcie: missing: want the capacity of the links to NICs, as pcie:24");
	if (s->given[KEY_NIC] && s->given[KEY_NET])
		return fail(ctx, USAGE, "--synthetic: nic and net: want one of them");
	if (!s->given[KEY_NIC] && !s->given[KEY_NET] && (s->given[KEY_LEAF] || s->given[KEY_RAILS] || s->given[KEY_OVERSUBSCRIPTION]))
		return fail(ctx, USAGE, "--synthetic: a network without ports: want nic or net");
	if (!s->given[KEY_SWITCH] && (s->given[KEY_MULTICAST] || s->given[KEY_REDUCE]))
		return fail(ctx, USAGE, "--synthetic: switch: missing: want one to multicast or reduce, as switch:300");
	int64_t servers = s->count[KEY_SERVER], gpus = s->count[KEY_GPU];
	int64_t links = servers * (gpus * (s->given[KEY_MESH] ? gpus - 1 : 0) + 8 * gpus);
	if (servers * gpus > LIMIT_RANKS || links > LIMIT_LINKS || (s->given[KEY_NIC] && s->count[KEY_NIC] > gpus))
		return fail(ctx, LIMIT, "--synthetic: %lld GPUs, about %lld links: want at most %d and %d, and no more NICs than GPUs",
		    (long long)(servers * gpus), (long long)links, LIMIT_RANKS, LIMIT_LINKS);
	return OK;
}

/* ---- the file ---- */

static void
put_ids(Text *out, const char *many, int server, const char *one, int n)
{
	text_printf(out, ", \"%s\": [", many);
	for (int i = 0; i < n; i++)
		text_printf(out, "%s{ \"id\": \"s%d/%s%d\" }", i ? ", " : "", server, one, i);
	text_put(out, "]");
}

static void
put_node(Text *out, const struct synthetic *s, int server, int n_plx)
{
	text_printf(out, "%s\n    { \"id\": \"s%d\"", server ? "," : "", server);
	put_ids(out, "gpus", server, "gpu", s->count[KEY_GPU]);
	if (n_plx > 1)
		text_printf(out, ", \"cpus\": [{ \"id\": \"s%d/cpu0\" }]", server);
	text_put(out, ", \"switches\": [");
	if (s->given[KEY_SWITCH])
		text_printf(out, "{ \"id\": \"s%d/switch\"%s%s }", server, s->given[KEY_MULTICAST] ? ", \"multicast\": true" : "",
		    s->given[KEY_REDUCE] ? ", \"reduce\": true" : "");
	for (int i = 0; i < n_plx; i++)
		text_printf(out, "%s{ \"id\": \"s%d/plx%d\" }", i || s->given[KEY_SWITCH] ? ", " : "", server, i);
	text_put(out, "]");
	if (s->given[KEY_NIC]) {
		text_put(out, ", \"nics\": [");
		for (int i = 0; i < s->count[KEY_NIC]; i++) {
			text_printf(out, "%s{ \"id\": \"s%d/nic%d\", \"capacity\": ", i ? ", " : "", server, i);
			text_gb(out, (Frac){ s->capacity[KEY_NIC], 1 });
			text_put(out, " }");
		}
		text_put(out, "]");
	}
	text_put(out, " }");
}

static void
put_link(Text *out, bool *any, int server, const char *from, int i, const char *to, int j, const char *class, int64_t capacity)
{
	text_printf(out, "%s\n    { \"from\": \"s%d/%s%d\", \"to\": \"s%d/%s", *any ? "," : "", server, from, i, server, to);
	if (j >= 0)
		text_int(out, j);
	text_printf(out, "\", \"class\": \"%s\", \"capacity\": ", class);
	text_gb(out, (Frac){ capacity, 1 });
	text_put(out, " }");
	*any = true;
}

static void
put_links(Text *out, const struct synthetic *s, int server, int n_plx, bool *any)
{
	int n = s->count[KEY_GPU], nics = s->given[KEY_NIC] ? s->count[KEY_NIC] : 0;
	for (int i = 0; i < n && s->given[KEY_SWITCH]; i++)
		put_link(out, any, server, "gpu", i, "switch", -1, "nvlink", s->capacity[KEY_SWITCH]);
	for (int i = 0; i < n && s->given[KEY_MESH]; i++)
		for (int j = i + 1; j < n; j++)
			put_link(out, any, server, "gpu", i, "gpu", j, "nvlink", s->capacity[KEY_MESH]);
	for (int i = 0; i < n && s->given[KEY_RING] && (n > 2 || i < n - 1); i++)
		put_link(out, any, server, "gpu", i, "gpu", (i + 1) % n, "nvlink", s->capacity[KEY_RING]);
	for (int i = 0; i < n && n_plx; i++)
		put_link(out, any, server, "gpu", i, "plx", (int)((int64_t)i * n_plx / n), "pcie", s->capacity[KEY_PCIE]);
	for (int i = 0; i < nics; i++)
		put_link(out, any, server, "nic", i, "plx", i, "pcie", s->capacity[KEY_PCIE]);
	for (int i = 0; i < n_plx && n_plx > 1; i++)
		put_link(out, any, server, "plx", i, "cpu0", -1, "pcie", s->capacity[KEY_PCIE]);
}

static void
put_fabric(Text *out, const struct synthetic *s)
{
	text_put(out, ",\n  \"fabrics\": [{ \"ports\": ");
	text_put(out, s->given[KEY_NET] ? "\"gpus\", \"capacity\": " : "\"nics\"");
	if (s->given[KEY_NET])
		text_gb(out, (Frac){ s->capacity[KEY_NET], 1 });
	if (s->given[KEY_RAILS])
		text_put(out, ", \"rails\": true");
	if (s->given[KEY_LEAF])
		text_printf(out, ", \"servers\": %d", s->count[KEY_LEAF]);
	if (s->given[KEY_OVERSUBSCRIPTION]) {
		text_put(out, ", \"oversubscription\": ");
		text_gb(out, (Frac){ s->capacity[KEY_OVERSUBSCRIPTION], 1 });
	}
	text_put(out, " }]");
}

/* A PCIe switch for each NIC and its part of the GPUs; without NICs, one. */
Status
synthetic_text(Ctx *ctx, const char *line, Text *out)
{
	struct synthetic s = { 0 };
	bool any = false;
	TRY(parse_line(ctx, line, &s));
	int n_plx = !s.given[KEY_PCIE] ? 0 : s.given[KEY_NIC] ? s.count[KEY_NIC] : 1;
	text_put(out, "{\n  \"format\": \"blink-topology\",\n  \"version\": 1,\n  \"name\": ");
	text_json(out, line);
	text_put(out, ",\n  \"nodes\": [");
	for (int i = 0; i < s.count[KEY_SERVER]; i++)
		put_node(out, &s, i, n_plx);
	text_put(out, "\n  ]");
	if (s.given[KEY_NIC] || s.given[KEY_NET])
		put_fabric(out, &s);
	text_put(out, ",\n  \"links\": [");
	for (int i = 0; i < s.count[KEY_SERVER]; i++)
		put_links(out, &s, i, n_plx, &any);
	text_put(out, "\n  ]\n}\n");
	return out->failed ? fail_memory(ctx) : OK;
}
