/* NCCL beside a choice: for messages of a size what each version would take (nccl_model.h), and how long that is in
 * the simulator, over the links of the job.
 *
 * The rings are those of plan/baseline.c, which are at least as fast as those that NCCL's search finds, or over servers
 * NCCL's own (nccl_servers.h), whichever are faster; a tree in one server is a chain, as it is for NCCL: such a ring
 * without one hop, up and down. LL is simulated as packets, LL128
 * with 120 of 128 bytes of data, without fences and with the latency that NCCL counts for it; chunks are as long as
 * takes the least time. So times are at most what NCCL's own rings, channels and chunks would take in the simulator. */
#ifndef BLINK_CHOICE_NCCL_H
#define BLINK_CHOICE_NCCL_H

#include "choice/nccl_beside.h"

/* job: from job_induce; outlives *out. *out: in the run arena; without rings where NCCL has none for the collective.
 * Fails: LIMIT. Cost: that of baselines_find. */
Status nccl_prepare(Ctx *ctx, const Job *job, const SimParameters *p, NcclBeside **out);

/* ps of the rings of a row, executed as our schedules are; -1: there are none, or they are too large. */
Status nccl_ring_time(Ctx *ctx, NcclBeside *beside, int row, int64_t m, int64_t *time);

/* What a version takes, and ps of that in the simulator; -1: there are no rings, or they are too large. Only where
 * !why_not. */
Status nccl_time(Ctx *ctx, NcclBeside *beside, int version, int64_t m, NcclChoice *choice, int64_t *time);

#endif
