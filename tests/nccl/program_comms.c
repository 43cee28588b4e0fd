/* Communicators that do not block, of several ids, with registered memory, and split. */
#include "program.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- made while the caller goes on ---- */

static bool
wait_until_made(ncclComm_t comm)
{
	ncclResult_t state = ncclInProgress;
	for (int i = 0; i < 20000 && state == ncclInProgress; i++) {
		if (ncclCommGetAsyncError(comm, &state) != ncclSuccess)
			return false;
		usleep(1000);
	}
	return state == ncclSuccess;
}

static void *
nonblocking_rank(void *rank)
{
	struct rank *r = rank;
	ncclConfig_t config = { sizeof config, 0xcafebeef, 22809, 0 };
	ncclResult_t result = use_device(r->device)
	    ? ncclCommInitRankConfig(&r->comm, n_ranks, r->id, r->number, &config) : ncclSystemError;
	r->good = (result == ncclInProgress || result == ncclSuccess) && r->comm && wait_until_made(r->comm) &&
	    open_buffers(r) && collectives(r);
	if (r->good)
		close_buffers(r);
	r->good = r->good && TRY_NCCL(ncclCommDestroy(r->comm));
	return NULL;
}

/* One thread for all devices: nothing may wait before the group ends, nor when it does. */
static bool
init_in_group(struct rank *r, ncclComm_t *comms)
{
	ncclConfig_t config = { sizeof config, 0xcafebeef, 22809, 0 };
	ncclUniqueId id;
	bool good = TRY_NCCL(ncclGetUniqueId(&id)) && TRY_NCCL(ncclGroupStart());
	for (int i = 0; i < n_ranks && good; i++) {
		ncclResult_t result = use_device(i) ? ncclCommInitRankConfig(&comms[i], n_ranks, id, i, &config)
		    : ncclSystemError;
		good = result == ncclSuccess || result == ncclInProgress;
	}
	ncclResult_t end = ncclGroupEnd();
	good = good && (end == ncclSuccess || end == ncclInProgress);
	for (int i = 0; i < n_ranks && good; i++) {
		r[i] = (struct rank){ .number = i, .device = i, .comm = comms[i], .good = true };
		good = comms[i] && wait_until_made(comms[i]) && use_device(i) && asks(&r[i]) && open_buffers(&r[i]);
	}
	return good;
}

static bool
nonblocking_group(struct rank *r)
{
	ncclComm_t comms[MOST] = { NULL };
	bool good = init_in_group(r, comms);
	for (int call = 0; call < CALLS && good; call++) {
		good = TRY_NCCL(ncclGroupStart());
		for (int i = 0; i < n_ranks && good; i++)
			good = TRY_NCCL(ncclAllReduce(r[i].send, r[i].recv, COUNT, ncclFloat32, ncclSum, comms[i],
			    r[i].stream));
		ncclResult_t end = ncclGroupEnd();
		good = good && (end == ncclSuccess || end == ncclInProgress);
		for (int i = 0; i < n_ranks && good; i++)
			good = wait_until_made(comms[i]) && use_device(i) && receives(&r[i], COUNT, sum, "allreduce");
	}
	for (int i = 0; i < n_ranks && good; i++) {
		ncclResult_t result = ncclCommFinalize(comms[i]);
		good = result == ncclSuccess || result == ncclInProgress;
	}
	for (int i = 0; i < n_ranks && good; i++) {
		use_device(i);
		close_buffers(&r[i]);
		good = r[i].good && wait_until_made(comms[i]) && TRY_NCCL(ncclCommDestroy(comms[i]));
	}
	return good;
}

/* Rank 0 of two, whose peer never comes. */
static bool
left_alone(void)
{
	ncclConfig_t config = { sizeof config, 0xcafebeef, 22809, 0 };
	ncclResult_t state = ncclSuccess;
	ncclUniqueId id;
	ncclComm_t comm = NULL;
	time_t begin = time(NULL);
	int count;
	return use_device(0) && TRY_NCCL(ncclGetUniqueId(&id)) &&
	    ncclCommInitRankConfig(&comm, 2, id, 0, &config) == ncclInProgress && comm &&
	    TRY_NCCL(ncclCommGetAsyncError(comm, &state)) && state == ncclInProgress &&
	    ncclCommCount(comm, &count) == ncclInvalidArgument && strlen(ncclGetLastError(comm)) > 0 &&
	    ncclAllReduce(NULL, NULL, 0, ncclInt8, ncclSum, comm, NULL) == ncclInvalidArgument &&
	    TRY_NCCL(ncclCommAbort(comm)) && time(NULL) - begin < 30;
}

void
nonblocking(struct rank *r)
{
	on_threads(r, nonblocking_rank, "communicators that do not block");
	ok(nonblocking_group(r), "the same of one thread, in groups");
	ok(left_alone(), "one that is aborted while it is being made");
}

/* ---- several ids, registered memory ---- */

static void *
scalable_rank(void *rank)
{
	struct rank *r = rank;
	ncclUniqueId ids[2] = { r->id, (r - r->number)[MOST].id };
	void *handle = NULL, *memory = NULL;
	ncclWindow_t window = NULL;
	r->good = use_device(r->device) &&
	    TRY_NCCL(ncclCommInitRankScalable(&r->comm, n_ranks, r->number, 2, ids, NULL)) && asks(r) &&
	    open_buffers(r) &&
	    TRY_NCCL(ncclCommRegister(r->comm, r->send, COUNT, &handle)) &&
	    TRY_NCCL(ncclCommWindowRegister(r->comm, r->recv, COUNT, &window, 0)) && window &&
	    TRY_NCCL(ncclWinGetUserPtr(r->comm, window, &memory)) && memory == r->recv && collectives(r) &&
	    TRY_NCCL(ncclCommWindowDeregister(r->comm, window)) &&
	    ncclCommWindowDeregister(r->comm, window) == ncclInvalidArgument &&
	    TRY_NCCL(ncclCommDeregister(r->comm, handle));
	if (r->good)
		close_buffers(r);
	r->good = r->good && TRY_NCCL(ncclCommDestroy(r->comm));
	return NULL;
}

void
scalable(struct rank *r)
{
	if (TRY_NCCL(ncclGetUniqueId(&r[MOST].id)))
		on_threads(r, scalable_rank, "of two ids, with registered memory");
}

/* ---- split ---- */

static float
sum_of_half(int rank, size_t i)
{
	float s = 0;
	for (int r = rank % 2; r < n_ranks; r += 2)
		s += value(r, i);
	return s;
}

static void *
split_rank(void *rank)
{
	struct rank *r = rank;
	ncclComm_t half = NULL, none = r->comm;
	int count = 0;
	r->good = use_device(r->device) && TRY_NCCL(ncclCommInitRank(&r->comm, n_ranks, r->id, r->number)) &&
	    TRY_NCCL(ncclCommSplit(r->comm, r->number % 2, -r->number, &half, NULL)) &&
	    TRY_NCCL(ncclCommSplit(r->comm, r->number == 0 ? 0 : -1, 0, &none, NULL)) &&
	    (r->number == 0) == (none != NULL) && TRY_NCCL(ncclCommCount(half, &count)) &&
	    count == (n_ranks + 1 - r->number % 2) / 2 && open_buffers(r) &&
	    TRY_NCCL(ncclAllReduce(r->send, r->recv, COUNT, ncclFloat32, ncclSum, half, r->stream)) &&
	    receives(r, COUNT, sum_of_half, "allreduce of a half");
	if (r->good)
		close_buffers(r);
	r->good = r->good && TRY_NCCL(ncclCommDestroy(half)) && TRY_NCCL(ncclCommDestroy(none)) &&
	    TRY_NCCL(ncclCommDestroy(r->comm));
	return NULL;
}

void
split(struct rank *r)
{
	on_threads(r, split_rank, "split by color and key");
}
