/* A machine as input of Graphviz: a line between each two vertices that links join. */
#include "topology/topology.h"
#include "view/parts.h"

/* "2 x 25 GB/s" */
static void
put_label(Text *out, const LinkPair *pair, int d)
{
	if (pair->count[d] > 1 && pair->capacity[d] % pair->count[d] == 0) {
		text_printf(out, "%d x %.6g GB/s", pair->count[d], (double)(pair->capacity[d] / pair->count[d]) / 1e9);
	} else {
		text_printf(out, "%.6g GB/s", (double)pair->capacity[d] / 1e9);
	}
}

static void
put_line(Text *out, const LinkPair *pair, int d, bool both)
{
	text_printf(out, "\tv%d -> v%d [color=\"%s\", label=\"", d ? pair->b : pair->a, d ? pair->a : pair->b,
	    dot_colour(pair->class));
	put_label(out, pair, d);
	text_printf(out, "\"%s, class=\"%s\"];\n", both ? ", dir=none" : "", link_class_name(pair->class));
}

/* A server is a cluster, whose first vertex may be anywhere. */
static void
put_vertices(Text *out, const Explained *e, int server)
{
	const Topology *topo = e->topo;
	if (server >= 0) {
		text_printf(out, "\tsubgraph cluster_server%d {\n\t\tlabel=", server);
		dot_quoted(out, topo->node[server]);
		text_put(out, ";\n");
	}
	for (int v = 0; v < topo->n_vertices; v++) {
		if (e->server[v] != server)
			continue;
		text_printf(out, server >= 0 ? "\t\tv%d [label=" : "\tv%d [label=", v);
		dot_quoted(out, e->name[v]);
		text_put(out, v >= topo->n_ranks ? ", shape=box];\n" : "];\n");
	}
	text_put(out, server >= 0 ? "\t}\n" : "");
}

Status
machine_dot(Ctx *ctx, const Explained *e, Text *out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	LinkPair *pair;
	int n;
	TRY(topo_link_pairs(ctx, e->topo, &pair, &n));
	text_put(out, "digraph machine {\n\tlabel=");
	dot_quoted(out, e->topo->name);
	text_put(out,
	    ";\n\tnode [shape=circle, fontname=\"sans-serif\"];\n\tedge [fontname=\"sans-serif\", fontsize=9];\n");
	for (int s = -1; s < e->n_servers; s++)
		put_vertices(out, e, s);
	for (int i = 0; i < n; i++) {
		bool both = pair[i].count[0] == pair[i].count[1] && pair[i].capacity[0] == pair[i].capacity[1];
		for (int d = 0; d < (both ? 1 : 2); d++)
			if (pair[i].count[d] > 0)
				put_line(out, &pair[i], d, both);
	}
	text_put(out, "}\n");
	arena_release(&ctx->scratch, mark);
	return OK;
}
