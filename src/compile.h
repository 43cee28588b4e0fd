/* The arrow of model.h: from a machine, GPUs of it and an Ask to a verified schedule. What options are called is not
 * known here. */
#ifndef BLINK_COMPILE_H
#define BLINK_COMPILE_H

#include "model/model.h"
#include "plan/plan.h"

typedef struct {
	Schedule *sched;	/* read again from the text, and verified */
	Text json;		/* the file; the caller's to free, whatever is returned */
	bool cut_short;		/* its time was over at the step ctx->at */
	Frac best;		/* rate of the best trees of the kind asked for (Plan), bytes/s, or FRAC_ZERO */
	bool reached;		/* trees of some kind reach the bound (Bound) */
	Routes routes;		/* as asked, or chosen */
	int other_trees, other_depth;	/* of a plan of the same rate (Packing), or 0 */
	Unlimited unlimited;
} Compiled;

/* gpu[i], of n >= 2, is rank i. *out: begins as zeros.
 * Fails: as job_induce and job_compile do. */
Status compile(Ctx *ctx, const Topology *machine, const int *gpu, int n, const Ask *ask, Compiled *out);

/* ---- the same in two steps, between which batches look at the topology ---- */

/* What is planned: an Ask, and the links in use. */
typedef struct {
	Ask ask;
	const Algorithm *algorithm;		/* of the Ask */
	unsigned classes;			/* of the links in use, a bit set: as asked, or chosen */
	Part part[2];				/* of a hybrid schedule */
	const Topology *machine;
	const int *gpu;				/* of the machine: gpu[i] is rank i */
	const Topology *topo;			/* GPUs of the job, and links in use */
	const Topology *planning_topology;	/* of a hybrid schedule: what is planned on (hybrid_induce) */
} Job;

/* Choose links, and induce the topology. Fails: INFEASIBLE the links do not connect the GPUs; as hybrid_parts and
 * topo_induce do. */
Status job_induce(Ctx *ctx, const Topology *machine, const int *gpu, int n, const Ask *ask, Job *out);

/* What jobs that differ in their algorithms and its options alone share: symmetries, the bound, and what trees of any
 * kind reach. Begins as zeros; in the run arena. */
typedef struct {
	struct {
		bool known;
		Symmetry *sym;
		Bound bound;
	} from[N_SYMMETRY_KINDS];
	Proven proven;
	KnownPlans *known;	/* two, of limits that were tried; NULL: none are kept */
	bool soon;		/* as Planning has it: plans may fail with LIMIT for it */
} JobShared;

/* Plan alone. job: outlives *out. Fails: INFEASIBLE no trees as asked for; LIMIT. */
Status job_plan(Ctx *ctx, const Job *job, JobShared *shared, Plan *out);

/* The rate of its best trees, however many they are. *out: FRAC_ZERO where that is not known, or where the bound is no
 * more than `above`, so that nothing is planned. Fails: INFEASIBLE, LIMIT. */
Status job_rate(Ctx *ctx, const Job *job, Frac above, Frac *out);

/* The schedule of a plan, with its options, as it goes to a file; without baselines. */
Status job_build(Ctx *ctx, const Job *job, const Plan *plan, Schedule **out);

/* Write the schedule of a plan; read again and verify. As job_compile does after planning. */
Status job_finish(Ctx *ctx, const Job *job, const Plan *plan, Compiled *out);

/* Plan, build, write; read again and verify. *out: begins as zeros.
 * Fails: INFEASIBLE no trees as asked for; LIMIT; UNVERIFIED a defect, found before anybody sees the schedule. */
Status job_compile(Ctx *ctx, const Job *job, Compiled *out);

/* The compact form of a schedule under a group of its links, the largest that makes its trees. sched: passes
 * sched_check.
 * Fails: INFEASIBLE (label) no group is found that does. */
Status compile_compact(Ctx *ctx, const char *label, const Schedule *sched, Schedule **out);

/* What other methods would give for the job (plan/baseline.h), into the schedule. Fails: LIMIT. */
Status job_baselines(Ctx *ctx, const Job *job, Schedule *sched);

/* Instead of one schedule the Pareto-optimal plans (plan_pareto), and the bound that they are held against. */
Status job_pareto(Ctx *ctx, const Job *job, Bound *bound, ParetoPoint **out, int *n);

#endif
