/* Groups: the calls of a thread between start and end, on any communicators. */
#include "comm/comm.h"
#include "error.h"

#include <stdlib.h>

struct member {
	blinkComm_t comm;
	struct call *call;
	blinkStream_t stream;
	struct member *next;
};

static __thread struct {
	int depth;
	struct member *first, *last;
	bool no_memory;
} group;

/* Messages of one communicator proceed together, where its first one stands, in one stream. */
static bool
joins_messages(blinkComm_t comm, struct call *call, blinkStream_t stream, struct blink_error *err)
{
	for (struct member *m = group.first; m && call->n_messages > 0; m = m->next) {
		if (m->comm != comm || m->call->n_messages == 0)
			continue;
		if (m->stream != stream) {
			set_error(err, blinkInvalidArgument, "stream: the group has messages of this communicator in "
			    "another stream: want one");
			call_free(call);
			return true;
		}
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
group_takes(blinkComm_t comm, struct call *call, blinkStream_t stream, struct blink_error *err)
{
	if (group.depth == 0)
		return false;
	if (joins_messages(comm, call, stream, err))
		return true;
	struct member *m = malloc(sizeof *m);
	if (!m) {
		call_free(call);
		group.no_memory = true;
		return true;
	}
	*m = (struct member){ comm, call, stream, NULL };
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
		if (rank_comm_submit(m->comm->rank, m->call, m->stream, &err) != blinkSuccess) {
			comm_error(m->comm, &err);
			result = result == blinkSuccess ? (blinkResult_t)err.code : result;
		}
		free(m);
	}
	group.last = NULL;
	group.no_memory = false;
	return result;
}
