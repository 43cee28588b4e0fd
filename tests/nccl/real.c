/* A library in the place of NCCL's, for tests of libblink-nccl.so beside it: ranks are threads of one process, buffers
 * are of the host, those of a broadcast also of GPUs. It is as NCCL is where that matters: handles have its mark,
 * functions call each other by their exported names, handles of others are refused. What it is called is counted:
 * fake_nccl_calls. */
#include "nccl/nccl.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC 0x0280028002800280ull
enum { RANKS = 16, JOBS = 64, NAMES = 256 };

struct job {
	char id[128];
	int n, here;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	int waiting;
	uint64_t turn;
	const void *send[RANKS];
	void *recv[RANKS];
	int color[RANKS], key[RANKS];
};

struct ncclComm {
	uint64_t magic;
	struct job *job;
	int rank;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct job jobs[JOBS];
static int n_jobs;
static struct { const char *name; int calls; } counted[NAMES];
static __thread int depth;

#define EXPORT __attribute__((visibility("default")))
EXPORT int fake_nccl_calls(const char *name);
#define DECLARE(name, parameters, ...)                                         \
	EXPORT ncclResult_t nccl##name parameters;                             \
	EXPORT ncclResult_t pnccl##name parameters;
NCCL_SERVED_LIST(DECLARE)

static void
count(const char *name)
{
	int i = 0;
	pthread_mutex_lock(&lock);
	while (i < NAMES - 1 && counted[i].name && strcmp(counted[i].name, name) != 0)
		i++;
	counted[i].name = name;
	counted[i].calls++;
	pthread_mutex_unlock(&lock);
}

int
fake_nccl_calls(const char *name)
{
	int calls = 0;
	pthread_mutex_lock(&lock);
	for (int i = 0; i < NAMES && counted[i].name; i++)
		if (strcmp(counted[i].name, name) == 0)
			calls = counted[i].calls;
	pthread_mutex_unlock(&lock);
	return calls;
}

#define CHECK(comm)                                                            \
	do {                                                                   \
		if (!(comm) || (comm)->magic != MAGIC)                         \
			return ncclInvalidArgument;                            \
	} while (0)

/* All ranks of a job meet. */
static void
meet(struct job *j)
{
	pthread_mutex_lock(&j->lock);
	uint64_t turn = j->turn;
	if (++j->waiting == j->n) {
		j->waiting = 0;
		j->turn++;
		pthread_cond_broadcast(&j->changed);
	}
	while (j->turn == turn)
		pthread_cond_wait(&j->changed, &j->lock);
	pthread_mutex_unlock(&j->lock);
}

static struct job *
find_job(const char *id, int n)
{
	pthread_mutex_lock(&lock);
	int i = 0;
	while (i < n_jobs && memcmp(jobs[i].id, id, 128) != 0)
		i++;
	if (i == n_jobs && n_jobs < JOBS) {
		n_jobs++;
		memcpy(jobs[i].id, id, 128);
		jobs[i].n = n;
		pthread_mutex_init(&jobs[i].lock, NULL);
		pthread_cond_init(&jobs[i].changed, NULL);
	}
	pthread_mutex_unlock(&lock);
	return i < JOBS ? &jobs[i] : NULL;
}

/* ---- the functions; NCCL's own calls go through its exported names ---- */

ncclResult_t
ncclGetVersion(int *version)
{
	*version = 22705;
	return ncclSuccess;
}

ncclResult_t
ncclGetUniqueId(ncclUniqueId *id)
{
	static int made;
	count("GetUniqueId");
	memset(id, 0, sizeof *id);
	snprintf(id->internal, sizeof id->internal, "real %d", __atomic_add_fetch(&made, 1, __ATOMIC_RELAXED));
	return ncclSuccess;
}

ncclResult_t
ncclCommInitRankConfig(ncclComm_t *comm, int n, ncclUniqueId id, int rank, ncclConfig_t *config)
{
	int version;
	void *memory;
	ncclUniqueId unused;
	(void)config;
	count("CommInitRankConfig");
	struct job *j = n >= 1 && n <= RANKS && rank >= 0 && rank < n ? find_job(id.internal, n) : NULL;
	if (!j || !(*comm = malloc(sizeof **comm)))
		return ncclInvalidArgument;
	**comm = (struct ncclComm){ MAGIC, j, rank };
	if (ncclGetVersion(&version) != ncclSuccess || version != 22705 || ncclGetUniqueId(&unused) != ncclSuccess ||
	    strncmp(unused.internal, "real ", 5) != 0 || ncclMemAlloc(&memory, 16) != ncclSuccess)
		return ncclInternalError;	/* somebody else answers its own calls */
	return ncclMemFree(memory);
}

ncclResult_t
ncclCommInitRank(ncclComm_t *comm, int n, ncclUniqueId id, int rank)
{
	count("CommInitRank");
	return ncclCommInitRankConfig(comm, n, id, rank, NULL);
}

ncclResult_t
ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *out, ncclConfig_t *config)
{
	CHECK(comm);
	struct job *j = comm->job;
	ncclUniqueId id = { "" };
	int n = 0, rank = 0;
	count("CommSplit");
	j->color[comm->rank] = color;
	j->key[comm->rank] = key;
	meet(j);
	for (int r = 0; r < j->n; r++) {
		n += j->color[r] == color;
		rank += j->color[r] == color && (j->key[r] < key || (j->key[r] == key && r < comm->rank));
	}
	snprintf(id.internal, sizeof id.internal, "split %d of %.40s %d", color, j->id, (int)j->turn);
	meet(j);
	*out = NULL;
	return color < 0 ? ncclSuccess : ncclCommInitRankConfig(out, n, id, rank, config);
}

ncclResult_t
ncclCommDestroy(ncclComm_t comm)
{
	CHECK(comm);
	count("CommDestroy");
	comm->magic = 0;
	free(comm);
	return ncclSuccess;
}

ncclResult_t
ncclCommFinalize(ncclComm_t comm)
{
	CHECK(comm);
	count("CommFinalize");
	return ncclSuccess;
}

ncclResult_t
ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *result)
{
	CHECK(comm);
	*result = ncclSuccess;
	return ncclSuccess;
}

ncclResult_t
ncclCommCount(ncclComm_t comm, int *n)
{
	CHECK(comm);
	*n = comm->job->n;
	return ncclSuccess;
}

ncclResult_t
ncclCommUserRank(ncclComm_t comm, int *rank)
{
	CHECK(comm);
	*rank = comm->rank;
	return ncclSuccess;
}

ncclResult_t
ncclCommCuDevice(ncclComm_t comm, int *device)
{
	CHECK(comm);
	*device = 0;
	return ncclSuccess;
}

ncclResult_t
ncclMemAlloc(void **memory, size_t bytes)
{
	count("MemAlloc");
	*memory = malloc(bytes);
	return *memory ? ncclSuccess : ncclSystemError;
}

ncclResult_t
ncclMemFree(void *memory)
{
	free(memory);
	return ncclSuccess;
}

ncclResult_t
ncclGroupStart(void)
{
	depth++;
	return ncclSuccess;
}

ncclResult_t
ncclGroupEnd(void)
{
	return depth-- > 0 ? ncclSuccess : ncclInvalidUsage;
}

ncclResult_t
ncclGroupSimulateEnd(ncclSimInfo_t *info)
{
	(void)info;
	return ncclGroupEnd();
}

static size_t
size_of(ncclDataType_t type)
{
	return type == ncclFloat32 ? 4 : 1;
}

static void *
of_cuda(const char *function)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW);
	return driver ? dlsym(driver, function) : NULL;
}

/* With a stream, of memory of GPUs, once each stream has done what it was given before. */
ncclResult_t
ncclBroadcast(const void *send, void *recv, size_t n, ncclDataType_t type, int root, ncclComm_t comm,
    cudaStream_t stream)
{
	CHECK(comm);
	int (*finish)(cudaStream_t) = stream ? (int (*)(cudaStream_t))of_cuda("cuStreamSynchronize") : NULL;
	int (*copy)(void *, const void *, size_t) =
	    stream ? (int (*)(void *, const void *, size_t))of_cuda("cuMemcpy") : NULL;
	bool good = !stream || (finish && copy && finish(stream) == 0);
	count("Broadcast");
	comm->job->send[comm->rank] = send;
	meet(comm->job);
	if (!stream)
		memmove(recv, comm->job->send[root], n * size_of(type));
	else
		good = good && copy(recv, comm->job->send[root], n * size_of(type)) == 0;
	meet(comm->job);
	return good ? ncclSuccess : ncclUnhandledCudaError;
}

/* Of float32, sum or max. */
ncclResult_t
ncclAllReduce(const void *send, void *recv, size_t n, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
    cudaStream_t stream)
{
	CHECK(comm);
	struct job *j = comm->job;
	float *sum = calloc(n ? n : 1, sizeof *sum);
	(void)stream;
	count("AllReduce");
	if (type != ncclFloat32 || (op != ncclSum && op != ncclMax) || !sum)
		return ncclInvalidArgument;
	j->send[comm->rank] = send;
	meet(j);
	for (int r = 0; r < j->n; r++)
		for (size_t i = 0; i < n; i++) {
			float x = ((const float *)j->send[r])[i];
			sum[i] = r == 0 || (op == ncclMax && x > sum[i]) ? x : op == ncclMax ? sum[i] : sum[i] + x;
		}
	meet(j);
	memcpy(recv, sum, n * sizeof *sum);
	free(sum);
	return ncclSuccess;
}

ncclResult_t
ncclAllGather(const void *send, void *recv, size_t n, ncclDataType_t type, ncclComm_t comm, cudaStream_t stream)
{
	CHECK(comm);
	struct job *j = comm->job;
	size_t bytes = n * size_of(type);
	(void)stream;
	count("AllGather");
	j->send[comm->rank] = send;
	meet(j);
	for (int r = 0; r < j->n; r++)
		memcpy((char *)recv + (size_t)r * bytes, j->send[r], bytes);
	meet(j);
	return ncclSuccess;
}

/* A function that libblink-nccl.so knows by name alone: a handle and more parameters than fit into registers. */
EXPORT ncclResult_t ncclPutSignal(const void *a, size_t b, int c, int d, void *e, size_t f, int g, int h, unsigned i,
    ncclComm_t comm, void *stream);
ncclResult_t
ncclPutSignal(const void *a, size_t b, int c, int d, void *e, size_t f, int g, int h, unsigned i, ncclComm_t comm,
    void *stream)
{
	CHECK(comm);
	count("PutSignal");
	return !a && b == 1 && c == 2 && d == 3 && !e && f == 5 && g == 6 && h == 7 && i == 8 && stream == (void *)9
	    ? ncclSuccess : ncclInternalError;
}

#define ALIAS(name)                                                            \
	__asm__(".globl pnccl" #name "\n.set pnccl" #name ", nccl" #name "\n");
ALIAS(GetVersion) ALIAS(GetUniqueId) ALIAS(CommInitRankConfig) ALIAS(CommInitRank) ALIAS(CommSplit) ALIAS(CommDestroy)
ALIAS(CommFinalize) ALIAS(CommGetAsyncError) ALIAS(CommCount) ALIAS(CommUserRank) ALIAS(CommCuDevice) ALIAS(MemAlloc)
ALIAS(MemFree) ALIAS(GroupStart) ALIAS(GroupEnd) ALIAS(GroupSimulateEnd) ALIAS(Broadcast) ALIAS(AllReduce)
ALIAS(AllGather)
