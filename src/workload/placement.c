/* Where the ranks of a workload are best: which GPU each has.
 *
 * What counts is the time of a step, by the linear program of each phase. Placements that symmetries of the machine or
 * of the groups take to each other take as long: the canonical form of a graph that has both, with an edge from each
 * rank to its GPU, tells whether one was looked at before.
 *
 * First, from a few orders on, ranks change their GPUs as long as that helps. Then, in one server, branch and bound:
 * rank by rank all ways to place it, of equal ones the first, where the groups that have all their ranks take less than
 * the best that is known. Fewer groups never take longer. If that comes to an end nothing is faster; nor where links of
 * GPUs carry no more than they must (ports.c). */
#include "base/array.h"
#include "base/hash.h"
#include "topology/topology.h"
#include "workload/planning.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Ranks of placements that are compared. A linear program costs as much as some comparisons, and of many rows, where a
 * large machine has few symmetries, more. */
enum { WORK = 400000, PROGRAM_WORK = 8, ROWS_WORK = 100 };

struct seen {
	unsigned char form[CANONICAL_FORM_BYTES];
	bool used;
	double seconds;		/* of whole placements */
};

struct search {
	Ctx *ctx;
	const Workload *w;
	const Topology *machine;
	const Ask *ask;
	int n, n_gpus;		/* ranks; GPUs that they may have, */
	const int *gpu;		/* by their numbers in the machine */
	int64_t *member;	/* number_members() */
	int64_t work;		/* that is left */
	struct seen *seen;	/* a table by hash, less than half full */
	int n_seen, room, n_looked;
	int *best;		/* of each rank the place of its GPU in `gpu` */
	double least, most;
	double floor;		/* no placement takes less */
};

/* ---- the time of a step ---- */

static Status
step_seconds(struct search *s, const Workload *w, const int *gpu, double *out)
{
	JoinedWorkload in;
	*out = 0;
	TRY(workload_join(s->ctx, w, s->machine, gpu, s->ask, &in));
	s->work -= (int64_t)in.sym->n_orbits * in.sym->n_orbits / ROWS_WORK;
	for (int p = 0; p < w->n_phases; p++) {
		double seconds;
		TRY(phase_least(s->ctx, &in, &w->phase[p], &seconds));
		*out += seconds * w->phase[p].times;
	}
	return OK;
}

/* Infinite where no links connect a group. */
static Status
evaluate(struct search *s, const Workload *w, const int *at, double *out)
{
	ArenaMark mark = arena_mark(&s->ctx->run), scratch = arena_mark(&s->ctx->scratch);
	int *gpu;
	TRY(NEW(s->ctx, gpu, w->n_ranks));
	for (int r = 0; r < w->n_ranks; r++)
		gpu[r] = s->gpu[at[r]];
	Status status = step_seconds(s, w, gpu, out);
	if (status == INFEASIBLE) {
		s->ctx->error.status = OK;
		*out = INFINITY;
		status = OK;
	}
	s->work -= (int64_t)PROGRAM_WORK * w->n_ranks;
	arena_release(&s->ctx->scratch, scratch);
	arena_release(&s->ctx->run, mark);
	return status;
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

/* The machine, a vertex for each rank and each group, and the GPUs of the first `placed` ranks. */
static Status
find_form(struct search *s, const int *at, int placed, unsigned char form[CANONICAL_FORM_BYTES])
{
	ArenaMark mark = arena_mark(&s->ctx->run), scratch = arena_mark(&s->ctx->scratch);
	const Workload *w = s->w;
	Topology topo = *s->machine;
	size_t members, groups, at_member = 0;
	int first = topo.n_vertices, *candidate;
	count_members(w, &members, &groups);
	TRY(TEMP(s->ctx, candidate, topo.n_ranks));
	TRY(TEMP(s->ctx, topo.vertex, (size_t)first + (size_t)s->n + groups));
	TRY(TEMP(s->ctx, topo.link, (size_t)topo.n_links + 2 * (members + (size_t)placed)));
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
	for (int r = 0; r < placed; r++)
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
note(struct search *s, const int *at, int placed, struct seen **out, bool *before)
{
	unsigned char form[CANONICAL_FORM_BYTES];
	TRY(find_form(s, at, placed, form));
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

/* Seconds of a placement of all ranks, which may become the best. */
static Status
look(struct search *s, const int *at, double *seconds)
{
	struct seen *seen;
	bool before;
	TRY(note(s, at, s->n, &seen, &before));
	if (!before) {
		TRY(evaluate(s, s->w, at, &seen->seconds));
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

/* ---- descent ---- */

/* The number of a GPU in its server. */
static int
place_in_server(const struct search *s, int i)
{
	int place = 0;
	for (int j = 0; j < i; j++)
		place += s->machine->vertex[s->gpu[j]].node == s->machine->vertex[s->gpu[i]].node;
	return place;
}

/* Ranks on GPUs `a` and `b` of their servers change places, in each server. */
static Status
try_in_servers(struct search *s, int *at, int n_places)
{
	int *place, *other;
	double seconds, now = s->least;
	TRY(TEMP(s->ctx, place, s->n_gpus));
	TRY(TEMP(s->ctx, other, s->n));
	for (int i = 0; i < s->n_gpus; i++)
		place[i] = place_in_server(s, i);
	for (int a = 0; a < n_places && s->work > 0; a++)
		for (int b = a + 1; b < n_places && s->work > 0; b++) {
			for (int r = 0; r < s->n; r++) {
				int want = place[at[r]] == a ? b : a;
				other[r] = at[r];
				for (int i = 0; i < s->n_gpus && (place[at[r]] == a || place[at[r]] == b); i++)
					if (place[i] == want && s->machine->vertex[s->gpu[i]].node
					    == s->machine->vertex[s->gpu[at[r]]].node)
						other[r] = i;
			}
			TRY(look(s, other, &seconds));
			if (seconds >= now * (1 - RATE_ROUNDING))
				continue;
			memcpy(at, other, (size_t)s->n * sizeof *at);
			now = seconds;
		}
	return OK;
}

/* Two ranks change places, or one takes a GPU that no rank has. */
static Status
try_pairs(struct search *s, int *at)
{
	int *rank;
	double seconds, now = s->least;
	TRY(TEMP(s->ctx, rank, s->n_gpus));
	for (int i = 0; i < s->n_gpus; i++)
		rank[i] = -1;
	for (int r = 0; r < s->n; r++)
		rank[at[r]] = r;
	for (int a = 0; a < s->n_gpus && s->work > 0; a++)
		for (int b = a + 1; b < s->n_gpus && s->work > 0; b++) {
			int x = rank[a], y = rank[b];
			if (x < 0 && y < 0)
				continue;
			if (x >= 0)
				at[x] = b;
			if (y >= 0)
				at[y] = a;
			TRY(look(s, at, &seconds));
			if (seconds < now * (1 - RATE_ROUNDING)) {
				now = seconds;
				rank[a] = y;
				rank[b] = x;
				continue;
			}
			if (x >= 0)
				at[x] = a;
			if (y >= 0)
				at[y] = b;
		}
	return OK;
}

static Status
descend(struct search *s)
{
	ArenaMark mark = arena_mark(&s->ctx->scratch);
	int *at, n_places = 0;
	double before = INFINITY;
	TRY(TEMP(s->ctx, at, s->n));
	for (int i = 0; i < s->n_gpus; i++) {
		int place = place_in_server(s, i);
		n_places = place >= n_places ? place + 1 : n_places;
	}
	while (s->least < before && s->work > 0) {
		before = s->least;
		memcpy(at, s->best, (size_t)s->n * sizeof *at);
		if (n_places < s->n_gpus)
			TRY(try_in_servers(s, at, n_places));
		memcpy(at, s->best, (size_t)s->n * sizeof *at);
		TRY(try_pairs(s, at));
	}
	arena_release(&s->ctx->scratch, mark);
	return OK;
}

/* The ranks of each group side by side, kind by kind. */
static Status
try_kinds(struct search *s)
{
	int *at;
	double seconds;
	TRY(TEMP(s->ctx, at, s->n));
	for (int k = 0; k < s->w->n_kinds && s->work > 0; k++) {
		const GroupKind *kind = &s->w->kind[k];
		int next = 0;
		for (int r = 0; r < s->n; r++)
			at[r] = -1;
		for (int g = 0; g < kind->n_groups; g++)
			for (int i = 0; i < kind->group[g].n; i++)
				at[kind->group[g].rank[i]] = next++;
		for (int r = 0; r < s->n; r++)
			at[r] = at[r] < 0 ? next++ : at[r];
		TRY(look(s, at, &seconds));
	}
	return OK;
}

/* ---- branch and bound ---- */

static int
last_rank(const RankGroup *group)
{
	int last = 0;
	for (int i = 0; i < group->n; i++)
		last = group->rank[i] > last ? group->rank[i] : last;
	return last;
}

/* Those of groups that the first `placed` ranks have whole. */
static Status
restrict_matrices(Ctx *ctx, const GroupKind *kind, int placed, GroupCall *call)
{
	const int64_t **all = call->matrix;
	int n = 0;
	if (!all)
		return OK;
	TRY(NEW(ctx, call->matrix, kind->n_groups));
	for (int g = 0; g < kind->n_groups; g++)
		if (last_rank(&kind->group[g]) < placed)
			call->matrix[n++] = all[g];
	return OK;
}

/* The groups that the first `placed` ranks have whole, without priorities: a lower bound of all. */
static Status
restrict_groups(Ctx *ctx, const Workload *w, int placed, Workload *out, bool *grown)
{
	*out = *w;
	out->n_ranks = placed;
	*grown = false;
	TRY(NEW(ctx, out->kind, w->n_kinds));
	TRY(NEW(ctx, out->phase, w->n_phases));
	for (int k = 0; k < w->n_kinds; k++) {
		const GroupKind *from = &w->kind[k];
		GroupKind *to = &out->kind[k];
		*to = (GroupKind){ .name = from->name };
		TRY(NEW(ctx, to->group, from->n_groups));
		for (int g = 0; g < from->n_groups; g++) {
			int last = last_rank(&from->group[g]);
			*grown = *grown || (last == placed - 1 && from->group[g].n > 1);
			if (last < placed)
				to->group[to->n_groups++] = from->group[g];
		}
	}
	for (int p = 0; p < w->n_phases; p++) {
		out->phase[p] = w->phase[p];
		TRY(NEW(ctx, out->phase[p].call, w->phase[p].n_calls));
		memcpy(out->phase[p].call, w->phase[p].call, (size_t)w->phase[p].n_calls * sizeof *w->phase[p].call);
		for (int c = 0; c < w->phase[p].n_calls; c++) {
			GroupCall *call = &out->phase[p].call[c];
			call->priority = FIRST_PRIORITY;
			TRY(restrict_matrices(ctx, &w->kind[call->kind], placed, call));
		}
	}
	return OK;
}

/* All ways to place one more rank that may lead to less than the best, of those that are alike the first. */
static Status
extend(struct search *s, int placed, const int *node, int n_nodes, int **out, int *n_out)
{
	Workload part;
	bool grown, before;
	struct seen *seen;
	int *next = NULL, *at, room = 0;
	size_t width = (size_t)s->n;
	*n_out = 0;
	TRY(restrict_groups(s->ctx, s->w, placed, &part, &grown));
	TRY(NEW(s->ctx, at, s->n));
	for (int i = 0; i < n_nodes; i++)
		for (int g = 0; g < s->n_gpus && s->work > 0; g++) {
			bool taken = false;
			double seconds = 0;
			memcpy(at, node + (size_t)i * width, width * sizeof *at);
			for (int r = 0; r < placed - 1; r++)
				taken = taken || at[r] == g;
			at[placed - 1] = g;
			if (taken)
				continue;
			if (placed == s->n) {
				TRY(look(s, at, &seconds));
				continue;
			}
			TRY(note(s, at, placed, &seen, &before));
			if (before)
				continue;
			if (grown)
				TRY(evaluate(s, &part, at, &seconds));
			if (seconds >= s->least * (1 - RATE_ROUNDING))
				continue;
			for (int r = 0; r < s->n; r++) {
				TRY(GROW(s->ctx, next, *n_out * s->n + r, room));
				next[*n_out * s->n + r] = at[r];
			}
			++*n_out;
			progress(s->ctx, "placements: %d of %d ranks placed in %d ways", placed, s->n, *n_out);
		}
	*out = next;
	return OK;
}

static Status
branch_and_bound(struct search *s, bool *all)
{
	int *node, n_nodes = 1;
	TRY(NEW(s->ctx, node, s->n));
	for (int placed = 1; placed <= s->n && n_nodes > 0 && s->work > 0; placed++)
		TRY(extend(s, placed, node, n_nodes, &node, &n_nodes));
	*all = s->work > 0;
	return OK;
}

/* ---- all ---- */

static bool
in_one_server(const struct search *s)
{
	for (int i = 1; i < s->n_gpus; i++)
		if (s->machine->vertex[s->gpu[i]].node != s->machine->vertex[s->gpu[0]].node)
			return false;
	return true;
}

Status
workload_place(Ctx *ctx, const Workload *w, const Topology *machine, const int *gpu, int n_gpus, const Ask *ask,
    Placements *out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct search s = { .ctx = ctx, .w = w, .machine = machine, .ask = ask, .n = w->n_ranks, .n_gpus = n_gpus,
		.gpu = gpu, .work = WORK, .least = INFINITY };
	size_t members, groups;
	int *at;
	*out = (Placements){ 0 };
	count_members(w, &members, &groups);
	TRY(number_members(&s, members));
	TRY(NEW_EACH(ctx, s.n, s.best, at, out->gpu));
	for (int r = 0; r < s.n; r++)
		at[r] = s.best[r] = r;
	if (in_one_server(&s))
		TRY(ports_least(ctx, w, machine, gpu, n_gpus, ask, &s.floor));
	TRY(look(&s, at, &out->in_order));
	TRY(try_kinds(&s));
	TRY(descend(&s));
	out->proven = s.least <= s.floor * (1 + RATE_ROUNDING);
	if (in_one_server(&s) && !out->proven) {
		s.work = WORK;
		TRY(branch_and_bound(&s, &out->proven));
		out->proven = out->proven || s.least <= s.floor * (1 + RATE_ROUNDING);
	}
	if (!isfinite(s.least))
		return fail(ctx, INFEASIBLE, "%s: no placement was found of whose groups all are connected",
		    machine->name);
	for (int r = 0; r < s.n; r++)
		out->gpu[r] = gpu[s.best[r]];
	out->seconds = s.least;
	out->slowest = s.most;
	out->n_looked = s.n_looked;
	arena_release(&ctx->scratch, mark);
	return OK;
}
