/* The solution of the linear program in fractions: doubles only say which rows are tight and which trees are in use, and what
 * these are worth is solved for again, exactly. */
#include "base/linear.h"
#include "exact.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Solve for x (transposed: for y) in the basis. False: singular, or no small fractions. */
Status
basis_solve(struct exact *e, bool transposed, Frac *out, bool *done)
{
	ArenaMark mark = arena_mark(&e->ctx->scratch);
	size_t n = (size_t)e->n_basis, width = n + 1;
	int64_t *m, *spare;
	TRY(TEMP(e->ctx, m, n * width));
	TRY(TEMP(e->ctx, spare, n * width));
	for (size_t j = 0; j < n; j++) {
		bool rate = e->basic[j] == RATE_COLUMN;
		const struct column *c = rate ? NULL : &e->column[e->basic[j]];
		for (int i = 0; i < (rate ? e->n_demands + 1 : c->n + 1); i++) {
			int row = e->n_links + (rate ? i : c->orbit);
			int64_t entry = !rate ? -1 : i < e->n_demands ? 1 : e->target.den;
			if (!rate && i < c->n) {
				row = c->row[i];
				entry = c->uses[i];
			}
			int at = e->place[row];
			if (at >= 0)
				m[transposed ? j * width + (size_t)at : (size_t)at * width + j] = entry;
		}
	}
	/* x: what the links have, and 0 for demands. y: only r is worth something. */
	for (size_t i = 0; i < n; i++) {
		int64_t *right = &m[i * width + n];
		if (transposed)
			*right = e->basic[i] == RATE_COLUMN;
		else
			*right = e->full[i] < e->n_links ? e->room[e->full[i]] : e->full[i] < e->n_rows - 1 ? 0 : e->target.num;
	}
	*done = linear_solve(m, spare, e->n_basis, out);
	arena_release(&e->ctx->scratch, mark);
	return OK;
}

/* Least common denominator; 0: past `limit`. */
static int64_t
common_denominator(const Frac *f, int n, int64_t limit)
{
	int64_t den = 1;
	for (int i = 0; i < n; i++) {
		Wide next = (Wide)den / gcd64(den, f[i].den) * f[i].den;
		if (next > limit)
			return 0;
		den = (int64_t)next;
	}
	return den;
}

/* y of the i-th full row as the price of one link of its orbit; z as that of one demand. */
static bool
price_of(const struct exact *e, int i, Frac *out)
{
	int row = e->full[i];
	return frac_div(e->y[i], (Frac){ row < e->n_links ? e->fold[row] : e->members[row - e->n_links], 1 }, out);
}

/* The exact y and z in integers, in e->price; false: out of range. */
bool
basis_prices(struct exact *e)
{
	int64_t den = 1, limit = (INT64_C(1) << SEARCH_PRICE_BITS) - 1, *of_row = e->sum;
	Frac price;
	for (int i = 0; i < e->n_basis; i++) {
		if (!price_of(e, i, &price))
			return false;
		Wide next = (Wide)den / gcd64(den, price.den) * price.den;
		if (next > limit)
			return false;
		den = (int64_t)next;
	}
	for (int i = 0; i < e->n_basis; i++) {
		price_of(e, i, &price);
		if ((Wide)price.num * (den / price.den) > limit)
			return false;
	}
	for (int i = 0; i < e->n_basis; i++) {
		price_of(e, i, &price);
		of_row[e->full[i]] = price.num * (den / price.den);
	}
	for (int l = 0; l < e->topo->n_links; l++)
		e->price[l] = of_row[e->sym->link_orbit[l]];
	memcpy(&e->price[e->topo->n_links], &of_row[e->n_links], (size_t)e->n_demands * sizeof *of_row);
	memset(of_row, 0, (size_t)e->n_rows * sizeof *of_row);
	return true;
}

/* ---- result ---- */

struct part {
	int column, orbit;
	int64_t weight;
};

static int
by_orbit(const void *a, const void *b)
{
	const struct part *p = a, *q = b;
	return p->orbit != q->orbit ? (p->orbit > q->orbit) - (p->orbit < q->orbit)
	    : (p->column > q->column) - (p->column < q->column);
}

/* Parts to a packing: what an orbit has above `each` goes, from its last trees. NULL: some orbit has less, or the numbers
 * are too large. Each tree becomes its images, which share its weight. */
static Status
pack_parts(struct exact *e, struct part *part, int n, int64_t each, Frac unit, Packing **out)
{
	Packing pack = { 0 };
	qsort(part, (size_t)n, sizeof *part, by_orbit);
	for (int i = 0, d = 0; d < e->n_demands; d++) {
		int64_t room = each;
		for (; i < n && part[i].orbit == d; i++) {
			part[i].weight = part[i].weight < room ? part[i].weight : room;
			room -= part[i].weight;
		}
		if (room > 0)
			return OK;
	}
	TRY(NEW(e->ctx, pack.tree, n));
	TRY(NEW(e->ctx, pack.demand, n));
	TRY(NEW(e->ctx, pack.weight, n));
	if (!frac_div(unit, (Frac){ e->sym->size, 1 }, &pack.unit))
		return OK;
	for (int i = 0; i < n; i++) {
		if (part[i].weight == 0)
			continue;
		if ((Wide)part[i].weight * e->members[part[i].orbit] >> 62)
			return OK;
		pack.tree[pack.n_trees] = e->column[part[i].column].tree;
		pack.demand[pack.n_trees] = e->lead[part[i].orbit];
		pack.weight[pack.n_trees++] = part[i].weight * e->members[part[i].orbit];
	}
	Packing *few = NULL;
	if (e->twists)
		TRY(pack_twist(e->ctx, e->topo, e->sym, e->coll, e->root, &pack, &few));
	if (few) {
		*out = few;
		return OK;
	}
	return pack_unfold(e->ctx, e->topo, e->sym, e->coll, e->root, &pack, out);
}

/* The exact x as a packing; NULL where its numbers are too large. */
Status
basis_packing(struct exact *e, Packing **out)
{
	struct part *part;
	int n = 0;
	int64_t den = common_denominator(e->x, e->n_basis, INT64_C(1) << PACKING_BITS), each = 0;
	Frac unit;
	if (den == 0 || !frac_make(e->unit, den, &unit))
		return OK;
	TRY(TEMP(e->ctx, part, e->n_basis));
	for (int i = 0; i < e->n_basis; i++) {
		Wide weight = (Wide)e->x[i].num * (den / e->x[i].den);
		if (weight < 0 || weight >> 62)
			return OK;
		if (e->basic[i] == RATE_COLUMN)
			each = (int64_t)weight;
		else
			part[n++] = (struct part){ e->basic[i], e->column[e->basic[i]].orbit, (int64_t)weight };
	}
	return pack_parts(e, part, n, each, unit, out);
}

/* x as GLPK says, scaled back into the capacities and rounded down to whole multiples of a small part of the rate. */
Status
basis_rounded(struct exact *e, Packing **out)
{
	struct part *part;
	double *load, congestion = 1, rate = 0;
	int64_t *sum, each = INT64_MAX;
	int n = 0;
	TRY(TEMP(e->ctx, part, e->n_basis));
	TRY(TEMP(e->ctx, load, e->n_links));
	TRY(TEMP(e->ctx, sum, e->n_demands));
	for (int i = 0; i < e->n_basis; i++) {
		if (e->basic[i] == RATE_COLUMN) {
			rate = e->value[i];
			continue;
		}
		const struct column *c = &e->column[e->basic[i]];
		for (int k = 0; k < c->n; k++)
			load[c->row[k]] += (double)c->uses[k] * e->value[i];
	}
	for (int row = 0; row < e->n_links; row++)
		congestion = fmax(congestion, load[row] / (double)e->room[row]);
	int n_all = collective_demands(e->coll, e->topo->n_ranks);
	Frac unit = pack_unit(e->topo, rate * n_all / congestion * (double)e->unit, n_all);
	for (int i = 0; i < e->n_basis; i++) {
		if (e->basic[i] == RATE_COLUMN)
			continue;
		int64_t weight = (int64_t)(e->value[i] / congestion * (double)e->unit / frac_double(unit) * (1 - 1e-9));
		part[n] = (struct part){ e->basic[i], e->column[e->basic[i]].orbit, weight };
		sum[part[n++].orbit] += weight;
	}
	for (int d = 0; d < e->n_demands; d++)
		each = sum[d] < each ? sum[d] : each;
	if (each > 0)
		TRY(pack_parts(e, part, n, each, unit, out));
	return *out ? pack_check(e->ctx, e->topo, *out) : OK;
}

/* The certificate of the collective where it is tight, else y, times M by the size of a demand. */
Status
basis_bound(struct exact *e, const Bound *known, Bound *out)
{
	Bound bound = { .rate = e->optimum, .kind = collective_has_blocks(e->coll) ? CERTIFICATE_LENGTHS : CERTIFICATE_PRICES };
	Frac *of_row;
	if (frac_cmp(e->optimum, known->rate) >= 0) {
		*out = *known;
		return OK;
	}
	TRY(TEMP(e->ctx, of_row, e->n_links));
	TRY(NEW(e->ctx, bound.part, e->topo->n_vertices));
	TRY(NEW(e->ctx, bound.price, e->topo->n_links));
	for (int row = 0; row < e->n_links; row++) {
		of_row[row] = FRAC_ZERO;
		if (e->place[row] >= 0 && (!price_of(e, e->place[row], &of_row[row]) || !frac_mul(of_row[row],
		    (Frac){ collective_shares(e->coll, e->topo->n_ranks), 1 }, &of_row[row])))
			return OK;
	}
	for (int l = 0; l < e->topo->n_links; l++)
		bound.price[l] = of_row[e->sym->link_orbit[l]];
	*out = bound;
	return OK;
}
