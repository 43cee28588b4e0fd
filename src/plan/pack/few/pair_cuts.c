/* Sets of ranks, and what pairs use of the links out of a set S and within it.
 *
 * A pair uses a link out of S and one into it at least: it goes up to its root, and down from there, and either the
 * root is in S or it is not. And it uses at most 2 (|S| - 1) links within S, since each of its halves is a tree; as it
 * has 2 (n - 1) edges, the others use other links. So of the capacity that can be used at all,
 *
 *     out of S, or into it      no less than the weight of all pairs together,
 *     within S                  no more than 2 (|S| - 1) times that weight, and the slack
 *
 * has to be left before each pair is placed.
 *
 * What one half uses, whatever its root: a spanning tree T has n - 1 edges, of which those within S leave its ranks in
 * c_T(S) parts. Its half up has one edge out of S for each part but that of the root; its half down has one into S,
 * likewise. So a pair of T up and U down uses c_T(S) + c_U(rest) - 1 links out of S, of which every
 * pair needs one, and leaves out c_T(S) + c_U(S) - 2 of 2 (|S| - 1) within S. Both are limits on the parts of its
 * halves: by what may be used of the links out of S beyond what pairs need, and what may be left out within S.
 *
 * All sides are computed together: sets without the last rank, and their complements, whose links out are the links
 * into the set. */
#include "base/bits.h"
#include "plan/pack/few/pair_cuts.h"

enum { FREE = INT16_MAX / 2 };	/* of no ranks: without a limit */

/* ---- spanning trees ---- */

/* Links within a set. */
struct inside {
	uint8_t links[TREES_ROWS][PAIRS_CUTS];	/* of a row: 1 or 0 */
	uint8_t most[PAIRS_CUTS];	/* ranks less one */
};

static void
find_inside(const struct pairs *p, struct inside *in)
{
	unsigned all = (1u << p->n) - 1;
	for (unsigned at = 0; at < (all + 1) / 2; at++)
		for (unsigned rest = 0; rest < 2; rest++) {
			unsigned side = rest ? all & ~at : at, to = at + rest * (unsigned)p->half;
			in->most[to] = (uint8_t)(side ? bits_count(side) - 1 : 0);
			for (int row = 0; row < p->all->n_rows; row++) {
				unsigned ends = 1u << p->from[p->all->there[row]] | 1u << p->to[p->all->there[row]];
				in->links[row][to] = (side & ends) == ends;
			}
		}
}

Status
pairs_count_parts(struct pairs *p)
{
	struct inside *in;
	p->half = p->n > 4 ? 1 << (p->n - 1) : BYTES;
	TRY(TEMP(p->ctx, in, 1));
	TRY(TEMP(p->ctx, p->parts, 2 * (size_t)p->all->n * (size_t)p->half));
	find_inside(p, in);
	for (int t = 0; t < p->all->n; t++) {
		uint8_t *parts = pairs_parts(p, t);
		const uint8_t *links[TREES_RANKS];
		int n = 0;
		for (uint64_t rest = p->all->rows[t]; rest; rest &= rest - 1)
			links[n++] = in->links[__builtin_ctzll(rest)];
		for (int side = 0; side < 2 * p->half; side += BYTES) {
			Bytes here = bytes_get(&in->most[side]), most = bytes_get(&p->most_parts[side]);
			for (int e = 0; e < n; e++)
				here -= bytes_get(&links[e][side]);
			bytes_put(&parts[side], here);
			bytes_put(&p->most_parts[side], ~bytes_min(~here, ~most));
		}
	}
	return OK;
}

static void
limit_block(const struct pairs *p, int side, Bytes most, struct part_limits *out)
{
	bytes_put(&out->most[side], most);
	if (bytes_any((Bytes)(bytes_get(&p->most_parts[side]) > most)))
		out->block[out->n++] = side;
}

void
pairs_limit_up(const struct pairs *p, const struct pair_limits *limits, struct part_limits *out)
{
	out->n = 0;
	for (int side = 0; side < 2 * p->half; side += BYTES)
		limit_block(p, side, bytes_min(bytes_get(&limits->out[side]), bytes_get(&limits->within[side])), out);
}

void
pairs_limit_down(const struct pairs *p, const struct pair_limits *limits, int up, struct part_limits *out)
{
	const uint8_t *parts = up < 0 ? NULL : pairs_parts(p, up);
	out->n = 0;
	for (int side = 0; side < 2 * p->half; side += BYTES) {
		int rest = side < p->half ? side + p->half : side - p->half;
		Bytes leaving = bytes_get(&limits->out[rest]), within = bytes_get(&limits->within[side]);
		if (parts) {
			leaving -= bytes_get(&parts[rest]);
			within -= bytes_get(&parts[side]);
		}
		limit_block(p, side, bytes_min(leaving, within), out);
	}
}

/* ---- capacity ---- */

/* What can be used of links, in both directions between two ranks, and of each rank's. */
struct usable {
	int16_t between[TREES_RANKS][TREES_RANKS];	/* of a rank and an earlier one */
	int16_t out[TREES_RANKS], in[TREES_RANKS];
};

static void
find_usable(const struct pairs *p, int j, struct usable *u)
{
	const int *residual = p->level[j].residual, *waste = p->waste[j];
	*u = (struct usable){ .out = { 0 } };
	for (int row = 0; row < p->all->n_rows; row++) {
		int l = p->all->there[row], m = p->all->back[row], a = p->from[l], b = p->to[l];
		int16_t there = (int16_t)(residual[l] - waste[residual[l]]);
		int16_t back = (int16_t)(residual[m] - waste[residual[m]]);
		u->out[a] += there;
		u->in[b] += there;
		u->out[b] += back;
		u->in[a] += back;
		u->between[a > b ? a : b][a > b ? b : a] = (int16_t)(there + back);
	}
}

/* Sums over the ranks of a set: of the sets with rank r, from those without it or a later one. */
static void
add_each(int16_t *sum, int r, int16_t each)
{
	int n = 1 << r, side = 0;
	for (; side + LANES <= n; side += LANES)
		lanes_put(&sum[n + side], lanes_get(&sum[side]) + each);
	for (; side < n; side++)
		sum[n + side] = (int16_t)(sum[side] + each);
}

/* What is within these sets, likewise. between: capacity that joins rank r and earlier ones. */
static void
add_within(int16_t *within, int r, const int16_t *between)
{
	int16_t joins[PAIRS_CUTS / 2];
	int n = 1 << r, side = 0;
	joins[0] = 0;
	for (int m = 0; m < r; m++)
		add_each(joins, m, between[m]);
	for (; side + LANES <= n; side += LANES)
		lanes_put(&within[n + side], lanes_get(&within[side]) + lanes_get(&joins[side]));
	for (; side < n; side++)
		within[n + side] = (int16_t)(within[side] + joins[side]);
}

/* All that can be used is 2 (n - 1) times `remaining`, and the slack: so what is within the complement of a set, and
 * what is out of its ranks and into them, is that, too. */
bool
pairs_find_cuts(struct pairs *p, int j, int remaining, int unused)
{
	struct pair_level *level = &p->level[j];
	struct usable usable;
	int16_t within[PAIRS_CUTS / 2] = { 0 }, out[PAIRS_CUTS / 2] = { 0 }, in[PAIRS_CUTS / 2] = { 0 };
	int16_t edges[PAIRS_CUTS / 2] = { 0 }, need = (int16_t)remaining;
	int n_sets = 1 << (p->n - 1);
	int16_t spare = (int16_t)(p->slack - unused - 2 * remaining);
	Lanes less = { 0 };
	find_usable(p, j, &usable);
	for (int r = 0; r < p->n - 1; r++) {
		add_within(within, r, usable.between[r]);
		add_each(out, r, usable.out[r]);
		add_each(in, r, usable.in[r]);
		add_each(edges, r, (int16_t)(2 * remaining));
	}
	p->steps -= p->half;
	for (int side = 0; side < p->half; side += LANES) {
		Lanes here = lanes_get(&within[side]), all = lanes_get(&out[side]) + lanes_get(&in[side]);
		Lanes leaves = lanes_get(&out[side]) - here - need, enters = lanes_get(&in[side]) - here - need;
		Lanes most = lanes_get(&edges[side]), here_spare = most + spare - here, rest_spare = all - here - most;
		for (int lane = 0; lane < LANES; lane++)
			if (side + lane == 0 || side + lane >= n_sets)
				leaves[lane] = enters[lane] = here_spare[lane] = rest_spare[lane] = FREE;
		lanes_put(&level->out[side], leaves);
		lanes_put(&level->out[p->half + side], enters);
		lanes_put(&level->within[side], here_spare);
		lanes_put(&level->within[p->half + side], rest_spare);
		less |= (Lanes)(leaves < 0) | (Lanes)(enters < 0) | (Lanes)(here_spare < 0) | (Lanes)(rest_spare < 0);
		if (lanes_any(less))
			return false;
	}
	return true;
}

/* Whole multiples of a weight, up to all that two halves can have. */
static void
divide(const struct pairs *p, const int16_t *units, int weight, uint8_t *out)
{
	for (int side = 0; side < 2 * p->half; side += 2 * BYTES) {
		Lanes a = lanes_get(&units[side]), b = lanes_get(&units[side + LANES]);
		Lanes c = lanes_get(&units[side + 2 * LANES]), d = lanes_get(&units[side + 3 * LANES]);
		Lanes each = lanes_all((int16_t)weight), least = each;
		Lanes in_a = { 0 }, in_b = in_a, in_c = in_a, in_d = in_a;
		for (int parts = 1; parts <= 2 * (p->n - 1); parts++) {
			in_a -= (Lanes)(a >= least);
			in_b -= (Lanes)(b >= least);
			in_c -= (Lanes)(c >= least);
			in_d -= (Lanes)(d >= least);
			least += each;
		}
		lanes_put_bytes(&out[side], in_a);
		lanes_put_bytes(&out[side + LANES], in_b);
		lanes_put_bytes(&out[side + 2 * LANES], in_c);
		lanes_put_bytes(&out[side + 3 * LANES], in_d);
	}
}

void
pairs_limit(const struct pairs *p, const struct pair_level *level, int weight, struct pair_limits *out)
{
	divide(p, level->out, weight, out->out);
	divide(p, level->within, weight, out->within);
}
