/* Communicators as callers have them: of one rank of a job, or of all ranks of a schedule. */
#include "all_ranks/all_ranks.h"
#include "api/schedule.h"
#include "comm/comm.h"
#include "comm/memory.h"
#include "support/error.h"
#include "support/process.h"

#include <stdlib.h>

blinkResult_t
blinkCommCreate(blinkSchedule_t sched, const blinkConfig_t *config, blinkComm_t *comm, blinkError_t *error)
{
	static const blinkConfig_t defaults;
	const struct blink_program *program = NULL;
	struct blink_error err = { 0 };
	config = config ? config : &defaults;
	if (!sched || !comm)
		set_error(&err, blinkInvalidArgument, "schedule or communicator: NULL");
	else if (all_ranks_check(config, &err) == blinkSuccess)
		schedule_lower(sched, &program, &err);
	struct blinkComm *c = calloc(1, sizeof *c);
	struct all_ranks *all = calloc(1, sizeof *all);
	if (!c || !all)
		set_error_memory(&err);
	if (err.code == blinkSuccess)
		all_ranks_open(all, program, config, &err);
	if (err.code != blinkSuccess) {
		free(c);
		free(all);
		return give_blink_error(error, &err);
	}
	*c = (struct blinkComm){ .all = all, .owner = process_id() };
	pthread_mutex_init(&c->lock, NULL);
	*comm = c;
	return blinkSuccess;
}

/* Calls that are under way end first: peers wait for what they publish. A failed communicator has none. */
blinkResult_t
blinkCommDestroy(blinkComm_t comm)
{
	struct blink_error err = { 0 };
	if (!comm)
		return blinkSuccess;
	bool forked = comm->owner != process_id();
	group_forgets(comm);
	if (comm->rank) {
		if (!forked)
			rank_comm_wait(comm->rank, 0, true, &err);
		rank_comm_close(comm->rank, forked);
	} else {
		all_ranks_close(comm->all);
	}
	free(comm->all);
	free(comm);
	return blinkSuccess;
}

blinkResult_t
blinkCommCount(blinkComm_t comm, int *nRanks)
{
	if (!comm || !nRanks)
		return blinkInvalidArgument;
	*nRanks = comm->rank ? comm->rank->self.n_ranks : comm->all->program->n_ranks;
	return blinkSuccess;
}

/* A call of all ranks begins: the backends keep the first error of a call, and calls do not inherit it. In a forked
 * child it ends here. */
static struct all_ranks *
begin(struct blinkComm *comm)
{
	if (!comm)
		return NULL;
	comm->err = (struct blink_error){ 0 };
	if (comm->rank)
		set_error(&comm->err, blinkInvalidArgument, "communicator: of one rank of a job: want one of "
		    "blinkCommCreate");
	else if (comm->owner == process_id())
		return comm->all;
	else
		set_error(&comm->err, blinkInvalidArgument, "communicator: made by the parent of this process: want "
		    "one made after fork");
	return NULL;
}

blinkResult_t
blinkMemAlloc(blinkComm_t comm, int rank, size_t bytes, void **memory)
{
	if (comm && comm->rank)
		return rank_memory_new(comm, rank, bytes, memory);
	struct all_ranks *all = begin(comm);
	return all ? (blinkResult_t)all_ranks_memory_new(all, rank, bytes, memory, &comm->err) : blinkInvalidArgument;
}

blinkResult_t
blinkMemFree(blinkComm_t comm, int rank, void *memory)
{
	if (comm && comm->rank)
		return rank_memory_free(comm, rank, memory);
	struct all_ranks *all = begin(comm);
	return all ? (blinkResult_t)all_ranks_memory_free(all, rank, memory, &comm->err) : blinkInvalidArgument;
}

static blinkResult_t
copy(blinkComm_t comm, int rank, void *to, const void *from, size_t bytes)
{
	if (comm && comm->rank)
		return rank_memory_copy(comm, rank, to, from, bytes);
	struct all_ranks *all = begin(comm);
	return all ? (blinkResult_t)all_ranks_copy(all, rank, to, from, bytes, &comm->err) : blinkInvalidArgument;
}

blinkResult_t
blinkCopyIn(blinkComm_t comm, int rank, void *memory, const void *host, size_t bytes)
{
	return copy(comm, rank, memory, host, bytes);
}

blinkResult_t
blinkCopyOut(blinkComm_t comm, int rank, void *host, const void *memory, size_t bytes)
{
	return copy(comm, rank, host, memory, bytes);
}

blinkResult_t
blinkRun(blinkComm_t comm, const void *const *send, void *const *recv, size_t count, blinkDataType_t type,
    blinkRedOp_t op)
{
	struct all_ranks *all = begin(comm);
	return all ? (blinkResult_t)all_ranks_run(all, send, recv, count, (int)type, (int)op, &comm->err)
	    : blinkInvalidArgument;
}
