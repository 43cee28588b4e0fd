/* What prices of links in one placement prove of all others: at any prices a group costs what its cheapest trees cost,
 * wherever it is, and all groups together no more than links can carry. So the dual solution of one linear program is a
 * cut for all placements, as in Benders' decomposition (Hooker and Ottosson 2003).
 *
 * A cut says for each set of GPUs what a group on it costs. Symmetries of the machine take a cut to others, which are
 * as good: they are kept as maps of sets. */
#include "workload/prices.h"
#include "base/array.h"
#include "graph/demand_cost.h"
#include "plan/plan.h"
#include "topology/topology.h"
#include "workload/links.h"

#include <math.h>

/* ---- a machine's symmetries ---- */

static bool
keeps_candidates(const void *with, const int *vertex, const int *link)
{
	const struct priced *p = with;
	(void)link;
	for (int i = 0; i < p->n_gpus; i++) {
		bool there = false;
		for (int j = 0; j < p->n_gpus; j++)
			there = there || p->gpu[j] == vertex[p->gpu[i]];
		if (!there)
			return false;
	}
	return true;
}

static Status
map_sets(struct priced *p, const int *vertex)
{
	uint16_t *image;
	TRY(NEW(p->ctx, image, p->n_sets));
	p->image[p->n_images++] = image;
	for (int i = 0; i < p->n_gpus; i++)
		for (int j = 0; j < p->n_gpus; j++)
			if (p->gpu[j] == vertex[p->gpu[i]])
				image[1u << i] = (uint16_t)(1u << j);
	for (unsigned set = 1; set < p->n_sets; set++)
		image[set] = (uint16_t)(image[set & (set - 1)] | image[set & -set]);
	return OK;
}

static Status
find_images(struct priced *p)
{
	const SymmetryTest keeps = { keeps_candidates, p };
	Symmetry *sym;
	SymmetryWalk walk;
	TRY(topo_symmetry_keeping(p->ctx, p->machine, &keeps, &sym));
	TRY(symmetry_walk(p->ctx, p->machine, sym, &walk));
	do
		TRY(map_sets(p, walk.vertex));
	while (p->n_images < PRICED_IMAGES && symmetry_next(&walk));
	return OK;
}

/* ---- opening ---- */

static Status
list_sizes(struct priced *p)
{
	const Workload *w = p->w;
	int most = 0;
	for (int k = 0; k < w->n_kinds; k++)
		most += w->kind[k].n_groups;
	TRY(NEW(p->ctx, p->size, most));
	TRY(NEW(p->ctx, p->size_of, w->n_kinds));
	for (int k = 0; k < w->n_kinds; k++) {
		TRY(NEW(p->ctx, p->size_of[k], w->kind[k].n_groups));
		for (int g = 0; g < w->kind[k].n_groups; g++) {
			int n = w->kind[k].group[g].n, i = 0;
			while (i < p->n_sizes && (p->size[i].kind != k || p->size[i].n != n))
				i++;
			if (n > 1 && i == p->n_sizes)
				p->size[p->n_sizes++] = (struct priced_size){ .kind = k, .n = n };
			p->size_of[k][g] = n > 1 ? i : -1;
		}
	}
	return OK;
}

Status
prices_open(Ctx *ctx, const Workload *w, const Topology *machine, const int *gpu, int n_gpus, const Ask *ask,
    struct priced **out)
{
	struct priced *p;
	TRY(NEW(ctx, p, 1));
	*p = (struct priced){ .ctx = ctx, .w = w, .machine = machine, .gpu = gpu, .n_gpus = n_gpus, .ask = ask,
		.n_sets = (size_t)1 << n_gpus };
	*out = p;
	TRY(list_sizes(p));
	TRY(NEW(p->ctx, p->out, (size_t)p->n_sizes * p->n_sets));
	return find_images(p);
}

/* ---- a cut ---- */

/* Of one call of a group, in bytes times prices. Any rank may be the root. Of unequal blocks nothing is said. */
static Status
call_cost(const struct priced *p, const Topology *topo, const GroupCall *call, const int64_t *price, double *out)
{
	double least = INFINITY;
	bool rooted = collective_rooted(call->coll);
	*out = 0;
	if (call->matrix)
		return OK;
	for (int root = rooted ? 0 : -1; root < (rooted ? topo->n_ranks : 0); root++) {
		ArenaMark mark = arena_mark(&p->ctx->scratch);
		Wide cost;
		TRY(demands_cost(p->ctx, topo->name, topo, call->coll, root, NULL, price, &cost));
		least = cost < 0 ? least : fmin(least, (double)cost);
		arena_release(&p->ctx->scratch, mark);
	}
	*out = least * (double)bytes_of(call) / collective_shares(call->coll, topo->n_ranks);
	return OK;
}

/* Seconds of a step in which a group calls alone, at least, by the bounds of its collectives. */
static Status
alone_least(const struct priced *p, const Topology *topo, int kind, double *out)
{
	Symmetry *none;
	*out = 0;
	TRY(topo_symmetry(p->ctx, topo, -1, SYMMETRY_NONE, &none));
	for (int i = 0; i < p->w->n_phases; i++) {
		const Phase *phase = &p->w->phase[i];
		double most = 0;
		for (int c = 0; c < phase->n_calls; c++) {
			const GroupCall *call = &phase->call[c];
			Bound bound;
			if (call->kind != kind || call->matrix || collective_rooted(call->coll))
				continue;
			TRY(bound_compute(p->ctx, topo, none, call->coll, -1, &bound));
			most = fmax(most, (double)bytes_of(call) / frac_double(bound.rate));
		}
		*out += most * phase->times;
	}
	return OK;
}

/* At prices of the machine's links, of[] those of topo. */
static Status
step_cost(const struct priced *p, const Topology *topo, const int *of, int kind, const LinkPrices *prices, double *out)
{
	int64_t *price;
	TRY(TEMP(p->ctx, price, topo->n_links));
	*out = 0;
	for (int i = 0; i < p->w->n_phases; i++) {
		const Phase *phase = &p->w->phase[i];
		if (prices[i].room <= 0)
			continue;
		for (int l = 0; l < topo->n_links; l++)
			price[l] = of[l] < 0 ? 0 : prices[i].price[of[l]];
		for (int c = 0; c < phase->n_calls; c++) {
			double cost = 0;
			if (phase->call[c].kind == kind)
				TRY(call_cost(p, topo, &phase->call[c], price, &cost));
			*out += cost / prices[i].room * phase->times;
		}
	}
	return OK;
}

/* Seconds of a step that a group on a set of GPUs costs. Infinite: it is not connected, or takes `most` alone. */
static Status
set_cost(struct priced *p, const LinkNames *names, const struct priced_size *size, unsigned set,
    const LinkPrices *prices, double most, double *out)
{
	int gpu[PRICED_GPUS], n = 0, *of;
	double alone = 0;
	Job job;
	for (int i = 0; i < p->n_gpus; i++)
		if (set >> i & 1)
			gpu[n++] = p->gpu[i];
	*out = INFINITY;
	Status status = job_induce(p->ctx, p->machine, gpu, n, p->ask, &job);
	if (status == INFEASIBLE) {
		p->ctx->error.status = OK;
		return OK;
	}
	TRY(status);
	TRY(TEMP(p->ctx, of, job.topo->n_links));
	TRY(link_names_find(p->ctx, names, job.topo, of));
	TRY(step_cost(p, job.topo, of, size->kind, prices, out));
	/* Slow links, which have no prices where nobody is over them. */
	if (*out == 0 && p->n_cuts == 0)
		TRY(alone_least(p, job.topo, size->kind, &alone));
	if (alone >= most)
		*out = INFINITY;
	return OK;
}

/* The least of a size is that of the empty set; groups on a set, and the others wherever they cost least, may take too
 * long. */
static void
leave_out(struct priced *p, double *cut, double most)
{
	const Workload *w = p->w;
	double sum = 0;
	for (int i = 0; i < p->n_sizes; i++) {
		double *cost = &cut[(size_t)i * p->n_sets];
		cost[0] = INFINITY;
		for (unsigned set = 1; set < p->n_sets; set++)
			if (__builtin_popcount(set) == p->size[i].n)
				cost[0] = fmin(cost[0], cost[set]);
	}
	for (int k = 0; k < w->n_kinds; k++)
		for (int g = 0; g < w->kind[k].n_groups; g++)
			if (p->size_of[k][g] >= 0)
				sum += cut[(size_t)p->size_of[k][g] * p->n_sets];
	for (int i = 0; i < p->n_sizes; i++)
		for (unsigned set = 1; set < p->n_sets; set++) {
			const double *cost = &cut[(size_t)i * p->n_sets];
			if (__builtin_popcount(set) != p->size[i].n || sum - cost[0] + cost[set] < most)
				continue;
			for (int image = 0; image < p->n_images; image++)
				p->out[(size_t)i * p->n_sets + p->image[image][set]] = true;
		}
}

Status
prices_add(struct priced *p, const LinkPrices *prices, double most, int64_t *work)
{
	ArenaMark all = arena_mark(&p->ctx->scratch);
	LinkNames names;
	double *cut;
	if (p->n_cuts == PRICED_CUTS)
		return OK;
	TRY(link_names(p->ctx, p->machine, &names));
	TRY(GROW(p->ctx, p->cut, p->n_cuts, p->room));
	TRY(NEW(p->ctx, cut, (size_t)p->n_sizes * p->n_sets));
	for (int i = 0; i < p->n_sizes; i++)
		for (unsigned set = 1; set < p->n_sets; set++) {
			size_t at = (size_t)i * p->n_sets + set;
			ArenaMark mark = arena_mark(&p->ctx->run), scratch = arena_mark(&p->ctx->scratch);
			if (__builtin_popcount(set) != p->size[i].n)
				continue;
			cut[at] = INFINITY;
			if (p->out[at])
				continue;
			TRY(set_cost(p, &names, &p->size[i], set, prices, most, &cut[at]));
			--*work;
			arena_release(&p->ctx->scratch, scratch);
			arena_release(&p->ctx->run, mark);
		}
	p->cut[p->n_cuts++] = cut;
	leave_out(p, cut, most);
	arena_release(&p->ctx->scratch, all);
	return OK;
}
