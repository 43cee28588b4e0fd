/* Program: what each rank does with the chunks of each segment. */
#ifndef BLINK_MODEL_PROGRAM_H
#define BLINK_MODEL_PROGRAM_H

#include "model/schedule.h"

/* What is executed, for every chunk of every segment. A stream executes its steps in order; steps of different
 * streams run at once unless one waits for the other. Only schedule/lower.c, format/cu*.c and the executor of the
 * runtime use it. */

typedef enum { PLACE_INPUT, PLACE_OUTPUT, PLACE_SCRATCH } PlaceKind;

typedef struct {
	PlaceKind kind;		/* the rank's send buffer, its receive buffer, or a ring of scratch chunks */
	int rank;		/* whose memory */
	int ring;		/* PLACE_SCRATCH: which ring; chunk c lies in slot c % PROGRAM_RING of it */
} Place;

typedef enum { STEP_COPY, STEP_REDUCE } StepOp;

/* COPY: to = from, over `edge`.  REDUCE: to = from op with, all on one rank; `with` came over `edge`. */
typedef struct {
	StepOp op;
	bool up;		/* which phase it belongs to */
	const Edge *edge;
	Place to, from, with;
	int stream;
	int after;		/* step of another stream that makes what it reads of the same chunk; -1: none */
	int n_before;
	int *before;		/* steps of other streams that still read chunk c - PROGRAM_RING in its slot */
	int event;		/* what others wait for; -1: none waits for this step */
} Step;

typedef struct {
	int rank;		/* whose GPU the stream belongs to: the sender of a copy */
	int segment;
	bool up;
	const Edge *edge;	/* the edge that it copies over; NULL: it reduces */
} Stream;

/* Each ring has one edge that fills it: what arrives for a reduction, a sum (edge NULL), or what a rank passes on. */
typedef enum { RING_ARRIVAL, RING_SUM, RING_RELAY } RingUse;

typedef struct {
	int rank;		/* whose memory it lies in */
	int segment;
	RingUse use;
	const Edge *edge;
} Ring;

/* Where a segment lies in the buffers of the ranks that hold or need it. They are cut into blocks of `count`
 * elements, and a block into parts, of `n` elements each; the segment is element floor(begin * n) up to, not including,
 * floor(end * n) of its part. Without parts a block is one. */
typedef struct {
	int64_t send_block, recv_block;
	int part;
	Frac begin, end;
} Extent;

enum { PROGRAM_RING = 2 };	/* chunks that a scratch ring holds: one arriving while one is read */

typedef struct {
	const Schedule *sched;
	bool keep_input;	/* a tree may write where another still reads, if sent and received in place */
	Extent *extent;		/* of each segment */
	int n_parts;		/* at least 1 */
	PartEnd *part_end;	/* n_parts stages of n_parts - 1 each: see sched_split */
	int n_streams, n_rings, n_events, n_steps;
	Stream *stream;
	Ring *ring;
	Step *step;		/* of segment s: first_step[s] .. first_step[s + 1] - 1, in order of issue */
	int *first_step;
} Program;

#endif
