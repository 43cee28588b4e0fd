/* Members that several parts of a topology file have: texts, ids, flags, quantities. */
#include "format/blink/topology_reader.h"

#include <string.h>

/* Control characters, line separators, and what XML cannot hold: U+0080..9f, U+2028, U+2029, U+FFFE and U+FFFF. */
static bool
one_line(const char *text)
{
	for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
		if (*c < ' ' || *c == 127 || (*c == 0xc2 && c[1] < 0xa0))
			return false;
		if (*c == 0xe2 && c[1] == 0x80 && (c[2] == 0xa8 || c[2] == 0xa9))
			return false;
		if (*c == 0xef && c[1] == 0xbf && c[2] >= 0xbe)
			return false;
	}
	return true;
}

Status
read_line(struct reading *r, const Doc *at, const char **out)
{
	static const char want[] = "want one line of text without control characters";
	if (at->kind != DOC_STRING)
		return doc_fail(r->ctx, r->label, at, BAD_INPUT, "%s: %s", doc_found(at).text, want);
	if (strlen(at->text) > LIMIT_TEXT_BYTES)
		return doc_fail(r->ctx, r->label, at, LIMIT, "%zu bytes: want at most %d", strlen(at->text),
		    LIMIT_TEXT_BYTES);
	if (!*at->text || !one_line(at->text))
		return doc_fail(r->ctx, r->label, at, BAD_INPUT, "%s: %s", doc_found(at).text, want);
	*out = at->text;
	return OK;
}

Status
read_text(struct reading *r, const Doc *object, const char *name, const char **out)
{
	const Doc *at;
	TRY(doc_need(r->ctx, r->label, object, name, DOC_STRING, &at));
	return read_line(r, at, out);
}

Status
read_source(struct reading *r, const Doc *object, const char **out)
{
	return doc_get(object, "source") ? read_text(r, object, "source", out) : OK;
}

Status
read_id(struct reading *r, const Doc *object, const char **out)
{
	const char *id;
	TRY(doc_string(r->ctx, r->label, object, "id", &id));
	const Doc *at = doc_get(object, "id");
	if (strlen(id) > LIMIT_ID_BYTES)
		return doc_fail(r->ctx, r->label, at, LIMIT, "%zu bytes: want at most %d", strlen(id), LIMIT_ID_BYTES);
	if (!topo_id_valid(id))
		return doc_fail(r->ctx, r->label, at, BAD_INPUT, "%s: want 1 to %d of A-Z a-z 0-9 _.:@/+-",
		    doc_found(at).text, LIMIT_ID_BYTES);
	*out = id;
	return OK;
}

Status
read_children(struct reading *r, const Doc *object, const char *name, const Doc **out)
{
	static const Doc none = { .kind = DOC_ARRAY };
	*out = &none;
	if (!doc_get(object, name))
		return OK;
	TRY(doc_need(r->ctx, r->label, object, name, DOC_ARRAY, out));
	for (int i = 0; i < (*out)->n; i++) {
		const Doc *child = (*out)->child[i];
		if (child->kind != DOC_OBJECT)
			return doc_want(r->ctx, r->label, child, "an object");
	}
	return OK;
}

/* true or false; in XML they are spelled. Without it: false. */
Status
read_flag(struct reading *r, const Doc *object, const char *member, bool *out)
{
	const Doc *at = doc_get(object, member);
	bool spelled = at && at->kind == DOC_STRING && r->root->text;
	if (!at)
		return OK;
	if (at->kind != DOC_BOOL && !(spelled && (strcmp(at->text, "true") == 0 || strcmp(at->text, "false") == 0)))
		return doc_want(r->ctx, r->label, at, "true or false");
	*out = spelled ? strcmp(at->text, "true") == 0 : at->flag;
	return OK;
}

Status
read_capacity(struct reading *r, const Doc *object, int64_t *out)
{
	const Doc *at = doc_get(object, "capacity");
	return at ? doc_scaled(r->ctx, r->label, at, BYTES_PER_GB, LIMIT_CAPACITY_MIN, LIMIT_CAPACITY_MAX, "GB/s", out)
	    : OK;
}

Status
read_latency(struct reading *r, const Doc *object, int64_t *out)
{
	const Doc *at = doc_get(object, "latency");
	return at ? doc_scaled(r->ctx, r->label, at, NS_PER_US, 0, LIMIT_LATENCY_NS, "us", out) : OK;
}

Status
read_class_name(struct reading *r, const Doc *object, const char *member, LinkClass *out)
{
	const char *name;
	TRY(doc_string(r->ctx, r->label, object, member, &name));
	if (link_class_parse(name, out))
		return OK;
	const Doc *at = doc_get(object, member);
	return doc_fail(r->ctx, r->label, at, BAD_INPUT, "%s: want one of %s", doc_found(at).text,
	    names_text(link_class_names, ~0u, " ", " ").text);
}

Status
read_count(struct reading *r, const Doc *object, int most, int *out)
{
	const Doc *at = doc_get(object, "count");
	int64_t count = 1;
	if (at)
		TRY(doc_int(r->ctx, r->label, at, 1, INT64_MAX, &count));
	if (count > most)
		return doc_fail(r->ctx, r->label, at, LIMIT, "%s: want at most %d", doc_found(at).text, most);
	*out = (int)count;
	return OK;
}

Status
read_capacity_sum(struct reading *r, const Doc *at, int64_t more)
{
	r->capacity_sum += more;
	if (r->capacity_sum > LIMIT_CAPACITY_SUM)
		return doc_fail(r->ctx, r->label, at, LIMIT,
		    "capacities of all links up to here: want at most 4000000000 (GB/s)");
	return OK;
}
