/* Trees for machines so large and so symmetric that a schedule is a few trees and their images: where a table of all
 * pairs of ranks, which the linear program prices trees by, would take gigabytes. A tree takes the cheapest hops
 * (grow.c).
 *
 * Where prices of links are the same in both directions no tree is cheaper. Prices are the same over an orbit, and so
 * loads are, of all images together. They follow loads, round by round, as with multiplicative weights (mwu.c), and the
 * rounds so far with the highest rate are the packing, or, where that is higher, some of their trees, each as much as a
 * linear program says (weights.c). Nothing is claimed of it: the bound says what it is. */
#include "plan/pack/templates/grow.h"
#include "plan/pack/templates/templates.h"
#include "plan/pack/lp/weights.h"

#include <string.h>

enum {
	ROUNDS = 12,
	MOST_ROUNDS = 256,	/* where a linear program chooses from all of their trees */
	IDLE_ROUNDS = 8,	/* of these: the rate is no higher after them */
	MOST_LOOKS = INT32_MAX,	/* at entries or links of all trees in as many rounds: some seconds; beyond it there
				 * are ROUNDS */
	MOST_CELLS = 1 << 25,	/* likewise: orbits times trees */
	TEMPLATE_ROWS = 1024,	/* orbits and demands: with more no linear program is solved */
	TEMPLATE_STEPS = 4096,	/* of each of these */
	PRICE_BITS = 28, STEEP = 15,
	SMALL_BITS = 12		/* prices of loads beside those of the linear program are as many times less; where
				 * the rate is no higher any more, as many again */
};

struct rounds {
	struct grower g;
	Ctx *ctx;
	const Topology *topo;
	const Symmetry *sym;
	Collective coll;
	int64_t *price, *base;	/* of each link: of a hop of a tree, and of a transfer */
	double *dual;		/* of each orbit, where the linear program is solved; else NULL */
	int64_t *load;		/* of each orbit: uses by representatives, so far */
	int64_t *capacity;	/* of all links of an orbit */
	Packing *pack;
	int most, idle;		/* rounds at most; how many of the last ones found no higher rate */
	int n_kept;		/* trees of the rounds with the highest rate */
	Frac best;		/* their rate for a demand; of an allreduce for one image of each tree */
	int64_t *uses;		/* [tree * orbits + orbit]: of all images; NULL: there are too many orbits */
	int64_t *weight;	/* of each tree, where `best` is by weights; else NULL */
};

/* Trees of a round. */
static int
roots_of(const struct rounds *r)
{
	return r->coll == ALLREDUCE ? 1 : r->sym->n_representatives;
}

/* Prices of an orbit: as the capacity of its links has it, and up to 1 + STEEP times that where the load is highest. */
static void
price_loads(struct rounds *r)
{
	const Topology *topo = r->topo;
	int64_t unit = topo_link_unit(topo), most = 0;
	for (int o = 0; o < r->sym->n_orbits; o++) {
		int64_t load = (int64_t)(((Wide)r->load[o] << 20) / (r->capacity[o] / unit + 1));
		most = load > most ? load : most;
	}
	for (int l = 0; l < topo->n_links; l++) {
		int o = r->sym->link_orbit[l];
		int64_t load = (int64_t)(((Wide)r->load[o] << 20) / (r->capacity[o] / unit + 1));
		int64_t part = most ? (int64_t)(((Wide)load << 10) / most) : 0;
		Wide base = ((Wide)1 << PRICE_BITS) / (topo->link[l].capacity / unit) + 1;
		r->base[l] = (int64_t)(base * ((1 << 20) + STEEP * part * part) >> 20);
	}
}

/* Prices of the linear program, and what tells trees of one price from each other: a small part of the other ones. A
 * part that is too large for the last trees, whose prices differ by little, is smaller after rounds without them. */
static void
price_duals(struct rounds *r)
{
	const Topology *topo = r->topo;
	double most = 0;
	for (int o = 0; o < r->sym->n_orbits; o++)
		most = r->dual[o] > most ? r->dual[o] : most;
	price_loads(r);
	int bits = r->idle < IDLE_ROUNDS / 4 ? SMALL_BITS : 2 * SMALL_BITS;
	for (int l = 0; l < topo->n_links; l++)
		r->base[l] = (r->base[l] >> bits) + 1
		    + (int64_t)(r->dual[r->sym->link_orbit[l]] / most * (1 << PRICE_BITS));
}

/* Trees towards the root load the links of the other direction, and of an allreduce both. */
static void
set_prices(struct rounds *r)
{
	if (r->dual)
		price_duals(r);
	else
		price_loads(r);
	for (int l = 0; l < r->topo->n_links; l++) {
		int back = r->g.opposite[l];
		r->price[l] = r->coll == ALLGATHER || back < 0 ? r->base[l] : r->coll == REDUCESCATTER ? r->base[back]
		    : (r->base[l] + r->base[back]) / 2;
	}
}

static Status
new_rounds(struct rounds *r, Packing *pack)
{
	const Topology *topo = r->topo;
	size_t m = (size_t)topo->n_links;
	TRY(TEMP(r->ctx, r->price, m));
	TRY(TEMP(r->ctx, r->base, m));
	TRY(TEMP(r->ctx, r->load, m));
	TRY(TEMP(r->ctx, r->capacity, m));
	for (int l = 0; l < topo->n_links; l++)
		r->capacity[r->sym->link_orbit[l]] += topo->link[l].capacity;
	TRY(grower_new(r->ctx, topo, r->sym, r->price, &r->g));
	int roots = roots_of(r), orbits = r->sym->n_orbits;
	int64_t each = (r->g.n_looks + topo->n_ranks) * roots, cells = (int64_t)roots * orbits;
	bool solves = orbits + roots <= TEMPLATE_ROWS;
	int64_t most = MOST_LOOKS / each < MOST_CELLS / cells ? MOST_LOOKS / each : MOST_CELLS / cells;
	r->most = !solves || most < ROUNDS ? ROUNDS : most < MOST_ROUNDS ? (int)most : MOST_ROUNDS;
	*pack = (Packing){ .unit = FRAC_ONE, .symmetry = r->sym };
	TRY(pack_room(r->ctx, (size_t)r->most * (size_t)roots, true, pack));
	r->pack = pack;
	return solves ? TEMP(r->ctx, r->uses, (size_t)r->most * (size_t)cells) : OK;
}

/* A tree of the representative, and what all images load with it. images: ranks of its orbit. */
static Status
add_tree(struct rounds *r, int root, int images)
{
	struct grower *g = &r->g;
	Packing *pack = r->pack;
	Tree *tree = &pack->tree[pack->n_trees];
	bool into = r->coll == REDUCESCATTER;
	TRY(tree_arrange(r->ctx, r->topo->n_ranks, into ? REDUCE : r->coll == ALLREDUCE ? ALLREDUCE : BROADCAST, root,
	    into ? g->back : g->there, into ? g->there : g->back, g->n_edges, tree));
	for (int i = 0; i < tree->n_down + tree->n_up; i++) {
		const Edge *edge = tree_edge(tree, i);
		for (int k = 0; k < edge->n_links; k++) {
			int o = r->sym->link_orbit[edge->link[k]];
			r->load[o] += images;
			if (r->uses)
				r->uses[(size_t)pack->n_trees * (size_t)r->sym->n_orbits + (size_t)o] += images;
		}
	}
	pack->demand[pack->n_trees] = r->coll == ALLREDUCE ? 0 : root;
	pack->weight[pack->n_trees++] = 1;
	return OK;
}

/* The least capacity by load of any orbit, times the number of trees of a demand that loads are of. False: it is no
 * higher than the best. */
static bool
is_higher(struct rounds *r, const int64_t *load, int64_t trees)
{
	Wide num = 0, den = 1;
	for (int o = 0; o < r->sym->n_orbits; o++)
		if (load[o] > 0 && (num == 0 || ratio_cmp(r->capacity[o], load[o], num, den) < 0)) {
			num = r->capacity[o];
			den = load[o];
		}
	Frac rate;
	if (num == 0 || !frac_make(num * trees, den, &rate) || frac_cmp(rate, r->best) <= 0)
		return false;
	r->best = rate;
	return true;
}

static void
keep_rounds(struct rounds *r, int rounds)
{
	if (!is_higher(r, r->load, rounds))
		return;
	r->n_kept = r->pack->n_trees;
	r->weight = NULL;
}

/* Trees of all rounds so far by their weights, if that is better. Where the last rounds were not, doubles and rounding
 * may have taken the last digits of the rate: coarser weights may have them. */
static Status
keep_weights(struct rounds *r)
{
	const Packing *pack = r->pack;
	int *demand;
	int64_t *weight, *load, sum, images = 0;
	double *price;
	if (!r->uses)
		return OK;
	TRY(TEMP(r->ctx, price, r->sym->n_orbits));
	TRY(TEMP(r->ctx, demand, pack->n_trees));
	TRY(TEMP(r->ctx, weight, pack->n_trees));
	TRY(TEMP(r->ctx, load, r->sym->n_orbits));
	int each = roots_of(r);
	for (int t = 0; t < pack->n_trees; t++)
		demand[t] = t % each;
	TRY(template_weights(r->ctx, &(struct template_pool){ .n_orbits = r->sym->n_orbits, .n_demands = each,
	    .capacity = r->capacity, .n = pack->n_trees, .demand = demand, .load = r->uses,
	    .most_steps = TEMPLATE_STEPS, .coarser = r->idle }, weight, &sum, price));
	r->dual = sum > 0 ? price : NULL;
	for (int t = 0; t < pack->n_trees && sum > 0; t++) {
		images += weight[t] > 0 ? r->sym->size : 0;
		for (int o = 0; o < r->sym->n_orbits; o++)
			load[o] += weight[t] * r->uses[(size_t)t * (size_t)r->sym->n_orbits + (size_t)o];
	}
	if (sum > 0 && images <= LIMIT_IMAGES && is_higher(r, load, sum)) {
		r->n_kept = pack->n_trees;
		r->weight = weight;
	}
	return OK;
}

/* *good: false: there is no such tree. */
static Status
one_round(struct rounds *r, bool *good)
{
	int n = roots_of(r);
	set_prices(r);
	TRY(grower_search(&r->g, good));
	for (int i = 0; i < n && *good; i++) {
		int root = r->sym->representative[i], images = r->sym->size;
		bool whole, mirrored, moved = false;
		for (int m = 0; m < r->sym->n_maps; m++)
			moved = moved || r->sym->map[m].vertex[root] != root;
		TRY(grower_tree(&r->g, root, &whole, &mirrored));
		*good = whole && (mirrored || r->coll == ALLGATHER);
		if (*good)
			TRY(add_tree(r, root, moved || r->coll == ALLREDUCE ? images : 1));
	}
	return OK;
}

/* Trees of one demand side by side, in the order of their rounds. */
static Status
sort_by_demand(struct rounds *r, Packing **out)
{
	Packing *made;
	const Packing *pack = r->pack;
	int each = roots_of(r);
	TRY(NEW(r->ctx, made, 1));
	*made = *pack;
	made->n_trees = 0;
	TRY(pack_room(r->ctx, r->n_kept, true, made));
	for (int i = 0; i < each; i++)
		for (int t = i; t < r->n_kept; t += each) {
			int64_t weight = r->weight ? r->weight[t] : pack->weight[t];
			if (weight == 0)
				continue;
			made->tree[made->n_trees] = pack->tree[t];
			made->demand[made->n_trees] = pack->demand[t];
			made->weight[made->n_trees++] = weight;
		}
	*out = made;
	return OK;
}

bool
pack_templates_serves(const Topology *topo, const Symmetry *sym, Collective coll)
{
	return (coll == ALLREDUCE || coll == ALLGATHER || coll == REDUCESCATTER) && sym->size >= 2 && !topo->route
	    && !tree_shares(topo, coll);
}

/* Equal but for rounding. */
static bool
is_near(Frac rate, Frac top)
{
	return frac_double(rate) >= frac_double(top) * (1 - RATE_ROUNDING);
}

Status
pack_templates(Ctx *ctx, const Topology *topo, const Symmetry *sym, Collective coll, const Bound *bound, Packing **out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct rounds r = { .ctx = ctx, .topo = topo, .sym = sym, .coll = coll, .best = FRAC_ZERO };
	Packing pack;
	bool good = true;
	*out = NULL;
	if (!pack_templates_serves(topo, sym, coll))
		return OK;
	TRY(new_rounds(&r, &pack));
	Frac top, parts = { coll == ALLREDUCE ? sym->size : collective_shares(coll, topo->n_ranks), 1 };
	if (!frac_div(bound->rate, parts, &top))
		return OK;
	int64_t images = (int64_t)sym->size * roots_of(&r);
	int rounds = ROUNDS < LIMIT_IMAGES / images ? ROUNDS : (int)(LIMIT_IMAGES / images);
	for (int i = 1; (i <= rounds || (i <= r.most && r.uses && r.idle < IDLE_ROUNDS)) && good
	    && (i == 1 || !is_near(r.best, top))
	    && progress(ctx, "trees of %d GPUs: round %d", topo->n_ranks, i) > 0; i++) {
		Frac before = r.best;
		TRY(one_round(&r, &good));
		if (good && i <= rounds)
			keep_rounds(&r, i);
		if (good && i > 1 && !is_near(r.best, top))
			TRY(keep_weights(&r));
		r.idle = frac_cmp(before, r.best) < 0 ? 0 : r.idle + 1;
	}
	log_verbose(ctx, "templates: %d trees, %d orbits of links, %.9g of the bound", pack.n_trees, sym->n_orbits,
	    frac_double(r.best) / frac_double(top));
	if (r.n_kept > 0)
		TRY(sort_by_demand(&r, out));
	arena_release(&ctx->scratch, mark);
	return OK;
}
