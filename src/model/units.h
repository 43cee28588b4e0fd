/* Units of every quantity. Capacities and rates are exact, in bytes/s: an int64_t, or a Frac where they are quotients;
 * files and messages show them in GB/s = 1e9 bytes/s. Latencies are in ns; files show us. Positions in the user's
 * buffer are exact fractions of it. There are no byte counts before a schedule is run. */
#ifndef BLINK_MODEL_UNITS_H
#define BLINK_MODEL_UNITS_H

#include "base/frac.h"
#include "base/limits.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BYTES_PER_GB INT64_C(1000000000)
#define NS_PER_US INT64_C(1000)
#define NS_PER_S INT64_C(1000000000)

/* What a kernel takes for a chunk on an edge before its bytes move: what 8 KiB take at 25 GB/s, the least chunk of
 * libblink. */
#define KERNEL_STEP_NS 330
/* Of a GPU's edges, how many send at once: NCCL's 32 channels. */
#define KERNEL_AT_ONCE 32

#endif
