/* What a schedule with more hops than are simulated takes at least: the bytes of its busiest link, at the highest
 * efficiency of links; the latency of its deepest path; and the start-ups of what a GPU sends, `at_once` of them at a
 * time. Next to one of these there is the call, and a step. Pipelines, and what waits for others, do not count: what is
 * simulated takes up to some times that. */
#include "schedule/schedule.h"
#include "simulate/run.h"

/* Edges that a rank sends over, of all ranks on average: each path of trees into a rank counts once. */
static double
sends_of(const Schedule *sched)
{
	double edges = (double)sched->n_in_trees * (sched->topo->n_ranks - 1);
	for (int s = 0; s < sched->n_segments; s++)
		edges += (double)(sched->segment[s].tree.n_up + sched->segment[s].tree.n_down)
		    * (double)(sched->symmetry ? sched->symmetry->size : 1);
	return edges / sched->topo->n_ranks;
}

/* ps along the deepest path: that of a topology whose links have latencies in ps. */
static Status
deepest_path(Ctx *ctx, const Schedule *sched, const SimParameters *p, SimProtocol protocol, int64_t *out)
{
	Topology topo = *sched->topo;
	Schedule as = *sched;
	TRY(TEMP(ctx, topo.link, topo.n_links));
	for (int l = 0; l < topo.n_links; l++) {
		topo.link[l] = sched->topo->link[l];
		topo.link[l].latency = sim_link_latency(p, protocol, &sched->topo->link[l]);
	}
	as.topo = &topo;
	return sched_latency(ctx, &as, out);
}

/* ps for a message of m bytes, by the rate of the schedule. */
static double
transfer_time(const Schedule *sched, const SimParameters *p, SimProtocol protocol, int64_t m)
{
	double efficiency = 0;
	for (int l = 0; l < sched->topo->n_links; l++) {
		const Link *link = &sched->topo->link[l];
		double one = (double)sim_link_rate(p, link) / (double)link->capacity;
		efficiency = one > efficiency ? one : efficiency;
	}
	return (double)protocol_bytes(protocol, m) / frac_double(sched->achieved) / efficiency * (double)PS_PER_S;
}

Status
sim_at_least(Ctx *ctx, const SimPlan *plan, const SimAsk *ask, SimResult *out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	const Schedule *sched = plan->sched;
	const SimParameters *p = &ask->p;
	SimProtocol protocol = sim_protocol(plan, p, ask->m);
	int64_t latency;
	if (p->by_memory || p->cores || p->burst || ask->steps)
		return fail(ctx, LIMIT, "%s: the trees of %d ranks have more than %d edges: want fewer for %s",
		    sched->topo->name, sched->topo->n_ranks, (int)LIMIT_TREE_EDGES,
		    ask->steps ? "their steps" : "ranks that share processors, and links with bursts");
	TRY(deepest_path(ctx, sched, p, protocol, &latency));
	double step = (double)(protocol_step(p, protocol) * PS_PER_NS);
	double time = transfer_time(sched, p, protocol, ask->m),
	    starts = p->at_once ? sends_of(sched) * step / (double)p->at_once - step : 0;
	time = time > (double)latency ? time : (double)latency;
	time = (time > starts ? time : starts) + step + (double)(p->call * PS_PER_NS);
	*out = (SimResult){ .time = time < (double)SIM_TIME_MOST ? (int64_t)time : SIM_TIME_MOST,
		.protocol = protocol, .last = -1 };
	TRY(NEW_EACH(ctx, sched->topo->n_links, out->moved, out->busy));
	arena_release(&ctx->scratch, mark);
	return OK;
}
