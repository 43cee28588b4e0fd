/* Questions that a reader asks of a Doc: members of a kind, numbers within limits, no unknown members. */
#include "format/doc.h"
#include "base/frac.h"
#include "base/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- members ---- */

const Doc *
doc_get(const Doc *object, const char *name)
{
	for (int i = 0; i < object->n; i++)
		if (object->child[i]->name && strcmp(object->child[i]->name, name) == 0)
			return object->child[i];
	return NULL;
}

static const char *
kind_text(DocKind kind, bool xml)
{
	static const char *const text[] = { "null", "true or false", "a number", "a string", "an array", "an object" };
	return xml ? kind == DOC_ARRAY ? "elements" : "an attribute" : text[kind];
}

Status
doc_need(Ctx *ctx, const char *label, const Doc *object, const char *name, DocKind kind, const Doc **out)
{
	const Doc *at = doc_get(object, name);
	if (!at)
		return doc_missing(ctx, label, object, name, kind_text(kind, object->line));
	if (at->kind != kind)
		return doc_want(ctx, label, at, kind_text(kind, object->line));
	*out = at;
	return OK;
}

Status
doc_string(Ctx *ctx, const char *label, const Doc *object, const char *name, const char **out)
{
	const Doc *at;
	TRY(doc_need(ctx, label, object, name, DOC_STRING, &at));
	size_t length = strlen(at->text);
	if (length > LIMIT_TEXT_BYTES)
		return doc_fail(ctx, label, at, LIMIT, "%zu bytes: want at most %d", length, LIMIT_TEXT_BYTES);
	*out = at->text;
	return OK;
}

Status
doc_format(Ctx *ctx, const char *label, const Doc *root, const char *name)
{
	char want[40];
	const char *found;
	snprintf(want, sizeof want, "\"%s\"", name);
	const Doc *at = doc_get(root, "format");
	if (!at)
		return doc_missing(ctx, label, root, "format", want);
	TRY(doc_string(ctx, label, root, "format", &found));
	return strcmp(found, name) == 0 ? OK : doc_want(ctx, label, at, want);
}

/* What doc_only wants, as the file spells it: links, or <link> in XML. */
static void
wanted_text(const Doc *object, const char *const *names, char *text, size_t space)
{
	const Doc *root = object;
	size_t used = 0;
	while (root->parent)
		root = root->parent;
	for (text[0] = 0; *names && used < space; names++) {
		const char *element = NULL;
		for (const char *const *p = root->line ? root->plural : NULL; p && *p; p += 2)
			if (strcmp(p[1], *names) == 0)
				element = p[0];
		int n = snprintf(text + used, space - used, element ? "%s<%s>" : "%s%s", used ? ", " : "",
		    element ? element : *names);
		used += (size_t)n;
	}
}

Status
doc_only(Ctx *ctx, const char *label, const Doc *object, const char *const *names)
{
	for (int i = 0; i < object->n; i++) {
		const Doc *at = object->child[i];
		const char *const *name = names;
		while (*name && strcmp(*name, at->name) != 0)
			name++;
		if (*name)
			continue;
		char want[384];
		wanted_text(object, names, want, sizeof want);
		return doc_fail(ctx, label, at, BAD_INPUT, "unknown %s: want %s",
		    !at->line ? "member" : at->kind == DOC_STRING ? "attribute" : "element", want);
	}
	return OK;
}

/* By name, and by place where names are equal. */
static int
by_name(const void *a, const void *b)
{
	const Doc *l = *(Doc *const *)a, *r = *(Doc *const *)b;
	int order = strcmp(l->name, r->name);
	return order ? order : l->index - r->index;
}

Status
doc_check_unique(Ctx *ctx, const char *label, const Doc *object)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	Doc **sorted;
	const Doc *twice = NULL;
	size_t n = (size_t)object->n;
	TRY(TEMP(ctx, sorted, n));
	if (n)
		memcpy(sorted, object->child, n * sizeof *sorted);
	qsort(sorted, n, sizeof *sorted, by_name);
	for (size_t i = 1; i < n; i++)
		if (strcmp(sorted[i - 1]->name, sorted[i]->name) == 0 && (!twice || sorted[i]->index < twice->index))
			twice = sorted[i];
	arena_release(&ctx->scratch, mark);
	return twice ? doc_fail(ctx, label, twice, BAD_INPUT, "given twice: want it once") : OK;
}

/* ---- numbers ---- */

static bool
whole(const Doc *at, int64_t *out)
{
	if (at->kind == DOC_NUMBER) {
		/* Beyond 2^53 a double no longer says which integer the file meant. */
		if (fabs(at->number) > 9007199254740992.0 || at->text)
			return false;
		*out = (int64_t)at->number;
		return (double)*out == at->number;
	}
	char space[DOC_NUMBER_SPACE];
	const char *text = doc_decimal(at, space);
	if (!text || strpbrk(text, ".eE"))
		return false;
	bool negative = *text == '-';
	if (!decimal_parse(text + negative, strlen(text + negative), 1, out))
		return false;
	*out = negative ? -*out : *out;
	return true;
}

Status
doc_int(Ctx *ctx, const char *label, const Doc *at, int64_t lo, int64_t hi, int64_t *out)
{
	int64_t value;
	if (whole(at, &value) && lo <= value && value <= hi) {
		*out = value;
		return OK;
	}
	DocFound found = doc_found(at);
	if (lo == hi)
		return doc_fail(ctx, label, at, BAD_INPUT, "%s: want %" PRId64, found.text, lo);
	if (hi == INT64_MAX)
		return doc_fail(ctx, label, at, BAD_INPUT, "%s: want a whole number, %" PRId64 " or more", found.text,
		    lo);
	return doc_fail(ctx, label, at, BAD_INPUT, "%s: want a whole number, %" PRId64 " to %" PRId64, found.text, lo,
	    hi);
}

Status
doc_scaled(Ctx *ctx, const char *label, const Doc *at, int64_t scale, int64_t lo, int64_t hi, const char *unit,
    int64_t *out)
{
	char space[DOC_NUMBER_SPACE], limit[48], of[24] = "";
	const char *text = doc_decimal(at, space);
	DocFound found = doc_found(at);
	int64_t value = 0;
	if (*unit)
		snprintf(of, sizeof of, " (%s)", unit);
	if (!text)
		return doc_fail(ctx, label, at, BAD_INPUT, "%s: want a number%s", found.text, of);
	bool negative = *text == '-', huge = !decimal_parse(text + negative, strlen(text + negative), scale, &value);
	if (negative && (huge || value > 0))
		value = -1;
	else if (huge || value > hi) {
		decimal_text(hi, scale, 15, limit);
		return doc_fail(ctx, label, at, LIMIT, "%s: want at most %s%s", found.text, limit, of);
	}
	if (value >= lo) {
		*out = value;
		return OK;
	}
	decimal_text(lo, scale, 15, limit);
	return value <= 0 && lo > 0
	    ? doc_fail(ctx, label, at, BAD_INPUT, "%s: want a number above 0%s", found.text, of)
	    : doc_fail(ctx, label, at, BAD_INPUT, "%s: want at least %s%s", found.text, limit, of);
}

/* ---- bytes ---- */

Status
doc_check_bytes(Ctx *ctx, const char *label, const char *data, size_t size)
{
	if (size > LIMIT_FILE_BYTES)
		return fail(ctx, LIMIT, "%s: %zu bytes: want at most %d", label, size, LIMIT_FILE_BYTES);
	if (size == 0)
		return fail(ctx, BAD_INPUT, "%s: empty: want JSON or XML", label);
	size_t good = utf8_valid(data, size);
	if (good < size)
		return doc_fail_byte(ctx, label, data, good, BAD_INPUT, "byte 0x%02x: want UTF-8",
		    (unsigned char)data[good]);
	const char *nul = memchr(data, 0, size);
	if (nul)
		return doc_fail_byte(ctx, label, data, (size_t)(nul - data), BAD_INPUT, "a NUL byte: want text");
	return OK;
}
