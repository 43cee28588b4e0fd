/* Memory that libblink has for lines of a pair of GPUs, of a call: the runtime goes by this, and what simulates it. */
#ifndef BLINK_MODEL_LINE_ROOM_H
#define BLINK_MODEL_LINE_ROOM_H

#include <stdint.h>

/* Bytes, with flags, of all lanes of a pair: by the number of ranks. */
static inline int64_t
line_room(int n_ranks)
{
	enum { PAGE = 4 << 10, ALL = 32 << 20, LEAST = 256 << 10, MOST = 2304 << 10 };
	int64_t each = ALL / n_ranks / PAGE * PAGE;
	return each < LEAST ? LEAST : each < MOST ? each : MOST;
}

#endif
