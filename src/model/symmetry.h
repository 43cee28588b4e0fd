/* Symmetry: automorphisms of a topology. One rank of each orbit is planned. */
#ifndef BLINK_MODEL_SYMMETRY_H
#define BLINK_MODEL_SYMMETRY_H

#include "model/topology.h"

/* Which maps are looked for: none, any, or only those that take servers to servers: of all servers of the most common
 * size, or of those alone whose links, NICs and switches are those of most, too. */
typedef enum { SYMMETRY_NONE, SYMMETRY_ANY, SYMMETRY_SERVERS, SYMMETRY_WHOLE_SERVERS, N_SYMMETRY_KINDS } SymmetryKind;

enum { SYMMETRY_MAPS = 16 };	/* more than levels of a machine: GPUs of a server, servers of a rack, racks */

typedef struct {
	int order;		/* applied this many times it is the identity; >= 2 */
	const int *vertex, *link;	/* images: ranks go to ranks, links to links of the same class and capacity */
	const int *block_vertex, *block_link;	/* images where only the ranks of the first representative's block
						 * move; NULL: that is no automorphism, or there is one block */
} SymmetryMap;

/* A commutative group of automorphisms of a topology: the direct product of the cyclic groups of its maps. A rank is
 * moved by every element but the identity, or by none. Links in one orbit have one number. */
typedef struct {
	int n_maps;
	SymmetryMap *map;
	int size;		/* elements of the group: the product of the orders; 1: the identity only */
	int n_orbits;		/* of links, numbered by their first link */
	int *link_orbit, *orbit_size;
	int n_representatives, *representative;	/* one rank of each orbit of ranks, its first, ascending */
} Symmetry;

/* The current element of a walk over the group, as images of vertices and links; the identity at first. */
typedef struct {
	const Topology *topo;
	const Symmetry *sym;
	int count[SYMMETRY_MAPS];
	int *vertex, *link;
} SymmetryWalk;

/* Orbits of 0 .. n-1 under maps: orbit[i] is the number of the orbit of i; orbits are numbered by their first members.
 * image(with, map, i): where map number `map` takes i. queue: work space of n. Returns the number of orbits. */
int symmetry_orbits(int n, int n_maps, int (*image)(const void *with, int map, int i), const void *with, int *orbit,
    int *queue);

/* Is it moved, by all elements but the identity then? */
bool symmetry_moves(const Symmetry *sym, int rank);

/* link_orbit to representative of a group that has its maps, in the run arena. */
Status symmetry_find_orbits(Ctx *ctx, const Topology *topo, Symmetry *sym);

/* All elements: a walk begins at the identity, in the scratch arena, and false ends it, there again. Element number e
 * applies map 0 as often as e mod its order says, map 1 as the quotient does, and so on. */
Status symmetry_walk(Ctx *ctx, const Topology *topo, const Symmetry *sym, SymmetryWalk *out);
bool symmetry_next(SymmetryWalk *walk);

enum { SYMMETRY_ROUNDS = 8 };	/* more than there are levels of switches */

/* Colour refinement: again and again a vertex gets its colour from those of its neighbours and of the links between
 * them, so that only vertices that look the same from afar keep the same colour. Those before `first` keep theirs, as
 * ranks where that is n_ranks.
 * link_colour: n_links.  reversed: all links are reversed.  colour: n_vertices, in and out.  next: work space
 * likewise. */
void symmetry_refine(const Topology *topo, const uint64_t *link_colour, bool reversed, int first, int rounds,
    uint64_t *colour, uint64_t *next);

typedef struct {
	uint64_t colour;
	int v;
} ColouredVertex;

/* The switches, CPUs and NICs, n_vertices - n_ranks of them, by colour and then by number. */
void symmetry_sort_switches(const Topology *topo, const uint64_t *colour, ColouredVertex *out);

#endif
