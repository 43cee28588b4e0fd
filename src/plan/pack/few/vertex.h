/* Weights that few trees may have: those at a vertex of their linear program. */
#ifndef BLINK_PLAN_PACK_FEW_VERTEX_H
#define BLINK_PLAN_PACK_FEW_VERTEX_H

#include "model/model.h"

enum {
	VERTEX_TREES = 12,
	VERTEX_UNITS = 255,	/* units of a weight or a link */
	VERTEX_ROWS = 1 << VERTEX_TREES	/* (most + 1)^k for k = 12 and most = 1, or k = 7 and most = 2 */
};

/* A row says how often each of k trees uses a link. Row i has digit j of i, in base most + 1, for tree j. */
struct vertex {
	int k, most;		/* trees; how often a tree may use a link */
	int n_rows[VERTEX_TREES + 1];	/* of the first j trees */
	int16_t sum[VERTEX_ROWS];	/* of each row: units that it uses; read in whole lanes */
	int n_full;
	int16_t full[VERTEX_UNITS + 1];	/* numbers of units that some link has */
};

/* k trees; links follow. */
void vertex_begin(struct vertex *v, int k, int most);

/* A link, of at most VERTEX_UNITS. */
void vertex_link(struct vertex *v, int64_t units);

/* Tree j has this weight; all before it have theirs. */
void vertex_weigh(struct vertex *v, int j, int weight);

/* Do k independent rows fill links? */
bool vertex_holds(const struct vertex *v);

#endif
