/* Where the ranks of a workload are best: which GPU each has, so that a step takes the least time (search.c).
 *
 * First, from a few orders on, ranks change their GPUs as long as that helps. Nothing is faster where links of GPUs
 * carry no more than they must (ports.c). Else, in one server, branch and bound (exact.c); if that comes to an end
 * nothing is faster. */
#include "workload/search.h"

#include <math.h>
#include <string.h>

/* Ranks of placements that are compared. */
enum { WORK = 400000 };

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
	int *at;
	*out = (Placements){ 0 };
	TRY(search_open(&s));
	TRY(NEW_EACH(ctx, s.n, at, out->gpu));
	for (int r = 0; r < s.n; r++)
		at[r] = r;
	if (in_one_server(&s))
		TRY(ports_least(ctx, w, machine, gpu, n_gpus, ask, &s.floor));
	TRY(look(&s, at, &out->in_order));
	TRY(try_kinds(&s));
	TRY(descend(&s));
	out->proven = s.least <= s.floor * (1 + RATE_ROUNDING);
	if (in_one_server(&s) && !out->proven) {
		s.work = WORK;
		TRY(exact_placements(&s, &out->proven));
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
