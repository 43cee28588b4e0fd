/* What NCCL would choose, by version: algorithm, protocol and channels for a message, and the time that it expects.
 *
 * Pure arithmetic, of facts that NCCL publishes as source: src/graph/tuning.cc (latencies, bandwidths, corrections),
 * src/graph/search.cc, connect.cc and topo.h (speeds and number of channels), src/enqueue.cc (the choice, threads and
 * channels) of 2.8.4, 2.19.4 and 2.30.7; src/enqueue.cc, init.cc, transport/net.cc and misc/rings.cc of 2.4.8. One
 * server or several of equal size; ring and tree. Random: none. */
#ifndef BLINK_CHOICE_NCCL_MODEL_H
#define BLINK_CHOICE_NCCL_MODEL_H

#include "choice/nccl_kinds.h"
#include "model/model.h"

extern const char *const nccl_algorithm_name[N_NCCL_ALGORITHMS];
extern const char *const nccl_protocol_name[N_NCCL_PROTOCOLS];

extern const char *const nccl_version_name[N_NCCL_VERSIONS];

/* GB/s that a version counts for an NVLink of such GPUs. */
double nccl_nvlink_speed(int version, NcclGpu gpu);

/* The channels of a job, which rings and trees share. */
typedef struct {
	int channels;
	double speed;		/* GB/s of each */
	bool nvlink;		/* each hop in a server is over NVLink alone, or through an NVSwitch */
	bool through;		/* some hop leads over NVLink through another GPU of the job */
	bool same;		/* all channels have one order of the GPUs */
	/* Of several servers: */
	double tree_speed;	/* GB/s of each within a server, by trees */
	bool far;		/* network cards are behind a CPU of their GPUs */
} NcclGraph;

/* The channels that a version makes of rings that carry `total` GB/s over each hop, the narrowest hop `hop` GB/s:
 * out->channels and out->speed. switched: through NVSwitches. */
void nccl_channels(int version, NcclGpu gpu, double total, double hop, bool switched, NcclGraph *out);

/* Network cards of each of several servers. */
typedef struct {
	int n;			/* >= 1 */
	double speed;		/* GB/s of each, with the way to its GPUs */
	int gpus;		/* of the job in each server */
} NcclCards;

/* The same for several servers. total, hop: within a server; not looked at where a server has one GPU. */
void nccl_net_channels(int version, NcclGpu gpu, const NcclCards *cards, double total, double hop, NcclGraph *out);

typedef struct {
	NcclGpu gpu;
	int n_ranks;		/* >= 2 */
	NcclGraph graph;
	int n_servers;		/* 0: as 1 */
	NcclCpu cpu;
	double net_latency;	/* us, that a plugin states for its network; 0: NCCL's own network */
} NcclJob;

typedef struct {
	NcclAlgorithm algorithm;
	NcclProtocol protocol;
	int channels;		/* at most */
	double time;		/* us, that NCCL expects; 0: this version expects none */
} NcclChoice;

/* Has NCCL rings or trees for it: broadcast, reduce, allreduce, allgather, reducescatter. */
bool nccl_serves(Collective coll);

/* us that a version expects; below 0: it does not consider this. m: bytes, as blink-schedule(5) counts them. 2.4.8
 * expects none, and always answers -1. */
double nccl_expected_time(int version, const NcclJob *job, Collective coll, NcclAlgorithm algorithm,
    NcclProtocol protocol, int64_t m);

/* coll: nccl_serves. */
void nccl_choose(int version, const NcclJob *job, Collective coll, int64_t m, NcclChoice *out);

#endif
