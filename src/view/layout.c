/* Positions of servers, and of the switches between them. All numbers come from additions, products and square roots,
 * which are the same on every machine. */
#include "view/parts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	TOO_WIDE = 1040,	/* px, of GPUs of several servers */
	MAX_GPUS = 64,		/* drawn, of a single server */
	MAX_SERVERS = 24,	/* drawn as one spot each */
	MAX_SWITCHES = 24,	/* drawn between servers */
	GPU_SIZE = 34,
	BOX_HEIGHT = 20
};

/* ---- places ---- */

/* A name without its server and direction. */
static Status
label_of(Ctx *ctx, const char *name, const char **out)
{
	const char *slash = strrchr(name, '/');
	const char *from = slash && slash[1] ? slash + 1 : name;
	size_t n = device_length(from);
	char *label = arena_text(&ctx->run, from, n > 12 ? 12 : n);
	*out = label;
	return label ? OK : fail_memory(ctx);
}

static int
add_spot(Layout *out, Spot spot)
{
	out->spot[out->n_spots] = spot;
	return out->n_spots++;
}

static Status
add_gpus(Ctx *ctx, const Explained *e, Layout *out)
{
	const Topology *topo = e->topo;
	int others = 0;
	for (int v = 0; v < topo->n_vertices; v++) {
		const char *label;
		out->spot_of[v] = -1;
		if (v < topo->n_ranks && v >= MAX_GPUS) {
			out->left_out++;
		} else if (v < topo->n_ranks) {
			out->spot_of[v] = add_spot(out, (Spot){ v, v, e->server[v], false, 1, e->short_name[v], 0, 0,
			    GPU_SIZE, GPU_SIZE });
		} else if (e->device[v] != v) {
			out->spot_of[v] = out->spot_of[e->device[v]];
		} else if (others < 4 * MAX_SWITCHES) {
			TRY(label_of(ctx, e->name[v], &label));
			double w = 12 + 7.0 * (double)strlen(label);
			out->spot_of[v] = add_spot(out, (Spot){ -1, v, e->server[v], false, 1, label, 0, 0, w,
			    BOX_HEIGHT });
			others++;
		}
	}
	return OK;
}

/* Servers, and switches that are in none. */
static Status
add_servers(Ctx *ctx, const Explained *e, Layout *out)
{
	const Topology *topo = e->topo;
	int *gpus, *first;
	TRY(TEMP_EACH(ctx, e->n_servers, gpus, first));
	out->aggregated = true;
	for (int r = topo->n_ranks - 1; r >= 0; r--) {
		gpus[e->server[r]]++;
		first[e->server[r]] = r;
	}
	for (int s = 0; s < e->n_servers; s++) {
		char text[64];
		const char *label;
		snprintf(text, sizeof text, "%.8s: %d GPU%s", topo->node[s], gpus[s], gpus[s] == 1 ? "" : "s");
		TRY(printable_line(ctx, text, &label));
		add_spot(out, (Spot){ -1, first[s], s, true, 1, label, 0, 0, 12 + 7.0 * (double)strlen(label), 26 });
	}
	for (int v = 0; v < topo->n_vertices; v++) {
		const char *label;
		int s = e->server[v];
		out->spot_of[v] = s;
		if (s >= 0)
			continue;
		if (e->device[v] != v) {
			out->spot_of[v] = out->spot_of[e->device[v]];
		} else {
			TRY(label_of(ctx, e->name[v], &label));
			out->spot_of[v] = add_spot(out, (Spot){ -1, v, -1, false, 1, label, 0, 0,
			    12 + 7.0 * (double)strlen(label), BOX_HEIGHT });
		}
	}
	return OK;
}

/* The first of each kind stay. */
static Status
leave_out(Ctx *ctx, const Explained *e, Layout *out)
{
	int *place, servers = 0, others = 0, n = 0;
	TRY(TEMP(ctx, place, out->n_spots));
	for (int p = 0; p < out->n_spots; p++) {
		const Spot *spot = &out->spot[p];
		bool stays = spot->is_server ? servers++ < MAX_SERVERS : others++ < MAX_SWITCHES;
		place[p] = stays ? n : -1;
		out->left_out += stays || !spot->is_server ? 0 : spot->n_same;
		if (stays)
			out->spot[n++] = *spot;
	}
	for (int v = 0; v < e->topo->n_vertices; v++)
		out->spot_of[v] = out->spot_of[v] < 0 ? -1 : place[out->spot_of[v]];
	out->n_spots = n;
	return OK;
}

/* ---- cables ---- */

/* A link between spots a < b; lead: the first link of its cable. */
struct strand {
	int a, b, link, lead;
	LinkClass class;
};

static int
by_ends(const void *a, const void *b)
{
	const struct strand *x = a, *y = b;
	if (x->a != y->a)
		return x->a - y->a;
	if (x->b != y->b)
		return x->b - y->b;
	return x->class != y->class ? (int)x->class - (int)y->class : x->link - y->link;
}

static int
by_lead(const void *a, const void *b)
{
	const struct strand *x = a, *y = b;
	return x->lead != y->lead ? x->lead - y->lead : x->link - y->link;
}

static bool
same_cable(const struct strand *x, const struct strand *y)
{
	return x->a == y->a && x->b == y->b && x->class == y->class;
}

static int
list_strands(const Explained *e, const Layout *out, struct strand *strand)
{
	int n = 0;
	for (int l = 0; l < e->topo->n_links; l++) {
		const Link *link = &e->topo->link[l];
		int a = out->spot_of[link->from], b = out->spot_of[link->to];
		if (a >= 0 && b >= 0 && a != b)
			strand[n++] = (struct strand){ a < b ? a : b, a < b ? b : a, l, l, link->class };
	}
	qsort(strand, (size_t)n, sizeof *strand, by_ends);
	for (int i = 1; i < n; i++)
		if (same_cable(&strand[i - 1], &strand[i]))
			strand[i].lead = strand[i - 1].lead;
	qsort(strand, (size_t)n, sizeof *strand, by_lead);
	return n;
}

/* In the order of their first links. */
static Status
find_cables(Ctx *ctx, const Explained *e, Layout *out)
{
	struct strand *strand;
	TRY(TEMP(ctx, strand, e->topo->n_links));
	int n = list_strands(e, out, strand);
	out->n_cables = 0;
	for (int i = 0; i < n; i++) {
		int l = strand[i].link;
		bool back = out->spot_of[e->topo->link[l].from] != strand[i].a;
		if (i == 0 || strand[i].lead != strand[i - 1].lead)
			out->cable[out->n_cables++] = (Cable){ .a = strand[i].a, .b = strand[i].b,
				.class = strand[i].class };
		Cable *cable = &out->cable[out->n_cables - 1];
		double each = explain_capacity(e, l) / e->topo->link[l].count;
		cable->mixed[back] = cable->mixed[back] || (cable->count[back] > 0
		    && fabs(cable->capacity[back] / cable->count[back] - each) > each * 1e-9);
		cable->count[back] += e->topo->link[l].count;
		cable->capacity[back] += explain_capacity(e, l);
		cable->load[back] += e->load[l];
		cable->saturated[back] = cable->saturated[back] || e->saturated[l];
		cable->tight[back] = cable->tight[back] || e->tight[l];
	}
	return OK;
}

/* ---- all of them ---- */

static Frame
extent_of(const Layout *out, int s)
{
	double left = 1e9, top = 1e9, right = -1e9, bottom = -1e9;
	for (int p = 0; p < out->n_spots; p++) {
		const Spot *spot = &out->spot[p];
		if (spot->server != s)
			continue;
		left = fmin(left, spot->x - spot->w / 2);
		right = fmax(right, spot->x + spot->w / 2);
		top = fmin(top, spot->y - spot->h / 2);
		bottom = fmax(bottom, spot->y + spot->h / 2);
	}
	return (Frame){ NULL, left, top, right - left, bottom - top };
}

static void
shift(Layout *out, int s, double x, double y)
{
	for (int p = 0; p < out->n_spots; p++)
		if (out->spot[p].server == s) {
			out->spot[p].x += x;
			out->spot[p].y += y;
		}
}

/* Hops of switches between servers from the servers. Returns the width of the widest row. */
static double
find_switch_levels(struct layout_work *work)
{
	Layout *out = work->out;
	double width[LAYOUT_LEVELS + 1] = { 0 }, most = 0;
	int other;
	for (int p = 0; p < out->n_spots; p++)
		work->level[p] = out->spot[p].server >= 0 ? 0 : LAYOUT_LEVELS;
	for (int level = 1; level < LAYOUT_LEVELS; level++)
		for (int c = 0; c < out->n_cables; c++)
			for (int end = 0; end < 2; end++) {
				int p = end ? out->cable[c].b : out->cable[c].a;
				if (work->level[p] == LAYOUT_LEVELS && cable_joins(&out->cable[c], p, &other)
				    && work->level[other] == level - 1)
					work->level[p] = level;
			}
	for (int p = 0; p < out->n_spots; p++)
		if (out->spot[p].server < 0)
			width[work->level[p]] += out->spot[p].w + 24;
	for (int level = 1; level <= LAYOUT_LEVELS; level++)
		most = fmax(most, width[level]);
	return most;
}

/* Switches between servers, in rows by hops from them, as many in a row as fit. */
static double
place_switches(struct layout_work *work, double top, double width)
{
	Layout *out = work->out;
	for (int level = 1; level <= LAYOUT_LEVELS; level++) {
		double used = 0;
		int first = -1, n = 0;
		for (int p = 0; p <= out->n_spots; p++) {
			bool mine = p < out->n_spots && out->spot[p].server < 0 && work->level[p] == level;
			if (n > 0 && (p == out->n_spots || (mine && used + out->spot[p].w + 24 > width))) {
				/* The row is full, or the last: spread it over the width. */
				double space = (width - used) / n, x = 0;
				for (int q = first; q < p; q++) {
					if (out->spot[q].server >= 0 || work->level[q] != level)
						continue;
					x += space / 2 + 12;
					out->spot[q].x = x + out->spot[q].w / 2;
					out->spot[q].y = top + out->spot[q].h / 2;
					x += out->spot[q].w + space / 2 + 12;
				}
				top += BOX_HEIGHT + 34;
				used = n = 0;
			}
			if (mine) {
				first = n == 0 ? p : first;
				used += out->spot[p].w + 24;
				n++;
			}
		}
	}
	return top;
}

/* Frames of servers in rows; switches between servers after the first half of the rows. */
static Status
place_frames(Ctx *ctx, struct layout_work *work)
{
	Layout *out = work->out;
	const Explained *e = work->e;
	double pad = out->aggregated ? 0 : 14, head = out->aggregated ? 0 : 18,
	    gap = out->aggregated ? 14 : 24, width = 0;
	int shown = e->n_servers;
	Frame *frame;
	if (out->aggregated) {
		shown = 0;
		for (int p = 0; p < out->n_spots; p++)
			if (out->spot[p].is_server)
				out->spot[p].server = shown++;
	}
	int per_row = shown;
	TRY(NEW(ctx, frame, shown));
	for (int s = 0; s < shown; s++) {
		frame[s] = extent_of(out, s);
		width = fmax(width, frame[s].w + 2 * pad);
	}
	/* Two rows, so that no link to the switches between them crosses a server; or one of a few spots. */
	if (!out->aggregated || per_row * width + (per_row - 1) * gap > LAYOUT_WIDTH)
		per_row = (shown + 1) / 2;
	int rows = (shown + per_row - 1) / per_row, between = (rows + 1) / 2;
	per_row = (shown + rows - 1) / rows;
	double y = 0, all = per_row * width + (per_row - 1) * gap;
	double widest = find_switch_levels(work);
	bool any = widest > 0;
	all = any ? fmax(all, fmax(420, fmin(LAYOUT_WIDTH, widest))) : all;
	for (int row = 0; row < rows; row++) {
		double height = 0;
		int in_row = shown - row * per_row < per_row ? shown - row * per_row : per_row;
		double left = (all - in_row * width - (in_row - 1) * gap) / 2;
		if (row == between && any)
			y = place_switches(work, y + 26, all);
		for (int s = row * per_row; s < row * per_row + in_row; s++)
			height = fmax(height, frame[s].h + 2 * pad + head);
		for (int s = row * per_row; s < row * per_row + in_row; s++, left += width + gap) {
			shift(out, s, left + (width - frame[s].w) / 2 - frame[s].x,
			    y + head + (height - head - frame[s].h) / 2 - frame[s].y);
			frame[s] = (Frame){ NULL, left, y, width, height };
			if (!out->aggregated)
				TRY(printable_line(ctx, e->topo->node[s], &frame[s].label));
		}
		y += height + gap;
	}
	if (between >= rows && any)
		y = place_switches(work, y + 22, all);
	out->n_frames = out->aggregated ? 0 : shown;
	out->frame = frame;
	out->w = all;
	out->h = y - (between >= rows && any ? 34 : gap);
	return OK;
}

static Status
place_single(Ctx *ctx, struct layout_work *work)
{
	Layout *out = work->out;
	for (int p = 0; p < out->n_spots; p++)
		out->spot[p].server = 0;
	TRY(layout_server(ctx, work, 0));
	Frame extent = extent_of(out, 0);
	shift(out, 0, -extent.x, -extent.y);
	out->w = extent.w;
	out->h = extent.h;
	return OK;
}

static Status
add_spots(Ctx *ctx, const Explained *e, bool detailed, Layout *out)
{
	const Topology *topo = e->topo;
	*out = (Layout){ 0 };
	TRY(NEW(ctx, out->spot, topo->n_vertices + e->n_servers));
	TRY(NEW(ctx, out->spot_of, topo->n_vertices));
	TRY(NEW(ctx, out->cable, topo->n_links));
	TRY(detailed ? add_gpus(ctx, e, out) : add_servers(ctx, e, out));
	TRY(find_cables(ctx, e, out));
	if (detailed)
		return OK;
	TRY(layout_merge_same(ctx, e, out));
	TRY(leave_out(ctx, e, out));
	return find_cables(ctx, e, out);
}

Status
layout_spots(Ctx *ctx, const Explained *e, Layout *out)
{
	return add_spots(ctx, e, true, out);
}

static Status
layout_by(Ctx *ctx, const Explained *e, bool detailed, Layout *out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct layout_work work = { .e = e, .out = out };
	TRY(add_spots(ctx, e, detailed, out));
	TRY(TEMP(ctx, work.level, out->n_spots));
	if (e->n_servers == 1) {
		TRY(place_single(ctx, &work));
	} else {
		for (int s = 0; s < e->n_servers && detailed; s++)
			TRY(layout_server(ctx, &work, s));
		TRY(place_frames(ctx, &work));
	}
	out->scale = out->w > LAYOUT_WIDTH ? LAYOUT_WIDTH / out->w : 1;
	arena_release(&ctx->scratch, mark);
	return OK;
}

Status
layout_own(Ctx *ctx, const Explained *e, Layout *out)
{
	bool single = e->n_servers == 1;
	TRY(layout_by(ctx, e, single || e->topo->n_ranks <= DETAILED_GPUS, out));
	/* Scaled to the page, it would be too small to read. */
	if (!single && !out->aggregated && out->w > TOO_WIDE)
		TRY(layout_by(ctx, e, false, out));
	return OK;
}
