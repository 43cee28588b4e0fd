#include "graph/isomorphism.h"
#include "base/hash.h"

#include <stdlib.h>
#include <string.h>

/* A topology whose vertices have colours; `order` has them by colour. */
struct side {
	const Topology *topo;
	uint64_t *colour, *next;
	int *order;
};

static Status
new_side(Ctx *ctx, const Topology *topo, int root, struct side *s)
{
	*s = (struct side){ .topo = topo };
	TRY(TEMP_EACH(ctx, topo->n_vertices, s->colour, s->next, s->order));
	for (int v = 0; v < topo->n_vertices; v++) {
		const Vertex *vertex = &topo->vertex[v];
		s->colour[v] = hash64((uint64_t)(v < topo->n_ranks) | (uint64_t)(v == root) << 1
		    | (uint64_t)vertex->multicast << 2 | (uint64_t)vertex->reduce << 3);
	}
	return OK;
}

static uint64_t
link_hash(const Link *link)
{
	return hash64(hash64(hash64((uint64_t)link->capacity) ^ (uint64_t)link->latency) ^ (uint64_t)link->class);
}

/* One round: each colour with those of its links and neighbours, in any order. */
static void
recolour(struct side *s)
{
	const Topology *topo = s->topo;
	for (int v = 0; v < topo->n_vertices; v++)
		s->next[v] = hash64(s->colour[v]);
	for (int l = 0; l < topo->n_links; l++) {
		const Link *link = &topo->link[l];
		uint64_t hash = link_hash(link);
		s->next[link->from] += hash64(hash ^ s->colour[link->to]);
		s->next[link->to] += hash64(~hash ^ s->colour[link->from]);
	}
	uint64_t *done = s->next;
	s->next = s->colour;
	s->colour = done;
}

static int
by_colour(const void *x, const void *y, void *with)
{
	const uint64_t *colour = with;
	int a = *(const int *)x, b = *(const int *)y;
	if (colour[a] != colour[b])
		return colour[a] < colour[b] ? -1 : 1;
	return (a > b) - (a < b);
}

/* Returns the number of colours. */
static int
sort_side(struct side *s)
{
	const int n = s->topo->n_vertices;
	int colours = 0;
	for (int v = 0; v < n; v++)
		s->order[v] = v;
	qsort_r(s->order, (size_t)n, sizeof *s->order, by_colour, s->colour);
	for (int i = 0; i < n; i++)
		colours += i == 0 || s->colour[s->order[i]] != s->colour[s->order[i - 1]];
	return colours;
}

static int64_t
round_steps(const Topology *topo)
{
	return 16 * (int64_t)topo->n_links + 64 * (int64_t)topo->n_vertices;
}

/* Until no round makes more colours. Both sides, or one: as many rounds on each. */
static Status
refine(Ctx *ctx, const char *label, struct side *side, int n_sides, int *colours)
{
	for (int n = -1;; n = *colours) {
		for (int i = 0; i < n_sides; i++) {
			TRY(count_steps(ctx, label, round_steps(side[i].topo)));
			*colours = sort_side(&side[n_sides - 1 - i]);
		}
		if (*colours == n || *colours == side[0].topo->n_vertices)
			return OK;
		for (int i = 0; i < n_sides; i++)
			recolour(&side[i]);
	}
}

Status
topo_invariant(Ctx *ctx, const Topology *topo, int root, uint64_t *out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct side s;
	int colours;
	uint64_t kind = (uint64_t)topo->n_ranks + (topo->route ? UINT64_C(1) << 32 : 0),
	    hash = hash64(kind) ^ (uint64_t)topo->n_vertices;
	TRY(new_side(ctx, topo, root, &s));
	TRY(refine(ctx, topo->name, &s, 1, &colours));
	recolour(&s);	/* where every colour is different at once, links count, too */
	for (int v = 0; v < topo->n_vertices; v++)
		hash += hash64(s.colour[v]);
	*out = hash64(hash ^ (uint64_t)topo->n_links << 32);
	arena_release(&ctx->scratch, mark);
	return OK;
}

/* ---- the search ---- */

/* A choice: a vertex of a, and the place of the one of b that is its image now; colours as they were before it. */
struct choice {
	int first, n, at;	/* places of the colour in `order` of b */
	int v;
	int *candidate;
	uint64_t *colour[2];
};

struct search {
	Ctx *ctx;
	const char *label;
	struct side side[2];
	struct choice *choice;
	int depth;
	int *map;
};

static bool
same_colours(const struct search *s)
{
	const struct side *a = &s->side[0], *b = &s->side[1];
	for (int i = 0; i < a->topo->n_vertices; i++)
		if (a->colour[a->order[i]] != b->colour[b->order[i]])
			return false;
	return true;
}

struct end {
	int from, to, class;
	int64_t capacity, latency;
};

static int
by_end(const void *x, const void *y)
{
	const struct end *a = x, *b = y;
	const int64_t keys[][2] = { { a->from, b->from }, { a->to, b->to }, { a->class, b->class },
	    { a->capacity, b->capacity }, { a->latency, b->latency } };
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
		if (keys[i][0] != keys[i][1])
			return keys[i][0] < keys[i][1] ? -1 : 1;
	return 0;
}

/* Does the map take the links of a to those of b? */
static Status
maps_links(const struct search *s, bool *out)
{
	const Topology *a = s->side[0].topo, *b = s->side[1].topo;
	ArenaMark mark = arena_mark(&s->ctx->scratch);
	struct end *x, *y;
	TRY(TEMP_EACH(s->ctx, a->n_links, x, y));
	for (int l = 0; l < a->n_links; l++) {
		const Link *k = &a->link[l], *m = &b->link[l];
		x[l] = (struct end){ s->map[k->from], s->map[k->to], (int)k->class, k->capacity, k->latency };
		y[l] = (struct end){ m->from, m->to, (int)m->class, m->capacity, m->latency };
	}
	qsort(x, (size_t)a->n_links, sizeof *x, by_end);
	qsort(y, (size_t)a->n_links, sizeof *y, by_end);
	*out = true;
	for (int l = 0; l < a->n_links && *out; l++)
		*out = by_end(&x[l], &y[l]) == 0;
	arena_release(&s->ctx->scratch, mark);
	return OK;
}

/* The smallest colour of several vertices, the first of those. */
static Status
choose(struct search *s)
{
	const struct side *a = &s->side[0], *b = &s->side[1];
	struct choice *c = &s->choice[s->depth];
	const int n = a->topo->n_vertices;
	int first = 0, least = n + 1;
	for (int i = 0, end; i < n; i = end) {
		for (end = i + 1; end < n && a->colour[a->order[end]] == a->colour[a->order[i]]; end++)
			;
		if (end - i > 1 && end - i < least) {
			first = i;
			least = end - i;
		}
	}
	*c = (struct choice){ .first = first, .n = least, .v = a->order[first], .at = -1 };
	TRY(TEMP(s->ctx, c->candidate, least));
	memcpy(c->candidate, b->order + first, (size_t)least * sizeof *c->candidate);
	for (int i = 0; i < 2; i++) {
		TRY(TEMP(s->ctx, c->colour[i], n));
		memcpy(c->colour[i], s->side[i].colour, (size_t)n * sizeof *c->colour[i]);
	}
	s->depth++;
	return OK;
}

/* The next image of the last choice that has one left; false: none has. */
static bool
advance(struct search *s)
{
	while (s->depth > 0) {
		struct choice *c = &s->choice[s->depth - 1];
		if (++c->at < c->n) {
			for (int i = 0; i < 2; i++)
				memcpy(s->side[i].colour, c->colour[i],
				    (size_t)s->side[i].topo->n_vertices * sizeof *c->colour[i]);
			s->side[0].colour[c->v] = s->side[1].colour[c->candidate[c->at]] =
			    hash64(s->side[0].colour[c->v] + (uint64_t)s->depth);
			return true;
		}
		s->depth--;
	}
	return false;
}

static Status
search(struct search *s, bool *found)
{
	const struct side *a = &s->side[0], *b = &s->side[1];
	int colours;
	do {
		TRY(refine(s->ctx, s->label, s->side, 2, &colours));
		if (!same_colours(s))
			continue;
		if (colours < a->topo->n_vertices) {
			TRY(choose(s));
			continue;
		}
		for (int i = 0; i < a->topo->n_vertices; i++)
			s->map[a->order[i]] = b->order[i];
		TRY(maps_links(s, found));
		if (*found)
			return OK;
	} while (advance(s));
	return OK;
}

Status
topo_isomorphism(Ctx *ctx, const char *label, const Topology *a, int root_a, const Topology *b, int root_b, int *map,
    bool *found)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct search s = { .ctx = ctx, .label = label, .map = map };
	*found = false;
	if (a->n_ranks != b->n_ranks || a->n_vertices != b->n_vertices || a->n_links != b->n_links)
		return OK;
	TRY(new_side(ctx, a, root_a, &s.side[0]));
	TRY(new_side(ctx, b, root_b, &s.side[1]));
	TRY(TEMP(ctx, s.choice, a->n_vertices));
	TRY(search(&s, found));
	arena_release(&ctx->scratch, mark);
	return OK;
}
