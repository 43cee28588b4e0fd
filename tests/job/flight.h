/* Many calls at once: started without waiting in between, then waited for and looked at. */
#ifndef FLIGHT_H
#define FLIGHT_H

#include "call.h"
#include "job.h"

struct flight {
	int n_ranks, rank, n_calls;
	struct call *calls;
	struct buffers *buffers;
	char *memory;
	size_t bytes;
	blinkComm_t comm;		/* of the first call; NULL: none has begun */
	char *device;			/* the memory on its GPU; NULL: on the host */
	void *stream;
};

/* The same calls on each of the n ranks, by the seed; counts up to `most`, and some of up to `rare`. */
void flight_make(struct flight *f, int n, int rank, int n_calls, size_t most, size_t rare, uint64_t seed);
bool flight_start_one(struct flight *f, struct rank *me, blinkComm_t comm, int k);
void flight_land(struct flight *f, struct rank *me);	/* after the wait: look at all, and free */
void flight_free(struct flight *f, struct rank *me);

/* All of it on a communicator; the first error, which is no fault; wrong data is one. */
blinkResult_t flight_try(struct rank *me, blinkComm_t comm, int n_calls, size_t most, uint64_t seed);

/* The same; an error is a fault; false after one. */
bool flight_run(struct rank *me, blinkComm_t comm, int n_calls, size_t most, uint64_t seed);

/* A fault, with the communicator's error, unless the result is blinkSuccess. */
bool fine(struct rank *me, blinkResult_t result, blinkComm_t comm, const char *what);

/* Wait for all calls of it. */
bool wait_for(struct rank *me, blinkComm_t comm);

/* Bytes of message k from one rank to another, up to 4096, and of every eighth message up to 300000. */
size_t message_bytes(uint64_t seed, int from, int to, int k);

#endif
