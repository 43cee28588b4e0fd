/* Members that several parts of a schedule file have. */
#include "format/blink/schedule_reader.h"

Status
bad(struct reader *r, const Doc *at, const char *found, const char *want)
{
	return doc_fail(r->ctx, r->label, at, BAD_INPUT, "%.80s: want %s", found, want);
}

Status
read_int(struct reader *r, const Doc *at, int lo, int hi, int *out)
{
	int64_t value;
	TRY(doc_int(r->ctx, r->label, at, lo, hi, &value));
	*out = (int)value;
	return OK;
}

Status
need(struct reader *r, const Doc *object, const char *name, DocKind kind, const Doc **out)
{
	return doc_need(r->ctx, r->label, object, name, kind, out);
}

Status
need_any(struct reader *r, const Doc *object, const char *name, const Doc **out)
{
	*out = doc_get(object, name);
	return *out ? OK : doc_fail(r->ctx, r->label, object, BAD_INPUT, "no \"%s\"", name);
}

Status
within(struct reader *r, const Doc *array, int n, int limit)
{
	return n <= limit ? OK : doc_fail(r->ctx, r->label, array, LIMIT, "%d entries: want at most %d", n, limit);
}

Status
count_within(struct reader *r, const Doc *array, int limit)
{
	return within(r, array, array->n, limit);
}

Status
read_fraction(struct reader *r, const Doc *at, int64_t most, const char *want, Frac *out)
{
	if (at->kind != DOC_STRING || !frac_parse(at->text, out) || frac_cmp(*out, (Frac){ most, 1 }) > 0)
		return doc_want(r->ctx, r->label, at, want);
	return OK;
}
