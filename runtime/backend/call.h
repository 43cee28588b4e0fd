/* Calls of a rank, and the plans by which collectives are done: the same for every backend. */
#ifndef BLINK_CALL_H
#define BLINK_CALL_H

#include "base/digest.h"
#include "blink_program.h"
#include "model/model.h"
#include "model/rank_program.h"
#include "reduce/reduce.h"

#include <stdbool.h>

/* What this rank does by one schedule. Made once, used for many calls. */
struct plan {
	Ctx ctx;			/* its memory */
	RankProgram *prog;
	bool flat;			/* each rank gives to all who need it at once, by shared memory: no tasks */
	struct blink_program parts;	/* for blink_part_ends: its collective, n_ranks, n_parts and part_end alone */
	uint64_t digest;		/* of the schedule, for signatures */
	char schedule[DIGEST_ROOM];	/* the digest of its file; "": it has none */
	char name[48];			/* "sha256:0123456789ab" or "built in": for messages */
	int64_t from_bytes, to_bytes;	/* messages that it is chosen for */
	int64_t rate;			/* of a schedule of a file: bytes/us of algorithm bandwidth; 0: not known */
	struct lanes *lanes;		/* of the host's engine, in ctx: with its peers; NULL: not connected yet */
	struct plan *next;		/* of the same collective and root */
};

/* A message to or from one rank. */
struct message {
	bool sends;
	int peer;
	char *data;
	uint64_t bytes, signature;
	uint64_t first;			/* chunks of the channel before it */
	uint64_t n_chunks, chunk;	/* its own, and those done */
	struct message *next;
};

/* How ranks exchange counts: each sends its row, with `room` bytes of blocks beside it, to all by an allgather or to
 * each by an alltoall. */
struct count_exchange {
	bool to_each;
	int64_t room;
};

/* Blocks of an alltoall that differ in length (blinkAlltoAllv), in elements. What this rank gave; and what all have
 * said, before the call begins: the same on all ranks. */
struct uneven {
	struct count_exchange exchange;
	char *counts_out, *counts_in;	/* what this rank sends in that, and receives from each */
	bool known;			/* all have; never where data are on a device */
	int64_t most;			/* that a rank sends, or receives */
	int64_t most_sent;
	int64_t *send_at, *recv_at;	/* of each rank's block, in the buffers */
	int64_t *expected;		/* from each rank, by this one */
	int64_t *before;		/* of what each rank sends: to ranks below this one */
	int64_t *count;			/* from rank i to rank j at i * n + j; n * n */
	int64_t data[];
};

struct call {
	uint64_t number;		/* of all calls of this rank, from 1 */
	Collective coll;
	int root;			/* -1: none */
	const void *send;
	void *recv;
	int64_t count;			/* elements of the smaller buffer; of uneven blocks, once known, the longest */
	struct uneven *uneven;		/* NULL: blocks have one length */
	struct reduction reduction;
	int asked_op;			/* as the caller gave it, for messages */
	bool internal;			/* of the library: the caller does not know of it */
	bool exchanges_counts;		/* likewise: of a call with uneven blocks, before it */
	int32_t n_messages;		/* above 0: not a collective */
	struct message *message;
	struct plan *plan;		/* NULL until it is first chosen */
	uint64_t begun;			/* of the host's engine, with it: collectives that had, and the signatures */
	uint64_t signature, signature_before;	/* of the last two */
	struct call *next;
};

/* With its messages. */
void call_free(struct call *call);

/* Of a call with uneven blocks: its messages, which may be none. Fails: blinkOutOfMemory. */
int call_to_messages(struct call *call, int rank, int n_ranks, struct blink_error *err);

/* As blink-schedule(5) counts M; of uneven blocks the most that a rank sends or receives. */
int64_t call_message_bytes(const struct call *call, int n_ranks);

/* Of the block of an alltoall that is at `x`: its elements; of any collective: where it lies in the buffers. */
static inline int64_t
call_block(const struct call *call, const RankProgram *prog, const Extent *x)
{
	return call->uneven ? call->uneven->count[x->recv_block * prog->n_ranks + x->send_block] : call->count;
}

static inline int64_t
call_send_at(const struct call *call, int64_t block)
{
	return call->uneven ? call->uneven->send_at[block] : block * call->count;
}

static inline int64_t
call_recv_at(const struct call *call, int64_t block)
{
	return call->uneven ? call->uneven->recv_at[block] : block * call->count;
}

/* What must be the same on all ranks of a call; factors of an operation may differ. chunk_bytes: of the rank's setting.
 * number: of the call; 0: any. */
uint64_t call_signature(const struct call *call, int64_t chunk_bytes, uint64_t number);

/* "allreduce of 1000 float32, sum, schedule sha256:0123456789ab" */
void call_describe(const struct call *call, char *text, size_t size);

#endif
