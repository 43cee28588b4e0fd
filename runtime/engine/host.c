/* The backend of the host: a region in memory that the ranks of a server share, and an engine that executes calls. */
#include "engine/engine.h"
#include "support/error.h"

#include <stdlib.h>
#include <string.h>

_Static_assert((int)LIMIT_COMM_RANKS <= (int)FLAGS_OF_RANKS_MAX,
    "a bell knows the flags of every rank by a number of 32 bits");
_Static_assert((int)SHM_ADDRESS == (int)BACKEND_ADDRESS, "what ranks exchange is where their regions are");

/* A rank alone on its server, or without shared memory, has an arena of its own all the same. */
static int
open_region(struct engine *e, unsigned char *address, struct blink_error *err)
{
	struct rank_state *self = e->self;
	struct peer *own = &e->peer[self->rank];
	if (shm_open_own(region_bytes(self->n_local), &self->keys, address, &e->shm, err) != blinkSuccess)
		return err->code;
	e->region = shm_memory(e->shm);
	e->arena = (char *)e->region + region_arena_offset(self->n_local);
	e->bell = &e->region->bell;
	struct region_peer *mine = &e->region->peer[self->local_index];
	*own = (struct peer){ .mine = mine, .theirs = mine, .in = &mine->channel, .bell = e->bell,
	    .slots = &e->region->slots, .arena = e->arena };
	return blinkSuccess;
}

static int
host_open(struct rank_state *self, unsigned char *address, void **of, struct blink_error *err)
{
	struct engine *e = *of = calloc(1, sizeof *e);
	if (!e)
		return set_error_memory(err);
	e->self = self;
	e->peer = calloc((size_t)self->n_ranks, sizeof *e->peer);
	if (!e->peer)
		return set_error_memory(err);
	return open_region(e, address, err) == blinkSuccess ? engine_open(e, true, err) : err->code;
}

static void
see_peer(struct engine *e, int rank, char *memory)
{
	struct region *theirs = (void *)memory;
	struct peer *peer = &e->peer[rank];
	peer->mine = &e->region->peer[local_index(e->self, rank)];
	peer->theirs = &theirs->peer[e->self->local_index];
	peer->in = &peer->theirs->channel;
	peer->bell = &theirs->bell;
	peer->slots = &theirs->slots;
	peer->arena = memory + region_arena_offset(e->self->n_local);
}

static int
host_connect(void *of, const void *addresses, size_t step, struct blink_error *err)
{
	struct engine *e = of;
	int n = e->self->n_ranks;
	if (!e->self->settings.shm)
		return blinkSuccess;
	char **memory = calloc((size_t)n, sizeof *memory);
	if (!memory)
		return set_error_memory(err);
	map_local(e->self, e->shm, addresses, step, region_bytes(e->self->n_local), e->self->deadline, memory, err);
	for (int i = 0; i < n && err->code == blinkSuccess; i++)
		if (memory[i])
			see_peer(e, i, memory[i]);
	free(memory);
	return err->code;
}

static uint64_t
host_begun(void *of)
{
	return ((struct engine *)of)->collective;
}

static int
host_memory_open(void *of, struct memory *m, struct blink_error *err)
{
	struct engine *e = of;
	if (shm_open_own(m->bytes, &e->self->keys, m->address, &m->shm, err) == blinkSuccess)
		m->at = shm_memory(m->shm);
	return err->code;
}

static int
host_memory_close(void *of, struct memory *m, bool forked, struct blink_error *err)
{
	(void)of, (void)forked, (void)err;
	shm_close(m->shm);
	return blinkSuccess;
}

static int
host_copy(void *of, void *to, const void *from, size_t bytes, struct blink_error *err)
{
	(void)of, (void)err;
	memcpy(to, from, bytes);
	return blinkSuccess;
}

static void
host_close(void *of, bool forked)
{
	struct engine *e = of;
	(void)forked;
	engine_close(e);
	for (int w = 1; w <= WINDOWS; w++)
		free(atomic_load(&e->window[w]));
	shm_close(e->shm);
	free(e);
}

const struct backend host_backend = {
	.name = "host",
	.flat = true,
	.open = host_open,
	.connect = host_connect,
	.net = { NULL, remote_place, remote_arrived, remote_broken, remote_short_of },
	.submit = engine_submit,
	.wait = engine_wait,
	.last_call = engine_last_call,
	.probe = engine_probe,
	.begun = host_begun,
	.wake = engine_wake,
	.status = engine_status,
	.memory_open = host_memory_open,
	.memory_close = host_memory_close,
	.copy = host_copy,
	.memory_register = window_register,
	.memory_deregister = window_deregister,
	.finish = engine_stop,
	.close = host_close,
};
