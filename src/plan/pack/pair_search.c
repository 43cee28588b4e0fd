/* A depth-first search for k pairs of given weights, one pair after the other, the heaviest first.
 *
 * A pair has 2 (n - 1) edges, so all links together may leave a slack unused, their capacity less 2 (n - 1) units. Of
 * a residual capacity r, pairs not yet placed can use no more than the largest sum of their weights, each 0, 1 or 2
 * times, that is at most r. What must stay unused may not exceed the slack in total. So each link can be used by a
 * pair 0, 1 or 2 times or not, and as a rule much is excluded at once: a pair whose links do not connect all ranks ends
 * a branch, and so does one that would have to use too many.
 *
 * A half of a pair is a spanning tree with a root. Those that fit are listed; for each way up, the ways down that use
 * the links that are left to it, and no others, come from sets of bits by link.
 *
 * Up to symmetry: automorphisms, and the reversal of all links, with which a way up becomes a way down. The first half
 * is the first of its orbit, and no half of a pair of the same weight is in an earlier orbit. */
#include "plan/pack/pair_search.h"
#include "base/bits.h"

#include <string.h>

enum { WORD = PAIRS_WORD, NO_USE = 1 << 20, DEGREE_BITS = PAIRS_DEGREE_BITS, DEGREE_TOP = 1 << (DEGREE_BITS - 1) };

/* ---- what stays unused ---- */

/* Of a residual capacity, by the sums of weights j .. k - 1, each at most twice, less those of pair i. */
static void
measure(const struct pairs *p, int j, int i, int *waste)
{
	bool sum[PAIRS_UNITS + 1] = { true };
	for (; j < p->k; j++)
		for (int times = 0; times < 2 && j != i; times++)
			for (int s = p->top; s >= p->w.weight[j]; s--)
				sum[s] = sum[s] || sum[s - p->w.weight[j]];
	for (int r = 0, best = 0; r <= p->top; r++) {
		best = sum[r] ? r : best;
		waste[r] = r - best;
	}
}

/* What else stays unused of a link, of pairs j .. k - 1, if pair i uses it so often. */
static void
measure_uses(struct pairs *p, int j, int i)
{
	int without[PAIRS_UNITS + 1];
	measure(p, j, i, without);
	for (int u = 0; u < 3; u++)
		for (int r = 0; r <= p->top; r++) {
			int left = r - u * p->w.weight[i];
			p->extra[j][i][u][r] = left < 0 ? NO_USE : without[left] - p->waste[j][r];
		}
}

/* Do these links lead from rank 0 to all? at: links by the rank that they are gone from; far: the ranks that they lead
 * to. */
static bool
reaches_all(const struct pairs *p, uint64_t links, const uint64_t *at, const unsigned char *far)
{
	unsigned all = (1u << p->n) - 1, reached = 1, todo = 1;
	while (todo && reached != all) {
		unsigned found = 0;
		for (uint64_t rest = links & at[__builtin_ctz(todo)]; rest; rest &= rest - 1)
			found |= 1u << far[__builtin_ctzll(rest)];
		todo = (todo & (todo - 1)) | (found & ~reached);
		reached |= found;
	}
	return reached == all;
}

/* Links by what is left of them. */
struct residuals {
	int n, units[PAIRS_LINKS];
	uint64_t links[PAIRS_LINKS];
};

static void
find_residuals(const struct pairs *p, int j, struct residuals *left)
{
	unsigned char slot[PAIRS_UNITS + 1];
	memset(slot, 0, (size_t)p->top + 1);
	left->n = 0;
	for (int l = 0; l < p->n_links; l++) {
		int units = p->level[j].residual[l];
		if (slot[units] == 0) {
			left->units[left->n] = units;
			left->links[left->n++] = 0;
			slot[units] = (unsigned char)left->n;
		}
		left->links[slot[units] - 1] |= UINT64_C(1) << l;
	}
}

/* The first of pairs j .. i that has the weight of pair i: both have the same choice of what is left. */
static int
alike(const struct pairs *p, int j, int i)
{
	while (i > j && p->w.weight[i - 1] == p->w.weight[i])
		i--;
	return i;
}

/* Rows that a pair has to use, up and down, and those that it may not use. */
static void
find_rows(const struct pairs *p, uint64_t usable, uint64_t twice, uint64_t *required, uint64_t *closed)
{
	const struct trees *all = p->all;
	*required = *closed = 0;
	for (int row = 0; row < all->n_rows; row++) {
		uint64_t links = UINT64_C(1) << all->there[row] | UINT64_C(1) << all->back[row];
		*closed |= (uint64_t)!(usable & links) << row;
		*required |= (uint64_t)!!(twice & links) << row;
	}
}

/* Spanning trees that pair i can still have, up or down: of those that were left before the last pair. */
static bool
filter_trees(struct pairs *p, int j, int i)
{
	struct pair_level *level = &p->level[j], *last = j > 0 ? level - 1 : NULL;
	const uint64_t *before = last ? last->left[alike(p, j - 1, i)] : p->all->every;
	uint64_t closed, required;
	int n = 0;
	p->steps -= (last ? last->n_left[i] : p->all->n) / 4;
	if (alike(p, j, i) != i) {
		n = level->n_left[i - 1];
	} else {
		find_rows(p, level->usable[i], level->twice[i], &required, &closed);
		for (int block = 0; block < p->all->n_blocks; block++) {
			uint64_t *left = level->left[i] + (size_t)TREES_WORDS * (size_t)block;
			if (trees_fitting(p->all, block, before, required, closed, left))
				for (int word = 0; word < TREES_WORDS; word++)
					n += bits_count(left[word]);
		}
	}
	p->w.choices += last ? 0 : n;
	level->n_left[i] = n;
	return n > 0;
}

/* How often pair i, not yet placed, may use each link. False: it has no place. */
static bool
find_uses(struct pairs *p, int j, int i, const struct residuals *left, int unused)
{
	struct pair_level *level = &p->level[j];
	uint64_t can[3] = { 0, 0, 0 };
	int least = 0, most = 0, edges = 2 * (p->n - 1), spare = p->slack - unused;
	for (int u = 0; u < 3; u++)
		for (int c = 0; c < left->n; c++)
			can[u] |= p->extra[j][i][u][left->units[c]] <= spare ? left->links[c] : 0;
	uint64_t twice = can[2] & ~can[1] & ~can[0], once = can[1] & ~can[0], usable = can[1] | can[2];
	least = bits_count(once) + 2 * bits_count(twice);
	most = 2 * bits_count(can[2]) + bits_count(can[1] & ~can[2]);
	if ((can[0] | usable) != p->every || least > edges || most < edges || !reaches_all(p, usable, p->out_of, p->to)
	    || !reaches_all(p, usable, p->into, p->from))
		return false;
	if (i == j)
		memcpy(level->can, can, sizeof can);
	level->usable[i] = usable;
	level->twice[i] = twice;
	return true;
}

/* Sets with rank r, of those without it or a later one. between: capacity that joins a rank with rank r, both ways. */
static void
add_rank(int16_t *cut, int r, int16_t out, const int16_t *between)
{
	int16_t inside[PAIRS_CUTS / 2] = { 0 };
	int n = 1 << r;
	for (int m = 0; m < r; m++)
		for (int side = 0; side < 1 << m; side++)
			inside[side + (1 << m)] = (int16_t)(inside[side] + between[m]);
	for (int side = 0; side < n; side++)
		cut[n + side] = (int16_t)(cut[side] + out - inside[side]);
}

/* The residual capacity that leaves each set of ranks. False: less than the remaining pairs need. */
static bool
find_cuts(struct pairs *p, int j, int remaining)
{
	struct pair_level *level = &p->level[j];
	int16_t between[TREES_RANKS][TREES_RANKS] = { 0 }, out[TREES_RANKS] = { 0 }, least = INT16_MAX;
	int all = (1 << p->n) - 1;
	for (int l = 0; l < p->n_links; l++) {
		int16_t units = (int16_t)level->residual[l];
		out[p->from[l]] += units;
		between[p->from[l]][p->to[l]] += units;
		between[p->to[l]][p->from[l]] += units;
	}
	p->steps -= all / 4;
	level->cut[0] = 0;
	for (int r = 0; r < p->n; r++)
		add_rank(level->cut, r, out[r], between[r]);
	for (int side = 1; side < all; side++)
		least = level->cut[side] < least ? level->cut[side] : least;
	return least >= remaining;
}

/* False: one of pairs j .. k - 1 has no place. */
static bool
look_ahead(struct pairs *p, int j, int remaining)
{
	struct residuals left;
	int unused = 0;
	find_residuals(p, j, &left);
	for (int c = 0; c < left.n; c++)
		unused += p->waste[j][left.units[c]] * bits_count(left.links[c]);
	if (unused > p->slack)
		return false;
	for (int i = j; i < p->k; i++) {
		p->steps -= 2 * p->n_links;
		if (alike(p, j, i) == i && !find_uses(p, j, i, &left, unused))
			return false;
	}
	if (!find_cuts(p, j, remaining))
		return false;
	for (int i = j; i < p->k; i++)
		if (!filter_trees(p, j, i))
			return false;
	return true;
}

/* ---- the search ---- */

static int
orbit(const struct pairs *p, int root, int tree)
{
	return p->all->rooted[pair_place(p, root, tree)];
}

static bool
is_earlier(const struct pairs *p, int j, int root, int tree)
{
	return j > 0 && p->w.weight[j] == p->w.weight[0]
	    && orbit(p, root, tree) < orbit(p, p->pick[0].root, p->pick[0].up);
}

/* Up to symmetry; and pairs of equal weight ascend. */
static bool
is_redundant(const struct pairs *p, int j, int root, int tree)
{
	const struct pick *before = &p->pick[j > 0 ? j - 1 : 0];
	if (j == 0)
		return orbit(p, root, tree) != pair_place(p, root, tree);
	if (j > 1 && p->w.weight[j] == p->w.weight[j - 1]
	    && pair_place(p, root, tree) < pair_place(p, before->root, before->up))
		return true;
	return is_earlier(p, j, root, tree);
}

/* Degrees of spanning trees, in DEGREE_BITS each, that leave later pairs a link out of each rank, and into it. Away
 * from a root or towards it, a tree and one edge of the other half use as many links of a rank as it has edges. */
static uint64_t
limit_degrees(const struct pairs *p, int j, bool into, int remaining)
{
	uint64_t limits = 0;
	int w = p->w.weight[j];
	for (int r = 0; r < p->n; r++) {
		unsigned side = into ? ((1u << p->n) - 1) & ~(1u << r) : 1u << r;
		int most = (p->level[j].cut[side] - (remaining - w)) / w;
		most = most < 0 ? 0 : most < DEGREE_TOP ? most : DEGREE_TOP - 1;
		limits |= (uint64_t)(most | DEGREE_TOP) << r * DEGREE_BITS;
	}
	return limits;
}

static bool
has_degrees(const struct pairs *p, int tree, uint64_t limits)
{
	uint64_t tops = limits & p->tops;
	return ((limits - p->degrees[tree]) & tops) == tops;
}

/* Trees that pair j may take from some root. */
static void
limit_trees(struct pairs *p, int j, int remaining)
{
	struct pair_level *level = &p->level[j];
	uint64_t into = limit_degrees(p, j, true, remaining), out_of = limit_degrees(p, j, false, remaining);
	level->n_up_trees = level->n_down_trees = 0;
	for (int word = 0; WORD * word < p->all->n; word++)
		for (uint64_t rest = level->left[j][word]; rest; rest &= rest - 1) {
			int t = WORD * word + __builtin_ctzll(rest);
			if (has_degrees(p, t, into))
				level->up_tree[level->n_up_trees++] = t;
			if (has_degrees(p, t, out_of))
				level->down_tree[level->n_down_trees++] = t;
		}
	p->steps -= level->n_left[j] / 4;
}

/* Halves of pair j from this root. */
static void
list_halves(struct pairs *p, int j, int root)
{
	struct pair_level *level = &p->level[j];
	uint64_t closed = ~(level->can[1] | level->can[2]);
	level->n_up = level->n_down = 0;
	for (int at = 0; at < level->n_up_trees; at++) {
		int t = level->up_tree[at], place = pair_place(p, root, t);
		if (!(p->up[place] & closed) && !(level->twice[j] & ~p->up[place]) && p->height[place] < p->max_depth
		    && !is_redundant(p, j, root, t))
			level->up[level->n_up++] = t;
	}
	for (int at = 0; at < level->n_down_trees && level->n_up > 0; at++) {
		int t = level->down_tree[at], place = pair_place(p, root, t);
		if (!(p->down[place] & closed) && !(level->twice[j] & ~p->down[place])
		    && p->height[place] < p->max_depth && !is_earlier(p, j, root, t))
			level->down[level->n_down++] = t;
	}
	p->steps -= level->n_up_trees + (level->n_up > 0 ? level->n_down_trees : 0);
}

static void
index_down(struct pairs *p, struct pair_level *level, int root)
{
	int words = level->n_down / WORD + 1;
	for (int l = 0; l < p->n_links; l++)
		memset(level->with[l], 0, (size_t)words * sizeof *level->with[l]);
	for (int y = 0; y < level->n_down; y++)
		for (uint64_t rest = p->down[pair_place(p, root, level->down[y])]; rest; rest &= rest - 1)
			level->with[__builtin_ctzll(rest)][y / WORD] |= UINT64_C(1) << y % WORD;
	p->steps -= (int64_t)p->n_links * words + (int64_t)level->n_down * p->n;
}

/* Ways down that use the links of `need` and none of `closed`, in level->fit; false: none. */
static bool
find_down(struct pairs *p, struct pair_level *level, int root, uint64_t need, uint64_t closed)
{
	int words = level->n_down / WORD + 1;
	p->steps -= 4;
	if (need & (closed | p->into[root]))
		return false;
	for (int v = 0; v < p->n; v++)
		if ((need & p->into[v]) & ((need & p->into[v]) - 1))
			return false;
	memset(level->fit, 0xff, (size_t)words * sizeof *level->fit);
	for (uint64_t rest = need; rest; rest &= rest - 1)
		for (int i = 0; i < words; i++)
			level->fit[i] &= level->with[__builtin_ctzll(rest)][i];
	for (uint64_t rest = closed & p->every; rest; rest &= rest - 1)
		for (int i = 0; i < words; i++)
			level->fit[i] &= ~level->with[__builtin_ctzll(rest)][i];
	level->fit[words - 1] &= (UINT64_C(1) << level->n_down % WORD) - 1;
	p->steps -= (int64_t)words * (bits_count(need) + bits_count(closed & p->every)) / 2;
	for (int i = 0; i < words; i++)
		if (level->fit[i])
			return true;
	return false;
}

/* What is left of links after pair j; false: too much stays unused. */
static bool
subtract(struct pairs *p, int j, uint64_t up, uint64_t down)
{
	const struct pair_level *level = &p->level[j];
	struct pair_level *next = &p->level[j + 1];
	int unused = 0;
	p->steps -= p->n_links / 4;
	for (int l = 0; l < p->n_links; l++) {
		int uses = (int)((up >> l & 1) + (down >> l & 1));
		unused += p->waste[j][level->residual[l]] + p->extra[j][j][uses][level->residual[l]];
		next->residual[l] = level->residual[l] - uses * p->w.weight[j];
	}
	return unused <= p->slack;
}

static void place(struct pairs *p, int j, int remaining);

/* Pair j goes up this way. */
static void
place_up(struct pairs *p, int j, int root, int tree, int remaining)
{
	struct pair_level *level = &p->level[j];
	int at = pair_place(p, root, tree);
	uint64_t up = p->up[at];
	uint64_t need = (~level->can[0] & ~up) | (~level->can[1] & up);
	uint64_t closed = (~level->can[1] & ~up) | (~level->can[2] & up);
	if (!find_down(p, level, root, need & p->every, closed))
		return;
	for (int y = 0; y < level->n_down && !p->found && p->steps > 0; y++) {
		int down = level->down[y], other = pair_place(p, root, down);
		if (!(level->fit[y / WORD] >> y % WORD & 1) || p->height[at] + p->height[other] > p->max_depth
		    || (j == 0 && orbit(p, root, down) < at))
			continue;
		if (!subtract(p, j, up, p->down[other]))
			continue;
		p->pick[j] = (struct pick){ root, tree, down };
		place(p, j + 1, remaining - p->w.weight[j]);
	}
}

/* Place pairs j .. k - 1, which have `remaining` units of weight together. */
static void
place(struct pairs *p, int j, int remaining)
{
	struct pair_level *level = &p->level[j];
	if (j == p->k) {
		p->found = true;
		return;
	}
	if (out_of_time(p->ctx, 2000))
		p->steps = 0;
	if (j > 0 && !look_ahead(p, j, remaining))
		return;
	limit_trees(p, j, remaining);
	for (int root = 0; root < p->n && !p->found && p->steps > 0; root++) {
		list_halves(p, j, root);
		if (level->n_up == 0 || level->n_down == 0)
			continue;
		index_down(p, level, root);
		for (int x = 0; x < level->n_up && !p->found && p->steps > 0; x++)
			place_up(p, j, root, level->up[x], remaining);
	}
}

bool
pairs_begin(struct pairs *p, const struct weights *w)
{
	struct pair_level *first = &p->level[0];
	int all = 0;
	p->w = *w;
	p->w.choices = 0;
	p->found = false;
	p->top = 0;
	for (int l = 0; l < p->n_links; l++) {
		first->residual[l] = p->capacity[l] * w->den;
		all += first->residual[l];
		p->top = first->residual[l] > p->top ? first->residual[l] : p->top;
	}
	p->slack = all - 2 * (p->n - 1) * w->units;
	if (p->slack < 0)
		return false;
	for (int j = 0; j <= p->k; j++) {
		measure(p, j, -1, p->waste[j]);
		for (int i = j; i < p->k; i++)
			measure_uses(p, j, i);
	}
	return look_ahead(p, 0, w->units);
}

void
pairs_place(struct pairs *p)
{
	place(p, 0, p->w.units);
}
