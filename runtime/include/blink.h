/* libblink: run a collective by a schedule that blinkc made.  See libblink(3).
 *
 *	blinkSchedule_t sched;
 *	blinkComm_t comm;
 *	blinkScheduleLoad("allreduce.json", &sched, NULL);
 *	blinkCommCreate(sched, NULL, &comm, NULL);
 *	blinkRun(comm, send, recv, count, blinkFloat32, blinkSum);	send[r], recv[r]: memory of rank r
 *	blinkCommDestroy(comm);
 *	blinkScheduleDestroy(sched);
 *
 * One process drives all ranks. A schedule is a file made by `blinkc compile`, or a shared object compiled from what
 * `blinkc compile --format cu` wrote. A file, and an object compiled by a C compiler, run on the host backend: a rank
 * is a piece of memory of this process. An object compiled by nvcc runs on GPUs: rank r on device r % number of
 * devices.
 *
 * An index names the schedules of a machine, and finds the one for the GPUs that a job got: blinkIndexFind.
 *
 * Handles may be used by one thread at a time, but for an index; different communicators by different threads at once,
 * also where they share a schedule. A communicator belongs to the process that made it: a forked child may only destroy
 * it. Any call needs at most 16 KiB of stack, loading a shared object excepted. The library has no global state, prints
 * nothing and never ends the process. */
#ifndef BLINK_H
#define BLINK_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* The numbers are the exit codes of blinkc(1) and blink-perf(1) too. */
typedef enum {
	blinkSuccess = 0,
	blinkInternalError = 1,		/* a defect of the library */
	blinkInvalidArgument = 2,	/* an argument that the function does not accept */
	blinkBadInput = 3,		/* a schedule that is not well formed, or is of another version */
	blinkLimit = 4,			/* an input larger than the library accepts */
	blinkInfeasible = 5,		/* ranks of a schedule are not connected; an index has no such schedule */
	blinkUnverified = 6,		/* a schedule that does not do what its collective asks */
	blinkOutOfMemory = 7,
	blinkSystemError = 8		/* a file, a thread, a device or its driver failed */
} blinkResult_t;

/* Types and operations have NCCL's numbers. */
typedef enum {
	blinkInt8 = 0,
	blinkUint8 = 1,
	blinkInt32 = 2,
	blinkUint32 = 3,
	blinkInt64 = 4,
	blinkUint64 = 5,
	blinkFloat32 = 7,
	blinkFloat64 = 8
} blinkDataType_t;

/* Integers wrap. Where an operand of min or max is NaN, so is the result. */
typedef enum {
	blinkSum = 0,
	blinkProd = 1,
	blinkMax = 2,
	blinkMin = 3
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

typedef struct {
	size_t chunkBytes;	/* bytes that a tree moves at a time; 0: a sixteenth of its segment, 64 KiB .. 4 MiB */
	int threads;		/* that move data on the host backend; 0: one for each CPU, at most one a stream */
} blinkConfig_t;

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
 * --failures 1` writes. lost: what, as blinkc(1) has it for --without: "gpu3-gpu5", "gpu3-gpu5:1" or "mlx5_2"; or the
 * digest of the topology of what is left. GPUs keep their numbers, and jobs are found as in any index; its info has
 * the digest of what is left. blinkInfeasible: there is none. *left is an index of its own, to be destroyed by
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

/* A communicator over all ranks of the schedule: its threads, streams and scratch memory. config: NULL is all 0. */
blinkResult_t blinkCommCreate(blinkSchedule_t sched, const blinkConfig_t *config, blinkComm_t *comm,
    blinkError_t *error);
blinkResult_t blinkCommDestroy(blinkComm_t comm);	/* NULL is allowed */

/* The error of the last failed call on the communicator; "" before any. Valid until the next call on it. */
const char *blinkCommGetError(blinkComm_t comm);

/* Memory of a rank: page-aligned, not cleared. Not freed by blinkCommDestroy. */
blinkResult_t blinkMemAlloc(blinkComm_t comm, int rank, size_t bytes, void **memory);
blinkResult_t blinkMemFree(blinkComm_t comm, int rank, void *memory);
blinkResult_t blinkCopyIn(blinkComm_t comm, int rank, void *memory, const void *host, size_t bytes);
blinkResult_t blinkCopyOut(blinkComm_t comm, int rank, void *host, const void *memory, size_t bytes);

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
