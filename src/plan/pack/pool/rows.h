/* Which trees of a pool use which links: the rows of programs that choose from it. */
#ifndef BLINK_PLAN_PACK_POOL_ROWS_H
#define BLINK_PLAN_PACK_POOL_ROWS_H

#include "model/model.h"

/* A row for each link that a tree uses. Two links with the same row and capacity have only one. */
struct pool_rows {
	int n, *link;			/* the first link of each row */
	int *first, *entry, *uses;	/* of row r: entries first[r] .. first[r + 1] - 1, trees ascending, uses >= 1 */
};

/* In the scratch arena. */
Status pool_rows(Ctx *ctx, const Topology *topo, const Packing *pool, struct pool_rows *out);

#endif
