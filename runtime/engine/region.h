/* Region: the memory of a rank that its peers on the same server see, and what each part of it is for. */
#ifndef BLINK_REGION_H
#define BLINK_REGION_H

#include "model/host_chunks.h"

#include <stdatomic.h>
#include <stdint.h>

/* Whoever waits, waits on memory of its own rank: `ready` flags that publishers set, `done` flags that readers set, and
 * one bell, on which it sleeps. Data lie with the publisher, in rings of slots, and readers take them from there: any
 * number of readers costs one copy in.
 *
 * A flag is a call's number and a number of chunks, so that flags are never cleared: chunk c of call k has been
 * published once ready >= FLAG(k, c + 1). A lane belongs to one ordered pair of ranks, so no other rank can advance it.
 *
 * A rank may begin a call while others still read what it published in those before. The arena has a place for the
 * rings of each of CALLS small calls, which take them in turn, so that a rank may be that many calls ahead; and two
 * halves, for large calls. */

#define FLAG(call, chunks) ((uint64_t)(call) << 24 | (uint64_t)(chunks))

enum {
	CHUNKS_MAX = (1 << 24) - 1,	/* of a segment in a call */
	LANES_MAX = 2048,		/* of an ordered pair */
	CALLS = 16,			/* a rank is less than that many calls ahead of its readers */
	CALL_SLOTS = 4,			/* the same of a channel for send and receive */
	CHANNEL_BYTES = 64 << 10,	/* of a slot of such a channel */
	LINE = 64			/* bytes of a cache line */
};

/* Bytes of the rings of a small call, and of a large one: memory is taken only where it is touched. */
#define SMALL_BYTES ((size_t)HOST_SMALL_BYTES)
#define HALF_BYTES ((size_t)HOST_HALF_BYTES)
#define ARENA_BYTES (CALLS * SMALL_BYTES + 2 * HALF_BYTES)

struct flag {
	_Atomic uint64_t value;
	struct first {			/* written before the value, at the first chunk of call k, at k % CALLS */
		_Atomic uint64_t signature;
		_Atomic uint64_t where;	/* 0: in the publisher's ring; else in registered memory (WHERE) */
	} first[CALLS];
};

/* The number of a window, from 1, and where in the publisher's memory of that window the first chunk lies. */
#define WHERE(window, offset) ((uint64_t)(window) << 48 | (uint64_t)(offset))
#define WHERE_WINDOW(where) ((int)((where) >> 48))
#define WHERE_OFFSET(where) ((where) & (((uint64_t)1 << 48) - 1))

/* state: 0 awake, 1 asleep until any flag changes, else asleep until flag number state - 2 does. */
struct bell {
	_Alignas(LINE) _Atomic uint32_t state;
};

/* A message of a channel begins in a slot of its own; every slot has its signature. */
struct channel_slot {
	_Alignas(LINE) uint64_t signature;
	uint64_t bytes;			/* of the whole message */
	char brief[LINE - 2 * sizeof(uint64_t)];	/* it, if it has room here */
	_Alignas(LINE) char data[CHANNEL_BYTES];
};

/* Of one ordered pair: the reader's memory has `ready`, the publisher's `done` and the slots. */
struct channel {
	_Alignas(LINE) struct flag ready;
	_Alignas(LINE) _Atomic uint64_t done;
	struct channel_slot slot[CALL_SLOTS];
};

/* What belongs to one peer in the region of a rank. Flags are numbered from `ready`, LANES_MAX of them, by lane; the
 * flags of lanes that are done and of channels follow (flag_number). */
struct region_peer {
	_Alignas(LINE) struct flag ready[LANES_MAX];
	_Alignas(LINE) _Atomic uint64_t done[LANES_MAX];
	struct channel channel;
};

/* Of small collectives (flat.c): what this rank gives in call k is in slot k % CALLS, if it is short; else in the small
 * place of the arena that the call has. The other ranks read here, and write nothing. */
enum { FLAT_SHORT = LINE - 2 * sizeof(uint64_t) };

struct flat_slot {
	_Alignas(LINE) _Atomic uint64_t number;	/* of the call; written last */
	_Atomic uint64_t signature;
	char data[FLAT_SHORT];
};

struct flat_slots {
	_Alignas(LINE) _Atomic uint64_t done;	/* the last call in which it has read from others */
	struct flat_slot slot[CALLS];
};

struct region {
	struct bell bell;
	struct flat_slots slots;
	_Alignas(4096) struct region_peer peer[];	/* of each rank on the server, in order */
};

static inline size_t
region_arena_offset(int n_local)
{
	return sizeof(struct region) + (size_t)n_local * sizeof(struct region_peer);
}

static inline size_t
region_bytes(int n_local)
{
	return region_arena_offset(n_local) + ARENA_BYTES;
}

#endif
