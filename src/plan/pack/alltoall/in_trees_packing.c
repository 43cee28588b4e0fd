/* Paths of an alltoall without symmetry: a maximum concurrent flow, by trees into each rank.
 *
 * The flow to one rank, from all others together, is a mix of trees into it. So each block is cut into equal parts, and
 * every rank has a few trees for some of them each, at first all equal: the state is one link for each vertex and tree,
 * and loads are whole numbers. Rounds even them (in_trees_rounds.c). */
#include "base/limits.h"
#include "graph/demand_cost.h"
#include "plan/pack/alltoall/alltoall.h"
#include "plan/pack/alltoall/in_trees.h"
#include "schedule/in_trees.h"

#include <math.h>
#include <string.h>

enum {
	MOST_TREES = 24,	/* into a rank */
	MOST_CELLS = 100 << 20	/* vertices of all trees: 800 MiB */
};

static Status
in_trees_new(Ctx *ctx, const Topology *topo, const Bound *known, struct in_trees *s)
{
	double mean = 0, all = 0;
	*s = (struct in_trees){ .ctx = ctx, .topo = topo, .n = topo->n_ranks, .n_vertices = topo->n_vertices,
		.n_links = topo->n_links, .parts = 1, .n_trees = 1, .most_trees = MOST_TREES,
		.best_use = INFINITY };
	while (s->most_trees > 1 && (int64_t)s->n * s->n_vertices * s->most_trees > MOST_CELLS)
		s->most_trees--;
	TRY(TEMP_EACH(ctx, (size_t)s->n * (size_t)s->n_vertices * (size_t)s->most_trees, s->next, s->best));
	TRY(TEMP_EACH(ctx, s->most_trees, s->weight, s->best_weight));
	s->weight[0] = 1;
	TRY(TEMP(ctx, s->link, s->n_links));
	TRY(TEMP_EACH(ctx, s->n_links, s->capacity, s->price, s->best_price, s->mean_price, s->last_cost));
	TRY(TEMP_EACH(ctx, s->n_vertices, s->placed, s->inner, s->size, s->cost, s->seen, s->saved, s->distance));
	s->paths = (Paths){ .topo = topo, .price = s->price, .classes = ~0u, .relay = true };
	TRY(TEMP(ctx, s->paths.room, PATHS_ROOM * (size_t)s->n_vertices));
	for (int l = 0; l < s->n_links; l++)
		mean += (double)topo->link[l].capacity / s->n_links;
	for (int l = 0; l < s->n_links; l++) {
		s->capacity[l] = (double)topo->link[l].capacity / mean;
		s->link[l] = (struct in_link){ .per_load = 1 / s->capacity[l], .to = topo->link[l].to };
		all += s->capacity[l];
	}
	for (int l = 0; l < s->n_links; l++)
		s->link[l].price = s->mean_price[l] = 1 / all;
	s->bound = collective_shares(ALLTOALL, s->n) * mean / frac_double(known->rate);
	return in_trees_find_roots(s);
}

/* ---- the packing ---- */

static bool
has_choice(const Topology *topo, int v)
{
	return topo->first_out[v + 1] > topo->first_out[v] + 1;
}

/* Links of one tree into each rank. */
static int64_t
most_listed(const Topology *topo)
{
	int64_t n = 0;
	for (int v = 0; v < topo->n_vertices; v++)
		n += has_choice(topo, v);
	return n * topo->n_ranks;
}

/* Links of vertices that blocks pass, where several leave these and they are not as `listed`. Returns how many.
 * link: or NULL. */
static int
list_links(struct in_trees *s, int root, const int *next, int *listed, int *link)
{
	int n = 0;
	in_tree_measure(s, root, next);
	for (int v = 0; v < s->n_vertices; v++) {
		if (v == root || s->size[v] == 0 || !has_choice(s->topo, v) || listed[v] == next[v])
			continue;
		if (link) {
			link[n] = next[v];
			listed[v] = next[v];
		}
		n++;
	}
	return n;
}

/* What a schedule may have beyond a tree into each rank. */
struct room {
	int64_t links, trees;
};

static struct room
room_of(const Topology *topo)
{
	int64_t search = STEPS_SEARCH * ((int64_t)topo->n_vertices + topo->n_links), n = topo->n_ranks;
	return (struct room){ LIMIT_IN_LINKS - most_listed(topo),
		(LIMIT_VERIFY_STEPS - n * search) / IN_TREE_STEPS / topo->n_vertices - n };
}

/* Trees that are as the one before are merged with it, and so are those for which there is no room. */
static Status
list_trees(struct in_trees *s, int root, int *listed, struct room *room, Packing *pack)
{
	int before = 0;
	memset(listed, -1, (size_t)s->n_vertices * sizeof *listed);
	for (int t = 0; t < s->n_best; before += s->best_weight[t++]) {
		const int *next = in_tree_at(s, s->best, root, t);
		Frac part;
		int n = list_links(s, root, next, listed, NULL), *link;
		InTree *tree = &pack->in_tree[pack->n_in_trees];
		frac_make(s->best_weight[t], s->best_parts, &part);
		if (t > 0 && (n == 0 || n > room->links || room->trees <= 0)) {
			frac_add(tree[-1].length, part, &tree[-1].length);
			continue;
		}
		room->links -= t > 0 ? n : 0;
		room->trees -= t > 0;
		TRY(NEW(s->ctx, link, n));
		list_links(s, root, next, listed, link);
		*tree = (InTree){ .root = root, .length = part, .n_links = n, .link = link };
		frac_make(before, s->best_parts, &tree->offset);
		pack->n_in_trees++;
	}
	return OK;
}

static Status
make_packing(struct in_trees *s, Packing **out)
{
	Packing *pack;
	int *listed;
	struct room room = room_of(s->topo);
	TRY(NEW(s->ctx, pack, 1));
	TRY(NEW(s->ctx, pack->in_tree, (size_t)s->n * (size_t)s->n_best));
	TRY(TEMP(s->ctx, listed, s->n_vertices));
	for (int root = 0; root < s->n; root++)
		TRY(list_trees(s, root, listed, &room, pack));
	*out = pack;
	return OK;
}

Status
pack_in_trees(Ctx *ctx, const Topology *topo, Packing **out, Bound *proof)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct in_trees s;
	*out = NULL;
	if (topo->route || (int64_t)topo->n_ranks * topo->n_vertices > MOST_CELLS || most_listed(topo) > LIMIT_IN_LINKS)
		return OK;
	TRY(in_trees_new(ctx, topo, proof, &s));
	if (!in_trees_first(&s))
		return OK;
	in_trees_keep_best(&s);
	TRY(in_trees_rounds(&s));
	TRY(in_trees_prove(&s, proof));
	TRY(make_packing(&s, out));
	log_verbose(ctx, "trees into each rank: %d, of %d parts of each block, within %.2g of the bound",
	    (*out)->n_in_trees, s.best_parts, fmax(0, s.best_use / s.bound - 1));
	arena_release(&ctx->scratch, mark);
	return OK;
}
