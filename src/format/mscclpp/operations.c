/* The operations of a threadblock, by what its hops have given it to do. */
#include "format/mscclpp/writer.h"

#include <string.h>

enum { UNIT = 128 << 10 };	/* bytes of a unit of a pipeline */

/* On all channels of a list. */
static Status
add_signals(struct writer *w, struct work *work, MscclppKind kind, const struct list *list)
{
	for (int type = 0; type <= MSCCLPP_PORT; type++)
		for (int i = 0; i < list->n[type]; i += GROUP) {
			MscclppOp *op;
			TRY(writer_add_op(w, work, kind, &op));
			op->type = type;
			op->n_channels = list->n[type] - i < GROUP ? list->n[type] - i : GROUP;
			TRY(TEMP(w->ctx, op->channel, op->n_channels));
			memcpy(op->channel, list->id[type] + i, (size_t)op->n_channels * sizeof *op->channel);
		}
	return OK;
}

static Status
add_use(struct writer *w, struct work *work, MscclppKind kind, int semaphore)
{
	MscclppOp *op;
	if (semaphore < 0)
		return OK;
	TRY(writer_add_op(w, work, kind, &op));
	op->n_semaphores = 1;
	TRY(TEMP(w->ctx, op->semaphore, 1));
	*op->semaphore = semaphore;
	return OK;
}

static Status
set_ranges(struct writer *w, MscclppRange **out, int *n, MscclppRange first, const struct ranges *more, int from,
    int count)
{
	*n = 1 + count;
	TRY(TEMP(w->ctx, *out, *n));
	(*out)[0] = first;
	if (count > 0)
		memcpy(*out + 1, more->range + from, (size_t)count * sizeof **out);
	return OK;
}

static int
group_of(const struct ranges *ranges, int from)
{
	return ranges->n - from < GROUP ? ranges->n - from : GROUP;
}

/* Sums of *at and these, to `to`: GROUP at a time; the last operation writes also what it can of others. */
static Status
add_sums(struct writer *w, struct work *work, const struct ranges *summands, bool remote, bool last, MscclppRange *at,
    MscclppRange to, int *written)
{
	for (int i = 0; i < summands->n; i += GROUP) {
		MscclppOp *op;
		int writes = last && i + GROUP >= summands->n ? group_of(&work->write, 0) : 0;
		if (i > 0 || at->buffer != MSCCLPP_INPUT)
			TRY(writer_add_nop(w, work));
		TRY(writer_add_op(w, work, remote ? writes ? MSCCLPP_READ_REDUCE_SEND : MSCCLPP_READ_REDUCE
		    : writes ? MSCCLPP_REDUCE_SEND : MSCCLPP_REDUCE, &op));
		op->type = remote || writes ? MSCCLPP_MEMORY : -1;
		TRY(set_ranges(w, &op->src, &op->n_src, *at, summands, i, group_of(summands, i)));
		TRY(set_ranges(w, &op->dst, &op->n_dst, to, &work->write, 0, writes));
		*at = to;
		*written += writes;
	}
	return OK;
}

/* Puts of the same range. */
static Status
add_puts(struct writer *w, struct work *work, MscclppKind kind, int type, MscclppRange at, const struct ranges *to,
    int from)
{
	for (int i = from; i < to->n; i += GROUP) {
		MscclppOp *op;
		int n = group_of(to, i);
		TRY(writer_add_op(w, work, kind, &op));
		op->type = type;
		op->n_src = op->n_dst = n;
		TRY(TEMP(w->ctx, op->src, n));
		TRY(TEMP(w->ctx, op->dst, n));
		memcpy(op->dst, to->range + i, (size_t)n * sizeof *op->dst);
		for (int k = 0; k < n; k++)
			op->src[k] = at;
		if (type != MSCCLPP_PORT)
			continue;
		op->n_channels = n;
		TRY(TEMP(w->ctx, op->channel, n));
		memcpy(op->channel, to->channel + i, (size_t)n * sizeof *op->channel);
	}
	return OK;
}

/* By the switch: switch channels of a threadblock are those of the input and of the output. */
static Status
add_switched(struct writer *w, struct work *work, MscclppRange at, MscclppRange to)
{
	MscclppOp *op;
	TRY(writer_add_op(w, work, work->collects ? MSCCLPP_LOAD_REDUCE_STORE : MSCCLPP_STORE, &op));
	op->type = MSCCLPP_SWITCH;
	op->n_channels = op->n_src = op->n_dst = 1;
	TRY(TEMP(w->ctx, op->channel, 1));
	TRY(TEMP(w->ctx, op->src, 1));
	TRY(TEMP(w->ctx, op->dst, 1));
	*op->channel = MSCCLPP_OUTPUT;
	*op->src = at;
	if (work->collects)
		*op->src = (MscclppRange){ .where = MSCCLPP_MULTICAST, .id = MSCCLPP_INPUT, .index = at.index,
			.size = at.size };
	*op->dst = (MscclppRange){ .where = MSCCLPP_MULTICAST, .id = MSCCLPP_OUTPUT, .index = to.index,
		.size = to.size };
	return OK;
}

/* For one unit. */
static Status
add_unit(struct writer *w, struct work *work)
{
	const struct node *node = writer_node(w, work->piece, work->rank);
	MscclppRange at = { .buffer = MSCCLPP_INPUT, .index = node->input, .size = writer_count(w, work->piece) };
	MscclppRange to = { .buffer = node->buffer, .index = node->place, .size = at.size };
	int written = 0;
	if (w->star[work->piece] >= 0)
		return add_switched(w, work, at, to);
	TRY(add_signals(w, work, MSCCLPP_WAIT, &work->unit_wait));
	TRY(add_use(w, work, MSCCLPP_ACQUIRE, work->acquire));
	if (work->acquire >= 0 || work->unit_wait.n[0] + work->unit_wait.n[1] > 0)
		TRY(writer_add_nop(w, work));
	if (work->collects) {
		TRY(add_sums(w, work, &work->read, true, work->add.n == 0, &at, to, &written));
		TRY(add_sums(w, work, &work->add, false, true, &at, to, &written));
	} else if (node->from >= 0 || work->acquire >= 0) {
		at = to;
	}
	if (work->collects && at.buffer != MSCCLPP_INPUT && work->write.n + work->put.n + work->put_signal.n > written)
		TRY(writer_add_nop(w, work));
	TRY(add_puts(w, work, MSCCLPP_PUT, MSCCLPP_MEMORY, at, &work->write, written));
	TRY(add_puts(w, work, MSCCLPP_PUT_SIGNAL, MSCCLPP_PORT, at, &work->put_signal, 0));
	TRY(add_puts(w, work, MSCCLPP_PUT, MSCCLPP_PORT, at, &work->put, 0));
	if (work->release >= 0 || work->unit_signal.n[0] + work->unit_signal.n[1] > 0)
		TRY(writer_add_nop(w, work));
	TRY(add_use(w, work, MSCCLPP_RELEASE, work->release));
	return add_signals(w, work, MSCCLPP_SIGNAL, &work->unit_signal);
}

/* Its ports have read what they put. The executor counts destinations, so each channel has one. The thread that flushes
 * a channel is not the one that put by it. */
static Status
add_flushes(struct writer *w, struct work *work)
{
	struct list ports = { .n = { 0, work->put.n + work->put_signal.n > 0 ? work->block->n_channels[MSCCLPP_PORT]
	    : 0 } };
	if (ports.n[MSCCLPP_PORT] > 0)
		TRY(writer_add_nop(w, work));
	int first = work->block->n_ops;
	for (int i = 0; i < ports.n[MSCCLPP_PORT]; i++)
		ports.id[MSCCLPP_PORT][i] = i;
	TRY(add_signals(w, work, MSCCLPP_FLUSH, &ports));
	for (int i = first; i < work->block->n_ops; i++) {
		MscclppOp *op = &work->block->op[i];
		op->n_dst = op->n_channels;
		TRY(TEMP(w->ctx, op->dst, op->n_dst));
		for (int k = 0; k < op->n_dst; k++)
			op->dst[k] = (MscclppRange){ .buffer = MSCCLPP_INPUT, .size = 1 };
	}
	return OK;
}

static Status
add_pipeline(struct writer *w, struct work *work)
{
	MscclppOp *op;
	int at = work->block->n_ops;
	TRY(writer_add_op(w, work, MSCCLPP_PIPELINE, &op));
	TRY(add_unit(w, work));
	op = &work->block->op[at];
	op->unit = UNIT;
	op->n_chunks = writer_count(w, work->piece);
	op->n_inner = work->block->n_ops - at - 1;
	return OK;
}

Status
writer_add_ops(struct writer *w, struct work *work)
{
	TRY(add_signals(w, work, MSCCLPP_RELAXED_SIGNAL, &work->begin_signal));
	TRY(add_signals(w, work, MSCCLPP_RELAXED_WAIT, &work->begin_wait));
	if (work->piece >= 0) {
		if (work->begin_wait.n[0] + work->begin_wait.n[1] > 0)
			TRY(writer_add_nop(w, work));
		TRY(add_pipeline(w, work));
		if (work->end_signal.n[0] + work->end_signal.n[1] > 0)
			TRY(writer_add_nop(w, work));
	}
	TRY(add_signals(w, work, MSCCLPP_SIGNAL, &work->end_signal));
	TRY(add_signals(w, work, MSCCLPP_WAIT, &work->end_wait));
	TRY(add_flushes(w, work));
	if (work->block->n_ops > MSCCLPP_MAX_OPS)
		writer_full(w, work->rank, "operations of a threadblock");
	w->plan->gpu[work->rank].block[work->block->id] = *work->block;
	return OK;
}
