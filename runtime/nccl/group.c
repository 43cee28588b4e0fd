/* Groups: what a thread calls between ncclGroupStart and ncclGroupEnd. How they end is in ends.c. */
#include "nccl/shim.h"

#include <stdlib.h>

__thread struct shim_group group;

bool
in_group(void)
{
	return group.depth > 0;
}

/* libblink's group fails, too, by a call of no communicator. */
ncclResult_t
group_fails(ncclResult_t result)
{
	if (!in_group() || result == ncclSuccess || result == ncclInProgress || group.failed != ncclSuccess)
		return result;
	group.failed = result;
	blinkSend(NULL, 0, blinkInt8, 0, NULL, NULL);
	return result;
}

static void
add(struct shim_list *list, struct shim_comm *c)
{
	if (list->n == list->capacity) {
		size_t capacity = list->capacity ? 2 * list->capacity : 16;
		struct shim_comm **grown = realloc(list->comm, capacity * sizeof *grown);
		if (!grown) {
			group_fails(ncclSystemError);
			return;
		}
		list->comm = grown;
		list->capacity = capacity;
	}
	list->comm[list->n++] = c;
}

void
group_forgets(struct shim_comm *c)
{
	struct shim_list *used = &group.used;
	size_t n = 0;
	for (size_t i = 0; i < used->n; i++)
		if (used->comm[i] != c)
			used->comm[n++] = used->comm[i];
	used->n = n;
}

void
group_adds(struct shim_comm *made)
{
	add(&group.made, made);
}

ncclResult_t
group_finish(struct shim_comm *c)
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
		return group_finish(c);
	for (size_t i = 0; i < group.used.n; i++)
		if (group.used.comm[i] == c)
			return ncclSuccess;
	add(&group.used, c);
	return ncclSuccess;
}
