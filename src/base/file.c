#include "base/file.h"
#include "base/array.h"
#include "base/limits.h"
#include "base/sort.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

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

#define TEMPORARY ".blink."

/* A new file, in place of the name from byte `length` on. It is locked while its writer lives, which file_sweep looks
 * at; a sweep between creation and lock may have removed it, so try again. */
static int
locked_temporary(char *name, size_t length)
{
	struct stat there;
	for (;;) {
		strcpy(name + length, TEMPORARY "XXXXXX");
		int fd = mkostemp(name, O_CLOEXEC);
		if (fd < 0 || flock(fd, LOCK_EX) != 0 || fstat(fd, &there) != 0 || there.st_nlink > 0)
			return fd;
		close(fd);
	}
}

/* `target` is a regular file or nothing yet. */
static Status
write_beside(Ctx *ctx, const char *path, const char *target, mode_t mode, bool sync, const Text *text)
{
	const char *slash = strrchr(target, '/');
	size_t room = strlen(target) + sizeof ".blink.XXXXXX";
	char *temporary = malloc(room);
	if (!temporary)
		return fail_memory(ctx);
	memcpy(temporary, target, slash ? (size_t)(slash - target) + 1 : 0);
	Status status = OK;
	int fd = locked_temporary(temporary, slash ? (size_t)(slash - target) + 1 : 0);
	if (fd < 0) {
		status = fail(ctx, IO, "%s: %s", path, strerror(errno));
	} else {
		status = write_all(ctx, path, fd, text);
		if (status == OK && (fchmod(fd, mode) != 0 || (sync && fsync(fd) != 0)))
			status = fail(ctx, IO, "%s: %s", path, strerror(errno));
		if (status == OK && rename(temporary, target) != 0)
			status = fail(ctx, IO, "%s: %s", path, strerror(errno));
		if (status != OK)
			unlink(temporary);
		close(fd);
	}
	free(temporary);
	return status;
}

/* The descriptor of this process that a path stands for; -1: none. Opening such a path anew would start at the
 * beginning of a file that it was to be appended to, and replacing it would leave the descriptor with the old one. */
static int
own_descriptor(const char *path)
{
	static const char *const folders[] = { "/dev/fd/", "/proc/self/fd/" };
	int fd = -1, end = 0;
	if (strcmp(path, "-") == 0 || strcmp(path, "/dev/stdout") == 0)
		return STDOUT_FILENO;
	if (strcmp(path, "/dev/stderr") == 0)
		return STDERR_FILENO;
	for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
		size_t n = strlen(folders[i]);
		if (strncmp(path, folders[i], n) == 0 && sscanf(path + n, "%8d%n", &fd, &end) == 1
		    && !path[n + (size_t)end])
			return fd;
	}
	return -1;
}

static Status
write_through(Ctx *ctx, const char *path, int create, const Text *text)
{
	int own = own_descriptor(path), fd = own >= 0 ? own : open(path, O_WRONLY | create | O_CLOEXEC, 0666);
	if (fd < 0)
		return fail(ctx, IO, "%s: %s", path, strerror(errno));
	Status status = write_all(ctx, own == STDOUT_FILENO ? "standard output" : path, fd, text);
	if (own < 0 && close(fd) != 0 && status == OK)
		status = fail(ctx, IO, "%s: %s", path, strerror(errno));
	return status;
}

static Status
write_file(Ctx *ctx, const char *path, bool sync, const Text *text)
{
	struct stat there, link;
	if (text->failed)
		return fail_memory(ctx);
	if (own_descriptor(path) >= 0)
		return write_through(ctx, path, 0, text);
	if (stat(path, &there) != 0) {
		if (errno != ENOENT)
			return fail(ctx, IO, "%s: %s", path, strerror(errno));
		/* A link to what is not there yet stays a link. */
		if (lstat(path, &link) == 0)
			return write_through(ctx, path, O_CREAT, text);
		mode_t mask = umask(0);
		umask(mask);
		return write_beside(ctx, path, path, 0666 & ~mask, sync, text);
	}
	if (S_ISDIR(there.st_mode))
		return fail(ctx, IO, "%s: %s", path, strerror(EISDIR));
	/* One of many files is below a directory, where nobody waits for the reader of a pipe. */
	if (!S_ISREG(there.st_mode) && !sync)
		return fail(ctx, IO, "%s: not a regular file: want one below a directory", path);
	if (!S_ISREG(there.st_mode))
		return write_through(ctx, path, 0, text);
	/* A read-only file is not replaced, though its directory would allow it. */
	if (access(path, W_OK) != 0)
		return fail(ctx, IO, "%s: %s", path, strerror(errno));
	char *target = realpath(path, NULL);
	if (!target)
		return errno == ENOMEM ? fail_memory(ctx) : fail(ctx, IO, "%s: %s", path, strerror(errno));
	Status status = write_beside(ctx, path, target, there.st_mode & 07777, sync, text);
	free(target);
	return status;
}

Status
file_write(Ctx *ctx, const char *path, const Text *text)
{
	return write_file(ctx, path, true, text);
}

Status
file_write_soon(Ctx *ctx, const char *path, const Text *text)
{
	return write_file(ctx, path, false, text);
}

Status
file_sync(Ctx *ctx, const char *directory)
{
	int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	Status status = fd >= 0 && syncfs(fd) == 0 ? OK : fail(ctx, IO, "%s: %s", directory, strerror(errno));
	if (fd >= 0)
		close(fd);
	return status;
}

/* ---- directories ---- */

bool
file_is_directory(const char *path)
{
	struct stat there;
	return stat(path, &there) == 0 && S_ISDIR(there.st_mode);
}

Status
file_make_directory(Ctx *ctx, const char *path)
{
	int error = mkdir(path, 0777) == 0 ? 0 : errno;
	if (error == 0 || (error == EEXIST && file_is_directory(path)))
		return OK;
	return fail(ctx, IO, "%s: %s", path, strerror(error == EEXIST ? ENOTDIR : error));
}

/* A function for each entry of a directory; `path` begins with the directory. */
typedef Status (*Visit)(Ctx *ctx, void *of, const char *path, const char *name);

static Status
visit_all(Ctx *ctx, const char *directory, Visit visit, void *of)
{
	DIR *open_directory = opendir(directory);
	Status status = OK;
	if (!open_directory)
		return errno == ENOMEM ? fail_memory(ctx) : fail(ctx, IO, "%s: %s", directory, strerror(errno));
	while (status == OK) {
		char path[FILE_PATH_ROOM];
		errno = 0;
		const struct dirent *entry = readdir(open_directory);
		if (!entry) {
			status = errno ? fail(ctx, IO, "%s: %s", directory, strerror(errno)) : OK;
			break;
		}
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (snprintf(path, sizeof path, "%s/%s", directory, entry->d_name) >= (int)sizeof path)
			status = fail(ctx, LIMIT, "%s/%s: a path longer than %d bytes", directory, entry->d_name,
			    FILE_PATH_ROOM - 1);
		else
			status = visit(ctx, of, path, entry->d_name);
	}
	closedir(open_directory);
	return status;
}

struct listing {
	const char *ending;
	int depth, n, capacity;
	const char **path;
};

static Status
list_entry(Ctx *ctx, void *of, const char *path, const char *name)
{
	struct listing *list = of;
	struct stat there;
	size_t n = strlen(name), ending = strlen(list->ending);
	if (*name == '.')
		return OK;
	if (lstat(path, &there) != 0)
		return errno == ENOENT ? OK : fail(ctx, IO, "%s: %s", path, strerror(errno));
	if (S_ISDIR(there.st_mode)) {
		if (list->depth == LIMIT_DEPTH)
			return fail(ctx, LIMIT, "%s: directories nested more than %d deep", path, LIMIT_DEPTH);
		list->depth++;
		TRY(visit_all(ctx, path, list_entry, list));
		list->depth--;
		return OK;
	}
	if (n <= ending || strcmp(name + n - ending, list->ending) != 0)
		return OK;
	/* What leads nowhere, or cannot be looked at, is reported by whoever tries to read it. */
	if (stat(path, &there) == 0 && !S_ISREG(there.st_mode))
		return OK;
	TRY(GROW(ctx, list->path, list->n, list->capacity));
	list->path[list->n] = arena_text(&ctx->run, path, strlen(path));
	return list->path[list->n++] ? OK : fail_memory(ctx);
}

Status
file_list(Ctx *ctx, const char *directory, const char *ending, const char ***out, int *n)
{
	struct listing list = { .ending = ending };
	size_t length = strlen(directory);
	while (length > 1 && directory[length - 1] == '/')
		length--;
	directory = arena_text(&ctx->run, directory, length);
	if (!directory)
		return fail_memory(ctx);
	TRY(visit_all(ctx, directory, list_entry, &list));
	sort_array(list.path, list.n, sizeof *list.path, order_of_texts);
	*out = list.path;
	*n = list.n;
	return OK;
}

static Status
sweep_entry(Ctx *ctx, void *of, const char *path, const char *name)
{
	(void)ctx;
	(void)of;
	if (strncmp(name, TEMPORARY, sizeof TEMPORARY - 1) != 0 || strlen(name) != sizeof TEMPORARY + 5
	    || !file_is_there(path))
		return OK;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return OK;
	if (flock(fd, LOCK_EX | LOCK_NB) == 0)
		unlink(path);
	close(fd);
	return OK;
}

Status
file_sweep(Ctx *ctx, const char *directory)
{
	return visit_all(ctx, directory, sweep_entry, NULL);
}
