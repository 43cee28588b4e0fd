/* NCCL's interface, as far as programs and this library pass its types to each other. Nothing of NCCL is needed to
 * build; tests/nccl/signatures.c holds it against every nccl.h that is found (BLINK_REAL_NCCL_H). */
#ifndef BLINK_NCCL_H
#define BLINK_NCCL_H

#include <stddef.h>
#include <stdint.h>

#ifdef BLINK_REAL_NCCL_H
#include <nccl.h>
#else
typedef struct ncclComm *ncclComm_t;
typedef struct CUstream_st *cudaStream_t;
typedef struct { char internal[128]; } ncclUniqueId;

typedef enum {
	ncclSuccess = 0,
	ncclUnhandledCudaError = 1,
	ncclSystemError = 2,
	ncclInternalError = 3,
	ncclInvalidArgument = 4,
	ncclInvalidUsage = 5,
	ncclRemoteError = 6,
	ncclInProgress = 7,
	ncclTimeout = 8
} ncclResult_t;

typedef enum { ncclInt8 = 0, ncclUint8 = 1, ncclFloat32 = 7, ncclFloat8e5m2 = 11 } ncclDataType_t;
typedef enum { ncclSum = 0, ncclMax = 2, ncclAvg = 4, ncclMaxRedOp = 0x7fffffff } ncclRedOp_t;
typedef struct ncclWindow_vidmem *ncclWindow_t;
typedef enum { ncclScalarDevice = 0, ncclScalarHostImmediate = 1 } ncclScalarResidence_t;

/* Its first members are the same in every version; `size` says how many there are. INT_MIN: not given. */
typedef struct {
	size_t size;
	unsigned magic, version;
	int blocking;
} ncclConfig_t;
typedef struct ncclSimInfo ncclSimInfo_t;
typedef struct ncclCollConfig ncclCollConfig_t;
#endif

enum { NCCL_API_MAGIC_NUMBER = (int)0xcafebeef };

/* What this library does itself: name, parameters, arguments. A call inside of a real NCCL, or for a communicator that
 * this library does not know, is passed on.
 *
 * Collectives first: X(M, name, parameters, arguments, request), where a request is collective, send, recv, count,
 * type, operation, root, as calls.c has it. NCCL 2.32 has a second function of each, which takes a configuration as
 * well: it chooses among NCCL's algorithms, and has no effect on ours. */
#define NCCL_COLLECTIVES(X, M)                                                 \
	X(M, Reduce, (const void *send, void *recv, size_t count, ncclDataType_t type, ncclRedOp_t op, int root, \
	    ncclComm_t comm, cudaStream_t stream), (send, recv, count, type, op, root, comm, stream), \
	    blinkCollReduce, send, recv, count, type, op, root)                \
	X(M, Broadcast, (const void *send, void *recv, size_t count, ncclDataType_t type, int root, \
	    ncclComm_t comm, cudaStream_t stream), (send, recv, count, type, root, comm, stream), \
	    blinkCollBroadcast, send, recv, count, type, ncclSum, root)        \
	X(M, AllReduce, (const void *send, void *recv, size_t count, ncclDataType_t type, ncclRedOp_t op, \
	    ncclComm_t comm, cudaStream_t stream), (send, recv, count, type, op, comm, stream), \
	    blinkCollAllReduce, send, recv, count, type, op, 0)                \
	X(M, ReduceScatter, (const void *send, void *recv, size_t count, ncclDataType_t type, ncclRedOp_t op, \
	    ncclComm_t comm, cudaStream_t stream), (send, recv, count, type, op, comm, stream), \
	    blinkCollReduceScatter, send, recv, count, type, op, 0)            \
	X(M, AllGather, (const void *send, void *recv, size_t count, ncclDataType_t type, ncclComm_t comm, \
	    cudaStream_t stream), (send, recv, count, type, comm, stream),     \
	    blinkCollAllGather, send, recv, count, type, ncclSum, 0)           \
	X(M, AlltoAll, (const void *send, void *recv, size_t count, ncclDataType_t type, ncclComm_t comm, \
	    cudaStream_t stream), (send, recv, count, type, comm, stream),     \
	    blinkCollAlltoAll, send, recv, count, type, ncclSum, 0)            \
	X(M, Gather, (const void *send, void *recv, size_t count, ncclDataType_t type, int root, \
	    ncclComm_t comm, cudaStream_t stream), (send, recv, count, type, root, comm, stream), \
	    blinkCollGather, send, recv, count, type, ncclSum, root)           \
	X(M, Scatter, (const void *send, void *recv, size_t count, ncclDataType_t type, int root, \
	    ncclComm_t comm, cudaStream_t stream), (send, recv, count, type, root, comm, stream), \
	    blinkCollScatter, send, recv, count, type, ncclSum, root)

#define NCCL_PLAIN(M, ...) M(__VA_ARGS__)
#define NCCL_UNPACKED(...) __VA_ARGS__
#define NCCL_WITH_CONFIG(M, name, parameters, arguments, ...)                  \
	M(name##Config, (NCCL_UNPACKED parameters, const ncclCollConfig_t *config), (NCCL_UNPACKED arguments, config), \
	    __VA_ARGS__)

/* X(name, parameters, arguments, request) */
#define NCCL_COLLECTIVE_LIST(X)                                                \
	NCCL_COLLECTIVES(NCCL_PLAIN, X)                                        \
	X(Bcast, (void *data, size_t count, ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream), \
	    (data, count, type, root, comm, stream), blinkCollBroadcast, data, data, count, type, ncclSum, root)
#define NCCL_CONFIG_LIST(X) NCCL_COLLECTIVES(NCCL_WITH_CONFIG, X)

/* What a real NCCL does alone where there is one: X(name, parameters, arguments). The latter of NCCL 2.30. */
#define NCCL_ALONE_LIST(X)                                                     \
	X(CommCount, (ncclComm_t comm, int *n), (comm, n))                     \
	X(CommCuDevice, (ncclComm_t comm, int *device), (comm, device))        \
	X(CommUserRank, (ncclComm_t comm, int *rank), (comm, rank))            \
	X(CommRegister, (ncclComm_t comm, void *memory, size_t bytes, void **handle), \
	    (comm, memory, bytes, handle))                                     \
	X(CommDeregister, (ncclComm_t comm, void *handle), (comm, handle))     \
	X(CommWindowRegister, (ncclComm_t comm, void *memory, size_t bytes, ncclWindow_t *window, int flags), \
	    (comm, memory, bytes, window, flags))                              \
	X(CommWindowDeregister, (ncclComm_t comm, ncclWindow_t window), (comm, window)) \
	X(MemAlloc, (void **memory, size_t bytes), (memory, bytes))            \
	X(MemFree, (void *memory), (memory))
#define NCCL_LATER_LIST(X)                                                     \
	X(CommGetUniqueId, (ncclComm_t comm, ncclUniqueId *id), (comm, id))    \
	X(CommGrow, (ncclComm_t comm, int n, const ncclUniqueId *id, int rank, ncclComm_t *out, ncclConfig_t *config), \
	    (comm, n, id, rank, out, config))                                  \
	X(WinGetUserPtr, (ncclComm_t comm, ncclWindow_t window, void **memory), (comm, window, memory))

/* The rest. */
#define NCCL_BESIDE_LIST(X)                                                    \
	X(GetVersion, (int *version), (version))                               \
	X(GetUniqueId, (ncclUniqueId *id), (id))                               \
	X(CommInitRank, (ncclComm_t *comm, int n, ncclUniqueId id, int rank), (comm, n, id, rank)) \
	X(CommInitAll, (ncclComm_t *comms, int n, const int *devices), (comms, n, devices)) \
	X(CommInitRankConfig, (ncclComm_t *comm, int n, ncclUniqueId id, int rank, ncclConfig_t *config), \
	    (comm, n, id, rank, config))                                       \
	X(CommInitRankScalable,                                                \
	    (ncclComm_t *comm, int n, int rank, int n_ids, ncclUniqueId *ids, ncclConfig_t *config), \
	    (comm, n, rank, n_ids, ids, config))                               \
	X(CommFinalize, (ncclComm_t comm), (comm))                             \
	X(CommDestroy, (ncclComm_t comm), (comm))                              \
	X(CommAbort, (ncclComm_t comm), (comm))                                \
	X(CommRevoke, (ncclComm_t comm, int flags), (comm, flags))             \
	X(CommSplit, (ncclComm_t comm, int color, int key, ncclComm_t *out, ncclConfig_t *config), \
	    (comm, color, key, out, config))                                   \
	X(CommShrink, (ncclComm_t comm, int *excluded, int n, ncclComm_t *out, ncclConfig_t *config, int flags), \
	    (comm, excluded, n, out, config, flags))                           \
	X(CommGetAsyncError, (ncclComm_t comm, ncclResult_t *result), (comm, result)) \
	X(RedOpCreatePreMulSum,                                                \
	    (ncclRedOp_t *op, void *scalar, ncclDataType_t type, ncclScalarResidence_t where, ncclComm_t comm), \
	    (op, scalar, type, where, comm))                                   \
	X(RedOpDestroy, (ncclRedOp_t op, ncclComm_t comm), (op, comm))         \
	X(Send, (const void *send, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, \
	    cudaStream_t stream), (send, count, type, peer, comm, stream))     \
	X(Recv, (void *recv, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, \
	    cudaStream_t stream), (recv, count, type, peer, comm, stream))     \
	X(GroupStart, (void), ())                                              \
	X(GroupEnd, (void), ())                                                \
	X(GroupSimulateEnd, (ncclSimInfo_t *info), (info))

/* What NCCL has had since 2.28. */
#define NCCL_SERVED_LIST(X) NCCL_BESIDE_LIST(X) NCCL_COLLECTIVE_LIST(X) NCCL_ALONE_LIST(X)

/* Functions that return text. */
#define NCCL_TEXT_LIST(X)                                                      \
	X(GetErrorString, (ncclResult_t result), (result))                     \
	X(GetLastError, (ncclComm_t comm), (comm))

/* What only a real NCCL does: calls go to it whatever their parameters are, and fail with ncclInvalidUsage where there
 * is none. */
#define NCCL_PASSED_LIST(X)                                                    \
	X(ResetDebugInit)                                                      \
	X(ResetDebugInitInternal)                                              \
	X(DevCommCreate)                                                       \
	X(DevCommDestroy)                                                      \
	X(TeamWorld)                                                           \
	X(TeamLsa)                                                             \
	X(TeamRail)                                                            \
	X(TeamRankToWorld)                                                     \
	X(TeamRankToLsa)                                                       \
	X(LsaBarrierCreateRequirement)                                         \
	X(GinBarrierCreateRequirement)                                         \
	X(LLA2ACalcSlots)                                                      \
	X(LLA2ACreateRequirement)                                              \
	X(CommSuspend)                                                         \
	X(CommResume)                                                          \
	X(CommMemStats)                                                        \
	X(CommQueryProperties)                                                 \
	X(PutSignal)                                                           \
	X(Signal)                                                              \
	X(WaitSignal)                                                          \
	X(GetLsaDevicePointer)                                                 \
	X(GetLsaMultimemDevicePointer)                                         \
	X(GetMultimemDevicePointer)                                            \
	X(GetPeerDevicePointer)                                                \
	X(GinInboxA2ACreateRequirement)                                        \
	X(GinOutboxCreateRequirement)                                          \
	X(ParamBind)                                                           \
	X(ParamDumpAll)                                                        \
	X(ParamGet)                                                            \
	X(ParamGetAllParameterKeys)                                            \
	X(ParamGetI8)                                                          \
	X(ParamGetI16)                                                         \
	X(ParamGetI32)                                                         \
	X(ParamGetI64)                                                         \
	X(ParamGetParameter)                                                   \
	X(ParamGetStr)                                                         \
	X(ParamGetU8)                                                          \
	X(ParamGetU16)                                                         \
	X(ParamGetU32)                                                         \
	X(ParamGetU64)                                                         \
	X(TeamCft)                                                             \
	X(TeamCftMultimem)                                                     \
	X(GetCftDeviceLeInfo)                                                  \
	X(GetMultimemDeviceLeInfo)                                             \
	X(GetPeerDeviceLeInfo)                                                 \
	X(SetEncryption)

#endif
