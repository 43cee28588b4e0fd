/* Linked into tests under MemorySanitizer, which takes memory as not initialised that a library writes which was built
 * without it. What libmd writes is said to be. So what this library leaves uninitialised is not found: blinkc's own
 * reads are. */
#include <sanitizer/msan_interface.h>
#include <sha256.h>

void __real_SHA256Init(SHA2_CTX *ctx);
void __real_SHA256Final(uint8_t *digest, SHA2_CTX *ctx);
void __wrap_SHA256Init(SHA2_CTX *ctx);
void __wrap_SHA256Final(uint8_t *digest, SHA2_CTX *ctx);

void
__wrap_SHA256Init(SHA2_CTX *ctx)
{
	__real_SHA256Init(ctx);
	__msan_unpoison(ctx, sizeof *ctx);
}

void
__wrap_SHA256Final(uint8_t *digest, SHA2_CTX *ctx)
{
	__real_SHA256Final(digest, ctx);
	__msan_unpoison(digest, SHA256_DIGEST_LENGTH);
}
