/* libblink: run collectives by schedules that blinkc made.  See libblink(3).
 *
 * A job of processes, one rank each (threads do as well):
 *
 *	blinkUniqueId_t id;
 *	blinkComm_t comm;
 *	if (rank == 0)
 *		blinkGetUniqueId(&id, NULL);			then give it to the others, as by MPI_Bcast
 *	blinkCommInitRank(&comm, nRanks, &id, rank, NULL, NULL);
 *	blinkAllReduce(send, recv, count, blinkFloat32, blinkSum, comm, NULL);
 *	blinkCommWait(comm, 0);
 *	blinkCommDestroy(comm);
 *
 * Or one process drives all ranks by one schedule:
 *
 *	blinkScheduleLoad("allreduce.json", &sched, NULL);
 *	blinkCommCreate(sched, NULL, &comm, NULL);
 *	blinkRun(comm, send, recv, count, blinkFloat32, blinkSum);	send[r], recv[r]: memory of rank r
 *	blinkCommDestroy(comm);
 *	blinkScheduleDestroy(sched);
 *
 * A schedule is a file made by `blinkc compile`, or a shared object compiled from what `blinkc compile --format cu`
 * wrote; an index names the schedules of a machine, and finds the one for the GPUs that a job got.
 *
 * Handles may be used by one thread at a time, but for an index; different communicators by different threads at once,
 * also where they share a schedule. blinkCommAbort and blinkCommGetAsyncError may be called by any thread. A
 * communicator belongs to the process that made it: a forked child may only destroy it. Any call needs at most 16 KiB
 * of stack, loading a shared object and what the CUDA driver does excepted. The library never ends the process, and
 * prints nothing unless BLINK_DEBUG asks it to. */
#ifndef BLINK_H
#define BLINK_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* Up to 8 the numbers are the exit codes of blinkc(1) and blink-perf(1) too. */
typedef enum {
	blinkSuccess = 0,
	blinkInternalError = 1,		/* a defect of the library */
	blinkInvalidArgument = 2,	/* an argument that the function does not accept */
	blinkBadInput = 3,		/* a schedule that is not well formed, or is of another version */
	blinkLimit = 4,			/* an input larger than the library accepts */
	blinkInfeasible = 5,		/* ranks of a schedule are not connected; an index has no such schedule */
	blinkUnverified = 6,		/* a schedule that does not do what its collective asks */
	blinkOutOfMemory = 7,
	blinkSystemError = 8,		/* a file, a thread, a device, a network or its driver failed */
	blinkRemoteError = 11,		/* another rank failed, ended or left: the text names it */
	blinkTimeout = 12,		/* another rank is late or stopped, or does not answer: the text names it */
	blinkMismatch = 13,		/* ranks called different collectives, counts, types, operations, or have
					 * different schedules */
	blinkAborted = 14,		/* blinkCommAbort was called, here or on the rank that the text names */
	blinkInProgress = 15		/* blinkCommTest: not done yet; blinkCommProbe: no message */
} blinkResult_t;

/* Types and operations have NCCL's numbers. */
typedef enum {
	blinkInt8 = 0,
	blinkUint8 = 1,
	blinkInt32 = 2,
	blinkUint32 = 3,
	blinkInt64 = 4,
	blinkUint64 = 5,
	blinkFloat16 = 6,
	blinkFloat32 = 7,
	blinkFloat64 = 8,
	blinkBfloat16 = 9,
	blinkFloat8e4m3 = 10,		/* OCP's E4M3, which has no infinities */
	blinkFloat8e5m2 = 11
} blinkDataType_t;

/* Integers wrap. Where an operand of min or max is NaN, so is the result. Types below 32 bits are added and multiplied
 * as float, and each result is rounded to the nearest value of the type, ties to even; those of 8 bits saturate.
 * Average: of floating-point types, each rank's value is multiplied by 1/n, rounded to float (to double for float64),
 * before the sum, as NCCL does; of integers, the sum is divided by n at the end, towards zero. */
typedef enum {
	blinkSum = 0,
	blinkProd = 1,
	blinkMax = 2,
	blinkMin = 3,
	blinkAvg = 4,
	blinkOpNext = 5		/* blinkRedOpCreatePreMulSum makes operations from this number on */
} blinkRedOp_t;

/* What the buffers of rank r hold, in elements; n ranks. A buffer of no elements may be NULL.
 *
 *			sends			receives		in place
 *	broadcast	count, root only	count			send == recv
 *	reduce		count			count, root only	send == recv
 *	allreduce	count			count			send == recv
 *	gather		count			n * count, root only	send == recv + r * count
 *	scatter		n * count, root only	count			recv == send + r * count
 *	allgather	count			n * count		send == recv + r * count
 *	reducescatter	n * count		count			recv == send + r * count
 *	alltoall	n * count		n * count		send == recv
 */
typedef enum {
	blinkCollBroadcast = 0,
	blinkCollReduce = 1,
	blinkCollAllReduce = 2,
	blinkCollGather = 3,
	blinkCollScatter = 4,
	blinkCollAllGather = 5,
	blinkCollReduceScatter = 6,
	blinkCollAlltoAll = 7
} blinkCollective_t;

typedef struct blinkSchedule *blinkSchedule_t;
typedef struct blinkComm *blinkComm_t;
typedef struct blinkIndex *blinkIndex_t;

typedef struct {
	char text[1024];		/* one line: where: what was found: what is allowed */
} blinkError_t;

/* All 0 is the default. `threads` is for blinkCommCreate, and what follows it for blinkCommInitRank. */
typedef struct {
	size_t chunkBytes;	/* bytes that a tree moves at a time; 0: chosen by the size of the message */
	int threads;		/* that move data where one process drives all ranks; 0: one for each CPU, at most one
				 * a stream */
	int64_t timeoutMs;	/* ms that a rank may wait for others, at init and in a call; 0: BLINK_TIMEOUT,
				 * 600000 */
	const char *schedules;	/* indexes and schedule files, separated by ':'; NULL: BLINK_SCHEDULES */
	const char *gpu;	/* id or number of this rank's GPU in the machine, or its PCI address, by which it is
				 * found; NULL: BLINK_GPU, else that of the communicator that this one is split off
				 * or shrunk from, else the rank's number */
	const char *backend;	/* where buffers are: "host" or "cuda", the same on all ranks; NULL: BLINK_BACKEND,
				 * else host. Of cuda the device is that of the thread's current context, else by
				 * BLINK_DEVICE_MAP, else the one with the rank's number on its server */
} blinkConfig_t;

enum { BLINK_UNIQUE_ID_BYTES = 128 };
typedef struct {
	char internal[BLINK_UNIQUE_ID_BYTES];	/* where the ranks meet, and a secret that lets them in */
} blinkUniqueId_t;

/* A stream of the backend: a CUstream or cudaStream_t, of the device's primary context. On the host NULL: calls are
 * done in order, one after the other. */
typedef void *blinkStream_t;

/* Text is valid as long as the schedule. */
typedef struct {
	blinkCollective_t collective;
	int nRanks;
	int root;			/* -1: the collective has none */
	int nTrees;
	int nParts;			/* parts of a message that run over links of their own; 1 in most schedules */
	const char *collectiveName;	/* "allreduce" */
	const char *algorithm;		/* "trees" */
	const char *topology;		/* name of the machine that the schedule is for */
	const char *digest;		/* "sha256:" and 64 hex digits, of the schedule's JSON */
	const char *backend;		/* "host" or "cuda" */
} blinkScheduleInfo_t;

/* Text is valid as long as the index. */
typedef struct {
	int nGpus;			/* of the machine */
	int nSchedules;			/* jobs that it has a schedule for */
	const char *const *gpus;	/* ids of the GPUs, by their number */
	const char *topology;		/* name of the machine */
	const char *digest;		/* "sha256:" and 64 hex digits, of its topology */
	const char *directory;		/* where the files that it names are */
} blinkIndexInfo_t;

/* Text is valid as long as the index. */
typedef struct {
	const char *file;		/* relative to the directory of the index */
	double rate, bound;	/* GB/s = 1e9 bytes/s of algorithm bandwidth: achieved, and proven bound */
	int nTrees, depth;
} blinkIndexEntry_t;

const char *blinkVersion(void);		/* "0.1.0" */
const char *blinkGetErrorString(blinkResult_t result);
size_t blinkTypeSize(blinkDataType_t type);	/* bytes of an element; 0: no such type */

/* Load a schedule file or a shared object, distinguished by the first bytes. A file is checked and verified
 * before it is used. A shared object is code: load none that you would not run.
 * On failure *sched is unchanged, and *error, unless it is NULL, has the reason. */
blinkResult_t blinkScheduleLoad(const char *path, blinkSchedule_t *sched, blinkError_t *error);

/* The same of a schedule file alone: a shared object is refused, and no code is loaded. For files of others. */
blinkResult_t blinkScheduleLoadData(const char *path, blinkSchedule_t *sched, blinkError_t *error);

/* The same from the text of a schedule file in memory. name: what messages call it. */
blinkResult_t blinkScheduleParse(const char *name, const char *json, size_t size, blinkSchedule_t *sched,
    blinkError_t *error);
blinkResult_t blinkScheduleGetInfo(blinkSchedule_t sched, blinkScheduleInfo_t *info);

/* Of a block of `count` elements, how many each part moves: elements[nParts]. They depend on the size of the message: a
 * part that takes time to set up carries none of a small message. */
blinkResult_t blinkScheduleSplit(blinkSchedule_t sched, size_t count, blinkDataType_t type, size_t *elements);

/* Its communicators must be destroyed before. NULL is allowed. */
blinkResult_t blinkScheduleDestroy(blinkSchedule_t sched);

/* The index of the schedules of a machine, which `blinkc batch` writes: the file, or the directory that holds it as
 * index.json. Once loaded it does not change, and any number of threads may use it. */
blinkResult_t blinkIndexLoad(const char *path, blinkIndex_t *index, blinkError_t *error);
blinkResult_t blinkIndexGetInfo(blinkIndex_t index, blinkIndexInfo_t *info);

/* The index for what is left of the machine when it has lost a link, GPU, NIC or switch, which `blinkc batch
 * --failures 1` writes. lost: what, as blinkc-what-if(1) has it for --without: "gpu3-gpu5", "gpu3-gpu5:1" or "mlx5_2";
 * or the digest of the topology of what is left. GPUs keep their numbers, and jobs are found as in any index; its info
 * has the digest of what is left. blinkInfeasible: there is none. *left is an index of its own, to be destroyed by
 * itself. */
blinkResult_t blinkIndexWithout(blinkIndex_t index, const char *lost, blinkIndex_t *left, blinkError_t *error);

/* The schedule for a job over these GPUs of the machine, by their numbers, in any order: gpus[i] is rank i of the job
 * and of *sched. A job that the index does not list is found, if the index has the machine, by one that is
 * isomorphic. root: a rank of the job; ignored unless the collective has one. Its file is loaded as by
 * blinkScheduleLoad; that it is a shared object is an error. blinkInfeasible: the index has none for this job. *sched
 * may outlive the index. */
blinkResult_t blinkIndexFind(blinkIndex_t index, const int *gpus, int nGpus, blinkCollective_t collective, int root,
    blinkSchedule_t *sched, blinkError_t *error);

/* The entry of the index for that schedule. Its file is not read, unless the index lists no such job and finds one that
 * is isomorphic. ranks[nGpus], unless it is NULL: rank i of the job is
 * rank ranks[i] in the file. */
blinkResult_t blinkIndexGetEntry(blinkIndex_t index, const int *gpus, int nGpus, blinkCollective_t collective, int root,
    blinkIndexEntry_t *entry, int *ranks, blinkError_t *error);
blinkResult_t blinkIndexDestroy(blinkIndex_t index);	/* NULL is allowed */

/* A communicator of which this process drives all ranks, by this schedule, with blinkRun alone. config: NULL is all
 * 0. */
blinkResult_t blinkCommCreate(blinkSchedule_t sched, const blinkConfig_t *config, blinkComm_t *comm,
    blinkError_t *error);
/* NULL is allowed. What the communicator has of threads, descriptors and memory ends with it; but where other ranks
 * have not left, or never came, the thread that made them meet ends with the last of them, or 10 s later. */
blinkResult_t blinkCommDestroy(blinkComm_t comm);

/* The error of the last failed call on the communicator; "" before any. Valid until this thread's next call: to be read
 * after the call that failed, not in the same list of arguments, whose order is not defined. */
const char *blinkCommGetError(blinkComm_t comm);

/* ---- a job of processes ---- */

/* A meeting place for the ranks of one communicator: this process listens for them, on an interface that
 * BLINK_SOCKET_IFNAME chooses, until all have come and left. For one blinkCommInitRank of each rank. */
blinkResult_t blinkGetUniqueId(blinkUniqueId_t *id, blinkError_t *error);

/* This rank's communicator, once all nRanks ranks have called it with the same id, each with its own rank. Ranks may be
 * processes on several servers, or threads of one process. Fails within the config's timeout: the text names the ranks
 * that have not come. config: NULL is all 0. */
blinkResult_t blinkCommInitRank(blinkComm_t *comm, int nRanks, const blinkUniqueId_t *id, int rank,
    const blinkConfig_t *config, blinkError_t *error);
blinkResult_t blinkCommCount(blinkComm_t comm, int *nRanks);
blinkResult_t blinkCommUserRank(blinkComm_t comm, int *rank);

/* The collectives of this rank, with NCCL's arguments: counts are of the smaller buffer (see blinkCollective_t). Each
 * call returns at once; its buffers belong to it until blinkCommWait. All ranks must make the same calls in the same
 * order: a rank that does not makes every rank fail with blinkMismatch or blinkTimeout. Buffers of no elements may be
 * NULL; on ranks that receive nothing `recv` is ignored, and likewise `send`. */
blinkResult_t blinkBroadcast(const void *send, void *recv, size_t count, blinkDataType_t type, int root,
    blinkComm_t comm, blinkStream_t stream);
blinkResult_t blinkReduce(const void *send, void *recv, size_t count, blinkDataType_t type, blinkRedOp_t op, int root,
    blinkComm_t comm, blinkStream_t stream);
blinkResult_t blinkAllReduce(const void *send, void *recv, size_t count, blinkDataType_t type, blinkRedOp_t op,
    blinkComm_t comm, blinkStream_t stream);
blinkResult_t blinkGather(const void *send, void *recv, size_t count, blinkDataType_t type, int root,
    blinkComm_t comm, blinkStream_t stream);
blinkResult_t blinkScatter(const void *send, void *recv, size_t count, blinkDataType_t type, int root,
    blinkComm_t comm, blinkStream_t stream);
blinkResult_t blinkAllGather(const void *send, void *recv, size_t count, blinkDataType_t type, blinkComm_t comm,
    blinkStream_t stream);
blinkResult_t blinkReduceScatter(const void *send, void *recv, size_t count, blinkDataType_t type, blinkRedOp_t op,
    blinkComm_t comm, blinkStream_t stream);
blinkResult_t blinkAlltoAll(const void *send, void *recv, size_t count, blinkDataType_t type, blinkComm_t comm,
    blinkStream_t stream);

/* An alltoall whose blocks differ in length. In elements: sendcounts[r] of them at send + sdispls[r] go to rank r, and
 * recvcounts[r] from rank r come to recv + rdispls[r]; the arrays have an entry for each rank, and are read at once.
 * What is received overlaps neither what is sent nor itself. Ranks may give other counts in each call, and 0. Where
 * rank i sends another number to j than j expects, all fail with blinkMismatch. By the paths of the schedules for
 * alltoall; on GPUs by messages, as blinkSend and blinkRecv in a group, which do not notice that one of two ranks has
 * 0. */
blinkResult_t blinkAlltoAllv(const void *send, const size_t sendcounts[], const size_t sdispls[], void *recv,
    const size_t recvcounts[], const size_t rdispls[], blinkDataType_t type, blinkComm_t comm, blinkStream_t stream);

/* To and from one rank. Messages from one rank to another arrive in order. Calls between blinkGroupStart and
 * blinkGroupEnd proceed together: exchanges in both directions belong into one group, and on GPUs into one stream. */
blinkResult_t blinkSend(const void *send, size_t count, blinkDataType_t type, int peer, blinkComm_t comm,
    blinkStream_t stream);
blinkResult_t blinkRecv(void *recv, size_t count, blinkDataType_t type, int peer, blinkComm_t comm,
    blinkStream_t stream);

/* Has `peer` sent a message, of one element or more, that no blinkRecv has been made for? *bytes: its length. Else, or
 * while calls are not done, blinkInProgress. Receives nothing. Not on GPUs: blinkInvalidArgument. */
blinkResult_t blinkCommProbe(blinkComm_t comm, int peer, size_t *bytes);

/* Calls of this thread in between, on any communicators, are started by blinkGroupEnd, which returns the first error of
 * all. If one of them has returned an error before, none is started. Groups nest; the outermost counts. */
blinkResult_t blinkGroupStart(void);
blinkResult_t blinkGroupEnd(void);

/* The number of the last call made on the communicator; calls count from 1. */
blinkResult_t blinkCommLastCall(blinkComm_t comm, uint64_t *call);

/* Wait until that call and all before it are done on this rank; 0: all calls made. Returns the communicator's error
 * if it has failed. Test: the same without waiting, blinkInProgress if they are not done. Both may be called by any
 * number of threads. */
blinkResult_t blinkCommWait(blinkComm_t comm, uint64_t call);
blinkResult_t blinkCommTest(blinkComm_t comm, uint64_t call);

/* End all calls, here and, as soon as they hear of it, on the other ranks: with blinkAborted. Afterwards the
 * communicator may only be destroyed, as after any failed call. From any thread. */
blinkResult_t blinkCommAbort(blinkComm_t comm);

/* blinkSuccess, or why the communicator has failed, with the text in *error unless that is NULL. From any thread. */
blinkResult_t blinkCommGetAsyncError(blinkComm_t comm, blinkError_t *error);

/* What a call would use. */
typedef struct {
	int builtIn;			/* 0: a schedule of BLINK_SCHEDULES; 1: one made for the ranks of the job */
	size_t fromBytes, toBytes;	/* the same for messages of that size, as blink-schedule(5) counts M */
	char text[256];			/* one line: "dgx1v/any.json: trees, 140 GB/s" */
} blinkChoice_t;

/* The schedule for a collective of `bytes` bytes, as blink-schedule(5) counts M: the same on all ranks. root: ignored
 * unless the collective has one. Fails as the call would. From any thread. */
blinkResult_t blinkCommGetChoice(blinkComm_t comm, blinkCollective_t collective, int root, size_t bytes,
    blinkChoice_t *choice);

/* A communicator of the ranks that give the same color, ordered by key and then by rank. color < 0: none for this rank,
 * *split is NULL. All ranks of comm must call it. config: as for blinkCommInitRank; NULL: as of comm. */
blinkResult_t blinkCommSplit(blinkComm_t comm, int color, int key, blinkComm_t *split, const blinkConfig_t *config,
    blinkError_t *error);

/* A communicator of the ranks of comm but those in excluded[nExcluded], in their order. All that are left call it, with
 * the same numbers, and no others; those that are left out need not be alive. Default: calls that are under way end
 * before. Abort: they are aborted (blinkCommAbort), as when a rank has died; comm may then only be shrunk or destroyed.
 * config: as for blinkCommInitRank; NULL: as of comm. */
typedef enum {
	blinkShrinkDefault = 0,
	blinkShrinkAbort = 1
} blinkShrink_t;
blinkResult_t blinkCommShrink(blinkComm_t comm, const int *excluded, int nExcluded, blinkShrink_t how,
    blinkComm_t *shrunk, const blinkConfig_t *config, blinkError_t *error);

/* A communicator of nRanks ranks: those of comm, with their numbers, and new ones, which join it by blinkCommInitRank
 * with nRanks, the id, and the numbers that follow. All ranks of comm call it. id: one that blinkGetUniqueId has made
 * for it; NULL on the other ranks. config: as for blinkCommInitRank; NULL: as of comm. */
blinkResult_t blinkCommGrow(blinkComm_t comm, int nRanks, const blinkUniqueId_t *id, blinkComm_t *grown,
    const blinkConfig_t *config, blinkError_t *error);

/* Let the peers on this server read memory of this rank in place, from any offset: calls whose buffers lie in it need
 * no copy on the way. All ranks call it, in the same order among themselves, each with memory of its own blinkMemAlloc
 * of any size, when no call is under way; other buffers go through rings of the library. At most 64 at a time.
 * Deregister: likewise; before blinkMemFree. On GPUs both check their arguments, and do no more yet. */
blinkResult_t blinkCommRegister(blinkComm_t comm, void *memory, size_t bytes, void **handle);
blinkResult_t blinkCommDeregister(blinkComm_t comm, void *handle);

/* An operation on `type`: each rank's value is multiplied by its *scalar, then all are summed. *scalar, in memory of
 * the host, is read at once. Device: it is in memory of the backend, as buffers are, and each call reads it when it is
 * executed, on GPUs in the order of its stream. */
blinkResult_t blinkRedOpCreatePreMulSum(blinkRedOp_t *op, const void *scalar, blinkDataType_t type, blinkComm_t comm);
blinkResult_t blinkRedOpCreatePreMulSumDevice(blinkRedOp_t *op, const void *scalar, blinkDataType_t type,
    blinkComm_t comm);
blinkResult_t blinkRedOpDestroy(blinkRedOp_t op, blinkComm_t comm);

/* ---- memory ---- */

/* Memory of a rank, on a GPU if its buffers are: page-aligned, not cleared. Not freed by blinkCommDestroy. Of a
 * communicator of blinkCommInitRank, the rank is its own, memory is freed with the communicator, and peers on its
 * server can map it (blinkCommRegister). */
blinkResult_t blinkMemAlloc(blinkComm_t comm, int rank, size_t bytes, void **memory);
blinkResult_t blinkMemFree(blinkComm_t comm, int rank, void *memory);
blinkResult_t blinkCopyIn(blinkComm_t comm, int rank, void *memory, const void *host, size_t bytes);
blinkResult_t blinkCopyOut(blinkComm_t comm, int rank, void *host, const void *memory, size_t bytes);

/* ---- one process drives all ranks ---- */

/* Run the collective: send[r] and recv[r] are the buffers of rank r (above), for all ranks. On the host backend they
 * may be any memory of the process. Returns when it is done. The same schedule, type, operation and
 * input give the same bits, whatever the chunk size, the threads or the backend (but for the bits of a NaN that a sum
 * or product makes). op: ignored unless the collective reduces. After a failure that is not blinkInvalidArgument, what
 * is in recv is undefined. */
blinkResult_t blinkRun(blinkComm_t comm, const void *const *send, void *const *recv, size_t count,
    blinkDataType_t type, blinkRedOp_t op);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
