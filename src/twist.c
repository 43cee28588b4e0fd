/* Fewer trees where servers are alike, and GPUs in each. The linear program says that a tree's images under the whole group fill
 * the links; most of them do no more than use all GPUs and NICs of a server alike. But a server can be turned in itself while all
 * others stay, and any such turn of a tree is a tree as good:
 *
 *     images under shifts of servers load, of one tree,    NIC 0: 1022, NIC 1: 0     too much for one of them
 *     the tree with every other server turned              NIC 0:  511, NIC 1: 511   as the images of the whole group do
 *
 * So with a group of coarse maps, shifts of servers, go a few copies of each tree, whose servers are turned so that links that are
 * alike are loaded alike: a greedy choice, server by server, those that send most first, and then once more given all others. How
 * many trees there are is the number of copies by that of servers, not of GPUs. What is found is checked, link by link. */
#include "passes.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_TURNS = 64, MOST_COPIES = 8, PASSES = 4 };

struct turn {
	int *vertex, *link;	/* images in the first block; others stay */
};

/* What turns move is owned by blocks, the images of the first one under the coarse maps. */
struct twist {
	Ctx *ctx;
	const Topology *topo;
	const Symmetry *sym;
	const Packing *pack;
	Symmetry coarse;
	int n_turns;
	struct turn turn[MOST_TURNS];
	int n_links, *link, n_vertices, *vertex;	/* that turns move in the first block */
	int *position;		/* of a link (from n_vertices of the topology on) or vertex among those of its block */
	int *owner;		/* likewise: its block; -1: none */
	int *member;		/* image of link i of the first block in block b, at b * n_links + i; then of vertices */
	int *moved;		/* likewise of turns: position of the image of link i under turn t, at t * n_links + i */
	bool *tight;
	int64_t *room;		/* of each of these links, in units of weight, for one copy of the trees */
	int64_t *load;
	int *use, *choice;	/* of tree t: uses[t * blocks * n_links + b * n_links + i]; turn of copy c of tree t in block b */
	int *order;		/* blocks, those that use most first */
};

/* ---- turns ---- */

static bool
same_turn(const struct twist *w, const struct turn *a, const struct turn *b)
{
	return memcmp(a->vertex, b->vertex, (size_t)w->topo->n_vertices * sizeof *a->vertex) == 0
	    && memcmp(a->link, b->link, (size_t)w->topo->n_links * sizeof *a->link) == 0;
}

static Status
new_turn(struct twist *w, struct turn *out)
{
	TRY(TEMP(w->ctx, out->vertex, w->topo->n_vertices));
	return TEMP(w->ctx, out->link, w->topo->n_links);
}

/* All products of the fine maps in the first block, the identity first; as many as there is room for. */
static Status
find_turns(struct twist *w, int n_fine)
{
	struct turn next;
	TRY(new_turn(w, &w->turn[0]));
	for (int v = 0; v < w->topo->n_vertices; v++)
		w->turn[0].vertex[v] = v;
	for (int l = 0; l < w->topo->n_links; l++)
		w->turn[0].link[l] = l;
	w->n_turns = 1;
	TRY(new_turn(w, &next));
	for (int i = 0; i < w->n_turns; i++) {
		for (int m = 0; m < n_fine && w->n_turns < MOST_TURNS; m++) {
			const SymmetryMap *map = &w->sym->map[m];
			bool known = false;
			for (int v = 0; v < w->topo->n_vertices; v++)
				next.vertex[v] = map->near_vertex[w->turn[i].vertex[v]];
			for (int l = 0; l < w->topo->n_links; l++)
				next.link[l] = map->near_link[w->turn[i].link[l]];
			for (int k = 0; k < w->n_turns && !known; k++)
				known = same_turn(w, &w->turn[k], &next);
			if (known)
				continue;
			w->turn[w->n_turns++] = next;
			TRY(new_turn(w, &next));
		}
	}
	return OK;
}

static int
list_moved(const struct twist *w, bool links, int n, int *list)
{
	int count = 0;
	for (int i = 0; i < n; i++) {
		bool moves = false;
		for (int t = 1; t < w->n_turns && !moves; t++)
			moves = (links ? w->turn[t].link[i] : w->turn[t].vertex[i]) != i;
		if (moves)
			list[count++] = i;
	}
	return count;
}

/* False in *apart: two blocks claim one link or vertex. */
static Status
find_members(struct twist *w, bool *apart)
{
	SymmetryWalk walk;
	int n = w->topo->n_vertices, block = 0;
	size_t all = (size_t)n + (size_t)w->topo->n_links, each = (size_t)w->n_links + (size_t)w->n_vertices;
	*apart = (size_t)w->coarse.size * each <= all;
	if (!*apart)
		return OK;
	TRY(TEMP(w->ctx, w->owner, all));
	TRY(TEMP(w->ctx, w->position, all));
	TRY(TEMP(w->ctx, w->member, (size_t)w->coarse.size * each));
	memset(w->owner, -1, all * sizeof *w->owner);
	TRY(symmetry_walk(w->ctx, w->topo, &w->coarse, &walk));
	do {
		for (size_t i = 0; i < each && *apart; i++) {
			bool link = i < (size_t)w->n_links;
			int image = link ? walk.link[w->link[i]] : walk.vertex[w->vertex[i - (size_t)w->n_links]];
			int at = link ? n + image : image;
			*apart = w->owner[at] < 0;
			w->owner[at] = block;
			w->position[at] = (int)i;
			w->member[(size_t)block * each + i] = image;
		}
		block++;
	} while (*apart && symmetry_next(&walk));
	return OK;
}

/* Positions of images under turns, of links and then of vertices. */
static Status
find_images(struct twist *w)
{
	size_t each = (size_t)w->n_links + (size_t)w->n_vertices;
	TRY(TEMP(w->ctx, w->moved, (size_t)w->n_turns * each));
	for (int t = 0; t < w->n_turns; t++) {
		for (int i = 0; i < w->n_links; i++)
			w->moved[(size_t)t * each + (size_t)i] = w->position[w->topo->n_vertices + w->turn[t].link[w->link[i]]];
		for (int i = 0; i < w->n_vertices; i++)
			w->moved[(size_t)t * each + (size_t)(w->n_links + i)] = w->position[w->turn[t].vertex[w->vertex[i]]];
	}
	return OK;
}

/* ---- loads ---- */

static const int *
moved_by(const struct twist *w, int turn)
{
	return w->moved + (size_t)turn * (size_t)(w->n_links + w->n_vertices);
}

static int *
uses_in(const struct twist *w, int tree, int block)
{
	return w->use + ((size_t)tree * (size_t)w->coarse.size + (size_t)block) * (size_t)w->n_links;
}

static Status
count_uses(struct twist *w)
{
	TRY(TEMP(w->ctx, w->use, (size_t)w->pack->n_trees * (size_t)w->coarse.size * (size_t)w->n_links));
	for (int t = 0; t < w->pack->n_trees; t++) {
		const Tree *tree = &w->pack->tree[t];
		for (int e = 0; e < tree->n_down + tree->n_up; e++) {
			const Edge *edge = tree_edge(tree, e);
			for (int i = 0; i < edge->n_links; i++) {
				int at = w->topo->n_vertices + edge->link[i];
				if (w->owner[at] >= 0)
					uses_in(w, t, w->owner[at])[w->position[at]]++;
			}
		}
	}
	return OK;
}

/* What a link has for one copy, where weights of the pack are for all images under the group; and which links the turns must
 * balance: those that are nearly full when all images that turns make of them are loaded alike. */
static Status
find_tight(struct twist *w)
{
	int64_t all, room, *load;
	TRY(TEMP(w->ctx, w->room, w->n_links));
	TRY(TEMP(w->ctx, w->tight, w->n_links));
	TRY(TEMP(w->ctx, w->load, w->n_links));
	TRY(TEMP(w->ctx, load, w->n_links));
	for (int i = 0; i < w->n_links; i++) {
		Wide num = (Wide)w->topo->link[w->link[i]].capacity * w->pack->unit.den;
		num = num / w->pack->unit.num / (w->sym->size / w->coarse.size);
		w->room[i] = num > INT64_MAX >> 8 ? INT64_MAX >> 8 : (int64_t)num;
		for (int t = 0; t < w->pack->n_trees; t++)
			for (int b = 0; b < w->coarse.size; b++)
				load[i] += w->pack->weight[t] * uses_in(w, t, b)[i];
	}
	for (int i = 0; i < w->n_links; i++) {
		all = room = 0;
		for (int t = 0; t < w->n_turns; t++) {
			all += load[moved_by(w, t)[i]] / w->n_turns;
			room += w->room[moved_by(w, t)[i]] / w->n_turns;
		}
		w->tight[i] = all > room / 16 * 15;
	}
	return OK;
}

static void
add_uses(struct twist *w, int tree, int block, int turn, int sign)
{
	const int *use = uses_in(w, tree, block), *to = moved_by(w, turn);
	for (int i = 0; i < w->n_links; i++)
		w->load[to[i]] += sign * w->pack->weight[tree] * use[i];
}

/* Of the loads with this block turned so: squares of the tight ones. */
static Wide
strain(const struct twist *w, int tree, int block, int turn)
{
	const int *use = uses_in(w, tree, block), *to = moved_by(w, turn);
	Wide sum = 0;
	for (int i = 0; i < w->n_links; i++) {
		if (!w->tight[to[i]])
			continue;
		Wide part = ((Wide)(w->load[to[i]] + w->pack->weight[tree] * use[i]) << 30) / (w->room[to[i]] + 1);
		sum += part * part;
	}
	return sum;
}

/* ---- the choice ---- */

struct weighed {
	int64_t sum;
	int block;
};

static int
by_sum(const void *a, const void *b)
{
	const struct weighed *p = a, *q = b;
	return p->sum != q->sum ? (p->sum < q->sum) - (p->sum > q->sum) : (p->block > q->block) - (p->block < q->block);
}

static Status
order_blocks(struct twist *w)
{
	struct weighed *weighed;
	TRY(TEMP(w->ctx, weighed, w->coarse.size));
	TRY(TEMP(w->ctx, w->order, w->coarse.size));
	for (int b = 0; b < w->coarse.size; b++) {
		weighed[b].block = b;
		for (int t = 0; t < w->pack->n_trees; t++)
			for (int i = 0; i < w->n_links; i++)
				weighed[b].sum += w->tight[i] ? w->pack->weight[t] * uses_in(w, t, b)[i] : 0;
	}
	qsort(weighed, (size_t)w->coarse.size, sizeof *weighed, by_sum);
	for (int b = 0; b < w->coarse.size; b++)
		w->order[b] = weighed[b].block;
	return OK;
}

static bool
fits(const struct twist *w, int copies)
{
	for (int i = 0; i < w->n_links; i++)
		if (w->load[i] > w->room[i] * copies)
			return false;
	return true;
}

/* Turns of all blocks of so many copies; false: the loads do not fit. */
static bool
choose_turns(struct twist *w, int copies)
{
	int n = w->coarse.size;
	memset(w->load, 0, (size_t)w->n_links * sizeof *w->load);
	for (int pass = 0; pass < PASSES && (pass == 0 || !fits(w, copies)); pass++) {
		for (int i = 0; i < n * copies * w->pack->n_trees; i++) {
			int b = w->order[i / (copies * w->pack->n_trees)], t = i / copies % w->pack->n_trees, best = 0;
			int *choice = &w->choice[((size_t)(i % copies) * (size_t)w->pack->n_trees + (size_t)t) * (size_t)n + (size_t)b];
			Wide least = -1;
			if (pass > 0)
				add_uses(w, t, b, *choice, -1);
			for (int turn = 0; turn < w->n_turns; turn++) {
				Wide one = strain(w, t, b, turn);
				if (least < 0 || one < least) {
					least = one;
					best = turn;
				}
			}
			*choice = best;
			add_uses(w, t, b, best, 1);
		}
	}
	return fits(w, copies);
}

static int
image_at(const struct twist *w, const int *choice, int at, int as_is)
{
	int b = w->owner[at];
	if (b < 0)
		return as_is;
	return w->member[(size_t)b * (size_t)(w->n_links + w->n_vertices) + (size_t)moved_by(w, choice[b])[w->position[at]]];
}

static Status
turn_edges(struct twist *w, const int *choice, const Edge *edge, int n, Edge **out)
{
	Edge *image;
	TRY(NEW(w->ctx, image, n));
	for (int e = 0; e < n; e++) {
		int *link;
		TRY(NEW(w->ctx, link, edge[e].n_links));
		for (int i = 0; i < edge[e].n_links; i++)
			link[i] = image_at(w, choice, w->topo->n_vertices + edge[e].link[i], edge[e].link[i]);
		image[e] = (Edge){ image_at(w, choice, edge[e].src, edge[e].src), image_at(w, choice, edge[e].dst, edge[e].dst),
			edge[e].n_links, link };
	}
	*out = image;
	return OK;
}

static Status
turned_trees(struct twist *w, int copies, Packing *out)
{
	int n = w->pack->n_trees;
	*out = (Packing){ 0 };
	TRY(NEW(w->ctx, out->tree, n * copies));
	TRY(NEW(w->ctx, out->demand, n * copies));
	TRY(NEW(w->ctx, out->weight, n * copies));
	for (int i = 0; i < n * copies; i++) {
		const Tree *tree = &w->pack->tree[i % n];
		const int *choice = w->choice + (size_t)i * (size_t)w->coarse.size;
		Tree *made = &out->tree[out->n_trees];
		*made = (Tree){ .root = image_at(w, choice, tree->root, tree->root), .n_down = tree->n_down, .n_up = tree->n_up };
		TRY(turn_edges(w, choice, tree->down, tree->n_down, &made->down));
		TRY(turn_edges(w, choice, tree->up, tree->n_up, &made->up));
		out->weight[out->n_trees++] = w->pack->weight[i % n];
	}
	return OK;
}

/* With the maps from `n_fine` on as the group, and the least number of copies below `most` trees. *out stays where none fits. */
static Status
twist_at(struct twist *w, int n_fine, Collective coll, int root, int most, Packing **out)
{
	bool apart;
	Packing made;
	w->coarse = (Symmetry){ .n_maps = w->sym->n_maps - n_fine, .map = w->sym->map + n_fine, .size = 1 };
	for (int i = 0; i < w->coarse.n_maps; i++)
		w->coarse.size *= w->coarse.map[i].order;
	TRY(find_turns(w, n_fine));
	TRY(TEMP(w->ctx, w->link, w->topo->n_links));
	TRY(TEMP(w->ctx, w->vertex, w->topo->n_vertices));
	w->n_links = list_moved(w, true, w->topo->n_links, w->link);
	w->n_vertices = list_moved(w, false, w->topo->n_vertices, w->vertex);
	TRY(find_members(w, &apart));
	if (!apart)
		return OK;
	TRY(find_images(w));
	TRY(count_uses(w));
	TRY(find_tight(w));
	TRY(order_blocks(w));
	TRY(TEMP(w->ctx, w->choice, (size_t)MOST_COPIES * (size_t)w->pack->n_trees * (size_t)w->coarse.size));
	for (int copies = 1; copies <= MOST_COPIES && copies * w->coarse.size < most; copies *= 2) {
		Packing *found = NULL;
		if (!choose_turns(w, copies))
			continue;
		TRY(turned_trees(w, copies, &made));
		if (!frac_div(w->pack->unit, (Frac){ copies, w->sym->size / w->coarse.size }, &made.unit))
			return OK;
		TRY(pack_unfold(w->ctx, w->topo, &w->coarse, coll, root, &made, &found));
		*out = found ? found : *out;
		return OK;
	}
	return OK;
}

Status
pack_twist(Ctx *ctx, const Topology *topo, const Symmetry *sym, Collective coll, int root, const Packing *pack, Packing **out)
{
	int most = sym->size;
	for (int n_fine = 1; n_fine < sym->n_maps && sym->map[n_fine - 1].near_vertex; n_fine++) {
		ArenaMark mark = arena_mark(&ctx->scratch);
		struct twist w = { .ctx = ctx, .topo = topo, .sym = sym, .pack = pack };
		Packing *found = NULL;
		TRY(twist_at(&w, n_fine, coll, root, most, &found));
		if (found) {
			*out = found;
			most = found->n_trees / pack->n_trees;
		}
		arena_release(&ctx->scratch, mark);
	}
	return OK;
}
