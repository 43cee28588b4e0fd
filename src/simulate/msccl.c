/* How long an algorithm of MSCCL takes.
 *
 * What is simulated. All threadblocks are resident, and each does its steps one after the other. The message of M bytes
 * is cut into the chunks of the file. A chunk that is larger than a slot of a connection is cut into slices, and every
 * threadblock does all of its steps for one slice, then all for the next; smaller chunks of one step share a slot, as
 * many as it has room for. So a step sends or receives one or more messages. A step waits for the one that it depends
 * on, in the same slice. Then for each message
 *
 *	it waits until the message has arrived		if it receives
 *	and until its own connection has a free slot	if it sends
 *	adding						if it reduces, and `fused` is off
 *	`step`, the start-up				if it sends
 *	the bytes over all links of its way
 *	adding						if the receiver reduces, and `fused` is on
 *
 * A message is there the latency of its links later. It holds its slot from when its sender begins until its receiver
 * is done with it: one that also sends keeps the slot until it has sent. That a slot is free the sender knows at once.
 * Copies within a GPU take no time, as in sim_run.
 *
 * `fused`, and who pays for adding, are as in sim_run: a schedule and the same schedule as an algorithm of MSCCL take
 * the same time where each step has one chunk, slots do not bind, and links are shared alike. They are not with
 * `by_length`: here threadblocks share a link equally, since each is a block of a kernel, whatever it has to send. Nor
 * does `at_once` bound them. And a step of several chunks is waited for as a whole.
 *
 * Packets. Not the size of the message decides, but the protocol of the file: LL doubles the bytes, of which half is
 * flags; LL128 has 8 bytes of flags with 120 of data. Both have the start-up and latency of packets.
 *
 * Method. Discrete events, and links as in sim_run: a threadblock is a hop there, with at most one message under way.
 * What waits is woken by what it waits for: the threadblock at the other end of a connection, or the one that it
 * depends on. No choice is made, so the order within one time does not matter. */
#include "simulate/msccl.h"
#include "simulate/run.h"

#include <string.h>

typedef enum { BLOCK_WAITING, BLOCK_ADDING, BLOCK_STARTING, BLOCK_MOVING, BLOCK_ADDING_THERE } BlockState;

struct block {
	BlockState state;
	int64_t slice;
	int step, part;		/* the current one, and its current message */
	int64_t sent, arrived, taken;	/* messages of its own connection, that it sends on */
	int64_t latency;
	int last;		/* the message that let it do what it did last */
	int cause;		/* likewise what it does next; -1: the call */
	int current;		/* the message that it sends */
	int first_waiter, next_waiter;	/* of those that depend on it; in the list of the one that it waits for */
	bool waits;		/* is in such a list */
	bool woken;
};

enum { NO_WAITER = -1, STEP_NS = 50 };

/* Steps that neither send nor receive take less time to simulate than messages. */
enum { PARTS_OF_MESSAGE = 16 };

struct program {
	struct net net;			/* bytes: of the message that each threadblock sends, on links */
	struct run run;			/* links, clocks, events, result; a hop for each threadblock */
	SimAsk ask;			/* as links.c is to see it: no packets, and chunks of any size */
	const SimAsk *asked;
	const SimMsccl *of;
	struct block *block;
	int *in_flight;			/* of each threadblock: its messages that have not been taken, a ring */
	int *woken, n_woken;
	int64_t chunk, slice, n_slices;	/* bytes of a chunk and of a slice of it; slices of a chunk */
	int together;			/* chunks in one message, at most */
	Wide *moved;			/* of each link: bytes without flags */
};

/* ---- sizes ---- */

/* Bytes on links, with flags. */
static int64_t
wire_bytes(const struct program *p, int64_t bytes)
{
	if (!by_packets(p->asked))
		return bytes;
	return strcmp(p->of->algo->protocol, "LL128") == 0 ? bytes + (bytes + 14) / 15 : 2 * bytes;
}

static int
parts_of(const struct program *p, const MscclStep *step)
{
	return step->count ? (step->count - 1) / p->together + 1 : 1;
}

static int64_t
message_bytes(const struct program *p, const struct block *b, const MscclStep *step)
{
	int64_t slice = p->chunk - b->slice * p->slice;
	int chunks = step->count - b->part * p->together;
	return (slice < p->slice ? slice : p->slice) * (chunks < p->together ? chunks : p->together);
}

/* ---- waiting ---- */

static const MscclStep *
step_of(const struct program *p, int t)
{
	return &p->of->place[t].block->step[p->block[t].step];
}

static bool
has_ended(const struct program *p, int t)
{
	return p->block[t].slice == p->n_slices || p->of->place[t].block->n_steps == 0;
}

/* cause: the message by which it may be so. */
static void
wake(struct program *p, int t, int cause)
{
	struct block *b = &p->block[t];
	if (b->state != BLOCK_WAITING || b->waits)
		return;
	b->cause = cause;
	if (!b->woken)
		p->woken[p->n_woken++] = t;
	b->woken = true;
}

static void
wake_waiters(struct program *p, int t)
{
	int next = p->block[t].first_waiter;
	p->block[t].first_waiter = NO_WAITER;
	while (next != NO_WAITER) {
		int waiter = next;
		next = p->block[waiter].next_waiter;
		p->block[waiter].waits = false;
		wake(p, waiter, p->block[t].last);
	}
}

/* Has the step that this one depends on ended? If not, wait for its threadblock. */
static bool
depends_on_nothing(struct program *p, int t, const MscclStep *step)
{
	struct block *b = &p->block[t], *on;
	if (step->dep_block < 0 || b->part > 0)
		return true;
	on = &p->block[p->of->place[t].first + step->dep_block];
	if (on->slice > b->slice || (on->slice == b->slice && on->step > step->dep_step))
		return true;
	b->waits = true;
	b->next_waiter = on->first_waiter;
	on->first_waiter = t;
	return false;
}

static bool
can_begin(struct program *p, int t)
{
	const MscclStep *step = step_of(p, t);
	const MscclOpKind *op = &msccl_ops[step->op];
	const struct block *b = &p->block[t];
	int in = p->of->place[t].in;
	if (!depends_on_nothing(p, t, step))
		return false;
	return (!op->receives || p->block[in].arrived > p->block[in].taken)
	    && (!op->sends || b->sent - b->taken < p->of->slots);
}

/* ---- a message ---- */

static Status
too_long(struct program *p)
{
	return fail(p->run.ctx, LIMIT, "%s: a message of %lld bytes takes more than 53 days", p->of->algo->name,
	    (long long)p->asked->m);
}

/* Go on in `state` after `wait` ps. */
static Status
stay(struct program *p, int t, BlockState state, int64_t wait)
{
	p->block[t].state = state;
	if (wait > SIM_TIME_MOST - p->run.now)
		return too_long(p);
	return events_add(p->run.ctx, &p->run.events, p->run.now, wait, p->of->plan.n_hops + t, -1);
}

/* What a threadblock does with its own GPU's memory, before it sends. */
static int64_t
local_time(const struct program *p, const MscclStep *step, int64_t bytes)
{
	const MscclOpKind *op = &msccl_ops[step->op];
	if (step->op != MSCCL_REDUCE && (!op->receives || !op->reads || p->asked->p.fused))
		return 0;
	return p->asked->p.reduce_step * PS_PER_NS + time_at_rate(bytes, p->asked->p.reduce);
}

static int *
in_flight(const struct program *p, int t, int64_t k)
{
	return &p->in_flight[t * p->of->slots + k % p->of->slots];
}

static SimStep *
kept(const struct program *p, int message)
{
	return p->asked->steps ? &p->run.out->step[message] : NULL;
}

static Status
move_bytes(struct program *p, int t)
{
	const SimHop *hop = &p->of->plan.hop[t];
	int64_t bytes = message_bytes(p, &p->block[t], step_of(p, t));
	p->block[t].state = BLOCK_MOVING;
	p->net.bytes[t] = wire_bytes(p, bytes);
	p->run.active[t] = (struct active){ .hop = t, .step = p->block[t].current };
	links_enter(&p->run, t);
	for (int i = 0; i < hop->n_links; i++)
		p->moved[hop->link[i]] += bytes;
	if (p->asked->steps)
		kept(p, p->block[t].current)->move = p->run.now;
	return OK;
}

static Status
begin_to_send(struct program *p, int t)
{
	struct block *b = &p->block[t];
	const SimParameters *of = &p->asked->p;
	int64_t wait = (by_packets(p->asked) ? of->packet_step : of->step) * PS_PER_NS;
	b->current = (int)p->run.out->n_steps++;
	if (p->asked->steps)
		*kept(p, b->current) = (SimStep){ .hop = t, .cause = b->cause, .chunk = b->sent,
			.begin = p->run.now };
	*in_flight(p, t, b->sent++) = b->current;
	return wait ? stay(p, t, BLOCK_STARTING, wait) : move_bytes(p, t);
}

static void
arrive(struct program *p, int t)
{
	struct block *b = &p->block[t];
	int message = *in_flight(p, t, b->arrived++);
	if (p->asked->steps)
		kept(p, message)->arrive = p->run.now;
	p->run.out->last = message;
	wake(p, p->of->place[t].to, message);
}

/* The message that it received is done with; then that it sent is on its way; then comes the next one. */
static Status
end_message(struct program *p, int t)
{
	struct block *b = &p->block[t];
	const MscclStep *step = step_of(p, t);
	const MscclOpKind *op = &msccl_ops[step->op];
	const MscclPlace *place = &p->of->place[t];
	b->state = BLOCK_WAITING;
	p->run.n_begun++;
	TRY(run_spend(&p->run, STEP_NS));
	b->last = op->sends ? b->current : b->cause;
	if (op->receives) {
		struct block *from = &p->block[place->in];
		b->last = op->sends ? b->last : *in_flight(p, place->in, from->taken);
		from->taken++;
		wake(p, place->in, b->last);
	}
	if (op->sends && p->asked->steps)
		kept(p, b->current)->end = p->run.now;
	if (op->sends && b->latency > SIM_TIME_MOST - p->run.now)
		return too_long(p);
	if (op->sends)
		TRY(events_add(p->run.ctx, &p->run.events, p->run.now, b->latency, t, b->current));
	if (++b->part == parts_of(p, step)) {
		b->part = 0;
		if (++b->step == place->block->n_steps) {
			b->step = 0;
			b->slice++;
		}
		wake_waiters(p, t);
	}
	wake(p, t, b->last);
	return OK;
}

/* As far as it takes no time. */
static Status
go_on(struct program *p, int t)
{
	struct block *b = &p->block[t];
	while (b->state == BLOCK_WAITING && !b->waits && !has_ended(p, t) && can_begin(p, t)) {
		const MscclStep *step = step_of(p, t);
		int64_t wait = step->op == MSCCL_NOP ? 0 : local_time(p, step, message_bytes(p, b, step));
		if (wait)
			TRY(stay(p, t, BLOCK_ADDING, wait));
		else
			TRY(msccl_ops[step->op].sends ? begin_to_send(p, t) : end_message(p, t));
	}
	return OK;
}

static Status
next_state(struct program *p, int t)
{
	const struct block *b = &p->block[t];
	const MscclStep *step = step_of(p, t);
	int64_t wait = 0;
	if (b->state == BLOCK_ADDING)
		return msccl_ops[step->op].sends ? begin_to_send(p, t) : end_message(p, t);
	if (b->state == BLOCK_STARTING)
		return move_bytes(p, t);
	if (b->state == BLOCK_ADDING_THERE)
		return end_message(p, t);
	if (p->of->place[t].adds[b->step] && p->asked->p.fused)
		wait = time_at_rate(message_bytes(p, b, step),
		    sim_add_rate(&p->asked->p, p->of->plan.sched->topo, &p->of->plan.hop[t]));
	return wait ? stay(p, t, BLOCK_ADDING_THERE, wait) : end_message(p, t);
}

/* ---- time ---- */

/* A message arrives, or a threadblock goes on. */
static Status
take_event(struct program *p)
{
	int id = events_pop(&p->run.events).id, n = p->of->plan.n_hops;
	if (id >= n)
		return next_state(p, id - n);
	arrive(p, id);
	return OK;
}

/* Everything that happens now, until all that is left takes time. */
static Status
happen(struct program *p)
{
	int64_t time;
	for (;;) {
		if (p->n_woken) {
			int t = p->woken[--p->n_woken];
			p->block[t].woken = false;
			TRY(go_on(p, t));
		} else if (!run_next_time(&p->run, &time) || time > p->run.now) {
			TRY(run_spend(&p->run, 0));
			return links_share(&p->run);
		} else if (events_time(&p->run.events) == time) {
			TRY(take_event(p));
		} else {
			TRY(next_state(p, links_leave(&p->run)));
		}
	}
}

static Status
simulate(struct program *p)
{
	int64_t time;
	p->run.now = p->asked->p.call * PS_PER_NS;
	for (int t = 0; t < p->of->plan.n_hops; t++)
		wake(p, t, -1);
	TRY(happen(p));
	while (run_next_time(&p->run, &time)) {
		p->run.now = time;
		TRY(happen(p));
	}
	for (int t = 0; t < p->of->plan.n_hops; t++)
		if (!has_ended(p, t))
			return fail(p->run.ctx, INTERNAL, "%s: threadblock %d hangs", p->of->algo->name, t);
	p->run.out->time = p->run.now;
	return OK;
}

/* ---- what is simulated ---- */

static Status
cut(struct program *p)
{
	const Msccl *algo = p->of->algo;
	int64_t n = sim_msccl_chunks(algo), messages = 0, parts = 0, longest = 0;
	int64_t most = p->asked->steps ? LIMIT_SIM_KEPT : LIMIT_SIM_STEPS;
	Wide to_send, to_do;
	p->chunk = (p->asked->m - 1) / n + 1;
	p->slice = p->chunk < p->asked->chunk ? p->chunk : p->asked->chunk;
	p->n_slices = (p->chunk - 1) / p->slice + 1;
	int64_t together = p->asked->chunk / p->slice;
	p->together = together < LIMIT_MSCCL_CHUNKS ? (int)together : LIMIT_MSCCL_CHUNKS;
	for (int t = 0; t < p->of->plan.n_hops; t++) {
		const MscclBlock *b = p->of->place[t].block;
		for (int i = 0; i < b->n_steps; i++) {
			int chunks = b->step[i].count < p->together ? b->step[i].count : p->together;
			parts += parts_of(p, &b->step[i]);
			if (!msccl_ops[b->step[i].op].sends)
				continue;
			messages += parts_of(p, &b->step[i]);
			longest = chunks * p->slice > longest ? chunks * p->slice : longest;
		}
	}
	to_send = (Wide)messages * p->n_slices;
	to_do = (Wide)parts * p->n_slices;
	if (to_send > most)
		return fail(p->run.ctx, LIMIT, "%s: a message of %lld bytes in slices of %lld: %s%lld messages to %s: "
		    "want at most %lld, by larger slices", algo->name, (long long)p->asked->m, (long long)p->slice,
		    more_than(to_send), at_most(to_send), p->asked->steps ? "keep" : "simulate", (long long)most);
	if (to_do > LIMIT_SIM_STEPS * PARTS_OF_MESSAGE)
		return fail(p->run.ctx, LIMIT, "%s: a message of %lld bytes in slices of %lld: %s%lld steps of "
		    "threadblocks: want at most %lld, by larger slices", algo->name, (long long)p->asked->m,
		    (long long)p->slice, more_than(to_do), at_most(to_do),
		    (long long)LIMIT_SIM_STEPS * PARTS_OF_MESSAGE);
	p->run.n_steps = parts * p->n_slices;
	p->run.out->n_steps = messages * p->n_slices;
	p->run.out->chunk = longest;
	p->run.out->n_chunks = p->n_slices;
	return OK;
}

static Status
new_blocks(struct program *p)
{
	const SimPlan *plan = &p->of->plan;
	const Topology *topo = plan->sched->topo;
	Ctx *ctx = p->run.ctx;
	TRY(TEMP_EACH(ctx, plan->n_hops, p->block, p->woken));
	TRY(TEMP(ctx, p->in_flight, plan->n_hops * p->of->slots));
	TRY(TEMP(ctx, p->moved, topo->n_links));
	TRY(TEMP(ctx, p->run.hop, plan->n_hops));
	TRY(net_bare(ctx, plan, &p->ask, &p->net));
	for (int t = 0; t < plan->n_hops; t++) {
		struct block *b = &p->block[t];
		*b = (struct block){ .last = -1, .cause = -1, .first_waiter = NO_WAITER };
		for (int i = 0; i < plan->hop[t].n_links; i++)
			b->latency += sim_link_latency(p->asked, &topo->link[plan->hop[t].link[i]]);
	}
	return OK;
}

static Status
run_all(struct program *p, SimResult *result)
{
	Ctx *ctx = p->run.ctx;
	TRY(cut(p));
	TRY(new_blocks(p));
	TRY(links_new(&p->run));
	if (p->asked->steps)
		TRY(NEW(ctx, result->step, result->n_steps));
	result->n_steps = 0;
	TRY(simulate(p));
	for (int l = 0; l < p->of->plan.sched->topo->n_links; l++) {
		TRY(links_carried(ctx, p->of->algo->name, p->asked->m, p->moved[l], &result->moved[l]));
		result->busy[l] = p->run.link[p->net.link_class[l]].busy;
	}
	return OK;
}

Status
sim_msccl_run(Ctx *ctx, const SimMsccl *program, const SimAsk *ask, SimResult *out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	SimResult result = { .packets = by_packets(ask), .last = -1 };
	struct program p = { .asked = ask, .of = program, .ask = *ask };
	p.ask.chunk = INT64_MAX;
	p.ask.p.packet_most = 0;
	p.ask.p.at_once = 0;
	p.run = (struct run){ .ctx = ctx, .net = &p.net, .ask = &p.ask, .out = &result,
		.most = INT64_MAX };
	TRY(NEW_EACH(ctx, program->plan.sched->topo->n_links, result.moved, result.busy));
	TRY(run_all(&p, &result));
	arena_release(&ctx->scratch, mark);
	*out = result;
	return OK;
}
