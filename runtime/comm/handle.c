/* Handles of communicators: made, asked, ended. */
#include "comm/comm.h"
#include "support/error.h"
#include "support/process.h"

#include <stdlib.h>
#include <string.h>

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

int
comm_open(blinkComm_t *out, int n, const blinkUniqueId_t *id, int rank, const blinkConfig_t *config,
    const struct rank_comm *parent, struct blink_error *err)
{
	struct blinkComm *comm = calloc(1, sizeof *comm);
	struct rank_comm *r = calloc(1, sizeof *r);
	if (!comm || !r) {
		free(comm);
		free(r);
		return set_error_memory(err);
	}
	if (rank_comm_open(r, n, id, rank, config, parent, err) != blinkSuccess) {
		rank_comm_close(r, false);
		free(comm);
		return err->code;
	}
	comm->rank = r;
	comm->owner = process_id();
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
		comm_open(comm, nRanks, id, rank, config, NULL, &err);
	return err.code == blinkSuccess ? blinkSuccess : give_blink_error(error, &err);
}

int
rank_comm_submit(struct rank_comm *r, struct call *call, blinkStream_t stream, struct blink_error *err)
{
	return r->backend->submit(r->of_backend, call, stream, err);
}

int
rank_comm_wait(struct rank_comm *r, uint64_t number, bool wait, struct blink_error *err)
{
	return r->backend->wait(r->of_backend, number, wait, err);
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
blinkCommUserRank(blinkComm_t comm, int *rank)
{
	if (!comm || !comm->rank || !rank)
		return blinkInvalidArgument;
	*rank = comm->rank->self.rank;
	return blinkSuccess;
}

blinkResult_t
blinkCommLastCall(blinkComm_t comm, uint64_t *call)
{
	struct rank_comm *r = comm_rank(comm);
	if (!r || !call)
		return blinkInvalidArgument;
	*call = r->backend->last_call(r->of_backend);
	return blinkSuccess;
}

static blinkResult_t
wait_for(blinkComm_t comm, uint64_t call, bool waits)
{
	struct blink_error err;
	struct rank_comm *r = comm_rank(comm);
	if (!r)
		return blinkInvalidArgument;
	err.code = blinkSuccess;
	if (call > 0 && call > r->backend->last_call(r->of_backend))
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
	snprintf(text, sizeof text, "rank %d: blinkCommAbort was called", r->self.rank);
	bootstrap_fail(r->bootstrap, blinkAborted, r->self.rank, text);
	rank_fail(&r->self, blinkAborted, text);
	return blinkSuccess;
}

blinkResult_t
blinkCommGetAsyncError(blinkComm_t comm, blinkError_t *error)
{
	struct blink_error err = { 0 };
	struct rank_comm *r = comm_rank(comm);
	if (!r)
		return blinkInvalidArgument;
	rank_error(&r->self, &err);
	return err.code == blinkSuccess ? blinkSuccess : give_blink_error(error, &err);
}
