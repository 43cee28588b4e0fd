#include "verb/diff/spool.h"
#include "base/pool.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static Status
fail_io(Ctx *ctx, const char *why)
{
	return fail(ctx, IO, "text between processes: %s", why);
}

Status
spool_open(Ctx *ctx, Spool *spool)
{
	spool->used = shared_array(1, sizeof *spool->used);
	spool->file = memfd_create("differences", MFD_CLOEXEC);
	if (!spool->used)
		return fail_memory(ctx);
	return spool->file < 0 ? fail_io(ctx, strerror(errno)) : OK;
}

void
spool_close(Spool *spool)
{
	if (spool->file >= 0)
		close(spool->file);
	shared_free(spool->used);
}

Status
spool_put(Ctx *ctx, const Spool *spool, Text *text, Span *span)
{
	Status status = text->failed ? fail_memory(ctx) : OK;
	span->size = (int64_t)text->size;
	span->at = atomic_fetch_add(spool->used, (long long)text->size);
	for (size_t done = 0; done < text->size && status == OK;) {
		ssize_t n = pwrite(spool->file, text->data + done, text->size - done,
		    (off_t)(span->at + (int64_t)done));
		if (n < 0 && errno != EINTR)
			status = fail_io(ctx, strerror(errno));
		done += n > 0 ? (size_t)n : 0;
	}
	text_free(text);
	return status;
}

Status
spool_get(Ctx *ctx, const Spool *spool, const Span *span, Text *out)
{
	if (!text_reserve(out, (size_t)span->size))
		return fail_memory(ctx);
	for (int64_t done = 0; done < span->size;) {
		ssize_t n = pread(spool->file, out->data + out->size, (size_t)(span->size - done),
		    (off_t)(span->at + done));
		if (n == 0 || (n < 0 && errno != EINTR))
			return fail_io(ctx, n ? strerror(errno) : "truncated");
		out->size += n > 0 ? (size_t)n : 0;
		done += n > 0 ? n : 0;
	}
	out->data[out->size] = 0;
	return OK;
}
