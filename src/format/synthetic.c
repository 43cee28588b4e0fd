/* Topologies from a line of text, like hwloc's synthetic topologies, for tests and for machines that do not exist yet.
 * The machine that the line describes is written as a topology file, which is then read like any other. */
#include "base/json_write.h"
#include "format/format.h"
#include "format/synthetic_network.h"

#include <stdio.h>
#include <string.h>

/* key, kind of its value: a whole number up to a limit, a capacity, both as N@R, a capacity or both, a ratio, none, or
 * numbers of a shape and a capacity, as NxN@R. blinkc-topology(1) explains them */
#define KEY_LIST(X)                                                            \
	X(KEY_SERVER, "server", COUNT, LIMIT_NODES)                            \
	X(KEY_GPU, "gpu", COUNT, LIMIT_RANKS)                                  \
	X(KEY_SWITCH, "switch", LINKS, LIMIT_LINK_COUNT)                       \
	X(KEY_MESH, "mesh", CAPACITY, 0)                                       \
	X(KEY_RING, "ring", CAPACITY, 0)                                       \
	X(KEY_PCIE, "pcie", CAPACITY, 0)                                       \
	X(KEY_NIC, "nic", COUNT_AT, LIMIT_RANKS)                               \
	X(KEY_NET, "net", CAPACITY, 0)                                         \
	X(KEY_LEAF, "leaf", COUNT, LIMIT_NODES)                                \
	X(KEY_RAILS, "rails", NONE, 0)                                         \
	X(KEY_OVERSUBSCRIPTION, "oversubscription", RATIO, 0)                  \
	X(KEY_TORUS, "torus", SHAPE, 0)                                        \
	X(KEY_OPEN, "open", COUNT, NETWORK_SIDES)                              \
	X(KEY_DRAGONFLY, "dragonfly", SHAPE, 3)                                \
	X(KEY_DRAGONFLY_PLUS, "dragonfly+", SHAPE, 4)                          \
	X(KEY_GROUPS, "groups", COUNT, LIMIT_RANKS)                            \
	X(KEY_FATTREE, "fattree", SHAPE, 0)                                    \
	X(KEY_HAMMINGMESH, "hammingmesh", SHAPE, 4)                            \
	X(KEY_MULTICAST, "multicast", NONE, 0)                                 \
	X(KEY_REDUCE, "reduce", NONE, 0)

enum {
#define X(id, text, value, most) id,
	KEY_LIST(X)
#undef X
	N_KEYS
};

enum value { NONE, COUNT, CAPACITY, COUNT_AT, LINKS, RATIO, SHAPE };

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
	struct synthetic_network net;
	int n_networks;			/* items that are of the kind of net: one at most */
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

/* Numbers between x, up to the @; most: how many, 0: any. */
static bool
parse_sides(const char *text, const char *at, int most, struct synthetic_network *net)
{
	int n = 0;
	for (; n < (most ? most : NETWORK_SIDES) && text <= at; n++) {
		const char *end = memchr(text, 'x', (size_t)(at - text));
		end = end ? end : at;
		if (!parse_count(text, (size_t)(end - text), LIMIT_RANKS, &net->side[n]))
			return false;
		text = end + 1;
	}
	net->n_sides = n;
	return text > at && (!most || n == most);
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
	case LINKS:
		s->count[key] = 1;
		if (!at)
			break;
		/* fall through */
	case COUNT_AT:
		if (!at || !parse_count(text, (size_t)(at - text), keys[key].most, &s->count[key]))
			return false;
		n -= (size_t)(at + 1 - text);
		text = at + 1;
		break;
	case SHAPE:
		if (!at || !parse_sides(text, at, keys[key].most, &s->net))
			return false;
		s->n_networks++;
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
	return n > 0 && n <= LIMIT_NUMBER_BYTES && decimal_parse(text, n, BYTES_PER_GB, &s->capacity[key])
	    && s->capacity[key] >= lo && s->capacity[key] <= hi;
}

/* What the value of a key may be. */
static void
put_wanted(int key, Text *out)
{
	const int most = keys[key].most, n = most ? most : 3;	/* of a shape */
	const double lo = (double)LIMIT_CAPACITY_MIN / BYTES_PER_GB, hi = (double)LIMIT_CAPACITY_MAX / BYTES_PER_GB;
	switch (keys[key].value) {
	case NONE:
		text_put(out, "no value");
		break;
	case COUNT:
		text_printf(out, "a whole number, 1 to %d", most);
		break;
	case CAPACITY:
		text_printf(out, "%g to %g GB/s", lo, hi);
		break;
	case COUNT_AT:
		text_printf(out, "NUMBER@GB/s, 1 to %d and %g to %g GB/s", most, lo, hi);
		break;
	case LINKS:
		text_printf(out, "GB/s or LINKS@GB/s, %g to %g GB/s and 1 to %d links", lo, hi, most);
		break;
	case RATIO:
		text_put(out, "0.001 to 1000");
		break;
	case SHAPE:
		text_printf(out, "%s%d numbers, 1 to %d, and %g to %g GB/s, as %s", most ? "" : "at most ",
		    most ? most : NETWORK_SIDES, LIMIT_RANKS, lo, hi, &"4x4x4x4@25"[2 * (4 - n)]);
		break;
	}
}

static Status
fail_value(Ctx *ctx, const char *item, size_t n, int key)
{
	Text text = { 0 };
	put_wanted(key, &text);
	const char *wanted = text_keep(&ctx->run, &text);
	return wanted ? fail(ctx, USAGE, "--synthetic: %.*s: want %s", (int)(n < 40 ? n : 40), item, wanted)
	    : fail_memory(ctx);
}

static Status
parse_item(Ctx *ctx, const char *item, size_t n, struct synthetic *s)
{
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
			return fail_value(ctx, item, n, k);
		return OK;
	}
	return fail(ctx, USAGE, "--synthetic: %.*s: want one of"
#define X(id, text, value, most) " " text
	    KEY_LIST(X)
#undef X
	    , (int)(n < 40 ? n : 40), item);
}

/* Of a network of many switches: its servers and GPUs follow from its shape. */
static Status
complete_network(Ctx *ctx, struct synthetic *s)
{
	static const struct {
		int key;
		NetworkKind kind;
	} kinds[] = { { KEY_TORUS, TORUS }, { KEY_DRAGONFLY, DRAGONFLY }, { KEY_DRAGONFLY_PLUS, DRAGONFLY_PLUS },
	    { KEY_FATTREE, FAT_TREE }, { KEY_HAMMINGMESH, HAMMINGMESH } };
	struct synthetic_network *net = &s->net;
	int key = -1, ports;
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (s->given[kinds[i].key]) {
			key = kinds[i].key;
			net->kind = kinds[i].kind;
		}
	if (s->given[KEY_OPEN] && key != KEY_TORUS)
		return fail(ctx, USAGE, "--synthetic: open: want it with torus");
	if (s->given[KEY_GROUPS] && key != KEY_DRAGONFLY && key != KEY_DRAGONFLY_PLUS)
		return fail(ctx, USAGE, "--synthetic: groups: want it with dragonfly or dragonfly+");
	if (!s->n_networks)
		return OK;
	if (s->n_networks > 1 || s->given[KEY_NIC] || s->given[KEY_NET] || s->given[KEY_SERVER] || s->given[KEY_LEAF]
	    || s->given[KEY_RAILS] || (s->given[KEY_OVERSUBSCRIPTION] && key != KEY_FATTREE))
		return fail(ctx, USAGE, "--synthetic: %s: want no other network, and no number of servers, with it",
		    keys[key].name);
	s->count[KEY_GPU] = s->given[KEY_GPU] ? s->count[KEY_GPU] : 1;
	net->capacity = s->capacity[key];
	net->open = s->count[KEY_OPEN];
	net->groups = s->count[KEY_GROUPS];
	net->taper = s->given[KEY_OVERSUBSCRIPTION] ? s->capacity[KEY_OVERSUBSCRIPTION] : BYTES_PER_GB;
	net->gpus = s->count[KEY_GPU];
	TRY(network_check(ctx, net, &ports));
	s->count[KEY_SERVER] = ports / net->gpus;
	s->given[KEY_SERVER] = s->given[KEY_GPU] = true;
	return OK;
}

static Status
parse_line(Ctx *ctx, const char *line, struct synthetic *s)
{
	for (const char *at = line; *(at += strspn(at, " ")); at += strcspn(at, " "))
		TRY(parse_item(ctx, at, strcspn(at, " "), s));
	TRY(complete_network(ctx, s));
	if (!s->given[KEY_SERVER])
		s->count[KEY_SERVER] = 1;
	if (!s->given[KEY_GPU])
		return fail(ctx, USAGE, "--synthetic: gpu: missing: want the GPUs of a server, as gpu:8");
	if (s->given[KEY_NIC] && !s->given[KEY_PCIE])
		return fail(ctx, USAGE,
		    "--synthetic: pcie: missing: want the capacity of the links to NICs, as pcie:24");
	if (s->given[KEY_NIC] && s->given[KEY_NET])
		return fail(ctx, USAGE, "--synthetic: nic and net: want one of them");
	if (!s->given[KEY_NIC] && !s->given[KEY_NET] && !s->n_networks && (s->given[KEY_LEAF] || s->given[KEY_RAILS]
	    || s->given[KEY_OVERSUBSCRIPTION]))
		return fail(ctx, USAGE, "--synthetic: a network without ports: want nic or net");
	if (s->given[KEY_OVERSUBSCRIPTION] && !s->n_networks && !s->given[KEY_LEAF] && !s->given[KEY_RAILS])
		return fail(ctx, USAGE, "--synthetic: oversubscription: want it with leaf, rails or fattree");
	if (s->given[KEY_NIC] && s->count[KEY_NIC] > s->count[KEY_GPU])
		return fail(ctx, USAGE, "--synthetic: nic: %d NICs: want at most the %d GPUs of a server",
		    s->count[KEY_NIC], s->count[KEY_GPU]);
	if (!s->given[KEY_SWITCH] && (s->given[KEY_MULTICAST] || s->given[KEY_REDUCE]))
		return fail(ctx, USAGE, "--synthetic: switch: missing: want one to multicast or reduce, as switch:300");
	int64_t servers = s->count[KEY_SERVER], gpus = s->count[KEY_GPU];
	int64_t links = servers * (gpus * (s->given[KEY_MESH] ? gpus - 1 : 0) + 8 * gpus);
	if (servers * gpus > LIMIT_RANKS || links > LIMIT_LINKS)
		return fail(ctx, LIMIT, "--synthetic: %lld GPUs, about %lld links: want at most %d and %d",
		    (long long)(servers * gpus), (long long)links, LIMIT_RANKS, LIMIT_LINKS);
	return OK;
}

/* ---- the file ---- */

/* { "id": "s0/gpu1" }; it stays open. */
static void
begin_vertex(JsonWriter *w, int server, const char *kind, int i)
{
	char id[LIMIT_ID_BYTES];
	snprintf(id, sizeof id, i < 0 ? "s%d/%s" : "s%d/%s%d", server, kind, i);
	json_object(w, NULL, JSON_LINE);
	json_string(w, "id", id);
}

static void
put_vertices(JsonWriter *w, int server, const char *kind, int n)
{
	for (int i = 0; i < n; i++) {
		begin_vertex(w, server, kind, i);
		json_end(w);
	}
}

static void
put_nics(JsonWriter *w, const struct synthetic *s, int server)
{
	json_array(w, "nics", JSON_LINE);
	for (int i = 0; i < s->count[KEY_NIC]; i++) {
		begin_vertex(w, server, "nic", i);
		json_gb(w, "capacity", (Frac){ s->capacity[KEY_NIC], 1 });
		json_end(w);
	}
	json_end(w);
}

static void
put_node(JsonWriter *w, const struct synthetic *s, int server, int n_plx)
{
	char id[LIMIT_ID_BYTES];
	snprintf(id, sizeof id, "s%d", server);
	json_object(w, NULL, JSON_LINE);
	json_string(w, "id", id);
	json_array(w, "gpus", JSON_LINE);
	put_vertices(w, server, "gpu", s->count[KEY_GPU]);
	json_end(w);
	if (n_plx > 1) {
		json_array(w, "cpus", JSON_LINE);
		put_vertices(w, server, "cpu", 1);
		json_end(w);
	}
	json_array(w, "switches", JSON_LINE);
	if (s->given[KEY_SWITCH]) {
		begin_vertex(w, server, "switch", -1);
		if (s->given[KEY_MULTICAST])
			json_bool(w, "multicast", true);
		if (s->given[KEY_REDUCE])
			json_bool(w, "reduce", true);
		json_end(w);
	}
	put_vertices(w, server, "plx", n_plx);
	json_end(w);
	if (s->given[KEY_NIC])
		put_nics(w, s, server);
	json_end(w);
}

/* One end of a link: vertex i of a kind; i < 0: the only one, whose name has no number. */
struct end {
	const char *kind;
	int i;
};

static void
put_link(JsonWriter *w, int server, struct end from, struct end to, LinkClass class, int count, int64_t capacity)
{
	char id[LIMIT_ID_BYTES];
	json_object(w, NULL, JSON_LINE);
	snprintf(id, sizeof id, "s%d/%s%d", server, from.kind, from.i);
	json_string(w, "from", id);
	snprintf(id, sizeof id, to.i < 0 ? "s%d/%s" : "s%d/%s%d", server, to.kind, to.i);
	json_string(w, "to", id);
	json_string(w, "class", link_class_name(class));
	json_gb(w, "capacity", (Frac){ capacity, 1 });
	if (count > 1)
		json_int(w, "count", count);
	json_end(w);
}

static void
put_nvlinks(JsonWriter *w, const struct synthetic *s, int server)
{
	int n = s->count[KEY_GPU];
	for (int i = 0; i < n && s->given[KEY_SWITCH]; i++)
		put_link(w, server, (struct end){ "gpu", i }, (struct end){ "switch", -1 }, LINK_NVLINK,
		    s->count[KEY_SWITCH], s->capacity[KEY_SWITCH]);
	for (int i = 0; i < n && s->given[KEY_MESH]; i++)
		for (int j = i + 1; j < n; j++)
			put_link(w, server, (struct end){ "gpu", i }, (struct end){ "gpu", j }, LINK_NVLINK, 1,
			    s->capacity[KEY_MESH]);
	for (int i = 0; i < n && s->given[KEY_RING] && (n > 2 || i < n - 1); i++)
		put_link(w, server, (struct end){ "gpu", i }, (struct end){ "gpu", (i + 1) % n }, LINK_NVLINK, 1,
		    s->capacity[KEY_RING]);
}

static void
put_pcie_links(JsonWriter *w, const struct synthetic *s, int server, int n_plx)
{
	int n = s->count[KEY_GPU], nics = s->given[KEY_NIC] ? s->count[KEY_NIC] : 0;
	int64_t capacity = s->capacity[KEY_PCIE];
	for (int i = 0; i < n && n_plx; i++) {
		int plx = (int)((int64_t)i * n_plx / n);
		put_link(w, server, (struct end){ "gpu", i }, (struct end){ "plx", plx }, LINK_PCIE, 1, capacity);
	}
	for (int i = 0; i < nics; i++)
		put_link(w, server, (struct end){ "nic", i }, (struct end){ "plx", i }, LINK_PCIE, 1, capacity);
	for (int i = 0; i < n_plx && n_plx > 1; i++)
		put_link(w, server, (struct end){ "plx", i }, (struct end){ "cpu0", -1 }, LINK_PCIE, 1, capacity);
}

static void
put_fabric(JsonWriter *w, const struct synthetic *s)
{
	json_array(w, "fabrics", JSON_LINE);
	json_object(w, NULL, JSON_LINE);
	json_string(w, "ports", s->given[KEY_NET] ? "gpus" : "nics");
	if (s->given[KEY_NET])
		json_gb(w, "capacity", (Frac){ s->capacity[KEY_NET], 1 });
	if (s->given[KEY_RAILS])
		json_bool(w, "rails", true);
	if (s->given[KEY_LEAF])
		json_int(w, "servers", s->count[KEY_LEAF]);
	if (s->given[KEY_OVERSUBSCRIPTION])
		json_gb(w, "oversubscription", (Frac){ s->capacity[KEY_OVERSUBSCRIPTION], 1 });
	json_end(w);
	json_end(w);
}

Status
synthetic_write(Ctx *ctx, const char *line, Text *out)
{
	JsonWriter w = { .out = out };
	struct synthetic s = { 0 };
	TRY(parse_line(ctx, line, &s));
	/* A PCIe switch for each NIC and its share of the GPUs; without NICs, one. */
	int n_plx = !s.given[KEY_PCIE] ? 0 : s.given[KEY_NIC] ? s.count[KEY_NIC] : 1;
	json_file(&w, JSON_BLOCK, "blink-topology");
	json_string(&w, "name", line);
	json_array(&w, "nodes", JSON_BLOCK);
	for (int i = 0; i < s.count[KEY_SERVER]; i++)
		put_node(&w, &s, i, n_plx);
	json_end(&w);
	if (s.given[KEY_NIC] || s.given[KEY_NET])
		put_fabric(&w, &s);
	if (s.n_networks && s.net.kind != TORUS) {
		json_array(&w, "switches", JSON_BLOCK);
		network_put_switches(&w, &s.net);
		json_end(&w);
	}
	json_array(&w, "links", JSON_BLOCK);
	for (int i = 0; i < s.count[KEY_SERVER]; i++) {
		put_nvlinks(&w, &s, i);
		put_pcie_links(&w, &s, i, n_plx);
	}
	if (s.n_networks)
		network_put_links(&w, &s.net);
	json_end(&w);
	json_file_end(&w);
	return out->failed ? fail_memory(ctx) : OK;
}
