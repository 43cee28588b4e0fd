/* A machine as text: what it has, its links by kind, and the matrix of nvidia-smi topo -m of each different server. */
#include "base/hash.h"
#include "topology/topology.h"
#include "view/parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	MATRIX_MOST = 64,	/* GPUs and NICs of a matrix: more do not fit a line */
	NAMES_MOST = 16,	/* names in a row, before the rest is counted */
	KINDS_MOST = 64		/* rows of links */
};

Status
explain_machine(Ctx *ctx, const Topology *machine, Explained *out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	Explained *e = out;
	*e = (Explained){ .topo = machine, .n_servers = machine->n_nodes };
	TRY(NEW(ctx, e->name, machine->n_vertices));
	TRY(NEW(ctx, e->short_name, machine->n_ranks));
	TRY(NEW(ctx, e->server, machine->n_vertices));
	TRY(NEW(ctx, e->device, machine->n_vertices));
	TRY(NEW(ctx, e->load, machine->n_links));
	TRY(NEW(ctx, e->saturated, machine->n_links));
	TRY(NEW(ctx, e->tight, machine->n_links));
	TRY(name_vertices(ctx, e));
	for (int v = 0; v < machine->n_vertices; v++)
		e->server[v] = machine->vertex[v].node;
	for (int l = 0; l < machine->n_links; l++)
		e->load[l] = explain_capacity(e, l);
	arena_release(&ctx->scratch, mark);
	return OK;
}

/* ---- what it has ---- */

/* "2 CPUs" */
static void
put_number(Text *out, int n, const char *what, const char *plural)
{
	text_printf(out, "%d %s%s", n, what, n == 1 ? "" : plural);
}

static int
count_kind(const Topology *topo, VertexKind kind)
{
	int n = 0;
	for (int v = 0; v < topo->n_vertices; v++)
		n += topo->vertex[v].kind == kind;
	return n;
}

/* The first clause of its source says what the machine is; list has it, too. */
static void
put_head(Text *out, const Explained *e)
{
	const Topology *topo = e->topo;
	text_put(out, "machine     ");
	text_printable(out, topo->name);
	text_put(out, "\nparts       ");
	put_number(out, topo->n_nodes, "server", "s");
	text_put(out, ", ");
	put_number(out, topo->n_ranks, "GPU", "s");
	text_put(out, ", ");
	put_number(out, count_kind(topo, VERTEX_CPU), "CPU", "s");
	text_put(out, ", ");
	put_number(out, count_kind(topo, VERTEX_SWITCH), "switch", "es");
	text_put(out, ", ");
	put_number(out, count_kind(topo, VERTEX_NIC), "NIC", "s");
	text_put(out, "\ngpus        ");
	for (int r = 0; r < topo->n_ranks && r < NAMES_MOST; r++)
		text_printf(out, r ? " %s" : "%s", e->name[r]);
	if (topo->n_ranks > NAMES_MOST)
		text_printf(out, " and %d more", topo->n_ranks - NAMES_MOST);
	text_put(out, "\n");
}

/* ---- links by kind ---- */

/* Pairs of vertices of two kinds, with equal links. */
struct kind {
	VertexKind a, b;
	LinkClass class;
	int count[2];
	int64_t capacity[2], latency;
	int n;
};

/* GPUs first, as in what is drawn; a link between a CPU and a GPU is one between a GPU and a CPU. */
static struct kind
kind_of(const Topology *topo, const LinkPair *pair)
{
	const Link *link = &topo->link[pair->first[0] >= 0 ? pair->first[0] : pair->first[1]];
	VertexKind a = topo->vertex[pair->a].kind, b = topo->vertex[pair->b].kind;
	bool turned = b < a || (a == b && pair->capacity[0] < pair->capacity[1]);
	struct kind kind = { turned ? b : a, turned ? a : b, pair->class, { 0, 0 }, { 0, 0 }, link->latency, 0 };
	for (int d = 0; d < 2; d++) {
		kind.count[d] = pair->count[turned ? !d : d];
		kind.capacity[d] = pair->capacity[turned ? !d : d];
	}
	return kind;
}

static int
by_kind(const void *x, const void *y)
{
	const struct kind *p = x, *q = y;
	if (p->class != q->class)
		return (int)p->class - (int)q->class;
	if (p->a != q->a || p->b != q->b)
		return p->a != q->a ? (int)p->a - (int)q->a : (int)p->b - (int)q->b;
	if (p->capacity[0] != q->capacity[0])
		return p->capacity[0] > q->capacity[0] ? -1 : 1;
	if (p->capacity[1] != q->capacity[1])
		return p->capacity[1] > q->capacity[1] ? -1 : 1;
	if (p->count[0] != q->count[0])
		return q->count[0] - p->count[0];
	return p->latency != q->latency ? p->latency < q->latency ? -1 : 1 : q->count[1] - p->count[1];
}

static void
put_gb(Text *out, int64_t capacity)
{
	put_figures(out, (double)capacity / 1e9);
}

/* A cell, on the right of its column, apart from the one before it. */
static void
put_right(Text *out, int width, const char *text)
{
	text_printf(out, " %*s", width - 1, text);
}

/* "2 x 25"; "25 / 12" where the other way has less; "25 / none" one way */
static void
put_capacities(Text *out, const struct kind *kind)
{
	Text cell = { 0 };
	for (int d = 0; d < 2; d++) {
		bool same = kind->capacity[0] == kind->capacity[1] && kind->count[0] == kind->count[1];
		if (d == 1 && same)
			continue;
		text_put(&cell, d ? " / " : "");
		if (kind->count[d] > 1 && kind->capacity[d] % kind->count[d] == 0) {
			text_printf(&cell, "%d x ", kind->count[d]);
			put_gb(&cell, kind->capacity[d] / kind->count[d]);
		} else if (kind->count[d] > 0) {
			put_gb(&cell, kind->capacity[d]);
		} else {
			text_put(&cell, "none");
		}
	}
	put_right(out, 16, cell.data ? cell.data : "");
	out->failed = out->failed || cell.failed;
	text_free(&cell);
}

static void
put_kind(Text *out, const struct kind *kind)
{
	char between[40];
	Text cell = { 0 };
	snprintf(between, sizeof between, "%s - %s", vertex_kind_name(kind->a), vertex_kind_name(kind->b));
	text_printf(out, "%-7s %-15s %6d", link_class_name(kind->class), between, kind->n);
	put_capacities(out, kind);
	put_gb(&cell, kind->capacity[0]);
	put_right(out, 9, cell.data ? cell.data : "");
	cell.size = 0;
	put_figures(&cell, (double)kind->latency / 1e3);
	put_right(out, 12, kind->latency && cell.data ? cell.data : "-");
	text_put(out, "\n");
	out->failed = out->failed || cell.failed;
	text_free(&cell);
}

static Status
put_kinds(Ctx *ctx, const Topology *topo, const LinkPair *pair, int n, Text *out)
{
	struct kind *kind;
	int n_kinds = 0;
	TRY(TEMP(ctx, kind, n));
	for (int i = 0; i < n; i++)
		kind[i] = kind_of(topo, &pair[i]);
	if (n > 0)
		qsort(kind, (size_t)n, sizeof *kind, by_kind);
	for (int i = 0; i < n; i++) {
		if (i == 0 || by_kind(&kind[i], &kind[n_kinds - 1]) != 0)
			kind[n_kinds++] = kind[i];
		kind[n_kinds - 1].n++;
	}
	text_put(out, "\nlinks   between          pairs   GB/s each way   of all  latency us\n");
	for (int i = 0; i < n_kinds && i < KINDS_MOST; i++)
		put_kind(out, &kind[i]);
	if (n_kinds > KINDS_MOST)
		text_printf(out, "and %d more kinds of links\n", n_kinds - KINDS_MOST);
	return OK;
}

/* ---- GPUs and NICs by what leads to them ---- */

/* What leaves a GPU, class by class, and what of that comes back. */
struct ends {
	int count[N_LINK_CLASSES][2];
	int64_t capacity[N_LINK_CLASSES][2];
};

static void
find_ends(const Topology *topo, int v, struct ends *ends)
{
	memset(ends, 0, sizeof *ends);
	for (int in = 0; in < 2; in++) {
		const int *first = in ? topo->first_in : topo->first_out, *list = in ? topo->in : topo->out;
		for (int i = first[v]; i < first[v + 1]; i++) {
			const Link *link = &topo->link[list[i]];
			ends->count[link->class][in] += link->count;
			ends->capacity[link->class][in] += link->capacity;
		}
	}
}

static void
put_ends(Text *out, const struct ends *ends)
{
	bool any = false;
	for (int k = 0; k < N_LINK_CLASSES; k++) {
		const int64_t *capacity = ends->capacity[k];
		if (!capacity[0] && !capacity[1])
			continue;
		text_printf(out, any ? ", %s " : "%s ", link_class_name((LinkClass)k));
		put_gb(out, capacity[0]);
		if (capacity[0] != capacity[1]) {
			text_put(out, " out, ");
			put_gb(out, capacity[1]);
			text_put(out, " in");
		}
		text_printf(out, " GB/s over %d", ends->count[k][0]);
		if (ends->count[k][0] != ends->count[k][1])
			text_printf(out, " and %d", ends->count[k][1]);
		text_put(out, ends->count[k][0] == 1 && ends->count[k][1] == 1 ? " link" : " links");
		any = true;
	}
	text_put(out, any ? "" : "no links");
}

struct row {
	struct ends ends;
	int vertex;
};

static int
by_ends(const void *x, const void *y)
{
	const struct row *p = x, *q = y;
	int order = memcmp(&p->ends, &q->ends, sizeof p->ends);
	return order ? order : p->vertex - q->vertex;
}

static int
by_vertex(const void *x, const void *y)
{
	const struct row *const *p = x, *const *q = y;
	return (*p)->vertex - (*q)->vertex;
}

/* "each of 8 GPUs: nvlink 150 GB/s over 6 links, pcie 12 GB/s over 1 link" */
static Status
put_gpus(Ctx *ctx, const Explained *e, Text *out)
{
	const Topology *topo = e->topo;
	struct row *row, **first;
	int n = 0, *size;
	TRY(TEMP(ctx, row, topo->n_ranks));
	TRY(TEMP(ctx, first, topo->n_ranks));
	TRY(TEMP(ctx, size, topo->n_ranks));
	for (int r = 0; r < topo->n_ranks; r++) {
		row[r].vertex = r;
		find_ends(topo, r, &row[r].ends);
	}
	qsort(row, (size_t)topo->n_ranks, sizeof *row, by_ends);
	for (int r = 0; r < topo->n_ranks; r++) {
		if (r == 0 || memcmp(&row[r].ends, &row[r - 1].ends, sizeof row->ends) != 0)
			first[n++] = &row[r];
		size[first[n - 1]->vertex]++;
	}
	qsort(first, (size_t)n, sizeof *first, by_vertex);
	text_put(out, "\n");
	for (int i = 0; i < n && i < KINDS_MOST; i++) {
		int gpus = size[first[i]->vertex];
		if (gpus == 1)
			text_put(out, e->name[first[i]->vertex]);
		else
			text_printf(out, gpus == topo->n_ranks ? "each of the %d GPUs" : "each of %d GPUs, as %s", gpus,
			    e->name[first[i]->vertex]);
		text_put(out, ": ");
		put_ends(out, &first[i]->ends);
		text_put(out, "\n");
	}
	if (n > KINDS_MOST)
		text_printf(out, "and %d more kinds of GPUs\n", n - KINDS_MOST);
	return OK;
}

/* "each of the 4 NICs: a port of 12.5 GB/s", where all have the same. */
static void
put_ports(const Topology *topo, Text *out)
{
	int64_t least = INT64_MAX, most = 0;
	int n = 0;
	for (int v = 0; v < topo->n_vertices; v++) {
		if (topo->vertex[v].kind != VERTEX_NIC)
			continue;
		n++;
		least = topo->vertex[v].port < least ? topo->vertex[v].port : least;
		most = topo->vertex[v].port > most ? topo->vertex[v].port : most;
	}
	if (most == 0)
		return;
	text_printf(out, n == 1 ? "the NIC: a port of " : "each of the %d NICs: a port of ", n);
	put_gb(out, least);
	if (least != most) {
		text_put(out, " to ");
		put_gb(out, most);
	}
	text_put(out, " GB/s\n");
}

/* ---- servers of one form ---- */

/* Equal for copies of one server: its links by the numbers of their ends within it. */
static Status
hash_servers(Ctx *ctx, const Topology *topo, uint64_t *hash)
{
	int *number, *next;
	TRY(TEMP(ctx, number, topo->n_vertices));
	TRY(TEMP(ctx, next, topo->n_nodes));
	for (int v = 0; v < topo->n_vertices; v++) {
		int s = topo->vertex[v].node;
		number[v] = s < 0 ? -1 : next[s]++;
		if (s >= 0)
			hash[s] = hash64(hash[s] * 8 + (uint64_t)topo->vertex[v].kind);
	}
	for (int l = 0; l < topo->n_links; l++) {
		const Link *link = &topo->link[l];
		int a = topo->vertex[link->from].node, b = topo->vertex[link->to].node;
		for (int end = 0; end < 2; end++) {
			int s = end ? b : a;
			if (s < 0 || (end && a == b))
				continue;
			uint64_t from = a == s ? (uint64_t)number[link->from] : UINT64_MAX;
			uint64_t to = b == s ? (uint64_t)number[link->to] : UINT64_MAX;
			uint64_t one = hash64(from) ^ hash64(to + 1) ^ hash64((uint64_t)link->capacity + 2);
			hash[s] += hash64(one + (uint64_t)link->class * 2048 + (uint64_t)link->count);
		}
	}
	return OK;
}

/* ---- the matrix ---- */

/* An id without its server: "gpu0" of "s0/gpu0". */
static const char *
local_name(const Topology *topo, int v)
{
	const char *id = topo->vertex[v].id;
	int s = topo->vertex[v].node;
	size_t n = s < 0 ? 0 : strlen(topo->node[s]);
	return n > 0 && strncmp(id, topo->node[s], n) == 0 && id[n] == '/' && id[n + 1] ? id + n + 1 : id;
}

static void
name_join(Joined entry, char name[24])
{
	const char *text = join_name(entry.kind);
	int n = (int)strcspn(text, "#");
	if (text[n])
		snprintf(name, 24, "%.*s%d", n, text, entry.count);
	else
		snprintf(name, 24, "%s", text);
}

/* Columns of equal width; a last one with the CPU next to each device. */
static void
put_matrix(const Topology *topo, const int *device, int n, const Matrix *matrix, unsigned *seen, Text *out)
{
	int width = 4;
	char name[24];
	for (int i = 0; i < n; i++) {
		int length = (int)strlen(local_name(topo, device[i]));
		width = length > width ? length : width;
	}
	for (int i = 0; i < n * n; i++) {
		name_join(matrix->entry[i], name);
		width = (int)strlen(name) > width ? (int)strlen(name) : width;
	}
	text_printf(out, "%*s", width, "");
	for (int j = 0; j < n; j++)
		text_printf(out, "  %-*s", width, local_name(topo, device[j]));
	text_put(out, "  CPU\n");
	for (int i = 0; i < n; i++) {
		text_printf(out, "%-*s", width, local_name(topo, device[i]));
		for (int j = 0; j < n; j++) {
			*seen |= 1u << matrix->entry[i * n + j].kind;
			name_join(matrix->entry[i * n + j], name);
			text_printf(out, "  %-*s", width, name);
		}
		text_printf(out, "  %s\n", matrix->cpu[i] < 0 ? "-" : local_name(topo, matrix->cpu[i]));
	}
}

static void
put_legend(unsigned seen, Text *out)
{
	text_put(out, "\n");
	for (int k = 0; k < N_JOINS; k++)
		if (seen >> k & 1)
			text_printf(out, "%-6s = %s\n", join_name((JoinKind)k), join_what((JoinKind)k));
}

/* The GPUs of a server, then its NICs. Returns how many there are, of which the first MATRIX_MOST are in device. */
static int
devices_of(const Topology *topo, int s, int device[MATRIX_MOST])
{
	int n = 0;
	for (int v = 0; v < topo->n_vertices; v++) {
		if (topo->vertex[v].node != s || (v >= topo->n_ranks && topo->vertex[v].kind != VERTEX_NIC))
			continue;
		if (n < MATRIX_MOST)
			device[n] = v;
		n++;
	}
	return n;
}

/* "s1 and 18 more are like s0" */
static void
put_same(const Topology *topo, const uint64_t *hash, int s, Text *out)
{
	int n = 0, first = -1;
	for (int t = s + 1; t < topo->n_nodes; t++)
		if (hash[t] == hash[s]) {
			first = n++ ? first : t;
		}
	text_put(out, topo->node[s]);
	if (n == 0)
		return;
	text_printf(out, n == 1 ? ", and %s, which is like it" : ", and %s and %d more, which are like it",
	    topo->node[first], n - 1);
}

static Status
put_server(Ctx *ctx, const Topology *topo, const uint64_t *hash, int s, unsigned *seen, Text *out)
{
	int device[MATRIX_MOST], n = devices_of(topo, s, device), shown = n < MATRIX_MOST ? n : MATRIX_MOST;
	Matrix matrix;
	TRY(topo_matrix(ctx, topo, device, shown, &matrix));
	text_put(out, "\n");
	if (topo->n_nodes > 1) {
		text_put(out, "server ");
		put_same(topo, hash, s, out);
		text_put(out, ":\n");
	}
	put_matrix(topo, device, shown, &matrix, seen, out);
	if (n > shown)
		text_printf(out, "and %d more; -g LIST shows others\n", n - shown);
	return OK;
}

/* Of each different server, up to a few. */
static Status
put_matrices(Ctx *ctx, const Topology *topo, Text *out)
{
	enum { SERVERS_MOST = 8 };
	uint64_t *hash;
	unsigned seen = 0;
	int shown = 0, left_out = 0;
	TRY(TEMP(ctx, hash, topo->n_nodes));
	TRY(hash_servers(ctx, topo, hash));
	for (int s = 0; s < topo->n_nodes; s++) {
		bool known = false;
		for (int t = 0; t < s && !known; t++)
			known = hash[t] == hash[s];
		if (known)
			continue;
		if (shown++ < SERVERS_MOST)
			TRY(put_server(ctx, topo, hash, s, &seen, out));
		else
			left_out++;
	}
	if (left_out)
		text_printf(out, "\nand %d more servers, which differ; -g LIST shows those of its GPUs\n", left_out);
	put_legend(seen, out);
	return OK;
}

/* What joins servers: links with an end outside of them, or in two. */
static void
put_between(const Topology *topo, const LinkPair *pair, int n, Text *out)
{
	for (int k = 0; k < N_LINK_CLASSES; k++) {
		int links = 0;
		for (int i = 0; i < n; i++) {
			int a = topo->vertex[pair[i].a].node, b = topo->vertex[pair[i].b].node;
			links += pair[i].class == (LinkClass)k && a != b;
		}
		if (links)
			text_printf(out, "out of servers lead%s %d pair%s of %s links\n", links == 1 ? "s" : "", links,
			    links == 1 ? "" : "s", link_class_name((LinkClass)k));
	}
}

Status
machine_text(Ctx *ctx, const Explained *e, Text *out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	LinkPair *pair;
	int n;
	put_head(out, e);
	TRY(topo_link_pairs(ctx, e->topo, &pair, &n));
	TRY(put_kinds(ctx, e->topo, pair, n, out));
	TRY(put_gpus(ctx, e, out));
	put_ports(e->topo, out);
	put_between(e->topo, pair, n, out);
	TRY(put_matrices(ctx, e->topo, out));
	arena_release(&ctx->scratch, mark);
	return OK;
}
