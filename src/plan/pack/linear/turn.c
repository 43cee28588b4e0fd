/* Fewer trees on symmetric clusters. The linear program says that the images of a tree under the whole group fill the
 * links; most of these images only balance load over the GPUs and NICs of one server. But a single server can be
 * turned in itself, by an automorphism that leaves all others in place, and any such turn of a tree is a tree of the
 * same rate:
 *
 *     images under shifts of servers load, of one tree,    NIC 0: 1022, NIC 1: 0     too much for one of them
 *     the tree with every other server turned              NIC 0:  511, NIC 1: 511   as under the whole group
 *
 * So a few copies of each tree are made, whose servers are turned so that links of one orbit carry equal loads; their
 * images are taken under a subgroup of coarse maps only, shifts of servers. The choice is greedy: server by server,
 * those that send most first, and then once more given all others. The number of trees is the number of copies times
 * that of servers, not of GPUs. The result is checked, link by link. */
#include "plan/pack/linear/images.h"
#include "topology/topology.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_TURNS = 64, MOST_COPIES = 8, PASSES = 4 };

/* An automorphism that moves the first block only. */
struct turn {
	int *vertex, *link;	/* images */
};

/* Vertices and links that turns move lie in blocks: the images of the first block under the coarse maps. In arrays by
 * element, vertex v has index v, and link l has n_vertices + l. In arrays by position in a block, links come first. */
struct search {
	Ctx *ctx;
	const Topology *topo;
	const Symmetry *sym;
	const Packing *pack;
	Symmetry coarse;
	int n_turns;
	struct turn turn[MOST_TURNS];
	int n_links, *link, n_vertices, *vertex;	/* of the first block */
	int *block, *position;	/* of an element: its block, -1: none; and its position in it */
	int *member;		/* the element at each position: block after block, n_links + n_vertices each */
	int *turned;		/* the position that each position goes to: turn after turn */
	bool *tight;		/* of each link of a block: turns have to balance its load */
	int64_t *capacity;	/* of these links, in units of weight, for one copy of the trees */
	int64_t *load;
	int *use;		/* of links of a block by a tree: tree after tree, block after block */
	int *choice;		/* turn of each block: copy after copy, tree after tree */
	int *order;		/* blocks, those with the highest loads first */
};

/* ---- turns ---- */

static bool
same_turn(const struct search *s, const struct turn *a, const struct turn *b)
{
	return memcmp(a->vertex, b->vertex, (size_t)s->topo->n_vertices * sizeof *a->vertex) == 0
	    && memcmp(a->link, b->link, (size_t)s->topo->n_links * sizeof *a->link) == 0;
}

static Status
new_turn(struct search *s, struct turn *out)
{
	TRY(TEMP(s->ctx, out->vertex, s->topo->n_vertices));
	return TEMP(s->ctx, out->link, s->topo->n_links);
}

/* All products of the fine maps in the first block, the identity first; MOST_TURNS at most. */
static Status
find_turns(struct search *s, int n_fine)
{
	struct turn next;
	TRY(new_turn(s, &s->turn[0]));
	for (int v = 0; v < s->topo->n_vertices; v++)
		s->turn[0].vertex[v] = v;
	for (int l = 0; l < s->topo->n_links; l++)
		s->turn[0].link[l] = l;
	s->n_turns = 1;
	TRY(new_turn(s, &next));
	for (int i = 0; i < s->n_turns; i++) {
		for (int m = 0; m < n_fine && s->n_turns < MOST_TURNS; m++) {
			const SymmetryMap *map = &s->sym->map[m];
			bool known = false;
			for (int v = 0; v < s->topo->n_vertices; v++)
				next.vertex[v] = map->block_vertex[s->turn[i].vertex[v]];
			for (int l = 0; l < s->topo->n_links; l++)
				next.link[l] = map->block_link[s->turn[i].link[l]];
			for (int k = 0; k < s->n_turns && !known; k++)
				known = same_turn(s, &s->turn[k], &next);
			if (known)
				continue;
			s->turn[s->n_turns++] = next;
			TRY(new_turn(s, &next));
		}
	}
	return OK;
}

static int
list_moved(const struct search *s, bool links, int n, int *list)
{
	int count = 0;
	for (int i = 0; i < n; i++) {
		bool moves = false;
		for (int t = 1; t < s->n_turns && !moves; t++)
			moves = (links ? s->turn[t].link[i] : s->turn[t].vertex[i]) != i;
		if (moves)
			list[count++] = i;
	}
	return count;
}

/* False in *disjoint: two blocks share a link or vertex. */
static Status
find_blocks(struct search *s, bool *disjoint)
{
	SymmetryWalk walk;
	int n = s->topo->n_vertices, block = 0;
	size_t all = (size_t)n + (size_t)s->topo->n_links, each = (size_t)s->n_links + (size_t)s->n_vertices;
	*disjoint = (size_t)s->coarse.size * each <= all;
	if (!*disjoint)
		return OK;
	TRY(TEMP(s->ctx, s->block, all));
	TRY(TEMP(s->ctx, s->position, all));
	TRY(TEMP(s->ctx, s->member, (size_t)s->coarse.size * each));
	memset(s->block, -1, all * sizeof *s->block);
	TRY(symmetry_walk(s->ctx, s->topo, &s->coarse, &walk));
	do {
		for (size_t i = 0; i < each && *disjoint; i++) {
			bool is_link = i < (size_t)s->n_links;
			int image = is_link ? walk.link[s->link[i]] : walk.vertex[s->vertex[i - (size_t)s->n_links]];
			int at = is_link ? n + image : image;
			*disjoint = s->block[at] < 0;
			s->block[at] = block;
			s->position[at] = (int)i;
			s->member[(size_t)block * each + i] = image;
		}
		block++;
	} while (*disjoint && symmetry_next(&walk));
	return OK;
}

static Status
find_positions(struct search *s)
{
	size_t each = (size_t)s->n_links + (size_t)s->n_vertices;
	TRY(TEMP(s->ctx, s->turned, (size_t)s->n_turns * each));
	for (int t = 0; t < s->n_turns; t++) {
		for (int i = 0; i < s->n_links; i++)
			s->turned[(size_t)t * each + (size_t)i] = s->position[s->topo->n_vertices
			    + s->turn[t].link[s->link[i]]];
		for (int i = 0; i < s->n_vertices; i++)
			s->turned[(size_t)t * each + (size_t)(s->n_links + i)] =
			    s->position[s->turn[t].vertex[s->vertex[i]]];
	}
	return OK;
}

/* ---- loads ---- */

static const int *
turned_by(const struct search *s, int turn)
{
	return s->turned + (size_t)turn * (size_t)(s->n_links + s->n_vertices);
}

static int *
uses_in(const struct search *s, int tree, int block)
{
	return s->use + ((size_t)tree * (size_t)s->coarse.size + (size_t)block) * (size_t)s->n_links;
}

static Status
count_uses(struct search *s)
{
	TRY(TEMP(s->ctx, s->use, (size_t)s->pack->n_trees * (size_t)s->coarse.size * (size_t)s->n_links));
	for (int t = 0; t < s->pack->n_trees; t++) {
		const Tree *tree = &s->pack->tree[t];
		for (int e = 0; e < tree->n_down + tree->n_up; e++) {
			const Edge *edge = tree_edge(tree, e);
			for (int i = 0; i < edge->n_links; i++) {
				int at = s->topo->n_vertices + edge->link[i];
				if (s->block[at] >= 0)
					uses_in(s, t, s->block[at])[s->position[at]]++;
			}
		}
	}
	return OK;
}

/* The capacity of a link for one copy, where weights of the packing are for all images under the group; and the links
 * whose load the turns have to balance: those that are nearly full when the load of all their images under turns is
 * spread equally. */
static Status
find_tight(struct search *s)
{
	int64_t all, capacity, *load;
	TRY(TEMP(s->ctx, s->capacity, s->n_links));
	TRY(TEMP(s->ctx, s->tight, s->n_links));
	TRY(TEMP(s->ctx, s->load, s->n_links));
	TRY(TEMP(s->ctx, load, s->n_links));
	for (int i = 0; i < s->n_links; i++) {
		Wide num = (Wide)s->topo->link[s->link[i]].capacity * s->pack->unit.den;
		num = num / s->pack->unit.num / (s->sym->size / s->coarse.size);
		s->capacity[i] = num > INT64_MAX >> 8 ? INT64_MAX >> 8 : (int64_t)num;
		for (int t = 0; t < s->pack->n_trees; t++)
			for (int b = 0; b < s->coarse.size; b++)
				load[i] += s->pack->weight[t] * uses_in(s, t, b)[i];
	}
	for (int i = 0; i < s->n_links; i++) {
		all = capacity = 0;
		for (int t = 0; t < s->n_turns; t++) {
			all += load[turned_by(s, t)[i]] / s->n_turns;
			capacity += s->capacity[turned_by(s, t)[i]] / s->n_turns;
		}
		s->tight[i] = all > capacity / 16 * 15;
	}
	return OK;
}

static void
add_uses(struct search *s, int tree, int block, int turn, int sign)
{
	const int *use = uses_in(s, tree, block), *to = turned_by(s, turn);
	for (int i = 0; i < s->n_links; i++)
		s->load[to[i]] += sign * s->pack->weight[tree] * use[i];
}

/* With this block turned: the sum of the squares of load / capacity of its tight links. */
static Wide
imbalance(const struct search *s, int tree, int block, int turn)
{
	const int *use = uses_in(s, tree, block), *to = turned_by(s, turn);
	Wide sum = 0;
	for (int i = 0; i < s->n_links; i++) {
		if (!s->tight[to[i]])
			continue;
		Wide ratio = ((Wide)(s->load[to[i]] + s->pack->weight[tree] * use[i]) << 30) / (s->capacity[to[i]] + 1);
		sum += ratio * ratio;
	}
	return sum;
}

/* ---- the choice ---- */

struct block_load {
	int64_t sum;
	int block;
};

static int
by_sum(const void *a, const void *b)
{
	const struct block_load *p = a, *q = b;
	return p->sum != q->sum ? (p->sum < q->sum) - (p->sum > q->sum) : (p->block > q->block) - (p->block < q->block);
}

static Status
order_blocks(struct search *s)
{
	struct block_load *sum;
	TRY(TEMP(s->ctx, sum, s->coarse.size));
	TRY(TEMP(s->ctx, s->order, s->coarse.size));
	for (int b = 0; b < s->coarse.size; b++) {
		sum[b].block = b;
		for (int t = 0; t < s->pack->n_trees; t++)
			for (int i = 0; i < s->n_links; i++)
				sum[b].sum += s->tight[i] ? s->pack->weight[t] * uses_in(s, t, b)[i] : 0;
	}
	qsort(sum, (size_t)s->coarse.size, sizeof *sum, by_sum);
	for (int b = 0; b < s->coarse.size; b++)
		s->order[b] = sum[b].block;
	return OK;
}

static bool
fits(const struct search *s, int copies)
{
	for (int i = 0; i < s->n_links; i++)
		if (s->load[i] > s->capacity[i] * copies)
			return false;
	return true;
}

/* The turn of a block that balances the loads best, given all others. */
static int
best_turn(const struct search *s, int tree, int block)
{
	int best = 0;
	Wide least = -1;
	for (int turn = 0; turn < s->n_turns; turn++) {
		Wide one = imbalance(s, tree, block, turn);
		if (least >= 0 && one >= least)
			continue;
		least = one;
		best = turn;
	}
	return best;
}

/* Turns of all blocks, for this number of copies; false: the loads do not fit. */
static bool
choose_turns(struct search *s, int copies)
{
	int n = s->coarse.size;
	memset(s->load, 0, (size_t)s->n_links * sizeof *s->load);
	for (int pass = 0; pass < PASSES && (pass == 0 || !fits(s, copies)); pass++) {
		for (int i = 0; i < n * copies * s->pack->n_trees; i++) {
			int b = s->order[i / (copies * s->pack->n_trees)], t = i / copies % s->pack->n_trees;
			size_t row = (size_t)(i % copies) * (size_t)s->pack->n_trees + (size_t)t;
			int *choice = &s->choice[row * (size_t)n + (size_t)b];
			if (pass > 0)
				add_uses(s, t, b, *choice, -1);
			*choice = best_turn(s, t, b);
			add_uses(s, t, b, *choice, 1);
		}
	}
	return fits(s, copies);
}

/* Images of all vertices and links where block b is turned by choice[b]. */
static void
turn_blocks(const struct search *s, const int *choice, int *vertex, int *link)
{
	int n = s->topo->n_vertices;
	size_t each = (size_t)s->n_links + (size_t)s->n_vertices;
	for (int at = 0; at < n + s->topo->n_links; at++) {
		int b = s->block[at], image = at < n ? at : at - n;
		if (b >= 0)
			image = s->member[(size_t)b * each + (size_t)turned_by(s, choice[b])[s->position[at]]];
		*(at < n ? &vertex[at] : &link[at - n]) = image;
	}
}

static Status
turned_trees(struct search *s, int copies, Packing *out)
{
	int n = s->pack->n_trees, *vertex, *link;
	*out = (Packing){ .n_trees = n * copies };
	TRY(pack_room(s->ctx, n * copies, true, out));
	TRY(TEMP(s->ctx, vertex, s->topo->n_vertices));
	TRY(TEMP(s->ctx, link, s->topo->n_links));
	for (int i = 0; i < n * copies; i++) {
		turn_blocks(s, s->choice + (size_t)i * (size_t)s->coarse.size, vertex, link);
		TRY(tree_image(s->ctx, &s->pack->tree[i % n], vertex, link, &out->tree[i]));
		out->weight[i] = s->pack->weight[i % n];
	}
	return OK;
}

/* With the maps from `n_fine` on as the coarse group, and the least number of copies that makes less than `most`
 * images of a tree. *out stays where none fits. */
static Status
turn_under(struct search *s, int n_fine, Collective coll, int root, int most, Packing **out)
{
	bool disjoint;
	Packing made;
	s->coarse = (Symmetry){ .n_maps = s->sym->n_maps - n_fine, .map = s->sym->map + n_fine, .size = 1 };
	for (int i = 0; i < s->coarse.n_maps; i++)
		s->coarse.size *= s->coarse.map[i].order;
	TRY(find_turns(s, n_fine));
	TRY(TEMP(s->ctx, s->link, s->topo->n_links));
	TRY(TEMP(s->ctx, s->vertex, s->topo->n_vertices));
	s->n_links = list_moved(s, true, s->topo->n_links, s->link);
	s->n_vertices = list_moved(s, false, s->topo->n_vertices, s->vertex);
	TRY(find_blocks(s, &disjoint));
	if (!disjoint)
		return OK;
	TRY(find_positions(s));
	TRY(count_uses(s));
	TRY(find_tight(s));
	TRY(order_blocks(s));
	TRY(TEMP(s->ctx, s->choice, (size_t)MOST_COPIES * (size_t)s->pack->n_trees * (size_t)s->coarse.size));
	for (int copies = 1; copies <= MOST_COPIES && copies * s->coarse.size < most; copies *= 2) {
		Packing *found = NULL;
		if (!choose_turns(s, copies))
			continue;
		TRY(turned_trees(s, copies, &made));
		if (!frac_div(s->pack->unit, (Frac){ copies, s->sym->size / s->coarse.size }, &made.unit))
			return OK;
		TRY(pack_unfold(s->ctx, s->topo, &s->coarse, coll, root, &made, &found));
		*out = found ? found : *out;
		return OK;
	}
	return OK;
}

Status
pack_turn(Ctx *ctx, const Topology *topo, const Symmetry *sym, Collective coll, int root, const Packing *pack,
    Packing **out)
{
	int most = sym->size;
	for (int n_fine = 1; n_fine < sym->n_maps && sym->map[n_fine - 1].block_vertex; n_fine++) {
		ArenaMark mark = arena_mark(&ctx->scratch);
		struct search s = { .ctx = ctx, .topo = topo, .sym = sym, .pack = pack };
		Packing *found = NULL;
		TRY(turn_under(&s, n_fine, coll, root, most, &found));
		if (found) {
			*out = found;
			most = found->n_trees / pack->n_trees;
		}
		arena_release(&ctx->scratch, mark);
	}
	return OK;
}
