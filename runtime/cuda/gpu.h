/* Gpu: the part of a rank that works on a GPU, by the CUDA driver. */
#ifndef BLINK_CUDA_GPU_H
#define BLINK_CUDA_GPU_H

#include "backend/backend.h"
#include "cuda/sizes.h"
#include "driver/driver.h"

enum {
	GPU_RANKS = 256,		/* of a communicator, at most */
	GPU_DEVICES = 64		/* of a server, at most */
};

/* An address of a GPU, as the driver and as the program has it. */
static inline CUdeviceptr
device_pointer(const void *memory)
{
	return (CUdeviceptr)(uintptr_t)memory;
}

static inline void *
host_pointer(CUdeviceptr memory)
{
	return (void *)(uintptr_t)memory;
}

/* How data go from one rank to another. */
enum gpu_route {
	GPU_ROUTE_DIRECT,		/* stores into the peer's memory: same GPU, or peer access */
	GPU_ROUTE_HOST,			/* through memory of the host, that both GPUs have mapped */
	GPU_ROUTE_NET			/* to another server (cuda/relay.h) */
};

/* Another rank, seen from this one. On one server both routes have the same layout (gpu_layout); NULL where there is
 * none. */
struct gpu_peer {
	int local;			/* its number among the ranks of this server; -1: it is on another one */
	CUdevice device;		/* in this process: -1 where it is another process's */
	bool direct;			/* its GPU's memory can be accessed */
	char *region[2];		/* its memory as this GPU sees it, by route */
};

/* What is where in a region, of which each rank of the server has a part. Sizes of pairs are the same on all servers;
 * where there are several, packet_bytes and line_bytes are 0: a call has one protocol on all ranks, and neither
 * crosses a network. */
struct gpu_layout {
	int n_local;
	size_t ring_bytes, packet_bytes, line_bytes;	/* of a half of a pair */
	int channels;				/* of a pair, for its messages */
	size_t slot_bytes, channel_bytes;	/* of a slot; of the slots of a channel */
	size_t rings_at;			/* of a pair: what is before is flags, packets and lines, at first 0 */
	size_t peer_bytes, bytes;		/* of each peer, of all */
};
void gpu_layout_of(int n_local, int n_ranks, struct gpu_layout *out);

/* The pair (publisher, reader) over a route, as pointers for this rank's GPU: it is one of the
 * two. Likewise the channels of their messages. */
struct gpu;
void gpu_pair_of(const struct gpu *g, int publisher, int reader, enum gpu_route route, struct gpu_pair *out);
void gpu_channels_of(const struct gpu *g, int publisher, int reader, enum gpu_route route, struct gpu_channels *out);

/* What rank `owner` has in its memory for rank `other`, as gpu_pair_of. */
struct gpu_meeting *gpu_meeting_of(const struct gpu *g, int owner, int other, enum gpu_route route);

/* Which calls that do not reduce are served by copy engines: what all ranks agree on, the least that one wants. */
enum gpu_copies {
	GPU_COPIES_NONE,
	GPU_COPIES_LONG,
	GPU_COPIES_ALL
};

enum { GPU_FUNCTIONS = 5 };

struct gpu_module {
	CUmodule module;
	CUfunction function[GPU_FUNCTIONS];	/* by operation; of "move": blink_move, blink_messages, those of
						 * copies.c, blink_measure */
};

struct gpu {
	const struct driver *d;
	struct rank_state *self;
	CUdevice device;
	CUcontext context;		/* primary, retained */
	CUstream stream;		/* for copies of the library itself: of store.c */
	int blocks;			/* that a kernel may have: the least of all ranks */
	int taken;			/* of the device's, until gpu_close: those and no others */
	int threads;			/* of a block */
	struct gpu_cost cost;
	enum gpu_copies copies;
	bool can_multicast;		/* driver and GPU have multicast objects, and BLINK_NVLS does not forbid them */
	bool all_multicast;		/* so have all ranks', as objects want it (agree_on_sharing) */
	struct gpu_multicast *multicast;	/* of multicast.c; NULL: none */
	unsigned flush;			/* CU_STREAM_WAIT_VALUE_FLUSH, if the GPU can: else data that a peer
					 * wrote over PCIe may arrive after its flag */
	struct gpu_layout layout;
	char *own[2];			/* this rank's region, by route; NULL: none */
	struct gpu_peer *peer;		/* of each rank of the communicator */
	unsigned char *has_lines;	/* of each pair: the first rank says that they may have lines */
	enum gpu_protocol protocol;	/* as asked */
	struct gpu_state *state;	/* in memory of the GPU */
	struct gpu_status *status;	/* in host memory, at the same address for the GPU */
	struct gpu_regions *regions;	/* of gpu_open: what is freed */
	struct gpu_launches *launches;	/* of launch.c */
	_Atomic bool open;		/* calls can be made: status and launches stay until gpu_close */
	struct gpu_relay *relay;	/* of relay.c; NULL: all ranks are on this server */
	_Atomic(struct gpu_relay *) hears;	/* the same, from when the net's messages have a place */
};

/* The row of the table of backends: cuda/cuda.c. */
extern const struct backend cuda_backend;

/* cuda/peers.c. A rank that has no GPU yet; gpu_close frees it, whatever has been done since. Fails: blinkLimit too
 * many ranks; blinkSystemError no kernels. */
int gpu_new(struct rank_state *self, struct gpu **out, struct blink_error *err);

/* Take a GPU and memory on it, and map the peers' memory: called by every rank of a communicator. The GPU is that of
 * self->parent, else the current context's, else BLINK_DEVICE_MAP's. */
int gpu_open(struct gpu *g, struct blink_error *err);

/* How many blocks a call may have (g->blocks), once kernels are loaded: an exchange of all ranks, of whom the least
 * counts. A rank takes BLINK_BLOCKS, or a quarter of those that the communicators of this process have left of its GPU;
 * the ranks of a communicator share them. Fails: blinkLimit none is left. */
int gpu_share_blocks(struct gpu *g, struct blink_error *err);

/* forked: frees memory of the process alone. */
void gpu_close(struct gpu *g, bool forked);

/* cuda/measure.c. g->cost: an exchange of all ranks. */
int gpu_measure_costs(struct gpu *g, struct blink_error *err);

/* Make the GPU's context current in the calling thread, and allow calls that a capture elsewhere would forbid; leave
 * restores both. */
struct gpu_entry {
	CUcontext before;
	CUstreamCaptureMode mode;
};
int gpu_enter(struct gpu *g, struct gpu_entry *entry, struct blink_error *err);
void gpu_leave(struct gpu *g, const struct gpu_entry *entry);

/* cuda/store.c. What a process has on a device for all of its communicators there: g->stream, and memory that is taken
 * and given back while kernels run, which waits for none of them. The context is current; entered: so it is. */
int gpu_store_open(struct gpu *g, struct blink_error *err);
void gpu_store_close(struct gpu *g, bool entered);

/* Memory of the GPU, for its own kernels and for copies, aligned to 256 bytes. gpu_give: nothing that uses it is under
 * way. A driver without pools (before CUDA 11.2) may wait in both. Fails: blinkOutOfMemory, blinkSystemError. */
int gpu_take(struct gpu *g, size_t bytes, CUdeviceptr *out, struct blink_error *err);
int gpu_give(struct gpu *g, CUdeviceptr memory, struct blink_error *err);

/* Memory of the host that all GPUs have mapped, at the same address, aligned to 256 bytes. What is given back is kept
 * for others. must: there is some, for which it may wait where the process has much already; else *out stays then. */
int gpu_take_host(struct gpu *g, size_t bytes, bool must, void **out, struct blink_error *err);
void gpu_give_host(struct gpu *g, void *memory);

/* As `struct backend` has them; of: a struct gpu. */
int gpu_memory_open(void *of, struct memory *m, struct blink_error *err);
int gpu_memory_close(void *of, struct memory *m, bool forked, struct blink_error *err);
int gpu_copy(void *of, void *to, const void *from, size_t bytes, struct blink_error *err);

/* cuda/launch.c. Starts what belongs to calls: tables, the thread that watches them. */
int gpu_launches_open(struct gpu *g, struct blink_error *err);
void gpu_launches_close(struct gpu *g, bool forked);

/* Put a call into a stream of the caller: returns when it is in the stream, or in the graph that the stream captures.
 * Takes the call, whatever it returns. of: a struct gpu. */
int gpu_submit(void *of, struct call *call, blinkStream_t stream, struct blink_error *err);

/* A kernel of a module of kernels.h. */
extern const char *const gpu_ops[];	/* "sum" and so on: of a reduction, which == op */
int gpu_function(const struct gpu *g, const char *module, int which, CUfunction *out, struct blink_error *err);

#endif
