/* What groups of a job do at once (blink-phases(5)), for who checks it: nothing in it is trusted. */
#include "format/blink/schedule_reader.h"
#include "format/blink/index_reader.h"
#include "format/file_kind.h"

#include <limits.h>
#include <string.h>

static Status
read_number(struct reader *r, const Doc *object, const char *name, double *out)
{
	const Doc *at;
	TRY(need(r, object, name, DOC_NUMBER, &at));
	if (!(at->number >= 0 && at->number <= 1e18))
		return doc_want(r->ctx, r->label, at, "a time, 0 to 1e18 (us)");
	*out = at->number / 1e6;
	return OK;
}

static Status
read_count(struct reader *r, const Doc *object, const char *name, int lo, int64_t hi, int64_t *out)
{
	const Doc *at;
	TRY(need(r, object, name, DOC_NUMBER, &at));
	return doc_int(r->ctx, r->label, at, lo, hi, out);
}

static Status
read_group(struct reader *r, const Doc *at, bool *seen, RankGroup *group, const char **file)
{
	const Doc *ranks;
	int *rank;
	if (at->kind != DOC_OBJECT)
		return bad(r, at, "not an object", "{ \"ranks\": [], \"file\": path }");
	TRY(need(r, at, "ranks", DOC_ARRAY, &ranks));
	if (ranks->n < 2)
		return doc_want(r->ctx, r->label, ranks, "two ranks or more");
	TRY(NEW(r->ctx, rank, ranks->n));
	for (int i = 0; i < ranks->n; i++) {
		TRY(read_int(r, ranks->child[i], 0, r->topo->n_ranks - 1, &rank[i]));
		if (seen[rank[i]])
			return doc_want(r->ctx, r->label, ranks->child[i], "each rank in one group of a call");
		seen[rank[i]] = true;
	}
	*group = (RankGroup){ ranks->n, rank };
	TRY(doc_string(r->ctx, r->label, at, "file", file));
	return index_path_is_inside(*file) ? OK
	    : doc_want(r->ctx, r->label, doc_get(at, "file"), "a path below the directory, without . and ..");
}

static Status
read_call(struct reader *r, const Doc *at, PlannedCall *call)
{
	const Doc *list, *root, *flag = doc_get(at, "by_matrix");
	const char *text;
	RankGroup *group;
	int64_t times, priority;
	bool *seen;
	if (at->kind != DOC_OBJECT)
		return bad(r, at, "not an object", "a call");
	TRY(doc_string(r->ctx, r->label, at, "groups", &call->groups));
	TRY(doc_string(r->ctx, r->label, at, "collective", &text));
	if (!collective_parse(text, &call->coll))
		return doc_want(r->ctx, r->label, doc_get(at, "collective"), "a collective, as \"allreduce\"");
	TRY(need_any(r, at, "root", &root));
	call->root = -1;
	if (root->kind != DOC_NULL)
		TRY(read_int(r, root, 0, r->topo->n_ranks - 1, &call->root));
	TRY(read_count(r, at, "bytes", 1, LIMIT_MESSAGE, &call->bytes));
	if (flag && (flag->kind != DOC_BOOL || call->coll != ALLTOALL))
		return doc_want(r->ctx, r->label, flag, "true or false, and true with an alltoall alone");
	call->by_matrix = flag && flag->flag;
	TRY(read_count(r, at, "times", 1, INT_MAX, &times));
	if (call->bytes > LIMIT_MESSAGE / times)
		return doc_fail(r->ctx, r->label, doc_get(at, "bytes"), LIMIT,
		    "times as many calls: want at most %lld bytes",
		    (long long)LIMIT_MESSAGE);
	TRY(read_count(r, at, "priority", FIRST_PRIORITY, LAST_PRIORITY, &priority));
	call->times = (int)times;
	call->priority = (int)priority;
	TRY(need(r, at, "schedules", DOC_ARRAY, &list));
	TRY(NEW(r->ctx, group, list->n));
	TRY(NEW(r->ctx, call->file, list->n));
	TRY(TEMP(r->ctx, seen, r->topo->n_ranks));
	call->group = group;
	call->n_groups = list->n;
	for (int g = 0; g < list->n; g++)
		TRY(read_group(r, list->child[g], seen, &group[g], &call->file[g]));
	return OK;
}

/* Prices of links, for each level up to this one. */
static Status
read_level(struct reader *r, const Doc *at, int number, int n_levels, PhaseLevel *level)
{
	const int64_t most = ((INT64_C(1) << 44) - 1) / n_levels;
	const Doc *prices;
	int64_t priority;
	int n = r->topo->n_links;
	if (at->kind != DOC_OBJECT)
		return bad(r, at, "not an object", "a level");
	TRY(read_count(r, at, "priority", FIRST_PRIORITY, LAST_PRIORITY, &priority));
	level->priority = (int)priority;
	TRY(read_number(r, at, "time", &level->seconds));
	TRY(read_number(r, at, "bound", &level->bound));
	TRY(need(r, at, "prices", DOC_ARRAY, &prices));
	if (prices->n != number + 1)
		return doc_want(r->ctx, r->label, prices, "a list for each level up to this one");
	TRY(NEW(r->ctx, level->price, (size_t)prices->n * (size_t)n));
	for (int j = 0; j <= number; j++) {
		const Doc *list = prices->child[j];
		if (list->kind != DOC_ARRAY || list->n != n)
			return doc_want(r->ctx, r->label, list, "a price for each link");
		for (int l = 0; l < n; l++)
			TRY(doc_int(r->ctx, r->label, list->child[l], 0, most, &level->price[(size_t)j * (size_t)n
			    + (size_t)l]));
	}
	return OK;
}

static int
priorities(const PlannedPhase *phase)
{
	unsigned set = 0;
	int n = 0;
	for (int c = 0; c < phase->n_calls; c++)
		set |= 1u << phase->call[c].priority;
	for (; set; set &= set - 1)
		n++;
	return n;
}

static Status
read_phase(struct reader *r, const Doc *at, PlannedPhase *phase)
{
	const Doc *calls, *levels;
	int64_t times;
	if (at->kind != DOC_OBJECT)
		return bad(r, at, "not an object", "a phase");
	TRY(doc_string(r->ctx, r->label, at, "name", &phase->name));
	TRY(read_count(r, at, "times", 1, INT_MAX, &times));
	phase->times = (int)times;
	TRY(need(r, at, "calls", DOC_ARRAY, &calls));
	TRY(count_within(r, calls, LIMIT_CALLS));
	phase->n_calls = calls->n;
	TRY(NEW(r->ctx, phase->call, calls->n));
	for (int c = 0; c < calls->n; c++)
		TRY(read_call(r, calls->child[c], &phase->call[c]));
	TRY(need(r, at, "levels", DOC_ARRAY, &levels));
	phase->n_levels = levels->n;
	if (levels->n < 1 || levels->n != priorities(phase))
		return doc_want(r->ctx, r->label, levels, "a level for each priority of the calls");
	TRY(NEW(r->ctx, phase->level, levels->n));
	for (int level = 0; level < levels->n; level++)
		TRY(read_level(r, levels->child[level], level, levels->n, &phase->level[level]));
	TRY(read_number(r, at, "alone", &phase->alone));
	phase->rings = -1;
	if (doc_get(at, "rings") && doc_get(at, "rings")->kind != DOC_NULL)
		TRY(read_number(r, at, "rings", &phase->rings));
	return OK;
}

Status
phases_read(Ctx *ctx, const char *label, const char *data, size_t size, Phases **out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct reader r;
	Doc *root;
	const Doc *phases, *version;
	Phases *made;
	TRY(file_kind_check(ctx, label, data, size, FILE_PHASES));
	TRY(schedule_new_reader(ctx, label, &r));
	TRY(doc_read_json(ctx, label, data, size, &root));
	if (root->kind != DOC_OBJECT)
		return bad(&r, root, "not an object", "phases");
	TRY(doc_format(ctx, label, root, "blink-phases"));
	TRY(need(&r, root, "version", DOC_NUMBER, &version));
	if (version->number != 1)
		return doc_want(ctx, label, version, "1");
	TRY(schedule_read_topology(&r, root));
	TRY(need(&r, root, "phases", DOC_ARRAY, &phases));
	TRY(count_within(&r, phases, LIMIT_CALLS));
	TRY(NEW(ctx, made, 1));
	made->topo = r.topo;
	made->n_phases = phases->n;
	TRY(NEW(ctx, made->phase, phases->n));
	for (int p = 0; p < phases->n; p++)
		TRY(read_phase(&r, phases->child[p], &made->phase[p]));
	arena_release(&ctx->scratch, mark);
	*out = made;
	return OK;
}
