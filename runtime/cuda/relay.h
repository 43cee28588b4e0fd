/* Relay: carries what the GPU of a rank publishes to ranks on other servers, and brings theirs. */
#ifndef BLINK_CUDA_RELAY_H
#define BLINK_CUDA_RELAY_H

#include "cuda/gpu.h"

/* Memory of the host for one direction of a pair, the same on both servers: one is the publisher's and one the
 * reader's. Two halves of rings follow, and the slots of messages. */
struct gpu_remote {
	struct gpu_flag ready[GPU_FLAGS];
	uint64_t done[GPU_FLAGS];
	struct gpu_letter letter[2 * GPU_FLAGS];	/* the publisher's alone */
	struct gpu_channel channel[GPU_CHANNELS];
	_Alignas(128) char ring[];
};

/* The pair (publisher, reader), on two servers, and the channels of its messages: this rank's end. */
void gpu_remote_pair(const struct gpu *g, int publisher, int reader, struct gpu_pair *out);
void gpu_remote_channels(const struct gpu *g, int publisher, int reader, struct gpu_channels *out);

/* Memory for all ranks on other servers, zeroed; nothing where there are none. The context is current. */
int gpu_relay_open(struct gpu *g, struct blink_error *err);

/* The thread. Once calls can be made. */
int gpu_relay_start(struct gpu *g, struct blink_error *err);

/* Calls of that many strips of a pair are about to be launched. */
void gpu_relay_expect(struct gpu *g, int64_t strips);

/* There is work for the thread: the lock of launches is held. */
void gpu_relay_wake(struct gpu *g);

/* After the last call: hand to the net what is left of it; no thread sends then. Before the net closes. */
void gpu_relay_end(struct gpu *g);

/* After the net has closed. forked: frees memory of the process alone. */
void gpu_relay_close(struct gpu *g, bool forked);

/* Events of the net; the context is a struct gpu. */
void *gpu_relay_place(void *gpu, int from, const struct net_message *m);
void gpu_relay_arrived(void *gpu, int from, const struct net_message *m);
void gpu_relay_broken(void *gpu, int peer, const char *reason);
void gpu_relay_short_of(void *gpu, int error);

#endif
