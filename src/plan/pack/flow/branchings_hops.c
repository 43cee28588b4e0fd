/* Hops of arborescences (branchings.c): how many units of the current group may take an arc, by a maximum flow and by
 * the cuts that are known; which arc is taken; and the trees that come of it. */
#include "plan/pack/flow/branchings_hops.h"

#include "model/model.h"

#include <limits.h>

/* ---- the network ---- */

/* The arcs for the groups that wait now: ranks, a source, and a vertex for each group. Flows are sought backwards. */
void
branchings_net(struct branchings *b)
{
	int source = b->n, m = 0;
	for (int a = 0; a < b->n_arcs; a++, m++) {
		b->tail[m] = b->left[a] > 0 ? b->arc[a].to : -1;
		b->head[m] = b->arc[a].from;
	}
	for (int v = 0; v < b->n; v++, m++) {
		b->tail[m] = v;
		b->head[m] = source;
	}
	for (int w = 0; w < b->n_waiting; w++, m++) {
		b->tail[m] = source + 1 + w;
		b->head[m] = source;
	}
	for (int w = 0; w < b->n_waiting; w++) {
		for (int i = 0; i < b->waiting[w].n; i++, m++) {
			b->tail[m] = b->waiting[w].order[i];
			b->head[m] = source + 1 + w;
		}
	}
	network_build(&b->net, b->n + 1 + b->n_waiting, m, b->tail, b->head, b->at);
	struct network_arc *arc = b->net.arc;
	m = 0;
	for (int a = 0; a < b->n_arcs; a++, m++)
		if (b->at[m] >= 0)
			arc[b->at[m]].room = b->left[a];
	for (int v = 0; v < b->n; v++)
		arc[b->at[m++]].room = b->owed[v];
	for (int w = 0; w < b->n_waiting; w++)
		arc[b->at[m++]].room = b->waiting[w].units;
	for (int w = 0; w < b->n_waiting; w++)
		for (int i = 0; i < b->waiting[w].n; i++)
			arc[b->at[m++]].room = NETWORK_INFINITE;
}

/* The maximum flow to y from x and from all groups but the current one, or `enough`, if that is less. */
static int64_t
net_flow(struct branchings *b, int x, int y, int64_t enough)
{
	struct network_arc *from_x = &b->net.arc[b->at[b->n_arcs + x]];
	from_x->room = NETWORK_INFINITE;
	int64_t flow = network_flow_again(&b->net, y, b->n, enough, b->at, b->n_arcs, &b->kept[y]);
	from_x->room = b->owed[x];
	return flow;
}
/* ---- growing ---- */

/* The ranks beyond the last cut. */
void
branchings_side(const struct branchings *b, uint64_t *set)
{
	memset(set, 0, (size_t)b->words * sizeof *set);
	for (int v = 0; v < b->n; v++)
		if (network_side(&b->net, v))
			set_bit(set, v);
}

void
branchings_keep_set(struct branchings *b, const uint64_t *set, int64_t slack)
{
	int i = b->n_cuts < MOST_CUTS ? b->n_cuts++ : 0;
	for (int other = i + 1; other < b->n_cuts; other++)
		i = b->slack[other] > b->slack[i] ? other : i;
	b->slack[i] = slack;
	memcpy(b->set + (size_t)i * (size_t)b->words, set, (size_t)b->words * sizeof *set);
}

static void
keep_cut(struct branchings *b, int a, int64_t slack)
{
	uint64_t *cut = b->cut + (size_t)a * (size_t)b->words;
	branchings_side(b, cut);
	b->limit[a] = slack;
	branchings_keep_set(b, cut, slack);
}

/* Would the ranks of a cut that is kept lose slack, if the current group took the arc? */
static bool
crosses(const struct branchings *b, int i, int a)
{
	const uint64_t *set = b->set + (size_t)i * (size_t)b->words;
	return has_bit(set, b->arc[a].to) && !has_bit(set, b->arc[a].from) && meets(set, b->now.has, b->words);
}

/* As many units of the current group as can take the arc by the cuts that are known. */
static int64_t
most_of(const struct branchings *b, int a)
{
	int64_t most = b->now.units < b->left[a] ? b->now.units : b->left[a];
	if (b->limit[a] >= 0 && b->limit[a] < most
	    && meets(b->cut + (size_t)a * (size_t)b->words, b->now.has, b->words))
		most = b->limit[a];
	for (int i = 0; i < b->n_cuts; i++)
		if (b->slack[i] < most && crosses(b, i, a))
			most = b->slack[i];
	return most;
}

/* How many units of the current group can take the arc; where that is `few` or less, no less than that. */
static int64_t
slack_of(struct branchings *b, int a, int64_t few)
{
	int64_t most = most_of(b, a);
	if (most <= few || b->unchecked)
		return most;
	int64_t mu = net_flow(b, b->arc[a].from, b->arc[a].to, b->others + most) - b->others;
	if (mu >= most)
		return most;
	mu = mu > 0 ? mu : 0;
	keep_cut(b, a, mu);
	return mu;
}

/* Is the arc of no use, or of no more than `few` units? */
static bool
is_passed_over(const struct branchings *b, int a, int64_t few)
{
	return has_bit(b->now.has, b->arc[a].to) || has_bit(b->now.dead, a) || b->left[a] <= few;
}

/* The first arc that all units of the current group can take, in the order of best_arc; -1: there is none. No arc gets
 * more slack, and ranks that join have places after those that were tried, so that the search goes on where it
 * ended, until the units are others. */
static int
whole_arc(struct branchings *b)
{
	for (; b->scan < b->now.n; b->scan++, b->scan_arc = 0) {
		int x = b->now.order[b->scan], first = b->first_out[x];
		for (; first + b->scan_arc < b->first_out[x + 1]; b->scan_arc++) {
			int a = b->out[first + b->scan_arc];
			if (is_passed_over(b, a, b->now.units - 1))
				continue;
			int64_t mu = slack_of(b, a, b->now.units - 1);
			if (mu == b->now.units)
				return a;
			if (mu == 0)
				set_bit(b->now.dead, a);
		}
	}
	return -1;
}

void
branchings_restart_scan(struct branchings *b)
{
	b->scan = b->scan_arc = 0;
}

/* The arc by which most units go on; of equal ones that with the fewest hops behind it. Where some go on, arcs with
 * more hops behind them are tried up to the patience. *units: 0, if there is none. */
static int
best_arc(struct branchings *b, int64_t *units)
{
	int best = b->patience == INT_MAX ? whole_arc(b) : -1;
	*units = best >= 0 ? b->now.units : 0;
	for (int i = 0; i < b->now.n && *units < b->now.units; i++) {
		int x = b->now.order[i];
		if (best >= 0 && b->now.depth[x] - b->now.depth[b->arc[best].from] > b->patience)
			break;
		for (int j = b->first_out[x]; j < b->first_out[x + 1] && *units < b->now.units; j++) {
			int a = b->out[j];
			if (is_passed_over(b, a, *units))
				continue;
			int64_t mu = slack_of(b, a, *units);
			if (mu == 0)
				set_bit(b->now.dead, a);
			if (mu > *units) {
				*units = mu;
				best = a;
			}
		}
	}
	return best;
}

void
branchings_copy_group(const struct branchings *b, const struct group *from, struct group *to)
{
	to->units = from->units;
	to->n = from->n;
	memcpy(to->has, from->has, (size_t)b->words * sizeof *to->has);
	memcpy(to->dead, from->dead, (size_t)b->arc_words * sizeof *to->dead);
	memcpy(to->order, from->order, (size_t)b->n * sizeof *to->order);
	memcpy(to->by, from->by, (size_t)b->n * sizeof *to->by);
	memcpy(to->depth, from->depth, (size_t)b->n * sizeof *to->depth);
}

Status
branchings_new_group(struct branchings *b, struct group *out)
{
	TRY(TEMP(b->ctx, out->has, b->words));
	TRY(TEMP(b->ctx, out->dead, b->arc_words));
	TRY(TEMP(b->ctx, out->order, b->n));
	TRY(TEMP(b->ctx, out->by, b->n));
	return TEMP(b->ctx, out->depth, b->n);
}

/* Ranks are in the order of their depth, so that short trees grow first. */
static void
join(struct branchings *b, int a)
{
	struct group *g = &b->now;
	int y = b->arc[a].to, at = g->n++;
	g->by[y] = a;
	g->depth[y] = g->depth[b->arc[a].from] + 1;
	set_bit(g->has, y);
	for (; at > 0 && g->depth[g->order[at - 1]] > g->depth[y]; at--)
		g->order[at] = g->order[at - 1];
	g->order[at] = y;
}

/* Some units of the current group take the arc, and are the current group; the others wait. */
static Status
grow(struct branchings *b, int a, int64_t units, bool *room)
{
	for (int i = 0; i < b->n_cuts; i++)
		b->slack[i] -= crosses(b, i, a) ? units : 0;
	b->left[a] -= units;
	if (!b->unchecked)
		b->net.arc[b->at[a]].room = b->left[a];
	*room = true;
	if (units < b->now.units) {
		struct group *rest = &b->waiting[b->n_waiting];
		*room = b->n_waiting < MOST_WAITING;
		if (!*room)
			return OK;
		if (!rest->has)
			TRY(branchings_new_group(b, rest));
		branchings_copy_group(b, &b->now, rest);
		rest->units -= units;
		b->others += rest->units;
		b->now.units = units;
		b->n_waiting++;
		branchings_restart_scan(b);
		if (!b->unchecked)
			branchings_net(b);
	}
	join(b, a);
	return OK;
}

/* The current group is everywhere: a tree. */
static Status
emit(struct branchings *b)
{
	const struct group *g = &b->now;
	const Supply *supply = b->supply;
	ArenaMark mark = arena_mark(&b->ctx->scratch);
	Edge *edge, *back = NULL;
	Packing *pack = b->pack;
	TRY(TEMP(b->ctx, edge, b->n));
	if (supply->opposite)
		TRY(TEMP(b->ctx, back, b->n));
	for (int i = 1; i < b->n; i++) {
		const Arc *a = &b->arc[g->by[g->order[i]]];
		TRY(supply_edge(b->ctx, supply, a->from, a->to, a->n_links, a->link, false, &edge[i - 1]));
		if (back)
			TRY(supply_edge(b->ctx, supply, a->from, a->to, a->n_links, a->link, true, &back[i - 1]));
	}
	pack->weight[pack->n_trees] = g->units;
	pack->demand[pack->n_trees] = b->root;
	TRY(tree_arrange(b->ctx, b->n, supply_collective(supply), back ? -1 : b->root, edge, back, b->n - 1,
	    &pack->tree[pack->n_trees++]));
	arena_release(&b->ctx->scratch, mark);
	return OK;
}

/* All units of the next root are the current group. */
void
branchings_next_root(struct branchings *b, enum state *state)
{
	do
		b->root++;
	while (b->root < b->n && b->owed[b->root] == 0);
	*state = b->root == b->n ? ENDED : progress(b->ctx, "trees of rank %d", b->root) > 0 ? GOING : STUCK;
	if (*state != GOING)
		return;
	b->now.units = b->owed[b->root];
	b->now.n = 1;
	b->now.order[0] = b->root;
	b->now.depth[b->root] = 0;
	memset(b->now.has, 0, (size_t)b->words * sizeof *b->now.has);
	memset(b->now.dead, 0, (size_t)b->arc_words * sizeof *b->now.dead);
	set_bit(b->now.has, b->root);
	b->others -= b->owed[b->root];
	b->owed[b->root] = 0;
}

/* The current group is everywhere: its tree, and the next group, or the next root. */
static Status
end_tree(struct branchings *b, enum state *state)
{
	TRY(emit(b));
	*state = b->pack->n_trees < b->room ? GOING : STUCK;
	if (*state == GOING && b->n_waiting > 0) {
		branchings_copy_group(b, &b->waiting[--b->n_waiting], &b->now);
		b->others -= b->now.units;
	} else if (*state == GOING) {
		branchings_next_root(b, state);
	}
	branchings_restart_scan(b);
	if (!b->unchecked && *state == GOING)
		branchings_net(b);
	return OK;
}

/* One hop more, or what follows on the last one. */
Status
branchings_step(struct branchings *b, enum state *state)
{
	int64_t most;
	bool room = false;
	if (b->now.n == b->n)
		return end_tree(b, state);
	int a = best_arc(b, &most);
	if (a >= 0 && !out_of_time(b->ctx, b->unchecked ? HOP_NS : FLOW_NS))
		TRY(grow(b, a, most, &room));
	*state = room ? GOING : STUCK;
	return OK;
}
