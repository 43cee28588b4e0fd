/* The index of a batch: each job takes the schedule of its class, in ranks by the isomorphism that canonical forms
 * give. */
#include "verb/batch/batch.h"

/* The plan of a job's variant, or -1 where it has none. */
static int
plan_of(const Batch *b, Collective coll, int v)
{
	const SetClasses *classes = b->classes;
	int number = classes->number[classes->representative[v]], p = b->first_plan[coll] + number;
	return number < 0 || b->result[p].trees == 0 ? -1 : p;
}

/* Is plan p better than q: faster, then less deep, then of fewer trees? */
static bool
better(const Batch *b, int p, int q)
{
	const BatchResult *x = &b->result[p], *y = &b->result[q];
	int order = frac_cmp(x->rate, y->rate);
	if (order)
		return order > 0;
	return x->depth != y->depth ? x->depth < y->depth : x->trees < y->trees;
}

/* Variant of job j whose root is its rank i; without a root, i is -1. */
static int
job_variant(const Batch *b, int j, int i)
{
	int s = b->set_of[j], first = (int)b->classes->first[s];
	if (i < 0)
		return first;
	for (int r = 0;; r++)
		if (b->set[s].gpu[r] == b->job[j].gpu[i])
			return first + 1 + r;
}

/* Rank i of the job has the place that rank[i] has in the first set of its class. */
static Status
map_ranks(Ctx *ctx, const Batch *b, int j, int v, const int **out)
{
	const GpuSet *job = &b->job[j], *set = &b->set[b->set_of[j]];
	const uint16_t *place = variant_place(b, v), *representative = variant_place(b, b->classes->representative[v]);
	int *rank, *at, *position;
	ArenaMark mark = arena_mark(&ctx->scratch);
	TRY(NEW(ctx, rank, job->n));
	TRY(TEMP(ctx, at, job->n));
	TRY(TEMP(ctx, position, b->machine->n_ranks));
	for (int r = 0; r < job->n; r++) {
		at[representative[r]] = r;
		position[set->gpu[r]] = r;
	}
	for (int i = 0; i < job->n; i++)
		rank[i] = at[place[position[job->gpu[i]]]];
	arena_release(&ctx->scratch, mark);
	*out = rank;
	return OK;
}

static Status
take_baselines(Ctx *ctx, const BatchResult *result, IndexEntry *entry)
{
	IndexBaseline *baseline;
	TRY(NEW(ctx, baseline, result->n_baselines));
	for (int i = 0; i < result->n_baselines; i++)
		baseline[i] = (IndexBaseline){ result->baseline[i].name, result->baseline[i].rate };
	entry->n_baselines = result->n_baselines;
	entry->baseline = baseline;
	return OK;
}

static Status
add_entry(Ctx *ctx, const Batch *b, int j, int root, int v, int p, Index *index)
{
	const BatchResult *result = &b->result[p];
	IndexEntry entry = { .n = b->job[j].n, .gpu = b->job[j].gpu, .coll = b->plan[p].coll, .root = root,
		.file = b->plan[p].file, .rate = result->stated_rate, .bound = result->stated_bound,
		.trees = result->trees, .depth = result->depth };
	TRY(take_baselines(ctx, result, &entry));
	TRY(map_ranks(ctx, b, j, v, &entry.rank));
	index->entry[index->n_entries++] = entry;
	return OK;
}

/* Roots of a job: all, the best one, or one of each class. */
static Status
add_rooted(Ctx *ctx, const Batch *b, Collective coll, int j, Index *index)
{
	const int *representative = b->classes->representative;
	int best = -1, best_plan = -1, n = b->job[j].n;
	for (int i = 0; i < n; i++) {
		int v = job_variant(b, j, i), p = plan_of(b, coll, v);
		bool first = true;
		if (p < 0)
			continue;
		for (int k = 0; k < i && b->roots == ROOTS_CANONICAL; k++)
			first = first && representative[job_variant(b, j, k)] != representative[v];
		if (b->roots == ROOTS_BEST) {
			if (best < 0 || better(b, p, best_plan)) {
				best = i;
				best_plan = p;
			}
		} else if (first) {
			TRY(add_entry(ctx, b, j, i, v, p, index));
		}
	}
	return best < 0 ? OK : add_entry(ctx, b, j, best, job_variant(b, j, best), best_plan, index);
}

Status
batch_index(Ctx *ctx, const Batch *b, Index **out)
{
	const Topology *machine = b->machine;
	Index *index;
	size_t most = 0;
	TRY(NEW(ctx, index, 1));
	*index = (Index){ .name = machine->name, .digest = machine->digest, .n_gpus = machine->n_ranks };
	TRY(NEW(ctx, index->gpu, machine->n_ranks));
	for (int g = 0; g < machine->n_ranks; g++)
		index->gpu[g] = machine->vertex[g].id;
	for (int c = 0; c < N_COLLECTIVES; c++)
		for (int j = 0; j < b->n_jobs && b->colls >> c & 1; j++)
			most += !collective_rooted((Collective)c) || b->roots == ROOTS_BEST ? 1 : (size_t)b->job[j].n;
	if (most > LIMIT_INDEX)
		return fail(ctx, LIMIT,
		    "an index of %zu entries: want at most %d; fewer --sizes, --collectives or --roots", most,
		    LIMIT_INDEX);
	TRY(NEW(ctx, index->entry, most));
	for (int j = 0; j < b->n_jobs; j++)
		for (int c = 0; c < N_COLLECTIVES; c++) {
			Collective coll = (Collective)c;
			int v = job_variant(b, j, -1);
			if (!(b->colls >> c & 1))
				continue;
			if (collective_rooted(coll))
				TRY(add_rooted(ctx, b, coll, j, index));
			else if (plan_of(b, coll, v) >= 0)
				TRY(add_entry(ctx, b, j, -1, v, plan_of(b, coll, v), index));
		}
	*out = index;
	return OK;
}
