/* An allreduce where the two directions of links differ: each link has a part f for trees down from one root s, and the
 * rest, c - f, for trees up into it. Trees of rate R fit if and only if (Edmonds 1973)
 *
 *     f(into X) >= R                    for each set X of vertices with a rank, but without s
 *     f(out of X) <= c(out of X) - R    the same of links up
 *     0 <= f <= c
 *
 * and at each switch as much enters as leaves (split_off.c). That is a linear program of a column for each link. Few of
 * its rows, one for each set, matter. They come in by maximum flows: at first each rank alone, and the parts that prove
 * the bound. Still fewer matter where no link is of one direction alone: so at first a quarter of each is left to
 * either. Most solutions are whole numbers of units; others are rounded. */
#include "base/array.h"
#include "graph/network.h"
#include "plan/pack/flow/directions.h"
#include "plan/pack/lp/glpk.h"

#include <limits.h>
#include <math.h>
#include <string.h>

enum {
	ROUNDS = 60,
	PIVOTS = 20000,		/* of one round */
	MOST_SETS = 64,		/* that come in in one round, of one direction */
	FLOW_NS = 50000,
	RATE_BITS = 42,		/* of a rate that is rounded, */
	GAP_BITS = 30		/* and of what it may be below the bound, relative */
};

struct set {
	bool up;
	bool *has;		/* vertices */
};

struct directions {
	Ctx *ctx;
	int stop_at;		/* ms that must be left to go on: of a time limit, three quarters */
	const Supply *supply;
	const Topology *topo;
	int root;
	struct set *set;
	int n_sets, capacity, n_loaded;	/* n_loaded: those that have a row */
	glp_prob *lp;
	int share;		/* one part of this many of each link at least, for either direction; 0: none */
	bool solved;
	int *column;		/* work space of a row */
	double *value, *f;
	int64_t *down, times;	/* in parts of a unit */
	int64_t least;		/* the least flow of the last check */
	Network net[2];		/* down, up: from a rank to the root */
	int *at[2];
};

/* ---- the linear program ---- */

static void
add_row(struct directions *d, int n, int kind, double bound)
{
	int row = glp_add_rows(d->lp, 1);
	glp_set_row_bnds(d->lp, row, kind, bound, bound);
	glp_set_mat_row(d->lp, row, n, d->column, d->value);
}

static void
add_set(struct directions *d, const struct set *set)
{
	double sum = 0;
	int n = 0;
	for (int l = 0; l < d->topo->n_links; l++) {
		int from = d->topo->link[l].from, to = d->topo->link[l].to;
		if (set->up ? !set->has[from] || set->has[to] : set->has[from] || !set->has[to])
			continue;
		d->column[++n] = l + 1;
		d->value[n] = 1;
		sum += (double)d->supply->capacity[l];
	}
	add_row(d, n, set->up ? GLP_UP : GLP_LO, set->up ? sum - (double)d->supply->total : (double)d->supply->total);
}

/* No more leaves a switch than enters it: trees up lead along links backwards. */
static void
add_switch(struct directions *d, int w)
{
	int64_t more = 0;
	int n = 0;
	for (int l = 0; l < d->topo->n_links; l++) {
		bool in = d->topo->link[l].to == w;
		if (!in && d->topo->link[l].from != w)
			continue;
		more += in ? -d->supply->capacity[l] : d->supply->capacity[l];
		d->column[++n] = l + 1;
		d->value[n] = in ? -1 : 1;
	}
	add_row(d, n, GLP_UP, more < 0 ? (double)more : 0);
}

static void
create(void *with)
{
	struct directions *d = with;
	d->lp = glp_create_prob();
	glp_add_cols(d->lp, d->topo->n_links);
	for (int w = d->topo->n_ranks; w < d->topo->n_vertices; w++)
		add_switch(d, w);
}

static void
destroy(void *with)
{
	struct directions *d = with;
	glp_delete_prob(d->lp);
	d->lp = NULL;
}

static void
solve(void *with)
{
	struct directions *d = with;
	glp_smcp how;
	glp_init_smcp(&how);
	how.msg_lev = GLP_MSG_OFF;
	how.it_lim = PIVOTS;
	int left = progress(d->ctx, "cuts: %d", d->n_sets) - d->stop_at;
	how.tm_lim = left < 1 ? 1 : left;
	for (int l = 0; l < d->topo->n_links; l++) {
		int64_t all = d->supply->capacity[l], least = d->share ? all / d->share : 0;
		glp_set_col_bnds(d->lp, l + 1, least < all - least ? GLP_DB : GLP_FX, (double)least,
		    (double)(all - least));
	}
	for (; d->n_loaded < d->n_sets; d->n_loaded++)
		add_set(d, &d->set[d->n_loaded]);
	d->solved = glp_simplex(d->lp, &how) == 0 && glp_get_status(d->lp) == GLP_OPT;
	for (int l = 0; l < d->topo->n_links; l++)
		d->f[l] = glp_get_col_prim(d->lp, l + 1);
}

/* ---- sets ---- */

/* *added: false if the set is there. */
static Status
take_set(struct directions *d, bool up, const bool *has, bool *added)
{
	size_t n = (size_t)d->topo->n_vertices;
	*added = false;
	for (int i = 0; i < d->n_sets; i++)
		if (d->set[i].up == up && memcmp(d->set[i].has, has, n * sizeof *has) == 0)
			return OK;
	TRY(GROW_TEMP(d->ctx, d->set, d->n_sets, d->capacity));
	struct set *set = &d->set[d->n_sets++];
	set->up = up;
	TRY(TEMP(d->ctx, set->has, n));
	memcpy(set->has, has, n * sizeof *has);
	*added = true;
	return OK;
}

static Status
take_both(struct directions *d, const bool *has)
{
	bool unused;
	TRY(take_set(d, false, has, &unused));
	return take_set(d, true, has, &unused);
}

/* Each rank alone, all vertices but the root, and the parts of the bound. */
static Status
first_sets(struct directions *d, const Bound *bound)
{
	size_t n = (size_t)d->topo->n_vertices;
	bool *has;
	TRY(TEMP(d->ctx, has, n));
	for (int r = 0; r < d->topo->n_ranks; r++) {
		for (size_t v = 0; v < n; v++)
			has[v] = r == d->root ? (int)v != r : (int)v == r;
		TRY(take_both(d, has));
		bool first = bound->part && bound->part[r] != bound->part[d->root];
		for (int u = 0; u < r && first; u++)
			first = bound->part[u] != bound->part[r];
		for (size_t v = 0; v < n && first; v++)
			has[v] = bound->part[v] == bound->part[r];
		if (first)
			TRY(take_both(d, has));
	}
	return OK;
}

static Status
new_networks(struct directions *d)
{
	const Topology *topo = d->topo;
	int *tail, *head, m = topo->n_links + topo->n_ranks;
	TRY(TEMP(d->ctx, tail, m));
	TRY(TEMP(d->ctx, head, m));
	for (int up = 0; up < 2; up++) {
		for (int l = 0; l < topo->n_links; l++) {
			tail[l] = up ? topo->link[l].from : topo->link[l].to;
			head[l] = up ? topo->link[l].to : topo->link[l].from;
		}
		for (int v = 0; v < topo->n_ranks; v++) {
			tail[topo->n_links + v] = v == d->root ? -1 : v;
			head[topo->n_links + v] = d->root;
		}
		TRY(TEMP(d->ctx, d->at[up], m));
		TRY(network_new(d->ctx, topo->n_vertices, m, &d->net[up]));
		network_build(&d->net[up], topo->n_vertices, m, tail, head, d->at[up]);
	}
	return OK;
}

/* Sets that have less than the rate, of one direction. A rank that was searched from joins the root. */
static Status
check_way(struct directions *d, bool up, int *added)
{
	Network *net = &d->net[up];
	const int *at = d->at[up], n_links = d->topo->n_links;
	int64_t total = d->supply->total * d->times;
	int found = 0;
	bool *has, more;
	TRY(TEMP(d->ctx, has, d->topo->n_vertices));
	for (int l = 0; l < n_links; l++)
		net->arc[at[l]].room = up ? d->supply->capacity[l] * d->times - d->down[l] : d->down[l];
	for (int v = 0; v < d->topo->n_ranks; v++)
		if (v != d->root)
			net->arc[at[n_links + v]].room = 0;
	for (int v = 0; v < d->topo->n_ranks && found < MOST_SETS; v++) {
		if (v == d->root)
			continue;
		int64_t flow = network_flow(net, v, d->root, total);
		net->arc[at[n_links + v]].room = NETWORK_INFINITE;
		d->least = flow < d->least ? flow : d->least;
		if (flow >= total)
			continue;
		for (int u = 0; u < d->topo->n_vertices; u++)
			has[u] = network_side(net, u);
		TRY(take_set(d, up, has, &more));
		found += more;
	}
	*added += found;
	return OK;
}

/* The solution in parts of a unit, and what it lacks. */
static Status
check(struct directions *d, int64_t times, int *added)
{
	d->times = times;
	d->least = d->supply->total * times;
	*added = 0;
	for (int l = 0; l < d->topo->n_links; l++) {
		int64_t all = d->supply->capacity[l] * times, part = llround(d->f[l] * (double)times);
		d->down[l] = part < 0 ? 0 : part > all ? all : part;
	}
	TRY(check_way(d, false, added));
	return check_way(d, true, added);
}

/* *done: the solution has the rate, or was rounded. */
static Status
go_round(struct directions *d, bool *done, bool *more)
{
	static const int few[] = { 1, 2, 3, 4, 6 };
	int64_t fine = 1, total = d->supply->total;
	int added = 0;
	*done = *more = false;
	TRY(lp_guard(d->ctx, solve, d));
	if (!d->solved || out_of_time(d->ctx, (int64_t)FLOW_NS * d->topo->n_ranks))
		return OK;
	for (size_t i = 0; i < sizeof few / sizeof *few && added == 0; i++) {
		TRY(check(d, few[i], &added));
		*done = d->least == total * few[i];
		*more = added > 0;
		if (*done || *more)
			return OK;
	}
	while (fine < (INT64_C(1) << RATE_BITS) / total)
		fine *= 2;
	TRY(check(d, fine, &added));
	*more = added > 0;
	*done = !*more && (total * fine - d->least) >> (RATE_BITS - GAP_BITS) == 0;
	return OK;
}

Status
divide_directions(Ctx *ctx, const Supply *supply, int root, const Bound *bound, int64_t *down, int64_t *parts,
    int64_t *total)
{
	static const int share[] = { 4, 8, 0 };
	const Topology *topo = supply->topo;
	int left = progress(ctx, "directions of links");
	struct directions d = { .ctx = ctx, .supply = supply, .topo = topo, .root = root, .down = down,
		.stop_at = left == INT_MAX ? 0 : left - left / 4 };
	bool done = false, more;
	*total = 0;
	TRY(TEMP(ctx, d.column, topo->n_links + 1));
	TRY(TEMP(ctx, d.value, topo->n_links + 1));
	TRY(TEMP(ctx, d.f, topo->n_links));
	TRY(first_sets(&d, bound));
	TRY(new_networks(&d));
	TRY(lp_guard(ctx, create, &d));
	for (size_t i = 0; i < sizeof share / sizeof *share && !done; i++) {
		d.share = share[i];
		more = true;
		for (int round = 0; round < ROUNDS && more && !done && progress(ctx, "cuts: %d", d.n_sets) > d.stop_at;
		    round++)
			TRY(go_round(&d, &done, &more));
	}
	TRY(lp_guard(ctx, destroy, &d));
	if (done) {
		*parts = d.times;
		*total = d.least;
	}
	return OK;
}
