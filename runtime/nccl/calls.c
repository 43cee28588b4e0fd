/* Collectives and messages: ours where it serves them, else the real NCCL's. */
#include "nccl/shim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- which of them ours does ---- */

static size_t
message_bytes(const struct shim_comm *c, blinkCollective_t coll, size_t count, ncclDataType_t type)
{
	size_t size = blinkTypeSize((blinkDataType_t)type), blocks = 1;
	if (coll != blinkCollBroadcast && coll != blinkCollReduce && coll != blinkCollAllReduce)
		blocks = (size_t)c->n;
	return count > SIZE_MAX / 2 / blocks / (size ? size : 1) ? SIZE_MAX / 2 : count * size * blocks;
}

/* Operations of the user have numbers of both libraries. -1: ours does not know it. */
static int
our_op(const struct shim_comm *c, ncclRedOp_t op)
{
	if ((int)op <= ncclAvg)
		return (int)op;
	for (int i = 0; i < SHIM_OPS; i++)
		if (c->op[i].used && c->op[i].theirs == op)
			return (int)c->op[i].ours;
	return -1;
}

struct request {
	blinkCollective_t coll;
	const void *send;
	void *recv;
	size_t count;
	ncclDataType_t type;
	ncclRedOp_t op;
	int root;
	cudaStream_t stream;
};

static blinkResult_t
call_ours(struct shim_comm *c, const struct request *q)
{
	blinkDataType_t type = (blinkDataType_t)q->type;
	blinkRedOp_t op = (blinkRedOp_t)our_op(c, q->op);
	switch (q->coll) {
	case blinkCollBroadcast:
		return blinkBroadcast(q->send, q->recv, q->count, type, q->root, c->blink, q->stream);
	case blinkCollReduce:
		return blinkReduce(q->send, q->recv, q->count, type, op, q->root, c->blink, q->stream);
	case blinkCollAllReduce:
		return blinkAllReduce(q->send, q->recv, q->count, type, op, c->blink, q->stream);
	case blinkCollGather:
		return blinkGather(q->send, q->recv, q->count, type, q->root, c->blink, q->stream);
	case blinkCollScatter:
		return blinkScatter(q->send, q->recv, q->count, type, q->root, c->blink, q->stream);
	case blinkCollAllGather:
		return blinkAllGather(q->send, q->recv, q->count, type, c->blink, q->stream);
	case blinkCollReduceScatter:
		return blinkReduceScatter(q->send, q->recv, q->count, type, op, c->blink, q->stream);
	default:
		return blinkAlltoAll(q->send, q->recv, q->count, type, c->blink, q->stream);
	}
}

static ncclResult_t
end_call(struct shim_comm *c, blinkResult_t result)
{
	if (result != blinkSuccess)
		return comm_error(c, result_of(result), blinkCommGetError(c->blink));
	return group_uses(c);
}

/* True: ours has done it, with this result; else it is the real one's. */
static bool
serve(ncclComm_t comm, const struct request *q, ncclResult_t *result)
{
	struct shim_comm *c = comm_of(comm);
	bool alone = !real_nccl()->path;
	if (!c && !alone)
		return false;
	if (!(c = alone ? comm_open_for_calls(comm, result) : comm_ready(comm, result)))
		return true;
	bool ours = alone || (c->blink && our_op(c, q->op) >= 0 &&
	    comm_serves(c, q->coll, q->root, message_bytes(c, q->coll, q->count, q->type)));
	if (ours && our_op(c, q->op) < 0)
		*result = comm_error(c, ncclInvalidArgument, "operation: not made by ncclRedOpCreatePreMulSum of this "
		    "communicator");
	else if (ours)
		*result = end_call(c, call_ours(c, q));
	return ours;
}

/* ---- collectives ---- */

#define COLLECTIVE(name, parameters, arguments, ...)                           \
	ncclResult_t served_##name parameters                                  \
	{                                                                      \
		ncclResult_t result;                                           \
		const struct request q = { __VA_ARGS__, stream };              \
		return serve(comm, &q, &result) ? group_fails(result) : REAL(name, arguments); \
	}
NCCL_COLLECTIVE_LIST(COLLECTIVE)
NCCL_CONFIG_LIST(COLLECTIVE)

/* ---- messages ---- */

/* True: ours does the messages of this communicator; *c is it. Else *result says why not, or it is the real one's. */
static bool
serves_messages(ncclComm_t comm, struct shim_comm **c, ncclResult_t *result)
{
	bool alone = !real_nccl()->path;
	*result = ncclSuccess;
	*c = comm_of(comm);
	if (!alone && (!*c || !comm_serves_messages(*c)))
		return false;
	*c = alone ? comm_open_for_calls(comm, result) : comm_ready(comm, result);
	return *c;
}

ncclResult_t
served_Send(const void *send, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream)
{
	struct shim_comm *c;
	ncclResult_t result;
	if (serves_messages(comm, &c, &result))
		return group_fails(end_call(c, blinkSend(send, count, (blinkDataType_t)type, peer, c->blink,
		    stream)));
	return result != ncclSuccess ? group_fails(result) : REAL(Send, (send, count, type, peer, comm, stream));
}

ncclResult_t
served_Recv(void *recv, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream)
{
	struct shim_comm *c;
	ncclResult_t result;
	if (serves_messages(comm, &c, &result))
		return group_fails(end_call(c, blinkRecv(recv, count, (blinkDataType_t)type, peer, c->blink,
		    stream)));
	return result != ncclSuccess ? group_fails(result) : REAL(Recv, (recv, count, type, peer, comm, stream));
}

/* ---- operations of the user ---- */

static int
free_op(const struct shim_comm *c)
{
	int i = 0;
	while (i < SHIM_OPS && c->op[i].used)
		i++;
	return i;
}

/* A scalar in memory of the device is read when a call is executed. */
static blinkResult_t
make_ours(blinkRedOp_t *op, const void *scalar, ncclDataType_t type, ncclScalarResidence_t where, blinkComm_t comm)
{
	return where == ncclScalarDevice ? blinkRedOpCreatePreMulSumDevice(op, scalar, (blinkDataType_t)type, comm)
	    : blinkRedOpCreatePreMulSum(op, scalar, (blinkDataType_t)type, comm);
}

ncclResult_t
served_RedOpCreatePreMulSum(ncclRedOp_t *op, void *scalar, ncclDataType_t type, ncclScalarResidence_t where,
    ncclComm_t comm)
{
	ncclResult_t result = ncclSuccess;
	blinkRedOp_t ours;
	struct shim_comm *c = comm_of(comm);
	bool beside = real_nccl()->path;
	if (beside)
		result = REAL(RedOpCreatePreMulSum, (op, scalar, type, where, comm));
	if (result != ncclSuccess || (beside && (!c || !c->blink)))
		return result;
	if (!(c = comm_ready(comm, &result)))
		return result;
	int i = free_op(c);
	if (!op)
		return comm_error(c, ncclInvalidArgument, "op: NULL");
	if (!beside && where != ncclScalarHostImmediate && where != ncclScalarDevice)
		return comm_error(c, ncclInvalidArgument, "ncclRedOpCreatePreMulSum: residence: want ncclScalarDevice "
		    "or ncclScalarHostImmediate");
	if (i == SHIM_OPS || make_ours(&ours, scalar, type, where, c->blink) != blinkSuccess)
		return beside ? ncclSuccess : comm_error(c, ncclInvalidArgument, i == SHIM_OPS
		    ? "ncclRedOpCreatePreMulSum: too many operations" : blinkCommGetError(c->blink));
	if (!beside)
		*op = (ncclRedOp_t)ours;
	c->op[i].theirs = *op;
	c->op[i].ours = ours;
	c->op[i].used = true;
	return ncclSuccess;
}

ncclResult_t
served_RedOpDestroy(ncclRedOp_t op, ncclComm_t comm)
{
	struct shim_comm *c = comm_of(comm);
	bool found = false;
	for (int i = 0; c && i < SHIM_OPS; i++) {
		if (c->op[i].used && c->op[i].theirs == op) {
			blinkRedOpDestroy(c->op[i].ours, c->blink);
			c->op[i].used = false;
			found = true;
		}
	}
	if (real_nccl()->path)
		return REAL(RedOpDestroy, (op, comm));
	return found ? ncclSuccess : comm_error(c, ncclInvalidArgument, "ncclRedOpDestroy: no such operation");
}

/* ---- memory ---- */

/* Buffers of any kind are served without: there is nothing to do for it. */
ncclResult_t
served_CommRegister(ncclComm_t comm, void *memory, size_t bytes, void **handle)
{
	ncclResult_t result;
	struct shim_comm *c = comm_ready(comm, &result);
	(void)bytes;
	if (!c)
		return result;
	if (!handle || !memory)
		return comm_error(c, ncclInvalidArgument, "ncclCommRegister: memory or handle: NULL");
	*handle = memory;
	return ncclSuccess;
}

ncclResult_t
served_CommDeregister(ncclComm_t comm, void *handle)
{
	ncclResult_t result;
	(void)handle;
	comm_ready(comm, &result);
	return result;
}

/* Windows: the same, but that they are asked for their memory. What kernels of the program would do with one needs
 * ncclDevCommCreate, which only NCCL has. */
ncclResult_t
served_CommWindowRegister(ncclComm_t comm, void *memory, size_t bytes, ncclWindow_t *window, int flags)
{
	ncclResult_t result;
	struct shim_comm *c = comm_ready(comm, &result);
	(void)bytes, (void)flags;
	if (!c)
		return result;
	if (!memory || !window)
		return comm_error(c, ncclInvalidArgument, "ncclCommWindowRegister: memory or window: NULL");
	struct shim_window *w = malloc(sizeof *w);
	if (!w)
		return comm_error(c, ncclSystemError, "out of memory");
	*w = (struct shim_window){ memory, c->windows };
	c->windows = w;
	*window = (ncclWindow_t)(void *)w;
	return ncclSuccess;
}

/* Where the list has it; NULL: nowhere. */
static struct shim_window **
find_window(struct shim_comm *c, ncclWindow_t window)
{
	struct shim_window **at = &c->windows;
	while (*at && (void *)*at != (void *)window)
		at = &(*at)->next;
	if (!*at)
		comm_error(c, ncclInvalidArgument, "window: none of this communicator");
	return *at ? at : NULL;
}

ncclResult_t
served_CommWindowDeregister(ncclComm_t comm, ncclWindow_t window)
{
	ncclResult_t result;
	struct shim_comm *c = comm_ready(comm, &result);
	struct shim_window **at = c ? find_window(c, window) : NULL, *w;
	if (!at)
		return c ? ncclInvalidArgument : result;
	w = *at;
	*at = w->next;
	free(w);
	return ncclSuccess;
}

ncclResult_t
served_WinGetUserPtr(ncclComm_t comm, ncclWindow_t window, void **memory)
{
	ncclResult_t result;
	struct shim_comm *c = comm_ready(comm, &result);
	struct shim_window **at = c && memory ? find_window(c, window) : NULL;
	if (at)
		*memory = (*at)->memory;
	return at ? ncclSuccess : c ? ncclInvalidArgument : result;
}

ncclResult_t
served_MemAlloc(void **memory, size_t bytes)
{
	if (!memory)
		return comm_error(NULL, ncclInvalidArgument, "memory: NULL");
	*memory = device_alloc(bytes);
	return *memory ? ncclSuccess : ncclUnhandledCudaError;
}

ncclResult_t
served_MemFree(void *memory)
{
	return device_free(memory) ? ncclSuccess : ncclUnhandledCudaError;
}
