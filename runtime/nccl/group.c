/* Groups: what a thread calls between ncclGroupStart and ncclGroupEnd. */
#include "nccl/shim.h"

#include <stdlib.h>

struct list {
	struct shim_comm **comm;
	size_t n, capacity;
};

static __thread struct {
	int depth;
	struct list made, used;
	bool no_memory;
} group;

bool
in_group(void)
{
	return group.depth > 0;
}

static void
add(struct list *list, struct shim_comm *c)
{
	if (list->n == list->capacity) {
		size_t capacity = list->capacity ? 2 * list->capacity : 16;
		struct shim_comm **grown = realloc(list->comm, capacity * sizeof *grown);
		if (!grown) {
			group.no_memory = true;
			return;
		}
		list->comm = grown;
		list->capacity = capacity;
	}
	list->comm[list->n++] = c;
}

static void
empty(struct list *list)
{
	free(list->comm);
	*list = (struct list){ 0 };
}

void
group_adds(struct shim_comm *made)
{
	add(&group.made, made);
}

static ncclResult_t
finish(struct shim_comm *c)
{
	blinkResult_t result = blinkCommWait(c->blink, 0);
	return result == blinkSuccess ? ncclSuccess
	    : comm_error(c, result_of(result), blinkCommGetError(c->blink));
}

ncclResult_t
group_uses(struct shim_comm *c)
{
	if (!on_host())
		return ncclSuccess;
	if (!in_group())
		return finish(c);
	for (size_t i = 0; i < group.used.n; i++)
		if (group.used.comm[i] == c)
			return ncclSuccess;
	add(&group.used, c);
	return ncclSuccess;
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

ncclResult_t
served_GroupEnd(void)
{
	if (group.depth == 0)
		return comm_error(NULL, ncclInvalidUsage, "ncclGroupEnd without ncclGroupStart");
	group.depth--;
	ncclResult_t result = real_nccl()->path ? REAL(GroupEnd, ()) : ncclSuccess;
	blinkResult_t ours = blinkGroupEnd();
	if (ours != blinkSuccess)
		keep_first(&result, comm_error(NULL, result_of(ours), "a call of the group failed: its communicator "
		    "has the reason"));
	if (group.depth > 0)
		return result;
	make_all(&result);
	for (size_t i = 0; i < group.used.n; i++)
		keep_first(&result, finish(group.used.comm[i]));
	empty(&group.used);
	if (group.no_memory)
		keep_first(&result, comm_error(NULL, ncclSystemError, "out of memory in a group"));
	group.no_memory = false;
	return result;
}
