/* The index of a batch: each job takes the schedule of its class, in ranks by the isomorphism that canonical forms
 * give. */
#include "verb/batch/batch.h"
#include "base/sort.h"

/* The plan of a variant, or -1 where it has none. */
static int
batch_plan_of(const Batch *b, Collective coll, int v)
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

int
batch_best(const Batch *b, Collective coll, int s, int *root)
{
	const int first = (int)b->classes->first[s];
	int best = -1;
	*root = -1;
	if (!collective_rooted(coll))
		return batch_plan_of(b, coll, first);
	for (int r = 0; r < batch_set(b, s)->n; r++) {
		int p = batch_plan_of(b, coll, first + 1 + r);
		if (p < 0 || (best >= 0 && !better(b, p, best)))
			continue;
		best = p;
		*root = r;
	}
	return best;
}

/* Variant of job j on machine m whose root is its rank i; without a root, i is -1. */
static int
job_variant(const Batch *b, int m, int j, int i)
{
	const GpuSet *set = &b->set[b->set_of[j]];
	int first = (int)b->classes->first[m * b->n_sets + b->set_of[j]];
	if (i < 0)
		return first;
	for (int r = 0;; r++)
		if (set->gpu[r] == b->job[j].gpu[i])
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

struct listing {
	Ctx *ctx;
	const Batch *b;
	int m;			/* the machine */
	bool *used;		/* of each machine: are there files for it? */
	Index *index;
};

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

/* An entry for each range of sizes of a tuned plan. */
static Status
add_ranges(const struct listing *list, int p, IndexEntry *entry)
{
	const Batch *b = list->b;
	Index *index = list->index;
	for (int i = 0; i < b->result[p].n_ranges; i++) {
		const TunedRange *range = &b->range[(size_t)p * TUNED_RANGES + (size_t)i];
		entry->sized = true;
		entry->from = range->from;
		entry->to = range->to;
		entry->rate = range->stated_rate;
		entry->bound = range->stated_bound;
		entry->trees = range->trees;
		entry->depth = range->depth;
		TRY(tuned_file(list->ctx, &b->plan[p], range, &entry->file));
		index->entry[index->n_entries++] = *entry;
	}
	return OK;
}

static Status
add_entry(const struct listing *list, int j, int root, int v, int p)
{
	const Batch *b = list->b;
	Index *index = list->index;
	const BatchResult *result = &b->result[p];
	IndexEntry entry = { .n = b->job[j].n, .gpu = b->job[j].gpu, .coll = b->plan[p].coll, .root = root,
		.file = b->plan[p].file, .rate = result->stated_rate, .bound = result->stated_bound,
		.trees = result->trees, .depth = result->depth, .form = result->form };
	TRY(take_baselines(list->ctx, result, &entry));
	TRY(map_ranks(list->ctx, b, j, v, &entry.rank));
	list->used[b->plan[p].set / b->n_sets] = true;
	if (b->tuning)
		return add_ranges(list, p, &entry);
	index->entry[index->n_entries++] = entry;
	return OK;
}

/* Roots of a job: all, the best one, or one of each class. */
static Status
add_rooted(const struct listing *list, Collective coll, int j)
{
	const Batch *b = list->b;
	const int m = list->m;
	const int *representative = b->classes->representative;
	int best = -1, best_plan = -1, n = b->job[j].n;
	for (int i = 0; i < n; i++) {
		int v = job_variant(b, m, j, i), p = batch_plan_of(b, coll, v);
		bool first = true;
		if (p < 0)
			continue;
		for (int k = 0; k < i && b->roots == ROOTS_CANONICAL; k++)
			first = first && representative[job_variant(b, m, j, k)] != representative[v];
		if (b->roots == ROOTS_BEST) {
			if (best < 0 || better(b, p, best_plan)) {
				best = i;
				best_plan = p;
			}
		} else if (first) {
			TRY(add_entry(list, j, i, v, p));
		}
	}
	return best < 0 ? OK : add_entry(list, j, best, job_variant(b, m, j, best), best_plan);
}

/* Digests of the other machines that files of the index are for. used: of each machine, whether it is one. */
static Status
list_others(Ctx *ctx, const Batch *b, int m, const bool *used, Index *index)
{
	TRY(NEW(ctx, index->other, b->n_machines));
	for (int k = 0; k < b->n_machines; k++)
		if (used[k] && k != m)
			index->other[index->n_others++] = b->of[k].topo->digest;
	sort_array(index->other, index->n_others, sizeof *index->other, order_of_texts);
	return OK;
}

/* Entries of a job, at most. */
static int
most_ranges(const Batch *b)
{
	int most = 1;
	for (int p = 0; p < b->n_plans && b->tuning; p++)
		most = b->result[p].n_ranges > most ? b->result[p].n_ranges : most;
	return most;
}

Status
batch_index(Ctx *ctx, const Batch *b, int m, Index **out)
{
	const Topology *machine = b->machine, *left = b->of[m].topo;
	Index *index;
	size_t most = 0;
	TRY(NEW(ctx, index, 1));
	*index = (Index){ .name = left->name, .digest = left->digest, .without = b->of[m].without,
	    .machine = b->by_form ? left : NULL, .links = b->by_form ? b->ask.links : 0,
	    .routes = b->by_form ? b->of[m].routes : ROUTES_CHOSEN, .n_gpus = machine->n_ranks };
	TRY(NEW(ctx, index->gpu, machine->n_ranks));
	for (int g = 0; g < machine->n_ranks; g++)
		index->gpu[g] = machine->vertex[g].id;
	for (int c = 0; c < N_COLLECTIVES; c++)
		for (int j = 0; j < b->n_jobs && b->colls >> c & 1; j++)
			most += !collective_rooted((Collective)c) || b->roots == ROOTS_BEST ? 1 : (size_t)b->job[j].n;
	most *= (size_t)most_ranges(b);
	if (most > LIMIT_INDEX)
		return fail(ctx, LIMIT,
		    "an index of %zu entries: want at most %d; fewer --sizes, --collectives or --roots", most,
		    LIMIT_INDEX);
	TRY(NEW(ctx, index->entry, most));
	struct listing list = { .ctx = ctx, .b = b, .m = m, .index = index };
	TRY(NEW(ctx, list.used, b->n_machines));
	for (int j = 0; j < b->n_jobs; j++)
		for (int c = 0; c < N_COLLECTIVES; c++) {
			Collective coll = (Collective)c;
			int v = job_variant(b, m, j, -1);
			if (!(b->colls >> c & 1))
				continue;
			if (collective_rooted(coll))
				TRY(add_rooted(&list, coll, j));
			else if (batch_plan_of(b, coll, v) >= 0)
				TRY(add_entry(&list, j, -1, v, batch_plan_of(b, coll, v)));
		}
	TRY(list_others(ctx, b, m, list.used, index));
	*out = index;
	return OK;
}
