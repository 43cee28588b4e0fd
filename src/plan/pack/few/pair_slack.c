/* What pairs that are not yet placed can still use of the links.
 *
 * A pair has 2 (n - 1) edges, so all links together may leave a slack unused, their capacity less 2 (n - 1) units. Of
 * a residual capacity r, pairs not yet placed can use no more than the largest sum of their weights, each 0, 1 or 2
 * times, that is at most r. What must stay unused may not exceed the slack in total. So each link can be used by a
 * pair 0, 1 or 2 times or not, and as a rule much is excluded soon: a pair whose links do not connect all ranks ends
 * a branch, and so does one that would have to use too many.
 *
 * What is left of the links out of each set of ranks, and within it, limits the trees further (pair_cuts.c). */
#include "base/bits.h"
#include "plan/pack/few/pair_cuts.h"
#include "plan/pack/few/pair_slack.h"

#include <string.h>

enum { WORD = PAIRS_WORD, NO_USE = 1 << 20 };

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

void
pairs_measure_waste(struct pairs *p, int j)
{
	measure(p, j, -1, p->waste[j]);
}

void
pairs_measure_uses(struct pairs *p, int j)
{
	for (int i = j; i < p->k; i++)
		measure_uses(p, j, i);
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

bool
pairs_look_ahead(struct pairs *p, int j, int remaining)
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
