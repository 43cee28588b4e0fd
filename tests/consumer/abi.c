/* What programs were compiled with, on machines of 64 bits: sizes, places and numbers that libblink.so.0 keeps
 * (libblink(3), Compatibility). Structures are filled in by the library for the caller, so none may grow, either. */
#include <blink.h>

#define SAME(name, what, value) typedef char name[(what) == (value) ? 1 : -1]

#if defined __LP64__
SAME(error_size, sizeof(blinkError_t), 1024);
SAME(config_size, sizeof(blinkConfig_t), 48);	/* blinkCommCreate reads the first 16 bytes alone */
SAME(config_threads, offsetof(blinkConfig_t, threads), 8);
SAME(config_timeout, offsetof(blinkConfig_t, timeoutMs), 16);
SAME(config_schedules, offsetof(blinkConfig_t, schedules), 24);
SAME(config_gpu, offsetof(blinkConfig_t, gpu), 32);
SAME(config_backend, offsetof(blinkConfig_t, backend), 40);
SAME(id_size, sizeof(blinkUniqueId_t), 128);
SAME(schedule_size, sizeof(blinkScheduleInfo_t), 64);
SAME(schedule_ranks, offsetof(blinkScheduleInfo_t, nRanks), 4);
SAME(schedule_root, offsetof(blinkScheduleInfo_t, root), 8);
SAME(schedule_trees, offsetof(blinkScheduleInfo_t, nTrees), 12);
SAME(schedule_parts, offsetof(blinkScheduleInfo_t, nParts), 16);
SAME(schedule_collective, offsetof(blinkScheduleInfo_t, collectiveName), 24);
SAME(schedule_algorithm, offsetof(blinkScheduleInfo_t, algorithm), 32);
SAME(schedule_topology, offsetof(blinkScheduleInfo_t, topology), 40);
SAME(schedule_digest, offsetof(blinkScheduleInfo_t, digest), 48);
SAME(schedule_backend, offsetof(blinkScheduleInfo_t, backend), 56);
SAME(index_size, sizeof(blinkIndexInfo_t), 40);
SAME(index_schedules, offsetof(blinkIndexInfo_t, nSchedules), 4);
SAME(index_gpus, offsetof(blinkIndexInfo_t, gpus), 8);
SAME(index_topology, offsetof(blinkIndexInfo_t, topology), 16);
SAME(index_digest, offsetof(blinkIndexInfo_t, digest), 24);
SAME(index_directory, offsetof(blinkIndexInfo_t, directory), 32);
SAME(entry_size, sizeof(blinkIndexEntry_t), 32);
SAME(entry_rate, offsetof(blinkIndexEntry_t, rate), 8);
SAME(entry_bound, offsetof(blinkIndexEntry_t, bound), 16);
SAME(entry_trees, offsetof(blinkIndexEntry_t, nTrees), 24);
SAME(entry_depth, offsetof(blinkIndexEntry_t, depth), 28);
#endif

SAME(results,
    blinkInternalError == 1 && blinkInvalidArgument == 2 && blinkBadInput == 3 && blinkLimit == 4
	&& blinkInfeasible == 5 && blinkUnverified == 6 && blinkOutOfMemory == 7 && blinkSystemError == 8
	&& blinkRemoteError == 11 && blinkTimeout == 12 && blinkMismatch == 13 && blinkAborted == 14
	&& blinkInProgress == 15,
    1);
SAME(types,
    blinkInt8 == 0 && blinkUint8 == 1 && blinkInt32 == 2 && blinkUint32 == 3 && blinkInt64 == 4 && blinkUint64 == 5
	&& blinkFloat16 == 6 && blinkFloat32 == 7 && blinkFloat64 == 8 && blinkBfloat16 == 9 && blinkFloat8e4m3 == 10
	&& blinkFloat8e5m2 == 11,
    1);
SAME(operations, blinkSum == 0 && blinkProd == 1 && blinkMax == 2 && blinkMin == 3 && blinkAvg == 4, 1);
SAME(collectives,
    blinkCollBroadcast == 0 && blinkCollReduce == 1 && blinkCollAllReduce == 2 && blinkCollGather == 3
	&& blinkCollScatter == 4 && blinkCollAllGather == 5 && blinkCollReduceScatter == 6 && blinkCollAlltoAll == 7,
    1);

/* What functions take and return: another type does not compile. */
const char *(*const version)(void) = blinkVersion;
const char *(*const error_string)(blinkResult_t) = blinkGetErrorString;
size_t (*const type_size)(blinkDataType_t) = blinkTypeSize;
blinkResult_t (*const load)(const char *, blinkSchedule_t *, blinkError_t *) = blinkScheduleLoad;
blinkResult_t (*const load_data)(const char *, blinkSchedule_t *, blinkError_t *) = blinkScheduleLoadData;
blinkResult_t (*const parse)(
    const char *, const char *, size_t, blinkSchedule_t *, blinkError_t *) = blinkScheduleParse;
blinkResult_t (*const info)(blinkSchedule_t, blinkScheduleInfo_t *) = blinkScheduleGetInfo;
blinkResult_t (*const split)(blinkSchedule_t, size_t, blinkDataType_t, size_t *) = blinkScheduleSplit;
blinkResult_t (*const destroy)(blinkSchedule_t) = blinkScheduleDestroy;
blinkResult_t (*const index_load)(const char *, blinkIndex_t *, blinkError_t *) = blinkIndexLoad;
blinkResult_t (*const index_info)(blinkIndex_t, blinkIndexInfo_t *) = blinkIndexGetInfo;
blinkResult_t (*const index_without)(
    blinkIndex_t, const char *, blinkIndex_t *, blinkError_t *) = blinkIndexWithout;
blinkResult_t (*const index_find)(
    blinkIndex_t, const int *, int, blinkCollective_t, int, blinkSchedule_t *, blinkError_t *) = blinkIndexFind;
blinkResult_t (*const index_entry)(blinkIndex_t, const int *, int, blinkCollective_t, int, blinkIndexEntry_t *, int *,
    blinkError_t *) = blinkIndexGetEntry;
blinkResult_t (*const index_destroy)(blinkIndex_t) = blinkIndexDestroy;
blinkResult_t (*const comm_create)(
    blinkSchedule_t, const blinkConfig_t *, blinkComm_t *, blinkError_t *) = blinkCommCreate;
blinkResult_t (*const comm_destroy)(blinkComm_t) = blinkCommDestroy;
const char *(*const comm_error)(blinkComm_t) = blinkCommGetError;
blinkResult_t (*const mem_alloc)(blinkComm_t, int, size_t, void **) = blinkMemAlloc;
blinkResult_t (*const mem_free)(blinkComm_t, int, void *) = blinkMemFree;
blinkResult_t (*const copy_in)(blinkComm_t, int, void *, const void *, size_t) = blinkCopyIn;
blinkResult_t (*const copy_out)(blinkComm_t, int, void *, const void *, size_t) = blinkCopyOut;
blinkResult_t (*const run)(
    blinkComm_t, const void *const *, void *const *, size_t, blinkDataType_t, blinkRedOp_t) = blinkRun;
blinkResult_t (*const get_id)(blinkUniqueId_t *, blinkError_t *) = blinkGetUniqueId;
blinkResult_t (*const init_rank)(
    blinkComm_t *, int, const blinkUniqueId_t *, int, const blinkConfig_t *, blinkError_t *) = blinkCommInitRank;
blinkResult_t (*const count)(blinkComm_t, int *) = blinkCommCount;
blinkResult_t (*const user_rank)(blinkComm_t, int *) = blinkCommUserRank;
blinkResult_t (*const broadcast)(
    const void *, void *, size_t, blinkDataType_t, int, blinkComm_t, blinkStream_t) = blinkBroadcast;
blinkResult_t (*const reduce)(const void *, void *, size_t, blinkDataType_t, blinkRedOp_t, int, blinkComm_t,
    blinkStream_t) = blinkReduce;
blinkResult_t (*const all_reduce)(
    const void *, void *, size_t, blinkDataType_t, blinkRedOp_t, blinkComm_t, blinkStream_t) = blinkAllReduce;
blinkResult_t (*const gather)(
    const void *, void *, size_t, blinkDataType_t, int, blinkComm_t, blinkStream_t) = blinkGather;
blinkResult_t (*const scatter)(
    const void *, void *, size_t, blinkDataType_t, int, blinkComm_t, blinkStream_t) = blinkScatter;
blinkResult_t (*const all_gather)(
    const void *, void *, size_t, blinkDataType_t, blinkComm_t, blinkStream_t) = blinkAllGather;
blinkResult_t (*const reduce_scatter)(
    const void *, void *, size_t, blinkDataType_t, blinkRedOp_t, blinkComm_t, blinkStream_t) = blinkReduceScatter;
blinkResult_t (*const all_to_all)(
    const void *, void *, size_t, blinkDataType_t, blinkComm_t, blinkStream_t) = blinkAlltoAll;
blinkResult_t (*const all_to_allv)(const void *, const size_t *, const size_t *, void *, const size_t *, const size_t *,
    blinkDataType_t, blinkComm_t, blinkStream_t) = blinkAlltoAllv;
blinkResult_t (*const send)(const void *, size_t, blinkDataType_t, int, blinkComm_t, blinkStream_t) = blinkSend;
blinkResult_t (*const receive)(void *, size_t, blinkDataType_t, int, blinkComm_t, blinkStream_t) = blinkRecv;
blinkResult_t (*const group_start)(void) = blinkGroupStart;
blinkResult_t (*const group_end)(void) = blinkGroupEnd;
blinkResult_t (*const last_call)(blinkComm_t, uint64_t *) = blinkCommLastCall;
blinkResult_t (*const wait_call)(blinkComm_t, uint64_t) = blinkCommWait;
blinkResult_t (*const test_call)(blinkComm_t, uint64_t) = blinkCommTest;
blinkResult_t (*const probe)(blinkComm_t, int, size_t *) = blinkCommProbe;
blinkResult_t (*const abort_comm)(blinkComm_t) = blinkCommAbort;
blinkResult_t (*const async_error)(blinkComm_t, blinkError_t *) = blinkCommGetAsyncError;
blinkResult_t (*const choice)(blinkComm_t, blinkCollective_t, int, size_t, blinkChoice_t *) = blinkCommGetChoice;
blinkResult_t (*const split_comm)(
    blinkComm_t, int, int, blinkComm_t *, const blinkConfig_t *, blinkError_t *) = blinkCommSplit;
blinkResult_t (*const register_memory)(blinkComm_t, void *, size_t, void **) = blinkCommRegister;
blinkResult_t (*const deregister_memory)(blinkComm_t, void *) = blinkCommDeregister;
blinkResult_t (*const make_op)(blinkRedOp_t *, const void *, blinkDataType_t, blinkComm_t) = blinkRedOpCreatePreMulSum;
blinkResult_t (*const shrink)(blinkComm_t, const int *, int, blinkShrink_t, blinkComm_t *, const blinkConfig_t *,
    blinkError_t *) = blinkCommShrink;
blinkResult_t (*const grow)(blinkComm_t, int, const blinkUniqueId_t *, blinkComm_t *, const blinkConfig_t *,
    blinkError_t *) = blinkCommGrow;
blinkResult_t (*const make_late_op)(blinkRedOp_t *, const void *, blinkDataType_t,
    blinkComm_t) = blinkRedOpCreatePreMulSumDevice;
blinkResult_t (*const destroy_op)(blinkRedOp_t, blinkComm_t) = blinkRedOpDestroy;
