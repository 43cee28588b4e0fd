/* Arborescences that grow by maximum flows: the state of branchings.c, which has the method and its source. */
#ifndef BLINK_PLAN_PACK_FLOW_BRANCHINGS_HOPS_H
#define BLINK_PLAN_PACK_FLOW_BRANCHINGS_HOPS_H

#include "graph/network.h"
#include "graph/split_off.h"
#include "model/model.h"

#include <string.h>

enum {
	MOST_WAITING = 64,	/* groups that stayed behind, at once */
	MOST_CUTS = 512,	/* sets whose slack is kept up to date, those with least */
	MOST_LEARNED = 16,	/* sets without slack that a batch of unchecked hops has shown, at once */
	RANK_BITS = 64,
	HOP_NS = 500,		/* about what a hop without a flow takes */
	FLOW_NS = 50000		/* about what a flow takes */
};

/* Units of the current root that have reached some ranks. */
struct group {
	int64_t units;
	uint64_t *has;		/* bit set of ranks */
	uint64_t *dead;		/* bit set of arcs: they are of no use to it */
	int n;			/* ranks in `order` */
	int *order;		/* of joining; the root first */
	int *by;		/* of each rank: the arc by which it joined */
	int *depth;		/* of each rank */
};

/* What unchecked hops are taken back to. */
struct saved {
	int root, n_trees, n_waiting;
	int64_t others, *left, *owed, slack[MOST_CUTS];
	struct group now, waiting[MOST_WAITING];
	ArenaMark run;
};

/* STUCK: time is over, or more groups wait than there is room for, or no hop is safe. */
enum state { GOING, STUCK, ENDED };

struct branchings {
	Ctx *ctx;
	const Topology *topo;
	const Supply *supply;
	int n, n_arcs, words, arc_words;
	Arc *arc;
	int *first_out, *out;	/* arcs out of a rank: out[first_out[v] .. first_out[v + 1] - 1] */
	Frac unit;		/* of rate, bytes/s */
	int64_t *left;		/* units of each arc that are left */
	int64_t *owed;		/* of each rank: units of a root that has not begun */
	int patience;		/* hops that a branch may be longer to take more units */
	int64_t others;		/* units of all groups but the current one */
	int n_waiting;
	struct group waiting[MOST_WAITING];	/* the last one goes on first */
	struct group now;
	int root;		/* of the current group */
	int scan, scan_arc;	/* where to go on for arcs that all units can take: place in now.order, and in `out` */
	bool unchecked;		/* no flows: hops have what the cuts that are known leave */
	struct saved saved;
	uint64_t *learned;	/* sets */
	int n_learned;
	uint64_t *cut;		/* of each arc: the ranks beyond the last cut that limited it */
	int64_t *limit;		/* what slack these had then, at most; below 0: none did */
	uint64_t *set;		/* cuts of any arc, and what slack they have */
	int64_t slack[MOST_CUTS];
	int n_cuts;
	Network net;		/* arcs; from the source to each rank; from the source to each group */
	int *tail, *head, *at;	/* of its arcs */
	struct network_kept *kept;	/* of each rank: the last flow from it, for the next to begin with */
	Packing *pack;
	int room;		/* for trees */
};

/* The network for the arcs and groups as they are now. */
void branchings_net(struct branchings *b);

/* The ranks beyond the last cut. */
void branchings_side(const struct branchings *b, uint64_t *set);

/* A set whose slack is kept up to date from now on; it may replace the one with most. */
void branchings_keep_set(struct branchings *b, const uint64_t *set, int64_t slack);

/* In the scratch arena. */
Status branchings_new_group(struct branchings *b, struct group *out);

void branchings_copy_group(const struct branchings *b, const struct group *from, struct group *to);

/* All units of the next root are the current group. */
void branchings_next_root(struct branchings *b, enum state *state);

/* After units or groups were changed: arcs are tried from the first. */
void branchings_restart_scan(struct branchings *b);

/* One hop more, or the tree, group or root that follows on the last one. b->unchecked: without flows. */
Status branchings_step(struct branchings *b, enum state *state);

static inline bool
has_bit(const uint64_t *set, int i)
{
	return set[i / RANK_BITS] >> i % RANK_BITS & 1;
}

static inline void
set_bit(uint64_t *set, int i)
{
	set[i / RANK_BITS] |= UINT64_C(1) << i % RANK_BITS;
}

static inline bool
meets(const uint64_t *a, const uint64_t *b, int words)
{
	for (int i = 0; i < words; i++)
		if (a[i] & b[i])
			return true;
	return false;
}

#endif
