/* Blocks of an alltoall that differ in length, and what they hold. */
#ifndef BLOCKS_H
#define BLOCKS_H

#include "device.h"

/* A buffer of a block for each rank. */
struct blocks {
	size_t count[JOB_RANKS], displ[JOB_RANKS], n;
	int32_t *data;
	char *device;
};

struct blocks_pair {
	blinkComm_t comm;
	struct blocks send, recv;
};

enum { BLOCKS_ROUNDS = 60 };		/* each with counts of another kind */

/* Counts follow from seed and round, the same on all ranks. */
void blocks_make(struct rank *me, struct blocks_pair *p, blinkComm_t comm, uint64_t seed, uint64_t round);
void blocks_free(struct rank *me, struct blocks_pair *p);

/* Other values to send, and nothing received. */
void blocks_fill(struct rank *me, struct blocks_pair *p, uint64_t values);

/* False, and a fault: the call failed. */
bool blocks_exchange(struct rank *me, const struct blocks_pair *p, void *stream);

/* After it: a fault where a block is wrong, or something beside a block was written. */
void blocks_judge(struct rank *me, struct blocks_pair *p, uint64_t values, int round);

#endif
