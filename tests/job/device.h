/* A GPU for a rank of a test, where BLINK_BACKEND is cuda. On the host nothing of this does anything. */
#ifndef DEVICE_H
#define DEVICE_H

#include "job.h"

#include <stddef.h>

bool device_wanted(void);

/* The rank's GPU, by its number modulo that of GPUs, is the calling thread's from now on; a fault if there is none. */
void device_take(struct rank *me);

/* A stream of its own for the calls of a communicator, on the thread's GPU: where two communicators share one, each may
 * wait for what is behind the other. NULL on the host. */
void *device_stream(struct rank *me);
void device_stream_end(struct rank *me, void *stream);

/* Memory of this rank of the communicator on its GPU, as large as `bytes` at `host` which mirrors it; NULL on the
 * host. */
char *device_memory(struct rank *me, blinkComm_t comm, size_t bytes);
void device_in(struct rank *me, blinkComm_t comm, char *device, const void *host, size_t bytes);
void device_out(struct rank *me, blinkComm_t comm, void *host, const char *device, size_t bytes);
void device_free(struct rank *me, blinkComm_t comm, char *device);

#endif
