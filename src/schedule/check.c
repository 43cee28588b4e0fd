/* The structure of a schedule. */
#include "base/sort.h"
#include "schedule/by_tree.h"
#include "schedule/in_trees.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct place {
	const char *label;
	int tree;		/* -1: the edge is one of the table */
	const char *phase;
	int edge;
};

struct place_text {
	char text[48];
};

static struct place_text
place_text(const struct place *at)
{
	struct place_text out;
	if (at->tree < 0)
		snprintf(out.text, sizeof out.text, "edges[%d]", at->edge);
	else
		snprintf(out.text, sizeof out.text, "trees[%d].%s[%d]", at->tree, at->phase, at->edge);
	return out;
}

static Status
bad_edge(Ctx *ctx, const struct place *at, const char *what, int rank)
{
	return fail(ctx, BAD_INPUT, "%s: %s: rank %d: %s", at->label, place_text(at).text, rank, what);
}

/* Which rank's data went through a switch last, in this phase of this tree. */
struct passing {
	int rank, mark;
};

/* Where an edge down begins: at its src, or at a switch with multicast if the last edge before it through that switch
 * came from the same src, so that the switch copies its data. */
static int
start_of(const Topology *topo, const Edge *edge, const struct passing *last, int mark)
{
	int l = edge->n_links > 0 ? edge->link[0] : -1, from = l >= 0 && l < topo->n_links ? topo->link[l].from
	    : edge->src;
	return topo->vertex[from].multicast && last[from].mark == mark && last[from].rank == edge->src ? from
	    : edge->src;
}

/* Where an edge up ends: at its dst, or at a switch with reduce if the last edge before it through that switch goes
 * to the same dst, so that the switch adds to its data. */
static int
end_of(const Topology *topo, const Edge *edge, const struct passing *last, int mark)
{
	int l = edge->n_links > 0 ? edge->link[edge->n_links - 1] : -1, to = l >= 0 && l < topo->n_links
	    ? topo->link[l].to : edge->dst;
	return topo->vertex[to].reduce && last[to].mark == mark && last[to].rank == edge->dst ? to : edge->dst;
}

static void
pass(const Topology *topo, const Edge *edge, int rank, struct passing *last, int mark)
{
	for (int i = 0; i < edge->n_links; i++) {
		const Link *link = &topo->link[edge->link[i]];
		last[link->from] = last[link->to] = (struct passing){ rank, mark };
	}
}

static Status
check_edge(const struct checking *c, const struct place *at, const Edge *edge, int start, int end)
{
	Ctx *ctx = c->ctx;
	const Topology *topo = c->sched->topo;
	if (edge->src < 0 || edge->src >= topo->n_ranks)
		return bad_edge(ctx, at, "want a rank of the topology", edge->src);
	if (edge->dst < 0 || edge->dst >= topo->n_ranks)
		return bad_edge(ctx, at, "want a rank of the topology", edge->dst);
	if (edge->n_links < 1)
		return bad_edge(ctx, at, "no link: want at least one", edge->src);
	for (int i = 0, v = start; i < edge->n_links; i++) {
		int l = edge->link[i];
		if (l < 0 || l >= topo->n_links)
			return fail(ctx, BAD_INPUT, "%s: %s: link %d: want 0 to %d", at->label, place_text(at).text, l,
			    topo->n_links - 1);
		if (c->ends[l].from != v)
			return fail(ctx, BAD_INPUT, "%s: %s: link %d leaves %s: want one that leaves %s", at->label,
			    place_text(at).text, l, topo->vertex[c->ends[l].from].id, topo->vertex[v].id);
		v = c->ends[l].to;
		bool last = i == edge->n_links - 1;
		if (last ? v != end : v < topo->n_ranks)
			return fail(ctx, BAD_INPUT, "%s: %s: link %d enters %s: want %s", at->label,
			    place_text(at).text, l, topo->vertex[v].id, last ? topo->vertex[end].id
			    : "a switch or NIC");
	}
	return OK;
}

/* Parent-first: each edge starts where one ended, and no rank is entered twice. A rank is reached where reached[]
 * holds `mark`, which no phase before had: so nothing is cleared in between, and the cost of a tree is the number of
 * its edges. */
static Status
check_down(const struct checking *c, struct place *at, const Tree *tree, int mark)
{
	Ctx *ctx = c->ctx;
	const Topology *topo = c->sched->topo;
	int *reached = c->reached;
	reached[tree->root] = mark;
	for (int e = 0; e < tree->n_down; e++) {
		const Edge *edge = &tree->down[e];
		at->phase = "down";
		at->edge = e;
		TRY(check_edge(c, at, edge, c->shares ? start_of(topo, edge, c->last, mark) : edge->src,
		    edge->dst));
		if (c->shares)
			pass(topo, edge, edge->src, c->last, mark);
		if (reached[edge->src] != mark)
			return bad_edge(ctx, at, "sends before it is reached: want edges parent-first from the root",
			    edge->src);
		if (reached[edge->dst] == mark)
			return bad_edge(ctx, at, "is reached twice: want a tree", edge->dst);
		reached[edge->dst] = mark;
	}
	return OK;
}

/* Leaf-first, walked backwards: the last edge enters the root, and each edge ends where a later one starts. */
static Status
check_up(const struct checking *c, struct place *at, const Tree *tree, int mark)
{
	Ctx *ctx = c->ctx;
	const Topology *topo = c->sched->topo;
	bool shares = c->shares && collective_reduces(c->sched->coll);
	int *reached = c->reached;
	at->phase = "up";
	for (int e = 0; e < tree->n_up; e++) {
		const Edge *edge = &tree->up[e];
		at->edge = e;
		TRY(check_edge(c, at, edge, edge->src, shares ? end_of(topo, edge, c->last, mark) : edge->dst));
		if (shares)
			pass(topo, edge, edge->dst, c->last, mark);
	}
	reached[tree->root] = mark;
	for (int e = tree->n_up - 1; e >= 0; e--) {
		const Edge *edge = &tree->up[e];
		at->edge = e;
		if (reached[edge->dst] != mark)
			return bad_edge(ctx, at, "receives after it has sent: want edges leaf-first to the root",
			    edge->dst);
		if (reached[edge->src] == mark)
			return bad_edge(ctx, at, "sends twice: want a tree", edge->src);
		reached[edge->src] = mark;
	}
	return OK;
}

static Status
check_segment(Ctx *ctx, const char *label, const Schedule *sched, int t)
{
	const Segment *s = &sched->segment[t];
	int64_t blocks = collective_blocks(sched->coll, sched->topo->n_ranks);
	Frac end, last;
	if (s->length.num <= 0)
		return fail(ctx, BAD_INPUT, "%s: trees[%d].segment: length 0: want more than 0", label, t);
	if (!frac_add(s->offset, s->length, &end))
		return fail(ctx, LIMIT, "%s: trees[%d].segment: its end needs more than 64 bits", label, t);
	if (frac_cmp(end, FRAC_ONE) > 0)
		return fail(ctx, BAD_INPUT, "%s: trees[%d].segment: ends beyond the buffer", label, t);
	int64_t block = frac_floor_mul(s->offset, blocks);
	if (!frac_make(block + 1, blocks, &last) || frac_cmp(end, last) > 0)
		return fail(ctx, BAD_INPUT, "%s: trees[%d].segment: crosses a block boundary: want it inside one block",
		    label, t);
	for (int i = 0; i < s->n_to; i++) {
		if (s->to[i] < 0 || s->to[i] >= sched->topo->n_ranks)
			return fail(ctx, BAD_INPUT, "%s: trees[%d].to[%d]: %d: want a rank", label, t, i, s->to[i]);
		if (i > 0 && s->to[i] <= s->to[i - 1])
			return fail(ctx, BAD_INPUT, "%s: trees[%d].to[%d]: rank %d: want each rank once", label, t, i,
			    s->to[i]);
	}
	return OK;
}

static Status
check_classes(Ctx *ctx, const char *label, const Schedule *sched, int t)
{
	const Segment *s = &sched->segment[t];
	unsigned classes = sched->part[s->part].classes;
	for (int i = 0; i < s->tree.n_down + s->tree.n_up; i++) {
		const Edge *edge = tree_edge(&s->tree, i);
		for (int k = 0; k < edge->n_links; k++) {
			LinkClass class = sched->topo->link[edge->link[k]].class;
			if (!(classes >> class & 1))
				return fail(ctx, BAD_INPUT,
				    "%s: trees[%d]: link %d is %s: want one of the links of parts[%d]", label, t,
				    edge->link[k], link_class_name(class), s->part);
		}
	}
	return OK;
}

/* Each class in one part, each part with trees over its classes alone, in every block behind those of the parts
 * before it. */
static Status
check_parts(Ctx *ctx, const char *label, const Schedule *sched)
{
	Part *part;
	unsigned taken = 0;
	TRY(TEMP(ctx, part, sched->n_parts));
	for (int i = 0; i < sched->n_parts; i++) {
		if (!sched->part[i].classes || (sched->part[i].classes & taken))
			return fail(ctx, BAD_INPUT, "%s: parts[%d].links: want link classes that no other part has",
			    label, i);
		if (sched->part[i].setup < 0 || sched->part[i].setup > LIMIT_SETUP_NS)
			return fail(ctx, BAD_INPUT, "%s: parts[%d].setup: want 0 to 1000000 (us)", label, i);
		taken |= sched->part[i].classes;
	}
	for (int t = 0; t < sched->n_segments; t++) {
		int p = sched->segment[t].part;
		if (p < 0 || p >= (sched->n_parts ? sched->n_parts : 1))
			return fail(ctx, BAD_INPUT, "%s: trees[%d].part: %d: want 0 to %d", label, t, p,
			    sched->n_parts - 1);
		if (sched->n_parts)
			TRY(check_classes(ctx, label, sched, t));
	}
	sched_part_spans(sched, part);
	for (int i = 0; i < sched->n_parts; i++)
		if (part[i].end.num == 0)
			return fail(ctx, BAD_INPUT, "%s: parts[%d]: no tree: want at least one", label, i);
	for (int t = 0; t < sched->n_segments && sched->n_parts; t++) {
		Frac begin, end;
		sched_block_extent(sched, &sched->segment[t], &begin, &end);
		if (frac_cmp(begin, part[sched->segment[t].part].begin) < 0)
			return fail(ctx, BAD_INPUT,
			    "%s: trees[%d].segment: begins before the end of parts[%d]: want parts in order in "
			    "every block", label, t, sched->segment[t].part - 1);
	}
	return OK;
}

static int
by_gpu(const void *a, const void *b)
{
	const Vertex *v = *(const Vertex *const *)a, *w = *(const Vertex *const *)b;
	return v->node != w->node ? (v->node > w->node) - (v->node < w->node) : strcmp(v->id, w->id);
}

/* GPUs of two servers may have the same id, those of one server may not. */
static Status
check_gpus(Ctx *ctx, const char *label, const Topology *topo)
{
	const Vertex **gpu;
	TRY(TEMP(ctx, gpu, topo->n_ranks));
	for (int r = 0; r < topo->n_ranks; r++)
		gpu[r] = &topo->vertex[r];
	qsort(gpu, (size_t)topo->n_ranks, sizeof *gpu, by_gpu);
	for (int r = 1; r < topo->n_ranks; r++)
		if (by_gpu(&gpu[r - 1], &gpu[r]) == 0)
			return fail(ctx, BAD_INPUT, "%s: topology.ranks: gpu %s is given twice: want each GPU once",
			    label, gpu[r]->id);
	return OK;
}

Status
check_begin(struct checking *c, Ctx *ctx, const char *label, const Schedule *sched)
{
	const Topology *topo = sched->topo;
	*c = (struct checking){ .ctx = ctx, .label = label, .sched = sched };
	TRY(topo_check(ctx, label, topo));
	if (topo->n_ranks < 2)
		return fail(ctx, BAD_INPUT, "%s: topology.ranks: %d: want at least 2", label, topo->n_ranks);
	TRY(check_gpus(ctx, label, topo));
	if (collective_rooted(sched->coll) ? sched->root < 0 || sched->root >= topo->n_ranks : sched->root != -1)
		return fail(ctx, BAD_INPUT, "%s: root: %d: want %s", label, sched->root,
		    collective_rooted(sched->coll) ? "a rank" : "null");
	for (int v = 0; v < topo->n_vertices; v++)
		c->shares = c->shares || topo->vertex[v].multicast || topo->vertex[v].reduce;
	TRY(TEMP(ctx, c->ends, topo->n_links));
	for (int l = 0; l < topo->n_links; l++)
		c->ends[l] = (struct ends){ topo->link[l].from, topo->link[l].to };
	TRY(TEMP(ctx, c->reached, topo->n_ranks));
	return TEMP(ctx, c->last, topo->n_vertices);
}

Status
check_tree(struct checking *c, int t)
{
	const Topology *topo = c->sched->topo;
	const Tree *tree = &c->sched->segment[t].tree;
	struct place at = { .label = c->label, .tree = t };
	if (tree->root < 0 || tree->root >= topo->n_ranks)
		return fail(c->ctx, BAD_INPUT, "%s: trees[%d].root: %d: want a rank", c->label, t, tree->root);
	TRY(check_segment(c->ctx, c->label, c->sched, t));
	TRY(check_down(c, &at, tree, 2 * t + 1));
	return check_up(c, &at, tree, 2 * t + 2);
}

static int
by_ends_and_links(const void *a, const void *b)
{
	const Edge *const *x = a, *const *y = b, *s = *x, *t = *y;
	if (s->src != t->src)
		return s->src - t->src;
	if (s->dst != t->dst)
		return s->dst - t->dst;
	if (s->n_links != t->n_links)
		return s->n_links - t->n_links;
	for (int i = 0; i < s->n_links; i++)
		if (s->link[i] != t->link[i])
			return s->link[i] - t->link[i];
	return (s > t) - (s < t);
}

/* The table of edges: each goes from a rank to a rank through no other, and no two have the same links. */
static Status
check_table(const struct checking *c)
{
	const Schedule *sched = c->sched;
	struct place at = { .label = c->label, .tree = -1 };
	const Edge **by;
	TRY(TEMP(c->ctx, by, sched->n_edges));
	for (int e = 0; e < sched->n_edges; e++) {
		const Edge *edge = by[e] = &sched->edge[e];
		at.edge = e;
		TRY(check_edge(c, &at, edge, edge->src, edge->dst));
	}
	sort_array(by, sched->n_edges, sizeof *by, by_ends_and_links);
	for (int e = 1; e < sched->n_edges; e++)
		if (tree_same_edges(by[e - 1], by[e], 1))
			return fail(c->ctx, BAD_INPUT, "%s: edges[%d]: as edges[%d]: want each edge once", c->label,
			    (int)(by[e] - sched->edge), (int)(by[e - 1] - sched->edge));
	return OK;
}

Status
sched_check(Ctx *ctx, const char *label, const Schedule *sched)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct checking c;
	TRY(check_begin(&c, ctx, label, sched));
	if (sched_trees(sched) < 1)
		return fail(ctx, BAD_INPUT, "%s: trees: none: want at least one", label);
	TRY(check_table(&c));
	if (sched->n_in_trees)
		TRY(sched_check_in_trees(ctx, label, sched));
	for (int t = 0; t < sched->n_segments; t++)
		TRY(check_tree(&c, t));
	TRY(check_parts(ctx, label, sched));
	if (sched->symmetry)
		TRY(sched_check_symmetry(ctx, label, sched));
	arena_release(&ctx->scratch, mark);
	return OK;
}
