/* All placements in one server, group by group: branch and bound over which GPUs each group has.
 *
 * Ranks that are in the same groups so far are a cell, and the GPUs that they have between them are its GPUs. A group
 * takes from each cell as many as it has ranks there. When all groups have theirs, ranks of a cell may change places.
 * What prices prove of groups that have their GPUs, and of the others wherever they cost least, cuts off (prices.c);
 * where nothing does, a linear program says what the placement takes, and its prices come in. */
#include "base/array.h"
#include "workload/search.h"

#include <math.h>
#include <string.h>

/* Sets that are tried are a unit of work. */
enum { SETS_WORK = 1024 };

/* Ranks whose GPUs are chosen at once: a group, or those of one that are unlike its others, as the root is. */
struct part {
	int size;		/* of priced_size; -1: it costs nothing of its own */
	unsigned ranks;
	bool alike;		/* it may exchange its GPUs with the part before: no placement takes longer so */
};

struct cells {
	int n;
	unsigned ranks[PRICED_GPUS], gpus[PRICED_GPUS];
};

struct exact {
	struct search *s;
	const struct priced *p;
	int n_parts;
	struct part *part;
	unsigned *set;		/* of each part that is placed: its GPUs */
	struct cells *cells;	/* before each part is placed, and at the end */
	double **sum;		/* likewise: what the parts before cost, by each cut and image */
	int *known;		/* likewise: by how many cuts */
	double **rest;		/* of each cut: what each part and those after it cost at least */
	int n_rest, room;
	int last;		/* the image of a cut that was the last to cut off */
	int64_t tried;
};

/* ---- parts ---- */

static unsigned
ranks_of(const RankGroup *group)
{
	unsigned ranks = 0;
	for (int i = 0; i < group->n; i++)
		ranks |= 1u << group->rank[i];
	return ranks;
}

/* Cells by the ranks of a part alone; gpus: of those that it takes. */
static void
split_cells(struct cells *cells, unsigned ranks, unsigned gpus)
{
	for (int i = 0, n = cells->n; i < n; i++) {
		unsigned in = cells->ranks[i] & ranks;
		if (!in || in == cells->ranks[i])
			continue;
		cells->ranks[cells->n] = in;
		cells->gpus[cells->n++] = cells->gpus[i] & gpus;
		cells->ranks[i] &= ~ranks;
		cells->gpus[i] &= ~gpus;
	}
}

static int
largest_group(const GroupKind *kind)
{
	int n = 0;
	for (int g = 0; g < kind->n_groups; g++)
		n = kind->group[g].n > n ? kind->group[g].n : n;
	return n;
}

static bool
has_matrices(const Workload *w, int kind)
{
	for (int p = 0; p < w->n_phases; p++)
		for (int c = 0; c < w->phase[p].n_calls; c++)
			if (w->phase[p].call[c].kind == kind && w->phase[p].call[c].matrix)
				return true;
	return false;
}

/* Kinds of large groups first, which cost most. */
static Status
list_groups(struct exact *e)
{
	const Workload *w = e->s->w;
	bool *used;
	TRY(TEMP(e->s->ctx, used, w->n_kinds));
	for (int i = 0; i < w->n_kinds; i++) {
		int kind = -1;
		for (int k = 0; k < w->n_kinds; k++)
			if (!used[k] && (kind < 0 || largest_group(&w->kind[k]) > largest_group(&w->kind[kind])))
				kind = k;
		used[kind] = true;
		for (int g = 0; g < w->kind[kind].n_groups; g++) {
			int size = e->p->size_of[kind][g];
			if (size >= 0)
				e->part[e->n_parts++] = (struct part){ .size = size,
					.ranks = ranks_of(&w->kind[kind].group[g]) };
		}
	}
	return OK;
}

/* Members of groups that are unlike others. */
static void
list_members(struct exact *e)
{
	const Workload *w = e->s->w;
	const int64_t *member = e->s->member;
	for (int k = 0; k < w->n_kinds; k++)
		for (int g = 0; g < w->kind[k].n_groups; member += w->kind[k].group[g++].n) {
			const RankGroup *group = &w->kind[k].group[g];
			for (int i = 0; i < group->n; i++) {
				unsigned ranks = 0;
				int first = i;
				for (int j = 0; j < group->n; j++)
					if (member[j] == member[i]) {
						ranks |= 1u << group->rank[j];
						first = j < first ? j : first;
					}
				if (first == i && ranks != ranks_of(group))
					e->part[e->n_parts++] = (struct part){ .size = -1, .ranks = ranks };
			}
		}
}

/* Two groups of the kind that is placed last may exchange their GPUs if they have as many ranks of each cell. */
static void
find_alike(struct exact *e, int n_groups)
{
	struct cells cells = { .n = 1, .ranks = { (1u << e->s->n) - 1 } };
	int first = n_groups - 1;
	while (first > 0 && e->part[first - 1].size >= 0
	    && e->p->size[e->part[first - 1].size].kind == e->p->size[e->part[n_groups - 1].size].kind)
		first--;
	if (n_groups < e->n_parts || has_matrices(e->s->w, e->p->size[e->part[first].size].kind))
		return;
	for (int i = 0; i < first; i++)
		split_cells(&cells, e->part[i].ranks, 0);
	for (int i = first + 1; i < n_groups; i++) {
		e->part[i].alike = e->part[i].size == e->part[i - 1].size;
		for (int c = 0; c < cells.n; c++)
			if (__builtin_popcount(cells.ranks[c] & e->part[i].ranks)
			    != __builtin_popcount(cells.ranks[c] & e->part[i - 1].ranks))
				e->part[i].alike = false;
	}
}

static Status
list_parts(struct exact *e)
{
	const Workload *w = e->s->w;
	int most = 0;
	for (int k = 0; k < w->n_kinds; k++)
		for (int g = 0; g < w->kind[k].n_groups; g++)
			most += 1 + w->kind[k].group[g].n;
	TRY(TEMP(e->s->ctx, e->part, most));
	TRY(list_groups(e));
	int n_groups = e->n_parts;
	list_members(e);
	if (n_groups > 0)
		find_alike(e, n_groups);
	TRY(TEMP_EACH(e->s->ctx, e->n_parts + 1, e->set, e->cells, e->sum, e->known));
	for (int d = 0; d <= e->n_parts; d++)
		TRY(TEMP(e->s->ctx, e->sum[d], PRICED_CUTS * e->p->n_images));
	return OK;
}

/* ---- bounds ---- */

static double
cost_of(const struct exact *e, int cut, int image, int part, unsigned set)
{
	if (e->part[part].size < 0)
		return 0;
	return e->p->cut[cut][(size_t)e->part[part].size * e->p->n_sets + e->p->image[image][set]];
}

/* What cuts that came in say of the parts before part d. */
static Status
know_cuts(struct exact *e, int d)
{
	int n_cuts = e->p->n_cuts, n_images = e->p->n_images;
	for (; e->n_rest < n_cuts; e->n_rest++) {
		double *rest;
		TRY(GROW(e->s->ctx, e->rest, e->n_rest, e->room));
		TRY(NEW(e->s->ctx, rest, e->n_parts + 1));
		e->rest[e->n_rest] = rest;
		for (int i = e->n_parts - 1; i >= 0; i--)
			rest[i] = rest[i + 1] + cost_of(e, e->n_rest, 0, i, 0);
	}
	for (int c = e->known[d]; c < n_cuts; c++)
		for (int image = 0; image < n_images; image++) {
			e->sum[d][c * n_images + image] = 0;
			for (int i = 0; i < d; i++)
				e->sum[d][c * n_images + image] += cost_of(e, c, image, i, e->set[i]);
		}
	e->known[d] = n_cuts;
	return OK;
}

/* Part d on a set, after those before it, is too slow by an image of a cut. */
static bool
cuts_off(const struct exact *e, int d, unsigned set, int i)
{
	int cut = i / e->p->n_images, image = i % e->p->n_images;
	return e->sum[d][i] + cost_of(e, cut, image, d, set) + e->rest[cut][d + 1]
	    >= e->s->least * (1 - RATE_ROUNDING);
}

static bool
is_cut_off(struct exact *e, int d, unsigned set)
{
	int n = e->known[d] * e->p->n_images;
	if (e->part[d].size >= 0 && e->p->out[(size_t)e->part[d].size * e->p->n_sets + set])
		return true;
	if (e->last < n && cuts_off(e, d, set, e->last))
		return true;
	for (int i = 0; i < n; i++)
		if (cuts_off(e, d, set, i)) {
			e->last = i;
			return true;
		}
	return false;
}

/* ---- placing ---- */

/* The ranks of each cell in order on its GPUs. */
static Status
look_at_end(struct exact *e)
{
	const struct cells *cells = &e->cells[e->n_parts];
	int at[PRICED_GPUS];
	double seconds;
	for (int c = 0; c < cells->n; c++) {
		unsigned gpus = cells->gpus[c];
		for (unsigned ranks = cells->ranks[c]; ranks; ranks &= ranks - 1, gpus &= gpus - 1)
			at[__builtin_ctz(ranks)] = __builtin_ctz(gpus);
	}
	return look(e->s, at, &seconds);
}

static Status choose(struct exact *e, int d, int cell, unsigned set);

static Status
place(struct exact *e, int d)
{
	if (d == e->n_parts)
		return look_at_end(e);
	return choose(e, d, 0, 0);
}

static Status
place_on(struct exact *e, int d, unsigned set)
{
	if (++e->tried % SETS_WORK == 0)
		e->s->work--;
	if (e->part[d].alike && __builtin_ctz(set) < __builtin_ctz(e->set[d - 1]))
		return OK;
	for (int image = 1; d == 0 && image < e->p->n_images; image++)
		if (e->p->image[image][set] < set)
			return OK;
	TRY(know_cuts(e, d));
	if (is_cut_off(e, d, set))
		return OK;
	e->set[d] = set;
	e->cells[d + 1] = e->cells[d];
	split_cells(&e->cells[d + 1], e->part[d].ranks, set);
	e->known[d + 1] = 0;
	return place(e, d + 1);
}

/* A set for part d that has some GPUs of cells before this one. */
static Status
choose(struct exact *e, int d, int cell, unsigned set)
{
	if (cell == e->cells[d].n)
		return place_on(e, d, set);
	unsigned gpus = e->cells[d].gpus[cell];
	int n = __builtin_popcount(e->part[d].ranks & e->cells[d].ranks[cell]);
	if (n == 0)
		return choose(e, d, cell + 1, set);
	for (unsigned chosen = gpus; chosen && e->s->work > 0; chosen = (chosen - 1) & gpus)
		if (__builtin_popcount(chosen) == n)
			TRY(choose(e, d, cell + 1, set | chosen));
	return OK;
}

Status
exact_placements(struct search *s, bool *all)
{
	struct exact e = { .s = s };
	struct priced *p;
	*all = false;
	if (s->n_gpus > PRICED_GPUS)
		return OK;
	TRY(prices_open(s->ctx, s->w, s->machine, s->gpu, s->n_gpus, s->ask, &p));
	s->priced = p;
	e.p = p;
	TRY(list_parts(&e));
	e.cells[0] = (struct cells){ .n = 1, .ranks = { (1u << s->n) - 1 }, .gpus = { (1u << s->n_gpus) - 1 } };
	TRY(price_best(s));
	TRY(place(&e, 0));
	*all = s->work > 0;
	return OK;
}
