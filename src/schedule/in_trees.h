/* An alltoall as trees into each rank. From each vertex one link leads on, whoever the blocks are from: so the paths of
 * all ranks to one are as long as a list of its vertices, where a list of paths has an edge for each hop. A vertex that
 * one link alone leaves, as a GPU at a switch, is not even listed.
 *
 * The schedule that it stands for: for each root, for each other rank in order, its paths by offset, each a tree of
 * edges down from that rank. A path that does not change from one tree of the root to the next is one tree, with the
 * lengths of both.
 *
 *   into rank 0, of a ring 0-1-2-3: 1>0 2>1 3>0 for a half, then 2>3 in place of 2>1 for the other
 *   rank 1: 1>0, the block       rank 2: 2>1>0, a half, 2>3>0, the other       rank 3: 3>0, the block
 *
 * What is below takes trees of edges, too (root_trees.h), whose trees are its paths. */
#ifndef BLINK_SCHEDULE_IN_TREES_H
#define BLINK_SCHEDULE_IN_TREES_H

#include "schedule/root_trees.h"

enum { IN_TREE_STEPS = 15 };	/* to verify a tree, for each vertex */

/* size[v], of each vertex in the order: from how many ranks blocks pass it, with its own. */
void in_tree_sizes(const InTreeWalk *w, int *size);

/* What sched_check asks of such a schedule: trees of each rank in order, which tile its blocks, with a link of each
 * vertex at most, or an edge of each other rank, by which all are joined to the root. So no replay is needed: a block,
 * or a sum of it, gets where it should by a tree that reaches each rank once. Fails: BAD_INPUT, UNVERIFIED, LIMIT. */
Status sched_check_in_trees(Ctx *ctx, const char *label, const Schedule *sched);

/* Each path of the schedule in its order, as a segment that is forgotten when `visit` returns.
 * Cost: links of the paths of all trees. Fails: as `visit`; LIMIT a segment needs more than 64 bits. */
Status sched_each_path(Ctx *ctx, const Schedule *sched, Status (*visit)(void *with, const Segment *path), void *with);

/* As sched_expand, which calls it. */
Status in_trees_expand(Ctx *ctx, const char *label, const Schedule *in, Schedule **out);

/* passed[v]: do paths leave vertex v, or does an edge of the table? */
Status in_trees_passed(Ctx *ctx, const Schedule *sched, bool *passed);

/* As sched_depth and sched_latency. */
Status in_trees_depth(Ctx *ctx, const Schedule *sched, int *out);
Status in_trees_latency(Ctx *ctx, const Schedule *sched, int64_t *out);

#endif
