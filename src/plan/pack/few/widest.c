/* The widest tree: one tree whose narrowest link is as wide as possible, over direct links.
 *
 * Of broadcast and reduce it is found exactly: of the links that are at least so wide, those of a breadth-first search
 * from the root reach each rank, in as few hops as can be, or none do. An allreduce takes two such searches from some
 * rank, and a link that both use has to be twice as wide. Three kinds are tried: the edges up are those down, or one
 * half is found first and the other avoids its links. At a width at which the two searches by themselves do not reach
 * all ranks from any rank there is no tree; so a tree of the first width at which they do is the widest. */
#include "plan/pack/few/few.h"

#include <stdlib.h>
#include <string.h>

struct widest {
	Ctx *ctx;
	const Topology *topo;
	Collective coll;
	int root, max_depth;
	int *uses;		/* of each link, at the current width: 0, 1 or 2 */
	int *opposite;		/* of each link: the widest one back; -1: none */
	int *down, *up;		/* of each rank: the link that enters it, that leaves it; -1: none */
	int *best_down, *best_up, best_root, best_depth;
	int *hops, *queue;
};

/* Breadth-first from the root, or against the links towards it, over links that have a use left beside those of the
 * other half. Hops to the farthest rank; -1: some rank is not reached. */
static int
spread(struct widest *s, int root, bool against, const int *other, int *by)
{
	const Topology *topo = s->topo;
	int n = topo->n_ranks, head = 0, tail = 0;
	const int *first = against ? topo->first_in : topo->first_out, *list = against ? topo->in : topo->out;
	memset(s->hops, -1, (size_t)n * sizeof *s->hops);
	memset(by, -1, (size_t)n * sizeof *by);
	s->hops[root] = 0;
	s->queue[tail++] = root;
	while (head < tail) {
		int u = s->queue[head++];
		for (int i = first[u]; i < first[u + 1]; i++) {
			int l = list[i], v = against ? topo->link[l].from : topo->link[l].to;
			bool taken = other && other[against ? topo->link[l].to : topo->link[l].from] == l;
			if (s->hops[v] >= 0 || s->uses[l] < (taken ? 2 : 1))
				continue;
			s->hops[v] = s->hops[u] + 1;
			by[v] = l;
			s->queue[tail++] = v;
		}
	}
	return tail == n ? s->hops[s->queue[n - 1]] : -1;
}

/* Two halves of this depth, each reaching all ranks, become the best tree if they are less deep. */
static void
consider(struct widest *s, int root, int up, int down)
{
	size_t size = (size_t)s->topo->n_ranks * sizeof *s->up;
	if (up < 0 || down < 0 || up + down > s->max_depth || (s->best_root >= 0 && up + down >= s->best_depth))
		return;
	memcpy(s->best_up, s->up, size);
	memcpy(s->best_down, s->down, size);
	s->best_root = root;
	s->best_depth = up + down;
}

/* Down as it came up, over links with an opposite one. */
static void
try_mirrored(struct widest *s, int root, int *uses)
{
	int depth, *all = s->uses;
	for (int l = 0; l < s->topo->n_links; l++)
		uses[l] = s->opposite[l] >= 0 && all[l] > 0 && all[s->opposite[l]] > 0;
	s->uses = uses;
	depth = spread(s, root, false, NULL, s->down);
	s->uses = all;
	for (int r = 0; r < s->topo->n_ranks; r++)
		s->up[r] = s->down[r] < 0 ? -1 : s->opposite[s->down[r]];
	consider(s, root, depth, depth);
}

/* An allreduce from this root. False: there is none, whatever the two halves share. */
static bool
try_root(struct widest *s, int root, int *work)
{
	int down = spread(s, root, false, NULL, s->down), up = spread(s, root, true, NULL, s->up);
	if (down < 0 || up < 0 || down + up > s->max_depth)
		return false;
	/* by[] of edges up is by the rank that a link leaves, and of edges down by the one that it enters. */
	consider(s, root, spread(s, root, true, s->down, s->up), down);
	up = spread(s, root, true, NULL, s->up);
	consider(s, root, up, spread(s, root, false, s->up, s->down));
	try_mirrored(s, root, work);
	return true;
}

/* One use for each time that the link is at least so wide; width: twice the rate. */
static void
open_links(struct widest *s, int64_t width)
{
	for (int l = 0; l < s->topo->n_links; l++) {
		int64_t uses = 2 * s->topo->link[l].capacity / width;
		s->uses[l] = uses < 2 ? (int)uses : 2;
	}
}

/* The best tree of this width, if one is found. False: there is none. */
static bool
try_width(struct widest *s, int64_t width, int *work)
{
	bool possible = false;
	open_links(s, width);
	for (int r = 0; r < s->topo->n_ranks; r++) {
		if (s->coll == ALLREDUCE) {
			possible = try_root(s, r, work) || possible;
		} else if (r == s->root) {
			bool against = s->coll == REDUCE;
			int depth = spread(s, r, against, NULL, against ? s->up : s->down);
			consider(s, r, against ? depth : 0, against ? 0 : depth);
			possible = depth >= 0 && depth <= s->max_depth;
		}
	}
	return possible;
}

static int
by_width(const void *a, const void *b)
{
	const int64_t *v = a, *w = b;
	return (*v < *w) - (*v > *w);
}

/* Twice the rates that a tree can have, the highest first: those of a link that is used once, or twice. */
static Status
list_widths(struct widest *s, const Frac *least, int64_t **out, int *n)
{
	Frac twice;
	*n = 0;
	TRY(TEMP(s->ctx, *out, 2 * s->topo->n_links));
	if (least) {
		if (frac_mul(*least, (Frac){ 2, 1 }, &twice) && twice.den == 1 && frac_fits(twice))
			(*out)[(*n)++] = (int64_t)twice.num;
		return OK;
	}
	for (int l = 0; l < s->topo->n_links; l++) {
		(*out)[(*n)++] = 2 * s->topo->link[l].capacity;
		if (s->coll == ALLREDUCE)
			(*out)[(*n)++] = s->topo->link[l].capacity;
	}
	qsort(*out, (size_t)*n, sizeof **out, by_width);
	return OK;
}

static Status
make_half(const struct widest *s, Collective coll, const int *by, Tree *out)
{
	Edge *edge;
	int n = 0, *link;
	TRY(NEW(s->ctx, link, s->topo->n_ranks));
	TRY(TEMP(s->ctx, edge, s->topo->n_ranks));
	for (int r = 0; r < s->topo->n_ranks; r++) {
		if (by[r] < 0)
			continue;
		link[n] = by[r];
		edge[n] = (Edge){ s->topo->link[by[r]].from, s->topo->link[by[r]].to, 1, &link[n] };
		n++;
	}
	return tree_arrange(s->ctx, s->topo->n_ranks, coll, s->best_root, edge, NULL, n, out);
}

static Status
make_packing(const struct widest *s, int64_t width, Packing **out)
{
	Packing *pack;
	Tree up = { 0 }, down = { 0 };
	TRY(pack_new(s->ctx, 1, false, &pack));
	if (s->coll != BROADCAST)
		TRY(make_half(s, REDUCE, s->best_up, &up));
	if (s->coll != REDUCE)
		TRY(make_half(s, BROADCAST, s->best_down, &down));
	pack->tree[0] = (Tree){ .root = s->best_root, .n_down = down.n_down, .n_up = up.n_up, .down = down.down,
	    .up = up.up };
	pack->n_trees = 1;
	pack->weight[0] = 1;
	if (!frac_make(width, 2, &pack->unit))
		return OK;
	TRY(pack_check(s->ctx, s->topo, pack));
	*out = pack;
	return OK;
}

static Status
widest_new(Ctx *ctx, const Topology *topo, const Ask *ask, struct widest *s)
{
	int n = topo->n_ranks;
	*s = (struct widest){ .ctx = ctx, .topo = topo, .coll = ask->coll, .root = ask->root, .best_root = -1,
	    .max_depth = ask->max_depth ? ask->max_depth : 2 * n };
	TRY(TEMP(ctx, s->uses, topo->n_links));
	TRY(TEMP(ctx, s->opposite, topo->n_links));
	TRY(TEMP(ctx, s->down, n));
	TRY(TEMP(ctx, s->up, n));
	TRY(TEMP(ctx, s->best_down, n));
	TRY(TEMP(ctx, s->best_up, n));
	TRY(TEMP(ctx, s->hops, n));
	TRY(TEMP(ctx, s->queue, n));
	for (int l = 0; l < topo->n_links; l++) {
		s->opposite[l] = -1;
		for (int i = topo->first_out[topo->link[l].to]; i < topo->first_out[topo->link[l].to + 1]; i++) {
			int m = topo->out[i], known = s->opposite[l];
			if (topo->link[m].to == topo->link[l].from
			    && (known < 0 || topo->link[m].capacity > topo->link[known].capacity))
				s->opposite[l] = m;
		}
	}
	return OK;
}

Status
pack_widest(Ctx *ctx, const Topology *topo, const Ask *ask, const Frac *least, Packing **out, bool *proven)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct widest s;
	int64_t *width;
	int n, first = 0, last, *work;
	*proven = false;
	if (topo->n_vertices > topo->n_ranks || collective_has_blocks(ask->coll))
		return OK;
	TRY(widest_new(ctx, topo, ask, &s));
	TRY(list_widths(&s, least, &width, &n));
	TRY(TEMP(ctx, work, topo->n_links));
	/* Where a width is possible, any smaller one is. */
	for (last = n - 1; first < last;) {
		int middle = first + (last - first) / 2;
		if (try_width(&s, width[middle], work))
			last = middle;
		else
			first = middle + 1;
	}
	s.best_root = -1;
	for (int i = first; i < n && s.best_root < 0; i++) {
		if (i > first && width[i] == width[i - 1])
			continue;
		if (try_width(&s, width[i], work) && s.best_root >= 0) {
			*proven = width[i] == width[first];
			TRY(make_packing(&s, width[i], out));
		}
	}
	if (s.best_root >= 0)
		(*out)->highest = *proven;
	if (s.best_root >= 0)
		log_verbose(ctx, "widest: one tree%s", *proven ? ", no other has a higher rate" : "");
	arena_release(&ctx->scratch, mark);
	return OK;
}
