/* What programs were compiled with, on machines of 64 bits: sizes, places and numbers that libblink.so.0 keeps
 * (libblink(3), Compatibility). Structures are filled in by the library for the caller, so none may grow, either. */
#include <blink.h>

#define SAME(name, what, value) typedef char name[(what) == (value) ? 1 : -1]

#if defined __LP64__
SAME(error_size, sizeof(blinkError_t), 1024);
SAME(config_size, sizeof(blinkConfig_t), 16);
SAME(config_threads, offsetof(blinkConfig_t, threads), 8);
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
	&& blinkInfeasible == 5 && blinkUnverified == 6 && blinkOutOfMemory == 7 && blinkSystemError == 8,
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
