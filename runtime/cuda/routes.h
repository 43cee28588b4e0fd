/* Routes: which ranks of a server reach each other's memory on their GPUs, and which go by memory of the host. */
#ifndef BLINK_CUDA_ROUTES_H
#define BLINK_CUDA_ROUTES_H

#include "cuda/regions.h"

enum { GPU_PCI_BYTES = 24 };

/* What a rank tells the others first. */
struct gpu_who {
	uint64_t process;
	int32_t sharing;		/* enum gpu_sharing: the most that driver and GPU can do */
	int32_t copies;			/* enum gpu_copies: the most that it wants */
	int32_t multicasts;		/* can_multicast */
	int32_t protocol;		/* enum gpu_protocol: as asked, which all have to */
	char pci[GPU_PCI_BYTES];
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

/* Which pairs of ranks may have lines (device.h): g->has_lines. An exchange of all ranks. */
int gpu_lines_find(struct gpu *g, const struct gpu_who *who, struct blink_error *err);

void gpu_routes_close(struct gpu_routes *routes);

/* An exchange of all ranks. */
int gpu_gather(struct gpu *g, const void *mine, size_t bytes, void *all, struct blink_error *err);

#endif
