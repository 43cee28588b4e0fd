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
 * when a link below it has changed what bounds a step in common. Others need no look. A link settles when all below it
 * have: so of the links that are due, the one with the least level is next. Its level is looked for from the one that
 * it has, as that is mostly right, or too low.
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
	TRY(TEMP(run->ctx, run->place, all));
	TRY(TEMP(run->ctx, run->moving, all));
	all = 0;
	for (int f = 0; f < net->n_flows; f++) {
		const struct net_flow *flow = &net->flow[f];
		const struct net_place *from = &net->place[flow->first_place];
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
	const struct net_place *place = &run->net->place[hop->first_place];
	for (int i = 0; i < hop->n_places; i++)
		run->link[place[i].link].left += (double)run->net->bytes[hop->segment] * place[i].times;
}

Status
links_new(struct run *run)
{
	const struct net *net = run->net;
	TRY(TEMP(run->ctx, run->link, net->n_links));
	TRY(TEMP(run->ctx, run->changed.link, net->n_links));
	TRY(TEMP(run->ctx, run->shared.link, net->n_links));
	TRY(TEMP(run->ctx, run->due, net->n_links));
	TRY(new_flows(run));
	for (int h = 0; h < net->n_hops; h++)
		count_bytes(run, &net->hop[h]);
	for (int l = 0, first = 0; l < net->n_links; l++) {
		run->link[l].first = first;
		first += run->link[l].n;
		run->link[l].n = 0;
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

/* What a flow knows of the levels of its links. */
static void
see_levels(const struct run *run, struct flow_run *flow)
{
	const struct place *place = &run->place[flow->first_place];
	flow->level = flow->other = UNBOUND;
	flow->lowest = place[0].link;
	for (int i = 0; i < flow->n_places; i++) {
		Wide level = run->link[place[i].link].level;
		if (level < flow->level) {
			flow->other = flow->level;
			flow->level = level;
			flow->lowest = place[i].link;
		} else if (level < flow->other) {
			flow->other = level;
		}
	}
	flow->share = rate_at(run, flow, -1, flow->level);
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
		if (link->n == 0)
			link->busy += run->now - link->since;
	}
}

/* Steps that move on its links: one more, or one less. */
static void
count_step(struct run *run, const struct flow_run *flow, int by)
{
	const struct place *place = &run->place[flow->first_place];
	for (int i = 0; i < flow->n_places; i++) {
		struct link_run *link = &run->link[place[i].link];
		link->sharing += by * place[i].times;
		link->weights += by * flow->weight * place[i].times;
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
	}
	if (flow->n == 0)
		leave_links(run, f);
	return slot;
}

/* ---- levels ---- */

/* The least level of a flow's links but `except`. */
static inline Wide
least_level(const struct flow_run *flow, int except)
{
	return flow->lowest == except ? flow->other : flow->level;
}

/* What a link still has for the steps that no other link bounds. */
struct filling {
	Wide left, level;
	Wide high;		/* its level so far */
	Wide below;		/* the highest level of others that bound a flow of it, below that */
	int64_t weights;
	int sharing;
};

/* A flow that another link bounds, at a level below that of this one, leaves the rest of its share. */
static inline void
take_out(const struct run *run, int l, const struct flow_run *flow, int times, Wide level, struct filling *f)
{
	int steps = flow->n * times;
	Wide rate = level == run->link[l].level || flow->lowest == l ? rate_at(run, flow, l, level) : flow->share;
	f->left -= rate * steps;
	f->weights -= flow->weight * steps;
	f->sharing -= steps;
}

static void
raise_level(struct filling *f)
{
	if (f->sharing == 0)
		f->level = UNBOUND;
	else
		f->level = f->left > 0 ? (f->left << RATE_BITS) / f->weights : 0;
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
		Wide level = least_level(flow, l);
		if (level < f->high)
			take_out(run, l, flow, entry[k].times, level, f);
		else
			run->other[n++] = (struct other){ level, entry[k].flow, entry[k].times };
		if (level < f->high && level > f->below)
			f->below = level;
	}
	return n;
}

/* Those of the list with levels below f->high are taken out. Returns how many are left. */
static int
look_again(const struct run *run, int l, int n, struct filling *f)
{
	int kept = 0;
	for (int k = 0; k < n; k++) {
		struct other *other = &run->other[k];
		if (other->level < f->high)
			take_out(run, l, &run->flow[other->flow], other->times, other->level, f);
		else
			run->other[kept++] = *other;
	}
	return kept;
}

/* After the first look. Rates are rounded down, by 2^RATE_BITS in weight times level at most, so that next to the level
 * of a flow that has been taken out there may be two solutions, of which the lower one is wanted. */
static bool
is_lowest(const struct link_run *link, const struct filling *f)
{
	Wide rounding = link->weights + ((Wide)link->sharing << RATE_BITS);
	if (f->sharing == 0)
		return f->left << RATE_BITS > rounding;
	return f->high < UNBOUND && f->level >= f->high && (f->high - f->below - 2) * f->weights > rounding;
}

/* From a level that is not above the one to be found: each look raises it, until there is nothing to take out. False:
 * it may have been above. */
static bool
fill_from(const struct run *run, int l, Wide low, struct filling *f)
{
	const struct link_run *link = &run->link[l];
	*f = (struct filling){ .left = (Wide)run->net->rate[l] << RATE_BITS, .high = low, .weights = link->weights,
		.sharing = link->sharing };
	int n = link->joined > 0 ? first_look(run, l, f) : 0;
	raise_level(f);
	if (link->joined > 0 && low > 0 && !is_lowest(link, f))
		return false;
	for (int left; f->level > f->high && n > 0; n = left) {
		f->high = f->level;
		left = look_again(run, l, n, f);
		if (left == n)
			break;
		raise_level(f);
	}
	return true;
}

/* Most levels stay or rise: so it begins at the level that the link has. */
static struct filling
fill_link(const struct run *run, int l)
{
	struct filling f;
	if (!fill_from(run, l, run->link[l].level, &f))
		fill_from(run, l, 0, &f);
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

static void
make_shared(struct run *run, int l)
{
	if (!run->link[l].shared)
		run->shared.link[run->shared.n++] = l;
	run->link[l].shared = true;
}

/* What a flow knows of its links is found again. Does any of them bound it otherwise than before? */
static bool
see_change(const struct run *run, struct flow_run *flow)
{
	Wide level = flow->level, other = flow->other, share = flow->share;
	int lowest = flow->lowest;
	see_levels(run, flow);
	return level != flow->level || other != flow->other || share != flow->share || lowest != flow->lowest;
}

/* The links above the lower of a link's old and new level, with a flow in common that this changes. */
static void
tell_others(struct run *run, int l, Wide level)
{
	const struct link_run *link = &run->link[l];
	for (int k = 0; link->joined > 0 && k < link->n; k++) {
		struct flow_run *flow = &run->flow[run->moving[link->first + k].flow];
		const struct place *place = &run->place[flow->first_place];
		if (flow->n_places == 1 || !see_change(run, flow))
			continue;
		for (int i = 0; i < flow->n_places; i++)
			if (run->link[place[i].link].level > level && place[i].link != l)
				make_due(run, place[i].link);
	}
}

static void
find_level(struct run *run, int l)
{
	struct link_run *link = &run->link[l];
	if (link->n == 0)
		return;
	struct filling f = fill_link(run, l);
	Wide level = f.level, before = link->level, alone = f.sharing == 1 ? f.left : 0;
	if (level == before && alone == link->alone)
		return;
	link->level = level;
	link->alone = alone;
	make_shared(run, l);
	tell_others(run, l, level < before ? level : before);
}

/* ---- rates ---- */

static Status
set_rate(struct run *run, int f)
{
	struct flow_run *flow = &run->flow[f];
	if (flow->round == run->round)
		return OK;
	flow->round = run->round;
	Wide rate = flow->share;
	if (flow->n_places == 1)
		rate = rate_at(run, flow, -1, run->link[run->place[flow->first_place].link].level);
	if (rate == flow->rate && !flow->untimed)
		return OK;
	do_work(run, flow);
	flow->rate = rate;
	flow->untimed = false;
	Wide left = run->active[flow->head].end - flow->done;
	if (rate == 0 || (left - 1) / rate >= SIM_TIME_MOST - run->now)
		return fail(run->ctx, LIMIT, "%s: a message of %lld bytes takes more than 53 days",
		    run->net->plan->sched->topo->name, (long long)run->ask->m);
	clocks_set(&run->clocks, f, run->now + (int64_t)((left - 1) / rate) + 1);
	return OK;
}

static void
find_levels(struct run *run)
{
	for (; run->changed.n > 0; run->changed.n--) {
		int l = run->changed.link[run->changed.n - 1];
		run->link[l].changed = false;
		make_due(run, l);
		make_shared(run, l);
	}
	while (run->n_due > 0)
		find_level(run, take_lowest(run));
}

Status
links_share(struct run *run)
{
	find_levels(run);
	run->round++;
	for (; run->shared.n > 0; run->shared.n--) {
		struct link_run *link = &run->link[run->shared.link[run->shared.n - 1]];
		link->shared = false;
		for (int k = 0; k < link->n; k++)
			TRY(set_rate(run, run->moving[link->first + k].flow));
	}
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
