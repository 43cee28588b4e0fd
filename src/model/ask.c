/* Names of what may be asked. */
#include "model/ask.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

static const char *const packings[N_PACKINGS] = { PACKING_LIST(ROW_TEXT) };

static const char *const hybrids[N_HYBRIDS] = {
#define X(name, text, what) [name] = text,
	HYBRID_LIST(X)
#undef X
};

static const char *const routes[N_ROUTES] = {
#define X(name, text, what) [name] = text,
	ROUTES_LIST(X)
#undef X
};

const Names packing_names = { N_PACKINGS, packings };
const Names hybrid_names = { N_HYBRIDS, hybrids };
const Names routes_names = { N_ROUTES, routes };

const char *
packing_name(PackingKind kind)
{
	return packings[kind];
}

const char *
hybrid_name(HybridKind kind)
{
	return hybrids[kind];
}

bool
hybrid_parse(const char *text, HybridKind *out)
{
	int kind;
	if (!names_find(hybrid_names, text, &kind))
		return false;
	*out = (HybridKind)kind;
	return true;
}

bool
routes_parse(const char *text, Routes *out)
{
	int kind;
	if (!names_find(routes_names, text, &kind))
		return false;
	*out = (Routes)kind;
	return true;
}

/* A layer has 2 ranks at least, so a product that fits has few of them. */
bool
hierarchy_parse(const char *text, Hierarchy *out)
{
	Hierarchy layers = { 0 };
	int64_t product = 1, size;
	for (size_t length;; text += length + 1) {
		length = strcspn(text, "x");
		if (layers.n == MOST_LAYERS || strspn(text, "0123456789") != length
		    || !decimal_parse(text, length, 1, &size) || size < 2 || size > INT_MAX / product)
			return false;
		product *= size;
		layers.size[layers.n++] = (int)size;
		if (!text[length])
			break;
	}
	*out = layers;
	return true;
}

NamesText
hierarchy_text(const Hierarchy *layers)
{
	NamesText out = { "" };
	size_t at = 0;
	for (int i = 0; i < layers->n; i++)
		at += (size_t)snprintf(out.text + at, sizeof out.text - at, "%s%d", i ? "x" : "", layers->size[i]);
	return out;
}
