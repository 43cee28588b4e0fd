/* The job file (blink-job(5)): groups of ranks, as a grid or as lists, and the phases in which they call
 * collectives. */
#include "base/array.h"
#include "format/blink/workload_reader.h"
#include "format/file_kind.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_DIMENSIONS = 16, MOST_NAME = 32, MOST_TIMES = 1000000 };

/* A dimension of a grid: ranks that differ in its coordinate alone have numbers `stride` apart. */
struct dimension {
	const char *name;
	int size, grid;
	int64_t stride;
};

struct workload_reader {
	Ctx *ctx;
	const char *label;
	Workload *out;
	int n_dimensions;
	struct dimension dimension[MOST_DIMENSIONS];
	const Doc *lists;	/* the member "groups"; NULL */
	int kinds_room;
	bool *seen;		/* n_ranks: work space */
};

static Status
read_int(const struct workload_reader *r, const Doc *object, const char *name, int64_t lo, int64_t hi, int64_t *out)
{
	const Doc *at = doc_get(object, name);
	return at ? doc_int(r->ctx, r->label, at, lo, hi, out) : OK;
}

/* ---- grids ---- */

/* Letters, digits and "_": a "-" joins names. */
static bool
is_name(const char *text)
{
	size_t n = strlen(text);
	return n > 0 && n <= MOST_NAME
	    && strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == n;
}

static const struct dimension *
find_dimension(const struct workload_reader *r, const char *name, size_t n)
{
	for (int i = 0; i < r->n_dimensions; i++)
		if (strlen(r->dimension[i].name) == n && memcmp(r->dimension[i].name, name, n) == 0)
			return &r->dimension[i];
	return NULL;
}

static Status
add_dimension(struct workload_reader *r, const Doc *at, int grid)
{
	int64_t size;
	if (!is_name(at->name))
		return doc_fail(r->ctx, r->label, at, BAD_INPUT,
		    "the name of a dimension: want letters, digits and _, at most %d", MOST_NAME);
	if (find_dimension(r, at->name, strlen(at->name)))
		return doc_fail(r->ctx, r->label, at, BAD_INPUT, "given twice: want each dimension in one grid");
	if (r->n_dimensions == MOST_DIMENSIONS)
		return doc_fail(r->ctx, r->label, at, LIMIT, "too many dimensions: want at most %d", MOST_DIMENSIONS);
	TRY(doc_int(r->ctx, r->label, at, 1, LIMIT_RANKS, &size));
	r->dimension[r->n_dimensions++] = (struct dimension){ .name = at->name, .size = (int)size, .grid = grid };
	return OK;
}

/* "tp-dp-pp": the first of them is the fastest, as Megatron has it. */
static Status
read_order(struct workload_reader *r, const Doc *at, int first)
{
	int64_t stride = 1;
	int n = 0;
	for (const char *word = at->text;; word++) {
		size_t length = strcspn(word, "-");
		struct dimension *d = (struct dimension *)find_dimension(r, word, length);
		if (!d || d - r->dimension < first || d->stride)
			break;
		d->stride = stride;
		stride *= d->size;
		n++;
		word += length;
		if (!*word)
			break;
	}
	return n == r->n_dimensions - first ? OK : doc_want(r->ctx, r->label, at,
	    "each dimension of the grid once, the fastest first, as \"tp-dp-pp\"");
}

static Status
read_grid(struct workload_reader *r, const Doc *at, const Doc *order, int grid)
{
	int first = r->n_dimensions;
	int64_t ranks = 1;
	if (at->kind != DOC_OBJECT || at->n == 0)
		return doc_want(r->ctx, r->label, at, "an object, as { \"dp\": 4, \"tp\": 2 }");
	for (int i = 0; i < at->n; i++) {
		TRY(add_dimension(r, at->child[i], grid));
		ranks *= r->dimension[r->n_dimensions - 1].size;
		if (ranks > LIMIT_RANKS)
			return doc_fail(r->ctx, r->label, at->child[i], LIMIT, "more than %d ranks", LIMIT_RANKS);
	}
	if (grid > 0 && ranks != r->out->n_ranks)
		return doc_fail(r->ctx, r->label, at, BAD_INPUT, "%lld ranks: want %d, as the grid before it has",
		    (long long)ranks, r->out->n_ranks);
	r->out->n_ranks = (int)ranks;
	if (order)
		return read_order(r, order, first);
	/* The last is the fastest, as a DeviceMesh has it. */
	for (int i = r->n_dimensions - 1; i >= first; i--) {
		struct dimension *d = &r->dimension[i];
		d->stride = i == r->n_dimensions - 1 ? 1 : d[1].stride * d[1].size;
	}
	return OK;
}

static Status
read_grids(struct workload_reader *r, const Doc *root)
{
	const Doc *at = doc_get(root, "grid"), *order = doc_get(root, "order");
	if (order && order->kind != DOC_STRING && order->kind != DOC_ARRAY)
		return doc_want(r->ctx, r->label, order, "a text, as \"tp-dp-pp\"");
	if (!at)
		return order ? doc_fail(r->ctx, r->label, order, BAD_INPUT, "no grid: want none without it") : OK;
	if (at->kind != DOC_ARRAY)
		return order && order->kind != DOC_STRING ? doc_want(r->ctx, r->label, order, "a text, as \"tp-dp-pp\"")
		    : read_grid(r, at, order, 0);
	if (order && (order->kind != DOC_ARRAY || order->n != at->n))
		return doc_want(r->ctx, r->label, order, "a text for each grid");
	for (int i = 0; i < at->n; i++) {
		if (order && order->child[i]->kind != DOC_STRING)
			return doc_want(r->ctx, r->label, order->child[i], "a text, as \"tp-dp-pp\"");
		TRY(read_grid(r, at->child[i], order ? order->child[i] : NULL, i));
	}
	return OK;
}

/* ---- groups ---- */

/* The dimensions that a name joins with "-", a bit set; 0: it is none of a grid. */
static unsigned
dimensions_of(const struct workload_reader *r, const char *name)
{
	unsigned set = 0;
	int grid = -1;
	for (const char *word = name;; word++) {
		size_t length = strcspn(word, "-");
		const struct dimension *d = find_dimension(r, word, length);
		if (!d || (grid >= 0 && d->grid != grid) || set >> (d - r->dimension) & 1)
			return 0;
		grid = d->grid;
		set |= 1u << (d - r->dimension);
		word += length;
		if (!*word)
			return set;
	}
}

/* The number of a rank's group, in the order of their first ranks' numbers: by its coordinates in other dimensions. */
static int
group_of(const struct workload_reader *r, unsigned set, int grid, int rank)
{
	int number = rank;
	for (int i = 0; i < r->n_dimensions; i++) {
		const struct dimension *d = &r->dimension[i];
		if (d->grid == grid && set >> i & 1)
			number -= (int)(rank / d->stride % d->size * d->stride);
	}
	return number;
}

/* Groups over these dimensions of a grid: ranks ascend. */
static Status
make_groups(struct workload_reader *r, unsigned set, GroupKind *kind)
{
	ArenaMark mark = arena_mark(&r->ctx->scratch);
	int n_ranks = r->out->n_ranks, grid = -1, size = 1, *number;
	for (int i = 0; i < r->n_dimensions; i++)
		if (set >> i & 1) {
			grid = r->dimension[i].grid;
			size *= r->dimension[i].size;
		}
	TRY(TEMP(r->ctx, number, n_ranks));
	TRY(NEW(r->ctx, kind->group, n_ranks / size));
	for (int rank = 0; rank < n_ranks; rank++) {
		int first = group_of(r, set, grid, rank), *ranks;
		if (first == rank) {
			TRY(NEW(r->ctx, ranks, size));
			number[rank] = kind->n_groups;
			kind->group[kind->n_groups++].rank = ranks;
		}
		RankGroup *group = &kind->group[number[first]];
		((int *)group->rank)[group->n++] = rank;
	}
	arena_release(&r->ctx->scratch, mark);
	return OK;
}

static Status
read_list(struct workload_reader *r, const Doc *at, RankGroup *out)
{
	int *rank;
	if (at->kind != DOC_ARRAY || at->n < 2)
		return doc_want(r->ctx, r->label, at, "a list of two ranks or more");
	TRY(NEW(r->ctx, rank, at->n));
	for (int i = 0; i < at->n; i++) {
		int64_t value;
		TRY(doc_int(r->ctx, r->label, at->child[i], 0, r->out->n_ranks - 1, &value));
		if (r->seen[value])
			return doc_fail(r->ctx, r->label, at->child[i], BAD_INPUT,
			    "%lld: given twice: want each rank in one group", (long long)value);
		r->seen[value] = true;
		rank[i] = (int)value;
	}
	*out = (RankGroup){ at->n, rank };
	return OK;
}

static Status
read_lists(struct workload_reader *r, const Doc *at, GroupKind *kind)
{
	if (at->kind != DOC_ARRAY || at->n == 0)
		return doc_want(r->ctx, r->label, at, "lists of ranks, as [[0, 1], [2, 3]]");
	memset(r->seen, 0, (size_t)r->out->n_ranks * sizeof *r->seen);
	kind->n_groups = at->n;
	TRY(NEW(r->ctx, kind->group, at->n));
	for (int g = 0; g < at->n; g++)
		TRY(read_list(r, at->child[g], &kind->group[g]));
	return OK;
}

/* Names in "groups": none is that of a dimension. */
static Status
check_lists(struct workload_reader *r)
{
	for (int i = 0; r->lists && i < r->lists->n; i++) {
		const Doc *at = r->lists->child[i];
		if (!is_name(at->name))
			return doc_fail(r->ctx, r->label, at, BAD_INPUT,
			    "the name of groups: want letters, digits and _, at most %d", MOST_NAME);
		if (find_dimension(r, at->name, strlen(at->name)))
			return doc_fail(r->ctx, r->label, at, BAD_INPUT,
			    "a dimension of the grid has this name: want another");
	}
	return OK;
}

static Status
read_kind(struct workload_reader *r, const Doc *call, int *out)
{
	const char *name;
	TRY(doc_string(r->ctx, r->label, call, "groups", &name));
	for (int k = 0; k < r->out->n_kinds; k++)
		if (strcmp(r->out->kind[k].name, name) == 0) {
			*out = k;
			return OK;
		}
	const Doc *list = r->lists ? doc_get(r->lists, name) : NULL;
	unsigned set = dimensions_of(r, name);
	if (!list && !set)
		return doc_want(r->ctx, r->label, doc_get(call, "groups"),
		    "a dimension of the grid, several of one grid as \"tp-dp\", or a member of groups");
	TRY(GROW(r->ctx, r->out->kind, r->out->n_kinds, r->kinds_room));
	*out = r->out->n_kinds;
	GroupKind *kind = &r->out->kind[r->out->n_kinds++];
	*kind = (GroupKind){ .name = name };
	return list ? read_lists(r, list, kind) : make_groups(r, set, kind);
}

/* ---- phases ---- */

static Status
check_root(const struct workload_reader *r, const Doc *at, const GroupKind *kind, GroupCall *call)
{
	const Doc *root = doc_get(at, "root");
	int64_t value = 0;
	call->root = -1;
	if (!collective_rooted(call->coll))
		return root && root->kind != DOC_NULL ? doc_fail(r->ctx, r->label, root, BAD_INPUT,
		    "want none for %s", collective_name(call->coll)) : OK;
	if (root)
		TRY(doc_int(r->ctx, r->label, root, 0, LIMIT_RANKS - 1, &value));
	for (int g = 0; g < kind->n_groups; g++)
		if (value >= kind->group[g].n)
			return doc_fail(r->ctx, r->label, root, BAD_INPUT, "%lld: want a rank of each group, 0 to %d",
			    (long long)value, kind->group[g].n - 1);
	call->root = (int)value;
	return OK;
}

static Status
read_bytes(const struct workload_reader *r, const Doc *at, GroupCall *call)
{
	const Doc *bytes;
	TRY(doc_need(r->ctx, r->label, at, "bytes", DOC_NUMBER, &bytes));
	TRY(doc_int(r->ctx, r->label, bytes, 1, LIMIT_MESSAGE, &call->bytes));
	return call->bytes <= LIMIT_MESSAGE / call->times ? OK : doc_fail(r->ctx, r->label, bytes, LIMIT,
	    "%lld bytes %d times: want at most %lld together", (long long)call->bytes, call->times,
	    (long long)LIMIT_MESSAGE);
}

static Status
read_call(struct workload_reader *r, const Doc *at, GroupCall *call)
{
	static const char *const names[] = { "groups", "collective", "root", "bytes", "matrix", "skew", "times",
		"priority", NULL };
	const char *text;
	int64_t times = 1, priority = FIRST_PRIORITY;
	if (at->kind != DOC_OBJECT)
		return doc_want(r->ctx, r->label, at, "an object");
	TRY(doc_only(r->ctx, r->label, at, names));
	TRY(read_kind(r, at, &call->kind));
	TRY(doc_string(r->ctx, r->label, at, "collective", &text));
	if (!collective_parse(text, &call->coll))
		return doc_want(r->ctx, r->label, doc_get(at, "collective"), "a collective, as \"allreduce\"");
	TRY(check_root(r, at, &r->out->kind[call->kind], call));
	TRY(read_int(r, at, "times", 1, MOST_TIMES, &times));
	TRY(read_int(r, at, "priority", FIRST_PRIORITY, LAST_PRIORITY, &priority));
	call->times = (int)times;
	call->priority = (int)priority;
	if (!doc_get(at, "matrix"))
		TRY(read_bytes(r, at, call));
	return call_read_matrix(r->ctx, r->label, at, r->out->n_ranks, &r->out->kind[call->kind], call);
}

/* A rank is in one group of a call, and has as many communicators at work as there are calls. */
static Status
check_ranks(struct workload_reader *r, const Doc *at, const Phase *phase)
{
	ArenaMark mark = arena_mark(&r->ctx->scratch);
	int *calls;
	TRY(TEMP(r->ctx, calls, r->out->n_ranks));
	for (int c = 0; c < phase->n_calls; c++) {
		const GroupKind *kind = &r->out->kind[phase->call[c].kind];
		for (int g = 0; g < kind->n_groups; g++)
			for (int i = 0; i < kind->group[g].n && kind->group[g].n > 1; i++)
				if (++calls[kind->group[g].rank[i]] > LIMIT_RANK_CALLS)
					return doc_fail(r->ctx, r->label, at->child[c], LIMIT,
					    "rank %d is in more than %d calls at once: want fewer, or phases one after "
					    "the other", kind->group[g].rank[i], LIMIT_RANK_CALLS);
	}
	arena_release(&r->ctx->scratch, mark);
	return OK;
}

/* It becomes a directory. */
static Status
read_name(const struct workload_reader *r, const Doc *at, Phase *phase)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
	enum { MOST = 64 };
	TRY(doc_string(r->ctx, r->label, at, "name", &phase->name));
	size_t n = strlen(phase->name);
	if (n == 0 || n > MOST || strspn(phase->name, letters) != n)
		return doc_want(r->ctx, r->label, doc_get(at, "name"), "letters, digits, _ and -, at most 64");
	for (const Phase *before = r->out->phase; before < phase; before++)
		if (strcmp(before->name, phase->name) == 0)
			return doc_want(r->ctx, r->label, doc_get(at, "name"), "a name that no phase before it has");
	return OK;
}

static Status
read_phase(struct workload_reader *r, const Doc *at, Phase *phase)
{
	static const char *const names[] = { "name", "times", "calls", NULL };
	const Doc *calls;
	int64_t times = 1;
	if (at->kind != DOC_OBJECT)
		return doc_want(r->ctx, r->label, at, "an object");
	TRY(doc_only(r->ctx, r->label, at, names));
	TRY(read_name(r, at, phase));
	TRY(read_int(r, at, "times", 1, MOST_TIMES, &times));
	phase->times = (int)times;
	TRY(doc_need(r->ctx, r->label, at, "calls", DOC_ARRAY, &calls));
	if (calls->n == 0 || calls->n > LIMIT_CALLS)
		return doc_fail(r->ctx, r->label, calls, calls->n ? LIMIT : BAD_INPUT, "%d calls: want 1 to %d",
		    calls->n, LIMIT_CALLS);
	phase->n_calls = calls->n;
	TRY(NEW(r->ctx, phase->call, calls->n));
	for (int c = 0; c < calls->n; c++)
		TRY(read_call(r, calls->child[c], &phase->call[c]));
	return check_ranks(r, calls, phase);
}

/* With lists alone: ranks up to the highest that they name. */
static Status
count_ranks(struct workload_reader *r)
{
	for (int k = 0; r->lists && k < r->lists->n; k++) {
		const Doc *kind = r->lists->child[k];
		for (int g = 0; kind->kind == DOC_ARRAY && g < kind->n; g++) {
			const Doc *list = kind->child[g];
			for (int i = 0; list->kind == DOC_ARRAY && i < list->n; i++) {
				int64_t rank;
				TRY(doc_int(r->ctx, r->label, list->child[i], 0, LIMIT_RANKS - 1, &rank));
				r->out->n_ranks = rank >= r->out->n_ranks ? (int)rank + 1 : r->out->n_ranks;
			}
		}
	}
	return OK;
}

static Status
read_workload(struct workload_reader *r, const Doc *root)
{
	static const char *const names[] = { "format", "version", "topology", "gpus", "grid", "order", "groups",
		"phases", NULL };
	const Doc *version, *phases;
	Workload *w = r->out;
	if (root->kind != DOC_OBJECT)
		return doc_fail(r->ctx, r->label, root, BAD_INPUT, "not an object: want a job");
	TRY(doc_format(r->ctx, r->label, root, "blink-job"));
	TRY(doc_need(r->ctx, r->label, root, "version", DOC_NUMBER, &version));
	if (version->number != 1)
		return doc_want(r->ctx, r->label, version, "1");
	TRY(doc_only(r->ctx, r->label, root, names));
	if (doc_get(root, "topology"))
		TRY(doc_string(r->ctx, r->label, root, "topology", &w->topology));
	if (doc_get(root, "gpus"))
		TRY(doc_string(r->ctx, r->label, root, "gpus", &w->gpus));
	TRY(read_grids(r, root));
	if (doc_get(root, "groups"))
		TRY(doc_need(r->ctx, r->label, root, "groups", DOC_OBJECT, &r->lists));
	TRY(check_lists(r));
	if (r->n_dimensions == 0)
		TRY(count_ranks(r));
	TRY(TEMP(r->ctx, r->seen, w->n_ranks));
	TRY(doc_need(r->ctx, r->label, root, "phases", DOC_ARRAY, &phases));
	if (phases->n == 0 || phases->n > LIMIT_CALLS)
		return doc_fail(r->ctx, r->label, phases, phases->n ? LIMIT : BAD_INPUT, "%d phases: want 1 to %d",
		    phases->n, LIMIT_CALLS);
	w->n_phases = phases->n;
	TRY(NEW(r->ctx, w->phase, phases->n));
	for (int i = 0; i < phases->n; i++)
		TRY(read_phase(r, phases->child[i], &w->phase[i]));
	return OK;
}

Status
workload_read(Ctx *ctx, const char *label, const char *data, size_t size, Workload **out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct workload_reader r = { .ctx = ctx, .label = label };
	Doc *root;
	TRY(file_kind_check(ctx, label, data, size, FILE_JOB));
	TRY(NEW(ctx, r.out, 1));
	TRY(doc_read_json(ctx, label, data, size, &root));
	TRY(read_workload(&r, root));
	arena_release(&ctx->scratch, mark);
	*out = r.out;
	return OK;
}
