/* The rate of a schedule file, and the certificate of its bound. */
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
		return bad(r, doc_get(at, "kind"), doc_found(doc_get(at, "kind")).text,
		    names_wanted(certificate_names).text);
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
