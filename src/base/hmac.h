/* HMAC-SHA-256 (RFC 2104), by libmd's SHA-256. */
#ifndef BLINK_HMAC_H
#define BLINK_HMAC_H

#include <sha2.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HMAC_BYTES = SHA256_DIGEST_LENGTH };

struct hmac {
	SHA2_CTX inner;
	uint8_t outer[SHA256_BLOCK_LENGTH];	/* the key, as the outer hash wants it */
};

/* key: at most a block of 64 bytes. */
void hmac_begin(struct hmac *h, const void *key, size_t bytes);
void hmac_add(struct hmac *h, const void *data, size_t bytes);
void hmac_end(struct hmac *h, unsigned char out[HMAC_BYTES]);

/* In a time that does not depend on where they differ. */
bool hmac_equal(const unsigned char a[HMAC_BYTES], const unsigned char b[HMAC_BYTES]);

#endif
