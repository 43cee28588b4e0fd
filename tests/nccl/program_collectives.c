/* All collectives and exchanges: a thread or a process for each rank, or one thread for all. */
#include "program.h"

static float
highest(int rank, size_t i)
{
	(void)rank;
	return value(n_ranks - 1, i);
}

static float
gathered(int rank, size_t i)
{
	(void)rank;
	return value((int)(i / COUNT), i % COUNT);
}

static float
block_sum(int rank, size_t i)
{
	return sum(rank, (size_t)rank * COUNT + i);
}

static float
exchanged(int rank, size_t i)
{
	return value((int)(i / COUNT), (size_t)rank * COUNT + i % COUNT);
}

static float
of_root(int rank, size_t i)
{
	(void)rank;
	return value(n_ranks - 1, i);
}

static float
scattered(int rank, size_t i)
{
	return value(n_ranks - 1, (size_t)rank * COUNT + i);
}

static float
of_neighbour(int rank, size_t i)
{
	return value((rank + n_ranks - 1) % n_ranks, i);
}

bool
collectives(struct rank *r)
{
	ncclComm_t c = r->comm;
	int root = n_ranks - 1;
	bool good = TRY_NCCL(ncclAllReduce(r->send, r->recv, COUNT, ncclFloat32, ncclSum, c, r->stream)) &&
	    receives(r, COUNT, sum, "allreduce");
	good = good && TRY_NCCL(pncclAllReduce(r->send, r->recv, COUNT, ncclFloat32, ncclMax, c, r->stream)) &&
	    receives(r, COUNT, highest, "max");
	good = good && TRY_NCCL(ncclAllGather(r->send, r->recv, COUNT, ncclFloat32, c, r->stream)) &&
	    receives(r, COUNT * (size_t)n_ranks, gathered, "allgather");
	good = good && TRY_NCCL(ncclReduceScatter(r->send, r->recv, COUNT, ncclFloat32, ncclSum, c, r->stream)) &&
	    receives(r, COUNT, block_sum, "reducescatter");
	good = good && TRY_NCCL(ncclAlltoAll(r->send, r->recv, COUNT, ncclFloat32, c, r->stream)) &&
	    receives(r, COUNT * (size_t)n_ranks, exchanged, "alltoall");
	good = good && TRY_NCCL(ncclBroadcast(r->send, r->recv, COUNT, ncclFloat32, root, c, r->stream)) &&
	    receives(r, COUNT, of_root, "broadcast");
	good = good && TRY_NCCL(ncclBcast(r->recv, COUNT, ncclFloat32, 0, c, r->stream)) &&
	    receives(r, COUNT, of_root, "bcast");
	good = good && TRY_NCCL(ncclReduce(r->send, r->recv, COUNT, ncclFloat32, ncclSum, 0, c, r->stream)) &&
	    (r->number != 0 || receives(r, COUNT, sum, "reduce"));
	good = good && TRY_NCCL(ncclGather(r->send, r->recv, COUNT, ncclFloat32, root, c, r->stream)) &&
	    (r->number != root || receives(r, COUNT * (size_t)n_ranks, gathered, "gather"));
	good = good && TRY_NCCL(ncclScatter(r->send, r->recv, COUNT, ncclFloat32, root, c, r->stream)) &&
	    receives(r, COUNT, scattered, "scatter");
	good = good && TRY_NCCL(ncclAllReduceConfig(r->send, r->recv, COUNT, ncclFloat32, ncclSum, c, r->stream,
	    NULL)) && receives(r, COUNT, sum, "allreduce with a configuration");
	return good;
}

/* ---- scenarios ---- */

bool
asks(const struct rank *r)
{
	int count = -1, rank = -1, device = -1;
	ncclResult_t error = ncclInternalError;
	return TRY_NCCL(ncclCommCount(r->comm, &count)) && count == n_ranks &&
	    TRY_NCCL(ncclCommUserRank(r->comm, &rank)) && rank == r->number &&
	    TRY_NCCL(ncclCommCuDevice(r->comm, &device)) && device == (driver ? r->device : 0) &&
	    TRY_NCCL(ncclCommGetAsyncError(r->comm, &error)) && error == ncclSuccess;
}

bool
one_rank(struct rank *r)
{
	return use_device(r->device) && TRY_NCCL(ncclCommInitRank(&r->comm, n_ranks, r->id, r->number)) && asks(r) &&
	    open_buffers(r) && collectives(r) && TRY_NCCL(ncclCommFinalize(r->comm)) &&
	    TRY_NCCL(ncclCommDestroy(r->comm));
}

static void *
thread(void *rank)
{
	struct rank *r = rank;
	r->good = one_rank(r);
	if (r->good)
		close_buffers(r);
	return NULL;
}

void
threads(struct rank *r)
{
	on_threads(r, thread, "a thread for each rank, all collectives");
}

/* One process, one thread, many devices. */
void
one_thread(struct rank *r)
{
	ncclComm_t comms[MOST];
	bool good = TRY_NCCL(ncclCommInitAll(comms, n_ranks, NULL));
	for (int i = 0; i < n_ranks && good; i++) {
		r[i] = (struct rank){ .number = i, .device = i, .comm = comms[i], .good = true };
		good = use_device(i) && asks(&r[i]) && open_buffers(&r[i]);
	}
	for (int call = 0; call < CALLS && good; call++) {
		good = TRY_NCCL(ncclGroupStart());
		for (int i = 0; i < n_ranks && good; i++)
			good = TRY_NCCL(ncclAllReduce(r[i].send, r[i].recv, COUNT, ncclFloat32, ncclSum, comms[i],
			    r[i].stream));
		good &= TRY_NCCL(ncclGroupEnd());
		for (int i = 0; i < n_ranks && good; i++)
			good = use_device(i) && receives(&r[i], COUNT, sum, "allreduce in a group");
	}
	for (int i = 0; i < n_ranks && good; i++) {
		use_device(i);
		close_buffers(&r[i]);
		good &= r[i].good && TRY_NCCL(ncclCommDestroy(comms[i]));
	}
	ok(good, "one thread for all devices, in groups");
}

void
processes(struct rank *r)
{
	on_processes(r, one_rank, -1, "a process for each rank");
}

static void *
ring(void *rank)
{
	struct rank *r = rank;
	int right = (r->number + 1) % n_ranks, left = (r->number + n_ranks - 1) % n_ranks;
	r->good = use_device(r->device) && TRY_NCCL(ncclCommInitRank(&r->comm, n_ranks, r->id, r->number)) &&
	    open_buffers(r);
	for (int call = 0; call < CALLS && r->good; call++) {
		r->good = TRY_NCCL(ncclGroupStart()) &&
		    TRY_NCCL(ncclSend(r->send, COUNT, ncclFloat32, right, r->comm, r->stream)) &&
		    TRY_NCCL(ncclRecv(r->recv, COUNT, ncclFloat32, left, r->comm, r->stream)) &&
		    TRY_NCCL(ncclGroupEnd()) && receives(r, COUNT, of_neighbour, "send and receive");
	}
	if (r->good)
		close_buffers(r);
	r->good = r->good && TRY_NCCL(ncclCommDestroy(r->comm));
	return NULL;
}

void
groups(struct rank *r)
{
	on_threads(r, ring, "exchanges with neighbours, in groups");
	ok(ncclGroupEnd() == ncclInvalidUsage, "an end without a start");
}
