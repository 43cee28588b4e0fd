/* All trees of a collective over few ranks: arborescences out of the root (into it), or spanning trees for an
 * allreduce. */
#include "base/array.h"
#include "plan/pack/few/enumerate.h"
#include "plan/pack/few/few.h"
#include "plan/pack/few/lanes.h"

/* ---- rows ---- */

/* False: parallel links, links without an equal in the other direction, or too many of them. */
static bool
make_rows(struct trees *t)
{
	const Topology *topo = t->topo;
	int64_t unit = topo_link_unit(topo);
	for (int l = 0; l < topo->n_links; l++) {
		const Link *link = &topo->link[l];
		int row = -1;
		for (int m = 0; m < l; m++) {
			const Link *other = &topo->link[m];
			if (other->from == link->from && other->to == link->to)
				return false;
			if (t->coll == ALLREDUCE && other->from == link->to && other->to == link->from) {
				if (other->capacity != link->capacity)
					return false;
				row = t->row_of[m];
				t->back[row] = l;
			}
		}
		if (row < 0) {
			if (t->n_rows == TREES_ROWS)
				return false;
			row = t->n_rows++;
			t->there[row] = l;
			t->back[row] = -1;
			t->capacity[row] = link->capacity / unit;
			if (t->capacity[row] > TREES_CAPACITY)
				return false;
		}
		t->row_of[l] = row;
		t->near[l] = (unsigned char)(t->coll == REDUCE ? link->to : link->from);
		t->far[l] = (unsigned char)(t->coll == REDUCE ? link->from : link->to);
		t->rows_from[t->near[l]] |= UINT64_C(1) << row;
		t->ends[row] = t->near[l] ^ t->far[l];
	}
	for (int row = 0; row < t->n_rows; row++)
		if (t->coll == ALLREDUCE && t->back[row] < 0)
			return false;
	return true;
}

/* ---- trees ---- */

static Status
keep_tree(struct trees *t, uint64_t rows)
{
	t->rows = array_grow(&t->ctx->scratch, t->rows, t->n, &t->room, sizeof *t->rows);
	TRY(array_status(t->ctx, t->rows));
	t->rows[t->n++] = rows;
	return OK;
}

/* Ranks one hop from a rank over these rows. */
static unsigned
next_ranks(const struct trees *t, int rank, uint64_t rows)
{
	unsigned ranks = 0;
	for (uint64_t rest = rows & t->rows_from[rank]; rest; rest &= rest - 1)
		ranks |= 1u << (rank ^ t->ends[__builtin_ctzll(rest)]);
	return ranks;
}

/* Are all ranks reached from those in `reached`, over these rows? */
static bool
reaches_all(const struct trees *t, unsigned reached, uint64_t rows)
{
	unsigned all = (1u << t->topo->n_ranks) - 1;
	for (unsigned left = reached; left && reached != all;) {
		unsigned found = next_ranks(t, __builtin_ctz(left), rows) & ~reached;
		left = (left & (left - 1)) | found;
		reached |= found;
	}
	return reached == all;
}

/* Every arborescence over links that are not closed: with the first link that leaves the ranks reached, and without
 * it. */
static Status
enumerate(struct trees *t, unsigned reached, uint64_t rows, uint64_t closed)
{
	unsigned all = (1u << t->topo->n_ranks) - 1;
	int l = 0;
	while (t->n <= LIMIT_FEW_TREES) {
		if (reached == all)
			return keep_tree(t, rows);
		/* Those before l are closed, or lead to a rank that is reached or from one that is not: that changes
		 * only with the ranks that are reached. */
		while ((closed >> t->row_of[l] & 1) || !(reached >> t->near[l] & 1) || (reached >> t->far[l] & 1))
			l++;
		uint64_t row = UINT64_C(1) << t->row_of[l];
		TRY(enumerate(t, reached | 1u << t->far[l], rows | row, closed));
		closed |= row;
		if (!reaches_all(t, reached, ~closed))
			return OK;
	}
	return OK;
}

static Status
arrange(const struct trees *t, uint64_t rows, Tree *out)
{
	int n = 0;
	Edge *there, *back;
	ArenaMark mark = arena_mark(&t->ctx->scratch);
	TRY(TEMP(t->ctx, there, t->topo->n_ranks));
	TRY(TEMP(t->ctx, back, t->topo->n_ranks));
	for (int row = 0; row < t->n_rows; row++) {
		if (!(rows >> row & 1))
			continue;
		const Link *link = &t->topo->link[t->there[row]];
		there[n] = (Edge){ link->from, link->to, 1, &t->there[row] };
		back[n++] = (Edge){ link->to, link->from, 1, &t->back[row] };
	}
	TRY(tree_arrange(t->ctx, t->topo->n_ranks, t->coll, t->root, there, back, n, out));
	arena_release(&t->ctx->scratch, mark);
	return OK;
}

/* Links in the run arena: a tree outlives the rows. */
static Status
own_links(const struct trees *t, Edge *edge, int n)
{
	int *link;
	TRY(NEW(t->ctx, link, n));
	for (int e = 0; e < n; e++) {
		link[e] = edge[e].link[0];
		edge[e].link = &link[e];
	}
	return OK;
}

/* Trees ascend by their sets of rows, so of the last row long runs of trees have it or have not: most blocks are empty
 * after few rows from the last on. */
bool
trees_fitting(const struct trees *t, int block, const uint64_t *of, uint64_t required, uint64_t closed, uint64_t *fit)
{
	const uint64_t *from = of + (size_t)TREES_WORDS * (size_t)block;
	Words a = words_get(from), b = words_get(from + 2), c = words_get(from + 4), d = words_get(from + 6);
	bool any = words_any(a | b | c | d);
	for (uint64_t rest = required | closed; rest && any;) {
		int row = 63 - __builtin_clzll(rest);
		const uint64_t *with = t->with[row] + (size_t)TREES_WORDS * (size_t)block;
		Words without = words_all(-(closed >> row & 1));
		a &= words_get(with) ^ without;
		b &= words_get(with + 2) ^ without;
		c &= words_get(with + 4) ^ without;
		d &= words_get(with + 6) ^ without;
		any = words_any(a | b | c | d);
		rest ^= UINT64_C(1) << row;
	}
	words_put(fit, a);
	words_put(fit + 2, b);
	words_put(fit + 4, c);
	words_put(fit + 6, d);
	return any;
}

Status
trees_make(const struct trees *t, uint64_t rows, Tree *out)
{
	TRY(arrange(t, rows, out));
	TRY(own_links(t, out->down, out->n_down));
	return own_links(t, out->up, out->n_up);
}

/* An arborescence of links, out of the root (broadcast) or into it (reduce). */
static Status
arrange_half(const struct trees *t, Collective coll, int root, uint64_t links, Tree *out)
{
	Edge edge[TREES_RANKS];
	int n = 0, link[TREES_RANKS];
	for (uint64_t rest = links; rest; rest &= rest - 1) {
		const Link *l = &t->topo->link[__builtin_ctzll(rest)];
		link[n] = __builtin_ctzll(rest);
		edge[n] = (Edge){ l->from, l->to, 1, &link[n] };
		n++;
	}
	TRY(tree_arrange(t->ctx, t->topo->n_ranks, coll, root, edge, NULL, n, out));
	return own_links(t, coll == REDUCE ? out->up : out->down, n);
}

Status
trees_make_pair(const struct trees *t, int root, uint64_t up, uint64_t down, Tree *out)
{
	Tree into, out_of;
	TRY(arrange_half(t, REDUCE, root, up, &into));
	TRY(arrange_half(t, BROADCAST, root, down, &out_of));
	*out = (Tree){ .root = root, .n_down = out_of.n_down, .n_up = into.n_up, .down = out_of.down, .up = into.up };
	return OK;
}

static Status
index_rows(struct trees *t)
{
	t->n_blocks = t->n / TREES_BLOCK + 1;
	TRY(TEMP(t->ctx, t->every, TREES_WORDS * t->n_blocks));
	for (int row = 0; row < t->n_rows; row++)
		TRY(TEMP(t->ctx, t->with[row], TREES_WORDS * t->n_blocks));
	for (int i = 0; i < t->n; i++) {
		t->every[i / 64] |= UINT64_C(1) << i % 64;
		for (uint64_t rest = t->rows[i]; rest; rest &= rest - 1)
			t->with[__builtin_ctzll(rest)][i / 64] |= UINT64_C(1) << i % 64;
	}
	return OK;
}

/* Hops from a rank to those that are farthest away in a tree. */
static int
hops_from(const struct trees *t, int rank, uint64_t rows)
{
	unsigned all = (1u << t->topo->n_ranks) - 1, reached = 1u << rank, last = reached;
	int hops = 0;
	for (; reached != all; hops++) {
		unsigned found = 0;
		for (; last; last &= last - 1)
			found |= next_ranks(t, __builtin_ctz(last), rows);
		last = found & ~reached;
		reached |= last;
	}
	return hops;
}

/* From the centre of a tree to the ranks that are farthest away: as often as its leaves can be taken off, with their
 * edges, until no edge is left. */
static int
hops_from_centre(const struct trees *t, uint64_t rows)
{
	int hops = 0;
	for (; rows; hops++) {
		uint64_t of_leaves = 0;
		for (int rank = 0; rank < t->topo->n_ranks; rank++) {
			uint64_t of = rows & t->rows_from[rank];
			of_leaves |= of & (of - 1) ? 0 : of;
		}
		rows &= ~of_leaves;
	}
	return hops;
}

/* The root of an allreduce is the centre of its tree. */
static Status
measure_depths(struct trees *t)
{
	TRY(TEMP(t->ctx, t->depth, t->n));
	for (int i = 0; i < t->n; i++) {
		int hops = t->root < 0 ? hops_from_centre(t, t->rows[i]) : hops_from(t, t->root, t->rows[i]);
		t->depth[i] = t->coll == ALLREDUCE ? 2 * hops : hops;
	}
	return OK;
}

/* Ascending, by eight bits after the other. */
static Status
sort_trees(struct trees *t)
{
	enum { BITS = 8, KEYS = 1 << BITS };
	uint64_t *to;
	TRY(TEMP(t->ctx, to, t->n));
	for (int shift = 0; shift < t->n_rows; shift += BITS) {
		uint64_t *from = t->rows;
		int first[KEYS + 1] = { 0 };
		for (int i = 0; i < t->n; i++)
			first[(from[i] >> shift) % KEYS + 1]++;
		for (int key = 0; key < KEYS; key++)
			first[key + 1] += first[key];
		for (int i = 0; i < t->n; i++)
			to[first[(from[i] >> shift) % KEYS]++] = from[i];
		t->rows = to;
		to = from;
	}
	return OK;
}

Status
trees_enumerate(Ctx *ctx, const Topology *topo, const Ask *ask, struct trees *out, bool *all)
{
	struct trees *t = out;
	*t = (struct trees){ .ctx = ctx, .topo = topo, .coll = ask->coll, .root = ask->root };
	*all = topo->n_vertices == topo->n_ranks && topo->n_ranks <= TREES_RANKS
	    && topo->n_links <= LIMIT_FEW_LINKS && make_rows(t);
	if (!*all)
		return OK;
	TRY(enumerate(t, 1u << (t->root < 0 ? 0 : t->root), 0, 0));
	*all = t->n <= LIMIT_FEW_TREES;
	if (!*all)
		return OK;
	TRY(sort_trees(t));
	TRY(index_rows(t));
	return measure_depths(t);
}

Status
pack_every(Ctx *ctx, const Topology *topo, const Ask *ask, Packing **out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct trees t;
	bool all;
	Packing *pool = NULL;
	TRY(trees_enumerate(ctx, topo, ask, &t, &all));
	if (all) {
		TRY(pack_new(ctx, t.n, false, &pool));
		pool->unit = FRAC_ONE;
	}
	for (int i = 0; all && i < t.n; i++) {
		if (ask->max_depth && t.depth[i] > ask->max_depth)
			continue;
		TRY(trees_make(&t, t.rows[i], &pool->tree[pool->n_trees]));
		pool->weight[pool->n_trees++] = 1;
	}
	arena_release(&ctx->scratch, mark);
	*out = pool;
	return OK;
}
