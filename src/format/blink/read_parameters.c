/* Parameters of executors: the member `parameters` of a topology file, and a file of them alone, for --parameters,
 * which is the same object. XML has an element for each executor, with the parameters as attributes, and in that one
 * for each list by link class. */
#include "base/array.h"
#include "format/blink/topology_reader.h"
#include "simulate/simulate.h"

struct parameters {
	Ctx *ctx;
	const char *label;
	Parameters *out;
};

/* A member that is an object, which XML gathers into an array. NULL: it is not there. */
static Status
member_object(const struct parameters *r, const Doc *object, const char *name, const Doc **out)
{
	const Doc *at = doc_get(object, name);
	*out = NULL;
	if (!at)
		return OK;
	if (!object->line)
		return doc_need(r->ctx, r->label, object, name, DOC_OBJECT, out);
	TRY(doc_need(r->ctx, r->label, object, name, DOC_ARRAY, &at));
	if (at->n > 1)
		return doc_fail(r->ctx, r->label, at->child[1], BAD_INPUT, "given twice: want it once");
	*out = at->child[0];
	return OK;
}

static Status
add(const struct parameters *r, const Doc *at, Parameter of, int64_t least, int64_t most, const char *unit)
{
	TRY(doc_scaled(r->ctx, r->label, at, of.unit, least, most, unit, &of.value));
	TRY(GROW(r->ctx, r->out->of, r->out->n, r->out->room));
	r->out->of[r->out->n++] = of;
	return OK;
}

/* By link class: { "nvlink": 0.9 }. */
static Status
read_by_class(const struct parameters *r, const Doc *executor, Parameter of, int64_t least, int64_t most,
    const char *unit)
{
	static const char *const names[] = {
#define X(name, text, what) text,
		LINK_CLASS_LIST(X)
#undef X
		NULL
	};
	const Doc *classes;
	TRY(member_object(r, executor, of.name, &classes));
	if (!classes)
		return OK;
	TRY(doc_only(r->ctx, r->label, classes, names));
	for (int c = 0; c < N_LINK_CLASSES; c++) {
		of.class = names[c];
		if (doc_get(classes, of.class))
			TRY(add(r, doc_get(classes, of.class), of, least, most, unit));
	}
	return OK;
}

static Status
read_executor(const struct parameters *r, const Doc *at, const char *executor)
{
	static const char *const names[] = {
#define X(member, text, ...) text,
		SIM_PARAMETER_LIST(X)
#undef X
		"efficiency", "latency", NULL
	};
	TRY(doc_only(r->ctx, r->label, at, names));
	for (const SimParameter *row = sim_parameters; row->name; row++) {
		const Parameter of = { .executor = executor, .name = row->name, .unit = row->unit };
		if (doc_get(at, row->name))
			TRY(add(r, doc_get(at, row->name), of, row->least, row->most,
			    row->unit == NS_PER_US ? "us" : row->unit == BYTES_PER_GB ? "GB/s" : ""));
	}
	TRY(read_by_class(r, at, (Parameter){ .executor = executor, .name = "efficiency", .unit = PPM }, 1, PPM,
	    "of the capacity"));
	return read_by_class(r, at, (Parameter){ .executor = executor, .name = "latency", .unit = NS_PER_US }, 0,
	    LIMIT_LATENCY_NS, "us");
}

static Status
read_executors(const struct parameters *r, const Doc *object)
{
	static const char *const names[] = {
#define X(name, text, what) text,
		EXECUTOR_LIST(X)
#undef X
		NULL
	};
	TRY(doc_only(r->ctx, r->label, object, names));
	for (int x = 0; x < N_EXECUTORS; x++) {
		const Doc *at;
		TRY(member_object(r, object, names[x], &at));
		if (at)
			TRY(read_executor(r, at, names[x]));
	}
	return OK;
}

Status
parameters_member(Ctx *ctx, const char *label, const Doc *root, Parameters *out)
{
	struct parameters r = { ctx, label, out };
	const Doc *object;
	TRY(member_object(&r, root, "parameters", &object));
	return object ? read_executors(&r, object) : OK;
}

Status
parameters_read(Ctx *ctx, const char *label, const char *data, size_t size, Parameters *out)
{
	struct parameters r = { ctx, label, out };
	ArenaMark mark = arena_mark(&ctx->scratch);
	Doc *root;
	*out = (Parameters){ .n = 0 };
	TRY(doc_read_json(ctx, label, data, size, &root));
	if (root->kind != DOC_OBJECT)
		return doc_want(ctx, label, root, "an object");
	TRY(read_executors(&r, root));
	arena_release(&ctx->scratch, mark);
	return OK;
}
