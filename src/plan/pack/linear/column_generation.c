/* The optimal rate, exactly, by column generation (Dantzig and Wolfe 1960) over all trees of a collective, or a
 * family of them:
 *
 *     maximise    r
 *     such that   sum over trees t of uses(l, t) x(t) <= capacity(l)     for every link l, with dual price y(l)
 *                 sum over trees t of demand d of x(t) >= r              for every demand d, with dual z(d)
 *
 * GLPK solves the restricted master problem, over the trees known so far, in doubles. The pricing problem is the
 * cheapest tree of each demand under y: it comes in as a column if it costs less than z, that is if its reduced cost
 * is negative. When none does, doubles are left behind: the basis that GLPK ended with names as many columns as tight
 * rows, and x, r and y, z are solved for it once more, exactly (basis.c). Then x is what is packed, and y is the
 * proof that no packing has a higher rate; both are checked in
 * integers: no load above capacity, nothing negative, no tree cheaper than its z. A cheaper tree comes in as a
 * column, too, and the rounds continue.
 *
 * Where the topology has symmetries, links and demands are counted by orbits (master.c). The optimum is the same, the
 * program smaller by the size of the group. */
#include "plan/pack/linear/master.h"

#include <math.h>

/* ---- the pricing problem ---- */

/* *cost: below 0: there is none. */
static Status
look_for_cheapest(struct master *m, int orbit, int64_t *cost)
{
	return cheapest_find(&m->cheapest,
	    collective_demand(m->coll, m->topo->n_ranks, m->root, m->representative[orbit]), cost);
}

static Status
find_cheapest(struct master *m, int orbit, int64_t *cost)
{
	TRY(look_for_cheapest(m, orbit, cost));
	return *cost >= 0 ? OK : fail(m->ctx, INTERNAL, "%s: no tree over connected ranks", m->topo->name);
}

/* Where a switch copies or adds, many edges of a tree share one use of a link to it, or from it. Searches find trees
 * that do so if that link seems to cost little. */
static void
discount(struct master *m)
{
	const Topology *topo = m->topo;
	for (int l = 0; l < topo->n_links; l++)
		if (topo->vertex[topo->link[l].to].multicast || topo->vertex[topo->link[l].from].reduce)
			m->price[l] = m->price[l] / topo->n_ranks + 1;
}

/* The cheapest tree of each demand under m->price becomes a column; of an allreduce of limited depth, of which it takes
 * long to find better ones, the cheapest tree from each root. */
static Status
add_cheapest_trees(struct master *m)
{
	enum { SOME_RANKS = 64 };
	Cheapest *c = &m->cheapest;
	const int n_roots = c->n_roots, *roots = c->roots;
	bool each = m->coll == ALLREDUCE && c->max_depth && !c->family && m->topo->n_ranks > SOME_RANKS;
	bool added;
	int64_t cost;
	cheapest_price(c, m->price);
	for (int d = 0; d < m->n_demand_rows; d++) {
		TRY(find_cheapest(m, d, &cost));
		TRY(master_add_cheapest(m, d, &added));
	}
	c->n_roots = each ? 1 : n_roots;
	for (int i = 0; i < n_roots && each; i++) {
		int root = roots ? roots[i] : i;
		c->roots = &root;
		TRY(look_for_cheapest(m, 0, &cost));
		if (cost >= 0)
			TRY(master_add_cheapest(m, 0, &added));
	}
	c->n_roots = n_roots;
	c->roots = roots;
	return OK;
}

/* The cheapest tree of each demand where the price of a link is 1 / capacity. The first n_demand_rows columns are one
 * tree for each. */
Status
columns_start(struct master *m)
{
	int64_t least = INT64_MAX;
	for (int l = 0; l < m->topo->n_links; l++)
		least = m->topo->link[l].capacity < least ? m->topo->link[l].capacity : least;
	for (int l = 0; l < m->topo->n_links; l++)
		m->price[l] = 1 + (int64_t)(((Wide)least << (SEARCH_PRICE_BITS - 1)) / m->topo->link[l].capacity);
	TRY(add_cheapest_trees(m));
	if (!m->shares)
		return OK;
	discount(m);
	return add_cheapest_trees(m);
}

/* What the current tree costs under GLPK's duals. */
static Status
current_cost(struct master *m, double *cost)
{
	Tree tree;
	*cost = 0;
	if (!m->shares) {
		for (int i = 0; i < m->cheapest.n_used; i++)
			*cost += master_link_price(m, m->cheapest.used[i]) * m->cheapest.uses[m->cheapest.used[i]];
		return OK;
	}
	TRY(master_current_tree(m, &tree));
	for (int i = 0; i < tree.n_down + tree.n_up; i++)
		for (int k = 0; k < tree_edge(&tree, i)->n_links; k++)
			*cost += master_link_price(m, tree_edge(&tree, i)->link[k]);
	return OK;
}

/* The cheapest tree of a demand becomes a column if its reduced cost is negative by more than the error of doubles. A
 * root alone may have none of so few hops. */
static Status
add_improving_tree(struct master *m, int d, bool *improved)
{
	int64_t rounded;
	double cost;
	bool added;
	TRY(look_for_cheapest(m, d, &rounded));
	if (rounded < 0)
		return OK;
	TRY(current_cost(m, &cost));
	if (cost >= (m->dual[m->n_link_rows + d] - 1e-7 / m->n_demand_rows) / m->orbit_size[d])
		return OK;
	TRY(master_add_cheapest(m, d, &added));
	*improved = *improved || added;
	return OK;
}

/* The cheapest pair of arborescences at each root. */
static Status
add_improving_pairs(struct master *m, bool *improved)
{
	Cheapest *c = &m->cheapest;
	int n_roots = c->n_roots;
	const int *roots = c->roots;
	c->n_roots = 1;
	for (int i = 0; i < n_roots; i++) {
		int root = roots ? roots[i] : i;
		c->roots = &root;
		TRY(add_improving_tree(m, 0, improved));
	}
	c->n_roots = n_roots;
	c->roots = roots;
	return OK;
}

/* The cheapest trees under m->price, of each demand. Where a round takes GLPK long, one for each root. */
static Status
add_improving_trees(struct master *m, bool *improved)
{
	enum { MANY_ROWS = 200 };
	cheapest_price(&m->cheapest, m->price);
	if (m->coll == ALLREDUCE && m->cheapest.paired && !m->cheapest.family && m->n_rows > MANY_ROWS)
		return add_improving_pairs(m, improved);
	for (int d = 0; d < m->n_demand_rows; d++)
		TRY(add_improving_tree(m, d, improved));
	return OK;
}

static Status
price_columns(struct master *m, bool *improved)
{
	/* Prices of PRICE_BITS, so that duals that differ only by an error of GLPK's are equal; one more for each
	 * link, so that of routes of equal price the shorter is cheaper. */
	enum { PRICE_BITS = 28, SHIFT = SEARCH_PRICE_BITS - 1 - PRICE_BITS };
	double scale = ldexp(1, PRICE_BITS) / master_top_price(m);
	*improved = false;
	for (int l = 0; l < m->topo->n_links; l++)
		m->price[l] = ((int64_t)(master_link_price(m, l) * scale + 0.5) << SHIFT) + 1;
	TRY(add_improving_trees(m, improved));
	if (!m->shares)
		return OK;
	discount(m);
	return add_improving_trees(m, improved);
}

/* *optimal: no tree is cheaper under the exact y than its z; trees that are become columns. *known: y is exact and in
 * range. */
static Status
prove_prices(struct master *m, bool *known, bool *optimal)
{
	int64_t cost;
	*known = basis_prices(m);
	if (!*known)
		return OK;
	*optimal = true;
	cheapest_price(&m->cheapest, m->price);
	for (int d = 0; d < m->n_demand_rows; d++) {
		TRY(find_cheapest(m, d, &cost));
		if (cost < m->price[m->topo->n_links + d]) {
			bool added;
			TRY(master_add_cheapest(m, d, &added));
			*optimal = *optimal && !added;
		}
	}
	*optimal = *optimal && !m->ctx->late;	/* then trees were quick, not cheapest */
	return OK;
}

/* ---- exact solutions ---- */

/* m->price on a grid, near the prices of the solution; z of the first demand of each orbit, too. No tree is cheaper
 * because of a link that costs more than 1, which all demands cost together. */
static void
grid_prices(struct master *m)
{
	enum { COARSE_BITS = 16, PRICE_BITS = SEARCH_PRICE_BITS - 1 };
	Wide top = 1, one = (Wide)1 << FINE_DUAL_BITS;
	double coarse = (1 << COARSE_BITS) / master_top_price(m);
	if (!m->refined) {
		for (int l = 0; l < m->topo->n_links; l++)
			m->price[l] = (int64_t)(master_link_price(m, l) * coarse);
		return;
	}
	for (int row = 0; row < m->n_link_rows; row++)
		top = m->fine_dual[row] / m->divisor[row] > top ? m->fine_dual[row] / m->divisor[row] : top;
	top = top > one ? one : top;
	for (int l = 0; l < m->topo->n_links; l++) {
		int row = m->sym->link_orbit[l];
		Wide price = m->fine_dual[row] / m->divisor[row];
		price = price < 0 ? 0 : price > top ? top : price;
		m->price[l] = (int64_t)(((price << PRICE_BITS) + top / 2) / top);
	}
	for (int d = 0; d < m->n_demand_rows; d++) {
		Wide z = m->fine_dual[m->n_link_rows + d] / m->orbit_size[d];
		m->price[m->topo->n_links + d] = z < 0 ? 0 : (int64_t)((z << PRICE_BITS) / top);
	}
}

/* Whatever prices are, if the cheapest trees of all demands cost `cost` together, prices times (M divided by the size
 * of a demand) / cost are a certificate. */
Status
columns_bound(struct master *m, Bound *out)
{
	int shares = collective_shares(m->coll, m->topo->n_ranks);
	Bound bound = { .kind = collective_has_blocks(m->coll) ? CERTIFICATE_LENGTHS : CERTIFICATE_PRICES };
	Wide sum = 0, cost = 0;
	grid_prices(m);
	for (int l = 0; l < m->topo->n_links; l++)
		sum += (Wide)m->topo->link[l].capacity * m->price[l];
	/* The proof is for trees of any kind. */
	m->cheapest.paired = true;
	cheapest_price(&m->cheapest, m->price);
	for (int d = 0; d < m->n_demand_rows; d++) {
		int64_t one;
		TRY(find_cheapest(m, d, &one));
		cost += (Wide)one * m->orbit_size[d];
	}
	if (m->ctx->late || cost == 0 || !frac_make(sum * shares, cost, &bound.rate)
	    || frac_cmp(bound.rate, out->rate) >= 0)
		return OK;
	TRY(NEW(m->ctx, bound.part, m->topo->n_vertices));
	TRY(NEW(m->ctx, bound.price, m->topo->n_links));
	for (int l = 0; l < m->topo->n_links; l++)
		if (!frac_make((Wide)m->price[l] * shares, cost, &bound.price[l]) || !frac_fits(bound.price[l]))
			return OK;
	*out = bound;
	return OK;
}

/* *pack stays where the trees of the basis do not have the rate m->optimum. */
static Status
settle_trees(struct master *m, Packing **pack)
{
	Packing *found;
	Frac rate;
	TRY(basis_trees(m, &found));
	if (found && pack_rate(found, m->coll, m->topo->n_ranks, &rate) && frac_cmp(rate, m->optimum) == 0)
		*pack = found;
	return OK;
}

/* The current basis, exactly: its prices, and if these prove that it is optimal its trees. False in *optimal: trees
 * came in. Numbers that do not stay small leave m->proven false, or *pack NULL. */
static Status
settle_basis(struct master *m, Packing **pack, bool *optimal)
{
	bool known = m->n_basis <= LIMIT_LP_BASIS;
	*optimal = true;
	if (known)
		TRY(basis_solve(m, true, m->y, &known));
	if (known)
		TRY(prove_prices(m, &known, optimal));
	if (known && !*optimal)
		return OK;
	m->proven = known && basis_rate(m, &m->optimum);
	return m->proven ? settle_trees(m, pack) : OK;
}

/* Algorithm bandwidth of the current solution, bytes/s. */
static double
rate_of(const struct master *m)
{
	return basis_value(m) * (double)m->unit * collective_shares(m->coll, m->topo->n_ranks);
}

/* If the rate is that of the bound, no prices are needed to prove it. */
static Status
settle_at_bound(struct master *m, const Bound *bound, Packing **pack)
{
	if (rate_of(m) < frac_double(bound->rate) * (1 - 1e-9) || m->n_basis > LIMIT_LP_BASIS)
		return OK;
	m->optimum = bound->rate;
	TRY(settle_trees(m, pack));
	m->proven = m->at_bound = *pack != NULL;
	return OK;
}

/* ---- more digits ---- */

/* Trees that are cheaper than their z become columns. *gap: by how much the optimum over all trees may be above that
 * over the columns, relative. */
static Status
price_finely(struct master *m, double *gap, bool *improved)
{
	double dear = 0, cheap = 0;
	int64_t cost;
	*improved = false;
	grid_prices(m);
	cheapest_price(&m->cheapest, m->price);
	for (int d = 0; d < m->n_demand_rows; d++) {
		int64_t z = m->price[m->topo->n_links + d];
		TRY(find_cheapest(m, d, &cost));
		dear += (double)z * m->orbit_size[d];
		cheap += (double)cost * m->orbit_size[d];
		if (cost < z) {
			bool added;
			TRY(master_add_cheapest(m, d, &added));
			*improved = *improved || added;
		}
	}
	*gap = dear > 0 ? 1 - cheap / dear : 0;
	return OK;
}

/* The optimum but for NEAR: where fractions need too many digits, and the errors of doubles are too large. */
static Status
settle_finely(struct master *m, const Bound *bound, Packing **pack)
{
	bool prices_prove = !m->cheapest.max_depth && !m->shares;
	struct fine fine;
	for (int round = 0; round < LIMIT_LP_ROUNDS && m->solved; round++) {
		bool improved = false;
		double gap = 0;
		TRY(refine(m, &fine));
		if (!m->refined)
			break;
		double rate = ldexp((double)fine.rate, -fine.bits) * (double)m->unit
		    * collective_shares(m->coll, m->topo->n_ranks);
		m->near_bound = rate >= frac_double(bound->rate) * (1 - NEAR);
		/* Exact prices prove what is possible, but the trees for it may not be known yet. */
		bool near = m->near_bound || (m->proven && rate >= frac_double(m->optimum) * (1 - NEAR));
		if (prices_prove && !near)
			TRY(price_finely(m, &gap, &improved));
		m->cut_short = progress(m->ctx, "linear program: %d trees, within %.2g of the optimum", m->n_columns,
		    gap) <= 0;
		if (!improved || gap < NEAR || m->cut_short)
			return basis_fine(m, &fine, pack);
		TRY(master_solve(m));
	}
	return OK;
}

/* ---- rounds ---- */

/* Where GLPK found none: the first tree of each demand, all at one rate. */
static void
first_solution(struct master *m)
{
	m->n_basis = 0;
	m->value[m->n_basis] = 1;
	m->basic[m->n_basis++] = RATE_COLUMN;
	for (int c = 0; c < m->n_demand_rows; c++) {
		m->value[m->n_basis] = 1;
		m->basic[m->n_basis++] = c;
	}
}

/* Over many ranks each round of trees of limited depth takes long. Is the rate hardly below the bound, or has it risen
 * by less than half of that in some rounds? *base: the rate that counts, *since: rounds since it was reached. */
static bool
is_enough(const struct master *m, const Bound *bound, double *base, int *since)
{
	enum { MANY_RANKS = 256, SOME_ROUNDS = 16 };
	const double hardly = 1 - 1e-4, gain = 1 + 5e-5, rate = rate_of(m);
	if (!m->cheapest.max_depth || m->coll != ALLREDUCE || m->topo->n_ranks <= MANY_RANKS)
		return false;
	++*since;
	if (rate >= *base * gain) {
		*base = rate;
		*since = 0;
	}
	return rate >= frac_double(bound->rate) * hardly || *since >= SOME_ROUNDS;
}

Status
columns_generate(struct master *m, const Bound *bound, Packing **pack)
{
	bool optimal = false;
	double base = 0;
	int since = 0;
	*pack = NULL;
	m->proven = m->near_bound = false;
	for (int round = 0; round < LIMIT_LP_ROUNDS && !optimal; round++) {
		bool improved, known = m->solved;
		TRY(master_solve(m));
		if (!m->solved) {
			/* Out of time, or GLPK has failed: the solution before this one is still there; if there is
			 * none, the first trees are. */
			m->cut_short = m->timed_out || progress(m->ctx, "linear program") <= 0;
			if (!known)
				first_solution(m);
			return basis_rounded(m, pack);
		}
		TRY(settle_at_bound(m, bound, pack));
		if (*pack)
			return OK;
		m->cut_short = progress(m->ctx, "linear program: round %d, %.4f of the bound", round + 1,
		    rate_of(m) / frac_double(bound->rate)) <= 0;
		if (m->cut_short)
			break;
		m->enough = is_enough(m, bound, &base, &since);
		improved = false;
		if (!m->enough)
			TRY(price_columns(m, &improved));
		if (improved)
			continue;
		/* Pricing of limited or shared trees is no proof that none is cheaper: the trees are exact, the bound
		 * stays. */
		optimal = m->cheapest.max_depth > 0 || m->shares;
		TRY(optimal ? basis_trees(m, pack) : settle_basis(m, pack, &optimal));
	}
	if (!*pack && !m->cut_short)
		TRY(settle_finely(m, bound, pack));
	return *pack ? OK : basis_rounded(m, pack);
}
