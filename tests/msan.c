/* Linked into tests under MemorySanitizer, which takes memory as not initialised that a library writes which was built
 * without it. cJSON gets zeroed memory, which counts as initialised; what libmd writes is said to be. So what these
 * libraries leave uninitialised is not found: blinkc's own reads are. */
#include <cjson/cJSON.h>
#include <sanitizer/msan_interface.h>
#include <sha256.h>
#include <stdlib.h>

static void *
zeroed(size_t size)
{
	return calloc(1, size);
}

__attribute__((constructor)) static void
use_zeroed_memory(void)
{
	cJSON_InitHooks(&(cJSON_Hooks){ zeroed, free });
}

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
