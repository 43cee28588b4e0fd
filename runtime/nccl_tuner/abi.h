/* What NCCL and a tuner plugin agree on: versions 2 to 6 of the interface, of NCCL 2.21 to 2.30. Names are ours, types
 * and orders are NCCL's. NCCL looks for the newest object ncclTunerPlugin_vN that it knows.
 *
 *     version  since   what is new
 *     2        2.21    names an algorithm and a protocol
 *     3        2.22    a table of costs instead
 *     4        2.24    whether buffers can be registered
 *     5        2.28    a communicator's id; NCCL's constants; context first */
#ifndef BLINK_NCCL_TUNER_ABI_H
#define BLINK_NCCL_TUNER_ABI_H

#include <stddef.h>
#include <stdint.h>

enum { NCCL_SUCCESS = 0, NCCL_SYSTEM_ERROR = 2, NCCL_INVALID_ARGUMENT = 4 };	/* results, as int */

/* name, number, collective of ours */
#define NCCL_FUNC_LIST(X)                                                      \
	X(NCCL_BROADCAST, 0, BROADCAST)                                        \
	X(NCCL_REDUCE, 1, REDUCE)                                              \
	X(NCCL_ALLGATHER, 2, ALLGATHER)                                        \
	X(NCCL_REDUCESCATTER, 3, REDUCESCATTER)                                \
	X(NCCL_ALLREDUCE, 4, ALLREDUCE)

enum {
#define X(name, number, coll) name = number,
	NCCL_FUNC_LIST(X)
#undef X
	N_NCCL_FUNCS
};

enum { NCCL_ALGO_RING = 1, NCCL_PROTO_SIMPLE = 2, N_NCCL_PROTOS = 3 };
enum { NCCL_LOG_WARN = 2, NCCL_LOG_INFO = 3 };		/* levels */
enum { NCCL_SUBSYS_TUNING = 0x40 };

typedef void (*NcclLog)(int level, unsigned long subsystems, const char *file, int line, const char *format, ...);

/* Costs in µs: [algorithm][protocol] in one block; below 0: not to be used. */
typedef float **NcclCosts;

typedef struct {
	const char *name;
	int (*init)(size_t n_ranks, size_t n_servers, NcclLog log, void **context);
	int (*choose)(void *context, int func, size_t bytes, int collnet, int nvls, int ops, int *algo, int *proto,
	    int *channels);
	int (*destroy)(void *context);
} NcclTunerV2;

typedef struct {
	const char *name;
	int (*init)(size_t n_ranks, size_t n_servers, NcclLog log, void **context);
	int (*choose)(void *context, int func, size_t bytes, int ops, NcclCosts costs, int n_algos, int n_protos,
	    int *channels);
	int (*destroy)(void *context);
} NcclTunerV3;

typedef struct {
	const char *name;
	int (*init)(size_t n_ranks, size_t n_servers, NcclLog log, void **context);
	int (*choose)(void *context, int func, size_t bytes, int ops, NcclCosts costs, int n_algos, int n_protos,
	    int registered, int *channels);
	int (*destroy)(void *context);
} NcclTunerV4;

/* constants: begins with the µs that a call takes at least, double[7][3] by algorithm and protocol. */
typedef struct {
	const char *name;
	int (*init)(void **context, uint64_t id, size_t n_ranks, size_t n_servers, NcclLog log, const void *domains,
	    const double *constants);
	int (*choose)(void *context, int func, size_t bytes, int ops, NcclCosts costs, int n_algos, int n_protos,
	    int registered, int *channels);
	int (*destroy)(void *context);
} NcclTunerV5;

typedef struct {
	NcclTunerV5 v5;
	int (*chunk)(void *context, int func, size_t bytes, int algo, int proto, int channels, size_t *chunk);
} NcclTunerV6;

#endif
