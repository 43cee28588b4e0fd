/* What versions of NCCL tell apart. */
#ifndef BLINK_CHOICE_NCCL_KINDS_H
#define BLINK_CHOICE_NCCL_KINDS_H

#include "base/names.h"

#define NCCL_ALGORITHM_LIST(X) \
	X(NCCL_TREE, "tree") \
	X(NCCL_RING, "ring")

typedef enum { NCCL_ALGORITHM_LIST(ROW_NAME) N_NCCL_ALGORITHMS } NcclAlgorithm;

#define NCCL_PROTOCOL_LIST(X) \
	X(NCCL_LL, "LL") \
	X(NCCL_LL128, "LL128") \
	X(NCCL_SIMPLE, "Simple")

typedef enum { NCCL_PROTOCOL_LIST(ROW_NAME) N_NCCL_PROTOCOLS } NcclProtocol;

/* Generations of GPUs that the constants depend on. */
typedef enum { NCCL_PASCAL, NCCL_VOLTA, NCCL_AMPERE, NCCL_HOPPER, NCCL_BLACKWELL, N_NCCL_GPUS } NcclGpu;

/* The rows: 2.4.8 and so on, the oldest first. */
enum { N_NCCL_VERSIONS = 4 };

/* What the servers have: over the network the rate of LL and what a post takes depend on it. */
typedef enum { NCCL_INTEL, NCCL_AMD } NcclCpu;

#endif
