/* How long a schedule takes.
 *
 * What is simulated. Each segment is cut into chunks of ask->chunk bytes, the last perhaps shorter. A chunk on an edge
 * is a step. It can begin when its chunk is complete at the sender (all edges up into it have arrived and been added;
 * on the way down its one edge has; at the root, all edges up), and when the chunk before it on the same edge has
 * ended. Of the steps that can begin, a GPU has `at_once` under way; the others wait, the least chunk first, and of
 * one chunk the first in the file: the order in which a sender issues. A step is
 *
 *	`step`, the start-up		holds one of the `at_once`
 *	its bytes over all its links	holds that and a share of each link
 *	adding, if `fused`		holds that
 *	latency of its links		holds nothing: the next chunk begins meanwhile
 *
 * and with `fused` off the receiver adds after that, its edges in the order of the file, each `reduce_step` and then
 * its bytes at the rate `reduce`. So a chain of n ranks with one tree, c chunks of C bytes and links of B bytes/s
 * takes
 *
 *	call + (c + n - 2) (step + C / B) + (n - 1) latency
 *
 * to the last ps: the pipelined chain of Awan et al., whose t_s is step (latency only fills the pipe); with fused
 * adding C / reduce joins C / B, as gamma joins beta in Wang et al., Linear Pipeline. A root that sends one step at a
 * time has their direct algorithm, (n - 1) (step + M / B), and so on: tests/oracle/closed.py has the list.
 *
 * Sharing. A step on several links goes at the least of its shares of them, as it passes switches cut-through: all of
 * its links at once. Its share of a link is in proportion to its weight: with `by_length` the length of its segment,
 * as a kernel that gives blocks to segments by their length; else all equal, as copy engines do. With weights by
 * length a tree is never below the rate that it was planned with: loads of all trees fit every link, so that weight /
 * (sum of weights on it) is at least that, on each link of its route. Max-min shares, which give what a step cannot
 * use to the others, would look at all steps of the machine whenever one begins or ends; this looks at the links of
 * that step. Where the formulas of the literature hold (no link is shared, or all that share it are bound by it
 * alone), both are the same. What a share leaves unused is not given away, so that times err to the long side.
 *
 * Switches that multicast or reduce. An edge that begins at a switch begins with the edge whose data it copies, and
 * costs its sender nothing; one that ends at a switch is added there, in no time, and arrives when it would over the
 * rest of the other's links.
 *
 * Parts. The trees of a part of a hybrid schedule begin `setup` later, which is how long peer access takes to switch.
 *
 * Packets. A message of `packet_most` bytes or less has twice its bytes on each link (as many of flags as of data),
 * start-ups of `packet_step`, and `packet_hop` of the latency.
 *
 * Exactness. Times are whole ps, rates whole 2^-20 bytes/s, work whole (ps * 2^-20 bytes/s). Rates and what was done
 * are rounded down and ends up, so that nothing is faster than its links, and no sum depends on the order of its
 * terms. A step that keeps its rate from begin to end is not rounded but to the next ps.
 *
 * No time is below the bound. A cut's links carry what the bound counts, at no more than their capacity, as weights of
 * one link sum to one; sim_least_time adds what the latency of links adds to that.
 *
 * Not simulated: rings of slots that hold a sender back until the receiver has read (with chunks of one size the two
 * keep step), caches and memory of GPUs, congestion inside switches.
 *
 * Method. Discrete events. A hop (an edge of one tree) has at most one step that is not yet on its way, so it has one
 * clock, which moves when shares change; arrivals and additions are events. All of one time are taken before anything
 * begins (Clocks and Events in the order of ids), then GPUs grant what waits, then links share: the result does not
 * depend on the order in between. Values count chunks only, so that memory does not grow with their number.
 *
 * Ranks and trees that an automorphism maps to each other are not simulated once for all: the order of the file
 * decides which step waits, and a map of ranks keeps shares but not that order. */
#include "simulate/run.h"

/* ---- steps ---- */

static Status
after(const struct run *run, int64_t wait, int64_t *out)
{
	*out = run->now + wait;
	if (wait > SIM_TIME_MOST - run->now)
		return fail(run->ctx, LIMIT, "%s: a message of %lld bytes takes more than 53 days",
		    run->plan->sched->topo->name, (long long)run->ask->m);
	return OK;
}

static int64_t
time_to_add(const struct run *run, int64_t bytes)
{
	if (!run->ask->p.reduce)
		return 0;
	Wide time = ((Wide)bytes * PS_PER_S - 1) / run->ask->p.reduce + 1;
	return time > SIM_TIME_MOST ? SIM_TIME_MOST : (int64_t)time;
}

static SimStep *
step_of(const struct run *run, int step)
{
	return run->ask->steps ? &run->out->step[step] : NULL;
}

/* The step of a chunk that arrived; -1: steps are not kept. */
static int
step_at(const struct run *run, int h, int64_t chunk)
{
	return run->ask->steps ? run->step_at[run->first_step[h] + chunk] : -1;
}

static int64_t
current_bytes(const struct run *run, int h)
{
	return chunk_bytes(run, run->plan->hop[h].segment, run->hop[h].begun - 1);
}

static Status wake(struct run *run, int h, int cause);

/* What a switch copies begins with it. */
static Status
move_bytes(struct run *run, int h)
{
	const SimPlan *plan = run->plan;
	struct hop_run *hop = &run->hop[h];
	hop->state = HOP_MOVING;
	links_enter(run, h);
	hop->moved++;
	if (run->ask->steps)
		step_of(run, hop->step)->move = run->now;
	for (int i = plan->first_follower[h]; i < plan->first_follower[h + 1]; i++)
		TRY(wake(run, plan->follower[i], hop->cause));
	return OK;
}

static Status
begin(struct run *run, int h, int cause)
{
	struct hop_run *hop = &run->hop[h];
	int64_t wait = (by_packets(run->ask) ? run->ask->p.packet_step : run->ask->p.step) * PS_PER_NS, then;
	hop->step = (int)run->out->n_steps++;
	hop->cause = cause;
	if (run->ask->steps) {
		*step_of(run, hop->step) = (SimStep){ .hop = h, .cause = cause, .chunk = hop->begun,
		    .begin = run->now };
		run->step_at[run->first_step[h] + hop->begun] = hop->step;
	}
	hop->begun++;
	run->gpu[run->plan->hop[h].src].sending += run->plan->hop[h].feeder < 0;
	if (wait == 0 || run->plan->hop[h].feeder >= 0)
		return move_bytes(run, h);
	hop->state = HOP_STARTING;
	TRY(after(run, wait, &then));
	clocks_set(&run->clocks, h, then);
	return OK;
}

static void
touch(struct run *run, int rank)
{
	if (!run->gpu[rank].touched)
		run->touched[run->n_touched++] = rank;
	run->gpu[rank].touched = true;
}

/* Is there a chunk that this hop can begin? cause: the step by which it may be so. */
static Status
wake(struct run *run, int h, int cause)
{
	const SimHop *of = &run->plan->hop[h];
	struct hop_run *hop = &run->hop[h];
	int64_t ready = of->feeder >= 0 ? run->hop[of->feeder].moved : run->value[of->from].there;
	if (hop->state != HOP_IDLE || hop->begun >= ready)
		return OK;
	if (of->feeder >= 0 || !run->ask->p.at_once)
		return begin(run, h, cause);
	hop->state = HOP_WAITING;
	hop->cause = cause;
	hop->ready = run->now;
	keys_add(&run->gpu[of->src].waiting, hop->begun << HOP_BITS | h);
	touch(run, of->src);
	return OK;
}

/* ---- values ---- */

static Status
complete(struct run *run, int v, int64_t chunks, int cause)
{
	const SimPlan *plan = run->plan;
	struct value_run *value = &run->value[v];
	value->there += chunks;
	value->have = 0;
	for (int i = plan->first_in[v]; i < plan->first_in[v + 1]; i++)
		value->have += run->hop[plan->in[i]].arrived > value->there;
	for (int i = plan->first_out[v]; i < plan->first_out[v + 1]; i++)
		TRY(wake(run, plan->out[i], cause));
	run->out->last = cause;
	return OK;
}

/* The next addition, if its chunk has arrived. */
static Status
add_next(struct run *run, int v)
{
	const SimPlan *plan = run->plan;
	struct value_run *value = &run->value[v];
	int h = plan->in[plan->first_in[v] + value->next];
	int64_t bytes = chunk_bytes(run, plan->value_segment[v], value->there), then;
	if (value->adding || run->hop[h].arrived <= value->there)
		return OK;
	value->adding = true;
	TRY(after(run, plan->hop[h].adds ? run->ask->p.reduce_step * PS_PER_NS + time_to_add(run, bytes) : 0, &then));
	return events_add(run->ctx, &run->events, (Event){ then, plan->n_hops + v, step_at(run, h, value->there) });
}

static Status
added(struct run *run, int v, int step)
{
	const SimPlan *plan = run->plan;
	struct value_run *value = &run->value[v];
	value->adding = false;
	if (step >= 0)
		step_of(run, step)->arrive = run->now;
	if (++value->next == plan->first_in[v + 1] - plan->first_in[v]) {
		value->next = 0;
		TRY(complete(run, v, 1, step));
	}
	return add_next(run, v);
}

static Status
arrive(struct run *run, int h, int step)
{
	int v = run->plan->hop[h].to;
	struct value_run *value = &run->value[v];
	struct hop_run *hop = &run->hop[h];
	hop->arrived++;
	if (value->serial)
		return add_next(run, v);
	if (run->ask->steps)
		step_of(run, step)->arrive = run->now;
	value->have += hop->arrived == value->there + 1;
	while (value->have == run->plan->first_in[v + 1] - run->plan->first_in[v])
		TRY(complete(run, v, 1, step));
	return OK;
}

/* ---- time ---- */

/* The sender has done its part. */
static Status
end_step(struct run *run, int h)
{
	const SimHop *of = &run->plan->hop[h];
	struct hop_run *hop = &run->hop[h];
	int64_t then;
	int step = hop->step;
	hop->state = HOP_IDLE;
	if (run->ask->steps)
		step_of(run, step)->end = run->now;
	if (of->feeder < 0) {
		run->gpu[of->src].sending--;
		run->gpu[of->src].freed_by = step;
		touch(run, of->src);
	}
	TRY(after(run, hop->latency, &then));
	if (hop->latency == 0)
		TRY(arrive(run, h, step));
	else
		TRY(events_add(run->ctx, &run->events, (Event){ then, h, step }));
	return wake(run, h, step);
}

static Status
next_state(struct run *run, int h)
{
	struct hop_run *hop = &run->hop[h];
	int64_t wait, then;
	if (hop->state == HOP_STARTING)
		return move_bytes(run, h);
	if (hop->state == HOP_ADDING)
		return end_step(run, h);
	links_leave(run, h);
	wait = run->plan->hop[h].adds && run->ask->p.fused ? time_to_add(run, current_bytes(run, h)) : 0;
	if (wait == 0)
		return end_step(run, h);
	hop->state = HOP_ADDING;
	TRY(after(run, wait, &then));
	clocks_set(&run->clocks, h, then);
	return OK;
}

static Status
take_event(struct run *run)
{
	Event event = events_pop(&run->events);
	int v = event.id - run->plan->n_hops;
	if (v < 0)
		return arrive(run, event.id, event.step);
	if (run->plan->first_in[v] == run->plan->first_in[v + 1])
		return complete(run, v, run->chunks[run->plan->value_segment[v]], -1);
	return added(run, v, event.step);
}

/* What waits begins, where a GPU has room for it. */
static Status
grant(struct run *run)
{
	for (int i = 0; i < run->n_touched; i++) {
		struct gpu_run *gpu = &run->gpu[run->touched[i]];
		gpu->touched = false;
		while (gpu->waiting.n > 0 && gpu->sending < run->ask->p.at_once) {
			int64_t key = keys_pop(&gpu->waiting);
			int h = (int)(key & ((INT64_C(1) << HOP_BITS) - 1)), cause = run->hop[h].cause;
			bool waited = gpu->freed_by >= 0 && run->hop[h].ready < run->now;
			TRY(begin(run, h, waited ? gpu->freed_by : cause));
		}
	}
	run->n_touched = 0;
	return OK;
}

static bool
next_time(const struct run *run, int64_t *out)
{
	int64_t clock = run->clocks.n ? run->clocks.time[run->clocks.heap[0]] : INT64_MAX;
	int64_t event = run->events.n ? run->events.heap[0].time : INT64_MAX;
	*out = clock < event ? clock : event;
	return run->clocks.n || run->events.n;
}

static Status
simulate(struct run *run)
{
	for (int64_t time; next_time(run, &time);) {
		run->now = time;
		while (next_time(run, &time) && time == run->now) {
			if (run->events.n && run->events.heap[0].time == time)
				TRY(take_event(run));
			else
				TRY(next_state(run, clocks_pop(&run->clocks)));
		}
		TRY(grant(run));
		TRY(links_share(run));
	}
	run->out->time = run->now;
	return OK;
}

/* ---- what is simulated ---- */

static Status
cut(struct run *run)
{
	const SimPlan *plan = run->plan;
	int64_t steps = 0, longest = 0, most = run->ask->steps ? LIMIT_SIM_KEPT : LIMIT_SIM_STEPS;
	TRY(TEMP(run->ctx, run->bytes, plan->sched->n_segments));
	TRY(TEMP(run->ctx, run->chunks, plan->sched->n_segments));
	sim_segment_bytes(plan, run->ask->m, run->bytes);
	for (int s = 0; s < plan->sched->n_segments; s++) {
		const Tree *tree = &plan->sched->segment[s].tree;
		int64_t chunks = (run->bytes[s] + run->ask->chunk - 1) / run->ask->chunk;
		run->chunks[s] = chunks;
		longest = run->bytes[s] > longest ? run->bytes[s] : longest;
		if (chunks > most || (steps += chunks * (tree->n_up + tree->n_down)) > most)
			return fail(run->ctx, LIMIT, "%s: a message of %lld bytes in chunks of %lld: more than %lld "
			    "steps%s: want larger chunks", plan->sched->topo->name, (long long)run->ask->m,
			    (long long)run->ask->chunk, (long long)most, run->ask->steps ? " to keep" : "");
	}
	run->out->n_chunks = longest ? (longest - 1) / run->ask->chunk + 1 : 0;
	run->out->chunk = longest < run->ask->chunk ? longest : run->ask->chunk;
	run->out->n_steps = steps;
	return OK;
}

static int64_t
weight_of(const struct run *run, int segment, int64_t longest)
{
	int64_t weight = WEIGHT_ONE;
	if (run->ask->p.by_length && longest > 0)
		weight = (int64_t)((Wide)run->bytes[segment] * WEIGHT_ONE / longest);
	return weight > 0 ? weight : 1;
}

static Status
new_hops(struct run *run)
{
	const SimPlan *plan = run->plan;
	int64_t longest = 0;
	for (int s = 0; s < plan->sched->n_segments; s++)
		longest = run->bytes[s] > longest ? run->bytes[s] : longest;
	TRY(TEMP(run->ctx, run->hop, plan->n_hops));
	for (int h = 0; h < plan->n_hops; h++) {
		const SimHop *hop = &plan->hop[h];
		run->hop[h].weight = weight_of(run, hop->segment, longest);
		for (int i = 0; i < hop->n_path; i++)
			run->hop[h].latency += sim_link_latency(run->ask, &plan->sched->topo->link[hop->path[i]]);
	}
	return clocks_new(run->ctx, plan->n_hops, &run->clocks);
}

static Status
new_gpus(struct run *run)
{
	const SimPlan *plan = run->plan;
	int n_ranks = plan->sched->topo->n_ranks;
	int64_t *room;
	TRY(TEMP(run->ctx, run->gpu, n_ranks));
	TRY(TEMP(run->ctx, run->touched, n_ranks));
	TRY(TEMP(run->ctx, room, plan->n_hops));
	for (int h = 0; h < plan->n_hops; h++)
		run->gpu[plan->hop[h].src].waiting.n++;
	for (int r = 0; r < n_ranks; r++) {
		int n = run->gpu[r].waiting.n;
		run->gpu[r] = (struct gpu_run){ .freed_by = -1, .waiting = { 0, room } };
		room += n;
	}
	return OK;
}

/* Input is there after the call, and where its part is set up. */
static Status
new_values(struct run *run)
{
	const SimPlan *plan = run->plan;
	TRY(TEMP(run->ctx, run->value, plan->n_values));
	for (int v = 0; v < plan->n_values; v++) {
		const Segment *segment = &plan->sched->segment[plan->value_segment[v]];
		int64_t setup = plan->sched->n_parts ? plan->sched->part[segment->part].setup : 0;
		for (int i = plan->first_in[v]; i < plan->first_in[v + 1]; i++)
			run->value[v].serial |= plan->hop[plan->in[i]].adds && !run->ask->p.fused;
		if (plan->first_in[v] == plan->first_in[v + 1] && run->chunks[plan->value_segment[v]] > 0)
			TRY(events_add(run->ctx, &run->events, (Event){ (run->ask->p.call + setup) * PS_PER_NS,
			    plan->n_hops + v, -1 }));
	}
	return OK;
}

/* Places of the steps that are kept. n_steps counts them again as they begin. */
static Status
keep_steps(struct run *run)
{
	const SimPlan *plan = run->plan;
	int64_t n = 0;
	if (run->ask->steps) {
		TRY(NEW(run->ctx, run->out->step, run->out->n_steps));
		TRY(TEMP(run->ctx, run->step_at, run->out->n_steps));
		TRY(TEMP(run->ctx, run->first_step, plan->n_hops));
		for (int h = 0; h < plan->n_hops; n += run->chunks[plan->hop[h++].segment])
			run->first_step[h] = n;
	}
	run->out->n_steps = 0;
	return OK;
}

static Status
prepare(struct run *run)
{
	TRY(cut(run));
	TRY(new_hops(run));
	TRY(new_values(run));
	TRY(new_gpus(run));
	TRY(links_new(run));
	return keep_steps(run);
}

Status
sim_run(Ctx *ctx, const SimPlan *plan, const SimAsk *ask, SimResult *out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	SimResult result = { .packets = by_packets(ask), .last = -1 };
	struct run run = { .ctx = ctx, .plan = plan, .ask = ask, .out = &result };
	TRY(NEW(ctx, result.moved, plan->sched->topo->n_links));
	TRY(NEW(ctx, result.busy, plan->sched->topo->n_links));
	TRY(prepare(&run));
	TRY(simulate(&run));
	arena_release(&ctx->scratch, mark);
	*out = result;
	return OK;
}
