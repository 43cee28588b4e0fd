/* The comment before the code of a tree: the tree, drawn from its root. */
#include "format/cu_writer.h"

#include <inttypes.h>

enum { DRAWN_DEPTH = 16 };	/* deeper trees are listed: their drawing would be wider than a page */

static void
put_frac(Text *out, Frac f)
{
	if (f.den == 1)
		text_printf(out, "%" PRId64, (int64_t)f.num);
	else
		text_printf(out, "%" PRId64 "/%" PRId64, (int64_t)f.num, f.den);
}

void
cu_put_links(struct cu_writer *w, const Edge *edge)
{
	text_put(w->out, edge->n_links == 1 ? "link" : "links");
	for (int i = 0; i < edge->n_links; i++)
		text_printf(w->out, " %d", edge->link[i]);
	if (edge->n_links > 0)
		text_printf(w->out, " %s", link_class_name(w->sched->topo->link[edge->link[0]].class));
}

static void
add_child(struct cu_writer *w, int parent, int child)
{
	w->parent[child] = parent;
	if (w->first_child[parent] < 0)
		w->first_child[parent] = child;
	else
		w->next_child[w->last_child[parent]] = child;
	w->last_child[parent] = child;
}

static void
put_hop(struct cu_writer *w, const char *phase, const Edge *edge)
{
	if (!edge)
		return;
	text_printf(w->out, "   %s ", phase);
	cu_put_links(w, edge);
}

/* Columns of rank r in a drawing. */
static int
vertex_width(int r, int depth)
{
	int width = 4 * depth + 1;
	for (; r > 9; r /= 10)
		width++;
	return width;
}

/* One line for rank r at the end of the path from the root to it; links begin after `width` columns. */
static void
put_vertex(struct cu_writer *w, int r, int depth, int width)
{
	bool more[DRAWN_DEPTH + 1] = { false };	/* whether siblings follow, at each depth */
	for (int i = depth, v = r; i > 0; i--, v = w->parent[v])
		more[i] = w->next_child[v] >= 0;
	text_put(w->out, " *\t");
	for (int i = 1; i <= depth; i++)
		text_put(w->out, i < depth ? more[i] ? "|   " : "    " : more[i] ? "|-- " : "`-- ");
	text_printf(w->out, "%d", r);
	if (w->up_edge[r] || w->down_edge[r])
		text_printf(w->out, "%*s", width - vertex_width(r, depth), "");
	put_hop(w, "up", w->up_edge[r]);
	put_hop(w, "down", w->down_edge[r]);
	text_put(w->out, "\n");
}

static void
draw(struct cu_writer *w, int root, int width)
{
	for (int r = root, depth = 0;;) {
		put_vertex(w, r, depth, width);
		if (w->first_child[r] >= 0) {
			r = w->first_child[r];
			depth++;
			continue;
		}
		while (r != root && w->next_child[r] < 0) {
			r = w->parent[r];
			depth--;
		}
		if (r == root)
			return;
		r = w->next_child[r];
	}
}

static void
list(struct cu_writer *w, const char *phase, const Edge *edge, int n)
{
	for (int i = 0; i < n; i++) {
		text_printf(w->out, " *\t%d -> %d", edge[i].src, edge[i].dst);
		put_hop(w, phase, &edge[i]);
		text_put(w->out, "\n");
	}
}

/* Fill the arrays of the writer with the tree, whose hops are those of `down`, or of `up` where that is not drawn. */
static void
fill_tree(struct cu_writer *w, const Tree *tree, bool up, bool down)
{
	for (int r = 0; r < w->sched->topo->n_ranks; r++) {
		w->parent[r] = w->first_child[r] = w->next_child[r] = w->last_child[r] = -1;
		w->up_edge[r] = w->down_edge[r] = NULL;
	}
	for (int i = 0; down && i < tree->n_down; i++) {
		add_child(w, tree->down[i].src, tree->down[i].dst);
		w->down_edge[tree->down[i].dst] = &tree->down[i];
	}
	for (int i = 0; up && i < tree->n_up; i++) {
		if (!down)
			add_child(w, tree->up[i].dst, tree->up[i].src);
		w->up_edge[tree->up[i].src] = &tree->up[i];
	}
}

/* The phase or phases that are given: both only where one is the mirror image of the other. */
static void
put_phase(struct cu_writer *w, const Tree *tree, bool up, bool down)
{
	int deepest = 0, width = 0;
	fill_tree(w, tree, up, down);
	for (int r = 0; r < w->sched->topo->n_ranks && deepest <= DRAWN_DEPTH; r++) {
		int depth = 0;
		for (int v = r; w->parent[v] >= 0 && depth <= DRAWN_DEPTH; v = w->parent[v])
			depth++;
		deepest = depth > deepest ? depth : deepest;
		if ((r == tree->root || depth > 0) && vertex_width(r, depth) > width)
			width = vertex_width(r, depth);
	}
	if (deepest <= DRAWN_DEPTH) {
		draw(w, tree->root, width);
		return;
	}
	if (up)
		list(w, "up", tree->up, tree->n_up);
	if (down)
		list(w, "down", tree->down, tree->n_down);
}

static bool
mirrored(struct cu_writer *w, const Tree *tree)
{
	if (tree->n_up != tree->n_down)
		return false;
	for (int i = 0; i < tree->n_down; i++)
		w->parent[tree->down[i].dst] = tree->down[i].src;
	for (int i = 0; i < tree->n_up; i++)
		if (w->parent[tree->up[i].src] != tree->up[i].dst)
			return false;
	return true;
}

void
cu_put_drawing(struct cu_writer *w, int s)
{
	const Segment *seg = &w->sched->segment[s];
	Frac end = FRAC_ONE;
	frac_add(seg->offset, seg->length, &end);
	text_printf(w->out, "/* Tree %d: root %d, from ", s, seg->tree.root);
	put_frac(w->out, seg->offset);
	text_put(w->out, " to ");
	put_frac(w->out, end);
	text_put(w->out, " of the buffer");
	for (int i = 0; i < seg->n_to; i++)
		text_printf(w->out, "%s %d", i ? "," : ", for rank", seg->to[i]);
	text_put(w->out, "\n *\n");
	for (int r = 0; r < w->sched->topo->n_ranks; r++)
		w->parent[r] = -1;
	if (seg->tree.n_up && seg->tree.n_down && !mirrored(w, &seg->tree)) {
		put_phase(w, &seg->tree, true, false);
		text_put(w->out, " *\n");
		put_phase(w, &seg->tree, false, true);
	} else {
		put_phase(w, &seg->tree, seg->tree.n_up > 0, seg->tree.n_down > 0);
	}
	text_put(w->out, " */\n");
}

Status
cu_drawing_new(Ctx *ctx, struct cu_writer *w)
{
	int n = w->sched->topo->n_ranks;
	TRY(TEMP(ctx, w->parent, n));
	TRY(TEMP(ctx, w->first_child, n));
	TRY(TEMP(ctx, w->next_child, n));
	TRY(TEMP(ctx, w->last_child, n));
	TRY(TEMP(ctx, w->up_edge, n));
	TRY(TEMP(ctx, w->down_edge, n));
	return OK;
}
