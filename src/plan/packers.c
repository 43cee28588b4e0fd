/* The rows of the table: which jobs each packer serves, and its call. The cheap ones come first; linear programs
 * (programs.c), which serve every machine and prove an optimum, come last. To add a packer, write its file and give it
 * a row, with an estimate of its work (work.c). A row that takes long runs after the others, where none of them has
 * planned the job. */
#include "plan/packers.h"
#include "plan/family.h"
#include "plan/pack/alltoall/alltoall.h"
#include "plan/pack/cluster/cluster.h"
#include "plan/pack/few/few.h"
#include "plan/pack/flow/flow.h"
#include "plan/pack/linear/linear.h"
#include "plan/programs.h"
#include "plan/turned.h"
#include "plan/work.h"
#include "topology/topology.h"

enum {
	AGAIN_PIVOTS = 800,	/* of linear programs where trees at the bound are known, for less deep ones */
	LIGHT_UNITS = 1024,	/* of the rate: a tree of one has 64 KiB of 64 MiB, and takes long over ten hops */
	AGAIN_RANKS = 64	/* up to here, where these are a few of a greedy choice: a tenth of a second */
};

static const Frac HARDLY = { 1, 10000 };	/* of the bound, by which the rate of less deep trees may be below it */
static const double NEAR = 0.995;	/* of the bound, by shallow trees: others are much deeper */
static const Frac SIMPLE = { 1, 1000 };	/* of the bound, by which the rate of few trees may be below it */
static const double ONE_HOP_GAIN = 0.025;	/* likewise, by a star of each rank: of less, nothing was measured */
static const double FAIR = 0.9;		/* by trees over servers: others take longer */
static const double ENOUGH = 0.8;	/* by any trees, where a linear program would take MINUTES, s */
static const double MINUTES = 120;

bool
portfolio_is_at(const struct portfolio *p, double part)
{
	return p->rate >= frac_double(p->proof.rate) * part * (1 - RATE_ROUNDING);
}

bool
portfolio_over_servers(const struct portfolio *p)
{
	return p->over_servers && portfolio_is_at(p, FAIR);
}

void
portfolio_note_rate(struct portfolio *p, const Packing *pack)
{
	Frac rate;
	if (pack && pack_rate(pack, p->in->ask->coll, p->in->topo->n_ranks, &rate) && frac_double(rate) > p->rate)
		p->rate = frac_double(rate);
}

Status
portfolio_make_shallower(Ctx *ctx, const struct portfolio *p, Packing **pack)
{
	const Ask *ask = p->in->ask;
	Packing *less;
	Frac rate, best;
	if (!*pack || *pack == p->best || ask->packing != PACKING_EXACT
	    || (p->best && pack_rate(*pack, ask->coll, p->in->topo->n_ranks, &rate)
	    && pack_rate(p->best, ask->coll, p->in->topo->n_ranks, &best)
	    && plan_compare_rates(p->in, rate, best) < 0))
		return OK;
	double start = work_seconds();
	TRY(pack_shallower(ctx, p->in->topo, *pack, &less));
	if (less)
		log_verbose(ctx, "exchanges of edges: depth %d instead of %d, %.3g s", pack_depth(less, p->work),
		    pack_depth(*pack, p->work), work_seconds() - start);
	*pack = less ? less : *pack;
	return OK;
}

/* ---- which jobs ---- */

/* More ranks than integer programs are made for. */
static bool
is_large(const Planning *in)
{
	return in->topo->n_ranks > LIMIT_ILP_RANKS && in->ask->packing == PACKING_EXACT && in->ask->minimise;
}

/* Of the whole buffer, from or to a root. */
static bool
is_large_rooted(const Planning *in)
{
	const Ask *ask = in->ask;
	return is_large(in) && !tree_shares(in->topo, ask->coll) && (ask->coll == BROADCAST || ask->coll == REDUCE);
}

/* Links between GPUs alone. */
static bool
is_direct(const Planning *in)
{
	return in->topo->n_vertices == in->topo->n_ranks;
}

/* ---- rows ---- */

/* Of each rank some link has the bound, so that one tree may. */
static bool
serves_one_tree(const struct portfolio *p)
{
	const Topology *topo = p->in->topo;
	const Collective coll = p->in->ask->coll;
	const double bound = frac_double(p->in->bound->rate);
	bool wide = is_large(p->in) && is_direct(p->in) && !topo->route && !topo_active(topo)
	    && (coll == BROADCAST || coll == REDUCE || coll == ALLREDUCE);
	for (int r = 0; r < topo->n_ranks && wide; r++) {
		wide = false;
		for (int i = topo->first_in[r]; i < topo->first_in[r + 1]; i++)
			wide |= (double)topo->link[topo->in[i]].capacity >= bound;
	}
	return wide;
}

static Status
run_one_tree(Ctx *ctx, struct portfolio *p, Packing **out)
{
	bool unused;
	return pack_widest(ctx, p->in->topo, p->in->ask, &p->in->bound->rate, out, &unused);
}

static bool
serves_rooted(const struct portfolio *p)
{
	return is_large_rooted(p->in);
}

static Status
run_rooted(Ctx *ctx, struct portfolio *p, Packing **out)
{
	return pack_rooted(ctx, p->in->topo, p->in->ask->coll, p->in->ask->root, p->in->bound, out);
}

/* Where these miss the bound, and not by rounding. */
static bool
serves_rooted_below(const struct portfolio *p)
{
	return is_large_rooted(p->in) && p->best && !portfolio_is_at(p, 1 - frac_double(SIMPLE));
}

static Status
run_rooted_below(Ctx *ctx, struct portfolio *p, Packing **out)
{
	const Planning *in = p->in;
	Frac rate;
	if (!pack_rate(p->best, in->ask->coll, in->topo->n_ranks, &rate))
		return OK;
	TRY(pack_rooted_below(ctx, in->topo, in->ask->coll, in->ask->root, in->bound, rate, out));
	portfolio_note_rate(p, *out);
	p->close |= *out && portfolio_is_at(p, work_is_long(work_programs(in)) ? NEAR : 1 - frac_double(SIMPLE));
	return OK;
}

/* Of thousands of servers with one GPU each the search takes long, and finds none. */
static bool
serves_unequal(const struct portfolio *p)
{
	bool alone = work_is_long(work_edges(p->in)) && p->in->topo->n_nodes == p->in->topo->n_ranks;
	return is_large(p->in) && !alone;
}

/* Trees of an allgather, turned back. max_ratio: of pack_unequal_turned. *out: NULL: none. */
static Status
find_turned(Ctx *ctx, const struct portfolio *p, int max_ratio, Packing **out)
{
	TRY(pack_unequal_turned(ctx, p->in->topo, p->in->bound, max_ratio, out));
	if (*out)
		TRY(plan_turn(ctx, p->in->topo, *out, out));
	return *out ? portfolio_make_shallower(ctx, p, out) : OK;
}

/* Of trees of one length hardly below the bound that are not deep those that take less time are better. */
static void
keep_slots(struct portfolio *p, Packing *slots, Packing **best)
{
	const Planning *in = p->in;
	const double hardly = 1 - frac_double(HARDLY);
	bool shallow = plan_is_shallow(in, slots, hardly, p->work);
	bool less = shallow && *best && plan_takes_less(in, slots, *best, PLAN_SAME_TIME, p->work);
	bool first = shallow && !plan_is_shallow(in, *best, hardly, p->work);
	p->close |= less || first;
	if (less || first || plan_better(in, slots, *best, p->work))
		*best = slots;
}

static Status
run_unequal(Ctx *ctx, struct portfolio *p, Packing **out)
{
	/* Equal rates need the fewest trees. Then the higher ratio first: its low rates round less off. */
	static const int max_ratio[] = { 1, 8, 3 };
	const Planning *in = p->in;
	Packing *lower, *turned = NULL, *slots = NULL, *kept = NULL, *even = NULL;
	Bound proof = *in->bound;
	TRY(pack_unequal(ctx, in->topo, in->ask->coll, in->bound, out, &lower));
	p->whole = *out;
	*out = *out ? *out : lower;
	pack_note_reached(*out, in->ask->coll, in->topo->n_ranks, &proof);
	if (in->ask->coll != ALLREDUCE && !proof.reached && work_is_long(work_programs(in))) {
		TRY(pack_unequal_whole_copies(ctx, in->topo, in->ask->coll, in->bound, &even));
		*out = plan_better(in, even, *out, p->work) ? even : *out;
	}
	if (in->ask->coll != ALLREDUCE)
		return OK;
	portfolio_note_rate(p, *out);
	if (!proof.reached)
		TRY(find_turned(ctx, p, 0, &turned));
	portfolio_note_rate(p, turned);
	*out = plan_better(in, turned, *out, p->work) ? turned : *out;
	bool wanted = !proof.reached || plan_is_slow(in, *out, p->work);
	for (size_t i = 0; i < sizeof max_ratio / sizeof *max_ratio && wanted && !p->close; i++) {
		TRY(find_turned(ctx, p, max_ratio[i], &slots));
		keep_slots(p, slots, out);
		kept = !kept || *out == slots ? slots : kept;
	}
	if (!proof.reached && !p->close)
		TRY(pack_unequal_even(ctx, in->topo, in->bound, &even));
	portfolio_note_rate(p, even);
	if (plan_better(in, even, *out, p->work)) {
		*out = even;
		keep_slots(p, kept, out);
	}
	return OK;
}

/* Servers that share no network have a tree without a hop between some of them; what is at the bound then takes
 * minutes over many ranks. Of thousands of servers with one GPU each the search takes half a minute, and finds none. */
static bool
serves_places(const struct portfolio *p)
{
	bool apart = work_is_long(work_flows(p->in)) && work_is_long(work_program(p->in));
	bool alone = work_is_long(work_edges(p->in)) && p->in->topo->n_nodes == p->in->topo->n_ranks;
	return is_large(p->in) && p->in->ask->coll == ALLREDUCE && (p->best || apart) && !p->close && !alone;
}

static Status
run_places(Ctx *ctx, struct portfolio *p, Packing **out)
{
	return pack_cluster_few(ctx, p->in->topo, p->in->ask, out);
}

/* Where it takes long over direct links, flows take no longer, and are at the bound. */
static bool
serves_greedy(const struct portfolio *p)
{
	return is_large_rooted(p->in) && !(is_direct(p->in) && work_is_long(work_edges(p->in)));
}

static Status
run_greedy(Ctx *ctx, struct portfolio *p, Packing **out)
{
	return pack_greedy(ctx, p->in->topo, p->in->bound, p->in->ask, portfolio_is_at(p, 1) ? p->best : NULL, out);
}

/* An alltoall for which a linear program, with a row for each orbit of pairs, takes seconds to hours, and whose optimal
 * basis is too large to be solved exactly. */
static bool
serves_paths(const struct portfolio *p)
{
	return p->in->ask->coll == ALLTOALL && is_large(p->in)
	    && collective_demands(ALLTOALL, p->in->topo->n_ranks) / LIMIT_LP_BASIS >= p->in->sym->size;
}

/* Where its linear program is long, trees into each rank follow (limits.c), unless a list is asked for. */
static Status
run_paths(Ctx *ctx, struct portfolio *p, Packing **out)
{
	const Planning *in = p->in;
	bool list = in->ask->max_depth || in->ask->max_trees || in->n_parts || in->topo->route;
	return pack_paths(ctx, in->topo, NULL, !list, out, &p->proof);
}

/* No trees of an allgather or reducescatter are less deep. */
static bool
serves_balanced(const struct portfolio *p)
{
	const Planning *in = p->in;
	return is_large(in) && is_direct(in) && (in->ask->coll == ALLGATHER || in->ask->coll == REDUCESCATTER);
}

static Status
run_balanced(Ctx *ctx, struct portfolio *p, Packing **out)
{
	Symmetry *none;
	TRY(topo_symmetry(ctx, p->in->topo, -1, SYMMETRY_NONE, &none));
	return pack_balanced(ctx, p->in->topo, none, p->in->ask->coll, p->in->bound, true, out);
}

/* The linear program takes longer where many trees cost the same, and ends with more trees. Few trees over servers at
 * the bound stay: shallower ones are hundreds. */
static bool
has_long_program(const struct portfolio *p)
{
	const Planning *in = p->in;
	bool paths = p->planned && in->ask->coll == ALLTOALL;
	return is_large(in) && !paths && !p->close && !(portfolio_over_servers(p) && p->whole)
	    && work_flows(in) < work_program(in);
}

static bool
is_irregular(const struct portfolio *p)
{
	bool done = portfolio_is_at(p, 1) && !p->planned;
	return has_long_program(p) && !done;
}

/* Trees of an allgather are less deep: each starts at its root. */
static bool
is_turned(const struct portfolio *p)
{
	const Planning *in = p->in;
	return is_irregular(p) && in->ask->coll == ALLREDUCE && !topo_active(in->topo)
	    && (int64_t)in->topo->n_ranks * in->topo->n_ranks <= LIMIT_TREE_EDGES / 2;
}

static bool
serves_turned(const struct portfolio *p)
{
	return is_turned(p) && is_direct(p->in);
}

/* Flows of an allreduce itself were deep, or found none. */
static bool
serves_deep_turned(const struct portfolio *p)
{
	return is_turned(p) && !is_direct(p->in) && !work_is_long(work_flows(p->in))
	    && (!p->best || pack_depth(p->best, p->work) > PLAN_SHALLOW);
}

/* Trees of an allgather, turned back: at the bound where that is half of the allgather's. */
static Status
run_turned(Ctx *ctx, struct portfolio *p, Packing **out)
{
	const Topology *topo = p->in->topo;
	Ask ask = *p->in->ask;
	Packing *gather, *less = NULL;
	Bound bound;
	Frac twice;
	ask.coll = ALLGATHER;
	TRY(bound_compute(ctx, topo, p->in->sym, ALLGATHER, -1, &bound));
	if (!frac_mul(p->in->bound->rate, (Frac){ 2, 1 }, &twice) || frac_cmp(bound.rate, twice) < 0)
		return OK;
	TRY(pack_branchings(ctx, topo, &bound, &ask, &gather));
	if (gather)
		TRY(pack_shallower(ctx, topo, gather, &less));
	return gather ? plan_turn(ctx, topo, less ? less : gather, out) : OK;
}

/* Do links of ranks alone have the bound? Each tree of an allreduce takes as many as it has edges, both ways. */
static bool
is_of_ranks(const Planning *in)
{
	const Topology *topo = in->topo;
	double all = 0;
	for (int i = 0; i < topo->first_out[topo->n_ranks]; i++)
		all += (double)topo->link[topo->out[i]].capacity;
	return all / 2 / (topo->n_ranks - 1) <= frac_double(in->bound->rate) * (1 + RATE_ROUNDING);
}

/* An allgather's trees are less deep, but more. */
static bool
serves_children(const struct portfolio *p)
{
	return is_irregular(p) && p->in->ask->coll == ALLREDUCE && !is_direct(p->in) && !is_turned(p)
	    && is_of_ranks(p->in);
}

static bool
serves_parents(const struct portfolio *p)
{
	const Ask *ask = p->in->ask;
	return is_irregular(p) && ask->coll == ALLREDUCE && !topo_active(p->in->topo)
	    && (is_direct(p->in) || is_of_ranks(p->in));
}

/* None behind switches above LIGHT_UNITS units of rate: trees of one unit would be slow. */
static Status
find_parents(Ctx *ctx, const struct portfolio *p, Frac tolerance, Frac less, Packing **out)
{
	const Planning *in = p->in;
	Ask ask = *in->ask;
	Frac rate, units;
	*out = NULL;
	ask.tolerance = tolerance;
	if (!branchings_rate(in->topo, in->bound, &ask, &rate)
	    || !frac_div(rate, (Frac){ topo_link_unit(in->topo), 1 }, &units)
	    || (units.num > LIGHT_UNITS && !is_direct(in)))
		return OK;
	return pack_parents(ctx, in->topo, rate, less, out);
}

/* At the bound. Where flows would take long, and trees at the bound are slow, as some have a small part of the rate,
 * also hardly below it, of fewer units, which more often find room: instead, where they are slow for sure. Where no
 * trees are found, at the rate hardly below the bound, less the lightest trees, up to SIMPLE of it. */
static Status
run_parents(Ctx *ctx, struct portfolio *p, Packing **out)
{
	const Planning *in = p->in;
	bool choice = in->ask->tolerance.num == 0 && work_is_long(work_flows(in));
	Packing *simple = NULL;
	Frac units;
	bool light = choice && frac_div(in->bound->rate, (Frac){ topo_link_unit(in->topo), 1 }, &units)
	    && units.num > LIGHT_UNITS;
	if (light)
		TRY(find_parents(ctx, p, HARDLY, FRAC_ZERO, &simple));
	if (light && !simple)
		TRY(find_parents(ctx, p, SIMPLE, FRAC_ZERO, &simple));
	if (!light)
		TRY(find_parents(ctx, p, in->ask->tolerance, FRAC_ZERO, out));
	if (choice && !light && plan_is_slow(in, *out, p->work))
		TRY(find_parents(ctx, p, HARDLY, FRAC_ZERO, &simple));
	if (choice && !simple && !*out)
		TRY(find_parents(ctx, p, HARDLY, SIMPLE, &simple));
	if (simple && (!*out || plan_takes_less(in, simple, *out, PLAN_SAME_TIME, p->work)))
		*out = simple;
	return OK;
}

/* Trees at the bound would be many, and some of so little weight that a message of 64 MiB takes three times as long. */
static Status
run_children(Ctx *ctx, struct portfolio *p, Packing **out)
{
	Ask ask = *p->in->ask;
	if (frac_cmp(ask.tolerance, SIMPLE) < 0)
		ask.tolerance = SIMPLE;
	return pack_children(ctx, p->in->topo, p->in->bound, &ask, out);
}

static bool
serves_flows(const struct portfolio *p)
{
	return is_irregular(p) && is_direct(p->in);
}

static bool
serves_switch_flows(const struct portfolio *p)
{
	return is_irregular(p) && !is_direct(p->in);
}

static Status
run_flows(Ctx *ctx, struct portfolio *p, Packing **out)
{
	return pack_branchings(ctx, p->in->topo, p->in->bound, p->in->ask, out);
}

/* Servers of one GPU each, in networks of any shape. Over direct links shortest paths come before, which are the least
 * deep. */
static bool
serves_homes(const struct portfolio *p)
{
	const Planning *in = p->in;
	return is_large(in) && !topo_active(in->topo) && in->ask->tolerance.num == 0
	    && in->topo->n_nodes == in->topo->n_ranks && work_homes(in) < work_program(in)
	    && (in->ask->coll == ALLGATHER || in->ask->coll == REDUCESCATTER
	    || (!is_direct(in) && (in->ask->coll == ALLREDUCE || is_large_rooted(in))));
}

/* The best of some numbers of trees of one rate. An allreduce has each of them in both directions, from any rank: each
 * enters all other homes, as a broadcast's do, so that it has no more than these. */
static Status
find_few_homes(Ctx *ctx, const struct portfolio *p, Packing **out)
{
	static const int n_trees[] = { 8, 16, 32 };
	const Planning *in = p->in;
	const bool both = in->ask->coll == ALLREDUCE;
	Bound bound = *in->bound;
	Symmetry *none;
	if (both) {
		TRY(topo_symmetry(ctx, in->topo, -1, SYMMETRY_NONE, &none));
		TRY(bound_compute(ctx, in->topo, none, BROADCAST, 0, &bound));
	}
	for (size_t i = 0; i < sizeof n_trees / sizeof *n_trees; i++) {
		Packing *trees = NULL;
		TRY(pack_by_homes_few(ctx, in->topo, in->ask->coll == REDUCE, both ? -1 : in->ask->root, bound.rate,
		    n_trees[i], &trees));
		if (trees && both)
			TRY(plan_turn(ctx, in->topo, trees, &trees));
		*out = plan_better(in, trees, *out, p->work) ? trees : *out;
	}
	return OK;
}

/* An allreduce has the trees of an allgather that is twice as fast, turned back, where they are not too many. */
static Status
run_homes(Ctx *ctx, struct portfolio *p, Packing **out)
{
	const Planning *in = p->in;
	const int n = in->topo->n_ranks;
	const bool both = in->ask->coll == ALLREDUCE;
	Packing *trees = NULL;
	Frac rate;
	if (is_large_rooted(in) || (both && (int64_t)n * n > LIMIT_TREE_EDGES / 2))
		return find_few_homes(ctx, p, out);
	if (frac_mul(in->bound->rate, (Frac){ both ? 2 : 1, n }, &rate))
		TRY(pack_by_homes(ctx, in->topo, both ? ALLGATHER : in->ask->coll, rate, true, &trees));
	if (!both || !trees)
		return *out = trees, OK;
	TRY(portfolio_make_shallower(ctx, p, &trees));
	return plan_turn(ctx, in->topo, trees, out);
}

/* Leaf switches and a spine, mostly: over one network, or rails, trees of fewer hops were tried before. Where symmetry
 * makes the linear program short, that has fewer trees. */
static bool
serves_enter_once(const struct portfolio *p)
{
	const Planning *in = p->in;
	const Collective coll = in->ask->coll;
	return is_large(in) && !is_direct(in) && !topo_active(in->topo) && in->ask->tolerance.num == 0
	    && work_entries(in) < work_program(in)
	    && (coll == ALLGATHER || coll == REDUCESCATTER || coll == ALLREDUCE || is_large_rooted(in));
}

/* Of this part of the bound. */
static Status
enter_once(Ctx *ctx, const Planning *in, Frac part, bool late, Packing **out)
{
	Frac rate;
	if (!frac_div(part, (Frac){ collective_shares(in->ask->coll, in->topo->n_ranks), 1 }, &rate)
	    || !frac_mul(in->bound->rate, rate, &rate))
		return OK;
	return pack_enter_once(ctx, in->topo, in->ask->coll, in->ask->root, rate, late, true, out);
}

/* An allreduce by an allgather's trees, turned back, which are less deep. */
static Status
enter_once_turned(Ctx *ctx, const Planning *in, Frac part, Packing **out)
{
	Packing *trees = NULL, *less;
	Frac rate;
	if (frac_mul(part, (Frac){ 2, 1 }, &rate) && frac_mul(in->bound->rate, rate, &rate))
		TRY(pack_enter_once_shared(ctx, in->topo, rate, &trees));
	if (!trees)
		return OK;
	TRY(pack_shallower(ctx, in->topo, trees, &less));
	return plan_turn(ctx, in->topo, less ? less : trees, out);
}

/* At the bound, or hardly below it: other trees there are much deeper. */
static Status
run_enter_once(Ctx *ctx, struct portfolio *p, Packing **out)
{
	const Planning *in = p->in;
	Frac hardly;
	if (!frac_sub(FRAC_ONE, HARDLY, &hardly))
		return OK;
	if (in->ask->coll == ALLREDUCE)
		TRY(enter_once_turned(ctx, in, FRAC_ONE, out));
	else
		TRY(enter_once(ctx, in, FRAC_ONE, false, out));
	if (!*out)
		TRY(enter_once(ctx, in, hardly, true, out));
	p->close |= *out != NULL;
	return OK;
}

/* Such trees miss the bound where a server's switch is slow beside its ways to others, or where all ways are needed. */
static bool
serves_enter_below(const struct portfolio *p)
{
	return serves_enter_once(p) && !p->close && !portfolio_is_at(p, NEAR);
}

/* A little below the bound, or what switches have room for, or less: the greedy choice finds no room for the last of
 * it. */
static Status
run_enter_below(Ctx *ctx, struct portfolio *p, Packing **out)
{
	enum { LEAST = 512, MOST = 8 };	/* parts of the rate, of which it is one less */
	const Planning *in = p->in;
	Frac rate, part;
	TRY(pack_enter_once_inside(ctx, in->topo, in->ask->coll, &rate));
	if (rate.num == 0 || frac_cmp(rate, in->bound->rate) > 0)
		rate = in->bound->rate;
	for (int less = LEAST; !*out && less >= MOST; less /= 2) {
		if (!frac_mul(rate, (Frac){ less - 1, less }, &part) || !frac_div(part, in->bound->rate, &part))
			return OK;
		if (in->ask->coll == ALLREDUCE)
			TRY(enter_once_turned(ctx, in, part, out));
		if (!*out)
			TRY(enter_once(ctx, in, part, true, out));
	}
	p->close |= *out && work_is_long(work_flows(in)) && work_is_long(work_program(in));
	return OK;
}

/* Such programs often end soon with a root, or for an allreduce behind switches; not where each step is long. With a
 * root and not many ranks they are many, but less deep than a few of a greedy choice. */
static bool
serves_soon(const struct portfolio *p)
{
	const Planning *in = p->in;
	bool again = has_long_program(p) && is_large_rooted(in) && in->topo->n_ranks <= AGAIN_RANKS;
	return (is_irregular(p) || again) && !work_is_long(work_steps(in))
	    && (collective_rooted(in->ask->coll) || (in->ask->coll == ALLREDUCE && !is_direct(in)));
}

static Status
run_soon(Ctx *ctx, struct portfolio *p, Packing **out)
{
	const Planning *in = p->in;
	bool late = ctx->late, cut_short = ctx->cut_short;
	Packing *pack;
	Bound found;
	if (late)
		return OK;
	ctx->pivots = portfolio_is_at(p, 1) ? AGAIN_PIVOTS : WORK_SOON_PIVOTS;
	TRY(plan_programs(ctx, in->topo, in->sym, in->bound, in->ask, &pack, &found));
	bool spent = ctx->pivots <= 1;
	ctx->pivots = 0;
	if (spent) {
		ctx->late = late;
		ctx->cut_short = cut_short;
		return OK;
	}
	*out = pack;
	p->proof = pack ? found : p->proof;
	return OK;
}

/* Over servers it would have no fewer edges than whole trees. */
static bool
serves_programs(const struct portfolio *p)
{
	bool enough = portfolio_is_at(p, ENOUGH) && work_programs(p->in) > MINUTES;
	return !p->planned && !p->close && !enough && !(portfolio_over_servers(p) && p->whole);
}

/* Where it is too large, the best so far does. */
static Status
run_programs(Ctx *ctx, struct portfolio *p, Packing **out)
{
	const Planning *in = p->in;
	Bound found = p->proof;
	Status status = plan_programs(ctx, in->topo, in->sym, in->bound, in->ask, out, &found);
	if (status != OK && (status != LIMIT || !p->best))
		return status;
	ctx->error.status = OK;
	*out = status == OK ? *out : NULL;
	p->proof = status == OK ? found : p->proof;
	return OK;
}

/* An allreduce, by trees that are deeper than two hops. */
static bool
serves_one_hop(const struct portfolio *p)
{
	const Ask *ask = p->in->ask;
	return ask->coll == ALLREDUCE && ask->packing == PACKING_EXACT && ask->minimise && !ask->tolerance.num
	    && onehop_is_even_mesh(p->in->topo) && portfolio_is_at(p, 1) && pack_depth(p->best, p->work) > 2;
}

/* A star of each rank: more trees than the fewest, but none that waits for what another rank passes on. */
static Status
run_one_hop(Ctx *ctx, struct portfolio *p, Packing **out)
{
	const Planning *in = p->in;
	Bound proof = p->proof;
	Packing *pack;
	Frac unused;
	TRY(pack_family(ctx, in->topo, in->sym, in->bound, &onehop_family, in->ask, &pack, &proof, &unused));
	if (!pack || !plan_takes_less(in, pack, p->best, ONE_HOP_GAIN, p->work))
		return OK;
	pack->fewer = p->best;
	*out = pack;
	return OK;
}

static const struct packer packers[] = {
	{ "one tree", "widest.c", serves_one_tree, work_searches, 0, run_one_tree },
	{ "rooted", "Castro et al. 2003, SplitStream; Koenig 1916", serves_rooted, work_rooted, 0, run_rooted },
	{ "rooted, below the bound", "slots.c", serves_rooted_below, work_rooted_below, 0,
	    run_rooted_below },
	{ "unequal servers", "unequal.c", serves_unequal, work_unequal, OVER_SERVERS, run_unequal },
	{ "places", "few_trees.c", serves_places, work_edges, OVER_SERVERS, run_places },
	{ "homes entered once", "by_homes.c", serves_homes, work_homes, ENDS, run_homes },
	{ "greedy", "greedy.c", serves_greedy, work_edges, REFINES, run_greedy },
	{ "servers entered once", "enter_once.c", serves_enter_once, work_entries, ENDS, run_enter_once },
	{ "servers entered once, below the bound", "enter_once.c", serves_enter_below, work_entries, OVER_SERVERS,
	    run_enter_below },
	{ "paths", "alltoall.c", serves_paths, work_paths, ENDS, run_paths },
	{ "shortest paths", "Koenig 1916; balanced.c", serves_balanced, work_balanced, ENDS, run_balanced },
	{ "children", "Senior 1951; children.c", serves_children, work_searches, ENDS, run_children },
	{ "parents", "Goldberg and Tarjan 1988; parents.c", serves_parents, work_parents, ENDS, run_parents },
	{ "allgather's flows, both ways", "ForestColl; reducescatter_allgather.c", serves_turned, work_flows, ENDS,
	    run_turned },
	{ "flows", "Edmonds 1973; Lovasz 1976; Berczi and Frank 2010", serves_flows, work_flows, ENDS, run_flows },
	{ "linear program, few steps", "programs.c", serves_soon, work_steps, OPTIMAL | REFINES | ENDS, run_soon },
	{ "flows through switches", "Bang-Jensen, Frank and Jackson 1995", serves_switch_flows, work_flows, ENDS,
	    run_flows },
	{ "allgather's flows through switches, both ways", "ForestColl; reducescatter_allgather.c",
	    serves_deep_turned, work_flows, REFINES | ENDS, run_turned },
	{ "linear program", "Blink 3.2; programs.c", serves_programs, work_programs, OPTIMAL | ENDS, run_programs },
	{ "one hop", "Blink 3.5; onehop.c", serves_one_hop, work_program, REFINES | ENDS, run_one_hop },
};

const struct packer *
packer_row(size_t i)
{
	return i < sizeof packers / sizeof *packers ? &packers[i] : NULL;
}
