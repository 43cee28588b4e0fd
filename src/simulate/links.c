/* How steps share links. Everything that begins or ends at one time is counted before anything gets a new rate: so the
 * steps of equal trees, which begin and end together, cost one look at each link, not one for each pair of them. */
#include "simulate/run.h"

int64_t
sim_link_rate(const SimParameters *p, const Link *link)
{
	int64_t rate = (int64_t)((Wide)link->capacity * p->efficiency[link->class] / PPM);
	return rate > 0 ? rate : 1;
}

int64_t
sim_link_latency(const SimAsk *ask, const Link *link)
{
	int64_t ps = (link->latency ? link->latency : ask->p.latency[link->class]) * PS_PER_NS;
	return by_packets(ask) ? ps / PPM * ask->p.packet_hop + ps % PPM * ask->p.packet_hop / PPM : ps;
}

/* What each link has room for in its list: the hops that use it. */
static void
count_uses(struct run *run, int *all)
{
	*all = 0;
	for (int h = 0; h < run->plan->n_hops; h++) {
		const SimHop *hop = &run->plan->hop[h];
		*all += hop->n_links;
		run->longest = hop->n_links > run->longest ? hop->n_links : run->longest;
		for (int i = 0; i < hop->n_links; i++)
			run->link[hop->link[i]].n++;
	}
}

/* A slot for each step that can be under way at once. */
static Status
new_slots(struct run *run)
{
	const SimPlan *plan = run->plan;
	int64_t most = run->ask->p.at_once ? run->ask->p.at_once * plan->sched->topo->n_ranks : plan->n_hops;
	for (int h = 0; h < plan->n_hops; h++)
		most += plan->hop[h].feeder >= 0;
	int n = most < plan->n_hops ? (int)most : plan->n_hops;
	TRY(TEMP(run->ctx, run->active, n));
	TRY(TEMP(run->ctx, run->places, (size_t)n * (size_t)run->longest));
	TRY(TEMP(run->ctx, run->free_slot, n));
	for (run->n_free = 0; run->n_free < n; run->n_free++)
		run->free_slot[run->n_free] = n - 1 - run->n_free;
	return clocks_new(run->ctx, n, &run->clocks);
}

Status
links_new(struct run *run)
{
	const Topology *topo = run->plan->sched->topo;
	int n, first = 0;
	TRY(TEMP(run->ctx, run->link, topo->n_links));
	TRY(TEMP(run->ctx, run->changed, topo->n_links));
	count_uses(run, &n);
	TRY(TEMP(run->ctx, run->moving, n));
	for (int l = 0; l < topo->n_links; l++) {
		int uses = run->link[l].n;
		run->link[l] = (struct link_run){ .first = first, .rate = sim_link_rate(&run->ask->p, &topo->link[l]) };
		first += uses;
	}
	return new_slots(run);
}

static void
change(struct run *run, int l)
{
	if (!run->link[l].changed)
		run->changed[run->n_changed++] = l;
	run->link[l].changed = true;
}

void
links_enter(struct run *run, int slot)
{
	struct active *step = &run->active[slot];
	const SimHop *hop = &run->plan->hop[step->hop];
	struct place *place = &run->places[slot * run->longest];
	int64_t bytes = chunk_bytes(run, hop->segment, run->hop[step->hop].moved);
	for (int i = 0; i < hop->n_links; i++) {
		int l = hop->link[i];
		struct link_run *link = &run->link[l];
		if (link->n == 0)
			link->since = run->now;
		place[i] = (struct place){ l, link->n };
		run->moving[link->first + link->n++] = slot;
		link->weights += step->weight;
		run->out->moved[l] += bytes;
		change(run, l);
	}
	step->n_places = hop->n_links;
	step->left = (Wide)bytes * PS_PER_S << (RATE_BITS + by_packets(run->ask));
	step->rate = 0;
	step->since = run->now;
}

/* The last of a list takes the place of what leaves it. */
static void
leave(struct run *run, int slot, struct place from)
{
	struct link_run *link = &run->link[from.link];
	int last = run->moving[link->first + --link->n];
	struct place *place = &run->places[last * run->longest];
	run->moving[link->first + from.at] = last;
	while (place->link != from.link)
		place++;
	place->at = from.at;
	link->weights -= run->active[slot].weight;
	if (link->n == 0)
		run->out->busy[from.link] += run->now - link->since;
	change(run, from.link);
}

void
links_leave(struct run *run, int slot)
{
	for (int i = 0; i < run->active[slot].n_places; i++)
		leave(run, slot, run->places[slot * run->longest + i]);
}

/* A step alone on a link has all of it, to the last bit. */
static Wide
share_of(const struct link_run *link, int64_t weight)
{
	return link->n == 1 ? (Wide)link->rate << RATE_BITS : (link->unit * weight) >> RATE_BITS;
}

/* The least of its shares. */
static Wide
rate_of(const struct run *run, int slot)
{
	struct active *step = &run->active[slot];
	const struct place *place = &run->places[slot * run->longest];
	Wide rate = share_of(&run->link[place->link], step->weight);
	step->slowest = place->link;
	for (int i = 1; i < step->n_places; i++) {
		Wide other = share_of(&run->link[place[i].link], step->weight);
		if (other >= rate)
			continue;
		rate = other;
		step->slowest = place[i].link;
	}
	return rate;
}

/* A link that is not its slowest, and does not become so, leaves its rate as it is. */
static Status
set_rate(struct run *run, int slot, int changed)
{
	struct active *step = &run->active[slot];
	if (step->rate && step->slowest != changed && share_of(&run->link[changed], step->weight) >= step->rate)
		return OK;
	Wide rate = rate_of(run, slot);
	if (rate == step->rate)
		return OK;
	step->left -= step->rate * (run->now - step->since);
	step->since = run->now;
	step->rate = rate;
	if (rate == 0 || (step->left - 1) / rate >= SIM_TIME_MOST - run->now)
		return fail(run->ctx, LIMIT, "%s: a message of %lld bytes takes more than 53 days",
		    run->plan->sched->topo->name, (long long)run->ask->m);
	clocks_set(&run->clocks, slot, run->now + (int64_t)((step->left - 1) / rate) + 1);
	return OK;
}

Status
links_share(struct run *run)
{
	for (int i = 0; i < run->n_changed; i++) {
		struct link_run *link = &run->link[run->changed[i]];
		link->changed = false;
		if (link->n > 1)
			link->unit = ((Wide)link->rate << 2 * RATE_BITS) / link->weights;
	}
	for (int i = 0; i < run->n_changed; i++) {
		const struct link_run *link = &run->link[run->changed[i]];
		for (int k = 0; k < link->n; k++)
			TRY(set_rate(run, run->moving[link->first + k], run->changed[i]));
	}
	run->n_changed = 0;
	return OK;
}
