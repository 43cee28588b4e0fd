/* Who accessed a cell of memory last, and does anything order that before the next access? Whoever does steps one after
 * the other, a threadblock for example, is an actor, and has a clock: a number for each actor, up to which of its
 * times it knows that all has happened. Two accesses to the same cell, one of them a write, that no clock orders, are a
 * race. */
#ifndef BLINK_MSCCL_CELLS_H
#define BLINK_MSCCL_CELLS_H

#include "base/status.h"

#include <stdbool.h>

typedef struct Access Access;
struct Access {
	int actor, time, step;	/* actor -1: none. step: what the caller wants to find again */
	Access *next;
};

typedef struct {
	Access wrote, *reads;	/* since then */
} Cell;

typedef struct {
	Cell *cell;
	Access *unused;
} Cells;

/* Memory: scratch. */
Status cells_make(Ctx *ctx, Cells *cells, int64_t n_cells);

/* The access `now` reads, or writes, the cell. after, after_reads: the clocks that it must come after writes and reads
 * by. *other: an access that none of them orders before this one, and which is not of the same step; else actor -1.
 * *wrote: that one writes. */
Status cells_read(Ctx *ctx, Cells *cells, int64_t cell, Access now, const int *after, Access *other);
void cells_write(Cells *cells, int64_t cell, Access now, const int *after, const int *after_reads, Access *other,
    bool *wrote);

#endif
