/* A depth-first search for k pairs of given weights, one pair after the other, the heaviest first.
 *
 * After each pair, those not yet placed must still fit what is left (pair_slack.c).
 *
 * A half of a pair is a spanning tree with a root. Those that fit are listed; for each half up, the halves down that
 * use the links that are left to it, and no others, come from sets of bits by link.
 *
 * Up to symmetry: automorphisms, and the reversal of all links, with which a half up becomes a half down. The first
 * half is the first of its orbit, and no half of a pair of the same weight is in an earlier orbit. */
#include "base/bits.h"
#include "plan/pack/few/pair_cuts.h"
#include "plan/pack/few/pair_search.h"
#include "plan/pack/few/pair_slack.h"

#include <string.h>

enum { WORD = PAIRS_WORD };

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

/* Halves down that use the links of `need` and none of `closed`, in level->fit; false: none. */
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

/* Pair j has this half up. */
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
	if (j > 0 && !pairs_look_ahead(p, j, remaining))
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
	pairs_measure_waste(p, 0);
	for (int l = 0; l < p->n_links; l++)
		unused += p->waste[0][first->residual[l]];
	if (unused > p->slack)
		return false;
	pairs_measure_uses(p, 0);
	return pairs_look_ahead(p, 0, w->units);
}

void
pairs_place(struct pairs *p)
{
	for (int j = 1; j <= p->k; j++) {
		pairs_measure_waste(p, j);
		pairs_measure_uses(p, j);
	}
	place(p, 0, p->w.units);
}
