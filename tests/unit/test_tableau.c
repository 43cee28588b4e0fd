/* tableau_solve and tableau_thin on random programs: what proves that a vertex is optimal, and that it is one. */
#include "plan/pack/lp/tableau.h"
#include "random.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 30, COLUMNS = 400, ENTRIES = 9 };

static struct program {
	int m, n;
	double limit[ROWS], entry[COLUMNS][ROWS], cost[COLUMNS];
} q;

/* Capacities in small whole numbers, as of links, some 0; columns of a few ones and twos. */
static void
make_program(void)
{
	q.m = 2 + below(ROWS - 2);
	q.n = 0;
	for (int i = 0; i < q.m; i++)
		q.limit[i] = below(6);
}

static Status
add_columns(Tableau *t, int n)
{
	for (; n > 0; n--, q.n++) {
		int row[ENTRIES], k = 0;
		double entry[ENTRIES];
		for (int i = 0; i < q.m; i++)
			q.entry[q.n][i] = 0;
		for (int i = below(q.m), times = 1 + below(ENTRIES); k < times && i < q.m; i += 1 + below(4)) {
			row[k] = i;
			entry[k] = q.entry[q.n][i] = 1 + below(2);
			k++;
		}
		TRY(tableau_add(t, row, entry, k));
		q.cost[q.n] = 0;
	}
	return OK;
}

static int
columns_above(const Tableau *t)
{
	int n = 0;
	for (int c = 1; c < q.n; c++)
		n += tableau_value(t, c) > 1e-7;
	return n;
}

/* Rows that are exceeded, values below 0, and more columns than a vertex has. */
static int
not_a_vertex(const Tableau *t)
{
	int wrong = 0, basic = 0;
	for (int i = 0; i < q.m; i++) {
		double sum = 0;
		for (int c = 0; c < q.n; c++)
			sum += q.entry[c][i] * tableau_value(t, c);
		wrong += sum > q.limit[i] + 1e-6;
	}
	for (int c = 0; c < q.n; c++) {
		wrong += tableau_value(t, c) < -1e-6;
		basic += tableau_is_basic(t, q.m + c);
	}
	for (int i = 0; i < q.m; i++)
		basic += tableau_is_basic(t, i);
	return wrong + (basic != q.m);
}

/* Prices of at least 0 under which no column gains anything, and whose sum is that of the costs. */
static int
not_optimal(const Tableau *t)
{
	double sum = 0, bound = 0;
	int wrong = 0;
	for (int i = 0; i < q.m; i++) {
		wrong += tableau_price(t, i) < -1e-6;
		bound += tableau_price(t, i) * q.limit[i];
	}
	for (int c = 0; c < q.n; c++) {
		double gain = q.cost[c];
		for (int i = 0; i < q.m; i++)
			gain -= tableau_price(t, i) * q.entry[c][i];
		wrong += gain > 1e-6;
		sum += q.cost[c] * tableau_value(t, c);
	}
	return wrong + (fabs(sum - bound) > 1e-6 * (1 + bound));
}

/* Costs change, and columns come in, as in column generation; and at a vertex fewer columns are sought. */
static Status
run_program(Ctx *ctx, int *wrong, int *fewer)
{
	Tableau t;
	make_program();
	TRY(tableau_new(ctx, q.limit, q.m, &t));
	for (int round = 0; round < 6; round++) {
		int steps = 100000;
		TRY(add_columns(&t, 1 + below(COLUMNS / 6)));
		for (int c = 0; c < q.n; c++) {
			q.cost[c] = round == 5 ? -1 : below(8);
			tableau_cost(&t, c, q.cost[c]);
		}
		if (round == 5) {
			double value = tableau_value(&t, 0);
			if (!tableau_raise(&t, value)) {
				*wrong += tableau_is_basic(&t, q.m);
				break;
			}
			*wrong += !tableau_solve(&t, &steps) || tableau_value(&t, 0) < value - 1e-6 || not_a_vertex(&t);
			break;
		}
		*wrong += !tableau_solve(&t, &steps) || not_a_vertex(&t) || not_optimal(&t);
		int before = columns_above(&t);
		*wrong += !tableau_thin(&t) || not_a_vertex(&t) || columns_above(&t) > before;
		*fewer += columns_above(&t) < before;
		tableau_stir(&t, (uint64_t)round);
		*wrong += not_a_vertex(&t);
	}
	return OK;
}

int
main(void)
{
	int wrong = 0, fewer = 0;
	for (int round = 0; round < 300; round++) {
		Ctx ctx;
		ctx_init(&ctx);
		if (run_program(&ctx, &wrong, &fewer) != OK)
			wrong++;
		ctx_free(&ctx);
	}
	/* Some optimal vertices have neighbours with fewer columns. */
	return report(wrong, "random programs") + report(fewer < 30, "fewer columns") ? EXIT_FAILURE : EXIT_SUCCESS;
}
