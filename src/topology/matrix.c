/* The matrix of nvidia-smi topo -m and rocm-smi --showtopo, from the links of a topology.
 *
 * Between two GPUs NVLink wins: NV# counts the links between them, and for each set of NVSwitches that are joined the
 * lesser of the numbers of links that the two have to it. So the eight GPUs of a DGX A100, with 12 links each to the
 * switches, have NV12 with each other. Without NVLink likewise Infinity Fabric: XGMI#.
 *
 * All other entries say what lies on the way through the host, over PCIe, the links between sockets, and those of GPUs
 * to their CPU: at most one switch PIX, several PXB, one CPU PHB, several CPUs that are joined by PCIe NODE, a link
 * between sockets SYS. Three searches from each device find the way that has least of this. */
#include "topology/topology.h"
#include "base/disjoint.h"

#include <string.h>

#define X(kind, name, what) name,
static const char *const join_names[] = { JOIN_LIST(X) };
#undef X
#define X(kind, name, what) what,
static const char *const join_whats[] = { JOIN_LIST(X) };
#undef X

const char *
join_name(JoinKind kind)
{
	return join_names[kind];
}

const char *
join_what(JoinKind kind)
{
	return join_whats[kind];
}

/* ---- links between GPUs ---- */

struct fabric {
	const Topology *topo;
	int *part[2];	/* of each vertex: a vertex of its set of switches, that NVLink or Infinity Fabric joins */
	int *leaves;	/* of each set: links from the device of the row to it */
	int *enters;	/* of each set: links from it to the device of the column; all 0 between columns */
};

static bool
is_switch(const Topology *topo, int v)
{
	return topo->vertex[v].kind == VERTEX_SWITCH;
}

static Status
find_fabrics(Ctx *ctx, const Topology *topo, struct fabric *f)
{
	f->topo = topo;
	TRY(TEMP(ctx, f->leaves, topo->n_vertices));
	TRY(TEMP(ctx, f->enters, topo->n_vertices));
	for (int k = 0; k < 2; k++) {
		TRY(TEMP(ctx, f->part[k], topo->n_vertices));
		for (int v = 0; v < topo->n_vertices; v++)
			f->part[k][v] = v;
		for (int l = 0; l < topo->n_links; l++) {
			const Link *link = &topo->link[l];
			if (link->class == (k ? LINK_XGMI : LINK_NVLINK) && is_switch(topo, link->from)
			    && is_switch(topo, link->to))
				set_join(f->part[k], link->from, link->to);
		}
	}
	return OK;
}

/* Of links of one class out of u: those to v in *direct, those to switches in f->leaves, or with clear 0 there. */
static void
count_leaving(const struct fabric *f, int k, int u, bool clear)
{
	const Topology *topo = f->topo;
	for (int i = topo->first_out[u]; i < topo->first_out[u + 1]; i++) {
		const Link *link = &topo->link[topo->out[i]];
		int set = set_root(f->part[k], link->to);
		if (link->class == (k ? LINK_XGMI : LINK_NVLINK) && is_switch(topo, link->to))
			f->leaves[set] = clear ? 0 : f->leaves[set] + link->count;
	}
}

/* Links between u, whose links are in f->leaves, and v, direct and through switches. */
static int
count_joining(const struct fabric *f, int k, int u, int v)
{
	const Topology *topo = f->topo;
	LinkClass class = k ? LINK_XGMI : LINK_NVLINK;
	int sum = 0;
	for (int i = topo->first_in[v]; i < topo->first_in[v + 1]; i++) {
		const Link *link = &topo->link[topo->in[i]];
		if (link->class == class && link->from == u)
			sum += link->count;
		if (link->class == class && is_switch(topo, link->from))
			f->enters[set_root(f->part[k], link->from)] += link->count;
	}
	for (int i = topo->first_in[v]; i < topo->first_in[v + 1]; i++) {
		const Link *link = &topo->link[topo->in[i]];
		int set = set_root(f->part[k], link->from);
		sum += f->leaves[set] < f->enters[set] ? f->leaves[set] : f->enters[set];
		f->enters[set] = 0;
	}
	return sum;
}

/* ---- the way through the host ---- */

/* What a search may pass: switches; or CPUs too; or links between sockets too. */
enum { THROUGH_SWITCHES, THROUGH_CPUS, THROUGH_SOCKETS, N_SEARCHES };

struct search {
	const Topology *topo;
	int *cost;		/* of each vertex: switches on the way to it, or CPUs; -1: not reached */
	int *queue;		/* room for twice the links of a server */
	int n_reached, *reached;
};

/* PCIe, between sockets, and from a GPU to its CPU. */
static bool
is_host_link(const Topology *topo, const Link *link, int search)
{
	bool cpu = topo->vertex[link->from].kind == VERTEX_CPU || topo->vertex[link->to].kind == VERTEX_CPU;
	if (link->class == LINK_NET || (link->class == LINK_QPI && search != THROUGH_SOCKETS))
		return false;
	return link->class == LINK_PCIE || link->class == LINK_QPI || cpu;
}

static bool
passes(const Topology *topo, int v, int search)
{
	VertexKind kind = topo->vertex[v].kind;
	return kind == VERTEX_SWITCH || (kind == VERTEX_CPU && search != THROUGH_SWITCHES);
}

/* What it costs to come to v: one for a switch of THROUGH_SWITCHES, else one for a CPU. */
static int
step_cost(const Topology *topo, int v, int search)
{
	return topo->vertex[v].kind == (search == THROUGH_SWITCHES ? VERTEX_SWITCH : VERTEX_CPU);
}

/* Within the server of `start`, steps of no cost first: vertices come in the order of their costs. */
static void
search_from(struct search *s, int start, int search)
{
	const Topology *topo = s->topo;
	int head = topo->n_vertices, tail = head;
	for (int i = 0; i < s->n_reached; i++)
		s->cost[s->reached[i]] = -1;
	s->n_reached = 0;
	s->cost[start] = 0;
	s->reached[s->n_reached++] = start;
	s->queue[tail++] = start;
	while (head < tail) {
		int v = s->queue[head++];
		if (v != start && !passes(topo, v, search))
			continue;
		for (int i = topo->first_out[v]; i < topo->first_out[v + 1]; i++) {
			const Link *link = &topo->link[topo->out[i]];
			int w = link->to;
			if (s->cost[w] >= 0 || topo->vertex[w].node != topo->vertex[start].node
			    || !is_host_link(topo, link, search))
				continue;
			s->cost[w] = s->cost[v] + step_cost(topo, w, search);
			s->reached[s->n_reached++] = w;
			if (step_cost(topo, w, search))
				s->queue[tail++] = w;
			else
				s->queue[--head] = w;
		}
	}
}

static Status
new_search(Ctx *ctx, const Topology *topo, struct search *s)
{
	*s = (struct search){ .topo = topo };
	TRY(TEMP(ctx, s->cost, topo->n_vertices));
	TRY(TEMP(ctx, s->reached, topo->n_vertices));
	TRY(TEMP(ctx, s->queue, 2 * topo->n_vertices));
	memset(s->cost, -1, (size_t)topo->n_vertices * sizeof *s->cost);
	return OK;
}

static JoinKind
join_of(int search, int cost)
{
	switch (search) {
	case THROUGH_SWITCHES:
		return cost <= 1 ? JOIN_PIX : JOIN_PXB;
	case THROUGH_CPUS:
		return cost <= 1 ? JOIN_PHB : JOIN_NODE;
	default:
		return JOIN_SYS;
	}
}

/* Of a row, the entries that are still JOIN_NONE; and its CPU, the first that comes with the least cost. */
static void
fill_host(struct search *s, const int *device, int n, int i, Matrix *out)
{
	for (int search = 0; search < N_SEARCHES; search++) {
		search_from(s, device[i], search);
		for (int k = 0; k < s->n_reached && search == THROUGH_CPUS && out->cpu[i] < 0; k++)
			if (s->topo->vertex[s->reached[k]].kind == VERTEX_CPU && s->cost[s->reached[k]] == 1)
				out->cpu[i] = s->reached[k];
		for (int j = 0; j < n; j++) {
			Joined *entry = &out->entry[i * n + j];
			if (entry->kind == JOIN_NONE && s->cost[device[j]] >= 0)
				entry->kind = join_of(search, s->cost[device[j]]);
		}
	}
}

/* ---- all of it ---- */

Status
topo_matrix(Ctx *ctx, const Topology *topo, const int *device, int n, Matrix *out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct fabric fabric;
	struct search search;
	TRY(topo_check_pairs(ctx, topo));
	TRY(NEW(ctx, out->entry, (size_t)n * (size_t)n));
	TRY(NEW(ctx, out->cpu, n));
	TRY(find_fabrics(ctx, topo, &fabric));
	TRY(new_search(ctx, topo, &search));
	for (int i = 0; i < n; i++) {
		out->cpu[i] = -1;
		for (int j = 0; j < n; j++)
			out->entry[i * n + j] = (Joined){ i == j ? JOIN_SELF : JOIN_NONE, 0 };
		for (int k = 0; k < 2; k++) {
			count_leaving(&fabric, k, device[i], false);
			for (int j = 0; j < n; j++) {
				Joined *entry = &out->entry[i * n + j];
				bool gpus = device[i] < topo->n_ranks && device[j] < topo->n_ranks;
				int count = entry->kind != JOIN_NONE || !gpus ? 0
				    : count_joining(&fabric, k, device[i], device[j]);
				if (count > 0)
					*entry = (Joined){ k ? JOIN_XGMI : JOIN_NVLINK, count };
			}
			count_leaving(&fabric, k, device[i], true);
		}
		fill_host(&search, device, n, i, out);
	}
	arena_release(&ctx->scratch, mark);
	return OK;
}
