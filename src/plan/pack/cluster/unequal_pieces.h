/* Trees of hubs over the uplinks of a cluster: for unequal.c, which has the idea, and its parts. */
#ifndef BLINK_PLAN_PACK_CLUSTER_UNEQUAL_PIECES_H
#define BLINK_PLAN_PACK_CLUSTER_UNEQUAL_PIECES_H

#include "model/blocks.h"
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

/* The trees of a hub, from `begin` on, enter a server here as well; next: of the same hub, or -1. */
struct copy {
	int64_t begin;
	int hub, uplink, own, next;
};

struct plan {
	Ctx *ctx;
	const Topology *topo;
	Collective coll;
	Cluster c;
	Side hub_side, leaf_side;
	Frac rate;		/* the bound, in units of capacity */
	bool whole;		/* no tree is divided among uplinks */
	bool copies;		/* trees enter a server over several uplinks, and GPUs pass on what they have */
	int whole_copies;	/* not of an allreduce: at the n-th highest rate at which these are whole trees */
	bool turned;		/* an allreduce, of which these are the ways down: coll is ALLGATHER */
	int max_ratio;		/* of these: of the rates of two trees, at most; 1: equal rates; 0: no limit */
	bool even;		/* with copies, of an allreduce: all uplinks of a server have as much room for them */
	enum { NO_LEAVES, LEAVES, ALL_LEAVES } leaves;	/* narrow leaf switches are known; also of one server */
	int per_server;		/* of an allreduce: the most hubs; 0: one for each uplink */
	int n_hubs;
	struct hub *hub;
	int64_t *room[2];	/* of each uplink, in weights, less what is reserved; allreduce: both are the same */
	int64_t *reserved;	/* of each uplink of an allreduce: for the trees of its own hub */
	int n_pieces, piece_room;
	struct piece *piece;
	int *first, *last;	/* pieces of [hub * n_servers + server]; -1: none */
	int64_t times;		/* weights in a unit of capacity */
	int64_t *switch_room[2];	/* turned: of each rank, weights that leave it over its switch, and enter */
	int n_copies, copy_room;
	struct copy *copy;
	int *first_copy;	/* of each hub; -1: none */
	int *leaf;		/* of each server: its leaf switch in Cluster.network; NULL: they are not known */
	bool *alone;		/* of each server: it is the only one below its leaf switch */
	int *sender, *level;	/* [hub * n_servers + server]: the server that trees come from, -1: they begin
				 * there; after how many hops between servers */
	int64_t *link_room;	/* of each link of networks, in weights */
};

/* Edges of a tree that is being made. */
struct edges {
	const struct plan *p;
	Edge *there, *back;
	int n;
	bool turns;		/* a tree is in the order in which ranks come after its hub */
	Blocks blocks;
	int *place, *rank;	/* of each rank, and that at each place */
};

/* The uplink of server s that trees over an uplink of another server enter by first: of the same number, where networks
 * are the same, or the first of that network; -1: there is none. */
int unequal_like_uplink(const struct plan *p, int own, int own_server, int s);

/* One more part of the trees of hub h, by these uplinks to server s. */
Status unequal_add_piece(struct plan *p, int h, int s, int uplink, int own, int64_t length);

/* That of hub h by which trees at this weight enter server s. */
const struct piece *unequal_piece_at(const struct plan *p, int h, int s, int64_t at);

/* Where the entries of hub h next change after `begin`. */
int64_t unequal_pieces_end(const struct plan *p, int h, int64_t begin);

/* Servers below leaf switches that are too narrow for their uplinks (unequal_leaves.c): p->leaf, NULL: there are none.
 * Then the pieces of their trees, of which *good: false: there are none; times: weights in a byte/s. */
Status unequal_find_leaves(struct plan *p);
Status unequal_fill_leaves(struct plan *p, double times, bool *good);

/* Do trees enter servers several times, since a switch has less than the rate? And have leaf switches room for this
 * part of it, where each rank is the hub of about as many? */
bool unequal_leaves_serve(const struct plan *p, double part);

/* From one uplink to another, the room of links between; and so much less of it. */
int64_t unequal_room_between(const struct plan *p, int own, int uplink);
void unequal_take_between(struct plan *p, int own, int uplink, int64_t weight);

/* Trees of hub h may have another entry, over these uplinks, as they have entered the servers in this order. */
bool unequal_may_send(const struct plan *p, int h, int own, int uplink);

/* The same of some uplinks of these servers, where p->leaf is not NULL. */
bool unequal_servers_send(const struct plan *p, int h, int from, int to);

/* Lengths of hubs and pieces of an allreduce by a linear program over types of servers: in each network trees enter the
 * servers that have it, and the rest of them over other networks, divided equally among servers of a type.
 * *good: false: it has no solution, or is too large; p->hub and all pieces are as before. Fails: NO_MEMORY. */
Status unequal_by_program(struct plan *p, bool *good);

/* Do these two uplinks, of the hubs' side and the other, lead to each other? */
bool unequal_joined(const struct plan *p, int own, int uplink);

/* Of an allreduce that has the trees of an allgather, turned back: lengths of the hubs of all ranks, with which these
 * have the rate (unequal_lengths.c). *good: false: there are none. */
Status unequal_set_lengths(struct plan *p, bool *good);

/* What enters ranks over switches, turned: room: of each rank, that of its switch in both directions; beside: what else
 * enters it. GPUs of a server have as much together, where half of the room of all suffices (unequal_level.c). */
void unequal_level(const struct plan *p, const int64_t *room, const int64_t *beside, int64_t *enters);
/* p->switch_room, once weights are scaled. */
Status unequal_level_switches(struct plan *p);

/* Of an allreduce that is not turned, with copies, over servers that lack rails (unequal_even.c): a hub for each
 * uplink, with lengths that leave all uplinks of a server as much for copies; and, once lengths are scaled, its pieces.
 * *good: false: two servers share no rail. */
Status unequal_even_lengths(struct plan *p);
Status unequal_even_pieces(struct plan *p, bool *good);

/* More entries of trees, where switches have no room for the trees that the pieces make (unequal_copies.c). *excess: by
 * about which part the rate is higher than all of them together have room for; 0 or less: they have room. */
Status unequal_add_copies(struct plan *p, double *excess);

/* Weight that a rank may send to others of its server, or have from them, over its switch. */
int64_t unequal_switch_room(const struct plan *p, int rank, bool out);

/* May a schedule have n trees of all ranks? */
bool unequal_may_have(const struct plan *p, int n);

/* The number of trees that the pieces make, and whether a schedule may have as many. */
Status unequal_count_trees(struct plan *p, int *n, bool *good);

/* No edges yet; room for those of a tree. */
Status unequal_new_edges(const struct plan *p, struct edges *out);

/* One more, within a server, or over these uplinks. */
Status unequal_add_near(struct edges *m, int src, int dst);
Status unequal_add_far(struct edges *m, int own, int uplink);

/* A tree of the edges, of the hub of a rank. */
Status unequal_arrange(const struct edges *m, int rank, Tree *out);

/* These n trees, with the lengths of their pieces as weights. */
Status unequal_make_trees(struct plan *p, int n, Packing *pack);

/* An entry of a group: of a tree in a server. */
struct entry {
	int rank, count;	/* of others that it sends to */
	int least;		/* it sends to no fewer, where it began with as many */
	bool helps;		/* it has the data from an entry before it in the group */
	int group, next;	/* work space */
};

/* Counts of entries, of group g from first[g] on: in each group together need[g] (unequal_counts.c). first: n_groups
 * + 1. room: of each rank, and then what is left of it: below 0, where it has too much in any counts. */
Status unequal_count_sends(Ctx *ctx, int n_groups, const int *first, const int *need, int n_ranks, int *room,
    struct entry *entry);

/* Trees of pieces and copies, which pass on in their servers what these have room for (unequal_spread.c). *good: false:
 * a schedule may not have as many. */
Status unequal_spread_trees(struct plan *p, Packing *pack, bool *good);

#endif
