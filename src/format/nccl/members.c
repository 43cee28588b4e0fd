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

/* Of a device, "0x030200", by its start; without a vendor it may be any. */
static bool
has_class(const Doc *pci, const char *class)
{
	const char *vendor = nccl_text(pci, "vendor");
	return strncmp(nccl_text(pci, "class"), class, 6) == 0 && nccl_children(pci, "pcis")->n == 0
	    && (!*vendor || strcmp(vendor, "0x10de") == 0 || strcmp(vendor, "0x1002") == 0 || class[3] == '2');
}

bool
nccl_is_gpu(const Doc *pci)
{
	return has_class(pci, "0x0302") || has_class(pci, "0x0380") || has_class(pci, "0x1200");
}

bool
nccl_is_card(const Doc *pci)
{
	return has_class(pci, "0x0207") || has_class(pci, "0x0200");
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
	for (int i = 0; i < names->n; i++)
		if (strcmp(names->name[i], name) == 0)
			return;
	if (names->n < NCCL_NAMES)
		names->name[names->n++] = name;
	else
		names->more = true;
}

void
nccl_note_names(TopologyBuilder *b, const struct nccl_names *names, const char *what, const char *then)
{
	char list[NCCL_NAMES * 44] = "";
	size_t used = 0;
	for (int i = 0; i < names->n; i++)
		used += (size_t)snprintf(list + used, sizeof list - used, "%s%.40s", i ? ", " : "", names->name[i]);
	if (names->n)
		builder_assume(b, "%s %s%s: %s", what, list, names->more ? " and others" : "", then);
}
