/* How long a schedule takes.
 *
 * What is simulated. Each segment is cut into chunks of ask->chunk bytes, the last perhaps shorter. A chunk on an edge
 * is a step. It can begin when its chunk is complete at the sender (all edges up into it have arrived and been added;
 * on the way down its one edge has; at the root, all edges up), and when the chunk before it on the same edge has
 * ended. Of the steps that can begin, a GPU has `at_once` under way; the others wait, the least chunk first, and of
 * one chunk in the order of plan.c: the order in which a sender issues. A step is
 *
 *	`step`, the start-up		holds one of the `at_once`, and of the `cores` of all ranks
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
 * Sharing. A step on several links goes at one rate over all of them, as it passes switches cut-through. Links are
 * shared by weighted max-min fairness: links.c. Weights are, with `by_length`, the lengths of segments, as a kernel
 * that gives blocks to segments by their length; else all equal, as copy engines do. With weights by length a tree is
 * never below the rate that it was planned with: loads of all trees fit every link, so that weight / (sum of weights
 * on it) is at least that, on each link of its route.
 *
 * Switches that multicast or reduce. An edge that begins at a switch begins with the edge whose data it copies, and
 * costs its sender nothing; one that ends at a switch is added there, in no time, and arrives when it would over the
 * rest of the other's links.
 *
 * Queues. With `in_order` the first link of a route is a queue: of the steps whose start-up is done one moves at a
 * time, and the next only where that one leaves some of the link, as another link bounds it, or has ended.
 *
 * Parts. The trees of a part of a hybrid schedule begin `setup` later, which is how long peer access takes to switch.
 *
 * Packets. A message of `packet_most` bytes or less has twice its bytes on each link (as many of flags as of data),
 * start-ups of `packet_step`, and `packet_hop` of the latency. One by lines has 16 / 15 of its bytes, and `line_hop`.
 * Each step has `header` bytes more.
 *
 * Exactness. Times are whole ps, what a link gives to each weight (a level) whole 2^-52 bytes/s, work whole
 * (ps * 2^-40 bytes/s). Levels are rounded down, so that the steps of a link take no more than it has; what they have
 * got is counted with one more of these units, so that an end at a whole ps is not late but where several links that
 * depend on each other are all rounded, and ends are rounded up to the next ps. No sum depends on the order of its
 * terms.
 *
 * No time is below the bound. A cut's links carry what the bound counts, at no more than their capacity, as weights of
 * one link sum to one; sim_least_time adds what the latency of links adds to that.
 *
 * Not simulated: rings of slots that hold a sender back until the receiver has read (with chunks of one size the two
 * keep step), caches and memory of GPUs, congestion inside switches.
 *
 * Method. Discrete events, on one hop of each class of those that are alike (alike.c). A hop (an edge of one tree) has
 * at most one step under way at its sender; a step that moves has a clock, which changes when shares do; what waits
 * for a known time is an event. All of one time are taken before anything begins, then GPUs grant what waits, then
 * links share: the result does not depend on the order in between. Values count chunks only, so that memory does not
 * grow with their number. */
#include "simulate/run.h"
#include "simulate/shared.h"

enum { EVENT_NS = 300 };

/* ---- steps ---- */

/* id: as of run->events. */
static Status
after(struct run *run, int64_t wait, int id, int step)
{
	if (wait > SIM_TIME_MOST - run->now)
		return fail(run->ctx, LIMIT, "%s: a message of %lld bytes takes more than 53 days",
		    run->net->plan->sched->topo->name, (long long)run->ask->m);
	return events_add(run->ctx, &run->events, run->now, wait, id, step);
}

static int
id_of_value(const struct run *run, int v)
{
	return run->net->n_hops + v;
}

static int
id_of_slot(const struct run *run, int slot)
{
	return run->net->n_hops + run->net->n_values + slot;
}

static int64_t
time_to_add(const struct run *run, int h, int64_t bytes)
{
	return time_at_rate(bytes, run->net->hop[h].add_rate);
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

static Status wake(struct run *run, int h, int cause);

/* What a switch copies begins with it. */
static Status
move_bytes(struct run *run, int slot)
{
	const struct net *net = run->net;
	struct active *active = &run->active[slot];
	int h = active->hop;
	active->state = STEP_MOVING;
	links_enter(run, slot);
	run->hop[h].moved++;
	if (run->ask->steps)
		step_of(run, active->step)->move = run->now;
	for (int i = net->first_follower[h]; i < net->first_follower[h + 1]; i++)
		TRY(wake(run, net->follower[i], active->cause));
	return OK;
}

/* Its start-up is done. With `in_order` it waits behind those that wait for the same link. */
static Status
enter(struct run *run, int slot)
{
	const struct net *net = run->net;
	if (!run->ask->p.in_order)
		return move_bytes(run, slot);
	const struct net_hop *hop = &net->hop[run->active[slot].hop];
	struct link_run *link = &run->link[net->link_class[net->place[hop->first_place].link]];
	run->active[slot].state = STEP_QUEUED;
	run->active[slot].next = NO_SLOT;
	*(link->first_queued == NO_SLOT ? &link->first_queued : &run->active[link->last_queued].next) = slot;
	link->last_queued = slot;
	run->n_queued++;
	return OK;
}

/* The first of each queue moves if nothing is bounded by its link, and then the next, as long as any does: what one
 * takes of a link is known after links have shared. */
static Status
advance_queues(struct run *run)
{
	for (bool any = run->n_queued > 0; any;) {
		any = false;
		for (int l = 0; l < run->net->n_links && run->n_queued > 0; l++) {
			struct link_run *link = &run->link[l];
			int slot = link->first_queued;
			if (slot == NO_SLOT || link->n_bound > 0)
				continue;
			link->first_queued = run->active[slot].next;
			run->n_queued--;
			TRY(move_bytes(run, slot));
			any = true;
		}
		if (any)
			TRY(links_share(run));
	}
	return OK;
}

static int64_t
start_up(const struct run *run)
{
	return protocol_step(&run->ask->p, run->protocol) * PS_PER_NS;
}

static Status
begin(struct run *run, int h, int cause)
{
	struct hop_run *hop = &run->hop[h];
	const struct net_hop *of = &run->net->hop[h];
	int64_t wait = start_up(run);
	int slot = run->free_slot[--run->n_free], step = run->ask->steps ? run->n_kept++ : -1;
	run->active[slot] = (struct active){ .hop = h, .step = step, .cause = cause };
	if (run->ask->steps) {
		*step_of(run, step) = (SimStep){ .hop = h, .cause = cause, .chunk = hop->begun, .begin = run->now };
		run->step_at[run->first_step[h] + hop->begun] = step;
	}
	run->n_begun++;
	hop->begun++;
	hop->busy = true;
	run->gpu[of->src].sending += of->feeder < 0;
	if (of->feeder >= 0)
		return move_bytes(run, slot);
	if (wait == 0)
		return enter(run, slot);
	run->active[slot].state = STEP_STARTING;
	if (run->ask->p.cores > 0 && run->n_starting == run->ask->p.cores) {
		run->active[slot].next = NO_SLOT;
		*(run->first_late == NO_SLOT ? &run->first_late : &run->active[run->last_late].next) = slot;
		run->last_late = slot;
		return OK;
	}
	run->n_starting++;
	return after(run, wait, id_of_slot(run, slot), -1);
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
	const struct net_hop *of = &run->net->hop[h];
	struct hop_run *hop = &run->hop[h];
	int64_t ready = of->feeder >= 0 ? run->hop[of->feeder].moved : run->value[of->from].there;
	if (hop->busy || hop->begun >= ready)
		return OK;
	if (of->feeder >= 0 || !(run->ask->p.at_once || run->ask->p.in_order))
		return begin(run, h, cause);
	hop->busy = true;
	hop->cause = cause;
	hop->ready = run->now;
	keys_add(&run->gpu[of->src].waiting, hop->begun << TURN_BITS | of->turn);
	touch(run, of->src);
	return OK;
}

/* ---- values ---- */

static Status
complete(struct run *run, int v, int64_t chunks, int cause)
{
	const struct net *net = run->net;
	struct value_run *value = &run->value[v];
	value->there += chunks;
	value->have = 0;
	for (int i = net->first_in[v]; i < net->first_in[v + 1]; i++)
		value->have += run->hop[net->in[i]].arrived > value->there;
	for (int i = net->first_out[v]; i < net->first_out[v + 1]; i++)
		TRY(wake(run, net->out[i], cause));
	run->out->last = cause;
	return OK;
}

/* The next addition, if its chunk has arrived. */
static Status
add_next(struct run *run, int v)
{
	const struct net *net = run->net;
	struct value_run *value = &run->value[v];
	int h = net->in[net->first_in[v] + value->next];
	int64_t bytes = chunk_bytes(run, net->value_segment[v], value->there);
	if (value->adding || run->hop[h].arrived <= value->there)
		return OK;
	value->adding = true;
	return after(run, net->hop[h].adds ? run->ask->p.reduce_step * PS_PER_NS + time_to_add(run, h, bytes) : 0,
	    id_of_value(run, v), step_at(run, h, value->there));
}

static Status
added(struct run *run, int v, int step)
{
	const struct net *net = run->net;
	struct value_run *value = &run->value[v];
	value->adding = false;
	if (step >= 0)
		step_of(run, step)->arrive = run->now;
	if (++value->next == net->first_in[v + 1] - net->first_in[v]) {
		value->next = 0;
		TRY(complete(run, v, 1, step));
	}
	return add_next(run, v);
}

static Status
arrive(struct run *run, int h, int step)
{
	int v = run->net->hop[h].to;
	struct value_run *value = &run->value[v];
	struct hop_run *hop = &run->hop[h];
	hop->arrived++;
	if (value->serial)
		return add_next(run, v);
	if (run->ask->steps)
		step_of(run, step)->arrive = run->now;
	value->have += hop->arrived == value->there + 1;
	while (value->have == run->net->first_in[v + 1] - run->net->first_in[v])
		TRY(complete(run, v, 1, step));
	return OK;
}

/* ---- time ---- */

/* The sender has done its part. */
static Status
end_step(struct run *run, int slot)
{
	int h = run->active[slot].hop, step = run->active[slot].step;
	const struct net_hop *of = &run->net->hop[h];
	run->hop[h].busy = false;
	run->free_slot[run->n_free++] = slot;
	if (run->ask->steps)
		step_of(run, step)->end = run->now;
	if (of->feeder < 0) {
		run->gpu[of->src].sending--;
		run->gpu[of->src].freed_by = step;
		touch(run, of->src);
	}
	if (of->latency == 0)
		TRY(arrive(run, h, step));
	else
		TRY(after(run, of->latency, h, step));
	return wake(run, h, step);
}

/* A processor has done a start-up: it goes on with that of the step that has waited longest. */
static Status
start_late(struct run *run)
{
	int slot = run->first_late;
	run->n_starting--;
	if (slot == NO_SLOT)
		return OK;
	run->first_late = run->active[slot].next;
	run->n_starting++;
	return after(run, start_up(run), id_of_slot(run, slot), -1);
}

static Status
next_state(struct run *run, int slot)
{
	struct active *step = &run->active[slot];
	const struct net_hop *hop = &run->net->hop[step->hop];
	int64_t wait = 0;
	if (step->state == STEP_STARTING) {
		TRY(start_late(run));
		return enter(run, slot);
	}
	if (step->state == STEP_ADDING)
		return end_step(run, slot);
	if (hop->adds && run->ask->p.fused)
		wait = time_to_add(run, step->hop, chunk_bytes(run, hop->segment, run->hop[step->hop].begun - 1));
	if (wait == 0)
		return end_step(run, slot);
	step->state = STEP_ADDING;
	return after(run, wait, id_of_slot(run, slot), -1);
}

static Status
take_event(struct run *run)
{
	Event event = events_pop(&run->events);
	int v = event.id - run->net->n_hops, slot = v - run->net->n_values;
	if (v < 0)
		return arrive(run, event.id, event.step);
	if (slot >= 0)
		return next_state(run, slot);
	if (run->net->first_in[v] == run->net->first_in[v + 1])
		return complete(run, v, run->chunks[run->net->value_segment[v]], -1);
	return added(run, v, event.step);
}

/* What waits begins, where a GPU has room for it. */
static Status
grant(struct run *run)
{
	for (int i = 0; i < run->n_touched; i++) {
		struct gpu_run *gpu = &run->gpu[run->touched[i]];
		gpu->touched = false;
		while (gpu->waiting.n > 0 && (!run->ask->p.at_once || gpu->sending < run->ask->p.at_once)) {
			int64_t key = keys_pop(&gpu->waiting);
			int turn = (int)(key & ((INT64_C(1) << TURN_BITS) - 1));
			int h = run->net->issue[run->net->first_issue[run->touched[i]] + turn];
			int cause = run->hop[h].cause;
			bool waited = gpu->freed_by >= 0 && run->hop[h].ready < run->now;
			TRY(begin(run, h, waited ? gpu->freed_by : cause));
		}
	}
	run->n_touched = 0;
	return OK;
}

static Status
simulate(struct run *run)
{
	for (int64_t time; run_next_time(run, &time);) {
		if (time > run->most || run->late) {
			run->out->time = INT64_MAX;
			run->out->n_steps = run->n_begun;
			return OK;
		}
		run->now = time;
		do {
			if (events_time(&run->events) == time)
				TRY(take_event(run));
			else
				TRY(next_state(run, links_leave(run)));
			TRY(run_spend(run, EVENT_NS));
		} while (run_next_time(run, &time) && time == run->now);
		TRY(grant(run));
		TRY(links_share(run));
		TRY(advance_queues(run));
	}
	run->out->time = run->now;
	return OK;
}

/* ---- what is simulated ---- */

static Status
cut(struct run *run)
{
	const struct net *net = run->net;
	const Schedule *sched = net->plan->sched;
	int64_t longest = 0, most = run->ask->steps ? LIMIT_SIM_KEPT : LIMIT_SIM_STEPS;
	Wide steps = 0, to_simulate = 0;
	TRY(TEMP(run->ctx, run->chunks, sched->n_segments));
	for (int s = 0; s < sched->n_segments; s++) {
		const Tree *tree = &sched->segment[s].tree;
		int64_t chunks = (net->bytes[s] + run->ask->chunk - 1) / run->ask->chunk;
		run->chunks[s] = chunks;
		longest = net->bytes[s] > longest ? net->bytes[s] : longest;
		steps += (Wide)chunks * (tree->n_up + tree->n_down);
	}
	for (int h = 0; h < net->n_hops; h++)
		to_simulate += run->chunks[net->hop[h].segment];
	if (to_simulate > most)
		return fail(run->ctx, LIMIT, "%s: a message of %lld bytes in chunks of %lld: %s%lld steps to %s: "
		    "want at most %lld, by larger chunks", sched->topo->name, (long long)run->ask->m,
		    (long long)run->ask->chunk, more_than(to_simulate), at_most(to_simulate),
		    run->ask->steps ? "keep" : "simulate", (long long)most);
	run->n_steps = (int64_t)to_simulate;
	run->out->n_chunks = longest ? (longest - 1) / run->ask->chunk + 1 : 0;
	run->out->chunk = longest < run->ask->chunk ? longest : run->ask->chunk;
	run->out->n_steps = (int64_t)steps;
	return OK;
}

static Status
new_gpus(struct run *run)
{
	const struct net *net = run->net;
	int64_t *room;
	TRY(TEMP_EACH(run->ctx, net->n_gpus, run->gpu, run->touched));
	TRY(TEMP(run->ctx, room, net->n_hops));
	for (int g = 0; g < net->n_gpus; g++)
		run->gpu[g] = (struct gpu_run){ .freed_by = -1, .waiting = { 0, room + net->first_issue[g] } };
	return OK;
}

/* Input is there after the call, and when its segment may begin. */
static Status
new_values(struct run *run)
{
	const struct net *net = run->net;
	const int64_t *begin = net->plan->begin;
	TRY(TEMP(run->ctx, run->value, net->n_values));
	for (int v = 0; v < net->n_values; v++) {
		int64_t wait = run->ask->p.call + (begin ? begin[net->value_segment[v]] : 0);
		for (int i = net->first_in[v]; i < net->first_in[v + 1]; i++)
			run->value[v].serial |= net->hop[net->in[i]].adds && !run->ask->p.fused;
		if (net->first_in[v] == net->first_in[v + 1] && run->chunks[net->value_segment[v]] > 0)
			TRY(after(run, wait * PS_PER_NS, id_of_value(run, v), -1));
	}
	return OK;
}

/* Places of the steps that are kept. */
static Status
keep_steps(struct run *run)
{
	const struct net *net = run->net;
	int64_t n = 0;
	if (!run->ask->steps)
		return OK;
	TRY(NEW(run->ctx, run->out->step, run->out->n_steps));
	TRY(TEMP(run->ctx, run->step_at, run->out->n_steps));
	TRY(TEMP(run->ctx, run->first_step, net->n_hops));
	for (int h = 0; h < net->n_hops; n += run->chunks[net->hop[h++].segment])
		run->first_step[h] = n;
	return OK;
}

static Status
prepare(struct run *run)
{
	TRY(cut(run));
	TRY(TEMP(run->ctx, run->hop, run->net->n_hops));
	TRY(new_values(run));
	TRY(new_gpus(run));
	TRY(links_new(run));
	return keep_steps(run);
}

Status
sim_run_net(Ctx *ctx, const struct net *net, const SimAsk *ask, int64_t most, SimResult *out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	SimProtocol protocol = sim_protocol(net->plan, &ask->p, ask->m);
	SimResult result = { .protocol = protocol, .last = -1 };
	struct run run = { .ctx = ctx, .net = net, .ask = ask, .protocol = protocol, .out = &result, .most = most,
		.first_late = NO_SLOT };
	int n_links = net->plan->sched->topo->n_links;
	TRY(NEW_EACH(ctx, n_links, result.moved, result.busy));
	TRY(prepare(&run));
	TRY(simulate(&run));
	for (int l = 0; l < n_links && result.time < INT64_MAX; l++) {
		const struct link_run *link = &run.link[net->link_class[l]];
		TRY(links_carried(ctx, net->plan->sched->topo->name, ask->m, link->moved, &result.moved[l]));
		result.busy[l] = link->busy;
	}
	arena_release(&ctx->scratch, mark);
	*out = result;
	return OK;
}

Status
sim_run(Ctx *ctx, const SimPlan *plan, const SimAsk *ask, SimResult *out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct net net;
	if (plan->too_large)
		return sim_at_least(ctx, plan, ask, out);
	if (ask->p.by_memory)
		return sim_shared(ctx, plan, ask, out);
	TRY(net_new(ctx, plan, ask, &net));
	TRY(sim_run_net(ctx, &net, ask, SIM_TIME_MOST, out));
	arena_release(&ctx->scratch, mark);
	return OK;
}
