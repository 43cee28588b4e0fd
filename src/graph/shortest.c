/* Dijkstra with a radix heap (Ahuja, Mehlhorn, Orlin, Tarjan 1990): distances that are taken never fall, so a vertex
 * waits in the list of the highest bit in which its distance differs from the last one taken. Where no vertex is at
 * that distance, those of the first list that is not empty go to lists before it: so each moves 63 times at most. */
#include "graph/shortest.h"
#include "base/heap.h"

enum { N_LISTS = 64 };

struct queue {
	const int64_t *distance;
	int64_t last;			/* distance that was taken */
	uint64_t filled;		/* lists that have vertices */
	int head[N_LISTS];
	int *next, *before;		/* of each vertex in its list, or -1 */
	int n_near, *near;		/* those at `last`: if `ordered`, a heap, the lowest number first */
	bool ordered;
};

#define LOWER(q, v, w) ((v) < (w))

HEAP(put, const struct queue, int, LOWER, HEAP_UNMOVED)

/* Distances differ. */
static inline int
list_of(const struct queue *q, int v)
{
	return 63 - __builtin_clzll((uint64_t)(q->distance[v] ^ q->last));
}

static inline void
add(struct queue *q, int v)
{
	if (q->distance[v] == q->last) {
		if (q->ordered)
			put(q, q->near, q->n_near + 1, q->n_near, v);
		else
			q->near[q->n_near] = v;
		q->n_near++;
		return;
	}
	int i = list_of(q, v);
	q->before[v] = -1;
	q->next[v] = q->filled >> i & 1 ? q->head[i] : -1;
	if (q->next[v] >= 0)
		q->before[q->next[v]] = v;
	q->head[i] = v;
	q->filled |= UINT64_C(1) << i;
}

/* v waits in a list, as it does above the last distance. */
static inline void
remove_from_list(struct queue *q, int v)
{
	int i = list_of(q, v);
	if (q->next[v] >= 0)
		q->before[q->next[v]] = q->before[v];
	if (q->before[v] >= 0)
		q->next[q->before[v]] = q->next[v];
	else
		q->head[i] = q->next[v];
	if (q->head[i] < 0)
		q->filled &= ~(UINT64_C(1) << i);
}

/* The nearest vertices of the first list are near, the others go to lists before it. */
static void
find_near(struct queue *q)
{
	int i = __builtin_ctzll(q->filled), first = q->head[i];
	q->last = q->distance[first];
	for (int v = first; v >= 0; v = q->next[v])
		if (q->distance[v] < q->last)
			q->last = q->distance[v];
	q->filled &= ~(UINT64_C(1) << i);
	for (int v = first, next; v >= 0; v = next) {
		next = q->next[v];
		add(q, v);
	}
}

static inline int
take(struct queue *q)
{
	if (q->n_near == 0)
		find_near(q);
	int v = q->near[q->ordered ? 0 : q->n_near - 1];
	q->n_near--;
	if (q->ordered)
		put(q, q->near, q->n_near, 0, q->near[q->n_near]);
	return v;
}

/* Over the links of v, to which a path of this length leads. */
static void
relax(const Paths *paths, struct queue *q, int v, int64_t length, bool against, int64_t *distance, int *link)
{
	const Topology *topo = paths->topo;
	const int *first = against ? topo->first_in : topo->first_out, *list = against ? topo->in : topo->out;
	for (int i = first[v]; i < first[v + 1]; i++) {
		int l = list[i], w = against ? topo->link[l].from : topo->link[l].to;
		int64_t far = length + paths->price[l];
		if (!(paths->classes >> topo->link[l].class & 1) || (distance[w] >= 0 && far >= distance[w]))
			continue;
		bool goes_on = w >= topo->n_ranks || paths->relay;
		if (goes_on && distance[w] >= 0)
			remove_from_list(q, w);
		distance[w] = far;
		if (link)
			link[w] = l;
		if (goes_on)
			add(q, w);
	}
}

void
shortest_paths(const Paths *paths, int source, bool against, int64_t *distance, int *link)
{
	const Topology *topo = paths->topo;
	struct queue q = { .distance = distance, .next = paths->room, .before = paths->room + topo->n_vertices,
		.near = paths->room + 2 * topo->n_vertices, .ordered = link };
	for (int v = 0; v < topo->n_vertices; v++) {
		distance[v] = -1;
		if (link)
			link[v] = -1;
	}
	if (source >= 0) {
		distance[source] = 0;
		add(&q, source);
	}
	for (int r = 0; r < topo->n_ranks && source < 0; r++)
		relax(paths, &q, r, 0, against, distance, link);
	while (q.n_near > 0 || q.filled) {
		int v = take(&q);
		relax(paths, &q, v, distance[v], against, distance, link);
	}
}
