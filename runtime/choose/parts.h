/* Parts of a message: where each ends. */
#ifndef BLINK_CHOOSE_PARTS_H
#define BLINK_CHOOSE_PARTS_H

#include "blink_program.h"
#include "model/model.h"

/* Where parts end, as programs have it. n_parts stages of n_parts - 1 each. Memory: run arena. */
Status part_ends(Ctx *ctx, const PartEnd *end, int n_parts, struct blink_part_end **out);

#endif
