/* The solution of the linear program in fractions: doubles only say which rows are tight and which trees are in the
 * basis; their values are solved for again, exactly. */
#include "base/linear.h"
#include "plan/pack/linear/images.h"
#include "plan/pack/linear/master.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- equations ---- */

/* Column j of the basis; rows with slack have no place in the matrix. */
static void
fill_column(const struct master *m, size_t j, bool transposed, int64_t *matrix)
{
	size_t width = (size_t)m->n_basis + 1;
	bool rate = m->basic[j] == RATE_COLUMN;
	const struct column *c = rate ? NULL : &m->column[m->basic[j]];
	for (int i = 0; i < (rate ? m->n_demand_rows + 1 : c->n + 1); i++) {
		int row = m->n_link_rows + (rate ? i : c->orbit);
		int64_t entry = !rate ? -1 : i < m->n_demand_rows ? 1 : m->target.den;
		if (!rate && i < c->n) {
			row = c->row[i];
			entry = c->uses[i];
		}
		int at = m->tight_at[row];
		if (at >= 0)
			matrix[transposed ? j * width + (size_t)at : (size_t)at * width + j] = entry;
	}
}

/* The right side of row i. x: capacities of links, and 0 for demands. y: of the objective only r has a coefficient,
 * 1. */
static int64_t
right_side(const struct master *m, size_t i, bool transposed)
{
	if (transposed)
		return m->basic[i] == RATE_COLUMN;
	if (m->tight[i] < m->n_link_rows)
		return m->capacity[m->tight[i]];
	return m->tight[i] < m->n_rows - 1 ? 0 : (int64_t)m->target.num;
}

Status
basis_solve(struct master *m, bool transposed, Frac *out, bool *done)
{
	ArenaMark mark = arena_mark(&m->ctx->scratch);
	size_t n = (size_t)m->n_basis, width = n + 1;
	int64_t *matrix, *spare;
	TRY(TEMP(m->ctx, matrix, n * width));
	TRY(TEMP(m->ctx, spare, linear_spare(m->n_basis)));
	for (size_t i = 0; i < n; i++) {
		fill_column(m, i, transposed, matrix);
		matrix[i * width + n] = right_side(m, i, transposed);
	}
	*done = linear_solve(matrix, spare, m->n_basis, out);
	arena_release(&m->ctx->scratch, mark);
	return OK;
}

/* y of the i-th tight row as the price of one link of its orbit; z as that of one demand. */
static bool
price_of(const struct master *m, int i, Frac *out)
{
	int row = m->tight[i];
	return frac_div(m->y[i],
	    (Frac){ row < m->n_link_rows ? m->divisor[row] : m->orbit_size[row - m->n_link_rows], 1 }, out);
}

bool
basis_prices(struct master *m)
{
	int64_t den = 1, limit = (INT64_C(1) << SEARCH_PRICE_BITS) - 1, *of_row = m->sum;
	Frac price;
	for (int i = 0; i < m->n_basis; i++) {
		if (!price_of(m, i, &price))
			return false;
		Wide next = (Wide)den / gcd64(den, price.den) * price.den;
		if (next > limit)
			return false;
		den = (int64_t)next;
	}
	for (int i = 0; i < m->n_basis; i++) {
		price_of(m, i, &price);
		if (price.num * (den / price.den) > limit)
			return false;
	}
	for (int i = 0; i < m->n_basis; i++) {
		price_of(m, i, &price);
		of_row[m->tight[i]] = (int64_t)(price.num * (den / price.den));
	}
	for (int l = 0; l < m->topo->n_links; l++)
		m->price[l] = of_row[m->sym->link_orbit[l]];
	memcpy(&m->price[m->topo->n_links], &of_row[m->n_link_rows], (size_t)m->n_demand_rows * sizeof *of_row);
	memset(of_row, 0, (size_t)m->n_rows * sizeof *of_row);
	return true;
}

/* ---- packings ---- */

/* How much of a column a packing takes. */
struct amount {
	int column, orbit;
	int64_t weight;
};

static int
by_orbit(const void *a, const void *b)
{
	const struct amount *p = a, *q = b;
	return p->orbit != q->orbit ? (p->orbit > q->orbit) - (p->orbit < q->orbit)
	    : (p->column > q->column) - (p->column < q->column);
}

/* Each orbit of demands gets `each`: what it has above that goes, from its last trees. False: some orbit has less. */
static bool
trim_amounts(const struct master *m, struct amount *amount, int n, int64_t each)
{
	qsort(amount, (size_t)n, sizeof *amount, by_orbit);
	for (int i = 0, d = 0; d < m->n_demand_rows; d++) {
		int64_t left = each;
		for (; i < n && amount[i].orbit == d; i++) {
			amount[i].weight = amount[i].weight < left ? amount[i].weight : left;
			left -= amount[i].weight;
		}
		if (left > 0)
			return false;
	}
	return true;
}

/* Amounts to a packing, where each tree becomes its images, which share its weight. *out stays where some orbit has
 * less than `each`, or the numbers are too large. */
static Status
pack_amounts(struct master *m, struct amount *amount, int n, int64_t each, Frac unit, Packing **out)
{
	Packing pack = { 0 }, *few = NULL;
	if (!trim_amounts(m, amount, n, each))
		return OK;
	TRY(pack_room(m->ctx, n, true, &pack));
	if (!frac_div(unit, (Frac){ m->sym->size, 1 }, &pack.unit))
		return OK;
	for (int i = 0; i < n; i++) {
		if (amount[i].weight == 0)
			continue;
		if ((Wide)amount[i].weight * m->orbit_size[amount[i].orbit] >> 62)
			return OK;
		pack.tree[pack.n_trees] = m->column[amount[i].column].tree;
		pack.demand[pack.n_trees] = m->representative[amount[i].orbit];
		pack.weight[pack.n_trees++] = amount[i].weight * m->orbit_size[amount[i].orbit];
	}
	if (m->turns)
		TRY(pack_turn(m->ctx, m->topo, m->sym, m->coll, m->root, &pack, &few));
	if (few) {
		*out = few;
		return OK;
	}
	return pack_unfold(m->ctx, m->topo, m->sym, m->coll, m->root, &pack, out);
}

/* The exact x as a packing; *out stays where its numbers are too large. */
static Status
basis_packing(struct master *m, Packing **out)
{
	struct amount *amount;
	int n = 0;
	int64_t den = frac_common(m->x, m->n_basis, INT64_C(1) << PACKING_BITS), each = 0;
	Frac unit;
	if (den == 0 || !frac_make(m->unit, den, &unit))
		return OK;
	TRY(TEMP(m->ctx, amount, m->n_basis));
	for (int i = 0; i < m->n_basis; i++) {
		Wide weight = m->x[i].num * (den / m->x[i].den);
		if (weight < 0 || weight >> 62)
			return OK;
		if (m->basic[i] == RATE_COLUMN)
			each = (int64_t)weight;
		else
			amount[n++] = (struct amount){ m->basic[i], m->column[m->basic[i]].orbit, (int64_t)weight };
	}
	return pack_amounts(m, amount, n, each, unit, out);
}

Status
basis_trees(struct master *m, Packing **out)
{
	bool exact = m->n_basis <= LIMIT_LP_BASIS;
	Packing *found = NULL;
	Frac rate;
	if (exact)
		TRY(basis_solve(m, false, m->x, &exact));
	if (exact)
		TRY(basis_packing(m, &found));
	/* What was read back is no proof until it is checked; and its rate must be a fraction. */
	*out = found && pack_fits(m->topo, found, m->price)
	    && pack_rate(found, m->coll, m->topo->n_ranks, &rate) ? found : NULL;
	return OK;
}

/* As pack_amounts: the first columns of an orbit are kept, as far as the orbit gets what every one gets. Only trees
 * count that are kept however doubles were rounded. */
bool
basis_no_better(const struct master *m, const Packing *pack)
{
	double each = basis_value(m), error = 1e-6 * each;
	int kept = 0, depth = 0, most = pack_depth(pack, m->work);
	if (m->sym->size > 1)
		return false;
	for (int d = 0; d < m->n_demand_rows; d++) {
		double sum = 0;
		for (int i = 0; i < m->n_basis; i++) {
			const struct column *c = m->basic[i] == RATE_COLUMN ? NULL : &m->column[m->basic[i]];
			if (!c || c->orbit != d)
				continue;
			if (m->value[i] > error && sum < each - error) {
				kept++;
				depth = c->depth > depth ? c->depth : depth;
			}
			sum += m->value[i];
		}
	}
	return kept > pack->n_trees || (kept == pack->n_trees && depth >= most);
}

/* By how much x exceeds the capacities, at least 1. */
static Status
congestion_of(const struct master *m, double *out)
{
	double *load;
	TRY(TEMP(m->ctx, load, m->n_link_rows));
	for (int i = 0; i < m->n_basis; i++) {
		const struct column *c = m->basic[i] == RATE_COLUMN ? NULL : &m->column[m->basic[i]];
		for (int k = 0; c && k < c->n; k++)
			load[c->row[k]] += (double)c->uses[k] * m->value[i];
	}
	*out = 1;
	for (int row = 0; row < m->n_link_rows; row++)
		*out = fmax(*out, load[row] / (double)m->capacity[row]);
	return OK;
}

double
basis_value(const struct master *m)
{
	double rate = 0;
	for (int i = 0; i < m->n_basis; i++)
		rate = m->basic[i] == RATE_COLUMN ? m->value[i] : rate;
	return rate;
}

Status
basis_rounded(struct master *m, Packing **out)
{
	struct amount *amount;
	double congestion;
	int64_t *sum, each = INT64_MAX;
	int n = 0, n_all = collective_demands(m->coll, m->topo->n_ranks);
	TRY(TEMP(m->ctx, amount, m->n_basis));
	TRY(TEMP(m->ctx, sum, m->n_demand_rows));
	TRY(congestion_of(m, &congestion));
	Frac unit = pack_unit(basis_value(m) * n_all / congestion * (double)m->unit, n_all);
	for (int i = 0; i < m->n_basis; i++) {
		if (m->basic[i] == RATE_COLUMN)
			continue;
		int64_t weight = (int64_t)(m->value[i] / congestion * (double)m->unit / frac_double(unit) * (1 - 1e-9));
		amount[n] = (struct amount){ m->basic[i], m->column[m->basic[i]].orbit, weight };
		sum[amount[n++].orbit] += weight;
	}
	for (int d = 0; d < m->n_demand_rows; d++)
		each = sum[d] < each ? sum[d] : each;
	if (each > 0)
		TRY(pack_amounts(m, amount, n, each, unit, out));
	return *out ? pack_check(m->ctx, m->topo, *out) : OK;
}

/* Weights of all trees have this number of bits together, where an image of a tree takes as many as the tree. */
static int
fine_bits(const struct master *m)
{
	int bits = PACKING_BITS - 1;
	for (int64_t size = m->sym->size; size > 1 && bits > 20; size /= 2)
		bits--;
	return bits;
}

/* The largest rate that the loads leave room for. */
static Status
widen(struct master *m, Packing *pack)
{
	Frac unit;
	if (pack_widest_unit(m->topo, pack, m->price, &unit) && frac_fits(unit))
		pack->unit = unit;
	return pack_check(m->ctx, m->topo, pack);
}

Status
basis_fine(struct master *m, const struct fine *fine, Packing **out)
{
	enum { TRIFLE_BITS = 42 };	/* trees of less than this part of the rate are what rounding left of none */
	struct amount *amount;
	int64_t *sum, each = INT64_MAX;
	int n = 0, n_all = collective_demands(m->coll, m->topo->n_ranks);
	Packing *found = NULL;
	Frac unit;
	TRY(TEMP(m->ctx, amount, m->n_columns));
	TRY(TEMP(m->ctx, sum, m->n_demand_rows));
	Wide part = ((fine->rate * n_all) >> fine_bits(m)) + 1, least = fine->rate >> TRIFLE_BITS;
	for (int c = 0; c < m->n_columns; c++) {
		Wide weight = fine->x[c] > least ? fine->x[c] / part : 0;
		if (weight < 1 || weight >> PACKING_BITS)
			continue;
		amount[n] = (struct amount){ c, m->column[c].orbit, (int64_t)weight };
		sum[amount[n++].orbit] += (int64_t)weight;
	}
	for (int d = 0; d < m->n_demand_rows; d++)
		each = sum[d] < each ? sum[d] : each;
	if (each > 0 && frac_make(part * m->unit, (Wide)1 << fine->bits, &unit))
		TRY(pack_amounts(m, amount, n, each, unit, &found));
	*out = found ? found : *out;
	return found ? widen(m, found) : OK;
}

/* ---- proof ---- */

/* M divided by the size of a demand, times the sum of capacity * y. */
bool
basis_rate(struct master *m, Frac *out)
{
	Frac sum = FRAC_ZERO, one;
	for (int i = 0; i < m->n_basis; i++) {
		if (m->tight[i] >= m->n_link_rows)
			continue;
		if (!frac_mul((Frac){ m->capacity[m->tight[i]], 1 }, m->y[i], &one) || !frac_add(sum, one, &sum))
			return false;
	}
	return frac_mul(sum, (Frac){ collective_shares(m->coll, m->topo->n_ranks), 1 }, &sum)
	    && frac_mul(sum, (Frac){ m->unit, 1 }, out);
}

Status
basis_bound(struct master *m, const Bound *known, Bound *out)
{
	Bound bound = { .rate = m->optimum, .kind = collective_has_blocks(m->coll) ? CERTIFICATE_LENGTHS
	    : CERTIFICATE_PRICES };
	Frac *of_row, shares = { collective_shares(m->coll, m->topo->n_ranks), 1 };
	if (frac_cmp(m->optimum, known->rate) >= 0) {
		*out = *known;
		return OK;
	}
	TRY(TEMP(m->ctx, of_row, m->n_link_rows));
	TRY(NEW(m->ctx, bound.part, m->topo->n_vertices));
	TRY(NEW(m->ctx, bound.price, m->topo->n_links));
	for (int row = 0; row < m->n_link_rows; row++) {
		of_row[row] = FRAC_ZERO;
		if (m->tight_at[row] >= 0 && (!price_of(m, m->tight_at[row], &of_row[row])
		    || !frac_mul(of_row[row], shares, &of_row[row]) || !frac_fits(of_row[row])))
			return OK;
	}
	for (int l = 0; l < m->topo->n_links; l++)
		bound.price[l] = of_row[m->sym->link_orbit[l]];
	*out = bound;
	return OK;
}
