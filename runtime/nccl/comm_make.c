/* Communicators are made in a thread each, of an id or of another one, beside a real one or alone. */
#include "nccl/shim.h"
#include "support/debug.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

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

ncclResult_t
comm_check_settings(void)
{
	const char *text = real_wrong() ? real_wrong() : serves_wrong() ? serves_wrong() : device_wrong();
	return text ? comm_error(NULL, ncclInvalidUsage, text) : ncclSuccess;
}

struct shim_comm *
comm_new(ncclComm_t *out, int n, int rank, const ncclConfig_t *config, ncclResult_t *result)
{
	struct shim_comm *c = NULL;
	*result = ncclInvalidArgument;
	if (comm_check_settings() != ncclSuccess)
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
	if (result != ncclSuccess) {
		comm_keeps_error(c);
		return result;
	}
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

static void *
make(void *comm)
{
	struct shim_comm *c = comm;
	blinkConfig_t config = { .backend = on_host() ? "host" : "cuda" };
	if (shim_driver())
		shim_driver()->context_set(c->context);
	ncclResult_t result = c->beside ? make_beside(c, &config) : make_alone(c, &config);
	comm_counts_child(c->parent, -1);
	if (comm_set_state(c, result)) {
		if (c->blink)
			blinkCommAbort(c->blink);
		blinkCommDestroy(c->blink);
		comm_forget(c);
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
	ncclResult_t result = comm_state(c);
	if (result != ncclSuccess)
		snprintf(last_error(), 512, "%s", c->text);
	bool none = result == ncclSuccess && !c->blink && !c->beside;
	if (none || (result != ncclSuccess && c->blocking && !c->beside)) {
		*c->out = NULL;
		comm_forget(c);
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
	comm_adds(c);
	comm_counts_child(c->parent, 1);
	c->has_maker = pthread_create(&c->maker, NULL, make, c) == 0;
	if (!c->has_maker) {
		comm_counts_child(c->parent, -1);
		comm_set_state(c, ncclSystemError);
		return comm_error(c, ncclSystemError, "no thread to make a communicator with");
	}
	return ncclSuccess;
}

void
comm_drop(struct shim_comm *c)
{
	if (!c->beside)
		*c->out = NULL;
	comm_forget(c);
}

ncclResult_t
comm_begin(struct shim_comm *c)
{
	if (in_group()) {
		group_adds(c);
		return ncclSuccess;
	}
	ncclResult_t result = comm_start(c);
	return result == ncclSuccess ? comm_take(c) : result;
}
