/* The optimal rate, exactly, by column generation (Dantzig and Wolfe 1960) over all trees of a collective:
 *
 *     maximise    sum over trees t of x(t)
 *     such that   sum over trees of uses(l, t) x(t) <= capacity(l)      for every link l, with dual price y(l)
 *
 * GLPK solves it over the trees at hand, in doubles; the cheapest tree under y comes in if it costs less than 1. When none
 * does, doubles are left behind: the basis that GLPK ended with names as many trees as links that are full, and x and
 * y are solved for it once more, exactly. Then x is what is packed and y is the proof that nothing beats it; both are
 * checked in integers: no load above capacity, nothing negative, no tree cheaper than 1. A cheaper one comes in, too, and
 * it goes on.
 *
 * Exactly: modulo the prime 2^61 - 1, then each number is read back as the only small fraction that it can stand for. That
 * is no proof, nor has it to be: what is read back is checked.
 *
 * Allreduce first packs trees that go up and down the same way; only if those stay below the bound, pairs of
 * arborescences. Links are counted in units of one physical link, so that numbers stay small. */
#include "cheapest.h"
#include "lp.h"

#include <math.h>
#include <string.h>

struct column {
	Tree tree;
	int n;			/* links in use */
	int *link, *uses;
};

struct exact {
	Ctx *ctx;
	const Topology *topo;
	Cheapest cheapest;
	int64_t unit;		/* one physical link, bytes/s */
	struct column *column;
	int n_columns, room;
	int64_t *price;
	double *dual, *value;	/* y of links and x of trees, as GLPK says */
	glp_prob *lp;
	int loaded;		/* columns that the LP has */
	bool solved;
	/* The basis: links that are full and trees in use, equally many. */
	int n_basis, *full, *basic, *place;	/* place[l]: of link l in full, -1: it has slack */
	Frac *x, *y;		/* of basic trees, in units; of full links */
};

/* ---- columns ---- */

static Status
add_column(struct exact *e, const Tree *tree, const int *used, int n, const int *uses)
{
	if (e->n_columns == e->room) {
		struct column *grown;
		TRY(NEW(e->ctx, grown, 2 * (size_t)e->room + 64));
		if (e->n_columns)
			memcpy(grown, e->column, (size_t)e->n_columns * sizeof *grown);
		e->column = grown;
		e->room = 2 * e->room + 64;
	}
	struct column *c = &e->column[e->n_columns];
	*c = (struct column){ .tree = *tree, .n = n };
	TRY(NEW(e->ctx, c->link, n));
	TRY(NEW(e->ctx, c->uses, n));
	for (int i = 0; i < n; i++) {
		c->link[i] = used[i];
		c->uses[i] = uses[used[i]];
	}
	e->n_columns++;
	return OK;
}

static Status
add_tree(struct exact *e, const Tree *tree)
{
	ArenaMark mark = arena_mark(&e->ctx->scratch);
	int *used, *uses, n = 0;
	TRY(TEMP(e->ctx, used, e->topo->n_links));
	TRY(TEMP(e->ctx, uses, e->topo->n_links));
	for (int i = 0; i < tree->n_down + tree->n_up; i++) {
		const Edge *edge = i < tree->n_down ? &tree->down[i] : &tree->up[i - tree->n_down];
		for (int k = 0; k < edge->n_links; k++)
			if (uses[edge->link[k]]++ == 0)
				used[n++] = edge->link[k];
	}
	TRY(add_column(e, tree, used, n, uses));
	arena_release(&e->ctx->scratch, mark);
	return OK;
}

static Status
add_cheapest(struct exact *e)
{
	Tree tree;
	TRY(cheapest_tree(&e->cheapest, &tree));
	return add_column(e, &tree, e->cheapest.used, e->cheapest.n_used, e->cheapest.uses);
}

/* ---- the linear program ---- */

static void
start_lp(void *with)
{
	struct exact *e = with;
	e->lp = glp_create_prob();
	glp_set_obj_dir(e->lp, GLP_MAX);
	glp_add_rows(e->lp, e->topo->n_links);
	for (int l = 0; l < e->topo->n_links; l++)
		glp_set_row_bnds(e->lp, l + 1, GLP_UP, 0, (double)(e->topo->link[l].capacity / e->unit));
}

static void
load_columns(struct exact *e)
{
	for (; e->loaded < e->n_columns; e->loaded++) {
		const struct column *c = &e->column[e->loaded];
		int col = glp_add_cols(e->lp, 1);
		/* GLPK counts from 1; place and dual are free to be used as work space here. */
		for (int i = 0; i < c->n; i++) {
			e->place[i + 1] = c->link[i] + 1;
			e->dual[i + 1] = c->uses[i];
		}
		glp_set_mat_col(e->lp, col, c->n, e->place, e->dual);
		glp_set_col_bnds(e->lp, col, GLP_LO, 0, 0);
		glp_set_obj_coef(e->lp, col, 1);
	}
}

static void
read_basis(struct exact *e)
{
	int n_full = 0, n_basic = 0;
	for (int l = 0; l < e->topo->n_links; l++) {
		bool full = glp_get_row_stat(e->lp, l + 1) != GLP_BS;
		e->place[l] = full ? n_full : -1;
		if (full)
			e->full[n_full++] = l;
	}
	for (int c = 0; c < e->loaded; c++)
		if (glp_get_col_stat(e->lp, c + 1) == GLP_BS && n_basic < n_full) {
			e->value[n_basic] = fmax(glp_get_col_prim(e->lp, c + 1), 0);
			e->basic[n_basic++] = c;
		}
	e->n_basis = n_full;
}

static void
solve_lp(void *with)
{
	struct exact *e = with;
	glp_smcp options;
	glp_init_smcp(&options);
	options.msg_lev = GLP_MSG_OFF;
	options.tm_lim = LIMIT_ILP_SECONDS * 1000;
	load_columns(e);
	/* A second try from scratch, should rounding have made the last basis singular. */
	e->solved = glp_simplex(e->lp, &options) == 0 && glp_get_status(e->lp) == GLP_OPT;
	if (!e->solved) {
		glp_std_basis(e->lp);
		e->solved = glp_simplex(e->lp, &options) == 0 && glp_get_status(e->lp) == GLP_OPT;
	}
	for (int l = 0; e->solved && l < e->topo->n_links; l++)
		e->dual[l] = fmax(glp_get_row_dual(e->lp, l + 1), 0);
	if (e->solved)
		read_basis(e);
}

/* x as GLPK says, scaled back into the capacities and rounded down to whole multiples of a small part of the rate. */
static Status
rounded_packing(struct exact *e, Packing **out)
{
	Packing *pack;
	double *load, congestion = 1, sum = 0;
	TRY(TEMP(e->ctx, load, e->topo->n_links));
	TRY(NEW(e->ctx, pack, 1));
	TRY(NEW(e->ctx, pack->tree, e->n_basis));
	TRY(NEW(e->ctx, pack->weight, e->n_basis));
	for (int i = 0; i < e->n_basis; i++) {
		const struct column *c = &e->column[e->basic[i]];
		sum += e->value[i];
		for (int k = 0; k < c->n; k++)
			load[c->link[k]] += c->uses[k] * e->value[i];
	}
	for (int l = 0; l < e->topo->n_links; l++)
		congestion = fmax(congestion, load[l] * (double)e->unit / (double)e->topo->link[l].capacity);
	pack->unit = pack_unit(e->topo, sum / congestion * (double)e->unit);
	for (int i = 0; i < e->n_basis; i++) {
		int64_t weight = (int64_t)(e->value[i] / congestion * (double)e->unit / frac_double(pack->unit) * (1 - 1e-9));
		if (weight < 1)
			continue;
		pack->tree[pack->n_trees] = e->column[e->basic[i]].tree;
		pack->weight[pack->n_trees++] = weight;
	}
	TRY(pack_check(e->ctx, e->topo, pack));
	*out = pack;
	return OK;
}

static void
end_lp(void *with)
{
	struct exact *e = with;
	glp_delete_prob(e->lp);
}

/* ---- the basis, exactly ---- */

#define PRIME ((INT64_C(1) << 61) - 1)

static int64_t
times(int64_t a, int64_t b)
{
	return (int64_t)((Wide)a * b % PRIME);
}

static int64_t
inverse(int64_t a)
{
	int64_t power = 1;
	for (int64_t e = PRIME - 2; e; e >>= 1) {
		if (e & 1)
			power = times(power, a);
		a = times(a, a);
	}
	return power;
}

/* Gauss and Jordan on n rows of n + 1: the last column becomes the solution. False: singular. */
static bool
eliminate(int64_t *m, int n)
{
	size_t width = (size_t)n + 1;
	for (int k = 0; k < n; k++) {
		int pivot = k;
		while (pivot < n && m[(size_t)pivot * width + (size_t)k] == 0)
			pivot++;
		if (pivot == n)
			return false;
		for (size_t j = 0; j < width; j++) {
			int64_t t = m[(size_t)pivot * width + j];
			m[(size_t)pivot * width + j] = m[(size_t)k * width + j];
			m[(size_t)k * width + j] = t;
		}
		int64_t scale = inverse(m[(size_t)k * width + (size_t)k]);
		for (size_t j = (size_t)k; j < width; j++)
			m[(size_t)k * width + j] = times(m[(size_t)k * width + j], scale);
		for (int i = 0; i < n; i++) {
			int64_t by = m[(size_t)i * width + (size_t)k];
			if (i == k || by == 0)
				continue;
			for (size_t j = (size_t)k; j < width; j++) {
				int64_t d = m[(size_t)i * width + j] - times(by, m[(size_t)k * width + j]);
				m[(size_t)i * width + j] = d < 0 ? d + PRIME : d;
			}
		}
	}
	return true;
}

/* The fraction p/q = a modulo PRIME with 0 <= p < 2^42 and 0 < q < 2^18, if there is one (Wang 1981). A negative p is
 * none: in an optimal basis nothing is. */
static bool
read_back(int64_t a, Frac *out)
{
	int64_t r0 = PRIME, r1 = a, t0 = 0, t1 = 1;
	while (r1 >> 42) {
		int64_t q = r0 / r1, r = r0 - q * r1, t = t0 - q * t1;
		r0 = r1;
		r1 = r;
		t0 = t1;
		t1 = t;
	}
	return t1 > 0 && t1 < 1 << 18 && frac_make(r1, t1, out);
}

/* Solve for x (transposed: for y) in the basis. False: singular, or no small fractions. */
static Status
solve_basis(struct exact *e, bool transposed, Frac *out, bool *done)
{
	ArenaMark mark = arena_mark(&e->ctx->scratch);
	size_t n = (size_t)e->n_basis, width = n + 1;
	int64_t *m;
	TRY(TEMP(e->ctx, m, n * width));
	for (size_t j = 0; j < n; j++) {
		const struct column *c = &e->column[e->basic[j]];
		for (int i = 0; i < c->n; i++) {
			int row = e->place[c->link[i]];
			if (row >= 0)
				m[transposed ? j * width + (size_t)row : (size_t)row * width + j] = c->uses[i];
		}
	}
	for (size_t i = 0; i < n; i++)
		m[i * width + n] = transposed ? 1 : e->topo->link[e->full[i]].capacity / e->unit % PRIME;
	*done = eliminate(m, e->n_basis);
	for (size_t i = 0; i < n && *done; i++)
		*done = read_back(m[i * width + n], &out[i]);
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

/* Is the cheapest tree under the exact y no cheaper than 1? *known: y is exact and nothing is out of range. */
static Status
prove_prices(struct exact *e, bool *known, bool *optimal)
{
	int64_t den = common_denominator(e->y, e->n_basis, (INT64_C(1) << SEARCH_PRICE_BITS) - 1), cost;
	*known = den > 0;
	memset(e->price, 0, (size_t)e->topo->n_links * sizeof *e->price);
	for (int i = 0; i < e->n_basis && *known; i++) {
		Wide price = (Wide)e->y[i].num * (den / e->y[i].den);
		*known = price >> SEARCH_PRICE_BITS == 0;
		e->price[e->full[i]] = (int64_t)price;
	}
	if (!*known)
		return OK;
	TRY(cheapest_find(&e->cheapest, e->price, &cost));
	*optimal = cost >= den;
	return OK;
}

/* ---- result ---- */

static Status
packing_of(struct exact *e, Packing **out)
{
	Packing *pack;
	int64_t den = common_denominator(e->x, e->n_basis, INT64_C(1) << 32);
	if (den == 0)
		return OK;
	TRY(NEW(e->ctx, pack, 1));
	TRY(NEW(e->ctx, pack->tree, e->n_basis));
	TRY(NEW(e->ctx, pack->weight, e->n_basis));
	int64_t common = 0;
	Wide sum = 0;
	for (int i = 0; i < e->n_basis; i++) {
		Wide weight = (Wide)e->x[i].num * (den / e->x[i].den);
		sum += weight;
		if (sum >> 62)
			return OK;
		common = gcd64(common, (int64_t)weight);
		if (weight == 0)
			continue;
		pack->tree[pack->n_trees] = e->column[e->basic[i]].tree;
		pack->weight[pack->n_trees++] = (int64_t)weight;
	}
	if (common == 0 || (sum / common) >> 32 || !frac_make((Wide)e->unit * common, den, &pack->unit))
		return OK;
	for (int t = 0; t < pack->n_trees; t++)
		pack->weight[t] /= common;
	*out = pack;
	return OK;
}

/* Is no link asked for more than it has? */
static bool
fits(struct exact *e, const Packing *pack)
{
	int64_t *load = e->price;
	memset(load, 0, (size_t)e->topo->n_links * sizeof *load);
	for (int i = 0, t = 0; i < e->n_basis; i++) {
		const struct column *c = &e->column[e->basic[i]];
		if (e->x[i].num == 0)
			continue;
		for (int k = 0; k < c->n; k++)
			load[c->link[k]] += pack->weight[t] * c->uses[k];
		t++;
	}
	for (int l = 0; l < e->topo->n_links; l++)
		if ((Wide)load[l] * pack->unit.num > (Wide)e->topo->link[l].capacity * pack->unit.den)
			return false;
	return true;
}

/* The certificate of the collective where it is tight, else y. */
static Status
bound_of(struct exact *e, const Bound *known, Frac optimum, Bound *out)
{
	Bound bound = { .rate = optimum, .kind = CERTIFICATE_PRICES };
	if (frac_cmp(optimum, known->rate) == 0) {
		*out = *known;
		return OK;
	}
	TRY(NEW(e->ctx, bound.part, e->topo->n_vertices));
	TRY(NEW(e->ctx, bound.price, e->topo->n_links));
	for (int l = 0; l < e->topo->n_links; l++)
		bound.price[l] = e->place[l] < 0 ? FRAC_ZERO : e->y[e->place[l]];
	*out = bound;
	return OK;
}

/* ---- column generation ---- */

/* The cheapest tree under GLPK's duals, if it improves by more than doubles err, comes in. */
static Status
price_columns(struct exact *e, bool *improved)
{
	double top = 1;
	int64_t cost;
	for (int l = 0; l < e->topo->n_links; l++)
		top = fmax(top, e->dual[l]);
	double scale = ldexp(1, SEARCH_PRICE_BITS - 1) / top;
	for (int l = 0; l < e->topo->n_links; l++)
		e->price[l] = (int64_t)(e->dual[l] * scale);
	TRY(cheapest_find(&e->cheapest, e->price, &cost));
	*improved = (double)cost < scale * (1 - 1e-7);
	return *improved ? add_cheapest(e) : OK;
}

/* The basis at hand, exactly. False in *exact: its numbers do not stay small. False in *optimal: a tree came in. */
static Status
settle_basis(struct exact *e, Packing **pack, bool *exact, bool *optimal)
{
	*optimal = true;
	*exact = e->n_basis <= LIMIT_LP_BASIS;
	if (*exact)
		TRY(solve_basis(e, false, e->x, exact));
	if (*exact)
		TRY(solve_basis(e, true, e->y, exact));
	if (*exact)
		TRY(prove_prices(e, exact, optimal));
	if (*exact && !*optimal)
		return add_cheapest(e);
	Packing *found = NULL;
	if (*exact)
		TRY(packing_of(e, &found));
	*exact = found && fits(e, found);
	if (*exact)
		*pack = found;
	return OK;
}

/* Solve to the end over the kind of trees that `cheapest` finds. */
static Status
optimise(struct exact *e, Packing **pack, bool *exact)
{
	bool optimal = false;
	*exact = false;
	for (int round = 0; round < LIMIT_LP_ROUNDS && !optimal; round++) {
		bool improved;
		TRY(lp_guard(e->ctx, solve_lp, e));
		if (!e->solved)
			return OK;
		TRY(price_columns(e, &improved));
		if (!improved)
			TRY(settle_basis(e, pack, exact, &optimal));
	}
	return *exact ? OK : rounded_packing(e, pack);
}

static Status
exact_new(Ctx *ctx, const Topology *topo, const Request *ask, struct exact *e)
{
	int n = topo->n_links;
	*e = (struct exact){ .ctx = ctx, .topo = topo, .unit = topo_link_unit(topo) };
	TRY(cheapest_new(ctx, topo, ask->coll, ask->root, &e->cheapest));
	TRY(TEMP(ctx, e->price, n));
	TRY(TEMP(ctx, e->dual, n + 1));
	TRY(TEMP(ctx, e->value, n));
	TRY(TEMP(ctx, e->full, n));
	TRY(TEMP(ctx, e->basic, n));
	TRY(TEMP(ctx, e->place, n + 1));
	TRY(TEMP(ctx, e->x, n));
	TRY(TEMP(ctx, e->y, n));
	return OK;
}

/* Over both kinds of trees, while the first one stays below the bound. *proof: only if exact. */
static Status
optimise_all(struct exact *e, const Bound *bound, Packing **pack, Bound *proof, bool *exact)
{
	Frac rate;
	TRY(optimise(e, pack, exact));
	if (!pack_rate(*pack, &rate))
		*exact = false;
	else if (e->cheapest.coll == ALLREDUCE && !e->cheapest.paired && frac_cmp(rate, bound->rate) < 0 && *exact) {
		e->cheapest.paired = true;
		TRY(optimise(e, pack, exact));
		*exact = *exact && pack_rate(*pack, &rate);
	}
	return *exact ? bound_of(e, bound, rate, proof) : OK;
}

Status
pack_exact(Ctx *ctx, const Topology *topo, const Bound *bound, const Packing *pool, const Request *ask, Packing **out,
    Bound *proof)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct exact e;
	Packing *pack = NULL;
	bool exact = false;
	TRY(exact_new(ctx, topo, ask, &e));
	for (int t = 0; t < pool->n_trees; t++)
		TRY(add_tree(&e, &pool->tree[t]));
	TRY(lp_guard(ctx, start_lp, &e));
	Status status = optimise_all(&e, bound, &pack, proof, &exact);
	if (status == OK)
		status = lp_guard(ctx, end_lp, &e);
	lp_release();
	TRY(status);
	if (pack)
		talk(ctx, "lp: %d trees of %d that came up, %s", pack->n_trees, e.n_columns, exact ? "exact" : "rounded");
	arena_release(&ctx->scratch, mark);
	*out = pack;
	return OK;
}
