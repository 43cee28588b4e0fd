/* Rounds of column generation, level by level: program.h has the linear program. */
#include "plan/pack/concurrent/concurrent.h"
#include "plan/pack/concurrent/program.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- pricing ---- */

static void
price_group(struct program *p, int g, const int64_t *of_row)
{
	const Concurrent *group = &p->group[g];
	for (int l = 0; l < group->topo->n_links; l++)
		p->price[g][l] = of_row[group->row[l]];
	cheapest_price(&p->cheapest[g], p->price[g]);
}

static bool
is_path(Collective coll)
{
	return coll == ALLTOALL || coll == GATHER || coll == SCATTER;
}

/* The cheapest trees where the price of a link is 1 / capacity, and those that are known. */
static Status
start(struct program *p, int level, int64_t *of_row)
{
	double least = INFINITY;
	Wide cost;
	bool added;
	for (int row = 0; row < p->n_links; row++)
		least = fmin(least, (double)p->links->capacity[row] / p->links->links[row]);
	for (int row = 0; row < p->n_links; row++)
		of_row[row] = 1 + (int64_t)ldexp(least / ((double)p->links->capacity[row] / p->links->links[row]),
		    SEARCH_PRICE_BITS - 2);
	for (int g = 0; g < p->n_groups; g++) {
		const Concurrent *group = &p->group[g];
		const Packing *known = is_path(group->coll) ? NULL : group->known;
		if (group->level != level)
			continue;
		price_group(p, g, of_row);
		for (int at = 0; at < group->n_bundles; at++) {
			TRY(program_find(p, g, at, true, &cost));
			TRY(program_add_found(p, g, at, &added));
			for (int t = 0; known && t < known->n_trees; t++)
				if (!known->demand || known->demand[t] == group->bundle[at])
					TRY(program_add_tree(p, g, at, &known->tree[t], &added));
		}
	}
	return OK;
}

/* The price of a row of links for a tree of a level: of that level and those after it. y: of all rows. */
static double
price_of(const struct program *p, const double *y, int level, int row)
{
	double sum = 0;
	for (; level <= p->level; level++)
		sum += y[level * p->n_links + row];
	return sum / (double)p->divisor[row];
}

/* In whole numbers, for trees of a level. Of routes of equal price the shorter is cheaper. */
static void
round_prices(const struct program *p, const double *y, int level, int64_t *of_row)
{
	enum { PRICE_BITS = 28, SHIFT = SEARCH_PRICE_BITS - 1 - PRICE_BITS };
	double top = 1e-300;
	for (int row = 0; row < p->n_links; row++)
		top = fmax(top, price_of(p, y, level, row));
	for (int row = 0; row < p->n_links; row++)
		of_row[row] = ((int64_t)(ldexp(price_of(p, y, level, row) / top, PRICE_BITS) + 0.5) << SHIFT) + 1;
}

/* What the trees that were found cost. */
static double
found_cost(const struct program *p, int g, const double *y)
{
	const Concurrent *group = &p->group[g];
	double cost = 0;
	for (int i = 0; i < p->n_used; i++)
		cost += (double)p->times[p->used[i]] * price_of(p, y, group->level, group->row[p->used[i]]);
	return cost * (double)group->copies;
}

/* The cheapest trees of a bundle by y come in where by the duals their reduced cost is negative by more than the error
 * of doubles. *least: what the cheapest cost so far by y. */
static Status
add_if_improving(struct program *p, int g, int at, const double *y, double *least, bool *improved)
{
	double dual = p->dual[program_bundles(p) + p->first[g] + at];
	int alike = p->group[g].alike[at];
	Wide rounded;
	bool added;
	TRY(program_find(p, g, at, true, &rounded));
	*least = fmin(*least, found_cost(p, g, y) * alike);
	if (found_cost(p, g, p->dual) * alike >= dual * (1 - 1e-9))
		return OK;
	TRY(program_add_found(p, g, at, &added));
	*improved = *improved || added;
	return OK;
}

/* The same of each root, where any may be that of an allreduce: a round of the simplex method takes longer. */
static Status
add_improving_pairs(struct program *p, int g, const double *y, double *least, bool *improved)
{
	Cheapest *c = &p->cheapest[g];
	int n_roots = c->n_roots;
	c->n_roots = 1;
	for (int root = 0; root < n_roots; root++) {
		c->roots = &root;
		TRY(add_if_improving(p, g, 0, y, least, improved));
	}
	c->n_roots = n_roots;
	c->roots = NULL;
	return OK;
}

/* Trees by the prices y, and the rate that y proves none to exceed: kept if it is the least so far. */
static Status
add_improving(struct program *p, const double *y, int64_t *of_row, bool *improved)
{
	double need = 0, room = 0;
	for (int g = 0; g < p->n_groups; g++) {
		const Concurrent *group = &p->group[g];
		if (group->level > p->level)
			continue;
		round_prices(p, y, group->level, of_row);
		price_group(p, g, of_row);
		bool pairs = group->coll == ALLREDUCE && p->cheapest[g].paired;
		for (int at = 0; at < group->n_bundles; at++) {
			double least = INFINITY;
			TRY(pairs ? add_improving_pairs(p, g, y, &least, improved)
			    : add_if_improving(p, g, at, y, &least, improved));
			need += least * (double)p->bundle[p->first[g] + at].size;
		}
	}
	for (int row = 0; row < program_bundles(p); row++) {
		double of = (double)p->capacity[row % p->n_links] * y[row];
		const struct level_time *time = &p->time[row / p->n_links];
		if (row >= p->level * p->n_links)
			room += of;
		else
			need -= of * (double)time->num / (double)time->den;
	}
	if (need <= 0 || room / need >= p->bound)
		return OK;
	p->bound = room / need;
	memcpy(p->best, y, (size_t)program_bundles(p) * sizeof *y);
	return OK;
}

/* ---- proof ---- */

/* The cheapest trees of all demands of each group, together. */
static Status
find_costs(struct program *p, const int64_t *price, int64_t *of_row, Wide *cost)
{
	for (int g = 0; g < p->n_groups; g++) {
		const Concurrent *group = &p->group[g];
		cost[g] = 0;
		if (group->level > p->level)
			continue;
		for (int row = 0; row < p->n_links; row++) {
			of_row[row] = 0;
			for (int level = group->level; level <= p->level; level++)
				of_row[row] += price[level * p->n_links + row];
		}
		price_group(p, g, of_row);
		for (int at = 0; at < group->n_bundles; at++) {
			Wide one;
			TRY(program_find(p, g, at, false, &one));
			cost[g] += one * group->alike[at];
		}
	}
	return OK;
}

/* Seconds before which the current level is not done. 0: prices prove nothing. before: times of the levels before. */
static double
bound_by(const struct program *p, const int64_t *price, const Wide *cost, const double *before)
{
	const SharedLinks *links = p->links;
	double need = 0, room = 0;
	for (int g = 0; g < p->n_groups; g++) {
		const Concurrent *group = &p->group[g];
		if (group->level <= p->level)
			need += (double)cost[g] * (double)group->copies * (double)group->bytes
			    / concurrent_shares(group);
	}
	for (int j = 0; j <= p->level; j++) {
		Wide sum = 0;
		for (int row = 0; row < links->n_rows; row++)
			sum += (Wide)links->capacity[row] * price[j * links->n_rows + row];
		if (j < p->level)
			need -= (double)sum * before[j];
		room = (double)sum;
	}
	return need > 0 && room > 0 ? need / room : 0;
}

/* The better of what the exact prices prove, and those of GLPK. */
static Status
prove(struct program *p, int64_t *of_row, const double *before, int64_t **out)
{
	ArenaMark mark = arena_mark(&p->ctx->scratch);
	size_t n = (size_t)program_bundles(p);
	Wide *cost;
	int64_t *price;
	double best = 0;
	TRY(TEMP(p->ctx, cost, p->n_groups));
	TRY(TEMP(p->ctx, price, n));
	TRY(NEW(p->ctx, *out, n));
	for (int exact = 1; exact >= 0; exact--) {
		bool known = true;
		if (exact)
			TRY(settle_prices(p, price, &known));
		else
			settle_grid(p, price);
		if (!known)
			continue;
		TRY(find_costs(p, price, of_row, cost));
		double bound = bound_by(p, price, cost, before);
		if (bound <= best * (1 + 1e-12))
			continue;
		best = bound;
		memcpy(*out, price, n * sizeof *price);
	}
	arena_release(&p->ctx->scratch, mark);
	return OK;
}

/* ---- levels ---- */

/* The duals of a solution jump from round to round, and prove little before the last. Prices near those that have
 * proven most, BEST of them and the rest the duals, lead to better trees (Wentges 1997). */
static void
smooth(const struct program *p, double *y)
{
	const double BEST = 0.8;
	double sum = 0, best = 0;
	for (int row = 0; row < program_bundles(p); row++) {
		sum += (double)p->capacity[row % p->n_links] * p->dual[row];
		best += (double)p->capacity[row % p->n_links] * p->best[row];
	}
	for (int row = 0; row < program_bundles(p); row++)
		y[row] = BEST * p->best[row] / best + (1 - BEST) * p->dual[row] / sum;
}

/* Rounds until no tree comes in, or none can help. */
static Status
generate(struct program *p, int64_t *of_row)
{
	double *y;
	bool improved = true;
	TRY(TEMP(p->ctx, y, program_bundles(p)));
	p->bound = INFINITY;
	for (int round = 0; round < LIMIT_LP_ROUNDS && improved; round++) {
		TRY(program_solve(p));
		if (!p->solved)
			return fail(p->ctx, INTERNAL, "%d groups at once: the simplex method failed", p->n_groups);
		progress(p->ctx, "groups at once: round %d, %d trees", round + 1, p->n_columns);
		improved = false;
		if (isfinite(p->bound)) {
			smooth(p, y);
			TRY(add_improving(p, y, of_row, &improved));
		}
		if (!improved)
			TRY(add_improving(p, p->dual, of_row, &improved));
	}
	return OK;
}

/* What groups send, by amounts of columns. */
static Status
keep_sent(struct program *p, const int64_t *amount, ConcurrentPlan *out)
{
	ArenaMark mark = arena_mark(&p->ctx->scratch);
	Wide *sum;
	TRY(TEMP(p->ctx, sum, p->n_bundles));
	TRY(NEW(p->ctx, out->sent, p->n_groups));
	TRY(NEW(p->ctx, out->each, p->n_groups));
	for (int g = 0; g < p->n_groups; g++)
		TRY(NEW(p->ctx, out->sent[g], p->group[g].topo->n_links));
	for (int c = 0; c < p->n_columns; c++) {
		const struct concurrent_column *column = &p->column[c];
		const struct bundle_row *bundle = &p->bundle[column->bundle];
		int alike = p->group[bundle->group].alike[bundle->at];
		sum[column->bundle] += amount[c];
		for (int i = 0; i < column->n; i++)
			out->sent[bundle->group][column->link[i]] += (Wide)amount[c] * column->times[i] * alike;
	}
	for (int d = 0; d < p->n_bundles; d++) {
		Wide *each = &out->each[p->bundle[d].group];
		*each = *each == 0 || sum[d] < *each ? sum[d] : *each;
	}
	arena_release(&p->ctx->scratch, mark);
	return OK;
}

/* One tree of a group, or several that are equal. */
struct kept {
	int demand, at;
	uint64_t hash;
	int64_t weight;
	const Tree *tree;
};

static int
by_demand(const void *a, const void *b)
{
	const struct kept *x = a, *y = b;
	if (x->demand != y->demand)
		return x->demand < y->demand ? -1 : 1;
	if (x->hash != y->hash)
		return x->hash < y->hash ? -1 : 1;
	return (x->at > y->at) - (x->at < y->at);
}

/* The trees of a group by demand, each demand with the same weight: what one has above that goes. */
static Status
pack_kept(struct program *p, struct kept *kept, int n, Wide each, Packing **out)
{
	enum { KEPT_BITS = 40 };	/* of all weights together: loads have room to be capacities */
	Packing *pack;
	uint64_t hash = 0;	/* of the last tree of the packing */
	int shift = 0, n_demands = 0;
	qsort(kept, (size_t)n, sizeof *kept, by_demand);
	TRY(NEW(p->ctx, pack, 1));
	TRY(pack_room(p->ctx, n, true, pack));
	for (int i = 0; i < n; i++)
		n_demands += i == 0 || kept[i].demand != kept[i - 1].demand;
	while (each >> shift > ((INT64_C(1) << (KEPT_BITS)) / n_demands))
		shift++;
	for (int i = 0, demand = -1; i < n; i++) {
		int t = pack->n_trees - 1;
		int64_t left = kept[i].demand != demand ? (int64_t)(each >> shift) : pack->weight[pack->n_trees];
		int64_t weight = kept[i].weight >> shift;
		bool last = i == n - 1 || kept[i + 1].demand != kept[i].demand;
		weight = last || weight > left ? left : weight;
		demand = kept[i].demand;
		if (t >= 0 && weight > 0 && pack->demand[t] == demand && kept[i].hash == hash)
			pack->weight[t] += weight;
		else if (weight > 0) {
			hash = kept[i].hash;
			pack->tree[pack->n_trees] = *kept[i].tree;
			pack->demand[pack->n_trees] = demand;
			pack->weight[pack->n_trees++] = weight;
		}
		if (pack->n_trees < n)
			pack->weight[pack->n_trees] = left - weight;
	}
	pack->unit = FRAC_ONE;
	*out = pack;
	return OK;
}

static Status
keep_trees(struct program *p, const int64_t *amount, ConcurrentPlan *out)
{
	TRY(NEW(p->ctx, out->pack, p->n_groups));
	for (int g = 0; g < p->n_groups; g++) {
		ArenaMark mark = arena_mark(&p->ctx->scratch);
		const Concurrent *group = &p->group[g];
		struct kept *kept;
		int n = 0, first;
		if (group->n_bundles != concurrent_bundles(group->coll, group->topo->n_ranks))
			continue;
		for (int c = 0; c < p->n_columns; c++)
			n += amount[c] > 0 && p->bundle[p->column[c].bundle].group == g
			    ? program_demands(group, p->bundle[p->column[c].bundle].at, &first) : 0;
		TRY(TEMP(p->ctx, kept, n));
		n = 0;
		for (int c = 0; c < p->n_columns; c++) {
			const struct bundle_row *bundle = &p->bundle[p->column[c].bundle];
			if (amount[c] == 0 || bundle->group != g)
				continue;
			int demands = program_demands(group, bundle->at, &first);
			for (int d = 0; d < demands; d++, n++)
				kept[n] = (struct kept){ first + d, n, tree_hash(&p->column[c].tree[d]), amount[c],
					&p->column[c].tree[d] };
		}
		TRY(pack_kept(p, kept, n, out->each[g], &out->pack[g]));
		arena_release(&p->ctx->scratch, mark);
	}
	return OK;
}

static Status
plan_levels(struct program *p, ConcurrentPlan *out)
{
	int64_t *of_row, *amount = NULL, den = 1;
	double *before;
	TRY(TEMP(p->ctx, of_row, p->n_links));
	TRY(TEMP(p->ctx, before, p->n_levels));
	for (p->level = 0; p->level < p->n_levels; p->level++) {
		TRY(program_open(p));
		TRY(start(p, p->level, of_row));
		TRY(generate(p, of_row));
		TRY(TEMP(p->ctx, amount, p->n_columns));
		TRY(settle_amounts(p, amount, &den, &out->exact));
		TRY(settle_time(p, amount, den, &p->time[p->level]));
		before[p->level] = (double)p->time[p->level].num / (double)p->time[p->level].den / p->rate_unit;
		TRY(prove(p, of_row, before, &out->price[p->level]));
	}
	p->level--;
	out->seconds = before[p->level];
	TRY(keep_sent(p, amount, out));
	return keep_trees(p, amount, out);
}

Status
pack_concurrent(Ctx *ctx, const Concurrent *group, int n_groups, const SharedLinks *links, ConcurrentPlan *out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct program p;
	*out = (ConcurrentPlan){ 0 };
	TRY(program_new(ctx, group, n_groups, links, &p));
	out->n_levels = p.n_levels;
	TRY(NEW(ctx, out->price, out->n_levels));
	Status status = plan_levels(&p, out);
	if (status == OK)
		status = program_close(&p);
	lp_release();
	TRY(status);
	log_verbose(ctx, "groups at once: %d rows, %d columns", program_bundles(&p) + p.n_bundles, p.n_columns);
	arena_release(&ctx->scratch, mark);
	return OK;
}
