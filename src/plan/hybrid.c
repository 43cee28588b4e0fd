/* Two sets of links for one message: NVLink and PCIe (Blink 3.4). Each part is planned by itself, on the topology of
 * its link classes, and the packings are joined into one: of every block the parts get shares in proportion to their
 * rates, so that all parts of a large message end together. split.c has the shares of smaller messages, where setup
 * counts.
 *
 * Blink's method (peer) switches peer access from NVLink to PCIe, so PCIe has a setup. The other (host) keeps peer
 * access as it is, and sends through the memory of the host: a GPU copies to a CPU, and another GPU from there. Then
 * data cannot turn back in a PCIe switch. So planning has each PCIe switch split in two, a copy that leads up,
 * towards CPUs, and one that leads down:
 *
 * 	    cpu0                     cpu0
 * 	     |                      /    \
 * 	    plx0        becomes   plx0   plx0      gpu0 -> plx0 -> cpu0 -> plx0 -> gpu1
 * 	    /  \                  /  \   /  \
 * 	gpu0    gpu1           gpu0 gpu1 gpu0 gpu1
 *
 * A link, which has one direction, belongs to one copy, so that capacities stay what they are; and copies have the id
 * of the switch, so that a link is known by its ends. */
#include "plan/pack/linear/linear.h"
#include "plan/plan.h"
#include "topology/topology.h"

#include <string.h>

/* ---- a plan for each part ---- */

struct plan {
	Topology *topo;
	int *link;		/* of each of its links: its number in the whole topology */
	Packing *pack;
	Frac rate;		/* bytes/s, as its own schedule achieves it */
	int64_t sum;		/* of the weights for one demand */
	int64_t factor;		/* of its weights in the joined packing */
};

/* Induction keeps the order of links, so one pass over both finds each link: by its ends, whose ids are the same
 * pointers, and its class. Of parallel links of one class all are kept, or none. */
static Status
map_links(Ctx *ctx, const Topology *whole, struct plan *plan)
{
	TRY(NEW(ctx, plan->link, plan->topo->n_links));
	for (int l = 0, at = 0; l < plan->topo->n_links; l++, at++) {
		const Link *link = &plan->topo->link[l];
		while (whole->vertex[whole->link[at].from].id != plan->topo->vertex[link->from].id
		    || whole->vertex[whole->link[at].to].id != plan->topo->vertex[link->to].id
		    || whole->link[at].class != link->class)
			at++;
		plan->link[l] = at;
	}
	return OK;
}

/* "dgx1v over pcie,qpi": the name of a part's topology in messages. */
static Status
name_part(Ctx *ctx, const char *name, const Part *part, const char **out)
{
	Text text = { 0 };
	text_put(&text, name);
	text_put(&text, " over ");
	text_put(&text, link_classes_text(part->classes).text);
	*out = text_keep(&ctx->run, &text);
	return *out ? OK : fail_memory(ctx);
}

/* The topology of a part: that of the job with its own classes alone. */
static Status
induce_part(Ctx *ctx, const Topology *whole, const Part *part, struct plan *plan)
{
	Topology named = *whole;
	JobLinks links;
	int *gpu;
	TRY(NEW(ctx, gpu, whole->n_ranks));
	for (int r = 0; r < whole->n_ranks; r++)
		gpu[r] = r;
	TRY(name_part(ctx, whole->name, part, &named.name));
	TRY(topo_nic_paths(ctx, &named, gpu, whole->n_ranks, part->classes, NULL, &links));
	TRY(topo_induce(ctx, &named, gpu, whole->n_ranks, &links, &plan->topo));
	return map_links(ctx, whole, plan);
}

static Status
measure_rate(Ctx *ctx, const Ask *ask, struct plan *plan)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	int64_t *load;
	TRY(TEMP(ctx, load, plan->topo->n_links));
	if (!pack_achieved(plan->topo, plan->pack, ask->coll, load, &plan->rate))
		return fail(ctx, LIMIT, "%s: the rate of its trees needs more than %d bits", plan->topo->name,
		    (int)FRAC_BITS);
	arena_release(&ctx->scratch, mark);
	return OK;
}

static Status
plan_part(Ctx *ctx, const Planning *in, const Algorithm *algorithm, const Part *part, struct plan *plan)
{
	const Ask *ask = in->ask;
	Symmetry *sym;
	Bound bound;
	Plan made;
	TRY(induce_part(ctx, in->planning_topology, part, plan));
	TRY(topo_symmetry(ctx, plan->topo, ask->root, algorithm->wants_symmetry(plan->topo, ask), &sym));
	TRY(bound_compute(ctx, plan->topo, sym, ask->coll, ask->root, &bound));
	TRY(algorithm->plan(ctx, &(Planning){ .row = algorithm, .topo = plan->topo, .sym = sym, .bound = &bound,
	    .ask = ask }, &made));
	plan->pack = made.pack;
	if (made.pack->serves)
		return fail(ctx, INFEASIBLE, "%s: %s: each tree has all of the buffer: want trees that share it",
		    plan->topo->name, algorithm->name);
	TRY(measure_rate(ctx, ask, plan));
	for (int t = 0; t < plan->pack->n_trees; t++)
		plan->sum += plan->pack->weight[t];
	plan->sum /= collective_demands(ask->coll, plan->topo->n_ranks);
	log_verbose(ctx, "hybrid: %s: %d tree%s, %.6g GB/s", plan->topo->name, plan->pack->n_trees,
	    plan->pack->n_trees == 1 ? "" : "s", frac_double(plan->rate) / 1e9);
	return OK;
}

/* ---- one packing of all ---- */

/* What a unit of weight counts, in units of the first part, so that shares are in proportion to rates. */
static bool
weight_ratio(const struct plan *first, const struct plan *plan, Frac *out)
{
	Frac rates, sums;
	return frac_div(plan->rate, first->rate, &rates) && frac_make(first->sum, plan->sum, &sums)
	    && frac_mul(rates, sums, out) && frac_fits(*out);
}

/* These ratios as the smallest whole numbers. */
static Status
scale_weights(Ctx *ctx, const char *label, struct plan *plan, int n, int n_demands)
{
	Frac ratio;
	int64_t common = 1;
	Wide total = 0;
	bool fits = true;
	for (int i = 0; i < n && fits; i++) {
		Wide least = 0;
		fits = weight_ratio(&plan[0], &plan[i], &ratio);
		if (fits)
			least = (Wide)common * (ratio.den / gcd64(common, ratio.den));
		fits = fits && least <= INT64_MAX;
		common = fits ? (int64_t)least : 1;
	}
	for (int i = 0; i < n && fits; i++) {
		Wide whole = weight_ratio(&plan[0], &plan[i], &ratio) ? ratio.num * (common / ratio.den) : 0;
		fits = whole >> PACKING_BITS == 0;
		total += fits ? whole * plan[i].sum * n_demands : 0;
		fits = fits && total >> PACKING_BITS == 0;
		plan[i].factor = fits ? (int64_t)whole : 0;
	}
	return fits ? OK : fail(ctx, LIMIT, "%s: the rates of the parts have no common unit of %d bits", label,
	    (int)PACKING_BITS);
}

/* Demand by demand, and within a demand part by part. */
static Status
join_trees(Ctx *ctx, const Topology *job, const struct plan *plan, int n, Collective coll, Packing *all)
{
	int next[N_LINK_CLASSES] = { 0 }, n_demands = collective_demands(coll, job->n_ranks);
	for (int d = 0; d < n_demands; d++) {
		for (int i = 0; i < n; i++) {
			const Packing *pack = plan[i].pack;
			for (; next[i] < pack->n_trees && (!pack->demand || pack->demand[next[i]] == d); next[i]++) {
				const Tree *from = &pack->tree[next[i]];
				int t = all->n_trees++;
				TRY(tree_image(ctx, from, NULL, plan[i].link, &all->tree[t]));
				all->demand[t] = d;
				all->weight[t] = pack->weight[next[i]] * plan[i].factor;
				all->part_of[t] = i;
			}
		}
	}
	return OK;
}

static Status
check_count(Ctx *ctx, const Topology *job, const struct plan *plan, int n, int *trees)
{
	int64_t edges = 0;
	*trees = 0;
	for (int i = 0; i < n; i++) {
		*trees += plan[i].pack->n_trees;
		for (int t = 0; t < plan[i].pack->n_trees; t++)
			edges += plan[i].pack->tree[t].n_down + plan[i].pack->tree[t].n_up;
	}
	if (*trees > LIMIT_TREES || edges > LIMIT_TREE_EDGES)
		return fail(ctx, LIMIT, "%s: the parts have %d trees with %lld edges: want at most %d and %d",
		    job->name, *trees, (long long)edges, LIMIT_TREES, LIMIT_TREE_EDGES);
	return OK;
}

static Status
join_packings(Ctx *ctx, const Planning *in, struct plan *plan, Packing **out)
{
	Packing *all;
	int n_trees;
	TRY(check_count(ctx, in->topo, plan, in->n_parts, &n_trees));
	TRY(scale_weights(ctx, in->topo->name, plan, in->n_parts,
	    collective_demands(in->ask->coll, in->topo->n_ranks)));
	TRY(pack_new(ctx, n_trees, true, &all));
	all->unit = FRAC_ONE;
	all->n_parts = in->n_parts;
	all->part = in->part;
	TRY(NEW(ctx, all->part_of, n_trees));
	TRY(join_trees(ctx, in->topo, plan, in->n_parts, in->ask->coll, all));
	*out = all;
	return OK;
}

/* An upper bound on algorithms that use all links at once. Where the parts reach `bound`, that is it. */
static Status
prove(Ctx *ctx, const Planning *in, const struct plan *plan, Bound *out)
{
	Packing *unused;
	Ask any = *in->ask;
	Frac sum = FRAC_ZERO;
	bool known = true;
	any.max_depth = 0;
	any.minimise = false;
	for (int i = 0; i < in->n_parts; i++)
		known = known && frac_add(sum, plan[i].rate, &sum);
	*out = *in->bound;
	if (known && frac_cmp(sum, in->bound->rate) >= 0)
		return OK;
	log_verbose(ctx, "hybrid: the rate of all links together, for comparison:");
	return pack_exact(ctx, in->topo, in->sym, in->bound, NULL, &any, &unused, out);
}

static Status
plan_hybrid(Ctx *ctx, const Planning *in, Plan *out)
{
	struct plan plan[N_LINK_CLASSES] = { { 0 } };
	const Algorithm *algorithm;
	*out = (Plan){ .best = FRAC_ZERO };
	TRY(algorithm_find(ctx, in->ask->algorithm, in->ask->coll, &algorithm));
	for (int i = 0; i < in->n_parts; i++)
		TRY(plan_part(ctx, in, algorithm, &in->part[i], &plan[i]));
	TRY(join_packings(ctx, in, plan, &out->pack));
	return prove(ctx, in, plan, &out->proof);
}

const Algorithm hybrid_algorithm = { .name = "hybrid", .wants_symmetry = trees_symmetry, .plan = plan_hybrid };
