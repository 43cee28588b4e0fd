/* Trees of each rank: their checks, and all of them in a list; of an alltoall, their paths. */
#include "base/limits.h"
#include "schedule/in_trees.h"

#include <string.h>

void
in_tree_sizes(const InTreeWalk *w, int *size)
{
	const Topology *topo = w->sched->topo;
	for (int i = 0; i < w->n; i++)
		size[w->order[i]] = w->order[i] < topo->n_ranks;
	for (int i = w->n - 1; i > 0; i--)
		size[topo->link[w->next[w->order[i]]].to] += size[w->order[i]];
}

/* ---- checks ---- */

static Status
check_links(Ctx *ctx, const char *label, const Schedule *sched, int t, int *taken)
{
	const InTree *tree = &sched->in_tree[t];
	for (int i = 0; i < tree->n_links; i++) {
		int l = tree->link[i], from = l < 0 || l >= sched->topo->n_links ? -1 : sched->topo->link[l].from;
		if (from < 0)
			return fail(ctx, BAD_INPUT, "%s: trees[%d].links[%d]: %d: want 0 to %d", label, t, i, l,
			    sched->topo->n_links - 1);
		if (from == tree->root || taken[from] == t + 1)
			return fail(ctx, BAD_INPUT, "%s: trees[%d].links[%d]: link %d leaves %s: want one link of each "
			    "vertex, and none of the root", label, t, i, l, sched->topo->vertex[from].id);
		taken[from] = t + 1;
	}
	return OK;
}

/* The links of one edge: from each vertex to the next rank. */
static Status
check_hops(Ctx *ctx, const char *label, const InTreeWalk *w, int *hops)
{
	const Topology *topo = w->sched->topo;
	for (int i = 1; i < w->n; i++) {
		int v = w->order[i], to = topo->link[w->next[v]].to;
		hops[v] = 1 + (to < topo->n_ranks ? 0 : hops[to]);
		if (hops[v] > LIMIT_ROUTE_LINKS)
			return fail(ctx, LIMIT, "%s: trees[%d]: more than %d links from %s to the next rank", label,
			    w->t, LIMIT_ROUTE_LINKS, topo->vertex[v].id);
	}
	return OK;
}

/* The place of a tree among those of its root: *at is where the one before ends. */
static Status
check_place(Ctx *ctx, const char *label, const Schedule *sched, int t, int *root, Frac *at)
{
	const InTree *tree = &sched->in_tree[t];
	if (frac_cmp(*at, FRAC_ONE) == 0) {
		++*root;
		*at = FRAC_ZERO;
	}
	if (tree->root != *root)
		return fail(ctx, UNVERIFIED, "%s: trees[%d].root: %d: want %d, ranks in order, each with trees for all "
		    "of its blocks", label, t, tree->root, *root);
	if (tree->length.num <= 0)
		return fail(ctx, BAD_INPUT, "%s: trees[%d].segment: length 0: want more than 0", label, t);
	if (frac_cmp(tree->offset, *at) != 0)
		return fail(ctx, UNVERIFIED, "%s: trees[%d].segment: starts at %lld/%lld: want %lld/%lld, the end of "
		    "the tree before", label, t, (long long)tree->offset.num, (long long)tree->offset.den,
		    (long long)at->num, (long long)at->den);
	if (!frac_add(*at, tree->length, at))
		return fail(ctx, LIMIT, "%s: trees[%d].segment: its end needs more than 64 bits", label, t);
	return frac_cmp(*at, FRAC_ONE) <= 0 ? OK
	    : fail(ctx, BAD_INPUT, "%s: trees[%d].segment: ends beyond the block", label, t);
}

/* All but the place of one tree. */
static Status
check_tree_into(Ctx *ctx, const char *label, InTreeWalk *w, int t, int *taken, int *hops)
{
	const Schedule *sched = w->sched;
	TRY(sched->n_edges ? root_tree_check(ctx, label, sched, t) : check_links(ctx, label, sched, t, taken));
	in_tree_take(w, t);
	int stuck = in_tree_place(w);
	if (sched->n_edges)
		return root_tree_check_joined(ctx, label, sched, t, stuck);
	return stuck < 0 ? check_hops(ctx, label, w, hops) : fail(ctx, UNVERIFIED,
	    "%s: trees[%d]: no links lead from %s to the root, rank %d", label, t, sched->topo->vertex[stuck].id,
	    sched->in_tree[t].root);
}

Status
sched_check_in_trees(Ctx *ctx, const char *label, const Schedule *sched)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	const Topology *topo = sched->topo;
	InTreeWalk w;
	Frac at = FRAC_ZERO;
	int root = 0, of_root = 0, *taken, *hops;
	/* A tree takes a few bytes of a file, and a walk over all ranks. */
	if ((int64_t)IN_TREE_STEPS * sched->n_in_trees * topo->n_vertices > LIMIT_VERIFY_STEPS)
		return fail(ctx, LIMIT, "%s: trees: %d over %d GPUs and switches: more than %lld steps to verify them: "
		    "want fewer trees", label, sched->n_in_trees, topo->n_vertices, (long long)LIMIT_VERIFY_STEPS);
	TRY(in_tree_walk(ctx, sched, &w));
	TRY(TEMP_EACH(ctx, topo->n_vertices, taken, hops));
	for (int t = 0; t < sched->n_in_trees; t++) {
		TRY(check_place(ctx, label, sched, t, &root, &at));
		of_root = t > 0 && sched->in_tree[t - 1].root == root ? of_root + 1 : 1;
		if (of_root > LIMIT_IN_TREES)
			return fail(ctx, LIMIT, "%s: trees[%d]: more than %d trees of rank %d", label, t,
			    LIMIT_IN_TREES, root);
		TRY(check_tree_into(ctx, label, &w, t, taken, hops));
	}
	if (frac_cmp(at, FRAC_ONE) == 0 && root < topo->n_ranks - 1) {
		root++;
		at = FRAC_ZERO;
	}
	if (frac_cmp(at, FRAC_ONE) != 0)
		return fail(ctx, UNVERIFIED, "%s: trees: no tree of rank %d at %lld/%lld of its blocks", label, root,
		    (long long)at.num, (long long)at.den);
	arena_release(&ctx->scratch, mark);
	return OK;
}

/* ---- depth, latency and what is passed ---- */

/* Of each link, or of each edge. */
static Status
list_latencies(Ctx *ctx, const Schedule *sched, int64_t **out)
{
	TRY(TEMP(ctx, *out, sched->n_edges ? sched->n_edges : sched->topo->n_links));
	for (int l = 0; l < sched->topo->n_links && !sched->n_edges; l++)
		(*out)[l] = sched->topo->link[l].latency;
	for (int e = 0; e < sched->n_edges; e++)
		for (int i = 0; i < sched->edge[e].n_links; i++)
			(*out)[e] += sched->topo->link[sched->edge[e].link[i]].latency;
	return OK;
}

/* The greatest sum over the links or edges between a root and any rank: of latencies, or of 1 for each rank passed. */
static Status
find_farthest(Ctx *ctx, const Schedule *sched, bool latencies, int64_t *out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	InTreeWalk w;
	int64_t *latency, *sum;
	*out = 0;
	TRY(in_tree_walk(ctx, sched, &w));
	TRY(list_latencies(ctx, sched, &latency));
	TRY(TEMP(ctx, sum, sched->topo->n_vertices));
	while (in_tree_next(&w)) {
		sum[w.order[0]] = 0;
		for (int i = 1; i < w.n; i++) {
			int v = w.order[i], by = w.next[v];
			sum[v] = sum[in_tree_nearer(sched, by)]
			    + (latencies ? latency[by] : v < sched->topo->n_ranks);
			if (v < sched->topo->n_ranks && sum[v] > *out)
				*out = sum[v];
		}
	}
	arena_release(&ctx->scratch, mark);
	return OK;
}

Status
in_trees_depth(Ctx *ctx, const Schedule *sched, int *out)
{
	int64_t depth;
	TRY(find_farthest(ctx, sched, false, &depth));
	*out = (int)depth;
	return OK;
}

Status
in_trees_latency(Ctx *ctx, const Schedule *sched, int64_t *out)
{
	return find_farthest(ctx, sched, true, out);
}

Status
in_trees_passed(Ctx *ctx, const Schedule *sched, bool *passed)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	InTreeWalk w;
	TRY(in_tree_walk(ctx, sched, &w));
	while (in_tree_next(&w) && !sched->n_edges)
		for (int i = 1; i < w.n; i++)
			passed[w.order[i]] = true;
	for (int e = 0; e < sched->n_edges; e++)
		for (int i = 0; i < sched->edge[e].n_links; i++)
			passed[sched->topo->link[sched->edge[e].link[i]].from] = true;
	arena_release(&ctx->scratch, mark);
	return OK;
}

/* ---- paths ---- */

/* The trees of one root, and a path at work. */
struct paths {
	Ctx *ctx;
	const Schedule *sched;
	Status (*visit)(void *with, const Segment *path);
	void *with;
	int first, n;		/* trees */
	int *next[LIMIT_IN_TREES];	/* of tree first + i: the link that leaves each vertex */
	Edge *edge;
	int *link;
};

/* Edges of the path from `rank` in tree number i of the root. */
static int
take_path(const struct paths *p, int rank, int i)
{
	const Topology *topo = p->sched->topo;
	const int *next = p->next[i];
	int n = 0, n_links = 0, root = p->sched->in_tree[p->first].root;
	for (int v = rank; v != root;) {
		const Link *link = &topo->link[next[v]];
		if (v < topo->n_ranks)
			p->edge[n] = (Edge){ .src = v, .link = &p->link[n_links] };
		p->link[n_links++] = next[v];
		p->edge[n].n_links++;
		v = link->to;
		if (v < topo->n_ranks)
			p->edge[n++].dst = v;
	}
	return n;
}

/* Is the path from `rank` in tree number i that of the tree before? */
static bool
same_path(const struct paths *p, int rank, int i)
{
	const Topology *topo = p->sched->topo;
	const int *next = p->next[i], *before = p->next[i - 1];
	int root = p->sched->in_tree[p->first].root, v = rank;
	while (v != root && next[v] == before[v])
		v = topo->link[next[v]].to;
	return v == root;
}

static Status
visit_path(struct paths *p, int rank, int i, Frac length)
{
	const InTree *tree = &p->sched->in_tree[p->first + i];
	int64_t n = p->sched->topo->n_ranks;
	Segment path = { .tree = { .root = rank, .down = p->edge } };
	Frac block;
	path.tree.n_down = take_path(p, rank, i);
	if (!frac_make((Wide)rank * n + tree->root, 1, &block) || !frac_add(block, tree->offset, &path.offset)
	    || !frac_mul(path.offset, (Frac){ 1, n * n }, &path.offset)
	    || !frac_mul(length, (Frac){ 1, n * n }, &path.length))
		return fail(p->ctx, LIMIT, "%s: a path needs more than 64 bits", p->sched->topo->name);
	return p->visit(p->with, &path);
}

static Status
paths_of_rank(struct paths *p, int rank)
{
	for (int i = 0, last; i < p->n; i = last) {
		Frac length = p->sched->in_tree[p->first + i].length;
		for (last = i + 1; last < p->n && same_path(p, rank, last); last++)
			if (!frac_add(length, p->sched->in_tree[p->first + last].length, &length))
				return fail(p->ctx, LIMIT, "%s: a path needs more than 64 bits", p->sched->topo->name);
		TRY(visit_path(p, rank, i, length));
	}
	return OK;
}

static Status
keep_trees(struct paths *p, InTreeWalk *w)
{
	const Schedule *sched = p->sched;
	size_t n_vertices = (size_t)sched->topo->n_vertices;
	int t = p->first;
	do {
		int **next = &p->next[t - p->first];
		if (!*next)
			TRY(TEMP(p->ctx, *next, n_vertices));
		in_tree_take(w, t++);
		memcpy(*next, w->next, n_vertices * sizeof *w->next);
	} while (t < sched->n_in_trees && sched->in_tree[t].root == sched->in_tree[p->first].root);
	p->n = t - p->first;
	return OK;
}

static Status
each_path(Ctx *ctx, const Schedule *sched, Status (*visit)(void *with, const Segment *path), void *with)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct paths p = { .ctx = ctx, .sched = sched, .visit = visit, .with = with };
	InTreeWalk w;
	TRY(in_tree_walk(ctx, sched, &w));
	TRY(TEMP(ctx, p.edge, sched->topo->n_ranks));
	TRY(TEMP(ctx, p.link, sched->topo->n_vertices));
	for (; p.first < sched->n_in_trees; p.first += p.n) {
		TRY(keep_trees(&p, &w));
		for (int r = 0; r < sched->topo->n_ranks; r++)
			if (r != sched->in_tree[p.first].root)
				TRY(paths_of_rank(&p, r));
	}
	arena_release(&ctx->scratch, mark);
	return OK;
}

Status
sched_each_path(Ctx *ctx, const Schedule *sched, Status (*visit)(void *with, const Segment *path), void *with)
{
	return sched->n_edges ? root_trees_each(ctx, sched, visit, with) : each_path(ctx, sched, visit, with);
}

/* ---- all of them in a list ---- */

struct list {
	Ctx *ctx;
	const char *label;
	Schedule *sched;
	int64_t paths, edges;
};

static Status
count_path(void *with, const Segment *path)
{
	struct list *list = with;
	list->paths++;
	list->edges += path->tree.n_down;
	return OK;
}

/* Edges that stay, with links of their own. */
static Status
keep_edges(Ctx *ctx, const Edge *edge, int n, Edge **out)
{
	int n_links = 0, *link;
	for (int e = 0; e < n; e++)
		n_links += edge[e].n_links;
	TRY(NEW(ctx, *out, n));
	TRY(NEW(ctx, link, n_links));
	for (int e = 0; e < n; e++) {
		(*out)[e] = edge[e];
		(*out)[e].link = memcpy(link, edge[e].link, (size_t)edge[e].n_links * sizeof *link);
		link += edge[e].n_links;
	}
	return OK;
}

static Status
list_path(void *with, const Segment *path)
{
	struct list *list = with;
	Segment *segment = &list->sched->segment[list->sched->n_segments++];
	*segment = *path;
	TRY(keep_edges(list->ctx, path->tree.down, path->tree.n_down, &segment->tree.down));
	return keep_edges(list->ctx, path->tree.up, path->tree.n_up, &segment->tree.up);
}

Status
in_trees_expand(Ctx *ctx, const char *label, const Schedule *in, Schedule **out)
{
	struct list list = { .ctx = ctx, .label = label };
	if (in->n_edges) {
		list.paths = in->n_in_trees;
		list.edges = list.paths * (in->topo->n_ranks - 1);
	} else {
		TRY(sched_each_path(ctx, in, count_path, &list));
	}
	if (list.paths > LIMIT_TREES || list.edges > LIMIT_TREE_EDGES)
		return fail(ctx, LIMIT, "%s: %lld trees with %lld edges, where all are listed: want at most %d and %d",
		    label, (long long)list.paths, (long long)list.edges, LIMIT_TREES, LIMIT_TREE_EDGES);
	TRY(NEW(ctx, list.sched, 1));
	*list.sched = *in;
	list.sched->n_in_trees = 0;
	list.sched->in_tree = NULL;
	list.sched->n_edges = 0;
	list.sched->edge = NULL;
	TRY(NEW(ctx, list.sched->segment, list.paths));
	TRY(sched_each_path(ctx, in, list_path, &list));
	*out = list.sched;
	return OK;
}
