/* Searches over the links of a topology: the table of contents of graph/. */
#ifndef BLINK_GRAPH_GRAPH_H
#define BLINK_GRAPH_GRAPH_H

#include "graph/cheapest_tree.h"	/* the cheapest tree of a demand, or of a family */
#include "graph/demand_cost.h"		/* what the cheapest trees of a collective cost, for certificates */
#include "graph/flow.h"			/* maximum flow, minimum cut */
#include "graph/homes.h"		/* ranks that trees had best enter together */
#include "graph/hops.h"			/* what hops into ranks have together */
#include "graph/isomorphism.h"		/* two topologies that are the same up to numbers */
#include "graph/reversible.h"		/* are links the same in both directions? */
#include "graph/search.h"		/* cheapest routes, arborescences, spanning trees, paths */

#endif
