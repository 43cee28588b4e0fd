/* From a schedule to what one rank does.
 *
 * One pass over the edges, in their order, follows who has a value, as lower.c does, and keeps what concerns this
 * rank. An edge carries something in the same cases: `up` in a reducing collective, every edge of `down` there, and
 * elsewhere an edge from a rank that has the value to one that has not. What other ranks do is needed for two numbers
 * alone: lanes are counted for each ordered pair with this rank, and rings for every rank.
 *
 * Example, allreduce, `up` 1->0 2->0, `down` 0->1 0->2. Rank 0 has one task: own + 1 + 2, output, to 1 and 2. Rank 1
 * has two: own, to 0; and what 0 publishes, output. */
#include "schedule/in_trees.h"
#include "schedule/projection.h"

#include <string.h>

/* The ring that the source of an edge publishes in. */
static int
ring_of(struct projection *p, int rank, int stage)
{
	int *ring = &p->ring[stage][rank];
	if (*ring < 0)
		*ring = p->rings[rank]++;
	return *ring;
}

/* Once for each segment, at the first edge of the rank. */
static inline void
take_part(struct projection *p, int rank, int segment, int holder)
{
	if (p->last[rank] == segment + 1)
		return;
	p->last[rank] = segment + 1;
	p->segments[rank]++;
	for (int stage = 0; stage < N_STAGES; stage++)
		p->ring[stage][rank] = -1;
	p->has[rank] = holder == EVERY_RANK || rank == holder;
	p->hops[rank] = 0;
}

/* Of more ranks, and of images, lanes of all pairs are not counted: a rank has no more to another than rings. */
enum { RANKS_COUNTED = 256 };

/* GPUs of a server that is not wired all to all. Of more ranks it would be larger than the rest of a program. */
enum { RANKS_JOINED = 32 };

static void
carry(struct projection *p, const Edge *e, int stage)
{
	int me = p->prog->rank, ring = ring_of(p, e->src, stage);
	struct stage *mine = &p->stage[stage];
	p->has[e->dst] = true;
	p->hops[e->dst] = p->hops[e->src] + 1;
	if (p->pair) {
		int lanes = ++p->pair[e->src * p->prog->n_ranks + e->dst];
		p->pair_most = lanes > p->pair_most ? lanes : p->pair_most;
	}
	if (e->src == me) {
		mine->ring = ring;
		mine->to[mine->n_to++] = (RankLane){ e->dst, p->lanes_out[e->dst]++, ring };
	} else if (e->dst == me) {
		mine->from[mine->n_from++] = (RankLane){ e->src, p->lanes_in[e->src]++, ring };
	}
}

/* Where a link of NVLink ends that several edges share there; -1: nowhere, as of an edge whose links are not known. */
static int
shared_end(const Topology *topo, const Edge *e, bool up)
{
	if (e->n_links == 0)
		return -1;
	const Link *link = &topo->link[e->link[up ? e->n_links - 1 : 0]];
	int v = up ? link->to : link->from;
	bool shares = up ? topo->vertex[v].reduce : topo->vertex[v].multicast;
	return shares && link->class == LINK_NVLINK ? v : -1;
}

static bool
passes(const Topology *topo, const Edge *e, int v)
{
	int i = 0;
	while (i < e->n_links && topo->link[e->link[i]].to != v)
		i++;
	return i < e->n_links;
}

/* All ranks but the root send to it, or get from it, by one switch: the first edge alone takes the root's link. */
static bool
is_star(const Topology *topo, const Edge *edge, int n, int root, bool up)
{
	int v = n == topo->n_ranks - 1 && n > 1 ? shared_end(topo, &edge[1], up) : -1;
	bool star = v >= topo->n_ranks && passes(topo, &edge[0], v);
	for (int i = 0; i < n && star; i++)
		star = (up ? edge[i].dst : edge[i].src) == root
		    && (shared_end(topo, &edge[i], up) == v) == (i > 0);
	return star;
}

static bool
is_switched(const struct projection *p, const Segment *seg)
{
	const Tree *t = &seg->tree;
	const Topology *topo = p->sched->topo;
	return seg->n_to == 0 && t->n_up + t->n_down > 0 && (p->reduces || t->n_up == 0)
	    && (t->n_up == 0 || is_star(topo, t->up, t->n_up, t->root, true))
	    && (t->n_down == 0 || is_star(topo, t->down, t->n_down, t->root, false));
}

static Status
project_one(struct projection *p, int s, const Segment *seg)
{
	const Schedule *sched = p->sched;
	const Tree *tree = &seg->tree;
	int n = sched->topo->n_ranks;
	int64_t block = sched_segment_block(sched, seg);
	int holder = collective_holder(sched->coll, n, sched->root, block);
	int needer = collective_needer(sched->coll, n, sched->root, block);
	project_clear(p);
	for (int i = 0; i < tree->n_up + tree->n_down; i++) {
		bool up = i < tree->n_up;
		const Edge *e = tree_hop(tree, i);
		take_part(p, e->src, s, holder);
		take_part(p, e->dst, s, holder);
		if (p->reduces)
			carry(p, e, up ? UP : DOWN);
		else if (p->has[e->src] && !p->has[e->dst])
			carry(p, e, DOWN);
	}
	p->prog->switched = (s == 0 || p->prog->switched) && is_switched(p, seg);
	TRY(project_extremes(p, seg));
	return project_tasks(p, s, seg, holder, needer);
}

Status
project_segment(struct projection *p, int s)
{
	return project_one(p, s, &p->sched->segment[s]);
}

/* Paths of an alltoall, or trees of edges, one after the other. */
struct path_projection {
	struct projection *p;
	int n;			/* so far */
	Frac longest;
};

/* Of a path that this rank is not on, what counts is who publishes, and who takes part. */
static void
count_path(struct projection *p, const Tree *tree)
{
	p->segments[tree->root]++;
	for (int e = 0; e < tree->n_down; e++) {
		p->rings[tree->down[e].src]++;
		p->segments[tree->down[e].dst]++;
	}
}

static Status
project_path(void *with, const Segment *path)
{
	struct path_projection *of = with;
	struct projection *p = of->p;
	const Tree *tree = &path->tree;
	bool mine = p->sched->n_edges > 0 || tree->root == p->prog->rank || p->pair;
	for (int e = 0; e < tree->n_down && !mine; e++)
		mine = tree->down[e].dst == p->prog->rank;
	if (mine)
		return project_one(p, of->n++, path);
	count_path(p, tree);
	of->n++;
	p->prog->depth = tree->n_down > p->prog->depth ? tree->n_down : p->prog->depth;
	if (frac_cmp(path->length, of->longest) <= 0)
		return OK;
	of->longest = path->length;
	return project_extremes(p, path);
}

Status
sched_list_peers(Ctx *ctx, const int *lanes_out, const int *lanes_in, RankProgram *prog)
{
	for (int r = 0; r < prog->n_ranks; r++)
		prog->n_peers += lanes_out[r] + lanes_in[r] > 0;
	TRY(NEW(ctx, prog->peer, prog->n_peers));
	prog->n_peers = 0;
	for (int r = 0; r < prog->n_ranks; r++) {
		int most = lanes_out[r] > lanes_in[r] ? lanes_out[r] : lanes_in[r];
		if (most > 0)
			prog->peer[prog->n_peers++] = r;
		prog->lanes_max = most > prog->lanes_max ? most : prog->lanes_max;
	}
	return OK;
}

static Status
new_work(struct projection *p)
{
	Ctx *ctx = p->ctx;
	int n = p->sched->topo->n_ranks;
	TRY(TEMP(ctx, p->lanes_out, n));
	TRY(TEMP(ctx, p->lanes_in, n));
	TRY(TEMP(ctx, p->rings, n));
	TRY(TEMP(ctx, p->segments, n));
	TRY(TEMP(ctx, p->last, n));
	TRY(TEMP(ctx, p->has, n));
	TRY(TEMP(ctx, p->hops, n));
	TRY(TEMP(ctx, p->depth, n));
	if (n <= RANKS_COUNTED && !p->sched->symmetry)
		TRY(TEMP(ctx, p->pair, n * n));
	for (int stage = 0; stage < N_STAGES; stage++) {
		TRY(TEMP(ctx, p->ring[stage], n));
		TRY(TEMP(ctx, p->stage[stage].from, n));
		TRY(TEMP(ctx, p->stage[stage].to, n));
	}
	return OK;
}

Status
project_begin(Ctx *ctx, const Schedule *sched, int rank, struct projection **out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct projection *p;
	RankProgram *prog;
	TRY(TEMP(ctx, p, 1));
	TRY(NEW(ctx, prog, 1));
	*prog = (RankProgram){ .coll = sched->coll, .root = sched->root, .n_ranks = sched->topo->n_ranks,
	    .rank = rank, .n_parts = sched->n_parts ? sched->n_parts : 1 };
	*p = (struct projection){ .ctx = ctx, .mark = mark, .sched = sched, .prog = prog,
	    .reduces = collective_reduces(sched->coll) };
	if (sched->n_parts) {
		TRY(sched_split(ctx, sched->topo->name, sched, &prog->part_end));
		TRY(NEW(ctx, prog->classes, sched->n_parts));
	}
	for (int i = 0; i < sched->n_parts; i++)
		prog->classes[i] = sched->part[i].classes;
	TRY(NEW(ctx, prog->longest, prog->n_parts));
	for (int i = 0; i < prog->n_parts; i++)
		prog->longest[i] = FRAC_ZERO;
	TRY(new_work(p));
	*out = p;
	return OK;
}

Status
project_end(struct projection *p, RankProgram **out)
{
	RankProgram *prog = p->prog;
	TRY(sched_overlaps(p->ctx, p->sched, &prog->keep_input));
	for (int r = 0; r < prog->n_ranks; r++) {
		prog->rings_max = p->rings[r] > prog->rings_max ? p->rings[r] : prog->rings_max;
		prog->segments_max = p->segments[r] > prog->segments_max ? p->segments[r] : prog->segments_max;
	}
	prog->n_rings = p->rings[prog->rank];
	prog->pair_lanes_max = p->pair ? p->pair_most : prog->rings_max;
	bool joins = p->pair && prog->n_ranks <= RANKS_JOINED;
	if (joins)
		TRY(NEW(p->ctx, prog->joined, prog->n_ranks * prog->n_ranks));
	for (int i = 0; joins && i < prog->n_ranks * prog->n_ranks; i++)
		prog->joined[i] = p->pair[i] > 0;
	TRY(sched_list_peers(p->ctx, p->lanes_out, p->lanes_in, prog));
	arena_release(&p->ctx->scratch, p->mark);
	*out = prog;
	return OK;
}

static Status
project_all(Ctx *ctx, const Schedule *sched, int rank, RankProgram **out)
{
	struct projection *p;
	TRY(project_begin(ctx, sched, rank, &p));
	for (int s = 0; s < sched->n_segments && !sched->symmetry; s++)
		TRY(project_segment(p, s));
	if (sched->symmetry)
		TRY(project_images(p));
	if (sched->n_in_trees)
		TRY(sched_each_path(ctx, sched, project_path,
		    &(struct path_projection){ .p = p, .longest = FRAC_ZERO }));
	return project_end(p, out);
}

Status
sched_project(Ctx *ctx, const Schedule *sched, int rank, RankProgram **out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	Status status = project_all(ctx, sched, rank, out);
	arena_release(&ctx->scratch, mark);
	return status;
}
