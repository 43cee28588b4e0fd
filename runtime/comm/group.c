/* Groups: the calls of a thread between start and end, on any communicators. */
#include "comm/comm.h"
#include "support/error.h"

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
	blinkResult_t failed;		/* of a call that could not be taken: none of the group is made */
} group;

void
group_fails(int code)
{
	if (group.depth > 0 && group.failed == blinkSuccess)
		group.failed = (blinkResult_t)code;
}

void
group_forgets(blinkComm_t comm)
{
	struct member **at = &group.first;
	group.last = NULL;
	while (*at) {
		struct member *m = *at;
		if (m->comm == comm) {
			group_fails(blinkInvalidArgument);
			*at = m->next;
			call_free(m->call);
			free(m);
		} else {
			group.last = m;
			at = &m->next;
		}
	}
}

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
		set_error_memory(err);
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
	if (group.depth == 0)
		return blinkInvalidArgument;
	if (--group.depth > 0)
		return blinkSuccess;
	blinkResult_t result = group.failed;
	bool none = result != blinkSuccess;
	while (group.first) {
		struct member *m = group.first;
		struct blink_error err = { 0 };
		group.first = m->next;
		if (none)
			call_free(m->call);
		else if (rank_comm_submit(m->comm->rank, m->call, m->stream, &err) != blinkSuccess) {
			comm_error(m->comm, &err);
			result = result == blinkSuccess ? (blinkResult_t)err.code : result;
		}
		free(m);
	}
	group.last = NULL;
	group.failed = blinkSuccess;
	return result;
}
