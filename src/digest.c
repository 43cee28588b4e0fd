/* Digest of a topology: of its canonical text. */
#include "base/digest.h"
#include "passes.h"

Status
topo_digest(Ctx *ctx, const Topology *topo, const char **out)
{
	Text canonical = { 0 };
	char text[DIGEST_ROOM];
	emit_topo_canonical(topo, &canonical);
	bool failed = canonical.failed;
	if (!failed)
		digest_of(canonical.data, canonical.size, text);
	text_free(&canonical);
	if (failed)
		return fail_memory(ctx);
	const char *copy = arena_text(&ctx->run, text, DIGEST_ROOM - 1);
	if (!copy)
		return fail_memory(ctx);
	*out = copy;
	return OK;
}
