/* Places of GPUs, switches and servers in a picture. All numbers come from additions, products and square roots, which are the same
 * on every machine. */
#include "layout.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
	DETAIL = 32,		/* GPUs that are drawn one by one */
	RING_MOST = 64,		/* of a single server */
	SERVERS_MOST = 24,	/* servers that are drawn as one place each */
	OTHERS_MOST = 24,	/* switches between them */
	GPU_SIZE = 34,
	BOX_HEIGHT = 20,
	GAP = 10,
	LEVELS = 8
};

/* ---- circles ---- */

/* Cosine of a part of a turn, by its series. */
static double
cosine(double turn)
{
	double x = turn - floor(turn);
	x = x > 0.5 ? 1 - x : x;
	bool left = x > 0.25;
	x = (left ? 0.5 - x : x) * 6.283185307179586;
	double term = 1, sum = 1;
	for (int i = 1; i < 12; i++) {
		term = -term * x * x / ((2 * i - 1) * (2 * i));
		sum += term;
	}
	return left ? -sum : sum;
}

static double
sine(double turn)
{
	return cosine(turn - 0.25);
}

/* ---- places ---- */

struct plan {
	const Explained *e;
	Layout *out;
	int *level;		/* of each spot: hops from a GPU of its server, or between servers */
};

/* Without the server in front and the direction behind. */
static Status
label_of(Ctx *ctx, const char *name, const char **out)
{
	const char *slash = strrchr(name, '/');
	const char *from = slash && slash[1] ? slash + 1 : name;
	size_t n = strlen(from);
	if (n > 4 && strcmp(from + n - 4, ":out") == 0)
		n -= 4;
	else if (n > 3 && strcmp(from + n - 3, ":in") == 0)
		n -= 3;
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
detailed_places(Ctx *ctx, const Explained *e, Layout *out)
{
	const Topology *topo = e->sched->topo;
	int others = 0;
	for (int v = 0; v < topo->n_vertices; v++) {
		const char *label;
		out->spot_of[v] = -1;
		if (v < topo->n_ranks && v >= RING_MOST) {
			out->left_out++;
		} else if (v < topo->n_ranks) {
			out->spot_of[v] = add_spot(out, (Spot){ v, v, e->server[v], false, e->shortly[v], 0, 0, GPU_SIZE, GPU_SIZE });
		} else if (e->twin[v] != v) {
			out->spot_of[v] = out->spot_of[e->twin[v]];
		} else if (others < 4 * OTHERS_MOST) {
			TRY(label_of(ctx, e->name[v], &label));
			double w = 12 + 7.0 * (double)strlen(label);
			out->spot_of[v] = add_spot(out, (Spot){ -1, v, e->server[v], false, label, 0, 0, w, BOX_HEIGHT });
			others++;
		}
	}
	return OK;
}

/* Servers, and what is in none. */
static Status
aggregated_places(Ctx *ctx, const Explained *e, Layout *out)
{
	const Topology *topo = e->sched->topo;
	int others = 0;
	out->aggregated = true;
	for (int s = 0; s < e->n_servers; s++) {
		char text[64];
		const char *label;
		int gpus = 0, first = 0;
		for (int r = topo->n_ranks - 1; r >= 0; r--)
			if (e->server[r] == s) {
				first = r;
				gpus++;
			}
		snprintf(text, sizeof text, "%.8s: %d GPU%s", topo->node[s], gpus, gpus == 1 ? "" : "s");
		TRY(explain_line(ctx, text, &label));
		if (s < SERVERS_MOST)
			add_spot(out, (Spot){ -1, first, s, true, label, 0, 0, 12 + 7.0 * (double)strlen(label), 26 });
		else
			out->left_out++;
	}
	for (int v = 0; v < topo->n_vertices; v++) {
		const char *label;
		int s = e->server[v];
		out->spot_of[v] = s >= 0 && s < SERVERS_MOST ? s : -1;
		if (s >= 0)
			continue;
		if (e->twin[v] != v) {
			out->spot_of[v] = out->spot_of[e->twin[v]];
		} else if (others++ < OTHERS_MOST) {
			TRY(label_of(ctx, e->name[v], &label));
			out->spot_of[v] = add_spot(out, (Spot){ -1, v, -1, false, label, 0, 0, 12 + 7.0 * (double)strlen(label), BOX_HEIGHT });
		}
	}
	return OK;
}

static void
find_cables(const Explained *e, Layout *out)
{
	const Topology *topo = e->sched->topo;
	for (int l = 0, c; l < topo->n_links; l++) {
		const Link *link = &topo->link[l];
		int a = out->spot_of[link->from], b = out->spot_of[link->to];
		if (a < 0 || b < 0 || a == b)
			continue;
		bool back = a > b;
		Cable one = { .a = back ? b : a, .b = back ? a : b, .class = link->class };
		for (c = 0; c < out->n_cables; c++)
			if (out->cable[c].a == one.a && out->cable[c].b == one.b && out->cable[c].class == one.class)
				break;
		if (c == out->n_cables)
			out->cable[out->n_cables++] = one;
		Cable *cable = &out->cable[c];
		cable->capacity[back] += explain_capacity(e, l);
		cable->load[back] += e->load[l];
		cable->full[back] = cable->full[back] || e->full[l];
		cable->tight[back] = cable->tight[back] || e->tight[l];
	}
}

/* ---- one server ---- */

static bool
joins(const Cable *cable, int p, int *other)
{
	*other = cable->a == p ? cable->b : cable->a;
	return cable->a == p || cable->b == p;
}

/* How much two GPUs want to be near: by links of their own, and a little by a switch that both have. */
static double
attraction(const Layout *out, int p, int q)
{
	double sum = 0;
	int x, y;
	for (int c = 0; c < out->n_cables; c++) {
		const Cable *cable = &out->cable[c];
		if (!joins(cable, p, &x))
			continue;
		if (x == q)
			sum += cable->capacity[0] + cable->capacity[1];
		for (int d = 0; d < out->n_cables && out->spot[x].rank < 0; d++)
			if (joins(&out->cable[d], q, &y) && y == x)
				sum += cable->capacity[0];
	}
	return sum;
}

static double
circle_cost(const double *pull, const double *distance, const int *seat, int n)
{
	double sum = 0;
	for (int i = 0; i < n; i++)
		for (int j = 0; j < i; j++)
			sum += pull[seat[i] * n + seat[j]] * distance[i - j];
	return sum;
}

/* Those from i to j sit the other way round, or these two change seats. */
static void
change(int *seat, int i, int j, bool turn)
{
	for (; i < j; i++, j--) {
		int one = seat[i];
		seat[i] = seat[j];
		seat[j] = one;
		if (!turn)
			return;
	}
}

/* Change seats while that brings those nearer that pull each other; seat: numbers 0 .. n-1. distance: by seats between. */
static void
arrange_circle(const double *pull, const double *distance, int *seat, int n)
{
	double least = circle_cost(pull, distance, seat, n);
	bool better = true;
	for (int round = 0; better && round < (n > DETAIL ? 2 : 32); round++) {
		better = false;
		for (int i = 0; i < n; i++)
			for (int j = i + 1; j < n; j++)
				for (int turn = 0; turn < 2; turn++) {
					change(seat, i, j, turn);
					double cost = circle_cost(pull, distance, seat, n);
					if (cost < least - 1e-9) {
						least = cost;
						better = true;
					} else {
						change(seat, i, j, turn);
					}
				}
	}
}

static Status
place_circle(Ctx *ctx, Layout *out, const int *gpu, int n, bool single, double *radius)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	double *pull, *distance;
	int *seat;
	TRY(TEMP(ctx, pull, (size_t)n * (size_t)n));
	TRY(TEMP(ctx, distance, n));
	TRY(TEMP(ctx, seat, n));
	for (int i = 0; i < n; i++) {
		seat[i] = i;
		distance[i] = 1 - cosine((double)i / n);
		for (int j = 0; j < i; j++)
			pull[i * n + j] = pull[j * n + i] = attraction(out, gpu[i], gpu[j]);
	}
	arrange_circle(pull, distance, seat, n);
	/* Neighbours are so far from each other that a label of a link has room. */
	*radius = n == 1 ? 0 : n == 2 ? 62 : n <= 4 ? 74 : n * 54 / 6.283 < 92 ? 92 : n * 54 / 6.283;
	*radius *= single && *radius < 150 ? 1.4 : 1;
	for (int i = 0; i < n; i++) {
		Spot *spot = &out->spot[gpu[seat[i]]];
		double turn = (n == 2 ? 0.5 : 0.625 + 0.125 - 0.5 / n) + (double)i / n;
		spot->x = *radius * cosine(turn);
		spot->y = *radius * sine(turn);
	}
	arena_release(&ctx->scratch, mark);
	return OK;
}

/* Hops from GPUs of the same server, by what is in it. */
static void
find_levels(struct plan *plan, int s)
{
	Layout *out = plan->out;
	for (int p = 0; p < out->n_spots; p++)
		if (out->spot[p].server == s)
			plan->level[p] = out->spot[p].rank >= 0 ? 0 : LEVELS;
	for (int level = 1; level < LEVELS; level++)
		for (int c = 0; c < out->n_cables; c++) {
			const Cable *cable = &out->cable[c];
			int a = cable->a, b = cable->b;
			if (out->spot[a].server != s || out->spot[b].server != s)
				continue;
			if (plan->level[a] == level - 1 && plan->level[b] == LEVELS)
				plan->level[b] = level;
			if (plan->level[b] == level - 1 && plan->level[a] == LEVELS)
				plan->level[a] = level;
		}
}

static bool
reaches_net(const Layout *out, int p)
{
	int other;
	for (int c = 0; c < out->n_cables; c++)
		if (out->cable[c].class == LINK_NET && joins(&out->cable[c], p, &other))
			return true;
	return false;
}

/* What is not a GPU: in the middle of what it has below it, then inwards or outwards. */
static void
place_other(struct plan *plan, int p, bool outside, double radius)
{
	Layout *out = plan->out;
	double x = 0, y = 0;
	int n = 0, other;
	for (int c = 0; c < out->n_cables; c++)
		if (joins(&out->cable[c], p, &other) && out->spot[other].server == out->spot[p].server
		    && plan->level[other] < plan->level[p]) {
			x += out->spot[other].x;
			y += out->spot[other].y;
			n++;
		}
	x /= n ? n : 1;
	y /= n ? n : 1;
	double norm = sqrt(x * x + y * y), far = 0;
	bool nic = reaches_net(out, p), central = norm < radius * 0.15 || norm == 0;
	if (outside || nic)
		far = radius + 56 * (outside ? plan->level[p] : 1) + (nic ? 10 : 0);
	if (far > 0 && !(central && plan->level[p] == 1 && !nic)) {
		out->spot[p].x = central ? 0 : x / norm * far;
		out->spot[p].y = central ? far : y / norm * far;
	} else {
		out->spot[p].x = central ? 0 : x * 0.66;
		out->spot[p].y = central ? 0 : y * 0.66;
	}
}

static bool
overlap(const Spot *a, const Spot *b, double *dx, double *dy)
{
	*dx = (a->w + b->w) / 2 + GAP - fabs(a->x - b->x);
	*dy = (a->h + b->h) / 2 + GAP - fabs(a->y - b->y);
	return *dx > 1e-9 && *dy > 1e-9;
}

/* Move what is not a GPU until nothing lies over anything else; the way that is shorter, of equals sideways. */
static void
push_apart(Layout *out, int s)
{
	bool moved = true;
	double dx, dy;
	for (int round = 0; moved && round < 400; round++) {
		moved = false;
		for (int i = 0; i < out->n_spots; i++)
			for (int j = i + 1; j < out->n_spots; j++) {
				Spot *a = &out->spot[i], *b = &out->spot[j];
				if (a->server != s || b->server != s || (a->rank >= 0 && b->rank >= 0) || !overlap(a, b, &dx, &dy))
					continue;
				double part_a = a->rank >= 0 ? 0 : b->rank >= 0 ? 1 : 0.5;
				if (dx <= dy) {
					double sign = a->x <= b->x ? 1 : -1;
					a->x -= sign * dx * part_a;
					b->x += sign * dx * (1 - part_a);
				} else {
					double sign = a->y <= b->y ? 1 : -1;
					a->y -= sign * dy * part_a;
					b->y += sign * dy * (1 - part_a);
				}
				moved = true;
			}
	}
}

/* A line between two that are no GPUs, over others: it goes around above all of them. */
static void
bend_cables(Layout *out, int s)
{
	double top = 1e9;
	for (int p = 0; p < out->n_spots; p++)
		if (out->spot[p].server == s)
			top = fmin(top, out->spot[p].y - out->spot[p].h / 2);
	for (int c = 0; c < out->n_cables; c++) {
		const Spot *a = &out->spot[out->cable[c].a], *b = &out->spot[out->cable[c].b];
		double dx = b->x - a->x, dy = b->y - a->y, length = sqrt(dx * dx + dy * dy);
		if (a->server != s || b->server != s || a->rank >= 0 || b->rank >= 0 || length < 200)
			continue;
		for (int p = 0; p < out->n_spots && out->cable[c].bend == 0; p++) {
			const Spot *spot = &out->spot[p];
			double along = ((spot->x - a->x) * dx + (spot->y - a->y) * dy) / length;
			double aside = ((spot->x - a->x) * dy - (spot->y - a->y) * dx) / length;
			if (spot->server == s && spot != a && spot != b && along > 0 && along < length && fabs(aside) < length / 2
			    && spot->rank >= 0)
				out->cable[c].bend = fmax(20, (a->y + b->y) / 2 - top + 20);
		}
	}
}

static Status
place_server(Ctx *ctx, struct plan *plan, int s)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	Layout *out = plan->out;
	int *gpu, n = 0;
	double radius;
	bool direct = false;
	TRY(TEMP(ctx, gpu, out->n_spots));
	for (int p = 0; p < out->n_spots; p++)
		if (out->spot[p].server == s && out->spot[p].rank >= 0)
			gpu[n++] = p;
	for (int c = 0; c < out->n_cables; c++) {
		const Spot *a = &out->spot[out->cable[c].a], *b = &out->spot[out->cable[c].b];
		direct = direct || (a->server == s && b->server == s && a->rank >= 0 && b->rank >= 0);
	}
	TRY(place_circle(ctx, out, gpu, n, plan->e->n_servers == 1, &radius));
	find_levels(plan, s);
	for (int level = 1; level <= LEVELS; level++)
		for (int p = 0; p < out->n_spots; p++)
			if (out->spot[p].server == s && plan->level[p] == level)
				place_other(plan, p, direct, radius);
	push_apart(out, s);
	bend_cables(out, s);
	arena_release(&ctx->scratch, mark);
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

/* Rows of what is between servers, by hops from them, each as many as fit. */
static double
place_between(struct plan *plan, double top, double width)
{
	Layout *out = plan->out;
	int last = 0, other;
	for (int p = 0; p < out->n_spots; p++)
		plan->level[p] = out->spot[p].server >= 0 ? 0 : LEVELS;
	for (int level = 1; level < LEVELS; level++)
		for (int p = 0; p < out->n_spots; p++)
			for (int c = 0; plan->level[p] == LEVELS && c < out->n_cables; c++)
				if (joins(&out->cable[c], p, &other) && plan->level[other] == level - 1)
					plan->level[p] = last = level;
	for (int level = 1; level <= LEVELS; level++) {
		double used = 0;
		int first = -1, n = 0;
		for (int p = 0; p <= out->n_spots; p++) {
			bool mine = p < out->n_spots && out->spot[p].server < 0 && plan->level[p] == level;
			if (n > 0 && (p == out->n_spots || (mine && used + out->spot[p].w + 24 > width))) {
				/* The row is full: spread it over the width. */
				double space = (width - used) / n, x = 0;
				for (int q = first; q < p; q++) {
					if (out->spot[q].server >= 0 || plan->level[q] != level)
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

/* Frames of servers in rows; what is between them behind the first half of the rows. */
static Status
place_frames(Ctx *ctx, struct plan *plan)
{
	Layout *out = plan->out;
	const Explained *e = plan->e;
	double pad = out->aggregated ? 0 : 14, head = out->aggregated ? 0 : 18, gap = out->aggregated ? 14 : 24, width = 0;
	int n = e->n_servers, shown = out->aggregated && n > SERVERS_MOST ? SERVERS_MOST : n, per_row = shown;
	Frame *frame;
	TRY(NEW(ctx, frame, n));
	for (int s = 0; s < shown; s++) {
		frame[s] = extent_of(out, s);
		width = fmax(width, frame[s].w + 2 * pad);
	}
	while (per_row > 1 && per_row * width + (per_row - 1) * gap > LAYOUT_WIDTH)
		per_row--;
	int rows = (shown + per_row - 1) / per_row, between = (rows + 1) / 2;
	per_row = (shown + rows - 1) / rows;
	double y = 0, all = per_row * width + (per_row - 1) * gap;
	bool any = false;
	for (int p = 0; p < out->n_spots; p++)
		any = any || out->spot[p].server < 0;
	all = all < 420 && any ? 420 : all;
	for (int row = 0; row < rows; row++) {
		double height = 0;
		int in_row = shown - row * per_row < per_row ? shown - row * per_row : per_row;
		double left = (all - in_row * width - (in_row - 1) * gap) / 2;
		if (row == between && any)
			y = place_between(plan, y + 26, all);
		for (int s = row * per_row; s < row * per_row + in_row; s++)
			height = fmax(height, frame[s].h + 2 * pad + head);
		for (int s = row * per_row; s < row * per_row + in_row; s++, left += width + gap) {
			shift(out, s, left + (width - frame[s].w) / 2 - frame[s].x, y + head + (height - head - frame[s].h) / 2 - frame[s].y);
			frame[s] = (Frame){ NULL, left, y, width, height };
			TRY(explain_line(ctx, e->sched->topo->node[s], &frame[s].label));
		}
		y += height + gap;
	}
	if (between >= rows && any)
		y = place_between(plan, y + 6, all);
	out->n_frames = out->aggregated ? 0 : shown;
	out->frame = frame;
	out->w = all;
	out->h = y - (between >= rows && any ? 34 : gap);
	return OK;
}

static Status
place_single(Ctx *ctx, struct plan *plan)
{
	Layout *out = plan->out;
	for (int p = 0; p < out->n_spots; p++)
		out->spot[p].server = 0;
	TRY(place_server(ctx, plan, 0));
	Frame extent = extent_of(out, 0);
	shift(out, 0, -extent.x, -extent.y);
	out->w = extent.w;
	out->h = extent.h;
	return OK;
}

static Status
layout_places(Ctx *ctx, const Explained *e, Layout *out)
{
	const Topology *topo = e->sched->topo;
	*out = (Layout){ 0 };
	TRY(NEW(ctx, out->spot, topo->n_vertices + e->n_servers));
	TRY(NEW(ctx, out->spot_of, topo->n_vertices));
	TRY(NEW(ctx, out->cable, topo->n_links));
	bool single = e->n_servers == 1;
	TRY(single || topo->n_ranks <= DETAIL ? detailed_places(ctx, e, out) : aggregated_places(ctx, e, out));
	find_cables(e, out);
	return OK;
}

Status
layout_own(Ctx *ctx, const Explained *e, Layout *out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct plan plan = { .e = e, .out = out };
	TRY(layout_places(ctx, e, out));
	TRY(TEMP(ctx, plan.level, out->n_spots));
	if (e->n_servers == 1) {
		TRY(place_single(ctx, &plan));
	} else {
		for (int s = 0; s < e->n_servers && !out->aggregated; s++)
			TRY(place_server(ctx, &plan, s));
		TRY(place_frames(ctx, &plan));
	}
	arena_release(&ctx->scratch, mark);
	return OK;
}
