/* Attributes and children of elements, and names for notes. */
#include "format/nccl/nccl.h"

#include <stdio.h>
#include <string.h>

const char *
nccl_text(const Doc *element, const char *name)
{
	const Doc *at = doc_get(element, name);
	return at && at->kind == DOC_STRING ? at->text : "";
}

Status
nccl_int(struct nccl_reading *r, const Doc *element, const char *name, int64_t lo, int64_t hi, int64_t otherwise,
    int64_t *out)
{
	const Doc *at = doc_get(element, name);
	if (*nccl_text(element, name))
		return doc_int(r->ctx, r->label, at, lo, hi, out);
	*out = otherwise;
	return OK;
}

const Doc *
nccl_children(const Doc *element, const char *name)
{
	static const Doc none = { .kind = DOC_ARRAY };
	const Doc *at = doc_get(element, name);
	return at && at->kind == DOC_ARRAY ? at : &none;
}

bool
nccl_bus(const char *text, int64_t *out)
{
	uint64_t value = 0;
	int n = 0;
	for (; *text; text++) {
		const char *digits = "0123456789abcdef", *digit = strchr(digits, *text | 0x20);
		if (*text == ':' || *text == '.')
			continue;
		if (!digit || ++n > 15)
			return false;
		value = value << 4 | (uint64_t)(digit - digits);
	}
	*out = (int64_t)value;
	return n > 0;
}

void
nccl_add_name(struct nccl_names *names, const char *name)
{
	size_t used = strlen(names->text), more = strlen(name);
	if (used + more + 4 < sizeof names->text && names->n < 4)
		snprintf(names->text + used, sizeof names->text - used, "%s%s", used ? ", " : "", name);
	else if (names->n < 4)
		names->n = 4;	/* no room: only counted */
	names->n++;
}
