/* The table of communicators of programs that use NCCL's interface. */
#include "nccl/shim.h"

#include <stdlib.h>
#include <sys/mman.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t child_made = PTHREAD_COND_INITIALIZER;
static struct shim_comm *first;

struct shim_comm *
comm_of(ncclComm_t handle)
{
	pthread_mutex_lock(&lock);
	struct shim_comm *c = first;
	while (c && c->handle != handle)
		c = c->next;
	pthread_mutex_unlock(&lock);
	return handle ? c : NULL;
}

bool
comm_set_state(struct shim_comm *c, ncclResult_t state)
{
	pthread_mutex_lock(&lock);
	c->state = state;
	bool left = c->left;
	pthread_mutex_unlock(&lock);
	return left;
}

ncclResult_t
comm_state(struct shim_comm *c)
{
	pthread_mutex_lock(&lock);
	ncclResult_t state = c->state;
	pthread_mutex_unlock(&lock);
	return state;
}

struct shim_comm *
comm_ready(ncclComm_t handle, ncclResult_t *result)
{
	struct shim_comm *c = comm_of(handle);
	*result = c ? comm_state(c) : ncclInvalidArgument;
	if (!c)
		comm_error(NULL, *result, "communicator: none of this library");
	else if (*result == ncclInProgress)
		*result = comm_error(c, ncclInvalidArgument, "communicator: it is still being made: want "
		    "ncclCommGetAsyncError to say ncclSuccess first");
	return *result == ncclSuccess ? c : NULL;
}

struct shim_comm *
comm_open_for_calls(ncclComm_t handle, ncclResult_t *result)
{
	struct shim_comm *c = comm_ready(handle, result);
	if (!c || (!c->revoked && !c->finalized))
		return c;
	*result = comm_error(c, ncclInvalidUsage, c->revoked ? "communicator: it has been revoked"
	    : "communicator: it has been finalized");
	return NULL;
}

void
comm_adds(struct shim_comm *c)
{
	pthread_mutex_lock(&lock);
	c->next = first;
	first = c;
	pthread_mutex_unlock(&lock);
}

void
comm_forget(struct shim_comm *c)
{
	pthread_mutex_lock(&lock);
	struct shim_comm **at = &first;
	while (*at && *at != c)
		at = &(*at)->next;
	if (*at)
		*at = c->next;
	pthread_mutex_unlock(&lock);
	group_forgets(c);
	if (!c->beside && c->handle)
		munmap(c->handle, HANDLE_BYTES);
	while (c->windows) {
		struct shim_window *w = c->windows;
		c->windows = w->next;
		free(w);
	}
	free(c->excluded);
	free(c);
}

void
comm_counts_child(struct shim_comm *parent, int more)
{
	pthread_mutex_lock(&lock);
	if (parent)
		parent->n_children += more;
	pthread_cond_broadcast(&child_made);
	pthread_mutex_unlock(&lock);
}

void
comm_awaits_children(struct shim_comm *c)
{
	pthread_mutex_lock(&lock);
	while (c->n_children > 0)
		pthread_cond_wait(&child_made, &lock);
	pthread_mutex_unlock(&lock);
}

bool
comm_leave(struct shim_comm *c)
{
	pthread_mutex_lock(&lock);
	c->left = !c->beside && !c->blocking && !c->parent && c->has_maker && c->state == ncclInProgress;
	bool left = c->left;
	struct shim_comm **at = &first;
	while (*at != c)
		at = &(*at)->next;
	if (left)
		*at = c->next;
	if (left)
		pthread_detach(c->maker);
	pthread_mutex_unlock(&lock);
	return left;
}
