/* Weights of k pairs, where k pairs reach a rate and no k - 1 do: those of vertex.c, M w = c, where M has entries of 0,
 * 1 and 2, since both halves of a pair may use a link. By Smith's normal form all weights are whole
 * multiples of 1 / s link, s the largest invariant factor of M. Over all such matrices it is at most 2, 4, 10 and 30
 * for k = 1 to 4, by enumeration; and at most |det M|, which for k = 5 is at most 2^5 times the largest determinant of
 * 0 and 1, 5: a determinant is linear in each entry, so the largest has entries of 0 and 2 only.
 *
 * Of 27663 weights of four pairs that have the rate of a DGX-1V together, these are left: 14, 5, 4 and 1 sevenths of a
 * link. */
#include "plan/pack/few/pair_search.h"
#include "plan/pack/few/pair_weights.h"
#include "plan/pack/few/vertex.h"

#include <stdlib.h>

enum {
	MOST_WEIGHTS = 4096,
	ROW_STEPS = 4,		/* of the search, for each row that is tried */
	MAX_PROVEN = 5		/* up to this number of pairs max_den is proven */
};

/* Denominators; from 6 on no more than is of use. */
static const int max_den[PAIRS_MOST + 1] = { 0, 2, 4, 10, 30, 160, 64 };

struct weigher {
	struct pairs *p;
	int k;
	struct vertex vertex;
	int64_t left;			/* rows that may be tried */
	struct weights now, *out;
	int n;
	bool all;
};

static void
keep_weights(struct weigher *s)
{
	int64_t gcd = s->now.den;
	for (int j = 0; j < s->k; j++)
		gcd = gcd64(gcd, s->now.weight[j]);
	s->left -= s->vertex.n_rows[s->k];
	/* Not in lowest terms: they have been there. */
	if (gcd > 1 || !vertex_holds(&s->vertex) || !pairs_begin(s->p, &s->now))
		return;
	if (s->n == MOST_WEIGHTS) {
		s->left = 0;
		return;
	}
	s->out[s->n++] = s->p->w;
}

/* All descending weights of pairs j .. k - 1, none above `most`, that have `remaining` units together. */
static void
weigh(struct weigher *s, int j, int remaining, int most)
{
	int places = s->k - j;
	if (j == s->k) {
		keep_weights(s);
		return;
	}
	most = remaining - (places - 1) < most ? remaining - (places - 1) : most;
	for (int w = most; w * places >= remaining && w > 0 && s->left > 0; w--) {
		s->now.weight[j] = w;
		vertex_weigh(&s->vertex, j, w);
		weigh(s, j + 1, remaining - w, w);
	}
}

static void
weigh_in(struct weigher *s, int den, const struct pair_goal *goal)
{
	const struct pairs *p = s->p;
	Frac unit;
	int top = 0;
	vertex_begin(&s->vertex, s->k, 2);
	for (int l = 0; l < p->n_links; l++) {
		if ((int64_t)p->capacity[l] * den > PAIRS_UNITS) {
			s->all = false;
			return;
		}
		vertex_link(&s->vertex, p->capacity[l] * den);
		top = p->capacity[l] * den > top ? p->capacity[l] * den : top;
	}
	if (!frac_make(topo_link_unit(p->all->topo), den, &unit)) {
		s->all = false;
		return;
	}
	int64_t most = frac_floor_div(goal->top, unit), need = frac_floor_div(goal->target, unit);
	if (goal->above || (Wide)need * unit.num * goal->target.den < (Wide)goal->target.num * unit.den)
		need++;
	for (int64_t units = most; units >= need && units >= s->k && s->left > 0; units--) {
		s->now = (struct weights){ .den = den, .units = (int)units };
		weigh(s, 0, (int)units, top);
	}
}

static int
by_choices(const void *a, const void *b)
{
	const struct weights *v = a, *w = b;
	if (v->choices != w->choices)
		return (v->choices > w->choices) - (v->choices < w->choices);
	if (v->den != w->den)
		return v->den - w->den;
	if (v->units != w->units)
		return w->units - v->units;
	for (int j = 0; j < PAIRS_MOST; j++)
		if (v->weight[j] != w->weight[j])
			return w->weight[j] - v->weight[j];
	return 0;
}

Status
pairs_weigh(struct pairs *p, const struct pair_goal *goal, struct weights **out, int *n, bool *all)
{
	struct weigher *s;
	TRY(TEMP(p->ctx, s, 1));
	s->p = p;
	s->k = p->k;
	s->left = goal->steps / ROW_STEPS;
	s->all = p->k <= MAX_PROVEN;
	TRY(TEMP(p->ctx, s->out, MOST_WEIGHTS));
	for (int den = 1; den <= max_den[p->k] && s->left > 0; den++)
		weigh_in(s, den, goal);
	qsort(s->out, (size_t)s->n, sizeof *s->out, by_choices);
	*out = s->out;
	*n = s->n;
	*all = s->all && s->left > 0;
	return OK;
}
