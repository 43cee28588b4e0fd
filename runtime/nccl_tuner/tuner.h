/* What an index of schedules predicts for the rings of NCCL. */
#ifndef BLINK_NCCL_TUNER_H
#define BLINK_NCCL_TUNER_H

#include "choose/choose.h"
#include "nccl_tuner/abi.h"

enum { RING_RANGES = 8 };	/* of sizes, for a collective: more are not used */

/* Rings for messages of from to `to` bytes. */
struct ring_costs {
	int64_t from, to;
	double latency;		/* µs */
	double rate;		/* bytes/µs */
};

/* Of a communicator of NCCL. */
struct tuner {
	Ctx ctx;			/* its memory */
	Ctx reading;			/* of one schedule */
	double least;			/* µs of any call */
	int n[N_NCCL_FUNCS];		/* 0: nothing is known */
	struct ring_costs cost[N_NCCL_FUNCS][RING_RANGES];
	char what[400];			/* for people: what is known, or why nothing is */
};

/* What the environment says: BLINK_SCHEDULES, BLINK_MACHINE, BLINK_GPUS. Any may be NULL or empty. */
struct tuner_request {
	int n_ranks, n_servers;
	double least;			/* µs of any call by ring and Simple; 0: not given */
	const char *schedules, *machine, *gpus;
};

/* Reads all that it needs. *out->what is set also where nothing is known. Fails: where what is named cannot be read,
 * with the text in out->ctx.error; NO_MEMORY. out: zeroed; the caller frees it by tuner_free, whatever is returned. */
Status tuner_learn(struct tuner *out, const struct tuner_request *ask);
void tuner_free(struct tuner *tuner);

/* For a message of a collective: NULL: not known. */
const struct ring_costs *tuner_costs(const struct tuner *tuner, int func, size_t bytes);

/* µs of `ops` calls of it that NCCL does together. */
double tuner_time(const struct tuner *tuner, const struct ring_costs *cost, size_t bytes, int ops);

#endif
