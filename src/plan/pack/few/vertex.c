/* Say that k trees reach a rate and no k - 1 do. The best weights for these k trees are a vertex of their own linear
 * program, and none is 0; so k links are full whose equations are independent: M w = c, where row i of M says how often
 * each tree uses a link and c_i is that link's capacity. Trees that go down as they came up use a link once or not at
 * all, others up to twice.
 *
 * Few weights are a vertex of anything. An allreduce of a DGX-1V has a rate of 24/7 links. In sevenths of a link, of
 * which its links have 7 or 14, 187 lists of six weights sum to 24, and 13 of these are left:
 *
 *     6, 5, 5, 4, 3, 1     6 + 5 + 3, 6 + 4 + 3 + 1, 5 + 5 + 4 and others are 14
 *     10, 10, 1, 1, 1, 1   only 10 + 1 + 1 + 1 + 1 is 14, which is two equations for six weights
 *
 * All rows are tried, 2^k or 3^k. Their sums are kept while weights are chosen one after the other, so the choice of
 * the last weight only adds to those of the weights before it. Rows are independent if they are modulo a prime above
 * any of their determinants: of 12 rows of 0 and 1 none exceeds 3645 (OEIS A003432), of 7 rows of 0, 1 and 2 none
 * 2^7 * 32. */
#include "plan/pack/few/lanes.h"
#include "plan/pack/few/vertex.h"

enum { PRIME = 8191 };

void
vertex_begin(struct vertex *v, int k, int most)
{
	v->k = k;
	v->most = most;
	v->n_rows[0] = 1;
	for (int j = 0; j < k; j++)
		v->n_rows[j + 1] = v->n_rows[j] * (most + 1);
	v->sum[0] = 0;
	v->n_full = 0;
}

void
vertex_link(struct vertex *v, int64_t units)
{
	for (int i = 0; i < v->n_full; i++)
		if (v->full[i] == units)
			return;
	v->full[v->n_full++] = (int16_t)units;
}

void
vertex_weigh(struct vertex *v, int j, int weight)
{
	int n = v->n_rows[j];
	for (int times = 1; times <= v->most; times++) {
		int16_t *sum = &v->sum[times * n], more = (int16_t)(times * weight);
		int i = 0;
		for (; i + LANES <= n; i += LANES)
			lanes_put(&sum[i], lanes_get(&v->sum[i]) + more);
		for (; i < n; i++)
			sum[i] = (int16_t)(v->sum[i] + more);
	}
}

/* Add a row to those in echelon form, if it is independent of them. */
static bool
add_row(const struct vertex *v, int i, int basis[][VERTEX_TREES], int *pivot, int n)
{
	int *next = basis[n], at = 0;
	for (int j = 0; j < v->k; j++, i /= v->most + 1)
		next[j] = i % (v->most + 1);
	for (int b = 0; b < n; b++) {
		int factor = next[pivot[b]], lead = basis[b][pivot[b]];
		for (int j = 0; j < v->k && factor; j++)
			next[j] = (next[j] * lead + basis[b][j] * (PRIME - factor)) % PRIME;
	}
	while (at < v->k && next[at] == 0)
		at++;
	pivot[n] = at;
	return at < v->k;
}

/* Of LANES rows from row i on, one bit for each that fills a link. */
static inline unsigned
full_rows(const struct vertex *v, int i)
{
	Lanes sums = lanes_get(&v->sum[i]), fills = (Lanes)(sums == v->full[0]);
	unsigned rows = 0;
	for (int f = 1; f < v->n_full; f++)
		fills |= (Lanes)(sums == v->full[f]);
	if (!lanes_any(fills))
		return 0;
	for (int lane = 0; lane < LANES && i + lane < v->n_rows[v->k]; lane++)
		rows |= (unsigned)(fills[lane] & 1) << lane;
	return rows;
}

/* Row 0 uses nothing, and no link has 0 units. Of most weights fewer than k rows fill a link. */
bool
vertex_holds(const struct vertex *v)
{
	enum { MOST = 64 };		/* that are listed; the others one by one */
	int basis[VERTEX_TREES][VERTEX_TREES], pivot[VERTEX_TREES], row[MOST + LANES], n = 0, rank = 0, last = 0;
	for (; last < v->n_rows[v->k] && n < MOST; last += LANES)
		for (unsigned rest = full_rows(v, last); rest; rest &= rest - 1)
			row[n++] = last + __builtin_ctz(rest);
	if (n < v->k)
		return false;
	for (int i = 0; i < n && rank < v->k; i++)
		rank += add_row(v, row[i], basis, pivot, rank);
	for (; last < v->n_rows[v->k] && rank < v->k; last += LANES)
		for (unsigned rest = full_rows(v, last); rest && rank < v->k; rest &= rest - 1)
			rank += add_row(v, last + __builtin_ctz(rest), basis, pivot, rank);
	return rank == v->k;
}
