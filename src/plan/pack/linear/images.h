/* Packings of representatives, and their images under a group. */
#ifndef BLINK_PLAN_PACK_LINEAR_IMAGES_H
#define BLINK_PLAN_PACK_LINEAR_IMAGES_H

#include "model/model.h"

/* Every tree is replaced by its images under the group, each with its weight; equal images are merged, and weights
 * divided by their greatest common divisor.
 * pack: trees of the first demand of each orbit, with the rate of each of their images.
 * *out: ordered by demand; NULL where weights are out of range. Fails: LIMIT more trees or edges than a schedule may
 * have. */
Status pack_unfold(Ctx *ctx, const Topology *topo, const Symmetry *sym, Collective coll, int root, const Packing *pack,
    Packing **out);

/* Fewer images for the same loads, of a collective with one demand: each server is turned in itself, so that the
 * images of a tree under the coarse maps of the group alone load the links of an orbit equally (turn.c).
 * pack: as for pack_unfold.
 * *out: NULL where it finds no fewer than the whole group has. */
Status pack_turn(Ctx *ctx, const Topology *topo, const Symmetry *sym, Collective coll, int root, const Packing *pack,
    Packing **out);

#endif
