/* Communicators of programs that use NCCL's interface. */
#include "nccl/shim.h"
#include "debug.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

/* NCCL's tools read in a handle what they take for a communicator: zeros, and no magic number of theirs. */
enum { HANDLE_BYTES = 256 << 10 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t child_made = PTHREAD_COND_INITIALIZER;
static struct shim_comm *first;

/* ---- results and texts ---- */

char *
last_error(void)
{
	static __thread char text[512];
	return text;
}

ncclResult_t
result_of(blinkResult_t result)
{
	switch (result) {
	case blinkSuccess:
		return ncclSuccess;
	case blinkInvalidArgument:
		return ncclInvalidArgument;
	case blinkInProgress:
		return ncclInProgress;
	case blinkRemoteError:
	case blinkTimeout:
	case blinkAborted:
		return ncclRemoteError;
	case blinkOutOfMemory:
	case blinkSystemError:
		return ncclSystemError;
	case blinkInternalError:
		return ncclInternalError;
	default:
		return ncclInvalidUsage;
	}
}

ncclResult_t
comm_error(struct shim_comm *c, ncclResult_t result, const char *text)
{
	snprintf(last_error(), 512, "%.511s", text);
	if (c) {
		pthread_mutex_lock(&lock);
		snprintf(c->text, sizeof c->text, "%.511s", text);
		pthread_mutex_unlock(&lock);
	}
	debug_say(DEBUG_WARN, c ? c->rank : -1, "nccl: %s", text);
	return result;
}

/* ---- the table ---- */

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

/* True: the caller has left it. */
static bool
set_state(struct shim_comm *c, ncclResult_t state)
{
	pthread_mutex_lock(&lock);
	c->state = state;
	bool left = c->left;
	pthread_mutex_unlock(&lock);
	return left;
}

static ncclResult_t
state_of(struct shim_comm *c)
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
	*result = c ? state_of(c) : ncclInvalidArgument;
	if (!c)
		comm_error(NULL, *result, "communicator: none of this library");
	else if (*result == ncclInProgress)
		*result = comm_error(c, *result = ncclInvalidArgument, "communicator: it is still being made: want "
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

static void
forget(struct shim_comm *c)
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
	windows_free(c);
	free(c->excluded);
	free(c);
}

/* ---- making one ---- */

static bool
config_blocks(const ncclConfig_t *config)
{
	return !config || config->blocking != 0;
}

static bool
config_valid(const ncclConfig_t *config)
{
	return !config || ((int)config->magic == NCCL_API_MAGIC_NUMBER &&
	    config->size >= offsetof(ncclConfig_t, blocking) + sizeof config->blocking &&
	    (config->blocking == 0 || config->blocking == 1 || config->blocking == INT_MIN));
}

/* Of the environment. */
static ncclResult_t
check_settings(void)
{
	const char *text = real_wrong() ? real_wrong() : serves_wrong();
	return text ? comm_error(NULL, ncclInvalidUsage, text) : ncclSuccess;
}

static struct shim_comm *
new_comm(ncclComm_t *out, int n, int rank, const ncclConfig_t *config, ncclResult_t *result)
{
	struct shim_comm *c = NULL;
	*result = ncclInvalidArgument;
	if (check_settings() != ncclSuccess)
		*result = ncclInvalidUsage;
	else if (!out)
		comm_error(NULL, *result, "communicator: NULL");
	else if (!config_valid(config))
		comm_error(NULL, *result, "config: want one made by NCCL_CONFIG_INITIALIZER, and blocking 0 or 1");
	else if (!(c = calloc(1, sizeof *c)))
		*result = comm_error(NULL, ncclSystemError, "out of memory");
	if (!c) {
		group_fails(*result);
		return NULL;
	}
	*c = (struct shim_comm){ .out = out, .n = n, .rank = rank, .blocking = config_blocks(config),
	    .state = ncclInProgress, .beside = real_nccl()->path };
	*result = device_current(&c->device, &c->context);
	if (group_fails(*result) != ncclSuccess) {
		free(c);
		return NULL;
	}
	return c;
}

/* What a real communicator is, once it is one itself. */
static ncclResult_t
see_real(struct shim_comm *c)
{
	ncclResult_t state = ncclInProgress, result = ncclSuccess;
	while (result == ncclSuccess && state == ncclInProgress) {
		result = REAL(CommGetAsyncError, (c->handle, &state));
		if (state == ncclInProgress)
			nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	}
	if (result == ncclSuccess && state == ncclSuccess) {
		result = REAL(CommCount, (c->handle, &c->n));
		state = result == ncclSuccess ? REAL(CommUserRank, (c->handle, &c->rank)) : result;
	}
	return result == ncclSuccess ? state : result;
}

/* Ours beside a real one: its rank 0 makes an id, which the real one carries to the others. If ours can't be made, it
 * can't on any rank, and the real one does everything. */
static ncclResult_t
make_beside(struct shim_comm *c, const blinkConfig_t *config)
{
	struct { blinkUniqueId_t id; int32_t code; } offer = { .code = blinkSuccess };
	blinkError_t error = { "" };
	ncclResult_t result = see_real(c);
	if (result != ncclSuccess)
		return result;
	if (c->rank == 0)
		offer.code = blinkGetUniqueId(&offer.id, &error);
	result = device_broadcast(c->handle, &offer, sizeof offer);
	if (result != ncclSuccess)
		return result;
	if (offer.code != blinkSuccess ||
	    blinkCommInitRank(&c->blink, c->n, &offer.id, c->rank, config, &error) != blinkSuccess)
		debug_say(DEBUG_WARN, c->rank, "nccl: all collectives are those of %s: %s", real_nccl()->path,
		    error.text[0] ? error.text : "rank 0 has made no id");
	return ncclSuccess;
}

/* A communicator that was revoked is of no use to libblink, but to be shrunk: by nobody, before it is split. */
static blinkResult_t
split(struct shim_comm *c, blinkError_t *error)
{
	blinkComm_t parent = c->parent->blink, fresh = NULL;
	blinkResult_t result = blinkSuccess;
	if (c->parent->revoked)
		result = blinkCommShrink(parent, NULL, 0, blinkShrinkAbort, &fresh, NULL, error);
	if (result == blinkSuccess)
		result = blinkCommSplit(fresh ? fresh : parent, c->color, c->key, &c->blink, NULL, error);
	blinkCommDestroy(fresh);
	return result;
}

static blinkResult_t
make_of_parent(struct shim_comm *c, blinkError_t *error)
{
	blinkComm_t parent = c->parent->blink;
	blinkUniqueId_t id;
	memcpy(&id, &c->id, sizeof id);
	if (c->how == OF_SPLIT)
		return split(c, error);
	if (c->how == OF_GROW)
		return blinkCommGrow(parent, c->n, c->has_id ? &id : NULL, &c->blink, NULL, error);
	return blinkCommShrink(parent, c->excluded, c->n_excluded, c->aborts ? blinkShrinkAbort : blinkShrinkDefault,
	    &c->blink, NULL, error);
}

static ncclResult_t
make_alone(struct shim_comm *c, const blinkConfig_t *config)
{
	blinkError_t error = { "" };
	blinkResult_t result;
	blinkUniqueId_t id;
	if (c->parent) {
		result = make_of_parent(c, &error);
	} else {
		memcpy(&id, &c->id, sizeof id);
		result = blinkCommInitRank(&c->blink, c->n, &id, c->rank, config, &error);
	}
	if (result == blinkSuccess && c->blink) {
		blinkCommCount(c->blink, &c->n);
		blinkCommUserRank(c->blink, &c->rank);
	}
	return result == blinkSuccess ? ncclSuccess : comm_error(c, result_of(result), error.text);
}

/* A maker needs the parent, which may not end before. */
static void
count_child(struct shim_comm *parent, int more)
{
	pthread_mutex_lock(&lock);
	if (parent)
		parent->n_children += more;
	pthread_cond_broadcast(&child_made);
	pthread_mutex_unlock(&lock);
}

static void *
make(void *comm)
{
	struct shim_comm *c = comm;
	blinkConfig_t config = { .backend = on_host() ? "host" : "cuda" };
	if (shim_driver())
		shim_driver()->context_set(c->context);
	ncclResult_t result = c->beside ? make_beside(c, &config) : make_alone(c, &config);
	count_child(c->parent, -1);
	if (set_state(c, result)) {
		if (c->blink)
			blinkCommAbort(c->blink);
		blinkCommDestroy(c->blink);
		forget(c);
	}
	return NULL;
}

/* It has been made, or can't be: what its maker has found. A blocking caller gets no handle of one that has failed, and
 * nobody gets one of a rank without a color. */
static ncclResult_t
take(struct shim_comm *c)
{
	if (c->has_maker)
		pthread_join(c->maker, NULL);
	c->has_maker = false;
	ncclResult_t result = state_of(c);
	if (result != ncclSuccess)
		snprintf(last_error(), 512, "%s", c->text);
	bool none = result == ncclSuccess && !c->blink && !c->beside;
	if (none || (result != ncclSuccess && c->blocking && !c->beside)) {
		*c->out = NULL;
		forget(c);
	}
	return result;
}

ncclResult_t
comm_take(struct shim_comm *c)
{
	return c->blocking ? take(c) : ncclInProgress;
}

/* handle: of the real one, which may be known only at the end of a group. */
ncclResult_t
comm_start(struct shim_comm *c)
{
	c->handle = c->beside ? *c->out : mmap(NULL, HANDLE_BYTES, PROT_READ,
	    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (!c->handle || (!c->beside && (void *)c->handle == MAP_FAILED)) {
		free(c);
		return comm_error(NULL, ncclSystemError, "no handle for a communicator");
	}
	*c->out = c->handle;
	pthread_mutex_lock(&lock);
	c->next = first;
	first = c;
	pthread_mutex_unlock(&lock);
	count_child(c->parent, 1);
	c->has_maker = pthread_create(&c->maker, NULL, make, c) == 0;
	if (!c->has_maker) {
		count_child(c->parent, -1);
		set_state(c, ncclSystemError);
		return comm_error(c, ncclSystemError, "no thread to make a communicator with");
	}
	return ncclSuccess;
}

void
comm_drop(struct shim_comm *c)
{
	if (!c->beside)
		*c->out = NULL;
	forget(c);
}

/* Ranks of one process that are made in a group begin at its end, together. */
static ncclResult_t
begin(struct shim_comm *c)
{
	if (in_group()) {
		group_adds(c);
		return ncclSuccess;
	}
	ncclResult_t result = comm_start(c);
	return result == ncclSuccess ? comm_take(c) : result;
}

/* ---- init ---- */

static struct shim_comm *
new_of_id(ncclComm_t *out, int n, int rank, const ncclConfig_t *config, ncclResult_t *result)
{
	if (n >= 1 && rank >= 0 && rank < n)
		return new_comm(out, n, rank, config, result);
	*result = group_fails(comm_error(NULL, ncclInvalidArgument, "rank: want at least one rank, and numbers from 0 "
	    "to one less than there are"));
	return NULL;
}

/* real: what the real one has said to the same call. */
static ncclResult_t
begin_beside(struct shim_comm *c, ncclResult_t real)
{
	if (real == ncclSuccess || real == ncclInProgress)
		return begin(c);
	free(c);
	return real;
}

ncclResult_t
served_CommInitRankConfig(ncclComm_t *comm, int n, ncclUniqueId id, int rank, ncclConfig_t *config)
{
	ncclResult_t result;
	struct shim_comm *c = new_of_id(comm, n, rank, config, &result);
	if (!c)
		return result;
	if (c->beside)
		return begin_beside(c, REAL(CommInitRankConfig, (comm, n, id, rank, config)));
	c->id = id;
	return begin(c);
}

ncclResult_t
served_CommInitRank(ncclComm_t *comm, int n, ncclUniqueId id, int rank)
{
	ncclResult_t result;
	struct shim_comm *c = new_of_id(comm, n, rank, NULL, &result);
	if (!c)
		return result;
	if (c->beside)
		return begin_beside(c, REAL(CommInitRank, (comm, n, id, rank)));
	c->id = id;
	return begin(c);
}

/* All ranks have the same ids: one is enough for as many as a server has. */
ncclResult_t
served_CommInitRankScalable(ncclComm_t *comm, int n, int rank, int n_ids, ncclUniqueId *ids, ncclConfig_t *config)
{
	ncclResult_t result;
	if (n_ids < 1 || !ids)
		return comm_error(NULL, ncclInvalidArgument, "ids: none: want at least one");
	struct shim_comm *c = new_of_id(comm, n, rank, config, &result);
	if (!c)
		return result;
	if (c->beside)
		return begin_beside(c, REAL(CommInitRankScalable, (comm, n, rank, n_ids, ids, config)));
	c->id = ids[0];
	return begin(c);
}

ncclResult_t
served_CommInitAll(ncclComm_t *comms, int n, const int *devices)
{
	ncclUniqueId id;
	if (!comms || n < 1)
		return comm_error(NULL, ncclInvalidArgument, "communicators: none: want at least one");
	ncclResult_t result = served_GetUniqueId(&id), end;
	if (result != ncclSuccess || (result = served_GroupStart()) != ncclSuccess)
		return result;
	for (int i = 0; i < n && result == ncclSuccess; i++) {
		CUcontext before;
		result = device_use(devices ? devices[i] : i, &before);
		if (result == ncclSuccess) {
			result = served_CommInitRank(&comms[i], n, id, i);
			device_restore(before);
		}
	}
	group_fails(result);
	end = served_GroupEnd();
	return result == ncclSuccess ? end : result;
}

ncclResult_t
served_GetUniqueId(ncclUniqueId *id)
{
	blinkUniqueId_t ours;
	blinkError_t error = { "" };
	_Static_assert(sizeof ours == sizeof *id, "ids of NCCL and of libblink have the same size");
	if (!id)
		return comm_error(NULL, ncclInvalidArgument, "id: NULL");
	if (check_settings() != ncclSuccess)
		return ncclInvalidUsage;
	if (real_nccl()->path)
		return REAL(GetUniqueId, (id));
	blinkResult_t result = blinkGetUniqueId(&ours, &error);
	if (result != blinkSuccess)
		return comm_error(NULL, result_of(result), error.text);
	memcpy(id, &ours, sizeof ours);
	return ncclSuccess;
}

/* ---- of another ---- */

static struct shim_comm *
new_child(struct shim_comm *parent, ncclComm_t *out, const ncclConfig_t *config, ncclResult_t *result)
{
	struct shim_comm *c = new_comm(out, parent->n, parent->rank, config, result);
	if (!c)
		return NULL;
	c->blocking = config ? c->blocking : parent->blocking;
	c->context = parent->context;
	c->device = parent->device;
	c->parent = c->beside ? NULL : parent;
	return c;
}

ncclResult_t
served_CommSplit(ncclComm_t comm, int color, int key, ncclComm_t *out, ncclConfig_t *config)
{
	ncclResult_t result;
	struct shim_comm *parent = comm_of(comm), *c;
	if (real_nccl()->path && (!parent || color < 0))
		return REAL(CommSplit, (comm, color, key, out, config));
	if (color < -1)
		return comm_error(parent, ncclInvalidArgument, "color: want one from 0 on, or NCCL_SPLIT_NOCOLOR");
	if (!(parent = comm_ready(comm, &result)) || !(c = new_child(parent, out, config, &result)))
		return result;
	if (c->beside)
		return begin_beside(c, REAL(CommSplit, (comm, color, key, out, config)));
	c->how = OF_SPLIT;
	c->color = color;
	c->key = key;
	return begin(c);
}

/* A list of other ranks, each once. */
static ncclResult_t
check_excluded(struct shim_comm *c, const int *excluded, int n)
{
	if (!excluded || n < 1 || n >= c->n)
		return comm_error(c, ncclInvalidArgument, "ranks to be left out: want at least one, and not all");
	for (int i = 0; i < n; i++) {
		if (excluded[i] < 0 || excluded[i] >= c->n)
			return comm_error(c, ncclInvalidArgument, "ranks to be left out: one is not of the "
			    "communicator");
		if (excluded[i] == c->rank)
			return comm_error(c, ncclInvalidArgument, "ranks to be left out: this one is among them: want "
			    "only the others to call ncclCommShrink");
		for (int k = 0; k < i; k++)
			if (excluded[k] == excluded[i])
				return comm_error(c, ncclInvalidArgument, "ranks to be left out: one is there twice");
	}
	return ncclSuccess;
}

static ncclResult_t
shrink_alone(struct shim_comm *parent, const int *excluded, int n, ncclComm_t *out, const ncclConfig_t *config,
    bool aborts)
{
	ncclResult_t result = check_excluded(parent, excluded, n);
	struct shim_comm *c = result == ncclSuccess ? new_child(parent, out, config, &result) : NULL;
	if (!c)
		return result;
	c->how = OF_SHRINK;
	c->aborts = aborts || parent->revoked;
	c->n_excluded = n;
	c->excluded = malloc((size_t)n * sizeof *excluded);
	if (!c->excluded) {
		free(c);
		return comm_error(parent, ncclSystemError, "out of memory");
	}
	memcpy(c->excluded, excluded, (size_t)n * sizeof *excluded);
	return begin(c);
}

ncclResult_t
served_CommShrink(ncclComm_t comm, int *excluded, int n, ncclComm_t *out, ncclConfig_t *config, int flags)
{
	ncclResult_t result;
	struct shim_comm *parent = comm_of(comm), *c;
	if (real_nccl()->path && !parent)
		return REAL(CommShrink, (comm, excluded, n, out, config, flags));
	if (!real_nccl()->path) {
		if (flags != 0 && flags != 1)
			return comm_error(parent, ncclInvalidArgument, "flags of ncclCommShrink: want "
			    "NCCL_SHRINK_DEFAULT or NCCL_SHRINK_ABORT");
		parent = comm_ready(comm, &result);
		return parent ? shrink_alone(parent, excluded, n, out, config, flags == 1) : result;
	}
	if (!(c = new_child(parent, out, config, &result)))
		return result;
	if (flags != 0 && parent->blink)
		blinkCommAbort(parent->blink);
	return begin_beside(c, REAL(CommShrink, (comm, excluded, n, out, config, flags)));
}

ncclResult_t
served_CommGetUniqueId(ncclComm_t comm, ncclUniqueId *id)
{
	ncclResult_t result;
	if (real_nccl()->path)
		return REAL(CommGetUniqueId, (comm, id));
	return comm_ready(comm, &result) ? served_GetUniqueId(id) : result;
}

/* New ranks have no communicator; the others keep their numbers. */
ncclResult_t
served_CommGrow(ncclComm_t comm, int n, const ncclUniqueId *id, int rank, ncclComm_t *out, ncclConfig_t *config)
{
	ncclResult_t result;
	struct shim_comm *parent, *c;
	if (real_nccl()->path)
		return REAL(CommGrow, (comm, n, id, rank, out, config));
	if (!comm)
		return id ? served_CommInitRankConfig(out, n, *id, rank, config)
		    : comm_error(NULL, ncclInvalidArgument, "id: NULL: want it of new ranks");
	if (!(parent = comm_ready(comm, &result)))
		return result;
	if (rank != -1 || n <= parent->n)
		return comm_error(parent, ncclInvalidArgument, "ncclCommGrow: want rank -1 of a rank of the "
		    "communicator, and more ranks than it has");
	if (!(c = new_child(parent, out, config, &result)))
		return result;
	c->how = OF_GROW;
	c->n = n;
	c->has_id = id != NULL;
	if (id)
		c->id = *id;
	return begin(c);
}

/* ---- the end ---- */

ncclResult_t
served_CommFinalize(ncclComm_t comm)
{
	ncclResult_t result;
	struct shim_comm *c = comm_of(comm);
	if (real_nccl()->path && !c)
		return REAL(CommFinalize, (comm));
	if (!comm)
		return ncclSuccess;
	if (!(c = comm_ready(comm, &result)))
		return result;
	if (!c->beside && (c->revoked || c->finalized))
		return comm_error(c, c->revoked ? ncclInvalidUsage : ncclInvalidArgument, c->revoked
		    ? "ncclCommFinalize: the communicator has been revoked: want ncclCommDestroy"
		    : "ncclCommFinalize: the communicator has been finalized");
	c->finalized = true;
	if (c->blink && blinkCommWait(c->blink, 0) != blinkSuccess)
		result = comm_error(c, ncclRemoteError, blinkCommGetError(c->blink));
	return c->beside ? REAL(CommFinalize, (comm)) : result;
}

/* The maker of one that is still being made ends within its time. */
static void
end(struct shim_comm *c)
{
	if (c->has_maker)
		pthread_join(c->maker, NULL);
	pthread_mutex_lock(&lock);
	while (c->n_children > 0)
		pthread_cond_wait(&child_made, &lock);
	pthread_mutex_unlock(&lock);
	blinkCommDestroy(c->blink);
	forget(c);
}

ncclResult_t
served_CommDestroy(ncclComm_t comm)
{
	struct shim_comm *c = comm_of(comm);
	if (!comm)
		return ncclSuccess;
	if (!c && !real_nccl()->path)
		return comm_error(NULL, ncclInvalidArgument, "communicator: none of this library");
	if (c)
		end(c);
	return real_nccl()->path ? REAL(CommDestroy, (comm)) : ncclSuccess;
}

/* One that waits for ranks by an id is left to its maker, which ends it when its time is up. */
static bool
leave(struct shim_comm *c)
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

ncclResult_t
served_CommAbort(ncclComm_t comm)
{
	struct shim_comm *c = comm_of(comm);
	if (!comm)
		return ncclSuccess;
	if (!c && !real_nccl()->path)
		return comm_error(NULL, ncclInvalidArgument, "communicator: none of this library");
	ncclResult_t result = real_nccl()->path ? REAL(CommAbort, (comm)) : ncclSuccess;
	if (c && leave(c))
		return result;
	if (c && state_of(c) == ncclSuccess && c->blink)
		blinkCommAbort(c->blink);
	if (c)
		end(c);
	return result;
}

/* Its calls end; then it may be split, shrunk or destroyed. */
ncclResult_t
served_CommRevoke(ncclComm_t comm, int flags)
{
	ncclResult_t result;
	struct shim_comm *c = comm_of(comm);
	if (real_nccl()->path && !c)
		return REAL(CommRevoke, (comm, flags));
	if (!(c = comm_ready(comm, &result)))
		return result;
	if (flags != 0)
		return comm_error(c, ncclInvalidArgument, "flags of ncclCommRevoke: want 0");
	c->revoked = !c->beside;
	if (c->blink)
		blinkCommAbort(c->blink);
	return c->beside ? REAL(CommRevoke, (comm, flags)) : ncclSuccess;
}

/* ---- questions ---- */

ncclResult_t
served_CommGetAsyncError(ncclComm_t comm, ncclResult_t *out)
{
	blinkError_t error = { "" };
	struct shim_comm *c = comm_of(comm);
	if (!c && real_nccl()->path)
		return REAL(CommGetAsyncError, (comm, out));
	if (!c || !out)
		return comm_error(c, ncclInvalidArgument, "communicator or result: none");
	*out = state_of(c);
	if (*out == ncclInProgress || (*out == ncclSuccess && c->revoked))
		return ncclSuccess;
	if (*out != ncclSuccess) {
		snprintf(last_error(), 512, "%s", c->text);
		return ncclSuccess;
	}
	if (c->blink)
		*out = result_of(blinkCommGetAsyncError(c->blink, &error));
	if (*out != ncclSuccess)
		comm_error(c, *out, error.text[0] ? error.text : blinkCommGetError(c->blink));
	return *out == ncclSuccess && c->beside ? REAL(CommGetAsyncError, (comm, out)) : ncclSuccess;
}

static ncclResult_t
give(ncclComm_t comm, const int *value, int *out)
{
	struct shim_comm *c = comm_of(comm);
	if (!out)
		return comm_error(c, ncclInvalidArgument, "where to write the answer: NULL");
	*out = *value;
	return ncclSuccess;
}

#define ASK(name, member)                                                      \
	ncclResult_t served_##name(ncclComm_t comm, int *out)                  \
	{                                                                      \
		ncclResult_t result;                                           \
		struct shim_comm *c = comm_of(comm);                           \
		if (real_nccl()->path)                                         \
			return REAL(name, (comm, out));                        \
		c = comm_ready(comm, &result);                                 \
		return c ? give(comm, &c->member, out) : result;               \
	}
ASK(CommCount, n)
ASK(CommCuDevice, device)
ASK(CommUserRank, rank)

ncclResult_t
served_GetVersion(int *version)
{
	if (!version)
		return comm_error(NULL, ncclInvalidArgument, "version: NULL");
	if (real_nccl()->path)
		return REAL(GetVersion, (version));
	*version = ALONE_VERSION;
	return ncclSuccess;
}
