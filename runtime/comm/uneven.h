/* Calls of an alltoall whose blocks differ in length. */
#ifndef BLINK_UNEVEN_H
#define BLINK_UNEVEN_H

#include "backend/rank.h"
#include "backend/call.h"

/* What a rank sends, or receives; in elements. */
struct side {
	const char *name;		/* "send" or "recv" */
	const void *buffer;
	const size_t *counts, *displs;	/* of each rank */
};

/* side[0]: what is sent; reduction: for the type alone. NULL: *err says why: blinkInvalidArgument, blinkOutOfMemory. */
struct call *uneven_call(const struct rank_state *self, const struct side side[2], const struct reduction *reduction,
    struct blink_error *err);

#endif
