/* Sets of GPUs: all of them, or those of a list from a job scheduler. */
#include "verb/batch/batch.h"

#include "base/digest.h"

#include <stdlib.h>
#include <string.h>

static int
by_number(const void *a, const void *b)
{
	int x = *(const int *)a, y = *(const int *)b;
	return (x > y) - (x < y);
}

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
	Ctx *ctx;
	const char *label;
	const Topology *machine;
	int number;		/* of the line */
	bool *seen;		/* of each GPU of the machine */
	int n, *gpu;
	int node;		/* that indices count in; -1: the machine */
};

static Status
bad_line(const struct line *line, const char *found, size_t n, const char *want)
{
	return fail(line->ctx, BAD_INPUT, "%s:%d: %.*s: want %s", line->label, line->number, n > 80 ? 80 : (int)n,
	    found, want);
}

/* GPU number i of the node, or of the machine. -1: none. */
static int
numbered_gpu(const struct line *line, int64_t i)
{
	const Topology *machine = line->machine;
	if (line->node < 0)
		return i < machine->n_ranks ? (int)i : -1;
	for (int g = 0; g < machine->n_ranks; g++)
		if (machine->vertex[g].node == line->node && i-- == 0)
			return g;
	return -1;
}

static Status
take(struct line *line, int gpu, const char *found, size_t n)
{
	if (gpu < 0)
		return bad_line(line, found, n, line->node < 0 ? "a GPU of the machine, by index or id"
		    : "a GPU of that node, by index or id");
	if (line->seen[gpu])
		return bad_line(line, found, n, "each GPU once");
	line->seen[gpu] = true;
	line->gpu[line->n++] = gpu;
	return OK;
}

static bool
same_word(const char *id, const char *word, size_t n)
{
	return strlen(id) == n && memcmp(id, word, n) == 0;
}

/* An id, of the node if one was named, an index, or a range of indices. */
static Status
take_item(struct line *line, const char *item, size_t n)
{
	int64_t first, last;
	size_t digits = strspn(item, "0123456789");
	for (int g = 0; g < line->machine->n_ranks; g++)
		if ((line->node < 0 || line->machine->vertex[g].node == line->node)
		    && same_word(line->machine->vertex[g].id, item, n))
			return take(line, g, item, n);
	digits = digits < n ? digits : n;
	if (digits == 0 || !decimal_parse(item, digits, 1, &first))
		return take(line, -1, item, n);
	last = first;
	if (digits < n && (item[digits] != '-' || strspn(item + digits + 1, "0123456789") < n - digits - 1
	    || !decimal_parse(item + digits + 1, n - digits - 1, 1, &last) || last < first
	    || last - first >= LIMIT_RANKS))
		return bad_line(line, item, n, "a GPU by index or id, or a range as 0-3");
	for (; first <= last; first++)
		TRY(take(line, numbered_gpu(line, first), item, n));
	return OK;
}

/* "0,1", "0-3", "gpu1,gpu5", "s0:0-2", "CUDA_VISIBLE_DEVICES=0,1", "gpu:2(IDX:0-1)". */
static Status
take_word(struct line *line, const char *word, size_t n)
{
	const char *idx = memmem(word, n, "(IDX:", 5), *equals = memchr(word, '=', n);
	line->node = -1;
	if (idx) {
		if (word[n - 1] != ')')
			return bad_line(line, word, n, "indices in (IDX:...)");
		n -= (size_t)(idx + 5 - word) + 1;
		word = idx + 5;
	} else if (equals) {
		n -= (size_t)(equals + 1 - word);
		word = equals + 1;
	}
	for (int s = 0; s < line->machine->n_nodes; s++) {
		size_t length = strlen(line->machine->node[s]);
		if (length < n && word[length] == ':' && memcmp(line->machine->node[s], word, length) == 0) {
			line->node = s;
			word += length + 1;
			n -= length + 1;
			break;
		}
	}
	for (const char *end = word + n; word < end;) {
		const char *comma = memchr(word, ',', (size_t)(end - word));
		size_t length = (size_t)((comma ? comma : end) - word);
		if (length > 0)
			TRY(take_item(line, word, length));
		word += length + 1;
	}
	return OK;
}

static Status
take_line(struct line *line, const char *at, size_t size)
{
	const char *end = at + size, *comment = memchr(at, '#', size);
	end = comment ? comment : end;
	line->n = 0;
	while (at < end) {
		const char *word = at;
		while (at < end && !strchr(" \t\r;", *at))
			at++;
		if (at > word)
			TRY(take_word(line, word, (size_t)(at - word)));
		at++;
	}
	for (int i = 0; i < line->n; i++)
		line->seen[line->gpu[i]] = false;
	return OK;
}

Status
sets_read(Ctx *ctx, const char *label, const Text *text, const Topology *machine, const bool *sizes, GpuSet **out,
    int *n_sets)
{
	struct line line = { .ctx = ctx, .label = label, .machine = machine };
	GpuSet *set;
	int n = 0, unique = 0, most = 1;
	for (size_t i = 0; i < text->size; i++)
		most += text->data[i] == '\n';
	if (most > LIMIT_SETS + 1)
		return fail(ctx, LIMIT, "%s: more than %d lines: want fewer", label, LIMIT_SETS);
	if (memchr(text->data ? text->data : "", 0, text->size))
		return fail(ctx, BAD_INPUT, "%s: a NUL byte: want text", label);
	TRY(NEW(ctx, set, most));
	TRY(TEMP(ctx, line.seen, machine->n_ranks));
	TRY(TEMP(ctx, line.gpu, machine->n_ranks));
	for (size_t at = 0; at < text->size;) {
		const char *newline = memchr(text->data + at, '\n', text->size - at);
		size_t size = newline ? (size_t)(newline - text->data) - at : text->size - at;
		int *gpu;
		line.number++;
		TRY(take_line(&line, text->data + at, size));
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
	if (n > 0)
		qsort(set, (size_t)n, sizeof *set, set_order);
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
	TRY(NEW(ctx, set, n_jobs));
	TRY(NEW(ctx, *set_of, n_jobs));
	for (int j = 0; j < n_jobs; j++) {
		int *gpu;
		TRY(NEW(ctx, gpu, job[j].n));
		memcpy(gpu, job[j].gpu, (size_t)job[j].n * sizeof *gpu);
		qsort(gpu, (size_t)job[j].n, sizeof *gpu, by_number);
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
