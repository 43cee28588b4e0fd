/* The fewest trees for a rate: those of mirrored.c, and for an allreduce pairs of arborescences where fewer of these
 * do (pairs.c). Fewer trees are fewer transfers to start; where they are deeper, the plan says what shallower ones
 * there are. */
#include "plan/pack/few/few.h"
#include "plan/pack/few/mirrored.h"
#include "plan/pack/few/orbits.h"
#include "plan/pack/few/pairs.h"

/* The same number of pairs, but shallower, as long as there are any. */
static Status
flatten_pairs(struct mirrored *f, struct pair_goal goal, Packing **few)
{
	int work[TREES_RANKS], least;
	goal.steps = LIMIT_FLAT_STEPS;
	goal.from = goal.to = (*few)->n_trees;
	goal.flat_from = 0;
	for (Packing *flat = *few; flat;) {
		*few = flat;
		flat = NULL;
		goal.max_depth = pack_depth(*few, work) - 1;
		TRY(pairs_fewest(f->ctx, &f->all, &goal, &flat, &least));
	}
	return OK;
}

/* Does every rank have links of the same capacity? */
static bool
is_even(const struct trees *all)
{
	int64_t capacity[TREES_RANKS] = { 0 };
	for (int row = 0; row < all->n_rows; row++) {
		const Link *link = &all->topo->link[all->there[row]];
		capacity[link->from] += all->capacity[row];
		capacity[link->to] += all->capacity[row];
	}
	for (int r = 1; r < all->topo->n_ranks; r++)
		if (capacity[r] != capacity[0])
			return false;
	return true;
}

/* Fewer trees whose edges down may differ from those up. A single pair joins all ranks in both directions, so a
 * single tree does as well, without being deeper. Of machines as even as a DGX-1 five pairs and more are looked for
 * only where they are no deeper than the trees known: five of depth 10 have the rate of its six of depth 8, and
 * max_trees finds them. */
static Status
seek_pairs(struct mirrored *f, Frac target, Frac top, int max_depth, Packing **few, struct proof *proof)
{
	enum { EVEN_PAIRS = 5 };
	int work[TREES_RANKS], depth = pack_depth(*few, work);
	struct pair_goal goal = { .target = target, .top = top, .max_depth = max_depth,
	    .from = proof->mirrored ? 2 : 1, .to = (*few)->n_trees - 1, .steps = LIMIT_PAIR_STEPS };
	Packing *pairs = NULL;
	Frac rate, known;
	if (f->all.n > LIMIT_DEEP_TREES && is_even(&f->all)) {
		goal.flat_from = EVEN_PAIRS;
		goal.flat_depth = depth;
	}
	TRY(pairs_fewest(f->ctx, &f->all, &goal, &pairs, &proof->least));
	if (!pairs)
		return OK;
	TRY(flatten_pairs(f, goal, &pairs));
	bool rates = pack_rate(pairs, ALLREDUCE, f->all.topo->n_ranks, &rate)
	    && pack_rate(*few, ALLREDUCE, f->all.topo->n_ranks, &known);
	if (pack_depth(pairs, work) > depth && rates && frac_cmp(rate, known) == 0) {
		pairs->other_trees = (*few)->n_trees;
		pairs->other_depth = depth;
	}
	*few = pairs;
	proof->paired = true;
	return OK;
}

/* A higher rate of max_trees trees whose edges down may differ: the highest that there may be, or else one after the
 * other that is higher than the last. */
static Status
seek_pair_rates(struct mirrored *f, Frac top, const Ask *ask, int max_depth, Packing **few, struct proof *proof)
{
	int max_trees = ask->max_trees;
	bool longer = !ask->max_depth && max_trees <= PAIRS_MOST;
	struct pair_goal goal = { .target = top, .top = top, .max_depth = max_depth, .from = proof->mirrored ? 2 : 1,
	    .to = max_trees, .steps = longer ? LIMIT_RATE_STEPS : LIMIT_FLAT_STEPS };
	Packing *pairs = NULL;
	TRY(pairs_fewest(f->ctx, &f->all, &goal, &pairs, &proof->least));
	if (pairs) {
		*few = pairs;
		proof->least = max_trees + 1;
		proof->paired = true;
		return OK;
	}
	goal.above = true;
	goal.steps = LIMIT_FLAT_STEPS;
	do {
		*few = pairs ? pairs : *few;
		proof->paired = pairs;
		pairs = NULL;
		if (!pack_rate(*few, ALLREDUCE, f->all.topo->n_ranks, &goal.target) || !frac_fits(goal.target))
			return OK;
		TRY(pairs_fewest(f->ctx, &f->all, &goal, &pairs, &proof->least));
	} while (pairs);
	return OK;
}

/* The search has left out none that might be better. */
static bool
covers_all(const struct mirrored *f, const Packing *few, const struct proof *proof, int max_trees)
{
	int most = max_trees ? max_trees : few->n_trees - 1;
	return f->all.coll == ALLREDUCE ? proof->least > most : proof->mirrored;
}

/* -v: what is proven. */
static void
tell(const struct mirrored *f, const Packing *few, const struct proof *proof, int max_trees)
{
	const char *of = "", *claim = max_trees ? ", no others have a higher rate" : ", no fewer have that rate";
	bool all = covers_all(f, few, proof, max_trees);
	if (proof->paired) {
		log_verbose(f->ctx, "fewest: %d trees that go down another way than they came up%s", few->n_trees,
		    all ? claim : "");
		return;
	}
	if (!all && f->all.coll == ALLREDUCE)
		of = " that go down as they came up";
	if (!all)
		claim = !proof->mirrored ? "" : max_trees ? ", the highest rate of these" : ", the fewest of these";
	log_verbose(f->ctx, "fewest: %d of %d trees%s%s", few->n_trees, f->all.n, of, claim);
}

Status
pack_fewest(Ctx *ctx, const Topology *topo, Frac optimum, Frac top, const Ask *ask, Packing **out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	int max_depth = ask->max_depth ? ask->max_depth : 2 * topo->n_ranks;
	struct mirrored *f;
	struct proof proof = { 0 };
	Packing *few = NULL;
	Frac keep, target;
	bool fits;
	/* Weights are counted by products of 128 bits. */
	optimum = frac_fits(optimum) ? optimum : frac_whole_above(optimum);
	top = frac_fits(top) ? top : frac_whole_above(top);
	TRY(TEMP(ctx, f, 1));
	f->ctx = ctx;
	TRY(trees_enumerate(ctx, topo, ask, &f->all, &fits));
	if (!frac_sub(FRAC_ONE, ask->tolerance, &keep) || !frac_mul(optimum, keep, &target) || !frac_fits(target))
		fits = false;
	if (fits)
		TRY(trees_orbits(&f->all));
	if (fits)
		TRY(mirrored_begin(f, max_depth));
	if (fits && ask->max_trees)
		TRY(mirrored_rates(f, optimum, ask->max_trees, &few, &proof));
	else if (fits)
		TRY(mirrored_fewest(f, target, optimum, &few, &proof));
	if (few && ask->coll == ALLREDUCE && !ask->max_trees)
		TRY(seek_pairs(f, target, top, max_depth, &few, &proof));
	else if (few && ask->coll == ALLREDUCE && proof.least <= ask->max_trees)
		TRY(seek_pair_rates(f, top, ask, max_depth, &few, &proof));
	if (few)
		few->highest = ask->max_trees && covers_all(f, few, &proof, ask->max_trees);
	if (few)
		tell(f, few, &proof, ask->max_trees);
	else if (fits)
		log_verbose(ctx, "fewest: none found with up to %d trees of %d",
		    f->k < MIRRORED_PICKS ? f->k : MIRRORED_PICKS, f->all.n);
	arena_release(&ctx->scratch, mark);
	*out = few;
	return OK;
}
