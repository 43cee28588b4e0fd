/* What is left of a machine that has lost links, GPUs, NICs or switches; and machines whose GPUs forward data of
 * others. The digest of what is left is that of the machine's file with these parts taken out. */
#include "topology/topology.h"
#include "base/array.h"
#include "base/limits.h"
#include "base/printable.h"

#include <stdio.h>
#include <string.h>

/* ---- names ---- */

static int
vertex_named(const Topology *machine, const char *id, size_t n)
{
	for (int v = 0; v < machine->n_vertices; v++)
		if (strlen(machine->vertex[v].id) == n && memcmp(machine->vertex[v].id, id, n) == 0)
			return v;
	return -1;
}

/* "nic:mlx5_2"; of GPUs an index, too. */
static int
vertex_of_kind(const Topology *machine, const char *text, size_t n)
{
	const char *colon = memchr(text, ':', n);
	int64_t index;
	if (!colon)
		return -1;
	size_t kind = (size_t)(colon - text), rest = n - kind - 1;
	int v = vertex_named(machine, colon + 1, rest);
	for (int k = 0; k < N_VERTEX_KINDS; k++) {
		const char *name = vertex_kind_name((VertexKind)k);
		if (strlen(name) != kind || memcmp(name, text, kind) != 0)
			continue;
		if (v >= 0)
			return machine->vertex[v].kind == (VertexKind)k ? v : -1;
		if (k == VERTEX_GPU && rest > 0 && rest <= 4 && strspn(colon + 1, "0123456789") >= rest
		    && decimal_parse(colon + 1, rest, 1, &index) && index < machine->n_ranks)
			return (int)index;
	}
	return -1;
}

/* Physical links between two vertices, the more of both directions. */
static int
links_between(const Topology *machine, int a, int b)
{
	int count[2] = { 0, 0 };
	for (int l = 0; l < machine->n_links; l++) {
		const Link *link = &machine->link[l];
		if ((link->from == a && link->to == b) || (link->from == b && link->to == a))
			count[link->from == a] += link->count;
	}
	return count[0] > count[1] ? count[0] : count[1];
}

/* Classes of the links between two vertices, a bit set. */
static unsigned
classes_between(const Topology *machine, int a, int b)
{
	unsigned classes = 0;
	for (int l = 0; l < machine->n_links; l++) {
		const Link *link = &machine->link[l];
		if ((link->from == a && link->to == b) || (link->from == b && link->to == a))
			classes |= 1u << link->class;
	}
	return classes;
}

/* "gpu5" or "gpu5:1" after the sign. */
static bool
parse_end(const Topology *machine, const char *text, size_t n, int *v, int64_t *count)
{
	const char *colon = memrchr(text, ':', n);
	*count = 0;
	*v = vertex_named(machine, text, n);
	if (*v >= 0 || !colon)
		return *v >= 0;
	const char *digits = colon + 1;
	size_t length = n - (size_t)(digits - text);
	*v = vertex_named(machine, text, (size_t)(colon - text));
	return *v >= 0 && length > 0 && length <= 9 && strspn(digits, "0123456789") >= length
	    && decimal_parse(digits, length, 1, count) && *count > 0;
}

/* Ids may have a "-": every place is tried. *found: how many fit; the first goes to *out. */
static void
parse_pair(const Topology *machine, const char *text, size_t n, Loss *out, int64_t *count, int *found)
{
	*found = 0;
	for (size_t i = 1; i + 1 < n; i++) {
		int b, a = text[i] == '-' ? vertex_named(machine, text, i) : -1;
		int64_t c;
		if (a < 0 || !parse_end(machine, text + i + 1, n - i - 1, &b, &c) || a == b
		    || links_between(machine, a, b) == 0)
			continue;
		if ((*found)++ == 0) {
			*out = (Loss){ a < b ? a : b, a < b ? b : a, 0 };
			*count = c;
		}
	}
}

static Status
fail_loss(Ctx *ctx, const Topology *machine, const char *text, size_t n, const char *why)
{
	return fail_asked(ctx, BAD_INPUT, "without", "\"%.*s\": %.200s %s: want a link, as %.64s-%.64s, or the id of a "
	    "GPU, NIC or switch", (int)(n < 80 ? n : 80), text, machine->name, why,
	    machine->n_links ? machine->vertex[machine->link[0].from].id : "gpu0",
	    machine->n_links ? machine->vertex[machine->link[0].to].id : "gpu1");
}

static Status
parse_loss(Ctx *ctx, const Topology *machine, const char *text, size_t n, Loss *out)
{
	int found, v = vertex_named(machine, text, n);
	int64_t count = 0;
	v = v >= 0 ? v : vertex_of_kind(machine, text, n);
	if (v >= 0) {
		*out = (Loss){ v, -1, 0 };
		return OK;
	}
	parse_pair(machine, text, n, out, &count, &found);
	if (found != 1)
		return fail_loss(ctx, machine, text, n,
		    found ? "has several links that are called so" : "has no such part");
	int all = links_between(machine, out->a, out->b);
	if (count > all)
		return fail_asked(ctx, BAD_INPUT, "without", "%.*s: %.200s has %d there: want 1 to %d",
		    (int)(n < 150 ? n : 150), text, machine->name, all, all);
	unsigned classes = classes_between(machine, out->a, out->b);
	if (count && (classes & (classes - 1)))
		return fail_asked(ctx, BAD_INPUT, "without",
		    "%.*s: links of several classes, %s: want all lost", (int)(n < 150 ? n : 150), text,
		    link_classes_text(classes).text);
	out->count = count == all ? 0 : (int)count;
	return OK;
}

/* "s5:0-3" or "s5:2": GPUs of server *node, by their places in it. */
static bool
parse_gpus(const Topology *machine, const char *text, size_t n, int *node, int64_t range[2])
{
	const char *colon = memrchr(text, ':', n), *dash, *end = text + n;
	size_t length = colon ? (size_t)(colon - text) : 0;
	*node = machine->n_nodes - 1;
	while (*node >= 0
	    && (strlen(machine->node[*node]) != length || memcmp(machine->node[*node], text, length) != 0))
		--*node;
	if (!colon || *node < 0)
		return false;
	dash = memchr(colon, '-', (size_t)(end - colon));
	for (int i = 0; i < 2; i++) {
		const char *from = i && dash ? dash + 1 : colon + 1, *to = i || !dash ? end : dash;
		size_t digits = (size_t)(to - from);
		if (digits < 1 || digits > 9 || strspn(from, "0123456789") < digits
		    || !decimal_parse(from, digits, 1, &range[i]))
			return false;
	}
	return range[0] <= range[1];
}

/* GPUs of a server; *some: false: it has not all of these. */
static Status
add_gpus(Ctx *ctx, const Topology *machine, int node, const int64_t range[2], Loss **out, int *n, int *room, bool *some)
{
	int64_t at = 0, found = 0;
	for (int v = 0; v < machine->n_ranks; v++) {
		if (machine->vertex[v].node != node || at++ < range[0] || at - 1 > range[1])
			continue;
		TRY(GROW(ctx, *out, *n, *room));
		(*out)[(*n)++] = (Loss){ v, -1, 0 };
		found++;
	}
	*some = found == range[1] - range[0] + 1;
	return OK;
}

Status
topo_losses(Ctx *ctx, const Topology *machine, const char *text, Loss **out, int *n_out)
{
	int room = 0, node;
	int64_t range[2];
	*out = NULL;
	*n_out = 0;
	for (const char *at = text;; at++) {
		size_t length = strcspn(at, ",");
		bool some = false;
		if (parse_gpus(machine, at, length, &node, range))
			TRY(add_gpus(ctx, machine, node, range, out, n_out, &room, &some));
		TRY(GROW(ctx, *out, *n_out, room));
		if (!some)
			TRY(parse_loss(ctx, machine, at, length, &(*out)[(*n_out)++]));
		at += length;
		if (!*at)
			return OK;
	}
}

static void
put_loss(const Topology *machine, const Loss *loss, Text *out)
{
	text_put(out, machine->vertex[loss->a].id);
	if (loss->b >= 0)
		text_printf(out, "-%s", machine->vertex[loss->b].id);
	if (loss->count > 0)
		text_printf(out, ":%d", loss->count);
}

Status
topo_losses_name(Ctx *ctx, const Topology *machine, const Loss *loss, int n, const char **out)
{
	Text name = { 0 };
	for (int i = 0; i < n; i++) {
		text_put(&name, i ? "," : "");
		put_loss(machine, &loss[i], &name);
	}
	*out = text_keep(&ctx->run, &name);
	return *out ? OK : fail_memory(ctx);
}

/* ---- single losses ---- */

static bool
first_between(const Topology *machine, int l)
{
	const Link *link = &machine->link[l];
	for (int end = 0; end < 2; end++) {
		int v = end ? link->to : link->from, w = end ? link->from : link->to;
		for (int i = machine->first_out[v]; i < machine->first_out[v + 1]; i++)
			if (machine->link[machine->out[i]].to == w && machine->out[i] < l)
				return false;
	}
	return true;
}

Status
topo_single_losses(Ctx *ctx, const Topology *machine, Loss **out, int *n_out)
{
	int n = 0;
	TRY(NEW(ctx, *out, (size_t)machine->n_vertices + 2 * (size_t)machine->n_links));
	for (int l = 0; l < machine->n_links; l++) {
		int a = machine->link[l].from, b = machine->link[l].to;
		if (!first_between(machine, l))
			continue;
		unsigned classes = classes_between(machine, a, b);
		Loss loss = { a < b ? a : b, a < b ? b : a, 0 };
		if (links_between(machine, a, b) > 1 && !(classes & (classes - 1)))
			(*out)[n++] = (Loss){ loss.a, loss.b, 1 };
		(*out)[n++] = loss;
	}
	for (int v = 0; v < machine->n_vertices; v++)
		if (machine->vertex[v].kind != VERTEX_CPU)
			(*out)[n++] = (Loss){ v, -1, 0 };
	*n_out = n;
	return OK;
}

/* ---- what is left ---- */

/* Physical links that are left of each Link, and which vertices. */
struct left {
	int *count;
	bool *vertex;
};

static Status
take_out(Ctx *ctx, const Topology *machine, const Loss *loss, int n, struct left *left)
{
	TRY(TEMP(ctx, left->count, machine->n_links));
	TRY(TEMP(ctx, left->vertex, machine->n_vertices));
	for (int v = 0; v < machine->n_vertices; v++)
		left->vertex[v] = true;
	for (int l = 0; l < machine->n_links; l++)
		left->count[l] = machine->link[l].count;
	for (int i = 0; i < n; i++) {
		int most = loss[i].count ? loss[i].count : INT32_MAX, more[2] = { most, most };
		if (loss[i].b < 0)
			left->vertex[loss[i].a] = false;
		for (int l = 0; l < machine->n_links && loss[i].b >= 0; l++) {
			const Link *link = &machine->link[l];
			int back = link->from == loss[i].b;
			if (link->from + link->to != loss[i].a + loss[i].b
			    || (link->from != loss[i].a && link->from != loss[i].b))
				continue;
			int lost = left->count[l] < more[back] ? left->count[l] : more[back];
			left->count[l] -= lost;
			more[back] -= lost;
		}
	}
	for (int l = 0; l < machine->n_links; l++)
		if (!left->vertex[machine->link[l].from] || !left->vertex[machine->link[l].to])
			left->count[l] = 0;
	return OK;
}

static Status
copy_left(Ctx *ctx, const Topology *machine, const struct left *left, Topology *topo, int *now)
{
	int n = 0;
	TRY(TEMP(ctx, topo->link, machine->n_links));
	topo->n_ranks = topo->n_links = 0;
	for (int v = 0; v < machine->n_vertices; v++) {
		now[v] = left->vertex[v] ? n++ : -1;
		topo->n_ranks += left->vertex[v] && v < machine->n_ranks;
	}
	for (int l = 0; l < machine->n_links; l++) {
		Link link = machine->link[l];
		if (left->count[l] == 0)
			continue;
		link.capacity = link.capacity / link.count * left->count[l];
		link.count = left->count[l];
		topo->link[topo->n_links++] = link;
	}
	return topo_renumber(ctx, now, n, topo);
}

Status
topo_without(Ctx *ctx, const Topology *machine, const Loss *loss, int n, Topology **out, const int **gpu)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct left left;
	const char *lost;
	Text name = { 0 };
	Topology *topo;
	int *now, *gpu_now;
	TRY(topo_losses_name(ctx, machine, loss, n, &lost));
	TRY(take_out(ctx, machine, loss, n, &left));
	TRY(NEW(ctx, topo, 1));
	TRY(TEMP(ctx, now, machine->n_vertices));
	TRY(NEW(ctx, gpu_now, machine->n_ranks));
	*topo = *machine;
	TRY(copy_left(ctx, machine, &left, topo, now));
	text_printf(&name, "%s without %s", machine->name, lost);
	if (name.size > LIMIT_TEXT_BYTES)
		name.size = utf8_valid(name.data, LIMIT_TEXT_BYTES);
	topo->name = text_keep(&ctx->run, &name);
	if (!topo->name)
		return fail_memory(ctx);
	TRY(topo_digest(ctx, topo, &topo->digest));
	memcpy(gpu_now, now, (size_t)machine->n_ranks * sizeof *gpu_now);
	arena_release(&ctx->scratch, mark);
	*out = topo;
	*gpu = gpu_now;
	return OK;
}

/* ---- relays ---- */

Status
topo_relays(Ctx *ctx, const Topology *machine, const bool *relay, Topology **out, const int **gpu)
{
	Topology *topo;
	int *now, at = 0;
	TRY(NEW(ctx, topo, 1));
	TRY(NEW(ctx, now, machine->n_vertices));
	*topo = *machine;
	for (int pass = 0; pass < 2; pass++) {
		for (int v = 0; v < machine->n_ranks; v++)
			if (relay[v] == pass)
				now[v] = at++;
		topo->n_ranks = pass ? topo->n_ranks : at;
	}
	for (int v = machine->n_ranks; v < machine->n_vertices; v++)
		now[v] = v;
	TRY(topo_renumber(ctx, now, machine->n_vertices, topo));
	for (int v = topo->n_ranks; v < machine->n_ranks; v++)
		topo->vertex[v].kind = VERTEX_SWITCH;
	*out = topo;
	*gpu = now;
	return OK;
}
