/* Trees, links and the proof of the bound as text (blinkc(1), "Show"). */
#include "explain.h"

enum {
	MANY_LINES = 300,	/* of trees: after so many, others are only counted */
	DEEP = 24,		/* levels of indentation; below that, lines have their level as a number */
	ALIKE = 4,		/* siblings alike that are all drawn */
	SMALL = 32,		/* of so many ranks everything is drawn */
	NAMES = 16		/* of a list of names */
};

/* ---- trees ---- */

/* Where lines of a drawing come from, and how many may be written. */
struct pen {
	const Explained *e;
	const Drawing *d;
	Text *out, *way, *back;	/* two to compose in */
	bool whole;		/* nothing is left out */
	int lines;
};

static void
put_hop(struct pen *pen, int r)
{
	const Drawing *d = pen->d;
	if (!d->hop[r])
		return;
	pen->way->size = pen->back->size = 0;
	put_way(pen->way, pen->e, d->hop[r], !d->down);
	if (d->back[r])
		put_way(pen->back, pen->e, d->back[r], true);
	bool differ = d->back[r] && !text_same(pen->way->data, pen->back->data);
	text_put(pen->out, differ ? "  up " : "  ");
	if (differ) {
		text_put(pen->out, pen->back->data);
		text_put(pen->out, "; down ");
	}
	text_put(pen->out, pen->way->data ? pen->way->data : "");
}

/* So many siblings, and what they have below them, look like the one above. */
static void
put_alike(struct pen *pen, int r, int n)
{
	const Drawing *d = pen->d;
	int last = r;
	for (int i = 0; i < n; i++)
		last = d->next[last];
	text_printf(pen->out, "… %d more like %s, ", n, pen->e->name[r]);
	text_printf(pen->out, "%s to ", pen->e->name[d->next[r]]);
	text_printf(pen->out, "%s", pen->e->name[last]);
	if (d->weight[r] > 1)
		text_printf(pen->out, ": %d ranks", n * d->weight[r]);
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

/* Siblings behind r that are not drawn. */
static int
left_out(const struct pen *pen, int r)
{
	const Drawing *d = pen->d;
	/* In the middle of a row of siblings that are alike the first of it has decided. */
	return pen->whole || d->parent[r] < 0 || d->alike[r] < ALIKE ? 0 : d->alike[r];
}

/* The sibling after r that is drawn, or -1. */
static int
next_drawn(const struct pen *pen, int r)
{
	for (int skip = left_out(pen, r); skip >= 0 && r >= 0; skip--)
		r = pen->d->next[r];
	return r;
}

static void
draw(struct pen *pen)
{
	const Drawing *d = pen->d;
	bool more[DEEP + 2] = { false };
	for (int r = d->root, level = 0;;) {
		int skipped = r == d->root ? 0 : left_out(pen, r);
		bool last = r == d->root || (next_drawn(pen, r) < 0 && !skipped);
		if (level <= DEEP)
			more[level] = !last;
		put_indent(pen, more, level, last);
		put_rank(pen->out, pen->e, r);
		put_hop(pen, r);
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
			if ((skipped = left_out(pen, r))) {
				put_indent(pen, more, level, next < 0);
				put_alike(pen, r, skipped);
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
		put_hop(pen, r);
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
	text_put(out, ", ");
	put_figures(out, explain_rate(e, t));
	text_put(out, " GB/s");
	if (sched->n_parts) {
		unsigned classes = sched->part[sched->segment[t].part].classes;
		bool any = false;
		for (int c = 0; c < N_LINK_CLASSES; c++) {
			if (!(classes >> c & 1))
				continue;
			text_printf(out, any ? ",%s" : "; part %s", link_class_name((LinkClass)c));
			any = true;
		}
	}
	put_to(out, e, &sched->segment[t]);
}

static void
put_phases(Text *out, const Explained *e, const Drawing *d, int n)
{
	const char *root = e->name[d->root];
	if (n == 2)
		text_printf(out, "; up to %s, and down by other hops", root);
	else if (d->up && d->down)
		text_printf(out, "; up to %s and down again", root);
	else
		text_printf(out, d->up ? "; up to %s" : "; down from %s", root);
}

static void
put_tree(struct pen *pen, int t, Drawing *drawing, int *work)
{
	int n = draw_tree(pen->e, t, drawing);
	DemandKind kind = collective_demand(pen->e->sched->coll, pen->e->sched->topo->n_ranks,
	    pen->e->sched->root < 0 ? 0 : pen->e->sched->root, 0).kind;
	put_title(pen->out, pen->e, t);
	pen->d = &drawing[0];
	if (n == 1 && kind == DEMAND_CARRY && drawing_is_path(&drawing[0])) {
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
		draw(pen);
	}
	text_put(pen->out, "\n");
	pen->lines += 2 + n;
}

Status
show_trees(Ctx *ctx, const Explained *e, const ShowRequest *ask, Text *out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	Drawing drawing[2];
	Text way = { 0 }, back = { 0 };
	struct pen pen = { .e = e, .out = out, .way = &way, .back = &back, .whole = ask->trees || e->sched->topo->n_ranks <= SMALL };
	int n = e->sched->n_segments, shown = 0, wanted = 0, *work;
	bool *chosen;
	TRY(TEMP(ctx, chosen, n));
	TRY(TEMP(ctx, work, e->sched->topo->n_ranks));
	TRY(parse_trees(ctx, e, ask->trees, chosen));
	TRY(drawing_new(ctx, e, drawing));
	text_put(out, e->numbered ? "\ntrees; in brackets the ranks of GPUs\n\n" : "\ntrees\n\n");
	for (int t = 0; t < n; t++) {
		wanted += chosen[t];
		if (!chosen[t] || (!pen.whole && pen.lines >= MANY_LINES))
			continue;
		put_tree(&pen, t, drawing, work);
		shown++;
	}
	if (out->size > 1 && out->data[out->size - 2] == '\n')
		out->size--;
	if (shown < wanted)
		text_printf(out, "%s%d more trees; --tree N shows tree N\n", out->data[out->size - 1] == '\n' ? "" : "\n", wanted - shown);
	if (way.failed || back.failed)
		out->failed = true;
	text_free(&way);
	text_free(&back);
	arena_release(&ctx->scratch, mark);
	return OK;
}
