/* A run of blink-perf: its schedule, buffers and results. */
#ifndef BLINK_PERF_PERF_H
#define BLINK_PERF_PERF_H

#include "options.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GUARD = 256 };		/* bytes before and after each buffer, which no run may change */
enum { KNOWN = 1 << 18 };	/* first elements of an allreduce's result, computed once for all ranks */

/* An integer of the type, extended to 64 bits, or a float. */
union value {
	uint64_t u;
	double f;
};

struct buffer {
	char *memory, *data;		/* `data` lies GUARD bytes into `memory` */
};

struct perf {
	struct options opt;
	char *path;			/* of the schedule's file */
	blinkSchedule_t sched;
	blinkScheduleInfo_t info;
	blinkComm_t comm;
	struct buffer *send, *recv;	/* of each rank */
	const void **from;		/* arguments of blinkRun */
	void **to;
	const struct type *type;
	const struct op *op;		/* NULL: the collective does not reduce */
	size_t count, size;		/* elements of a block, bytes of an element */
	size_t n_known;			/* elements in known */
	union value *known;
	int64_t n_wrong;		/* elements, in all runs */
	int code;			/* exit code of the first failure */
	double busbw_sum;
	int n_rows;
};

/* One run of the collective, and the clock. */
blinkResult_t run_once(struct perf *p);
double seconds(void);

/* ---- search.c ---- */

/* Try sizes of chunks for the current row, print what they take, and leave a communicator with the best one in p->comm.
 * 0, or the failure was reported. */
int search_chunk(struct perf *p);

/* Print the error of the communicator; returns the exit code. */
int comm_failed(struct perf *p, blinkResult_t result);

/* ---- data.c ---- */

bool reduces(const struct perf *p);

/* Blocks of `count` elements in the send (receive) buffer of rank r (blink.h). */
size_t send_blocks(const struct perf *p, int r);
size_t recv_blocks(const struct perf *p, int r);

/* Blocks in what nccl-tests call the size of a collective. */
int64_t size_blocks(const struct perf *p);

/* Fill the buffers of all ranks, and set p->from and p->to. 0, or the failure was reported. */
int data_prepare(struct perf *p, bool in_place);

/* After a run, add the number of elements and guard bytes that are not as they must be to n_wrong. 0, or the failure
 * was reported. */
int data_check(struct perf *p, bool in_place, int64_t *n_wrong);

#endif
