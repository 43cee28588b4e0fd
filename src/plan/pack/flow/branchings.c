/* Arborescences by maximum flows: as many units of rate as Edmonds' theorem promises, exactly, without a linear
 * program. Links are between ranks here; switches are split off before (graph/split_off.c).
 *
 * Capacities and rates are whole numbers of one unit: link l has g(l), and each root has k units to send to all
 * ranks. A group is a number of units m that have reached the ranks R so far; in the beginning there is one for
 * each root. The units that are left to do can all be done if and only if
 *     slack(X) = g(links into X) - (sum of m over the groups of which no rank is in X) >= 0
 * for each set X of ranks that is not empty (Edmonds 1973; Schrijver, Combinatorial Optimization, theorem 53.10; with
 * multiplicities: Berczi and Frank 2010). A group grows by a link from x in R to y outside: mu of its units take it, so
 * that g falls by mu, and the rest of them stays behind as a group of its own. It is the sets X with y, without x, but
 * with some of R, that lose slack, so
 *     mu = min(m, g(x, y), F - sum of m over all other groups)
 * where F is the maximum flow from x to y over the links with what they have left and, for each other group, m from x
 * into any of its ranks. By Lovasz' proof some link has mu > 0 while R is not everything (J. Combin. Theory B 21,
 * 1976).
 *
 * One root is done after the other, so that groups are few: the roots that have not begun, whose ranks are one
 * each, and what stayed behind. A flow to a rank begins with the last one to it, of which most still fits, and ends
 * when it is known to be large enough. Where it is not, it leaves a cut. mu is what slack the ranks beyond that have,
 * and slack never grows: for any group with a rank among these no link into them is of more use than that, which a
 * comparison of bit sets tells the next time. branchings_hops.c has these hops; branchings_grow.c says why most of them
 * need no flow of their own. */
#include "plan/pack/flow/branchings_grow.h"

#include "plan/pack/flow/directions.h"
#include "plan/pack/flow/orient.h"
#include "plan/pack/flow/flow.h"
#include "plan/pack/flow/shallow.h"

#include <limits.h>
#include <string.h>

enum {
	MOST_CELLS = 1 << 28,	/* links times ranks: a bit for each */
	KEPT_ARCS = 4,		/* arcs of a rank's last flow that are kept, times the ranks */
	MOST_KEPT = 1 << 22,	/* of all ranks */
	WANTED_PARTS = 8,	/* of a root's units, in trees through switches that are not of all */
	MOST_PARTS = 64,
	MOST_ORIENTED = 64,	/* ranks of an allreduce, likewise */
	MOST_TRIED = 64 * 64,	/* roots times ranks: more are packed once, not three times */
};
#define MOST_UNITS (INT64_C(1) << 60)

/* ---- units ---- */

/* The largest unit of which capacities and the rate of each root are whole numbers; behind switches a part of it, where
 * a root alone has trees, so that its rate can be divided among several. False: these need too many bits. */
static bool
find_unit(const Topology *topo, Frac rate, int demands, Frac *unit, int64_t *capacity, int64_t *units)
{
	int64_t common = 0, sum = 0, times;
	Frac parts;
	for (int l = 0; l < topo->n_links; l++)
		common = gcd64(common, topo->link[l].capacity);
	if (common == 0 || !frac_div(rate, (Frac){ common, 1 }, &parts) || !frac_fits(parts)
	    || parts.num > (INT64_C(1) << PACKING_BITS) / demands)
		return false;
	bool finer = topo->n_vertices > topo->n_ranks && demands == 1
	    && parts.num <= (INT64_C(1) << PACKING_BITS) / MOST_PARTS && parts.den <= INT32_MAX;
	times = finer ? parts.den * MOST_PARTS : parts.den;
	*units = (int64_t)parts.num * (times / parts.den);
	for (int l = 0; l < topo->n_links; l++) {
		int64_t whole = topo->link[l].capacity / common;
		if (whole > MOST_UNITS / times || (sum += whole * times) > MOST_UNITS)
			return false;
		capacity[l] = whole * times;
	}
	return frac_div((Frac){ common, 1 }, (Frac){ times, 1 }, unit);
}

/* ---- arcs ---- */

static Status
links_as_arcs(Ctx *ctx, const Supply *supply, Arc **out, int *n)
{
	int *link;
	*n = supply->topo->n_links;
	TRY(TEMP(ctx, *out, *n));
	TRY(TEMP(ctx, link, *n));
	for (int l = 0; l < *n; l++) {
		link[l] = l;
		(*out)[l] = (Arc){ supply_tail(supply, l), supply_head(supply, l), supply->capacity[l], 1, link + l };
	}
	return OK;
}

static Status
list_arcs(struct branchings *b)
{
	int *fill;
	TRY(TEMP(b->ctx, b->first_out, b->n + 1));
	TRY(TEMP(b->ctx, b->out, b->n_arcs));
	TRY(TEMP(b->ctx, fill, b->n));
	for (int a = 0; a < b->n_arcs; a++)
		b->first_out[b->arc[a].from + 1]++;
	for (int v = 0; v < b->n; v++)
		b->first_out[v + 1] += b->first_out[v];
	memcpy(fill, b->first_out, (size_t)b->n * sizeof *fill);
	for (int a = 0; a < b->n_arcs; a++)
		b->out[fill[b->arc[a].from]++] = a;
	return OK;
}

/* Most flows are over few arcs for each rank; what there is no room for is not kept. */
static Status
new_kept(struct branchings *b)
{
	struct network_load *load;
	int room = KEPT_ARCS * b->n < MOST_KEPT / b->n ? KEPT_ARCS * b->n : MOST_KEPT / b->n;
	room = b->n_arcs < room ? b->n_arcs : room;
	TRY(TEMP(b->ctx, b->kept, b->n));
	TRY(TEMP(b->ctx, load, (size_t)b->n * (size_t)room));
	for (int v = 0; v < b->n; v++)
		b->kept[v] = (struct network_kept){ 0, room, load + (size_t)v * (size_t)room };
	return OK;
}

static Status
new_branchings(struct branchings *b)
{
	int arcs = b->n_arcs + b->n + MOST_WAITING * (1 + b->n), vertices = b->n + 1 + MOST_WAITING;
	b->words = (b->n + RANK_BITS - 1) / RANK_BITS;
	b->arc_words = (b->n_arcs + RANK_BITS - 1) / RANK_BITS;
	TRY(list_arcs(b));
	TRY(TEMP(b->ctx, b->left, b->n_arcs));
	TRY(TEMP(b->ctx, b->owed, b->n));
	TRY(TEMP(b->ctx, b->cut, (size_t)b->n_arcs * (size_t)b->words));
	TRY(TEMP(b->ctx, b->limit, b->n_arcs));
	TRY(TEMP(b->ctx, b->set, MOST_CUTS * (size_t)b->words));
	TRY(TEMP(b->ctx, b->tail, arcs));
	TRY(TEMP(b->ctx, b->head, arcs));
	TRY(TEMP(b->ctx, b->at, arcs));
	TRY(network_new(b->ctx, vertices, arcs, &b->net));
	TRY(new_kept(b));
	TRY(TEMP(b->ctx, b->learned, MOST_LEARNED * (size_t)b->words));
	TRY(TEMP(b->ctx, b->saved.left, b->n_arcs));
	TRY(TEMP(b->ctx, b->saved.owed, b->n));
	TRY(branchings_new_group(b, &b->saved.now));
	return branchings_new_group(b, &b->now);
}

/* Switches have to be such as forward alone, and hops free to take any route. */
static bool
is_served(const Topology *topo, Collective coll)
{
	return !topo_active(topo) && !topo->route && topo->n_links <= MOST_CELLS / topo->n_ranks
	    && (coll == BROADCAST || coll == REDUCE || coll == ALLGATHER || coll == REDUCESCATTER
	    || coll == ALLREDUCE);
}

/* *out: NULL where time is over, or there would be too many trees. */
static Status
pack_once(struct branchings *b, Collective coll, const Supply *supply, int patience, Packing **out)
{
	int demands = collective_demands(coll, b->n);
	bool done;
	b->patience = patience;
	b->n_waiting = 0;
	b->others = supply->total;
	memset(b->limit, -1, (size_t)b->n_arcs * sizeof *b->limit);
	b->n_cuts = 0;
	for (int v = 0; v < b->n; v++)
		b->kept[v].n = 0;
	for (int a = 0; a < b->n_arcs; a++)
		b->left[a] = b->arc[a].units;
	memcpy(b->owed, supply->owed, (size_t)b->n * sizeof *b->owed);
	TRY(pack_new(b->ctx, b->room, true, &b->pack));
	b->pack->unit = b->unit;
	TRY(branchings_grow(b, &done));
	if (!done)
		return OK;
	if (demands == 1)
		b->pack->demand = NULL;
	TRY(pack_check(b->ctx, b->topo, b->pack));
	*out = b->pack;
	return OK;
}

/* Fewer trees, or as many that are less deep. work: n_ranks. */
static bool
is_better(const Packing *a, const Packing *b, int *work)
{
	return !b || a->n_trees < b->n_trees || (a->n_trees == b->n_trees && pack_depth(a, work) < pack_depth(b, work));
}

/* Each root begins with one, and one more comes where a link is full, or a cut: of either there are a few for each
 * link. */
static int
most_trees(int n_ranks, int n_arcs, int demands)
{
	int most = LIMIT_TREE_EDGES / n_ranks < LIMIT_TREES ? LIMIT_TREE_EDGES / n_ranks : LIMIT_TREES;
	int64_t some = 16 * ((int64_t)demands + n_arcs);
	return some < most ? (int)some : most;
}

static Status
pack_arcs(struct branchings *b, const Ask *ask, const Supply *supply, Packing **out)
{
	static const int patience[] = { INT_MAX, 2, 0 };
	int demands = collective_demands(ask->coll, b->n), *work;
	TRY(new_branchings(b));
	TRY(TEMP(b->ctx, work, b->n));
	b->room = most_trees(b->n, b->n_arcs, demands);
	for (size_t i = 0; i < sizeof patience / sizeof *patience; i++) {
		Packing *pack = NULL;
		if (i > 0 && (demands * b->n > MOST_TRIED || (supply->opposite && b->n > MOST_ORIENTED)))
			break;
		TRY(pack_once(b, ask->coll, supply, patience[i], &pack));
		if (pack && is_better(pack, *out, work))
			*out = pack;
	}
	return OK;
}

/* ---- switches ---- */

/* Shallow trees alone, where they are of all units: one of each root, more, and so on; the least deep ones. */
static Status
pack_shallow(Ctx *ctx, const Supply *supply, bool rooted, Frac unit, Packing **out)
{
	static const int parts[] = { 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, MOST_PARTS };
	int *work, n, best = INT_MAX;
	TRY(TEMP(ctx, work, supply->topo->n_ranks));
	for (size_t i = 0; i < (rooted ? 2 * sizeof parts / sizeof *parts : 2); i++) {
		ArenaMark mark = arena_mark(&ctx->scratch);
		Packing *pack = NULL;
		Hop *hop;
		bool whole;
		TRY(shallow_hops(ctx, supply, parts[i / 2], i % 2, false, &hop, &n, &whole));
		if (whole && (!rooted || n <= 2 * parts[i / 2] * supply->topo->n_ranks))
			TRY(shallow_packing(ctx, supply, hop, n, unit, &pack));
		int depth = pack ? pack_depth(pack, work) : INT_MAX;
		if (depth < best) {
			*out = pack;
			best = depth;
		}
		arena_release(&ctx->scratch, mark);
	}
	return OK;
}

/* Switches are split off. b->arc: NULL where they were not. */
static Status
split_switches(struct branchings *b, const Supply *supply, bool rooted)
{
	Hop *want;
	int n;
	bool whole;
	TRY(shallow_hops(b->ctx, supply, rooted ? WANTED_PARTS : 1, true, true, &want, &n, &whole));
	return split_off(b->ctx, supply, want, n, &b->arc, &b->n_arcs);
}

static Status
pack_supply(struct branchings *b, const Ask *ask, const Supply *supply, Packing **out)
{
	bool rooted = collective_demands(ask->coll, b->n) == 1, switched = b->topo->n_vertices > b->n;
	if (supply->total >> PACKING_BITS)
		return OK;
	if (switched)
		TRY(pack_shallow(b->ctx, supply, rooted, b->unit, out));
	if (*out)
		return OK;
	if (switched)
		TRY(split_switches(b, supply, rooted));
	else
		TRY(links_as_arcs(b->ctx, supply, &b->arc, &b->n_arcs));
	return b->arc && b->n_arcs <= MOST_CELLS / b->n ? pack_arcs(b, ask, supply, out) : OK;
}

/* ---- allreduce ---- */

/* Trees by their depth: least first, or last. */
static Status
by_depth(Ctx *ctx, const Packing *trees, bool least_last, int *work, int **out)
{
	int *depth, *order;
	TRY(TEMP(ctx, depth, trees->n_trees));
	TRY(TEMP(ctx, order, trees->n_trees));
	for (int t = 0; t < trees->n_trees; t++) {
		int k = t;
		depth[t] = (least_last ? -1 : 1) * tree_depth(&trees->tree[t], work);
		for (; k > 0 && depth[order[k - 1]] > depth[t]; k--)
			order[k] = order[k - 1];
		order[k] = t;
	}
	*out = order;
	return OK;
}

/* Trees up and trees down, both of one root, as pairs: deep ones of one direction with shallow ones of the other. */
static Status
make_pairs(Ctx *ctx, const Topology *topo, const Packing *up, const Packing *down, Packing **out)
{
	int *first, *second, *work;
	int64_t left = 0, right = 0;
	Packing *pack;
	TRY(TEMP(ctx, work, topo->n_ranks));
	TRY(by_depth(ctx, up, false, work, &first));
	TRY(by_depth(ctx, down, true, work, &second));
	TRY(pack_new(ctx, up->n_trees + down->n_trees, false, &pack));
	pack->unit = up->unit;
	for (int i = 0, j = 0; i < up->n_trees && j < down->n_trees;) {
		const Tree *a = &up->tree[first[i]], *b = &down->tree[second[j]];
		left = left ? left : up->weight[first[i]];
		right = right ? right : down->weight[second[j]];
		int64_t both = left < right ? left : right;
		pack->weight[pack->n_trees] = both;
		pack->tree[pack->n_trees++] = (Tree){ .root = b->root, .n_down = b->n_down, .n_up = a->n_up,
			.down = b->down, .up = a->up };
		left -= both;
		right -= both;
		i += left == 0;
		j += right == 0;
	}
	TRY(pack_check(ctx, topo, pack));
	*out = pack;
	return OK;
}

/* Weights in this unit, of which the packing's is a whole multiple. */
static bool
use_unit(Packing *pack, Frac unit)
{
	Frac times;
	if (!frac_div(pack->unit, unit, &times) || times.den != 1 || !frac_fits(times))
		return false;
	for (int t = 0; t < pack->n_trees; t++)
		pack->weight[t] *= (int64_t)times.num;
	pack->unit = unit;
	return true;
}

/* Where directions differ: trees down over a part of each link, and trees up over the rest. */
static Status
pack_directions(const struct branchings *b, const Ask *ask, const Supply *all, const Bound *bound, Packing **out)
{
	const Topology *topo = b->topo;
	Packing *trees[2] = { NULL, NULL };
	int64_t *down, *part, *owed, parts, total;
	int root;
	TRY(orient_root(b->ctx, all, &root));
	TRY(TEMP(b->ctx, down, topo->n_links));
	TRY(TEMP(b->ctx, part, topo->n_links));
	TRY(TEMP(b->ctx, owed, topo->n_ranks));
	TRY(divide_directions(b->ctx, all, root, bound, down, &parts, &total));
	owed[root] = total;
	for (int way = 0; way < 2 && total > 0 && (way == 0 || trees[0]); way++) {
		Supply supply = { .topo = topo, .into = way == 0, .capacity = part, .owed = owed, .total = total };
		struct branchings *own;
		for (int l = 0; l < topo->n_links; l++)
			part[l] = way ? down[l] : all->capacity[l] * parts - down[l];
		TRY(TEMP(b->ctx, own, 1));
		*own = (struct branchings){ .ctx = b->ctx, .topo = topo, .n = b->n, .supply = &supply };
		if (!frac_div(b->unit, (Frac){ parts, 1 }, &own->unit))
			return OK;
		TRY(pack_supply(own, ask, &supply, &trees[way]));
		if (trees[way] && !use_unit(trees[way], own->unit))
			return OK;
	}
	return trees[1] ? make_pairs(b->ctx, topo, trees[0], trees[1], out) : OK;
}

/* An allreduce: trees from one root over links that are divided between both directions (orient.c). *fits: that there
 * are such. */
static Status
orient(struct branchings *b, Supply *supply, int64_t *capacity, int *root, bool *fits)
{
	int n = b->topo->n_links;
	int64_t *down;
	*fits = false;
	TRY(orient_opposite(b->ctx, b->topo, &supply->opposite));
	if (!supply->opposite || !frac_div(b->unit, (Frac){ 2, 1 }, &b->unit))
		return OK;
	for (int l = 0; l < n; l++)
		capacity[l] *= 2;
	supply->total *= 2;
	TRY(TEMP(b->ctx, down, n));
	TRY(orient_links(b->ctx, supply, down, root, fits));
	if (*fits)
		memcpy(capacity, down, (size_t)n * sizeof *capacity);
	return OK;
}

/* Trees of this rate, bytes/s, of each demand. */
static Status
pack_at(Ctx *ctx, const Topology *topo, const Bound *bound, const Ask *ask, Frac rate, Packing **out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	int demands = collective_demands(ask->coll, topo->n_ranks), root = ask->root;
	Supply supply = { .topo = topo, .into = ask->coll != ALLREDUCE && collective_reduces(ask->coll) };
	int64_t *capacity, *owed, units;
	struct branchings *b;
	bool fits = true;
	*out = NULL;
	if (!is_served(topo, ask->coll))
		return OK;
	TRY(TEMP(ctx, capacity, topo->n_links));
	TRY(TEMP(ctx, owed, topo->n_ranks));
	TRY(TEMP(ctx, b, 1));
	*b = (struct branchings){ .ctx = ctx, .topo = topo, .n = topo->n_ranks, .supply = &supply };
	if (find_unit(topo, rate, demands, &b->unit, capacity, &units)) {
		supply.capacity = capacity;
		supply.owed = owed;
		supply.total = units * demands;
		if (ask->coll == ALLREDUCE)
			TRY(orient(b, &supply, capacity, &root, &fits));
		for (int r = 0; r < topo->n_ranks; r++)
			owed[r] = demands > 1 ? units : r == root ? supply.total : 0;
		if (fits)
			TRY(pack_supply(b, ask, &supply, out));
		if (ask->coll == ALLREDUCE && !supply.opposite)
			TRY(pack_directions(b, ask, &supply, bound, out));
	}
	arena_release(&ctx->scratch, mark);
	return OK;
}

/* The fraction with the least denominator of those from low to high. */
static Frac
simplest_between(Frac low, Frac high)
{
	Wide num[2] = { 0, 1 }, den[2] = { 1, 0 };	/* of the last two convergents */
	Wide a = low.num, b = low.den, c = high.num, d = high.den;
	for (;;) {
		Wide whole = a / b;
		bool ends = a % b == 0 || whole < c / d;
		whole += ends && a % b != 0;
		Wide p = whole * num[1] + num[0], q = whole * den[1] + den[0];
		if (ends)
			return (Frac){ p, (int64_t)q };
		num[0] = num[1], num[1] = p;
		den[0] = den[1], den[1] = q;
		Wide rest = a - whole * b, other = c - whole * d;
		/* Their reciprocals, in the other order. */
		a = d, d = rest, c = b, b = other;
	}
}

/* Of a demand: with a tolerance the simplest that is near enough. */
bool
branchings_rate(const Topology *topo, const Bound *bound, const Ask *ask, Frac *rate)
{
	const Frac unit = { topo_link_unit(topo), 1 };
	Frac keep, low, high;
	if (!frac_div(bound->rate, (Frac){ collective_shares(ask->coll, topo->n_ranks), 1 }, rate))
		return false;
	if (ask->tolerance.num > 0 && frac_sub(FRAC_ONE, ask->tolerance, &keep) && frac_div(*rate, unit, &high)
	    && frac_mul(high, keep, &low) && low.num >> 60 == 0 && high.num >> 60 == 0)
		return frac_mul(simplest_between(low, high), unit, rate);
	return true;
}

Status
pack_branchings(Ctx *ctx, const Topology *topo, const Bound *bound, const Ask *ask, Packing **out)
{
	Frac rate;
	*out = NULL;
	if (!branchings_rate(topo, bound, ask, &rate))
		return OK;
	TRY(pack_at(ctx, topo, bound, ask, rate, out));
	if (*out)
		log_verbose(ctx, "flows: %d trees", (*out)->n_trees);
	return OK;
}
