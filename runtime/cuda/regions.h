/* Regions: the memory of a rank that its peers see, and theirs as it sees it. */
#ifndef BLINK_CUDA_REGIONS_H
#define BLINK_CUDA_REGIONS_H

#include "cuda/gpu.h"
#include "transport/shm.h"

/* How memory of a GPU gets into other processes. */
enum gpu_sharing {
	GPU_SHARING_NONE,		/* not at all: threads of one process alone */
	GPU_SHARING_IPC,		/* cuMemAlloc, cuIpcGetMemHandle */
	GPU_SHARING_VMM			/* cuMemCreate, and a descriptor */
};

enum { GPU_GREETING_BYTES = 64 };	/* at the begin of a pair's first ring (routes.c) */

/* Whether a rank can write to memory of a peer's GPU, and if not, why. */
enum gpu_reach {
	GPU_REACH_NONE,			/* the driver allows none */
	GPU_REACH_OFF,			/* BLINK_P2P=0 */
	GPU_REACH_UNSEEN,		/* this process does not see the GPU: its memory can be tried */
	GPU_REACH_UNMAPPED,		/* that has failed */
	GPU_REACH_LOST,			/* it is mapped, and the greeting has not come */
	GPU_REACH_DIRECT
};

/* Memory of cuMemAlloc is gone for all processes when its owner frees it. So they count those that have it open, in a
 * page that they share. */
struct gpu_users {
	_Atomic uint32_t n;
};

/* A peer's memory that this rank has imported, and gives back. */
struct gpu_import {
	CUdeviceptr memory;		/* 0: none */
	size_t bytes;
	enum gpu_sharing how;
	struct gpu_users *users;	/* of IPC's: what its owner looks at; mapped */
	void *host;			/* registered; NULL: none */
};

/* Memory by handle, and descriptors for it: what is to be created on a device; an address for memory of a handle, where
 * these devices may read and write it; and no more. */
CUmemAllocationProp gpu_memory_of(CUdevice device);
int gpu_map(struct gpu *g, CUmemGenericAllocationHandle handle, size_t bytes, const CUdevice *devices, int n,
    CUdeviceptr *out, struct blink_error *err);
void gpu_unmap(const struct driver *d, CUdeviceptr at, size_t bytes);

struct gpu_regions {
	enum gpu_sharing sharing;
	int n_on_gpu;			/* ranks on this one's GPU */
	struct shm *shm[2];		/* of the own region, by route */
	struct gpu_import *import;	/* of each rank */
};

/* What a rank tells the others of its regions. */
struct gpu_offer {
	unsigned char shm[2][SHM_ADDRESS];
	CUipcMemHandle ipc;
	uint64_t bytes;
};

/* A region in memory of the GPU, which the devices may access that are named; zeroed up to its rings. It is freed when
 * the last rank of this process has forgotten it. */
int gpu_region_open(struct gpu *g, const CUdevice *devices, int n, struct gpu_offer *offer, struct blink_error *err);

/* The same in memory of the host, for all GPUs. */
int gpu_host_region_open(struct gpu *g, struct gpu_offer *offer, struct blink_error *err);

/* Take the memory of peers. reach[i]: enum gpu_reach of rank i: DIRECT: take it; UNSEEN: if that can be, which makes it
 * DIRECT, else UNMAPPED. */
int gpu_regions_import(struct gpu *g, const struct gpu_offer *all, unsigned char *reach, struct blink_error *err);
int gpu_host_regions_import(struct gpu *g, const struct gpu_offer *all, struct blink_error *err);

/* cuda/memory.c. The rank's own state and status. */
int gpu_state_open(struct gpu *g, struct blink_error *err);

int gpu_zero(struct gpu *g, CUdeviceptr at, size_t bytes, struct blink_error *err);

/* Frees all of the above. */
void gpu_regions_close(struct gpu *g, bool forked);

#endif
