/* Blocks: a machine as units of servers, servers, and GPUs. */
#ifndef BLINK_MODEL_BLOCKS_H
#define BLINK_MODEL_BLOCKS_H

#include "model/topology.h"

/* Blocks of blocks of ranks: size[0] = 1, each a divisor of the next, and size[n] all ranks. */
typedef struct {
	int n;
	int size[32];
} Blocks;

/* A block ends before the first rank that is farther from rank 0 than the first ranks of the blocks before it.
 * Memory: scratch. Cost: a search over the links. */
Status blocks_find(Ctx *ctx, const Topology *topo, Blocks *out);

/* How far `to` comes after `from`: first the ranks of its own block, then those of the next block, and so on, in each
 * block from the place of `from` around. */
int blocks_turns(const Blocks *blocks, int from, int to);

#endif
