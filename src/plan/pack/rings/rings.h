/* Rings, as fast as rings can be: closed walks through all ranks, each rank once, with any rates. */
#ifndef BLINK_PLAN_PACK_RINGS_RINGS_H
#define BLINK_PLAN_PACK_RINGS_RINGS_H

#include "graph/hamiltonian.h"

enum {
	RINGS_EXACT_RANKS = 12,		/* up to here the optimum: the cheapest ring takes 2^n n^2 steps */
	RINGS_SERVER_RANKS = 45,	/* up to here through one server after the other; an allreduce over as many
					 * rings as there may be then still has all ranks as roots (ring.c) */
	RINGS_CUT_RANKS = 64		/* up to here with the least cut, by 2 n maximum flows; above, with cuts of
					 * ranks and of servers */
};

typedef struct {
	int n;			/* rings; 0: there is none, or none was found */
	Frac rate;		/* of all together, bytes/s over each hop */
	unsigned classes;	/* of the links that they use, a bit set */
	bool through;		/* some hop leads through another rank */
	bool proven;		/* no other rings have a higher rate */
	bool at_cut;		/* nor have rings through other ranks */
	Cycle *ring;		/* n: widths are rates in a unit of their own. A hop through another rank has the links
				 * of both hops, which no edge of a tree has. In the run arena */
	const Topology *topo;	/* whose links these are */
} RingPacking;

/* The rings of the highest rate that fit the capacities together. A hop leads over a link, or over switches; with
 * `through`, and between ranks that have no such hop, over two hops through another rank, whose links carry it.
 * Up to RINGS_EXACT_RANKS ranks it is the optimum of a linear program with a row for each link, in whole numbers; the
 * cheapest ring under prices comes in until none costs less than 1 (Held and Karp 1962). Above, and where numbers
 * become too large, those of graph/hamiltonian.h, which are proven only where they reach a cut. Where they do not, of
 * up to RINGS_SERVER_RANKS ranks, SERVER_RING_RANKS in each server, the best rings that visit one server after the
 * other, if faster.
 * Random: none. Clock: none. Fails: LIMIT as search_new. */
Status pack_rings(Ctx *ctx, const Topology *topo, bool through, RingPacking *out);

#endif
