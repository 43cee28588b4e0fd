#include "base/file_read.h"
#include "base/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

Status
file_read_rest(int fd, Text *out)
{
	enum { PART = 65536 };
	for (;;) {
		/* Into the text itself: libblink runs on small stacks. */
		if (!text_reserve(out, PART))
			return NO_MEMORY;
		ssize_t n = read(fd, out->data + out->size, PART);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return IO;
		out->size += (size_t)n;
		out->data[out->size] = 0;
		if (n == 0)
			return OK;
		if (out->size > LIMIT_FILE_BYTES)
			return LIMIT;
	}
}

static Status
fail_read(Ctx *ctx, const char *path, Status status)
{
	switch (status) {
	case LIMIT:
		return fail(ctx, LIMIT, "%s: more than %d MiB: want less", path, LIMIT_FILE_BYTES >> 20);
	case NO_MEMORY:
		return fail_memory(ctx);
	default:
		return errno == EISDIR ? fail(ctx, IO, "%s: a directory: want a file", path)
		    : fail(ctx, IO, "%s: %s", path, strerror(errno));
	}
}

/* Opening a FIFO would wait for its writer. */
static Status
open_at_once(Ctx *ctx, const char *path, int *out, struct stat *there)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || fstat(fd, there) != 0) {
		Status status = fail(ctx, IO, "%s: %s", path, strerror(errno));
		if (fd >= 0)
			close(fd);
		return status;
	}
	*out = fd;
	return OK;
}

Status
file_open_regular(Ctx *ctx, const char *path, int *out)
{
	struct stat there;
	TRY(open_at_once(ctx, path, out, &there));
	if (S_ISREG(there.st_mode))
		return OK;
	close(*out);
	return fail(ctx, IO, "%s: not a regular file: want one below a directory and in an index", path);
}

Status
file_open(Ctx *ctx, const char *path, int *out)
{
	struct stat there;
	struct statfs system;
	TRY(open_at_once(ctx, path, out, &there));
	/* Others are on the file system of pipes. */
	bool named = S_ISFIFO(there.st_mode) && (fstatfs(*out, &system) != 0 || system.f_type != PIPEFS_MAGIC);
	if (!named && (S_ISREG(there.st_mode) || fcntl(*out, F_SETFL, 0) == 0))
		return OK;
	Status status = fail(ctx, IO, "%s: %s", path, named ? "a FIFO: want a file, or a pipe as of a shell"
	    : strerror(errno));
	close(*out);
	return status;
}

static Status
read_opened(Ctx *ctx, const char *path, int fd, bool input, Text *out)
{
	Text text = { 0 };
	Status status = file_read_rest(fd, &text);
	if (status != OK)
		status = fail_read(ctx, path, status);
	if (!input)
		close(fd);
	if (status != OK) {
		text_free(&text);
		return status;
	}
	*out = text;
	return OK;
}

Status
file_read(Ctx *ctx, const char *path, Text *out)
{
	bool input = strcmp(path, "-") == 0;
	int fd = input ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return fail(ctx, IO, "%s: %s", path, strerror(errno));
	return read_opened(ctx, path, fd, input, out);
}

Status
file_read_regular(Ctx *ctx, const char *path, Text *out)
{
	int fd;
	TRY(file_open_regular(ctx, path, &fd));
	return read_opened(ctx, path, fd, false, out);
}

bool
file_is_there(const char *path)
{
	struct stat there;
	return stat(path, &there) == 0 && S_ISREG(there.st_mode);
}
