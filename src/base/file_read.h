/* Whole files in. "-" is standard input. */
#ifndef BLINK_FILE_READ_H
#define BLINK_FILE_READ_H

#include "base/status.h"
#include "base/text.h"

#include <stdbool.h>

/* Fails: IO with the system's reason; LIMIT past LIMIT_FILE_BYTES. */
Status file_read(Ctx *ctx, const char *path, Text *out);

/* The rest of an open file, appended to the text. IO: errno has the reason; LIMIT past LIMIT_FILE_BYTES. Leaves the
 * message to the caller. */
Status file_read_rest(int fd, Text *out);

/* Is it a regular file, or a link to one? */
bool file_is_there(const char *path);

#endif
