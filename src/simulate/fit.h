/* Parameters of an executor from measured times. */
#ifndef BLINK_SIMULATE_FIT_H
#define BLINK_SIMULATE_FIT_H

#include "simulate/simulate.h"

typedef struct {
	const SimPlan *plan;
	int64_t m;		/* bytes */
	int64_t time;		/* ps, above 0 */
	int line;		/* of the file */
} SimMeasured;

typedef struct {
	double within;		/* share of measurements that are simulated within 15 % */
	double off;		/* mean of the logarithms of simulated by measured, without their signs */
	int worst;		/* a measurement */
	double ratio;		/* of it: simulated by measured */
} SimFit;

/* Changes *p so that simulated times come close to n measured ones, 1 or more: call and step, and efficiency and
 * latency of the classes of links that carry something; of ranks that share memory call,
 * reduce, reduce_step, and what is theirs alone but for by_memory.
 * Fails: as sim_run_best. Cost: some hundred simulations of each measurement. */
Status sim_fit(Ctx *ctx, const SimMeasured *measured, int n, SimParameters *p, SimFit *out);

#endif
