/* A file of parameters: for each executor the members that differ from the table in simulate/simulate.h. */
#include "base/file.h"
#include "format/doc.h"
#include "verb/simulate/simulation.h"

#include <string.h>

/* Of link classes: { "nvlink": 0.9 }. */
static Status
read_classes(Ctx *ctx, const char *label, const Doc *at, int64_t scale, int64_t lo, int64_t hi, const char *unit,
    int64_t *value)
{
	static const char *const names[] = {
#define X(name, text, what) text,
		LINK_CLASS_LIST(X)
#undef X
		NULL
	};
	TRY(doc_only(ctx, label, at, names));
	for (int i = 0; i < at->n; i++) {
		LinkClass class;
		if (link_class_parse(at->child[i]->name, &class))
			TRY(doc_scaled(ctx, label, at->child[i], scale, lo, hi, unit, &value[class]));
	}
	return OK;
}

static Status
check_names(Ctx *ctx, const char *label, const Doc *at)
{
	static const char *const names[] = {
#define X(member, text, ...) text,
		SIM_PARAMETER_LIST(X)
#undef X
		"efficiency", "latency", NULL
	};
	return doc_only(ctx, label, at, names);
}

static Status
read_executor(Ctx *ctx, const char *label, const Doc *at, SimParameters *p)
{
	const Doc *classes;
	TRY(check_names(ctx, label, at));
	for (const SimParameter *row = sim_parameters; row->name; row++) {
		const Doc *value = doc_get(at, row->name);
		if (value)
			TRY(doc_scaled(ctx, label, value, row->unit, row->least, row->most,
			    row->unit == NS_PER_US ? "us" : row->unit == BYTES_PER_GB ? "GB/s" : "",
			    (int64_t *)((char *)p + row->at)));
	}
	if (doc_get(at, "efficiency")) {
		TRY(doc_need(ctx, label, at, "efficiency", DOC_OBJECT, &classes));
		TRY(read_classes(ctx, label, classes, PPM, 1, PPM, "of the capacity", p->efficiency));
	}
	if (doc_get(at, "latency")) {
		TRY(doc_need(ctx, label, at, "latency", DOC_OBJECT, &classes));
		TRY(read_classes(ctx, label, classes, NS_PER_US, 0, LIMIT_LATENCY_NS, "us", p->latency));
	}
	return OK;
}

/* Those of other executors are checked, too, so that a wrong file is wrong with each. */
static Status
parameters_read(Ctx *ctx, const char *label, const Text *in, Executor executor, SimParameters *p)
{
	static const char *const names[] = {
#define X(name, text, what) text,
		EXECUTOR_LIST(X)
#undef X
		NULL
	};
	Doc *doc;
	TRY(doc_read_json(ctx, label, in->data ? in->data : "", in->size, &doc));
	if (doc->kind != DOC_OBJECT)
		return doc_fail(ctx, label, doc, BAD_INPUT, "%s: want an object", doc_found(doc).text);
	TRY(doc_only(ctx, label, doc, names));
	for (int i = 0; i < doc->n; i++) {
		const char *name = doc->child[i]->name;
		SimParameters other = *p;
		bool own = strcmp(name, executor_names.name[executor]) == 0;
		const Doc *at;
		TRY(doc_need(ctx, label, doc, name, DOC_OBJECT, &at));
		TRY(read_executor(ctx, label, at, own ? p : &other));
	}
	return OK;
}

Status
request_executor(Ctx *ctx, const char *text, Executor *out)
{
	int i = 0;
	if (text && !names_find(executor_names, text, &i))
		return fail(ctx, USAGE, "--executor: %.40s: want %s%s", text, names_wanted(executor_names).text,
		    names_hint(executor_names, text).text);
	*out = (Executor)i;
	return OK;
}

Status
request_parameters(Ctx *ctx, const char *path, Executor executor, SimParameters *out)
{
	Text in = { 0 };
	sim_defaults(executor, out);
	if (!path)
		return OK;
	TRY(file_read(ctx, path, &in));
	Status status = parameters_read(ctx, path, &in, executor, out);
	text_free(&in);
	return status;
}
