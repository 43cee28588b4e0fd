/* A schedule as a page of SVG: its title, the topology with the load of each link, and a picture of each tree. */
#include "view/parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
	PAGE = 728,
	MARGIN = 16,
	GUTTER = 18,		/* between columns */
	GRID = 12,
	MANY_TREES = 48,
	MANY_CABLES = 100
};

/* ---- the topology ---- */

/* Width of lanes: that of capacity `most` is the widest; where there are many, all are thinner. */
struct lanes {
	double most, thin;
	bool ticks;
};

static double
lane_width(const struct lanes *lanes, double capacity)
{
	return (1.6 + 5.4 * capacity / lanes->most) * lanes->thin;
}

/* The lane from `from` to `to`, on the right of the line between them. */
static void
put_lane(Text *out, const Spot *from, const Spot *to, const Cable *cable, int direction, const struct lanes *lanes)
{
	double dx = to->x - from->x, dy = to->y - from->y, length = sqrt(dx * dx + dy * dy);
	double width = lane_width(lanes, cable->capacity[direction]);
	if (cable->capacity[direction] == 0 || length < 1)
		return;
	double nx = -dy / length, ny = dx / length, off = width / 2 + 0.6 * lanes->thin;
	for (int full = 0; full < 2; full++) {
		double stroke = full ? width * cable->load[direction] / cable->capacity[direction] : width;
		if (stroke < 0.05)
			continue;
		text_printf(out, "<path class=\"%s c-%s\" ", full ? "load" : "lane", link_class_name(cable->class));
		svg_pair(out, "d=\"M", from->x + nx * off, " ", from->y + ny * off);
		if (cable->bend > 0)
			svg_pair(out, "Q", (from->x + to->x) / 2 + nx * off, " ",
			    (from->y + to->y) / 2 + ny * off - 2 * cable->bend);
		svg_pair(out, cable->bend > 0 ? " " : "L", to->x + nx * off, " ", to->y + ny * off);
		text_put(out, "\" stroke-width=\"");
		svg_number(out, stroke < 0.2 ? 0.2 : stroke);
		text_put(out, full ? "\"/>\n" : "\">");
		if (full)
			continue;
		text_put(out, "<title>");
		text_xml(out, from->label);
		text_put(out, " to ");
		text_xml(out, to->label);
		text_printf(out, ", %s: ", link_class_name(cable->class));
		put_figures(out, cable->load[direction]);
		text_put(out, " of ");
		put_figures(out, cable->capacity[direction]);
		text_put(out, " GB/s</title></path>\n");
	}
	if (!cable->tight[direction] || !lanes->ticks || cable->bend > 0)
		return;
	/* A tick across the lane, just outside the spot where it begins. */
	double start = fmin(0.34, (fmax(from->w, from->h) / 2 + 9) / length), x = from->x + dx * start,
	    y = from->y + dy * start;
	svg_pair(out, "<path class=\"tick\" d=\"M", x + nx * (off - width / 2 - 1), " ",
	    y + ny * (off - width / 2 - 1));
	svg_pair(out, "L", x + nx * (off + width / 2 + 2.4), " ", y + ny * (off + width / 2 + 2.4));
	text_put(out, "\"/>\n");
}

/* Class for the colour of a side of the cut, or of a part of the partition where parts have several GPUs; "": none. */
static const char *
part_class(const Explained *e, const Spot *spot)
{
	static const char *const names[SVG_PARTS] = { " p0", " p1", " p2", " p3", " p4", " p5" };
	const Bound *bound = &e->sched->bound;
	if (bound->kind == CERTIFICATE_CUT)
		return bound->part[spot->vertex] == 1 ? names[0] : "";
	if (spot->n_alike > 1)
		return "";
	if (bound->kind == CERTIFICATE_PARTITION && bound->n_parts < e->topo->n_ranks
	    && bound->part[spot->vertex] >= 0)
		return names[bound->part[spot->vertex] % SVG_PARTS];
	return "";
}

/* The edge of others behind a spot. */
static void
put_stack(Text *out, const Spot *spot)
{
	svg_pair(out, "<path class=\"behind\" d=\"M", spot->x - spot->w / 2 + 5, " ", spot->y + spot->h / 2 + 3);
	svg_pair(out, "L", spot->x + spot->w / 2 + 3, " ", spot->y + spot->h / 2 + 3);
	svg_pair(out, "L", spot->x + spot->w / 2 + 3, " ", spot->y - spot->h / 2 + 5);
	text_put(out, "\"/>");
}

static void
put_spot(Text *out, const Explained *e, const Spot *spot)
{
	if (spot->rank >= 0) {
		text_printf(out, "<g class=\"gpu%s%s\"><title>", spot->rank == e->sched->root ? " root" : "",
		    part_class(e, spot));
		text_xml(out, e->name[spot->rank]);
		text_printf(out, ", rank %d</title>", spot->rank);
		svg_pair(out, "<circle cx=\"", spot->x, "\" cy=\"", spot->y);
		const char *number = strlen(spot->label) > 3 ? "\"/><text class=\"num s1\" x=\""
		    : "\"/><text class=\"num\" x=\"";
		svg_pair(out, "\" r=\"", spot->w / 2, number, spot->x);
		text_put(out, "\" y=\"");
		svg_number(out, spot->y + 4.6);
	} else {
		text_printf(out, "<g class=\"spot%s\"><title>", part_class(e, spot));
		text_xml(out, spot->is_server || spot->n_alike > 1 ? spot->label : e->name[spot->vertex]);
		text_put(out, "</title>");
		if (spot->n_alike > 1)
			put_stack(out, spot);
		svg_pair(out, "<rect class=\"box\" rx=\"5\" x=\"", spot->x - spot->w / 2, "\" y=\"",
		    spot->y - spot->h / 2);
		svg_pair(out, "\" width=\"", spot->w, "\" height=\"", spot->h);
		svg_pair(out, "\"/><text class=\"mid\" x=\"", spot->x, "\" y=\"", spot->y + 4.4);
	}
	text_put(out, "\">");
	text_xml(out, spot->label);
	text_put(out, "</text></g>\n");
}

/* Is one of the lanes tight, or not tight? Ticks are drawn only if there are both. */
static bool
any_lane(const Layout *layout, bool tight)
{
	for (int c = 0; c < layout->n_cables; c++)
		for (int direction = 0; direction < 2; direction++)
			if (layout->cable[c].capacity[direction] > 0 && layout->cable[c].tight[direction] == tight)
				return true;
	return false;
}

static void
put_topology(const Explained *e, const Layout *layout, double x, double y, Text *out)
{
	double thin = layout->n_cables > MANY_CABLES ? fmax(0.15, (double)MANY_CABLES / layout->n_cables) : 1;
	struct lanes lanes = { 0, thin, any_lane(layout, false) };
	svg_pair(out, "<g class=\"topology\" transform=\"translate(", x, " ", y);
	if (layout->scale < 1) {
		char scale[32];
		snprintf(scale, sizeof scale, ") scale(%.4f", layout->scale);
		text_put(out, scale);
	}
	text_put(out, ")\">\n");
	for (int c = 0; c < layout->n_cables; c++)
		lanes.most = fmax(lanes.most, fmax(layout->cable[c].capacity[0], layout->cable[c].capacity[1]));
	for (int f = 0; f < layout->n_frames; f++) {
		const Frame *frame = &layout->frame[f];
		svg_pair(out, "<rect class=\"frame\" rx=\"10\" x=\"", frame->x, "\" y=\"", frame->y);
		svg_pair(out, "\" width=\"", frame->w, "\" height=\"", frame->h);
		text_put(out, "\"/>\n");
		svg_text(out, "note", frame->x + 9, frame->y + 16, frame->label);
	}
	for (int c = 0; c < layout->n_cables; c++) {
		const Cable *cable = &layout->cable[c];
		put_lane(out, &layout->spot[cable->a], &layout->spot[cable->b], cable, 0, &lanes);
		put_lane(out, &layout->spot[cable->b], &layout->spot[cable->a], cable, 1, &lanes);
	}
	for (int p = 0; p < layout->n_spots; p++)
		put_spot(out, e, &layout->spot[p]);
	text_put(out, "</g>\n");
}

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
	svg_text(out, "title", MARGIN, y + 18, line.data ? line.data : "");
	line.size = 0;
	put_figures(&line, frac_double(sched->achieved) / 1e9);
	text_put(&line, " GB/s; bound ");
	put_figures(&line, frac_double(sched->bound.rate) / 1e9);
	text_printf(&line, " GB/s; %d tree%s", sched->n_segments, sched->n_segments == 1 ? "" : "s");
	if (sched->root >= 0)
		text_printf(&line, "; root %s", e->name[sched->root]);
	y = svg_wrapped(out, "name", MARGIN, y + 42, 18, line.data ? line.data : "");
	line.size = 0;
	put_arithmetic(&line, e);
	y = svg_wrapped(out, "note", MARGIN, y, 17, line.data ? line.data : "");
	out->failed = out->failed || line.failed;
	text_free(&line);
	return y;
}

static double
put_legend(Text *out, const Explained *e, const Layout *layout, double y)
{
	unsigned classes = 0;
	bool tight = any_lane(layout, true), all = !any_lane(layout, false), parts = false;
	double x = MARGIN;
	for (int c = 0; c < layout->n_cables; c++)
		classes |= 1u << layout->cable[c].class;
	for (int p = 0; p < layout->n_spots; p++)
		parts = parts || *part_class(e, &layout->spot[p]);
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
	svg_text(out, "note", MARGIN, y,
	    "Each direction has a lane on its right: its pale width is the capacity, its dark width the load.");
	if (layout->left_out || layout->aggregated) {
		char line[160];
		bool alike = false;
		for (int p = 0; p < layout->n_spots; p++)
			alike = alike || layout->spot[p].n_alike > 1;
		if (!layout->aggregated)
			snprintf(line, sizeof line, "%d GPUs are left out", layout->left_out);
		else if (layout->left_out)
			snprintf(line, sizeof line,
			    "Each server is one box; links inside servers, and %d more servers, are left out",
			    layout->left_out);
		else
			snprintf(line, sizeof line, "Each server is one box; links inside servers are left out");
		y += 18;
		svg_text(out, "note", MARGIN, y, line);
		if (alike) {
			y += 18;
			svg_text(out, "note", MARGIN, y,
			    "Servers or switches that have the same links and loads are one box, their lanes added up");
		}
	}
	return y + 10;
}

/* Pictures of n groups of trees on a grid, each over as many columns as it needs; rows are as high as their highest picture. */
static double
put_trees(Text *out, TreePicture *picture, const int *tree, const int *first, int n, double y)
{
	double unit = (double)(PAGE - 2 * MARGIN + GUTTER) / GRID, height = 0;
	int column = 0;
	for (int i = 0; i < n; i++) {
		svg_tree_size(picture, tree + first[i], first[i + 1] - first[i]);
		int span = (int)ceil((picture->w + GUTTER) / unit);
		if (column > 0 && column + span > GRID) {
			y += height + 22;
			column = 0;
			height = 0;
		}
		svg_tree(picture, MARGIN + column * unit, y, out);
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
	TRY(TEMP(ctx, chosen, e->sched->n_segments));
	TRY(TEMP(ctx, tree, e->sched->n_segments));
	TRY(TEMP(ctx, first, e->sched->n_segments + 1));
	TRY(TEMP(ctx, form, e->sched->n_segments));
	TRY(parse_trees(ctx, e, ask->trees, chosen));
	for (int t = 0; t < e->sched->n_segments; t++)
		if (chosen[t])
			tree[n++] = t;
	TRY(ask->layout ? layout_graphviz(ctx, e, ask->layout, &layout) : layout_own(ctx, e, &layout));
	double y = put_head(body, e, MARGIN) + 14;
	put_topology(e, &layout, (PAGE - layout.w * layout.scale) / 2, y, body);
	y = put_legend(body, e, &layout, y + layout.h * layout.scale + 30) + 18;
	TRY(svg_tree_new(ctx, e, &picture));
	for (int i = 0; i <= n; i++)
		first[i] = i;
	n_groups = ask->trees ? n : svg_tree_groups(&picture, tree, n, form, first);
	y = put_trees(body, &picture, tree, first, n_groups < most ? n_groups : most, y);
	if (n_groups > most) {
		snprintf(line, sizeof line, "%d more trees; --tree N draws tree N", n - first[most]);
		svg_text(body, "note", MARGIN, y + 14, line);
		y += 22;
	}
	*height = y + MARGIN;
	return OK;
}

Status
emit_svg(Ctx *ctx, const Explained *e, const ShowRequest *ask, Text *out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	Text body = { 0 };
	double height = 0;
	Status status = put_page(ctx, e, ask, &body, &height);
	text_printf(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" ", PAGE, (int)height);
	text_printf(out, "viewBox=\"0 0 %d %d\">\n<title>", PAGE, (int)height);
	text_printf(out, "%s over %d GPUs of ", collective_name(e->sched->coll), e->topo->n_ranks);
	text_xml(out, e->topo->name);
	text_put(out, "</title>\n");
	svg_style(out);
	text_printf(out, "<rect width=\"%d\" height=\"%d\" class=\"paper\"/>\n", PAGE, (int)height);
	text_put(out, body.data ? body.data : "");
	text_put(out, "</svg>\n");
	out->failed = out->failed || body.failed;
	text_free(&body);
	arena_release(&ctx->scratch, mark);
	return status;
}
