/* Sets of GPUs up to the automorphisms of their machine, without listing all: a cluster of 64 GPUs has 5 billion sets
 * of up to 8 GPUs, in some thousand orbits.
 *
 * Sets of k + 1 GPUs are made from those of k by one more GPU. One set S of each orbit of k is enough, and one GPU of
 * each orbit under the automorphisms that keep S. Every orbit of k + 1 is found: take a set T of it and a GPU g of T. T
 * without g is the image of some S under an automorphism, whose inverse takes g to a GPU in the orbit of one that was
 * added to S. Sets of one orbit are those of one canonical form, with their GPUs marked in the machine. */
#include "base/pool.h"
#include "verb/batch/batch.h"
#include "verb/progress.h"

#include <stdlib.h>
#include <string.h>

/* A set of k + 1 GPUs that was found. */
struct shape {
	unsigned char form[CANONICAL_FORM_BYTES];
	int parent, gpu;	/* gpu: what was added to the parent; -1: nothing */
};

struct level {
	const Topology *machine;
	int k, n;		/* GPUs of a parent; parents */
	int *parent;		/* n * k */
	struct shape *shape;	/* shared: n * n_ranks */
};

static Status
extend(Ctx *ctx, void *of, int task)
{
	const struct level *level = of;
	const Topology *machine = level->machine;
	struct shape *shape = level->shape + (size_t)task * (size_t)machine->n_ranks;
	int *mark;
	unsigned char form[CANONICAL_FORM_BYTES];
	int *orbit;
	TRY(NEW_EACH(ctx, machine->n_ranks, mark, orbit));
	for (int i = 0; i < level->k; i++)
		mark[level->parent[(size_t)task * (size_t)level->k + (size_t)i]] = 1;
	TRY(topo_canonical_form(ctx, machine, mark, form, NULL, orbit));
	for (int g = 0; g < machine->n_ranks; g++) {
		shape[g].gpu = -1;
		if (mark[g] || orbit[g] != g)
			continue;
		mark[g] = 1;
		shape[g].gpu = g;
		shape[g].parent = task;
		TRY(topo_canonical_form(ctx, machine, mark, shape[g].form, NULL, NULL));
		mark[g] = 0;
	}
	return OK;
}

static void
extended(void *of, int n_done)
{
	const struct level *level = of;
	progress_bar("finding isomorphic sets", n_done, level->n);
}

static int
by_form(const void *x, const void *y)
{
	const struct shape *a = x, *b = y;
	int order = memcmp(a->form, b->form, CANONICAL_FORM_BYTES);
	if (order)
		return order;
	return a->parent != b->parent ? (a->parent < b->parent ? -1 : 1) : (a->gpu > b->gpu) - (a->gpu < b->gpu);
}

static int
by_discovery(const void *x, const void *y)
{
	const struct shape *a = x, *b = y;
	return a->parent != b->parent ? (a->parent < b->parent ? -1 : 1) : (a->gpu > b->gpu) - (a->gpu < b->gpu);
}

/* The first of each form, in the order in which they were found. */
static int
unique_shapes(struct shape *shape, int n)
{
	int all = 0, unique = 0;
	for (int i = 0; i < n; i++)
		if (shape[i].gpu >= 0)
			shape[all++] = shape[i];
	qsort(shape, (size_t)all, sizeof *shape, by_form);
	for (int i = 0; i < all; i++)
		if (i == 0 || memcmp(shape[i].form, shape[unique - 1].form, CANONICAL_FORM_BYTES) != 0)
			shape[unique++] = shape[i];
	qsort(shape, (size_t)unique, sizeof *shape, by_discovery);
	return unique;
}

/* The sets of the next level, ascending in themselves. */
static Status
next_parents(Ctx *ctx, struct level *level, int n)
{
	int k = level->k, *next;
	TRY(NEW(ctx, next, (size_t)n * (size_t)(k + 1)));
	for (int i = 0; i < n; i++) {
		int *set = next + (size_t)i * (size_t)(k + 1), at = k;
		if (k > 0)
			memcpy(set, level->parent + (size_t)level->shape[i].parent * (size_t)k,
			    (size_t)k * sizeof *set);
		for (; at > 0 && set[at - 1] > level->shape[i].gpu; at--)
			set[at] = set[at - 1];
		set[at] = level->shape[i].gpu;
	}
	level->parent = next;
	level->k = k + 1;
	level->n = n;
	return OK;
}

static Status
grow_level(Ctx *ctx, struct level *level, int n_workers)
{
	size_t shapes = (size_t)level->n * (size_t)level->machine->n_ranks;
	const Pool pool = { .n_tasks = level->n, .n_workers = n_workers, .run = extend, .done = extended, .of = level };
	level->shape = shared_array(shapes, sizeof *level->shape);
	Status status = level->shape ? pool_run_all(ctx, &pool) : fail_memory(ctx);
	if (status == OK)
		status = next_parents(ctx, level, unique_shapes(level->shape, (int)shapes));
	shared_free(level->shape);
	return status;
}

Status
sets_distinct(Ctx *ctx, const Topology *machine, const bool *sizes, int n_workers, GpuSet **out, int *n_sets)
{
	int none = 0, most = 0, n = 0;
	struct level level = { .machine = machine, .n = 1, .parent = &none };
	GpuSet *set;
	TRY(NEW(ctx, set, LIMIT_SETS));
	for (int k = 2; k <= machine->n_ranks; k++)
		most = sizes[k] ? k : most;
	while (level.k < most) {
		TRY(grow_level(ctx, &level, n_workers));
		if (n + level.n > LIMIT_SETS || (int64_t)level.n * machine->n_ranks > 64 * (int64_t)LIMIT_SETS)
			return fail(ctx, LIMIT,
			    "more than %d different sets of GPUs: want fewer --sizes, or the sets in a file with "
			    "--gpus", LIMIT_SETS);
		if (!sizes[level.k])
			continue;
		for (int i = 0; i < level.n; i++)
			set[n + i] = (GpuSet){ level.k, level.parent + (size_t)i * (size_t)level.k };
		qsort(set + n, (size_t)level.n, sizeof *set, set_order);
		n += level.n;
	}
	*out = set;
	*n_sets = n;
	return OK;
}
