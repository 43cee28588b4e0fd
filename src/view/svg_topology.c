/* The part of a page that is the topology: lanes of links, GPUs, switches and servers. */
#include "view/parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MANY_CABLES = 100 };

/* Width of lanes: that of capacity `most` is the widest; where there are many, all are thinner. */
struct lanes {
	double most, thin;
	bool ticks, loads;
};

static double
lane_width(const struct lanes *lanes, double capacity)
{
	return (1.6 + 5.4 * capacity / lanes->most) * lanes->thin;
}

static struct lanes
lanes_of(const Layout *layout)
{
	double thin = layout->n_cables > MANY_CABLES ? fmax(0.15, (double)MANY_CABLES / layout->n_cables) : 1;
	struct lanes lanes = { .thin = thin, .ticks = svg_any_lane(layout, false) };
	for (int c = 0; c < layout->n_cables; c++)
		lanes.most = fmax(lanes.most, fmax(layout->cable[c].capacity[0], layout->cable[c].capacity[1]));
	return lanes;
}

double
svg_lane_width(const Layout *layout, double capacity)
{
	struct lanes lanes = lanes_of(layout);
	return lane_width(&lanes, capacity);
}

void
svg_cable_label(Text *out, const Cable *cable, int direction)
{
	bool plain = cable->count[direction] <= 1 || cable->mixed[direction];
	if (!plain)
		text_printf(out, "%d x ", cable->count[direction]);
	text_printf(out, "%.6g",
	    plain ? cable->capacity[direction] : cable->capacity[direction] / cable->count[direction]);
}

/* "20 of 50 GB/s"; of a machine "2 x 25 GB/s" */
static void
put_use(Text *out, const Cable *cable, int direction, bool loads)
{
	if (loads) {
		text_printf(out, "%.6g of %.6g GB/s", cable->load[direction], cable->capacity[direction]);
	} else {
		svg_cable_label(out, cable, direction);
		text_put(out, " GB/s");
	}
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
		put_use(out, cable, direction, lanes->loads);
		text_put(out, "</title></path>\n");
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

const char *
svg_part_class(const Explained *e, const Spot *spot)
{
	static const char *const names[SVG_PARTS] = { " p0", " p1", " p2", " p3", " p4", " p5" };
	const Bound *bound = e->sched ? &e->sched->bound : NULL;
	if (!bound)
		return "";
	if (bound->kind == CERTIFICATE_CUT)
		return bound->part[spot->vertex] == 1 ? names[0] : "";
	if (spot->n_same > 1)
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
		bool root = e->sched && spot->rank == e->sched->root;
		text_printf(out, "<g class=\"gpu%s%s\"><title>", root ? " root" : "",
		    svg_part_class(e, spot));
		text_xml(out, e->name[spot->rank]);
		if (e->sched)
			text_printf(out, ", rank %d", spot->rank);
		text_put(out, "</title>");
		svg_pair(out, "<circle cx=\"", spot->x, "\" cy=\"", spot->y);
		const char *number = strlen(spot->label) > 3 ? "\"/><text class=\"num s1\" x=\""
		    : "\"/><text class=\"num\" x=\"";
		svg_pair(out, "\" r=\"", spot->w / 2, number, spot->x);
		text_put(out, "\" y=\"");
		svg_number(out, spot->y + 4.6);
	} else {
		text_printf(out, "<g class=\"spot%s\"><title>", svg_part_class(e, spot));
		text_xml(out, spot->is_server || spot->n_same > 1 ? spot->label : e->name[spot->vertex]);
		text_put(out, "</title>");
		if (spot->n_same > 1)
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

bool
svg_any_lane(const Layout *layout, bool tight)
{
	for (int c = 0; c < layout->n_cables; c++)
		for (int direction = 0; direction < 2; direction++)
			if (layout->cable[c].capacity[direction] > 0 && layout->cable[c].tight[direction] == tight)
				return true;
	return false;
}

void
svg_place(Text *out, const char *class, const Layout *layout, double x, double y)
{
	text_printf(out, "<g class=\"%s\" transform=\"translate(", class);
	svg_pair(out, "", x, " ", y);
	if (layout->scale < 1) {
		char scale[32];
		snprintf(scale, sizeof scale, ") scale(%.4f", layout->scale);
		text_put(out, scale);
	}
	text_put(out, ")\">\n");
}

void
svg_topology(const Explained *e, const Layout *layout, double x, double y, Text *out)
{
	struct lanes lanes = lanes_of(layout);
	lanes.loads = e->sched;
	lanes.ticks = lanes.ticks && e->sched;
	svg_place(out, "topology", layout, x, y);
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
