/* An alltoall over machines with few symmetries or none: a maximum concurrent flow (Shahrokhi and Matula 1990), exactly
 * but for the rounding of doubles.
 *
 *     minimise    L
 *     such that   sum over paths that use link l of x <= capacity(l) L      for every link l, with dual price y(l)
 *                 sum over paths of demand d of x = 1                       for every demand d
 *
 * There are n (n - 1) demands, 65,280 of 256 GPUs, but a basic solution divides fewer of them than there are links. So
 * each demand has a key path, and the program is over detours from these (paths_master.c). It starts where a method of
 * multipliers ends (paths_start.c). Detours come in where the shortest path under y is shorter than the key path, and y
 * of any round proves the bound
 *
 *     L >= sum over demands of distance(d) / sum of capacity * y
 *
 * Where demands have bytes of their own, x and distances count by these.
 *
 * In the first rounds loads are perturbed, and y is kept near the best known; then y is only kept near it; then it is
 * free. */
#include "base/array.h"
#include "plan/pack/alltoall/alltoall.h"
#include "plan/pack/alltoall/path_columns.h"
#include "plan/pack/alltoall/path_tree.h"
#include "plan/pack/alltoall/paths.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define WIDTH 0.1	/* by which prices may miss the best known, relative; */
#define NEAR_ZERO 0.01	/* and of the price of a link of mean capacity where that is 1 on the average */

#define LEAST_GAIN 1e-9	/* of a price, likewise */
#define NO_EXCESS 1e-8	/* paths */

enum {
	MATRIX_PRICE_BITS = 36,	/* of a proof for bytes: less than 1e-9 is lost */
	MANY_DEMANDS = 1 << 17,	/* of 363 ranks: the program may take minutes, */
	SOON_STEPS = 20000,	/* and takes half a minute until here: 511 ranks of a torus 18000 */
	MOST_ROUNDS = 400,
	MOST_DETOURS = 2000,	/* that come in in one round */
	MOST_IDLE = 10,		/* rounds that change nothing, before the program is free */
	FEW_DETOURS = 20,	/* so few that the perturbation may end */
	SHARE_BITS = 38		/* of what a block is divided into under a group: with as many blocks as 4096 ranks
				 * have, it fits 62 bits */
};

/* ---- pricing ---- */

static double
length_of(const struct paths *p, const struct path *path)
{
	double sum = 0;
	for (int i = 0; i < path->n; i++)
		sum += p->y[p->row[path->link[i]]];
	return sum;
}

/* A demand whose shortest path is shorter than what it pays now. */
struct gain {
	double gain;
	int demand;
};

static int
by_gain(const void *a, const void *b)
{
	const struct gain *p = a, *q = b;
	return p->gain != q->gain ? (p->gain < q->gain) - (p->gain > q->gain) : (p->demand > q->demand)
	    - (p->demand < q->demand);
}

static int
by_demand(const void *a, const void *b)
{
	const struct gain *p = a, *q = b;
	return (p->demand > q->demand) - (p->demand < q->demand);
}

/* What a demand pays: its key path, less the price of its row. */
static double
paid(const struct paths *p, int demand)
{
	double row = p->row_of[demand] ? glp_get_row_dual(p->lp, p->row_of[demand]) : 0;
	return p->weight[demand] * length_of(p, &p->key[demand]) + row;
}

/* All that gain. *bound: what y proves. */
static Status
find_gains(struct paths *p, struct gain *gain, int *n, double *bound)
{
	double cost = 0, least = INFINITY;
	*n = 0;
	for (int i = 0; i < p->n_rows; i++)
		least = fmin(least, p->capacity[i]);
	/* Paths of fewer hops, where they are hardly dearer; that must not be a gain by itself, whatever capacities. */
	for (int i = 0; i < p->n_rows && p->trifle > LEAST_GAIN; i++)
		p->y[i] += 0.1 * p->trifle / p->capacity[i] * fmin(1, 2 * least);
	paths_price(p, p->y);
	for (int source = 0; source < p->n_sources; source++) {
		int from = p->source[source];
		paths_from(p, from);
		for (int to = 0; to < p->n_ranks; to++) {
			int d = from == to ? 0 : paths_demand(p, source, to);
			if (from == to || !paths_has(p, d))
				continue;
			cost += p->weight[d] * (double)p->distance[to];
			double more = paid(p, d) - p->weight[d] * paths_cost(p, from, to);
			if (more > p->trifle)
				gain[(*n)++] = (struct gain){ more, d };
		}
	}
	*bound = cost / paths_price_sum(p);
	return OK;
}

static Status
add_detour(struct paths *p, int d, bool *added)
{
	struct path path;
	TRY(paths_take(p, paths_from_rank(p, d), paths_to_rank(p, d), &path));
	TRY(GROW_TEMP(p->ctx, p->detour, p->n_detours, p->room));
	*added = path.n != p->key[d].n || memcmp(path.link, p->key[d].link, (size_t)path.n * sizeof *path.link) != 0;
	if (*added)
		p->detour[p->n_detours++] = (struct detour){ .demand = d, .path = path };
	return OK;
}

/* Detours for those that gain most; y is that of find_gains. */
static Status
add_detours(struct paths *p, struct gain *gain, int n, int *n_added)
{
	int from = -1;
	*n_added = 0;
	qsort(gain, (size_t)n, sizeof *gain, by_gain);
	n = n < MOST_DETOURS ? n : MOST_DETOURS;
	qsort(gain, (size_t)n, sizeof *gain, by_demand);
	for (int i = 0; i < n; i++) {
		int of = paths_from_rank(p, gain[i].demand);
		bool added;
		if (of != from)
			paths_from(p, of);
		from = of;
		TRY(add_detour(p, gain[i].demand, &added));
		*n_added += added;
	}
	return OK;
}

/* Paths that are missing, and a better bound. *better: prices have one. */
static Status
price_paths(struct paths *p, int *n_added, bool *better)
{
	struct gain *gain;
	int n;
	double bound;
	TRY(TEMP(p->ctx, gain, p->n_demands));
	TRY(find_gains(p, gain, &n, &bound));
	*better = bound > p->bound;
	if (*better) {
		p->bound = bound;
		memcpy(p->best_y, p->y, (size_t)p->n_rows * sizeof *p->y);
	}
	return add_detours(p, gain, n, n_added);
}

/* ---- rounds ---- */

enum stage { PERTURBED, NEAR_BEST, FREE };

static Status
solve(struct paths *p)
{
	int added;
	do {
		TRY(paths_solve(p));
		if (!p->solved)
			return OK;
		TRY(paths_limit_demands(p, &added));
	} while (added > 0);
	return OK;
}

/* Of the program without perturbation: the bound but for what doubles can tell. */
static bool
is_optimal(const struct paths *p)
{
	return p->value - p->bound <= 1e-12 * p->value && p->excess <= NO_EXCESS;
}

/* What follows where few paths were missing. False: nothing. */
static bool
next_stage(struct paths *p, enum stage *stage)
{
	const double trifle[] = { [PERTURBED] = 1e-3, [NEAR_BEST] = LEAST_GAIN, [FREE] = LEAST_GAIN };
	if (p->trifle > trifle[*stage] && !is_optimal(p)) {
		p->trifle = fmax(trifle[*stage], p->trifle / 1000);
		return true;
	}
	if (*stage == FREE) {
		/* All of a bound may be the price of one link. */
		if (p->excess <= NO_EXCESS || p->limit > p->n_rows)
			return false;
		p->limit *= 8;
		paths_box(p, 0, p->limit);
		return true;
	}
	if (*stage == PERTURBED) {
		p->perturbation = 0;
		p->dual = false;	/* The dual method may take minutes from here, by steps that change nothing. */
		paths_sides(p);
	} else {
		p->tolerance = 1e-9;
		p->limit = 2;
		paths_box(p, 0, p->limit);
	}
	++*stage;
	return true;
}

static Status
rounds(struct paths *p)
{
	enum stage stage = PERTURBED;
	double last = 0;
	int idle = 0;
	for (int round = 0; round < MOST_ROUNDS; round++) {
		bool better;
		int n_added;
		TRY(solve(p));
		if (!p->solved)
			return OK;
		TRY(paths_tidy(p));
		TRY(price_paths(p, &n_added, &better));
		if (progress(p->ctx, "linear program: round %d, %d paths, within %.2g of the optimum", round + 1,
		    p->n_demands + p->n_detours, fmax(0, 1 - p->bound / p->value)) <= 0
		    || (stage == FREE && is_optimal(p)))
			return OK;
		idle = better || p->value != last ? 0 : idle + 1;
		last = p->value;
		bool stalls = idle >= MOST_IDLE && stage != FREE;
		int few = stage == PERTURBED ? FEW_DETOURS : 1;
		if (n_added < few || (stage == NEAR_BEST && is_optimal(p)) || stalls) {
			idle = 0;
			if (!next_stage(p, &stage))
				return OK;
		} else if (better && stage != FREE) {
			paths_box(p, WIDTH, NEAR_ZERO);
		}
	}
	return OK;
}

static Status
improve(struct paths *p)
{
	p->perturbation = 0.05;
	p->tolerance = 1e-7;
	p->trifle = 0.01;
	TRY(paths_open(p));
	paths_sides(p);
	paths_box(p, WIDTH, NEAR_ZERO);
	TRY(rounds(p));
	return paths_close(p);
}

/* ---- the packing ---- */

/* What a path carries of its demand. */
struct share {
	int demand;
	int64_t weight;
	const struct path *path;
};

static int
by_share(const void *a, const void *b)
{
	const struct share *p = a, *q = b;
	if (p->demand != q->demand)
		return (p->demand > q->demand) - (p->demand < q->demand);
	return p->weight != q->weight ? (p->weight < q->weight) - (p->weight > q->weight) : (p->path > q->path)
	    - (p->path < q->path);
}

/* Does the solution have a lower highest load than the key paths alone? It need not where it was cut short. */
static Status
detours_help(struct paths *p, bool *out)
{
	double *load, keys = 0, most = 0;
	TRY(TEMP(p->ctx, load, p->n_rows));
	memcpy(load, p->load, (size_t)p->n_rows * sizeof *load);
	for (int i = 0; i < p->n_detours; i++) {
		const struct detour *d = &p->detour[i];
		for (int k = 0; k < d->path.n; k++)
			load[p->row[d->path.link[k]]] += d->x * p->weight[d->demand];
		for (int k = 0; k < p->key[d->demand].n; k++)
			load[p->row[p->key[d->demand].link[k]]] -= d->x * p->weight[d->demand];
	}
	for (int i = 0; i < p->n_rows; i++) {
		keys = fmax(keys, p->load[i] / p->capacity[i]);
		most = fmax(most, load[i] / p->capacity[i]);
	}
	*out = most < keys;
	return OK;
}

/* All demands have the same weight, of which key paths have what detours leave; those without paths have none. Returns
 * how many shares. */
static int
share_demands(struct paths *p, bool detours, struct share *share)
{
	int n = 0;
	int64_t each = (INT64_C(1) << PACKING_BITS) / p->n_demands;
	/* A block that stays is divided among all elements besides. */
	if (p->sym && each > (INT64_C(1) << SHARE_BITS) / p->sym->size)
		each = (INT64_C(1) << SHARE_BITS) / p->sym->size;
	for (int d = 0; d < p->n_demands; d++)
		share[n++] = (struct share){ d, paths_has(p, d) ? each : 0, &p->key[d] };
	for (int i = 0; detours && i < p->n_detours; i++) {
		const struct detour *d = &p->detour[i];
		int64_t weight = (int64_t)(d->x * (double)each + 0.5), left = share[d->demand].weight;
		weight = weight < left ? weight : left;
		share[n] = (struct share){ d->demand, weight, &d->path };
		share[d->demand].weight -= weight;
		n += weight > 0;
	}
	qsort(share, (size_t)n, sizeof *share, by_share);
	return n;
}

static Status
fail_edges(const struct paths *p, int64_t edges)
{
	return fail(p->ctx, LIMIT, "%s: alltoall over %d ranks: %lld edges: want at most %d", p->topo->name, p->n_ranks,
	    (long long)edges, LIMIT_TREE_EDGES);
}

/* Over direct links no paths have fewer edges than shortest ones. */
static Status
check_edges(struct paths *p)
{
	int64_t edges = 0;
	if (p->topo->n_vertices > p->n_ranks || p->sym)
		return OK;
	for (int l = 0; l < p->topo->n_links; l++)
		p->price[l] = 1;
	paths_use_prices(p);
	for (int from = 0; from < p->n_ranks; from++) {
		paths_from(p, from);
		for (int to = 0; to < p->n_ranks; to++)
			edges += p->distance[to];
	}
	return edges > LIMIT_TREE_EDGES ? fail_edges(p, edges) : OK;
}

/* In a schedule; of a compact one, for images, too. */
static bool
has_room_for(const struct paths *p, int64_t trees)
{
	return trees <= LIMIT_TREES && trees * (p->sym ? p->sym->size : 1) <= LIMIT_PATH_IMAGES;
}

/* Edges of a path that begin or end at a rank that stays. */
static int
staying_edges(const struct paths *p, const Tree *tree)
{
	int n = 0;
	for (int e = 0; p->sym && e < tree->n_down; e++)
		n += p->stays[tree_edge(tree, e)->src] || p->stays[tree_edge(tree, e)->dst];
	return n;
}

static Status
make_packing(struct paths *p, bool detours, Packing **out)
{
	struct share *share;
	Packing *pack;
	int64_t edges = 0, staying = 0, *load;
	TRY(TEMP(p->ctx, share, (size_t)p->n_demands + (size_t)p->n_detours));
	TRY(TEMP(p->ctx, load, p->topo->n_links));
	int n = share_demands(p, detours, share);
	TRY(pack_new(p->ctx, n, true, &pack));
	for (int i = 0; i < n; i++) {
		if (share[i].weight == 0)
			continue;
		TRY(pack_path_tree(p->ctx, p->topo, share[i].path->link, share[i].path->n, &pack->tree[pack->n_trees]));
		edges += pack->tree[pack->n_trees].n_down;
		staying += staying_edges(p, &pack->tree[pack->n_trees]);
		pack->demand[pack->n_trees] = collective_demand_of(ALLTOALL, p->n_ranks, -1,
		    paths_from_rank(p, share[i].demand), paths_to_rank(p, share[i].demand));
		pack->weight[pack->n_trees++] = share[i].weight;
	}
	if (detours && !has_room_for(p, pack->n_trees))
		return make_packing(p, false, out);
	if (p->sym && (edges > LIMIT_TREE_EDGES || staying > LIMIT_STAYING_HOPS / p->sym->size))
		return OK;
	if (edges > LIMIT_TREE_EDGES)
		return fail_edges(p, edges);
	if (p->sym) {
		pack->unit = FRAC_ONE;
		pack->symmetry = p->sym;
		*out = pack;
		return OK;
	}
	if (!pack_widest_unit(p->topo, pack, load, &pack->unit) || !frac_fits(pack->unit))
		return OK;
	*out = pack;
	return pack_check(p->ctx, p->topo, pack);
}

/* ---- the proof ---- */

/* From how many ranks distances are those from a source. */
static int
sources_alike(const struct paths *p, int source)
{
	return p->sym && !p->stays[p->source[source]] ? p->sym->size : 1;
}

/* What p->price proves. *fits: all numbers are small enough. */
static Status
make_bound(struct paths *p, Bound *out, bool *fits)
{
	int shares = collective_shares(ALLTOALL, p->n_ranks), n = p->topo->n_links;
	Wide sum = 0, cost = 0;
	paths_use_prices(p);
	for (int l = 0; l < n; l++)
		sum += (Wide)p->topo->link[l].capacity * p->price[l];
	for (int i = 0; i < p->n_sources; i++) {
		paths_from(p, p->source[i]);
		for (int to = 0; to < p->n_ranks; to++)
			cost += (Wide)p->distance[to] * sources_alike(p, i);
	}
	*fits = frac_make(sum * shares, cost, &out->rate);
	for (int l = 0; l < n && *fits; l++)
		*fits = frac_make((Wide)p->price[l] * shares, cost, &out->price[l]) && frac_fits(out->price[l]);
	return OK;
}

static Status
new_bound(struct paths *p, Bound *out)
{
	*out = (Bound){ .kind = CERTIFICATE_LENGTHS };
	TRY(NEW(p->ctx, out->part, p->topo->n_vertices));
	return NEW(p->ctx, out->price, p->topo->n_links);
}

/* *proof stays where it is as low. */
static Status
prove(struct paths *p, Bound *proof)
{
	Bound bound;
	bool fits = false;
	TRY(new_bound(p, &bound));
	for (; !fits && p->price_bits > 16; p->price_bits -= 4) {
		paths_price(p, p->best_y);
		TRY(make_bound(p, &bound, &fits));
	}
	if (fits && frac_cmp(bound.rate, proof->rate) < 0)
		*proof = bound;
	for (int i = 0; i < N_SMALL_PRICES && !p->ctx->late; i++) {
		TRY(new_bound(p, &bound));
		path_whole_prices(p->best_y, p->n_rows, p->row, p->topo->n_links, path_small_price[i], p->price);
		TRY(make_bound(p, &bound, &fits));
		if (fits && frac_cmp(bound.rate, proof->rate) < 0)
			*proof = bound;
	}
	return OK;
}

/* Of the prices that prove the least time for bytes: rounded ones, or small ones, which doubles miss by a little. */
static Status
prove_matrix(struct paths *p, int64_t **out)
{
	double best = 0;
	TRY(NEW(p->ctx, *out, p->topo->n_links));
	p->price_bits = MATRIX_PRICE_BITS;
	for (int i = -1; i < N_SMALL_PRICES; i++) {
		double cost = 0;
		if (i < 0)
			paths_price(p, p->best_y);
		else
			path_whole_prices(p->best_y, p->n_rows, p->row, p->topo->n_links, path_small_price[i],
			    p->price);
		paths_use_prices(p);
		for (int from = 0; from < p->n_ranks; from++) {
			paths_from(p, from);
			for (int to = 0; to < p->n_ranks; to++)
				if (to != from)
					cost += (double)p->bytes[paths_demand(p, from, to)] * (double)p->distance[to];
		}
		double bound = cost / paths_price_sum(p);
		if (bound <= best * (i < 0 ? 1 : 1 + 1e-13))
			continue;
		best = bound;
		memcpy(*out, p->price, (size_t)p->topo->n_links * sizeof **out);
	}
	return OK;
}

/* ---- all of it ---- */

/* Each link is a row, each rank a source. */
static Status
use_links(struct paths *p)
{
	p->n_rows = p->topo->n_links;
	p->n_sources = p->n_ranks;
	TRY(TEMP(p->ctx, p->row, p->n_rows));
	TRY(TEMP(p->ctx, p->source, p->n_sources));
	for (int l = 0; l < p->n_rows; l++)
		p->row[l] = l;
	for (int r = 0; r < p->n_ranks; r++)
		p->source[r] = r;
	return OK;
}

static Status
use_orbits(struct paths *p)
{
	const Symmetry *sym = p->sym;
	p->n_rows = sym->n_orbits;
	p->n_sources = sym->n_representatives;
	p->row = sym->link_orbit;
	p->source = sym->representative;
	TRY(TEMP(p->ctx, p->stays, p->n_ranks));
	for (int r = 0; r < p->n_ranks; r++)
		p->stays[r] = !symmetry_moves(sym, r);
	return OK;
}

/* A pair of which some rank is moved has an image for each element. From a rank that stays, the pair to the first rank
 * of an orbit stands for those to the others. */
static Status
weigh_images(struct paths *p)
{
	bool *first;
	TRY(TEMP(p->ctx, first, p->n_ranks));
	for (int i = 0; i < p->n_sources; i++)
		first[p->source[i]] = true;
	for (int i = 0; i < p->n_sources; i++)
		for (int to = 0; to < p->n_ranks; to++) {
			bool stays = p->stays[p->source[i]];
			if (to != p->source[i])
				p->weight[paths_demand(p, i, to)] = stays && p->stays[to] ? 1.0 / p->sym->size
				    : !stays || first[to];
		}
	return OK;
}

static void
weigh_bytes(struct paths *p)
{
	double sum = 0;
	for (int d = 0; d < p->n_demands; d++)
		sum += p->bytes ? (double)p->bytes[d] : 1;
	for (int d = 0; d < p->n_demands; d++)
		p->weight[d] = p->bytes ? (double)p->bytes[d] * p->n_demands / sum : 1;
}

/* known: a bound; NULL: none. bytes: of each demand; NULL: all are equal. sym: NULL: none. */
static Status
paths_new(Ctx *ctx, const Topology *topo, const Symmetry *sym, const Bound *known, const int64_t *bytes,
    struct paths *p)
{
	*p = (struct paths){ .ctx = ctx, .topo = topo, .sym = sym, .n_ranks = topo->n_ranks,
		.price_bits = SEARCH_PRICE_BITS - 2, .by_hops = topo->route != NULL, .bytes = bytes };
	TRY(sym ? use_orbits(p) : use_links(p));
	p->n_demands = p->n_sources * (p->n_ranks - 1);
	TRY(p->by_hops ? search_new(ctx, topo, &p->search) : search_links_new(ctx, topo, &p->search));
	TRY(TEMP_EACH(ctx, p->n_demands, p->key, p->weight));
	TRY(TEMP_EACH(ctx, p->n_rows, p->load, p->capacity, p->y, p->best_y));
	TRY(TEMP(ctx, p->price, topo->n_links));
	TRY(TEMP_EACH(ctx, topo->n_vertices, p->distance, p->enter));
	for (int l = 0; l < topo->n_links; l++)
		p->mean += (double)topo->link[l].capacity / topo->n_links;
	for (int l = 0; l < topo->n_links; l++)
		p->capacity[p->row[l]] += (double)topo->link[l].capacity / p->mean;
	for (int i = 0; i < p->n_rows && sym; i++)
		p->capacity[i] /= sym->size;
	if (known)
		p->known = collective_shares(ALLTOALL, topo->n_ranks) * p->mean / frac_double(known->rate);
	if (sym)
		return weigh_images(p);
	weigh_bytes(p);
	return OK;
}

static Status
plan_paths(struct paths *p, Packing **out)
{
	bool detours;
	TRY(check_edges(p));
	TRY(paths_start(p));
	if (p->reached)
		return make_packing(p, p->n_detours > 0, out);
	if (progress(p->ctx, "linear program") > 0)
		TRY(improve(p));
	if (p->too_long)
		return fail(p->ctx, LIMIT, "%s: alltoall over %d ranks: a linear program of minutes", p->topo->name,
		    p->n_ranks);
	TRY(detours_help(p, &detours));
	return make_packing(p, detours, out);
}

/* One for each demand that has any. */
static int
count_paths(const struct paths *p)
{
	int n = 0;
	for (int d = 0; d < p->n_demands; d++)
		n += paths_has(p, d);
	return n;
}

/* Those that begin or end at a rank that stays, if none passes another. */
static int
staying_paths(const struct paths *p)
{
	int n = 0;
	for (int d = 0; d < p->n_demands; d++)
		n += paths_has(p, d) && (p->stays[paths_from_rank(p, d)] || p->stays[paths_to_rank(p, d)]);
	return n;
}

Status
pack_matrix(Ctx *ctx, const Topology *topo, const int64_t *bytes, Packing **out, int64_t **length)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct paths p;
	int64_t *demand;
	int n = topo->n_ranks;
	*out = NULL;
	TRY(TEMP(ctx, demand, collective_demands(ALLTOALL, n)));
	for (int d = 0; d < collective_demands(ALLTOALL, n); d++)
		demand[d] = bytes[collective_demand(ALLTOALL, n, -1, d).block];
	TRY(paths_new(ctx, topo, NULL, NULL, demand, &p));
	Status status = plan_paths(&p, out);
	if (status == OK)
		status = prove_matrix(&p, length);
	lp_release();
	TRY(status);
	if (!*out)
		return fail(ctx, INTERNAL, "%s: no paths for a matrix", topo->name);
	log_verbose(ctx, "paths: %d rows, %d paths", p.lp_rows, (*out)->n_trees);
	arena_release(&ctx->scratch, mark);
	return OK;
}

Status
pack_paths(Ctx *ctx, const Topology *topo, const Symmetry *sym, bool soon, Packing **out, Bound *proof)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct paths p;
	*out = NULL;
	TRY(paths_new(ctx, topo, sym, proof, NULL, &p));
	p.most_steps = soon && p.n_demands > MANY_DEMANDS ? SOON_STEPS : 0;
	if (sym && (!has_room_for(&p, count_paths(&p)) || staying_paths(&p) > LIMIT_STAYING_HOPS / sym->size))
		return OK;
	Status status = plan_paths(&p, out);
	if (status == OK && !p.reached)
		status = prove(&p, proof);
	lp_release();
	TRY(status);
	if (*out)
		log_verbose(ctx, "paths: %d rows, %d paths", p.lp_rows, (*out)->n_trees);
	arena_release(&ctx->scratch, mark);
	return OK;
}
