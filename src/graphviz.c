/* Positions by Graphviz, if the library was there when blinkc was built. */
#include "layout.h"

Status
layout_graphviz(Ctx *ctx, const Explained *e, const char *engine, Layout *out)
{
	(void)e, (void)out;
	return fail(ctx, USAGE, "--layout: %s: this blinkc was built without Graphviz: want own", engine);
}
