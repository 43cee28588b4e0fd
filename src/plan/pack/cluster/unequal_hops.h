/* Rails of a cluster, and what trees of one length enter over them. */
#ifndef BLINK_PLAN_PACK_CLUSTER_UNEQUAL_HOPS_H
#define BLINK_PLAN_PACK_CLUSTER_UNEQUAL_HOPS_H

#include "plan/pack/cluster/unequal_pieces.h"

/* Uplinks of rail r, at most one of each server: uplink[first[r]] and on. */
struct rails {
	int n;
	int *first, *uplink;
	int *active;		/* work space of all uplinks */
};

/* From an uplink to another one of its rail. */
struct hop {
	int from, to, rail, next;
};

struct hops {
	const struct plan *p;
	const struct rails *rails;
	const int64_t *room;	/* of each uplink, both directions */
	int n;
	struct hop *hop;
	int *n_between;		/* from server h to s [h * n_servers + s] */
	int64_t looks;		/* for exchanges */
};

/* In the scratch arena, of a cluster whose sides agree. */
Status unequal_find_rails(const struct plan *p, struct rails *out);

/* enters[i]: the number of hops to uplink i, where its two directions together carry at most room[i]. */
void unequal_rails_enter(const struct rails *rails, const int64_t *room, int64_t *enters);

/* These hops, as many from each server to each other one over a rail, or nearly. In the scratch arena. */
Status unequal_put_hops(const struct plan *p, const struct rails *rails, const int64_t *room, struct hops *out);

/* hubs: of each server, in and out. Where a server sends less often than they need, hops of it turn, and hubs move to
 * the other servers of these. Cost: a look at all hops for each that turns. */
Status unequal_turn_hops(struct hops *x, int64_t *hubs);

/* How many enter over each uplink. */
void unequal_hops_enter(const struct hops *x, int64_t *enters);

/* Ends of hops change so that each server sends to each other one as often as it has hubs, as far as found. Cost: for
 * each end a look at all hops, or at all pairs of them; no more after some looks. */
void unequal_exchange_hops(struct hops *x, const int64_t *hubs);

/* An index of n_between, by two uplinks. */
int unequal_between(const struct plan *p, int from, int to);

#endif
