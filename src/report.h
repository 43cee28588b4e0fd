/* What people read, as blinkc(1) describes it. */
#ifndef BLINK_REPORT_H
#define BLINK_REPORT_H

#include "batch.h"
#include "request.h"

#include <stdio.h>

/* What people look at first, and a line for each of the sizes. Fails: LIMIT parts whose division needs too large numbers. */
Status report_summary(Ctx *ctx, FILE *to, const Sizes *sizes, const Schedule *sched);

/* What the family of trees can do; fewer trees than it has may do a little less. */
void report_best(const Request *ask, Frac best);

/* On standard output. */
void report_pareto(const Bound *bound, const ParetoPoint *point, int n);

/* What a batch found, planned and kept. index: NULL where it was not written. */
void report_batch(FILE *to, const Batch *b, const Index *index, int64_t index_bytes);

#endif
