/* Names of what may be asked. */
#include "model/ask.h"

static const char *const packings[N_PACKINGS] = {
#define X(name, text, what) text,
	PACKING_LIST(X)
#undef X
};

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
