/* Communicators of fewer ranks, without those that have died, revoked, and of more. */
#include "program.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* A communicator of some of the ranks: which, by their old numbers. */
static bool
sums_of(struct rank *r, ncclComm_t comm, const bool *in, int size)
{
	float *host = malloc(sizeof *host * COUNT);
	int count = -1, rank = -1, want = 0;
	for (int i = 0; i < r->number; i++)
		want += in[i];
	bool good = TRY_NCCL(ncclCommCount(comm, &count)) && count == size && TRY_NCCL(ncclCommUserRank(comm, &rank)) &&
	    rank == want && TRY_NCCL(ncclAllReduce(r->send, r->recv, COUNT, ncclFloat32, ncclSum, comm, r->stream)) &&
	    finish(r->stream);
	copy(host, r->recv, sizeof *host * COUNT);
	for (size_t i = 0; i < COUNT && good; i++) {
		float s = 0;
		for (int k = 0; k < n_ranks; k++)
			s += in[k] ? value(k, i) : 0;
		good = host[i] == s;
	}
	if (!good)
		printf("# rank %d: allreduce of %d ranks: rank %d of %d\n", r->number, size, rank, count);
	free(host);
	return good;
}

/* Without every third rank; then the same again, and without rank 0; then all of the old one are there still. */
static bool
shrink_rank(struct rank *r)
{
	int excluded[MOST], n_excluded = 0, first = 0;
	bool in[MOST], all[MOST], others[MOST];
	ncclComm_t small = NULL;
	for (int i = 0; i < n_ranks; i++) {
		all[i] = true;
		others[i] = i > 0;
		in[i] = i % 3 != 1;
		if (!in[i])
			excluded[n_excluded++] = i;
	}
	bool good = TRY_NCCL(ncclCommInitRank(&r->comm, n_ranks, r->id, r->number)) && open_buffers(r);
	for (int again = 0; again < 2 && in[r->number] && good; again++)
		good = TRY_NCCL(ncclCommShrink(r->comm, excluded, n_excluded, &small, NULL, 0)) &&
		    sums_of(r, small, in, n_ranks - n_excluded) && TRY_NCCL(ncclCommDestroy(small));
	if (r->number > 0 && good)
		good = TRY_NCCL(ncclCommShrink(r->comm, &first, 1, &small, NULL, 0)) &&
		    sums_of(r, small, others, n_ranks - 1) && TRY_NCCL(ncclCommDestroy(small));
	good = good && sums_of(r, r->comm, all, n_ranks);
	if (good)
		close_buffers(r);
	return good && TRY_NCCL(ncclCommDestroy(r->comm));
}

/* A rank dies, of which the others hear, or not, while they wait for it. Rank 0's process has the hub. */
static int victim;

/* A shrink that leaves out another rank than the one that has died ends soon, once the death is known: before, ranks
 * that abort have the first word. */
static bool
misses(const struct rank *r)
{
	int other = victim ? 0 : 1;
	ncclComm_t small = NULL;
	ncclResult_t result = ncclRemoteError, error = ncclSuccess;
	time_t begin = time(NULL);
	if (n_ranks < 3)
		return true;
	while (error == ncclSuccess && time(NULL) - begin < 30 && TRY_NCCL(ncclCommGetAsyncError(r->comm, &error)))
		usleep(1000);
	if (r->number == other)
		return true;
	begin = time(NULL);
	result = ncclCommShrink(r->comm, &other, 1, &small, NULL, 1);
	if (result == ncclRemoteError && strstr(ncclGetLastError(NULL), "want it excluded") && time(NULL) - begin < 30)
		return true;
	printf("# rank %d: a shrink without rank %d alone: %d, %s\n", r->number, other, (int)result,
	    ncclGetLastError(NULL));
	return false;
}

static bool
survive(struct rank *r)
{
	bool in[MOST];
	ncclComm_t small = NULL;
	ncclResult_t error = ncclSuccess;
	for (int i = 0; i < n_ranks; i++)
		in[i] = i != victim;
	bool good = TRY_NCCL(ncclCommInitRank(&r->comm, n_ranks, r->id, r->number)) && open_buffers(r);
	if (r->number == victim)
		raise(SIGKILL);
	ncclAllReduce(r->send, r->recv, COUNT, ncclFloat32, ncclSum, r->comm, r->stream);
	for (int i = 0; i < 20000 && r->number % 2 && error == ncclSuccess && good; i++, usleep(1000))
		good = TRY_NCCL(ncclCommGetAsyncError(r->comm, &error));
	good = good && (r->number % 2 == 0 || error == ncclRemoteError) && misses(r) &&
	    TRY_NCCL(ncclCommShrink(r->comm, &victim, 1, &small, NULL, 1)) && TRY_NCCL(ncclCommAbort(r->comm)) &&
	    sums_of(r, small, in, n_ranks - 1);
	if (good)
		close_buffers(r);
	return good && TRY_NCCL(ncclCommDestroy(small));
}

/* Calls that never end are revoked; then all is as before, of another communicator. */
static bool
revoke_rank(struct rank *r)
{
	bool all[MOST];
	ncclComm_t fresh = NULL;
	ncclResult_t error = ncclInternalError;
	memset(all, 1, sizeof all);
	bool good = TRY_NCCL(ncclCommInitRank(&r->comm, n_ranks, r->id, r->number)) && open_buffers(r);
	if (good && driver && r->number > 0)
		ncclAllReduce(r->send, r->recv, COUNT, ncclFloat32, ncclSum, r->comm, r->stream);
	good = good && TRY_NCCL(ncclCommRevoke(r->comm, 0)) && TRY_NCCL(ncclCommGetAsyncError(r->comm, &error)) &&
	    error == ncclSuccess && ncclCommFinalize(r->comm) == ncclInvalidUsage &&
	    ncclBcast(r->send, 1, ncclInt8, 0, r->comm, r->stream) == ncclInvalidUsage &&
	    TRY_NCCL(ncclCommSplit(r->comm, 0, 0, &fresh, NULL)) && sums_of(r, fresh, all, n_ranks);
	if (good)
		close_buffers(r);
	return good && TRY_NCCL(ncclCommDestroy(fresh)) && TRY_NCCL(ncclCommDestroy(r->comm));
}

/* Of one rank; the others come later. */
static bool
grow_rank(struct rank *r)
{
	ncclUniqueId one;
	bool all[MOST];
	ncclComm_t grown = NULL;
	memset(all, 1, sizeof all);
	bool good = open_buffers(r);
	if (r->number == 0)
		good = good && TRY_NCCL(ncclGetUniqueId(&one)) && TRY_NCCL(ncclCommInitRank(&r->comm, 1, one, 0)) &&
		    TRY_NCCL(ncclCommGrow(r->comm, n_ranks, &r->id, -1, &grown, NULL));
	else
		good = good && TRY_NCCL(ncclCommGrow(NULL, n_ranks, &r->id, r->number, &grown, NULL));
	good = good && sums_of(r, grown, all, n_ranks);
	if (good)
		close_buffers(r);
	return good && TRY_NCCL(ncclCommDestroy(grown)) && (r->number > 0 || TRY_NCCL(ncclCommDestroy(r->comm)));
}

#define OF_THREAD(name)                                                        \
	static void *                                                          \
	name##_thread(void *rank)                                              \
	{                                                                      \
		struct rank *r = rank;                                         \
		r->good = use_device(r->device) && name##_rank(r);             \
		return NULL;                                                   \
	}
OF_THREAD(shrink)
OF_THREAD(revoke)
OF_THREAD(grow)

void
shrink(struct rank *r)
{
	if (n_ranks == 1)
		return;
	on_threads(r, shrink_thread, "shrunk, several times, and as it was");
	on_threads(r, revoke_thread, "revoked, and split");
	on_threads(r, grow_thread, "grown");
}

/* In processes of their own, before this one has a driver. */
static bool
survive_here(struct rank *r)
{
	return use_device(r->device) && survive(r);
}

void
deaths(struct rank *r)
{
	for (victim = 0; victim < n_ranks && n_ranks > 1; victim += n_ranks - 1)
		on_processes(r, survive_here, victim, victim ? "shrunk when the last rank has died"
		    : "shrunk when the first rank has died");
}

void
servers(struct rank *r)
{
	n_servers = 2;
	victim = n_ranks - 1;
	on_processes(r, one_rank, -1, "a process for each rank, on two servers");
	on_processes(r, survive_here, victim, "shrunk when a rank of two servers has died");
	n_servers = 1;
}
