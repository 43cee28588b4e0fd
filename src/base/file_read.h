/* Whole files in. "-" is standard input. */
#ifndef BLINK_FILE_READ_H
#define BLINK_FILE_READ_H

#include "base/status.h"
#include "base/text.h"

#include <stdbool.h>

/* Fails: IO with the system's reason; LIMIT past LIMIT_FILE_BYTES. */
Status file_read(Ctx *ctx, const char *path, Text *out);

/* Likewise for a path that a directory or a file gave: what is there must be a regular file, or a link to one, so that
 * nobody waits for the writer of a pipe. Fails: also IO. */
Status file_read_regular(Ctx *ctx, const char *path, Text *out);
Status file_open_regular(Ctx *ctx, const char *path, int *fd);

/* For a path of the caller: a file, a pipe that somebody has opened already, as those of a shell, or a device; not a
 * FIFO, of which nobody knows whether it will have a writer. Never waits. Fails: IO. */
Status file_open(Ctx *ctx, const char *path, int *fd);

/* The rest of an open file, appended to the text. IO: errno has the reason; LIMIT past LIMIT_FILE_BYTES. Leaves the
 * message to the caller. */
Status file_read_rest(int fd, Text *out);

/* Is it a regular file, or a link to one? */
bool file_is_there(const char *path);

#endif
