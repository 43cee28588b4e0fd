/* Operations of the user, with a scalar of the host or in memory of the device. */
#include "program.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- a scalar of the host ---- */

static float
sum_of_twice(int rank, size_t i)
{
	return 2 * sum(rank, i);
}

static void *
operation_rank(void *rank)
{
	struct rank *r = rank;
	ncclRedOp_t op = ncclSum;
	float two = 2;
	r->good = use_device(r->device) && TRY_NCCL(ncclCommInitRank(&r->comm, n_ranks, r->id, r->number)) &&
	    open_buffers(r) && TRY_NCCL(ncclRedOpCreatePreMulSum(&op, &two, ncclFloat32,
	    ncclScalarHostImmediate, r->comm)) && (int)op > ncclAvg &&
	    TRY_NCCL(ncclAllReduce(r->send, r->recv, COUNT, ncclFloat32, op, r->comm, r->stream)) &&
	    receives(r, COUNT, sum_of_twice, "an operation of the user") && TRY_NCCL(ncclRedOpDestroy(op, r->comm)) &&
	    ncclRedOpDestroy(op, r->comm) != ncclSuccess;
	if (r->good)
		close_buffers(r);
	r->good = r->good && TRY_NCCL(ncclCommDestroy(r->comm));
	return NULL;
}

/* ---- a scalar in memory of the device ---- */

enum { TYPES = 12, SCALED = COUNT / 2 };	/* elements: of 8 bytes they fit the buffers of one rank */
static const size_t type_bytes[TYPES] = { 1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1 };

/* 0.5, 2 and 3 as each type has them, of integers other numbers. */
static uint64_t
scalar_of(int type, int which)
{
	static const uint64_t bits[TYPES][3] = { [0] = { 7, 2, 3 }, [1] = { 7, 2, 3 },
		[2] = { 7, 2, 3 }, [3] = { 7, 2, 3 }, [4] = { 7, 2, 3 }, [5] = { 7, 2, 3 },
		[6] = { 0x3800, 0x4000, 0x4200 },
		[7] = { 0x3f000000, 0x40000000, 0x40400000 },
		[8] = { 0x3fe0000000000000, 0x4000000000000000, 0x4008000000000000 },
		[9] = { 0x3f00, 0x4000, 0x4040 }, [10] = { 0x30, 0x40, 0x44 }, [11] = { 0x38, 0x40, 0x42 } };
	return bits[type][which];
}

static bool
reduces_as(struct rank *r, ncclRedOp_t op, int type, char *out)
{
	if (!TRY_NCCL(ncclAllReduce(r->send, r->recv, SCALED, (ncclDataType_t)type, op, r->comm, r->stream)) ||
	    !finish(r->stream))
		return false;
	copy(out, r->recv, SCALED * type_bytes[type]);
	return true;
}

/* What an operation gives whose scalar has been read when it was made. */
static bool
reduces_at_once(struct rank *r, int type, int which, char *out)
{
	uint64_t bits = scalar_of(type, which);
	ncclRedOp_t op = ncclSum;
	return TRY_NCCL(ncclRedOpCreatePreMulSum(&op, &bits, (ncclDataType_t)type, ncclScalarHostImmediate, r->comm)) &&
	    reduces_as(r, op, type, out) && TRY_NCCL(ncclRedOpDestroy(op, r->comm));
}

/* The same bits, whenever the scalar is written: one operation, and another scalar for each call. */
static bool
scalar_is_read_late(struct rank *r, int type, void *scalar)
{
	char *got = malloc(SCALED * 8), *want = malloc(SCALED * 8);
	ncclRedOp_t op = ncclSum;
	bool good = TRY_NCCL(ncclRedOpCreatePreMulSum(&op, scalar, (ncclDataType_t)type, ncclScalarDevice, r->comm));
	for (int i = 0; i < 3 && good; i++) {
		uint64_t bits = scalar_of(type, i);
		copy(scalar, &bits, sizeof bits);
		good = reduces_as(r, op, type, got) && reduces_at_once(r, type, i, want) &&
		    memcmp(got, want, SCALED * type_bytes[type]) == 0;
	}
	if (!good)
		printf("# rank %d, type %d: a scalar of the device\n", r->number, type);
	free(got);
	free(want);
	return good && TRY_NCCL(ncclRedOpDestroy(op, r->comm));
}

/* A graph that copies `source` to the scalar and then reduces; the operation ends before it runs. */
static CUgraphExec
capture_scaled(struct rank *r, void *scalar, const void *source)
{
	CUgraph graph;
	CUgraphExec exec = NULL;
	ncclRedOp_t op = ncclSum;
	if (!TRY_NCCL(ncclRedOpCreatePreMulSum(&op, scalar, ncclFloat32, ncclScalarDevice, r->comm)) ||
	    driver->capture_begin(r->stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL) != CUDA_SUCCESS)
		return NULL;
	bool good = driver->copy_async((CUdeviceptr)(uintptr_t)scalar, (CUdeviceptr)(uintptr_t)source, sizeof(float),
	    r->stream) == CUDA_SUCCESS &&
	    TRY_NCCL(ncclAllReduce(r->send, r->recv, SCALED, ncclFloat32, op, r->comm, r->stream));
	good = driver->capture_end(r->stream, &graph) == CUDA_SUCCESS && good &&
	    driver->graph_instantiate(&exec, graph, 0) == CUDA_SUCCESS && driver->graph_destroy(graph) == CUDA_SUCCESS;
	return TRY_NCCL(ncclRedOpDestroy(op, r->comm)) && good ? exec : NULL;
}

static bool
scalar_of_a_graph(struct rank *r, char *scalar)
{
	char *got = malloc(SCALED * 4), *want = malloc(SCALED * 4);
	CUgraphExec exec = capture_scaled(r, scalar, scalar + 8);
	bool good = exec != NULL;
	for (int i = 0; i < 3 && good; i++) {
		uint64_t bits = scalar_of(ncclFloat32, i);
		copy(scalar + 8, &bits, sizeof bits);
		good = driver->graph_launch(exec, r->stream) == CUDA_SUCCESS && finish(r->stream);
		copy(got, r->recv, SCALED * 4);
		good = good && reduces_at_once(r, ncclFloat32, i, want) && memcmp(got, want, SCALED * 4) == 0;
	}
	if (exec)
		driver->graph_exec_destroy(exec);
	free(got);
	free(want);
	return good;
}

static void *
scalar_rank(void *rank)
{
	struct rank *r = rank;
	char *scalar = NULL;
	r->good = use_device(r->device) && TRY_NCCL(ncclCommInitRank(&r->comm, n_ranks, r->id, r->number)) &&
	    open_buffers(r) && TRY_NCCL(ncclMemAlloc((void **)&scalar, 16));
	for (int type = 0; type < TYPES && r->good; type++)
		r->good = scalar_is_read_late(r, type, scalar);
	r->good = r->good && (!driver || scalar_of_a_graph(r, scalar));
	if (r->good)
		close_buffers(r);
	r->good = r->good && TRY_NCCL(ncclMemFree(scalar)) && TRY_NCCL(ncclCommDestroy(r->comm));
	return NULL;
}

void
operations(struct rank *r)
{
	on_threads(r, operation_rank, "operations of the user");
	on_threads(r, scalar_rank, "a scalar in memory of the device, all types, and in a graph");
}
