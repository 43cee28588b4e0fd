/* An alltoall whose blocks differ in length (blinkAlltoAllv).
 *
 * On the host, ranks tell each other all lengths first. Here nobody may wait, since a call only puts a kernel into a
 * stream; so a rank knows what it sends and receives, and of what it passes on the length comes with the data
 * (device.h). Nothing that is the same on all ranks may follow from lengths then: the schedule, the number of strips
 * and the longest chunk are those of a long message, and there are no packets.
 *
 * That is worth it where a schedule passes data on: where each block goes straight to its rank, messages do the same,
 * and cost less where many blocks are empty. */
#include "cuda/calls.h"
#include "cuda/sizes.h"
#include "support/error.h"

#include <string.h>

/* Bytes that a rank sends, as if. */
enum { ASSUMED = 64 << 20 };

int
gpu_uneven_plan(struct gpu *g, struct call *call, bool *by_messages, struct blink_error *err)
{
	struct rank_state *self = g->self;
	int64_t n = self->n_ranks, size = (int64_t)call->reduction.size;
	call->count = ASSUMED / n / size;
	call->uneven->most = call->count * n;
	if (self->events.plan(self->events.context, call, &call->plan, err) != blinkSuccess)
		return err->code;
	const RankProgram *prog = call->plan->prog;
	*by_messages = n > GPU_BLOCKS_RANKS || prog->depth <= 1 || prog->n_parts > 1;
	return *by_messages ? call_to_messages(call, self->rank, self->n_ranks, err) : blinkSuccess;
}

/* Do strips of a block of n elements have no more chunks than flags can count? */
static bool
is_counted(const struct gpu_call *p, int64_t n)
{
	int64_t shortest = GPU_CHUNK_SHORT / p->size;
	int64_t chunk = p->chunk < shortest ? p->chunk : shortest;
	return n >> GPU_COUNT_BITS == 0 && n / p->width / chunk < GPU_CHUNKS_MAX - 1;
}

int
gpu_uneven_blocks(struct gpu *g, const struct call *call, struct gpu_call *p, bool capturing,
    struct gpu_sheet **sheet, struct blink_error *err)
{
	const struct uneven *u = call->uneven;
	int n = p->n_ranks, me = p->rank;
	const int64_t *sent = u->count + me * n;
	if (sent[me] != u->expected[me])
		return set_error(err, blinkMismatch, "rank %d sends %lld elements to itself, and expects %lld", me,
		    (long long)sent[me], (long long)u->expected[me]);
	for (int r = 0; r < n; r++)
		if (!is_counted(p, sent[r]) || !is_counted(p, u->expected[r]))
			return set_error(err, blinkLimit, "a block of rank %d: too long for chunks of %lld bytes", r,
			    (long long)p->slot_bytes);
	if (!(*sheet = gpu_sheet_take(g, capturing, err)))
		return err->code;
	struct gpu_blocks *blocks = &(*sheet)->host->blocks;
	memcpy(blocks->sent, sent, (size_t)n * sizeof *sent);
	memcpy(blocks->send_at, u->send_at, (size_t)n * sizeof *sent);
	memcpy(blocks->received, u->expected, (size_t)n * sizeof *sent);
	memcpy(blocks->recv_at, u->recv_at, (size_t)n * sizeof *sent);
	p->blocks = &(*sheet)->gpu->blocks;
	p->send = call->send;
	p->recv = call->recv;
	p->own_from = p->send + u->send_at[me] * p->size;
	p->own_to = p->recv + u->recv_at[me] * p->size;
	p->own_bytes = sent[me] * p->size;
	p->counted = 0;
	return gpu_sheet_put(g, *sheet, err);
}
