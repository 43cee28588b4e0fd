/* Sets of GPUs: all of them, or those of a list from a job scheduler. */
#include "verb/batch/batch.h"
#include "base/sort.h"

#include "base/digest.h"
#include "model/gpu_list.h"

#include <stdlib.h>
#include <string.h>

int
set_order(const void *a, const void *b)
{
	const GpuSet *x = a, *y = b;
	if (x->n != y->n)
		return x->n < y->n ? -1 : 1;
	for (int i = 0; i < x->n; i++)
		if (x->gpu[i] != y->gpu[i])
			return x->gpu[i] < y->gpu[i] ? -1 : 1;
	return 0;
}

/* n over k, or LIMIT_SETS + 1 where it is more. */
static int64_t
choose(int n, int k)
{
	int64_t all = 1;
	for (int i = 1; i <= k && all <= LIMIT_SETS; i++)
		all = all * (n - k + i) / i;
	return all <= LIMIT_SETS ? all : LIMIT_SETS + 1;
}

Status
sets_all(Ctx *ctx, int n, const bool *sizes, GpuSet **out, int *n_sets)
{
	int64_t all = 0, entries = 0;
	int *gpu, count = 0;
	GpuSet *set;
	for (int k = 2; k <= n && all <= LIMIT_SETS; k++) {
		all += sizes[k] ? choose(n, k) : 0;
		entries += sizes[k] ? choose(n, k) * k : 0;
	}
	if (all > LIMIT_SETS)
		return fail(ctx, LIMIT,
		    "more than %d sets of %d GPUs: want fewer --sizes, or the sets in a file with --gpus", LIMIT_SETS,
		    n);
	TRY(NEW(ctx, set, all));
	TRY(NEW(ctx, gpu, entries + n));
	for (int k = 2; k <= n; k++) {
		int *at = gpu, i;
		if (!sizes[k])
			continue;
		for (i = 0; i < k; i++)
			at[i] = i;
		for (;;) {
			set[count++] = (GpuSet){ k, gpu };
			gpu += k;
			/* The next combination in lexicographic order. */
			for (i = k - 1; i >= 0 && at[i] == n - k + i; i--)
				;
			if (i < 0)
				break;
			memcpy(gpu, at, (size_t)k * sizeof *gpu);
			at = gpu;
			at[i]++;
			for (; i + 1 < k; i++)
				at[i + 1] = at[i] + 1;
		}
	}
	*out = set;
	*n_sets = count;
	return OK;
}

/* ---- lists ---- */

struct line {
	const char *label;
	int number;
	GpuNames names;
	bool *seen;
	int n, *gpu;
};

static Status
take_line(Ctx *ctx, struct line *line, const char *at, size_t size)
{
	GpuListError error;
	const char *comment = memchr(at, '#', size);
	line->n = gpu_list_parse(&line->names, at, comment ? (size_t)(comment - at) : size, false, line->seen,
	    line->gpu, &error);
	if (line->n < 0)
		return fail(ctx, BAD_INPUT, "%s:%d: %.*s: want %s", line->label, line->number, error.length,
		    error.found, gpu_list_wanted(error.fault));
	return OK;
}

Status
sets_read(Ctx *ctx, const char *label, const Text *text, const Topology *machine, const bool *sizes, GpuSet **out,
    int *n_sets)
{
	struct line line = { .label = label };
	GpuSet *set;
	int n = 0, unique = 0, most = 1;
	for (size_t i = 0; i < text->size; i++)
		most += text->data[i] == '\n';
	if (most > LIMIT_SETS + 1)
		return fail(ctx, LIMIT, "%s: more than %d lines: want fewer", label, LIMIT_SETS);
	if (memchr(text->data ? text->data : "", 0, text->size))
		return fail(ctx, BAD_INPUT, "%s: a NUL byte: want text", label);
	TRY(NEW(ctx, set, most));
	TRY(topo_gpu_names(ctx, machine, &line.names));
	TRY(TEMP_EACH(ctx, machine->n_ranks, line.seen, line.gpu));
	for (size_t at = 0; at < text->size;) {
		const char *newline = memchr(text->data + at, '\n', text->size - at);
		size_t size = newline ? (size_t)(newline - text->data) - at : text->size - at;
		int *gpu;
		line.number++;
		TRY(take_line(ctx, &line, text->data + at, size));
		at += size + 1;
		if (line.n == 1)
			return fail(ctx, BAD_INPUT, "%s:%d: 1 GPU: want at least 2 for a collective", label,
			    line.number);
		if (line.n == 0 || !sizes[line.n])
			continue;
		TRY(NEW(ctx, gpu, line.n));
		memcpy(gpu, line.gpu, (size_t)line.n * sizeof *gpu);
		set[n++] = (GpuSet){ line.n, gpu };
	}
	sort_array(set, n, sizeof *set, set_order);
	for (int i = 0; i < n; i++)
		if (i == 0 || set_order(&set[i], &set[unique - 1]) != 0)
			set[unique++] = set[i];
	*out = set;
	*n_sets = unique;
	return OK;
}

/* ---- sets and jobs ---- */

Status
sets_of_jobs(Ctx *ctx, const GpuSet *job, int n_jobs, GpuSet **out, int *n_sets, int **set_of)
{
	GpuSet *set, *found;
	int n = 0;
	TRY(NEW_EACH(ctx, n_jobs, set, *set_of));
	for (int j = 0; j < n_jobs; j++) {
		int *gpu;
		TRY(NEW(ctx, gpu, job[j].n));
		memcpy(gpu, job[j].gpu, (size_t)job[j].n * sizeof *gpu);
		qsort(gpu, (size_t)job[j].n, sizeof *gpu, order_of_ints);
		set[j] = (GpuSet){ job[j].n, gpu };
	}
	GpuSet *sorted;
	TRY(NEW(ctx, sorted, n_jobs));
	memcpy(sorted, set, (size_t)n_jobs * sizeof *set);
	qsort(sorted, (size_t)n_jobs, sizeof *sorted, set_order);
	for (int i = 0; i < n_jobs; i++)
		if (i == 0 || set_order(&sorted[i], &sorted[n - 1]) != 0)
			sorted[n++] = sorted[i];
	for (int j = 0; j < n_jobs; j++) {
		found = bsearch(&set[j], sorted, (size_t)n, sizeof *sorted, set_order);
		(*set_of)[j] = (int)(found - sorted);
	}
	*out = sorted;
	*n_sets = n;
	return OK;
}

void
set_name(const GpuSet *set, Text *out)
{
	enum { LONGEST = 120, DIGITS = 16 };
	char digest[DIGEST_ROOM];
	Text name = { 0 };
	for (int i = 0, last; i < set->n; i = last + 1) {
		for (last = i; last + 1 < set->n && set->gpu[last + 1] == set->gpu[last] + 1; last++)
			;
		text_printf(&name, last == i ? "%s%d" : last == i + 1 ? "%s%d,%d" : "%s%d-%d", i ? "," : "",
		    set->gpu[i], set->gpu[last]);
	}
	if (name.failed || name.size <= LONGEST) {
		text_add(out, name.data, name.size);
		out->failed = out->failed || name.failed;
	} else {
		digest_of(name.data, name.size, digest);
		text_printf(out, "%dgpus-%.*s", set->n, DIGITS, digest + sizeof "sha256:" - 1);
	}
	text_free(&name);
}
