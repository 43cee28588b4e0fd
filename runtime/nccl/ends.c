/* Groups begin and end. */
#include "nccl/shim.h"

#include <stdlib.h>

static void
empty(struct shim_list *list)
{
	free(list->comm);
	*list = (struct shim_list){ 0 };
}

ncclResult_t
served_GroupStart(void)
{
	ncclResult_t result = real_nccl()->path ? REAL(GroupStart, ()) : ncclSuccess;
	if (result == ncclSuccess) {
		blinkGroupStart();
		group.depth++;
	}
	return result;
}

static void
keep_first(ncclResult_t *result, ncclResult_t next)
{
	if (*result == ncclSuccess || (*result == ncclInProgress && next != ncclSuccess))
		*result = next;
}

/* All of them begin before one is waited for: ranks of one process meet each other. */
static void
make_all(ncclResult_t *result)
{
	for (size_t i = 0; i < group.made.n; i++) {
		ncclResult_t started = comm_start(group.made.comm[i]);
		if (started != ncclSuccess)
			group.made.comm[i] = NULL;
		keep_first(result, started);
	}
	for (size_t i = 0; i < group.made.n; i++)
		if (group.made.comm[i])
			keep_first(result, comm_take(group.made.comm[i]));
	empty(&group.made);
}

static void
make_none(void)
{
	for (size_t i = 0; i < group.made.n; i++)
		comm_drop(group.made.comm[i]);
	empty(&group.made);
}

static ncclResult_t
end_ours(ncclResult_t result)
{
	blinkResult_t ours = blinkGroupEnd();
	if (group.depth > 0)
		return result;
	keep_first(&result, group.failed);
	if (ours != blinkSuccess && group.failed == ncclSuccess)
		keep_first(&result, comm_error(NULL, result_of(ours), "a call of the group failed: its communicator "
		    "has the reason"));
	if (group.failed == ncclSuccess)
		make_all(&result);
	make_none();
	for (size_t i = 0; i < group.used.n; i++)
		keep_first(&result, group_finish(group.used.comm[i]));
	empty(&group.used);
	group.failed = ncclSuccess;
	return result;
}

/* A group in which a call has failed makes no communicators, and none of its other calls, as NCCL's. */
ncclResult_t
served_GroupEnd(void)
{
	if (group.depth == 0)
		return comm_error(NULL, ncclInvalidUsage, "ncclGroupEnd without ncclGroupStart");
	ncclResult_t result = real_nccl()->path ? REAL(GroupEnd, ()) : ncclSuccess;
	group_fails(result);
	group.depth--;
	return end_ours(result);
}

/* Nothing of the group is executed. How long it would take only NCCL says, of what it would do itself. */
ncclResult_t
served_GroupSimulateEnd(ncclSimInfo_t *info)
{
	if (group.depth == 0)
		return comm_error(NULL, ncclInvalidUsage, "ncclGroupSimulateEnd without ncclGroupStart");
	ncclResult_t result = REAL(GroupSimulateEnd, (info));
	if (group.depth == 1)
		group_fails(ncclInvalidUsage);
	group.depth--;
	end_ours(ncclSuccess);
	return result;
}
