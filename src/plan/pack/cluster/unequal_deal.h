/* Rails of a cluster, and what trees of one length enter over them. */
#ifndef BLINK_PLAN_PACK_CLUSTER_UNEQUAL_DEAL_H
#define BLINK_PLAN_PACK_CLUSTER_UNEQUAL_DEAL_H

#include "plan/pack/cluster/unequal_pieces.h"

/* Uplinks of rail r, at most one of each server: uplink[first[r]] and on. */
struct rails {
	int n;
	int *first, *uplink;
	int *active;		/* work space of all uplinks */
};

/* In the scratch arena, of a cluster whose sides agree. */
Status unequal_find_rails(const struct plan *p, struct rails *out);

/* enters[i]: the number of trees that enter over uplink i, where its two directions together carry at most room[i]. */
void unequal_rails_enter(const struct rails *rails, const int64_t *room, int64_t *enters);

/* Pieces and copies of p->hub, by servers, each of one tree: as many as enter. *good: false: some tree does not enter
 * some server, or twice over uplinks of one rank. */
Status unequal_deal(struct plan *p, const struct rails *rails, const int64_t *room, bool *good);

#endif
