/* What writers of chunks share: segments on a grid, and which hops of their trees move data. */
#ifndef BLINK_FORMAT_MSCCL_SEGMENTS_H
#define BLINK_FORMAT_MSCCL_SEGMENTS_H

#include "base/status.h"
#include "model/schedule.h"

/* Segments lie on a common grid: the least common multiple *k of the denominators of their ends, as parts of a block,
 * is the number of chunks of a block. offset, count: of each segment: its chunks. Fails: LIMIT more than `most` chunks
 * in a buffer; why: "as offsets in MSCCL XML have 16 bits". */
Status segments_grid(Ctx *ctx, const Schedule *sched, int most, const char *why, int *k, int *offset, int *count);

/* What a plan is called: "blinkc trees broadcast root 3". */
void segments_plan_name(const Schedule *sched, char name[64]);

/* The rank that has the s-th segment before, or EVERY_RANK; is it for rank r in the end? */
int segment_holder(const Schedule *sched, int s);
bool segment_serves(const Schedule *sched, int s, int r);

/* Does data move, and not only come to where it is already? has: of each rank. */
bool hop_moves(const Schedule *sched, const Edge *e, bool up, const bool *has);

#endif
