/* Places of trees at the uplinks of a cluster's servers: for few_trees.c, which has the idea, places.c and
 * places_trees.c. */
#ifndef BLINK_PLAN_PACK_CLUSTER_PLACES_H
#define BLINK_PLAN_PACK_CLUSTER_PLACES_H

#include "plan/pack/cluster/servers.h"

/* How far from its root a tree has other servers. */
typedef enum { ANY_HUBS, ONE_HUB, ONE_WAY } Hubs;

/* p trees of weight `first`, q of `second`; an uplink of capacity c has room for c * scale / unit. */
struct choice {
	int p, q;
	int64_t first, second, scale, unit;
	int hubs;		/* of the tree with most */
	bool mixed;		/* each tree may use all planes */
};

/* A place at an uplink, n times, besides the one by which the tree enters the server. */
struct extra {
	int uplink, n;
};

struct few {
	Ctx *ctx;
	Cluster c;
	Hubs hubs;
	int most;		/* trees */
	int n_planes, *plane;	/* of networks: those that are joined are one */
	/* Do trees use all planes? Then these are one while places are counted, and for edges they are n_rails. */
	bool mixed;
	int n_rails, *rail;
	int *servers;		/* of each plane: those with uplinks there, 2 at least */
	bool *alone;		/* uplinks that lead to no other server */
	int64_t *capacity;	/* of each uplink, in weights, what is left */
	int64_t *room;		/* of each uplink: places */
	int64_t *left;		/* of each plane: places that no tree needs yet */
	int64_t *sum;		/* [plane * n_servers + server]: places */
	int *reach;		/* of each plane: servers with some */
	int *uplink;		/* [tree * n_servers + server]: the uplink by which it enters */
	int *partner;		/* likewise: of servers that are on another plane than their tree: the other uplink */
	int *parent, *from;	/* likewise, mixed: the server that it hangs on, -1: none, and the uplink there */
	int *main;		/* of each tree: its plane */
	int *first_extra;	/* of each tree, and one more */
	int n_extras, extra_room;
	struct extra *extra;
	int64_t work;
	struct choice top, best;	/* with the highest rate; of those near it, with the fewest hubs */
};

static inline int
places_plane(const struct few *f, int uplink)
{
	return f->plane[f->c.uplink[0][uplink].network];
}

/* After f->plane is found: work space, for f->most trees. In the scratch arena. */
Status places_new(struct few *f);

/* Trees of one plane each, or of all. */
void places_set_kind(struct few *f, bool mixed);

/* Places for all trees of a choice of this kind. *good: false: they do not suffice. */
Status places_take(struct few *f, const struct choice *choice, bool *good);

/* The trees of a choice that fits. *out: stays where its unit is out of range. Fails: INTERNAL it does not fit. */
Status places_trees(struct few *f, const struct choice *choice, Packing **out);

#endif
