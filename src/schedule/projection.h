/* What the files that project schedules share: project.c all segments, project_images.c those of compact schedules,
 * project_paths.c those of a compact alltoall, project_tasks.c the tasks of one. */
#ifndef BLINK_SCHEDULE_PROJECTION_H
#define BLINK_SCHEDULE_PROJECTION_H

#include "schedule/images.h"

enum { UP, DOWN, N_STAGES };

/* What this rank does in a stage of the current segment. */
struct stage {
	int n_from, n_to, ring;
	RankLane *from, *to;		/* n_ranks each */
};

struct projection {
	Ctx *ctx;
	ArenaMark mark;
	const Schedule *sched;
	RankProgram *prog;
	bool reduces;
	int task_capacity, extent_capacity;
	int *lanes_out, *lanes_in;	/* of each other rank: lanes counted so far, from and to this one */
	int *rings;			/* of each rank */
	int *segments, *last;		/* likewise: in how many it takes part; number + 1 of the last */
	int *ring[N_STAGES];		/* of each rank in this segment; -1: none yet */
	bool *has;			/* this segment's value has come to the rank */
	int *hops;			/* edges that the value has come over */
	struct stage stage[N_STAGES];
	int *depth;			/* work space of tree_depth */
	int *pair, pair_most;		/* of each ordered pair: lanes so far, and the most; NULL: not counted */
};

/* Tasks of segment number s, which is `seg`, from what stages hold. */
Status project_tasks(struct projection *p, int s, const Segment *seg, int holder, int needer);

/* The segments of a part differ in length, of which the longest decides how large chunks are, and in depth. */
Status project_extremes(struct projection *p, const Segment *seg);

/* Stages begin anew. */
void project_clear(struct projection *p);

/* All segments of a compact schedule; project_paths: of an alltoall. */
Status project_images(struct projection *p);
Status project_paths(struct projection *p, const RankOrbits *orbits);

#endif
