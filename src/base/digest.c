#include "base/digest.h"
#include "base/sha256_blocks.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>
#include <unistd.h>

void
digest_begin(Digest *d)
{
	SHA256Init(&d->sha);
	d->fast = sha256_has_instructions();
}

/* libmd has no instructions of the processor for it; so whole blocks go past it, into its state. */
void
digest_add(Digest *d, const char *data, size_t size)
{
	SHA2_CTX *sha = &d->sha;
	size_t begun = (size_t)(sha->bitcount[0] / 8 % 64), head = begun ? 64 - begun : 0;
	head = head < size ? head : size;
	if (head)
		SHA256Update(sha, (const uint8_t *)data, head);
	data += head;
	size -= head;
	size_t n = d->fast ? size / 64 : 0;
	if (n > 0)
		sha256_blocks(sha->state.st32, (const uint8_t *)data, n);
	sha->bitcount[0] += 512 * (uint64_t)n;
	if (size > 64 * n)
		SHA256Update(sha, (const uint8_t *)data + 64 * n, size - 64 * n);
}

void
digest_end(Digest *d, char text[DIGEST_ROOM])
{
	uint8_t sum[SHA256_DIGEST_LENGTH];
	SHA256Final(sum, &d->sha);
	int at = snprintf(text, DIGEST_ROOM, "sha256:");
	for (int i = 0; i < SHA256_DIGEST_LENGTH; i++)
		at += snprintf(text + at, (size_t)(DIGEST_ROOM - at), "%02x", sum[i]);
}

void
digest_of(const char *data, size_t size, char text[DIGEST_ROOM])
{
	Digest digest;
	digest_begin(&digest);
	digest_add(&digest, data, size);
	digest_end(&digest, text);
}

bool
digest_of_file(int fd, char text[DIGEST_ROOM])
{
	char part[1024];
	Digest digest;
	off_t at = 0;
	ssize_t n;
	digest_begin(&digest);
	while ((n = pread(fd, part, sizeof part, at)) != 0) {
		if (n < 0 && errno != EINTR)
			return false;
		if (n > 0)
			digest_add(&digest, part, (size_t)n);
		at += n > 0 ? n : 0;
	}
	digest_end(&digest, text);
	return true;
}
