/* Input of Graphviz. Vertices are v0, v1, ...; names from files are in quoted labels only. */
#include "view/parts.h"

enum { MANY_EDGES = 1024 };	/* of trees: further trees are only counted */

/* In a label a backslash begins an escape, so it is doubled; names have no control characters. */
void
dot_quoted(Text *out, const char *text)
{
	text_put(out, "\"");
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			text_put(out, "\\");
		/* "&lt;" would be taken for "<". */
		text_put(out, *text == '&' ? "&amp;" : "");
		if (*text != '&')
			text_add(out, text, 1);
	}
	text_put(out, "\"");
}

const char *
dot_colour(LinkClass class)
{
	static const char *const colours[N_LINK_CLASSES] = {
		[LINK_NVLINK] = "#2e8b3d", [LINK_XGMI] = "#c2410c", [LINK_C2C] = "#0e7490", [LINK_PCIE] = "#b7791f",
		[LINK_QPI] = "#7c3aed", [LINK_NET] = "#2563eb",
	};
	return colours[class];
}

static void
put_vertices(Text *out, const Explained *e, const char *prefix)
{
	const Topology *topo = e->topo;
	for (int v = 0; v < topo->n_vertices; v++) {
		text_printf(out, "%sv%d [label=", prefix, v);
		dot_quoted(out, e->name[v]);
		text_put(out, v >= topo->n_ranks ? ", shape=box" : v == e->sched->root ? ", shape=doublecircle" : "");
		text_put(out, "];\n");
	}
}

/* Each link with its load and capacity; tight ones are bold. */
static void
put_topology(Text *out, const Explained *e)
{
	const Topology *topo = e->topo;
	put_vertices(out, e, "\t");
	for (int l = 0; l < topo->n_links; l++) {
		const Link *link = &topo->link[l];
		text_printf(out, "\tv%d -> v%d [color=\"%s\", label=\"", link->from, link->to,
		    dot_colour(link->class));
		text_printf(out, "%.6g of %.6g", e->load[l], explain_capacity(e, l));
		text_printf(out, " GB/s\"%s, class=\"%s\"];\n", e->tight[l] ? ", penwidth=3, style=bold" : "",
		    link_class_name(link->class));
	}
}

static void
put_edge(Text *out, const Explained *e, int tree, const Edge *edge, bool up)
{
	text_printf(out, "\t\tt%d_%d -> t%d_%d", tree, edge->src, tree, edge->dst);
	text_printf(out, " [color=\"%s\"", dot_colour(e->topo->link[edge->link[0]].class));
	text_put(out, up ? ", style=dashed, constraint=false, tooltip=" : ", tooltip=");
	Text route = { 0 };
	text_put(&route, up ? "up: " : "down: ");
	put_route(&route, e, edge, up);
	dot_quoted(out, route.data ? route.data : "");
	text_drop(out, &route);
	text_put(out, "];\n");
}

static void
put_tree(Text *out, const Explained *e, int t, int *mark)
{
	const Segment *segment = &e->sched->segment[t];
	const Tree *tree = &segment->tree;
	Text title = { 0 };
	text_printf(out, "\tsubgraph cluster_tree%d {\n\t\tlabel=", t);
	text_printf(&title, "tree %d: ", t);
	put_segment(&title, e, t);
	text_printf(&title, ", %.6g GB/s", explain_rate(e, t));
	dot_quoted(out, title.data ? title.data : "");
	text_drop(out, &title);
	text_put(out, ";\n");
	for (int i = -1; i < tree->n_down + tree->n_up; i++) {
		const Edge *edge = i < 0 ? NULL : tree_edge(tree, i);
		int r = !edge ? tree->root : i < tree->n_down ? edge->dst : edge->src;
		if (mark[r] == t + 1)
			continue;
		mark[r] = t + 1;
		text_printf(out, "\t\tt%d_%d [label=", t, r);
		dot_quoted(out, e->name[r]);
		text_put(out, r == tree->root ? ", shape=doublecircle];\n" : "];\n");
	}
	for (int i = 0; i < tree->n_down; i++)
		put_edge(out, e, t, &tree->down[i], false);
	for (int i = 0; i < tree->n_up; i++)
		put_edge(out, e, t, &tree->up[i], true);
	text_put(out, "\t}\n");
}

Status
emit_dot(Ctx *ctx, const Explained *e, const ShowRequest *ask, Text *out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	bool *chosen;
	int *seen;
	TRY(TEMP(ctx, chosen, e->sched->n_segments));
	TRY(TEMP(ctx, seen, e->topo->n_ranks));
	TRY(parse_trees(ctx, e, ask->trees, chosen));
	text_put(out, "digraph schedule {\n\tlabel=");
	dot_quoted(out, e->topo->name);
	text_put(out,
	    ";\n\tnode [shape=circle, fontname=\"sans-serif\"];\n\tedge [fontname=\"sans-serif\", fontsize=9];\n");
	put_topology(out, e);
	int edges = 0, left_out = 0;
	for (int t = 0; t < e->sched->n_segments; t++) {
		int n = e->sched->segment[t].tree.n_down + e->sched->segment[t].tree.n_up;
		if (!chosen[t])
			continue;
		if (!ask->trees && edges > 0 && edges + n > MANY_EDGES) {
			left_out++;
			continue;
		}
		edges += n;
		put_tree(out, e, t, seen);
	}
	if (left_out)
		text_printf(out, "\t/* %d more trees; --tree N writes tree N */\n", left_out);
	text_put(out, "}\n");
	arena_release(&ctx->scratch, mark);
	return OK;
}
