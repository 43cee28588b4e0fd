/* Engine: executes the calls of one rank, in order, against the memory of its peers. */
#ifndef BLINK_ENGINE_H
#define BLINK_ENGINE_H

#include "base/digest.h"
#include "blink_program.h"
#include "bootstrap/bootstrap.h"
#include "engine/bell.h"
#include "model/model.h"
#include "model/rank_program.h"
#include "reduce/reduce.h"
#include "transport/net.h"

#include <pthread.h>

/* Another rank, as the engine of this one sees it. Pointers are into its region, or into this one; without shared
 * memory all of them are into memory of this process, and the net carries what changes (engine/remote.c). */
struct peer {
	struct region_peer *mine;	/* of it, in this rank's memory: its `ready`, and `done` of what it read here */
	struct region_peer *theirs;	/* of this rank, in its memory; NULL: it is reached by the net */
	struct channel *in;		/* what it sends: whose slots this rank reads */
	struct bell *bell;
	const char *arena;
	_Atomic int64_t gone_at;	/* ns: it has left, or the net does not reach it any more; 0: it is there */
	char *gone;			/* why; written before gone_at */
	bool left;			/* it said farewell before anything failed; the bootstrap's thread alone */
};

/* Memory that every rank has registered, each its own (blinkCommRegister). */
struct window {
	const char *own;
	size_t bytes;
	char *peer[];			/* of each rank on this server: its memory, mapped here; NULL elsewhere */
};

enum { WINDOWS = 64 };

struct plan_lane {
	int peer, lane, ring;
	_Atomic uint64_t *done;		/* from: in the publisher's memory. to: in this rank's */
	struct flag *ready;		/* from: in this rank's memory. to: in the reader's */
	int mirror;			/* from: its ring among those that the net fills; -1: read in place */
	const char *direct;		/* from: where it is read in this call, if not in a ring */
};

/* A lane from a rank that the net reaches. */
struct mirror {
	int peer, lane;
};

/* What a task of the rank's program has to do in the current call. */
struct plan_task {
	const RankTask *task;
	struct plan_lane *from, *to;
	int64_t first, n;		/* elements of its block, and how many */
	int64_t chunk, n_chunks;	/* done so far, and in all */
	const char *direct;		/* what it publishes lies in the caller's memory from here on; NULL: in its
					 * ring */
	uint64_t where;			/* of it, for readers on this server */
};

/* A rank's program, ready to run with these peers. Made once, used for many calls. */
struct plan {
	Ctx ctx;			/* its memory */
	RankProgram *prog;
	struct blink_program parts;	/* for blink_part_ends: its collective, n_ranks, n_parts and part_end alone */
	uint64_t digest;		/* of the schedule, for signatures */
	char schedule[DIGEST_ROOM];	/* the digest of its file; "": it has none */
	char name[48];			/* "sha256:0123456789ab" or "built in": for messages */
	struct plan_task *task;
	const void **operand;		/* as many as the widest task has sources */
	int n_mirrors;			/* rings that the net fills */
	struct mirror *mirror;		/* by peer and lane */
	int n_to;			/* lanes that it publishes, in all */
	int64_t from_bytes, to_bytes;	/* messages that it is chosen for */
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

struct call {
	uint64_t number;		/* of all calls of this rank, from 1 */
	Collective coll;
	int root;			/* -1: none */
	const void *send;
	void *recv;
	int64_t count;			/* elements of the smaller buffer */
	struct reduction reduction;
	int asked_op;			/* as the caller gave it, for messages */
	bool internal;			/* of the library: the caller does not know of it */
	int32_t n_messages;		/* above 0: not a collective */
	struct message *message;
	struct plan *plan;		/* NULL until it is first chosen */
	struct call *next;
};

struct engine;

/* What the engine asks of its communicator. */
struct engine_events {
	void *context;
	/* The plan for a call, connected to its peers. */
	int (*plan)(void *context, const struct call *call, struct plan **out, struct blink_error *err);
	/* A collective begins: a call that is to be executed before it, as the same number, or NULL; it may set
	 * chunk_bytes. A collective has ended. Both NULL: nobody listens. */
	int (*begins)(void *context, const struct call *call, struct call **before, struct blink_error *err);
	void (*ended)(void *context, const struct call *call);
	/* The rank has waited for `deadline - patience`; it goes on; and it has never waited. */
	void (*stuck)(void *context, int64_t deadline, int64_t patience);
	void (*progress)(void *context);
	/* A defect on this rank that the others must hear of. */
	void (*failed)(void *context, const struct blink_error *err, int culprit);
};

struct engine {
	int rank, n_ranks, n_local;
	struct peer *peer;		/* of each rank; this one too */
	struct region *region;
	_Atomic(struct window *) window[WINDOWS + 1];	/* by number */
	char *arena;			/* of this rank */
	struct bell *bell;
	const struct net_kind *net;	/* NULL: all ranks are on this server */
	void *net_handle;
	int64_t timeout;		/* ns */
	int64_t chunk_bytes;		/* 0: chosen */
	int spins;			/* looks at a flag before it sleeps; 0 where ranks share CPUs */
	struct engine_events events;

	pthread_mutex_t lock;		/* of what follows */
	pthread_cond_t changed;
	struct call *first, *last;	/* calls not done, in order */
	uint64_t n_made, n_done;
	bool driven;			/* some thread executes calls */
	pthread_cond_t work;
	bool kicked;			/* there is work, and nobody who waits for it */
	bool has_worker, quit;
	bool pins;			/* the worker shall bind itself, to the share of rank number local_index */
	int local_index;
	pthread_t worker;
	struct rank_status doing;	/* as the hub asks for it */
	struct blink_error error;	/* after it, all calls fail */

	/* Of who drives. */
	_Atomic int stop;		/* an error has been set */
	struct blink_error wrong;	/* with the call that is executed: not on a stack, where it would take much */
	int rest, next_rest;		/* waits that do not give way: those left, and after the next long turn */
	bool begun;			/* the first call has */
	bool suspects;			/* a peer's signature differs: the hub has been asked */
	uint64_t collective;		/* number of the collective that is executed, or was */
	uint64_t signature, signature_before;
	int64_t chunk, slot_bytes;	/* of it: elements of a chunk, bytes of a slot */
	int slots;			/* of it: chunks that a ring holds */
	bool small;			/* its rings have one of the small places of the arena */
	uint64_t n_large;		/* calls so far that had not */
	char *rings;			/* of it, in the arena */
	size_t populated[CALLS + 2];	/* bytes of each place that have memory */
	size_t size;			/* bytes of an element */
	bool streaming;			/* more than caches hold */
	const char *input;
	char *output;
	char *kept;			/* a copy of the input, where trees would overwrite it */
	size_t kept_bytes;
	const char *own_from;		/* its own block, copied in the gaps: where from, where to, what is left */
	char *own_to;
	size_t own_left;
	int n_left;			/* tasks not done: the first of `left` */
	int *left;
	int left_capacity;
	/* Of the last CALLS calls, k at k % CALLS: what readers must have done before its place is written again. */
	struct pending *pending[CALLS];
	int n_pending[CALLS], pending_capacity[CALLS];
	_Atomic int awaits;		/* rank whose flag it sleeps for; -1 */
	_Atomic int shortage;		/* why the net accepts no connections: an errno; 0: it does */
	int64_t deadline;		/* of the current call */
	uint64_t *sent, *received;	/* of each rank: chunks of its channels so far */

	/* What the net's thread needs of the current collective: changed under net_lock, when nothing is under way. */
	pthread_mutex_t net_lock;
	const struct plan *net_plan;
	uint64_t net_collective;
	int net_slots;			/* of it, as `slots` and `slot_bytes`, which change before it does */
	int64_t net_slot_bytes;
	char *mirror;			/* the rings that the net fills: n_mirrors of the plan */
	size_t mirror_bytes;
	struct outgrown *outgrown;	/* mirrors before it */
};

/* A mirror that was too small for a call. A peer that keeps to no order may have got a place there for bytes that it
 * has not sent yet: they arrive where they harm nobody, as long as the net is open. */
struct outgrown {
	struct outgrown *next;
	char *mirror;
};

struct pending {
	_Atomic uint64_t *done;
	uint64_t value;
	int peer, lane;
};

/* What is above `lock` has been set. worker: a thread executes calls that nobody waits for; without it, they are
 * executed by who waits, as in a test. */
int engine_open(struct engine *e, bool worker, struct blink_error *err);

/* Once n_local and local_index are known: the worker binds itself to its share of the cores. */
void engine_pin(struct engine *e);

/* Take a call: it is executed after those before it, by whoever waits, or by the worker. *number: of the call. The
 * engine frees it by free(), with its messages, whatever is returned. */
int engine_submit(struct engine *e, struct call *call, struct blink_error *err);

uint64_t engine_last_call(struct engine *e);
void engine_error(struct engine *e, struct blink_error *out);
void call_free(struct call *call);

/* Until that call is done (0: all); or the error of the engine, with its text in *err. wait: else blinkInProgress. */
int engine_wait(struct engine *e, uint64_t number, bool wait, struct blink_error *err);

/* All calls fail from now on; the first error counts. From any thread. */
void engine_fail(struct engine *e, int code, const char *text);

/* The same for what fails on this rank: the others are told first. culprit: the rank to blame; -1: this one. */
void engine_fail_here(struct engine *e, const struct blink_error *err, int culprit);

/* A peer has left, or its connection has ended. An error for who still waits for it, after a grace in which a better
 * reason may come from the hub. reason: one line. From any thread. */
void engine_peer_gone(struct engine *e, int rank, const char *reason);

/* After it no thread of the engine runs: none uses the net. */
void engine_stop(struct engine *e);

/* Stops it and frees. In a forked child: frees alone. */
void engine_close(struct engine *e, bool forked);

/* What the hub asks of a rank that waits, or is waited for. */
void engine_status(struct engine *e, struct rank_status *out);

/* Memory for the flags of a rank that the net reaches. */
int peer_open(struct engine *e, int rank, struct blink_error *err);
void peer_close(struct peer *peer);

/* A rank's program with its peers. prog: in plan->ctx. Fails: blinkLimit too many lanes of a pair; blinkOutOfMemory. */
int plan_make(struct engine *e, struct plan *plan, struct blink_error *err);

/* ---- between the files of the engine ---- */

int collective_begin(struct engine *e, struct call *call, struct blink_error *err);
bool collective_progress(struct engine *e, struct call *call);	/* something moved */
bool collective_done(const struct engine *e);
bool collective_forwards(const struct engine *e, const struct call *call);	/* peers depend on what is left of it */

/* What must be the same on all ranks of a call; factors of an operation may differ. number: of the call; 0: any. */
uint64_t call_signature(const struct engine *e, const struct call *call, uint64_t number);
void call_describe(const struct call *call, char *text, size_t size);
int collective_end(struct engine *e, struct call *call, struct blink_error *err);
int plan_mirror(const struct plan *plan, int peer, int lane);	/* -1: none */
int messages_begin(struct engine *e, struct call *call, struct blink_error *err);
bool messages_progress(struct engine *e, struct call *call, struct blink_error *err);
bool messages_done(const struct call *call);
int messages_await(const struct call *call);	/* the peer of the first that waits; -1 */

/* The one flag that all progress depends on: its peer, and its number there; false: several. */
bool collective_awaits(const struct engine *e, int *peer, uint32_t *flag);

/* A peer's flag has a value that the caller wants. */
static inline bool
flag_reached(const _Atomic uint64_t *flag, uint64_t value)
{
	return atomic_load_explicit(flag, memory_order_acquire) >= value;
}

/* Numbers by which an owner's bell knows its flags: those of each writer in turn. */
enum { FLAG_DONE = LANES_MAX, FLAG_CHANNEL_READY = 2 * LANES_MAX, FLAG_CHANNEL_DONE, FLAGS_OF_PEER,
	FLAGS_OF_RANKS_MAX = INT32_MAX / FLAGS_OF_PEER };

static inline uint32_t
flag_number(int writer, int flag)
{
	return (uint32_t)(writer * FLAGS_OF_PEER + flag);
}

/* Set flags of peers, in their memory or by the net, and wake them. */
void publish(struct engine *e, const struct plan_lane *to, int64_t chunks, uint64_t where, const void *data,
    size_t bytes);
void release(struct engine *e, const struct plan_lane *from, int64_t chunks);

/* By the net, to a peer that it reaches. The engine fails if there is no memory for the message. */
void remote_send(struct engine *e, int to, const struct net_message *m, const void *payload);

/* Events of the net. */
void *remote_place(void *engine, int from, const struct net_message *m);
void remote_arrived(void *engine, int from, const struct net_message *m);
void remote_broken(void *engine, int peer, const char *reason);
void remote_short_of(void *engine, int error);

#endif
