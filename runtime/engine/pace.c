/* Pace: what the network takes for a byte, as the calls of a communicator have shown; and the chunks that fit it.
 *
 * A segment of S bytes, in k chunks over d hops, takes k + d - 1 times what one chunk takes: S / (k R) at its rate R; h
 * bytes of headers; and t0 of a processor for each of the m rings of its rank. So it takes least in chunks of
 * sqrt(S (m t0 R + h) / (d - 1)) bytes. But the processor works while bytes are on their way: t0 counts no more where
 * chunks take some times m t0. Where it does count, a processor that others use makes the network seem slow, and short
 * chunks would make it slower: then chunks are few, or they are not short. All segments of a long message have as many
 * chunks: trees that share a link then send chunks in turn, each of the length that its share of the link has in the
 * schedule. With chunks of one length a tree of a small share gets more than that while it lasts, and others less.
 * Groups that share links at the same time, each with a schedule for its part of them, do not know of each other: the
 * number of chunks is a power of four, so that it is mostly the same there, too. What has half as many as another has
 * twice its share of their links, and then leaves them idle. Twice or half of the best number costs a quarter more of
 * what chunks cost, which is a percent or two.
 *
 * A ring has two slots beside those that arrive in the time in which a chunk is read, used and answered. With more, a
 * rank that has all its data at once, as a leaf, fills the queues of its links with chunks that nobody needs yet;
 * others, which come from further away, wait behind them at each hop.
 *
 * Chunks are the same on all ranks, so the ranks agree on the pace: by an allreduce of one number, before the call that
 * follows the 1st, 2nd, 4th, 8th ... call by a plan that was long enough to tell. A call takes longer where its ranks
 * come one after the other, and where its chunks do not fit the network: so each rank offers the least that it has
 * seen, and the least of all ranks counts. A rank that only sends copies, as the root of a short broadcast, ends before
 * the network has carried anything, and offers nothing. Until then a network of 1 GB/s is assumed. */
#include "engine/engine.h"
#include "model/host_chunks.h"
#include "support/clock.h"
#include "support/error.h"

#include <math.h>
#include <stdlib.h>

enum {
	SLOTS_OF_PACE = 2,		/* one is read while one is filled */
	LEAST_UNEVEN = 1 << 10		/* bytes of a chunk of blocks that may be much shorter than others */
};

#define ANSWER_SECONDS 5e-3		/* until `done` comes, where ranks share processors */

static bool
is_known(const struct pace *p)
{
	return p->agreed > 0 && p->agreed < INFINITY;
}

/* Bytes in a second that a segment of `bytes` of the current call has, if the call has its pace. */
static double
rate_of(const struct engine *e, int64_t bytes)
{
	double pace = is_known(&e->lanes->pace) ? e->lanes->pace.agreed : 1 / HOST_NET_ASSUMED;
	return (double)bytes / ((double)e->message_bytes * pace);
}

int64_t
pace_chunk(const struct engine *e, const RankProgram *prog, int64_t longest)
{
	return host_net_chunk_bytes(longest, rate_of(e, longest), is_known(&e->lanes->pace), prog->depth,
	    prog->rings_max);
}

int64_t
pace_slots(const struct engine *e, int64_t longest, int64_t chunk, int64_t most)
{
	double slots = SLOTS_OF_PACE + ANSWER_SECONDS * rate_of(e, longest) / (double)chunk;
	return slots < (double)most ? (int64_t)slots : most;
}

int64_t
pace_share(const struct engine *e, int64_t n, bool uneven)
{
	int64_t least = uneven ? LEAST_UNEVEN : LINE, size = (int64_t)e->size, line = size < least ? least / size : 1;
	int64_t each = ((n + e->chunks - 1) / e->chunks + line - 1) / line * line;
	return each > 0 && each < e->chunk ? each : e->chunk;
}

struct call *
pace_before(struct engine *e, const struct call *call, struct blink_error *err)
{
	struct pace *p = e->lanes ? &e->lanes->pace : NULL;
	if (!p || !e->self->net || e->self->chunk_bytes || call->internal || p->calls == 0 || p->calls < p->next)
		return NULL;
	struct call *before = calloc(1, sizeof *before);
	if (!before) {
		set_error_memory(err);
		return NULL;
	}
	p->next = 2 * p->calls;
	*before = (struct call){ .coll = ALLREDUCE, .root = -1, .send = &p->seen, .recv = &p->agreed, .count = 1,
	    .asked_op = blinkMin, .internal = true };
	reduction_make(blinkFloat64, blinkMin, e->self->n_ranks, &before->reduction);
	return before;
}

/* Has this rank waited for peers: for their data, or until they had taken its own? */
static bool
has_waited(const struct engine *e, const RankProgram *prog)
{
	bool waited = false;
	for (int i = 0; i < prog->n_tasks; i++) {
		const struct plan_task *t = &e->lanes->task[i];
		waited = waited || (t->n_chunks > 0 && (t->task->n_from > 0 || t->direct));
	}
	return waited;
}

void
pace_end(struct engine *e, const struct call *call)
{
	struct pace *p = &e->lanes->pace;
	double seconds = (double)(now_ns() - e->began) * 1e-9;
	if (call->internal || e->message_bytes < HOST_NET_TELLING)
		return;
	double pace = has_waited(e, call->plan->prog) ? seconds / (double)e->message_bytes : INFINITY;
	p->seen = p->calls == 0 || pace < p->seen ? pace : p->seen;
	p->calls++;
}
