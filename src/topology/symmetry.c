/* A group of automorphisms of a topology: one rank of each orbit is planned. An automorphism takes every tree to a
 * tree of the same rate, so the linear program may count links and demands by orbits.
 *
 * Any subgroup of the automorphisms leaves the optimum as it is (average an optimal packing over the subgroup), so a
 * small commutative one of a simple kind is enough: shifts of ranks. Ranks are ordered by server and id; positions
 * are cut into blocks, and a map moves each position on by `step` inside its block, cyclically:
 *
 *     2 boxes of 4 GPUs on a switch:   step 1, blocks of 4:  1 2 3 0   5 6 7 4
 *                                      step 4, blocks of 8:  4 5 6 7 0 1 2 3
 *
 * A chain of such maps, each step a multiple of the block before, generates a product of cyclic groups. Only the
 * identity leaves a rank that maps may move in place: so a tree has as many images as the group has elements, one for
 * each rank that can be its root. Each shift is checked to be an automorphism, link by link.
 *
 * Ranks of servers whose size is not the most common one stay in place, and, where there is a root, those of its
 * server; in a single server only the root stays. Where one server has lost a NIC or a link, no shift of servers of its
 * size is an automorphism: then those stay that colours tell from most others (SYMMETRY_WHOLE_SERVERS). */
#include "base/hash.h"
#include "topology/topology.h"

#include <stdlib.h>
#include <string.h>

struct finder {
	Ctx *ctx;
	const Topology *topo;
	Symmetry *sym;
	int n_moved, *moved;	/* ranks in order, those that maps may move */
	uint64_t *from_colour, *to_colour, *next_colour;	/* of vertices, as argument and as image */
	ColouredVertex *from_order, *to_order;
	uint64_t *link_colour;
	struct end { int from, to, class, l; int64_t capacity; } *from_end, *to_end;
	uint64_t sum;		/* of the links (sum_of_ends) */
	int *vertex, *link;	/* images under the current map */
	int *server;		/* n_nodes: images of servers, where it must take servers to servers; else NULL */
	const SymmetryTest *keeps;	/* NULL: none */
};

/* ---- order of ranks ---- */

struct place {
	int node, v;
	const char *id;
};

/* Digits by their value: gpu2 before gpu10. */
static int
natural_order(const char *a, const char *b)
{
	for (; *a || *b; a++, b++) {
		size_t m = strspn(a, "0123456789"), n = strspn(b, "0123456789");
		if (m > 0 && n > 0 && m != n)
			return m < n ? -1 : 1;
		if (*a != *b)
			return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
	}
	return 0;
}

static int
by_place(const void *a, const void *b)
{
	const struct place *p = a, *q = b;
	if (p->node != q->node)
		return p->node < q->node ? -1 : 1;
	int order = natural_order(p->id, q->id);
	return order ? order : (p->v > q->v) - (p->v < q->v);
}

static void
take_places(struct finder *f, struct place *place)
{
	qsort(place, (size_t)f->n_moved, sizeof *place, by_place);
	for (int i = 0; i < f->n_moved; i++)
		f->moved[i] = place[i].v;
}

/* Vertices from `first` on; those before it have their colours. With too few rounds of refinement a symmetry would be
 * missed, no more. */
static void
colour_from(const struct finder *f, int first, uint64_t *colour)
{
	const Topology *topo = f->topo;
	for (int v = first; v < topo->n_vertices; v++)
		colour[v] = hash64((uint64_t)topo->vertex[v].kind * 4 + topo->vertex[v].multicast * 2
		    + topo->vertex[v].reduce);
	symmetry_refine(topo, f->link_colour, false, first, SYMMETRY_ROUNDS, colour, f->next_colour);
}

/* Of each server: the sum of the colours of its ranks, whatever their order. */
static Status
colour_servers(struct finder *f, uint64_t **out)
{
	const Topology *topo = f->topo;
	uint64_t *server;
	TRY(TEMP(f->ctx, server, topo->n_nodes + 1));
	colour_from(f, 0, f->from_colour);
	for (int r = 0; r < topo->n_ranks; r++)
		server[topo->vertex[r].node + 1] += hash64(f->from_colour[r]);
	*out = server;
	return OK;
}

/* The ranks of the servers of one colour, of that which most ranks have. */
static Status
order_whole(struct finder *f)
{
	const Topology *topo = f->topo;
	int n = topo->n_ranks, most = 0;
	uint64_t *server, best = 0;
	struct place *place;
	TRY(TEMP(f->ctx, place, n));
	TRY(colour_servers(f, &server));
	for (int s = 0; s <= topo->n_nodes; s++) {
		int n_ranks = 0;
		for (int r = 0; r < n; r++)
			n_ranks += server[topo->vertex[r].node + 1] == server[s];
		if (n_ranks > most) {
			most = n_ranks;
			best = server[s];
		}
	}
	for (int r = 0; r < n; r++)
		if (server[topo->vertex[r].node + 1] == best)
			place[f->n_moved++] = (struct place){ topo->vertex[r].node, r, topo->vertex[r].id };
	take_places(f, place);
	return OK;
}

/* The ranks of the servers of one size, the size that most ranks share; not those of the root's server. */
static Status
order_ranks(struct finder *f, int root)
{
	const Topology *topo = f->topo;
	int n = topo->n_ranks, best = -1, *size, *total;
	struct place *place;
	TRY(TEMP(f->ctx, size, topo->n_nodes + 1));
	TRY(TEMP(f->ctx, total, n + 1));
	TRY(TEMP(f->ctx, place, n));
	for (int v = 0; v < n; v++)
		size[topo->vertex[v].node + 1]++;
	if (root >= 0)
		size[topo->vertex[root].node + 1] = 0;
	for (int s = 0; s <= topo->n_nodes; s++)
		total[size[s]] += size[s];
	for (int s = 1; s <= n; s++)
		if (total[s] > 0 && (best < 0 || total[s] >= total[best]))
			best = s;
	for (int v = 0; v < n; v++)
		if (size[topo->vertex[v].node + 1] == best)
			place[f->n_moved++] = (struct place){ topo->vertex[v].node, v, topo->vertex[v].id };
	/* A single server: all of its ranks but the root. */
	for (int v = 0; v < n && root >= 0 && best < 0; v++)
		if (v != root)
			place[f->n_moved++] = (struct place){ topo->vertex[v].node, v, topo->vertex[v].id };
	take_places(f, place);
	return OK;
}

/* ---- one map ---- */

/* Images of the switches, given those of the ranks in f->vertex. */
static bool
map_switches(struct finder *f)
{
	const Topology *topo = f->topo;
	int n = topo->n_vertices - topo->n_ranks;
	if (n == 0)
		return true;
	for (int r = 0; r < topo->n_ranks; r++) {
		f->from_colour[r] = hash64((uint64_t)f->vertex[r] | UINT64_C(1) << 40);
		f->to_colour[r] = hash64((uint64_t)r | UINT64_C(1) << 40);
	}
	colour_from(f, topo->n_ranks, f->from_colour);
	colour_from(f, topo->n_ranks, f->to_colour);
	symmetry_sort_switches(topo, f->from_colour, f->from_order);
	symmetry_sort_switches(topo, f->to_colour, f->to_order);
	for (int i = 0; i < n; i++) {
		const Vertex *a = &topo->vertex[f->from_order[i].v], *b = &topo->vertex[f->to_order[i].v];
		if (f->from_order[i].colour != f->to_order[i].colour || a->multicast != b->multicast
		    || a->reduce != b->reduce)
			return false;
		f->vertex[f->from_order[i].v] = f->to_order[i].v;
	}
	return true;
}

/* Vertices of one server go to one server, those of none to none. */
static bool
map_servers(struct finder *f)
{
	const Topology *topo = f->topo;
	for (int s = 0; f->server && s < topo->n_nodes; s++)
		f->server[s] = -1;
	for (int v = 0; f->server && v < topo->n_vertices; v++) {
		int from = topo->vertex[v].node, to = topo->vertex[f->vertex[v]].node;
		if ((from < 0) != (to < 0) || (from >= 0 && f->server[from] >= 0 && f->server[from] != to))
			return false;
		if (from >= 0)
			f->server[from] = to;
	}
	return true;
}

static int
by_end(const void *a, const void *b)
{
	const struct end *s = a, *t = b;
	if (s->from != t->from)
		return s->from < t->from ? -1 : 1;
	if (s->to != t->to)
		return s->to < t->to ? -1 : 1;
	if (s->class != t->class)
		return s->class < t->class ? -1 : 1;
	if (s->capacity != t->capacity)
		return s->capacity < t->capacity ? -1 : 1;
	return (s->l > t->l) - (s->l < t->l);
}

/* The same for the same links in any order; nearly always another for others. */
static uint64_t
sum_of_ends(const struct end *end, int n)
{
	uint64_t sum = 0;
	for (int i = 0; i < n; i++)
		sum += hash64(hash64((uint64_t)end[i].from << 32 | (uint64_t)(unsigned)end[i].to)
		    + (uint64_t)end[i].capacity + ((uint64_t)end[i].class << 60));
	return sum;
}

/* Images of the links; false: some link has none, so the map of vertices is no automorphism. */
static bool
map_links(struct finder *f)
{
	const Topology *topo = f->topo;
	for (int l = 0; l < topo->n_links; l++) {
		const Link *link = &topo->link[l];
		f->from_end[l] = (struct end){ f->vertex[link->from], f->vertex[link->to], (int)link->class, l,
		    link->capacity };
	}
	/* Most maps are none, which is found without a sort. */
	if (sum_of_ends(f->from_end, topo->n_links) != f->sum)
		return false;
	qsort(f->from_end, (size_t)topo->n_links, sizeof *f->from_end, by_end);
	for (int i = 0; i < topo->n_links; i++) {
		const struct end *a = &f->from_end[i], *b = &f->to_end[i];
		if (a->from != b->from || a->to != b->to || a->class != b->class || a->capacity != b->capacity)
			return false;
		f->link[a->l] = b->l;
	}
	return true;
}

/* Position i of the first n ranks moves on by `step` in its block. */
static void
map_ranks(struct finder *f, int n, int block, int step)
{
	for (int r = 0; r < f->topo->n_ranks; r++)
		f->vertex[r] = r;
	for (int i = 0; i < n; i++)
		f->vertex[f->moved[i]] = f->moved[i / block * block + (i % block + step) % block];
}

/* ---- the group ---- */

/* Is a permutation the identity, applied this many times? The lengths of its cycles divide the order. seen: work space,
 * all false. */
static bool
has_order(const int *map, int n, int order, bool *seen)
{
	for (int first = 0; first < n; first++) {
		int length = 0;
		for (int i = first; !seen[i]; i = map[i], length++)
			seen[i] = true;
		if (length > 0 && order % length != 0)
			return false;
	}
	return true;
}

static bool
commute(const int *a, const int *b, int n)
{
	for (int i = 0; i < n; i++)
		if (a[b[i]] != b[a[i]])
			return false;
	return true;
}

/* A map is kept if it has this order and commutes with those before it. On ranks it does by the choice of blocks; on
 * equal switches and links it might not. */
static Status
keep_map(struct finder *f, int order, bool *kept)
{
	const Topology *topo = f->topo;
	Symmetry *sym = f->sym;
	int *vertex, *link, n = topo->n_vertices, m = topo->n_links;
	bool *seen, *link_seen;
	ArenaMark mark = arena_mark(&f->ctx->scratch);
	*kept = true;
	for (int i = 0; i < sym->n_maps && *kept; i++)
		*kept = commute(sym->map[i].vertex, f->vertex, n) && commute(sym->map[i].link, f->link, m);
	TRY(TEMP(f->ctx, seen, n));
	TRY(TEMP(f->ctx, link_seen, m));
	*kept = *kept && has_order(f->vertex, n, order, seen) && has_order(f->link, m, order, link_seen);
	arena_release(&f->ctx->scratch, mark);
	if (!*kept)
		return OK;
	TRY(NEW(f->ctx, vertex, n));
	TRY(NEW(f->ctx, link, m));
	memcpy(vertex, f->vertex, (size_t)n * sizeof *vertex);
	memcpy(link, f->link, (size_t)m * sizeof *link);
	sym->map[sym->n_maps++] = (SymmetryMap){ .order = order, .vertex = vertex, .link = link };
	sym->size *= order;
	return OK;
}

/* The last map, restricted to its first block. */
static Status
keep_block_map(struct finder *f, int block, int step)
{
	SymmetryMap *map = &f->sym->map[f->sym->n_maps - 1];
	size_t n = (size_t)f->topo->n_vertices, m = (size_t)f->topo->n_links;
	int *vertex, *link;
	map_ranks(f, block, block, step);
	if (!map_switches(f) || !map_links(f))
		return OK;
	TRY(NEW(f->ctx, vertex, n));
	TRY(NEW(f->ctx, link, m));
	memcpy(vertex, f->vertex, n * sizeof *vertex);
	memcpy(link, f->link, m * sizeof *link);
	map->block_vertex = vertex;
	map->block_link = link;
	return OK;
}

/* The largest block for this step; 0: none. */
static Status
try_step(struct finder *f, int step, int *block)
{
	int n = f->n_moved;
	for (int b = n; b > step; b--) {
		if (n % b || b % step || out_of_time(f->ctx, 20 * (int64_t)f->topo->n_links))
			continue;
		bool kept;
		map_ranks(f, n, b, step);
		if (!map_switches(f) || !map_servers(f) || !map_links(f))
			continue;
		if (f->keeps && !f->keeps->test(f->keeps->with, f->vertex, f->link))
			continue;
		TRY(keep_map(f, b / step, &kept));
		if (!kept)
			continue;
		*block = b;
		return b < n ? keep_block_map(f, b, step) : OK;
	}
	return OK;
}

static Status
find_maps(struct finder *f, bool servers_only)
{
	int size = 0, node = f->n_moved ? f->topo->vertex[f->moved[0]].node : 0;
	for (int i = 0; i < f->n_moved && f->topo->vertex[f->moved[i]].node == node; i++)
		size++;
	for (int step = servers_only ? size : 1; step > 0 && step < f->n_moved && f->sym->n_maps < SYMMETRY_MAPS;) {
		int block = 0;
		if (f->n_moved % step == 0)
			TRY(try_step(f, step, &block));
		step = block ? block : step + 1;
	}
	return OK;
}

static Status
find_symmetry(Ctx *ctx, const Topology *topo, int root, SymmetryKind wanted, const SymmetryTest *keeps, Symmetry **out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	Symmetry *sym;
	struct finder f = { .ctx = ctx, .topo = topo, .keeps = keeps };
	size_t n = (size_t)topo->n_vertices, m = (size_t)topo->n_links;
	TRY(NEW(ctx, sym, 1));
	TRY(NEW(ctx, sym->map, SYMMETRY_MAPS));
	sym->size = 1;
	f.sym = sym;
	TRY(TEMP(ctx, f.moved, n));
	TRY(TEMP(ctx, f.from_colour, n));
	TRY(TEMP(ctx, f.to_colour, n));
	TRY(TEMP(ctx, f.next_colour, n));
	TRY(TEMP(ctx, f.from_order, n));
	TRY(TEMP(ctx, f.to_order, n));
	TRY(TEMP(ctx, f.from_end, m));
	TRY(TEMP(ctx, f.to_end, m));
	TRY(TEMP(ctx, f.link_colour, m));
	TRY(TEMP(ctx, f.vertex, n));
	TRY(TEMP(ctx, f.link, m));
	if (wanted == SYMMETRY_SERVERS || wanted == SYMMETRY_WHOLE_SERVERS)
		TRY(TEMP(ctx, f.server, topo->n_nodes + 1));
	for (int l = 0; l < topo->n_links; l++) {
		const Link *link = &topo->link[l];
		f.to_end[l] = (struct end){ link->from, link->to, (int)link->class, l, link->capacity };
		f.link_colour[l] = hash64((uint64_t)link->capacity ^ (uint64_t)link->class << 60);
	}
	qsort(f.to_end, m, sizeof *f.to_end, by_end);
	f.sum = sum_of_ends(f.to_end, topo->n_links);
	if (wanted == SYMMETRY_WHOLE_SERVERS) {
		TRY(order_whole(&f));
		TRY(find_maps(&f, true));
	} else if (wanted != SYMMETRY_NONE) {
		TRY(order_ranks(&f, root));
		/* Trees of a rank that stays have as many images as those that move: where that is too much, servers
		 * move as a whole, and the group is smaller. */
		int64_t edges = (int64_t)(topo->n_ranks - f.n_moved) * f.n_moved * topo->n_ranks;
		TRY(find_maps(&f, edges > LIMIT_TREE_EDGES / 8));
	}
	TRY(symmetry_find_orbits(ctx, topo, sym));
	arena_release(&ctx->scratch, mark);
	*out = sym;
	return OK;
}

Status
topo_symmetry(Ctx *ctx, const Topology *topo, int root, SymmetryKind wanted, Symmetry **out)
{
	return find_symmetry(ctx, topo, root, wanted, NULL, out);
}

Status
topo_symmetry_keeping(Ctx *ctx, const Topology *topo, const SymmetryTest *keeps, Symmetry **out)
{
	return find_symmetry(ctx, topo, -1, SYMMETRY_ANY, keeps, out);
}
