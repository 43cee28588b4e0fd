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
#include "simulate/blocks.h"

#include <stdio.h>
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
};

enum { NO_WAITER = -1, STEP_NS = 50 };

struct program {
	struct blocks all;		/* a hop for each threadblock */
	const SimMsccl *of;
	struct block *block;
	int *in_flight;			/* of each threadblock: its messages that have not been taken, a ring */
	int64_t chunk, slice, n_slices;	/* bytes of a chunk and of a slice of it; slices of a chunk */
	int together;			/* chunks in one message, at most */
};

/* ---- sizes ---- */

/* Bytes on links, with flags. */
static int64_t
wire_bytes(const struct program *p, int64_t bytes)
{
	if (p->all.run.out->protocol == SIM_CHUNKS)
		return bytes;
	return protocol_bytes(strcmp(p->of->algo->protocol, "LL128") == 0 ? SIM_LINES : SIM_PACKETS, bytes);
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
	blocks_wake(&p->all, t);
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

/* Go on in `state` after `wait` ps. */
static Status
stay(struct program *p, int t, BlockState state, int64_t wait)
{
	p->block[t].state = state;
	return blocks_after(&p->all, wait, p->of->plan.n_hops + t, -1);
}

/* What a threadblock does with its own GPU's memory, before it sends. */
static int64_t
local_time(const struct program *p, const MscclStep *step, int64_t bytes)
{
	const MscclOpKind *op = &msccl_ops[step->op];
	if (step->op != MSCCL_REDUCE && (!op->receives || !op->reads || p->all.asked->p.fused))
		return 0;
	return p->all.asked->p.reduce_step * PS_PER_NS + time_at_rate(bytes, p->all.asked->p.reduce);
}

static int *
in_flight(const struct program *p, int t, int64_t k)
{
	return &p->in_flight[t * p->of->slots + k % p->of->slots];
}

static Status
move_bytes(struct program *p, int t)
{
	int64_t bytes = message_bytes(p, &p->block[t], step_of(p, t));
	p->block[t].state = BLOCK_MOVING;
	blocks_move(&p->all, t, p->block[t].current, bytes, wire_bytes(p, bytes));
	return OK;
}

static Status
begin_to_send(struct program *p, int t)
{
	struct block *b = &p->block[t];
	const SimParameters *of = &p->all.asked->p;
	int64_t wait = protocol_step(of, p->all.run.out->protocol) * PS_PER_NS;
	b->current = blocks_begin(&p->all, t, b->cause, b->sent);
	*in_flight(p, t, b->sent++) = b->current;
	return wait ? stay(p, t, BLOCK_STARTING, wait) : move_bytes(p, t);
}

static void
arrive(struct program *p, int t)
{
	struct block *b = &p->block[t];
	int message = *in_flight(p, t, b->arrived++);
	blocks_arrive(&p->all, message);
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
	p->all.run.n_begun++;
	TRY(run_spend(&p->all.run, STEP_NS));
	b->last = op->sends ? b->current : b->cause;
	if (op->receives) {
		struct block *from = &p->block[place->in];
		b->last = op->sends ? b->last : *in_flight(p, place->in, from->taken);
		from->taken++;
		wake(p, place->in, b->last);
	}
	if (op->sends) {
		blocks_end(&p->all, b->current);
		TRY(blocks_after(&p->all, b->latency, t, b->current));
	}
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

static Status
go_on(struct blocks *all, int t)
{
	struct program *p = (struct program *)all;
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
next_state(struct blocks *all, int t)
{
	struct program *p = (struct program *)all;
	const struct block *b = &p->block[t];
	const MscclStep *step = step_of(p, t);
	int64_t wait = 0;
	if (b->state == BLOCK_ADDING)
		return msccl_ops[step->op].sends ? begin_to_send(p, t) : end_message(p, t);
	if (b->state == BLOCK_STARTING)
		return move_bytes(p, t);
	if (b->state == BLOCK_ADDING_THERE)
		return end_message(p, t);
	if (p->of->place[t].adds[b->step] && p->all.asked->p.fused)
		wait = time_at_rate(message_bytes(p, b, step),
		    sim_add_rate(&p->all.asked->p, p->of->plan.sched->topo, &p->of->plan.hop[t]));
	return wait ? stay(p, t, BLOCK_ADDING_THERE, wait) : end_message(p, t);
}

/* A message arrives, or a threadblock goes on. */
static Status
happens(struct blocks *all, Event event)
{
	struct program *p = (struct program *)all;
	int n = p->of->plan.n_hops;
	if (event.id >= n)
		return next_state(all, event.id - n);
	arrive(p, event.id);
	return OK;
}

static const struct blocks_kind kind = { go_on, happens, next_state };

/* ---- what is simulated ---- */

static Status
cut(struct program *p)
{
	const Msccl *algo = p->of->algo;
	int64_t n = sim_msccl_chunks(algo), messages = 0, parts = 0, longest = 0;
	char slices[48];
	p->chunk = (p->all.asked->m - 1) / n + 1;
	p->slice = p->chunk < p->all.asked->chunk ? p->chunk : p->all.asked->chunk;
	p->n_slices = (p->chunk - 1) / p->slice + 1;
	int64_t together = p->all.asked->chunk / p->slice;
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
	snprintf(slices, sizeof slices, "slices of %lld", (long long)p->slice);
	p->all.run.out->chunk = longest;
	p->all.run.out->n_chunks = p->n_slices;
	return blocks_room(&p->all, (Wide)messages * p->n_slices, (Wide)parts * p->n_slices, slices);
}

static Status
new_blocks(struct program *p)
{
	const SimPlan *plan = &p->of->plan;
	const Topology *topo = plan->sched->topo;
	Ctx *ctx = p->all.run.ctx;
	TRY(TEMP(ctx, p->block, plan->n_hops));
	TRY(TEMP(ctx, p->in_flight, plan->n_hops * p->of->slots));
	for (int t = 0; t < plan->n_hops; t++) {
		struct block *b = &p->block[t];
		*b = (struct block){ .last = -1, .cause = -1, .first_waiter = NO_WAITER };
		for (int i = 0; i < plan->hop[t].n_links; i++)
			b->latency += sim_link_latency(&p->all.asked->p, p->all.run.out->protocol,
			    &topo->link[plan->hop[t].link[i]]);
	}
	return OK;
}

static Status
simulate(struct program *p)
{
	int n = p->of->plan.n_hops;
	TRY(cut(p));
	TRY(new_blocks(p));
	TRY(blocks_run(&p->all, n));
	for (int t = 0; t < n; t++)
		if (!has_ended(p, t))
			return fail(p->all.run.ctx, INTERNAL, "%s: threadblock %d hangs", p->of->algo->name, t);
	return OK;
}

Status
sim_msccl_run(Ctx *ctx, const SimMsccl *program, const SimAsk *ask, SimResult *out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	SimResult result;
	struct program p = { .of = program };
	TRY(blocks_new(ctx, &program->plan, program->algo->name, &kind, program->plan.n_hops, ask, &result, &p.all));
	TRY(simulate(&p));
	arena_release(&ctx->scratch, mark);
	*out = result;
	return OK;
}
