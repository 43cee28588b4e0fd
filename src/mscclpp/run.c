/* One run of a plan that stands for all.
 *
 * An operation waits for fixed events alone: the one before it in its threadblock, the k-th signal of a channel, the
 * k-th release of a semaphore, the other threadblocks of a barrier, packets. One threadblock alone signals a channel or
 * releases a semaphore, another alone waits (rules.c), and packets are written once. Nothing chooses. So a run that
 * goes on while anything can ends with the operations that every run ends with; if others are left, every run hangs.
 *
 * Races. The threads of a block do its operations without waiting for each other, but at a nop: so two operations
 * without one between them are not in order, and a wait, which its first threads do, one for each channel, is known to
 * the others after the next nop. Each of these threads has a vector clock (Fidge 1988; state.h), and so has each port,
 * which does later what it is told to. A signal carries the clock of who sends it; after a relaxed one it is known that
 * something has happened, but what was written before it may not be there yet. A packet
 * carries what its writer knew, so that what was read for it may be overwritten. Without races all runs have the same
 * result, so the values of this one are those of all.
 *
 * Calls follow each other, and a GPU may be a call ahead of another. So a plan must access the buffers of another GPU
 * only when that has begun (entry), and a GPU must end only when nobody accesses its buffers any more (exit). Packets
 * need neither, as they lie in two halves of scratch by turns; but who sends them must not be two calls ahead (ahead):
 * it must hear of the receiver, directly or not, in each.
 *
 * Units. Pipelines repeat their operations for units of the ranges. In a run each has two, which stand for any number:
 * what holds between two of them holds between all, and pipelines that wait for each other have as many (rules.c).
 * Where scratch is reused, each chunk has one unit more than scratch has room for. */
#include "base/array.h"
#include "base/limits.h"
#include "mscclpp/state.h"

#include <stdio.h>
#include <string.h>

static struct queue *
in_queue(const struct run *run, const struct block *b, const MscclppOp *op, int i)
{
	return &run->queue[op->type][b->gpu][b->block->channel[op->type][op->channel[i]]];
}

static bool
has_any(const struct queue *queue)
{
	return queue->first || queue->n_free > 0;
}

/* ---- barriers ---- */

static Status
arrive(struct run *run, struct block *b, int self, const MscclppOp *op)
{
	struct barrier *barrier = &run->barrier[b->gpu * MSCCLPP_MAX_BARRIERS + op->barrier];
	if (b->arrived[op->barrier])
		return OK;
	block_synchronise(run, b, self);
	Clock *clock = &barrier->clock[barrier->round % 2];
	if (!clock->visible)
		TRY(clock_make(run, clock));
	if (barrier->arrived == 0)
		clock_copy(run, clock, &b->base);
	clock_join(run, clock, &b->base);
	b->arrived[op->barrier] = barrier->round + 1;
	if (++barrier->arrived == op->n_blocks) {
		barrier->arrived = 0;
		barrier->round++;
	}
	return OK;
}

static bool
is_over(const struct run *run, const struct block *b, const MscclppOp *op)
{
	return run->barrier[b->gpu * MSCCLPP_MAX_BARRIERS + op->barrier].round >= b->arrived[op->barrier];
}

static void
leave(const struct run *run, struct block *b, const MscclppOp *op)
{
	const struct barrier *barrier = &run->barrier[b->gpu * MSCCLPP_MAX_BARRIERS + op->barrier];
	clock_join(run, &b->base, &barrier->clock[(b->arrived[op->barrier] - 1) % 2]);
	b->arrived[op->barrier] = 0;
}

/* ---- operations ---- */

static bool
can_go_on(const struct run *run, const struct block *b, const MscclppOp *op)
{
	switch (op->kind) {
	case MSCCLPP_WAIT:
	case MSCCLPP_RELAXED_WAIT:
		for (int i = 0; i < op->n_channels; i++)
			if (!has_any(in_queue(run, b, op, i)))
				return false;
		return true;
	case MSCCLPP_ACQUIRE:
		for (int i = 0; i < op->n_semaphores; i++)
			if (!has_any(&run->semaphore[b->gpu][op->semaphore[i]]))
				return false;
		return true;
	case MSCCLPP_BARRIER:
		return is_over(run, b, op);
	default:
		return packets_are_there(run, b, op);
	}
}

static Status
signal_all(struct run *run, struct block *b, const MscclppOp *op)
{
	for (int i = 0; i < op->n_channels; i++) {
		int channel = b->block->channel[op->type][op->channel[i]];
		int peer = run->plan->gpu[b->gpu].peer[op->type][channel];
		struct queue *to = &run->queue[op->type][peer][mscclpp_other_end(run->plan, b->gpu, op->type, channel)];
		Clock *lane;
		TRY(lane_get(run, b, i, &lane));
		if (op->type == MSCCLPP_PORT) {
			struct proxy *proxy = &run->proxy[run->first_proxy[b->gpu] + channel];
			bool after_all = proxy_is_known(run, b, i, lane, proxy);
			proxy_tell(run, b, i, lane, proxy);
			lane = after_all ? &proxy->base : lane;
		}
		TRY(queue_put(run, to, lane, op->kind == MSCCLPP_RELAXED_SIGNAL && op->type == MSCCLPP_MEMORY));
	}
	return OK;
}

static Status
take_all(struct run *run, struct block *b, const MscclppOp *op)
{
	bool semaphores = op->kind == MSCCLPP_ACQUIRE, relaxed = op->kind == MSCCLPP_RELAXED_WAIT;
	for (int i = 0; i < (semaphores ? op->n_semaphores : op->n_channels); i++) {
		Clock *lane;
		TRY(lane_get(run, b, i, &lane));
		queue_take(run, semaphores ? &run->semaphore[b->gpu][op->semaphore[i]] : in_queue(run, b, op, i), lane,
		    relaxed && op->type == MSCCLPP_MEMORY);
	}
	return OK;
}

static Status
release_all(struct run *run, struct block *b, const MscclppOp *op)
{
	for (int i = 0; i < op->n_semaphores; i++) {
		Clock *lane;
		TRY(lane_get(run, b, i, &lane));
		TRY(queue_put(run, &run->semaphore[b->gpu][op->semaphore[i]], lane, false));
	}
	return OK;
}

/* Only of as many channels as it has destinations: see the rule. A lane may flush before another has told the port. */
static Status
flush_all(struct run *run, struct block *b, const MscclppOp *op)
{
	for (int i = 0; i < op->n_channels && i < op->n_dst; i++) {
		const struct proxy *proxy = &run->proxy[run->first_proxy[b->gpu]
		    + b->block->channel[MSCCLPP_PORT][op->channel[i]]];
		Clock *lane;
		TRY(lane_get(run, b, i, &lane));
		if (proxy_is_known(run, b, i, lane, proxy))
			clock_join(run, lane, &proxy->base);
	}
	return OK;
}

static Status
do_op(struct run *run, struct block *b, int self, const MscclppOp *op)
{
	TRY(GROW_TEMP(run->ctx, b->done, b->serial, b->done_room));
	b->done[b->serial++] = (int)(op - b->block->op);
	switch (op->kind) {
	case MSCCLPP_NOP:
		block_synchronise(run, b, self);
		return OK;
	case MSCCLPP_BARRIER:
		leave(run, b, op);
		return OK;
	case MSCCLPP_SIGNAL:
	case MSCCLPP_RELAXED_SIGNAL:
		return signal_all(run, b, op);
	case MSCCLPP_WAIT:
	case MSCCLPP_RELAXED_WAIT:
	case MSCCLPP_ACQUIRE:
		return take_all(run, b, op);
	case MSCCLPP_RELEASE:
		return release_all(run, b, op);
	case MSCCLPP_FLUSH:
		return flush_all(run, b, op);
	default:
		return move_data(run, b, self, op);
	}
}

/* To the next operation, or unit. */
static void
advance(const struct run *run, struct block *b)
{
	const MscclppOp *loop = b->pipeline < 0 ? NULL : &b->block->op[b->pipeline];
	b->at++;
	if (!loop || b->at <= b->pipeline + loop->n_inner)
		return;
	if (++b->iteration < mscclpp_iterations(run, loop))
		b->at = b->pipeline + 1;
	else
		b->pipeline = -1;
}

static Status
go_on(struct run *run, int self, bool *moved)
{
	struct block *b = &run->block[self];
	while (b->at < b->block->n_ops) {
		const MscclppOp *op = &b->block->op[b->at];
		if (op->kind == MSCCLPP_PIPELINE) {
			b->pipeline = op->n_inner ? b->at : -1;
			b->iteration = 0;
			b->at++;
			continue;
		}
		if (op->kind == MSCCLPP_BARRIER)
			TRY(arrive(run, b, self, op));
		if (!can_go_on(run, b, op))
			return OK;
		TRY(do_op(run, b, self, op));
		advance(run, b);
		*moved = true;
	}
	return OK;
}

/* ---- the end ---- */

static Status
report_deadlock(struct run *run, const struct block *b)
{
	const MscclppOp *op = &b->block->op[b->at];
	int blocked = 0;
	char what[80];
	for (int t = 0; t < run->n_blocks; t++)
		blocked += run->block[t].at < run->block[t].block->n_ops;
	snprintf(what, sizeof what, op->kind == MSCCLPP_BARRIER ? "other threadblocks"
	    : op->kind == MSCCLPP_ACQUIRE ? "a semaphore" : "packets");
	for (int i = op->n_channels - 1; i >= 0 && (op->kind == MSCCLPP_WAIT || op->kind == MSCCLPP_RELAXED_WAIT); i--)
		if (!has_any(in_queue(run, b, op, i)))
			snprintf(what, sizeof what, "a signal of gpu %d", run->plan->gpu[b->gpu].peer[op->type]
			    [b->block->channel[op->type][op->channel[i]]]);
	return mscclpp_find(run->ctx, run->list, MSCCLPP_RULE_DEADLOCK, "gpu %d, tb %d, op %d, %s: waits for %s that "
	    "does not come, in every order of execution (%d threadblock%s)", b->gpu, b->block->id, b->at,
	    mscclpp_ops[op->kind].name, what, blocked, blocked == 1 ? " waits" : "s wait");
}

/* What all threads of a GPU know when its kernel ends. */
static Status
join_gpu(struct run *run, int g, Clock *all)
{
	TRY(clock_make(run, all));
	for (int t = run->first_block[g]; t < run->first_block[g + 1]; t++) {
		block_synchronise(run, &run->block[t], t);
		clock_join(run, all, &run->block[t].base);
	}
	return OK;
}

static Status
check_end(struct run *run, int g)
{
	Clock all;
	char where[64];
	int n = run->plan->n_gpus;
	TRY(join_gpu(run, g, &all));
	for (int a = 0; a < run->n_actors; a++)
		for (int writes = 0; writes < 2 && !run->found[MSCCLPP_RULE_EXIT]; writes++) {
			int time = run->foreign[writes][a * n + g];
			if (time <= (writes ? all.visible : all.causal)[a])
				continue;
			run->found[MSCCLPP_RULE_EXIT] = true;
			TRY(mscclpp_find(run->ctx, run->list, MSCCLPP_RULE_EXIT, "gpu %d may end before %s has %s its "
			    "buffers: want it to wait for a signal after that", g, mscclpp_where(run, a, time, where),
			    writes ? "written" : "read"));
		}
	for (int p = 0; p < n && !run->found[MSCCLPP_RULE_AHEAD]; p++) {
		if (!run->sent[g * n + p] || all.causal[run->n_actors + p])
			continue;
		run->found[MSCCLPP_RULE_AHEAD] = true;
		TRY(mscclpp_find(run->ctx, run->list, MSCCLPP_RULE_AHEAD, "gpu %d sends packets to gpu %d and hears "
		    "nothing of it: want a signal or packets, as it could be two calls ahead", g, p));
	}
	return OK;
}

static Status
check_result(struct run *run)
{
	char where[64] = "";
	int fine = run->units * run->parts, stride = N_MSCCLPP_BUFFERS;
	Wrong wrong = values_wrong(&run->values, run->base + MSCCLPP_OUTPUT, stride,
	    mscclpp_expected_chunks(run->plan, MSCCLPP_OUTPUT) * fine);
	run->list->root = wrong.root;
	if (wrong.n == 0)
		return OK;
	const Access *wrote = &run->cells.cell[run->base[wrong.rank * stride + MSCCLPP_OUTPUT] + wrong.cell].wrote;
	return mscclpp_find(run->ctx, run->list, MSCCLPP_RULE_RESULT, "gpu %d: chunk %d of its output holds %s: want "
	    "%s%s%s (%d%% of all output is wrong)", wrong.rank, wrong.cell / fine, wrong.holds, wrong.want,
	    wrote->actor < 0 ? "" : "; it is of ", wrote->actor < 0 ? "" : mscclpp_where(run, wrote->actor, wrote->time,
	    where), (int)(100 * (int64_t)wrong.n / ((int64_t)run->plan->n_gpus * fine
	    * mscclpp_expected_chunks(run->plan, MSCCLPP_OUTPUT))) + 1);
}

/* ---- all of it ---- */

static Status
make_queues(struct run *run)
{
	const Mscclpp *plan = run->plan;
	for (int type = 0; type <= MSCCLPP_PORT; type++)
		TRY(TEMP(run->ctx, run->queue[type], plan->n_gpus));
	TRY(TEMP(run->ctx, run->semaphore, plan->n_gpus));
	TRY(TEMP(run->ctx, run->barrier, plan->n_gpus * MSCCLPP_MAX_BARRIERS));
	for (int g = 0; g < plan->n_gpus; g++) {
		for (int type = 0; type <= MSCCLPP_PORT; type++)
			TRY(TEMP(run->ctx, run->queue[type][g], plan->gpu[g].n_channels[type]));
		TRY(TEMP(run->ctx, run->semaphore[g], plan->gpu[g].n_semaphores));
		for (int k = 0; k < plan->gpu[g].n_semaphores; k++)
			run->semaphore[g][k].n_free = plan->gpu[g].semaphore[k];
	}
	return OK;
}

/* Cells that operations move, times actors: see LIMIT_VERIFY_STEPS. */
static Status
check_work(struct run *run)
{
	int64_t ops = 0, cells = 0;
	for (int t = 0; t < run->n_blocks; t++) {
		const MscclppBlock *b = run->block[t].block;
		const MscclppOp *loop = NULL;
		for (int i = 0; i < b->n_ops; i++) {
			const MscclppOp *op = &b->op[i];
			loop = op->kind == MSCCLPP_PIPELINE ? op : loop && op > loop + loop->n_inner ? NULL : loop;
			ops += loop ? mscclpp_iterations(run, loop) : 1;
			if (op->n_src > 0)
				cells += (int64_t)op->src->size * (op->n_src + op->n_dst) * run->units * run->parts
				    * (op->type == MSCCLPP_SWITCH ? run->plan->n_gpus : 1);
		}
	}
	if ((ops + 20 * run->n_blocks) * (run->n_known + 1) > LIMIT_MSCCL_CLOCKS || cells > LIMIT_VERIFY_STEPS)
		return fail(run->ctx, LIMIT, "%s: %lld operations in %d threadblocks: more than a search for races "
		    "takes", run->label, (long long)ops, run->n_blocks);
	return OK;
}

static Status
make_actors(struct run *run)
{
	const Mscclpp *plan = run->plan;
	int n = plan->n_gpus, n_ports = 0, t = 0;
	TRY(TEMP(run->ctx, run->first_block, n + 1));
	TRY(TEMP(run->ctx, run->first_proxy, n + 1));
	for (int g = 0; g < n; g++) {
		run->first_block[g] = run->n_blocks;
		run->first_proxy[g] = n_ports;
		run->n_blocks += plan->gpu[g].n_blocks;
		n_ports += plan->gpu[g].n_channels[MSCCLPP_PORT];
	}
	run->first_block[n] = run->n_blocks;
	run->first_proxy[n] = n_ports;
	run->n_actors = run->n_blocks + n_ports;
	run->n_known = run->n_actors + n;
	TRY(TEMP(run->ctx, run->block, run->n_blocks));
	TRY(TEMP(run->ctx, run->proxy, n_ports));
	TRY(TEMP(run->ctx, run->sent, n * n));
	if ((int64_t)run->n_actors * n > LIMIT_MSCCL_CLOCKS)
		return fail(run->ctx, LIMIT, "%s: %d threadblocks and port channels", run->label, run->n_actors);
	for (int writes = 0; writes < 2; writes++)
		TRY(TEMP(run->ctx, run->foreign[writes], run->n_actors * n));
	for (int g = 0; g < n; g++)
		for (int i = 0; i < plan->gpu[g].n_blocks; i++, t++)
			run->block[t] = (struct block){ .block = &plan->gpu[g].block[i], .gpu = g, .pipeline = -1 };
	TRY(check_work(run));
	for (t = 0; t < run->n_blocks; t++) {
		Clock *base = &run->block[t].base;
		TRY(clock_make(run, base));
		base->visible[run->n_actors + run->block[t].gpu] = base->causal[run->n_actors + run->block[t].gpu] = 1;
	}
	for (int p = 0; p < n_ports; p++)
		TRY(clock_make(run, &run->proxy[p].base));
	return OK;
}

static Status
run_all(struct run *run)
{
	int64_t n_cells;
	bool moved = true;
	TRY(mscclpp_lay_out(run, &n_cells));
	TRY(mscclpp_fill(run, n_cells));
	run->moved = arena_array(&run->ctx->scratch, 1, run->values.size);
	if (!run->moved)
		return fail_memory(run->ctx);
	TRY(make_actors(run));
	TRY(make_queues(run));
	while (moved) {
		moved = false;
		for (int t = 0; t < run->n_blocks; t++)
			TRY(go_on(run, t, &moved));
	}
	for (int t = 0; t < run->n_blocks; t++)
		if (run->block[t].at < run->block[t].block->n_ops)
			return report_deadlock(run, &run->block[t]);
	for (int g = 0; g < run->plan->n_gpus; g++)
		TRY(check_end(run, g));
	return run->found[MSCCLPP_RULE_RACE] ? OK : check_result(run);
}

Status
mscclpp_run(Ctx *ctx, const char *label, const Mscclpp *plan, RuleFindings *list)
{
	struct run run = { .ctx = ctx, .label = label, .plan = plan, .list = list };
	ArenaMark mark = arena_mark(&ctx->scratch);
	Status status = run_all(&run);
	arena_release(&ctx->scratch, mark);
	return status;
}

Status
mscclpp_lint(Ctx *ctx, const char *label, const Mscclpp *plan, RuleFindings *out)
{
	bool sound;
	*out = (RuleFindings){ .root = -1 };
	TRY(mscclpp_rules(ctx, plan, out, &sound));
	return sound ? mscclpp_run(ctx, label, plan, out) : OK;
}

Status
mscclpp_check(Ctx *ctx, const char *label, const Mscclpp *plan, RuleFindings *out)
{
	TRY(mscclpp_lint(ctx, label, plan, out));
	return findings_check(ctx, label, out, mscclpp_rule_rows);
}
