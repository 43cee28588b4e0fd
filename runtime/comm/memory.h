/* Memory of one rank of a job. */
#ifndef BLINK_MEMORY_H
#define BLINK_MEMORY_H

#include "blink.h"

#include <stdbool.h>

blinkResult_t rank_memory_new(blinkComm_t comm, int rank, size_t bytes, void **memory);
blinkResult_t rank_memory_free(blinkComm_t comm, int rank, void *memory);
blinkResult_t rank_memory_copy(blinkComm_t comm, int rank, void *to, const void *from, size_t bytes);

/* What has not been freed. */
struct rank_comm;
void memory_close_all(struct rank_comm *r, bool forked);

#endif
