/* Trees of hubs over the uplinks of a cluster: for unequal.c, which has the idea, and its parts. */
#ifndef BLINK_PLAN_PACK_CLUSTER_UNEQUAL_PIECES_H
#define BLINK_PLAN_PACK_CLUSTER_UNEQUAL_PIECES_H

#include "plan/pack/cluster/servers.h"

struct hub {
	int rank, server;
	int uplink;		/* its own, on the hubs' side; -1: none */
	int64_t length;		/* weight of its trees */
};

/* A part of the trees of a hub, up to `end`, and the uplinks over which they enter a server; next: the part after it,
 * or -1. */
struct piece {
	int64_t end;
	int uplink, own, next;
};

struct plan {
	Ctx *ctx;
	const Topology *topo;
	Collective coll;
	Cluster c;
	Side hub_side, leaf_side;
	Frac rate;		/* the bound, in units of capacity */
	bool whole;		/* no tree is divided among uplinks */
	int per_server;		/* of an allreduce: the most hubs; 0: one for each uplink */
	int n_hubs;
	struct hub *hub;
	int64_t *room[2];	/* of each uplink, in weights, less what is reserved; allreduce: both are the same */
	int64_t *reserved;	/* of each uplink of an allreduce: for the trees of its own hub */
	int n_pieces, piece_room;
	struct piece *piece;
	int *first, *last;	/* pieces of [hub * n_servers + server]; -1: none */
};

/* The uplink of server s that trees over an uplink of another server enter by first: of the same number, where networks
 * are the same, or the first of that network; -1: there is none. */
int unequal_like_uplink(const struct plan *p, int own, int own_server, int s);

/* One more part of the trees of hub h, by these uplinks to server s. */
Status unequal_add_piece(struct plan *p, int h, int s, int uplink, int own, int64_t length);

/* Lengths of hubs and pieces of an allreduce by a linear program over types of servers: in each network trees enter the
 * servers that have it, and the rest of them over other networks, divided equally among servers of a type.
 * *good: false: it has no solution, or is too large; p->hub and all pieces are as before. Fails: NO_MEMORY. */
Status unequal_by_program(struct plan *p, bool *good);

/* May a schedule have n trees of all ranks? */
bool unequal_may_have(const struct plan *p, int n);

/* The number of trees that the pieces make, and whether a schedule may have as many. */
Status unequal_count_trees(struct plan *p, int *n, bool *good);

/* These n trees, with the lengths of their pieces as weights. */
Status unequal_make_trees(struct plan *p, int n, Packing *pack);

#endif
