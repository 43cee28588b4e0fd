/* NCCL over several servers: their network cards, and its trees. Servers are of equal size: each has the same number
 * of GPUs of the job, and its k-th GPU stands for the k-th of every other. */
#ifndef BLINK_CHOICE_NCCL_SERVERS_H
#define BLINK_CHOICE_NCCL_SERVERS_H

#include "choice/nccl_model.h"
#include "plan/baseline.h"

typedef struct {
	int n, gpus;		/* servers, and GPUs of the job in each */
	int *rank;		/* of server s: rank[s * gpus ..], ascending; servers as their first ranks */
} NcclServers;

/* gpu[i] of n is rank i. *equal: all servers have as many GPUs; else *out is not filled. */
Status nccl_servers(Ctx *ctx, const Topology *machine, const int *gpu, int n, NcclServers *out, bool *equal);

/* The network cards next to the GPUs of the first server, by PCIe switches alone, or where there are none all that it
 * has: *far. GPUs that have links to the network are their own cards. out->n is 0 where there are none.
 * Cost: that of topo_matrix. */
Status nccl_cards(Ctx *ctx, const Topology *machine, const int *gpu, const NcclServers *servers, NcclCards *out,
    bool *far);

/* NCCL's own rings, one for each of `heads` network cards: through all GPUs of a server in a chain, and on to the next
 * server. Chains begin at GPUs that are evenly apart, and go in the order of one of the rings.
 * topo: of the job, with the network and all else. rings: of the first server alone, whose ranks are the places of its
 * GPUs; none: the order of the ranks. *out: `heads` of them, of width 1; NULL: some hop has no links. */
Status nccl_server_rings(Ctx *ctx, const Topology *topo, const NcclServers *servers, const RingPacking *rings,
    int heads, Cycle **out);

/* And its trees: two binary ones over the servers for each of these cards, whose GPUs are in the network; behind each
 * the others of its server in the same chain. *out: of equal weights, without unit.
 * From: Sanders, Speck and Traeff 2009, as src/graph/trees.cc and connect.cc of NCCL have it. */
Status nccl_server_trees(Ctx *ctx, const Topology *topo, const NcclServers *servers, const RingPacking *rings,
    int heads, Packing **out);

#endif
