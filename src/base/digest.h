/* SHA-256, by libmd. */
#ifndef BLINK_DIGEST_H
#define BLINK_DIGEST_H

#include <stddef.h>

enum { DIGEST_ROOM = 72 };	/* "sha256:", 64 hex digits, NUL */

void digest_of(const char *data, size_t size, char text[DIGEST_ROOM]);

#endif
