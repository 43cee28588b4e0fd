/* Memory of one rank of a job, which it can register with its peers. */
#ifndef BLINK_WINDOWS_H
#define BLINK_WINDOWS_H

#include "blink.h"

#include <stdbool.h>

blinkResult_t window_alloc(blinkComm_t comm, int rank, size_t bytes, void **memory);
blinkResult_t window_free(blinkComm_t comm, int rank, void *memory);
blinkResult_t window_copy(blinkComm_t comm, int rank, void *to, const void *from, size_t bytes);

struct rank_comm;
void windows_close(struct rank_comm *r, bool forked);

#endif
