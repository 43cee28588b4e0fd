/* Reader of the index of schedules (blink-index(5)). Unknown members are ignored. */
#include "format/blink/index_reader.h"
#include "base/sort.h"
#include "format/doc.h"
#include "format/file_kind.h"
#include "format/format.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A whole number, lo to hi. */
static Status
read_int(struct index_reader *r, const Doc *object, const char *name, int lo, int hi, int *out)
{
	const Doc *at;
	int64_t value;
	TRY(doc_need(r->ctx, r->label, object, name, DOC_NUMBER, &at));
	TRY(doc_int(r->ctx, r->label, at, lo, hi, &value));
	*out = (int)value;
	return OK;
}

static Status
read_rate(struct index_reader *r, const Doc *object, const char *name, double *out)
{
	const Doc *at;
	TRY(doc_need(r->ctx, r->label, object, name, DOC_NUMBER, &at));
	if (!(at->number >= 0 && at->number <= 1e15))
		return doc_want(r->ctx, r->label, at, "a rate, 0 to 1e15 (GB/s)");
	*out = at->number;
	return OK;
}

/* n whole numbers below `most`, each once; n = 0: any number of them, which goes to *count. */
static Status
read_distinct(struct index_reader *r, const Doc *object, const char *name, int n, int most, int *count, const int **out)
{
	const Doc *array;
	int *value;
	Status status = OK;
	TRY(doc_need(r->ctx, r->label, object, name, DOC_ARRAY, &array));
	if (n ? array->n != n : array->n < 2 || array->n > most)
		return n ? doc_fail(r->ctx, r->label, array, BAD_INPUT, "%d entries: want %d, as gpus has", array->n, n)
			 : doc_fail(r->ctx, r->label, array, BAD_INPUT, "%d entries: want 2 to %d GPUs", array->n,
			    most);
	most = n ? n : most;
	TRY(NEW(r->ctx, value, array->n));
	for (int i = 0; i < array->n && status == OK; i++) {
		int64_t v;
		if ((status = doc_int(r->ctx, r->label, array->child[i], 0, most - 1, &v)) != OK)
			break;
		value[i] = (int)v;
		if (r->seen[v])
			status = doc_fail(r->ctx, r->label, array->child[i], BAD_INPUT,
			    "%d: given twice: want each once", value[i]);
		r->seen[v] = true;
	}
	memset(r->seen, 0, (size_t)r->index->n_gpus * sizeof *r->seen);
	*count = array->n;
	*out = value;
	return status;
}

static Status
read_file(struct index_reader *r, const Doc *object, const char *name, const char **out)
{
	const char *path;
	TRY(doc_string(r->ctx, r->label, object, name, &path));
	if (!index_path_is_inside(path))
		return doc_want(r->ctx, r->label, doc_get(object, name), "a path below the index, without . and ..");
	return index_keep_file(r, path, strlen(path), out);
}

/* 16 digits of base 16; it may be missing. */
static Status
read_form(struct index_reader *r, const Doc *object, uint64_t *out)
{
	const Doc *at = doc_get(object, "form");
	*out = 0;
	if (!at)
		return OK;
	if (at->kind != DOC_STRING || strlen(at->text) != 16 || strspn(at->text, "0123456789abcdef") != 16)
		return doc_want(r->ctx, r->label, at, "16 digits of base 16");
	for (const char *c = at->text; *c; c++)
		*out = *out << 4 | (uint64_t)(*c <= '9' ? *c - '0' : *c - 'a' + 10);
	return OK;
}

static Status
read_links(struct index_reader *r, const Doc *topo)
{
	const Doc *list = doc_get(topo, "links"), *routes = doc_get(topo, "routes");
	if (routes && (routes->kind != DOC_STRING || !routes_parse(routes->text, &r->index->routes)))
		return doc_want(r->ctx, r->label, routes, names_wanted(routes_names).text);
	if (!list)
		return OK;
	TRY(doc_need(r->ctx, r->label, topo, "links", DOC_ARRAY, &list));
	for (int i = 0; i < list->n; i++) {
		LinkClass class;
		if (list->child[i]->kind != DOC_STRING || !link_class_parse(list->child[i]->text, &class))
			return doc_want(r->ctx, r->label, list->child[i], "a class of links");
		r->index->links |= 1u << class;
	}
	return OK;
}

static Status
read_baselines(struct index_reader *r, const Doc *object, IndexEntry *entry)
{
	const Doc *at = doc_get(object, "baselines");
	IndexBaseline *baseline;
	if (!at)
		return OK;
	if (at->kind != DOC_OBJECT)
		return doc_want(r->ctx, r->label, at, "an object, as { \"nccl-2.4\": 6 }");
	if (at->n > LIMIT_BASELINES)
		return doc_fail(r->ctx, r->label, at, LIMIT, "%d entries: want at most %d", at->n, LIMIT_BASELINES);
	TRY(NEW(r->ctx, baseline, at->n));
	for (int i = 0; i < at->n; i++) {
		const char *name = at->child[i]->name;
		if (!baseline_name_valid(name))
			return doc_fail(r->ctx, r->label, at->child[i], BAD_INPUT,
			    "the name of a baseline: want one as \"nccl-2.4\"");
		TRY(read_rate(r, at, name, &baseline[i].rate));
		TRY(index_keep_name(r, name, &baseline[i].name));
	}
	entry->n_baselines = at->n;
	entry->baseline = baseline;
	return OK;
}

/* [from, to], of bytes; it may be missing. */
static Status
read_sizes(struct index_reader *r, const Doc *object, IndexEntry *entry)
{
	const Doc *at = doc_get(object, "bytes");
	if (!at)
		return OK;
	if (at->kind != DOC_ARRAY || at->n != 2)
		return doc_want(r->ctx, r->label, at, "two numbers of bytes, as [0, 65536]");
	TRY(doc_int(r->ctx, r->label, at->child[0], 0, LIMIT_MESSAGE, &entry->from));
	TRY(doc_int(r->ctx, r->label, at->child[1], 0, LIMIT_MESSAGE, &entry->to));
	if (entry->from > entry->to)
		return doc_fail(r->ctx, r->label, at->child[0], BAD_INPUT, "%s: want at most its end, %s",
		    doc_found(at->child[0]).text, doc_found(at->child[1]).text);
	entry->sized = true;
	return OK;
}

__attribute__((noinline)) static Status
read_entry(struct index_reader *r, const Doc *object, IndexEntry *entry)
{
	const char *text;
	int n;
	if (object->kind != DOC_OBJECT)
		return doc_want(r->ctx, r->label, object, "an object");
	TRY(read_distinct(r, object, "gpus", 0, r->index->n_gpus, &entry->n, &entry->gpu));
	TRY(read_distinct(r, object, "ranks", entry->n, 0, &n, &entry->rank));
	TRY(doc_string(r->ctx, r->label, object, "collective", &text));
	if (!collective_parse(text, &entry->coll))
		return doc_want(r->ctx, r->label, doc_get(object, "collective"), "a collective, as \"allreduce\"");
	const Doc *root = doc_get(object, "root");
	entry->root = -1;
	if (collective_rooted(entry->coll))
		TRY(read_int(r, object, "root", 0, entry->n - 1, &entry->root));
	else if (!root || root->kind != DOC_NULL)
		return !root ? doc_missing(r->ctx, r->label, object, "root", "null")
		    : doc_fail(r->ctx, r->label, root, BAD_INPUT, "%s: want null for %s", doc_found(root).text, text);
	TRY(read_sizes(r, object, entry));
	TRY(read_file(r, object, "file", &entry->file));
	TRY(read_rate(r, object, "rate", &entry->rate));
	TRY(read_rate(r, object, "bound", &entry->bound));
	TRY(read_int(r, object, "trees", 1, LIMIT_TREES, &entry->trees));
	TRY(read_form(r, object, &entry->form));
	TRY(read_int(r, object, "depth", 1, 2 * LIMIT_RANKS, &entry->depth));
	return read_baselines(r, object, entry);
}

static int
by_id(const void *a, const void *b)
{
	return strcmp((*(const Doc *const *)a)->text, (*(const Doc *const *)b)->text);
}

static Status
check_distinct(struct index_reader *r, const Doc *gpus)
{
	const Doc **sorted;
	TRY(TEMP(r->ctx, sorted, gpus->n));
	for (int g = 0; g < gpus->n; g++)
		sorted[g] = gpus->child[g];
	qsort(sorted, (size_t)gpus->n, sizeof *sorted, by_id);
	for (int g = 1; g < gpus->n; g++)
		if (by_id(&sorted[g - 1], &sorted[g]) == 0)
			return doc_fail(r->ctx, r->label, sorted[g]->index > sorted[g - 1]->index ? sorted[g]
			    : sorted[g - 1], BAD_INPUT, "%s: given twice: want each GPU once",
			    doc_found(sorted[g]).text);
	TRY(NEW(r->ctx, r->index->by_id, gpus->n));
	for (int g = 0; g < gpus->n; g++)
		r->index->by_id[g] = sorted[g]->text;
	return OK;
}

/* Digests of other machines whose files serve jobs of this one. */
static Status
read_others(struct index_reader *r, const Doc *topo)
{
	const Doc *list = doc_get(topo, "isomorphic");
	Index *index = r->index;
	if (!list)
		return OK;
	TRY(doc_need(r->ctx, r->label, topo, "isomorphic", DOC_ARRAY, &list));
	if (list->n > LIMIT_CHANGES)
		return doc_fail(r->ctx, r->label, list, LIMIT, "%d entries: want at most %d", list->n, LIMIT_CHANGES);
	TRY(NEW(r->ctx, index->other, list->n));
	for (int i = 0; i < list->n; i++) {
		if (list->child[i]->kind != DOC_STRING)
			return doc_want(r->ctx, r->label, list->child[i], "a digest");
		index->other[i] = list->child[i]->text;
	}
	index->n_others = list->n;
	sort_array(index->other, list->n, sizeof *index->other, order_of_texts);
	return OK;
}

static Status
read_change(struct index_reader *r, const Doc *object, IndexChange *change)
{
	if (object->kind != DOC_OBJECT)
		return doc_want(r->ctx, r->label, object, "an object");
	TRY(doc_string(r->ctx, r->label, object, "without", &change->without));
	TRY(doc_string(r->ctx, r->label, object, "digest", &change->digest));
	return read_file(r, object, "index", &change->file);
}

/* What is left of the machine after losses, and the indexes for it. */
static Status
read_changes(struct index_reader *r, const Doc *root)
{
	const Doc *list = doc_get(root, "changes");
	Index *index = r->index;
	if (!list)
		return OK;
	TRY(doc_need(r->ctx, r->label, root, "changes", DOC_ARRAY, &list));
	if (list->n > LIMIT_CHANGES)
		return doc_fail(r->ctx, r->label, list, LIMIT, "%d entries: want at most %d", list->n, LIMIT_CHANGES);
	TRY(NEW(r->ctx, index->change, list->n));
	for (int i = 0; i < list->n; i++)
		TRY(read_change(r, list->child[i], &index->change[i]));
	index->n_changes = list->n;
	return OK;
}

static Status
read_topology(struct index_reader *r, const Doc *root)
{
	const Doc *topo, *gpus;
	Index *index = r->index;
	TRY(doc_need(r->ctx, r->label, root, "topology", DOC_OBJECT, &topo));
	TRY(doc_string(r->ctx, r->label, topo, "name", &index->name));
	TRY(doc_string(r->ctx, r->label, topo, "digest", &index->digest));
	TRY(doc_need(r->ctx, r->label, topo, "gpus", DOC_ARRAY, &gpus));
	if (gpus->n < 2 || gpus->n > LIMIT_RANKS)
		return doc_fail(r->ctx, r->label, gpus, gpus->n < 2 ? BAD_INPUT : LIMIT, "%d entries: want 2 to %d",
		    gpus->n, LIMIT_RANKS);
	if (doc_get(topo, "without"))
		TRY(doc_string(r->ctx, r->label, topo, "without", &index->without));
	TRY(read_others(r, topo));
	TRY(read_links(r, topo));
	index->n_gpus = gpus->n;
	TRY(NEW(r->ctx, index->gpu, gpus->n));
	TRY(TEMP(r->ctx, r->seen, gpus->n));
	for (int g = 0; g < gpus->n; g++) {
		if (gpus->child[g]->kind != DOC_STRING || !topo_id_valid(gpus->child[g]->text))
			return doc_want(r->ctx, r->label, gpus->child[g], "the id of a GPU");
		index->gpu[g] = gpus->child[g]->text;
	}
	return check_distinct(r, gpus);
}

static int
by_order(const void *a, const void *b)
{
	return index_order(a, b);
}

/* In order: of one job ranges of sizes ascend, and none begins before the one before it has ended. */
static Status
check_entries(Ctx *ctx, const char *label, const Index *index)
{
	for (int i = 1; i < index->n_entries; i++) {
		const IndexEntry *a = &index->entry[i - 1], *b = &index->entry[i];
		if (index_job_order(a, b) != 0 || (!a->sized && b->sized))
			continue;
		if (!b->sized)
			return fail(ctx, BAD_INPUT,
			    "%s: schedules: two entries for the same GPUs, collective and root (%s): want one", label,
			    b->file);
		if (b->from <= a->to)
			return fail(ctx, BAD_INPUT,
			    "%s: schedules: two entries for %lld bytes of the same GPUs, collective and root (%s): "
			    "want one", label, (long long)b->from, b->file);
	}
	return OK;
}

/* All but the entries. Like read_entry not inlined: what messages take of the stack is not needed while values are
 * parsed, which takes more. */
__attribute__((noinline)) static Status
read_head(struct index_reader *r, const Doc *root)
{
	Ctx *ctx = r->ctx;
	const Doc *version, *machine;
	if (root->kind != DOC_OBJECT)
		return doc_fail(ctx, r->label, root, BAD_INPUT, "not an object: want an index");
	TRY(doc_format(ctx, r->label, root, "blink-index"));
	TRY(doc_need(ctx, r->label, root, "version", DOC_NUMBER, &version));
	if (version->number != 1)
		return doc_want(ctx, r->label, version, "1");
	TRY(read_topology(r, root));
	TRY(read_changes(r, root));
	if (!doc_get(root, "machine"))
		return OK;
	TRY(doc_need(ctx, r->label, root, "machine", DOC_OBJECT, &machine));
	return index_read_machine(ctx, r->label, machine, r->index);
}

static Status
next_entry(struct index_reader *r, IndexEntry *entry)
{
	const Doc *object;
	bool done;
	TRY(index_entry_tokens(r, entry, &done));
	if (done)
		return OK;
	ArenaMark mark = arena_mark(&r->ctx->scratch);
	TRY(doc_list_next(r->ctx, r->label, &r->entries, &object));
	TRY(read_entry(r, object, entry));
	arena_release(&r->ctx->scratch, mark);
	return OK;
}

static Status
read_entries(struct index_reader *r, const Doc *root)
{
	Index *index = r->index;
	const DocList *list = &r->entries;
	bool in_order = true;
	if (!list->array)
		return doc_missing(r->ctx, r->label, root, "schedules", "an array");
	if (list->n > LIMIT_INDEX)
		return doc_fail(r->ctx, r->label, list->array, LIMIT, "%d entries: want at most %d", list->n,
		    LIMIT_INDEX);
	index->n_entries = list->n;
	TRY(NEW(r->ctx, index->entry, list->n));
	TRY(TEMP(r->ctx, r->number, 2 * (size_t)index->n_gpus));
	for (int i = 0; i < list->n; i++) {
		TRY(next_entry(r, &index->entry[i]));
		in_order = in_order && (i == 0 || index_order(&index->entry[i - 1], &index->entry[i]) <= 0);
	}
	if (!in_order)
		qsort(index->entry, (size_t)list->n, sizeof *index->entry, by_order);
	return check_entries(r->ctx, r->label, index);
}

Status
index_read(Ctx *ctx, const char *label, const char *data, size_t size, Index **out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct index_reader r = { .ctx = ctx, .label = label };
	Doc *root;
	TRY(file_kind_check(ctx, label, data, size, FILE_INDEX));
	TRY(NEW(ctx, r.index, 1));
	TRY(TEMP(ctx, r.file, KEPT_FILES));
	TRY(doc_read_json_list(ctx, label, data, size, "schedules", &root, &r.entries));
	TRY(read_head(&r, root));
	TRY(read_entries(&r, root));
	arena_release(&ctx->scratch, mark);
	*out = r.index;
	return OK;
}
