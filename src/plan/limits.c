/* Plans within limits on depth and number of trees. */
#include "graph/graph.h"
#include "plan/family.h"
#include "plan/pack/alltoall/alltoall.h"
#include "plan/pack/cluster/cluster.h"
#include "plan/pack/few/few.h"
#include "plan/pack/flow/flow.h"
#include "plan/pack/linear/linear.h"
#include "plan/pack/templates/templates.h"
#include "plan/plan.h"
#include "plan/work.h"
#include "topology/topology.h"

static bool
obeys(const Packing *pack, const Ask *ask, int *work)
{
	return (!ask->max_trees || pack->n_trees <= ask->max_trees)
	    && (!ask->max_depth || pack_depth(pack, work) <= ask->max_depth);
}

/* The candidate replaces the best if it obeys the limits and is better. */
static void
consider(const Planning *in, int *work, Packing *candidate, Packing **best)
{
	if (candidate && obeys(candidate, in->ask, work) && plan_better(in, candidate, *best, work))
		*best = candidate;
}

/* Trees of a packing that are not too deep, as a pool; NULL: none, or the collective has several demands. */
static Status
shallow_pool(Ctx *ctx, const Packing *pack, const Ask *ask, int *work, Packing **out)
{
	Packing *pool;
	*out = NULL;
	if (!pack || collective_has_blocks(ask->coll))
		return OK;
	TRY(pack_new(ctx, pack->n_trees, false, &pool));
	pool->unit = FRAC_ONE;
	for (int t = 0; t < pack->n_trees; t++) {
		if (ask->max_depth && tree_depth(&pack->tree[t], work) > ask->max_depth)
			continue;
		pool->weight[pool->n_trees] = 1;
		pool->tree[pool->n_trees++] = pack->tree[t];
	}
	*out = pool;
	return OK;
}

/* Of few ranks, all trees of limited depth, their best rate, and the fewest for it. The same for all max_trees. */
static Status
know_depth(Ctx *ctx, const Planning *in, KnownPlans *known, KnownDepth **out)
{
	Ask any = *in->ask;
	Bound unused = *in->bound;
	Frac rate = in->bound->rate;
	KnownDepth *at = known->depth;
	while (at && at->max_depth != any.max_depth)
		at = at->next;
	*out = at;
	if (at)
		return OK;
	TRY(NEW(ctx, at, 1));
	at->max_depth = any.max_depth;
	if (!collective_has_blocks(any.coll))
		TRY(pack_every(ctx, in->topo, &any, &at->pool));
	any.max_trees = 0;
	any.minimise = false;
	if (at->pool)
		TRY(pack_exact(ctx, in->topo, in->sym, in->bound, at->pool, &any, &at->best, &unused));
	any.minimise = in->ask->minimise;
	/* Without a limit on depth these are the plan without limits. */
	bool wanted = any.max_depth ? any.minimise || in->ask->max_trees : !any.minimise;
	if (at->best && !pack_rate(at->best, any.coll, in->topo->n_ranks, &rate))
		rate = in->bound->rate;
	if (at->pool && wanted)
		TRY(pack_fewest(ctx, in->topo, rate, in->bound->rate, &any, &at->few));
	at->next = known->depth;
	known->depth = at;
	known->grown = true;
	*out = at;
	return OK;
}

/* The best rate of max_trees trees, of those of limited depth. */
static Status
consider_few(Ctx *ctx, const Planning *in, const Bound *proof, const Packing *pool, int *work, Packing **best)
{
	const Ask *ask = in->ask;
	Ask any = *ask;
	Bound unused = *in->bound;
	Frac rate;
	Packing *one = NULL;
	if (*best && pack_rate(*best, ask->coll, in->topo->n_ranks, &rate) && frac_cmp(rate, proof->rate) >= 0)
		return OK;
	TRY(pack_fewest(ctx, in->topo, proof->rate, proof->rate, ask, &one));
	consider(in, work, one, best);
	one = NULL;
	any.minimise = ask->minimise;
	TRY(pack_exact(ctx, in->topo, in->sym, in->bound, pool, &any, &one, &unused));
	consider(in, work, one, best);
	return OK;
}

enum { MANY_RANKS = 128 };	/* over which searches that know no servers take long */

/* Few trees of a cluster. *enough: other searches would take long, or find no better ones. */
static Status
search_cluster(Ctx *ctx, const Planning *in, const Bound *proof, int *work, Packing **best, bool *enough)
{
	enum { LEAST_DEPTH = 4 };
	const Ask *ask = in->ask;
	Packing *one = NULL;
	Frac rate;
	*enough = false;
	if (!ask->max_trees || in->topo->n_ranks <= LIMIT_ILP_RANKS || ask->packing != PACKING_EXACT || !ask->minimise
	    || (ask->max_depth && ask->max_depth < LEAST_DEPTH))
		return OK;
	TRY(pack_cluster_few(ctx, in->topo, ask, &one));
	work_tell(ctx, in->topo, one, "within limits, places");
	consider(in, work, one, best);
	*enough = *best && pack_rate(*best, ask->coll, in->topo->n_ranks, &rate)
	    && (in->topo->n_ranks > MANY_RANKS || frac_cmp(rate, proof->rate) >= 0);
	return OK;
}

/* An allgather or reducescatter over unequal servers, by a tree for each rank. */
static Status
search_whole(Ctx *ctx, const Planning *in, int *work, Packing **best, bool *enough)
{
	const Ask *ask = in->ask;
	Packing *one = NULL;
	if (!ask->max_trees || (ask->coll != ALLGATHER && ask->coll != REDUCESCATTER)
	    || in->topo->n_ranks <= MANY_RANKS || ask->packing != PACKING_EXACT || !ask->minimise)
		return OK;
	TRY(pack_unequal_whole(ctx, in->topo, ask->coll, in->bound, &one));
	work_tell(ctx, in->topo, one, "within limits, unequal servers");
	consider(in, work, one, best);
	*enough = *best != NULL;
	return OK;
}

/* The best rate of trees of limited depth, and the fewest for it; or the best rate of max_trees trees. */
static Status
search_within(Ctx *ctx, const Planning *in, KnownPlans *known, const Packing *whole, const Bound *proof, int *work,
    Packing **best)
{
	Bound unused = *in->bound;
	Packing *pool, *one = NULL;
	KnownDepth *depth;
	bool widest = false;
	TRY(search_cluster(ctx, in, proof, work, best, &widest));
	if (!widest)
		TRY(search_whole(ctx, in, work, best, &widest));
	if (widest)
		return OK;
	if (in->ask->max_trees == 1) {
		TRY(pack_widest(ctx, in->topo, in->ask, NULL, &one, &widest));
		work_tell(ctx, in->topo, one, "within limits, one tree");
	}
	consider(in, work, one, best);
	if (widest)
		return OK;
	TRY(know_depth(ctx, in, known, &depth));
	work_tell(ctx, in->topo, depth->best, "within limits, all trees of this depth");
	if (depth->pool) {
		consider(in, work, depth->best, best);
		consider(in, work, depth->few, best);
		return in->ask->max_trees ? consider_few(ctx, in, proof, depth->pool, work, best) : OK;
	}
	one = NULL;
	TRY(shallow_pool(ctx, whole, in->ask, work, &pool));
	TRY(pack_exact(ctx, in->topo, in->sym, in->bound, pool, in->ask, &one, &unused));
	work_tell(ctx, in->topo, one, "within limits, linear program");
	consider(in, work, one, best);
	return OK;
}

static Status plan_within(Ctx *ctx, const Planning *in, KnownPlans *known, int max_depth, int max_trees,
    Packing **out, Bound *proof);

/* A plan within some of the limits may obey all of them: without any, it is the best; within one of two, it may be
 * better than what is found within both. */
static Status
plan_anew(Ctx *ctx, const Planning *in, KnownPlans *known, Packing **out, Bound *proof)
{
	const Ask *ask = in->ask;
	Packing *whole, *one;
	int *work;
	*out = NULL;
	if (!ask->max_depth && !ask->max_trees)
		return plan_free(ctx, in, out, proof);
	TRY(TEMP(ctx, work, pack_work(in->topo)));
	TRY(plan_within(ctx, in, known, 0, 0, &whole, proof));
	if (whole && !obeys(whole, ask, work) && whole->fewer)
		whole = whole->fewer;
	if (whole && obeys(whole, ask, work)) {
		*out = whole;
		return OK;
	}
	if (ask->max_depth && ask->max_trees) {
		TRY(plan_within(ctx, in, known, 0, ask->max_trees, &one, proof));
		consider(in, work, one, out);
		TRY(plan_within(ctx, in, known, ask->max_depth, 0, &one, proof));
		consider(in, work, one, out);
	}
	Status status = search_within(ctx, in, known, whole, proof, work, out);
	if (status != LIMIT || ask->max_depth < 2)
		return status;
	/* A schedule of deeper trees may be too large, but not one of others. */
	const Error error = ctx->error;
	ctx->error.status = OK;
	status = plan_within(ctx, in, known, ask->max_depth - 1, ask->max_trees, out, proof);
	if (status == LIMIT || (status == OK && !*out)) {
		ctx->error = error;
		status = LIMIT;
	}
	return status;
}

/* Within these limits instead of those of the Ask. *out: NULL where no trees are found. */
static Status
plan_within(Ctx *ctx, const Planning *in, KnownPlans *known, int max_depth, int max_trees, Packing **out, Bound *proof)
{
	Ask ask = *in->ask;
	Planning within = *in;
	KnownPlan *at = known->plan;
	while (at && (at->max_depth != max_depth || at->max_trees != max_trees))
		at = at->next;
	if (!at) {
		ask.max_depth = max_depth;
		ask.max_trees = max_trees;
		within.ask = &ask;
		TRY(NEW(ctx, at, 1));
		*at = (KnownPlan){ .max_depth = max_depth, .max_trees = max_trees, .proof = *in->bound };
		TRY(plan_anew(ctx, &within, known, &at->pack, &at->proof));
		pack_note_reached(at->pack, ask.coll, in->topo->n_ranks, &at->proof);
		at->next = known->plan;
		known->plan = at;
		known->grown = true;
	}
	*out = at->pack;
	*proof = at->proof;
	return OK;
}

/* With limits, or without. */
static Status
plan_any(Ctx *ctx, const Planning *in, Packing **out, Packing **whole, Bound *proof)
{
	const Ask *ask = in->ask;
	KnownPlans here[2] = { { 0 } }, *known = in->known ? in->known : here;
	Planning plain = *in;
	Packing *pack = NULL;
	Symmetry *none;
	Bound unused;
	TRY(plan_within(ctx, in, &known[0], ask->max_depth, ask->max_trees, &pack, proof));
	TRY(plan_within(ctx, in, &known[0], 0, 0, whole, &unused));
	/* With symmetries each tree comes with all of its images; without them fewer trees are possible. */
	if (!pack && ask->max_trees && in->sym->size > 1) {
		TRY(topo_symmetry(ctx, in->topo, ask->root, SYMMETRY_NONE, &none));
		plain.sym = none;
		TRY(plan_within(ctx, &plain, &known[1], ask->max_depth, ask->max_trees, &pack, proof));
	}
	if (!pack)
		return fail(ctx, LIMIT, "%s: %s over %d ranks: no trees found within these limits", in->topo->name,
		    collective_name(ask->coll), in->topo->n_ranks);
	*out = pack;
	return OK;
}

static Status
check_limits(Ctx *ctx, const Planning *in)
{
	const Topology *topo = in->topo;
	const Ask *ask = in->ask;
	int depth, trees;
	if (!ask->max_depth && !ask->max_trees)
		return OK;
	TRY(plan_least(ctx, topo, ask, &depth, &trees));
	if (ask->max_depth && ask->max_depth < depth)
		return fail_asked(ctx, INFEASIBLE, "max_depth", "%d: %s over these %d ranks needs at least %d",
		    ask->max_depth, collective_name(ask->coll), topo->n_ranks, depth);
	if (ask->max_trees && ask->max_trees < trees)
		return fail_asked(ctx, INFEASIBLE, "max_trees", "%d: %s over %d ranks needs at least %d",
		    ask->max_trees, collective_name(ask->coll), topo->n_ranks, trees);
	return ask->max_depth ? work_check_soon(ctx, in) : OK;
}

/* What the linear program proves of trees over the routes of pairs it does not prove of others. */
static Status
prove_routes(Ctx *ctx, const Planning *in, Plan *out)
{
	Frac others;
	out->proof = *in->bound;
	TRY(plan_prove(ctx, in, &out->proof, &others));
	if (others.num > 0)
		log_verbose(ctx, "routes: trees over any routes of these links reach %.6g GB/s",
		    frac_double(others) / 1e9);
	return OK;
}

/* rate: of the plan. whole: that without limits; or NULL. */
static Status
note_limits(Ctx *ctx, const Planning *in, const Packing *whole, Frac rate, Plan *out)
{
	Frac other;
	int *work;
	out->unlimited.too_large = out->pack->too_large && frac_cmp(rate, out->proof.rate) < 0;
	if (!whole || !pack_rate(whole, in->ask->coll, in->topo->n_ranks, &other) || frac_cmp(other, rate) <= 0)
		return OK;
	TRY(TEMP(ctx, work, in->topo->n_ranks));
	out->unlimited = (Unlimited){ other, whole->n_trees, pack_depth(whole, work), false };
	return OK;
}

static Status
plan_listed(Ctx *ctx, const Planning *in, Plan *out)
{
	const Ask *ask = in->ask;
	Packing *whole;
	Frac rate;
	TRY(topo_check_pairs(ctx, in->topo));
	TRY(plan_check_size(ctx, in->topo, in->ask->coll));
	TRY(check_limits(ctx, in));
	TRY(plan_any(ctx, in, &out->pack, &whole, &out->proof));
	if (!pack_rate(out->pack, ask->coll, in->topo->n_ranks, &rate))
		rate = FRAC_ZERO;
	TRY(note_limits(ctx, in, whole, rate, out));
	if (out->pack->highest)
		out->best = rate;
	/* The trees may be fewer than those that reach the bound, by a tolerance. */
	bool limited = (ask->max_depth || ask->max_trees)
	    && frac_double(rate) < frac_double(out->proof.rate) * (1 - RATE_ROUNDING);
	if (out->proof.reached && !limited)
		out->best = out->proof.rate;
	return in->topo->route && frac_cmp(out->proof.rate, in->bound->rate) < 0 ? prove_routes(ctx, in, out) : OK;
}

/* What is not planned over all pairs of ranks is planned for some machines. */
static Status
fail_pairs(Ctx *ctx, const Topology *topo, Collective coll)
{
	const char *name = collective_name(coll);
	if (coll == ALLTOALL)
		return fail(ctx, LIMIT, "%s: alltoall over %d GPUs, with a tree for each pair of them: want at most "
		    "%d trees, or %d of symmetric servers", topo->name, topo->n_ranks, LIMIT_TREES, LIMIT_PATH_IMAGES);
	bool paths = coll == SCATTER || coll == GATHER;
	return fail(ctx, LIMIT, "%s: %s over %d GPUs: want at most %d, or %s%s", topo->name, name, topo->n_ranks,
	    LIMIT_PAIR_RANKS, paths ? "equal " : "", collective_rooted(coll)
	    ? "servers with a switch of their own that all of their GPUs are on" : "symmetric servers");
}

/* Of an allgather or reducescatter: a cyclic group that permutes the servers that lost nothing, if pack_images can plan
 * under it; NULL: there is none, or all servers are isomorphic. */
static Status
find_whole_servers(Ctx *ctx, const Topology *topo, Collective coll, Symmetry **out)
{
	Symmetry *sym;
	bool serves = false;
	*out = NULL;
	if ((coll != ALLGATHER && coll != REDUCESCATTER) || topo->route || tree_shares(topo, coll))
		return OK;
	TRY(topo_symmetry(ctx, topo, -1, SYMMETRY_WHOLE_SERVERS, &sym));
	if (sym->size > 1)
		TRY(pack_images_serves(ctx, topo, sym, &serves));
	*out = serves ? sym : NULL;
	return OK;
}

/* Trees of each rank, which are looked for once for a request. */
struct each {
	bool known;
	Packing *pack;		/* NULL: there are none */
};

/* proof: noted what they reach. */
static Status
plan_tree_of_each(Ctx *ctx, const Planning *in, Bound *proof, struct each *each)
{
	Symmetry *none;
	Packing *pack, **out = &each->pack;
	Frac rate;
	if (each->known)
		return OK;
	each->known = true;
	TRY(topo_symmetry(ctx, in->topo, -1, SYMMETRY_NONE, &none));
	TRY(pack_balanced(ctx, in->topo, none, in->ask->coll, in->bound, false, out));
	work_tell(ctx, in->topo, *out, "a tree of each rank, shortest paths");
	if (!frac_div(in->bound->rate, (Frac){ in->topo->n_ranks, 1 }, &rate))
		return OK;
	if (in->topo->n_nodes == in->topo->n_ranks && !(*out && (*out)->highest)) {
		TRY(pack_by_homes(ctx, in->topo, in->ask->coll, rate, false, &pack));
		work_tell(ctx, in->topo, pack, "a tree of each rank, homes entered once");
		*out = pack ? pack : *out;
	}
	if (!*out) {
		TRY(pack_enter_once(ctx, in->topo, in->ask->coll, -1, rate, false, false, out));
		work_tell(ctx, in->topo, *out, "a tree of each rank, servers entered once");
	}
	proof->reached |= *out && (*out)->highest;
	return OK;
}

static Status
plan_images(Ctx *ctx, const Planning *in, const Symmetry *whole, Packing **out)
{
	TRY(pack_images(ctx, in->topo, whole, in->ask->coll, in->bound, out));
	work_tell(ctx, in->topo, *out, "images of servers that lost nothing");
	return OK;
}

static Status
plan_templates(Ctx *ctx, const Planning *in, Packing **out)
{
	TRY(pack_templates(ctx, in->topo, in->sym, in->ask->coll, in->bound, out));
	work_tell(ctx, in->topo, *out, "templates");
	return OK;
}

static Status
plan_in_trees(Ctx *ctx, const Planning *in, Bound *proof, Packing **out)
{
	TRY(pack_in_trees(ctx, in->topo, out, proof));
	work_tell(ctx, in->topo, *out, "trees into each rank");
	return OK;
}

/* An allgather or reducescatter whose list of trees would be too long. Images of a few trees make the smallest file,
 * but where leaf switches divide servers that lost parts into many orbits they take longer, and miss the bound.
 * *out: NULL: there are none. */
static Status
plan_blocks(Ctx *ctx, const Planning *in, Bound *proof, struct each *each, Packing **out)
{
	Symmetry *whole;
	bool levels = false;
	*out = NULL;
	TRY(find_whole_servers(ctx, in->topo, in->ask->coll, &whole));
	if (whole)
		TRY(pack_enter_once_levels(ctx, in->topo, in->ask->coll, &levels));
	if (whole && !levels)
		TRY(plan_images(ctx, in, whole, out));
	if (!*out && !levels)
		TRY(plan_templates(ctx, in, out));
	if (!*out) {
		TRY(plan_tree_of_each(ctx, in, proof, each));
		*out = each->pack;
	}
	return !*out && levels ? plan_images(ctx, in, whole, out) : OK;
}

Status
plan_check_ranks(Ctx *ctx, const Topology *topo, const Symmetry *sym, const Ask *ask)
{
	bool few = topo->n_ranks <= LIMIT_PAIR_RANKS, serves = pack_templates_serves(topo, sym, ask->coll);
	bool lists = ask->max_depth || ask->max_trees || ask->packing != PACKING_EXACT;
	Symmetry *whole;
	if (few)
		return lists && !serves ? plan_check_size(ctx, topo, ask->coll) : OK;
	if (lists)
		return topo_check_pairs(ctx, topo);
	if (!serves) {
		TRY(find_whole_servers(ctx, topo, ask->coll, &whole));
		serves = whole != NULL;
	}
	if (!serves)
		TRY(pack_rooted_serves(ctx, topo, ask->coll, &serves));
	return serves ? OK : fail_pairs(ctx, topo, ask->coll);
}

/* Trees of a root without a table of all pairs. */
static Status
plan_rooted(Ctx *ctx, const Planning *in, Packing **out)
{
	const Ask *ask = in->ask;
	Packing *below;
	Frac rate;
	TRY(pack_rooted(ctx, in->topo, ask->coll, ask->root, in->bound, out));
	if (!*out || collective_has_blocks(ask->coll) || work_is_long(work_rooted_below(in))
	    || !pack_rate(*out, ask->coll, in->topo->n_ranks, &rate))
		return OK;
	TRY(pack_rooted_below(ctx, in->topo, ask->coll, ask->root, in->bound, rate, &below));
	*out = below ? below : *out;
	return OK;
}

/* An alltoall where some ranks have no image: a list of all paths, or, where that is too long, those of servers that
 * lost parts, and of one of the others, of which all are images; or trees into each rank. */
static Status
plan_pairs(Ctx *ctx, const Planning *in, Plan *out)
{
	Bound proof = *in->bound;
	Packing *pack = NULL;
	Symmetry *sym;
	Status status = plan_listed(ctx, in, out);
	if (status != LIMIT || in->topo->n_ranks > LIMIT_PAIR_RANKS || in->topo->route)
		return status;
	const Error error = ctx->error;
	ctx->error.status = OK;
	TRY(topo_symmetry(ctx, in->topo, -1, SYMMETRY_WHOLE_SERVERS, &sym));
	if (sym->size > 1) {
		TRY(pack_paths(ctx, in->topo, sym, false, &pack, &proof));
		work_tell(ctx, in->topo, pack, "paths, images of servers that lost nothing");
	}
	if (!pack)
		TRY(plan_in_trees(ctx, in, &proof, &pack));
	if (!pack) {
		ctx->error = error;
		return status;
	}
	*out = (Plan){ .proof = proof, .best = FRAC_ZERO, .pack = pack };
	return OK;
}

/* An allreduce over servers of which some lost parts, with so many GPUs that a list of one tree for each GPU, up and
 * down, would be too long: a compact packing at the bound but for rounded weights. Only where links have few orbits, as
 * each orbit takes time. *out: NULL: there is none. */
static Status
plan_few_images(Ctx *ctx, const Planning *in, Packing **out)
{
	enum { FEW_ORBITS = 256 };
	const double near = 1 - 1e-7;
	const Topology *topo = in->topo;
	Frac rate;
	*out = NULL;
	if (in->ask->coll != ALLREDUCE || (int64_t)topo->n_ranks * topo->n_ranks <= 2 * LIMIT_TREE_EDGES
	    || topo->n_nodes == topo->n_ranks || in->sym->n_representatives == 1
	    || in->sym->n_orbits > FEW_ORBITS)
		return OK;
	TRY(plan_templates(ctx, in, out));
	if (*out && (!pack_rate(*out, ALLREDUCE, topo->n_ranks, &rate)
	    || frac_double(rate) * in->sym->size < frac_double(in->bound->rate) * near))
		*out = NULL;
	return OK;
}

/* An allgather or reducescatter over servers of one GPU each, where a list has room for a tree of each rank, but hardly
 * for parts of these, without which flows take a minute and end with none, or deep ones. *out: NULL: a list has room,
 * or no trees of each rank are at the bound. proof: as above. */
static Status
plan_full_list(Ctx *ctx, const Planning *in, Bound *proof, struct each *each, Packing **out)
{
	enum { NEARLY_FULL = LIMIT_TREE_EDGES / 32 * 31 };
	const Collective coll = in->ask->coll;
	const int64_t n = in->topo->n_ranks, edges = n * (n - 1);
	const Packing *pack;
	*out = NULL;
	if ((coll != ALLGATHER && coll != REDUCESCATTER) || in->sym->size > 1 || in->topo->n_nodes < n
	    || edges < NEARLY_FULL || edges > LIMIT_TREE_EDGES)
		return OK;
	TRY(plan_tree_of_each(ctx, in, proof, each));
	pack = each->pack;
	*out = pack && pack->highest && pack->n_in_trees * (n - 1) > LIMIT_TREE_EDGES ? each->pack : NULL;
	return OK;
}

/* Where the list of all trees is past its limit, or takes tens of megabytes, a few of which the others are images; with
 * a root, another way to a list. */
Status
plan_trees(Ctx *ctx, const Planning *in, Plan *out)
{
	enum { MANY_TREES = 1 << 17, MANY_LISTED = 720 };	/* ranks, each with trees of its own */
	const Ask *ask = in->ask;
	bool lists = ask->max_depth || ask->max_trees || ask->packing != PACKING_EXACT || in->n_parts;
	bool many = !lists && collective_demands(ask->coll, in->topo->n_ranks) > MANY_TREES;
	struct each each = { false, NULL };
	Packing *pack = NULL;
	*out = (Plan){ .proof = *in->bound, .best = FRAC_ZERO };
	if (ask->matrix) {
		TRY(plan_check_size(ctx, in->topo, ask->coll));
		TRY(pack_matrix(ctx, in->topo, ask->matrix, &out->pack, &out->length));
		work_tell(ctx, in->topo, out->pack, "paths for a matrix");
		return OK;
	}
	if (!lists && in->sym->size > 1 && in->topo->n_ranks > MANY_LISTED) {
		TRY(pack_balanced(ctx, in->topo, in->sym, ask->coll, in->bound, true, &pack));
		work_tell(ctx, in->topo, pack, "shortest paths, one tree and its images");
	}
	if (!lists && !pack)
		TRY(plan_few_images(ctx, in, &pack));
	if (pack) {
		out->pack = pack;
		pack_note_reached(pack, ask->coll, in->topo->n_ranks, &out->proof);
		out->best = out->proof.rate;
		return OK;
	}
	Bound proof = *in->bound;
	if (!lists)
		TRY(plan_full_list(ctx, in, &proof, &each, &pack));
	if (pack) {
		*out = (Plan){ .proof = proof, .best = FRAC_ZERO, .pack = pack };
		return OK;
	}
	Status status = many ? LIMIT : plan_listed(ctx, in, out);
	if (status != LIMIT || lists)
		return status;
	const Error error = ctx->error;
	ctx->error.status = OK;
	if (ask->coll == ALLGATHER || ask->coll == REDUCESCATTER)
		TRY(plan_blocks(ctx, in, &proof, &each, &pack));
	else
		TRY(plan_templates(ctx, in, &pack));
	if (!pack && ask->coll == ALLTOALL) {
		TRY(pack_path_templates(ctx, in->topo, in->sym, &pack, &proof));
		work_tell(ctx, in->topo, pack, "templates of paths");
	}
	if (!pack && many)
		return plan_pairs(ctx, in, out);
	if (!pack) {
		TRY(plan_rooted(ctx, in, &pack));
		work_tell(ctx, in->topo, pack, "rooted");
	}
	if (!pack && ask->coll == ALLTOALL)
		TRY(plan_in_trees(ctx, in, &proof, &pack));
	if (!pack && in->topo->n_ranks > LIMIT_PAIR_RANKS)
		return fail_pairs(ctx, in->topo, ask->coll);
	if (!pack) {
		ctx->error = error;
		return status;
	}
	*out = (Plan){ .proof = proof, .best = FRAC_ZERO, .pack = pack };
	return OK;
}

Status
plan_rate(Ctx *ctx, const Planning *in, Frac *out)
{
	Ask any = *in->ask;
	Bound proof = *in->bound;
	Packing *pack;
	int64_t *load;
	any.minimise = false;
	*out = FRAC_ZERO;
	TRY(plan_check_size(ctx, in->topo, any.coll));
	TRY(pack_exact(ctx, in->topo, in->sym, in->bound, NULL, &any, &pack, &proof));
	TRY(TEMP(ctx, load, in->topo->n_links));
	if (pack && !ctx->late)
		pack_achieved(in->topo, pack, any.coll, load, out);
	return OK;
}
