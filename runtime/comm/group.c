/* Groups: the calls of a thread between start and end, on any communicators. */
#include "comm/comm.h"

#include <stdlib.h>

struct member {
	blinkComm_t comm;
	struct call *call;
	struct member *next;
};

static __thread struct {
	int depth;
	struct member *first, *last;
	bool no_memory;
} group;

/* Messages of one communicator proceed together, where its first one stands. */
static bool
joins_messages(blinkComm_t comm, struct call *call)
{
	for (struct member *m = group.first; m && call->n_messages > 0; m = m->next) {
		if (m->comm != comm || m->call->n_messages == 0)
			continue;
		struct message **end = &m->call->message;
		while (*end)
			end = &(*end)->next;
		*end = call->message;
		m->call->n_messages += call->n_messages;
		free(call);
		return true;
	}
	return false;
}

bool
group_takes(blinkComm_t comm, struct call *call)
{
	if (group.depth == 0)
		return false;
	if (joins_messages(comm, call))
		return true;
	struct member *m = malloc(sizeof *m);
	if (!m) {
		call_free(call);
		group.no_memory = true;
		return true;
	}
	*m = (struct member){ comm, call, NULL };
	if (group.last)
		group.last->next = m;
	else
		group.first = m;
	group.last = m;
	return true;
}

blinkResult_t
blinkGroupStart(void)
{
	group.depth++;
	return blinkSuccess;
}

blinkResult_t
blinkGroupEnd(void)
{
	blinkResult_t result = group.no_memory ? blinkOutOfMemory : blinkSuccess;
	if (group.depth == 0)
		return blinkInvalidArgument;
	if (--group.depth > 0)
		return blinkSuccess;
	while (group.first) {
		struct member *m = group.first;
		struct blink_error err = { 0 };
		group.first = m->next;
		if (engine_submit(&m->comm->rank->engine, m->call, &err) != blinkSuccess) {
			comm_error(m->comm, &err);
			result = result == blinkSuccess ? (blinkResult_t)err.code : result;
		}
		free(m);
	}
	group.last = NULL;
	group.no_memory = false;
	return result;
}
