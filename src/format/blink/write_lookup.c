/* The lookup file of an index. What entries share is written once: it is found again by its bytes. */
#include "base/hash.h"
#include "base/limits.h"
#include "format/blink/lookup.h"
#include "format/format.h"

#include <stdlib.h>
#include <string.h>

/* Blobs of bytes, each once, by their place in `bytes`. */
struct pool {
	Text bytes;
	uint32_t *slot;		/* 0, or the place of a blob + 1 */
	size_t n_slots;		/* a power of 2, more than twice the number of blobs */
};

struct candidate {
	uint32_t n, coll, value, record;
	const char *file;
};

struct lookup_writer {
	Ctx *ctx;
	const Index *index;
	int width;
	struct pool values, files, forms;
	Text groups, records, candidates, head;
	unsigned char *path;	/* work space: a blob of files */
	struct candidate *candidate;
	int n_candidates;
};

static Status
pool_init(Ctx *ctx, struct pool *pool, int n)
{
	pool->n_slots = 4;
	while (pool->n_slots <= 2 * (size_t)n)
		pool->n_slots *= 2;
	return TEMP(ctx, pool->slot, pool->n_slots);
}

/* Where the blob is. *fresh: it was not there. */
static uint32_t
pool_place(struct pool *pool, const void *blob, size_t size, bool *fresh)
{
	size_t at = hash_bytes(blob, size) & (pool->n_slots - 1);
	for (; pool->slot[at]; at = (at + 1) & (pool->n_slots - 1)) {
		size_t place = pool->slot[at] - 1;
		if (pool->bytes.size - place >= size && memcmp(pool->bytes.data + place, blob, size) == 0) {
			*fresh = false;
			return (uint32_t)place;
		}
	}
	pool->slot[at] = (uint32_t)pool->bytes.size + 1;
	text_add(&pool->bytes, blob, size);
	*fresh = true;
	return pool->slot[at] - 1;
}

static void
put_number(Text *out, uint64_t value, int bytes)
{
	unsigned char le[8];
	lookup_put(le, value, bytes);
	text_add(out, (const char *)le, (size_t)bytes);
}

static uint64_t
bits_of(double number)
{
	uint64_t bits;
	memcpy(&bits, &number, sizeof bits);
	return bits;
}

static uint32_t
place_file(struct lookup_writer *w, const char *file)
{
	size_t length = strlen(file);
	bool fresh;
	lookup_put(w->path, length, 2);
	memcpy(w->path + 2, file, length);
	return pool_place(&w->files, w->path, 2 + length, &fresh);
}

static uint32_t
place_value(struct lookup_writer *w, const IndexEntry *entry, uint32_t file)
{
	unsigned char blob[VALUE_BYTES] = { 0 };
	bool fresh;
	lookup_put(blob + VALUE_FILE, file, 4);
	lookup_put(blob + VALUE_TREES, (uint64_t)entry->trees, 4);
	lookup_put(blob + VALUE_DEPTH, (uint64_t)entry->depth, 4);
	lookup_put(blob + VALUE_SIZED, entry->sized, 4);
	lookup_put(blob + VALUE_RATE, bits_of(entry->rate), 8);
	lookup_put(blob + VALUE_BOUND, bits_of(entry->bound), 8);
	lookup_put(blob + VALUE_FORM, entry->form, 8);
	lookup_put(blob + VALUE_FROM, (uint64_t)entry->from, 8);
	lookup_put(blob + VALUE_TO, (uint64_t)entry->to, 8);
	return pool_place(&w->values, blob, sizeof blob, &fresh) / VALUE_BYTES;
}

/* The first entry of each form of a file that n GPUs and a collective have. */
static void
note_candidate(struct lookup_writer *w, const IndexEntry *entry, uint32_t file, uint32_t value, uint32_t record)
{
	unsigned char blob[20];
	bool fresh;
	lookup_put(blob, (uint64_t)entry->n, 4);
	lookup_put(blob + 4, (uint64_t)entry->coll, 4);
	lookup_put(blob + 8, file, 4);
	lookup_put(blob + 12, entry->form, 8);
	pool_place(&w->forms, blob, sizeof blob, &fresh);
	if (fresh)
		w->candidate[w->n_candidates++] = (struct candidate){ (uint32_t)entry->n, (uint32_t)entry->coll, value,
		    record, entry->file };
}

static void
put_record(struct lookup_writer *w, const IndexEntry *entry, uint32_t record)
{
	uint32_t file = place_file(w, entry->file), value = place_value(w, entry, file);
	for (int i = 0; i < entry->n; i++)
		put_number(&w->records, (uint64_t)entry->gpu[i], w->width);
	for (int i = 0; i < entry->n; i++)
		put_number(&w->records, (uint64_t)entry->rank[i], w->width);
	put_number(&w->records, entry->root < 0 ? LOOKUP_NO_ROOT : (uint64_t)entry->root, 2);
	put_number(&w->records, (uint64_t)entry->coll, 1);
	put_number(&w->records, 0, 1);
	put_number(&w->records, value, 4);
	note_candidate(w, entry, file, value, record);
}

/* Entries are in order, and so by their number of GPUs. */
static void
put_groups(struct lookup_writer *w)
{
	const Index *index = w->index;
	for (int first = 0, n; first < index->n_entries; first += n) {
		int gpus = index->entry[first].n;
		uint64_t at = w->records.size;
		for (n = 0; first + n < index->n_entries && index->entry[first + n].n == gpus; n++)
			put_record(w, &index->entry[first + n], (uint32_t)n);
		put_number(&w->groups, (uint64_t)gpus, 4);
		put_number(&w->groups, (uint64_t)n, 4);
		put_number(&w->groups, at, 8);
	}
}

static int
by_file(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;
	if (x->n != y->n)
		return x->n < y->n ? -1 : 1;
	if (x->coll != y->coll)
		return x->coll < y->coll ? -1 : 1;
	int order = strcmp(x->file, y->file);
	return order ? order : (x->record > y->record) - (x->record < y->record);
}

static void
put_candidates(struct lookup_writer *w)
{
	if (w->n_candidates > 0)
		qsort(w->candidate, (size_t)w->n_candidates, sizeof *w->candidate, by_file);
	for (int i = 0; i < w->n_candidates; i++) {
		const struct candidate *c = &w->candidate[i];
		put_number(&w->candidates, c->n, 4);
		put_number(&w->candidates, c->coll, 4);
		put_number(&w->candidates, c->value, 4);
		put_number(&w->candidates, c->record, 4);
	}
}

static Status
put_file(struct lookup_writer *w, const char *json, size_t size, Text *out)
{
	const Text *section[] = { &w->head, &w->groups, &w->records, &w->values.bytes, &w->files.bytes,
		&w->candidates };
	char digest[DIGEST_ROOM] = "";
	uint64_t at = HEADER_BYTES;
	digest_of(json, size, digest);
	for (int s = 0; s < N_LOOKUP_SECTIONS; s++)
		at += section[s]->size;
	text_add(out, LOOKUP_MAGIC, LOOKUP_MAGIC_BYTES);
	put_number(out, LOOKUP_VERSION, 4);
	put_number(out, (uint64_t)w->width, 4);
	put_number(out, at, 8);
	put_number(out, size, 8);
	text_add(out, digest, sizeof digest);
	put_number(out, (uint64_t)w->index->n_entries, 8);
	at = HEADER_BYTES;
	for (int s = 0; s < N_LOOKUP_SECTIONS; at += section[s++]->size) {
		put_number(out, at, 8);
		put_number(out, section[s]->size, 8);
	}
	bool failed = out->failed;
	for (int s = 0; s < N_LOOKUP_SECTIONS; s++) {
		failed = failed || section[s]->failed;
		text_add(out, section[s]->data ? section[s]->data : "", section[s]->size);
	}
	return failed || out->failed ? fail_memory(w->ctx) : OK;
}

static int
by_order(const void *a, const void *b)
{
	return index_order(a, b);
}

/* The entries in order: of lists of GPUs, those of a batch may be in another. */
static Status
sort_entries(struct lookup_writer *w, Index *index)
{
	const IndexEntry *entry = index->entry;
	bool in_order = true;
	for (int i = 0; i < index->n_entries; i++) {
		if (strlen(entry[i].file) > LIMIT_TEXT_BYTES)
			return fail(w->ctx, LIMIT, "%.80s...: a path of more than %d bytes", entry[i].file,
			    LIMIT_TEXT_BYTES);
		in_order = in_order && (i == 0 || index_order(&entry[i - 1], &entry[i]) <= 0);
	}
	w->index = index;
	if (in_order)
		return OK;
	TRY(TEMP(w->ctx, index->entry, index->n_entries));
	memcpy(index->entry, entry, (size_t)index->n_entries * sizeof *entry);
	qsort(index->entry, (size_t)index->n_entries, sizeof *entry, by_order);
	return OK;
}

static Status
write_all(struct lookup_writer *w, const char *json, size_t size, Text *out)
{
	Index sorted = *w->index, head = *w->index;
	head.n_entries = 0;
	TRY(sort_entries(w, &sorted));
	TRY(pool_init(w->ctx, &w->values, w->index->n_entries));
	TRY(pool_init(w->ctx, &w->files, w->index->n_entries));
	TRY(pool_init(w->ctx, &w->forms, w->index->n_entries));
	TRY(TEMP(w->ctx, w->candidate, w->index->n_entries));
	TRY(TEMP(w->ctx, w->path, 2 + LIMIT_TEXT_BYTES));
	index_write(&head, &w->head);
	put_groups(w);
	put_candidates(w);
	return put_file(w, json, size, out);
}

Status
lookup_write(Ctx *ctx, const Index *index, const char *json, size_t size, Text *out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct lookup_writer w = { .ctx = ctx, .index = index, .width = index->n_gpus <= 256 ? 1 : 2 };
	Status status = write_all(&w, json, size, out);
	text_free(&w.values.bytes);
	text_free(&w.files.bytes);
	text_free(&w.forms.bytes);
	text_free(&w.groups);
	text_free(&w.records);
	text_free(&w.candidates);
	text_free(&w.head);
	arena_release(&ctx->scratch, mark);
	return status;
}
