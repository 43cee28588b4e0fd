/* Rates of the memory of the machine that this runs on. */
#ifndef BLINK_FORMAT_HWLOC_MEASURE_H
#define BLINK_FORMAT_HWLOC_MEASURE_H

#include "base/status.h"

#include <hwloc.h>

/* Adds to a topology of this machine what cpu_ranks.c reads, in MB/s: CoreBandwidth, an <info> of each NUMA node with
 * cores: what one of them copies there; and of two or more nodes NUMABandwidth, a matrix: what the cores of a node copy
 * from the memory of another to their own, all at a time. Takes 0.1 s for each pair. Fails: IO where threads or memory
 * cannot be bound, LIMIT, NO_MEMORY. */
Status measure_memory(Ctx *ctx, hwloc_topology_t topology);

#endif
