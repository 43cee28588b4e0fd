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

static void
count_places(struct run *run, int *n)
{
	int places = 0;
	for (int h = 0; h < run->plan->n_hops; h++) {
		const SimHop *hop = &run->plan->hop[h];
		run->hop[h].first_place = places;
		places += hop->n_links;
		for (int i = 0; i < hop->n_links; i++)
			run->link[hop->link[i]].n++;
	}
	*n = places;
}

Status
links_new(struct run *run)
{
	const Topology *topo = run->plan->sched->topo;
	int n, first = 0;
	TRY(TEMP(run->ctx, run->link, topo->n_links));
	TRY(TEMP(run->ctx, run->changed, topo->n_links));
	count_places(run, &n);
	TRY(TEMP(run->ctx, run->moving, n));
	TRY(TEMP(run->ctx, run->place, n));
	for (int l = 0; l < topo->n_links; l++) {
		int uses = run->link[l].n;
		run->link[l] = (struct link_run){ .first = first, .rate = sim_link_rate(&run->ask->p, &topo->link[l]) };
		first += uses;
	}
	return OK;
}

static void
change(struct run *run, int l)
{
	if (!run->link[l].changed)
		run->changed[run->n_changed++] = l;
	run->link[l].changed = true;
}

void
links_enter(struct run *run, int h)
{
	const SimHop *hop = &run->plan->hop[h];
	struct hop_run *state = &run->hop[h];
	int64_t bytes = chunk_bytes(run, hop->segment, state->moved);
	for (int i = 0; i < hop->n_links; i++) {
		struct link_run *link = &run->link[hop->link[i]];
		if (link->n == 0)
			link->since = run->now;
		run->place[state->first_place + i] = link->n;
		run->moving[link->first + link->n++] = h;
		link->weights += state->weight;
		run->out->moved[hop->link[i]] += bytes;
		change(run, hop->link[i]);
	}
	state->left = (Wide)bytes * PS_PER_S << (RATE_BITS + by_packets(run->ask));
	state->rate = 0;
	state->since = run->now;
}

/* The last of a list takes the place of what leaves it. */
static void
leave(struct run *run, int h, int i)
{
	int l = run->plan->hop[h].link[i];
	struct link_run *link = &run->link[l];
	int place = run->place[run->hop[h].first_place + i], last = run->moving[link->first + --link->n];
	run->moving[link->first + place] = last;
	for (int k = 0; k < run->plan->hop[last].n_links; k++)
		if (run->plan->hop[last].link[k] == l)
			run->place[run->hop[last].first_place + k] = place;
	link->weights -= run->hop[h].weight;
	if (link->n == 0)
		run->out->busy[l] += run->now - link->since;
	change(run, l);
}

void
links_leave(struct run *run, int h)
{
	for (int i = 0; i < run->plan->hop[h].n_links; i++)
		leave(run, h, i);
}

/* A step alone on a link has all of it, to the last bit. */
static Wide
share_of(const struct link_run *link, int64_t weight)
{
	return link->n == 1 ? (Wide)link->rate << RATE_BITS : (link->unit * weight) >> RATE_BITS;
}

static Status
set_rate(struct run *run, int h)
{
	struct hop_run *hop = &run->hop[h];
	const SimHop *of = &run->plan->hop[h];
	Wide rate = share_of(&run->link[of->link[0]], hop->weight);
	for (int i = 1; i < of->n_links; i++) {
		Wide other = share_of(&run->link[of->link[i]], hop->weight);
		rate = other < rate ? other : rate;
	}
	if (rate == hop->rate)
		return OK;
	hop->left -= hop->rate * (run->now - hop->since);
	hop->since = run->now;
	hop->rate = rate;
	if (rate == 0 || (hop->left - 1) / rate >= SIM_TIME_MOST - run->now)
		return fail(run->ctx, LIMIT, "%s: a message of %lld bytes takes more than 53 days",
		    run->plan->sched->topo->name, (long long)run->ask->m);
	clocks_set(&run->clocks, h, run->now + (int64_t)((hop->left - 1) / rate) + 1);
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
			TRY(set_rate(run, run->moving[link->first + k]));
	}
	run->n_changed = 0;
	return OK;
}
