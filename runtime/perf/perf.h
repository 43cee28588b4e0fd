/* A run of blink-perf: its schedule, buffers and results. */
#ifndef BLINK_PERF_PERF_H
#define BLINK_PERF_PERF_H

#include "perf/options.h"
#include "support/clock.h"

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

/* What is printed of one run, out of place or in place. */
struct side {
	double time, algbw, busbw;	/* seconds; 1e9 bytes/s */
	int64_t n_wrong;		/* -1: not checked */
};

struct row {
	int64_t bytes;
	blinkChoice_t choice;		/* of a job; else all 0 */
	struct side side[2];
};

struct job;
struct device;
struct output;
struct perf;

/* How calls are made: one.c and rank.c have a row each. Functions return 0, or the failure was reported. */
struct mode {
	/* A communicator with this size of chunks; 0: the usual. Of a job, all ranks call it. Exit code. */
	int (*join)(struct perf *p, int64_t chunk, blinkComm_t *comm);
	/* Do this number of runs; they are done when it returns. */
	int (*runs)(struct perf *p, int64_t n);
	/* Of a job alone. Runs are of `calls` calls from here on: on a GPU with --graph these are captured now. */
	int (*begin)(struct perf *p, int64_t calls);
	void (*end)(struct perf *p);
};

struct perf {
	struct options opt;
	char *path;			/* of the schedule's file; of a job NULL */
	blinkSchedule_t sched;		/* of a job NULL */
	blinkScheduleInfo_t info;	/* of a job: collective, nRanks, root and collectiveName alone */
	blinkComm_t comm;
	blinkComm_t home;		/* whose memory the buffers are; not comm where a search has chosen another */
	int first, end;			/* ranks that run here */
	const struct mode *mode;
	struct job *job;		/* NULL: all of them, by one schedule */
	const char *gpu;		/* of this rank of a job, in the machine; NULL: not given */
	struct device *device;		/* of a rank on a GPU */
	const char *device_name;	/* of its GPU; NULL: the host */
	struct output *out;		/* NULL: another rank prints */
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

/* Buffers for the ranks that run here. 0, or the failure was reported. */
int perf_allocate(struct perf *p);

/* Measure and print a row for each type, operation and size, and what follows them; exit code. */
int perf_table(struct perf *p);

/* Destroys the communicators, too. */
void perf_release(struct perf *p);

static inline double
seconds(void)
{
	return 1e-9 * (double)now_ns();
}

/* ---- one.c: this process drives all ranks by one schedule ---- */

/* Exit code. */
int one_perf(struct perf *p);

/* ---- rank.c: a rank of a job ---- */

/* Exit code. info, first, end, job and gpu have been set. */
int rank_perf(struct perf *p);

/* ---- output.c ---- */

/* What is printed at the start, for each row, and at the end. */
struct output *output_begin(const struct perf *p);	/* NULL: the failure was reported */
void output_row(struct output *o, const struct perf *p, const struct row *row);
int output_end(struct output *o, const struct perf *p);	/* 0, or the failure was reported */
void output_free(struct output *o);

/* A line of the search for chunks: in the format text alone. */
void output_note(const struct perf *p, const char *format, ...) __attribute__((format(printf, 2, 3)));

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
