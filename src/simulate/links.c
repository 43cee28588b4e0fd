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
 * What begins or ends changes the links of that step; the level of a link is found again when its steps changed, or
 * when a link below it has changed with a step in common. Others need no look. A link settles when all below it have:
 * the lowest after one look, as no level is below its rate divided by all its weights, then the next, and so on. So
 * where all that share a link are bound there alone, the cost is one look at each link whose steps change.
 *
 * In a large machine with switches all links settle together, whenever one step begins. Without net->fair each link has
 * its rate divided by all its weights as its level, whatever its steps can use.
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
	for (int h = 0; h < net->n_hops; h++) {
		most += net->hop[h].feeder >= 0;
		run->longest = net->hop[h].n_places > run->longest ? net->hop[h].n_places : run->longest;
	}
	int n = most < net->n_hops ? (int)most : net->n_hops;
	TRY(TEMP(run->ctx, run->active, n));
	TRY(TEMP(run->ctx, run->places, (size_t)n * (size_t)run->longest));
	TRY(TEMP(run->ctx, run->free_slot, n));
	for (run->n_free = 0; run->n_free < n; run->n_free++)
		run->free_slot[run->n_free] = n - 1 - run->n_free;
	return clocks_new(run->ctx, n, &run->clocks);
}

/* What each link has room for in its list: the hops that use it. */
Status
links_new(struct run *run)
{
	const struct net *net = run->net;
	int all = 0;
	TRY(TEMP(run->ctx, run->link, net->n_links));
	TRY(TEMP(run->ctx, run->changed.link, net->n_links));
	TRY(TEMP(run->ctx, run->shared.link, net->n_links));
	TRY(TEMP(run->ctx, run->due.link, net->n_links));
	for (int h = 0; h < net->n_hops; h++)
		for (int i = 0; i < net->hop[h].n_places; i++, all++)
			run->link[net->place[net->hop[h].first_place + i].link].n++;
	TRY(TEMP(run->ctx, run->moving, all));
	for (int l = 0, first = 0; l < net->n_links; l++) {
		int uses = run->link[l].n;
		run->link[l] = (struct link_run){ .first = first };
		first += uses;
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

void
links_enter(struct run *run, int slot)
{
	struct active *step = &run->active[slot];
	const struct net_hop *hop = &run->net->hop[step->hop];
	const struct net_place *from = &run->net->place[hop->first_place];
	struct place *place = &run->places[slot * run->longest];
	int64_t bytes = chunk_bytes(run, hop->segment, run->hop[step->hop].moved);
	for (int i = 0; i < hop->n_places; i++) {
		struct link_run *link = &run->link[from[i].link];
		if (link->n == 0)
			link->since = run->now;
		place[i] = (struct place){ from[i].link, link->n, from[i].times };
		run->moving[link->first + link->n++] = (struct entry){ slot, i };
		link->sharing += from[i].times;
		link->weights += step->weight * from[i].times;
		link->joined += hop->n_places > 1;
		link->moved += (Wide)bytes * from[i].times;
		change(run, from[i].link);
	}
	step->n_places = hop->n_places;
	step->left = (Wide)bytes * PS_PER_S << (RATE_BITS + by_packets(run->ask));
	step->rate = 0;
	step->since = run->now;
}

/* The last of a list takes the place of what leaves it. */
static void
leave(struct run *run, int slot, struct place from)
{
	struct link_run *link = &run->link[from.link];
	struct entry last = run->moving[link->first + --link->n];
	run->moving[link->first + from.at] = last;
	run->places[last.slot * run->longest + last.place].at = from.at;
	link->sharing -= from.times;
	link->weights -= run->active[slot].weight * from.times;
	link->joined -= run->active[slot].n_places > 1;
	if (link->n == 0)
		link->busy += run->now - link->since;
	change(run, from.link);
}

void
links_leave(struct run *run, int slot)
{
	for (int i = 0; i < run->active[slot].n_places; i++)
		leave(run, slot, run->places[slot * run->longest + i]);
}

/* ---- levels ---- */

/* The least level of a step's links but `except`; -1: none. */
static Wide
least_level(const struct run *run, int slot, int except)
{
	const struct place *place = &run->places[slot * run->longest];
	Wide least = -1;
	for (int i = 0; i < run->active[slot].n_places; i++) {
		Wide level = run->link[place[i].link].level;
		if (place[i].link != except && (least < 0 || level < least))
			least = level;
	}
	return least;
}

/* At that level, which is the least of its links but `except`. A step that is all that a link bounds has all of what
 * the others leave, to the last bit: one more than the level has, or not. */
static Wide
rate_at(const struct run *run, int slot, int except, Wide level)
{
	const struct place *place = &run->places[slot * run->longest];
	Wide rate = (level * run->active[slot].weight) >> RATE_BITS, least = -1;
	for (int i = 0; i < run->active[slot].n_places; i++) {
		const struct link_run *link = &run->link[place[i].link];
		if (place[i].link == except || link->level != level)
			continue;
		Wide one = rate + (link->alone == rate + 1);
		least = least < 0 || one < least ? one : least;
	}
	return least;
}

/* What a link still has for the steps that no other link bounds. */
struct filling {
	Wide left, level;
	int64_t weights;
	int sharing;
};

static void
raise_level(struct filling *f)
{
	f->level = f->left > 0 ? (f->left << RATE_BITS) / f->weights : 0;
}

/* Steps that others bound at a level from `low` on, below that of the link, are taken out. */
static void
take_out(const struct run *run, int l, Wide low, struct filling *f)
{
	const struct link_run *link = &run->link[l];
	Wide high = f->level;
	for (int k = 0; k < link->n; k++) {
		struct entry entry = run->moving[link->first + k];
		Wide level = least_level(run, entry.slot, l);
		if (level < low || level >= high)
			continue;
		int times = run->places[entry.slot * run->longest + entry.place].times;
		f->left -= rate_at(run, entry.slot, l, level) * times;
		f->weights -= run->active[entry.slot].weight * times;
		f->sharing -= times;
	}
}

/* That raises the level, until there are none. */
static struct filling
fill_link(const struct run *run, int l)
{
	const struct link_run *link = &run->link[l];
	struct filling f = { (Wide)run->net->rate[l] << RATE_BITS, 0, link->weights, link->sharing };
	raise_level(&f);
	for (Wide low = 0, high; run->net->fair && link->joined > 0 && f.sharing > 0; low = high) {
		int sharing = f.sharing;
		high = f.level;
		take_out(run, l, low, &f);
		if (f.sharing == sharing)
			break;
		if (f.sharing > 0)
			raise_level(&f);
		else
			f.level = UNBOUND;
	}
	return f;
}

static void
make_due(struct run *run, int l)
{
	if (run->link[l].due)
		return;
	run->link[l].due = true;
	run->due.link[run->due.n++] = l;
}

static void
make_shared(struct run *run, int l)
{
	if (!run->link[l].shared)
		run->shared.link[run->shared.n++] = l;
	run->link[l].shared = true;
}

/* The links above the lower of a link's old and new level, with a step in common. */
static void
tell_others(struct run *run, int l, Wide level)
{
	const struct link_run *link = &run->link[l];
	for (int k = 0; link->joined > 0 && k < link->n; k++) {
		int slot = run->moving[link->first + k].slot;
		const struct place *place = &run->places[slot * run->longest];
		for (int i = 0; i < run->active[slot].n_places; i++)
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
	if (run->net->fair)
		tell_others(run, l, level < before ? level : before);
}

/* ---- rates ---- */

static Status
set_rate(struct run *run, int slot)
{
	struct active *step = &run->active[slot];
	Wide rate = rate_at(run, slot, -1, least_level(run, slot, -1));
	if (rate == step->rate)
		return OK;
	step->left -= step->rate * (run->now - step->since);
	step->since = run->now;
	step->rate = rate;
	if (rate == 0 || (step->left - 1) / rate >= SIM_TIME_MOST - run->now)
		return fail(run->ctx, LIMIT, "%s: a message of %lld bytes takes more than 53 days",
		    run->net->plan->sched->topo->name, (long long)run->ask->m);
	clocks_set(&run->clocks, slot, run->now + (int64_t)((step->left - 1) / rate) + 1);
	return OK;
}

/* Of the links that are due, that with the least level, which others depend on. */
static int
take_lowest(struct run *run)
{
	int *due = run->due.link, lowest = 0, l;
	for (int i = 1; run->net->fair && i < run->due.n; i++)
		if (run->link[due[i]].level < run->link[due[lowest]].level)
			lowest = i;
	l = due[lowest];
	due[lowest] = due[--run->due.n];
	run->link[l].due = false;
	return l;
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
	while (run->due.n > 0) {
		int l = take_lowest(run);
		find_level(run, l);
	}
}

Status
links_share(struct run *run)
{
	find_levels(run);
	for (; run->shared.n > 0; run->shared.n--) {
		struct link_run *link = &run->link[run->shared.link[run->shared.n - 1]];
		link->shared = false;
		for (int k = 0; k < link->n; k++)
			TRY(set_rate(run, run->moving[link->first + k].slot));
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
