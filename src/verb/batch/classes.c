/* Isomorphism classes of sets, by canonical forms: of each set without a root and, if there are collectives with a
 * root, with each of its ranks as the root. Sets of one form are one class. */
#include "base/pool.h"
#include "compile.h"
#include "verb/batch/batch.h"
#include "verb/progress.h"

#include <stdlib.h>
#include <string.h>

enum { CHUNK = 64 };	/* sets of a task */

int
variant_root(const SetClasses *classes, int v)
{
	return v - (int)classes->first[classes->set_of[v]] - 1;
}

static uint16_t *
places_of(const Batch *b, int v)
{
	const SetClasses *classes = b->classes;
	int s = classes->set_of[v];
	return classes->place + classes->first_place[s] + ((size_t)v - classes->first[s]) * (size_t)batch_set(b, s)->n;
}

const uint16_t *
variant_place(const Batch *b, int v)
{
	return places_of(b, v);
}

/* ---- canonical forms ---- */

static Status
find_forms(Ctx *ctx, const Batch *b, int s)
{
	SetClasses *classes = b->classes;
	const int n = batch_set(b, s)->n;
	Job job;
	int *place, *mark;
	Status status = batch_induce(ctx, b, s, &b->ask, &job);
	if (status == INFEASIBLE) {
		classes->disconnected[s] = 1;
		ctx->error.status = OK;
		return OK;
	}
	TRY(status);
	for (int l = 0; l < job.topo->n_links; l++)
		classes->links[s] |= 1u << job.topo->link[l].class;
	TRY(NEW(ctx, place, job.topo->n_vertices));
	TRY(NEW(ctx, mark, n));
	for (int v = (int)classes->first[s]; v < (int)classes->first[s + 1]; v++) {
		uint16_t *own_place = places_of(b, v);
		for (int r = 0; r < n; r++)
			mark[r] = r == variant_root(classes, v);
		TRY(topo_canonical_form(ctx, job.topo, mark, classes->form[v], place, NULL));
		for (int r = 0; r < n; r++)
			own_place[r] = (uint16_t)place[r];
	}
	return OK;
}

static Status
find_chunk(Ctx *ctx, void *of, int task)
{
	const Batch *b = of;
	for (int s = task * CHUNK; s < batch_all_sets(b) && s < (task + 1) * CHUNK; s++) {
		ArenaMark mark = arena_mark(&ctx->run);
		TRY(request_blame(ctx, find_forms(ctx, b, s)));
		arena_release(&ctx->run, mark);
	}
	return OK;
}

static void
forms_done(void *of, int n_done)
{
	const Batch *b = of;
	int64_t n_sets = (int64_t)n_done * CHUNK, all = batch_all_sets(b);
	progress_bar("finding isomorphic sets", n_sets < all ? n_sets : all, all);
}

static Status
new_classes(Ctx *ctx, Batch *b)
{
	SetClasses *classes;
	const int n_sets = batch_all_sets(b);
	TRY(NEW(ctx, classes, 1));
	b->classes = classes;
	for (int c = 0; c < N_COLLECTIVES; c++)
		classes->rooted = classes->rooted || (b->colls >> c & 1 && collective_rooted((Collective)c));
	TRY(NEW_EACH(ctx, n_sets + 1, classes->first, classes->first_place));
	for (int s = 0; s < n_sets; s++) {
		size_t variants = 1 + (classes->rooted ? (size_t)batch_set(b, s)->n : 0);
		classes->first[s + 1] = classes->first[s] + variants;
		classes->first_place[s + 1] = classes->first_place[s] + variants * (size_t)batch_set(b, s)->n;
	}
	classes->n_variants = classes->first[n_sets];
	classes->n_places = classes->first_place[n_sets];
	if (classes->n_variants > 4 * (size_t)LIMIT_INDEX)
		return fail(ctx, LIMIT,
		    "%zu sets with their roots: want at most %d; fewer --sizes, or sets in a file with --gpus",
		    classes->n_variants, 4 * LIMIT_INDEX);
	TRY(NEW_EACH(ctx, classes->n_variants, classes->set_of, classes->representative, classes->number));
	for (int s = 0; s < n_sets; s++)
		for (size_t v = classes->first[s]; v < classes->first[s + 1]; v++)
			classes->set_of[v] = s;
	classes->form = shared_array(classes->n_variants, sizeof *classes->form);
	classes->place = shared_array(classes->n_places, sizeof *classes->place);
	classes->links = shared_array((size_t)n_sets, sizeof *classes->links);
	classes->disconnected = shared_array((size_t)n_sets, sizeof *classes->disconnected);
	return classes->form && classes->place && classes->links && classes->disconnected ? OK : fail_memory(ctx);
}

static Status
all_forms(Ctx *ctx, Batch *b)
{
	int n_tasks = (batch_all_sets(b) + CHUNK - 1) / CHUNK;
	const Pool pool = { .n_tasks = n_tasks, .n_workers = b->n_workers, .run = find_chunk, .done = forms_done,
	    .of = b };
	return pool_run_all(ctx, &pool);
}

/* ---- classes ---- */

/* A variant by its form. */
struct keyed {
	const unsigned char *form;
	int v;
};

static int
by_form(const void *x, const void *y)
{
	const struct keyed *a = x, *b = y;
	int order = memcmp(a->form, b->form, CANONICAL_FORM_BYTES);
	return order ? order : (a->v > b->v) - (a->v < b->v);
}

static Status
find_representatives(Ctx *ctx, Batch *b)
{
	SetClasses *classes = b->classes;
	struct keyed *key;
	int n = 0, numbers[2] = { 0 };
	TRY(NEW(ctx, key, classes->n_variants));
	for (int v = 0; v < (int)classes->n_variants; v++) {
		classes->representative[v] = v;
		if (!classes->disconnected[classes->set_of[v]])
			key[n++] = (struct keyed){ classes->form[v], v };
	}
	qsort(key, (size_t)n, sizeof *key, by_form);
	for (int i = 1; i < n; i++)
		if (memcmp(key[i - 1].form, key[i].form, CANONICAL_FORM_BYTES) == 0)
			classes->representative[key[i].v] = classes->representative[key[i - 1].v];
	for (int v = 0; v < (int)classes->n_variants; v++) {
		bool disconnected = classes->disconnected[classes->set_of[v]], rooted = variant_root(classes, v) >= 0;
		classes->number[v] = !disconnected && classes->representative[v] == v ? numbers[rooted]++ : -1;
	}
	return OK;
}

/* Of the jobs those whose sets are the first of their class, or disconnected. */
static Status
keep_first(Ctx *ctx, Batch *b)
{
	const SetClasses *classes = b->classes;
	int n = 0;
	bool *kept;
	TRY(NEW(ctx, kept, b->n_sets));
	for (int j = 0; j < b->n_jobs; j++) {
		int s = b->set_of[j], v = (int)classes->first[s];
		if (classes->representative[v] != v || kept[s])
			continue;
		kept[s] = true;
		b->job[n] = b->job[j];
		b->set_of[n++] = s;
	}
	b->n_jobs = n;
	return OK;
}

Status
classes_find(Ctx *ctx, Batch *b)
{
	TRY(new_classes(ctx, b));
	TRY(all_forms(ctx, b));
	TRY(find_representatives(ctx, b));
	return b->distinct ? keep_first(ctx, b) : OK;
}

SetClass
batch_class(const Batch *b, int s)
{
	const SetClasses *classes = b->classes;
	return (SetClass){ .disconnected = classes->disconnected[s], .first = classes->number[classes->first[s]] >= 0,
	    .links = classes->links[s] };
}

void
classes_free(SetClasses *classes)
{
	if (!classes)
		return;
	shared_free(classes->form);
	shared_free(classes->place);
	shared_free(classes->links);
	shared_free(classes->disconnected);
}
