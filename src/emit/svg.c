/* A schedule as a page of SVG: what it is, the topology with what each link carries, and a picture of each tree. */
#include "emit/draw.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
	PAGE = 728,
	MARGIN = 16,
	GUTTER = 18,		/* between columns */
	GRID = 12,
	COLUMNS = 108,		/* of a line of text */
	MANY_TREES = 48,
	MANY_CABLES = 100,
	PARTS = 6		/* colours of parts */
};

static const char *const class_names[N_LINK_CLASSES] = {
#define X(name, text, what) [name] = text,
	LINK_CLASS_LIST(X)
#undef X
};

void
svg_style(Text *out)
{
	text_put(out,
	    "<style>\n"
	    ":root { color-scheme: light dark }\n"
	    "svg { --paper: #ffffff; --ink: #1b2530; --dim: #5a6672; --rim: #33414f; --node: #ffffff; --frame: #f3f5f7; --tight: #c81e3a;\n"
	    "  --nvlink: #2e8b3d; --xgmi: #c2410c; --c2c: #0e7490; --pcie: #b7791f; --qpi: #7c3aed; --net: #2563eb;\n"
	    "  --p0: #fde2c4; --p1: #cfe4fb; --p2: #d9f0d3; --p3: #eadcf8; --p4: #fbd7e1; --p5: #f3eeb8;\n"
	    "  background: var(--paper); font-family: system-ui, \"Segoe UI\", Roboto, \"Helvetica Neue\", Arial, sans-serif }\n"
	    "@media screen and (prefers-color-scheme: dark) {\n"
	    "  svg { --paper: #12171d; --ink: #e6ebf0; --dim: #9aa7b4; --rim: #b9c5d1; --node: #222b35; --frame: #1a2129; --tight: #ff6b81;\n"
	    "    --nvlink: #5cc26b; --xgmi: #f4814d; --c2c: #4cc3dd; --pcie: #e0ab4a; --qpi: #b394ff; --net: #6ea3ff;\n"
	    "    --p0: #5a3d1e; --p1: #1e4062; --p2: #28502a; --p3: #45306b; --p4: #642c40; --p5: #56511a }\n"
	    "}\n"
	    "text { fill: var(--ink); font-size: 13px }\n"
	    ".title { font-size: 20px; font-weight: 600 } .name { font-weight: 600 } .note, .count { fill: var(--dim); font-size: 12px }\n"
	    ".mid, .num { text-anchor: middle } .num { font-weight: 600 } .s1 { font-size: 11px } .s2 { font-size: 9.5px } .s3 { font-size: 8px }\n"
	    ".gpu circle { fill: var(--node); stroke: var(--rim); stroke-width: 1.5 } .root circle { stroke-width: 3.5 }\n"
	    ".box { fill: var(--node); stroke: var(--rim) } .frame { fill: var(--frame); stroke: var(--dim); stroke-opacity: .4 }\n"
	    ".lane { fill: none; opacity: .28 } .load, .edge { fill: none } .edge { stroke-width: 2 }\n"
	    ".tick { stroke: var(--tight); stroke-width: 2.5; fill: none }\n");
	for (int c = 0; c < N_LINK_CLASSES; c++) {
		text_printf(out, ".c-%s { stroke: var(--%s) } ", class_names[c], class_names[c]);
		text_printf(out, ".head.c-%s { fill: var(--%s); stroke: none }\n", class_names[c], class_names[c]);
	}
	for (int p = 0; p < PARTS; p++)
		text_printf(out, ".gpu.p%d circle, .p%d .box { fill: var(--p%d) }\n", p, p, p);
	text_put(out, "</style>\n");
}

static void
put_number(Text *out, double value)
{
	char digits[32];
	snprintf(digits, sizeof digits, "%.1f", value);
	text_put(out, strcmp(digits, "-0.0") == 0 ? "0.0" : digits);
}

static void
put_pair(Text *out, const char *a, double x, const char *b, double y)
{
	text_put(out, a);
	put_number(out, x);
	text_put(out, b);
	put_number(out, y);
}

static void
put_text(Text *out, const char *class, double x, double y, const char *text)
{
	text_printf(out, "<text class=\"%s\" ", class);
	put_pair(out, "x=\"", x, "\" y=\"", y);
	text_put(out, "\">");
	text_xml(out, text);
	text_put(out, "</text>\n");
}

/* Lines of so many columns, broken at blanks where there are some. Returns the y of the next line. */
static double
put_wrapped(Text *out, const char *class, double x, double y, double height, const char *text)
{
	while (*text) {
		char line[4 * COLUMNS + 1];
		size_t n = 0, blank = 0;
		int columns = 0;
		for (; text[n] && columns < COLUMNS; columns++) {
			if (text[n] == ' ')
				blank = n;
			n++;
			while (((unsigned char)text[n] & 0xc0) == 0x80)
				n++;
		}
		if (text[n] && blank > 0)
			n = blank;
		snprintf(line, sizeof line, "%.*s", (int)n, text);
		put_text(out, class, x, y, line);
		y += height;
		text += n + (text[n] == ' ');
	}
	return y;
}

/* ---- the topology ---- */

static double
lane_width(double capacity, double most)
{
	return 1.6 + 5.4 * capacity / most;
}

/* The lane from `from` to `to`, on the right of the line between them. */
static void
put_lane(Text *out, const Spot *from, const Spot *to, const Cable *cable, int way, double most, bool ticks)
{
	double dx = to->x - from->x, dy = to->y - from->y, length = sqrt(dx * dx + dy * dy);
	double width = lane_width(cable->capacity[way], most);
	if (cable->capacity[way] == 0 || length < 1)
		return;
	double nx = -dy / length, ny = dx / length, off = width / 2 + 0.6;
	for (int full = 0; full < 2; full++) {
		double stroke = full ? width * cable->load[way] / cable->capacity[way] : width;
		if (stroke < 0.05)
			continue;
		text_printf(out, "<path class=\"%s c-%s\" ", full ? "load" : "lane", class_names[cable->class]);
		put_pair(out, "d=\"M", from->x + nx * off, " ", from->y + ny * off);
		if (cable->bend > 0)
			put_pair(out, "Q", (from->x + to->x) / 2 + nx * off, " ", (from->y + to->y) / 2 + ny * off - 2 * cable->bend);
		put_pair(out, cable->bend > 0 ? " " : "L", to->x + nx * off, " ", to->y + ny * off);
		text_put(out, "\" stroke-width=\"");
		put_number(out, stroke < 0.6 ? 0.6 : stroke);
		text_put(out, full ? "\"/>\n" : "\">");
		if (full)
			continue;
		text_put(out, "<title>");
		text_xml(out, from->label);
		text_put(out, " to ");
		text_xml(out, to->label);
		text_printf(out, ", %s: ", class_names[cable->class]);
		put_figures(out, cable->load[way]);
		text_put(out, " of ");
		put_figures(out, cable->capacity[way]);
		text_put(out, " GB/s</title></path>\n");
	}
	if (!cable->tight[way] || !ticks || cable->bend > 0)
		return;
	/* Across the lane, near where it begins, outside of what is drawn there. */
	double start = fmin(0.34, (fmax(from->w, from->h) / 2 + 9) / length), x = from->x + dx * start, y = from->y + dy * start;
	put_pair(out, "<path class=\"tick\" d=\"M", x + nx * (off - width / 2 - 1), " ", y + ny * (off - width / 2 - 1));
	put_pair(out, "L", x + nx * (off + width / 2 + 2.4), " ", y + ny * (off + width / 2 + 2.4));
	text_put(out, "\"/>\n");
}

/* Which colour: the side of a cut, or a part that is more than a GPU; NULL: none. */
static const char *
part_of(const Explained *e, const Spot *spot)
{
	static const char *const names[PARTS] = { " p0", " p1", " p2", " p3", " p4", " p5" };
	const Bound *bound = &e->sched->bound;
	if (bound->kind == CERTIFICATE_CUT)
		return bound->part[spot->vertex] == 1 ? names[0] : "";
	if (bound->kind == CERTIFICATE_PARTITION && bound->n_parts < e->sched->topo->n_ranks && bound->part[spot->vertex] >= 0)
		return names[bound->part[spot->vertex] % PARTS];
	return "";
}

static void
put_spot(Text *out, const Explained *e, const Spot *spot)
{
	if (spot->rank >= 0) {
		text_printf(out, "<g class=\"gpu%s%s\"><title>", spot->rank == e->sched->root ? " root" : "", part_of(e, spot));
		text_xml(out, e->name[spot->rank]);
		text_printf(out, ", rank %d</title>", spot->rank);
		put_pair(out, "<circle cx=\"", spot->x, "\" cy=\"", spot->y);
		put_pair(out, "\" r=\"", spot->w / 2, strlen(spot->label) > 3 ? "\"/><text class=\"num s1\" x=\"" : "\"/><text class=\"num\" x=\"", spot->x);
		text_put(out, "\" y=\"");
		put_number(out, spot->y + 4.6);
	} else {
		text_printf(out, "<g class=\"spot%s\"><title>", part_of(e, spot));
		text_xml(out, spot->whole ? spot->label : e->name[spot->vertex]);
		put_pair(out, "</title><rect class=\"box\" rx=\"5\" x=\"", spot->x - spot->w / 2, "\" y=\"", spot->y - spot->h / 2);
		put_pair(out, "\" width=\"", spot->w, "\" height=\"", spot->h);
		put_pair(out, "\"/><text class=\"mid\" x=\"", spot->x, "\" y=\"", spot->y + 4.4);
	}
	text_put(out, "\">");
	text_xml(out, spot->label);
	text_put(out, "</text></g>\n");
}

/* Where all lanes count in the bound, a mark on each says nothing. */
static bool
some_count(const Layout *layout, bool count)
{
	for (int c = 0; c < layout->n_cables; c++)
		for (int way = 0; way < 2; way++)
			if (layout->cable[c].capacity[way] > 0 && layout->cable[c].tight[way] == count)
				return true;
	return false;
}

void
svg_topology(const Explained *e, const Layout *layout, double x, double y, Text *out)
{
	double most = 0;
	bool ticks = some_count(layout, false);
	put_pair(out, "<g class=\"topology\" transform=\"translate(", x, " ", y);
	text_put(out, ")\">\n");
	for (int c = 0; c < layout->n_cables; c++)
		most = fmax(most, fmax(layout->cable[c].capacity[0], layout->cable[c].capacity[1]));
	/* A thicket has thin branches. */
	most *= layout->n_cables > MANY_CABLES ? 3 : 1;
	for (int f = 0; f < layout->n_frames; f++) {
		const Frame *frame = &layout->frame[f];
		put_pair(out, "<rect class=\"frame\" rx=\"10\" x=\"", frame->x, "\" y=\"", frame->y);
		put_pair(out, "\" width=\"", frame->w, "\" height=\"", frame->h);
		text_put(out, "\"/>\n");
		put_text(out, "note", frame->x + 9, frame->y + 16, frame->label);
	}
	for (int c = 0; c < layout->n_cables; c++) {
		const Cable *cable = &layout->cable[c];
		put_lane(out, &layout->spot[cable->a], &layout->spot[cable->b], cable, 0, most, ticks);
		put_lane(out, &layout->spot[cable->b], &layout->spot[cable->a], cable, 1, most, ticks);
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
	put_text(out, "title", MARGIN, y + 18, line.data ? line.data : "");
	line.size = 0;
	put_figures(&line, frac_double(sched->achieved) / 1e9);
	text_put(&line, " GB/s; no algorithm has more than ");
	put_figures(&line, frac_double(sched->bound.rate) / 1e9);
	text_printf(&line, " GB/s; %d tree%s", sched->n_segments, sched->n_segments == 1 ? "" : "s");
	if (sched->root >= 0)
		text_printf(&line, "; root %s", e->name[sched->root]);
	y = put_wrapped(out, "name", MARGIN, y + 42, 18, line.data ? line.data : "");
	line.size = 0;
	put_arithmetic(&line, e);
	y = put_wrapped(out, "note", MARGIN, y, 17, line.data ? line.data : "");
	out->failed = out->failed || line.failed;
	text_free(&line);
	return y;
}

static double
put_legend(Text *out, const Explained *e, const Layout *layout, double y)
{
	unsigned classes = 0;
	bool tight = some_count(layout, true), all = !some_count(layout, false), parts = false;
	double x = MARGIN;
	for (int c = 0; c < layout->n_cables; c++)
		classes |= 1u << layout->cable[c].class;
	for (int p = 0; p < layout->n_spots; p++)
		parts = parts || *part_of(e, &layout->spot[p]);
	for (int c = 0; c < N_LINK_CLASSES; c++) {
		if (!(classes >> c & 1))
			continue;
		text_printf(out, "<path class=\"load c-%s\" stroke-width=\"5\" ", class_names[c]);
		put_pair(out, "d=\"M", x, " ", y - 4);
		put_pair(out, "L", x + 24, " ", y - 4);
		text_put(out, "\"/>");
		put_text(out, "note", x + 30, y, class_names[c]);
		x += 86;
	}
	if (tight && all) {
		put_text(out, "note", x, y, "all links count in the bound");
	} else if (tight) {
		put_pair(out, "<path class=\"tick\" d=\"M", x + 6, " ", y - 10);
		put_pair(out, "L", x + 6, " ", y + 1);
		text_put(out, "\"/>");
		put_text(out, "note", x + 14, y, parts ? "counts in the bound (coloured: side or parts)" : "counts in the bound");
	}
	y += 18;
	put_text(out, "note", MARGIN, y, "Each direction has the lane on its right: pale as wide as its capacity, dark as far as it is used.");
	if (layout->left_out || layout->aggregated) {
		char line[160];
		snprintf(line, sizeof line, layout->aggregated ? "Servers are drawn as one; links inside them are left out%.0d"
		    : "%d GPUs are left out", layout->left_out);
		if (layout->aggregated && layout->left_out)
			snprintf(line, sizeof line, "Servers are drawn as one, links inside them and %d more servers are left out",
			    layout->left_out);
		y += 18;
		put_text(out, "note", MARGIN, y, line);
	}
	return y + 10;
}

/* Pictures of trees on a grid, each as many columns wide as it needs; rows are as high as the highest in them. */
static double
put_trees(Text *out, TreePicture *picture, const int *tree, int n, double y)
{
	double unit = (double)(PAGE - 2 * MARGIN + GUTTER) / GRID, height = 0;
	int column = 0;
	for (int i = 0; i < n; i++) {
		svg_tree_size(picture, tree[i]);
		int span = (int)ceil((picture->w + GUTTER) / unit);
		if (column > 0 && column + span > GRID) {
			y += height + 22;
			column = 0;
			height = 0;
		}
		svg_tree(picture, tree[i], MARGIN + column * unit, y, out);
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
	int *tree, n = 0, most = ask->trees ? e->sched->n_segments : MANY_TREES;
	bool *chosen;
	char line[80];
	TRY(TEMP(ctx, chosen, e->sched->n_segments));
	TRY(TEMP(ctx, tree, e->sched->n_segments));
	TRY(parse_trees(ctx, e, ask->trees, chosen));
	for (int t = 0; t < e->sched->n_segments; t++)
		if (chosen[t])
			tree[n++] = t;
	TRY(ask->layout ? layout_graphviz(ctx, e, ask->layout, &layout) : layout_own(ctx, e, &layout));
	double y = put_head(body, e, MARGIN) + 14;
	svg_topology(e, &layout, (PAGE - layout.w) / 2, y, body);
	y = put_legend(body, e, &layout, y + layout.h + 30) + 18;
	TRY(svg_tree_new(ctx, e, &picture));
	y = put_trees(body, &picture, tree, n < most ? n : most, y);
	if (n > most) {
		snprintf(line, sizeof line, "%d more trees; --tree N draws tree N", n - most);
		put_text(body, "note", MARGIN, y + 14, line);
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
	text_printf(out, "%s over %d GPUs of ", collective_name(e->sched->coll), e->sched->topo->n_ranks);
	text_xml(out, e->sched->topo->name);
	text_put(out, "</title>\n");
	svg_style(out);
	text_printf(out, "<rect width=\"%d\" height=\"%d\" style=\"fill: var(--paper)\"/>\n", PAGE, (int)height);
	text_put(out, body.data ? body.data : "");
	text_put(out, "</svg>\n");
	out->failed = out->failed || body.failed;
	text_free(&body);
	arena_release(&ctx->scratch, mark);
	return status;
}
