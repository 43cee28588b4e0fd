/* Phases against the schedules that they name: what each group sends, when all are done, and what is proven. */
#include "workload/check.h"
#include "base/file.h"
#include "format/format.h"
#include "schedule/schedule.h"
#include "workload/links.h"

#include <math.h>
#include <string.h>

/* Each link of a schedule as a link of the phases, with the same capacity. */
static Status
find_shared(Ctx *ctx, const char *label, const Topology *topo, const Topology *all, const LinkNames *names, int **out)
{
	int *shared;
	TRY(NEW(ctx, shared, topo->n_links));
	TRY(link_names_find(ctx, names, topo, shared));
	for (int l = 0; l < topo->n_links; l++) {
		const Link *link = &topo->link[l];
		if (shared[l] < 0 || all->link[shared[l]].capacity != link->capacity)
			return fail(ctx, BAD_INPUT,
			    "%s: topology.links[%d]: %s to %s: want a link of phases.json, as fast as there", label, l,
			    topo->vertex[link->from].id, topo->vertex[link->to].id);
	}
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

/* Its ranks are those of the group, in order; it has a matrix if the call says so, of no larger message. */
static Status
check_schedule(Ctx *ctx, const Phases *phases, const PlannedCall *call, int g, const Schedule *sched)
{
	const RankGroup *group = &call->group[g];
	if (call->by_matrix && !sched->matrix)
		return fail(ctx, BAD_INPUT, "%s: matrix: missing: want it as phases.json has by_matrix", call->file[g]);
	if (call->by_matrix && alltoall_message(sched->matrix->bytes, sched->topo->n_ranks) > call->bytes)
		return fail(ctx, BAD_INPUT, "%s: matrix: more bytes than the message of phases.json, %lld",
		    call->file[g], (long long)call->bytes);
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

Status
phases_load(Ctx *ctx, const char *directory, const Phases *phases, int p, PhaseGroups *out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	const PlannedPhase *phase = &phases->phase[p];
	LinkNames names;
	TRY(link_names(ctx, phases->topo, &names));
	*out = (PhaseGroups){ .topo = phases->topo, .n_calls = phase->n_calls };
	TRY(NEW(ctx, out->call, phase->n_calls));
	for (int c = 0; c < phase->n_calls; c++) {
		const PlannedCall *call = &phase->call[c];
		PhaseCall *of = &out->call[c];
		*of = (PhaseCall){ .level = level_of(phase, call->priority), .n_groups = call->n_groups,
			.bytes = call->bytes * call->times, .by_matrix = call->by_matrix, .times = call->times };
		TRY(NEW(ctx, of->group, call->n_groups));
		for (int g = 0; g < call->n_groups; g++) {
			Schedule *sched;
			int *shared = NULL;
			TRY(read_schedule(ctx, directory, call->file[g], &sched));
			TRY(check_schedule(ctx, phases, call, g, sched));
			TRY(find_shared(ctx, call->file[g], sched->topo, phases->topo, &names, &shared));
			of->group[g] = (CallingGroup){ sched, shared };
		}
	}
	arena_release(&ctx->scratch, mark);
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
	for (int p = 0; p < phases->n_phases; p++) {
		ArenaMark mark = arena_mark(&ctx->run);
		PhaseGroups groups;
		TRY(phases_load(ctx, directory, phases, p, &groups));
		TRY(check_levels(ctx, label, &phases->phase[p], &groups));
		arena_release(&ctx->run, mark);
	}
	return OK;
}
