/* Packing: invariants and rate. */
#include "model/packing.h"

#include <math.h>
#include <string.h>

Status
pack_room(Ctx *ctx, size_t n, bool demands, Packing *pack)
{
	TRY(NEW_EACH(ctx, n, pack->tree, pack->weight));
	return demands ? NEW(ctx, pack->demand, n) : OK;
}

Status
pack_new(Ctx *ctx, size_t n, bool demands, Packing **out)
{
	TRY(NEW(ctx, *out, 1));
	return pack_room(ctx, n, demands, *out);
}

/* Sums of weights. */
static void
add_loads(const Topology *topo, const Packing *pack, int64_t *load)
{
	memset(load, 0, (size_t)topo->n_links * sizeof *load);
	for (int t = 0; t < pack->n_trees; t++) {
		const Tree *tree = &pack->tree[t];
		for (int i = 0; i < tree->n_down + tree->n_up; i++) {
			const Edge *edge = tree_edge(tree, i);
			for (int k = 0; k < edge->n_links; k++)
				load[edge->link[k]] += pack->weight[t];
		}
	}
}

bool
pack_fits(const Topology *topo, const Packing *pack, int64_t *load)
{
	add_loads(topo, pack, load);
	for (int l = 0; l < topo->n_links; l++)
		if ((Wide)load[l] * pack->unit.num > (Wide)topo->link[l].capacity * pack->unit.den)
			return false;
	return true;
}

Status
pack_add_numbers(Ctx *ctx, Packing *pack, int root, int n, const int *edge, Frac length, int *last, int64_t *room,
    bool *good)
{
	const InTree *before = pack->n_in_trees > 0 ? &pack->in_tree[pack->n_in_trees - 1] : NULL;
	InTree *tree = &pack->in_tree[pack->n_in_trees];
	bool again = before && before->root == root;
	int *number, n_numbers = 0, first = pack->n_in_trees;
	while (first > 0 && pack->in_tree[first - 1].root == root)
		first--;
	for (int v = 0; v < n; v++)
		n_numbers += v != root && (!again || edge[v] != last[v]);
	*good = n_numbers <= *room && pack->n_in_trees < LIMIT_TREES && pack->n_in_trees - first < LIMIT_IN_TREES;
	if (!*good)
		return OK;
	*room -= n_numbers;
	TRY(NEW(ctx, number, n_numbers));
	*tree = (InTree){ .root = root, .offset = FRAC_ZERO, .length = length, .link = number };
	for (int v = 0; v < n; v++) {
		if (v != root && (!again || edge[v] != last[v]))
			number[tree->n_links++] = edge[v];
		last[v] = edge[v];
	}
	if (again && !frac_add(before->offset, before->length, &tree->offset))
		return fail(ctx, LIMIT, "a part of a block needs more than 64 bits");
	pack->n_in_trees++;
	return OK;
}

Status
pack_check(Ctx *ctx, const Topology *topo, const Packing *pack)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	int64_t *load, sum = 0;
	TRY(TEMP(ctx, load, topo->n_links));
	if (pack->n_trees < 1 || pack->n_trees > LIMIT_TREES || pack->unit.num < 1)
		return fail(ctx, INTERNAL, "packing: %d trees", pack->n_trees);
	for (int t = 0; t < pack->n_trees; t++) {
		if (pack->weight[t] < 1 || pack->weight[t] > (INT64_C(1) << PACKING_BITS) - sum)
			return fail(ctx, INTERNAL, "packing: tree %d has a weight out of range", t);
		sum += pack->weight[t];
	}
	if (!pack_fits(topo, pack, load))
		return fail(ctx, INTERNAL, "packing: a link carries more than its capacity");
	arena_release(&ctx->scratch, mark);
	return OK;
}

bool
pack_rate(const Packing *pack, Collective coll, int n_ranks, Frac *out)
{
	Frac all;
	int64_t sum = 0;
	for (int t = 0; t < (pack->serves ? 1 : pack->n_trees); t++)
		sum += pack->weight[t];
	return frac_make((Wide)sum * collective_shares(coll, n_ranks), collective_demands(coll, n_ranks), &all)
	    && frac_mul(pack->unit, all, out);
}

void
pack_note_reached(const Packing *pack, Collective coll, int n_ranks, Bound *proof)
{
	Frac rate;
	if (pack && pack_rate(pack, coll, n_ranks, &rate)
	    && frac_double(rate) >= frac_double(proof->rate) * (1 - RATE_ROUNDING))
		proof->reached = true;
}

int
pack_depth(const Packing *pack, int *work)
{
	int deepest = 0;
	for (int t = 0; t < pack->n_trees; t++) {
		int depth = tree_depth(&pack->tree[t], work);
		deepest = depth > deepest ? depth : deepest;
	}
	return deepest;
}

/* ---- the time of a message ---- */

enum { CHUNKS = 80, KIB_SHIFT = 10 };	/* sizes that are tried: 4, 5, 6, 7 KiB, twice these, and so on to 7 GiB */

static double
hop_latency(const Topology *topo, const Tree *tree)
{
	double sum = 0;
	int n = tree->n_down + tree->n_up;
	for (int i = 0; i < n; i++)
		for (int k = 0; k < tree_edge(tree, i)->n_links; k++)
			sum += (double)topo->link[tree_edge(tree, i)->link[k]].latency;
	return n ? sum / n / (double)NS_PER_S : 0;
}

/* Of ranks for the depth of trees, then how many edges leave each rank, and how many pass each link. */
size_t
pack_work(const Topology *topo)
{
	return 2 * (size_t)topo->n_ranks + (size_t)topo->n_links;
}

/* Returns how many edges leave a rank in the mean. */
static double
count_edges(const Topology *topo, const Packing *pack, int *leave, int *pass)
{
	int64_t all = 0;
	memset(leave, 0, (size_t)topo->n_ranks * sizeof *leave);
	memset(pass, 0, (size_t)topo->n_links * sizeof *pass);
	for (int t = 0; t < pack->n_trees; t++) {
		const Tree *tree = &pack->tree[t];
		all += tree->n_down + tree->n_up;
		for (int i = 0; i < tree->n_down + tree->n_up; i++) {
			const Edge *edge = tree_edge(tree, i);
			leave[edge->src]++;
			for (int k = 0; k < edge->n_links; k++)
				pass[edge->link[k]]++;
		}
	}
	return (double)all / topo->n_ranks;
}

/* The rates at which chunks of a tree of this rate follow each other, and at which one passes a hop. */
static void
rates_of(const Topology *topo, const Tree *tree, double own, const int *leave, const int *pass, double *follow,
    double *hop)
{
	*follow = *hop = INFINITY;
	for (int i = 0; i < tree->n_down + tree->n_up; i++) {
		const Edge *edge = tree_edge(tree, i);
		double part = INFINITY;
		for (int k = 0; k < edge->n_links; k++)
			part = fmin(part, (double)topo->link[edge->link[k]].capacity / pass[edge->link[k]]);
		part = leave[edge->src] > KERNEL_AT_ONCE ? part : own;
		*hop = fmin(*hop, part);
		*follow = fmin(*follow, fmax(part, own));
	}
}

double
pack_time(const Topology *topo, const Packing *pack, Frac rate, double bytes, int *work)
{
	int *leave = work + topo->n_ranks, *pass = leave + topo->n_ranks;
	const double turns = count_edges(topo, pack, leave, pass) / KERNEL_AT_ONCE;
	const double step = (double)KERNEL_STEP_NS / (double)NS_PER_S * (turns > 1 ? sqrt(turns) : 1);
	double seconds = bytes / frac_double(rate), time[CHUNKS] = { 0 }, least = INFINITY;
	for (int t = 0; t < pack->n_trees; t++) {
		const Tree *tree = &pack->tree[t];
		double own = (double)pack->weight[t] * frac_double(pack->unit), all = own * seconds, follow, hop;
		rates_of(topo, tree, own, leave, pass, &follow, &hop);
		int depth = tree_depth(tree, work);
		double arrival = depth * hop_latency(topo, tree);
		for (int i = 0; i < CHUNKS; i++) {
			double chunk = fmin(ldexp(4 + i % 4, KIB_SHIFT + i / 4), all);
			double first = (depth - 1) * (step + chunk / hop) + arrival;
			time[i] = fmax(time[i], first + all / chunk * (step + chunk / follow));
		}
	}
	for (int i = 0; i < CHUNKS; i++)
		least = fmin(least, time[i]);
	return least;
}

bool
pack_widest_unit(const Topology *topo, const Packing *pack, int64_t *load, Frac *out)
{
	int bottleneck = -1;
	add_loads(topo, pack, load);
	for (int l = 0; l < topo->n_links; l++)
		if (load[l] > 0 && (bottleneck < 0 || (Wide)topo->link[l].capacity * load[bottleneck]
		    < (Wide)topo->link[bottleneck].capacity * load[l]))
			bottleneck = l;
	return bottleneck >= 0 && frac_make(topo->link[bottleneck].capacity, load[bottleneck], out);
}

bool
pack_achieved(const Topology *topo, const Packing *pack, Collective coll, int64_t *load, Frac *out)
{
	Packing widest = *pack;
	return pack_widest_unit(topo, pack, load, &widest.unit) && pack_rate(&widest, coll, topo->n_ranks, out);
}

/* 20 bits of weights where there is one demand; for more of them up to 30. */
static int
pack_bits(int n_demands)
{
	int bits = 20;
	for (; n_demands > 1 && bits < 30; n_demands /= 2)
		bits++;
	return bits;
}

Frac
pack_unit(double rate, int n_demands)
{
	double unit = ldexp(rate, -pack_bits(n_demands));
	/* 20 binary places where they fit; rounded up. */
	int fine = unit < 4294967296.0 ? 20 : 0;
	return (Frac){ (int64_t)(unit * (1 << fine)) + 1, INT64_C(1) << fine };
}
