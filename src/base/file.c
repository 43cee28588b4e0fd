#include "base/file.h"

#include "base/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static Status
read_all(Ctx *ctx, const char *path, int fd, Text *out)
{
	char part[65536];
	for (;;) {
		ssize_t n = read(fd, part, sizeof part);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return fail(ctx, IO, "%s: %s", path, strerror(errno));
		if (n == 0)
			return OK;
		text_add(out, part, (size_t)n);
		if (out->failed)
			return fail_memory(ctx);
		if (out->size > LIMIT_FILE_BYTES)
			return fail(ctx, LIMIT, "%s: more than %d MiB: want less", path, LIMIT_FILE_BYTES >> 20);
	}
}

Status
file_read(Ctx *ctx, const char *path, Text *out)
{
	Text text = { 0 };
	bool input = strcmp(path, "-") == 0;
	int fd = input ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return fail(ctx, IO, "%s: %s", path, strerror(errno));
	Status status = read_all(ctx, path, fd, &text);
	if (!input)
		close(fd);
	if (status != OK) {
		text_free(&text);
		return status;
	}
	*out = text;
	return OK;
}

bool
file_is_there(const char *path)
{
	struct stat there;
	return stat(path, &there) == 0 && S_ISREG(there.st_mode);
}

static Status
write_all(Ctx *ctx, const char *path, int fd, const Text *text)
{
	for (size_t at = 0; at < text->size;) {
		ssize_t n = write(fd, text->data + at, text->size - at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return fail(ctx, IO, "%s: %s", path, strerror(errno));
		at += (size_t)n;
	}
	return OK;
}

/* `target` is a regular file or nothing yet. */
static Status
write_beside(Ctx *ctx, const char *path, const char *target, mode_t mode, const Text *text)
{
	const char *slash = strrchr(target, '/');
	size_t room = strlen(target) + sizeof ".blink.XXXXXX";
	char *temporary = malloc(room);
	if (!temporary)
		return fail_memory(ctx);
	snprintf(temporary, room, "%.*s.blink.XXXXXX", slash ? (int)(slash - target) + 1 : 0, target);
	Status status = OK;
	int fd = mkostemp(temporary, O_CLOEXEC);
	if (fd < 0) {
		status = fail(ctx, IO, "%s: %s", path, strerror(errno));
	} else {
		status = write_all(ctx, path, fd, text);
		if (status == OK && (fchmod(fd, mode) != 0 || fsync(fd) != 0))
			status = fail(ctx, IO, "%s: %s", path, strerror(errno));
		if (close(fd) != 0 && status == OK)
			status = fail(ctx, IO, "%s: %s", path, strerror(errno));
		if (status == OK && rename(temporary, target) != 0)
			status = fail(ctx, IO, "%s: %s", path, strerror(errno));
		if (status != OK)
			unlink(temporary);
	}
	free(temporary);
	return status;
}

static Status
write_through(Ctx *ctx, const char *path, int create, const Text *text)
{
	/* Opening /dev/stdout anew would start at the beginning of a file that it was to be appended to. */
	bool output = strcmp(path, "-") == 0 || strcmp(path, "/dev/stdout") == 0;
	int fd = output ? STDOUT_FILENO : open(path, O_WRONLY | create | O_CLOEXEC, 0666);
	if (fd < 0)
		return fail(ctx, IO, "%s: %s", path, strerror(errno));
	Status status = write_all(ctx, output ? "standard output" : path, fd, text);
	if (!output && close(fd) != 0 && status == OK)
		status = fail(ctx, IO, "%s: %s", path, strerror(errno));
	return status;
}

Status
file_write(Ctx *ctx, const char *path, const Text *text)
{
	struct stat there, link;
	if (text->failed)
		return fail_memory(ctx);
	if (strcmp(path, "-") == 0 || strncmp(path, "/dev/", 5) == 0)
		return write_through(ctx, path, 0, text);
	if (stat(path, &there) != 0) {
		if (errno != ENOENT)
			return fail(ctx, IO, "%s: %s", path, strerror(errno));
		/* A link to what is not there yet stays a link. */
		if (lstat(path, &link) == 0)
			return write_through(ctx, path, O_CREAT, text);
		mode_t mask = umask(0);
		umask(mask);
		return write_beside(ctx, path, path, 0666 & ~mask, text);
	}
	if (S_ISDIR(there.st_mode))
		return fail(ctx, IO, "%s: %s", path, strerror(EISDIR));
	if (!S_ISREG(there.st_mode))
		return write_through(ctx, path, 0, text);
	/* What is read-only stays as it is, though its directory would let us replace it. */
	if (access(path, W_OK) != 0)
		return fail(ctx, IO, "%s: %s", path, strerror(errno));
	char *target = realpath(path, NULL);
	if (!target)
		return errno == ENOMEM ? fail_memory(ctx) : fail(ctx, IO, "%s: %s", path, strerror(errno));
	Status status = write_beside(ctx, path, target, there.st_mode & 07777, text);
	free(target);
	return status;
}
