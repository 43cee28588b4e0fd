/* Plans of all groups of a job at once: what each phase takes, the schedules of its groups, and what proves that no
 * others are faster. */
#ifndef BLINK_WORKLOAD_WORKLOAD_H
#define BLINK_WORKLOAD_WORKLOAD_H

#include "compile.h"
#include "model/workload.h"

/* A group on its machine. */
typedef struct {
	Job job;		/* its links; job.ask without a collective */
	const int *shared;	/* n_links: the number of each link among those that the groups share */
	const int *sorted;	/* its links, by that number */
	int like, element;	/* its kind's group that it is an image of, and the element of the group of symmetries
				 * that makes it so; itself and 0 */
} JoinedGroup;

/* name, whose schedules a plan has: its times and bounds are those of these, beside what is best together */
#define GROUP_SCHEDULES_LIST(X) \
	X(SCHEDULES_TOGETHER, "together", "planned together") \
	X(SCHEDULES_ALONE, "alone", "of each group the best as if it were alone") \
	X(SCHEDULES_RINGS, "rings", "of each group rings, where its collective has them; else as alone")

typedef enum { GROUP_SCHEDULES_LIST(ROW_NAME) N_GROUP_SCHEDULES } GroupSchedules;

/* A workload on its machine. */
typedef struct {
	const Workload *workload;
	const Topology *machine;
	const int *gpu;		/* of each rank: its GPU of the machine */
	Ask ask;		/* of all calls */
	GroupSchedules schedules;	/* that plans have: SCHEDULES_TOGETHER until set */
	const Topology *topo;	/* the ranks, and the links that their groups use, which keep ids of the machine */
	JoinedGroup **group;	/* of each kind, its groups; those of one rank have no links */
	int **group_of;		/* of each kind and rank; -1: in none */
	int **place_of;		/* likewise: its place in that group */
	const Symmetry *sym;	/* of topo: takes groups of each kind to groups of that kind, roots of calls to roots,
				 * blocks to blocks of the same length */
} JoinedWorkload;

/* gpu: w->n_ranks of the machine's. ask: which links groups may use. Fails: INFEASIBLE links do not connect a group;
 * BAD_INPUT a switch multicasts or reduces. *out: in the run arena. */
Status workload_join(Ctx *ctx, const Workload *w, const Topology *machine, const int *gpu, const Ask *ask,
    JoinedWorkload *out);

/* The link of a joined group that is shared link `shared`; -1: it has none. */
int joined_link(const JoinedGroup *group, int shared);

/* What a group sends over its links, as a schedule. */
typedef struct {
	Schedule *sched;	/* NULL: it has one rank */
	Text json;		/* its file; the caller's to free */
} GroupPlan;

typedef struct {
	const Phase *phase;
	GroupPlan **group;	/* of each call, its kind's groups */
	int n_levels;
	PhaseLevel *level;
	double alone, rings;	/* PlannedPhase */
	bool shares;		/* several groups may use a link that limits the time: one with a price */
} PhasePlan;

extern const Names group_schedules_names;

/* Plan a phase: the shares of links (plan/pack/concurrent), then each group's trees within its own. in: joined with
 * what is asked of all its plans.
 * *out: in the run arena; free it with phase_free, whatever is returned. Fails: as job_compile and pack_concurrent;
 * INFEASIBLE rings are wanted, and a group has none. */
Status phase_plan(Ctx *ctx, const JoinedWorkload *in, const Phase *phase, PhasePlan *out);
void phase_free(const JoinedWorkload *in, PhasePlan *phase);

/* The level of a call: how many priorities of the phase come before its own. */
int phase_level(const Phase *phase, int call);

/* The least time of a phase, s, by what the linear program proves: no groups are planned. 0: no group has two ranks.
 * price: n_links of in->topo, whose prices prove it where all calls are of one priority. Fails: as phase_plan. */
Status phase_least(Ctx *ctx, const JoinedWorkload *in, const Phase *phase, double *out, int64_t *price);

/* ---- placement.c: which GPU each rank has ---- */

typedef struct {
	int *gpu;		/* of each rank, in the numbers of the machine: the best that was found */
	double seconds;		/* that a step takes so: the least times of all phases, one after the other; */
	double in_order;	/* with rank i on GPU i of the list; infinite where no links connect a group so; */
	double slowest;		/* of those that were looked at */
	int n_looked;		/* placements that differ, whatever symmetries machine and groups have */
	bool proven;		/* no placement is faster */
} Placements;

/* gpu: n_gpus of the machine's, at least w->n_ranks, that ranks may have. In one server, if there is time, exact; else
 * a search. Fails: INFEASIBLE no placement connects all groups; else as phase_plan. */
Status workload_place(Ctx *ctx, const Workload *w, const Topology *machine, const int *gpu, int n_gpus, const Ask *ask,
    Placements *out);

/* ---- times.c: what the files of a phase say, whoever wrote them ---- */

/* A group that calls: its schedule, and where its links are among those that all share. */
typedef struct {
	const Schedule *sched;	/* NULL: it has one rank, and sends nothing */
	const int *shared;	/* n_links of its topology */
} CallingGroup;

typedef struct {
	int level, n_groups;
	int64_t bytes;		/* of each group, M times the calls */
	bool by_matrix;		/* of each group instead the matrix of its schedule, */
	int times;		/* as often */
	CallingGroup *group;
} PhaseCall;

typedef struct {
	const Topology *topo;	/* with the links that all share */
	int n_calls;
	PhaseCall *call;
} PhaseGroups;

/* When all calls up to a level are done, by the loads of links alone: the most that a link carries for them, over its
 * capacity. Fails: as sched_loads. */
Status phase_seconds(Ctx *ctx, const PhaseGroups *in, int level, double *out);

/* Seconds before which a level is not done, if those before it take what level[].seconds says: by prices y(j) of links
 * for levels j = 0 to `at`. A tree of level i costs what its links cost together at the sum of y(i) to y(at); the bytes
 * of all groups times the cost of their cheapest trees are no more than what links can carry, the sum of y(j) *
 * capacity * seconds(j) over levels and links. 0: they prove nothing. Fails: LIMIT (label) as demands_cost. */
Status phase_bound(Ctx *ctx, const char *label, const PhaseGroups *in, const PhaseLevel *level, int at, double *out);

#endif
