#include "base/hmac.h"

#include <assert.h>
#include <string.h>

void
hmac_begin(struct hmac *h, const void *key, size_t bytes)
{
	uint8_t inner[SHA256_BLOCK_LENGTH] = { 0 };
	assert(bytes <= sizeof inner);
	if (bytes)
		memcpy(inner, key, bytes);
	for (size_t i = 0; i < sizeof inner; i++) {
		h->outer[i] = inner[i] ^ 0x5c;
		inner[i] ^= 0x36;
	}
	SHA256Init(&h->inner);
	SHA256Update(&h->inner, inner, sizeof inner);
}

void
hmac_add(struct hmac *h, const void *data, size_t bytes)
{
	SHA256Update(&h->inner, data, bytes);
}

void
hmac_end(struct hmac *h, unsigned char out[HMAC_BYTES])
{
	SHA2_CTX outer;
	uint8_t sum[HMAC_BYTES];
	SHA256Final(sum, &h->inner);
	SHA256Init(&outer);
	SHA256Update(&outer, h->outer, sizeof h->outer);
	SHA256Update(&outer, sum, sizeof sum);
	SHA256Final(out, &outer);
}

bool
hmac_equal(const unsigned char a[HMAC_BYTES], const unsigned char b[HMAC_BYTES])
{
	unsigned differ = 0;
	for (int i = 0; i < HMAC_BYTES; i++)
		differ |= (unsigned)(a[i] ^ b[i]);
	return differ == 0;
}
