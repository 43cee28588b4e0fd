#include "graph/shortest.h"
#include "base/heap.h"

/* Vertices by distance, then by number. */
struct queue {
	const int64_t *distance;
	int *place;		/* -1: it was not there yet */
};

static inline bool
nearer(const struct queue *q, int v, int w)
{
	return q->distance[v] != q->distance[w] ? q->distance[v] < q->distance[w] : v < w;
}

#define PLACE(q, v, at) (q)->place[v] = (at)

HEAP(put, const struct queue, int, nearer, PLACE)

void
shortest_paths(const Paths *paths, int source, bool against, int64_t *distance, int *link)
{
	const Topology *topo = paths->topo;
	const int *first = against ? topo->first_in : topo->first_out, *list = against ? topo->in : topo->out;
	const struct queue q = { distance, paths->place };
	int *heap = paths->heap, size = 1;
	for (int v = 0; v < topo->n_vertices; v++) {
		distance[v] = q.place[v] = -1;
		if (link)
			link[v] = -1;
	}
	distance[source] = 0;
	put(&q, heap, size, 0, source);
	while (size > 0) {
		int v = heap[0];
		size--;
		put(&q, heap, size, 0, heap[size]);
		for (int i = first[v]; i < first[v + 1]; i++) {
			int l = list[i], w = against ? topo->link[l].from : topo->link[l].to;
			int64_t far = distance[v] + paths->price[l];
			if (!(paths->classes >> topo->link[l].class & 1) || (distance[w] >= 0 && far >= distance[w]))
				continue;
			distance[w] = far;
			if (link)
				link[w] = l;
			if (w < topo->n_ranks && !paths->relay)
				continue;
			if (q.place[w] < 0)
				q.place[w] = size++;
			put(&q, heap, size, q.place[w], w);
		}
	}
}
