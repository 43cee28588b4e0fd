/* Whole files out, and directories. "-" is standard output. */
#ifndef BLINK_FILE_H
#define BLINK_FILE_H

#include "base/file_read.h"

/* Through a temporary file beside it, flushed and renamed, so that `path` holds all of the text or what it held before.
 * A link stays, and what it leads to is replaced. What is there and is no regular file is written directly: devices,
 * pipes, terminals; so are the descriptors of this process, /dev/stdout and /dev/fd/N. Fails: IO. */
Status file_write(Ctx *ctx, const char *path, const Text *text);

/* As file_write, but if the machine stops before file_sync was called for its directory, it may be empty. */
Status file_write_soon(Ctx *ctx, const char *path, const Text *text);
Status file_sync(Ctx *ctx, const char *directory);

/* ---- directories ---- */

enum { FILE_PATH_ROOM = 4096 };

bool file_is_directory(const char *path);

/* It may be there already. Fails: IO. */
Status file_make_directory(Ctx *ctx, const char *path);

/* Regular files and dangling links below a directory whose names have this ending, sorted by the bytes of their paths,
 * which begin with `directory`. Names that begin with a dot, and links to directories, are left out.
 * Fails: IO; LIMIT nested too deep. */
Status file_list(Ctx *ctx, const char *directory, const char *ending, const char ***out, int *n);

/* Remove what file_write left in this directory when it was killed, and nothing that is being written. Fails: IO. */
Status file_sweep(Ctx *ctx, const char *directory);

#endif
