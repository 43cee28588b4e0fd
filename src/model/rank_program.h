/* RankProgram: what one rank does with the chunks of the segments that it takes part in. */
#ifndef BLINK_MODEL_RANK_PROGRAM_H
#define BLINK_MODEL_RANK_PROGRAM_H

#include "model/program.h"

/* A value of a segment on this rank passes through at most two tasks: `up`, where the rank adds its own contribution
 * to what its children publish, and `down`, where it takes the final value. The root's two are one task. A task
 * handles chunk after chunk: it waits until every rank of `from` has published the chunk and a slot of its own ring
 * is free, makes its value, and publishes it to the ranks of `to`.
 *
 *	value = own input if `own`, op the chunk of from[0], op the chunk of from[1] ...	in this order
 *	output = value	if `output`
 *	slot of the ring = value	if there are ranks in `to`
 *
 * A task that only moves has either `own` or one rank in `from`. A rank may read what it publishes itself.
 *
 * Lanes: what rank p publishes for rank q is the lane number k of the ordered pair (p, q), counted from 0 over all
 * tasks of p in the order of the schedule. Both ranks count the same, though neither knows the other's program. Ring:
 * tasks of p that publish count from 0 in the same order; a reader knows it, too, to find the slots in p's memory. */

typedef struct {
	int rank;		/* the other rank */
	int lane;		/* of the ordered pair: publisher, reader */
	int ring;		/* of the publisher: which of its rings */
} RankLane;

typedef struct {
	int segment;		/* of the schedule, in order: what a task of another rank is matched by */
	int extent;		/* which of `extent` */
	bool own, output;
	bool complete;		/* the value holds what every rank contributes: a sum is final */
	int ring;		/* its number among the rings of this rank; -1: it publishes nothing */
	int hops;		/* of a task that only moves: from who has the value at first to this rank; in what is
				 * built in, 1 for all but that one */
	int n_from, n_to;
	RankLane *from, *to;
} RankTask;

typedef struct {
	Collective coll;
	int root, n_ranks, rank;
	bool keep_input;	/* as of Program */
	int n_parts;
	PartEnd *part_end;	/* as of Program */
	unsigned *classes;	/* of the links of each part, bit sets; NULL: the schedule has no parts */
	bool switched;		/* every segment is for one switch that adds and copies what all ranks have of it: each
				 * other rank is next to the segment's root, and they share the root's links there */
	int depth;		/* hops one after the other, of any segment, up and down together; or more */
	int segments_max;	/* the most segments that any rank takes part in, or more */
	int n_extents;
	Extent *extent;		/* of the segments in which this rank takes part */
	Frac *longest;		/* of each part: the greatest end - begin of its segments, of all ranks */
	int n_tasks, n_rings;
	int rings_max;		/* the most rings that any rank has */
	RankTask *task;		/* in order of the segments; of a segment: up, then down */
	int n_peers;		/* ranks in any `from` or `to` */
	int *peer;		/* ascending */
	int lanes_max;		/* the most lanes that any pair of this rank has, in either direction */
	int pair_lanes_max;	/* the most that any pair of ranks has, or more; the same on all ranks */
	bool *joined;		/* [n_ranks * n_ranks], of few ranks: has the pair (publisher, reader) lanes? NULL: all
				 * may have some */
} RankProgram;

#endif
