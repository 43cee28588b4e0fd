/* Choice: which way to plan a job takes the least time, for messages of a size.
 *
 * A candidate is an algorithm with its options. Each is planned once for a job, with symmetries and bound in common,
 * and simulated at the sizes that are asked for, each with the chunk size that takes it the least time. Candidates that
 * the links do not allow, or that are too large, are not there; nor, of very large jobs, what comes after 8 million
 * hops of others, or a linear program of minutes that was not asked for by name. No I/O, no globals; random: none;
 * clock: none but that of Ctx. */
#ifndef BLINK_CHOICE_CHOICE_H
#define BLINK_CHOICE_CHOICE_H

#include "compile.h"
#include "simulate/simulate.h"

enum { CANDIDATE_NAME = 64, CANDIDATES_MOST = 64 };

typedef struct {
	char name[CANDIDATE_NAME];	/* "trees, depth 4", "knomial, radix 8" */
	Job job;			/* its ask plans it again, to the same bytes */
	Plan plan;
	const Schedule *sched;
	SimPlan *sim;
	int trees, depth;
	Frac rate;			/* bytes/s, at links' capacities */
	Floor *floor;
} Candidate;

typedef struct {
	SimParameters p;
	int n;			/* >= 1 */
	Candidate *candidate;	/* in the order of plan/algorithm.c, those of an algorithm in the order in which they
				 * were planned; no two have the same schedule */
	int64_t n_simulated;	/* times that a candidate was simulated, for tests and -v */
	int last;		/* what was chosen last; -1: nothing */
} Choices;

/* Plans and prepares the candidates. job: from job_induce; outlives *out. If its ask names an algorithm, or limits
 * trees, candidates are those of that algorithm, within these limits. *out: in the run arena.
 * Fails: INFEASIBLE, LIMIT no candidate is left: as the first of them does. */
Status choice_prepare(Ctx *ctx, const Job *job, const SimParameters *p, Choices **out);

/* The same of n algorithms, each with its options; n = 0: of all.
 * Fails: USAGE one does not serve its collective; as choice_prepare. */
Status choice_prepare_of(Ctx *ctx, const Job *job, const Ask *ask, int n, const SimParameters *p, Choices **out);

typedef struct {
	int64_t m;		/* bytes of the message */
	int best;		/* of the candidates: the one with the least time, the first of these */
	int64_t chunk;		/* bytes: with which it takes that time */
	int64_t time;		/* ps */
	int64_t least;		/* ps: no algorithm takes less */
} ChoicePoint;

/* The best candidate for messages of m bytes, 1 to 2^60. Fails: as sim_run_best; LIMIT none could be simulated.
 * Cost: simulations of the few candidates that a bound on their times does not dismiss. */
Status choice_of_size(Ctx *ctx, Choices *choices, int64_t m, ChoicePoint *out);

/* The same, with the time of every candidate with its own best chunk, ps: time[n], chunk[n]; -1: it could not be
 * simulated. chunk: NULL: not wanted. */
Status choice_times(Ctx *ctx, Choices *choices, int64_t m, int64_t *time, int64_t *chunk);

/* *least: becomes what no algorithm goes below by packets either, where that is less: NCCL takes them for longer
 * messages than we do. */
Status choice_least(Ctx *ctx, const Choices *choices, int64_t m, int64_t *least);

/* Of each candidate the time of messages of one byte, and its rate: is it Pareto-optimal, so that no other is at least
 * as good in both, and better in one? latency: n entries, ps; optimal: n. */
Status choice_pareto(Ctx *ctx, Choices *choices, int64_t *latency, bool *optimal);

/* A time that candidate i does not go below with chunks of this size, ps, by which it may be dismissed (floor.c). */
int64_t choice_floor(const Choices *choices, int i, int64_t m, int64_t chunk);

#endif
