/* The state of one run of an algorithm of MSCCL, for the files of this folder. run.c has the idea. */
#ifndef BLINK_MSCCL_STATE_H
#define BLINK_MSCCL_STATE_H

#include "msccl/cells.h"
#include "msccl/msccl.h"
#include "msccl/values.h"

/* From one threadblock to another: a ring of chunks in flight, with the clocks of their senders. */
struct connection {
	int from, to;
	int64_t n_sent, n_received;
	char *value;
	int *clock;
};

struct block {
	const MscclBlock *block;
	int gpu, first;		/* first: number of the first threadblock of the GPU */
	int at, unit;		/* the current step, and its current chunk */
	struct connection *in, *out;
	int *clock;		/* n_blocks */
	int **posted;		/* of each step: the clock at its end, if others wait for it; else NULL */
	int next;		/* in the queue of those that may go on; QUEUED_NOT: it is not in it */
};

enum { QUEUED_NOT = -2, QUEUED_LAST = -1 };

struct run {
	Ctx *ctx;
	const char *label;
	const Msccl *algo;
	RuleFindings *list;
	int slots, n_blocks, first_queued, last_queued;
	bool in_place, raced;
	struct block *block;
	int64_t *base;		/* of each GPU and buffer: its first cell */
	Values values;
	Cells cells;
};

/* memory.c */
Status run_lay_out(struct run *run, int64_t *n_cells);	/* base */
Status run_fill(struct run *run, int64_t n_cells);	/* what ranks have before; values, cells */

/* races.c: the current step of this threadblock reads, or writes, a cell. A race is reported once. */
Status run_note_read(struct run *run, struct block *b, int self, int64_t cell);
Status run_note_write(struct run *run, struct block *b, int self, int64_t cell);

#endif
