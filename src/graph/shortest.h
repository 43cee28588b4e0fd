/* Shortest paths over links. */
#ifndef BLINK_GRAPH_SHORTEST_H
#define BLINK_GRAPH_SHORTEST_H

#include "model/model.h"

enum { PATHS_ROOM = 3 };	/* work space for each vertex */

/* What paths may lead over. */
typedef struct {
	const Topology *topo;
	const int64_t *price;	/* of each link, >= 0 */
	unsigned classes;	/* of its links, a bit set */
	bool relay;		/* through ranks, too; else a rank ends a path */
	int *room;		/* work space: PATHS_ROOM * n_vertices */
} Paths;

/* To each vertex from the source; -1: from the nearest rank, by one link or more, without relay. against: from each to
 * it, over links from their ends. distance: -1: none. link: NULL, or the link by which the path of each vertex enters
 * (leaves) it, -1. Dijkstra; of equal ones the vertex of the lowest number goes on first. */
void shortest_paths(const Paths *paths, int source, bool against, int64_t *distance, int *link);

#endif
