/* The state of one run of an algorithm of MSCCL, for the files of this folder. run.c has the idea. */
#ifndef BLINK_MSCCL_STATE_H
#define BLINK_MSCCL_STATE_H

#include "msccl/msccl.h"

enum { PLACE_NONE = -1, PLACE_MIXED = -2 };	/* nothing was written; sums of different places */
enum { NOT_TWICE = -1 };

typedef struct {
	int place, twice;	/* twice: a rank that contributed more than once */
	uint64_t ranks[];
} Value;

struct access {
	int block, clock, step;	/* of which threadblock, when; block -1: none */
	struct access *next;
};

struct cell {
	struct access wrote, *reads;	/* since then */
};

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
	MscclFindings *list;
	int slots, words, n_blocks, first_queued, last_queued;
	bool in_place, raced;
	size_t value_size;
	struct block *block;
	int64_t *base;		/* of each GPU and buffer: its first cell */
	char *value;		/* of each cell */
	struct cell *cell;
	struct access *unused;
};

static inline Value *
value_of(const struct run *run, int64_t cell)
{
	return (Value *)(run->value + (size_t)cell * run->value_size);
}

/* memory.c */
Status run_lay_out(struct run *run, int64_t *n_cells);	/* base */
Status run_fill(struct run *run, int64_t n_cells);	/* what ranks have before; value, cell */
void run_reduce(const struct run *run, Value *to, const Value *from);	/* to = to op from */

/* races.c: the current step of this threadblock reads, or writes, a cell. A race is reported once. */
Status run_note_read(struct run *run, struct block *b, int self, int64_t cell);
Status run_note_write(struct run *run, struct block *b, int self, int64_t cell);

/* result.c: does each rank have what the collective asks? Reports the first chunk that is wrong; list->root. */
Status run_check_result(struct run *run);

#endif
