/* Rings of a schedule as a graph file of NCCL has them (NCCL_GRAPH_FILE): the files that write one together.
 *
 * NCCL numbers GPUs and NICs in each server, and each rank reads the file for the server that it runs on. A channel is
 * a ring's way through a server: NIC, GPUs in order, NIC; without NICs where there is one server. NCCL joins the ways
 * itself, in the order of servers, and gives each channel the one speed that the graph has.
 *
 * What NCCL 2.8 to 2.30 accept: numbers of GPUs that the server has, all GPUs of the job in each channel, and no more
 * than 16 channels, since NCCL doubles them and has room for 32. */
#ifndef BLINK_FORMAT_NCCL_GRAPH_H
#define BLINK_FORMAT_NCCL_GRAPH_H

#include "model/model.h"

enum { NCCL_GRAPH_CHANNELS = 16 };
enum { NCCL_GRAPH_UNIT = 1000000 };	/* bytes/s: speeds are whole multiples */

/* What lies between two GPUs, or a GPU and a NIC; the worst last. */
typedef enum { NCCL_NVL, NCCL_PIX, NCCL_PHB, NCCL_SYS } NcclPath;

/* Chains of a schedule that go round in one order. */
struct nccl_ring {
	const Edge **hop;	/* out of each rank */
	Frac *load;		/* of each rank's hop, as a part of M */
	int64_t rate;		/* of its busiest hop, MB/s, rounded down; at least 1 */
	int place;		/* in the order in which trees name rings */
	int copies;		/* channels */
};

/* A ring's way through a server. */
struct nccl_way {
	int *gpu;		/* numbers, in order */
	int in, out;		/* numbers of NICs; -1: one server */
};

typedef struct {
	int n_rings;
	struct nccl_ring *ring;
	struct nccl_way *way;	/* of each ring */
	int n_gpus;		/* of a server */
	NcclPath intra, inter;	/* the worst */
	bool both_ways;		/* one server, where each link of a hop has one as fast in the other direction */
	int n_channels;
	int64_t speed;		/* of a channel, MB/s */
	int64_t lost;		/* of the rates of all rings together, MB/s: what the channels do not carry */
} NcclGraph;

/* ---- graph_rings.c ---- */

/* The rings that the trees of a schedule are parts of, by descending rate. Fails: INFEASIBLE, where they are not parts
 * of rings. */
Status nccl_graph_rings(Ctx *ctx, const Schedule *sched, NcclGraph *out);

/* ---- graph_ways.c ---- */

/* out->way, through a server, and what follows from it. server: its id; NULL: for all, and the same through each.
 * Fails: INFEASIBLE, where NCCL has no way to say how rings go; USAGE no such server. */
Status nccl_graph_ways(Ctx *ctx, const Schedule *sched, const char *server, NcclGraph *out);

/* ---- graph_channels.c ---- */

/* Copies of each ring and the speed of all channels, so that together they lose as little as can be. */
void nccl_graph_channels(NcclGraph *graph);

#endif
