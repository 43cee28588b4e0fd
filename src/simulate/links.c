/* How steps share links: weighted max-min fairness, in integers.
 *
 * Each link has a level, what it gives to each unit of weight of the steps that it bounds, and a step goes by the least
 * level of its links. A step that another link bounds, at a lower level, leaves the rest of its share to the others:
 *
 *	level of a link = (its rate - rates of its steps that others bound) / (weights of the steps that it bounds)
 *
 * which has one solution. (If two solutions differed, look at a link that differs with the least level of both: its
 * lower links are alike in both, so it bounds the same steps at the same level.) Levels and rates are rounded down, in
 * the order of the equation, and that does not change the argument: the result is that of progressive filling, in which
 * levels rise together and a link that is full stops its steps (tests/oracle/simulated.py does that).
 *
 * Next to the level of another link rounding may leave a second solution; the lower one is taken, as by filling.
 *
 * What begins or ends changes the links of that step; the level of a link is found again when its steps changed, or
 * when a link below it has changed what one of its steps leaves. Others need no look. A link settles when all below it
 * have: so of the links that are due, the one with the least level is next.
 *
 * Each link keeps the sums of the equation, and the highest level below its own and the lowest above that bound its
 * flows elsewhere, or something beyond them. A level from these sums that passes neither is the one to be found,
 * whatever the number of flows. Only if it does, all flows are looked at: from the level that the link has, as that is
 * mostly too low.
 *
 * Steps are looked at by flows (flows.c): all that go over the same links with the same weight have the same rate. A
 * flow counts what each of its steps has done, and a step ends at a count that is known when it begins. So a new rate
 * costs the same for one step and for hundreds, and a flow needs one clock, for the step that ends first.
 *
 * Everything that begins or ends at one time is counted before anything gets a new rate: so the steps of equal trees,
 * which begin and end together, cost one look at each link, not one for each pair of them. */
#include "simulate/run.h"

/* The level of a link that bounds no step: above all others. */
#define UNBOUND ((Wide)1 << 100)

int64_t
sim_link_rate(const SimParameters *p, const Link *link)
{
	int64_t rate = (int64_t)((Wide)link->capacity * p->efficiency[link->class] / PPM);
	return rate > 0 ? rate : 1;
}

int64_t
sim_add_rate(const SimParameters *p, const Topology *topo, const SimHop *hop)
{
	int64_t least = p->reduce ? p->reduce : INT64_MAX;
	for (int i = 0; p->reduce_by_link && i < hop->n_links; i++) {
		Wide rate = (Wide)sim_link_rate(p, &topo->link[hop->link[i]]) * p->reduce_by_link / PPM;
		if (rate < least)
			least = rate > 0 ? (int64_t)rate : 1;
	}
	return least < INT64_MAX ? least : 0;
}

int64_t
sim_link_latency(const SimAsk *ask, const Link *link)
{
	int64_t ps = (link->latency ? link->latency : ask->p.latency[link->class]) * PS_PER_NS;
	return by_packets(ask) ? ps / PPM * ask->p.packet_hop + ps % PPM * ask->p.packet_hop / PPM : ps;
}

/* A slot for each step that can be under way at once. */
static Status
new_slots(struct run *run)
{
	const struct net *net = run->net;
	int64_t most = run->ask->p.at_once ? run->ask->p.at_once * net->n_gpus : net->n_hops;
	for (int h = 0; h < net->n_hops; h++)
		most += net->hop[h].feeder >= 0;
	int n = most < net->n_hops ? (int)most : net->n_hops;
	TRY(TEMP(run->ctx, run->active, n));
	TRY(TEMP(run->ctx, run->free_slot, n));
	for (run->n_free = 0; run->n_free < n; run->n_free++)
		run->free_slot[run->n_free] = n - 1 - run->n_free;
	return OK;
}

/* With the room that the list of each link takes: all flows over it. */
static Status
new_flows(struct run *run)
{
	const struct net *net = run->net;
	int all = 0;
	for (int f = 0; f < net->n_flows; f++)
		all += net->flow[f].n_places;
	TRY(TEMP(run->ctx, run->flow, net->n_flows));
	TRY(TEMP(run->ctx, run->other, net->n_flows));
	TRY(TEMP(run->ctx, run->stale, net->n_flows));
	TRY(TEMP(run->ctx, run->place, all));
	TRY(TEMP(run->ctx, run->moving, all));
	all = 0;
	for (int f = 0; f < net->n_flows; f++) {
		const struct net_flow *flow = &net->flow[f];
		const struct net_place *from = &net->flow_place[flow->first_place];
		run->flow[f] = (struct flow_run){ .weight = flow->weight, .head = NO_SLOT, .first_place = all,
			.n_places = flow->n_places };
		for (int i = 0; i < flow->n_places; i++) {
			run->place[all++] = (struct place){ from[i].link, 0, from[i].times };
			run->link[from[i].link].n++;
		}
	}
	return clocks_new(run->ctx, net->n_flows, &run->clocks);
}

/* Bytes that each link is to carry. */
static void
count_bytes(struct run *run, const struct net_hop *hop)
{
	const struct net_flow *flow = &run->net->flow[hop->flow];
	const struct net_place *place = &run->net->flow_place[flow->first_place];
	for (int i = 0; i < flow->n_places; i++)
		run->link[place[i].link].left += (double)run->net->bytes[hop->segment] * place[i].times;
}

Status
links_new(struct run *run)
{
	const struct net *net = run->net;
	TRY(TEMP(run->ctx, run->link, net->n_links));
	TRY(TEMP(run->ctx, run->changed.link, net->n_links));
	TRY(TEMP(run->ctx, run->due, net->n_links));
	TRY(new_flows(run));
	for (int h = 0; h < net->n_hops; h++)
		count_bytes(run, &net->hop[h]);
	for (int l = 0, first = 0; l < net->n_links; l++) {
		run->link[l].first = first;
		first += run->link[l].n;
		run->link[l].n = 0;
		run->link[l].above = UNBOUND;
		run->link[l].byte = (double)(PS_PER_S << by_packets(run->ask)) / (double)net->rate[l];
	}
	return new_slots(run);
}

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
	run->late |= (double)run->now + link->left * link->byte > (double)run->most * (1 + 1e-9);
	link->left -= (double)bytes * times;
}

/* ---- flows ---- */

/* Of each step at that level, which is the least of its links but `except`. A step that is all that a link bounds has
 * all of what the others leave, to the last bit: one more than the level has, or not. */
static Wide
rate_at(const struct run *run, const struct flow_run *flow, int except, Wide level)
{
	const struct place *place = &run->place[flow->first_place];
	Wide rate = (level * flow->weight) >> RATE_BITS;
	for (int i = 0; i < flow->n_places; i++) {
		const struct link_run *link = &run->link[place[i].link];
		if (place[i].link != except && link->level == level && link->alone != rate + 1)
			return rate;
	}
	return rate + 1;
}

/* What a flow knows of the levels of its links; its share as by rate_at. */
static void
see_levels(const struct run *run, struct flow_run *flow)
{
	const struct place *place = &run->place[flow->first_place];
	Wide least = run->link[place[0].link].level, alone = run->link[place[0].link].alone;
	flow->lowest = place[0].link;
	for (int i = 1; i < flow->n_places; i++) {
		const struct link_run *link = &run->link[place[i].link];
		if (link->level > least)
			continue;
		if (link->level < least) {
			least = link->level;
			alone = link->alone;
			flow->lowest = place[i].link;
		} else if (link->alone != alone) {
			alone = 0;
		}
	}
	Wide rate = (least * flow->weight) >> RATE_BITS;
	flow->level = least;
	flow->share = rate + (alone == rate + 1);
}

/* The least level of a flow's links but `except`. */
static Wide
least_level(const struct run *run, const struct flow_run *flow, int except)
{
	const struct place *place = &run->place[flow->first_place];
	Wide least = UNBOUND;
	if (flow->lowest != except)
		return flow->level;
	for (int i = 0; i < flow->n_places; i++) {
		Wide level = run->link[place[i].link].level;
		if (level < least && place[i].link != except)
			least = level;
	}
	return least;
}

/* Steps of a flow that another link bounds, or no longer: with this rate each. */
static inline void
take(struct link_run *link, const struct flow_run *flow, Wide rate, int steps)
{
	link->taken += rate * steps;
	link->taken_weights += flow->weight * steps;
	link->taken_steps += steps;
}

/* How far the level of link l may go, as far as this flow is concerned. */
static inline void
see_room(struct run *run, int l, const struct flow_run *flow)
{
	struct link_run *link = &run->link[l];
	if (flow->level < link->level) {
		if (flow->level > link->below)
			link->below = flow->level;
	} else {
		Wide least = least_level(run, flow, l);
		if (least < link->above)
			link->above = least;
	}
}

/* It gets a new rate, or a new clock. */
static inline void
make_stale(struct run *run, int f)
{
	if (!run->flow[f].stale)
		run->stale[run->n_stale++] = f;
	run->flow[f].stale = true;
}

static void
join_links(struct run *run, int f)
{
	struct flow_run *flow = &run->flow[f];
	struct place *place = &run->place[flow->first_place];
	for (int i = 0; i < flow->n_places; i++) {
		struct link_run *link = &run->link[place[i].link];
		if (link->n == 0)
			link->since = run->now;
		place[i].at = link->n;
		run->moving[link->first + link->n++] = (struct entry){ f, place[i].times, i };
		link->joined += flow->n_places > 1;
	}
	see_levels(run, flow);
	for (int i = 0; i < flow->n_places && flow->n_places > 1; i++)
		see_room(run, place[i].link, flow);
	flow->done = flow->rate = 0;
	flow->since = run->now;
	flow->untimed = true;
}

/* The last of each list takes the place of what leaves it. */
static void
leave_links(struct run *run, int f)
{
	const struct flow_run *flow = &run->flow[f];
	const struct place *place = &run->place[flow->first_place];
	for (int i = 0; i < flow->n_places; i++) {
		struct link_run *link = &run->link[place[i].link];
		struct entry last = run->moving[link->first + --link->n];
		run->moving[link->first + place[i].at] = last;
		run->place[run->flow[last.flow].first_place + last.place].at = place[i].at;
		link->joined -= flow->n_places > 1;
		if (link->n > 0)
			continue;
		link->busy += run->now - link->since;
		link->below = 0;
		link->above = UNBOUND;
	}
}

/* Steps that move on its links: one more, or one less. */
static void
count_step(struct run *run, const struct flow_run *flow, int by)
{
	const struct place *place = &run->place[flow->first_place];
	for (int i = 0; i < flow->n_places; i++) {
		struct link_run *link = &run->link[place[i].link];
		int steps = by * place[i].times;
		link->sharing += steps;
		link->weights += steps * flow->weight;
		if (flow->level < link->level)
			take(link, flow, flow->share, steps);
		change(run, place[i].link);
	}
}

/* What the steps of a flow have done until now. */
static void
do_work(const struct run *run, struct flow_run *flow)
{
	flow->done += flow->rate * (run->now - flow->since);
	flow->since = run->now;
}

/* Most steps end in the order in which they began; a shorter chunk goes before others. */
static void
queue_step(struct run *run, struct flow_run *flow, int slot)
{
	struct active *step = run->active;
	int *from = &flow->head;
	if (flow->n > 0 && step[flow->tail].end <= step[slot].end)
		from = &step[flow->tail].next;
	while (*from != NO_SLOT && step[*from].end <= step[slot].end)
		from = &step[*from].next;
	step[slot].next = *from;
	*from = slot;
	flow->n++;
	flow->untimed |= flow->head == slot;
	if (step[slot].next == NO_SLOT)
		flow->tail = slot;
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
	if (flow->n == 0)
		join_links(run, hop->flow);
	do_work(run, flow);
	step->end = flow->done + ((Wide)bytes * PS_PER_S << (RATE_BITS + by_packets(run->ask)));
	queue_step(run, flow, slot);
	if (flow->untimed)
		make_stale(run, hop->flow);
	count_step(run, flow, 1);
}

/* The clock stays where it is if the next step of the flow has ended, too. */
int
links_leave(struct run *run)
{
	int f = run->clocks.heap[0].id;
	struct flow_run *flow = &run->flow[f];
	int slot = flow->head;
	flow->head = run->active[slot].next;
	do_work(run, flow);
	count_step(run, flow, -1);
	if (--flow->n == 0 || run->active[flow->head].end > flow->done) {
		clocks_pop(&run->clocks);
		flow->untimed = true;
		make_stale(run, f);
	}
	if (flow->n == 0)
		leave_links(run, f);
	return slot;
}

/* ---- levels ---- */

/* What a link still has for the steps that no other link bounds. */
struct filling {
	Wide left, level;
	Wide high;		/* its level so far */
	Wide below;		/* the highest level of others that bound a flow of it, below that */
	Wide above;		/* the lowest level of others of the flows that are left */
	int64_t weights;
	int sharing;
};

static Wide
work_of_link(const struct run *run, int l)
{
	return (Wide)run->net->rate[l] << RATE_BITS;
}

static void
raise_level(struct filling *f)
{
	if (f->sharing == 0)
		f->level = UNBOUND;
	else
		f->level = f->left > 0 ? (f->left << RATE_BITS) / f->weights : 0;
}

/* With all taken out that have levels below f->high. Rates are rounded down, by 2^RATE_BITS in weight times level at
 * most, so that next to the level of a flow that has been taken out there may be two solutions, of which the lower one
 * is wanted. */
static bool
is_lowest(const struct link_run *link, const struct filling *f)
{
	Wide rounding = link->weights + ((Wide)link->sharing << RATE_BITS);
	if (f->sharing == 0)
		return f->left > rounding >> RATE_BITS;
	return f->high < UNBOUND && f->level >= f->high && (f->high - f->below - 2) * f->weights > rounding;
}

/* From the sums that the link has. False: other flows may have to be taken out, or fewer. */
static bool
fill_from_sums(const struct run *run, int l, struct filling *f)
{
	const struct link_run *link = &run->link[l];
	*f = (struct filling){ .left = work_of_link(run, l) - link->taken, .high = link->level, .below = link->below,
		.weights = link->weights - link->taken_weights, .sharing = link->sharing - link->taken_steps };
	raise_level(f);
	if (link->joined == 0)
		return true;
	if (f->level < link->level) {
		f->high = f->level;
		return f->below < f->level && is_lowest(link, f);
	}
	return (link->level == 0 || is_lowest(link, f)) && (f->level == link->level || link->above >= f->level ||
	    f->sharing == 0);
}

/* A flow that another link bounds, at a level below that of this one, leaves the rest of its share. */
static inline void
take_out(const struct run *run, int l, const struct flow_run *flow, int times, Wide level, struct filling *f)
{
	int steps = flow->n * times;
	Wide rate = level == run->link[l].level || flow->lowest == l ? rate_at(run, flow, l, level) : flow->share;
	f->left -= rate * steps;
	f->weights -= flow->weight * steps;
	f->sharing -= steps;
	if (level > f->below)
		f->below = level;
}

/* All that move on other links, too, are taken out if those have levels below f->high, and listed if not. */
static int
first_look(const struct run *run, int l, struct filling *f)
{
	const struct link_run *link = &run->link[l];
	const struct entry *entry = &run->moving[link->first];
	int n = 0;
	for (int k = 0; k < link->n; k++) {
		const struct flow_run *flow = &run->flow[entry[k].flow];
		if (flow->n_places == 1)
			continue;
		Wide level = least_level(run, flow, l);
		if (level < f->high) {
			take_out(run, l, flow, entry[k].times, level, f);
			continue;
		}
		run->other[n++] = (struct other){ level, entry[k].flow, entry[k].times };
		f->above = level < f->above ? level : f->above;
	}
	return n;
}

/* Those of the list with levels below f->high are taken out. Returns how many are left. */
static int
look_again(const struct run *run, int l, int n, struct filling *f)
{
	int kept = 0;
	f->above = UNBOUND;
	for (int k = 0; k < n; k++) {
		struct other *other = &run->other[k];
		if (other->level < f->high) {
			take_out(run, l, &run->flow[other->flow], other->times, other->level, f);
			continue;
		}
		f->above = other->level < f->above ? other->level : f->above;
		run->other[kept++] = *other;
	}
	return kept;
}

/* From a level that is not above the one to be found: each look raises it, until there is nothing to take out. False:
 * it may have been above. */
static bool
fill_from(const struct run *run, int l, Wide low, struct filling *f)
{
	const struct link_run *link = &run->link[l];
	*f = (struct filling){ .left = work_of_link(run, l), .high = low, .above = UNBOUND, .weights = link->weights,
		.sharing = link->sharing };
	int n = first_look(run, l, f);
	raise_level(f);
	if (low > 0 && !is_lowest(link, f))
		return false;
	while (f->level > f->high && f->level > f->above) {
		f->high = f->level;
		n = look_again(run, l, n, f);
		raise_level(f);
	}
	return true;
}

/* Most levels stay or rise: so it begins at the level that the link has. */
static struct filling
fill_link(struct run *run, int l)
{
	struct link_run *link = &run->link[l];
	struct filling f;
	if (!fill_from(run, l, link->level, &f))
		fill_from(run, l, 0, &f);
	link->taken = work_of_link(run, l) - f.left;
	link->taken_weights = link->weights - f.weights;
	link->taken_steps = link->sharing - f.sharing;
	link->below = f.below;
	link->above = f.above;
	return f;
}

/* ---- links that are due ---- */

static void
make_due(struct run *run, int l)
{
	struct due *due = run->due, one = { run->link[l].level, l };
	int at = run->n_due;
	if (run->link[l].due)
		return;
	run->link[l].due = true;
	run->n_due++;
	for (; at > 0 && one.level < due[(at - 1) / 2].level; at = (at - 1) / 2)
		due[at] = due[(at - 1) / 2];
	due[at] = one;
}

/* That with the least level, which others depend on. */
static int
take_lowest(struct run *run)
{
	struct due *due = run->due, last = due[--run->n_due];
	int at = 0, l = due[0].link;
	for (int next; (next = 2 * at + 1) < run->n_due; at = next) {
		if (next + 1 < run->n_due && due[next + 1].level < due[next].level)
			next++;
		if (due[next].level >= last.level)
			break;
		due[at] = due[next];
	}
	due[at] = last;
	run->link[l].due = false;
	return l;
}

/* What a flow has taken of one of its links is no longer what it takes. */
static inline void
take_anew(struct run *run, const struct place *place, Wide level, Wide share, const struct flow_run *flow)
{
	struct link_run *link = &run->link[place->link];
	int steps = flow->n * place->times;
	if (level < link->level)
		take(link, flow, share, -steps);
	if (flow->level < link->level)
		take(link, flow, flow->share, steps);
	if (level < link->level || flow->level < link->level)
		make_due(run, place->link);
}

/* The level of its link l has changed: so may what bounds it, and what it leaves to its other links. */
static void
see_change(struct run *run, int f, int l)
{
	struct flow_run *flow = &run->flow[f];
	const struct place *place = &run->place[flow->first_place];
	Wide level = flow->level, share = flow->share;
	see_levels(run, flow);
	if (flow->share != share)
		make_stale(run, f);
	for (int i = 0; i < flow->n_places; i++) {
		if (place[i].link == l)
			continue;
		if (flow->level != level || flow->share != share)
			take_anew(run, &place[i], level, share, flow);
		see_room(run, place[i].link, flow);
	}
}

/* Likewise, if it has no other link. */
static inline void
follow_level(struct run *run, int f, const struct link_run *link)
{
	struct flow_run *flow = &run->flow[f];
	Wide rate = (link->level * flow->weight) >> RATE_BITS, share = rate + (link->alone == rate + 1);
	flow->level = link->level;
	if (flow->share != share)
		make_stale(run, f);
	flow->share = share;
}

/* before: its level until now. What another link bounds at a level below both is as it was. */
static void
tell_flows(struct run *run, int l, Wide before)
{
	const struct link_run *link = &run->link[l];
	const struct entry *entry = &run->moving[link->first];
	Wide least = before < link->level ? before : link->level;
	for (int k = 0; k < link->n; k++) {
		const struct flow_run *flow = &run->flow[entry[k].flow];
		struct link_run *lowest = &run->link[flow->lowest];
		if (flow->n_places == 1)
			follow_level(run, entry[k].flow, link);
		else if (flow->level >= least)
			see_change(run, entry[k].flow, l);
		else if (least < before && least < lowest->above)
			lowest->above = least;
	}
}

/* The sums of a link, flow by flow. */
static void
sum_up(struct run *run, int l)
{
	struct link_run *link = &run->link[l];
	const struct entry *entry = &run->moving[link->first];
	link->taken = link->taken_weights = link->taken_steps = 0;
	link->below = 0;
	link->above = UNBOUND;
	for (int k = 0; k < link->n; k++) {
		const struct flow_run *flow = &run->flow[entry[k].flow];
		if (flow->level < link->level)
			take(link, flow, flow->share, flow->n * entry[k].times);
		see_room(run, l, flow);
	}
}

static void
find_level(struct run *run, int l)
{
	struct link_run *link = &run->link[l];
	struct filling f;
	if (link->n == 0)
		return;
	if (!fill_from_sums(run, l, &f))
		f = fill_link(run, l);
	Wide before = link->level, alone = f.sharing == 1 ? f.left : 0;
	if (f.level != before || alone != link->alone) {
		link->level = f.level;
		link->alone = alone;
		tell_flows(run, l, before);
	}
	if (f.level < f.high)
		sum_up(run, l);
}

/* ---- rates ---- */

static inline Status
set_rate(struct run *run, int f)
{
	struct flow_run *flow = &run->flow[f];
	flow->stale = false;
	if (flow->n == 0 || (flow->share == flow->rate && !flow->untimed))
		return OK;
	do_work(run, flow);
	flow->rate = flow->share;
	flow->untimed = false;
	Wide left = run->active[flow->head].end - flow->done;
	if (flow->rate == 0 || (left - 1) / flow->rate >= SIM_TIME_MOST - run->now)
		return fail(run->ctx, LIMIT, "%s: a message of %lld bytes takes more than 53 days",
		    run->net->plan->sched->topo->name, (long long)run->ask->m);
	clocks_set(&run->clocks, f, run->now + (int64_t)((left - 1) / flow->rate) + 1);
	return OK;
}

static void
find_levels(struct run *run)
{
	for (; run->changed.n > 0; run->changed.n--) {
		int l = run->changed.link[run->changed.n - 1];
		run->link[l].changed = false;
		make_due(run, l);
	}
	while (run->n_due > 0)
		find_level(run, take_lowest(run));
}

Status
links_share(struct run *run)
{
	find_levels(run);
	for (; run->n_stale > 0; run->n_stale--)
		TRY(set_rate(run, run->stale[run->n_stale - 1]));
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
