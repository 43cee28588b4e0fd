/* A machine as text: what it has, its links by kind, and the matrix of nvidia-smi topo -m of each different server. */
#include "base/sort.h"
#include "topology/topology.h"
#include "view/parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
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
	TRY(NEW_EACH(ctx, machine->n_vertices, e->server, e->device));
	TRY(NEW_EACH(ctx, machine->n_links, e->load, e->saturated, e->tight));
	TRY(name_vertices(ctx, e));
	for (int v = 0; v < machine->n_vertices; v++)
		e->server[v] = machine->vertex[v].node;
	for (int l = 0; l < machine->n_links; l++)
		e->load[l] = explain_capacity(e, l);
	arena_release(&ctx->scratch, mark);
	return OK;
}

/* ---- what it has ---- */

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
	for (int i = 0; i < 5; i++) {
		static const char *const what[] = { "server", "GPU", "CPU", "switch", "NIC" };
		const int n[] = { topo->n_nodes, topo->n_ranks, count_kind(topo, VERTEX_CPU),
			count_kind(topo, VERTEX_SWITCH), count_kind(topo, VERTEX_NIC) };
		text_printf(out, "%s%d %s%s", i ? ", " : "", n[i], what[i], n[i] == 1 ? "" : i == 3 ? "es" : "s");
	}
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

static double
gb(int64_t capacity)
{
	return (double)capacity / 1e9;
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
		if (kind->count[d] > 1 && kind->capacity[d] % kind->count[d] == 0)
			text_printf(&cell, "%d x %.6g", kind->count[d], gb(kind->capacity[d] / kind->count[d]));
		else if (kind->count[d] > 0)
			text_printf(&cell, "%.6g", gb(kind->capacity[d]));
		else
			text_put(&cell, "none");
	}
	text_printf(out, " %15s", cell.data ? cell.data : "");
	text_drop(out, &cell);
}

static void
put_kind(Text *out, const struct kind *kind)
{
	char between[40];
	snprintf(between, sizeof between, "%s - %s", vertex_kind_name(kind->a), vertex_kind_name(kind->b));
	text_printf(out, "%-7s %-15s %6d", link_class_name(kind->class), between, kind->n);
	put_capacities(out, kind);
	text_printf(out, " %8.6g", gb(kind->capacity[0]));
	if (kind->latency)
		text_printf(out, " %11.6g\n", (double)kind->latency / 1e3);
	else
		text_printf(out, " %11s\n", "-");
}

static Status
put_kinds(Ctx *ctx, const Topology *topo, const LinkPair *pair, int n, Text *out)
{
	struct kind *kind;
	int n_kinds = 0;
	TRY(TEMP(ctx, kind, n));
	for (int i = 0; i < n; i++)
		kind[i] = kind_of(topo, &pair[i]);
	sort_array(kind, n, sizeof *kind, by_kind);
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
		text_printf(out, any ? ", %s %.6g" : "%s %.6g", link_class_name((LinkClass)k), gb(capacity[0]));
		if (capacity[0] != capacity[1])
			text_printf(out, " out, %.6g in", gb(capacity[1]));
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
	TRY(TEMP_EACH(ctx, topo->n_ranks, row, first, size));
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
	text_printf(out, "%.6g", gb(least));
	if (least != most)
		text_printf(out, " to %.6g", gb(most));
	text_put(out, " GB/s\n");
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
	TRY(machine_matrices(ctx, e->topo, out));
	arena_release(&ctx->scratch, mark);
	return OK;
}
