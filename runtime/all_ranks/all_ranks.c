/* All ranks of a schedule: calls are checked, and handed to its program. */
#include "all_ranks/all_ranks.h"
#include "support/error.h"

enum { THREADS_MAX = 256 };

int
all_ranks_check(const blinkConfig_t *config, struct blink_error *err)
{
	if (config->threads < 0 || config->threads > THREADS_MAX)
		return set_error(err, blinkInvalidArgument, "threads: want 0 to 256");
	if (config->chunkBytes > SIZE_MAX / 8)
		return set_error(err, blinkInvalidArgument, "chunkBytes: too large");
	return blinkSuccess;
}

int
all_ranks_open(struct all_ranks *a, const struct blink_program *program, const blinkConfig_t *config,
    struct blink_error *err)
{
	*a = (struct all_ranks){ .program = program, .chunk_bytes = config->chunkBytes };
	return program->open(program, config->threads, &a->device, err);
}

void
all_ranks_close(struct all_ranks *a)
{
	if (a->device)
		a->program->close(a->device);
}

static bool
is_rank(const struct all_ranks *a, int rank)
{
	return rank >= 0 && rank < a->program->n_ranks;
}

int
all_ranks_memory_new(struct all_ranks *a, int rank, size_t bytes, void **memory, struct blink_error *err)
{
	if (!is_rank(a, rank) || !memory)
		return set_error(err, blinkInvalidArgument, "rank or memory: not valid");
	return a->program->memory_new(a->device, rank, bytes, memory, err);
}

int
all_ranks_memory_free(struct all_ranks *a, int rank, void *memory, struct blink_error *err)
{
	if (!is_rank(a, rank))
		return set_error(err, blinkInvalidArgument, "rank: not valid");
	return a->program->memory_free(a->device, rank, memory, err);
}

int
all_ranks_copy(struct all_ranks *a, int rank, void *to, const void *from, size_t bytes, struct blink_error *err)
{
	if (!is_rank(a, rank) || (bytes && (!to || !from)))
		return set_error(err, blinkInvalidArgument, "rank or memory: not valid");
	return a->program->memory_copy(a->device, rank, to, from, bytes, err);
}

int
all_ranks_run(struct all_ranks *a, const void *const *send, void *const *recv, size_t count, int type, int op,
    struct blink_error *err)
{
	if (!send || !recv)
		return set_error(err, blinkInvalidArgument, "send or recv: NULL: want an array of one buffer for each "
		    "rank");
	if (count > INT64_MAX)
		return set_error(err, blinkInvalidArgument, "count: too large");
	struct blink_call call = { .send = send, .recv = recv, .count = (int64_t)count, .type = type, .op = op,
	    .chunk_bytes = (int64_t)a->chunk_bytes };
	return a->program->run(a->device, &call, err);
}
