/* Windows: memory of blinkMemAlloc, and what of it all ranks have registered.
 *
 * Memory is a memfd from the beginning, so that registering needs no copy. To register is to exchange descriptors,
 * which all ranks of a server do at once: the hub hands round where, and shm_exchange does the rest. */
#include "comm/windows.h"
#include "comm/comm.h"
#include "error.h"

#include <stdlib.h>
#include <string.h>

struct memory {
	struct shm *shm;
	unsigned char address[SHM_ADDRESS];
	size_t bytes;
	int registered;			/* number of its window; 0: none */
	struct memory *next;
};

struct offer {
	unsigned char address[SHM_ADDRESS];
	uint64_t same;
	uint64_t process[2];
	int32_t valid;
};

static struct memory **
find_memory(struct rank_comm *r, const void *at)
{
	struct memory **m = &r->memory;
	while (*m && ((const char *)at < (char *)shm_memory((*m)->shm)
	    || (const char *)at >= (char *)shm_memory((*m)->shm) + (*m)->bytes))
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
		shm_open_own(bytes ? bytes : 1, &r->keys, m->address, &m->shm, &err);
	if (err.code != blinkSuccess) {
		free(m);
		return comm_error(comm, &err);
	}
	m->bytes = bytes ? bytes : 1;
	m->next = r->memory;
	r->memory = m;
	*memory = shm_memory(m->shm);
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
	if (!m || shm_memory(m->shm) != memory || m->registered) {
		set_error(&err, blinkInvalidArgument, "memory: %s", m && m->registered ? "is registered" :
		    "not of this communicator's blinkMemAlloc");
		return comm_error(comm, &err);
	}
	*at = m->next;
	shm_close(m->shm);
	free(m);
	return blinkSuccess;
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
	if (bytes)
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

/* Descriptors of the peers on this server, with those who are threads of this process left as they are. */
static int
map_window(struct rank_comm *r, struct memory *m, const struct offer *offer, struct window *window,
    struct blink_error *err)
{
	struct engine *e = &r->engine;
	struct shm_peer *peer = calloc((size_t)e->n_local, sizeof *peer);
	int n = 0;
	if (!peer)
		return set_error_memory(err);
	for (int i = 0; i < e->n_ranks; i++) {
		if (i == e->rank || !e->peer[i].theirs)
			continue;
		peer[n].rank = i;
		memcpy(peer[n].address, offer[i].address, SHM_ADDRESS);
		if (memcmp(offer[i].process, offer[e->rank].process, sizeof offer[i].process) == 0)
			peer[n].same = (struct shm *)(uintptr_t)offer[i].same;
		n++;
	}
	shm_exchange(m->shm, e->rank, peer, n, rank_comm_deadline(r), &e->stop, err);
	for (int i = 0; i < n; i++)
		window->peer[peer[i].rank] = peer[i].memory;
	window->peer[e->rank] = window->own;
	free(peer);
	return err->code;
}

/* No call is under way on this rank, and none begins before all ranks have come so far. */
static int
meet(struct rank_comm *r, struct blink_error *err)
{
	char *all = malloc((size_t)r->engine.n_ranks), here = 1;
	if (!all)
		return set_error_memory(err);
	if (engine_wait(&r->engine, 0, true, err) == blinkSuccess)
		bootstrap_allgather(r->bootstrap, &here, sizeof here, all, rank_comm_deadline(r), err);
	free(all);
	return err->code;
}

/* m: NULL, if what the caller gave is not valid: the others hear of it, and fail, too. */
static int
register_memory(struct rank_comm *r, struct memory *m, struct offer *offer, struct window *window,
    struct blink_error *err)
{
	struct engine *e = &r->engine;
	struct offer mine = { .valid = m && !m->registered && free_number(e), .same = m ? (uintptr_t)m->shm : 0 };
	if (m)
		memcpy(mine.address, m->address, SHM_ADDRESS);
	memcpy(mine.process, r->process, sizeof mine.process);
	if (bootstrap_allgather(r->bootstrap, &mine, sizeof mine, offer, rank_comm_deadline(r), err) != blinkSuccess)
		return err->code;
	for (int i = 0; i < e->n_ranks; i++)
		if (!offer[i].valid)
			return set_error(err, blinkInvalidArgument, "rank %d: memory: not of blinkMemAlloc, or "
			    "registered; or %d are", i, (int)WINDOWS);
	window->own = shm_memory(m->shm);
	window->bytes = m->bytes;
	/* A rank that cannot map its peers' memory does not come to the meeting: the others fail, too. */
	if (map_window(r, m, offer, window, err) != blinkSuccess) {
		r->engine.events.failed(r, err, -1);
		return err->code;
	}
	m->registered = free_number(e);
	atomic_store(&e->window[m->registered], window);
	return meet(r, err);
}

blinkResult_t
blinkCommRegister(blinkComm_t comm, void *memory, size_t bytes, void **handle)
{
	struct blink_error err = { 0 };
	struct rank_comm *r = comm_rank(comm);
	if (!r || !handle)
		return blinkInvalidArgument;
	size_t n = (size_t)r->engine.n_ranks;
	struct memory *m = *find_memory(r, memory);
	struct offer *offer = calloc(n, sizeof *offer);
	struct window *window = calloc(1, sizeof *window + n * sizeof window->peer[0]);
	if (m && bytes > m->bytes - (size_t)((char *)memory - (char *)shm_memory(m->shm)))
		m = NULL;
	if (!offer || !window)
		set_error_memory(&err);
	else if (meet(r, &err) == blinkSuccess && register_memory(r, m, offer, window, &err) == blinkSuccess)
		*handle = m;
	free(offer);
	if (err.code == blinkSuccess)
		return blinkSuccess;
	if (!m || !m->registered)
		free(window);
	return comm_error(comm, &err);
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
	meet(r, &err);
	free(atomic_exchange(&r->engine.window[m->registered], NULL));
	m->registered = 0;
	return err.code == blinkSuccess ? blinkSuccess : comm_error(comm, &err);
}

void
windows_close(struct rank_comm *r)
{
	for (int w = 1; w <= WINDOWS; w++)
		free(atomic_exchange(&r->engine.window[w], NULL));
	while (r->memory) {
		struct memory *m = r->memory;
		r->memory = m->next;
		shm_close(m->shm);
		free(m);
	}
}
