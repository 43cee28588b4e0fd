/* Clusters of which some GPUs are left, for tests of planners. What does not succeed ends the test. */
#include "format/format.h"
#include "topology/topology.h"

#include <stdio.h>
#include <stdlib.h>

static void
must(const Ctx *ctx, Status status)
{
	if (status == OK)
		return;
	printf("Bail out! %s\n", ctx->error.text);
	exit(1);
}

/* These GPUs of the machine that --synthetic describes so. *out: NULL: no links join them. */
static void
read_cluster(Ctx *ctx, const char *line, const int *gpu, int n, Topology **out)
{
	static const char *const none[] = { NULL };
	Text text = { 0 };
	Topology *machine;
	JobLinks links;
	must(ctx, synthetic_write(ctx, line, &text));
	must(ctx, topo_read(ctx, line, none, text.data, text.size, &machine));
	text_free(&text);
	if (topo_of_job(ctx, machine, gpu, n, 0, ROUTES_ANY, false, &links, out) != OK)
		*out = NULL;
}
