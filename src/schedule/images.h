/* Compact schedules: trees of representatives, and a group whose elements make the others.
 *
 * The elements of the group are numbered as symmetry_walk has them. Each takes ranks to ranks and links to links, and
 * so a tree to a tree, which belongs to the image of the block of the tree:
 *
 *   - a block that elements move: the block of rank 3, moved to that of rank 5. The image lies at the same place of it.
 *   - a block that none of them moves: the whole buffer of an allreduce, or the block of a rank that stays. The images
 *     lie one behind the other, that of element e at offset + e * length.
 *
 * A rank is moved by every element but the identity or by none (sched_check_symmetry), and so is a block: in a block
 * that is moved each tree has one image.
 *
 * Where all of these trees are listed they have the order of their segments in the buffer. */
#ifndef BLINK_SCHEDULE_IMAGES_H
#define BLINK_SCHEDULE_IMAGES_H

#include "schedule/schedule.h"

/* Where elements take ranks, without a walk over all of them. */
typedef struct {
	const Symmetry *sym;
	int n;			/* ranks */
	int n_orbits;		/* of ranks that are moved */
	int *orbit;		/* of each rank, by their first ranks; -1: every element keeps it in place */
	int *element;		/* that takes the first rank of the orbit to it */
	int *member;		/* sym->size for each orbit: where each element takes its first rank */
} RankOrbits;

/* In the scratch arena.
 * Fails: BAD_INPUT (label) a rank that some elements move and others do not, or maps that do not commute or do not have
 * their orders on ranks. Cost: ranks times maps. */
Status rank_orbits(Ctx *ctx, const char *label, const Topology *topo, const Symmetry *sym, RankOrbits *out);

int rank_image(const RankOrbits *orbits, int element, int rank);
int rank_origin(const RankOrbits *orbits, int element, int image);	/* the rank that has this image */

/* sum[e], of each element e: the one that does what `at` and e do, or, with sign -1, what `at` and e undone do. */
void element_sums(const RankOrbits *orbits, int at, int sign, int *sum);

/* The element that takes a rank to another one of its orbit. */
int element_between(const RankOrbits *orbits, int rank, int image);

/* The block of the buffer that stands for the orbit of a block, that of the least ranks. */
int64_t block_representative(const RankOrbits *orbits, Collective coll, int64_t block);

/* Does no element move it? */
bool block_stays(const RankOrbits *orbits, Collective coll, int64_t block);

/* The image of the tree of a segment. */
typedef struct {
	Frac offset;
	int tree, element;
} Image;

/* All of them, in their order, in the scratch arena: as many as sched_trees says. sched: compact, passes sched_check.
 * Fails: LIMIT an offset needs more than 64 bits. */
Status sched_images(Ctx *ctx, const char *label, const Schedule *sched, const RankOrbits *orbits, Image **out);

/* Of a compact schedule: do the trees, by their blocks, tile what each rank needs? The replay has been there before.
 * Fails: as sched_verify does. */
Status sched_check_image_tiling(Ctx *ctx, const char *label, const Schedule *sched);

#endif
