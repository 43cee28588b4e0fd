/* A bound by prices that links of one kind have in common.
 *
 * Where parts of a machine are lost no automorphism is left that moves all ranks, and the linear program has a row for
 * each link. But links are of few kinds: of equal class and capacity, between vertices of the same colours by colour
 * refinement. One row for each kind, the sum of those of its links, is a relaxation with few rows. By weak duality any
 * prices prove a bound, divided by the cost of the cheapest pair of trees under them (Farley 1990, A note on bounding
 * a class of linear programming problems). It is tight where an optimal dual has equal prices for links of one kind. */
#include "base/hash.h"
#include "plan/pack/linear/linear.h"
#include "plan/pack/linear/master.h"

#include <string.h>

enum {
	MOST_KINDS = 40,	/* of links */
	ROUNDS = 3		/* of neighbours that tell vertices apart */
};

struct kind {
	uint64_t from, to;	/* colours */
	LinkClass class;
	int64_t capacity;
};

static bool
is_of_kind(const struct kind *kind, const struct kind *other)
{
	return kind->from == other->from && kind->to == other->to && kind->class == other->class
	    && kind->capacity == other->capacity;
}

/* By the colours of their ends. orbit: of each link the number of its kind. Returns how many; MOST_KINDS + 1: more
 * than MOST_KINDS. */
static int
number_kinds(const Topology *topo, const uint64_t *colour, int *orbit)
{
	struct kind kinds[MOST_KINDS];
	int n = 0;
	for (int l = 0; l < topo->n_links; l++) {
		const Link *link = &topo->link[l];
		struct kind kind = { colour[link->from], colour[link->to], link->class, link->capacity };
		int k = 0;
		while (k < n && !is_of_kind(&kinds[k], &kind))
			k++;
		if (k == MOST_KINDS)
			return MOST_KINDS + 1;
		if (k == n)
			kinds[n++] = kind;
		orbit[l] = k;
	}
	return n;
}

/* One rank of each colour, as far as colours are few. */
static void
list_representatives(const Topology *topo, const uint64_t *colour, Symmetry *kinds)
{
	for (int r = 0; r < topo->n_ranks && kinds->n_representatives < MOST_KINDS; r++) {
		int i = 0;
		while (i < kinds->n_representatives && colour[kinds->representative[i]] != colour[r])
			i++;
		if (i == kinds->n_representatives)
			kinds->representative[kinds->n_representatives++] = r;
	}
}

/* The kinds as orbits of links under no maps: the rows of a master problem. n_orbits: 0: there are too many. */
static Status
find_kinds(Ctx *ctx, const Topology *topo, Symmetry *kinds)
{
	uint64_t *colour, *next, *link_colour;
	int *finer, n;
	*kinds = (Symmetry){ .size = 1 };
	TRY(TEMP(ctx, colour, topo->n_vertices));
	TRY(TEMP(ctx, next, topo->n_vertices));
	TRY(TEMP_EACH(ctx, topo->n_links, finer, link_colour));
	TRY(TEMP(ctx, kinds->link_orbit, topo->n_links));
	TRY(TEMP(ctx, kinds->orbit_size, MOST_KINDS));
	TRY(TEMP(ctx, kinds->representative, MOST_KINDS));
	for (int v = 0; v < topo->n_vertices; v++)
		colour[v] = topo->vertex[v].kind;
	for (int l = 0; l < topo->n_links; l++)
		link_colour[l] = hash64((uint64_t)topo->link[l].capacity * N_LINK_CLASSES + topo->link[l].class);
	for (int round = 0; round < ROUNDS; round++) {
		symmetry_refine(topo, link_colour, false, 0, 1, colour, next);
		if ((n = number_kinds(topo, colour, finer)) > MOST_KINDS)
			break;
		kinds->n_orbits = n;
		memcpy(kinds->link_orbit, finer, (size_t)topo->n_links * sizeof *finer);
	}
	for (int l = 0; l < topo->n_links && kinds->n_orbits > 0; l++)
		kinds->orbit_size[kinds->link_orbit[l]]++;
	list_representatives(topo, colour, kinds);
	return OK;
}

/* Pairs of trees of any kind, from ranks of each kind; the bound is by those from all ranks. */
static Status
solve_kinds(struct master *m, const Bound *bound, const Ask *ask, Bound *proof)
{
	Packing *unused;
	TRY(columns_start(m));
	TRY(master_open(m, ask));
	m->cheapest.paired = true;
	TRY(columns_generate(m, bound, &unused));
	if (!m->solved || m->at_bound || m->cut_short)
		return master_close(m);
	m->cheapest.roots = NULL;
	m->cheapest.n_roots = m->topo->n_ranks;
	TRY(columns_bound(m, proof));
	return master_close(m);
}

Status
pack_kind_prices(Ctx *ctx, const Topology *topo, const Bound *bound, const Ask *ask, Bound *proof)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct master m;
	Symmetry kinds;
	TRY(find_kinds(ctx, topo, &kinds));
	if (kinds.n_orbits > 0) {
		TRY(master_new(ctx, topo, &kinds, NULL, ask, &m));
		Status status = solve_kinds(&m, bound, ask, proof);
		lp_release();
		TRY(status);
	}
	arena_release(&ctx->scratch, mark);
	return OK;
}
