/* Workload: the groups of ranks of a job, and what they call at the same time. */
#ifndef BLINK_MODEL_WORKLOAD_H
#define BLINK_MODEL_WORKLOAD_H

#include "model/collective.h"
#include "model/topology.h"

enum { FIRST_PRIORITY = 1, LAST_PRIORITY = 9 };

typedef struct {
	int n;
	const int *rank;	/* of the job; place i of the group is its rank i */
} RankGroup;

/* Groups of one kind: tensor parallel, data parallel. No rank is in two of them. */
typedef struct {
	const char *name;	/* "tp"; of several dimensions of a grid "tp-dp" */
	int n_groups;
	RankGroup *group;
} GroupKind;

/* What all groups of a kind call at once. */
typedef struct {
	int kind;
	Collective coll;
	int root;		/* a rank of each group; -1: none */
	int64_t bytes;		/* of the message, M as blink-schedule(5) counts it; with matrices the largest
				 * alltoall_message() of any group */
	const int64_t **matrix;	/* of an alltoall of unequal blocks, for each group of its kind: bytes from its rank i
				 * to its rank j at i * n + j, some between two; NULL: blocks are equal */
	int times;		/* calls, one after the other; bytes * times <= LIMIT_MESSAGE, so of all in a matrix */
	int priority;		/* FIRST_PRIORITY to LAST_PRIORITY: what compute waits for first */
} GroupCall;

/* Calls that overlap. */
typedef struct {
	const char *name;
	int times;		/* in a step */
	int n_calls;
	GroupCall *call;
} Phase;

typedef struct {
	const char *topology;	/* a file, or the name of a machine that comes along; NULL: not given */
	const char *gpus;	/* as --gpus; NULL: all */
	int n_ranks;		/* the ranks that groups are over */
	int n_kinds, n_phases;
	GroupKind *kind;	/* those that are called */
	Phase *phase;
} Workload;

/* ---- what is planned of it: the file phases.json beside the schedules of groups ---- */

/* All calls of a priority and of those before it. */
typedef struct {
	int priority;
	double seconds;		/* they are done, by the loads of links */
	double bound;		/* they are not done sooner, where those before are done in their time */
	int64_t *price;		/* (level + 1) * n_links, of levels 0 to this one: what proves it (phase_bound) */
} PhaseLevel;

typedef struct {
	const char *groups;	/* the kind */
	Collective coll;
	int root;
	int64_t bytes;
	bool by_matrix;		/* each schedule has the matrix of its group; */
	int64_t between;	/* then, of what was planned: bytes between the ranks of all groups */
	int times, priority;
	int n_groups;		/* of two ranks or more */
	const RankGroup *group;
	const char **file;	/* of each group: its schedule, relative to phases.json */
} PlannedCall;

typedef struct {
	const char *name;
	int times;
	int n_calls, n_levels;
	PlannedCall *call;
	PhaseLevel *level;	/* by priority; the last is done when all are */
	double alone;		/* s, if each group had the schedule that is best for it alone */
	double rings;		/* s, with rings where the collective has them; below 0: some group has none */
} PlannedPhase;

typedef struct {
	const Topology *topo;	/* the ranks of the job, and the links that their groups use */
	int n_phases;
	PlannedPhase *phase;
} Phases;

#endif
