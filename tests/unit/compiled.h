/* Machines and schedules as the compiler has them, for tests of what libblink does with their files. What does not
 * succeed ends the test. */
#include "base/file.h"
#include "compile.h"
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

static const Topology *
machine_of(Ctx *ctx, const char *path, Text *text)
{
	static const char *const none[] = { NULL };
	Topology *topo;
	must(ctx, topo_read(ctx, path, none, text->data, text->size, &topo));
	text_free(text);
	return topo;
}

__attribute__((unused)) static const Topology *
machine(Ctx *ctx, const char *path)
{
	Text text = { 0 };
	must(ctx, file_read(ctx, path, &text));
	return machine_of(ctx, path, &text);
}

/* As --synthetic describes it. */
__attribute__((unused)) static const Topology *
synthetic_machine(Ctx *ctx, const char *line)
{
	Text text = { 0 };
	must(ctx, synthetic_write(ctx, line, &text));
	return machine_of(ctx, line, &text);
}

/* All GPUs that are left of it. lost: as --without. */
__attribute__((unused)) static const Topology *
machine_without(Ctx *ctx, const char *line, const char *lost)
{
	const Topology *whole = synthetic_machine(ctx, line);
	const int *now;
	Topology *left, *topo;
	JobLinks links;
	Loss *loss;
	int n, *gpu;
	must(ctx, topo_losses(ctx, whole, lost, &loss, &n));
	must(ctx, topo_without(ctx, whole, loss, n, &left, &now));
	must(ctx, NEW(ctx, gpu, left->n_ranks));
	for (int r = 0; r < left->n_ranks; r++)
		gpu[r] = r;
	must(ctx, topo_of_job(ctx, left, gpu, left->n_ranks, 0, ROUTES_ANY, false, &links, &topo));
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
	must(ctx, compile(ctx, topo, gpu, n, &ask, &made));
	*json = made.json;
	return made.sched;
}

/* The same of all GPUs of a synthetic machine. */
__attribute__((unused)) static Schedule *
schedule_of_all(Ctx *ctx, const char *line, Collective coll, int root, Text *json)
{
	const Topology *topo = synthetic_machine(ctx, line);
	int *gpu;
	must(ctx, NEW(ctx, gpu, topo->n_ranks));
	for (int i = 0; i < topo->n_ranks; i++)
		gpu[i] = i;
	return schedule_of(ctx, topo, gpu, topo->n_ranks, coll, root, false, json);
}
