/* The collectives, sends and receives of one rank. */
#include "comm/comm.h"
#include "comm/uneven.h"
#include "support/error.h"

#include <stdlib.h>
#include <string.h>

/* What a caller asks for. */
struct request {
	Collective coll;
	int root;			/* -1: none */
	const void *send;
	void *recv;
	size_t count;
	int type, op;
};

static int
check_buffer(const char *name, const void *buffer, size_t bytes, size_t size, struct blink_error *err)
{
	if (bytes && !buffer)
		return set_error(err, blinkInvalidArgument, "%s: NULL: want %zu bytes", name, bytes);
	if (bytes && (uintptr_t)buffer % size)
		return set_error(err, blinkInvalidArgument, "%s: not aligned to its elements of %zu bytes", name, size);
	return blinkSuccess;
}

/* Buffers may be the same where the collective has it so (blinkCollective_t); else they are apart. */
static int
check_buffers(const struct rank_state *self, const struct request *q, size_t size, struct blink_error *err)
{
	struct blink_layout l = blink_layout_at((int)q->coll, q->root, self->n_ranks, self->rank);
	size_t block = q->count * size, sent = (size_t)l.send * block, received = (size_t)l.recv * block;
	uintptr_t send = (uintptr_t)q->send, recv = (uintptr_t)q->recv;
	if (check_buffer("send", q->send, sent, size, err) != blinkSuccess
	    || check_buffer("recv", q->recv, received, size, err) != blinkSuccess)
		return err->code;
	if (sent && received && send < recv + received && recv < send + sent
	    && send + (size_t)l.own_send * block != recv + (size_t)l.own_recv * block)
		return set_error(err, blinkInvalidArgument, "send and recv overlap, but not as in place");
	return blinkSuccess;
}

static int
find_reduction(struct rank_comm *r, const struct request *q, struct reduction *out, struct blink_error *err)
{
	int user = q->op - blinkOpNext;
	bool reduces = collective_reduces(q->coll);
	if (reduces && user >= 0) {
		pthread_mutex_lock(&r->lock);
		bool has = user < USER_OPS && r->has_op[user];
		*out = has ? r->op[user] : *out;
		pthread_mutex_unlock(&r->lock);
		if (!has)
			return set_error(err, blinkInvalidArgument, "op: %d: not an operation of this communicator",
			    q->op);
		if (out->type != q->type)
			return set_error(err, blinkInvalidArgument, "op: made for type %d: found type %d", out->type,
			    q->type);
		return blinkSuccess;
	}
	if (blinkTypeSize((blinkDataType_t)q->type) == 0)
		return set_error(err, blinkInvalidArgument, "type: %d: not a blinkDataType_t", q->type);
	if (!reduction_make(q->type, reduces ? q->op : blinkSum, r->self.n_ranks, out))
		return set_error(err, blinkInvalidArgument, "op: %d: not a blinkRedOp_t", q->op);
	return blinkSuccess;
}

static int
check_request(const struct rank_state *self, const struct request *q, size_t size, struct blink_error *err)
{
	if (collective_rooted(q->coll) && (q->root < 0 || q->root >= self->n_ranks))
		return set_error(err, blinkInvalidArgument, "root: %d: want 0 to %d", q->root, self->n_ranks - 1);
	if (q->count > (size_t)(INT64_MAX / 4 / self->n_ranks) / size)
		return set_error(err, blinkInvalidArgument, "count: %zu: too large", q->count);
	return check_buffers(self, q, size, err);
}

/* A call that cannot be made, nor can the group that it is in. */
static blinkResult_t
refuse(blinkComm_t comm, const struct blink_error *err)
{
	group_fails(err->code);
	return comm_error(comm, err);
}

static blinkResult_t
refuse_communicator(void)
{
	group_fails(blinkInvalidArgument);
	return blinkInvalidArgument;
}

/* Take the call, now or when the group ends. */
static blinkResult_t
submit(blinkComm_t comm, struct call *call, blinkStream_t stream, struct blink_error *err)
{
	if (!group_takes(comm, call, stream, err))
		rank_comm_submit(comm->rank, call, stream, err);
	return err->code == blinkSuccess ? blinkSuccess : refuse(comm, err);
}

static int
check_stream(const struct rank_comm *r, blinkStream_t stream, struct blink_error *err)
{
	if (stream && !r->backend->on_device)
		return set_error(err, blinkInvalidArgument, "stream: want NULL on the host");
	return blinkSuccess;
}

static blinkResult_t
collective(blinkComm_t comm, blinkStream_t stream, const struct request *q)
{
	struct blink_error err;		/* not cleared: its text takes longer than all the rest */
	struct reduction reduction = { 0 };
	struct rank_comm *r = comm_rank(comm);
	if (!r)
		return refuse_communicator();
	err.code = blinkSuccess;
	if (check_stream(r, stream, &err) != blinkSuccess || find_reduction(r, q, &reduction, &err) != blinkSuccess
	    || check_request(&r->self, q, reduction.size, &err) != blinkSuccess)
		return refuse(comm, &err);
	struct call *call = malloc(sizeof *call);
	if (!call) {
		set_error_memory(&err);
		return refuse(comm, &err);
	}
	*call = (struct call){ .coll = q->coll, .root = q->root, .send = q->send, .recv = q->recv,
	    .count = (int64_t)q->count, .reduction = reduction, .asked_op = q->op };
	return submit(comm, call, stream, &err);
}

blinkResult_t
blinkBroadcast(const void *send, void *recv, size_t count, blinkDataType_t type, int root, blinkComm_t comm,
    blinkStream_t stream)
{
	return collective(comm, stream, &(struct request){ BROADCAST, root, send, recv, count, (int)type, 0 });
}

blinkResult_t
blinkReduce(const void *send, void *recv, size_t count, blinkDataType_t type, blinkRedOp_t op, int root,
    blinkComm_t comm, blinkStream_t stream)
{
	return collective(comm, stream, &(struct request){ REDUCE, root, send, recv, count, (int)type, (int)op });
}

blinkResult_t
blinkAllReduce(const void *send, void *recv, size_t count, blinkDataType_t type, blinkRedOp_t op, blinkComm_t comm,
    blinkStream_t stream)
{
	return collective(comm, stream, &(struct request){ ALLREDUCE, -1, send, recv, count, (int)type, (int)op });
}

blinkResult_t
blinkGather(const void *send, void *recv, size_t count, blinkDataType_t type, int root, blinkComm_t comm,
    blinkStream_t stream)
{
	return collective(comm, stream, &(struct request){ GATHER, root, send, recv, count, (int)type, 0 });
}

blinkResult_t
blinkScatter(const void *send, void *recv, size_t count, blinkDataType_t type, int root, blinkComm_t comm,
    blinkStream_t stream)
{
	return collective(comm, stream, &(struct request){ SCATTER, root, send, recv, count, (int)type, 0 });
}

blinkResult_t
blinkAllGather(const void *send, void *recv, size_t count, blinkDataType_t type, blinkComm_t comm,
    blinkStream_t stream)
{
	return collective(comm, stream, &(struct request){ ALLGATHER, -1, send, recv, count, (int)type, 0 });
}

blinkResult_t
blinkReduceScatter(const void *send, void *recv, size_t count, blinkDataType_t type, blinkRedOp_t op,
    blinkComm_t comm, blinkStream_t stream)
{
	return collective(comm, stream, &(struct request){ REDUCESCATTER, -1, send, recv, count, (int)type, (int)op });
}

blinkResult_t
blinkAlltoAll(const void *send, void *recv, size_t count, blinkDataType_t type, blinkComm_t comm,
    blinkStream_t stream)
{
	return collective(comm, stream, &(struct request){ ALLTOALL, -1, send, recv, count, (int)type, 0 });
}

blinkResult_t
blinkAlltoAllv(const void *send, const size_t sendcounts[], const size_t sdispls[], void *recv,
    const size_t recvcounts[], const size_t rdispls[], blinkDataType_t type, blinkComm_t comm, blinkStream_t stream)
{
	struct blink_error err = { 0 };
	struct reduction reduction = { 0 };
	struct rank_comm *r = comm_rank(comm);
	const struct side side[2] = { { "send", send, sendcounts, sdispls }, { "recv", recv, recvcounts, rdispls } };
	const struct request q = { ALLTOALL, -1, send, recv, 0, (int)type, 0 };
	struct call *call = NULL;
	if (!r)
		return refuse_communicator();
	if (check_stream(r, stream, &err) == blinkSuccess && find_reduction(r, &q, &reduction, &err) == blinkSuccess)
		call = uneven_call(&r->self, side, &reduction, &err);
	if (!call)
		return refuse(comm, &err);
	return submit(comm, call, stream, &err);
}

/* ---- messages ---- */

static blinkResult_t
message(blinkComm_t comm, blinkStream_t stream, bool sends, const void *buffer, size_t count, blinkDataType_t type,
    int peer)
{
	struct blink_error err = { 0 };
	struct rank_comm *r = comm_rank(comm);
	size_t size = blinkTypeSize(type);
	if (!r)
		return refuse_communicator();
	if (size == 0)
		set_error(&err, blinkInvalidArgument, "type: %d: not a blinkDataType_t", (int)type);
	else if (peer < 0 || peer >= r->self.n_ranks)
		set_error(&err, blinkInvalidArgument, "peer: %d: want 0 to %d", peer, r->self.n_ranks - 1);
	else if (count > INT64_MAX / 4 / size)
		set_error(&err, blinkInvalidArgument, "count: %zu: too large", count);
	else if (check_stream(r, stream, &err) == blinkSuccess)
		check_buffer(sends ? "send" : "recv", buffer, count * size, size, &err);
	struct call *call = calloc(1, sizeof *call);
	struct message *m = calloc(1, sizeof *m);
	if (!call || !m)
		set_error_memory(&err);
	if (err.code != blinkSuccess) {
		free(call);
		free(m);
		return refuse(comm, &err);
	}
	*m = (struct message){ .sends = sends, .peer = peer, .data = (char *)buffer, .bytes = count * size,
	    .signature = (uint64_t)type };
	call->n_messages = 1;
	call->message = m;
	return submit(comm, call, stream, &err);
}

blinkResult_t
blinkSend(const void *send, size_t count, blinkDataType_t type, int peer, blinkComm_t comm, blinkStream_t stream)
{
	return message(comm, stream, true, send, count, type, peer);
}

blinkResult_t
blinkRecv(void *recv, size_t count, blinkDataType_t type, int peer, blinkComm_t comm, blinkStream_t stream)
{
	return message(comm, stream, false, recv, count, type, peer);
}

blinkResult_t
blinkCommProbe(blinkComm_t comm, int peer, size_t *bytes)
{
	struct blink_error err = { 0 };
	struct rank_comm *r = comm_rank(comm);
	int code = blinkInvalidArgument;
	if (!r)
		return refuse_communicator();
	if (peer < 0 || peer >= r->self.n_ranks)
		set_error(&err, code, "peer: %d: want 0 to %d", peer, r->self.n_ranks - 1);
	else if (!bytes)
		set_error(&err, code, "bytes: NULL");
	else if (!r->backend->probe)
		set_error(&err, code, "blinkCommProbe: the backend %s has none", r->backend->name);
	else
		code = r->backend->probe(r->of_backend, peer, bytes, &err);
	return err.code == blinkSuccess ? (blinkResult_t)code : refuse(comm, &err);
}

/* ---- operations ---- */

/* Alignment: GPUs read an element at once. */
static int
make_scaled(const void *op, const void *scalar, blinkDataType_t type, bool late, struct reduction *out,
    struct blink_error *err)
{
	if (!op || !scalar || !reduction_make_scaled((int)type, scalar, out))
		return set_error(err, blinkInvalidArgument, "op, scalar or type: not valid");
	if (!late)
		reduction_read_scalar(out);
	else
		check_buffer("scalar", scalar, out->size, out->size, err);
	return err->code;
}

static blinkResult_t
add_operation(blinkRedOp_t *op, const void *scalar, blinkDataType_t type, bool late, blinkComm_t comm)
{
	struct blink_error err = { 0 };
	struct rank_comm *r = comm_rank(comm);
	struct reduction reduction = { 0 };
	int user = 0;
	if (!r)
		return blinkInvalidArgument;
	if (make_scaled(op, scalar, type, late, &reduction, &err) != blinkSuccess)
		return comm_error(comm, &err);
	pthread_mutex_lock(&r->lock);
	while (user < USER_OPS && r->has_op[user])
		user++;
	if (user < USER_OPS) {
		r->has_op[user] = true;
		r->op[user] = reduction;
		*op = (blinkRedOp_t)(blinkOpNext + user);
	} else {
		set_error(&err, blinkLimit, "op: this communicator has %d: want some destroyed before", (int)USER_OPS);
	}
	pthread_mutex_unlock(&r->lock);
	return err.code == blinkSuccess ? blinkSuccess : comm_error(comm, &err);
}

blinkResult_t
blinkRedOpCreatePreMulSum(blinkRedOp_t *op, const void *scalar, blinkDataType_t type, blinkComm_t comm)
{
	return add_operation(op, scalar, type, false, comm);
}

blinkResult_t
blinkRedOpCreatePreMulSumDevice(blinkRedOp_t *op, const void *scalar, blinkDataType_t type, blinkComm_t comm)
{
	return add_operation(op, scalar, type, true, comm);
}

blinkResult_t
blinkRedOpDestroy(blinkRedOp_t op, blinkComm_t comm)
{
	struct blink_error err = { 0 };
	struct rank_comm *r = comm_rank(comm);
	int user = (int)op - blinkOpNext;
	if (!r)
		return blinkInvalidArgument;
	pthread_mutex_lock(&r->lock);
	if (user >= 0 && user < USER_OPS && r->has_op[user])
		r->has_op[user] = false;
	else
		set_error(&err, blinkInvalidArgument, "op: %d: not an operation of this communicator", (int)op);
	pthread_mutex_unlock(&r->lock);
	return err.code == blinkSuccess ? blinkSuccess : comm_error(comm, &err);
}
