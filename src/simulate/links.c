/* How steps share links: weighted max-min fairness, in integers.
 *
 * Each link has a level, what it gives to each unit of weight of the steps that it bounds, and a step goes by the least
 * level of its links. A step that another link bounds, at a lower level, leaves the rest of its share to the others:
 *
 *	level of a link = (its rate - rates of its steps that others bound) / (weights of the steps that it bounds)
 *
 * which has one solution. (If two solutions differed, look at a link that differs with the least level of both: its
 * lower links have the same levels in both, so it bounds the same steps at the same level.) Levels are rounded down,
 * and that does not change the argument: the result is that of progressive filling, in which levels rise together and
 * a link that is full stops its steps (tests/oracle/simulated.py does that).
 *
 * Next to the level of another link rounding may leave a second solution; the lower one is taken, as by filling.
 *
 * What begins or ends changes the links of that step; the level of a link is found again when its steps changed, or
 * when a link below it has changed what one of its steps leaves. Others need no look. A link settles when all below it
 * have: so of the links that are due, the one with the least level is next, which saves work alone.
 *
 * Each link keeps the sums of the equation, and lists the flows that it bounds before the others. A level from these
 * sums that is above those at which others bound its flows is the one to be found. Only if it is not, all flows are
 * looked at.
 *
 * Steps are looked at by flows (flows.c): all that go over the same links have the same level.
 *
 * Clocks. All steps that a link bounds get the same for each of their weight: so a link has a clock that counts that,
 * the virtual time of generalized processor sharing (Parekh and Gallager, A Generalized Processor Sharing Approach to
 * Flow Control, 1993), and a step ends at a count that is known when it begins. A new level costs the same for one step
 * and for hundreds. Only a step that another link bounds from now on goes on by the clock of that one, with what it has
 * still to get. In which order, and by which of several links with one level, does not matter: all count the same.
 *
 * The next end of each link is in a tournament of times, often one that is too soon: by the level that the link had and
 * a sixteenth more. It is found again when the level rises beyond that, or when it comes first.
 *
 * Everything that begins or ends at one time is counted before anything gets a new level: so the steps of equal trees,
 * which begin and end together, cost one look at each link, not one for each pair of them. */
#include "simulate/link_clocks.h"
#include "base/heap.h"

/* About, for run_spend: of a link, of a flow or step that is looked at. */
enum { LINK_NS = 50, LOOK_NS = 10 };

static void
change(struct run *run, int l)
{
	if (!run->link[l].changed)
		run->changed.link[run->changed.n++] = l;
	run->link[l].changed = true;
}

/* None of the bytes that are left has begun to move, and this is how long they take. Less a billionth for rounding. */
static inline void
look_ahead(struct run *run, struct link_run *link, int64_t bytes, int times)
{
	run->late |= (double)run->now + link->to_move * link->byte > (double)run->most * (1 + 1e-9);
	link->to_move -= (double)bytes * times;
}

/* ---- flows ---- */

/* A link bounds a flow, or no longer. */
static void
move_entry(struct run *run, struct link_run *link, int at, bool bound)
{
	int to = bound ? link->n_bound++ : --link->n_bound;
	if (to == at)
		return;
	struct entry *list = &run->moving[link->first], entry = list[at];
	list[at] = list[to];
	list[to] = entry;
	run->place[run->flow[list[at].flow].first_place + list[at].place].at = at;
	run->place[run->flow[entry.flow].first_place + entry.place].at = to;
}

static inline bool
is_bound(const struct link_run *link, int at)
{
	return at < link->n_bound;
}

/* Weights of a flow that another link bounds at this level, or, below zero, no longer. */
static inline void
take(struct link_run *link, Wide level, int64_t weights)
{
	link->left -= level * weights;
	link->taken_weights += weights;
	if (level > link->below)
		link->below = level;
}

/* The least level of a flow's links but `except`. */
static Wide
least_level(const struct run *run, const struct flow_run *flow, int except)
{
	const struct place *place = &run->place[flow->first_place];
	Wide least = UNBOUND;
	for (int i = 0; i < flow->n_places; i++) {
		Wide level = run->link[place[i].link].level;
		if (level < least && place[i].link != except)
			least = level;
	}
	return least;
}

static inline Wide
level_of(const struct run *run, const struct flow_run *flow)
{
	return run->link[flow->bound].level;
}

static void
join_links(struct run *run, int f)
{
	struct flow_run *flow = &run->flow[f];
	struct place *place = &run->place[flow->first_place];
	Wide level = least_level(run, flow, NO_LINK);
	for (int i = 0; i < flow->n_places; i++) {
		struct link_run *link = &run->link[place[i].link];
		if (link->n == 0)
			link->since = run->now;
		place[i].at = link->n++;
		run->moving[link->first + place[i].at] = (struct entry){ .flow = f, .place = i, .other = NO_LINK };
		if (flow->n_places > 1)
			run->moving[link->first + place[i].at].other = flow->n_places > 2 ? SEVERAL : place[!i].link;
		if (link->level > level)
			continue;
		move_entry(run, link, place[i].at, true);
		flow->bound = place[i].link;
	}
	flow->clock = NO_LINK;
	flow->ahead = 0;
	stale_flow(run, f);
}

/* The last of each list takes the place of what leaves it. */
static void
leave_links(struct run *run, int f)
{
	const struct flow_run *flow = &run->flow[f];
	struct place *place = &run->place[flow->first_place];
	for (int i = 0; i < flow->n_places; i++) {
		struct link_run *link = &run->link[place[i].link];
		if (is_bound(link, place[i].at))
			move_entry(run, link, place[i].at, false);
		struct entry last = run->moving[link->first + --link->n];
		run->moving[link->first + place[i].at] = last;
		run->place[run->flow[last.flow].first_place + last.place].at = place[i].at;
		if (link->n > 0)
			continue;
		link->busy += run->now - link->since;
		link->since = run->now;
		link->below = 0;
	}
}

/* Steps that move on its links: one more, or one less. */
static void
count_step(struct run *run, struct flow_run *flow, int64_t weight)
{
	const struct place *place = &run->place[flow->first_place];
	flow->weights += weight;
	for (int i = 0; i < flow->n_places; i++) {
		struct link_run *link = &run->link[place[i].link];
		struct entry *entry = &run->moving[link->first + place[i].at];
		int64_t weights = weight * place[i].times;
		entry->weight += weights;
		if (flow->n_places == 2)
			entry->other_weight += weight * place[!i].times;
		if (is_bound(link, place[i].at))
			link->weights += weights;
		else
			take(link, level_of(run, flow), weights);
		change(run, place[i].link);
	}
}

/* Most steps end in the order in which they began; a shorter chunk goes before others. */
static void
queue_step(struct run *run, struct flow_run *flow, int slot)
{
	struct active *step = run->active;
	int *from = &flow->head;
	if (flow->head != NO_SLOT && step[flow->tail].end <= step[slot].end)
		from = &step[flow->tail].next;
	for (; *from != NO_SLOT && step[*from].end <= step[slot].end; run->work += LOOK_NS)
		from = &step[*from].next;
	step[slot].next = *from;
	*from = slot;
	if (step[slot].next == NO_SLOT)
		flow->tail = slot;
}

/* What each weight is to get of these bytes on links, rounded down. */
static Wide
work_of_step(int64_t bytes, int64_t weight)
{
	Wide work = (Wide)bytes * PS_PER_S << RATE_BITS;
	if (weight == WEIGHT_ONE)
		return work;
	if (work >> (126 - RATE_BITS) == 0)
		return (work << RATE_BITS) / weight;
	return (work / weight << RATE_BITS) + (work % weight << RATE_BITS) / weight;
}

/* Bytes of a step that all its links let pass at once, less than all. A bucket fills while nothing moves. */
static int64_t
pass_at_once(struct run *run, const struct flow_run *flow, int64_t bytes)
{
	const struct place *place = &run->place[flow->first_place];
	int64_t burst = run->ask->p.burst, most = bytes - 1;
	for (int i = 0; i < flow->n_places && burst > 0; i++) {
		struct link_run *link = &run->link[place[i].link];
		double filled = link->n > 0 ? 0 : (double)(run->now - link->since) / link->byte;
		link->tokens = filled < (double)(burst - link->tokens) ? link->tokens + (int64_t)filled : burst;
		if (link->n == 0)
			link->since = run->now;
		most = link->tokens < most ? link->tokens : most;
	}
	for (int i = 0; i < flow->n_places && burst > 0; i++)
		run->link[place[i].link].tokens -= most;
	return burst > 0 ? most : 0;
}

void
links_enter(struct run *run, int slot)
{
	struct active *step = &run->active[slot];
	const struct net_hop *hop = &run->net->hop[step->hop];
	struct flow_run *flow = &run->flow[hop->flow];
	const struct place *place = &run->place[flow->first_place];
	int64_t bytes = chunk_bytes(run, hop->segment, run->hop[step->hop].moved);
	for (int i = 0; i < flow->n_places; i++) {
		struct link_run *link = &run->link[place[i].link];
		link->moved += (Wide)bytes * place[i].times;
		look_ahead(run, link, bytes, place[i].times);
	}
	int64_t header = run->ask->p.header, left = header - pass_at_once(run, flow, bytes + header);
	bytes = left < 0 ? protocol_bytes(run->protocol, bytes + left) : protocol_bytes(run->protocol, bytes) + left;
	if (flow->head == NO_SLOT)
		join_links(run, hop->flow);
	step->end = work_of_step(bytes, hop->weight);
	if (flow->clock != NO_LINK)
		step->end += read_clock(run, &run->link[flow->clock]) + flow->ahead;
	queue_step(run, flow, slot);
	if (flow->head == slot && flow->clock != NO_LINK)
		change_end(run, hop->flow);
	count_step(run, flow, hop->weight);
}

/* The time of the link stays where it is if the next step has ended, too. */
int
links_leave(struct run *run)
{
	int l = clocks_first(&run->clocks);
	struct link_run *link = &run->link[l];
	int f = run->end[link->first].flow;
	struct flow_run *flow = &run->flow[f];
	int slot = flow->head;
	Wide clock = read_clock(run, link);
	flow->head = run->active[slot].next;
	if (flow->head != NO_SLOT)
		change_end(run, f);
	else
		remove_end(run, f);
	if (link->n_ends == 0 || run->end[link->first].end > clock)
		clocks_unset(&run->clocks, l);
	find_first(run);
	count_step(run, flow, -run->net->hop[run->active[slot].hop].weight);
	if (flow->head == NO_SLOT)
		leave_links(run, f);
	return slot;
}

/* ---- links that are due ---- */

/* A link that bounds nothing, as most ways into a GPU, goes on so while its flows leave something. */
static inline bool
is_idle(const struct link_run *link)
{
	return (link->n_bound == 0) & (link->level == UNBOUND) & (link->left >= link->taken_weights);
}

#define IS_LOWER(run, a, b) ((a).level < (b).level)

HEAP(put_due, const struct run, struct due, IS_LOWER, HEAP_UNMOVED)

static void
make_due(struct run *run, int l)
{
	struct due one = { 0, l };
	if (run->link[l].due || is_idle(&run->link[l]))
		return;
	Wide level = run->link[l].level >> (8 + LEVEL_BITS);
	one.level = level < INT64_MAX ? (int64_t)level : INT64_MAX;
	run->link[l].due = true;
	run->n_due++;
	put_due(run, run->due, run->n_due, run->n_due - 1, one);
}

/* That with the least level, which others depend on. */
static int
take_lowest(struct run *run)
{
	int l = run->due[0].link;
	run->n_due--;
	put_due(run, run->due, run->n_due, 0, run->due[run->n_due]);
	run->link[l].due = false;
	return l;
}

/* ---- levels ---- */

/* The levels of a flow's links are others now; before: its level until now. Other links than l are due if what the
 * flow leaves them has changed. */
static void
settle(struct run *run, int f, int l, Wide before)
{
	struct flow_run *flow = &run->flow[f];
	struct place *place = &run->place[flow->first_place];
	Wide level = least_level(run, flow, NO_LINK);
	for (int i = 0; i < flow->n_places; i++) {
		struct link_run *link = &run->link[place[i].link];
		bool was = is_bound(link, place[i].at), is = link->level == level;
		int64_t weights = run->moving[link->first + place[i].at].weight;
		if (was)
			link->weights -= weights;
		else
			take(link, before, -weights);
		if (is)
			link->weights += weights;
		else
			take(link, level, weights);
		if (was != is)
			move_entry(run, link, place[i].at, is);
		if (place[i].link != l && (!was || !is))
			make_due(run, place[i].link);
	}
	if (level_of(run, flow) != level) {
		for (int i = 0; run->link[flow->bound].level != level; i++)
			flow->bound = place[i].link;
		stale_flow(run, f);
	}
}

static void
set_level(struct run *run, int l, Wide level)
{
	struct link_run *link = &run->link[l];
	read_clock(run, link);
	link->level = level;
	if (level > link->fastest)
		stale_link(run, l);
	link->early = true;
}

/* Of the flows that link l bounds, those with another one whose level lies between now are bound by that one, and
 * others leave more or less to theirs. From the last to the first, as those that it bounds no longer leave the list. */
static void
tell_bound(struct run *run, int l, int n_bound, Wide before)
{
	const struct link_run *link = &run->link[l];
	const struct entry *entry = &run->moving[link->first];
	Wide level = link->level, most = level > before ? level : before;
	for (int k = n_bound - 1; k >= 0; k--) {
		if (entry[k].other == NO_LINK)
			continue;
		if (entry[k].other == SEVERAL || run->link[entry[k].other].level <= most) {
			settle(run, entry[k].flow, l, before);
			continue;
		}
		struct link_run *other = &run->link[entry[k].other];
		other->left -= (level - before) * entry[k].other_weight;
		if (level > other->below)
			other->below = level;
		if (!other->due)
			make_due(run, entry[k].other);
	}
}

/* Those that another link has bound: the link bounds some of them now. These take the first places of the list, and
 * what was there has been looked at. */
static void
tell_others(struct run *run, int l)
{
	const struct link_run *link = &run->link[l];
	const struct entry *entry = &run->moving[link->first];
	for (int k = link->n_bound; k < link->n; k++) {
		Wide level = level_of(run, &run->flow[entry[k].flow]);
		if (level >= link->level)
			settle(run, entry[k].flow, l, level);
	}
}

/* From the sums that the link has. False: it may bound flows that another one has bound until now. Levels are rounded
 * down, so that next to the level of a flow that another link bounds there may be two solutions, of which the lower one
 * is wanted. */
static bool
fill_from_sums(const struct link_run *link, Wide *level)
{
	*level = link->n_bound > 0 ? link->left / link->weights : UNBOUND;
	if (link->n_bound == link->n)
		return true;
	if (link->n_bound == 0)
		return link->left >= link->taken_weights;
	return *level > link->below && link->left - (link->below + 1) * link->weights >= link->taken_weights;
}

/* The level rises from that at which the link would bound all flows, and flows with lower ones are taken out. */
static Wide
fill_from_flows(struct run *run, int l)
{
	const struct link_run *link = &run->link[l];
	const struct entry *entry = &run->moving[link->first];
	struct other *other = run->other;
	int64_t weights = link->weights + link->taken_weights;
	Wide left = work_of_link(run, l), level = left / weights, below = 0;
	int n = link->n, before = n + 1;
	for (int k = 0; k < n; k++) {
		Wide least = UNBOUND;
		if (entry[k].other >= 0)
			least = run->link[entry[k].other].level;
		else if (entry[k].other == SEVERAL)
			least = least_level(run, &run->flow[entry[k].flow], l);
		other[k] = (struct other){ least, entry[k].weight };
	}
	for (; n < before; level = weights > 0 ? left / weights : UNBOUND) {
		before = n;
		n = 0;
		for (int k = 0; k < before; k++) {
			if (other[k].level >= level) {
				other[n++] = other[k];
				continue;
			}
			left -= other[k].level * other[k].weight;
			weights -= other[k].weight;
			below = other[k].level > below ? other[k].level : below;
		}
	}
	run->link[l].below = below;
	return level;
}

static void
find_level(struct run *run, int l)
{
	struct link_run *link = &run->link[l];
	for (bool again = link->n > 0; again;) {
		Wide level, before = link->level;
		int n_bound = link->n_bound;
		bool known = fill_from_sums(link, &level);
		run->work += LOOK_NS * (int64_t)(known ? n_bound : link->n);
		if (!known)
			level = fill_from_flows(run, l);
		if (level == before)
			return;
		set_level(run, l, level);
		if (!known)
			tell_others(run, l);
		tell_bound(run, l, n_bound, before);
		again = known && link->n_bound < n_bound;
	}
}

static Status
find_levels(struct run *run)
{
	for (; run->changed.n > 0; run->changed.n--) {
		int l = run->changed.link[run->changed.n - 1];
		run->link[l].changed = false;
		make_due(run, l);
	}
	while (run->n_due > 0) {
		find_level(run, take_lowest(run));
		TRY(run_spend(run, LINK_NS));
	}
	return OK;
}

Status
links_share(struct run *run)
{
	TRY(find_levels(run));
	for (; run->n_stale_flows > 0; run->n_stale_flows--)
		set_clock(run, run->stale_flow[run->n_stale_flows - 1]);
	for (; run->stale.n > 0; run->stale.n--)
		set_time(run, run->stale.link[run->stale.n - 1]);
	find_first(run);
	if (clocks_time(&run->clocks) == SIM_TIME_MOST)
		return fail(run->ctx, LIMIT, "%s: a message of %lld bytes takes more than 53 days",
		    run->net->plan->sched->topo->name, (long long)run->ask->m);
	return OK;
}

Status
links_carried(Ctx *ctx, const char *name, int64_t m, Wide moved, int64_t *out)
{
	if (moved > INT64_MAX)
		return fail(ctx, LIMIT, "%s: a message of %lld bytes: one link carries 2^63 bytes or more: want a "
		    "smaller message", name, (long long)m);
	*out = (int64_t)moved;
	return OK;
}
