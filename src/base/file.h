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

#endif
