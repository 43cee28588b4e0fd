/* The file of a tuner: { "format": "blink-chunks", "version": 1, "chunks": [entry...] }, an entry for each number of
 * ranks and servers, collective and class of sizes. */
#include "base/file_read.h"
#include "base/json_write.h"
#include "format/doc.h"
#include "tune/tuner.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { VERSION_READ = 1, CHUNK_LARGEST = 1 << 30, SERVERS_MOST = 1 << 20 };

struct entry {
	int64_t ranks, servers, class, chunk;
	Collective coll;
};

static Status
read_int(Ctx *ctx, const char *path, const Doc *object, const char *name, int64_t lo, int64_t hi, int64_t *out)
{
	const Doc *at;
	TRY(doc_need(ctx, path, object, name, DOC_NUMBER, &at));
	return doc_int(ctx, path, at, lo, hi, out);
}

static Status
read_entry(Ctx *ctx, const char *path, const Doc *at, struct entry *out)
{
	const char *coll;
	if (at->kind != DOC_OBJECT)
		return doc_fail(ctx, path, at, BAD_INPUT, "%s: want an object", doc_found(at).text);
	TRY(doc_string(ctx, path, at, "collective", &coll));
	if (!collective_parse(coll, &out->coll))
		return doc_fail(ctx, path, doc_get(at, "collective"), BAD_INPUT, "%.40s: want a collective", coll);
	TRY(read_int(ctx, path, at, "ranks", 1, LIMIT_COMM_RANKS, &out->ranks));
	TRY(read_int(ctx, path, at, "servers", 1, SERVERS_MOST, &out->servers));
	TRY(read_int(ctx, path, at, "log2_bytes", 0, TUNER_CLASSES - 1, &out->class));
	return read_int(ctx, path, at, "chunk_bytes", 1, CHUNK_LARGEST, &out->chunk);
}

static Status
read_entries(Ctx *ctx, const char *path, const Text *text, struct entry **out, int *n)
{
	Doc *root;
	const Doc *list;
	const char *format;
	int64_t version;
	TRY(doc_read_json_list(ctx, path, text->data ? text->data : "", text->size, NULL, &root, NULL));
	if (root->kind != DOC_OBJECT)
		return fail(ctx, BAD_INPUT, "%s: %s: want an object", path, doc_found(root).text);
	TRY(doc_string(ctx, path, root, "format", &format));
	if (strcmp(format, "blink-chunks") != 0)
		return doc_fail(ctx, path, doc_get(root, "format"), BAD_INPUT, "%.40s: want blink-chunks", format);
	TRY(read_int(ctx, path, root, "version", VERSION_READ, VERSION_READ, &version));
	TRY(doc_need(ctx, path, root, "chunks", DOC_ARRAY, &list));
	TRY(NEW(ctx, *out, list->n));
	for (int i = 0; i < list->n; i++)
		TRY(read_entry(ctx, path, list->child[i], &(*out)[i]));
	*n = list->n;
	return OK;
}

/* None where there is no file. */
static Status
load(Ctx *ctx, const char *path, struct entry **out, int *n)
{
	Text text = { 0 };
	*n = 0;
	if (access(path, F_OK) != 0 && errno == ENOENT)
		return OK;
	Status status = file_read_regular(ctx, path, &text);
	if (status == OK)
		status = read_entries(ctx, path, &text, out, n);
	text_free(&text);
	return status;
}

Status
tuner_load(Ctx *ctx, const char *path, int n_ranks, int n_servers, TunerChunks chunks)
{
	struct entry *entry = NULL;
	int n;
	memset(chunks, 0, sizeof(TunerChunks));
	TRY(load(ctx, path, &entry, &n));
	for (int i = 0; i < n; i++)
		if (entry[i].ranks == n_ranks && entry[i].servers == n_servers)
			chunks[entry[i].coll][entry[i].class] = entry[i].chunk;
	return OK;
}

static void
write_entry(JsonWriter *w, const struct entry *e)
{
	json_object(w, NULL, JSON_LINE);
	json_int64(w, "ranks", e->ranks);
	json_int64(w, "servers", e->servers);
	json_string(w, "collective", collective_name(e->coll));
	json_int64(w, "log2_bytes", e->class);
	json_int64(w, "chunk_bytes", e->chunk);
	json_end(w);
}

static void
write_all(Text *text, const struct entry *entry, int n, int n_ranks, int n_servers, const TunerChunks chunks)
{
	JsonWriter w = { .out = text };
	json_object(&w, NULL, JSON_BLOCK);
	json_string(&w, "format", "blink-chunks");
	json_int(&w, "version", VERSION_READ);
	json_array(&w, "chunks", JSON_BLOCK);
	for (int i = 0; i < n; i++)
		if (entry[i].ranks != n_ranks || entry[i].servers != n_servers)
			write_entry(&w, &entry[i]);
	for (int c = 0; c < N_COLLECTIVES; c++)
		for (int k = 0; k < TUNER_CLASSES; k++)
			if (chunks[c][k] > 0)
				write_entry(&w, &(struct entry){ n_ranks, n_servers, k, chunks[c][k], (Collective)c });
	json_end(&w);
	json_end(&w);
	text_put(text, "\n");
}

/* Through a temporary file beside it, renamed. */
static Status
replace(Ctx *ctx, const char *path, const Text *text)
{
	char *temporary = NULL;
	bool good = false;
	if (asprintf(&temporary, "%s.XXXXXX", path) < 0)
		return fail_memory(ctx);
	int fd = mkostemp(temporary, O_CLOEXEC);
	if (fd >= 0) {
		good = write(fd, text->data, text->size) == (ssize_t)text->size && fchmod(fd, 0644) == 0
		    && fsync(fd) == 0;
		good = close(fd) == 0 && good && rename(temporary, path) == 0;
		if (!good) {
			int why = errno;
			unlink(temporary);
			errno = why;
		}
	}
	free(temporary);
	return good ? OK : fail(ctx, IO, "%s: %s", path, strerror(errno));
}

Status
tuner_save(Ctx *ctx, const char *path, int n_ranks, int n_servers, const TunerChunks chunks)
{
	struct entry *entry = NULL;
	Text text = { 0 };
	int n;
	TRY(load(ctx, path, &entry, &n));
	write_all(&text, entry, n, n_ranks, n_servers, chunks);
	Status status = text.failed ? fail_memory(ctx) : replace(ctx, path, &text);
	text_free(&text);
	return status;
}
