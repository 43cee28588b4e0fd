/* The group of a compact schedule file: maps of ranks and links, from which those of switches follow. */
#include "format/blink/schedule_reader.h"

/* Images of 0 .. n-1; whether each is there once, sched_check_symmetry asks. */
static Status
read_images(struct reader *r, const Doc *map, const char *name, int n, int *out)
{
	const Doc *images;
	TRY(need(r, map, name, DOC_ARRAY, &images));
	if (images->n != n)
		return doc_fail(r->ctx, r->label, images, BAD_INPUT, "%d entries: want %d, an image of each", images->n,
		    n);
	for (int i = 0; i < n; i++)
		TRY(read_int(r, images->child[i], 0, n - 1, &out[i]));
	return OK;
}

/* Every switch is an end of some link. */
static void
map_switches(const Topology *topo, const int *link, int *vertex)
{
	for (int l = 0; l < topo->n_links; l++) {
		const Link *from = &topo->link[l], *to = &topo->link[link[l]];
		if (from->from >= topo->n_ranks)
			vertex[from->from] = to->from;
		if (from->to >= topo->n_ranks)
			vertex[from->to] = to->to;
	}
}

/* A rank that is moved has as many images as the group has elements. */
static Status
read_map(struct reader *r, const Doc *at, Symmetry *sym)
{
	SymmetryMap *map = &sym->map[sym->n_maps];
	int *vertex, *link;
	const Doc *order;
	if (at->kind != DOC_OBJECT)
		return doc_want(r->ctx, r->label, at, "{ \"order\", \"ranks\", \"links\" }");
	TRY(need(r, at, "order", DOC_NUMBER, &order));
	TRY(read_int(r, order, 2, r->topo->n_ranks, &map->order));
	if (map->order > r->topo->n_ranks / sym->size)
		return doc_fail(r->ctx, r->label, order, BAD_INPUT,
		    "%d: want a product of all orders of at most %d, the number of ranks", map->order,
		    r->topo->n_ranks);
	TRY(NEW(r->ctx, vertex, r->topo->n_vertices));
	TRY(NEW(r->ctx, link, r->topo->n_links));
	TRY(read_images(r, at, "ranks", r->topo->n_ranks, vertex));
	TRY(read_images(r, at, "links", r->topo->n_links, link));
	map_switches(r->topo, link, vertex);
	map->vertex = vertex;
	map->link = link;
	sym->size *= map->order;
	sym->n_maps++;
	return OK;
}

Status
schedule_read_symmetry(struct reader *r, const Doc *root)
{
	const Doc *maps;
	Symmetry *sym;
	TRY(need(r, root, "symmetry", DOC_ARRAY, &maps));
	TRY(count_within(r, maps, SYMMETRY_MAPS));
	if (maps->n == 0)
		return bad(r, maps, "no map", "at least one");
	TRY(NEW(r->ctx, sym, 1));
	TRY(NEW(r->ctx, sym->map, maps->n));
	sym->size = 1;
	for (int i = 0; i < maps->n; i++)
		TRY(read_map(r, maps->child[i], sym));
	TRY(symmetry_find_orbits(r->ctx, r->topo, sym));
	r->sched->symmetry = sym;
	return OK;
}
