/* Probe: which GPUs of an index's machine a job runs on, where its ranks know their GPUs by PCI address alone. Each
 * rank asks NVIDIA's driver what the NVLinks of its GPU lead to, and tells the others; then all find GPUs of a machine
 * that have the same NVLinks between them. Names, numbers and digests do not matter. */
#ifndef BLINK_PROBE_H
#define BLINK_PROBE_H

#include "model/model.h"

enum { CARD_PEERS = 18 };

/* A GPU by its PCI address, and the NVLinks to it. */
struct card_peer {
	uint32_t domain;
	uint8_t bus, device;
	uint8_t links;
};

static inline bool
card_peer_same(const struct card_peer *a, const struct card_peer *b)
{
	return a->domain == b->domain && a->bus == b->bus && a->device == b->device;
}

/* What a rank tells the others of its GPU; any bytes of it may come from them. All 0: the driver was not asked. */
struct gpu_card {
	uint8_t known;
	uint8_t number, shown;		/* its number among the GPUs that the driver shows, and how many these are */
	uint8_t to_switch;		/* NVLinks that are up and lead to switches */
	uint8_t n_peers;
	uint32_t mbytes;		/* MB/s of a link in one direction; 0: not known */
	struct card_peer self;
	struct card_peer peer[CARD_PEERS];	/* also those that are not of the job */
};

/* Is it a PCI address, as cudaDeviceGetPCIBusId prints it: "0000:3b:00.0"? */
bool probe_is_address(const char *text);

/* Ask NVIDIA's driver for the GPU with this address, in a thread of its own, as the driver takes much stack. It may
 * take some 100 ms. Fails: as gpus_see; BAD_INPUT it has no such GPU. Memory: run arena. */
Status probe_gpu(Ctx *ctx, const char *address, struct gpu_card *out);

/* Does NVLink join this GPU to each of others, all by their PCI addresses? As gpus_joined_nvml, in a thread of its own,
 * for some 100 ms. */
Status probe_joined(Ctx *ctx, const char *address, const char *const *peer, int n, bool *joined);

/* The GPU of the machine that each rank of a job has. card, server: of each rank; all are known. Every two on a server
 * have as many NVLinks between them as their GPUs of the machine, and each as many in all and to switches, of the same
 * rate to 12 %. Where several choices are alike, GPUs keep the numbers that the driver gives them, if it shows as many
 * as a server of the machine has; GPUs without NVLinks are found in no other way. Servers of the job are those of the
 * machine in order, each once. *found false: there are no such GPUs, or none were found within 10^5 steps a server;
 * gpu then has no meaning. The same on all ranks. Memory: scratch arena. Fails: NO_MEMORY. */
Status probe_match(Ctx *ctx, const Topology *machine, const struct gpu_card *card, const int *server, int n_ranks,
    int *gpu, bool *found);

/* NVLinks that a schedule's topology has and the job's GPUs have not: from a rank to another, or to switches (-1). */
struct probe_lack {
	int from, to, wanted, found;
};

/* The first of them; false: there is none. GPUs without a rate are passed over: it is not known how many links they
 * have. topo: of as many ranks as the job. card, server: as above. */
bool probe_lacks(const Topology *topo, const struct gpu_card *card, const int *server, struct probe_lack *out);

#endif
