/* Alltoall by key paths and detours, of 400 irregular machines of 3 to 8 GPUs, with and without switches and routes
 * of pairs: the optimum is found here by the linear program over arcs, with a variable for each source and link
 * (GLPK). Of machines of up to 48 GPUs packing and lengths prove each other. Paths are walked, and their loads added
 * up, one by one. */
#include "plan/pack/alltoall/alltoall.h"
#include "plan/plan.h"
#include "quick.h"
#include "random.h"
#include "schedule/schedule.h"
#include "topology/topology.h"

#include <glpk.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SMALL = 400, LARGE = 12, MOST_RANKS = 48, MOST = MOST_RANKS + 8, MOST_LINKS = MOST * 10 };

struct machine {
	Topology topo;
	Vertex vertex[MOST];
	Link link[MOST_LINKS];
};

static int failures;

static void
ok(bool right, int machine, const char *what)
{
	if (!right)
		printf("# machine %d: not so: %s\n", machine, what);
	failures += !right;
}

static void
join(struct machine *m, int from, int to, int capacity)
{
	if (from == to || m->topo.n_links == MOST_LINKS)
		return;
	for (int l = 0; l < m->topo.n_links; l++)
		if (m->link[l].from == from && m->link[l].to == to)
			return;
	m->link[m->topo.n_links++] = (Link){ .from = from, .to = to, .count = 1, .capacity = capacity * 1000 };
}

/* Each vertex is joined to an earlier one both ways; other links are one way, of capacities that differ or all of one.
 */
static Status
make(Ctx *ctx, struct machine *m, int n, int switches)
{
	int widest = below(2) ? 1 : 7, all = n + switches;
	memset(&m->topo, 0, sizeof m->topo);
	for (int v = 0; v < all; v++)
		m->vertex[v] = (Vertex){ .id = "v", .kind = v < n ? VERTEX_GPU : VERTEX_SWITCH };
	m->topo.name = "machine";
	m->topo.n_ranks = n;
	m->topo.n_vertices = all;
	m->topo.vertex = m->vertex;
	m->topo.link = m->link;
	for (int v = 1; v < all; v++) {
		int u = below(v);
		join(m, u, v, 1 + below(widest));
		join(m, v, u, 1 + below(widest));
	}
	for (int more = below(4 * all); more > 0; more--)
		join(m, below(all), below(all), 1 + below(widest));
	return topo_index(ctx, &m->topo);
}

/* All pairs have a route of their own, of any links: paths are searched by hops then, and the optimum is the same. */
static Status
give_routes(Ctx *ctx, struct machine *m)
{
	size_t pairs = (size_t)m->topo.n_ranks * (size_t)m->topo.n_ranks;
	unsigned char *route = arena_array(&ctx->run, pairs, 1);
	if (!route)
		return NO_MEMORY;
	memset(route, ROUTE_NET, pairs);
	m->topo.route = route;
	return OK;
}

/* ---- the oracle ---- */

/* Rows: of each source, what stays at each vertex; then the links. Column 1 is the load of the fullest link. */
static void
fill_matrix(const struct machine *m, glp_prob *lp)
{
	const Topology *topo = &m->topo;
	int flows = topo->n_ranks * topo->n_vertices;
	int index[4];
	double entry[4];
	for (int s = 0; s < topo->n_ranks; s++) {
		for (int l = 0; l < topo->n_links; l++) {
			int col = glp_add_cols(lp, 1);
			index[1] = s * topo->n_vertices + m->link[l].to + 1;
			index[2] = s * topo->n_vertices + m->link[l].from + 1;
			index[3] = flows + l + 1;
			entry[1] = entry[3] = 1;
			entry[2] = -1;
			glp_set_mat_col(lp, col, 3, index, entry);
			glp_set_col_bnds(lp, col, GLP_LO, 0, 0);
		}
		for (int v = 0; v < topo->n_vertices; v++)
			glp_set_row_bnds(lp, s * topo->n_vertices + v + 1, v == s ? GLP_FR : GLP_FX,
			    v < topo->n_ranks, 0);
	}
	for (int l = 0; l < topo->n_links; l++)
		glp_set_row_bnds(lp, flows + l + 1, GLP_UP, 0, 0);
}

/* Bytes/s of algorithm bandwidth. */
static double
optimum(const struct machine *m)
{
	static int index[MOST_LINKS + 1];
	static double entry[MOST_LINKS + 1];
	const Topology *topo = &m->topo;
	int flows = topo->n_ranks * topo->n_vertices;
	glp_prob *lp = glp_create_prob();
	glp_smcp options;
	glp_init_smcp(&options);
	options.msg_lev = GLP_MSG_OFF;
	glp_set_obj_dir(lp, GLP_MIN);
	glp_add_rows(lp, flows + topo->n_links);
	glp_add_cols(lp, 1);
	for (int l = 0; l < topo->n_links; l++) {
		index[l + 1] = flows + l + 1;
		entry[l + 1] = -(double)m->link[l].capacity / 1000;
	}
	glp_set_mat_col(lp, 1, topo->n_links, index, entry);
	glp_set_col_bnds(lp, 1, GLP_LO, 0, 0);
	glp_set_obj_coef(lp, 1, 1);
	fill_matrix(m, lp);
	if (glp_simplex(lp, &options) != 0 || glp_get_status(lp) != GLP_OPT)
		exit(1);
	double load = glp_get_obj_val(lp);
	glp_delete_prob(lp);
	return 1000 / load * topo->n_ranks;
}

/* ---- the packing ---- */

/* Does it lead from its root to the rank that it serves, by links that follow each other, through no third rank? */
static bool
leads(const struct machine *m, const Tree *tree, Demand demand)
{
	int at = demand.from;
	if (tree->root != at || tree->n_up > 0)
		return false;
	for (int i = 0; i < tree->n_down; i++) {
		const Edge *e = &tree->down[i];
		if (e->src != at)
			return false;
		for (int k = 0; k < e->n_links; k++) {
			const Link *link = &m->link[e->link[k]];
			if (link->from != at || (link->to < m->topo.n_ranks && k < e->n_links - 1))
				return false;
			at = link->to;
		}
		if (e->dst != at)
			return false;
	}
	return at == demand.to;
}

static void
check_packing(const struct machine *m, int machine, const Packing *pack)
{
	static Wide load[MOST_LINKS];
	static int64_t sent[MOST_RANKS * MOST_RANKS];
	int n = m->topo.n_ranks, demands = collective_demands(ALLTOALL, n);
	bool leads_all = true, fits = true, equal = true, ordered = true;
	memset(load, 0, sizeof load);
	memset(sent, 0, sizeof sent);
	for (int t = 0; t < pack->n_trees; t++) {
		const Tree *tree = &pack->tree[t];
		ordered = ordered && (t == 0 || pack->demand[t] >= pack->demand[t - 1]);
		leads_all = leads_all && leads(m, tree, collective_demand(ALLTOALL, n, -1, pack->demand[t]));
		sent[pack->demand[t]] += pack->weight[t];
		for (int i = 0; i < tree->n_down; i++)
			for (int k = 0; k < tree->down[i].n_links; k++)
				load[tree->down[i].link[k]] += pack->weight[t];
	}
	for (int l = 0; l < m->topo.n_links; l++)
		fits = fits && load[l] * pack->unit.num <= (Wide)m->link[l].capacity * pack->unit.den;
	for (int d = 0; d < demands; d++)
		equal = equal && sent[d] == sent[0];
	ok(leads_all, machine, "each path leads where it should");
	ok(ordered, machine, "paths are in order of their demands");
	ok(fits, machine, "no link carries more than it can");
	ok(equal, machine, "all demands have the same rate");
	ok(pack->n_trees < demands + m->topo.n_links, machine, "fewer demands are divided than there are links");
}

static void
check_machine(int machine, int n, int switches, bool oracle)
{
	static struct machine m;
	Ctx ctx;
	Symmetry *none;
	Packing *pack = NULL;
	Bound cut, proof;
	Frac rate, proven;
	ctx_init(&ctx);
	if (make(&ctx, &m, n, switches) != OK || (machine / 24 % 2 && give_routes(&ctx, &m) != OK)
	    || topo_symmetry(&ctx, &m.topo, -1, SYMMETRY_NONE, &none) != OK
	    || bound_compute(&ctx, &m.topo, none, ALLTOALL, -1, &cut) != OK)
		exit(1);
	proof = cut;
	ok(pack_paths(&ctx, &m.topo, NULL, false, &pack, &proof) == OK && pack, machine, "there is a packing");
	if (pack && pack_rate(pack, ALLTOALL, n, &rate)) {
		double found = frac_double(rate), best = oracle ? optimum(&m) : found;
		check_packing(&m, machine, pack);
		ok(fabs(found / best - 1) <= 1e-7, machine, "the rate is the optimum");
		ok(frac_cmp(rate, proof.rate) <= 0 && found >= frac_double(proof.rate) * (1 - 1e-9), machine,
		    "the bound is as near as rounding allows");
		ok(frac_cmp(proof.rate, cut.rate) <= 0
		    && certificate_check(&ctx, "machine", &m.topo, ALLTOALL, -1, NULL, &proof) == OK
		    && bound_from_certificate(&ctx, "machine", &m.topo, ALLTOALL, -1, &proof, &proven) == OK
		    && frac_cmp(proven, proof.rate) == 0, machine, "the certificate proves the bound");
	}
	ctx_free(&ctx);
}

int
main(void)
{
	int small = quick_check() ? SMALL / 4 : SMALL, large = quick_check() ? LARGE / 4 : LARGE;
	for (int machine = 0; machine < small; machine++)
		check_machine(machine, 3 + machine % 6, machine / 6 % 4, true);
	for (int machine = 0; machine < large; machine++)
		check_machine(SMALL + machine, MOST_RANKS - 3 * (machine / 3), machine % 3, false);
	printf("# %d machines\n", small + large);
	return report(failures, "alltoall by key paths and detours");
}
