/* The time of a placement, by the linear program of each phase, and which placements are alike: those that symmetries
 * of the machine or of the groups take to each other take as long. The canonical form of a graph that has both, with an
 * edge from each rank to its GPU, tells whether one was looked at before. */
#include "workload/search.h"
#include "base/array.h"
#include "base/hash.h"
#include "topology/topology.h"
#include "workload/links.h"

#include <math.h>
#include <string.h>

/* A linear program costs as much as some comparisons of ranks, and of many rows, where a large machine has few
 * symmetries, more. */
enum { PROGRAM_WORK = 8, ROWS_WORK = 100 };

struct seen {
	unsigned char form[CANONICAL_FORM_BYTES];
	bool used;
	double seconds;
};

/* ---- the time of a step ---- */

/* Prices of links of a joined workload, as those of the machine. */
static Status
name_prices(struct search *s, const JoinedWorkload *in, const int64_t *price, LinkPrices *out)
{
	ArenaMark mark = arena_mark(&s->ctx->scratch);
	int *of;
	LinkNames names;
	TRY(TEMP(s->ctx, of, in->topo->n_links));
	TRY(link_names(s->ctx, s->machine, &names));
	TRY(link_names_find(s->ctx, &names, in->topo, of));
	out->room = 0;
	memset(out->price, 0, (size_t)s->machine->n_links * sizeof *out->price);
	for (int l = 0; l < in->topo->n_links; l++)
		if (of[l] >= 0) {
			out->price[of[l]] = price[l];
			out->room += (double)in->topo->link[l].capacity * (double)price[l];
		}
	arena_release(&s->ctx->scratch, mark);
	return OK;
}

static Status
step_seconds(struct search *s, const int *gpu, double *out, LinkPrices *prices)
{
	const Workload *w = s->w;
	JoinedWorkload in;
	int64_t *price;
	*out = 0;
	TRY(workload_join(s->ctx, w, s->machine, gpu, s->ask, &in));
	TRY(NEW(s->ctx, price, in.topo->n_links));
	s->work -= (int64_t)in.sym->n_orbits * in.sym->n_orbits / ROWS_WORK;
	for (int p = 0; p < w->n_phases; p++) {
		double seconds;
		TRY(phase_least(s->ctx, &in, &w->phase[p], &seconds, price));
		*out += seconds * w->phase[p].times;
		if (prices)
			TRY(name_prices(s, &in, price, &prices[p]));
	}
	return OK;
}

/* Infinite where no links connect a group. */
static Status
evaluate(struct search *s, const int *at, double *out)
{
	const Workload *w = s->w;
	ArenaMark mark = arena_mark(&s->ctx->run), scratch = arena_mark(&s->ctx->scratch);
	int *gpu;
	LinkPrices *prices = NULL;
	if (s->priced) {
		TRY(TEMP(s->ctx, prices, w->n_phases));
		for (int p = 0; p < w->n_phases; p++)
			TRY(TEMP(s->ctx, prices[p].price, s->machine->n_links));
	}
	TRY(NEW(s->ctx, gpu, w->n_ranks));
	for (int r = 0; r < w->n_ranks; r++)
		gpu[r] = s->gpu[at[r]];
	Status status = step_seconds(s, gpu, out, prices);
	if (status == INFEASIBLE) {
		s->ctx->error.status = OK;
		*out = INFINITY;
		status = OK;
	}
	s->work -= (int64_t)PROGRAM_WORK * w->n_ranks;
	arena_release(&s->ctx->run, mark);
	if (status == OK && prices && isfinite(*out))
		status = prices_add(s->priced, prices, s->least * (1 - RATE_ROUNDING), &s->work);
	arena_release(&s->ctx->scratch, scratch);
	return status;
}

Status
price_best(struct search *s)
{
	double seconds;
	return evaluate(s, s->best, &seconds);
}

/* ---- placements that are alike ---- */

/* Nothing of a machine has a count of 0. */
static void
mark_link(Topology *topo, int from, int to, int64_t tag)
{
	Link link = { .from = from, .to = to, .capacity = tag };
	topo->link[topo->n_links++] = link;
	link.from = to;
	link.to = from;
	topo->link[topo->n_links++] = link;
}

static bool
is_root(const Workload *w, int kind, int member)
{
	for (int p = 0; p < w->n_phases; p++)
		for (int c = 0; c < w->phase[p].n_calls; c++)
			if (w->phase[p].call[c].kind == kind && w->phase[p].call[c].root == member)
				return true;
	return false;
}

/* The call number *at, or the first one after it, of all phases, that has matrices for groups of a kind; NULL: there is
 * none. *at: the number after it. */
static const GroupCall *
next_matrices(const Workload *w, int kind, int *at)
{
	int number = 0;
	for (int p = 0; p < w->n_phases; p++)
		for (int c = 0; c < w->phase[p].n_calls; c++) {
			const GroupCall *call = &w->phase[p].call[c];
			if (number++ < *at || call->kind != kind || !call->matrix)
				continue;
			*at = number;
			return call;
		}
	return NULL;
}

/* Are blocks as long where two members of a group change places? */
static bool
may_swap(const int64_t *matrix, size_t n, size_t a, size_t b)
{
	for (size_t i = 0; i < n; i++)
		if (i != a && i != b && (matrix[a * n + i] != matrix[b * n + i]
		    || matrix[i * n + a] != matrix[i * n + b]))
			return false;
	return matrix[a * n + b] == matrix[b * n + a];
}

/* Do members a and b of a group change places without any change of its matrices? */
static bool
members_alike(const Workload *w, int kind, int group, int a, int b)
{
	size_t n = (size_t)w->kind[kind].group[group].n;
	const GroupCall *call;
	for (int at = 0; (call = next_matrices(w, kind, &at));)
		if (!may_swap(call->matrix[group], n, (size_t)a, (size_t)b))
			return false;
	return true;
}

/* Have two groups the same matrices? */
static bool
groups_alike(const Workload *w, int kind, int a, int b)
{
	const GroupCall *call;
	for (int at = 0; (call = next_matrices(w, kind, &at));)
		if (call->matrix[a] != call->matrix[b])
			return false;
	return true;
}

/* Numbers of the members of all groups, kind by kind, that are equal where members are alike: roots have others, and
 * where blocks are of unequal lengths those that cannot change places; 0: all of the kind are. */
static Status
number_members(struct search *s, size_t members)
{
	const Workload *w = s->w;
	size_t at = 0;
	TRY(NEW(s->ctx, s->member, members));
	for (int k = 0; k < w->n_kinds; k++)
		for (int g = 0; g < w->kind[k].n_groups; g++) {
			int first = 0, n = w->kind[k].group[g].n, calls = 0;
			bool matrices = next_matrices(w, k, &calls) != NULL;
			while (!groups_alike(w, k, g, first))
				first++;
			for (int i = 0; i < n; i++, at++) {
				int like = 0;
				while (n > 1 && like < i && (is_root(w, k, i) || is_root(w, k, like)
				    || !members_alike(w, k, g, like, i)))
					like++;
				s->member[at] = matrices ? 1 + (int64_t)first * w->n_ranks + like
				    : is_root(w, k, i) ? 1 + i : 0;
			}
		}
	return OK;
}

static void
count_members(const Workload *w, size_t *members, size_t *groups)
{
	*members = *groups = 0;
	for (int k = 0; k < w->n_kinds; k++)
		for (int g = 0; g < w->kind[k].n_groups; g++, ++*groups)
			*members += (size_t)w->kind[k].group[g].n;
}

Status
search_open(struct search *s)
{
	size_t members, groups;
	count_members(s->w, &members, &groups);
	TRY(number_members(s, members));
	TRY(NEW(s->ctx, s->best, s->n));
	for (int r = 0; r < s->n; r++)
		s->best[r] = r;
	return OK;
}

/* The machine, a vertex for each rank and each group, and the GPUs of the ranks. */
static Status
find_form(struct search *s, const int *at, unsigned char form[CANONICAL_FORM_BYTES])
{
	ArenaMark mark = arena_mark(&s->ctx->run), scratch = arena_mark(&s->ctx->scratch);
	const Workload *w = s->w;
	Topology topo = *s->machine;
	size_t members, groups, at_member = 0;
	int first = topo.n_vertices, *candidate;
	count_members(w, &members, &groups);
	TRY(TEMP(s->ctx, candidate, topo.n_ranks));
	TRY(TEMP(s->ctx, topo.vertex, (size_t)first + (size_t)s->n + groups));
	TRY(TEMP(s->ctx, topo.link, (size_t)topo.n_links + 2 * (members + (size_t)s->n)));
	memcpy(topo.vertex, s->machine->vertex, (size_t)first * sizeof *topo.vertex);
	memcpy(topo.link, s->machine->link, (size_t)topo.n_links * sizeof *topo.link);
	topo.n_vertices += s->n + (int)groups;
	for (int v = first; v < topo.n_vertices; v++)
		topo.vertex[v] = (Vertex){ .kind = VERTEX_SWITCH, .node = -1, .id = "" };
	for (int i = 0; i < s->n_gpus; i++)
		candidate[s->gpu[i]] = 1;
	for (int k = 0, v = first + s->n; k < w->n_kinds; k++)
		for (int g = 0; g < w->kind[k].n_groups; g++, v++)
			for (int i = 0; i < w->kind[k].group[g].n; i++)
				mark_link(&topo, v, first + w->kind[k].group[g].rank[i],
				    1 + k + w->n_kinds * s->member[at_member++]);
	for (int r = 0; r < s->n; r++)
		mark_link(&topo, first + r, s->gpu[at[r]], 0);
	Status status = topo_canonical_form(s->ctx, &topo, candidate, form, NULL, NULL);
	s->work -= s->n;
	arena_release(&s->ctx->scratch, scratch);
	arena_release(&s->ctx->run, mark);
	return status;
}

static struct seen *
find_seen(struct seen *table, int room, const unsigned char *form)
{
	size_t i = (size_t)hash_bytes(form, CANONICAL_FORM_BYTES) & (size_t)(room - 1);
	while (table[i].used && memcmp(table[i].form, form, CANONICAL_FORM_BYTES) != 0)
		i = (i + 1) & (size_t)(room - 1);
	return &table[i];
}

/* The entry of a placement; *before: it was there. */
static Status
note(struct search *s, const int *at, struct seen **out, bool *before)
{
	unsigned char form[CANONICAL_FORM_BYTES];
	TRY(find_form(s, at, form));
	if (2 * s->n_seen >= s->room) {
		struct seen *grown;
		int room = s->room ? 2 * s->room : 1024;
		TRY(NEW(s->ctx, grown, room));
		for (int i = 0; i < s->room; i++)
			if (s->seen[i].used)
				*find_seen(grown, room, s->seen[i].form) = s->seen[i];
		s->seen = grown;
		s->room = room;
	}
	*out = find_seen(s->seen, s->room, form);
	*before = (*out)->used;
	if (*before)
		return OK;
	memcpy((*out)->form, form, sizeof form);
	(*out)->used = true;
	s->n_seen++;
	return OK;
}

Status
look(struct search *s, const int *at, double *seconds)
{
	struct seen *seen;
	bool before;
	TRY(note(s, at, &seen, &before));
	if (!before) {
		TRY(evaluate(s, at, &seen->seconds));
		s->n_looked++;
		s->most = isfinite(seen->seconds) ? fmax(s->most, seen->seconds) : s->most;
		progress(s->ctx, "placements: %d looked at, the best takes %.4g ms", s->n_looked, s->least * 1e3);
	}
	*seconds = seen->seconds;
	if (*seconds < s->least * (1 - RATE_ROUNDING) || !isfinite(s->least)) {
		memcpy(s->best, at, (size_t)s->n * sizeof *at);
		s->least = *seconds;
	}
	/* Nothing is left to look for. */
	if (s->least <= s->floor * (1 + RATE_ROUNDING))
		s->work = 0;
	return OK;
}
