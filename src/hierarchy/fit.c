/* Parameters from measurements. The cost is linear in alpha, layer, server and network, so each measurement is a row
 *
 *     2 s sum (p_i - 1), h, bytes/rate within servers, bytes/rate between them     (in units of the parameters)
 *
 * and the least squares of the relative error, none of the four below 0, are those of one of the 16 sets of parameters
 * that are not 0: all are solved, and the best one without a negative value is the answer. */
#include "hierarchy/hierarchy.h"

#include <math.h>
#include <string.h>

enum { FIT_ALPHA, FIT_LAYER, FIT_SERVER, FIT_NETWORK, N_FIT };

/* A measurement: row . parameters = 1 where the cost is as measured. */
struct row {
	double x[N_FIT];
};

/* Sums of products over all rows; columns have length 1. */
struct sums {
	double xx[N_FIT][N_FIT], xy[N_FIT], yy, length[N_FIT];
};

static const size_t fit_at[N_FIT] = { offsetof(HierarchyCost, alpha), offsetof(HierarchyCost, layer),
	offsetof(HierarchyCost, server), offsetof(HierarchyCost, network) };

static const HierarchyParameter *
fit_parameter(int f)
{
	const HierarchyParameter *row = hierarchy_parameters;
	while (row->at != fit_at[f])
		row++;
	return row;
}

/* What each parameter adds to the cost: of itself alone, at its unit. */
static struct row
row_of(const HierarchyMachine *machine, const Measurement *measured, int64_t steps)
{
	struct row row;
	for (int f = 0; f < N_FIT; f++) {
		HierarchyModel model = { .machine = machine, .m = measured->m, .cost = { .steps = steps } };
		const HierarchyParameter *parameter = fit_parameter(f);
		*hierarchy_parameter(&model.cost, parameter) = parameter->unit;
		row.x[f] = (double)hierarchy_time(&model, &measured->layers) / ((double)measured->time * 1e3);
	}
	return row;
}

static void
add_up(const struct row *row, int n, struct sums *out)
{
	*out = (struct sums){ .yy = n };
	for (int k = 0; k < n; k++)
		for (int f = 0; f < N_FIT; f++)
			out->length[f] += row[k].x[f] * row[k].x[f];
	for (int f = 0; f < N_FIT; f++)
		out->length[f] = sqrt(out->length[f]);
	for (int k = 0; k < n; k++)
		for (int f = 0; f < N_FIT; f++) {
			double x = out->length[f] > 0 ? row[k].x[f] / out->length[f] : 0;
			out->xy[f] += x;
			for (int g = 0; g < N_FIT && out->length[f] > 0; g++)
				if (out->length[g] > 0)
					out->xx[f][g] += x * row[k].x[g] / out->length[g];
		}
}

/* Least squares with the parameters of `set` alone, by elimination; false: their columns are dependent. */
static bool
solve(const struct sums *sums, unsigned set, double value[N_FIT])
{
	double a[N_FIT][N_FIT + 1];
	int of[N_FIT], n = 0;
	for (int f = 0; f < N_FIT; f++) {
		value[f] = 0;
		if (set >> f & 1)
			of[n++] = f;
	}
	for (int i = 0; i < n; i++) {
		for (int j = 0; j < n; j++)
			a[i][j] = sums->xx[of[i]][of[j]];
		a[i][n] = sums->xy[of[i]];
	}
	/* A Gram matrix needs no exchange of rows; the pivot is what the columns before leave of this one, squared. */
	for (int i = 0; i < n; i++) {
		if (a[i][i] < 1e-10)
			return false;
		for (int k = i + 1; k < n; k++) {
			double factor = a[k][i] / a[i][i];
			for (int j = i; j <= n; j++)
				a[k][j] -= factor * a[i][j];
		}
	}
	for (int i = n - 1; i >= 0; i--) {
		double left = a[i][n];
		for (int j = i + 1; j < n; j++)
			left -= a[i][j] * value[of[j]];
		value[of[i]] = left / a[i][i];
	}
	return true;
}

/* Sum of squares that is left. */
static double
left_over(const struct sums *sums, const double value[N_FIT])
{
	double sum = sums->yy;
	for (int f = 0; f < N_FIT; f++) {
		sum -= 2 * value[f] * sums->xy[f];
		for (int g = 0; g < N_FIT; g++)
			sum += value[f] * value[g] * sums->xx[f][g];
	}
	return sum;
}

/* present: parameters that some measurement needs. */
static void
solve_best(const struct sums *sums, unsigned present, double best[N_FIT])
{
	double least = INFINITY, value[N_FIT];
	for (unsigned set = 1; set < 1u << N_FIT; set++) {
		bool negative = false;
		if ((set & ~present) || !solve(sums, set, value))
			continue;
		for (int f = 0; f < N_FIT; f++)
			negative = negative || value[f] < 0;
		double left = left_over(sums, value);
		if (!negative && left < least) {
			least = left;
			memcpy(best, value, N_FIT * sizeof *best);
		}
	}
}

static Status
check_layers(Ctx *ctx, const char *label, const HierarchyMachine *machine, const Measurement *measured)
{
	int64_t product = 1;
	for (int l = 0; l < measured->layers.n; l++) {
		product *= measured->layers.size[l];
		if (hierarchy_size(machine, product) < 0)
			return fail(ctx, BAD_INPUT, "%.200s:%d: %.80s: want a product that divides %d, the "
			    "ranks of the job", label, measured->line, hierarchy_text(&measured->layers).text,
			    machine->n_ranks);
	}
	return OK;
}

/* How far off the cost is, with whole numbers as they are used. */
static void
find_errors(const HierarchyMachine *machine, const Measurement *list, int n, const HierarchyCost *cost,
    HierarchyFit *out)
{
	double sum = 0;
	for (int k = 0; k < n; k++) {
		HierarchyModel model = { .machine = machine, .cost = *cost, .m = list[k].m };
		double error = (double)hierarchy_time(&model, &list[k].layers) / ((double)list[k].time * 1e3) - 1;
		sum += error * error;
		if (k == 0 || fabs(error) > fabs(out->worst)) {
			out->worst = error;
			out->line = list[k].line;
		}
	}
	out->n = n;
	out->rms = sqrt(sum / n);
}

static Status
take_values(Ctx *ctx, const char *label, const struct sums *sums, unsigned present, const double *value,
    HierarchyCost *cost, HierarchyFit *out)
{
	for (int f = 0; f < N_FIT; f++) {
		const HierarchyParameter *row = fit_parameter(f);
		if (!(present >> f & 1))
			continue;
		double units = value[f] / sums->length[f] * (double)row->unit;
		if (!(units <= (double)row->most))
			return fail(ctx, BAD_INPUT, "%.200s: the fitted %s is %.3g: want at most %.3g", label,
			    row->name, units / (double)row->unit, (double)row->most / (double)row->unit);
		int64_t whole = (int64_t)(units + 0.5);
		*hierarchy_parameter(cost, row) = whole < row->least ? row->least : whole;
		out->fitted[row - hierarchy_parameters] = true;
	}
	return OK;
}

Status
hierarchy_fit(Ctx *ctx, const char *label, const HierarchyMachine *machine, const Measurement *list, int n,
    HierarchyCost *cost, HierarchyFit *out)
{
	struct sums sums;
	struct row *row;
	double value[N_FIT] = { 0 };
	unsigned present = 0;
	*out = (HierarchyFit){ .n = 0 };
	ArenaMark mark = arena_mark(&ctx->scratch);
	TRY(TEMP(ctx, row, n));
	for (int k = 0; k < n; k++) {
		TRY(check_layers(ctx, label, machine, &list[k]));
		row[k] = row_of(machine, &list[k], cost->steps);
	}
	add_up(row, n, &sums);
	arena_release(&ctx->scratch, mark);
	for (int f = 0; f < N_FIT; f++)
		present |= sums.length[f] > 0 ? 1u << f : 0;
	if (!solve(&sums, present, value))
		return fail(ctx, BAD_INPUT, "%.200s: %d measurements do not tell the parameters apart: want more "
		    "hierarchies, with few and many layers, and more sizes", label, n);
	solve_best(&sums, present, value);
	TRY(take_values(ctx, label, &sums, present, value, cost, out));
	find_errors(machine, list, n, cost, out);
	return OK;
}
