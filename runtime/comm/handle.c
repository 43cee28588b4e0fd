/* Handles of communicators: made, asked, ended. */
#include "comm/comm.h"
#include "cuda/gpu.h"
#include "error.h"

#include <stdlib.h>
#include <string.h>

_Static_assert((int)LIMIT_COMM_RANKS <= (int)FLAGS_OF_RANKS_MAX,
    "a bell knows the flags of every rank by a number of 32 bits");

blinkResult_t
comm_error(blinkComm_t comm, const struct blink_error *err)
{
	pthread_mutex_lock(&comm->lock);
	comm->err = *err;
	pthread_mutex_unlock(&comm->lock);
	return (blinkResult_t)err->code;
}

struct rank_comm *
comm_rank(blinkComm_t comm)
{
	struct blink_error err = { 0 };
	if (!comm)
		return NULL;
	if (!comm->rank)
		set_error(&err, blinkInvalidArgument, "communicator: of all ranks: want one of blinkCommInitRank");
	else if (comm->owner != getpid())
		set_error(&err, blinkInvalidArgument,
		    "communicator: made by the parent of this process: want one made after fork");
	else
		return comm->rank;
	comm_error(comm, &err);
	return NULL;
}

blinkResult_t
give_blink_error(blinkError_t *error, const struct blink_error *err)
{
	return give_error(error, (Status)err->code, err->text);
}

blinkResult_t
blinkGetUniqueId(blinkUniqueId_t *id, blinkError_t *error)
{
	struct blink_error err = { 0 };
	struct settings settings;
	if (!id)
		set_error(&err, blinkInvalidArgument, "id: NULL");
	else if (settings_read(&settings, &err) == blinkSuccess)
		bootstrap_make_id(settings.interface, settings.secret, id, &err);
	return err.code == blinkSuccess ? blinkSuccess : give_blink_error(error, &err);
}

blinkResult_t
comm_open(blinkComm_t *out, int n, const blinkUniqueId_t *id, int rank, const blinkConfig_t *config,
    struct blink_error *err)
{
	struct blinkComm *comm = calloc(1, sizeof *comm);
	struct rank_comm *r = calloc(1, sizeof *r);
	if (!comm || !r) {
		free(comm);
		free(r);
		return (blinkResult_t)set_error_memory(err);
	}
	if (rank_comm_open(r, n, id, rank, config, err) != blinkSuccess) {
		rank_comm_close(r, false);
		free(comm);
		return (blinkResult_t)err->code;
	}
	comm->rank = r;
	comm->owner = getpid();
	pthread_mutex_init(&comm->lock, NULL);
	*out = comm;
	return blinkSuccess;
}

blinkResult_t
blinkCommInitRank(blinkComm_t *comm, int nRanks, const blinkUniqueId_t *id, int rank, const blinkConfig_t *config,
    blinkError_t *error)
{
	struct blink_error err = { 0 };
	if (!comm || !id)
		set_error(&err, blinkInvalidArgument, "communicator or id: NULL");
	else if (nRanks < 1 || nRanks > LIMIT_COMM_RANKS)
		set_error(&err, blinkInvalidArgument, "nRanks: %d: want 1 to %d", nRanks, (int)LIMIT_COMM_RANKS);
	else if (rank < 0 || rank >= nRanks)
		set_error(&err, blinkInvalidArgument, "rank: %d: want 0 to %d", rank, nRanks - 1);
	else
		comm_open(comm, nRanks, id, rank, config, &err);
	return err.code == blinkSuccess ? blinkSuccess : give_blink_error(error, &err);
}

int
rank_comm_submit(struct rank_comm *r, struct call *call, blinkStream_t stream, struct blink_error *err)
{
	return r->on_gpu ? gpu_submit(r->cuda, call, stream, err) : engine_submit(&r->engine, call, err);
}

int
rank_comm_wait(struct rank_comm *r, uint64_t number, bool wait, struct blink_error *err)
{
	return r->on_gpu ? gpu_wait(r->cuda, number, wait, err) : engine_wait(&r->engine, number, wait, err);
}

uint64_t
rank_comm_last_call(struct rank_comm *r)
{
	return r->on_gpu ? gpu_last_call(r->cuda) : engine_last_call(&r->engine);
}

/* Calls that are under way end first: peers wait for what they publish. A failed communicator has none. */
blinkResult_t
blinkCommDestroy(blinkComm_t comm)
{
	struct blink_error err = { 0 };
	if (!comm)
		return blinkSuccess;
	bool forked = comm->owner != getpid();
	group_forgets(comm);
	if (comm->rank) {
		if (!forked)
			rank_comm_wait(comm->rank, 0, true, &err);
		rank_comm_close(comm->rank, forked);
	} else if (comm->device) {
		comm->program->close(comm->device);
	}
	free(comm);
	return blinkSuccess;
}

const char *
blinkCommGetError(blinkComm_t comm)
{
	static __thread char text[sizeof comm->err.text];
	if (!comm || !comm->rank)
		return comm ? comm->err.text : "";
	pthread_mutex_lock(&comm->lock);
	memcpy(text, comm->err.text, sizeof text);
	pthread_mutex_unlock(&comm->lock);
	return text;
}

blinkResult_t
blinkCommCount(blinkComm_t comm, int *nRanks)
{
	if (!comm || !nRanks)
		return blinkInvalidArgument;
	*nRanks = comm->rank ? comm->rank->engine.n_ranks : comm->program->n_ranks;
	return blinkSuccess;
}

blinkResult_t
blinkCommUserRank(blinkComm_t comm, int *rank)
{
	if (!comm || !comm->rank || !rank)
		return blinkInvalidArgument;
	*rank = comm->rank->engine.rank;
	return blinkSuccess;
}

blinkResult_t
blinkCommLastCall(blinkComm_t comm, uint64_t *call)
{
	struct rank_comm *r = comm_rank(comm);
	if (!r || !call)
		return blinkInvalidArgument;
	*call = rank_comm_last_call(r);
	return blinkSuccess;
}

static blinkResult_t
wait_for(blinkComm_t comm, uint64_t call, bool waits)
{
	struct blink_error err = { 0 };
	struct rank_comm *r = comm_rank(comm);
	if (!r)
		return blinkInvalidArgument;
	if (call > rank_comm_last_call(r))
		set_error(&err, blinkInvalidArgument, "call: %llu: has not been made", (unsigned long long)call);
	int code = err.code != blinkSuccess ? err.code : rank_comm_wait(r, call, waits, &err);
	return code == blinkSuccess || code == blinkInProgress ? (blinkResult_t)code : comm_error(comm, &err);
}

blinkResult_t
blinkCommWait(blinkComm_t comm, uint64_t call)
{
	return wait_for(comm, call, true);
}

blinkResult_t
blinkCommTest(blinkComm_t comm, uint64_t call)
{
	return wait_for(comm, call, false);
}

blinkResult_t
blinkCommAbort(blinkComm_t comm)
{
	char text[80];
	struct rank_comm *r = comm_rank(comm);
	if (!r)
		return blinkInvalidArgument;
	snprintf(text, sizeof text, "rank %d: blinkCommAbort was called", r->engine.rank);
	bootstrap_fail(r->bootstrap, blinkAborted, r->engine.rank, text);
	engine_fail(&r->engine, blinkAborted, text);
	rank_comm_stop(r);
	return blinkSuccess;
}

blinkResult_t
blinkCommGetAsyncError(blinkComm_t comm, blinkError_t *error)
{
	struct blink_error err = { 0 };
	struct rank_comm *r = comm_rank(comm);
	if (!r)
		return blinkInvalidArgument;
	engine_error(&r->engine, &err);
	return err.code == blinkSuccess ? blinkSuccess : give_blink_error(error, &err);
}
