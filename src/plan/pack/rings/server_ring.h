/* The cheapest ring that visits one server after the other, all ranks of each before the next. */
#ifndef BLINK_PLAN_PACK_RINGS_SERVER_RING_H
#define BLINK_PLAN_PACK_RINGS_SERVER_RING_H

#include "model/model.h"

enum { SERVER_RING_RANKS = 10 };	/* of a server, at most: their paths take 2^k k^3 steps */

#define SERVER_RING_NONE (INT64_MAX / 4)

typedef struct {
	int n_ranks, n_servers, *rank, *first;	/* ranks by server, and where those of each server begin */
	int64_t *path;		/* 2^k * k: the cheapest path through a set of ranks to one of them */
	signed char *before;	/* of each server and first rank, likewise: the rank before the last */
	int64_t *inside;	/* of each server k * k: the cheapest path from a rank through all to another */
	int64_t *end;		/* of each rank: the cheapest path that ends there, its server behind it */
	int *entry, *from;	/* of each rank: where its server was entered for that; whence that was */
} ServerRing;

/* *fits: the ranks have two servers or more, of at most SERVER_RING_RANKS. Scratch arena. */
Status server_ring_new(Ctx *ctx, const Topology *topo, ServerRing *out, bool *fits);

/* Its cost, or SERVER_RING_NONE; the servers in their order, the ranks in `order`. cost: n * n, of the hop from a rank
 * to another, below SERVER_RING_NONE / n, or SERVER_RING_NONE. Paths within servers by Held and Karp (1962). */
int64_t server_ring_cheapest(ServerRing *of, const int64_t *cost, int *order);

#endif
