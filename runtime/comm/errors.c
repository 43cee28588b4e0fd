/* Errors of communicators, and who may use one. */
#include "comm/comm.h"
#include "support/error.h"
#include "support/give.h"
#include "support/process.h"

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
	if (!comm)
		return NULL;
	if (comm->rank && comm->owner == process_id())
		return comm->rank;
	struct blink_error err = { 0 };
	if (!comm->rank)
		set_error(&err, blinkInvalidArgument, "communicator: of all ranks: want one of blinkCommInitRank");
	else
		set_error(&err, blinkInvalidArgument,
		    "communicator: made by the parent of this process: want one made after fork");
	comm_error(comm, &err);
	return NULL;
}

blinkResult_t
give_blink_error(blinkError_t *error, const struct blink_error *err)
{
	return give_error(error, (Status)err->code, err->text);
}
