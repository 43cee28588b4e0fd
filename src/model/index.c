/* Index: the order of entries, names of indexes, and what is left of a machine after a loss. */
#include "model/index.h"

#include <string.h>

int
index_job_order(const IndexEntry *a, const IndexEntry *b)
{
	if (a->n != b->n)
		return a->n < b->n ? -1 : 1;
	for (int i = 0; i < a->n; i++)
		if (a->gpu[i] != b->gpu[i])
			return a->gpu[i] < b->gpu[i] ? -1 : 1;
	if (a->coll != b->coll)
		return a->coll < b->coll ? -1 : 1;
	return (a->root > b->root) - (a->root < b->root);
}

int
index_order(const IndexEntry *a, const IndexEntry *b)
{
	int order = index_job_order(a, b);
	if (order || !a->sized || !b->sized)
		return order ? order : a->sized - b->sized;
	return a->from != b->from ? (a->from > b->from) - (a->from < b->from) : (a->to > b->to) - (a->to < b->to);
}

const IndexEntry *
index_job(const Index *index, const IndexEntry *want, int *n)
{
	int low = 0, high = index->n_entries;
	while (low < high) {
		int middle = low + (high - low) / 2;
		if (index_job_order(&index->entry[middle], want) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	const IndexEntry *first = &index->entry[low];
	for (*n = 0; low + *n < index->n_entries && index_job_order(&first[*n], want) == 0;)
		++*n;
	return *n > 0 ? first : NULL;
}

const IndexEntry *
index_of_size(const IndexEntry *first, int n, int64_t size)
{
	for (int i = 0; i < n && size >= 0; i++)
		if (first[i].sized && first[i].from <= size && size <= first[i].to)
			return &first[i];
	/* Ranges are in order: that of the largest sizes is the last. */
	return n > 0 && (!first->sized || size < 0) ? first->sized ? &first[n - 1] : first : NULL;
}

bool
index_has_digest(const Index *index, const char *digest)
{
	int low = 0, high = index->n_others;
	if (strcmp(index->digest, digest) == 0)
		return true;
	while (low < high) {
		int middle = (low + high) / 2, order = strcmp(index->other[middle], digest);
		if (order == 0)
			return true;
		low = order < 0 ? middle + 1 : low;
		high = order < 0 ? high : middle;
	}
	return false;
}

/* ---- what is lost ---- */

/* "gpu5-gpu3" for "gpu3-gpu5", "gpu5-gpu3:1" for "gpu3-gpu5:1", at any "-". n: of each. */
static bool
same_part(const char *a, size_t n, const char *b, size_t length)
{
	const char *colon = memrchr(a, ':', n);
	if (n != length)
		return false;
	if (memcmp(a, b, n) == 0)
		return true;
	for (int counted = 0; counted < (colon ? 2 : 1); counted++) {
		size_t ends = counted ? (size_t)(colon - a) : n;
		for (size_t i = 1; i + 1 < ends; i++)
			if (a[i] == '-' && b[ends - i - 1] == '-' && memcmp(a, b + ends - i, i) == 0
			    && memcmp(a + i + 1, b, ends - i - 1) == 0 && memcmp(a + ends, b + ends, n - ends) == 0)
				return true;
	}
	return false;
}

/* Is each part of one list in the other, by its place? Lists of several parts are in the order of the index. */
static bool
same_parts(const char *a, const char *b)
{
	for (;;) {
		size_t n = strcspn(a, ","), length = strcspn(b, ",");
		if (!same_part(a, n, b, length) || a[n] != b[length])
			return false;
		if (!a[n])
			return true;
		a += n + 1;
		b += length + 1;
	}
}

const IndexChange *
index_change(const Index *index, const char *without)
{
	for (int i = 0; i < index->n_changes; i++)
		if (strcmp(index->change[i].without, without) == 0 || strcmp(index->change[i].digest, without) == 0)
			return &index->change[i];
	for (int i = 0; i < index->n_changes; i++)
		if (same_parts(index->change[i].without, without))
			return &index->change[i];
	return NULL;
}

bool
index_same_entries(const Index *a, const Index *b)
{
	if (a->n_entries != b->n_entries)
		return false;
	for (int i = 0; i < a->n_entries; i++) {
		const IndexEntry *x = &a->entry[i], *y = &b->entry[i];
		if (index_order(x, y) != 0 || strcmp(x->file, y->file) != 0
		    || memcmp(x->rank, y->rank, (size_t)x->n * sizeof *x->rank) != 0)
			return false;
	}
	return true;
}

bool
index_file_name(const char *path)
{
	static const char first[] = "index", last[] = ".json";
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	size_t n = strlen(name), ends = sizeof first - 1 + sizeof last - 1;
	return n >= ends && strncmp(name, first, sizeof first - 1) == 0 && (n == ends || name[sizeof first - 1] == '.')
	    && strcmp(name + n - (sizeof last - 1), last) == 0;
}
