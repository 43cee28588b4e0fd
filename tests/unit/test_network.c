/* A flow that begins with an earlier one is as large as one that begins with none, and has the same cut, in 300
 * networks of which capacities change from flow to flow, and which are built anew between them. */
#include "graph/network.h"
#include "random.h"

#include <string.h>

enum { NETWORKS = 300, FLOWS = 40, MOST = 12, ARCS = 50, GROUPS = 3, ALL = ARCS + MOST + GROUPS + GROUPS * MOST };

/* Arcs between n vertices; of each to the sink n; of groups behind it, each with a few vertices. */
struct network {
	int n, n_arcs, tail[ALL], head[ALL], at[ALL];
	int64_t room[ALL], scale;	/* of capacities: what changes them is small beside large ones */
	Network net;
};

static void
add(struct network *w, int tail, int head, int64_t room)
{
	w->tail[w->n_arcs] = tail;
	w->head[w->n_arcs] = head;
	w->room[w->n_arcs++] = room;
}

static void
build(struct network *w)
{
	w->n_arcs = ARCS;
	for (int v = 0; v < w->n; v++)
		add(w, v, w->n, below(3) * w->scale);
	for (int g = 0; g < GROUPS; g++)
		add(w, w->n + 1 + g, w->n, below(6) * w->scale);
	for (int g = 0; g < GROUPS; g++)
		for (int v = below(3); v < w->n; v += 1 + below(4))
			add(w, v, w->n + 1 + g, NETWORK_INFINITE);
	for (int a = 0; a < ARCS; a++)
		w->tail[a] = w->room[a] > 0 ? w->tail[a] : -1;
	network_build(&w->net, w->n + 1 + GROUPS, w->n_arcs, w->tail, w->head, w->at);
	for (int a = 0; a < w->n_arcs; a++)
		if (w->at[a] >= 0)
			w->net.arc[w->at[a]].room = w->room[a];
}

/* Some capacities grow, more fall. */
static void
alter(struct network *w)
{
	for (int a = 0; a < ARCS; a += 1 + below(8)) {
		int by = below(4) - 2;
		if (w->tail[a] < 0)
			continue;
		w->room[a] = w->room[a] + by > 0 ? w->room[a] + by : 0;
		w->net.arc[w->at[a]].room = w->room[a];
	}
}

/* From every vertex, the one with all the sink can take beside it, as branchings ask. */
static int
differs(struct network *w, struct network_kept *kept)
{
	int from = below(w->n), free = (from + 1 + below(w->n - 1)) % w->n, wrong = 0;
	int64_t enough = (1 + below(30)) * w->scale;
	bool side[MOST + 1 + GROUPS];
	struct network_arc *to_sink = &w->net.arc[w->at[ARCS + free]];
	int64_t was = to_sink->room;
	to_sink->room = below(2) ? NETWORK_INFINITE : was;
	int64_t flow = network_flow(&w->net, from, w->n, enough);
	for (int v = 0; v < w->net.n; v++)
		side[v] = network_side(&w->net, v);
	int64_t again = network_flow_again(&w->net, from, w->n, enough, w->at, ARCS, &kept[from]);
	wrong += flow < enough ? again != flow : again < enough;
	for (int v = 0; v < w->net.n && flow < enough; v++)
		wrong += side[v] != network_side(&w->net, v);
	for (int a = 0; a < ARCS; a++)
		wrong += w->at[a] >= 0 && w->net.arc[w->at[a]].room != w->room[a];
	to_sink->room = was;
	return wrong != 0;
}

static int
check_network(void)
{
	struct network_load load[MOST][ARCS];
	struct network_kept kept[MOST];
	struct network w = { .n = 3 + below(MOST - 2), .scale = below(3) ? 1 : INT64_C(1) << 40 };
	int wrong = 0;
	Ctx ctx;
	ctx_init(&ctx);
	for (int a = 0; a < ARCS; a++) {
		w.tail[a] = below(w.n);
		w.head[a] = (w.tail[a] + 1 + below(w.n - 1)) % w.n;
		w.room[a] = below(5) * w.scale;
	}
	for (int v = 0; v < w.n; v++)
		kept[v] = (struct network_kept){ 0, below(4) ? ARCS : 5, load[v] };
	if (network_new(&ctx, MOST + 1 + GROUPS, ALL, &w.net) != OK)
		return 1;
	for (int i = 0; i < FLOWS; i++) {
		if (i % 8 == 0)
			build(&w);
		wrong += differs(&w, kept);
		alter(&w);
	}
	ctx_free(&ctx);
	return wrong;
}

int
main(void)
{
	int wrong = 0;
	for (int i = 0; i < NETWORKS; i++)
		wrong += check_network();
	return report(wrong, "flows that begin with an earlier one");
}
