/* Communicators of programs that use NCCL's interface: those of an id and of another one, their end, and what they say
 * of themselves. */
#include "nccl/shim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- init ---- */

static struct shim_comm *
new_of_id(ncclComm_t *out, int n, int rank, const ncclConfig_t *config, ncclResult_t *result)
{
	if (n >= 1 && rank >= 0 && rank < n)
		return comm_new(out, n, rank, config, result);
	*result = group_fails(comm_error(NULL, ncclInvalidArgument, "rank: want at least one rank, and numbers from 0 "
	    "to one less than there are"));
	return NULL;
}

/* real: what the real one has said to the same call. */
static ncclResult_t
begin_beside(struct shim_comm *c, ncclResult_t real)
{
	if (real == ncclSuccess || real == ncclInProgress)
		return comm_begin(c);
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
	return comm_begin(c);
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
	return comm_begin(c);
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
	return comm_begin(c);
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
	if (comm_check_settings() != ncclSuccess)
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
	struct shim_comm *c = comm_new(out, parent->n, parent->rank, config, result);
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
	return comm_begin(c);
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
	return comm_begin(c);
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
	return comm_ready(comm, &result) ? served_GetUniqueId(id) : result;
}

/* New ranks have no communicator; the others keep their numbers. */
ncclResult_t
served_CommGrow(ncclComm_t comm, int n, const ncclUniqueId *id, int rank, ncclComm_t *out, ncclConfig_t *config)
{
	ncclResult_t result;
	struct shim_comm *parent, *c;
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
	return comm_begin(c);
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
	comm_awaits_children(c);
	blinkCommDestroy(c->blink);
	comm_forget(c);
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

ncclResult_t
served_CommAbort(ncclComm_t comm)
{
	struct shim_comm *c = comm_of(comm);
	if (!comm)
		return ncclSuccess;
	if (!c && !real_nccl()->path)
		return comm_error(NULL, ncclInvalidArgument, "communicator: none of this library");
	ncclResult_t result = real_nccl()->path ? REAL(CommAbort, (comm)) : ncclSuccess;
	if (c && comm_leave(c))
		return result;
	if (c && comm_state(c) == ncclSuccess && c->blink)
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
	*out = comm_state(c);
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
		struct shim_comm *c = comm_ready(comm, &result);               \
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
