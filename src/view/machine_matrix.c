/* The matrix of nvidia-smi topo -m of each different server. */
#include "base/hash.h"
#include "topology/topology.h"
#include "view/parts.h"

#include <stdio.h>
#include <string.h>

enum { MATRIX_MOST = 64 };	/* GPUs and NICs: more do not fit a line */

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

/* ---- one of them ---- */

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

Status
machine_matrices(Ctx *ctx, const Topology *topo, Text *out)
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
