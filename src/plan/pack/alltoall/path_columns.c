/* All images of a path under a group load the links of an orbit equally, so a maximum concurrent flow (Shahrokhi and
 * Matula 1990) is a linear program of a row for each orbit of links, 6 of a torus in three dimensions, and one for each
 * representative. A column is a path for every pair that begins at one of these (Dantzig and Wolfe 1960):
 *
 *     maximise    r
 *     such that   sum over columns c of uses(c, o) x(c) <= capacity(o)    for every orbit o of links, with dual y(o)
 *                 r <= sum over columns c of representative v of x(c)     for every v
 *
 * where uses and capacity are those of all links of the orbit together. The next columns have the cheapest paths under
 * y, in one search from each representative (Dijkstra) over switches and ranks, which then pass data on. Any y proves a
 * bound, as lengths of links: no rate exceeds sum of capacity * y / sum of distances. */
#include "plan/pack/alltoall/path_columns.h"
#include "base/array.h"
#include "model/model.h"

#include <math.h>
#include <string.h>

/* MOST_FOUND: columns times pairs. MOST_STEPS: of the simplex method for a column. */
enum { MOST_FOUND = 1 << 24, MOST_STEPS = 10000, MOST_RENEWED = 8, FINE_PARTS = 1 << 30 };

enum { RATE_COLUMN };	/* r, before those of paths */

#define FINE_PRICE (1 << 30)
#define COARSE_PRICE (1 << 24)	/* and less, where fractions of finer ones are too large */
#define LEAST_GAIN 1e-9		/* of a column, relative */
#define NEARLY (1 - 1e-6)	/* at the rate, but for the rounding of doubles */
#define SMOOTH 0.95		/* part of the best bound's prices */

/* r, which no representative's columns are below. */
static Status
new_program(struct path_columns *s)
{
	int m = s->sym->n_orbits, n = s->sym->n_representatives;
	TRY(tableau_new(s->ctx, s->limit, m + n, &s->tableau));
	for (int i = 0; i < n; i++) {
		s->row[i] = m + i;
		s->entry[i] = 1;
	}
	TRY(tableau_add(&s->tableau, s->row, s->entry, n));
	tableau_cost(&s->tableau, RATE_COLUMN, 1);
	return OK;
}

Status
path_columns_new(struct path_columns *s)
{
	const Topology *topo = s->topo;
	size_t m = (size_t)s->sym->n_orbits, n = (size_t)s->sym->n_representatives;
	double mean = 0;
	TRY(TEMP_EACH(s->ctx, m, s->capacity, s->orbit_price, s->bound_price, s->load));
	TRY(TEMP_EACH(s->ctx, n, s->most, s->left));
	TRY(TEMP_EACH(s->ctx, m + n, s->limit, s->entry, s->row));
	TRY(TEMP_EACH(s->ctx, m, s->y, s->best_y, s->between));
	TRY(TEMP(s->ctx, s->next, n));
	TRY(TEMP(s->ctx, s->column, MOST_COLUMNS));
	TRY(TEMP(s->ctx, s->price, topo->n_links));
	TRY(TEMP(s->ctx, s->distance, topo->n_vertices));
	TRY(TEMP(s->ctx, s->by, topo->n_vertices));
	TRY(TEMP(s->ctx, s->paths.room, PATHS_ROOM * (size_t)topo->n_vertices));
	TRY(TEMP(s->ctx, s->head, s->n_demands));
	memset(s->head, -1, (size_t)s->n_demands * sizeof *s->head);
	s->paths.topo = topo;
	s->paths.price = s->price;
	s->paths.classes = ~0u;
	s->paths.relay = true;
	for (int l = 0; l < topo->n_links; l++)
		s->capacity[s->sym->link_orbit[l]] += topo->link[l].capacity;
	for (size_t o = 0; o < m; o++)
		mean += (double)s->capacity[o] / (double)m;
	for (size_t o = 0; o < m; o++)
		s->limit[o] = (double)s->capacity[o] / mean;
	return new_program(s);
}

/* ---- columns ---- */

const int path_small_price[N_SMALL_PRICES] = { 1, 2, 3, 4, 6, 8, 12, 60 };

void
path_whole_prices(const double *y, int n, const int *row, int n_links, double most, int64_t *price)
{
	double top = 1e-300;
	for (int i = 0; i < n; i++)
		top = fmax(top, y[i]);
	for (int l = 0; l < n_links; l++)
		price[l] = (int64_t)(fmax(0, y[row ? row[l] : l]) / top * most + 0.5);
}

/* Hops and links cost a trifle more. */
static void
set_prices(struct path_columns *s, const double *y, double most, bool trifle)
{
	path_whole_prices(y, s->sym->n_orbits, s->sym->link_orbit, s->topo->n_links, most, s->price);
	for (int l = 0; l < s->topo->n_links; l++) {
		s->price[l] += trifle ? 1 + (s->topo->link[l].to < s->topo->n_ranks) : 0;
		s->orbit_price[s->sym->link_orbit[l]] = s->price[l];
	}
}

/* The path to a rank: known already, or known from now on. */
static Status
take_path(struct path_columns *s, int demand, int to, struct path_column *c)
{
	const Topology *topo = s->topo;
	int n = 0, between = 0, *end = &s->head[demand];
	for (int v = to; s->by[v] >= 0; v = topo->link[s->by[v]].from, n++) {
		between = v < topo->n_ranks ? 1 : between + 1;
		if (between > LIMIT_ROUTE_LINKS)
			return fail(s->ctx, LIMIT, "%s: a route needs more than %d links", topo->name,
			    LIMIT_ROUTE_LINKS);
		TRY(GROW_TEMP(s->ctx, s->link, s->n_links + n, s->links_room));
	}
	int *link = s->link + s->n_links;
	for (int v = to, at = n; s->by[v] >= 0; v = topo->link[s->by[v]].from) {
		link[--at] = s->by[v];
		c->uses[s->sym->link_orbit[s->by[v]]]++;
	}
	for (; *end >= 0; end = &s->known[*end].next) {
		const struct known *k = &s->known[*end];
		if (k->n == n && memcmp(s->link + k->first, link, (size_t)n * sizeof *link) == 0) {
			c->found[demand % (topo->n_ranks - 1)] = *end;
			return OK;
		}
	}
	c->found[demand % (topo->n_ranks - 1)] = *end = s->n_known;
	TRY(GROW_TEMP(s->ctx, s->known, s->n_known, s->known_room));
	s->known[s->n_known++] = (struct known){ s->n_links, n, -1, 0 };
	s->n_links += n;
	return OK;
}

/* Cheapest paths of all demands in s->next, and s->distances. *good: false: some rank is not reached. */
static Status
find_columns(struct path_columns *s, bool *good)
{
	int demand = 0;
	s->distances = 0;
	*good = true;
	for (int i = 0; i < s->sym->n_representatives; i++) {
		struct path_column *c = &s->next[i];
		int from = s->sym->representative[i];
		*c = (struct path_column){ .from = i };
		TRY(TEMP(s->ctx, c->found, s->topo->n_ranks));
		TRY(TEMP(s->ctx, c->uses, s->sym->n_orbits));
		shortest_paths(&s->paths, from, false, s->distance, s->by);
		for (int to = 0; to < s->topo->n_ranks && *good; to++) {
			if (to == from)
				continue;
			*good = s->distance[to] >= 0;
			if (*good)
				TRY(take_path(s, demand, to, c));
			s->distances += s->distance[to];
			demand++;
		}
	}
	return OK;
}

/* ---- the bound by lengths ---- */

static Wide
price_sum(const struct path_columns *s, const int64_t *price)
{
	Wide sum = 0;
	for (int o = 0; o < s->sym->n_orbits; o++)
		sum += (Wide)s->capacity[o] * price[o];
	return sum;
}

/* What prices and s->distances prove of the rate of a demand. False: no less than is known. */
static bool
keep_bound(struct path_columns *s)
{
	Frac rate;
	if (s->distances <= 0 || !frac_make(price_sum(s, s->orbit_price), s->distances * s->sym->size, &rate)
	    || (s->bound.num > 0 && frac_cmp(rate, s->bound) >= 0))
		return false;
	s->bound = rate;
	memcpy(s->bound_price, s->orbit_price, (size_t)s->sym->n_orbits * sizeof *s->orbit_price);
	return true;
}

/* Distances under whole prices of best_y up to `most`, which become those of links. */
static void
measure(struct path_columns *s, double most)
{
	set_prices(s, s->best_y, most, false);
	s->distances = 0;
	for (int r = 0; r < s->sym->n_representatives; r++) {
		shortest_paths(&s->paths, s->sym->representative[r], false, s->distance, NULL);
		for (int to = 0; to < s->topo->n_ranks; to++)
			s->distances += s->distance[to];
	}
}

/* What bound_price proves. *proof stays where it is as low. False: numbers are too large. */
static bool
make_bound(const struct path_columns *s, Bound *bound, Bound *proof)
{
	Frac unit;
	Wide sum = price_sum(s, s->bound_price);
	if (!frac_mul(s->bound, (Frac){ collective_shares(ALLTOALL, s->topo->n_ranks), 1 }, &bound->rate))
		return false;
	/* The sum of capacity * price is the rate. */
	for (int l = 0; l < s->topo->n_links; l++)
		if (!frac_make(s->bound_price[s->sym->link_orbit[l]], sum, &unit)
		    || !frac_mul(unit, bound->rate, &bound->price[l]) || !frac_fits(bound->price[l]))
			return false;
	if (frac_cmp(bound->rate, proof->rate) < 0)
		*proof = *bound;
	return true;
}

Status
path_columns_bound(struct path_columns *s, Bound *proof)
{
	Bound bound = { .kind = CERTIFICATE_LENGTHS };
	TRY(NEW(s->ctx, bound.part, s->topo->n_vertices));
	TRY(NEW(s->ctx, bound.price, s->topo->n_links));
	for (int i = 0; i < N_SMALL_PRICES; i++) {
		measure(s, path_small_price[i]);
		keep_bound(s);
	}
	for (double most = COARSE_PRICE; !make_bound(s, &bound, proof) && most >= 1; most /= 8) {
		measure(s, most);
		s->bound = FRAC_ZERO;
		if (!keep_bound(s))
			return OK;
	}
	return OK;
}

/* ---- the linear program ---- */

static Status
add_column(struct path_columns *s, const struct path_column *c)
{
	int n = 0;
	for (int o = 0; o < s->sym->n_orbits; o++)
		if (c->uses[o] > 0) {
			s->row[n] = o;
			s->entry[n++] = (double)c->uses[o] / s->n_demands;
		}
	s->row[n] = s->sym->n_orbits + c->from;
	s->entry[n++] = -1;
	TRY(tableau_add(&s->tableau, s->row, s->entry, n));
	s->column[s->n_columns++] = *c;
	return OK;
}

/* The program anew, with the columns that have parts alone, where doubles are no longer accurate enough. */
static Status
renew(struct path_columns *s)
{
	int n = s->n_columns;
	TRY(new_program(s));
	s->n_columns = 0;
	for (int c = 0; c < n; c++)
		if (s->column[c].parts > 0)
			TRY(add_column(s, &s->column[c]));
	return OK;
}

static double
value_of(const struct path_columns *s)
{
	return tableau_value(&s->tableau, RATE_COLUMN);
}

static double
value_of_column(const struct path_columns *s, int c)
{
	return tableau_value(&s->tableau, RATE_COLUMN + 1 + c);
}

static bool
gains(const struct path_columns *s, const struct path_column *c)
{
	double cost = 0;
	for (int o = 0; o < s->sym->n_orbits; o++)
		cost += s->y[o] * (double)c->uses[o] / s->n_demands;
	return cost * s->cost < tableau_price(&s->tableau, s->sym->n_orbits + c->from) * (1 - LEAST_GAIN) - LEAST_GAIN
	    / s->sym->n_representatives;
}

/* Returns what all limits cost before. */
static double
scale(struct path_columns *s, double *y)
{
	double sum = 0;
	for (int o = 0; o < s->sym->n_orbits; o++)
		sum += s->limit[o] * y[o];
	for (int o = 0; o < s->sym->n_orbits; o++)
		y[o] /= sum;
	return sum;
}

/* Cheapest paths where each link costs what it is slow. */
static Status
first_columns(struct path_columns *s, bool *good)
{
	for (int l = 0; l < s->topo->n_links; l++)
		s->best_y[s->sym->link_orbit[l]] = 1 / (double)s->topo->link[l].capacity;
	scale(s, s->best_y);
	set_prices(s, s->best_y, FINE_PRICE, true);
	TRY(find_columns(s, good));
	keep_bound(s);
	for (int i = 0; i < s->sym->n_representatives && *good; i++)
		TRY(add_column(s, &s->next[i]));
	return OK;
}

/* Prices are mostly those of the best bound and in part those of the basis, or else paths would keep away from the
 * links alone that the last columns filled (Wentges 1997); where that finds nothing, those of the basis. *good: some
 * gain. */
static Status
next_columns(struct path_columns *s, bool *good)
{
	for (int o = 0; o < s->sym->n_orbits; o++)
		s->y[o] = tableau_price(&s->tableau, o);
	s->cost = scale(s, s->y);
	*good = false;
	for (int smooth = 1; smooth >= 0 && !*good; smooth--) {
		bool reached;
		for (int o = 0; o < s->sym->n_orbits; o++)
			s->between[o] = smooth ? (1 - SMOOTH) * s->y[o] + SMOOTH * s->best_y[o] : s->y[o];
		set_prices(s, s->between, FINE_PRICE, true);
		TRY(find_columns(s, &reached));
		if (keep_bound(s))
			memcpy(s->best_y, s->between, (size_t)s->sym->n_orbits * sizeof *s->y);
		for (int i = 0; i < s->sym->n_representatives; i++)
			if (s->n_columns < MOST_COLUMNS && gains(s, &s->next[i])) {
				TRY(add_column(s, &s->next[i]));
				*good = true;
			}
	}
	return OK;
}

/* What rounding leaves of `all` is for the first of the largest columns of a representative. False: one has none, or
 * less than nothing. */
static bool
round_parts(struct path_columns *s, double value, int all)
{
	int n = s->sym->n_representatives;
	for (int i = 0; i < n; i++) {
		s->most[i] = -1;
		s->left[i] = all;
	}
	for (int c = 0; c < s->n_columns; c++) {
		struct path_column *column = &s->column[c];
		int *most = &s->most[column->from];
		column->parts = (int64_t)(value_of_column(s, c) / value * all + 0.5);
		s->left[column->from] -= column->parts;
		*most = *most < 0 || column->parts > s->column[*most].parts ? c : *most;
	}
	for (int i = 0; i < n; i++)
		if (s->most[i] < 0 || (s->column[s->most[i]].parts += s->left[i]) < 0)
			return false;
	return true;
}

/* Of all images. Few columns are in the basis. */
static void
add_loads(struct path_columns *s)
{
	memset(s->load, 0, (size_t)s->sym->n_orbits * sizeof *s->load);
	for (int c = 0; c < s->n_columns; c++)
		for (int o = 0; o < s->sym->n_orbits && s->column[c].parts > 0; o++)
			s->load[o] += (Wide)s->column[c].parts * s->column[c].uses[o] * s->sym->size;
}

bool
path_columns_parts(struct path_columns *s, int all, Frac *rate)
{
	double value = value_of(s);
	Wide num = 0, den = 1;
	if (!round_parts(s, value, all))
		return false;
	add_loads(s);
	for (int o = 0; o < s->sym->n_orbits; o++)
		if (s->load[o] > 0 && (num == 0 || ratio_cmp(s->capacity[o], s->load[o], num, den) < 0)) {
			num = s->capacity[o];
			den = s->load[o];
		}
	return num > 0 && value > 0 && frac_make(num * all, den, rate);
}

/* Those of the highest rate, and of these the fewest. */
static void
choose_parts(struct path_columns *s, Frac *rate)
{
	static const int few[] = { 1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 60, 840, FINE_PARTS };
	int best = 0;
	Frac one;
	*rate = FRAC_ZERO;
	for (size_t i = 0; i < sizeof few / sizeof *few; i++)
		if (path_columns_parts(s, few[i], &one) && frac_cmp(one, *rate) > 0) {
			*rate = one;
			best = few[i];
		}
	if (best)
		path_columns_parts(s, best, rate);
}

Status
path_columns_find(struct path_columns *s, Frac top, Frac *rate)
{
	bool good;
	*rate = FRAC_ZERO;
	TRY(first_columns(s, &good));
	if (!good)
		return OK;
	for (int renewed = 0; good;) {
		int steps = MOST_STEPS;
		if (!tableau_solve(&s->tableau, &steps)) {
			if (rate->num == 0 || renewed++ == MOST_RENEWED)
				return OK;
			TRY(renew(s));
			continue;
		}
		*rate = path_columns_parts(s, FINE_PARTS, rate) ? *rate : FRAC_ZERO;
		bool ends = s->n_columns == MOST_COLUMNS
		    || (int64_t)(s->n_columns + 1) * s->topo->n_ranks > MOST_FOUND
		    || progress(s->ctx, "paths of %d GPUs: round %d", s->topo->n_ranks, s->n_columns) <= 0;
		double value = frac_double(*rate) / NEARLY;
		if (ends || value >= frac_double(top) || value >= frac_double(s->bound)) {
			choose_parts(s, rate);
			ends |= frac_cmp(*rate, top) >= 0 || frac_cmp(*rate, s->bound) >= 0;
		}
		if (ends)
			return OK;
		TRY(next_columns(s, &good));
	}
	choose_parts(s, rate);
	return OK;
}
