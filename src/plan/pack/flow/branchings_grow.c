/* Arborescences (branchings.c), grown in batches of hops that have no flow each.
 *
 * Most links have slack for all units that are left on them, so most flows show what was expected. A batch therefore
 * grows without flows: a hop takes as many units as the link has left and as the slack of the sets that are known
 * allows. After the batch one maximum flow to each rank finds the least slack of all sets. If none is below 0, what
 * is left to do can all be done (Edmonds 1973): that depends on capacities and groups as they are now, not on how they
 * came about. So the batch is as good as if each of its hops had had a flow, and the next one is twice as long. If all
 * trees are complete, there is nothing left to prove: no link was loaded beyond its capacity.
 *
 * Else the batch is undone, the sets that lack slack are known from then on, and the next batch is a quarter as long;
 * where that is fewer hops than there are ranks, some with a flow each come first. */
#include "plan/pack/flow/branchings_grow.h"

enum {
	MOST_UNCHECKED = 1 << 24	/* hops of a batch */
};

static Status
save(struct branchings *b)
{
	struct saved *s = &b->saved;
	s->root = b->root;
	s->n_trees = b->pack->n_trees;
	s->n_waiting = b->n_waiting;
	s->others = b->others;
	memcpy(s->left, b->left, (size_t)b->n_arcs * sizeof *s->left);
	memcpy(s->owed, b->owed, (size_t)b->n * sizeof *s->owed);
	memcpy(s->slack, b->slack, sizeof s->slack);
	branchings_copy_group(b, &b->now, &s->now);
	for (int i = 0; i < b->n_waiting; i++) {
		if (!s->waiting[i].has)
			TRY(branchings_new_group(b, &s->waiting[i]));
		branchings_copy_group(b, &b->waiting[i], &s->waiting[i]);
	}
	s->run = arena_mark(&b->ctx->run);
	return OK;
}

static void
restore(struct branchings *b)
{
	const struct saved *s = &b->saved;
	b->root = s->root;
	b->pack->n_trees = s->n_trees;
	b->n_waiting = s->n_waiting;
	b->others = s->others;
	memcpy(b->left, s->left, (size_t)b->n_arcs * sizeof *s->left);
	memcpy(b->owed, s->owed, (size_t)b->n * sizeof *s->owed);
	memcpy(b->slack, s->slack, sizeof s->slack);
	branchings_copy_group(b, &s->now, &b->now);
	for (int i = 0; i < s->n_waiting; i++)
		branchings_copy_group(b, &s->waiting[i], &b->waiting[i]);
	arena_release(&b->ctx->run, s->run);
	branchings_restart_scan(b);
}

/* Does no set lack slack? The current group is one of those that wait. Some sets that do are in b->learned. */
static bool
holds(struct branchings *b)
{
	int64_t total = b->others + b->now.units;
	struct group *last = &b->waiting[b->n_waiting], was = *last;
	b->n_learned = 0;
	*last = b->now;
	b->n_waiting++;
	branchings_net(b);
	b->n_waiting--;
	*last = was;
	for (int v = 0; v < b->n && b->n_learned < MOST_LEARNED; v++) {
		if (b->owed[v] < total && network_flow(&b->net, v, b->n, total) < total)
			branchings_side(b, b->learned + (size_t)b->n_learned++ * (size_t)b->words);
		b->net.arc[b->at[b->n_arcs + v]].room = NETWORK_INFINITE;
	}
	return b->n_learned == 0;
}

static int64_t
slack_of_set(const struct branchings *b, const uint64_t *set)
{
	int64_t slack = meets(set, b->now.has, b->words) ? 0 : -b->now.units;
	for (int a = 0; a < b->n_arcs; a++)
		slack += has_bit(set, b->arc[a].to) && !has_bit(set, b->arc[a].from) ? b->left[a] : 0;
	for (int v = 0; v < b->n; v++)
		slack -= has_bit(set, v) ? 0 : b->owed[v];
	for (int i = 0; i < b->n_waiting; i++)
		slack -= meets(set, b->waiting[i].has, b->words) ? 0 : b->waiting[i].units;
	return slack;
}

/* At most `many` hops; *hops: how many there were; *right: they were not too many, else all are taken back. */
static Status
go_unchecked(struct branchings *b, int many, int *hops, bool *right, enum state *state)
{
	TRY(save(b));
	b->unchecked = true;
	for (*hops = 0; *hops < many && *state == GOING; ++*hops)
		TRY(branchings_step(b, state));
	b->unchecked = false;
	b->n_learned = 0;
	*right = *state == ENDED || b->ctx->late
	    || (*state == GOING && b->n_waiting < MOST_WAITING && holds(b));
	if (*right)
		return OK;
	restore(b);
	for (int i = 0; i < b->n_learned; i++) {
		const uint64_t *set = b->learned + (size_t)i * (size_t)b->words;
		branchings_keep_set(b, set, slack_of_set(b, set));
	}
	*state = GOING;
	return OK;
}

static Status
go_with_flows(struct branchings *b, int many, enum state *state)
{
	branchings_net(b);
	for (int hops = 0; hops < many && *state == GOING; hops++)
		TRY(branchings_step(b, state));
	return OK;
}

/* Everything. *done: false where time is over, or more groups wait than there is room for. */
Status
branchings_grow(struct branchings *b, bool *done)
{
	int many = b->n, few = b->n, hops;
	enum state state;
	bool right;
	b->root = -1;
	branchings_next_root(b, &state);
	branchings_restart_scan(b);
	while (state == GOING) {
		TRY(go_unchecked(b, many, &hops, &right, &state));
		many = !right ? hops / 4 : many < MOST_UNCHECKED ? 2 * many : many;
		few = right ? b->n : few;
		if (many >= b->n || state != GOING)
			continue;
		TRY(go_with_flows(b, few, &state));
		few *= 2;
		many = b->n;
	}
	*done = state == ENDED;
	return OK;
}
