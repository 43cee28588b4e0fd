#include "emit/draw.h"
Status
emit_svg(Ctx *ctx, const Explained *e, const ShowRequest *ask, Text *out)
{
	(void)e, (void)ask, (void)out;
	return fail(ctx, INTERNAL, "svg");
}
