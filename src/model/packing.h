/* Packing: trees with rates. */
#ifndef BLINK_MODEL_PACKING_H
#define BLINK_MODEL_PACKING_H

#include "model/bound.h"
#include "model/symmetry.h"
#include "model/tree.h"

enum { PACKING_BITS = 50 };	/* of all weights together: 4096 ranks use no link so often that loads overflow */

/* A part of a hybrid schedule: trees over link classes of their own, which carry a share of every block. The segments
 * are those of large messages, where shares are in proportion to rates; split.c has the shares at other sizes. */
typedef struct {
	unsigned classes;	/* bit set, not empty; no class is in two parts */
	int64_t setup;		/* ns until its trees can start */
	Frac begin, end;	/* its share of each block: from the end of the part before to its own end */
	Frac rate;		/* bytes/s of algorithm bandwidth of its trees alone, with the whole buffer */
	double stated_rate;	/* GB/s, as a file has it; 0 where none was read */
} Part;

/* Trees with rates, which are whole multiples of one unit: tree t carries weight[t] * unit bytes/s. The sum over
 * trees of rate * (edges that use link l) is at most capacity(l), for every l. */
typedef struct Packing {
	int n_trees;
	Tree *tree;
	int *demand;		/* of each tree, ascending; NULL: the collective has one demand */
	int64_t *weight;	/* of each tree, >= 1; the same sum for each demand; together at most 2^PACKING_BITS;
				 * equal ones where trees serve one rank */
	Frac unit;		/* bytes/s, above 0 */
	int *serves;		/* of an allreduce: each tree has all of the buffer, and serves this rank alone; NULL */
	int64_t cells;		/* rows times trees of the linear program that found it; 0: none did */
	int n_parts;		/* of a hybrid schedule; 0: none */
	const Part *part;	/* classes and setup of each */
	int *part_of;		/* of each tree, where there are parts */
	/* Of a packing of the same rate that has more trees, but is less deep; 0: none is known. */
	int other_trees, other_depth;
	struct Packing *fewer;	/* of the same rate, with fewer trees, which take longer; NULL */
	/* The trees are those of representatives, with the rate of each of their images under this group; NULL: all
	 * trees are there. Only sched_build takes such a packing. */
	const Symmetry *symmetry;
	/* Trees of each rank (schedule/in_trees.h), by roots and offsets, in place of all others, and of demands,
	 * weights and unit. Only sched_build takes such a packing. */
	int n_in_trees;		/* 0: none */
	InTree *in_tree;
	int n_edges;		/* of an allgather or reducescatter: those of all these trees, each once */
	Edge *edge;
	bool highest;		/* no trees within the limits that it was asked for have a higher rate */
	bool too_large;		/* more trees could have a higher rate, but more edges than a schedule may have */
} Packing;

/* Adds a tree of root to in_tree, which has room for it, as numbers of edges: edge[v] is the one by which rank v of n
 * hangs. It has `length` of the root's block, from where the tree before ended, if that is of the same root; then only
 * numbers that differ from that tree's are listed. last: n numbers, kept from call to call. *room: how many numbers may
 * still be listed; less by those of this tree. *good: false: that is too few, or a schedule may have no more trees, and
 * nothing was added. */
Status pack_add_numbers(Ctx *ctx, Packing *pack, int root, int n, const int *edge, Frac length, int *last,
    int64_t *room, bool *good);

/* Room for n trees in the run arena: trees, weights and, with `demands`, a demand of each; all 0, and nothing else of
 * *pack is changed. pack_new: of a packing that has no trees yet. */
Status pack_room(Ctx *ctx, size_t n, bool demands, Packing *pack);
Status pack_new(Ctx *ctx, size_t n, bool demands, Packing **out);

/* No link carries more than its capacity. load: work space of n_links. */
bool pack_fits(const Topology *topo, const Packing *pack, int64_t *load);

/* Hops of the deepest tree. work: n_ranks. */
int pack_depth(const Packing *pack, int *work);

/* Time of a message of this many bytes, s, by the closed term of a pipeline, with the chunk size that is best for it: a
 * tree of depth d and rate r moves k chunks of c bytes in (k + d - 1) (step + c / r) + d latency, with the step of
 * kernels and the mean latency of its hops; k need not be a whole number. The last tree counts.
 *
 * Where more edges leave a rank than it sends at once, KERNEL_AT_ONCE, they take turns: chunks follow each other at
 * no less than an equal part of each link, so that the short part of a tree of low rate is not the last; and each hop
 * waits for its turn, by an equal part of a link, too. Where more leave a rank in the mean, each step takes longer by
 * the root of how many times as many, which was measured. The term is 0.91 of what is simulated, mostly between 0.75
 * and 1.1 (docs/results.md).
 *
 * rate: pack_rate. work: pack_work ints. */
size_t pack_work(const Topology *topo);
double pack_time(const Topology *topo, const Packing *pack, Frac rate, double bytes, int *work);

/* The largest unit with which the packing fits the capacities, bytes/s. load: work space of n_links. False: no links
 * are in use. */
bool pack_widest_unit(const Topology *topo, const Packing *pack, int64_t *load, Frac *out);

/* Algorithm bandwidth where trees carry shares of the buffer in proportion to their weights, bytes/s: at least
 * pack_rate, since rounded weights leave a little of each link unused. load: work space of n_links. False: it needs
 * more than 64 bits. */
bool pack_achieved(const Topology *topo, const Packing *pack, Collective coll, int64_t *load, Frac *out);

/* A unit in which trees of `rate` bytes/s together have weights of 20 bits; of up to 30 for many demands. */
Frac pack_unit(double rate, int n_demands);

/* Algorithm bandwidth, bytes/s: the rate of a demand times (M divided by its size); false where that needs more than
 * 64 bits. */
bool pack_rate(const Packing *pack, Collective coll, int n_ranks, Frac *out);

/* proof->reached, if these trees have that rate, of whatever kind they are. pack: may be NULL. */
void pack_note_reached(const Packing *pack, Collective coll, int n_ranks, Bound *proof);

/* Checks every invariant of Packing. Fails: INTERNAL. */
Status pack_check(Ctx *ctx, const Topology *topo, const Packing *pack);

#endif
