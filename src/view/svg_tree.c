/* A tree as a small picture: the root on top, ranks below in rows, arrowheads where data goes. */
#include "base/hash.h"
#include "view/parts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	PITCH = 28,		/* between leaves */
	ROW = 40,		/* at least: wide rows are higher, so that their edges stay clear of other ranks */
	ROW_MOST = 96,
	RADIUS = 11,
	CAPTION = 18,		/* height of a line */
	WIDEST = 22,		/* leaves; further ones are counted */
	DEEPEST = 18,		/* rows, likewise */
	PATH_MOST = 12,		/* ranks from left to right */
	SMALL = 24,		/* ranks: up to here all are drawn */
	COLUMNS = 52,		/* of a caption, at most */
	FEW_EQUAL = 4		/* trees of one form: up to here each is drawn */
};

static const char *const class_names[N_LINK_CLASSES] = {
#define X(name, text, what) [name] = "c-" text,
	LINK_CLASS_LIST(X)
#undef X
};

Status
svg_tree_new(Ctx *ctx, const Explained *e, TreePicture *out)
{
	int n = e->topo->n_ranks;
	*out = (TreePicture){ .e = e };
	TRY(drawing_new(ctx, e, out->drawing));
	TRY(NEW_EACH(ctx, 2 * n, out->x, out->y));
	TRY(NEW(ctx, out->slots, n));
	TRY(NEW_EACH(ctx, 2 * n, out->depth, out->hidden));
	return OK;
}

/* ---- sizes ---- */

/* A walk over the tree: leaves get the next columns, others the middle of their children. Returns the columns used. */
static int
place_ranks(const Drawing *d, bool all, double *x, int *depth, bool *hidden)
{
	int columns = 0, r = d->root;
	for (int i = 0; i < d->n; i++)
		hidden[d->order[i]] = true;
	depth[r] = 0;
	for (;;) {
		/* One of several isomorphic siblings is drawn, and nothing after the last column or below the last
		 * row. */
		hidden[r] = false;
		int child = depth[r] + 1 < DEEPEST ? d->first[r] : -1;
		if (child >= 0) {
			depth[child] = depth[r] + 1;
			r = child;
			continue;
		}
		x[r] = columns++;
		for (;;) {
			if (r == d->root)
				return columns;
			int next = d->next[r];
			for (int skip = all ? 0 : d->n_isomorphic[r]; skip > 0; skip--)
				next = d->next[next];
			if (!all && d->n_isomorphic[r] > 0)
				columns++;
			if (next >= 0 && columns < WIDEST) {
				depth[next] = depth[r];
				r = next;
				break;
			}
			if (next >= 0)
				columns++;
			int parent = d->parent[r];
			/* Over the middle of the children drawn. */
			double right = x[r];
			x[parent] = (x[d->first[parent]] + right) / 2;
			r = parent;
		}
	}
}

/* y of each rank from its row. Returns the height of all rows. */
static double
place_rows(const Drawing *d, const bool *hidden, const int *depth, const double *x, double *y)
{
	double height[DEEPEST + 1] = { 0 }, sum = 0;
	for (int i = 1; i < d->n; i++) {
		int r = d->order[i], k = d->parent[r] >= 0 && !hidden[r] ? depth[r] : 0;
		double wide = k ? fabs(x[r] - x[d->parent[r]]) * 13.5 : 0;
		height[k] = fmax(height[k], fmin(ROW_MOST, fmax(ROW, wide)));
	}
	height[0] = 0;
	for (int k = 1; k <= DEEPEST; k++)
		height[k] = sum += height[k];
	for (int i = 0; i < d->n; i++)
		if (!hidden[d->order[i]])
			y[d->order[i]] = height[depth[d->order[i]]];
	return sum;
}

static bool
draws_all(const TreePicture *p)
{
	return p->e->topo->n_ranks <= SMALL;
}

static void
put_roots(const TreePicture *p, Text *out)
{
	const Schedule *sched = p->e->sched;
	for (int i = 0; i < p->n_same; i++) {
		bool last = i + 1 == p->n_same;
		if (i >= 3 && !last)
			continue;
		text_put(out, i == 0 ? "; roots " : last && p->n_same > 4 ? " ... " : ", ");
		text_put(out, p->e->short_name[sched->segment[p->same[i]].tree.root]);
	}
}

/* Three lines. Of trees of one form: how many, the share of each, their numbers, and their roots. */
static void
caption(const TreePicture *p, Text *title, Text *segment, Text *phases)
{
	const Drawing *d = p->drawing;
	int t = p->same[0], last = p->same[p->n_same - 1];
	const Segment *s = &p->e->sched->segment[t];
	if (p->n_same == 1)
		text_printf(title, "tree %d, ", t);
	else
		text_printf(title, "%d trees of this form, each ", p->n_same);
	text_printf(title, "%.6g GB/s", explain_rate(p->e, t));
	if (p->n_same == 1)
		put_segment(segment, p->e, t);
	else
		text_printf(segment, last - t + 1 == p->n_same ? "%lld/%lld of the buffer each; trees %d to %d"
		    : "%lld/%lld of the buffer each; trees %d ... %d", (long long)s->length.num,
		    (long long)s->length.den, t, last);
	if (p->flat)
		text_printf(phases, "%d hop%s", d->n - 1, d->n > 2 ? "s" : "");
	else if (p->n_drawings == 2)
		text_put(phases, "up, then down along other edges");
	else
		text_put(phases, d->up && d->down ? "up, then down again" : d->up ? "up" : "down");
	if (p->n_same > 1)
		put_roots(p, phases);
	for (int i = 0; i < s->n_to && i < 4 && p->n_same == 1; i++)
		text_printf(phases, i ? ", %s" : "; for %s", p->e->name[s->to[i]]);
	if (s->n_to > 4 && p->n_same == 1)
		text_printf(phases, " and %d more", s->n_to - 4);
}

/* A path, from left to right. */
static double
place_path(const Drawing *d, double *x, double *y, bool *hidden)
{
	for (int i = 0; i < d->n; i++) {
		int r = d->order[i];
		x[r] = (d->down ? i : d->n - 1 - i) * 1.5;
		y[r] = 0;
		hidden[r] = false;
	}
	return (d->n - 1) * 1.5 * PITCH + 2 * RADIUS + 4;
}

static int
columns_of(const char *text)
{
	int columns = 0;
	for (; text && *text; text++)
		columns += ((unsigned char)*text & 0xc0) != 0x80;
	return columns;
}

void
svg_tree_size(TreePicture *p, const int *tree, int n_same)
{
	int n = p->e->topo->n_ranks;
	double w = 0, h = 0;
	Text title = { 0 }, segment = { 0 }, phases = { 0 };
	const Schedule *sched = p->e->sched;
	DemandKind kind = collective_demand(sched->coll, n, sched->root < 0 ? 0 : sched->root, 0).kind;
	p->same = tree;
	p->n_same = n_same;
	p->n_drawings = draw_tree(p->e, *tree, p->drawing);
	p->flat = kind == DEMAND_PATH && p->n_drawings == 1 && drawing_is_path(p->drawing)
	    && p->drawing[0].n <= PATH_MOST;
	if (p->flat)
		w = place_path(p->drawing, p->x, p->y, p->hidden);
	for (int i = 0; i < p->n_drawings && !p->flat; i++) {
		int columns = place_ranks(&p->drawing[i], draws_all(p), p->x + i * n, p->depth + i * n,
		    p->hidden + i * n);
		w += columns * PITCH + (i ? PITCH : 0);
		p->slots[i] = columns;
		h = fmax(h, place_rows(&p->drawing[i], p->hidden + i * n, p->depth + i * n, p->x + i * n,
		    p->y + i * n));
	}
	caption(p, &title, &segment, &phases);
	double columns = fmin(COLUMNS, fmax(columns_of(segment.data), columns_of(phases.data)));
	p->w = fmax(fmax(w, fmax(110, fmin(COLUMNS, columns_of(title.data)) * 7.4)), columns * 6.3);
	p->h = 3 * CAPTION + 12 + h + 2 * RADIUS + 8;
	text_free(&title);
	text_free(&segment);
	text_free(&phases);
}

/* ---- drawing ---- */

/* Of the classes of its links the last in the list, which is the slowest. */
static LinkClass
class_of(const Explained *e, const Edge *edge)
{
	LinkClass class = LINK_NVLINK;
	for (int i = 0; i < edge->n_links; i++) {
		LinkClass one = e->topo->link[edge->link[i]].class;
		class = one > class ? one : class;
	}
	return class;
}

/* A line from the rim of one circle to that of another, with arrowheads where data arrives. */
static void
put_arrow(Text *out, const char *class, double ax, double ay, double bx, double by, bool at_a, bool at_b)
{
	double dx = bx - ax, dy = by - ay, length = sqrt(dx * dx + dy * dy);
	double ux = dx / length, uy = dy / length, head = 7, half = 3.6;
	ax += ux * (RADIUS + 1);
	ay += uy * (RADIUS + 1);
	bx -= ux * (RADIUS + 1);
	by -= uy * (RADIUS + 1);
	text_printf(out, "<path class=\"edge %s\" d=\"M", class);
	svg_pair(out, "", at_a ? ax + ux * head : ax, " ", at_a ? ay + uy * head : ay);
	svg_pair(out, "L", at_b ? bx - ux * head : bx, " ", at_b ? by - uy * head : by);
	text_put(out, "\"/>");
	for (int end = 0; end < 2; end++) {
		if (!(end ? at_b : at_a))
			continue;
		double x = end ? bx : ax, y = end ? by : ay, s = end ? -head : head;
		text_printf(out, "<path class=\"head %s\" d=\"M", class);
		svg_pair(out, "", x, " ", y);
		svg_pair(out, "L", x + ux * s - uy * half, " ", y + uy * s + ux * half);
		svg_pair(out, "L", x + ux * s + uy * half, " ", y + uy * s - ux * half);
		text_put(out, "z\"/>");
	}
	text_put(out, "\n");
}

static void
put_circle(Text *out, const TreePicture *p, const Drawing *d, int r, double x, double y)
{
	text_printf(out, "<g class=\"%s\"><title>", r == d->root ? "gpu root" : "gpu");
	text_xml(out, p->e->name[r]);
	text_printf(out, ", rank %d</title>", r);
	svg_pair(out, "<circle cx=\"", x, "\" cy=\"", y);
	text_printf(out, "\" r=\"%d\"/>", RADIUS);
	size_t length = strlen(p->e->short_name[r]);
	text_printf(out, "<text class=\"num s%d\"", length < 3 ? 1 : length == 3 ? 2 : 3);
	svg_pair(out, " x=\"", x, "\" y=\"", y + 3.6);
	text_put(out, "\">");
	text_xml(out, p->e->short_name[r]);
	text_put(out, "</text></g>\n");
}

/* The number of ranks that are not drawn beside a rank, or below it. */
static void
put_count(Text *out, const char *sign, int n, double x, double y)
{
	svg_pair(out, "<text class=\"count\" x=\"", x, "\" y=\"", y);
	text_printf(out, "\">%s%d</text>\n", sign, n);
}

static void
put_drawing(Text *out, const TreePicture *p, int i, double left, double top)
{
	const Drawing *d = &p->drawing[i];
	int n = p->e->topo->n_ranks;
	const double *x = p->x + i * n, *y = p->y + i * n;
	const bool *hidden = p->hidden + i * n;
	bool all = draws_all(p);
	for (int k = 1; k < d->n; k++) {
		int r = d->order[k], parent = d->parent[r];
		if (!hidden[r])
			put_arrow(out, class_names[class_of(p->e, d->edge[r])], left + x[parent] * PITCH,
			    top + y[parent], left + x[r] * PITCH, top + y[r], d->up, d->down);
	}
	for (int k = 0; k < d->n; k++) {
		int r = d->order[k], next = d->next[r];
		if (hidden[r])
			continue;
		put_circle(out, p, d, r, left + x[r] * PITCH, top + y[r]);
		int skipped = all ? 0 : d->n_isomorphic[r], rest = 0;
		for (int s = 0; s < skipped; s++)
			next = d->next[next];
		for (; next >= 0 && hidden[next]; next = d->next[next])
			rest += d->size[next];
		if (skipped)
			put_count(out, "×", skipped + 1, left + x[r] * PITCH + RADIUS + 4, top + y[r] + 4);
		if (rest)
			put_count(out, "+", rest, left + x[r] * PITCH + RADIUS + 4 + (skipped ? 30 : 0),
			    top + y[r] + 4);
		if (d->first[r] >= 0 && hidden[d->first[r]])
			put_count(out, "+", d->size[r] - 1, left + x[r] * PITCH - 8, top + y[r] + 25);
	}
}

/* A line of a caption, cut off where it is too long. */
static void
put_caption(Text *out, const char *class, const char *text, double x, double y)
{
	char line[4 * COLUMNS + 4];
	size_t n = 0;
	int columns = 0;
	for (; text[n] && columns < COLUMNS; columns++) {
		n++;
		while (((unsigned char)text[n] & 0xc0) == 0x80)
			n++;
	}
	snprintf(line, sizeof line, "%.*s%s", (int)n, text, text[n] ? "…" : "");
	svg_text(out, class, x, y, line);
}

void
svg_tree(TreePicture *p, double x, double y, Text *out)
{
	Text title = { 0 }, segment = { 0 }, phases = { 0 };
	caption(p, &title, &segment, &phases);
	svg_pair(out, "<g class=\"tree\" transform=\"translate(", x, " ", y);
	text_put(out, ")\">\n");
	put_caption(out, "name", title.data ? title.data : "", 0, 13);
	put_caption(out, "note", segment.data ? segment.data : "", 0, 13 + CAPTION);
	put_caption(out, "note", phases.data ? phases.data : "", 0, 13 + 2 * CAPTION);
	double left = RADIUS + 2;
	for (int i = 0; i < p->n_drawings; i++) {
		put_drawing(out, p, i, left, 3 * CAPTION + 12 + RADIUS);
		left += (p->slots[i] + 1) * PITCH;
	}
	text_put(out, "</g>\n");
	text_drop(out, &title);
	text_drop(out, &segment);
	text_drop(out, &phases);
}

/* ---- trees of one form ---- */

/* Equal for trees of one form, up to which GPU is where, over links of the same classes, with one share of the
 * buffer. */
static uint64_t
hash_form(TreePicture *p, int t)
{
	const Segment *s = &p->e->sched->segment[t];
	uint64_t hash = hash64((uint64_t)s->length.num) ^ (uint64_t)s->length.den;
	int n = draw_tree(p->e, t, p->drawing);
	hash = hash64(hash + (uint64_t)s->n_to) + (uint64_t)n;
	for (int i = 0; i < n; i++) {
		const Drawing *d = &p->drawing[i];
		hash = hash64(hash ^ d->hash[d->root]) + (uint64_t)d->n * 4 + (uint64_t)d->up * 2 + (uint64_t)d->down;
	}
	return hash64(hash);
}

static int
by_form(const void *a, const void *b, void *of)
{
	const uint64_t *form = of;
	int s = *(const int *)a, t = *(const int *)b;
	return form[s] != form[t] ? (form[s] > form[t]) - (form[s] < form[t]) : (s > t) - (s < t);
}

/* Trees of a large group stand where its first one does. */
static int
by_place(const void *a, const void *b, void *of)
{
	const uint64_t *place = of;
	int s = *(const int *)a, t = *(const int *)b;
	return place[s] != place[t] ? (place[s] > place[t]) - (place[s] < place[t]) : (s > t) - (s < t);
}

int
svg_tree_groups(TreePicture *p, int *tree, int n, uint64_t *form, int *first)
{
	int n_groups = 0;
	for (int i = 0; i < n; i++)
		form[tree[i]] = hash_form(p, tree[i]);
	qsort_r(tree, (size_t)n, sizeof *tree, by_form, form);
	for (int i = 0, end; i < n; i = end) {
		uint64_t one = form[tree[i]];
		for (end = i; end < n && form[tree[end]] == one; end++)
			;
		for (int k = i; k < end; k++)
			first[k] = end - i > FEW_EQUAL ? tree[i] : tree[k];
	}
	for (int i = 0; i < n; i++)
		form[tree[i]] = (uint64_t)first[i];
	qsort_r(tree, (size_t)n, sizeof *tree, by_place, form);
	for (int i = 0; i < n; i++)
		if (i == 0 || form[tree[i]] != form[tree[i - 1]])
			first[n_groups++] = i;
	first[n_groups] = n;
	return n_groups;
}
