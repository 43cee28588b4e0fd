/* Texts that workers leave for their parent: in a file without a name that all share, each where the one before it
 * ends. */
#ifndef BLINK_DIFF_SPOOL_H
#define BLINK_DIFF_SPOOL_H

#include "base/status.h"
#include "base/text.h"

#include <stdatomic.h>
#include <stdint.h>

typedef struct {
	int file;		/* descriptor; -1: none */
	atomic_llong *used;	/* bytes taken; shared */
} Spool;

typedef struct {
	int64_t at, size;
} Span;

/* Fails: NO_MEMORY, IO. */
Status spool_open(Ctx *ctx, Spool *spool);
void spool_close(Spool *spool);

/* Append a text, which is freed. Fails: NO_MEMORY, IO. */
Status spool_put(Ctx *ctx, const Spool *spool, Text *text, Span *span);

/* Append a span of it to `out`. Fails: IO. */
Status spool_get(Ctx *ctx, const Spool *spool, const Span *span, Text *out);

#endif
