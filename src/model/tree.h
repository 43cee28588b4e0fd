/* Tree: an arborescence out of a root, one into it, or both. */
#ifndef BLINK_MODEL_TREE_H
#define BLINK_MODEL_TREE_H

#include "model/collective.h"
#include "model/topology.h"

/* A hop of a tree: data goes from rank src to rank dst over these links in order, through no third rank. An edge
 * down may begin at a switch with multicast, which copies what the last edge before it through that switch brought from
 * the same src; an edge up of a reducing collective may end at a switch with reduce, which adds it to what the last
 * edge before it through that switch takes to the same dst. */
typedef struct {
	int src, dst;
	int n_links;
	const int *link;
} Edge;

/* `down` is an arborescence out of root, parent-first; `up` one into it, leaf-first. A tree may have either or both. */
typedef struct {
	int root;
	int n_down, n_up;
	Edge *down, *up;
} Tree;

/* How a part of blocks gets into root, or out of it: of an alltoall, what all ranks have for root. From each vertex
 * that these pass one link leads on, so the paths are a tree into root (schedule/in_trees.h). Of a reducescatter the
 * sums of root's block, by a tree of edges into root; of an allgather root's block, by one out of root. These have
 * numbers of edges, in a table that all trees share, in place of links (schedule/root_trees.h). */
typedef struct {
	int root;
	Frac offset, length;	/* of each of these blocks */
	int n_links;
	const int *link;	/* of the first tree of a root all, one for each vertex that several links leave; of
				 * later ones those that differ from the tree before: each in place of the link from the
				 * same vertex. Edges: one for each rank but root, which ends there, or begins in a tree
				 * into root; of later trees those that differ; by ranks, ascending */
} InTree;

/* Edge i of all, down before up. */
static inline const Edge *
tree_edge(const Tree *tree, int i)
{
	return i < tree->n_down ? &tree->down[i] : &tree->up[i - tree->n_down];
}

/* Likewise, in the order in which data moves: those of up come first. */
static inline const Edge *
tree_hop(const Tree *tree, int i)
{
	return i < tree->n_up ? &tree->up[i] : &tree->down[i - tree->n_up];
}

/* A tree of its edges: `there` in any order (allreduce: `back` has the opposite edges, in the same order), n_ranks - 1
 * of each.
 * root: of the collective; allreduce takes the centre. The longest branch comes first, since it ends last. */
Status tree_arrange(Ctx *ctx, int n_ranks, Collective coll, int root, const Edge *there, const Edge *back, int n_edges,
    Tree *out);

/* The image of a tree under a map of vertices and a map of links; NULL: all stay as they are. In the run arena. */
Status tree_image(Ctx *ctx, const Tree *tree, const int *vertex, const int *link, Tree *out);

/* Hops from the farthest rank to the root, and from there to the farthest. work: n_ranks. */
int tree_depth(const Tree *tree, int *work);

/* May trees of the collective share links: at switches that multicast, on the way down to every rank, or at switches
 * that reduce, on the way up of data that is added? */
bool tree_shares(const Topology *topo, Collective coll);

/* Edges that begin or end at switches with multicast or reduce where that saves links, as Edge allows it.
 * reduces: the collective adds on the way up. work: n_vertices. */
void tree_share(const Topology *topo, bool reduces, Tree *tree, int *work);

/* Of the edges, whatever their order and wherever the root is. */
uint64_t tree_hash(const Tree *tree);

/* Have both lists of n edges the same ends and links, in the same order? */
bool tree_same_edges(const Edge *a, const Edge *b, int n);

#endif
