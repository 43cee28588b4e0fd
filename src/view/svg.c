/* A schedule as a page of SVG: its title, the topology with the load of each link, and a picture of each tree. */
#include "view/parts.h"

#include <math.h>
#include <stdio.h>

enum {
	GUTTER = 18,		/* between columns */
	GRID = 12,
	MANY_TREES = 48
};

/* ---- the page ---- */

static double
put_head(Text *out, const Explained *e, double y)
{
	const Schedule *sched = e->sched;
	Text line = { 0 };
	text_printf(&line, "%s over %d GPUs of ", collective_name(sched->coll), sched->topo->n_ranks);
	text_put(&line, sched->topo->name);
	/* A title has wide letters. */
	if (line.size > 60) {
		size_t n = utf8_valid(line.data, 57);
		line.size = n;
		text_put(&line, "…");
	}
	svg_text(out, "title", SVG_MARGIN, y + 18, line.data ? line.data : "");
	line.size = 0;
	text_printf(&line, "%.6g GB/s; bound %.6g GB/s; %d tree%s", frac_double(sched->achieved) / 1e9,
	    frac_double(sched->bound.rate) / 1e9, sched->n_segments, sched->n_segments == 1 ? "" : "s");
	if (sched->root >= 0)
		text_printf(&line, "; root %s", e->name[sched->root]);
	y = svg_wrapped(out, "name", SVG_MARGIN, y + 42, 18, line.data ? line.data : "");
	line.size = 0;
	put_arithmetic(&line, e);
	y = svg_wrapped(out, "note", SVG_MARGIN, y, 17, line.data ? line.data : "");
	text_drop(out, &line);
	return y;
}

static double
put_legend(Text *out, const Explained *e, const Layout *layout, double y)
{
	unsigned classes = 0;
	bool tight = svg_any_lane(layout, true), all = !svg_any_lane(layout, false), parts = false;
	double x = SVG_MARGIN;
	for (int c = 0; c < layout->n_cables; c++)
		classes |= 1u << layout->cable[c].class;
	for (int p = 0; p < layout->n_spots; p++)
		parts = parts || *svg_part_class(e, &layout->spot[p]);
	for (int c = 0; c < N_LINK_CLASSES; c++) {
		if (!(classes >> c & 1))
			continue;
		text_printf(out, "<path class=\"load c-%s\" stroke-width=\"5\" ", link_class_name((LinkClass)c));
		svg_pair(out, "d=\"M", x, " ", y - 4);
		svg_pair(out, "L", x + 24, " ", y - 4);
		text_put(out, "\"/>");
		svg_text(out, "note", x + 30, y, link_class_name((LinkClass)c));
		x += 86;
	}
	if (tight && all) {
		svg_text(out, "note", x, y, "all links count in the bound");
	} else if (tight) {
		svg_pair(out, "<path class=\"tick\" d=\"M", x + 6, " ", y - 10);
		svg_pair(out, "L", x + 6, " ", y + 1);
		text_put(out, "\"/>");
		svg_text(out, "note", x + 14, y, parts ? "counts in the bound (coloured: side or parts)"
		    : "counts in the bound");
	}
	y += 18;
	svg_text(out, "note", SVG_MARGIN, y,
	    "Each direction has a lane on its right: its pale width is the capacity, its dark width the load.");
	if (layout->left_out || layout->aggregated) {
		char line[160];
		bool same = false;
		for (int p = 0; p < layout->n_spots; p++)
			same = same || layout->spot[p].n_same > 1;
		if (!layout->aggregated)
			snprintf(line, sizeof line, "%d GPUs are left out", layout->left_out);
		else if (layout->left_out)
			snprintf(line, sizeof line,
			    "Each server is one box; links inside servers, and %d more servers, are left out",
			    layout->left_out);
		else
			snprintf(line, sizeof line, "Each server is one box; links inside servers are left out");
		y += 18;
		svg_text(out, "note", SVG_MARGIN, y, line);
		if (same) {
			y += 18;
			svg_text(out, "note", SVG_MARGIN, y,
			    "Servers or switches that have the same links and loads are one box, their lanes added up");
		}
	}
	return y + 10;
}

/* Pictures of n groups of trees on a grid, each over as many columns as it needs; rows are as high as their highest
 * picture. */
static double
put_trees(Text *out, TreePicture *picture, const int *tree, const int *first, int n, double y)
{
	double unit = (double)(SVG_PAGE - 2 * SVG_MARGIN + GUTTER) / GRID, height = 0;
	int column = 0;
	for (int i = 0; i < n; i++) {
		svg_tree_size(picture, tree + first[i], first[i + 1] - first[i]);
		int span = (int)ceil((picture->w + GUTTER) / unit);
		if (column > 0 && column + span > GRID) {
			y += height + 22;
			column = 0;
			height = 0;
		}
		svg_tree(picture, SVG_MARGIN + column * unit, y, out);
		column += span;
		height = fmax(height, picture->h);
	}
	return y + height + 8;
}

static Status
put_page(Ctx *ctx, const Explained *e, const ShowRequest *ask, Text *body, double *height)
{
	Layout layout;
	TreePicture picture;
	int *tree, *first, n = 0, n_groups, most = ask->trees ? e->sched->n_segments : MANY_TREES;
	uint64_t *form;
	bool *chosen;
	char line[80];
	TRY(TEMP_EACH(ctx, e->sched->n_segments, chosen, tree));
	TRY(TEMP(ctx, first, e->sched->n_segments + 1));
	TRY(TEMP(ctx, form, e->sched->n_segments));
	TRY(parse_trees(ctx, e, ask->trees, chosen));
	for (int t = 0; t < e->sched->n_segments; t++)
		if (chosen[t])
			tree[n++] = t;
	TRY(ask->layout ? layout_graphviz(ctx, e, ask->layout, &layout) : layout_own(ctx, e, &layout));
	double y = put_head(body, e, SVG_MARGIN) + 14;
	svg_topology(e, &layout, (SVG_PAGE - layout.w * layout.scale) / 2, y, body);
	y = put_legend(body, e, &layout, y + layout.h * layout.scale + 30) + 18;
	TRY(svg_tree_new(ctx, e, &picture));
	for (int i = 0; i <= n; i++)
		first[i] = i;
	n_groups = ask->trees ? n : svg_tree_groups(&picture, tree, n, form, first);
	y = put_trees(body, &picture, tree, first, n_groups < most ? n_groups : most, y);
	if (n_groups > most) {
		snprintf(line, sizeof line, "%d more trees; --tree N draws tree N", n - first[most]);
		svg_text(body, "note", SVG_MARGIN, y + 14, line);
		y += 22;
	}
	*height = y + SVG_MARGIN;
	return OK;
}

void
svg_document(Text *out, const char *title, double height, Text *body)
{
	text_printf(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" ", SVG_PAGE,
	    (int)height);
	text_printf(out, "viewBox=\"0 0 %d %d\">\n<title>", SVG_PAGE, (int)height);
	text_xml(out, title);
	text_put(out, "</title>\n");
	svg_style(out);
	text_printf(out, "<rect width=\"%d\" height=\"%d\" class=\"paper\"/>\n", SVG_PAGE, (int)height);
	text_put(out, body->data ? body->data : "");
	text_put(out, "</svg>\n");
	text_drop(out, body);
}

Status
emit_svg(Ctx *ctx, const Explained *e, const ShowRequest *ask, Text *out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	Text body = { 0 }, title = { 0 };
	double height = 0;
	Status status = put_page(ctx, e, ask, &body, &height);
	text_printf(&title, "%s over %d GPUs of ", collective_name(e->sched->coll), e->topo->n_ranks);
	text_put(&title, e->topo->name);
	svg_document(out, title.data ? title.data : "", height, &body);
	text_drop(out, &title);
	arena_release(&ctx->scratch, mark);
	return status;
}
