/* SHA-256, by libmd. */
#ifndef BLINK_DIGEST_H
#define BLINK_DIGEST_H

#include <sha2.h>
#include <stdbool.h>
#include <stddef.h>

enum { DIGEST_ROOM = 72 };	/* "sha256:", 64 hex digits, NUL */

/* Of bytes that come in pieces. */
typedef struct {
	SHA2_CTX sha;
	bool fast;
} Digest;

void digest_begin(Digest *digest);
void digest_add(Digest *digest, const char *data, size_t size);
void digest_end(Digest *digest, char text[DIGEST_ROOM]);

void digest_of(const char *data, size_t size, char text[DIGEST_ROOM]);

/* Of all bytes of an open file, wherever it is read. False: it cannot be read (errno). */
bool digest_of_file(int fd, char text[DIGEST_ROOM]);

#endif
