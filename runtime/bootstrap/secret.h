/* A secret that the ranks of a job have beside the id, in a file: who sees the id alone cannot join. */
#ifndef BLINK_SECRET_H
#define BLINK_SECRET_H

#include "bootstrap/wire.h"

/* The secret of the id becomes HMAC-SHA-256 of itself, keyed by all bytes of the file; path NULL: it stays.
 * Fails: blinkInvalidArgument not a file of 16 to 1024 bytes, of this user or root, that others can neither read nor
 * write. */
int secret_add(struct id *id, const char *path, struct blink_error *err);

#endif
