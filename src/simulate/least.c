/* Time that no algorithm goes below.
 *
 * The bound counts bytes that have to cross links, whatever the algorithm, at the links' capacities: M / bound. The
 * last of these leaves the links that it counts no sooner, and is at the other end no sooner than the least latency of
 * a link later. And the first byte of a rank takes the latency of the links to each rank that needs it, at least that
 * of the cheapest path. The call, and the start-up of the step by which a byte leaves its rank, come before. */
#include "schedule/schedule.h"
#include "simulate/run.h"

enum { SOURCES_MOST = 256, LINK_NS = 50 };

/* Latency from a rank to the farthest rank, or to `only`; -1: every rank. */
static int64_t
farthest(const SimPlan *plan, const SimAsk *ask, int from, int only, Clocks *clocks, bool *done)
{
	const Topology *topo = plan->sched->topo;
	SimProtocol protocol = sim_protocol(plan, &ask->p, ask->m);
	int64_t most = 0;
	for (int v = 0; v < topo->n_vertices; v++)
		done[v] = false;
	for (clocks_set(clocks, from, 0); clocks_any(clocks);) {
		int v = clocks_first(clocks);
		int64_t now = clocks_time(clocks);
		clocks_unset(clocks, v);
		done[v] = true;
		if (v < topo->n_ranks && (only < 0 || v == only))
			most = now;
		for (int i = topo->first_out[v]; i < topo->first_out[v + 1]; i++) {
			const Link *link = &topo->link[topo->out[i]];
			int64_t then = now + sim_link_latency(&ask->p, protocol, link);
			if (!done[link->to] && then < clocks_time_of(clocks, link->to))
				clocks_set(clocks, link->to, then);
		}
	}
	return most;
}

/* Between the ranks that have data and those that need it: the farthest two. */
static Status
latency_of(Ctx *ctx, const SimPlan *plan, const SimAsk *ask, int64_t *out)
{
	const Schedule *sched = plan->sched;
	int n = sched->topo->n_ranks, root = sched->root;
	bool into = sched->coll == REDUCE || sched->coll == GATHER, rooted = root >= 0 && !into;
	int64_t work = LINK_NS * ((int64_t)sched->topo->n_vertices + sched->topo->n_links);
	Clocks clocks;
	bool *done;
	TRY(TEMP(ctx, done, sched->topo->n_vertices));
	TRY(clocks_new(ctx, sched->topo->n_vertices, &clocks));
	*out = 0;
	for (int i = 0; i < n && i < SOURCES_MOST; i++) {
		int from = rooted ? root : i;
		if (ask->timed && out_of_time(ctx, work))
			return fail_asked(ctx, LIMIT, "budget", "%s: a message of %lld bytes: paths from %d of the "
			    "ranks that have data are searched: want more time", sched->topo->name,
			    (long long)ask->m, i);
		int64_t one = farthest(plan, ask, from, into ? root : -1, &clocks, done);
		*out = one > *out ? one : *out;
		if (rooted)
			break;
	}
	return OK;
}

/* M / bound, rounded down: exactly, but for bounds with large denominators, of which a millionth is left off. */
static int64_t
transfer_time(const Schedule *sched, int64_t m)
{
	Frac rate = sched->bound.rate;
	Wide ps = (Wide)m * PS_PER_S, most = ((Wide)1 << 126) / ps;
	if (rate.num <= 0)
		return 0;
	if (rate.den < most)
		ps = ps * rate.den / rate.num;
	else
		ps = (Wide)((double)m / frac_double(rate) * (double)(PS_PER_S - PPM));
	return ps < SIM_TIME_MOST ? (int64_t)ps : SIM_TIME_MOST;
}

Status
sim_least_time(Ctx *ctx, const SimPlan *plan, const SimAsk *ask, int64_t *out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	const Topology *topo = plan->sched->topo;
	if (ask->p.by_memory) {
		*out = plan->n_hops == 0 ? 0 : (ask->p.call + ask->p.task) * PS_PER_NS;
		return OK;
	}
	SimProtocol protocol = sim_protocol(plan, &ask->p, ask->m);
	int64_t latency, least = INT64_MAX, step = protocol_step(&ask->p, protocol);
	TRY(latency_of(ctx, plan, ask, &latency));
	for (int l = 0; l < topo->n_links; l++) {
		int64_t one = sim_link_latency(&ask->p, protocol, &topo->link[l]);
		least = one < least ? one : least;
	}
	Wide at_once = (Wide)ask->p.burst * topo->n_links;
	int64_t bytes = (at_once < ask->m ? transfer_time(plan->sched, ask->m - (int64_t)at_once) : 0)
	    + (topo->n_links ? least : 0);
	*out = plan->n_hops == 0 && !plan->too_large ? 0
	    : (ask->p.call + step) * PS_PER_NS + (bytes > latency ? bytes : latency);
	arena_release(&ctx->scratch, mark);
	return OK;
}

Frac
sim_algorithm_rate(int64_t m, int64_t time)
{
	Frac rate = FRAC_ZERO;
	if (time > 0)
		frac_make((Wide)m * PS_PER_S, time, &rate);
	return rate;
}

Frac
sim_bus_rate(const Schedule *sched, Frac algorithm)
{
	int n = sched->topo->n_ranks;
	Frac factor = FRAC_ONE, rate = algorithm;
	if (sched->coll == ALLREDUCE)
		frac_make(2 * (n - 1), n, &factor);
	else if (sched->coll != BROADCAST && sched->coll != REDUCE)
		frac_make(n - 1, n, &factor);
	return frac_mul(algorithm, factor, &rate) ? rate : algorithm;
}
