/* A depth-first search for k pairs of given weights, one pair after the other, the heaviest first.
 *
 * A pair has 2 (n - 1) edges, so all links together may leave a slack unused, their capacity less 2 (n - 1) units. Of
 * a residual capacity r, pairs not yet placed can use no more than the largest sum of their weights, each 0, 1 or 2
 * times, that is at most r. What must stay unused may not exceed the slack in total. So each link can be used by a
 * pair 0, 1 or 2 times or not, and as a rule much is excluded at once: a pair whose links do not connect all ranks ends
 * a branch, and so does one that would have to use too many.
 *
 * What is left of the links out of each set of ranks, and within it, limits the trees further (pair_cuts.c).
 *
 * A half of a pair is a spanning tree with a root. Those that fit are listed; for each way up, the ways down that use
 * the links that are left to it, and no others, come from sets of bits by link.
 *
 * Up to symmetry: automorphisms, and the reversal of all links, with which a way up becomes a way down. The first half
 * is the first of its orbit, and no half of a pair of the same weight is in an earlier orbit. */
#include "base/bits.h"
#include "plan/pack/few/pair_cuts.h"
#include "plan/pack/few/pair_search.h"

#include <string.h>

enum { WORD = PAIRS_WORD, NO_USE = 1 << 20 };

/* ---- what stays unused ---- */

/* Sums of weights up to PAIRS_UNITS: a set of bits. */
struct sums {
	uint64_t word[PAIRS_UNITS / WORD + 1];
};

/* Each sum, and with this weight once more. */
static void
add_weight(struct sums *sums, int weight)
{
	int words = weight / WORD, bits = weight % WORD;
	for (int i = PAIRS_UNITS / WORD; i >= words; i--) {
		uint64_t moved = sums->word[i - words] << bits;
		if (bits && i > words)
			moved |= sums->word[i - words - 1] >> (WORD - bits);
		sums->word[i] |= moved;
	}
}

/* Of a residual capacity, by the sums of weights j .. k - 1, each at most twice, less those of pair i. */
static void
measure(const struct pairs *p, int j, int i, int *waste)
{
	struct sums sums = { { 1 } };
	for (; j < p->k; j++)
		for (int times = 0; times < 2 && j != i; times++)
			add_weight(&sums, p->w.weight[j]);
	for (int r = 0, best = 0; r <= p->top; r++) {
		best = sums.word[r / WORD] >> r % WORD & 1 ? r : best;
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

/* Links that have this number of units left. slot: of each number of units, its place and one. */
static void
add_residual(struct residuals *left, unsigned char *slot, int units, uint64_t links)
{
	if (slot[units] == 0) {
		left->units[left->n] = units;
		left->links[left->n++] = 0;
		slot[units] = (unsigned char)left->n;
	}
	left->links[slot[units] - 1] |= links;
}

/* What the last pair has left; before the first, what links have. */
static void
find_residuals(struct pairs *p, int j)
{
	struct residuals *left = &p->level[j].left_of;
	unsigned char slot[PAIRS_UNITS + 1];
	memset(slot, 0, (size_t)p->top + 1);
	left->n = 0;
	if (j == 0) {
		for (int l = 0; l < p->n_links; l++)
			add_residual(left, slot, p->level[0].residual[l], UINT64_C(1) << l);
		return;
	}
	const struct pick *pick = &p->pick[j - 1];
	const struct residuals *before = &p->level[j - 1].left_of;
	uint64_t up = p->up[pair_place(p, pick->root, pick->up)], down = p->down[pair_place(p, pick->root, pick->down)];
	uint64_t uses[] = { ~(up | down), up ^ down, up & down };
	for (int c = 0; c < before->n; c++)
		for (int u = 0; u < 3; u++)
			if (before->links[c] & uses[u])
				add_residual(left, slot, before->units[c] - u * p->w.weight[j - 1],
				    before->links[c] & uses[u]);
}

/* The first of pairs j .. i that has the weight of pair i: both have the same choice of what is left. */
static int
first_equal(const struct pairs *p, int j, int i)
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
	const uint64_t *before = last ? last->left[first_equal(p, j - 1, i)] : p->all->every;
	uint64_t closed, required;
	int n = 0;
	p->steps -= (last ? last->n_left[i] : p->all->n) / 4;
	if (first_equal(p, j, i) != i) {
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

/* Of these, those that fall apart into few enough parts, up or down. */
static bool
filter_parts(struct pairs *p, int j, int i)
{
	struct pair_level *level = &p->level[j];
	struct pair_limits limits;
	struct part_limits up, down;
	int n = 0;
	pairs_limit(p, level, p->w.weight[i], &limits);
	pairs_limit_up(p, &limits, &up);
	pairs_limit_down(p, &limits, -1, &down);
	p->steps -= 2 * p->half + level->n_left[i] * (up.n + down.n) / 4;
	for (int word = 0; WORD * word < p->all->n; word++)
		for (uint64_t rest = level->left[i][word]; rest; rest &= rest - 1) {
			int t = WORD * word + __builtin_ctzll(rest);
			if (pairs_fit_parts(p, t, &up) || pairs_fit_parts(p, t, &down))
				n++;
			else
				level->left[i][word] &= ~(rest & -rest);
		}
	level->n_left[i] = n;
	return n > 0;
}

/* False: one of pairs j .. k - 1 has no place. */
static bool
look_ahead(struct pairs *p, int j, int remaining)
{
	const struct residuals *left = &p->level[j].left_of;
	int unused = 0;
	find_residuals(p, j);
	for (int c = 0; c < left->n; c++)
		unused += p->waste[j][left->units[c]] * bits_count(left->links[c]);
	if (unused > p->slack)
		return false;
	for (int i = j; i < p->k; i++) {
		p->steps -= 2 * p->n_links;
		if (first_equal(p, j, i) == i && !find_uses(p, j, i, left, unused))
			return false;
	}
	if (!pairs_find_cuts(p, j, remaining, unused))
		return false;
	for (int i = j; i < p->k; i++)
		if (!filter_trees(p, j, i))
			return false;
	for (int i = j + 1; i < p->k && j > 0; i++)
		if (first_equal(p, j, i) == i && !filter_parts(p, j, i))
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

/* Trees that pair j may take from some root. */
static void
limit_trees(struct pairs *p, int j)
{
	struct pair_level *level = &p->level[j];
	struct part_limits up, down;
	pairs_limit(p, level, p->w.weight[j], &level->limits);
	pairs_limit_up(p, &level->limits, &up);
	pairs_limit_down(p, &level->limits, -1, &down);
	level->n_up_trees = level->n_down_trees = 0;
	for (int word = 0; WORD * word < p->all->n; word++)
		for (uint64_t rest = level->left[j][word]; rest; rest &= rest - 1) {
			int t = WORD * word + __builtin_ctzll(rest);
			if (pairs_fit_parts(p, t, &up))
				level->up_tree[level->n_up_trees++] = t;
			if (pairs_fit_parts(p, t, &down))
				level->down_tree[level->n_down_trees++] = t;
		}
	p->steps -= 2 * p->half + level->n_left[j] * (up.n + down.n) / 4;
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

/* What stays unused, by how often pair j uses a link. */
static void
measure_links(struct pairs *p, int j)
{
	struct pair_level *level = &p->level[j];
	const int (*extra)[PAIRS_UNITS + 1] = p->extra[j][j];
	level->skip = 0;
	for (int l = 0; l < p->n_links; l++) {
		int units = level->residual[l];
		level->skip += p->waste[j][units] + extra[0][units];
		level->more[0][l] = extra[1][units] - extra[0][units];
		level->more[1][l] = extra[2][units] - extra[0][units];
	}
}

/* Has a pair that uses the same links been in this place before, after the same earlier pairs? Pairs ascend, and later
 * ones only narrow what is redundant: so what comes after it has been seen, too. A cache: it forgets. */
static bool
is_repeated(struct pair_level *level, uint64_t once, uint64_t twice)
{
	uint64_t hash = (once * UINT64_C(0x9e3779b97f4a7c15)) ^ (twice * UINT64_C(0xc2b2ae3d27d4eb4f));
	struct usage *seen = &level->seen[hash >> (64 - PAIRS_SEEN_BITS)];
	if (seen->once == once && seen->twice == twice && seen->node == level->node)
		return true;
	*seen = (struct usage){ once, twice, level->node };
	return false;
}

/* What is left of links after pair j; false: too much stays unused, or it is redundant. */
static bool
subtract(struct pairs *p, int j, uint64_t up, uint64_t down)
{
	const struct pair_level *level = &p->level[j];
	struct pair_level *next = &p->level[j + 1];
	int unused = level->skip;
	p->steps -= p->n_links / 4;
	if (is_repeated(&p->level[j], up ^ down, up & down))
		return false;
	for (uint64_t rest = up ^ down; rest; rest &= rest - 1)
		unused += level->more[0][__builtin_ctzll(rest)];
	for (uint64_t rest = up & down; rest; rest &= rest - 1)
		unused += level->more[1][__builtin_ctzll(rest)];
	if (unused > p->slack)
		return false;
	memcpy(next->residual, level->residual, (size_t)p->n_links * sizeof *next->residual);
	for (uint64_t rest = up ^ down; rest; rest &= rest - 1)
		next->residual[__builtin_ctzll(rest)] -= p->w.weight[j];
	for (uint64_t rest = up & down; rest; rest &= rest - 1)
		next->residual[__builtin_ctzll(rest)] -= 2 * p->w.weight[j];
	return true;
}

static void place(struct pairs *p, int j, int remaining);

/* Pair j goes up this way. */
static void
place_up(struct pairs *p, int j, int root, int tree, int remaining)
{
	struct pair_level *level = &p->level[j];
	int at = pair_place(p, root, tree);
	struct part_limits limits;
	uint64_t up = p->up[at];
	uint64_t need = (~level->can[0] & ~up) | (~level->can[1] & up);
	uint64_t closed = (~level->can[1] & ~up) | (~level->can[2] & up);
	if (!find_down(p, level, root, need & p->every, closed))
		return;
	pairs_limit_down(p, &level->limits, tree, &limits);
	p->steps -= p->half / 8;
	for (int y = 0; y < level->n_down && !p->found && p->steps > 0; y++) {
		int down = level->down[y], other = pair_place(p, root, down);
		if (!(level->fit[y / WORD] >> y % WORD & 1) || p->height[at] + p->height[other] > p->max_depth
		    || (j == 0 && orbit(p, root, down) < at))
			continue;
		p->steps -= limits.n;
		if (!pairs_fit_parts(p, down, &limits) || !subtract(p, j, up, p->down[other]))
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
	level->node = ++p->nodes;
	limit_trees(p, j);
	measure_links(p, j);
	for (int root = 0; root < p->n && !p->found && p->steps > 0; root++) {
		list_halves(p, j, root);
		if (level->n_up == 0 || level->n_down == 0)
			continue;
		index_down(p, level, root);
		for (int x = 0; x < level->n_up && !p->found && p->steps > 0; x++)
			place_up(p, j, root, level->up[x], remaining);
	}
}

static void
measure_pairs(struct pairs *p, int j)
{
	for (int i = j; i < p->k; i++)
		measure_uses(p, j, i);
}

bool
pairs_begin(struct pairs *p, const struct weights *w)
{
	struct pair_level *first = &p->level[0];
	int all = 0, unused = 0;
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
	measure(p, 0, -1, p->waste[0]);
	for (int l = 0; l < p->n_links; l++)
		unused += p->waste[0][first->residual[l]];
	if (unused > p->slack)
		return false;
	measure_pairs(p, 0);
	return look_ahead(p, 0, w->units);
}

void
pairs_place(struct pairs *p)
{
	for (int j = 1; j <= p->k; j++) {
		measure(p, j, -1, p->waste[j]);
		measure_pairs(p, j);
	}
	place(p, 0, p->w.units);
}
