/* Blocks of unequal length of an alltoall in a job file: as a matrix of bytes, or as a skew. */
#include "format/blink/schedule_reader.h"
#include "format/blink/workload_reader.h"

enum { MOST_WEIGHT = 1000000 };

/* All that is moved is a message that a file can have. */
static Status
check_group(Ctx *ctx, const char *label, const Doc *at, const int64_t *bytes, int n, int times)
{
	int64_t sum = alltoall_sent(bytes, n);
	if (sum == 0)
		return doc_fail(ctx, label, at, BAD_INPUT, "no bytes between the ranks of a group: want some in each");
	return sum <= LIMIT_MESSAGE / times ? OK : doc_fail(ctx, label, at, LIMIT,
	    "%lld bytes between the ranks of a group, %d times: want at most %lld together", (long long)sum, times,
	    (long long)LIMIT_MESSAGE);
}

/* What the ranks of a group have of the matrix of the whole job. */
static Status
take_group(Ctx *ctx, const int64_t *whole, int n_ranks, const RankGroup *group, const int64_t **out)
{
	int64_t *bytes;
	size_t n = (size_t)group->n;
	TRY(NEW(ctx, bytes, n * n));
	for (size_t i = 0; i < n * n; i++)
		bytes[i] = whole[(size_t)group->rank[i / n] * (size_t)n_ranks + (size_t)group->rank[i % n]];
	*out = bytes;
	return OK;
}

/* The ranks of each group of a kind; 0: they differ. */
static int
common_size(const GroupKind *kind)
{
	for (int g = 1; g < kind->n_groups; g++)
		if (kind->group[g].n != kind->group[0].n)
			return 0;
	return kind->group[0].n;
}

/* Rows for the ranks of each group, or for all ranks of the job. */
static Status
read_matrix(Ctx *ctx, const char *label, const Doc *at, int n_ranks, const GroupKind *kind, GroupCall *call)
{
	int size = common_size(kind);
	int64_t *rows;
	if (size == 0 && (at->kind != DOC_ARRAY || at->n != n_ranks))
		return doc_fail(ctx, label, at, BAD_INPUT,
		    "groups of unlike sizes: want a row for each rank of the job, %d of %d numbers", n_ranks, n_ranks);
	if (at->kind != DOC_ARRAY || (at->n != size && at->n != n_ranks))
		return doc_fail(ctx, label, at, BAD_INPUT, "want a row for each rank of a group, %d of %d numbers, or "
		    "for each rank of the job, %d", size, size, n_ranks);
	TRY(matrix_read_rows(ctx, label, at, at->n, &rows));
	for (int g = 0; g < kind->n_groups; g++) {
		if (kind->group[g].n < 2)
			continue;
		call->matrix[g] = rows;
		if (at->n != size)
			TRY(take_group(ctx, rows, n_ranks, &kind->group[g], &call->matrix[g]));
	}
	return OK;
}

/* A weight of each rank; NULL: all are equal. */
static Status
read_weights(Ctx *ctx, const char *label, const Doc *at, int n, int64_t *out)
{
	int64_t sum = 0;
	if (at && (at->kind != DOC_ARRAY || at->n != n))
		return doc_fail(ctx, label, at, BAD_INPUT, "want a whole number for each rank of a group, %d", n);
	for (int i = 0; i < n; i++) {
		out[i] = 1;
		if (at)
			TRY(doc_int(ctx, label, at->child[i], 0, MOST_WEIGHT, &out[i]));
		sum += out[i];
	}
	return sum > 0 ? OK : doc_fail(ctx, label, at, BAD_INPUT, "all are 0: want some that are not");
}

/* Of n * bytes, what all ranks send, rank i sends rank j a share in proportion to both of their weights; rounded
 * down. */
static Status
read_skew(Ctx *ctx, const char *label, const Doc *at, const GroupKind *kind, GroupCall *call)
{
	static const char *const names[] = { "from", "to", NULL };
	int n = common_size(kind);
	int64_t *from, *to, *bytes;
	Wide all_from = 0, all_to = 0;
	if (at->kind != DOC_OBJECT || at->n == 0)
		return doc_want(ctx, label, at, "an object, as { \"to\": [4, 1, 1, 1] }");
	TRY(doc_only(ctx, label, at, names));
	if (n == 0)
		return doc_fail(ctx, label, at, BAD_INPUT, "groups of unlike sizes: want a matrix of all ranks");
	if (call->bytes > LIMIT_MESSAGE / n)
		return doc_fail(ctx, label, at, LIMIT, "%lld bytes of each of %d ranks: want at most %lld together",
		    (long long)call->bytes, n, (long long)LIMIT_MESSAGE);
	TRY(NEW_EACH(ctx, n, from, to));
	TRY(NEW(ctx, bytes, (size_t)n * (size_t)n));
	TRY(read_weights(ctx, label, doc_get(at, "from"), n, from));
	TRY(read_weights(ctx, label, doc_get(at, "to"), n, to));
	for (int i = 0; i < n; i++) {
		all_from += from[i];
		all_to += to[i];
	}
	for (size_t i = 0; i < (size_t)n * (size_t)n; i++)
		bytes[i] = (int64_t)((Wide)call->bytes * n * from[i / (size_t)n] * to[i % (size_t)n] / (all_from
		    * all_to));
	for (int g = 0; g < kind->n_groups; g++)
		call->matrix[g] = n > 1 ? bytes : NULL;
	return OK;
}

Status
call_read_matrix(Ctx *ctx, const char *label, const Doc *at, int n_ranks, const GroupKind *kind, GroupCall *call)
{
	const Doc *matrix = doc_get(at, "matrix"), *skew = doc_get(at, "skew"), *from = matrix ? matrix : skew;
	if (!from)
		return OK;
	if (call->coll != ALLTOALL)
		return doc_fail(ctx, label, from, BAD_INPUT, "want it with an alltoall alone");
	if (matrix && (skew || doc_get(at, "bytes")))
		return doc_fail(ctx, label, matrix, BAD_INPUT,
		    "%s beside it: want the matrix alone, which has the bytes", skew ? "skew" : "bytes");
	TRY(NEW(ctx, call->matrix, kind->n_groups));
	TRY(matrix ? read_matrix(ctx, label, matrix, n_ranks, kind, call) : read_skew(ctx, label, skew, kind, call));
	call->bytes = 1;
	for (int g = 0; g < kind->n_groups; g++) {
		int n = kind->group[g].n;
		if (!call->matrix[g])
			continue;
		TRY(check_group(ctx, label, from, call->matrix[g], n, call->times));
		int64_t message = alltoall_message(call->matrix[g], n);
		call->bytes = message > call->bytes ? message : call->bytes;
	}
	return OK;
}
