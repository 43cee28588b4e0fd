/* Orbits of trees under the permutations of the ranks that keep every capacity, and the root.
 *
 * Not all of these are needed, but some that generate them, and they are found rank by rank, the last first: those that
 * keep ranks 0 .. n are generated already, and for each rank r that these do not take n to, one that keeps 0 .. n - 1
 * and takes n to r is added, if there is any. Of a DGX-1P, 4 generate all 48. */
#include "plan/pack/few/orbits.h"

#include "base/disjoint.h"

struct symmetries {
	struct trees *t;
	int64_t between[TREES_RANKS][TREES_RANKS];	/* capacity from a rank to another */
	int image[TREES_RANKS], point[TREES_RANKS];	/* point: orbits of the ranks, as sets */
};

/* Each leads to the first of its set. */
static void
join(int *set, int a, int b)
{
	a = set_root(set, a);
	b = set_root(set, b);
	if (a < b)
		set[b] = a;
	else
		set[a] = b;
}

static void
finish(int *set, int n)
{
	for (int a = 0; a < n; a++)
		set[a] = set[set[a]];
}

static Status
singles(Ctx *ctx, int n, int **set)
{
	TRY(TEMP(ctx, *set, n));
	for (int a = 0; a < n; a++)
		(*set)[a] = a;
	return OK;
}

static int
tree_number(const struct trees *t, uint64_t rows)
{
	int lo = 0, hi = t->n - 1;
	while (lo < hi) {
		int mid = (lo + hi) / 2;
		if (t->rows[mid] < rows)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static void
map_rows(const struct trees *t, const int *image, uint64_t *row_image)
{
	for (int row = 0; row < t->n_rows; row++) {
		const Link *link = &t->topo->link[t->there[row]];
		for (int l = 0; l < t->topo->n_links; l++)
			if (t->topo->link[l].from == image[link->from] && t->topo->link[l].to == image[link->to])
				row_image[row] = UINT64_C(1) << t->row_of[l];
	}
}

/* A tree and its image are in one orbit. */
static void
use_symmetry(struct symmetries *s)
{
	struct trees *t = s->t;
	uint64_t row_image[TREES_ROWS];
	map_rows(t, s->image, row_image);
	for (int i = 0; i < t->n; i++) {
		uint64_t rows = 0;
		for (uint64_t rest = t->rows[i]; rest; rest &= rest - 1)
			rows |= row_image[__builtin_ctzll(rest)];
		int other = tree_number(t, rows);
		join(t->orbit, i, other);
		for (int r = 0; t->rooted && r < t->topo->n_ranks; r++)
			join(t->rooted, r * t->n + i, s->image[r] * t->n + other);
	}
	for (int r = 0; r < t->topo->n_ranks; r++)
		join(s->point, r, s->image[r]);
}

/* May the image of rank n be r, by the ranks before n? */
static bool
is_alike(const struct symmetries *s, int n, int r)
{
	bool alike = s->t->root < 0 || (n == s->t->root) == (r == s->t->root);
	for (int m = 0; m < n && alike; m++)
		alike = s->image[m] != r && s->between[n][m] == s->between[r][s->image[m]]
		    && s->between[m][n] == s->between[s->image[m]][r];
	return alike;
}

/* Images of ranks n and after it, if there are any. */
static bool
complete(struct symmetries *s, int n)
{
	if (n == s->t->topo->n_ranks)
		return true;
	for (int r = 0; r < s->t->topo->n_ranks; r++) {
		s->image[n] = r;
		if (is_alike(s, n, r) && complete(s, n + 1))
			return true;
	}
	return false;
}

Status
trees_orbits(struct trees *t)
{
	int n = t->topo->n_ranks;
	struct symmetries s = { .t = t };
	TRY(singles(t->ctx, t->n, &t->orbit));
	if (t->coll == ALLREDUCE)
		TRY(singles(t->ctx, n * t->n, &t->rooted));
	for (int l = 0; l < t->topo->n_links; l++)
		s.between[t->topo->link[l].from][t->topo->link[l].to] += t->topo->link[l].capacity;
	for (int r = 0; r < n; r++)
		s.point[r] = s.image[r] = r;
	for (int v = n - 2; v >= 0; v--)
		for (int r = v + 1; r < n; r++) {
			for (int m = 0; m < v; m++)
				s.image[m] = m;
			s.image[v] = r;
			if (set_root(s.point, v) != set_root(s.point, r) && is_alike(&s, v, r) && complete(&s, v + 1))
				use_symmetry(&s);
		}
	finish(t->orbit, t->n);
	if (t->rooted)
		finish(t->rooted, n * t->n);
	return OK;
}
