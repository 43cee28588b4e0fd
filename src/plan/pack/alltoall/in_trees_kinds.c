/* The best prices of a few kinds of links, for trees into each rank.
 *
 * Prices that follow loads come near the best ones, but loads move by parts of blocks, and so prices differ a little
 * where the best ones are equal. Links of equal capacity between equal kinds of vertices whose prices are near each
 * other are of one kind here. What is best for kinds is a linear program of a row for each (Dantzig and Wolfe 1960):
 *
 *     maximise    r
 *     such that   sum over columns c of uses(c, k) x(c) <= capacity(k)    for every kind k of links, with dual y(k)
 *                 r <= sum over columns c of x(c)
 *
 * A column is a path for every pair of ranks, and the next one has the shortest paths under y, by a search to each
 * rank. Kinds share what they have, so this is a relaxation; but its duals are prices of links, and these prove a bound
 * as any do (in_trees_prices.c). */
#include "base/sort.h"
#include "plan/pack/alltoall/in_trees.h"
#include "plan/pack/lp/tableau.h"

#include <math.h>
#include <string.h>

enum { MOST_KINDS = 12, MOST_SEARCHES = 60, MEAN_SEARCHES = 30, MOST_STEPS = 10000 };

#define SMOOTH 0.8		/* part of the best prices */
#define NEARLY 1e-6		/* relative: a difference that is none */
#define FINE_PRICE (1 << 22)
#define SEARCH_WORK 2.5		/* of a search, for each link; that of a round is 1 for a tree */

struct priced {
	uint64_t class;
	double price;
	int link;
};

struct kind {
	int begin, end;		/* of links by class and price */
};

struct kinds {
	struct in_trees *s;
	int n, *of;		/* kinds; of each link its kind */
	double *capacity;	/* of all links of each */
	double *uses;		/* of them, by shortest paths under the last prices */
	double *y, *best_y, *between;	/* all capacities cost 1: duals of the basis; of the best bound; of both */
	double bound, most;	/* the best; what prices of these kinds can prove at most */
	int searches;		/* to all ranks */
	int *next;		/* of each vertex: work space */
	Tableau program;
};

/* ---- kinds ---- */

static int
by_class_and_price(const void *a, const void *b)
{
	const struct priced *x = a, *y = b;
	if (x->class != y->class)
		return (x->class > y->class) - (x->class < y->class);
	return x->price != y->price ? (x->price > y->price) - (x->price < y->price) : x->link - y->link;
}

static uint64_t
class_of(const Topology *topo, int l)
{
	const Link *link = &topo->link[l];
	return ((uint64_t)link->capacity * N_VERTEX_KINDS + topo->vertex[link->from].kind) * N_VERTEX_KINDS
	    + topo->vertex[link->to].kind;
}

/* Where both parts differ most: by their means, or, wide, by the gap between them. *much: how much that is. */
static int
best_split(const struct priced *priced, const struct kind *kind, bool wide, double *much)
{
	int n = kind->end - kind->begin, best = kind->begin;
	double sum = 0, left = 0;
	*much = 0;
	for (int i = kind->begin; i < kind->end; i++)
		sum += priced[i].price;
	for (int i = kind->begin + 1; i < kind->end; i++) {
		double n_left = i - kind->begin, n_right = n - n_left, gap = priced[i].price - priced[i - 1].price;
		left += priced[i - 1].price;
		double apart = wide ? gap : (sum - left) / n_right - left / n_left;
		double now = n_left * n_right / n * apart * apart;
		if (gap > 0 && now > *much) {
			*much = now;
			best = i;
		}
	}
	return best;
}

/* Returns how many; more than MOST_KINDS: classes are too many. */
static int
split_classes(const struct priced *priced, int n_links, struct kind *kind)
{
	int n = 0;
	for (int i = 0; i < n_links; i++) {
		if (i > 0 && priced[i].class == priced[i - 1].class)
			continue;
		if (n == MOST_KINDS)
			return MOST_KINDS + 1;
		kind[n].begin = i;
		if (n++ > 0)
			kind[n - 2].end = i;
	}
	kind[n - 1].end = n_links;
	while (n < MOST_KINDS) {
		int best = -1, at = 0;
		double most = 0;
		for (int k = 0; k < n; k++) {
			double much;
			int i = best_split(priced, &kind[k], n % 2 == 0, &much);
			if (much > most) {
				most = much;
				best = k;
				at = i;
			}
		}
		if (best < 0)
			break;
		kind[n++] = (struct kind){ at, kind[best].end };
		kind[best].end = at;
	}
	return n;
}

static Status
find_kinds(struct kinds *k)
{
	struct in_trees *s = k->s;
	struct priced *priced;
	struct kind kind[MOST_KINDS];
	TRY(TEMP(s->ctx, k->of, s->n_links));
	TRY(TEMP(s->ctx, priced, s->n_links));
	for (int l = 0; l < s->n_links; l++)
		priced[l] = (struct priced){ class_of(s->topo, l), s->mean_price[l], l };
	sort_array(priced, s->n_links, sizeof *priced, by_class_and_price);
	k->n = split_classes(priced, s->n_links, kind);
	for (int i = 0; i < k->n && k->n <= MOST_KINDS; i++)
		for (int j = kind[i].begin; j < kind[i].end; j++)
			k->of[priced[j].link] = i;
	return OK;
}

/* ---- the linear program ---- */

enum { RATE_COLUMN };	/* r */

static Status
new_program(struct kinds *k)
{
	const double one = 1;
	double *limit;
	TRY(TEMP(k->s->ctx, limit, k->n + 1));
	memcpy(limit, k->capacity, (size_t)k->n * sizeof *limit);
	TRY(tableau_new(k->s->ctx, limit, k->n + 1, &k->program));
	TRY(tableau_add(&k->program, &k->n, &one, 1));
	tableau_cost(&k->program, RATE_COLUMN, 1);
	return OK;
}

static double
pairs_of(const struct in_trees *s)
{
	return (double)s->n * (s->n - 1);
}

/* The shortest paths of all pairs. Paths to ranks that hang on one switch are those to the switch, but for its links
 * to them. */
static void
count_uses(struct kinds *k)
{
	struct in_trees *s = k->s;
	const Topology *topo = s->topo;
	memset(k->uses, 0, (size_t)k->n * sizeof *k->uses);
	for (int i = 0; i < s->n_roots && !out_of_time(s->ctx, s->n_links); i++) {
		const struct in_root *root = &s->root[i];
		shortest_paths(&s->paths, root->vertex, true, s->distance, k->next);
		in_tree_measure(s, root->vertex, k->next);
		for (int v = 0; v < s->n_vertices; v++)
			if (k->next[v] >= 0)
				k->uses[k->of[k->next[v]]] += (double)root->n * s->size[v];
		for (int j = 0; j < root->n && root->vertex >= s->n; j++) {
			int r = root->rank[j];
			k->uses[k->of[topo->out[topo->first_out[r]]]] -= 1;
			k->uses[k->of[topo->in[topo->first_in[r]]]] += s->n - 1;
		}
	}
	k->searches++;
}

/* Prices of kinds, of which all capacities cost 1: sets what shortest paths use, and keeps the best. */
static void
measure(struct kinds *k, const double *y)
{
	struct in_trees *s = k->s;
	double top = 0, bound = 0;
	for (int i = 0; i < k->n; i++)
		top = fmax(top, y[i]);
	/* A link costs a trifle more, so that paths are short. */
	for (int l = 0; l < s->n_links; l++)
		s->price[l] = 1 + (int64_t)(y[k->of[l]] / top * FINE_PRICE);
	count_uses(k);
	for (int i = 0; i < k->n; i++)
		bound += k->uses[i] * y[i];
	if (bound > k->bound) {
		k->bound = bound;
		memcpy(k->best_y, y, (size_t)k->n * sizeof *y);
	}
}

/* What was measured last, where it is cheaper than the basis has it. */
static Status
add_column(struct kinds *k, bool *gains)
{
	int row[MOST_KINDS + 1], n = 0;
	double entry[MOST_KINDS + 1], cost = 0, pairs = pairs_of(k->s);
	for (int i = 0; i < k->n; i++)
		if (k->uses[i] > 0) {
			row[n] = i;
			entry[n++] = k->uses[i] / pairs;
			cost += k->uses[i] * k->y[i];
		}
	row[n] = k->n;
	entry[n++] = -1;
	*gains = cost < k->most * (1 - NEARLY);
	return *gains ? tableau_add(&k->program, row, entry, n) : OK;
}

/* False: doubles are not accurate enough. */
static bool
solve(struct kinds *k)
{
	int steps = MOST_STEPS;
	double cost = 0;
	if (!tableau_solve(&k->program, &steps))
		return false;
	for (int i = 0; i < k->n; i++)
		cost += k->capacity[i] * tableau_price(&k->program, i);
	for (int i = 0; i < k->n; i++)
		k->y[i] = tableau_price(&k->program, i) / cost;
	k->most = pairs_of(k->s) / tableau_value(&k->program, RATE_COLUMN);
	return cost > 0;
}

/* Prices between those of the basis and the best ones, or else paths would keep away from the links alone that the last
 * columns filled (Wentges 1997); those of the basis where that finds nothing, or proves no less. */
static Status
search(struct kinds *k)
{
	bool smooth = false, gains = true;
	int round = 0, time = in_trees_proof_time(k->s);
	while (k->searches < MOST_SEARCHES && k->most > fmax(k->bound, k->s->bound) * (1 + NEARLY)) {
		if (progress(k->s->ctx, "trees into each rank: prices of %d kinds of links, round %d", k->n, round++)
		    <= time)
			return OK;
		for (int i = 0; i < k->n; i++)
			k->between[i] = smooth ? SMOOTH * k->best_y[i] + (1 - SMOOTH) * k->y[i] : k->y[i];
		measure(k, k->between);
		TRY(add_column(k, &gains));
		if (!gains && !smooth)
			return OK;
		double most = k->most;
		if (gains && !solve(k))
			return OK;
		smooth = gains && (!smooth || k->most < most * (1 - NEARLY));
	}
	return OK;
}

static Status
kinds_new(struct kinds *k)
{
	struct in_trees *s = k->s;
	double cost = 0;
	TRY(TEMP(s->ctx, k->next, s->n_vertices));
	TRY(TEMP_EACH(s->ctx, k->n, k->capacity, k->uses, k->y, k->best_y, k->between));
	for (int l = 0; l < s->n_links; l++) {
		k->capacity[k->of[l]] += s->capacity[l];
		k->y[k->of[l]] += s->capacity[l] * s->mean_price[l];
		cost += s->capacity[l] * s->mean_price[l];
	}
	for (int i = 0; i < k->n; i++)
		k->y[i] /= k->capacity[i] * cost;
	return new_program(k);
}

Status
in_trees_kinds(struct in_trees *s, double most_work)
{
	ArenaMark mark = arena_mark(&s->ctx->scratch);
	const double work = SEARCH_WORK * s->n_roots * s->n_links;
	struct kinds k = { .s = s, .most = INFINITY };
	if (MEAN_SEARCHES * work > most_work)
		return OK;
	TRY(find_kinds(&k));
	if (k.n <= MOST_KINDS) {
		TRY(kinds_new(&k));
		TRY(search(&k));
		s->work += k.searches * work;
	}
	if (k.bound > s->bound * (1 + NEARLY)) {
		for (int l = 0; l < s->n_links; l++)
			s->mean_price[l] = k.best_y[k.of[l]];
		in_trees_bound(s, LAST_ROUNDINGS);
	}
	arena_release(&s->ctx->scratch, mark);
	return OK;
}
