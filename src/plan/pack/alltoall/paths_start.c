/* The start: each demand takes one path, by an augmented Lagrangian. A link of load u, relative to its capacity c,
 * costs
 *
 *     y u + stiffness / 2 (u - target)^2    times c
 *
 * and a demand changes its path wherever that lowers the sum. Sources are searched from in turn, under what one more
 * path over each link costs; whether a path is better is counted with the loads as they are then. After each sweep y
 * takes over a part of what the loads miss the target by, so that loads come to within a path of the target where they
 * can, and the mean of y is a good guess at the prices of the optimum: its bound is within 1e-4 of it. Paths that were
 * the best in the last sweeps, but for the last of them, are the first detours: they cost about as much.
 * Where whole paths are at the bound that was known, as the shortest ones of a cluster that lost a GPU often are, or
 * where shifts between them lead there (paths_shift.c), that is the end.
 * From: Hestenes 1969 and Powell 1969 for the method of multipliers; whole paths are ours. */
#include "base/array.h"
#include "plan/pack/alltoall/paths.h"

#include <math.h>
#include <string.h>

enum { SWEEPS = 90, SWEEPS_KEPT = 10, PATHS_KEPT = 2 };	/* of which paths are kept, and of a demand */

#define EXACT 1e-12		/* relative: no more than doubles lose */
#define HOP_PRICE 0.02	/* of a link of mean capacity, whatever its load: where links have room, paths are short */

struct start {
	struct paths *p;
	double stiffness, target;
	bool keeps;		/* the paths that demands leave */
	double *price;		/* of one more path */
	char *used;		/* by the new path */
	double *sum_y;		/* of the second half of the sweeps */
	struct path *kept;	/* PATHS_KEPT of each demand, the last first */
};

/* What a path costs that comes (change: its weight) or leaves (less that). */
static double
price_of_change(const struct start *s, int row, double change)
{
	const struct paths *p = s->p;
	double load = (p->load[row] + 0.5 * change) / p->capacity[row];
	return fmax(0, p->y[row] + s->stiffness * (load - s->target)) + HOP_PRICE / p->capacity[row];
}

/* What the demand saves by taking the new path in place of its key path; links of both stay as they are. */
static double
saving(struct start *s, double weight, const struct path *key, const struct path *path)
{
	const int *row = s->p->row;
	double sum = 0;
	for (int i = 0; i < path->n; i++)
		s->used[row[path->link[i]]] = 1;
	for (int i = 0; i < key->n; i++) {
		if (!s->used[row[key->link[i]]])
			sum += price_of_change(s, row[key->link[i]], -weight);
		s->used[row[key->link[i]]] = 0;
	}
	for (int i = 0; i < path->n; i++) {
		if (s->used[row[path->link[i]]])
			sum -= price_of_change(s, row[path->link[i]], weight);
		s->used[row[path->link[i]]] = 0;
	}
	return sum;
}

static int64_t
cost_of(const struct paths *p, const struct path *path)
{
	int64_t sum = 0;
	for (int i = 0; i < path->n; i++)
		sum += p->price[path->link[i]];
	return sum;
}

static bool
same_path(const struct path *a, const struct path *b)
{
	return a->n == b->n && memcmp(a->link, b->link, (size_t)a->n * sizeof *a->link) == 0;
}

/* Its last paths, all different. */
static void
keep_path(struct start *s, int demand, const struct path *path)
{
	struct path *kept = s->kept + (size_t)demand * PATHS_KEPT;
	for (int i = 0; i < PATHS_KEPT; i++)
		if (kept[i].n > 0 && same_path(&kept[i], path))
			return;
	memmove(kept + 1, kept, (PATHS_KEPT - 1) * sizeof *kept);
	kept[0] = *path;
}

static Status
add_kept(struct start *s)
{
	struct paths *p = s->p;
	for (int i = 0; i < p->n_demands * PATHS_KEPT; i++) {
		int d = i / PATHS_KEPT;
		if (s->kept[i].n == 0 || p->weight[d] == 0 || same_path(&s->kept[i], &p->key[d]))
			continue;
		TRY(GROW_TEMP(p->ctx, p->detour, p->n_detours, p->room));
		p->detour[p->n_detours++] = (struct detour){ .demand = d, .path = s->kept[i] };
	}
	return OK;
}

/* All demands of a source, under the prices of the last search. */
static Status
route_source(struct start *s, int source, bool first)
{
	struct paths *p = s->p;
	int from = p->source[source];
	for (int to = 0; to < p->n_ranks; to++) {
		int demand = from == to ? 0 : paths_demand(p, source, to);
		struct path path, *key = &p->key[demand];
		double weight = p->weight[demand];
		if (from == to || !paths_has(p, demand) || (!first && p->distance[to] >= cost_of(p, key)))
			continue;
		ArenaMark mark = arena_mark(&p->ctx->scratch);
		TRY(paths_take(p, from, to, &path));
		if (!first && saving(s, weight, key, &path) <= 0) {
			arena_release(&p->ctx->scratch, mark);
			continue;
		}
		if (!first)
			paths_add_load(p, key, -weight);
		if (s->keeps)
			keep_path(s, demand, key);
		*key = path;
		paths_add_load(p, key, weight);
	}
	return OK;
}

/* Loads above the target make links dearer. */
static void
raise_prices(struct start *s)
{
	struct paths *p = s->p;
	double sum = 0;
	for (int i = 0; i < p->n_rows; i++) {
		p->y[i] = fmax(0, p->y[i] + s->stiffness * (p->load[i] / p->capacity[i] - s->target));
		sum += p->y[i] * p->capacity[i];
	}
	for (int i = 0; i < p->n_rows; i++)
		p->y[i] *= p->n_rows / sum;
}

static Status
sweep(struct start *s, int number)
{
	struct paths *p = s->p;
	for (int source = 0; source < p->n_sources; source++) {
		for (int i = 0; i < p->n_rows; i++)
			s->price[i] = number == 0 ? p->y[i] : price_of_change(s, i, 1);
		if (number > 0 && out_of_time(p->ctx, 50 * (int64_t)p->topo->n_links))
			return OK;
		paths_price(p, s->price);
		paths_from(p, p->source[source]);
		TRY(route_source(s, source, number == 0));
	}
	if (number > 0)
		raise_prices(s);
	s->target = 0;
	for (int i = 0; i < p->n_rows; i++)
		s->target += p->y[i] * p->load[i] / p->n_rows;
	for (int i = 0; i < p->n_rows && number > SWEEPS / 2; i++)
		s->sum_y[i] += p->y[i];
	return OK;
}

static double
fullest(const struct paths *p)
{
	double most = 0;
	for (int i = 0; i < p->n_rows; i++)
		most = fmax(most, p->load[i] / p->capacity[i]);
	return most;
}

/* The better of the last prices and their mean. */
static void
keep_prices(struct start *s)
{
	struct paths *p = s->p;
	double mean = 0, last = paths_bound(p, p->y);
	for (int i = 0; i < p->n_rows; i++)
		mean += s->sum_y[i] * p->capacity[i] / p->n_rows;
	for (int i = 0; i < p->n_rows; i++)
		s->sum_y[i] = mean > 0 ? s->sum_y[i] / mean : p->y[i];
	p->bound = paths_bound(p, s->sum_y);
	memcpy(p->best_y, p->bound < last ? p->y : s->sum_y, (size_t)p->n_rows * sizeof *p->y);
	p->bound = fmax(p->bound, last);
}

/* Loads are near each other after few sweeps; shifts that do not end then may later. */
static bool
shifts_after(int number)
{
	return number == 6 || number == 16 || number == 36 || number == SWEEPS;
}

Status
paths_start(struct paths *p)
{
	const double first = 0.05, last = 0.002;
	struct start s = { .p = p, .stiffness = first };
	TRY(TEMP(p->ctx, s.price, p->n_rows));
	TRY(TEMP(p->ctx, s.used, p->n_rows));
	TRY(TEMP(p->ctx, s.sum_y, p->n_rows));
	TRY(TEMP(p->ctx, s.kept, (size_t)p->n_demands * PATHS_KEPT));
	for (int l = 0; l < p->topo->n_links; l++)
		p->y[p->row[l]] = 1 / ((double)p->topo->link[l].capacity / p->mean);
	for (int number = 0; number <= SWEEPS && !p->ctx->late; number++) {
		s.keeps = number >= SWEEPS - SWEEPS_KEPT;
		TRY(sweep(&s, number));
		p->reached = fullest(p) <= p->known * (1 + EXACT);
		if (p->reached)
			return OK;
		if (shifts_after(number) && paths_bound(p, p->y) <= p->known * (1 + EXACT))
			TRY(paths_shift(p));
		if (p->reached)
			return OK;
		s.stiffness *= pow(last / first, 1.0 / SWEEPS);
	}
	keep_prices(&s);
	return add_kept(&s);
}
