/* How long a plan of MSCCL++ takes.
 *
 * What is simulated. All threadblocks are resident, and each does its operations one after the other, those of a
 * pipeline for each of its units. The message of M bytes is cut into the chunks of the plan. An operation that moves
 * data over links takes
 *
 *	adding						if it adds what is in its own GPU, packets that came included
 *	`step`, the start-up
 *	the bytes of all its ranges, at once, each over all links of its way
 *	the latency of the links			if it reads from other GPUs
 *	adding						if it adds what it read
 *
 * and so ends when what it writes has left. What was written arrives the latency of its links later, and so does a
 * signal after it, which waits for the writes before it. A relaxed signal does not, and has the latency of packets. A
 * switch carries what it copies or adds once. Copies within a GPU take no time, nor do semaphores and barriers.
 *
 * Packets. An operation begins when all packets that it reads have arrived. They have twice the bytes, and the latency
 * and start-up of packets.
 *
 * Port channels. The threadblock only tells the proxy of its GPU, a thread of the host, what to do, and goes on. The
 * proxy takes a `step` for each request, one after the other. Then the puts of a channel follow each other, and a
 * signal its put; those of several channels go at once. A flush waits until all puts of its channels have left.
 *
 * Adding n summands of B bytes takes reduce_step, and n B bytes at `reduce`, or B bytes at `reduce_by_link` of the
 * slowest link that a summand came by, if that is longer. `fused`, `at_once` and `by_length` do not count: who reads
 * adds, threadblocks are blocks of a kernel, and they share links equally.
 *
 * Method. Discrete events, and links as in sim_run: a transfer, one range of an operation, is a hop there, with at most
 * one message on links. What waits is woken by what it waits for. No choice is made, so the order within one time does
 * not matter. */
#include "simulate/mscclpp.h"

#include "simulate/mscclpp_run.h"

enum { STEP_NS = 50 };

/* ---- what it is at ---- */

static bool
has_ended(const struct plan_run *p, int t)
{
	return p->block[t].op == p->of->place[t].block->n_ops;
}

static const MscclppOp *
op_of(const struct plan_run *p, int t)
{
	return &p->of->place[t].block->op[p->block[t].op];
}

static int
number_of(const struct plan_run *p, int t)
{
	return p->of->place[t].first_op + p->block[t].op;
}

static void
advance(struct plan_run *p, int t)
{
	struct block *b = &p->block[t];
	const MscclppOp *loop = b->loop < 0 ? NULL : &p->of->place[t].block->op[b->loop];
	b->state = BLOCK_WAITING;
	b->op++;
	if (!loop || b->op <= b->loop + loop->n_inner)
		return;
	b->unit++;
	if (b->unit < b->n_units)
		b->op = b->loop + 1;
	else
		b->loop = -1;
}

/* ---- waiting ---- */

static int
end_of(const struct plan_run *p, int t, const MscclppOp *op, int k)
{
	const MscclppPlace *place = &p->of->place[t];
	return p->of->first_end[op->type][place->gpu] + place->block->channel[op->type][op->channel[k]];
}

static struct semaphore *
semaphore_of(const struct plan_run *p, int t, int k)
{
	return &p->gpu[p->of->place[t].gpu].semaphore[op_of(p, t)->semaphore[k]];
}

/* It is woken by what comes. */
static bool
signals_are_here(struct plan_run *p, int t, const MscclppOp *op)
{
	bool all = true;
	for (int k = 0; k < op->n_channels; k++) {
		struct channel_end *end = &p->end[end_of(p, t, op, k)];
		end->waiter = end->n > 0 ? NOBODY : t;
		all &= end->n > 0;
	}
	return all;
}

static bool
semaphores_are_free(struct plan_run *p, int t, const MscclppOp *op)
{
	bool all = true;
	for (int k = 0; k < op->n_semaphores; k++) {
		struct semaphore *semaphore = semaphore_of(p, t, k);
		semaphore->waiter = semaphore->n > 0 ? NOBODY : t;
		all &= semaphore->n > 0;
	}
	return all;
}

static bool
ports_are_idle(struct plan_run *p, int t, const MscclppOp *op)
{
	bool all = true;
	for (int k = 0; k < op->n_channels && k < op->n_dst; k++) {
		struct channel_end *end = &p->end[end_of(p, t, op, k)];
		end->flusher = end->unsent > 0 ? t : NOBODY;
		all &= end->unsent == 0;
	}
	return all;
}

/* The last one lets all go on. */
static bool
barrier_is_over(struct plan_run *p, int t, const MscclppOp *op)
{
	struct gpu *gpu = &p->gpu[p->of->place[t].gpu];
	struct barrier *barrier = &gpu->barrier[op->barrier];
	struct block *b = &p->block[t];
	if (b->round == 0) {
		b->round = barrier->round + 1;
		if (++barrier->arrived == op->n_blocks) {
			barrier->arrived = 0;
			barrier->round++;
			for (int other = gpu->first_block; other < gpu->end_block; other++)
				if (other != t && p->block[other].round == b->round)
					mscclpp_wake(p, other, b->cause);
		}
	}
	if (barrier->round < b->round)
		return false;
	b->round = 0;
	return true;
}

static bool
can_begin(struct plan_run *p, int t, const MscclppOp *op)
{
	switch (op->kind) {
	case MSCCLPP_WAIT:
	case MSCCLPP_RELAXED_WAIT:
		return signals_are_here(p, t, op);
	case MSCCLPP_ACQUIRE:
		return semaphores_are_free(p, t, op);
	case MSCCLPP_BARRIER:
		return barrier_is_over(p, t, op);
	case MSCCLPP_FLUSH:
		return ports_are_idle(p, t, op);
	case MSCCLPP_PUT_SIGNAL_FLUSH:
		return !p->block[t].told || ports_are_idle(p, t, op);
	default:
		return p->n_packets[number_of(p, t)] == 0;
	}
}

/* ---- operations ---- */

static Status
signal_all(struct plan_run *p, int t, const MscclppOp *op)
{
	int cause = p->block[t].cause;
	for (int k = 0; k < op->n_channels; k++) {
		int e = end_of(p, t, op, k), pair = p->of->end[e].pair;
		bool relaxed = op->kind == MSCCLPP_RELAXED_SIGNAL;
		if (op->type == MSCCLPP_PORT)
			TRY(mscclpp_ask_proxy(p, t, (struct request){ .hop = -1, .end = e, .cause = cause,
				.signals = true }));
		else
			TRY(mscclpp_send_signal(p, e, relaxed ? p->relaxed[pair] : p->latency[pair], cause));
	}
	return OK;
}

static void
take_all(struct plan_run *p, int t, const MscclppOp *op)
{
	for (int k = 0; k < op->n_channels; k++)
		p->end[end_of(p, t, op, k)].n--;
	for (int k = 0; k < op->n_semaphores; k++)
		semaphore_of(p, t, k)->n--;
}

static void
release_all(struct plan_run *p, int t, const MscclppOp *op)
{
	for (int k = 0; k < op->n_semaphores; k++) {
		struct semaphore *semaphore = semaphore_of(p, t, k);
		semaphore->n++;
		mscclpp_wake(p, semaphore->waiter, p->block[t].cause);
	}
}

static bool
adds(const MscclppOp *op)
{
	return op->n_src > 1 && (op->kind == MSCCLPP_REDUCE || op->kind == MSCCLPP_REDUCE_SEND
	    || op->kind == MSCCLPP_READ_REDUCE || op->kind == MSCCLPP_READ_REDUCE_SEND
	    || (op->kind >= MSCCLPP_REDUCE_PACKETS && op->kind <= MSCCLPP_REDUCE_COPY_SEND_PACKETS));
}

static bool
adds_last(const MscclppOp *op)
{
	return op->kind == MSCCLPP_READ_REDUCE || op->kind == MSCCLPP_READ_REDUCE_SEND;
}

static int64_t
adding_time(const struct plan_run *p, int t, const MscclppOp *op)
{
	const SimParameters *of = &p->all.asked->p;
	int64_t bytes = p->block[t].bytes, all, by_link;
	if (!adds(op))
		return 0;
	all = time_at_rate(bytes * (op->n_src - 1), of->reduce);
	by_link = time_at_rate(bytes, p->add[number_of(p, t)]);
	return of->reduce_step * PS_PER_NS + (all > by_link ? all : by_link);
}

/* Go on in `state`, after a while or now. */
static Status
stay(struct plan_run *p, int t, BlockState state, int64_t wait)
{
	p->block[t].state = state;
	return blocks_after(&p->all, wait, id_of_block(p, t), NOBODY);
}

static void
packets_arrive(struct plan_run *p, int h, int cause)
{
	const MscclppTransfer *of = &p->of->transfer[h];
	for (int i = of->first_reader; i < of->first_reader + of->n_readers; i++) {
		int o = p->of->reader[i], t = p->of->block_of[o];
		if (--p->n_packets[o] == 0 && number_of(p, t) == o)
			mscclpp_wake(p, t, cause);
	}
}

/* The operation is done. */
static Status
end_op(struct plan_run *p, int t)
{
	int o = number_of(p, t);
	p->all.run.n_begun++;
	for (int h = p->of->first_transfer[o]; h < p->of->first_transfer[o + 1]; h++)
		if (p->of->plan.hop[h].n_links == 0)
			packets_arrive(p, h, p->block[t].cause);
	advance(p, t);
	blocks_wake(&p->all, t);
	return run_spend(&p->all.run, STEP_NS);
}

static Status
end_moves(struct plan_run *p, int t)
{
	const MscclppOp *op = op_of(p, t);
	int64_t wait = adds_last(op) ? adding_time(p, t, op) : 0;
	return wait ? stay(p, t, BLOCK_ADDING_LAST, wait) : end_op(p, t);
}

static Status
move_bytes(struct plan_run *p, int t)
{
	struct block *b = &p->block[t];
	int o = number_of(p, t);
	b->state = BLOCK_MOVING;
	b->left = 0;
	for (int h = p->of->first_transfer[o]; h < p->of->first_transfer[o + 1]; h++) {
		if (p->of->plan.hop[h].n_links == 0)
			continue;
		b->left++;
		blocks_move(&p->all, h, p->message[h], b->bytes, b->bytes * (p->of->transfer[h].packets ? 2 : 1));
	}
	return b->left == 0 ? end_moves(p, t) : OK;
}

static Status
start_moves(struct plan_run *p, int t)
{
	const SimParameters *of = &p->all.asked->p;
	struct block *b = &p->block[t];
	int o = number_of(p, t);
	bool any = false, packets = false;
	for (int h = p->of->first_transfer[o]; h < p->of->first_transfer[o + 1]; h++) {
		if (p->of->plan.hop[h].n_links == 0)
			continue;
		p->message[h] = blocks_begin(&p->all, h, b->cause, b->unit);
		any = true;
		packets |= p->of->transfer[h].packets;
	}
	int64_t wait = any ? (packets ? of->packet_step : of->step) * PS_PER_NS : 0;
	return wait ? stay(p, t, BLOCK_STARTING, wait) : move_bytes(p, t);
}

/* The threadblock tells its proxy, and goes on. */
static Status
tell_ports(struct plan_run *p, int t, const MscclppOp *op)
{
	struct block *b = &p->block[t];
	int o = number_of(p, t);
	if (b->told) {
		b->told = false;
		return end_op(p, t);
	}
	for (int h = p->of->first_transfer[o]; h < p->of->first_transfer[o + 1]; h++)
		TRY(mscclpp_ask_proxy(p, t, (struct request){ .hop = h, .end = p->of->transfer[h].channel,
			.cause = b->cause,
			.signals = op->kind == MSCCLPP_PUT_SIGNAL || op->kind == MSCCLPP_PUT_SIGNAL_FLUSH,
			.bytes = b->bytes, .unit = b->unit }));
	b->told = op->kind == MSCCLPP_PUT_SIGNAL_FLUSH;
	if (!b->told)
		return end_op(p, t);
	blocks_wake(&p->all, t);
	return OK;
}

static Status
begin_data(struct plan_run *p, int t, const MscclppOp *op)
{
	struct block *b = &p->block[t];
	b->bytes = mscclpp_range_bytes(p, b, b->loop < 0 ? NULL : &p->of->place[t].block->op[b->loop], op);
	if (op->type == MSCCLPP_PORT)
		return tell_ports(p, t, op);
	int64_t wait = adds_last(op) ? 0 : adding_time(p, t, op);
	return wait ? stay(p, t, BLOCK_ADDING, wait) : start_moves(p, t);
}

static Status
begin_op(struct plan_run *p, int t, const MscclppOp *op)
{
	struct block *b = &p->block[t];
	switch (op->kind) {
	case MSCCLPP_PIPELINE:
		b->n_units = mscclpp_units(p, op);
		b->loop = op->n_inner > 0 ? b->op : -1;
		b->unit = 0;
		b->op++;
		blocks_wake(&p->all, t);
		return OK;
	case MSCCLPP_SIGNAL:
	case MSCCLPP_RELAXED_SIGNAL:
		TRY(signal_all(p, t, op));
		break;
	case MSCCLPP_WAIT:
	case MSCCLPP_RELAXED_WAIT:
	case MSCCLPP_ACQUIRE:
		take_all(p, t, op);
		break;
	case MSCCLPP_RELEASE:
		release_all(p, t, op);
		break;
	case MSCCLPP_NOP:
	case MSCCLPP_BARRIER:
	case MSCCLPP_FLUSH:
		break;
	default:
		return begin_data(p, t, op);
	}
	return end_op(p, t);
}

/* ---- time ---- */

static Status
go_on(struct blocks *all, int t)
{
	struct plan_run *p = (struct plan_run *)all;
	if (p->block[t].state != BLOCK_WAITING || has_ended(p, t) || !can_begin(p, t, op_of(p, t)))
		return OK;
	return begin_op(p, t, op_of(p, t));
}

static Status
next_state(struct plan_run *p, int t)
{
	BlockState state = p->block[t].state;
	return state == BLOCK_ADDING ? start_moves(p, t) : state == BLOCK_STARTING ? move_bytes(p, t) : end_op(p, t);
}

/* What a threadblock reads is of use when it has arrived; what it writes is no more its matter when it has left. */
static Status
end_transfer(struct plan_run *p, int h)
{
	int t = p->of->transfer[h].block;
	p->block[t].cause = p->message[h];
	return --p->block[t].left == 0 ? end_moves(p, t) : OK;
}

static Status
moved(struct blocks *all, int h)
{
	struct plan_run *p = (struct plan_run *)all;
	const MscclppTransfer *of = &p->of->transfer[h];
	int message = p->message[h], pair = of->first_pair;
	bool packets = of->packets && of->channel < 0;
	blocks_end(all, message);
	TRY(blocks_after(all, packets ? p->relaxed[pair] : p->latency[pair], h, message));
	if (of->channel >= 0)
		return mscclpp_end_put(p, of->channel);
	return of->reads ? OK : end_transfer(p, h);
}

static Status
happens(struct blocks *all, Event event)
{
	struct plan_run *p = (struct plan_run *)all;
	int t = event.id - p->of->plan.n_hops, e = t - p->of->n_blocks, g = e - p->of->n_ends;
	if (g >= 0)
		return mscclpp_go_on_proxy(p, g);
	if (e >= 0) {
		p->end[e].n++;
		mscclpp_wake(p, p->end[e].waiter, event.step);
		return OK;
	}
	if (t >= 0)
		return next_state(p, t);
	blocks_arrive(all, event.step);
	packets_arrive(p, event.id, event.step);
	return p->of->transfer[event.id].reads ? end_transfer(p, event.id) : OK;
}

static const struct blocks_kind kind = { go_on, happens, moved };

static Status
simulate(struct plan_run *p)
{
	TRY(mscclpp_start(p));
	TRY(blocks_run(&p->all, p->of->n_blocks));
	for (int t = 0; t < p->of->n_blocks; t++)
		if (!has_ended(p, t))
			return fail(p->all.run.ctx, INTERNAL, "%s: gpu %d, tb %d hangs", p->of->of->name,
			    p->of->place[t].gpu, p->of->place[t].block->id);
	return OK;
}

Status
sim_mscclpp_run(Ctx *ctx, const SimMscclpp *plan, const SimAsk *ask, SimResult *out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	SimResult result;
	struct plan_run p = { .of = plan };
	TRY(blocks_new(ctx, &plan->plan, plan->of->name, &kind, plan->n_blocks, ask, &result, &p.all));
	TRY(simulate(&p));
	arena_release(&ctx->scratch, mark);
	*out = result;
	return OK;
}
