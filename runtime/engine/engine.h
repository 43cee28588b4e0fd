/* Engine: executes the calls of one rank, in order, against the memory of its peers. */
#ifndef BLINK_ENGINE_H
#define BLINK_ENGINE_H

#include "backend/backend.h"
#include "engine/bell.h"

/* Another rank, as the engine of this one sees it. Pointers are into its region, or into this one; without shared
 * memory all of them are into memory of this process, and the net carries what changes (engine/remote.c). */
struct peer {
	struct region_peer *mine;	/* of it, in this rank's memory: its `ready`, and `done` of what it read here */
	struct region_peer *theirs;	/* of this rank, in its memory; NULL: it is reached by the net */
	struct channel *in;		/* what it sends: whose slots this rank reads */
	struct bell *bell;
	struct flat_slots *slots;	/* NULL: it is reached by the net */
	uint64_t n_read;		/* chunks of this rank's channel that it has read; or more, by now */
	const char *arena;
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
	int64_t each;			/* elements of a chunk; the last may have fewer */
	int64_t chunk, n_chunks;	/* done so far, and in all */
	const char *direct;		/* what it publishes lies in the caller's memory from here on; NULL: in its
					 * ring */
	uint64_t where;			/* of it, for readers on this server */
};

/* What the network takes for a byte of a message by one plan, in seconds (pace.c). */
struct pace {
	double seen, agreed;		/* by this rank; by all, 0: not yet; INFINITY: by none */
	uint64_t calls, next;		/* that told; as many until the ranks agree again */
};

/* A plan with this rank's peers. */
struct lanes {
	struct plan_task *task;
	int *order;			/* of tasks, by whom they are for, from the next rank around; NULL: no net */
	const void **operand;		/* as many as the widest task has sources */
	int n_mirrors;			/* rings that the net fills */
	struct mirror *mirror;		/* by peer and lane */
	int n_to;			/* lanes that it publishes, in all */
	struct pace pace;
};

enum { OF_NONE = -1, OF_ALL = -2 };	/* readers of a slot; else a rank */

/* Of a small collective (flat.c). */
struct flat {
	size_t bytes;			/* that each rank gives which gives something */
	bool gives, reads;		/* this rank has still to give; it reads from others */
	int readers;			/* of what it gives: a rank, all or none */
	int next, end;			/* ranks that it has still to read from */
	const void **operand;		/* n_ranks */
	uint64_t all_done;		/* all others have done with this call, or a later one */
	struct given {
		uint64_t call;
		int readers;
	} given[CALLS];			/* what each slot holds: the call, and who reads it */
};

struct engine {
	struct rank_state *self;
	struct peer *peer;		/* of each rank; this one too */
	struct shm *shm;		/* the region, which others map */
	struct region *region;
	_Atomic(struct window *) window[WINDOWS + 1];	/* by number; 0: NULL */
	char *arena;			/* of this rank */
	struct bell *bell;

	/* Of what follows the lock is that of `self`. */
	pthread_cond_t changed;
	struct call *first, *last;	/* calls not done, in order */
	_Atomic uint64_t n_made, n_done;	/* read without the lock, too */
	bool driven;			/* some thread executes calls */
	pthread_cond_t work;
	bool kicked;			/* there is work, and nobody who waits for it */
	bool has_worker, quit;
	pthread_t worker;
	_Atomic(const struct call *) current;	/* the first call, once it has begun; for the hub, which may ask */
	struct call past;		/* a copy of the last that is done */

	/* Of who drives. */
	struct blink_error wrong;	/* with the call that is executed: not on a stack, where it would take much */
	int rest, next_rest;		/* waits that do not give way: those left, and after the next long turn */
	bool begun, done;		/* the first call has; it is */
	bool suspects, asked;		/* a peer is in another call than this rank; the hub has been asked which */
	struct lanes *lanes;		/* of the call's plan */
	uint64_t collective;		/* number of the collective that is executed, or was */
	uint64_t signature, signature_before;
	int64_t message_bytes;		/* of it, as in its rate */
	int64_t chunk, slot_bytes;	/* of it: elements of the longest segment's chunks, bytes of a slot */
	int64_t chunks;			/* of it: of each segment; 0: all have the same length instead */
	int slots;			/* of it: chunks that a ring holds */
	bool small;			/* its rings have one of the small places of the arena */
	bool is_flat, announced;	/* it has no rings; this rank's slot has its signature */
	struct flat flat;
	uint64_t n_large;		/* calls so far that had not */
	struct count_exchange exchange;	/* of the next call with uneven blocks */
	char *exchange_memory;		/* its buffers */
	size_t exchange_bytes;
	char *rings;			/* of it, in the arena */
	int64_t began;			/* ns: the current collective */
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
	int64_t deadline;		/* of the current call */
	uint64_t *sent, *received;	/* of each rank: chunks of its channels so far */

	/* What the net's thread needs of the current collective: changed under net_lock, when nothing is under way. */
	pthread_mutex_t net_lock;
	const struct lanes *net_lanes;
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

/* The row of the table of backends (backend/backend.h). */
extern const struct backend host_backend;

/* ---- between the files of the engine, each below those after it ---- */

/* plan.c. A plan's program with its peers. Fails: blinkLimit too many lanes of a pair; blinkOutOfMemory. */
int plan_connect(struct engine *e, struct plan *plan, struct blink_error *err);
int lanes_mirror(const struct lanes *lanes, int peer, int lane);	/* -1: none */

/* Memory for the flags of a rank that the net reaches. */
int peer_open(struct engine *e, int rank, struct blink_error *err);
void peer_close(struct peer *peer);

/* pace.c. A collective is about to begin: a call of the library's own that comes first, about the one before; NULL:
 * none, or no memory. It has ended. */
struct call *pace_before(struct engine *e, const struct call *call, struct blink_error *err);
void pace_end(struct engine *e, const struct call *call);
/* Over a network: bytes of a chunk, and slots of a ring, at most `most`; longest: bytes of the longest segment.
 * Elements of a chunk of a segment of n, which has `chunks` as all have; of uneven blocks, at most as many. */
int64_t pace_chunk(const struct engine *e, const RankProgram *prog, int64_t longest);
int64_t pace_slots(const struct engine *e, int64_t longest, int64_t chunk, int64_t most);
int64_t pace_share(const struct engine *e, int64_t n, bool uneven);

/* place.c. Has everybody read what the call's place in the arena, and this rank's slot, held before? Else: a rank that
 * has not, and its flag. place_remember: at the end of a call whose rings others may still read. */
bool place_is_free(struct engine *e);
bool place_awaits(struct engine *e, int *peer, uint32_t *flag);
int place_remember(struct engine *e, const RankProgram *prog, struct blink_error *err);

/* The slot has the signature of this call, so that ranks in another one see it. Is a peer in another call of the same
 * number? Or it begins one that has the slot next: then what it did in this call is seen from now on. */
void place_announce(struct engine *e);
bool place_differs(const struct engine *e, int peer);

/* uneven.c. Of uneven blocks: the call that has to come before, in which ranks exchange their counts, NULL: no
 * memory; and what follows from these, before the plan is chosen: blocks that came with them are not counted any more.
 * Fails: blinkMismatch. uneven_all_along: this rank has no block that does not go with them. */
struct call *uneven_exchange(struct engine *e, struct call *call, struct blink_error *err);
int uneven_counts(struct engine *e, struct call *call, struct blink_error *err);
bool uneven_all_along(const struct engine *e, const struct call *call);

/* collective_begin.c */
int collective_begin(struct engine *e, struct call *call, struct blink_error *err);

/* collective.c */
bool collective_progress(struct engine *e, struct call *call);	/* something moved */
bool collective_done(const struct engine *e);
bool collective_forwards(struct engine *e);	/* peers depend on what is left of it */
int collective_end(struct engine *e, struct blink_error *err);

/* The one flag that all progress depends on: its peer, and its number there; false: several. */
bool collective_awaits(struct engine *e, int *peer, uint32_t *flag);

/* Set flags of peers, in their memory or by the net, and wake them. */
void publish(struct engine *e, const struct plan_lane *to, int64_t chunks, uint64_t where, const void *data,
    size_t bytes);
void release(struct engine *e, const struct plan_lane *from, int64_t chunks);

/* flat.c: calls whose plan is flat. flat_begin: when e->flat.bytes, buffers and the place have been set. */
size_t flat_bytes(Collective coll, int n_ranks, size_t block);
void flat_begin(struct engine *e, const struct call *call);
bool flat_progress(struct engine *e, struct call *call);
int flat_awaits(const struct engine *e);	/* the first rank that has still to give; of none: whose turn it is */

/* messages.c */
int messages_begin(struct engine *e, struct call *call, struct blink_error *err);
bool messages_progress(struct engine *e, struct call *call, struct blink_error *err);
bool messages_done(const struct call *call);
int messages_await(const struct call *call);	/* the peer of the first that waits; -1 */
int engine_probe(void *of, int from, size_t *bytes, struct blink_error *err);

/* queue.c. `self` has been set. worker: a thread executes calls that nobody waits for; without it, they are executed by
 * who waits, as in a test. */
int engine_open(struct engine *e, bool worker, struct blink_error *err);

void engine_close(struct engine *e);

/* As `struct backend` has them; `of` is the engine. engine_stop: `finish`. */
void engine_stop(void *of);
int engine_submit(void *of, struct call *call, blinkStream_t stream, struct blink_error *err);
int engine_wait(void *of, uint64_t number, bool wait, struct blink_error *err);
uint64_t engine_last_call(void *of);
void engine_wake(void *of);
void engine_status(void *of, struct rank_status *out);

/* windows.c. As `struct backend` has them; the rank fails where its ranks do not agree. */
int window_register(void *of, struct memory *m, struct blink_error *err);
int window_deregister(void *of, struct memory *m, struct blink_error *err);

/* remote.c: events of the net. */
void *remote_place(void *engine, int from, const struct net_message *m);
void remote_arrived(void *engine, int from, const struct net_message *m);
void remote_broken(void *engine, int peer, const char *reason);
void remote_short_of(void *engine, int error);

/* ---- flags ---- */

/* A peer's flag has a value that the caller wants. */
static inline bool
flag_reached(const _Atomic uint64_t *flag, uint64_t value)
{
	return atomic_load_explicit(flag, memory_order_acquire) >= value;
}

/* Numbers by which an owner's bell knows its flags: those of each writer in turn. */
enum { FLAG_DONE = LANES_MAX, FLAG_CHANNEL_READY = 2 * LANES_MAX, FLAG_CHANNEL_DONE, FLAG_SLOT, FLAG_SLOT_DONE,
	FLAGS_OF_PEER, FLAGS_OF_RANKS_MAX = INT32_MAX / FLAGS_OF_PEER };

static inline uint32_t
flag_number(int writer, int flag)
{
	return (uint32_t)(writer * FLAGS_OF_PEER + flag);
}

#endif
