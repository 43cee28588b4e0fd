/* Memory of blinkMemAlloc of one rank of a job: made by its backend, and freed with the communicator at the latest. */
#include "comm/memory.h"
#include "comm/comm.h"
#include "support/error.h"

#include <stdlib.h>

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
	if (rank != r->self.rank)
		set_error(err, blinkInvalidArgument, "rank: %d: want this communicator's own, %d", rank,
		    r->self.rank);
	return rank == r->self.rank;
}

blinkResult_t
rank_memory_new(blinkComm_t comm, int rank, size_t bytes, void **memory)
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
	else if (is_own(r, rank, &err)) {
		m->bytes = bytes ? bytes : 1;
		r->backend->memory_open(r->of_backend, m, &err);
	}
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
rank_memory_free(blinkComm_t comm, int rank, void *memory)
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
	r->backend->memory_close(r->of_backend, m, false, &err);
	free(m);
	return err.code == blinkSuccess ? blinkSuccess : comm_error(comm, &err);
}

blinkResult_t
rank_memory_copy(blinkComm_t comm, int rank, void *to, const void *from, size_t bytes)
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
		r->backend->copy(r->of_backend, to, from, bytes, &err);
	return err.code == blinkSuccess ? blinkSuccess : comm_error(comm, &err);
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
	if (r->backend->memory_register(r->of_backend, m, &err) != blinkSuccess)
		return comm_error(comm, &err);
	*handle = m;
	return blinkSuccess;
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
	if (!m || !m->registered)
		set_error(&err, blinkInvalidArgument, "handle: not of blinkCommRegister");
	else
		r->backend->memory_deregister(r->of_backend, m, &err);
	return err.code == blinkSuccess ? blinkSuccess : comm_error(comm, &err);
}

void
memory_close_all(struct rank_comm *r, bool forked)
{
	struct blink_error ignored = { 0 };
	while (r->memory) {
		struct memory *m = r->memory;
		r->memory = m->next;
		r->backend->memory_close(r->of_backend, m, forked, &ignored);
		free(m);
	}
}
