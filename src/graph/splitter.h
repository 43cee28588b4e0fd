/* Pairs of arcs that are split off one by one: what split_off.c does so with whole switches. */
#ifndef BLINK_GRAPH_SPLITTER_H
#define BLINK_GRAPH_SPLITTER_H

#include "graph/network.h"
#include "graph/supply.h"

/* Of an arc, and of its pair: which arcs it was made of, in the current switch. */
struct pair {
	int in, out, made;
	int64_t units;
};

struct splitter {
	Ctx *ctx;
	const Supply *supply;
	const Topology *topo;
	int n, words;
	Arc *arc;
	int n_arcs, capacity;
	int *in, *out, n_in, n_out;	/* arcs of the current switch */
	int room;			/* for these */
	struct pair *pair;		/* splits of the current switch */
	int n_pairs, pair_capacity;
	Hop *want;
	int n_want;
	int64_t *wanted;		/* of the current switch: n_in * n_out */
	bool *gone;			/* switches that were split off */
	Network net;
	int net_arcs, net_capacity;	/* arcs that are in it; room */
	int *tail, *head, *at;
	uint64_t *tight, *worst;	/* sets, the last ones; the worst of the last check */
	int n_tight;
	int *at_vertex, *place;		/* work space, of each vertex */
	int64_t *balance;
};

void split_set_units(struct splitter *s, int a, int64_t units);

/* What the worst set lacks, or at least `most`; 0: the trees fit. s->worst: the set. */
Status split_lacking(struct splitter *s, int64_t most, int64_t *out);

/* Would a set lose slack that has none? */
bool split_is_blocked(const struct splitter *s, int u, int w, int t);

/* units < 0: back again. */
void split_move(struct splitter *s, const struct pair *p, int64_t units);
Status split_pair(struct splitter *s, int in, int out, int64_t units);

/* As much of a pair as is safe, up to `most`. */
Status split_safely(struct splitter *s, int w, int in, int out, int64_t most);

static inline int64_t
split_most(const struct splitter *s, int in, int out)
{
	int64_t a = s->arc[in].units, b = s->arc[out].units;
	return s->arc[in].n_links + s->arc[out].n_links > LIMIT_ROUTE_LINKS ? 0 : a < b ? a : b;
}

enum { MOST_TIGHT = 256, SET_BITS = 64 };	/* sets without slack that are kept; bits of a word of them */

#endif
