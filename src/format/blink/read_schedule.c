/* Reader of the schedule file (blink-schedule(5)). Unknown members are ignored: "fields may be added". Everything else
 * is checked here or in sched_check before anyone uses it. */
#include "base/json_write.h"
#include "format/blink/schedule_reader.h"
#include "format/file_kind.h"
#include "schedule/schedule.h"

#include <string.h>

/* Scalars and arrays of scalars, as JSON text again; anything else as null. */
static void
put_value(JsonWriter *w, const Doc *at)
{
	bool fits = at->kind == DOC_NUMBER && at->number >= 0 && at->number < 1e9;
	switch (at->kind) {
	case DOC_STRING:
		json_string(w, NULL, at->text);
		break;
	case DOC_NUMBER:
		/* Options of blinkc are small; those of others are kept if they fit. */
		if (fits)
			json_gb(w, NULL, (Frac){ (int64_t)(at->number * 1e9 + 0.5), 1 });
		else
			json_null(w, NULL);
		break;
	case DOC_BOOL:
		json_bool(w, NULL, at->flag);
		break;
	case DOC_ARRAY:
		json_array(w, NULL, JSON_LINE);
		for (int i = 0; i < at->n; i++)
			put_value(w, at->child[i]);
		json_end(w);
		break;
	default:
		json_null(w, NULL);
		break;
	}
}

static Status
read_options(struct reader *r, const Doc *options)
{
	Schedule *sched = r->sched;
	TRY(NEW(r->ctx, sched->option, options->n));
	for (int i = 0; i < options->n; i++) {
		const Doc *at = options->child[i];
		Text text = { 0 };
		put_value(&(JsonWriter){ .out = &text }, at);
		const char *value = text_keep(&r->ctx->run, &text);
		if (!value)
			return fail_memory(r->ctx);
		sched->option[sched->n_options++] = (Option){ at->name, value };
	}
	return OK;
}

static Status
read_generator(struct reader *r, const Doc *root)
{
	const Doc *generator, *options;
	TRY(need(r, root, "generator", DOC_OBJECT, &generator));
	TRY(doc_string(r->ctx, r->label, generator, "name", &r->sched->generator));
	TRY(doc_string(r->ctx, r->label, generator, "version", &r->sched->version));
	TRY(need(r, generator, "options", DOC_OBJECT, &options));
	return read_options(r, options);
}

static Status
read_header(struct reader *r, const Doc *root)
{
	const char *text;
	const Doc *version;
	if (root->kind != DOC_OBJECT)
		return bad(r, root, "not an object", "a schedule");
	TRY(doc_format(r->ctx, r->label, root, "blink-schedule"));
	TRY(need(r, root, "version", DOC_NUMBER, &version));
	if (version->number != 1 && version->number != 2 && version->number != 3)
		return doc_want(r->ctx, r->label, version, "1, 2 or 3");
	r->version = (int)version->number;
	TRY(doc_string(r->ctx, r->label, root, "collective", &text));
	if (!collective_parse(text, &r->sched->coll))
		return doc_want(r->ctx, r->label, doc_get(root, "collective"), "a collective, as \"allreduce\"");
	return doc_string(r->ctx, r->label, root, "algorithm", &r->sched->algorithm);
}

static Status
read_root(struct reader *r, const Doc *root)
{
	const Doc *at;
	TRY(need_any(r, root, "root", &at));
	r->sched->root = -1;
	if (collective_rooted(r->sched->coll))
		return read_int(r, at, 0, r->topo->n_ranks - 1, &r->sched->root);
	return at->kind == DOC_NULL ? OK : doc_want(r->ctx, r->label, at, "null: the collective has no root");
}

Status
schedule_new_reader(Ctx *ctx, const char *label, struct reader *out)
{
	*out = (struct reader){ .ctx = ctx, .label = label };
	TRY(NEW(ctx, out->sched, 1));
	TRY(NEW(ctx, out->topo, 1));
	out->sched->topo = out->topo;
	return OK;
}

Status
schedule_read_members(struct reader *r, const Doc *root)
{
	TRY(read_header(r, root));
	TRY(read_generator(r, root));
	TRY(schedule_read_topology(r, root));
	TRY(read_root(r, root));
	TRY(schedule_read_rate(r, root));
	TRY(schedule_read_matrix(r, root));
	return schedule_read_baselines(r, root);
}

Status
sched_read_compact(Ctx *ctx, const char *label, const char *data, size_t size, Schedule **out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	static const char *const names[DOC_LISTS] = { "trees", "edges" };
	struct reader r;
	DocList list[DOC_LISTS];
	Doc *root;
	TRY(file_kind_check(ctx, label, data, size, FILE_SCHEDULE));
	TRY(schedule_new_reader(ctx, label, &r));
	TRY(doc_read_json_lists(ctx, label, data, size, names, &root, list));
	r.trees = list[0];
	r.edges = list[1];
	TRY(schedule_read_members(&r, root));
	TRY(schedule_read_parts(&r, root));
	if (r.version == 2)
		TRY(schedule_read_symmetry(&r, root));
	TRY(r.version == 3 ? schedule_read_in_trees(&r, root) : schedule_read_trees(&r, root));
	TRY(sched_check(ctx, label, r.sched));
	TRY(sched_achieved(ctx, label, r.sched, &r.sched->achieved));
	TRY(sched_parts(ctx, label, r.sched, r.sched->part));
	arena_release(&ctx->scratch, mark);
	*out = r.sched;
	return OK;
}

Status
sched_read(Ctx *ctx, const char *label, const char *data, size_t size, Schedule **out)
{
	Schedule *sched;
	TRY(sched_read_compact(ctx, label, data, size, &sched));
	if (!sched_is_list(sched))
		TRY(sched_expand(ctx, label, sched, &sched));
	*out = sched;
	return OK;
}
