/* The module "multicast": for GPUs of capability 9.0 and later, whose instructions it has. */
#include "kernels/multicast.h"
#include "kernels/entry.h"

KERNEL(blink_multicast, gpu_multicast_call, multicast_block, run_multicast(&memory_of(multicast_block), &given))
