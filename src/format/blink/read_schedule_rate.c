/* The rate of a schedule file, the certificate of its bound, and the baselines that it is held against. */
#include "format/blink/schedule_reader.h"

#include <string.h>

static Status
read_side(struct reader *r, const Doc *side, int p, int *part)
{
	if (side->kind != DOC_ARRAY)
		return bad(r, side, "not an array", "[vertex, ...]");
	for (int i = 0; i < side->n; i++) {
		int v;
		TRY(schedule_vertex(r, side->child[i], &v));
		if (part[v] >= 0)
			return bad(r, side->child[i], r->topo->vertex[v].id, "each vertex once");
		part[v] = p;
	}
	return OK;
}

enum { PRICE_MAX = 1000 };	/* no proof needs more than 1: then every tree with that link costs at least 1 */

static Status
read_prices(struct reader *r, const Doc *at, Bound *bound)
{
	const Doc *prices;
	/* Lengths count each block as 1/n. */
	int64_t most = bound->kind == CERTIFICATE_LENGTHS ? (int64_t)PRICE_MAX * r->topo->n_ranks : PRICE_MAX;
	TRY(need(r, at, bound->kind == CERTIFICATE_LENGTHS ? "length" : "price", DOC_ARRAY, &prices));
	if (prices->n != r->topo->n_links)
		return doc_fail(r->ctx, r->label, prices, BAD_INPUT, "%d prices: want one per link, %d", prices->n,
		    r->topo->n_links);
	TRY(NEW(r->ctx, bound->price, prices->n));
	for (int l = 0; l < prices->n; l++) {
		const Doc *price = prices->child[l];
		int64_t billionths;
		if (price->kind == DOC_STRING) {
			TRY(read_fraction(r, price, most, "a fraction \"p/q\" in lowest terms, 0/1 to 1000/1",
			    &bound->price[l]));
			continue;
		}
		TRY(doc_scaled(r->ctx, r->label, price, BYTES_PER_GB, 0, most * BYTES_PER_GB, "", &billionths));
		frac_make(billionths, BYTES_PER_GB, &bound->price[l]);
	}
	return OK;
}

static Status
read_certificate(struct reader *r, const Doc *rate, Bound *bound)
{
	const Doc *at, *parts;
	const char *kind;
	TRY(need(r, rate, "certificate", DOC_OBJECT, &at));
	TRY(doc_string(r->ctx, r->label, at, "kind", &kind));
	if (!certificate_parse(kind, &bound->kind))
		return doc_want(r->ctx, r->label, doc_get(at, "kind"), names_wanted(certificate_names).text);
	TRY(NEW(r->ctx, bound->part, r->topo->n_vertices));
	memset(bound->part, -1, (size_t)r->topo->n_vertices * sizeof *bound->part);
	switch (bound->kind) {
	case CERTIFICATE_CUT:
		TRY(need(r, at, "side", DOC_ARRAY, &parts));
		TRY(read_side(r, parts, 1, bound->part));
		for (int v = 0; v < r->topo->n_vertices; v++)
			bound->part[v] = bound->part[v] == 1;
		return OK;
	case CERTIFICATE_PARTITION:
		TRY(need(r, at, "parts", DOC_ARRAY, &parts));
		TRY(count_within(r, parts, r->topo->n_ranks));
		for (int p = 0; p < parts->n; p++)
			TRY(read_side(r, parts->child[p], p, bound->part));
		bound->n_parts = parts->n;
		return OK;
	default:
		return read_prices(r, at, bound);
	}
}

Status
schedule_read_rate(struct reader *r, const Doc *root)
{
	const Doc *rate, *achieved, *bound;
	TRY(need(r, root, "rate", DOC_OBJECT, &rate));
	TRY(need(r, rate, "achieved", DOC_NUMBER, &achieved));
	TRY(need(r, rate, "bound", DOC_NUMBER, &bound));
	r->sched->stated_achieved = achieved->number;
	r->sched->stated_bound = bound->number;
	return read_certificate(r, rate, &r->sched->bound);
}

/* ---- baselines: only ranges are checked, as nothing depends on them ---- */

static Status
read_classes(struct reader *r, const Doc *object, unsigned *out)
{
	const Doc *array;
	TRY(need(r, object, "links", DOC_ARRAY, &array));
	TRY(count_within(r, array, N_LINK_CLASSES));
	*out = 0;
	for (int i = 0; i < array->n; i++) {
		const Doc *at = array->child[i];
		LinkClass class;
		if (at->kind != DOC_STRING || !link_class_parse(at->text, &class) || *out >> class & 1)
			return doc_want(r->ctx, r->label, at, "a link class, each once");
		*out |= 1u << class;
	}
	return OK;
}

static Status
read_baseline(struct reader *r, const Doc *object, Baseline *out)
{
	const Doc *at;
	const char *name;
	if (object->kind != DOC_OBJECT)
		return doc_want(r->ctx, r->label, object, "an object");
	TRY(doc_string(r->ctx, r->label, object, "name", &name));
	if (!baseline_name_valid(name))
		return doc_want(r->ctx, r->label, doc_get(object, "name"), "a name, as \"nccl-2.4\"");
	strcpy(out->name, name);
	TRY(read_classes(r, object, &out->classes));
	TRY(need(r, object, "rings", DOC_NUMBER, &at));
	TRY(read_int(r, at, 0, LIMIT_TREES, &out->rings));
	TRY(need(r, object, "through", DOC_BOOL, &at));
	out->through = at->flag;
	TRY(need(r, object, "rate", DOC_NUMBER, &at));
	if (!(at->number >= 0 && at->number <= 1e15))
		return doc_want(r->ctx, r->label, at, "a rate, 0 to 1e15 (GB/s)");
	out->rate = at->number;
	if ((out->rings > 0) != (out->classes != 0) || (out->rings > 0) != (out->rate > 0))
		return bad(r, object, "links, rings or rate", "all of them, or none");
	return OK;
}

Status
schedule_read_baselines(struct reader *r, const Doc *root)
{
	const Doc *array = doc_get(root, "baselines");
	if (!array)
		return OK;
	if (array->kind != DOC_ARRAY)
		return doc_want(r->ctx, r->label, array, "an array of baselines");
	TRY(count_within(r, array, LIMIT_BASELINES));
	TRY(NEW(r->ctx, r->sched->baseline, array->n));
	for (int i = 0; i < array->n; i++)
		TRY(read_baseline(r, array->child[i], &r->sched->baseline[i]));
	r->sched->n_baselines = array->n;
	return OK;
}
