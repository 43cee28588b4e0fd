/* Trees as text (blinkc-show(1)). */
#include "view/parts.h"

enum {
	MANY_LINES = 300,	/* after which further trees are only counted */
	DEEP = 24,		/* levels of indentation; below that, lines have their level as a number */
	MANY_ISOMORPHIC = 4,	/* isomorphic siblings: from here on only one is drawn */
	SMALL = 32,		/* ranks: up to here everything is drawn */
	NAMES = 16		/* of a list of names */
};

/* What is drawn, and where it is written. */
struct pen {
	const Explained *e;
	const Drawing *d;
	Text *out, *route, *up_route;	/* the latter for composition */
	bool complete;		/* nothing is left out */
	int lines;		/* written */
};

static void
put_edge(struct pen *pen, int r)
{
	const Drawing *d = pen->d;
	if (!d->edge[r])
		return;
	pen->route->size = pen->up_route->size = 0;
	put_route(pen->route, pen->e, d->edge[r], !d->down);
	if (d->up_edge[r])
		put_route(pen->up_route, pen->e, d->up_edge[r], true);
	bool differ = d->up_edge[r] && !text_same(pen->route->data, pen->up_route->data);
	text_put(pen->out, differ ? "  up " : "  ");
	if (differ) {
		text_put(pen->out, pen->up_route->data);
		text_put(pen->out, "; down ");
	}
	text_put(pen->out, pen->route->data ? pen->route->data : "");
}

/* A line for n siblings whose subtrees are isomorphic to that of r, which is above it. */
static void
put_isomorphic(struct pen *pen, int r, int n)
{
	const Drawing *d = pen->d;
	int last = r;
	for (int i = 0; i < n; i++)
		last = d->next[last];
	text_printf(pen->out, "… %d more isomorphic to %s: %s to %s", n, pen->e->name[r], pen->e->name[d->next[r]],
	    pen->e->name[last]);
	if (d->size[r] > 1)
		text_printf(pen->out, ", %d ranks", n * d->size[r]);
	text_put(pen->out, "\n");
	pen->lines++;
}

/* Box characters in front of a rank at this level; `more` says at which levels siblings follow. */
static void
put_indent(struct pen *pen, const bool *more, int level, bool last)
{
	int shown = level < DEEP ? level : DEEP;
	for (int i = 1; i < shown; i++)
		text_put(pen->out, more[i] ? "│  " : "   ");
	if (shown)
		text_put(pen->out, last ? "└─ " : "├─ ");
	if (level > DEEP)
		text_printf(pen->out, "(%d) ", level);
}

/* How many siblings after r are not drawn. */
static int
n_skipped(const struct pen *pen, int r)
{
	const Drawing *d = pen->d;
	/* The first of several isomorphic siblings decides for all of them. */
	return pen->complete || d->parent[r] < 0 || d->n_isomorphic[r] < MANY_ISOMORPHIC ? 0 : d->n_isomorphic[r];
}

/* The sibling after r that is drawn, or -1. */
static int
next_drawn(const struct pen *pen, int r)
{
	for (int skip = n_skipped(pen, r); skip >= 0 && r >= 0; skip--)
		r = pen->d->next[r];
	return r;
}

static void
draw_ranks(struct pen *pen)
{
	const Drawing *d = pen->d;
	bool more[DEEP + 2] = { false };
	for (int r = d->root, level = 0;;) {
		int skipped = r == d->root ? 0 : n_skipped(pen, r);
		bool last = r == d->root || (next_drawn(pen, r) < 0 && !skipped);
		if (level <= DEEP)
			more[level] = !last;
		put_indent(pen, more, level, last);
		put_rank(pen->out, pen->e, r);
		put_edge(pen, r);
		text_put(pen->out, "\n");
		pen->lines++;
		if (d->first[r] >= 0) {
			r = d->first[r];
			level++;
			continue;
		}
		for (;; r = d->parent[r], level--) {
			if (r == d->root)
				return;
			int next = next_drawn(pen, r);
			if ((skipped = n_skipped(pen, r))) {
				put_indent(pen, more, level, next < 0);
				put_isomorphic(pen, r, skipped);
			}
			if (next >= 0) {
				r = next;
				break;
			}
		}
	}
}

/* "gpu0 → gpu3 → gpu5", in the direction of the data. */
static void
put_path(struct pen *pen)
{
	const Drawing *d = pen->d;
	for (int i = 0; i < d->n; i++) {
		text_put(pen->out, i ? " → " : "");
		put_rank(pen->out, pen->e, d->order[d->down ? i : d->n - 1 - i]);
	}
	for (int i = 1; i < d->n; i++) {
		int r = d->order[d->down ? i : d->n - i];
		put_edge(pen, r);
		text_put(pen->out, i + 1 < d->n ? ";" : "");
	}
	text_put(pen->out, "\n");
	pen->lines++;
}

static void
put_to(Text *out, const Explained *e, const Segment *segment)
{
	for (int i = 0; i < segment->n_to && i < NAMES; i++)
		text_printf(out, i ? ", %s" : "; for %s only", e->name[segment->to[i]]);
	if (segment->n_to > NAMES)
		text_printf(out, " and %d more", segment->n_to - NAMES);
}

/* "tree 3: 0/1 to 1/6 of the buffer, 25 GB/s" */
static void
put_title(Text *out, const Explained *e, int t)
{
	const Schedule *sched = e->sched;
	text_printf(out, "tree %d: ", t);
	put_segment(out, e, t);
	text_printf(out, ", %.6g GB/s", explain_rate(e, t));
	if (sched->n_parts) {
		text_put(out, "; part ");
		text_put(out, link_classes_text(sched->part[sched->segment[t].part].classes).text);
	}
	put_to(out, e, &sched->segment[t]);
}

static void
put_phases(Text *out, const Explained *e, const Drawing *d, int n)
{
	const char *root = e->name[d->root];
	if (n == 2)
		text_printf(out, "; up to %s, then down along other edges", root);
	else if (d->up && d->down)
		text_printf(out, "; up to %s and down again", root);
	else
		text_printf(out, d->up ? "; up to %s" : "; down from %s", root);
}

static void
put_tree(struct pen *pen, int t, Drawing *drawing, int *work)
{
	int n = draw_tree(pen->e, t, drawing);
	DemandKind kind = collective_demand(pen->e->sched->coll, pen->e->topo->n_ranks,
	    pen->e->sched->root < 0 ? 0 : pen->e->sched->root, 0).kind;
	put_title(pen->out, pen->e, t);
	pen->d = &drawing[0];
	if (n == 1 && kind == DEMAND_PATH && drawing_is_path(&drawing[0])) {
		text_put(pen->out, ": ");
		put_path(pen);
		return;
	}
	put_phases(pen->out, pen->e, &drawing[0], n);
	text_printf(pen->out, "; depth %d\n", tree_depth(&pen->e->sched->segment[t].tree, work));
	for (int i = 0; i < n; i++) {
		pen->d = &drawing[i];
		if (n == 2)
			text_put(pen->out, i ? "down\n" : "up\n");
		draw_ranks(pen);
	}
	text_put(pen->out, "\n");
	pen->lines += 2 + n;
}

Status
show_trees(Ctx *ctx, const Explained *e, const ShowRequest *ask, Text *out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	Drawing drawing[2];
	Text route = { 0 }, up_route = { 0 };
	struct pen pen = { .e = e, .out = out, .route = &route, .up_route = &up_route };
	int n = e->sched->n_segments, shown = 0, wanted = 0, *work;
	bool *chosen;
	TRY(TEMP(ctx, chosen, n));
	TRY(TEMP(ctx, work, e->topo->n_ranks));
	TRY(parse_trees(ctx, e, ask->trees, chosen));
	TRY(drawing_new(ctx, e, drawing));
	pen.complete = ask->trees || e->topo->n_ranks <= SMALL;
	text_put(out, e->shows_ranks ? "\ntrees; in brackets the ranks of GPUs\n\n" : "\ntrees\n\n");
	for (int t = 0; t < n; t++) {
		wanted += chosen[t];
		if (!chosen[t] || (!pen.complete && pen.lines >= MANY_LINES))
			continue;
		put_tree(&pen, t, drawing, work);
		shown++;
	}
	if (out->size > 1 && out->data[out->size - 2] == '\n')
		out->size--;
	if (shown < wanted)
		text_printf(out, "%s%d more trees; --tree N shows tree N\n",
		    out->data[out->size - 1] == '\n' ? "" : "\n", wanted - shown);
	if (route.failed || up_route.failed)
		out->failed = true;
	text_free(&route);
	text_free(&up_route);
	arena_release(&ctx->scratch, mark);
	return OK;
}
