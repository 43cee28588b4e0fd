/* Multicast: memory of all ranks at one address, where the GPUs are behind NVSwitches that add and copy (NVLS). */
#ifndef BLINK_CUDA_MULTICAST_H
#define BLINK_CUDA_MULTICAST_H

#include "cuda/gpu.h"
#include "cuda/multicast_call.h"

/* Of two ranks, nothing is shared at the switch. */
enum { GPU_MULTICAST_RANKS = 3 };

/* Has this rank's GPU, with its driver, what it takes? */
bool gpu_can_multicast(const struct gpu *g);

/* The memory, where all ranks can and make it: else g->multicast stays NULL on all of them. Exchanges of all ranks, of
 * as many steps on each. Fails: only as an exchange does. */
int gpu_multicast_open(struct gpu *g, struct blink_error *err);
void gpu_multicast_close(struct gpu *g, bool forked);

/* Of this rank's own memory: a half of the rings of all trees of a root. */
char *gpu_multicast_ring(const struct gpu *g, int root, int half);

/* Lanes of a tree, between two ranks. */
int gpu_multicast_stages(Collective coll);

/* Is that call one for the switch: are its trees, is there an instruction, and is it too long for packets? If so, *out
 * has what its kernel needs besides its `call`. The same on all ranks. */
struct gpu_asked;
bool gpu_multicast_serves(const struct gpu *g, const struct call *call, const struct gpu_asked *asked,
    struct gpu_multicast_call *out);

#endif
