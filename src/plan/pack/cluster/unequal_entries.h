/* Trees with several entries in a server: for unequal_spread.c, which has the idea, and its parts. */
#ifndef BLINK_PLAN_PACK_CLUSTER_UNEQUAL_ENTRIES_H
#define BLINK_PLAN_PACK_CLUSTER_UNEQUAL_ENTRIES_H

#include "plan/pack/cluster/unequal_pieces.h"

/* A part of the trees of a hub that has the same entries. */
struct slot {
	int hub, number;
	int64_t begin, end;
};

struct spread {
	struct plan *p;
	int n_slots;
	struct slot *slot;
	/* Of each rank, in weights: what it may still send in its server; what later trees need of that at least. */
	int64_t *room, *due;
	int64_t *due_now;	/* of that in the current slot */
	/* What it is to send in all trees that are not made; its part of what the entries of a tree send. */
	double *planned, *part;
	/* Of slots of one length: their entries, from first_entry[number * n_servers + server] on. */
	int *first_entry;
	struct entry *entry;
	bool *counted;		/* of each server: its entries send as these have it */
	/* Of the current slot: its weight; of each rank, to how many others it sends all of it, and to one an arc of
	 * it, from arc_begin on around; the sum of that. */
	int64_t weight, *sent, *arc, *arc_begin, arc_end;
	int *count;
	int *own, *uplink;	/* of an entry; -1: of the hub */
	bool *main;		/* it is the one entry that its server always has */
	bool *leaves;		/* of each rank: the tree leaves its server there */
	int *member, *n_entries;	/* by server, entries first */
	struct edges edges;
	int n_trees, n_left, most_trees;	/* made, at most; slots that are to be; of all */
	int *hub_of;		/* of each tree */
	Packing *pack;
};

/* The entries of a slot, by servers. */
void unequal_find_entries(struct spread *m, const struct slot *slot);

/* What each rank of server s sends to others of it, of the current slot (unequal_senders.c). */
void unequal_share_server(struct spread *m, int s);

/* Of slots of one length: what each entry sends, in servers where all of that fits, and what later slots need of it
 * (unequal_helpers.c). */
Status unequal_share_slots(struct spread *m);

#endif
