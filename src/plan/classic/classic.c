/* From a rule to a packing: its trees over positions, the order of ranks, the links of each hop. */
#include "plan/classic/classic.h"

#include <string.h>

/* An edge between positions. */
struct step {
	int src, dst;
};

/* Out of its root, parent first; a path ends at `other`. */
struct shape_tree {
	int root, other;
	int n;
	struct step *step;
};

struct forest {
	const Shape *shape;
	int n_trees;
	struct shape_tree *tree;
	bool down, up;
	int *parent;		/* work space, n each */
	int *order, *size, *child, *next, *bucket;
};

/* ---- trees ---- */

static Status
forest_new(Ctx *ctx, const Classic *classic, const Shape *shape, struct forest *f)
{
	Collective coll = shape->coll;
	*f = (struct forest){ .shape = shape };
	f->up = coll == REDUCE || coll == ALLREDUCE || coll == REDUCESCATTER || coll == GATHER;
	f->down = !f->up || (coll == ALLREDUCE && !classic->alone);
	TRY(TEMP(ctx, f->parent, shape->n));
	TRY(TEMP(ctx, f->order, shape->n));
	TRY(TEMP(ctx, f->size, shape->n));
	TRY(TEMP(ctx, f->child, shape->n));
	TRY(TEMP(ctx, f->next, shape->n));
	return TEMP(ctx, f->bucket, shape->n + 2);
}

/* Positions breadth first, children in the order of the lists. */
static void
breadth_first(struct forest *f, int root)
{
	int tail = 0;
	f->order[tail++] = root;
	for (int head = 0; head < tail; head++)
		for (int c = f->child[f->order[head]]; c >= 0; c = f->next[c])
			f->order[tail++] = c;
}

/* Children of each position, those that come later in f->order first. */
static void
list_children(struct forest *f)
{
	int n = f->shape->n;
	memset(f->child, -1, (size_t)n * sizeof *f->child);
	for (int i = 0; i < n; i++) {
		int p = f->order[i], parent = f->parent[p];
		if (parent < 0)
			continue;
		f->next[p] = f->child[parent];
		f->child[parent] = p;
	}
}

/* f->order: by the number of positions below, the fewest first, of equals the one that comes later after the root,
 * around: where each position has a tree, they do not all begin with position 0. */
static void
sort_by_size(struct forest *f, int root)
{
	int n = f->shape->n;
	for (int p = 0; p < n; p++)
		f->size[p] = 1;
	for (int i = n - 1; i > 0; i--)
		f->size[f->parent[f->order[i]]] += f->size[f->order[i]];
	memset(f->bucket, 0, (size_t)(n + 2) * sizeof *f->bucket);
	for (int p = 0; p < n; p++)
		f->bucket[f->size[p] + 1]++;
	for (int s = 1; s < n + 2; s++)
		f->bucket[s] += f->bucket[s - 1];
	for (int i = n - 1; i >= 0; i--) {
		int p = (root + i) % n;
		f->order[f->bucket[f->size[p]]++] = p;
	}
}

/* f->order of the tree in f->parent: parents first, and of siblings the one with most below it, since it ends last.
 * Returns the root. */
static int
sort_tree(struct forest *f)
{
	int n = f->shape->n, root = 0;
	for (int p = 0; p < n; p++) {
		f->order[p] = n - 1 - p;
		root = f->parent[p] < 0 ? p : root;
	}
	list_children(f);
	breadth_first(f, root);
	sort_by_size(f, root);
	list_children(f);
	breadth_first(f, root);
	return root;
}

static Status
put_spanning(Ctx *ctx, struct forest *f)
{
	int n = f->shape->n, root = sort_tree(f);
	struct shape_tree *tree = &f->tree[f->n_trees++];
	*tree = (struct shape_tree){ .root = root, .other = -1, .n = n - 1 };
	TRY(TEMP(ctx, tree->step, n - 1));
	for (int i = 1; i < n; i++)
		tree->step[i - 1] = (struct step){ f->parent[f->order[i]], f->order[i] };
	return OK;
}

static int
depth_in(const struct forest *f, int p)
{
	int depth = 0;
	for (; f->parent[p] >= 0; p = f->parent[p])
		depth++;
	return depth;
}

/* The path of each position but the root, in the order of positions. */
static Status
put_paths(Ctx *ctx, struct forest *f)
{
	for (int p = 0; p < f->shape->n; p++) {
		int depth = depth_in(f, p);
		if (depth == 0)
			continue;
		struct shape_tree *tree = &f->tree[f->n_trees++];
		*tree = (struct shape_tree){ .other = p, .n = depth };
		TRY(TEMP(ctx, tree->step, depth));
		int at = p;
		for (int i = depth - 1; i >= 0; i--, at = f->parent[at])
			tree->step[i] = (struct step){ f->parent[at], at };
		tree->root = at;
	}
	return OK;
}

static bool
has_paths(const Shape *shape)
{
	return collective_demand(shape->coll, shape->n, 0, 0).kind == DEMAND_PATH;
}

static Status
fail_count(Ctx *ctx, const Shape *shape, const char *name)
{
	return fail(ctx, LIMIT, "%s: %s over %d ranks: want a schedule of at most %d trees and %d edges", name,
	    collective_name(shape->coll), shape->n, LIMIT_TREES, LIMIT_TREE_EDGES);
}

/* Before memory is taken for them. */
static Status
check_count(Ctx *ctx, const Classic *classic, struct forest *f, const char *name)
{
	const Shape *shape = f->shape;
	bool paths = has_paths(shape);
	int64_t n = shape->n, rules = classic->trees(shape), trees = paths ? rules * (n - 1) : rules,
	    edges = paths ? 0 : rules * (n - 1) * (f->up && f->down ? 2 : 1);
	if (trees > LIMIT_TREES || edges > LIMIT_TREE_EDGES)
		return fail_count(ctx, shape, name);
	for (int t = 0; paths && t < rules; t++) {
		classic->parents(shape, t, f->parent);
		for (int p = 0; p < shape->n; p++)
			edges += depth_in(f, p);
	}
	return edges > LIMIT_TREE_EDGES ? fail_count(ctx, shape, name) : TEMP(ctx, f->tree, trees);
}

static Status
make_forest(Ctx *ctx, const Classic *classic, const Shape *shape, const char *name, struct forest *f)
{
	TRY(forest_new(ctx, classic, shape, f));
	TRY(check_count(ctx, classic, f, name));
	for (int t = 0; t < classic->trees(shape); t++) {
		classic->parents(shape, t, f->parent);
		TRY(has_paths(shape) ? put_paths(ctx, f) : put_spanning(ctx, f));
	}
	return OK;
}

/* ---- traffic ---- */

/* Of each position: those that it sends to, as often as it does. */
struct senders {
	int *first, *dst, *at;
};

static Status
sort_by_sender(Ctx *ctx, const struct forest *f, struct senders *out)
{
	int n = f->shape->n;
	TRY(TEMP(ctx, out->first, n + 1));
	TRY(TEMP(ctx, out->at, n));
	for (int t = 0; t < f->n_trees; t++)
		for (int i = 0; i < f->tree[t].n; i++) {
			out->first[f->tree[t].step[i].src + 1] += f->down;
			out->first[f->tree[t].step[i].dst + 1] += f->up;
		}
	for (int p = 0; p < n; p++) {
		out->first[p + 1] += out->first[p];
		out->at[p] = out->first[p];
	}
	TRY(TEMP(ctx, out->dst, out->first[n]));
	for (int t = 0; t < f->n_trees; t++)
		for (int i = 0; i < f->tree[t].n; i++) {
			struct step s = f->tree[t].step[i];
			if (f->down)
				out->dst[out->at[s.src]++] = s.dst;
			if (f->up)
				out->dst[out->at[s.dst]++] = s.src;
		}
	return OK;
}

static Status
put_traffic(Ctx *ctx, const struct forest *f, Traffic *out)
{
	struct senders s;
	int n = f->shape->n;
	int64_t *weight;
	TRY(sort_by_sender(ctx, f, &s));
	TRY(TEMP(ctx, weight, n));
	TRY(TEMP(ctx, out->arc, s.first[n]));
	out->n_arcs = 0;
	for (int p = 0; p < n; p++) {
		for (int i = s.first[p]; i < s.first[p + 1]; i++)
			weight[s.dst[i]]++;
		for (int q = 0; q < n && s.first[p] < s.first[p + 1]; q++) {
			if (weight[q] > 0)
				out->arc[out->n_arcs++] = (struct traffic_arc){ p, q, weight[q] };
			weight[q] = 0;
		}
	}
	return OK;
}

static int
arc_of(const Traffic *traffic, int src, int dst)
{
	int low = 0, high = traffic->n_arcs - 1;
	while (low < high) {
		int middle = (low + high) / 2;
		const struct traffic_arc *arc = &traffic->arc[middle];
		if (arc->src < src || (arc->src == src && arc->dst < dst))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* ---- routes ---- */

enum { ROUNDS = 8, REROUTED = 1 << 17 };	/* hops for which routes are chosen again, in all rounds */

struct route {
	int n;
	const int *link;
};

/* Of each arc, as hops have it, and the load of each link. */
static Status
put_routes(Ctx *ctx, const Traffic *traffic, const int *rank_at, Hops *hops, struct route *route, int64_t *load)
{
	for (int a = 0; a < traffic->n_arcs; a++) {
		int link[LIMIT_ROUTE_LINKS], *kept;
		const struct traffic_arc *arc = &traffic->arc[a];
		route[a].n = hops_route(hops, rank_at[arc->src], rank_at[arc->dst], link);
		TRY(NEW(ctx, kept, route[a].n));
		memcpy(kept, link, (size_t)route[a].n * sizeof *kept);
		route[a].link = kept;
		for (int i = 0; i < route[a].n; i++)
			load[link[i]] += arc->weight;
	}
	return OK;
}

/* The busiest link; -1: none. */
static int
busiest(const Topology *topo, const int64_t *load)
{
	int worst = -1;
	for (int l = 0; l < topo->n_links; l++)
		if (load[l] > 0 && (worst < 0
		    || ratio_cmp(load[l], topo->link[l].capacity, load[worst], topo->link[worst].capacity) > 0))
			worst = l;
	return worst;
}

/* The cheapest routes; then those that avoid busy links, the best of some rounds. */
static Status
choose_routes(Ctx *ctx, const Topology *topo, const Traffic *traffic, const int *rank_at, Hops *hops,
    struct route *best)
{
	int rounds = topo->n_vertices > topo->n_ranks ? REROUTED / (traffic->n_arcs + 1) : 0;
	struct route *route;
	int64_t *load, *least;
	TRY(TEMP(ctx, route, traffic->n_arcs));
	TRY(TEMP(ctx, load, topo->n_links));
	TRY(TEMP(ctx, least, topo->n_links));
	TRY(put_routes(ctx, traffic, rank_at, hops, best, least));
	memcpy(load, least, (size_t)topo->n_links * sizeof *load);
	for (int i = 0; i < rounds && i < ROUNDS; i++) {
		int was = busiest(topo, least), is;
		hops_reprice(hops, load);
		memset(load, 0, (size_t)topo->n_links * sizeof *load);
		TRY(put_routes(ctx, traffic, rank_at, hops, route, load));
		is = busiest(topo, load);
		if (ratio_cmp(load[is], topo->link[is].capacity, least[was], topo->link[was].capacity) >= 0)
			continue;
		memcpy(best, route, (size_t)traffic->n_arcs * sizeof *best);
		memcpy(least, load, (size_t)topo->n_links * sizeof *least);
	}
	return OK;
}

/* ---- the packing ---- */

struct plan {
	const Topology *topo;
	const struct forest *forest;
	const Traffic *traffic;
	const int *rank_at;	/* of each position */
	int *position;		/* of each rank */
	const struct route *route;
};

static Edge
edge_of(const struct plan *p, int src, int dst)
{
	const struct route *route = &p->route[arc_of(p->traffic, src, dst)];
	return (Edge){ p->rank_at[src], p->rank_at[dst], route->n, route->link };
}

static Status
put_tree(Ctx *ctx, const struct plan *p, const struct shape_tree *from, Tree *out)
{
	const struct forest *f = p->forest;
	*out = (Tree){ .root = p->rank_at[from->root], .n_down = f->down ? from->n : 0, .n_up = f->up ? from->n : 0 };
	TRY(NEW(ctx, out->down, out->n_down));
	TRY(NEW(ctx, out->up, out->n_up));
	for (int i = 0; i < out->n_down; i++)
		out->down[i] = edge_of(p, from->step[i].src, from->step[i].dst);
	for (int i = 0; i < out->n_up; i++)
		out->up[i] = edge_of(p, from->step[from->n - 1 - i].dst, from->step[from->n - 1 - i].src);
	return OK;
}

/* The tree of the d-th demand, or of the d-th part where there is one demand. */
static int
tree_of(const struct plan *p, int root, int d)
{
	const Shape *shape = p->forest->shape;
	int n = shape->n;
	Demand demand = collective_demand(shape->coll, n, root, d);
	switch (demand.kind) {
	case DEMAND_PATH:
		if (root >= 0)
			return p->position[demand.from == root ? demand.to : demand.from] - 1;
		return p->position[demand.from] * (n - 1) + p->position[demand.to]
		    - (p->position[demand.to] > p->position[demand.from]);
	case DEMAND_BROADCAST:
		return demand.block >= 0 && collective_has_blocks(shape->coll) ? p->position[demand.from] : d;
	case DEMAND_REDUCE:
		return collective_has_blocks(shape->coll) ? p->position[demand.to] : d;
	default:
		return d;
	}
}

static Status
put_packing(Ctx *ctx, const struct plan *p, int root, bool alone, Packing **out)
{
	const struct forest *f = p->forest;
	Collective coll = f->shape->coll;
	bool blocks = collective_has_blocks(coll);
	Packing *pack;
	int64_t *load;
	TRY(pack_new(ctx, f->n_trees, blocks, &pack));
	pack->n_trees = f->n_trees;
	if (alone)
		TRY(NEW(ctx, pack->serves, f->n_trees));
	for (int t = 0; t < f->n_trees; t++) {
		int from = blocks ? tree_of(p, root, t) : alone ? p->position[t] : t;
		TRY(put_tree(ctx, p, &f->tree[from], &pack->tree[t]));
		pack->weight[t] = 1;
		if (blocks)
			pack->demand[t] = t;
		if (alone)
			pack->serves[t] = t;
	}
	TRY(TEMP(ctx, load, p->topo->n_links));
	if (!pack_widest_unit(p->topo, pack, load, &pack->unit))
		return fail(ctx, INTERNAL, "%s: no links in use", p->topo->name);
	*out = pack;
	return OK;
}

Status
classic_pack(Ctx *ctx, const Topology *topo, const Classic *classic, const Shape *shape, int root, const char *name,
    Packing **out, bool *best)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct forest forest;
	struct route *route;
	Traffic traffic;
	Hops *hops;
	int *rank_at;
	struct plan plan = { .topo = topo, .forest = &forest, .traffic = &traffic };
	TRY(make_forest(ctx, classic, shape, name, &forest));
	TRY(put_traffic(ctx, &forest, &traffic));
	TRY(hops_new(ctx, topo, classic->staged, &hops));
	TRY(TEMP(ctx, rank_at, shape->n));
	TRY(TEMP(ctx, plan.position, shape->n));
	TRY(TEMP(ctx, route, traffic.n_arcs));
	*best = false;
	TRY(shape->order ? order_of_ranks(ctx, topo, hops, &traffic, shape->order, root, name, rank_at)
	    : order_choose(ctx, topo, hops, &traffic, root, name, rank_at, best));
	for (int p = 0; p < shape->n; p++)
		plan.position[rank_at[p]] = p;
	TRY(choose_routes(ctx, topo, &traffic, rank_at, hops, route));
	plan.rank_at = rank_at;
	plan.route = route;
	TRY(put_packing(ctx, &plan, root, classic->alone, out));
	arena_release(&ctx->scratch, mark);
	return OK;
}

/* ---- the shape of an Ask ---- */

/* Ranks of each server, where all that have some have as many; else 0. */
static int
ranks_of_servers(const Topology *topo, int *servers)
{
	int most = 0;
	*servers = 0;
	for (int s = 0; s < topo->n_nodes; s++) {
		int ranks = 0;
		for (int r = 0; r < topo->n_ranks; r++)
			ranks += topo->vertex[r].node == s;
		if (ranks == 0)
			continue;
		if (most > 0 && ranks != most)
			return 0;
		most = ranks;
		++*servers;
	}
	return most * *servers == topo->n_ranks ? most : 0;
}

static Hierarchy
layers_of_servers(const Topology *topo)
{
	int servers, ranks = ranks_of_servers(topo, &servers);
	if (ranks > 1 && servers > 1)
		return (Hierarchy){ 2, { ranks, servers } };
	return (Hierarchy){ 1, { topo->n_ranks } };
}

Status
classic_shape(Ctx *ctx, const Topology *topo, const Ask *ask, Shape *out)
{
	int64_t product = 1;
	*out = (Shape){ .coll = ask->coll, .n = topo->n_ranks, .radix = ask->radix ? ask->radix : 2,
		.layers = ask->layers.n ? ask->layers : layers_of_servers(topo), .order = ask->order };
	for (int i = 0; i < out->layers.n; i++)
		product = product > topo->n_ranks ? product : product * out->layers.size[i];
	if (product != topo->n_ranks)
		return fail_asked(ctx, USAGE, "hierarchy", "%s: want numbers with the product %d, the ranks of the job",
		    hierarchy_text(&ask->layers).text, topo->n_ranks);
	return OK;
}
