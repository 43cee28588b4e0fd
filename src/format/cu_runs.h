/* Tasks of a generated kernel, and which of them follow a rule, so that they need not be written one by one. */
#ifndef BLINK_FORMAT_CU_RUNS_H
#define BLINK_FORMAT_CU_RUNS_H

#include "format/format.h"
#include "model/rank_program.h"

/* A task of a rank, with what its place among the rank's tasks adds. */
struct kernel_task {
	const RankTask *task;
	const Extent *extent;
	int shape;
	int64_t first_lane, publishes;	/* lanes of the tasks before it, and those of them that are published */
};

/* `times` groups of `period` tasks, from task `first` on: each number in the k-th task of a group grows by the same
 * step from group to group, and what is no number is the same. One task alone: 1 and 1. */
struct task_run {
	int first, period, times;
};

/* What the n tasks are made of, in order. In the scratch arena. */
Status cu_runs_of(Ctx *ctx, const struct kernel_task *task, int n, struct task_run **out, int *n_out);

/* The arguments of TASK (runtime/cuda/kernels/generated.h) for the k-th task of each group, of which `i` is the
 * number. */
void cu_put_run_task(Text *out, const struct kernel_task *task, const struct task_run *run, int k);

#endif
