#include "base/digest.h"

#include <sha2.h>
#include <stdint.h>
#include <stdio.h>

void
digest_of(const char *data, size_t size, char text[DIGEST_ROOM])
{
	SHA2_CTX sha;
	uint8_t sum[SHA256_DIGEST_LENGTH];
	SHA256Init(&sha);
	SHA256Update(&sha, (const uint8_t *)data, size);
	SHA256Final(sum, &sha);
	int at = snprintf(text, DIGEST_ROOM, "sha256:");
	for (int i = 0; i < SHA256_DIGEST_LENGTH; i++)
		at += snprintf(text + at, (size_t)(DIGEST_ROOM - at), "%02x", sum[i]);
}
