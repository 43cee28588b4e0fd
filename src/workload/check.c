/* Phases against the schedules that they name: what each group sends, when all are done, and what is proven. */
#include "workload/check.h"
#include "base/file.h"
#include "format/format.h"
#include "schedule/schedule.h"
#include "workload/workload.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Ends and class of a link, and how many of the same come before it, so that each has a name of its own. */
struct named_link {
	const char *from, *to;
	LinkClass class;
	int before, link;
};

static int
order_names(const void *a, const void *b)
{
	const struct named_link *x = a, *y = b;
	int from = strcmp(x->from, y->from), to = strcmp(x->to, y->to);
	if (from || to)
		return from ? from : to;
	if (x->class != y->class)
		return x->class < y->class ? -1 : 1;
	return (x->before > y->before) - (x->before < y->before);
}

static int
order_links(const void *a, const void *b)
{
	const struct named_link *x = a, *y = b;
	int order = order_names(a, b);
	return order ? order : (x->link > y->link) - (x->link < y->link);
}

/* "plx0:out" and "plx0:in" are copies of plx0 unless the phases have a vertex of that name: these are told apart by the
 * links that are found. */
static const char *
without_ending(Ctx *ctx, const char *id)
{
	const char *ending = strrchr(id, ':');
	bool copy = ending && (strcmp(ending, ":out") == 0 || strcmp(ending, ":in") == 0);
	return copy ? arena_text(&ctx->scratch, id, (size_t)(ending - id)) : id;
}

/* Links by the ids of their ends, sorted; those with the same ends and class are counted. */
static Status
name_links(Ctx *ctx, const Topology *topo, bool copies, struct named_link **out)
{
	struct named_link *named;
	TRY(TEMP(ctx, named, topo->n_links));
	for (int l = 0; l < topo->n_links; l++) {
		const Link *link = &topo->link[l];
		const char *from = topo->vertex[link->from].id, *to = topo->vertex[link->to].id;
		if (copies && link->from >= topo->n_ranks)
			from = without_ending(ctx, from);
		if (copies && link->to >= topo->n_ranks)
			to = without_ending(ctx, to);
		if (!from || !to)
			return fail_memory(ctx);
		named[l] = (struct named_link){ from, to, link->class, 0, l };
	}
	qsort(named, (size_t)topo->n_links, sizeof *named, order_links);
	for (int l = 1; l < topo->n_links; l++) {
		const struct named_link *last = &named[l - 1];
		bool same = strcmp(last->from, named[l].from) == 0 && strcmp(last->to, named[l].to) == 0
		    && last->class == named[l].class;
		named[l].before = same ? last->before + 1 : 0;
	}
	*out = named;
	return OK;
}

/* Each link of a schedule as a link of the phases, with the same capacity. */
static Status
find_shared(Ctx *ctx, const char *label, const Topology *topo, const Topology *all, const struct named_link *sorted,
    int **out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct named_link *exact, *copies;
	int *shared;
	TRY(NEW(ctx, shared, topo->n_links));
	TRY(name_links(ctx, topo, false, &exact));
	TRY(name_links(ctx, topo, true, &copies));
	memset(shared, -1, (size_t)topo->n_links * sizeof *shared);
	for (int pass = 0; pass < 2; pass++)
		for (int i = 0; i < topo->n_links; i++) {
			const struct named_link *want = pass == 0 ? &exact[i] : &copies[i];
			const struct named_link *found = bsearch(want, sorted, (size_t)all->n_links, sizeof *want,
			    order_names);
			if (shared[want->link] < 0 && found)
				shared[want->link] = found->link;
		}
	for (int l = 0; l < topo->n_links; l++) {
		const Link *link = &topo->link[l];
		if (shared[l] < 0 || all->link[shared[l]].capacity != link->capacity)
			return fail(ctx, BAD_INPUT,
			    "%s: topology.links[%d]: %s to %s: want a link of phases.json, as fast as there", label, l,
			    topo->vertex[link->from].id, topo->vertex[link->to].id);
	}
	arena_release(&ctx->scratch, mark);
	*out = shared;
	return OK;
}

static Status
read_schedule(Ctx *ctx, const char *directory, const char *file, Schedule **out)
{
	char path[FILE_PATH_ROOM];
	Text in = { 0 };
	if (snprintf(path, sizeof path, "%s%s", directory, file) >= (int)sizeof path)
		return fail(ctx, LIMIT, "%s: a path longer than %d bytes", file, FILE_PATH_ROOM - 1);
	if (!file_is_there(path))
		return fail(ctx, BAD_INPUT, "%s: no such file beside it", file);
	Status status = file_read_regular(ctx, path, &in);
	if (status == OK)
		status = sched_read_verified(ctx, file, in.data, in.size, out);
	text_free(&in);
	return status;
}

/* Its ranks are those of the group, in order. */
static Status
check_schedule(Ctx *ctx, const Phases *phases, const PlannedCall *call, int g, const Schedule *sched)
{
	const RankGroup *group = &call->group[g];
	if (sched->coll != call->coll || sched->root != call->root)
		return fail(ctx, BAD_INPUT, "%s: collective: want %s%s as phases.json has it", call->file[g],
		    collective_name(call->coll), call->root < 0 ? "" : ", with the root");
	if (sched->topo->n_ranks != group->n || strcmp(sched->topo->digest, phases->topo->digest) != 0)
		return fail(ctx, BAD_INPUT, "%s: topology: want %d ranks of the machine of phases.json", call->file[g],
		    group->n);
	for (int i = 0; i < group->n; i++)
		if (strcmp(sched->topo->vertex[i].id, phases->topo->vertex[group->rank[i]].id) != 0)
			return fail(ctx, BAD_INPUT, "%s: topology.ranks[%d]: %s: want %s, rank %d of the job",
			    call->file[g], i, sched->topo->vertex[i].id, phases->topo->vertex[group->rank[i]].id,
			    group->rank[i]);
	return OK;
}

static int
level_of(const PlannedPhase *phase, int priority)
{
	int level = 0;
	while (level < phase->n_levels - 1 && phase->level[level].priority < priority)
		level++;
	return level;
}

static Status
load_groups(Ctx *ctx, const char *directory, const Phases *phases, const PlannedPhase *phase,
    const struct named_link *sorted, PhaseGroups *out)
{
	*out = (PhaseGroups){ .topo = phases->topo, .n_calls = phase->n_calls };
	TRY(NEW(ctx, out->call, phase->n_calls));
	for (int c = 0; c < phase->n_calls; c++) {
		const PlannedCall *call = &phase->call[c];
		PhaseCall *of = &out->call[c];
		*of = (PhaseCall){ .level = level_of(phase, call->priority), .n_groups = call->n_groups,
			.bytes = call->bytes * call->times };
		TRY(NEW(ctx, of->group, call->n_groups));
		for (int g = 0; g < call->n_groups; g++) {
			Schedule *sched;
			int *shared = NULL;
			TRY(read_schedule(ctx, directory, call->file[g], &sched));
			TRY(check_schedule(ctx, phases, call, g, sched));
			TRY(find_shared(ctx, call->file[g], sched->topo, phases->topo, sorted, &shared));
			of->group[g] = (CallingGroup){ sched, shared };
		}
	}
	return OK;
}

/* Within the rounding of doubles, summed in another order. */
static bool
same_time(double a, double b)
{
	return fabs(a - b) <= RATE_ROUNDING * fmax(fabs(a), fabs(b));
}

static Status
check_levels(Ctx *ctx, const char *label, const PlannedPhase *phase, const PhaseGroups *groups)
{
	for (int level = 0; level < phase->n_levels; level++) {
		const PhaseLevel *of = &phase->level[level];
		double seconds, bound;
		TRY(phase_seconds(ctx, groups, level, &seconds));
		if (!same_time(seconds, of->seconds))
			return fail(ctx, UNVERIFIED,
			    "%s: phase %s: levels[%d].time: %.15g us: the schedules take %.15g", label, phase->name,
			    level, of->seconds * 1e6, seconds * 1e6);
		TRY(phase_bound(ctx, label, groups, phase->level, level, &bound));
		if (!same_time(bound, of->bound))
			return fail(ctx, UNVERIFIED,
			    "%s: phase %s: levels[%d].bound: %.15g us: the prices prove %.15g", label, phase->name,
			    level, of->bound * 1e6, bound * 1e6);
	}
	return OK;
}

Status
phases_check(Ctx *ctx, const char *label, const char *directory, const Phases *phases)
{
	struct named_link *sorted;
	TRY(name_links(ctx, phases->topo, false, &sorted));
	for (int p = 0; p < phases->n_phases; p++) {
		ArenaMark mark = arena_mark(&ctx->run);
		PhaseGroups groups;
		TRY(load_groups(ctx, directory, phases, &phases->phase[p], sorted, &groups));
		TRY(check_levels(ctx, label, &phases->phase[p], &groups));
		arena_release(&ctx->run, mark);
	}
	return OK;
}
