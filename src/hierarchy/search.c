/* The best hierarchies. A layer costs what it costs whatever stands before and behind it, so the best ones of d ranks
 * are those of a divisor d/p with a ring of p more: what Ueno and Yokota found, that the best hierarchy of a large
 * machine has that of a smaller one inside, holds for this cost exactly. So the best `most` of every divisor of the
 * number of ranks are found from the smallest on, in a number of layers that grows with the pairs of divisors; all
 * hierarchies are many more: in servers of 4, 2048 ranks have 512 hierarchies, and 48 layers. */
#include "hierarchy/hierarchy.h"

#include <string.h>

/* Those of one number of ranks, sorted. */
struct best {
	int n;
	HierarchyTime *entry;
};

/* Does a stand before b? */
static bool
better(const HierarchyTime *a, const HierarchyTime *b)
{
	if (a->time != b->time)
		return a->time < b->time;
	if (a->layers.n != b->layers.n)
		return a->layers.n < b->layers.n;
	for (int l = 0; l < a->layers.n; l++)
		if (a->layers.size[l] != b->layers.size[l])
			return a->layers.size[l] > b->layers.size[l];
	return false;
}

static void
keep(struct best *best, int most, const HierarchyTime *entry)
{
	int at = best->n;
	while (at > 0 && better(entry, &best->entry[at - 1]))
		at--;
	if (at == most)
		return;
	int behind = (best->n < most ? best->n : most - 1) - at;
	memmove(&best->entry[at + 1], &best->entry[at], (size_t)behind * sizeof *entry);
	best->entry[at] = *entry;
	best->n += best->n < most;
}

/* With a layer more, from size[i] to size[j]. */
static HierarchyTime
extended(const HierarchyModel *model, const HierarchyTime *inner, int i, int j)
{
	const int *size = model->machine->size;
	HierarchyTime out = *inner;
	out.layers.size[out.layers.n++] = size[j] / size[i];
	out.time += hierarchy_layer_time(model, i, j);
	return out;
}

static bool
is_layer(const HierarchyMachine *machine, int i, int j)
{
	return machine->size[j] % machine->size[i] == 0 && hierarchy_allows(machine, i, j);
}

static int64_t
search_divisors(const HierarchyModel *model, int most, struct best *best)
{
	const HierarchyMachine *machine = model->machine;
	int64_t tried = 0;
	for (int j = 1; j < machine->n_sizes; j++)
		for (int i = 0; i < j; i++) {
			if (!is_layer(machine, i, j))
				continue;
			tried++;
			for (int k = 0; k < best[i].n; k++) {
				HierarchyTime entry = extended(model, &best[i].entry[k], i, j);
				keep(&best[j], most, &entry);
			}
		}
	return tried;
}

/* All hierarchies that begin with `inner`, of size[i] ranks: at most MOST_LAYERS deep. */
static int64_t
search_all(const HierarchyModel *model, int most, const HierarchyTime *inner, int i, struct best *best)
{
	const HierarchyMachine *machine = model->machine;
	int64_t tried = 0;
	if (i == machine->n_sizes - 1) {
		keep(best, most, inner);
		return 1;
	}
	for (int j = i + 1; j < machine->n_sizes; j++)
		if (is_layer(machine, i, j)) {
			HierarchyTime entry = extended(model, inner, i, j);
			tried += search_all(model, most, &entry, j, best);
		}
	return tried;
}

Status
hierarchy_search(Ctx *ctx, const HierarchyModel *model, int most, bool exhaustive, HierarchyTime *out, int *n,
    int64_t *tried)
{
	static const HierarchyTime none;
	struct best *best;
	int n_sizes = model->machine->n_sizes;
	ArenaMark mark = arena_mark(&ctx->scratch);
	TRY(TEMP(ctx, best, n_sizes));
	for (int i = 0; i < n_sizes; i++)
		TRY(TEMP(ctx, best[i].entry, most));
	struct best *last = &best[n_sizes - 1];
	keep(&best[0], most, &none);
	*tried = exhaustive ? search_all(model, most, &none, 0, last) : search_divisors(model, most, best);
	memcpy(out, last->entry, (size_t)last->n * sizeof *out);
	*n = last->n;
	arena_release(&ctx->scratch, mark);
	return OK;
}
