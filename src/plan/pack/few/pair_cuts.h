/* What pairs can use of the links out of a set of ranks, and within it. */
#ifndef BLINK_PLAN_PACK_FEW_PAIR_CUTS_H
#define BLINK_PLAN_PACK_FEW_PAIR_CUTS_H

#include "plan/pack/few/pair_halves.h"

/* Before any search: p->parts. */
Status pairs_count_parts(struct pairs *p);

/* Of pairs j .. k - 1, which have `remaining` units of weight together: level->out and level->within. unused: units of
 * level->residual that they cannot use. False: links are too few somewhere, or too many. */
bool pairs_find_cuts(struct pairs *p, int j, int remaining, int unused);

/* The limits of a pair of this weight. */
void pairs_limit(const struct pairs *p, const struct pair_level *level, int weight, struct pair_limits *out);

/* Of its halves; down, too, where the half up is this spanning tree. up: -1 where it is not known. */
void pairs_limit_up(const struct pairs *p, const struct pair_limits *limits, struct part_limits *out);
void pairs_limit_down(const struct pairs *p, const struct pair_limits *limits, int up, struct part_limits *out);

/* Of a spanning tree, by side: how many parts it has there, less one. */
static inline uint8_t *
pairs_parts(const struct pairs *p, int tree)
{
	return p->parts + 2 * (size_t)tree * (size_t)p->half;
}

/* Has this tree no more parts than that anywhere? */
static inline bool
pairs_fit_parts(const struct pairs *p, int tree, const struct part_limits *limits)
{
	const uint8_t *parts = pairs_parts(p, tree);
	for (int i = 0; i < limits->n; i++) {
		int side = limits->block[i];
		if (bytes_any((Bytes)(bytes_get(&parts[side]) > bytes_get(&limits->most[side]))))
			return false;
	}
	return true;
}

#endif
