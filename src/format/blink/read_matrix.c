/* Bytes from each rank to each: a file of lines of numbers, or of an array of arrays in JSON; and a member of a
 * schedule. */
#include "format/blink/schedule_reader.h"

#include <string.h>

/* Together they are whole numbers that a double holds, and some move. */
static Status
check_matrix(Ctx *ctx, const char *label, const int64_t *bytes, int n)
{
	int64_t sum = alltoall_sent(bytes, n);
	if (sum < 1 || sum > LIMIT_MESSAGE)
		return fail(ctx, sum < 1 ? BAD_INPUT : LIMIT, "%s: %lld bytes between ranks: want 1 to 2^53", label,
		    (long long)sum);
	return OK;
}

static Status
read_row(Ctx *ctx, const char *label, const Doc *row, int n, int64_t *bytes)
{
	if (row->kind != DOC_ARRAY || row->n != n)
		return doc_fail(ctx, label, row, BAD_INPUT, "want an array of %d numbers, the bytes to each rank", n);
	for (int j = 0; j < n; j++)
		TRY(doc_int(ctx, label, row->child[j], 0, LIMIT_MESSAGE / n / n, &bytes[j]));
	return OK;
}

Status
matrix_read_rows(Ctx *ctx, const char *label, const Doc *array, int n, int64_t **out)
{
	size_t width = (size_t)n;
	if (array->kind != DOC_ARRAY || array->n != n)
		return doc_fail(ctx, label, array, BAD_INPUT, "want an array of %d rows, one for each rank", n);
	TRY(NEW(ctx, *out, width * width));
	for (int i = 0; i < n; i++)
		TRY(read_row(ctx, label, array->child[i], n, *out + (size_t)i * width));
	return check_matrix(ctx, label, *out, n);
}

/* ---- lines ---- */

struct lines {
	Ctx *ctx;
	const char *label;
	int n, line, row;
	int64_t *bytes;
};

static Status
read_line(struct lines *l, const char *at, const char *end)
{
	static const char between[] = " \t\r,";
	int column = 0;
	for (;;) {
		while (at < end && strchr(between, *at))
			at++;
		if (at == end || *at == '#')
			break;
		const char *from = at;
		int64_t *out = &l->bytes[(size_t)l->row * (size_t)l->n + (size_t)column];
		while (at < end && !strchr(between, *at))
			at++;
		if (l->row == l->n || column == l->n)
			return fail(l->ctx, BAD_INPUT, "%s:%d: want %d lines of %d numbers, one for each rank",
			    l->label, l->line, l->n, l->n);
		if (!decimal_parse(from, (size_t)(at - from), 1, out) || *out > LIMIT_MESSAGE / l->n / l->n)
			return fail(l->ctx, BAD_INPUT, "%s:%d: %.*s: want a number of bytes", l->label, l->line,
			    at - from > 40 ? 40 : (int)(at - from), from);
		column++;
	}
	if (column > 0 && column < l->n)
		return fail(l->ctx, BAD_INPUT, "%s:%d: %d numbers: want %d, one for each rank", l->label, l->line,
		    column, l->n);
	l->row += column > 0;
	return OK;
}

static Status
read_lines(struct lines *l, const char *data, size_t size)
{
	const char *end = data + size;
	TRY(NEW(l->ctx, l->bytes, (size_t)l->n * (size_t)l->n));
	for (const char *at = data; at < end;) {
		const char *newline = memchr(at, '\n', (size_t)(end - at)), *to = newline ? newline : end;
		l->line++;
		TRY(read_line(l, at, to));
		at = to + (newline != NULL);
	}
	if (l->row < l->n)
		return fail(l->ctx, BAD_INPUT, "%s: %d lines: want %d, one for each rank", l->label, l->row, l->n);
	return check_matrix(l->ctx, l->label, l->bytes, l->n);
}

Status
matrix_read(Ctx *ctx, const char *label, const char *data, size_t size, int n, const int64_t **out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct lines l = { .ctx = ctx, .label = label, .n = n };
	size_t blank = 0;
	while (blank < size && strchr(" \t\r\n", data[blank]))
		blank++;
	if (blank == size || data[blank] != '[') {
		TRY(read_lines(&l, data, size));
	} else {
		Doc *root;
		TRY(doc_read_json_list(ctx, label, data, size, NULL, &root, NULL));
		TRY(matrix_read_rows(ctx, label, root, n, &l.bytes));
	}
	arena_release(&ctx->scratch, mark);
	*out = l.bytes;
	return OK;
}

/* ---- of a schedule ---- */

Status
schedule_read_matrix(struct reader *r, const Doc *root)
{
	const Doc *at = doc_get(root, "matrix"), *array, *time, *bound;
	int64_t *length, *bytes;
	ByteMatrix *matrix;
	if (!at || at->kind == DOC_NULL)
		return OK;
	if (at->kind != DOC_OBJECT || r->sched->coll != ALLTOALL || r->version != 1)
		return bad(r, at, "a matrix", "an object, in an alltoall whose trees are all listed");
	TRY(need(r, at, "time", DOC_NUMBER, &time));
	TRY(need(r, at, "bound", DOC_NUMBER, &bound));
	TRY(need(r, at, "length", DOC_ARRAY, &array));
	if (array->n != r->topo->n_links)
		return doc_fail(r->ctx, r->label, array, BAD_INPUT, "%d lengths: want one per link, %d", array->n,
		    r->topo->n_links);
	TRY(NEW(r->ctx, matrix, 1));
	TRY(NEW(r->ctx, length, array->n));
	for (int l = 0; l < array->n; l++)
		TRY(doc_int(r->ctx, r->label, array->child[l], 0, LIMIT_MATRIX_LENGTH, &length[l]));
	TRY(need(r, at, "bytes", DOC_ARRAY, &array));
	TRY(matrix_read_rows(r->ctx, r->label, array, r->topo->n_ranks, &bytes));
	*matrix = (ByteMatrix){ .bytes = bytes, .length = length, .time = time->number, .bound = bound->number };
	r->sched->matrix = matrix;
	return OK;
}
