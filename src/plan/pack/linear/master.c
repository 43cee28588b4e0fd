/* The restricted master problem of column generation: its rows, its columns, and prices by what solves it
 * (master_solver.c).
 *
 * Rows: one for each orbit of links, one for each orbit of demands, and one for r >= target. Column c of the trees
 * that are known is one tree of the first demand of its orbit, the representative, and stands for all images of it
 * under the group of symmetries: all of them together, at rate x for each demand, load a link of orbit L with
 *
 *     x * demands in the orbit * uses(L, t) / links in L
 *
 * Multiplied by the links in L and divided by what divides all coefficients of the row, that is a row of small whole
 * numbers. Links are counted in units of one physical link, so that right-hand sides are small, too. */
#include "base/array.h"
#include "plan/pack/linear/master.h"

#include <math.h>

/* ---- rows ---- */

static int
image_of_demand(const void *with, int map, int d)
{
	const struct master *m = with;
	const int *image = m->sym->map[map].vertex;
	Demand demand = collective_demand(m->coll, m->topo->n_ranks, m->root, d);
	return collective_demand_of(m->coll, m->topo->n_ranks, m->root, demand.from < 0 ? -1 : image[demand.from],
	    demand.to < 0 ? -1 : image[demand.to]);
}

static Status
group_demands(struct master *m)
{
	int n = collective_demands(m->coll, m->topo->n_ranks), *orbit, *queue;
	TRY(TEMP(m->ctx, m->representative, n));
	TRY(TEMP(m->ctx, m->orbit_size, n));
	TRY(TEMP(m->ctx, orbit, n));
	TRY(TEMP(m->ctx, queue, n));
	symmetry_orbits(n, m->sym->n_maps, image_of_demand, m, orbit, queue);
	for (int d = 0; d < n; d++) {
		if (orbit[d] == m->n_demand_rows)
			m->representative[m->n_demand_rows++] = d;
		m->orbit_size[orbit[d]]++;
	}
	return OK;
}

/* A row of links: sum of x * demands in the orbit * uses <= links in the orbit * capacity, divided by what divides
 * all of it but x and uses. */
static Status
measure_rows(struct master *m)
{
	int64_t common = 0;
	TRY(TEMP(m->ctx, m->capacity, m->n_link_rows));
	TRY(TEMP(m->ctx, m->divisor, m->n_link_rows));
	for (int d = 0; d < m->n_demand_rows; d++)
		common = gcd64(m->orbit_size[d], common);
	double least = INFINITY, most = 0;
	for (int l = 0; l < m->topo->n_links; l++) {
		int row = m->sym->link_orbit[l], size = m->sym->orbit_size[row];
		m->divisor[row] = gcd64(size, common);
		m->capacity[row] = m->topo->link[l].capacity / m->unit * (size / m->divisor[row]);
		least = fmin(least, (double)m->capacity[row]);
		most = fmax(most, (double)m->capacity[row]);
	}
	/* GLPK's tolerances are absolute: capacities should be neither large nor below 1. */
	m->scale = fmax(1, fmin(most / 1e4, least));
	return OK;
}

Status
master_new(Ctx *ctx, const Topology *topo, const Symmetry *sym, const Family *family, const Ask *ask, struct master *m)
{
	*m = (struct master){ .ctx = ctx, .topo = topo, .sym = sym, .coll = ask->coll, .root = ask->root,
		.unit = topo_link_unit(topo), .n_link_rows = sym->n_orbits };
	m->turns = ask->minimise && !collective_has_blocks(ask->coll) && topo->n_ranks > FEW_RANKS;
	m->shares = tree_shares(topo, ask->coll);
	TRY(group_demands(m));
	TRY(measure_rows(m));
	m->n_rows = m->n_link_rows + m->n_demand_rows + 1;
	size_t n = (size_t)m->n_rows;
	TRY(cheapest_new(ctx, topo, sym, &m->cheapest));
	TRY(cheapest_limit(&m->cheapest, family, sym));
	m->cheapest.max_depth = ask->max_depth;
	m->cheapest.hurries = true;
	TRY(TEMP(ctx, m->work, topo->n_vertices));
	TRY(TEMP(ctx, m->price, topo->n_links + m->n_demand_rows));
	TRY(TEMP(ctx, m->fine_dual, n));
	TRY(TEMP(ctx, m->sum_row, n));
	TRY(TEMP(ctx, m->sum, n));
	TRY(TEMP(ctx, m->dual, n));
	TRY(TEMP(ctx, m->value, n));
	TRY(TEMP(ctx, m->index, n + 2));
	TRY(TEMP(ctx, m->entry, n + 2));
	TRY(TEMP(ctx, m->tight, n));
	TRY(TEMP(ctx, m->basic, n));
	TRY(TEMP(ctx, m->tight_at, n));
	TRY(TEMP(ctx, m->x, n));
	return TEMP(ctx, m->y, n);
}

/* ---- columns ---- */

static Status
add_column(struct master *m, int orbit, const Tree *tree, const int *used, int n_used, const int *uses)
{
	int n = 0;
	TRY(GROW(m->ctx, m->column, m->n_columns, m->room));
	for (int i = 0; i < n_used; i++) {
		int row = m->sym->link_orbit[used[i]];
		if (m->sum[row] == 0)
			m->sum_row[n++] = row;
		m->sum[row] += uses[used[i]];
	}
	struct column *c = &m->column[m->n_columns];
	*c = (struct column){ .tree = *tree, .orbit = orbit, .n = n, .depth = tree_depth(tree, m->work),
		.hash = tree_hash(tree) };
	TRY(NEW(m->ctx, c->row, n));
	TRY(NEW(m->ctx, c->uses, n));
	for (int i = 0; i < n; i++) {
		c->row[i] = m->sum_row[i];
		c->uses[i] = m->sum[c->row[i]] * (m->orbit_size[orbit] / m->divisor[c->row[i]]);
		m->sum[c->row[i]] = 0;
	}
	m->n_columns++;
	return OK;
}

static bool
is_column(const struct master *m, int orbit, uint64_t hash)
{
	for (int c = 0; c < m->n_columns; c++)
		if (m->column[c].hash == hash && m->column[c].orbit == orbit)
			return true;
	return false;
}

Status
master_add_tree(struct master *m, int orbit, const Tree *tree, bool *added)
{
	ArenaMark mark = arena_mark(&m->ctx->scratch);
	int *used, *uses, n = 0;
	*added = !is_column(m, orbit, tree_hash(tree));
	if (!*added)
		return OK;
	TRY(TEMP(m->ctx, used, m->topo->n_links));
	TRY(TEMP(m->ctx, uses, m->topo->n_links));
	for (int i = 0; i < tree->n_down + tree->n_up; i++) {
		const Edge *edge = tree_edge(tree, i);
		for (int k = 0; k < edge->n_links; k++)
			if (uses[edge->link[k]]++ == 0)
				used[n++] = edge->link[k];
	}
	TRY(add_column(m, orbit, tree, used, n, uses));
	arena_release(&m->ctx->scratch, mark);
	return OK;
}

Status
master_current_tree(struct master *m, Tree *out)
{
	TRY(cheapest_tree(&m->cheapest, m->coll == GATHER, out));
	if (m->shares)
		tree_share(m->topo, collective_reduces(m->coll), out, m->work);
	return OK;
}

Status
master_add_cheapest(struct master *m, int orbit, bool *added)
{
	Tree tree;
	TRY(master_current_tree(m, &tree));
	if (m->shares)
		return master_add_tree(m, orbit, &tree, added);
	*added = !is_column(m, orbit, tree_hash(&tree));
	return !*added ? OK : add_column(m, orbit, &tree, m->cheapest.used, m->cheapest.n_used, m->cheapest.uses);
}

/* ---- prices ---- */

double
master_link_price(const struct master *m, int l)
{
	int row = m->sym->link_orbit[l];
	return m->dual[row] / (double)m->divisor[row];
}

double
master_top_price(const struct master *m)
{
	double top = 1e-9;
	for (int row = 0; row < m->n_link_rows; row++)
		top = fmax(top, m->dual[row] / (double)m->divisor[row]);
	return top;
}
