/* What each version of NCCL counts with. */
#ifndef BLINK_CHOICE_NCCL_CONSTANTS_H
#define BLINK_CHOICE_NCCL_CONSTANTS_H

#include "choice/nccl_kinds.h"

enum { N_STEPS = 23, N_SPEEDS = 24, N_SCALES = 3 };

enum { V_2_4_8, V_2_8_4, V_2_19_4, V_2_30_7 };

typedef double Costs[N_NCCL_ALGORITHMS][N_NCCL_PROTOCOLS];
typedef double Scales[N_SCALES];	/* one server, two, more */

/* Of a version. Rates in GB/s, latencies in us; what depends on GPUs has an entry for each generation. */
struct constants {
	double nvlink[N_NCCL_GPUS];
	int most_channels;
	const double *speed[N_NCCL_GPUS];	/* that channels may have, descending, ended by 0 */
	const double *net_speed[N_NCCL_GPUS];	/* likewise over servers */
	Costs base, hop[2], net;		/* hop: over NVLink, over anything else in a server */
	double ring_ll, ring_ll_one_way;	/* part of the bandwidth: allreduce, reduce, over servers; the others */
	double ll_most[N_NCCL_GPUS];		/* in one server */
	double ring_ll128[N_NCCL_GPUS];		/* of a channel; 0: by collective */
	Scales tree_ll128[N_NCCL_GPUS];		/* likewise */
	Scales tree[N_NCCL_GPUS];		/* of a channel */
	double net_tree_ll128;			/* part of the bandwidth of trees, over servers */
	double net_ll_hop;			/* over servers: time of a hop with LL, by that of one in a server */
	int net_hops;				/* of a ring's allreduce over servers, beside 2 for each but one */
	double alone_ll128, alone_tree;		/* where servers have one GPU: part of the bandwidth */
	bool alone_tree_hop;			/* and hops over the network are those of trees */
	bool net_delays;			/* over servers a post to the network counts, and a plugin's latency */
	bool ll128[N_NCCL_GPUS], ll128_through;	/* which have LL128; also through a GPU */
	double correction[N_NCCL_PROTOCOLS][N_STEPS];	/* of trees, for powers of two from 64 bytes on */
};

/* Generations that a version does not know are as the last one that it knows. */
extern const struct constants nccl_constants[N_NCCL_VERSIONS];

#endif
