/* A machine as a page of SVG: its GPUs, switches and NICs, with a lane for each direction of what joins them, and a
 * line for each kind of it. Where links of a class differ, lanes have labels: those that have room. A single server is
 * two pictures: what joins its GPUs directly, and the tree of its host. */
#include "topology/topology.h"
#include "view/parts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	KINDS_MOST = 12,	/* lines of the legend */
	LABEL_HEIGHT = 13
};

/* ---- kinds of cables ---- */

static int
by_kind(const void *a, const void *b)
{
	const Cable *x = *(const Cable *const *)a, *y = *(const Cable *const *)b;
	if (x->class != y->class)
		return (int)x->class - (int)y->class;
	double p = x->capacity[0] + x->capacity[1], q = y->capacity[0] + y->capacity[1];
	if (p != q)
		return p > q ? -1 : 1;
	if (x->count[0] + x->count[1] != y->count[0] + y->count[1])
		return y->count[0] + y->count[1] - x->count[0] - x->count[1];
	double c = fmin(x->capacity[0], x->capacity[1]), d = fmin(y->capacity[0], y->capacity[1]);
	return c != d ? c > d ? -1 : 1 : 0;
}

/* One of each kind, in order. Returns how many; differs: bit set of the classes with several. */
static Status
find_kinds(Ctx *ctx, const Layout *layout, const Cable ***out, int *n, unsigned *differs)
{
	const Cable **kind;
	unsigned seen = 0;
	TRY(TEMP(ctx, kind, layout->n_cables));
	for (int c = 0; c < layout->n_cables; c++)
		kind[c] = &layout->cable[c];
	qsort(kind, (size_t)layout->n_cables, sizeof *kind, by_kind);
	*n = 0;
	*differs = 0;
	for (int c = 0; c < layout->n_cables; c++) {
		if (c > 0 && by_kind(&kind[c], &kind[*n - 1]) == 0)
			continue;
		*differs |= seen & 1u << kind[c]->class;
		seen |= 1u << kind[c]->class;
		kind[(*n)++] = kind[c];
	}
	*out = kind;
	return OK;
}

/* ---- labels ---- */

struct box {
	double left, top, right, bottom;
};

static bool
overlap(struct box a, struct box b)
{
	return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
}

static bool
is_free(const Layout *layout, const struct box *label, int n, struct box at)
{
	for (int p = 0; p < layout->n_spots; p++) {
		const Spot *s = &layout->spot[p];
		if (overlap(at, (struct box){ s->x - s->w / 2 - 2, s->y - s->h / 2 - 2, s->x + s->w / 2 + 2,
		    s->y + s->h / 2 + 2 }))
			return false;
	}
	for (int i = 0; i < n; i++)
		if (overlap(at, label[i]))
			return false;
	return true;
}

/* The first of a few places along the cable that is free. */
static bool
find_place(const Layout *layout, const Cable *cable, const struct box *label, int n, double w, struct box *out)
{
	static const double places[] = { 0.5, 0.4, 0.6, 0.3, 0.7, 0.22, 0.78 };
	const Spot *a = &layout->spot[cable->a], *b = &layout->spot[cable->b];
	for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
		double t = places[i];
		double x = a->x + (b->x - a->x) * t, y = a->y + (b->y - a->y) * t - 4 * cable->bend * t * (1 - t);
		*out = (struct box){ x - w / 2, y - LABEL_HEIGHT / 2.0, x + w / 2, y + LABEL_HEIGHT / 2.0 };
		if (out->top >= 0 && is_free(layout, label, n, *out))
			return true;
	}
	return false;
}

static void
put_label(Text *out, struct box at, const char *text)
{
	svg_pair(out, "<rect class=\"plate\" rx=\"3\" x=\"", at.left, "\" y=\"", at.top);
	svg_pair(out, "\" width=\"", at.right - at.left, "\" height=\"", at.bottom - at.top);
	svg_pair(out, "\"/><text class=\"mid s2\" x=\"", (at.left + at.right) / 2, "\" y=\"", at.bottom - 3.2);
	text_put(out, "\">");
	text_xml(out, text);
	text_put(out, "</text>\n");
}

/* Both ways, where they differ. */
static void
label_of(Text *text, const Cable *cable)
{
	bool same = cable->count[0] == cable->count[1] && cable->capacity[0] == cable->capacity[1];
	int d = cable->count[0] > 0 ? 0 : 1;
	svg_cable_label(text, cable, d);
	if (same)
		return;
	text_put(text, " / ");
	if (cable->count[!d] > 0)
		svg_cable_label(text, cable, !d);
	else
		text_put(text, "none");
}

static Status
put_labels(Ctx *ctx, const Layout *layout, unsigned classes, double x, double y, Text *out)
{
	struct box *label;
	int n = 0;
	TRY(TEMP(ctx, label, layout->n_cables));
	svg_place(out, "labels", layout, x, y);
	for (int c = 0; c < layout->n_cables; c++) {
		const Cable *cable = &layout->cable[c];
		Text text = { 0 };
		if (!(classes >> cable->class & 1))
			continue;
		label_of(&text, cable);
		if (text.data && find_place(layout, cable, label, n, 6 + 5.4 * (double)text.size, &label[n]))
			put_label(out, label[n++], text.data);
		text_drop(out, &text);
	}
	text_put(out, "</g>\n");
	return OK;
}

/* ---- the page ---- */

static double
put_head(Text *out, const Explained *e, double y)
{
	Text line = { 0 };
	size_t n = strlen(e->topo->name);
	text_add(&line, e->topo->name, n > 60 ? utf8_valid(e->topo->name, 57) : n);
	text_put(&line, n > 60 ? "…" : "");
	svg_text(out, "title", SVG_MARGIN, y + 18, line.data ? line.data : "");
	line.size = 0;
	text_printf(&line, "%d GPU%s", e->topo->n_ranks, e->topo->n_ranks == 1 ? "" : "s");
	text_printf(&line, " in %d server%s", e->n_servers, e->n_servers == 1 ? "" : "s");
	svg_text(out, "name", SVG_MARGIN, y + 42, line.data ? line.data : "");
	text_drop(out, &line);
	return y + 50;
}

/* A line for each kind of cable: a sample of its lane, and what it has. */
static double
put_kinds(Text *out, const Layout *layout, const Cable *const *kind, int n, double y)
{
	for (int i = 0; i < n && i < KINDS_MOST; i++) {
		Text line = { 0 };
		text_printf(out, "<path class=\"load c-%s\" stroke-width=\"", link_class_name(kind[i]->class));
		double capacity = fmax(kind[i]->capacity[0], kind[i]->capacity[1]);
		svg_number(out, svg_lane_width(layout, capacity) * layout->scale);
		svg_pair(out, "\" d=\"M", SVG_MARGIN, " ", y - 4);
		svg_pair(out, "L", SVG_MARGIN + 24, " ", y - 4);
		text_put(out, "\"/>");
		text_printf(&line, "%s ", link_class_name(kind[i]->class));
		label_of(&line, kind[i]);
		text_put(&line, kind[i]->capacity[0] != kind[i]->capacity[1] ? " GB/s, one way / the other"
		    : kind[i]->count[0] > 1 && !kind[i]->mixed[0] ? " = " : " GB/s each way");
		if (kind[i]->capacity[0] == kind[i]->capacity[1] && kind[i]->count[0] > 1 && !kind[i]->mixed[0]) {
			text_printf(&line, "%.6g GB/s each way", kind[i]->capacity[0]);
		}
		svg_text(out, "note", SVG_MARGIN + 30, y, line.data ? line.data : "");
		text_drop(out, &line);
		y += 18;
	}
	if (n > KINDS_MOST) {
		char more[64];
		snprintf(more, sizeof more, "and %d more kinds of links", n - KINDS_MOST);
		svg_text(out, "note", SVG_MARGIN, y, more);
		y += 18;
	}
	return y;
}

static double
put_notes(Text *out, const Layout *layout, double y)
{
	char line[160];
	if (layout->aggregated) {
		svg_text(out, "note", SVG_MARGIN, y,
		    "Each server is one box; servers or switches that have the same links are one box, "
		    "their links added up");
		y += 18;
	}
	if (layout->left_out) {
		snprintf(line, sizeof line, "%d more %s are left out", layout->left_out,
		    layout->aggregated ? "servers" : "GPUs");
		svg_text(out, "note", SVG_MARGIN, y, line);
		y += 18;
	}
	return y;
}

/* One picture, with its legend. */
static Status
put_picture(Ctx *ctx, const Explained *e, const Layout *layout, double *y, Text *body)
{
	const Cable **kind;
	int n;
	unsigned differs;
	double x = (SVG_PAGE - layout->w * layout->scale) / 2;
	TRY(find_kinds(ctx, layout, &kind, &n, &differs));
	svg_topology(e, layout, x, *y, body);
	TRY(put_labels(ctx, layout, differs, x, *y, body));
	*y = put_kinds(body, layout, kind, n, *y + layout->h * layout->scale + 30);
	*y = put_notes(body, layout, *y);
	return OK;
}

/* ---- a server in two pictures ---- */

/* Between GPUs, and from them to NVSwitches: not what leads to a CPU. */
static bool
is_direct(const Topology *topo, const Link *link)
{
	return (link->class == LINK_NVLINK || link->class == LINK_XGMI)
	    && topo->vertex[link->from].kind != VERTEX_CPU && topo->vertex[link->to].kind != VERTEX_CPU;
}

/* These links, all GPUs, and what else these links join. Returns how many links there are. */
static Status
part_of(Ctx *ctx, const Topology *topo, bool direct, Explained *out, int *n_links)
{
	Topology *part;
	int *place, n = topo->n_ranks;
	TRY(NEW(ctx, part, 1));
	TRY(TEMP(ctx, place, topo->n_vertices));
	*part = *topo;
	TRY(NEW(ctx, part->vertex, topo->n_vertices));
	TRY(NEW(ctx, part->link, topo->n_links));
	part->n_links = 0;
	for (int l = 0; l < topo->n_links; l++) {
		const Link *link = &topo->link[l];
		if (is_direct(topo, link) != direct)
			continue;
		part->link[part->n_links++] = *link;
		place[link->from] = place[link->to] = 1;
	}
	for (int v = 0; v < topo->n_vertices; v++) {
		place[v] = v < topo->n_ranks ? v : place[v] ? n++ : -1;
		if (place[v] >= 0)
			part->vertex[place[v]] = topo->vertex[v];
	}
	part->n_vertices = n;
	for (int l = 0; l < part->n_links; l++) {
		part->link[l].from = place[part->link[l].from];
		part->link[l].to = place[part->link[l].to];
	}
	*n_links = part->n_links;
	TRY(topo_index(ctx, part));
	return explain_machine(ctx, part, out);
}

/* What joins the GPUs directly, and the tree of the host: in one picture their lines would cross. */
static Status
put_server(Ctx *ctx, const Explained *e, double *y, Text *body)
{
	Explained part[2];
	int n[2];
	for (int i = 0; i < 2; i++)
		TRY(part_of(ctx, e->topo, i == 0, &part[i], &n[i]));
	for (int i = 0; i < 2; i++) {
		Layout layout;
		if (n[i] == 0 && (i == 0 || n[0] > 0))
			continue;
		TRY(i == 0 ? layout_own(ctx, &part[i], &layout) : layout_tree(ctx, &part[i], &layout));
		if (n[0] > 0 && n[1] > 0) {
			svg_text(body, "name", SVG_MARGIN, *y + 12, i == 0 ? "Between GPUs" : "Through the host");
			*y += 30;
		}
		TRY(put_picture(ctx, &part[i], &layout, y, body));
		*y += i == 0 && n[1] > 0 ? 14 : 0;
	}
	return OK;
}

static Status
put_page(Ctx *ctx, const Explained *e, const char *engine, Text *body, double *height)
{
	Layout layout;
	double y = put_head(body, e, SVG_MARGIN) + 14;
	if (!engine && e->n_servers == 1) {
		TRY(put_server(ctx, e, &y, body));
	} else {
		TRY(engine ? layout_graphviz(ctx, e, engine, &layout) : layout_own(ctx, e, &layout));
		TRY(put_picture(ctx, e, &layout, &y, body));
	}
	*height = y + SVG_MARGIN;
	return OK;
}

Status
machine_svg(Ctx *ctx, const Explained *e, const char *engine, Text *out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	Text body = { 0 };
	double height = 0;
	Status status = put_page(ctx, e, engine, &body, &height);
	svg_document(out, e->topo->name, height, &body);
	arena_release(&ctx->scratch, mark);
	return status;
}
