/* Communicators of all ranks: one opened device, of either backend. */
#include "comm/windows.h"
#include "runtime.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { THREADS_MAX = 256 };

static blinkResult_t
reject(struct blink_error *err, const char *text)
{
	err->code = blinkInvalidArgument;
	snprintf(err->text, sizeof err->text, "%s", text);
	return blinkInvalidArgument;
}

static void
tell(blinkError_t *error, const struct blink_error *err)
{
	if (error)
		snprintf(error->text, sizeof error->text, "%s", err->text);
}

blinkResult_t
blinkCommCreate(blinkSchedule_t sched, const blinkConfig_t *config, blinkComm_t *comm, blinkError_t *error)
{
	static const blinkConfig_t defaults;
	const struct blink_program *program = NULL;
	struct blink_error err = { 0 };
	if (!config)
		config = &defaults;
	if (!sched || !comm)
		reject(&err, "schedule or communicator: NULL");
	else if (config->threads < 0 || config->threads > THREADS_MAX)
		reject(&err, "threads: want 0 to 256");
	else if (config->chunkBytes > SIZE_MAX / 8)
		reject(&err, "chunkBytes: too large");
	else
		schedule_lower(sched, &program, &err);
	if (err.code != blinkSuccess) {
		tell(error, &err);
		return (blinkResult_t)err.code;
	}
	struct blinkComm *c = calloc(1, sizeof *c);
	if (!c) {
		err = (struct blink_error){ blinkOutOfMemory, "out of memory" };
	} else {
		c->program = program;
		c->owner = getpid();
		pthread_mutex_init(&c->lock, NULL);
		c->chunk_bytes = config->chunkBytes;
		c->program->open(c->program, config->threads, &c->device, &err);
	}
	if (err.code != blinkSuccess) {
		free(c);
		tell(error, &err);
		return (blinkResult_t)err.code;
	}
	*comm = c;
	return blinkSuccess;
}

/* A call begins: the backends keep the first error of a call, and calls do not inherit it. In a forked child it ends
 * here. */
static bool
begin(struct blinkComm *comm)
{
	if (!comm)
		return false;
	comm->err = (struct blink_error){ 0 };
	if (comm->rank)
		reject(&comm->err, "communicator: of one rank of a job: want one of blinkCommCreate");
	else if (comm->owner == getpid())
		return true;
	else
		reject(&comm->err, "communicator: made by the parent of this process: want one made after fork");
	return false;
}

static bool
is_rank(const struct blinkComm *comm, int rank)
{
	return rank >= 0 && rank < comm->program->n_ranks;
}

blinkResult_t
blinkMemAlloc(blinkComm_t comm, int rank, size_t bytes, void **memory)
{
	if (comm && comm->rank)
		return window_alloc(comm, rank, bytes, memory);
	if (!begin(comm))
		return blinkInvalidArgument;
	struct blink_error *err = &comm->err;
	if (!is_rank(comm, rank) || !memory)
		return reject(err, "rank or memory: not valid");
	return (blinkResult_t)comm->program->memory_new(comm->device, rank, bytes, memory, err);
}

blinkResult_t
blinkMemFree(blinkComm_t comm, int rank, void *memory)
{
	if (comm && comm->rank)
		return window_free(comm, rank, memory);
	if (!begin(comm))
		return blinkInvalidArgument;
	struct blink_error *err = &comm->err;
	if (!is_rank(comm, rank))
		return reject(err, "rank: not valid");
	return (blinkResult_t)comm->program->memory_free(comm->device, rank, memory, err);
}

static blinkResult_t
copy(blinkComm_t comm, int rank, void *to, const void *from, size_t bytes)
{
	if (comm && comm->rank)
		return window_copy(comm, rank, to, from, bytes);
	if (!begin(comm))
		return blinkInvalidArgument;
	struct blink_error *err = &comm->err;
	if (!is_rank(comm, rank) || (bytes && (!to || !from)))
		return reject(err, "rank or memory: not valid");
	return (blinkResult_t)comm->program->memory_copy(comm->device, rank, to, from, bytes, err);
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
	if (!begin(comm))
		return blinkInvalidArgument;
	struct blink_error *err = &comm->err;
	if (!send || !recv)
		return reject(err, "send or recv: NULL: want an array of one buffer for each rank");
	if (count > INT64_MAX)
		return reject(err, "count: too large");
	struct blink_call call = { .send = send, .recv = recv, .count = (int64_t)count, .type = (int)type,
	    .op = (int)op, .chunk_bytes = (int64_t)comm->chunk_bytes };
	return (blinkResult_t)comm->program->run(comm->device, &call, err);
}
