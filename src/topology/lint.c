/* Rules for topologies, each a function that looks at pairs of vertices, at vertices, or at all of it. */
#include "topology/lint.h"
#include "base/array.h"
#include "base/disjoint.h"
#include "topology/topology.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *
lint_rule_name(LintRule rule)
{
	static const char *const names[] = { LINT_LIST(ROW_TEXT) };
	return names[rule];
}

/* What one link of a class may have in each direction, GB/s, from the slowest that somebody may have measured to the
 * fastest nominal rate; and how many of them a GPU has at most (0: any number). */
static const struct range {
	double least, most;
	int links;
} ranges[N_LINK_CLASSES] = {
	/* NVLink 1 to 5 have 20, 25, 25, 25 and 50 GB/s a link, that of GeForce and RTX cards 14; NCCL counts 12 to
	 * 40.1 (src/graph/topo.h); half of the slowest is kept for measured rates, twice the fastest for the next. */
	[LINK_NVLINK] = { 9, 100, 36 },
	/* Infinity Fabric between Instinct GPUs has 25 (MI50) to 76.8 GB/s (MI350) a link; RCCL counts 24 to 48. */
	[LINK_XGMI] = { 15, 100, 16 },
	/* NVLink-C2C of GH200 and GB200 has 450 GB/s, that of one of two GPUs half. */
	[LINK_C2C] = { 100, 900, 0 },
	/* gen1 x1 has 0.25 GB/s, of which NCCL counts 0.19; gen6 x16 has 121, nominal 128. */
	[LINK_PCIE] = { 0.15, 128, 0 },
	/* QPI has 6 as NCCL counts it for two Broadwell, UPI 20.8 to 62, xGMI of EPYC 16 to 128, X-Bus 32 to 64,
	 * NVLink-C2C between Grace CPUs 110 to 450. */
	[LINK_QPI] = { 2, 600, 0 },
	/* Ethernet of 1 Gb/s has 0.125 GB/s, a port of 1.6 Tb/s 200. */
	[LINK_NET] = { 0.1, 200, 0 },
};

/* ---- findings ---- */

struct lint {
	Ctx *ctx;
	const Topology *topo;
	LintFinding *found;
	int n, room;
	int of_rule[N_LINT_RULES];
};

static Status add(struct lint *lint, LintRule rule, const char *at, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Past LINT_MOST of a rule they are only counted. */
static Status
add(struct lint *lint, LintRule rule, const char *at, const char *format, ...)
{
	char text[512];
	va_list arguments;
	if (++lint->of_rule[rule] > LINT_MOST)
		return OK;
	TRY(GROW(lint->ctx, lint->found, lint->n, lint->room));
	LintFinding *found = &lint->found[lint->n++];
	va_start(arguments, format);
	vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	found->rule = rule;
	found->at = arena_text(&lint->ctx->run, at, strlen(at));
	found->text = arena_text(&lint->ctx->run, text, strlen(text));
	return found->at && found->text ? OK : fail_memory(lint->ctx);
}

/* The last one of a rule says how many it stands for. */
static Status
count_others(struct lint *lint, LintRule rule)
{
	char text[64];
	if (lint->of_rule[rule] <= LINT_MOST)
		return OK;
	LintFinding *last = &lint->found[lint->n - 1];
	snprintf(text, sizeof text, "and %d more like these", lint->of_rule[rule] - LINT_MOST + 1);
	last->at = "";
	last->text = arena_text(&lint->ctx->run, text, strlen(text));
	return last->text ? OK : fail_memory(lint->ctx);
}

/* "gpu0 to gpu1, nvlink" */
static void
name_pair(const Topology *topo, const LinkPair *pair, int d, char name[160])
{
	snprintf(name, 160, "%s to %s, %s", topo->vertex[d ? pair->b : pair->a].id,
	    topo->vertex[d ? pair->a : pair->b].id, link_class_name(pair->class));
}

/* ---- rules for what joins two vertices ---- */

static Status
rule_twice(struct lint *lint, const LinkPair *pair)
{
	char at[160];
	for (int d = 0; d < 2; d++) {
		name_pair(lint->topo, pair, d, at);
		if (pair->links[d] > 1)
			TRY(add(lint, LINT_TWICE, at, "%d entries, %d links together: want one entry, with their count",
			    pair->links[d], pair->count[d]));
	}
	return OK;
}

/* A port, or what is bundled between switches, is no link of a device. */
static bool
bundles(const Topology *topo, const LinkPair *pair)
{
	return pair->class == LINK_NET && topo->vertex[pair->a].kind == VERTEX_SWITCH
	    && topo->vertex[pair->b].kind == VERTEX_SWITCH;
}

static Status
rule_capacity(struct lint *lint, const LinkPair *pair)
{
	char at[160];
	struct range range = ranges[pair->class];
	for (int d = 0; d < 2; d++) {
		if (pair->first[d] < 0 || bundles(lint->topo, pair))
			continue;
		const Link *link = &lint->topo->link[pair->first[d]];
		double each = (double)link->capacity / link->count / 1e9;
		bool back = d == 1 && pair->first[0] >= 0
		    && lint->topo->link[pair->first[0]].capacity == link->capacity;
		name_pair(lint->topo, pair, d, at);
		if (!back && (each < range.least || each > range.most))
			TRY(add(lint, LINT_CAPACITY, at, "%.6g GB/s in a link: want %.6g to %.6g", each, range.least,
			    range.most));
	}
	return OK;
}

static Status
rule_one_way(struct lint *lint, const LinkPair *pair)
{
	char at[160];
	int d = pair->count[0] > 0 ? 0 : 1;
	if (pair->count[0] > 0 && pair->count[1] > 0)
		return OK;
	name_pair(lint->topo, pair, d, at);
	return add(lint, LINT_ONE_WAY, at, "%d link%s, none back: want links both ways", pair->count[d],
	    pair->count[d] == 1 ? "" : "s");
}

static Status
rule_asymmetric(struct lint *lint, const LinkPair *pair)
{
	char at[160];
	if (pair->count[0] == 0 || pair->count[1] == 0
	    || (pair->count[0] == pair->count[1] && pair->capacity[0] == pair->capacity[1]))
		return OK;
	name_pair(lint->topo, pair, 0, at);
	if (pair->count[0] != pair->count[1])
		return add(lint, LINT_ASYMMETRIC, at, "%d links, %d back: want as many both ways", pair->count[0],
		    pair->count[1]);
	return add(lint, LINT_ASYMMETRIC, at, "%.6g GB/s, %.6g GB/s back: want the same both ways",
	    (double)pair->capacity[0] / 1e9, (double)pair->capacity[1] / 1e9);
}

/* ---- rules for vertices ---- */

/* Links of a class out of a vertex, and their capacity. */
static int
count_links(const Topology *topo, int v, LinkClass class, int64_t *capacity)
{
	int count = 0;
	*capacity = 0;
	for (int i = topo->first_out[v]; i < topo->first_out[v + 1]; i++) {
		const Link *link = &topo->link[topo->out[i]];
		count += link->class == class ? link->count : 0;
		*capacity += link->class == class ? link->capacity : 0;
	}
	return count;
}

static Status
rule_count(struct lint *lint, int v)
{
	int64_t capacity;
	for (int k = 0; k < N_LINK_CLASSES && v < lint->topo->n_ranks; k++) {
		int count = count_links(lint->topo, v, (LinkClass)k, &capacity);
		if (ranges[k].links && count > ranges[k].links)
			TRY(add(lint, LINT_COUNT, lint->topo->vertex[v].id, "%d %s links: want at most %d", count,
			    link_class_name((LinkClass)k), ranges[k].links));
	}
	return OK;
}

static Status
rule_no_links(struct lint *lint, int v)
{
	const Topology *topo = lint->topo;
	if (topo->first_out[v] < topo->first_out[v + 1] || topo->first_in[v] < topo->first_in[v + 1])
		return OK;
	return add(lint, LINT_NO_LINKS, topo->vertex[v].id, "a %s without links: want some",
	    v < topo->n_ranks ? "GPU" : topo->vertex[v].kind == VERTEX_NIC ? "NIC"
	    : topo->vertex[v].kind == VERTEX_CPU ? "CPU" : "switch");
}

static Status
rule_no_port(struct lint *lint, int v)
{
	const Vertex *vertex = &lint->topo->vertex[v];
	int64_t capacity;
	if (vertex->kind != VERTEX_NIC || vertex->port > 0 || count_links(lint->topo, v, LINK_NET, &capacity) > 0)
		return OK;
	return add(lint, LINT_NO_PORT, vertex->id, "a NIC without port: want a capacity, or links of class net");
}

/* A port has what a link of a network may have. */
static Status
rule_port_capacity(struct lint *lint, int v)
{
	const Vertex *vertex = &lint->topo->vertex[v];
	double port = (double)vertex->port / 1e9;
	if (vertex->kind != VERTEX_NIC || vertex->port == 0
	    || (port >= ranges[LINK_NET].least && port <= ranges[LINK_NET].most))
		return OK;
	return add(lint, LINT_CAPACITY, vertex->id, "a port of %.6g GB/s: want %.6g to %.6g", port,
	    ranges[LINK_NET].least, ranges[LINK_NET].most);
}

/* ---- rules for servers and for all of it ---- */

struct sibling {
	int count;
	int64_t capacity;
	int n;			/* GPUs of the server that have these */
};

/* What most GPUs of a server have of a class; of two that are as frequent, the more. kind: work space. */
static struct sibling
usual_links(const Topology *topo, const int *gpu, int n, LinkClass class, struct sibling *kind)
{
	int n_kinds = 0, best = 0;
	for (int i = 0; i < n; i++) {
		int64_t capacity;
		int count = count_links(topo, gpu[i], class, &capacity), k = 0;
		while (k < n_kinds && (kind[k].count != count || kind[k].capacity != capacity))
			k++;
		if (k == n_kinds)
			kind[n_kinds++] = (struct sibling){ count, capacity, 0 };
		kind[k].n++;
	}
	for (int k = 1; k < n_kinds; k++)
		if (kind[k].n > kind[best].n || (kind[k].n == kind[best].n && kind[k].capacity > kind[best].capacity))
			best = k;
	return kind[best];
}

static Status
rule_siblings(struct lint *lint, const int *gpu, int n, struct sibling *kind)
{
	for (int k = 0; k < N_LINK_CLASSES; k++) {
		struct sibling usual = usual_links(lint->topo, gpu, n, (LinkClass)k, kind);
		/* Where nearly all differ, none is usual. */
		for (int i = 0; i < n && 2 * usual.n >= n; i++) {
			int64_t capacity;
			int count = count_links(lint->topo, gpu[i], (LinkClass)k, &capacity);
			const char *id = lint->topo->vertex[gpu[i]].id, *class = link_class_name((LinkClass)k);
			if (count != usual.count)
				TRY(add(lint, LINT_SIBLING, id, "%d %s link%s: want %d, as %d of the %d GPUs of %s",
				    count, class, count == 1 ? "" : "s", usual.count, usual.n, n,
				    lint->topo->node[lint->topo->vertex[gpu[i]].node]));
			else if (capacity != usual.capacity)
				TRY(add(lint, LINT_SIBLING, id,
				    "%.6g GB/s over %s: want %.6g, as %d of the %d GPUs of %s",
				    (double)capacity / 1e9, class, (double)usual.capacity / 1e9, usual.n, n,
				    lint->topo->node[lint->topo->vertex[gpu[i]].node]));
		}
	}
	return OK;
}

/* Server by server; in a file their GPUs need not follow each other. */
static Status
look_at_servers(struct lint *lint)
{
	const Topology *topo = lint->topo;
	int *first, *gpu, *next;
	struct sibling *kind;
	TRY(TEMP(lint->ctx, first, topo->n_nodes + 1));
	TRY(TEMP(lint->ctx, next, topo->n_nodes + 1));
	TRY(TEMP(lint->ctx, gpu, topo->n_ranks));
	TRY(TEMP(lint->ctx, kind, topo->n_ranks));
	for (int r = 0; r < topo->n_ranks; r++)
		if (topo->vertex[r].node >= 0)
			first[topo->vertex[r].node + 1]++;
	for (int s = 0; s < topo->n_nodes; s++)
		next[s] = first[s + 1] += first[s];
	for (int r = topo->n_ranks - 1; r >= 0; r--)
		if (topo->vertex[r].node >= 0)
			gpu[--next[topo->vertex[r].node]] = r;
	for (int s = 0; s < topo->n_nodes; s++)
		if (first[s + 1] - first[s] > 1)
			TRY(rule_siblings(lint, gpu + first[s], first[s + 1] - first[s], kind));
	return OK;
}

/* Parts with GPUs, whatever the direction of links, but the largest. */
static Status
rule_disconnected(struct lint *lint)
{
	const Topology *topo = lint->topo;
	int *part, *size, largest = -1;
	TRY(TEMP(lint->ctx, part, topo->n_vertices));
	TRY(TEMP(lint->ctx, size, topo->n_vertices));
	for (int v = 0; v < topo->n_vertices; v++)
		part[v] = v;
	for (int l = 0; l < topo->n_links; l++)
		set_join(part, topo->link[l].from, topo->link[l].to);
	for (int r = 0; r < topo->n_ranks; r++) {
		int root = set_root(part, r);
		size[root]++;
		if (largest < 0 || size[root] > size[largest])
			largest = root;
	}
	for (int r = 0; r < topo->n_ranks; r++) {
		int root = set_root(part, r), n = size[root];
		bool alone = topo->first_out[r] == topo->first_out[r + 1] && topo->first_in[r] == topo->first_in[r + 1];
		size[root] = 0;
		if (root == largest || n == 0 || alone)
			continue;
		TRY(add(lint, LINT_DISCONNECTED, topo->vertex[r].id,
		    "no links lead from %d GPU%s to the other %d: want some", n, n == 1 ? "" : "s, of which it is one,",
		    topo->n_ranks - n));
	}
	return OK;
}

/* ---- all rules ---- */

static Status
look_at_pairs(struct lint *lint, LintRule rule, const LinkPair *pair, int n)
{
	static Status (*const looks[N_LINT_RULES])(struct lint *lint, const LinkPair *pair) = {
		[LINT_TWICE] = rule_twice, [LINT_CAPACITY] = rule_capacity, [LINT_ONE_WAY] = rule_one_way,
		[LINT_ASYMMETRIC] = rule_asymmetric,
	};
	for (int i = 0; i < n && looks[rule]; i++)
		TRY(looks[rule](lint, &pair[i]));
	return OK;
}

static Status
look_at_vertices(struct lint *lint, LintRule rule)
{
	static Status (*const looks[N_LINT_RULES])(struct lint *lint, int v) = {
		[LINT_CAPACITY] = rule_port_capacity, [LINT_COUNT] = rule_count, [LINT_NO_LINKS] = rule_no_links,
		[LINT_NO_PORT] = rule_no_port,
	};
	for (int v = 0; v < lint->topo->n_vertices && looks[rule]; v++)
		TRY(looks[rule](lint, v));
	return OK;
}

Status
topo_lint(Ctx *ctx, const Topology *topo, LintFinding **out, int *n)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct lint lint = { .ctx = ctx, .topo = topo };
	LinkPair *pair;
	int n_pairs;
	TRY(topo_link_pairs(ctx, topo, &pair, &n_pairs));
	for (int rule = 0; rule < N_LINT_RULES; rule++) {
		TRY(look_at_pairs(&lint, (LintRule)rule, pair, n_pairs));
		TRY(look_at_vertices(&lint, (LintRule)rule));
		if (rule == LINT_SIBLING)
			TRY(look_at_servers(&lint));
		if (rule == LINT_DISCONNECTED)
			TRY(rule_disconnected(&lint));
		TRY(count_others(&lint, (LintRule)rule));
	}
	arena_release(&ctx->scratch, mark);
	*out = lint.found;
	*n = lint.n;
	return OK;
}
