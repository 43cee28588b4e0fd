/* The exact simplex method over a few columns: those of the chosen trees. */
#include "plan/pack/lp/simplex.h"
#include "plan/pack/pool/weights.h"

enum { MOST_PIVOTS = 1000 };

struct chosen {
	Ctx *ctx;
	const Topology *topo;
	const Packing *pool;
	int n_rows, *link;	/* rows that the chosen trees use */
	int n, *first, *row, *uses;	/* by tree */
	int64_t unit;		/* bytes/s: every capacity is a multiple */
};

/* Columns of the chosen trees over the rows that one of them uses at least. */
static Status
chosen_new(struct chosen *c, const struct pool_rows *rows, const int *tree, int n)
{
	int *column, *count, n_entries = 0;
	TRY(TEMP(c->ctx, column, c->pool->n_trees));
	TRY(TEMP(c->ctx, count, n + 1));
	for (int i = 0; i < n; i++)
		column[tree[i]] = i + 1;
	for (int e = 0; e < rows->first[rows->n]; e++)
		count[column[rows->entry[e]]]++;
	TRY(TEMP(c->ctx, c->first, n + 1));
	for (int i = 0; i < n; i++)
		c->first[i + 1] = n_entries += count[i + 1];
	TRY(TEMP(c->ctx, c->link, rows->n));
	TRY(TEMP(c->ctx, c->row, n_entries));
	TRY(TEMP(c->ctx, c->uses, n_entries));
	for (int i = 0; i < n; i++)
		count[i + 1] = c->first[i];
	for (int r = 0; r < rows->n; r++) {
		bool used = false;
		for (int e = rows->first[r]; e < rows->first[r + 1]; e++) {
			int i = column[rows->entry[e]];
			if (i == 0)
				continue;
			c->row[count[i]] = c->n_rows;
			c->uses[count[i]++] = rows->uses[e];
			used = true;
		}
		c->link[c->n_rows] = rows->link[r];
		c->n_rows += used;
	}
	c->n = n;
	return OK;
}

/* The column that improves the sum most; -1: none does. */
static int
best_column(const struct chosen *c, const Simplex *s)
{
	int best = -1;
	int64_t least = s->den;
	for (int i = 0; i < c->n; i++) {
		int64_t cost = 0;
		for (int e = c->first[i]; e < c->first[i + 1]; e++)
			cost += s->price[c->row[e]] * c->uses[e];
		if (cost < least) {
			least = cost;
			best = i;
		}
	}
	return best;
}

/* False: numbers become too large. */
static bool
maximise(const struct chosen *c, Simplex *s)
{
	int pivots = MOST_PIVOTS;
	while (simplex_price(s, &pivots) && --pivots > 0) {
		int i = best_column(c, s);
		if (i < 0)
			return true;
		if (!simplex_enter(s, i, c->row + c->first[i], c->uses + c->first[i], c->first[i + 1] - c->first[i]))
			return false;
	}
	return false;
}

/* Weights as whole multiples of one unit. *out: NULL where that needs too many digits. */
static Status
packing_of(const struct chosen *c, const Simplex *s, const int *tree, Packing **out)
{
	int64_t *value, divisor = 0;
	Wide sum = 0;
	Packing *pack;
	TRY(TEMP(c->ctx, value, c->n));
	*out = NULL;
	for (int r = 0; r < s->m; r++) {
		if (s->column[r] == SIMPLEX_SLACK)
			continue;
		if (s->value[r] >> 62)
			return OK;
		value[s->column[r]] = (int64_t)s->value[r];
		divisor = gcd64(divisor, (int64_t)s->value[r]);
	}
	if (divisor == 0 || (sum = simplex_sum(s) / divisor) >> PACKING_BITS)
		return OK;
	TRY(pack_new(c->ctx, c->n, false, &pack));
	for (int i = 0; i < c->n; i++) {
		if (value[i] == 0)
			continue;
		pack->tree[pack->n_trees] = c->pool->tree[tree[i]];
		pack->weight[pack->n_trees++] = value[i] / divisor;
	}
	if (!frac_make((Wide)c->unit * divisor, s->den, &pack->unit))
		return OK;
	TRY(pack_check(c->ctx, c->topo, pack));
	*out = pack;
	return OK;
}

Status
pool_weights(Ctx *ctx, const Topology *topo, const Packing *pool, const struct pool_rows *rows, const int *tree, int n,
    Frac target, Packing **out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct chosen c = { .ctx = ctx, .topo = topo, .pool = pool, .unit = topo_link_unit(topo) };
	Simplex simplex;
	Frac rate;
	int64_t *limit;
	*out = NULL;
	TRY(chosen_new(&c, rows, tree, n));
	TRY(TEMP(ctx, limit, c.n_rows));
	for (int r = 0; r < c.n_rows; r++)
		limit[r] = topo->link[c.link[r]].capacity / c.unit;
	TRY(simplex_new(ctx, limit, c.n_rows, &simplex));
	bool reached = maximise(&c, &simplex) && frac_make(simplex_sum(&simplex), simplex.den, &rate)
	    && frac_mul(rate, (Frac){ c.unit, 1 }, &rate) && frac_cmp(rate, target) >= 0;
	if (reached)
		TRY(packing_of(&c, &simplex, tree, out));
	arena_release(&ctx->scratch, mark);
	return OK;
}
