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
 * comparison of bit sets tells the next time.
 *
 * Most links have slack for all that they have left. So many hops are taken on trust, and a flow to each rank looks at
 * all sets at once: these hops are as a flow for each of them would have had them if no slack is below 0 now. Else they
 * are taken back, the sets that lack slack are known from then on, and fewer hops follow; where that is too few, some
 * with a flow for each. */
#include "graph/network.h"
#include "plan/pack/directions.h"
#include "plan/pack/orient.h"
#include "plan/pack/pack.h"
#include "plan/pack/shallow.h"

#include <limits.h>
#include <string.h>

enum {
	MOST_WAITING = 64,	/* groups that stayed behind, at once */
	RANK_BITS = 64,
	FLOW_NS = 50000,	/* about what a flow takes */
	MOST_CELLS = 1 << 28,	/* links times ranks: a bit for each */
	KEPT_ARCS = 4,		/* arcs of a rank's last flow that are kept, times the ranks */
	MOST_LEARNED = 16,	/* sets without slack that hops on trust have shown, at once */
	MOST_TRUSTED = 1 << 24,	/* hops */
	HOP_NS = 500,		/* about what a hop on trust takes */
	MOST_CUTS = 512,	/* sets whose slack is kept up to date, those with least */
	MOST_KEPT = 1 << 22,	/* of all ranks */
	WANTED_PARTS = 8,	/* of a root's units, in trees through switches that are not of all */
	MOST_PARTS = 64,
	MOST_ORIENTED = 64,	/* ranks of an allreduce, likewise */
	MOST_TRIED = 64 * 64,	/* roots times ranks: more are packed once, not three times */
};
#define MOST_UNITS (INT64_C(1) << 60)

/* Units on their way from the current root. */
struct group {
	int64_t units;
	uint64_t *has;		/* bit set of ranks */
	uint64_t *dead;		/* bit set of arcs: they are of no use to it */
	int n;			/* ranks in `order` */
	int *order;		/* of joining; the root first */
	int *by;		/* of each rank: the arc by which it joined */
	int *depth;		/* of each rank */
};

/* What hops on trust are taken back to. */
struct saved {
	int root, n_trees, n_waiting;
	int64_t others, *left, *owed, slack[MOST_CUTS];
	struct group now, waiting[MOST_WAITING];
	ArenaMark run;
};

/* STUCK: time is over, or more groups wait than there is room for, or no hop is safe. */
enum state { GOING, STUCK, ENDED };

struct branchings {
	Ctx *ctx;
	const Topology *topo;
	const Supply *supply;
	int n, n_arcs, words, arc_words;
	Arc *arc;
	int *first_out, *out;	/* arcs out of a rank: out[first_out[v] .. first_out[v + 1] - 1] */
	Frac unit;		/* of rate, bytes/s */
	int64_t *left;		/* units of each arc that are left */
	int64_t *owed;		/* of each rank: units of a root that has not begun */
	int patience;		/* hops that a branch may be longer to take more units */
	int64_t others;		/* units of all groups but the current one */
	int n_waiting;
	struct group waiting[MOST_WAITING];	/* the last one goes on first */
	struct group now;
	int root;		/* of the current group */
	int scan, scan_arc;	/* where to go on for arcs that all units can take: place in now.order, and in `out` */
	bool trusts;		/* no flows: hops have what the cuts that are known leave */
	struct saved saved;
	uint64_t *learned;	/* sets */
	int n_learned;
	uint64_t *cut;		/* of each arc: the ranks beyond the last cut that limited it */
	int64_t *limit;		/* what slack these had then, at most; below 0: none did */
	uint64_t *set;		/* cuts of any arc, and what slack they have */
	int64_t slack[MOST_CUTS];
	int n_cuts;
	Network net;		/* arcs; from the source to each rank; from the source to each group */
	int *tail, *head, *at;	/* of its arcs */
	struct network_kept *kept;	/* of each rank: the last flow from it, for the next to begin with */
	Packing *pack;
	int room;		/* for trees */
};

static bool
has_bit(const uint64_t *set, int i)
{
	return set[i / RANK_BITS] >> i % RANK_BITS & 1;
}

static void
set_bit(uint64_t *set, int i)
{
	set[i / RANK_BITS] |= UINT64_C(1) << i % RANK_BITS;
}

static bool
meets(const uint64_t *a, const uint64_t *b, int words)
{
	for (int i = 0; i < words; i++)
		if (a[i] & b[i])
			return true;
	return false;
}

/* ---- the network ---- */

/* The arcs for the groups that wait now: ranks, a source, and a vertex for each group. Flows are sought backwards. */
static void
net_build(struct branchings *b)
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
static void
take_side(const struct branchings *b, uint64_t *set)
{
	memset(set, 0, (size_t)b->words * sizeof *set);
	for (int v = 0; v < b->n; v++)
		if (network_side(&b->net, v))
			set_bit(set, v);
}

static void
keep_set(struct branchings *b, const uint64_t *set, int64_t slack)
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
	take_side(b, cut);
	b->limit[a] = slack;
	keep_set(b, cut, slack);
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
	if (most <= few || b->trusts)
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
 * more slack, and ranks that join have places after those that were looked at, so that the search goes on where it
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

static void
restart_scan(struct branchings *b)
{
	b->scan = b->scan_arc = 0;
}

/* The arc by which most units go on; of equal ones that with the fewest hops behind it. Where some go on, arcs with
 * more hops behind them are looked at up to the patience. *units: 0, if there is none. */
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

static void
copy_group(const struct branchings *b, const struct group *from, struct group *to)
{
	to->units = from->units;
	to->n = from->n;
	memcpy(to->has, from->has, (size_t)b->words * sizeof *to->has);
	memcpy(to->dead, from->dead, (size_t)b->arc_words * sizeof *to->dead);
	memcpy(to->order, from->order, (size_t)b->n * sizeof *to->order);
	memcpy(to->by, from->by, (size_t)b->n * sizeof *to->by);
	memcpy(to->depth, from->depth, (size_t)b->n * sizeof *to->depth);
}

static Status
new_group(struct branchings *b, struct group *out)
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
	if (!b->trusts)
		b->net.arc[b->at[a]].room = b->left[a];
	*room = true;
	if (units < b->now.units) {
		struct group *rest = &b->waiting[b->n_waiting];
		*room = b->n_waiting < MOST_WAITING;
		if (!*room)
			return OK;
		if (!rest->has)
			TRY(new_group(b, rest));
		copy_group(b, &b->now, rest);
		rest->units -= units;
		b->others += rest->units;
		b->now.units = units;
		b->n_waiting++;
		restart_scan(b);
		if (!b->trusts)
			net_build(b);
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
static void
next_root(struct branchings *b, enum state *state)
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
		copy_group(b, &b->waiting[--b->n_waiting], &b->now);
		b->others -= b->now.units;
	} else if (*state == GOING) {
		next_root(b, state);
	}
	restart_scan(b);
	if (!b->trusts && *state == GOING)
		net_build(b);
	return OK;
}

/* One hop more, or what follows on the last one. */
static Status
step(struct branchings *b, enum state *state)
{
	int64_t most;
	bool room = false;
	if (b->now.n == b->n)
		return end_tree(b, state);
	int a = best_arc(b, &most);
	if (a >= 0 && !out_of_time(b->ctx, b->trusts ? HOP_NS : FLOW_NS))
		TRY(grow(b, a, most, &room));
	*state = room ? GOING : STUCK;
	return OK;
}

/* ---- hops on trust ---- */

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
	copy_group(b, &b->now, &s->now);
	for (int i = 0; i < b->n_waiting; i++) {
		if (!s->waiting[i].has)
			TRY(new_group(b, &s->waiting[i]));
		copy_group(b, &b->waiting[i], &s->waiting[i]);
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
	copy_group(b, &s->now, &b->now);
	for (int i = 0; i < s->n_waiting; i++)
		copy_group(b, &s->waiting[i], &b->waiting[i]);
	arena_release(&b->ctx->run, s->run);
	restart_scan(b);
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
	net_build(b);
	b->n_waiting--;
	*last = was;
	for (int v = 0; v < b->n && b->n_learned < MOST_LEARNED; v++) {
		if (b->owed[v] < total && network_flow(&b->net, v, b->n, total) < total)
			take_side(b, b->learned + (size_t)b->n_learned++ * (size_t)b->words);
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
go_on_trust(struct branchings *b, int many, int *hops, bool *right, enum state *state)
{
	TRY(save(b));
	b->trusts = true;
	for (*hops = 0; *hops < many && *state == GOING; ++*hops)
		TRY(step(b, state));
	b->trusts = false;
	b->n_learned = 0;
	*right = *state == ENDED || b->ctx->late
	    || (*state == GOING && b->n_waiting < MOST_WAITING && holds(b));
	if (*right)
		return OK;
	restore(b);
	for (int i = 0; i < b->n_learned; i++) {
		const uint64_t *set = b->learned + (size_t)i * (size_t)b->words;
		keep_set(b, set, slack_of_set(b, set));
	}
	*state = GOING;
	return OK;
}

static Status
go_with_flows(struct branchings *b, int many, enum state *state)
{
	net_build(b);
	for (int hops = 0; hops < many && *state == GOING; hops++)
		TRY(step(b, state));
	return OK;
}

/* Everything. *done: false where time is over, or more groups wait than there is room for. */
static Status
grow_all(struct branchings *b, bool *done)
{
	int many = b->n, few = b->n, hops;
	enum state state;
	bool right;
	b->root = -1;
	next_root(b, &state);
	restart_scan(b);
	while (state == GOING) {
		TRY(go_on_trust(b, many, &hops, &right, &state));
		many = !right ? hops / 4 : many < MOST_TRUSTED ? 2 * many : many;
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
	TRY(new_group(b, &b->saved.now));
	return new_group(b, &b->now);
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
	TRY(NEW(b->ctx, b->pack, 1));
	TRY(NEW(b->ctx, b->pack->tree, b->room));
	TRY(NEW(b->ctx, b->pack->weight, b->room));
	TRY(NEW(b->ctx, b->pack->demand, b->room));
	b->pack->unit = b->unit;
	TRY(grow_all(b, &done));
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

/* Trees up and trees down, both of one root, as pairs: deep ones of one way with shallow ones of the other. */
static Status
make_pairs(Ctx *ctx, const Topology *topo, const Packing *up, const Packing *down, Packing **out)
{
	int *first, *second, *work;
	int64_t left = 0, right = 0;
	Packing *pack;
	TRY(TEMP(ctx, work, topo->n_ranks));
	TRY(by_depth(ctx, up, false, work, &first));
	TRY(by_depth(ctx, down, true, work, &second));
	TRY(NEW(ctx, pack, 1));
	*pack = (Packing){ .unit = up->unit };
	TRY(NEW(ctx, pack->tree, up->n_trees + down->n_trees));
	TRY(NEW(ctx, pack->weight, up->n_trees + down->n_trees));
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
	int root = orient_root(all);
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

Status
pack_branchings(Ctx *ctx, const Topology *topo, const Bound *bound, const Ask *ask, Packing **out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	int demands = collective_demands(ask->coll, topo->n_ranks), root = ask->root;
	Supply supply = { .topo = topo, .into = ask->coll != ALLREDUCE && collective_reduces(ask->coll) };
	int64_t *capacity, *owed, units;
	struct branchings *b;
	bool fits = true;
	Frac rate;
	*out = NULL;
	if (!is_served(topo, ask->coll)
	    || !frac_div(bound->rate, (Frac){ collective_shares(ask->coll, topo->n_ranks), 1 }, &rate))
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
			owed[r] = demands > 1 || r == root ? supply.total / demands : 0;
		if (fits)
			TRY(pack_supply(b, ask, &supply, out));
		if (ask->coll == ALLREDUCE && !supply.opposite)
			TRY(pack_directions(b, ask, &supply, bound, out));
	}
	if (*out)
		log_verbose(ctx, "flows: %d trees, at the bound", (*out)->n_trees);
	arena_release(&ctx->scratch, mark);
	return OK;
}
