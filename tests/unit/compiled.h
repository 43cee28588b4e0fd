/* Machines and schedules as the compiler has them, for tests of what libblink does with their files. */
#include "base/file.h"
#include "compile.h"
#include "format/format.h"

#include <stdio.h>
#include <stdlib.h>

static const Topology *
machine(Ctx *ctx, const char *path)
{
	static const char *const none[] = { NULL };
	Text text = { 0 };
	Topology *topo;
	if (file_read(ctx, path, &text) != OK || topo_read(ctx, path, none, text.data, text.size, &topo) != OK) {
		printf("Bail out! %s\n", ctx->error.text);
		exit(1);
	}
	text_free(&text);
	return topo;
}

/* As `blinkc compile -c ... -g ...` makes it: the text of the file, and what is read from it. */
__attribute__((unused)) static Schedule *
schedule_of(Ctx *ctx, const Topology *topo, const int *gpu, int n, Collective coll, int root, bool hybrid, Text *json)
{
	const Ask ask = { .coll = coll, .root = collective_rooted(coll) ? root : -1,
	    .hybrid = hybrid ? HYBRID_HOST : HYBRID_NONE,
		.packing = PACKING_EXACT, .epsilon = { 1, 20 }, .tolerance = FRAC_ZERO, .minimise = true };
	Compiled made = { 0 };
	if (compile(ctx, topo, gpu, n, &ask, &made) != OK) {
		printf("Bail out! %s\n", ctx->error.text);
		exit(1);
	}
	*json = made.json;
	return made.sched;
}
