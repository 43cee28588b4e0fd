/* What libblink's host backend cuts messages into: the runtime goes by this, and what simulates it. */
#ifndef BLINK_MODEL_HOST_CHUNKS_H
#define BLINK_MODEL_HOST_CHUNKS_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

enum {
	HOST_LINE = 64,				/* bytes of a cache line, in which chunks are counted */
	HOST_CHUNKS_WANTED = 8,			/* of the longest segment */
	HOST_CHUNK_LEAST = 16 << 10,
	HOST_CHUNK_MOST = 256 << 10,		/* slots stay in the caches */
	HOST_SLOTS_LEAST = 4,			/* chunks that a ring holds */
	HOST_SLOTS_MOST = 32,
	HOST_RINGS_BYTES = 4 << 20,		/* of all rings of a rank, unless they have SLOTS_LEAST slots each */
	HOST_SMALL_BYTES = 128 << 10,		/* of them, at most, of a call that has one of many places */
	HOST_HALF_BYTES = 32 << 20,		/* of them, at most */
	HOST_STREAMING_BYTES = 4 << 20,		/* larger results are written past the caches */
	HOST_NET_CHUNK_LEAST = 16 << 10,	/* over a network, as long as its rate is not known */
	HOST_NET_CHUNKS_FEW = 8,		/* where t0 counts: no more of them, */
	HOST_NET_CHUNK_FEW = 32 << 10,		/* or none shorter */
	HOST_NET_CHUNKS_EQUAL = 16,		/* of as many, or more, there are 16, 64, 256 and so on */
	HOST_NET_HEADER = 192,			/* h: of a frame and a `done`, with those of TCP, IP and Ethernet */
	HOST_NET_TELLING = 256 << 10		/* bytes of messages that tell the rate */
};

#define HOST_NET_CHUNK_SECONDS 50e-6		/* t0: over loopback, 4 ranks on 2 processors */
#define HOST_NET_HIDDEN 8			/* m t0 in the time of a chunk, beside which t0 does not count */
#define HOST_NET_ASSUMED 1e9			/* bytes in a second of a message, until its rate is known */

/* Bytes of a chunk; longest: of the longest segment. asked: what the user wants, or the network; 0: nothing. rings: the
 * most that any rank has, 1 or more. */
static inline int64_t
host_chunk_bytes(int64_t longest, int64_t rings, int64_t asked)
{
	int64_t bytes = asked, most = HOST_HALF_BYTES / rings / HOST_SLOTS_LEAST / HOST_LINE * HOST_LINE;
	if (bytes == 0) {
		bytes = longest / HOST_CHUNKS_WANTED;
		bytes = bytes < HOST_CHUNK_LEAST ? HOST_CHUNK_LEAST : bytes > HOST_CHUNK_MOST ? HOST_CHUNK_MOST : bytes;
	}
	bytes = ((bytes < longest ? bytes : longest) + HOST_LINE - 1) / HOST_LINE * HOST_LINE;
	return bytes < most ? bytes : most;
}

/* Slots of each ring; chunk: bytes. A ring has as many as caches hold, so that who publishes seldom waits for
 * readers. */
static inline int64_t
host_ring_slots(int64_t rings, int64_t chunk)
{
	int64_t slots = HOST_RINGS_BYTES / rings / chunk;
	return slots < HOST_SLOTS_LEAST ? HOST_SLOTS_LEAST : slots > HOST_SLOTS_MOST ? HOST_SLOTS_MOST : slots;
}

/* Over a network: bytes of a chunk of the longest segment, which has `rate` bytes in a second; known: calls have shown
 * so. Trees have that many hops, one after the other; runtime/engine/pace.c has the reasons, and t0, h and m. Of
 * several chunks the number is a power of four. */
static inline int64_t
host_net_chunk_bytes(int64_t longest, double rate, bool known, int depth, int rings)
{
	double hop = (double)longest / (depth > 2 ? depth - 1 : 1);
	double cost = rings * HOST_NET_CHUNK_SECONDS * rate, hidden = HOST_NET_HIDDEN * cost;
	double few = fmin((double)longest / HOST_NET_CHUNKS_FEW, HOST_NET_CHUNK_FEW);
	double costly = fmin(fmax(sqrt(hop * cost), few), hidden);
	double bytes = sqrt(costly * costly + hop * HOST_NET_HEADER), least = known ? 0 : HOST_NET_CHUNK_LEAST;
	bytes = bytes < least ? least : bytes;
	if (bytes >= HOST_CHUNK_MOST || (double)longest < HOST_NET_CHUNKS_EQUAL * bytes)
		return bytes < HOST_CHUNK_MOST ? (int64_t)bytes : HOST_CHUNK_MOST;
	int64_t chunks = HOST_NET_CHUNKS_EQUAL;
	while ((double)longest > 2 * bytes * (double)chunks || longest / chunks > HOST_CHUNK_MOST)
		chunks *= 4;
	return (longest + chunks - 1) / chunks;
}

#endif
