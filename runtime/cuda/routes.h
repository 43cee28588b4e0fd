/* Routes: which ranks of a server reach each other's memory on their GPUs, and which go by memory of the host. */
#ifndef BLINK_CUDA_ROUTES_H
#define BLINK_CUDA_ROUTES_H

#include "cuda/gpu.h"

enum {
	GPU_PCI_BYTES = 24,
	GPU_GREETING_BYTES = 64
};

/* What a rank tells the others first. */
struct gpu_who {
	uint64_t process;
	int32_t sharing;		/* enum gpu_sharing: the most that driver and GPU can do */
	int32_t copies;			/* enum gpu_copies: the most that it wants */
	char pci[GPU_PCI_BYTES];
};

/* What a rank knows of its way to a peer's memory. */
enum gpu_reach {
	GPU_REACH_NONE,			/* the driver allows none */
	GPU_REACH_OFF,			/* BLINK_P2P=0 */
	GPU_REACH_UNSEEN,		/* this process does not see the GPU: its memory can be tried */
	GPU_REACH_UNMAPPED,		/* that has failed */
	GPU_REACH_LOST,			/* it is mapped, and the greeting has not come */
	GPU_REACH_DIRECT
};

struct gpu_routes {
	unsigned char *reach;		/* enum gpu_reach, of each rank; behind it 1 if this rank may have calls through
					 * the host */
	unsigned char *all;		/* what all ranks have there */
	CUdevice device[GPU_DEVICES];	/* of this process: that can access this rank's, its own first */
	int n_devices;
};

/* Ask the driver, and exchange what it says: reach[i] is DIRECT or UNSEEN where this rank and rank i may share memory,
 * for both; else something else. Sets g->peer[].device. */
int gpu_routes_open(struct gpu *g, const struct gpu_who *who, struct gpu_routes *routes, struct blink_error *err);

/* With the regions in place: greet, and exchange what has come. Sets g->peer[].direct. *host: some pair of a server, or
 * rank, needs memory of the host: the same for all ranks. Warns of pairs that do. */
int gpu_routes_find(struct gpu *g, const struct gpu_who *who, struct gpu_routes *routes, bool *host,
    struct blink_error *err);

void gpu_routes_close(struct gpu_routes *routes);

/* An exchange of all ranks: cuda/peers.c. */
int gpu_gather(struct gpu *g, const void *mine, size_t bytes, void *all, struct blink_error *err);

#endif
