/* The optimal rate, exactly, by column generation (Dantzig and Wolfe 1960) over all trees of a collective, or a family (family.h):
 *
 *     maximise    r
 *     such that   sum over trees t of uses(l, t) x(t) <= capacity(l)     for every link l, with dual price y(l)
 *                 sum over trees t of demand d of x(t) >= r              for every demand d, with dual z(d)
 *
 * GLPK solves it over the trees at hand, in doubles; of each demand the cheapest tree under y comes in if it costs less
 * than z. When none does, doubles are left behind: the basis that GLPK ended with names as many columns as rows that are
 * tight, and x, r and y, z are solved for it once more, exactly. Then x is what is packed and y is the proof that nothing
 * beats it; both are checked in integers: no load above capacity, nothing negative, no tree cheaper than its z. A cheaper
 * one comes in, too, and it goes on.
 *
 * Allreduce first packs trees that go up and down the same way; only if those stay below the bound, pairs of
 * arborescences. Links are counted in units of one physical link, so that numbers stay small.
 *
 * Where the topology has symmetries, links and demands are counted by orbits. A column is a tree of the first demand of an
 * orbit, and stands for its images: all of them together, at rate x for each demand, load a link of orbit L with
 * x * demands in the orbit * uses(L, t) / links in L. The optimum is the same, the program smaller by the size of the group. */
#include "base/mix.h"
#include "exact.h"
#include "family.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static Status
find_cheapest(struct exact *e, int orbit, int64_t *cost)
{
	TRY(cheapest_find(&e->cheapest, collective_demand(e->coll, e->topo->n_ranks, e->root, e->lead[orbit]), cost));
	return *cost >= 0 ? OK : fail(e->ctx, INTERNAL, "%s: no tree over connected ranks", e->topo->name);
}

/* ---- columns ---- */

static Status
add_column(struct exact *e, int orbit, const Tree *tree, const int *used, int n_used, const int *uses)
{
	int n = 0;
	if (e->n_columns == e->space) {
		struct column *grown;
		TRY(NEW(e->ctx, grown, 2 * (size_t)e->space + 64));
		if (e->n_columns)
			memcpy(grown, e->column, (size_t)e->n_columns * sizeof *grown);
		e->column = grown;
		e->space = 2 * e->space + 64;
	}
	for (int i = 0; i < n_used; i++) {
		int row = e->sym->link_orbit[used[i]];
		if (e->sum[row] == 0)
			e->sum_row[n++] = row;
		e->sum[row] += uses[used[i]];
	}
	struct column *c = &e->column[e->n_columns];
	*c = (struct column){ .tree = *tree, .orbit = orbit, .n = n, .depth = tree_depth(tree, e->work),
		.hash = tree_hash(tree) };
	TRY(NEW(e->ctx, c->row, n));
	TRY(NEW(e->ctx, c->uses, n));
	for (int i = 0; i < n; i++) {
		c->row[i] = e->sum_row[i];
		c->uses[i] = e->sum[c->row[i]] * (e->members[orbit] / e->fold[c->row[i]]);
		e->sum[c->row[i]] = 0;
	}
	e->n_columns++;
	return OK;
}

static bool
is_column(const struct exact *e, int orbit, uint64_t hash)
{
	for (int c = 0; c < e->n_columns; c++)
		if (e->column[c].hash == hash && e->column[c].orbit == orbit)
			return true;
	return false;
}

/* Unless it is one already. */
static Status
add_tree(struct exact *e, int orbit, const Tree *tree, bool *added)
{
	ArenaMark mark = arena_mark(&e->ctx->scratch);
	int *used, *uses, n = 0;
	*added = !is_column(e, orbit, tree_hash(tree));
	if (!*added)
		return OK;
	TRY(TEMP(e->ctx, used, e->topo->n_links));
	TRY(TEMP(e->ctx, uses, e->topo->n_links));
	for (int i = 0; i < tree->n_down + tree->n_up; i++) {
		const Edge *edge = tree_edge(tree, i);
		for (int k = 0; k < edge->n_links; k++)
			if (uses[edge->link[k]]++ == 0)
				used[n++] = edge->link[k];
	}
	TRY(add_column(e, orbit, tree, used, n, uses));
	arena_release(&e->ctx->scratch, mark);
	return OK;
}

static Status
tree_at_hand(struct exact *e, Tree *out)
{
	TRY(cheapest_tree(&e->cheapest, e->coll == GATHER, out));
	if (e->active)
		tree_share(e->topo, collective_reduces(e->coll), out, e->work);
	return OK;
}

Status
exact_add_cheapest(struct exact *e, int orbit, bool *added)
{
	Tree tree;
	TRY(tree_at_hand(e, &tree));
	if (e->active)
		return add_tree(e, orbit, &tree, added);
	*added = !is_column(e, orbit, tree_hash(&tree));
	return !*added ? OK : add_column(e, orbit, &tree, e->cheapest.used, e->cheapest.n_used, e->cheapest.uses);
}

/* ---- the linear program ---- */

/* GLPK counts rows and columns from 1. */
static void
start_lp(void *with)
{
	struct exact *e = with;
	e->lp = glp_create_prob();
	glp_set_obj_dir(e->lp, GLP_MAX);
	glp_add_rows(e->lp, e->n_rows);
	glp_set_row_bnds(e->lp, e->n_rows, GLP_FR, 0, 0);
	for (int row = 0; row < e->n_links; row++)
		glp_set_row_bnds(e->lp, row + 1, GLP_UP, 0, (double)e->room[row] / e->scale);
	/* r - sum of x(t) <= 0 */
	glp_add_cols(e->lp, 1);
	for (int d = 0; d < e->n_demands; d++) {
		glp_set_row_bnds(e->lp, e->n_links + d + 1, GLP_UP, 0, 0);
		e->index[d + 1] = e->n_links + d + 1;
		e->entry[d + 1] = 1;
	}
	e->index[e->n_demands + 1] = e->n_rows;
	e->entry[e->n_demands + 1] = 1;
	glp_set_mat_col(e->lp, 1, e->n_demands + 1, e->index, e->entry);
	glp_set_col_bnds(e->lp, 1, GLP_LO, 0, 0);
	glp_set_obj_coef(e->lp, 1, 1);
}

static void
load_columns(struct exact *e)
{
	for (; e->loaded < e->n_columns; e->loaded++) {
		const struct column *c = &e->column[e->loaded];
		int col = glp_add_cols(e->lp, 1);
		for (int i = 0; i < c->n; i++) {
			e->index[i + 1] = c->row[i] + 1;
			e->entry[i + 1] = (double)c->uses[i];
		}
		e->index[c->n + 1] = e->n_links + c->orbit + 1;
		e->entry[c->n + 1] = -1;
		glp_set_mat_col(e->lp, col, c->n + 1, e->index, e->entry);
		glp_set_col_bnds(e->lp, col, GLP_LO, 0, 0);
	}
}

static void
read_basis(struct exact *e)
{
	int n_full = 0, n_basic = 0;
	for (int row = 0; row < e->n_rows; row++) {
		bool full = glp_get_row_stat(e->lp, row + 1) != GLP_BS;
		e->place[row] = full ? n_full : -1;
		if (full)
			e->full[n_full++] = row;
	}
	for (int c = RATE_COLUMN; c < e->loaded; c++) {
		if (glp_get_col_stat(e->lp, c + 2) == GLP_BS && n_basic < n_full) {
			e->value[n_basic] = fmax(glp_get_col_prim(e->lp, c + 2), 0) * e->scale;
			e->basic[n_basic++] = c;
		}
	}
	e->n_basis = n_full;
}

#define STIRRED 1e-5	/* relative */

/* Many links alike make many solutions alike, and the simplex method may go round among them. Capacities that are a little
 * larger, each in its own way, leave it no ties. The basis that it ends with is solved with the true ones. */
static void
stir_rows(struct exact *e)
{
	for (int row = 0; row < e->n_links; row++)
		glp_set_row_bnds(e->lp, row + 1, GLP_UP, 0, (double)e->room[row] / e->scale * (1 + STIRRED * mix_unit(0, (uint64_t)row)));
	e->stalled = true;
}

static void
solve_lp(void *with)
{
	struct exact *e = with;
	glp_smcp options;
	glp_init_smcp(&options);
	options.msg_lev = GLP_MSG_OFF;
	options.it_lim = e->stalled ? LIMIT_LP_STEPS : 1000 + 10 * e->n_rows;
	/* At the end of its time it may stop at a solution that is not the best. */
	options.tm_lim = progress(e->ctx, "linear program: %d rows, %d trees", e->n_rows, e->n_columns);
	options.tm_lim = options.tm_lim < 1 ? 1 : options.tm_lim;
	load_columns(e);
	/* A second try from scratch, should rounding have made the last basis singular. */
	int code = glp_simplex(e->lp, &options);
	if (code == GLP_EITLIM && !e->stalled) {
		stir_rows(e);
		options.it_lim = LIMIT_LP_STEPS;
		code = glp_simplex(e->lp, &options);
	}
	e->timed_out = code == GLP_ETMLIM;
	e->solved = code == 0 && glp_get_status(e->lp) == GLP_OPT;
	if (!e->solved && !e->timed_out) {
		glp_std_basis(e->lp);
		e->solved = glp_simplex(e->lp, &options) == 0 && glp_get_status(e->lp) == GLP_OPT;
	}
	for (int row = 0; e->solved && row < e->n_rows; row++)
		e->dual[row] = fmax(glp_get_row_dual(e->lp, row + 1), 0);
	if (e->solved)
		read_basis(e);
}

Status
exact_solve(struct exact *e)
{
	return lp_guard(e->ctx, solve_lp, e);
}

static void
end_lp(void *with)
{
	struct exact *e = with;
	glp_delete_prob(e->lp);
}

/* ---- column generation ---- */

/* Is no tree under the exact y cheaper than its z? Those that are come in. *known: y is exact and nothing is out of range. */
static Status
prove_prices(struct exact *e, bool *known, bool *optimal)
{
	int64_t cost;
	*known = basis_prices(e);
	if (!*known)
		return OK;
	*optimal = true;
	cheapest_price(&e->cheapest, e->price);
	for (int d = 0; d < e->n_demands; d++) {
		TRY(find_cheapest(e, d, &cost));
		if (cost < e->price[e->topo->n_links + d]) {
			bool added;
			TRY(exact_add_cheapest(e, d, &added));
			*optimal = *optimal && !added;
		}
	}
	return OK;
}

/* Where numbers do not stay small, prices near GLPK's still prove a bound near the optimum: whatever the prices are, the
 * cheapest trees of all demands cost `cost` together, so prices times M by a demand's size / cost are a certificate. */
static Status
rounded_bound(struct exact *e, Bound *out)
{
	enum { BITS = 16 };
	int shares = collective_shares(e->coll, e->topo->n_ranks);
	Bound bound = { .kind = collective_has_blocks(e->coll) ? CERTIFICATE_LENGTHS : CERTIFICATE_PRICES };
	double top = 1e-9;
	Wide sum = 0, cost = 0;
	for (int row = 0; row < e->n_links; row++)
		top = fmax(top, e->dual[row] / (double)e->fold[row]);
	for (int l = 0; l < e->topo->n_links; l++) {
		int row = e->sym->link_orbit[l];
		e->price[l] = (int64_t)(e->dual[row] / (double)e->fold[row] / top * (1 << BITS));
		sum += (Wide)e->topo->link[l].capacity * e->price[l];
	}
	/* The proof is for trees of any kind. */
	e->cheapest.paired = true;
	cheapest_price(&e->cheapest, e->price);
	for (int d = 0; d < e->n_demands; d++) {
		int64_t one;
		TRY(find_cheapest(e, d, &one));
		cost += (Wide)one * e->members[d];
	}
	if (cost == 0 || sum >> 100 || !frac_make(sum * shares, cost, &bound.rate) || frac_cmp(bound.rate, out->rate) >= 0)
		return OK;
	TRY(NEW(e->ctx, bound.part, e->topo->n_vertices));
	TRY(NEW(e->ctx, bound.price, e->topo->n_links));
	for (int l = 0; l < e->topo->n_links; l++)
		if (!frac_make((Wide)e->price[l] * shares, cost, &bound.price[l]))
			return OK;
	*out = bound;
	return OK;
}

/* What the tree at hand costs under GLPK's duals. */
static Status
cost_at_hand(struct exact *e, double *cost)
{
	Tree tree;
	*cost = 0;
	if (!e->active) {
		for (int i = 0; i < e->cheapest.n_used; i++) {
			int l = e->cheapest.used[i], row = e->sym->link_orbit[l];
			*cost += e->dual[row] / (double)e->fold[row] * e->cheapest.uses[l];
		}
		return OK;
	}
	TRY(tree_at_hand(e, &tree));
	for (int i = 0; i < tree.n_down + tree.n_up; i++)
		for (int k = 0; k < tree_edge(&tree, i)->n_links; k++) {
			int row = e->sym->link_orbit[tree_edge(&tree, i)->link[k]];
			*cost += e->dual[row] / (double)e->fold[row];
		}
	return OK;
}

/* Where switches copy or add, a link to one (from one) is paid for by many edges: searches find trees that use it so if it seems
 * to cost little. */
static void
discount(struct exact *e)
{
	const Topology *topo = e->topo;
	for (int l = 0; l < topo->n_links; l++)
		if (topo->vertex[topo->link[l].to].multicast || topo->vertex[topo->link[l].from].reduce)
			e->price[l] = e->price[l] / topo->n_ranks + 1;
}

/* Of each demand the cheapest tree under GLPK's duals, if it improves by more than doubles err, comes in. */
static Status
price_columns(struct exact *e, bool *improved)
{
	/* Prices of PRICE_BITS, so that what is equal but for an error of GLPK's is equal; one more for each link, so that of
	 * equal routes the shorter is cheaper. */
	enum { PRICE_BITS = 28, SHIFT = SEARCH_PRICE_BITS - 1 - PRICE_BITS };
	double top = 1e-9;
	int64_t cost;
	*improved = false;
	for (int row = 0; row < e->n_links; row++)
		top = fmax(top, e->dual[row] / (double)e->fold[row]);
	double scale = ldexp(1, PRICE_BITS) / top;
	for (int l = 0; l < e->topo->n_links; l++) {
		int row = e->sym->link_orbit[l];
		e->price[l] = ((int64_t)(e->dual[row] / (double)e->fold[row] * scale + 0.5) << SHIFT) + 1;
	}
	for (int once = 0; once <= (e->active ? 1 : 0); once++) {
		if (once)
			discount(e);
		cheapest_price(&e->cheapest, e->price);
		for (int d = 0; d < e->n_demands; d++) {
			double exactly;
			bool added;
			TRY(find_cheapest(e, d, &cost));
			TRY(cost_at_hand(e, &exactly));
			if (exactly >= (e->dual[e->n_links + d] - 1e-7 / e->n_demands) / e->members[d])
				continue;
			TRY(exact_add_cheapest(e, d, &added));
			*improved = *improved || added;
		}
	}
	return OK;
}

/* Something to begin with: of each demand the cheapest tree where every link costs what it takes to fill it. The first n_demands
 * columns are one tree for each. */
static Status
first_columns(struct exact *e)
{
	int64_t least = INT64_MAX, cost;
	for (int l = 0; l < e->topo->n_links; l++)
		least = e->topo->link[l].capacity < least ? e->topo->link[l].capacity : least;
	for (int l = 0; l < e->topo->n_links; l++)
		e->price[l] = 1 + (int64_t)(((Wide)least << (SEARCH_PRICE_BITS - 1)) / e->topo->link[l].capacity);
	for (int once = 0; once <= (e->active ? 1 : 0); once++) {
		if (once)
			discount(e);
		cheapest_price(&e->cheapest, e->price);
		for (int d = 0; d < e->n_demands; d++) {
			bool added;
			TRY(find_cheapest(e, d, &cost));
			TRY(exact_add_cheapest(e, d, &added));
		}
	}
	return OK;
}

/* What the exact y proves: M by the size of a demand times the sum of capacity * y. */
static bool
proven_rate(struct exact *e, Frac *out)
{
	Frac sum = FRAC_ZERO, one;
	for (int i = 0; i < e->n_basis; i++) {
		if (e->full[i] >= e->n_links)
			continue;
		if (!frac_mul((Frac){ e->room[e->full[i]], 1 }, e->y[i], &one) || !frac_add(sum, one, &sum))
			return false;
	}
	return frac_mul(sum, (Frac){ collective_shares(e->coll, e->topo->n_ranks), 1 }, &sum)
	    && frac_mul(sum, (Frac){ e->unit, 1 }, out);
}

Status
exact_trees(struct exact *e, Packing **out)
{
	bool exact = e->n_basis <= LIMIT_LP_BASIS;
	Packing *found = NULL;
	Frac rate;
	if (exact)
		TRY(basis_solve(e, false, e->x, &exact));
	if (exact)
		TRY(basis_packing(e, &found));
	/* What was read back is no proof until it is checked; and its rate must be a fraction of 64 bits. */
	*out = found && pack_fits(e->topo, found, e->price) && pack_rate(found, e->coll, e->topo->n_ranks, &rate) ? found : NULL;
	return OK;
}

/* *pack stays where the trees are not what e->optimum says. */
static Status
settle_trees(struct exact *e, Packing **pack)
{
	Packing *found;
	Frac rate;
	TRY(exact_trees(e, &found));
	if (found && pack_rate(found, e->coll, e->topo->n_ranks, &rate) && frac_cmp(rate, e->optimum) == 0)
		*pack = found;
	return OK;
}

/* The basis at hand, exactly: its prices, and if these prove that it is optimal its trees. False in *optimal: trees came
 * in. Numbers that do not stay small leave e->proven false, or *pack NULL. */
static Status
settle_basis(struct exact *e, Packing **pack, bool *optimal)
{
	bool known = e->n_basis <= LIMIT_LP_BASIS;
	*optimal = true;
	if (known)
		TRY(basis_solve(e, true, e->y, &known));
	if (known)
		TRY(prove_prices(e, &known, optimal));
	if (known && !*optimal)
		return OK;
	e->proven = known && proven_rate(e, &e->optimum);
	return e->proven ? settle_trees(e, pack) : OK;
}

/* Algorithm bandwidth of the solution at hand, bytes/s. */
static double
rate_of(const struct exact *e)
{
	double rate = 0;
	for (int i = 0; i < e->n_basis; i++)
		rate = e->basic[i] == RATE_COLUMN ? e->value[i] : rate;
	return rate * (double)e->unit * collective_shares(e->coll, e->topo->n_ranks);
}

/* Is the rate of the bound reached? No prices are needed then. */
static Status
settle_at_bound(struct exact *e, const Bound *bound, Packing **pack)
{
	if (rate_of(e) < frac_double(bound->rate) * (1 - 1e-9) || e->n_basis > LIMIT_LP_BASIS)
		return OK;
	e->optimum = bound->rate;
	TRY(settle_trees(e, pack));
	e->proven = e->at_bound = *pack != NULL;
	return OK;
}

/* One tree for each demand, all at one rate. */
static void
first_solution(struct exact *e)
{
	e->n_basis = 0;
	e->value[e->n_basis] = 1;
	e->basic[e->n_basis++] = RATE_COLUMN;
	for (int c = 0; c < e->n_demands; c++) {
		e->value[e->n_basis] = 1;
		e->basic[e->n_basis++] = c;
	}
}

/* Solve to the end over the kinds of trees that `cheapest` finds. *pack: NULL only if GLPK has no solution. */
static Status
optimise(struct exact *e, const Bound *bound, Packing **pack)
{
	bool optimal = false;
	*pack = NULL;
	e->proven = false;
	for (int round = 0; round < LIMIT_LP_ROUNDS && !optimal; round++) {
		bool improved, known = e->solved;
		TRY(exact_solve(e));
		if (!e->solved) {
			/* Out of time: the solution before this one is as it was; without any there are the first trees. */
			e->ended = e->timed_out || progress(e->ctx, "linear program") <= 0;
			if (e->ended && !known)
				first_solution(e);
			return e->ended ? basis_rounded(e, pack) : OK;
		}
		TRY(settle_at_bound(e, bound, pack));
		if (*pack)
			return OK;
		e->ended = progress(e->ctx, "linear program: round %d, %.4f of the bound", round + 1, rate_of(e) / frac_double(bound->rate)) <= 0;
		if (e->ended)
			break;
		TRY(price_columns(e, &improved));
		if (improved)
			continue;
		/* Of limited or shared trees it is not known that none is cheaper: what they achieve is, and the bound stays. */
		optimal = e->cheapest.max_depth > 0 || e->active;
		TRY(optimal ? exact_trees(e, pack) : settle_basis(e, pack, &optimal));
	}
	return *pack ? OK : basis_rounded(e, pack);
}

/* ---- orbits ---- */

static int
image_of_demand(const struct exact *e, const SymmetryMap *map, int d)
{
	Demand demand = collective_demand(e->coll, e->topo->n_ranks, e->root, d);
	return collective_demand_of(e->coll, e->topo->n_ranks, e->root, demand.from < 0 ? -1 : map->vertex[demand.from],
	    demand.to < 0 ? -1 : map->vertex[demand.to]);
}

static Status
group_demands(struct exact *e)
{
	int n = collective_demands(e->coll, e->topo->n_ranks), *queue;
	bool *seen;
	TRY(TEMP(e->ctx, e->lead, n));
	TRY(TEMP(e->ctx, e->members, n));
	TRY(TEMP(e->ctx, queue, n));
	TRY(TEMP(e->ctx, seen, n));
	for (int d = 0; d < n; d++) {
		int head = 0, tail = 0;
		if (seen[d])
			continue;
		seen[d] = true;
		queue[tail++] = d;
		while (head < tail) {
			int at = queue[head++];
			for (int i = 0; i < e->sym->n_maps; i++) {
				int to = image_of_demand(e, &e->sym->map[i], at);
				if (!seen[to])
					queue[tail++] = to;
				seen[to] = true;
			}
		}
		e->lead[e->n_demands] = d;
		e->members[e->n_demands++] = tail;
	}
	return OK;
}

/* A row of links: sum of x * members * uses <= size * capacity, divided by what divides all of it but x and uses. */
static Status
measure_rows(struct exact *e)
{
	int64_t common = 0;
	TRY(TEMP(e->ctx, e->room, e->n_links));
	TRY(TEMP(e->ctx, e->fold, e->n_links));
	for (int d = 0; d < e->n_demands; d++)
		common = gcd64(e->members[d], common);
	double least = INFINITY, most = 0;
	for (int l = 0; l < e->topo->n_links; l++) {
		int row = e->sym->link_orbit[l], size = e->sym->orbit_size[row];
		e->fold[row] = gcd64(size, common);
		e->room[row] = e->topo->link[l].capacity / e->unit * (size / e->fold[row]);
		least = fmin(least, (double)e->room[row]);
		most = fmax(most, (double)e->room[row]);
	}
	/* GLPK's tolerances are absolute: neither large nor below 1. */
	e->scale = fmax(1, fmin(most / 1e4, least));
	return OK;
}

static Status
exact_new(Ctx *ctx, const Topology *topo, const Symmetry *sym, const Request *ask, struct exact *e)
{
	*e = (struct exact){ .ctx = ctx, .topo = topo, .sym = sym, .coll = ask->coll, .root = ask->root,
		.unit = topo_link_unit(topo), .n_links = sym->n_orbits };
	TRY(group_demands(e));
	TRY(measure_rows(e));
	e->n_rows = e->n_links + e->n_demands + 1;
	size_t n = (size_t)e->n_rows;
	TRY(cheapest_new(ctx, topo, sym, &e->cheapest));
	TRY(family_use(&e->cheapest, ask->algorithm, sym));
	TRY(TEMP(ctx, e->work, topo->n_vertices));
	TRY(TEMP(ctx, e->price, topo->n_links + e->n_demands));
	TRY(TEMP(ctx, e->sum_row, n));
	TRY(TEMP(ctx, e->sum, n));
	TRY(TEMP(ctx, e->dual, n));
	TRY(TEMP(ctx, e->value, n));
	TRY(TEMP(ctx, e->index, n + 2));
	TRY(TEMP(ctx, e->entry, n + 2));
	TRY(TEMP(ctx, e->full, n));
	TRY(TEMP(ctx, e->basic, n));
	TRY(TEMP(ctx, e->place, n));
	TRY(TEMP(ctx, e->x, n));
	return TEMP(ctx, e->y, n);
}

/* Do trees both ways leave something to pairs? A rounded rate is near enough to the bound or it is not. */
static bool
wants_pairs(struct exact *e, const Bound *bound, const Packing *pack)
{
	Frac rate;
	if (e->coll != ALLREDUCE || e->cheapest.paired || !pack)
		return false;
	if (e->proven)
		return frac_cmp(e->optimum, bound->rate) < 0;
	return !pack_rate(pack, e->coll, e->topo->n_ranks, &rate) || frac_double(rate) < 0.999 * frac_double(bound->rate);
}

/* The rate less the tolerance, in units of a demand; false: it needs too many digits. */
static bool
set_target(struct exact *e, const Packing *pack, Frac tolerance)
{
	Frac keep, rate, share = { collective_shares(e->coll, e->topo->n_ranks), 1 };
	if (e->proven)
		rate = e->optimum;
	else if (!pack_rate(pack, e->coll, e->topo->n_ranks, &rate))
		return false;
	return frac_sub(FRAC_ONE, tolerance, &keep) && frac_mul(rate, keep, &rate) && frac_div(rate, share, &rate)
	    && frac_div(rate, (Frac){ e->unit, 1 }, &e->target) && e->target.num >> 40 == 0 && e->target.den >> 40 == 0;
}

static const char *
how_sure(const struct exact *e, const Request *ask)
{
	if (e->ended)
		return "cut short";
	if (e->active && !e->at_bound)
		return "sharing links";
	if (ask->max_depth)
		return "of limited depth";
	return e->proven ? "the optimum is proven" : "rounded";
}

/* *optimum: of the trees asked for; FRAC_ZERO where it is not proven. */
static Status
pack_best(Ctx *ctx, const Topology *topo, const Symmetry *sym, const Bound *bound, const Packing *pool, const Request *ask,
    Packing **out, Bound *proof, Frac *optimum)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct exact e;
	Packing *pack, *paired;
	bool added;
	TRY(exact_new(ctx, topo, sym, ask, &e));
	e.cheapest.max_depth = ask->max_depth;
	e.twists = ask->minimise && !collective_has_blocks(ask->coll) && topo->n_ranks > EXACT_FEW_RANKS;
	e.active = topo_active(topo) && collective_demand(ask->coll, topo->n_ranks, ask->root, 0).kind != DEMAND_CARRY;
	TRY(first_columns(&e));
	for (int t = 0; pool && t < pool->n_trees; t++)
		TRY(add_tree(&e, 0, &pool->tree[t], &added));
	TRY(lp_guard(ctx, start_lp, &e));
	Status status = optimise(&e, bound, &pack);
	if (status == OK && !e.ended && wants_pairs(&e, bound, pack)) {
		e.cheapest.paired = true;
		status = optimise(&e, bound, &paired);
		pack = paired ? paired : pack;
	}
	*optimum = status == OK && e.proven && !e.ended ? e.optimum : FRAC_ZERO;
	/* What a family of trees cannot reach others may. */
	if (status == OK && e.solved && e.at_bound)
		*proof = *bound;
	else if (status == OK && e.solved && !ask->max_depth && !e.active && !e.ended && !e.cheapest.family)
		status = e.proven ? basis_bound(&e, bound, proof) : rounded_bound(&e, proof);
	bool exact = (e.proven || ask->max_depth || e.active) && !e.ended;
	if (status == OK && pack && exact && ask->minimise && set_target(&e, pack, ask->tolerance))
		status = exact_fewer(&e, &pack);
	if (status == OK && pack && e.solved && ask->max_trees && pack->n_trees > ask->max_trees)
		status = exact_at_most(&e, ask->max_trees, &pack);
	if (status == OK)
		status = lp_guard(ctx, end_lp, &e);
	lp_release();
	TRY(status);
	/* Each image of a tree is a tree. */
	if (pack)
		talk(ctx, "lp: %d rows, %d of %lld %s that came up, %s", e.n_rows, pack->n_trees, (long long)e.n_columns * sym->size,
		    algorithm_trees(ask->algorithm), how_sure(&e, ask));
	arena_release(&ctx->scratch, mark);
	*out = pack;
	return OK;
}

Status
pack_exact(Ctx *ctx, const Topology *topo, const Symmetry *sym, const Bound *bound, const Packing *pool,
    const Request *ask, Packing **out, Bound *proof)
{
	Frac unused;
	return pack_best(ctx, topo, sym, bound, pool, ask, out, proof, &unused);
}

Status
pack_family(Ctx *ctx, const Topology *topo, const Symmetry *sym, const Bound *bound, const Request *ask, Packing **out,
    Bound *proof, Frac *optimum)
{
	return pack_best(ctx, topo, sym, bound, NULL, ask, out, proof, optimum);
}
