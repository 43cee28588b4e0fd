/* Orbits under maps, and colours that tell switches apart. */
#include "model/symmetry.h"
#include "base/sort.h"
#include "base/hash.h"

#include <string.h>

int
symmetry_orbits(int n, int n_maps, int (*image)(const void *with, int map, int i), const void *with, int *orbit,
    int *queue)
{
	int n_orbits = 0;
	memset(orbit, -1, (size_t)n * sizeof *orbit);
	for (int first = 0; first < n; first++) {
		int head = 0, tail = 0;
		if (orbit[first] >= 0)
			continue;
		orbit[first] = n_orbits;
		queue[tail++] = first;
		while (head < tail) {
			int at = queue[head++];
			for (int map = 0; map < n_maps; map++) {
				int to = image(with, map, at);
				if (orbit[to] >= 0)
					continue;
				orbit[to] = n_orbits;
				queue[tail++] = to;
			}
		}
		n_orbits++;
	}
	return n_orbits;
}

void
symmetry_refine(const Topology *topo, const uint64_t *link_colour, bool reversed, int first, int rounds,
    uint64_t *colour, uint64_t *next)
{
	for (int round = 0; round < rounds; round++) {
		memcpy(next, colour, (size_t)topo->n_vertices * sizeof *next);
		for (int l = 0; l < topo->n_links; l++) {
			const Link *link = &topo->link[l];
			int from = reversed ? link->to : link->from, to = reversed ? link->from : link->to;
			next[from] += hash64(colour[to] ^ link_colour[l]);
			next[to] += hash64(colour[from] + link_colour[l]);
		}
		for (int v = first; v < topo->n_vertices; v++)
			colour[v] = hash64(next[v]);
	}
}

static int
by_colour(const void *a, const void *b)
{
	const ColouredVertex *s = a, *t = b;
	return s->colour != t->colour ? (s->colour > t->colour) - (s->colour < t->colour)
	    : (s->v > t->v) - (s->v < t->v);
}

void
symmetry_sort_switches(const Topology *topo, const uint64_t *colour, ColouredVertex *out)
{
	int n = topo->n_vertices - topo->n_ranks;
	for (int i = 0; i < n; i++)
		out[i] = (ColouredVertex){ colour[topo->n_ranks + i], topo->n_ranks + i };
	sort_array(out, n, sizeof *out, by_colour);
}

/* ---- orbits and elements of a group ---- */

bool
symmetry_moves(const Symmetry *sym, int rank)
{
	for (int m = 0; m < sym->n_maps; m++)
		if (sym->map[m].vertex[rank] != rank)
			return true;
	return false;
}

static int
image_of_vertex(const void *with, int map, int v)
{
	return ((const Symmetry *)with)->map[map].vertex[v];
}

static int
image_of_link(const void *with, int map, int l)
{
	return ((const Symmetry *)with)->map[map].link[l];
}

Status
symmetry_find_orbits(Ctx *ctx, const Topology *topo, Symmetry *sym)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	int n = topo->n_links, *queue, *orbit;
	TRY(NEW_EACH(ctx, n, sym->link_orbit, sym->orbit_size));
	TRY(NEW(ctx, sym->representative, topo->n_ranks));
	TRY(TEMP(ctx, queue, n + topo->n_vertices));
	TRY(TEMP(ctx, orbit, topo->n_vertices));
	sym->n_orbits = symmetry_orbits(n, sym->n_maps, image_of_link, sym, sym->link_orbit, queue);
	for (int l = 0; l < n; l++)
		sym->orbit_size[sym->link_orbit[l]]++;
	symmetry_orbits(topo->n_ranks, sym->n_maps, image_of_vertex, sym, orbit, queue);
	for (int r = 0; r < topo->n_ranks; r++)
		if (orbit[r] == sym->n_representatives)
			sym->representative[sym->n_representatives++] = r;
	arena_release(&ctx->scratch, mark);
	return OK;
}

Status
symmetry_walk(Ctx *ctx, const Topology *topo, const Symmetry *sym, SymmetryWalk *out)
{
	SymmetryWalk walk = { .topo = topo, .sym = sym };
	TRY(TEMP(ctx, walk.vertex, topo->n_vertices));
	TRY(TEMP(ctx, walk.link, topo->n_links));
	for (int v = 0; v < topo->n_vertices; v++)
		walk.vertex[v] = v;
	for (int l = 0; l < topo->n_links; l++)
		walk.link[l] = l;
	*out = walk;
	return OK;
}

/* An odometer: a map that was applied as often as its order says is the identity again, and the next one moves on. */
bool
symmetry_next(SymmetryWalk *walk)
{
	for (int i = 0; i < walk->sym->n_maps; i++) {
		const SymmetryMap *map = &walk->sym->map[i];
		for (int v = 0; v < walk->topo->n_vertices; v++)
			walk->vertex[v] = map->vertex[walk->vertex[v]];
		for (int l = 0; l < walk->topo->n_links; l++)
			walk->link[l] = map->link[walk->link[l]];
		if (++walk->count[i] < map->order)
			return true;
		walk->count[i] = 0;
	}
	return false;
}
