/* Isomorphisms of topologies, against a brute force over permutations of ranks: copies in other numbers are found, with
 * a map that is checked here, and so are topologies that differ. */
#include "graph/isomorphism.h"
#include "random.h"

#include <string.h>

enum { MOST = 6, MOST_LINKS = MOST * MOST };

struct machine {
	Topology topo;
	Vertex vertex[MOST];
	Link link[MOST_LINKS];
};

/* Few capacities, so that many are isomorphic. n_ranks of n vertices are ranks, the others switches. */
static void
random_machine(struct machine *m, int n, int n_ranks, int links)
{
	memset(m, 0, sizeof *m);
	m->topo = (Topology){ .name = "m", .n_ranks = n_ranks, .n_vertices = n, .vertex = m->vertex, .link = m->link };
	for (int v = 0; v < n; v++)
		m->vertex[v].kind = v < n_ranks ? VERTEX_GPU : VERTEX_SWITCH;
	for (int i = 0; i < links; i++) {
		int a = below(n), b = below(n);
		if (a != b)
			m->link[m->topo.n_links++] = (Link){ .from = a, .to = b, .count = 1,
			    .capacity = 1 + below(2) };
	}
}

/* Vertex v becomes to[v]; links are in another order. */
static void
renumber(const struct machine *m, const int *to, struct machine *out)
{
	*out = *m;
	out->topo.vertex = out->vertex;
	out->topo.link = out->link;
	for (int v = 0; v < m->topo.n_vertices; v++)
		out->vertex[to[v]] = m->vertex[v];
	for (int l = 0; l < m->topo.n_links; l++) {
		Link *link = &out->link[m->topo.n_links - 1 - l];
		*link = m->link[l];
		link->from = to[link->from];
		link->to = to[link->to];
	}
}

static void
shuffle(int *list, int first, int end)
{
	for (int i = end - 1; i > first; i--) {
		int j = first + below(i - first + 1), old = list[i];
		list[i] = list[j];
		list[j] = old;
	}
}

/* How many links of each capacity lead from a to b. */
static void
count_links(const Topology *topo, const int *to, int count[MOST][MOST][2])
{
	memset(count, 0, sizeof(int) * MOST * MOST * 2);
	for (int l = 0; l < topo->n_links; l++)
		count[to[topo->link[l].from]][to[topo->link[l].to]][topo->link[l].capacity - 1]++;
}

static bool
is_isomorphism(const Topology *a, const Topology *b, const int *map)
{
	static const int same[MOST] = { 0, 1, 2, 3, 4, 5 };
	int x[MOST][MOST][2], y[MOST][MOST][2];
	for (int r = 0; r < a->n_ranks; r++)
		if (map[r] < 0 || map[r] >= b->n_ranks)
			return false;
	count_links(a, map, x);
	count_links(b, same, y);
	return memcmp(x, y, sizeof x) == 0;
}

/* Is there a map that begins with these images of 0 .. n - 1? */
static bool
brute_force(const Topology *a, int root_a, const Topology *b, int root_b, int *map, int n)
{
	if (n == a->n_vertices)
		return (root_a < 0 || map[root_a] == root_b) && is_isomorphism(a, b, map);
	for (int w = 0; w < b->n_vertices; w++) {
		bool used = (n < a->n_ranks) != (w < b->n_ranks);
		for (int v = 0; v < n; v++)
			used = used || map[v] == w;
		map[n] = w;
		if (!used && brute_force(a, root_a, b, root_b, map, n + 1))
			return true;
	}
	return false;
}

/* Wrong answers about two topologies; *found: the right one. */
static int
compare(Ctx *ctx, const Topology *a, int root_a, const Topology *b, int root_b, bool *found)
{
	int map[MOST], own[MOST];
	uint64_t x, y;
	bool told;
	*found = a->n_links == b->n_links && brute_force(a, root_a, b, root_b, own, 0);
	if (topo_isomorphism(ctx, "m", a, root_a, b, root_b, map, &told) != OK
	    || topo_invariant(ctx, a, root_a, &x) != OK || topo_invariant(ctx, b, root_b, &y) != OK)
		return 1;
	if (told && (!is_isomorphism(a, b, map) || (root_a >= 0 && map[root_a] != root_b)))
		return 1;
	return told != *found || (*found && x != y);
}

static int
copies(Ctx *ctx)
{
	int wrong = 0;
	for (int round = 0; round < 2000; round++) {
		struct machine m, copy;
		int n = 2 + below(MOST - 1), n_ranks = 2 + below(n - 1), to[MOST] = { 0, 1, 2, 3, 4, 5 };
		int root = below(2) ? -1 : below(n_ranks);
		bool found;
		random_machine(&m, n, n_ranks, below(14));
		shuffle(to, 0, n_ranks);
		shuffle(to, n_ranks, n);
		renumber(&m, to, &copy);
		wrong += compare(ctx, &m.topo, root, &copy.topo, root < 0 ? -1 : to[root], &found) || !found;
	}
	return report(wrong, "copies in other numbers");
}

/* A copy in which one link has another end, another capacity, or the root is another. */
static int
others(Ctx *ctx)
{
	int wrong = 0, alike = 0, rounds = 2000;
	for (int round = 0; round < rounds; round++) {
		struct machine m, copy;
		int n = 2 + below(MOST - 1), n_ranks = 2 + below(n - 1), to[MOST] = { 0, 1, 2, 3, 4, 5 };
		int root = below(n_ranks), other = to[root];
		bool found;
		random_machine(&m, n, n_ranks, 1 + below(14));
		shuffle(to, 0, n_ranks);
		renumber(&m, to, &copy);
		other = below(3) ? to[root] : below(n_ranks);
		if (copy.topo.n_links > 0 && below(2)) {
			Link *link = &copy.link[below(copy.topo.n_links)];
			int end = below(n);
			link->capacity = below(2) ? 3 - link->capacity : link->capacity;
			link->to = end == link->from ? link->to : end;
		}
		wrong += compare(ctx, &m.topo, root, &copy.topo, other, &found);
		alike += found;
	}
	return report(wrong + (alike < rounds / 10 || alike > rounds / 10 * 9), "others, of which some are isomorphic");
}

/* Colour refinement does not tell a ring of six from two rings of three; of many equal vertices steps are counted. */
static int
regular(Ctx *ctx)
{
	struct machine one, two;
	int wrong = 0;
	bool found;
	random_machine(&one, 6, 6, 0);
	random_machine(&two, 6, 6, 0);
	one.topo.n_links = two.topo.n_links = 6;
	for (int v = 0; v < 6; v++) {
		one.link[v] = (Link){ .from = v, .to = (v + 1) % 6, .count = 1, .capacity = 1 };
		two.link[v] = (Link){ .from = v, .to = v / 3 * 3 + (v + 1) % 3, .count = 1, .capacity = 1 };
	}
	wrong += compare(ctx, &one.topo, -1, &two.topo, -1, &found) || found;
	wrong += compare(ctx, &two.topo, -1, &two.topo, -1, &found) || !found;
	int map[MOST];
	limit_steps(ctx, 1000);
	wrong += topo_isomorphism(ctx, "m", &one.topo, -1, &two.topo, -1, map, &found) != LIMIT;
	return report(wrong, "regular graphs, and too many steps");
}

int
main(void)
{
	Ctx ctx;
	ctx_init(&ctx);
	int failed = copies(&ctx) + others(&ctx) + regular(&ctx);
	ctx_free(&ctx);
	return failed != 0;
}
