/* Whole files in and out. "-" is standard input or output. */
#ifndef BLINK_FILE_H
#define BLINK_FILE_H

#include "base/status.h"
#include "base/text.h"

#include <stdbool.h>

/* Fails: IO with the system's reason; LIMIT past LIMIT_FILE_BYTES. */
Status file_read(Ctx *ctx, const char *path, Text *out);

/* Is it a regular file, or a link to one? */
bool file_is_there(const char *path);

/* Through a temporary file beside it, flushed and renamed, so that `path` holds all of the text or what it held before.
 * What is no regular file (a device, a pipe) is written as it is. Fails: IO. */
Status file_write(Ctx *ctx, const char *path, const Text *text);

/* As file_write, but a machine that stops may leave it empty until file_sync has been called for its directory. */
Status file_write_soon(Ctx *ctx, const char *path, const Text *text);
Status file_sync(Ctx *ctx, const char *directory);

/* ---- directories ---- */

enum { FILE_PATH_ROOM = 4096 };

bool file_is_directory(const char *path);

/* It may be there already. Fails: IO. */
Status file_make_directory(Ctx *ctx, const char *path);

/* Regular files below a directory whose names have this ending, by the bytes of their paths, which begin with `directory`; and links
 * with such names that lead nowhere. Names that begin with a dot, and links to directories, are left out. Fails: IO; LIMIT nested
 * too deep. */
Status file_list(Ctx *ctx, const char *directory, const char *ending, const char ***out, int *n);

/* Remove what file_write left in this directory when it was killed, and nothing that is being written. Fails: IO. */
Status file_sweep(Ctx *ctx, const char *directory);

#endif
