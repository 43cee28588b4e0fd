/* Positions of GPUs and switches within a server. All numbers come from additions, products and square roots, which are
 * the same on every machine. */
#include "view/parts.h"

#include <math.h>

enum { GAP = 10 };

/* ---- circles ---- */

/* Cosine of an angle in turns, by its series. */
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

/* ---- one server ---- */

/* Weight of the distance of two GPUs: the capacity of links between them, and of links to common switches. */
static double
attraction(const Layout *out, int p, int q)
{
	double sum = 0;
	int x, y;
	for (int c = 0; c < out->n_cables; c++) {
		const Cable *cable = &out->cable[c];
		if (!cable_joins(cable, p, &x))
			continue;
		if (x == q)
			sum += cable->capacity[0] + cable->capacity[1];
		for (int d = 0; d < out->n_cables && out->spot[x].rank < 0; d++)
			if (cable_joins(&out->cable[d], q, &y) && y == x)
				sum += cable->capacity[0];
	}
	return sum;
}

static double
seating_cost(const double *weight, const double *distance, const int *seat, int n)
{
	double sum = 0;
	for (int i = 0; i < n; i++)
		for (int j = 0; j < i; j++)
			sum += weight[seat[i] * n + seat[j]] * distance[i - j];
	return sum;
}

/* Reverse the seats from i to j, or exchange i and j. */
static void
change(int *seat, int i, int j, bool reverse)
{
	for (; i < j; i++, j--) {
		int one = seat[i];
		seat[i] = seat[j];
		seat[j] = one;
		if (!reverse)
			return;
	}
}

/* Local search: change seats while that lowers the cost. seat: numbers 0 .. n-1. distance: by the difference of
 * seats. */
static void
improve_seating(const double *weight, const double *distance, int *seat, int n)
{
	double least = seating_cost(weight, distance, seat, n);
	bool better = true;
	for (int round = 0; better && round < (n > DETAILED_GPUS ? 2 : 32); round++) {
		better = false;
		for (int i = 0; i < n; i++)
			for (int j = i + 1; j < n; j++)
				for (int reverse = 0; reverse < 2; reverse++) {
					change(seat, i, j, reverse);
					double cost = seating_cost(weight, distance, seat, n);
					if (cost < least - 1e-9) {
						least = cost;
						better = true;
					} else {
						change(seat, i, j, reverse);
					}
				}
	}
}

static Status
place_circle(Ctx *ctx, Layout *out, const int *gpu, int n, bool single, double *radius)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	double *weight, *distance;
	int *seat;
	TRY(TEMP(ctx, weight, (size_t)n * (size_t)n));
	TRY(TEMP_EACH(ctx, n, distance, seat));
	for (int i = 0; i < n; i++) {
		seat[i] = i;
		distance[i] = 1 - cosine((double)i / n);
		for (int j = 0; j < i; j++)
			weight[i * n + j] = weight[j * n + i] = attraction(out, gpu[i], gpu[j]);
	}
	improve_seating(weight, distance, seat, n);
	/* Neighbours far enough apart for the label of a link. */
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

/* ---- meshes ---- */

/* GPUs with direct links to a few others, as dies in packages or a torus have, and more than a ring. On a circle these
 * links would lie over each other; here GPUs sit on a grid whose rows and columns are bent, so that no three are in a
 * line. */
struct mesh {
	int n, n_links;			/* seats, some of them empty; links */
	int *gpu;			/* at each seat: a number below that of GPUs, or -1 */
	int *seat;			/* of each GPU */
	double *x, *y;			/* of each seat, in the distance of neighbours */
	struct mesh_link {
		int a, b;		/* GPUs */
		double weight;
	} *link;
};

static double
clearance(double x, double y, double ax, double ay, double bx, double by)
{
	double dx = bx - ax, dy = by - ay, along = ((x - ax) * dx + (y - ay) * dy) / (dx * dx + dy * dy);
	along = along < 0 ? 0 : along > 1 ? 1 : along;
	dx = ax + along * dx - x;
	dy = ay + along * dy - y;
	return sqrt(dx * dx + dy * dy);
}

/* Long links cost; links across GPUs, and labels, which are in the middle of links, near GPUs or other labels cost
 * more. */
static double
mesh_cost(const struct mesh *m)
{
	double sum = 0;
	for (int l = 0; l < m->n_links; l++) {
		const struct mesh_link *link = &m->link[l];
		int p = m->seat[link->a], q = m->seat[link->b];
		double dx = m->x[p] - m->x[q], dy = m->y[p] - m->y[q];
		double mx = (m->x[p] + m->x[q]) / 2, my = (m->y[p] + m->y[q]) / 2;
		sum += link->weight * sqrt(dx * dx + dy * dy);
		for (int s = 0; s < m->n; s++)
			if (m->gpu[s] >= 0 && s != p && s != q
			    && clearance(m->x[s], m->y[s], m->x[p], m->y[p], m->x[q], m->y[q]) < 0.26)
				sum += 8;
		for (int k = 0; k < l; k++) {
			int v = m->seat[m->link[k].a], w = m->seat[m->link[k].b];
			dx = fabs(mx - (m->x[v] + m->x[w]) / 2);
			dy = fabs(my - (m->y[v] + m->y[w]) / 2);
			sum += dx < 0.45 && dy < 0.2 ? 2 : 0;
		}
	}
	return sum;
}

static void
exchange(struct mesh *m, int p, int q)
{
	int one = m->gpu[p], other = m->gpu[q];
	m->gpu[p] = other;
	m->gpu[q] = one;
	if (other >= 0)
		m->seat[other] = p;
	if (one >= 0)
		m->seat[one] = q;
}

/* Local search, as on a circle. */
static void
improve_mesh(struct mesh *m)
{
	double least = mesh_cost(m);
	bool better = true;
	for (int round = 0; better && round < 32; round++) {
		better = false;
		for (int p = 0; p < m->n; p++)
			for (int q = p + 1; q < m->n; q++) {
				exchange(m, p, q);
				double cost = mesh_cost(m);
				better |= cost < least - 1e-9;
				if (cost < least - 1e-9)
					least = cost;
				else
					exchange(m, p, q);
			}
	}
}

/* links: room for those of the server. */
static void
find_mesh_links(const Layout *out, const int *gpu, int n, struct mesh *m)
{
	double most = 0;
	for (int c = 0; c < out->n_cables; c++) {
		const Cable *cable = &out->cable[c];
		int a = 0, b = 0;
		while (a < n && gpu[a] != cable->a)
			a++;
		while (b < n && gpu[b] != cable->b)
			b++;
		if (a == n || b == n)
			continue;
		double weight = cable->capacity[0] + cable->capacity[1];
		most = fmax(most, weight);
		m->link[m->n_links++] = (struct mesh_link){ a, b, weight };
	}
	for (int l = 0; l < m->n_links; l++)
		m->link[l].weight = 1 + m->link[l].weight / most;
}

/* false: no mesh. */
static Status
place_mesh(Ctx *ctx, Layout *out, const int *gpu, int n, double *radius, bool *placed)
{
	enum { FEWEST = 9, LINKS_OF_GPU = 3 };
	const double neighbours = 104, most = 0.5;
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct mesh m = { .n_links = 0 };
	int columns = (int)ceil(sqrt(n)), rows = (n + columns - 1) / columns;
	m.n = columns * rows;
	TRY(TEMP(ctx, m.link, out->n_cables));
	find_mesh_links(out, gpu, n, &m);
	*placed = n >= FEWEST && n <= DETAILED_GPUS && m.n_links > n && m.n_links <= LINKS_OF_GPU * n;
	if (!*placed)
		return OK;
	double half = (columns - 1) / 2.0, bend = most / (half * half);
	TRY(TEMP_EACH(ctx, m.n, m.gpu, m.seat, m.x, m.y));
	for (int s = 0; s < m.n; s++) {
		double column = s % columns - half, row = s / columns - (rows - 1) / 2.0;
		m.x[s] = column + bend * row * row;
		m.y[s] = row + bend * column * column;
		m.gpu[s] = s < n ? s : -1;
		m.seat[s] = s;
	}
	improve_mesh(&m);
	*radius = 0;
	for (int i = 0; i < n; i++) {
		Spot *spot = &out->spot[gpu[i]];
		spot->x = neighbours * m.x[m.seat[i]];
		spot->y = neighbours * m.y[m.seat[i]];
		*radius = fmax(*radius, sqrt(spot->x * spot->x + spot->y * spot->y));
	}
	arena_release(&ctx->scratch, mark);
	return OK;
}

/* Hops from the nearest GPU of the server, within it. */
static void
find_levels(struct layout_work *work, int s)
{
	Layout *out = work->out;
	for (int p = 0; p < out->n_spots; p++)
		if (out->spot[p].server == s)
			work->level[p] = out->spot[p].rank >= 0 ? 0 : LAYOUT_LEVELS;
	for (int level = 1; level < LAYOUT_LEVELS; level++)
		for (int c = 0; c < out->n_cables; c++) {
			const Cable *cable = &out->cable[c];
			int a = cable->a, b = cable->b;
			if (out->spot[a].server != s || out->spot[b].server != s)
				continue;
			if (work->level[a] == level - 1 && work->level[b] == LAYOUT_LEVELS)
				work->level[b] = level;
			if (work->level[b] == level - 1 && work->level[a] == LAYOUT_LEVELS)
				work->level[a] = level;
		}
}

static bool
reaches_net(const Layout *out, int p)
{
	int other;
	for (int c = 0; c < out->n_cables; c++)
		if (out->cable[c].class == LINK_NET && cable_joins(&out->cable[c], p, &other))
			return true;
	return false;
}

/* A switch: in the middle of its neighbours of lower level, then moved inwards or outwards. */
static void
place_switch(struct layout_work *work, int p, bool outside, double radius)
{
	Layout *out = work->out;
	double x = 0, y = 0;
	int n = 0, other;
	for (int c = 0; c < out->n_cables; c++)
		if (cable_joins(&out->cable[c], p, &other) && out->spot[other].server == out->spot[p].server
		    && work->level[other] < work->level[p]) {
			x += out->spot[other].x;
			y += out->spot[other].y;
			n++;
		}
	x /= n ? n : 1;
	y /= n ? n : 1;
	double norm = sqrt(x * x + y * y), far = 0;
	bool nic = reaches_net(out, p), central = norm < radius * 0.15 || norm == 0;
	if (outside || nic)
		far = radius + 56 * (outside ? work->level[p] : 1) + (nic ? 10 : 0);
	if (far > 0 && !(central && work->level[p] == 1 && !nic)) {
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

/* Move switches until no two spots overlap, by the shorter distance; sideways if both are equal. */
static void
separate(Layout *out, int s)
{
	bool moved = true;
	double dx, dy;
	for (int round = 0; moved && round < 400; round++) {
		moved = false;
		for (int i = 0; i < out->n_spots; i++)
			for (int j = i + 1; j < out->n_spots; j++) {
				Spot *a = &out->spot[i], *b = &out->spot[j];
				if (a->server != s || b->server != s || (a->rank >= 0 && b->rank >= 0)
				    || !overlap(a, b, &dx, &dy))
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

/* A line between two switches across GPUs goes around, above all of them. */
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
			if (spot->server == s && spot != a && spot != b && along > 0 && along < length
			    && fabs(aside) < length / 2 && spot->rank >= 0)
				out->cable[c].bend = fmax(20, (a->y + b->y) / 2 - top + 20);
		}
	}
}

Status
layout_server(Ctx *ctx, struct layout_work *work, int s)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	Layout *out = work->out;
	int *gpu, n = 0;
	double radius;
	bool direct = false, mesh;
	TRY(TEMP(ctx, gpu, out->n_spots));
	for (int p = 0; p < out->n_spots; p++)
		if (out->spot[p].server == s && out->spot[p].rank >= 0)
			gpu[n++] = p;
	for (int c = 0; c < out->n_cables; c++) {
		const Spot *a = &out->spot[out->cable[c].a], *b = &out->spot[out->cable[c].b];
		direct = direct || (a->server == s && b->server == s && a->rank >= 0 && b->rank >= 0);
	}
	TRY(place_mesh(ctx, out, gpu, n, &radius, &mesh));
	if (!mesh)
		TRY(place_circle(ctx, out, gpu, n, work->e->n_servers == 1, &radius));
	find_levels(work, s);
	for (int level = 1; level <= LAYOUT_LEVELS; level++)
		for (int p = 0; p < out->n_spots; p++)
			if (out->spot[p].server == s && work->level[p] == level)
				place_switch(work, p, direct, radius);
	separate(out, s);
	bend_cables(out, s);
	arena_release(&ctx->scratch, mark);
	return OK;
}
