/* Windows: memory of blinkMemAlloc, and what of it all ranks have registered.
 *
 * Memory is a memfd from the beginning, so that registering needs no copy. To register is to exchange descriptors,
 * which all ranks of a server do at once: the hub hands round where, and shm_exchange does the rest. What is mapped
 * then is unmapped when it is taken back, so that a rank's memory is gone once the rank has freed it.
 *
 * A window has the same number on all ranks, by which readers know it (WHERE): they compare it each time.
 *
 * Memory of a GPU is the driver's, and kernels write into regions of their own (cuda/peers.c): to register it changes
 * nothing yet, on no rank. */
#include "comm/windows.h"
#include "comm/comm.h"
#include "cuda/gpu.h"
#include "error.h"

#include <stdlib.h>
#include <string.h>

struct memory {
	struct shm *shm;		/* NULL: on the GPU */
	void *at;
	unsigned char address[SHM_ADDRESS];
	size_t bytes;
	int registered;			/* number of its window; 0: none */
	struct memory *next;
};

struct offer {
	unsigned char address[SHM_ADDRESS];
	int32_t number;			/* of the window; 0: what the caller gave is not valid */
};

static struct memory **
find_memory(struct rank_comm *r, const void *at)
{
	struct memory **m = &r->memory;
	while (*m && ((const char *)at < (char *)(*m)->at || (const char *)at >= (char *)(*m)->at + (*m)->bytes))
		m = &(*m)->next;
	return m;
}

static bool
is_own(const struct rank_comm *r, int rank, struct blink_error *err)
{
	if (rank != r->engine.rank)
		set_error(err, blinkInvalidArgument, "rank: %d: want this communicator's own, %d", rank,
		    r->engine.rank);
	return rank == r->engine.rank;
}

static int
open_memory(struct rank_comm *r, struct memory *m, size_t bytes, struct blink_error *err)
{
	m->bytes = bytes ? bytes : 1;
	if (r->on_gpu)
		return gpu_memory_alloc(r->cuda, m->bytes, &m->at, err);
	if (shm_open_own(m->bytes, &r->keys, m->address, &m->shm, err) == blinkSuccess)
		m->at = shm_memory(m->shm);
	return err->code;
}

static int
close_memory(struct rank_comm *r, struct memory *m, bool forked, struct blink_error *err)
{
	if (m->shm)
		shm_close(m->shm);
	else if (!forked)
		gpu_memory_free(r->cuda, m->at, err);
	free(m);
	return err->code;
}

blinkResult_t
window_alloc(blinkComm_t comm, int rank, size_t bytes, void **memory)
{
	struct blink_error err = { 0 };
	struct rank_comm *r = comm_rank(comm);
	struct memory *m = calloc(1, sizeof *m);
	if (!r) {
		free(m);
		return blinkInvalidArgument;
	}
	if (!m)
		set_error_memory(&err);
	else if (!memory || bytes > (size_t)1 << 47)
		set_error(&err, blinkInvalidArgument, "memory or bytes: not valid");
	else if (is_own(r, rank, &err))
		open_memory(r, m, bytes, &err);
	if (err.code != blinkSuccess) {
		free(m);
		return comm_error(comm, &err);
	}
	m->next = r->memory;
	r->memory = m;
	*memory = m->at;
	return blinkSuccess;
}

blinkResult_t
window_free(blinkComm_t comm, int rank, void *memory)
{
	struct blink_error err = { 0 };
	struct rank_comm *r = comm_rank(comm);
	if (!r)
		return blinkInvalidArgument;
	struct memory **at = memory ? find_memory(r, memory) : NULL, *m = at ? *at : NULL;
	if (!memory || !is_own(r, rank, &err))
		return memory ? comm_error(comm, &err) : blinkSuccess;
	if (!m || m->at != memory || m->registered) {
		set_error(&err, blinkInvalidArgument, "memory: %s", m && m->registered ? "is registered" :
		    "not of this communicator's blinkMemAlloc");
		return comm_error(comm, &err);
	}
	*at = m->next;
	return close_memory(r, m, false, &err) == blinkSuccess ? blinkSuccess : comm_error(comm, &err);
}

blinkResult_t
window_copy(blinkComm_t comm, int rank, void *to, const void *from, size_t bytes)
{
	struct blink_error err = { 0 };
	struct rank_comm *r = comm_rank(comm);
	if (!r)
		return blinkInvalidArgument;
	if (!is_own(r, rank, &err) || (bytes && (!to || !from))) {
		set_error(&err, blinkInvalidArgument, "memory: NULL");
		return comm_error(comm, &err);
	}
	if (bytes && r->on_gpu && gpu_copy(r->cuda, to, from, bytes, &err) != blinkSuccess)
		return comm_error(comm, &err);
	if (bytes && !r->on_gpu)
		memcpy(to, from, bytes);
	return blinkSuccess;
}

/* ---- registration ---- */

static int
free_number(const struct engine *e)
{
	for (int w = 1; w <= WINDOWS; w++)
		if (!atomic_load(&e->window[w]))
			return w;
	return 0;
}

/* A failure of this rank alone: the others hear of it, too. It may be no more than what followed from another. */
static int
fail_here(struct rank_comm *r, struct blink_error *err)
{
	engine_fail_here(&r->engine, err, -1);
	engine_error(&r->engine, err);
	return err->code;
}

/* All ranks do the same: number: of the window that is taken back; 0: one is registered. */
static int
compare_numbers(struct rank_comm *r, const int32_t *number, struct blink_error *err)
{
	int other = 0;
	while (other < r->engine.n_ranks && number[other] == number[0])
		other++;
	if (other == r->engine.n_ranks)
		return blinkSuccess;
	set_error(err, blinkMismatch, "rank %d takes back registered memory number %d, rank 0 number %d (0: registers)",
	    other, (int)number[other], (int)number[0]);
	engine_fail_here(&r->engine, err, other);
	return err->code;
}

/* Afterwards no call is under way on this rank, whatever is returned; and none begins before all ranks have come. */
static int
meet(struct rank_comm *r, int32_t number, struct blink_error *err)
{
	int32_t *all = calloc((size_t)r->engine.n_ranks, sizeof *all);
	if (engine_wait(&r->engine, 0, true, err) == blinkSuccess && !all) {
		set_error_memory(err);
		fail_here(r, err);
	}
	if (err->code == blinkSuccess
	    && bootstrap_allgather(r->bootstrap, &number, sizeof number, all, rank_comm_deadline(r), err)
	    == blinkSuccess)
		compare_numbers(r, all, err);
	free(all);
	return err->code;
}

/* Ask all whether what they were given is valid. m: NULL if this rank's is not. */
static int
offer_all(struct rank_comm *r, const struct memory *m, struct offer *all, struct blink_error *err)
{
	struct offer mine = { .number = m && !m->registered ? free_number(&r->engine) : 0 };
	if (m)
		memcpy(mine.address, m->address, SHM_ADDRESS);
	bootstrap_allgather(r->bootstrap, &mine, sizeof mine, all, rank_comm_deadline(r), err);
	for (int i = 0; i < r->engine.n_ranks && err->code == blinkSuccess; i++)
		if (!all[i].number)
			set_error(err, blinkInvalidArgument, "rank %d: memory: not of blinkMemAlloc, or registered; "
			    "or %d are", i, (int)WINDOWS);
	return err->code;
}

static int
open_window(struct rank_comm *r, struct memory *m, const struct offer *offer, struct blink_error *err)
{
	struct engine *e = &r->engine;
	struct window *window = calloc(1, sizeof *window + (size_t)e->n_ranks * sizeof window->peer[0]);
	if (!window)
		set_error_memory(err);
	else
		map_local(r, m->shm, offer->address, sizeof *offer, 1, rank_comm_deadline(r), window->peer, err);
	if (err->code != blinkSuccess) {
		free(window);
		shm_forget_peers(m->shm);
		return fail_here(r, err);
	}
	window->own = window->peer[e->rank] = m->at;
	window->bytes = m->bytes;
	m->registered = offer[e->rank].number;
	atomic_store(&e->window[m->registered], window);
	return meet(r, m->registered, err);
}

static int
register_on_gpu(struct memory *m, void **handle, struct blink_error *err)
{
	if (!m || m->registered)
		return set_error(err, blinkInvalidArgument, "memory: %s", m ? "is registered" :
		    "not of this communicator's blinkMemAlloc");
	m->registered = 1;
	*handle = m;
	return blinkSuccess;
}

blinkResult_t
blinkCommRegister(blinkComm_t comm, void *memory, size_t bytes, void **handle)
{
	struct blink_error err = { 0 };
	struct rank_comm *r = comm_rank(comm);
	if (!r || !handle)
		return blinkInvalidArgument;
	struct memory *m = *find_memory(r, memory);
	if (m && bytes > m->bytes - (size_t)((char *)memory - (char *)m->at))
		m = NULL;
	if (r->on_gpu)
		return register_on_gpu(m, handle, &err) == blinkSuccess ? blinkSuccess : comm_error(comm, &err);
	struct offer *offer = calloc((size_t)r->engine.n_ranks, sizeof *offer);
	if (!offer && set_error_memory(&err))
		fail_here(r, &err);
	else if (meet(r, 0, &err) == blinkSuccess && offer_all(r, m, offer, &err) == blinkSuccess
	    && open_window(r, m, offer, &err) == blinkSuccess)
		*handle = m;
	free(offer);
	return err.code == blinkSuccess ? blinkSuccess : comm_error(comm, &err);
}

/* Nobody reads here any more: the window is closed, whatever the others say. */
static void
close_window(struct rank_comm *r, struct memory *m)
{
	free(atomic_exchange(&r->engine.window[m->registered], NULL));
	shm_forget_peers(m->shm);
	m->registered = 0;
}

blinkResult_t
blinkCommDeregister(blinkComm_t comm, void *handle)
{
	struct blink_error err = { 0 };
	struct rank_comm *r = comm_rank(comm);
	struct memory *m = r ? r->memory : NULL;
	if (!r)
		return blinkInvalidArgument;
	while (m && m != handle)
		m = m->next;
	if (!m || !m->registered) {
		set_error(&err, blinkInvalidArgument, "handle: not of blinkCommRegister");
		return comm_error(comm, &err);
	}
	if (r->on_gpu) {
		m->registered = 0;
		return blinkSuccess;
	}
	meet(r, m->registered, &err);
	close_window(r, m);
	return err.code == blinkSuccess ? blinkSuccess : comm_error(comm, &err);
}

void
windows_close(struct rank_comm *r, bool forked)
{
	struct blink_error ignored = { 0 };
	for (int w = 1; w <= WINDOWS; w++)
		free(atomic_exchange(&r->engine.window[w], NULL));
	while (r->memory) {
		struct memory *m = r->memory;
		r->memory = m->next;
		close_memory(r, m, forked, &ignored);
	}
}
