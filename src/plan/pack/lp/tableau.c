#include "base/array.h"
#include "base/hash.h"
#include "plan/pack/lp/tableau.h"

#include <math.h>
#include <string.h>

enum {
	PAIR = 2,		/* numbers of a vector: rows are a multiple of it long */
	FIRST_ROOM = 192
};

typedef double Pair __attribute__((vector_size(PAIR * sizeof(double))));

#define PIVOT 1e-7		/* entries of the entering column that are less are no pivots */
#define TRIFLE 1e-11		/* what is less is 0 but for rounding */
#define GAIN 1e-9		/* relative to the largest cost: what is less is no gain */
#define SLIP 1e-9		/* by which a value may pass its floor in the ratio test */
#define MISS 1e-7		/* relative to the largest limit: a basis that misses a row by more is not accurate */

static double *
inverse_row(const Tableau *t, int i)
{
	return t->inverse + (size_t)i * (size_t)t->width;
}

/* Room for more variables. */
static Status
widen(Tableau *t, int room)
{
	double *cost, *gain, *weight;
	int *row_of, *first, *left;
	TRY(TEMP(t->ctx, cost, room));
	TRY(TEMP(t->ctx, gain, room));
	TRY(TEMP(t->ctx, weight, room));
	TRY(TEMP(t->ctx, row_of, room));
	TRY(TEMP(t->ctx, first, room + 1));
	TRY(TEMP(t->ctx, left, room));
	if (t->n > 0) {
		size_t n = (size_t)t->n;
		memcpy(cost, t->cost, n * sizeof *cost);
		memcpy(gain, t->gain, n * sizeof *gain);
		memcpy(row_of, t->row_of, n * sizeof *row_of);
		memcpy(first, t->first, (n + 1) * sizeof *first);
	}
	t->cost = cost;
	t->gain = gain;
	t->weight = weight;
	t->row_of = row_of;
	t->first = first;
	t->left = left;
	t->room = room;
	return OK;
}

/* A variable, which is not basic. */
static Status
add_variable(Tableau *t, const int *row, const double *entry, int n)
{
	if (t->n == t->room)
		TRY(widen(t, 2 * t->room));
	for (int k = 0; k < n; k++) {
		TRY(GROW_TEMP(t->ctx, t->row, t->n_entries, t->row_room));
		TRY(GROW_TEMP(t->ctx, t->entry, t->n_entries, t->entry_room));
		t->row[t->n_entries] = row[k];
		t->entry[t->n_entries++] = entry[k];
	}
	t->row_of[t->n++] = -1;
	t->first[t->n] = t->n_entries;
	return OK;
}

Status
tableau_new(Ctx *ctx, const double *limit, int m, Tableau *out)
{
	const double one = 1;
	Tableau t = { .ctx = ctx, .m = m, .width = (m + PAIR - 1) / PAIR * PAIR };
	TRY(widen(&t, m + FIRST_ROOM));
	TRY(TEMP(ctx, t.inverse, (size_t)m * (size_t)t.width));
	TRY(TEMP(ctx, t.value, m));
	TRY(TEMP(ctx, t.basic, m));
	TRY(TEMP(ctx, t.limit, m));
	TRY(TEMP(ctx, t.entering, m));
	TRY(TEMP(ctx, t.price, t.width));
	for (int i = 0; i < m; i++) {
		TRY(add_variable(&t, &i, &one, 1));
		inverse_row(&t, i)[i] = 1;
		t.value[i] = t.limit[i] = limit[i];
		t.basic[i] = t.row_of[i] = i;
	}
	*out = t;
	return OK;
}

Status
tableau_add(Tableau *t, const int *row, const double *entry, int n)
{
	return add_variable(t, row, entry, n);
}

void
tableau_cost(Tableau *t, int column, double cost)
{
	t->cost[t->m + column] = cost;
}

/* The least value of a variable. */
static double
floor_of(const Tableau *t, int variable)
{
	return variable == t->m ? t->floor : 0;
}

static double
value_of(const Tableau *t, int variable)
{
	return t->row_of[variable] < 0 ? floor_of(t, variable) : t->value[t->row_of[variable]];
}

double
tableau_value(const Tableau *t, int column)
{
	return value_of(t, t->m + column);
}

bool
tableau_is_basic(const Tableau *t, int variable)
{
	return t->row_of[variable] >= 0;
}

double
tableau_price(const Tableau *t, int row)
{
	return -t->gain[row];
}

bool
tableau_raise(Tableau *t, double floor)
{
	if (t->row_of[t->m] < 0 || value_of(t, t->m) < floor * (1 - MISS))
		return false;
	t->floor = floor;
	return true;
}

/* ---- rows ---- */

/* to += times * from */
static inline void
add_row(double *restrict to, double times, const double *restrict from, int n)
{
	for (int i = 0; i < n; i += PAIR) {
		Pair sum, more;
		memcpy(&sum, to + i, sizeof sum);
		memcpy(&more, from + i, sizeof more);
		sum += times * more;
		memcpy(to + i, &sum, sizeof sum);
	}
}

/* A row times the column of a variable. */
static inline double
times_column(const Tableau *t, const double *row, int v)
{
	double sum = 0;
	for (int k = t->first[v]; k < t->first[v + 1]; k++)
		sum += row[t->row[k]] * t->entry[k];
	return sum;
}

/* ---- steps ---- */

static void
set_gains(Tableau *t)
{
	memset(t->price, 0, (size_t)t->width * sizeof *t->price);
	for (int i = 0; i < t->m; i++)
		if (t->cost[t->basic[i]] != 0)
			add_row(t->price, t->cost[t->basic[i]], inverse_row(t, i), t->width);
	for (int v = 0; v < t->n; v++) {
		t->gain[v] = t->row_of[v] >= 0 ? 0 : t->cost[v] - times_column(t, t->price, v);
		t->weight[v] = 1;
	}
}

/* That with the most gain by its weight, or, so that no basis comes twice, the first that has some; -1: none. */
static int
entering_variable(const Tableau *t, double least, bool first)
{
	int enter = -1;
	double most = 0;
	for (int v = 0; v < t->n; v++) {
		double square = t->gain[v] * t->gain[v];
		if (t->gain[v] <= least || square <= most * t->weight[v])
			continue;
		enter = v;
		most = square / t->weight[v];
		if (first)
			break;
	}
	return enter;
}

static void
set_entering(Tableau *t, int enter)
{
	for (int i = 0; i < t->m; i++)
		t->entering[i] = times_column(t, inverse_row(t, i), enter);
}

/* By how much what is basic in a row may become less. */
static double
left_in(const Tableau *t, int i)
{
	double left = t->value[i] - floor_of(t, t->basic[i]);
	return left > 0 ? left : 0;
}

/* The row that leaves: of those that allow about the least, that with the largest pivot; -1: none, so there is no
 * optimum. */
static int
leaving_row(const Tableau *t, bool first)
{
	double least = INFINITY;
	int leave = -1;
	for (int i = 0; i < t->m; i++) {
		double left = t->entering[i] > PIVOT ? (left_in(t, i) + SLIP) / t->entering[i] : INFINITY;
		least = left < least ? left : least;
	}
	for (int i = 0; i < t->m; i++) {
		if (t->entering[i] <= PIVOT || left_in(t, i) > least * t->entering[i])
			continue;
		if (leave < 0 || (first ? t->basic[i] < t->basic[leave] : t->entering[i] > t->entering[leave]))
			leave = i;
	}
	return leave;
}

/* After row `leave` of the inverse is divided by the pivot. */
static void
change_gains(Tableau *t, int enter, int leave)
{
	const double *row = inverse_row(t, leave);
	double gain = t->gain[enter], weight = t->weight[enter];
	t->gain[enter] = 0;
	for (int v = 0; v < t->n; v++) {
		double times = t->row_of[v] >= 0 ? 0 : times_column(t, row, v);
		if (fabs(times) < TRIFLE)
			continue;
		t->gain[v] -= times * gain;
		if (t->weight[v] < times * times * weight)
			t->weight[v] = times * times * weight;
	}
}

/* A variable becomes basic in row `leave`, and its variable leaves. */
static void
exchange(Tableau *t, int enter, int leave)
{
	double *row = inverse_row(t, leave), pivot = t->entering[leave], step = left_in(t, leave) / pivot;
	int out = t->basic[leave];
	for (int k = 0; k < t->width; k++)
		row[k] = fabs(row[k]) < TRIFLE ? 0 : row[k] / pivot;
	for (int i = 0; i < t->m; i++) {
		if (i == leave || fabs(t->entering[i]) < TRIFLE)
			continue;
		t->value[i] -= step * t->entering[i];
		add_row(inverse_row(t, i), -t->entering[i], row, t->width);
	}
	t->value[leave] = floor_of(t, enter) + step;
	t->basic[leave] = enter;
	t->row_of[enter] = leave;
	t->row_of[out] = -1;
}

/* False: no optimum. */
static bool
take_steps(Tableau *t, int *steps)
{
	double most = 0;
	int idle = 0;
	set_gains(t);
	for (int v = 0; v < t->n; v++)
		most = fmax(most, fabs(t->cost[v]));
	for (;;) {
		bool first = idle > 2 * t->m;
		int enter = entering_variable(t, GAIN * most, first), leave;
		if (enter < 0)
			return true;
		set_entering(t, enter);
		leave = --*steps > 0 ? leaving_row(t, first) : -1;
		if (leave < 0)
			return false;
		idle = left_in(t, leave) > SLIP ? 0 : idle + 1;
		t->weight[t->basic[leave]] = 1;
		exchange(t, enter, leave);
		change_gains(t, enter, leave);
	}
}

/* By how much the values miss a row, or their floor. */
static double
missed(const Tableau *t)
{
	double *left = t->price, most = 0;
	memcpy(left, t->limit, (size_t)t->m * sizeof *left);
	for (int v = 0; v < t->n; v++) {
		double value = value_of(t, v);
		most = fmax(most, floor_of(t, v) - value);
		for (int k = t->first[v]; value != 0 && k < t->first[v + 1]; k++)
			left[t->row[k]] -= value * t->entry[k];
	}
	for (int i = 0; i < t->m; i++)
		most = fmax(most, fabs(left[i]));
	return most;
}

static bool
is_accurate(const Tableau *t)
{
	double most = 0;
	for (int i = 0; i < t->m; i++)
		most = fmax(most, t->limit[i]);
	return missed(t) <= MISS * most;
}

bool
tableau_solve(Tableau *t, int *steps)
{
	return take_steps(t, steps) && is_accurate(t);
}

/* ---- fewer columns ---- */

static bool
is_column(const Tableau *t, int v)
{
	return v > t->m;
}

/* Slacks of 0 leave the basis, where some column can take their place. */
static void
drive_out(Tableau *t)
{
	for (int i = 0; i < t->m; i++) {
		int enter = -1;
		double most = PIVOT;
		if (is_column(t, t->basic[i]) || left_in(t, i) > SLIP)
			continue;
		for (int v = t->m + 1; v < t->n; v++) {
			double times = t->row_of[v] >= 0 ? 0 : fabs(times_column(t, inverse_row(t, i), v));
			if (times > most) {
				most = times;
				enter = v;
			}
		}
		if (enter < 0)
			continue;
		set_entering(t, enter);
		t->value[i] = floor_of(t, t->basic[i]);
		exchange(t, enter, i);
	}
}

/* How many columns more are above their floor once that of t->entering has come in. *leave: -1: none leaves,
 * or at once. */
static int
columns_more(const Tableau *t, int *leave)
{
	int more = 1;
	*leave = leaving_row(t, false);
	double step = *leave < 0 ? 0 : left_in(t, *leave) / t->entering[*leave];
	if (step <= SLIP) {
		*leave = -1;
		return 1;
	}
	for (int i = 0; i < t->m; i++)
		if (is_column(t, t->basic[i]))
			more += (t->value[i] - step * t->entering[i] > SLIP) - (t->value[i] > SLIP);
	return more;
}

void
tableau_stir(Tableau *t, uint64_t seed)
{
	enum { STEPS = 5 };
	int n = t->n - t->m - 1;
	for (int i = 0; i < STEPS; i++) {
		int first = (int)(hash_unit(seed, (uint64_t)i) * n), leave = -1;
		for (int k = 0; k < n && leave < 0; k++) {
			int v = t->m + 1 + (first + k) % n;
			if (t->row_of[v] >= 0)
				continue;
			set_entering(t, v);
			columns_more(t, &leave);
			if (leave >= 0)
				exchange(t, v, leave);
		}
	}
}

bool
tableau_thin(Tableau *t)
{
	enum { AGE = 8, SIDEWAYS = 8 };	/* steps after which a column may come back; to neighbours with as many */
	int steps = AGE, sideways = SIDEWAYS, idle = 0, other = -1, v = t->m;
	drive_out(t);
	memset(t->left, 0, (size_t)t->n * sizeof *t->left);
	while (idle <= t->n) {
		int leave = -1, more = 1, enter = v = v + 1 < t->n ? v + 1 : t->m + 1;
		idle++;
		if (t->row_of[v] < 0 && steps - t->left[v] >= AGE) {
			set_entering(t, v);
			more = columns_more(t, &leave);
		}
		if (leave >= 0 && more == 0 && other < 0)
			other = v;
		if ((leave < 0 || more >= 0) && (idle <= t->n || other < 0 || sideways-- <= 0))
			continue;
		if (idle > t->n) {
			enter = other;
			set_entering(t, enter);
			leave = leaving_row(t, false);
		}
		t->left[t->basic[leave]] = ++steps;
		exchange(t, enter, leave);
		idle = 0;
		other = -1;
	}
	return is_accurate(t);
}
