/* All ranks of a schedule in one process: an opened device of its program. */
#ifndef BLINK_ALL_RANKS_H
#define BLINK_ALL_RANKS_H

#include "blink_program.h"

#include <stdbool.h>

struct all_ranks {
	const struct blink_program *program;
	size_t chunk_bytes;
	void *device;
};

/* Is that configuration one for them? */
int all_ranks_check(const blinkConfig_t *config, struct blink_error *err);

/* program: with its steps; stays until all_ranks_close. config: checked. */
int all_ranks_open(struct all_ranks *a, const struct blink_program *program, const blinkConfig_t *config,
    struct blink_error *err);
void all_ranks_close(struct all_ranks *a);

int all_ranks_memory_new(struct all_ranks *a, int rank, size_t bytes, void **memory, struct blink_error *err);
int all_ranks_memory_free(struct all_ranks *a, int rank, void *memory, struct blink_error *err);
int all_ranks_copy(struct all_ranks *a, int rank, void *to, const void *from, size_t bytes, struct blink_error *err);

/* send, recv: a buffer for each rank. */
int all_ranks_run(struct all_ranks *a, const void *const *send, void *const *recv, size_t count, int type, int op,
    struct blink_error *err);

#endif
