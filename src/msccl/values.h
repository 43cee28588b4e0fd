/* What a run of somebody's program leaves in the buffers of its ranks, chunk by chunk, and whether that is right. */
#ifndef BLINK_MSCCL_VALUES_H
#define BLINK_MSCCL_VALUES_H

#include "base/status.h"
#include "model/collective.h"

#include <stdbool.h>

enum { PLACE_NONE = -1, PLACE_MIXED = -2 };	/* nothing was written; sums of different places */
enum { NOT_TWICE = -1 };

/* The place in the message that a value belongs to, and the ranks that have contributed. A rank that is in it twice
 * stays wrong forever, as sums only grow. */
typedef struct {
	int place, twice;	/* twice: a rank that contributed more than once */
	uint64_t ranks[];
} Value;

typedef struct {
	Collective coll;
	int n_ranks, block;	/* cells of one block of the collective */
	int fine;		/* cells of a chunk: messages count chunks */
	int words;
	size_t size;		/* of a Value */
	char *value;		/* of each cell */
} Values;

static inline Value *
values_at(const Values *v, int64_t cell)
{
	return (Value *)(v->value + (size_t)cell * v->size);
}

/* Sets words, size and value: cells that hold nothing. The other members are given. Memory: scratch. */
Status values_make(Ctx *ctx, const char *label, Values *v, int64_t n_cells);

/* A cell holds what this rank's input has at its c-th cell before. */
void values_give(const Values *v, int64_t cell, int rank, int c);

/* to = to op from */
void values_reduce(const Values *v, Value *to, const Value *from);

typedef struct {
	int root;		/* of a rooted collective: the rank that it is right for; -1: none */
	int n, rank, cell;	/* how many cells of outputs are wrong; the first of them */
	char holds[200], want[60];
} Wrong;

/* Against what the collective asks; n_cells of each output, which begins at cell output[rank * stride]. A root is
 * guessed: that with the fewest wrong cells, as files do not say which rank it is. */
Wrong values_wrong(const Values *v, const int64_t *output, int stride, int n_cells);

#endif
