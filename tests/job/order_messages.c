/* Groups, and messages between ranks. */
#include "order.h"

#include <sched.h>
#include <stdlib.h>

bool
group(struct rank *me, bool start)
{
	blinkResult_t result = start ? blinkGroupStart() : blinkGroupEnd();
	return job_need(me, result == blinkSuccess, "%s of a group: %d", start ? "start" : "end", (int)result);
}

void
groups(struct rank *me)
{
	const struct order *o = me->arg;
	uint64_t all = (UINT64_C(1) << me->n) - 1;
	blinkComm_t a = job_join_some(me, 0, all, NULL), b = a ? job_join_some(me, 1, all, NULL) : NULL;
	struct flight f, g;
	for (uint64_t round = 0; b && round < 10; round++) {
		flight_make(&f, me->n, me->rank, 10, 1025, 1025, o->seed + round);
		flight_make(&g, me->n, me->rank, 10, 1025, 1025, o->seed + round + 100);
		group(me, true);
		for (int k = 0; k < f.n_calls; k++)
			flight_start_one(&f, me, a, k);
		group(me, true);
		for (int k = 0; k < g.n_calls; k++)
			flight_start_one(&g, me, b, k);
		group(me, false);
		group(me, false);
		wait_for(me, a);
		wait_for(me, b);
		flight_land(&f, me);
		flight_land(&g, me);
	}
	if (b) {
		job_leave(me, a);
		job_leave(me, b);
	}
}

/* Byte i of message k from one rank to another. */
static unsigned char
message_byte(int from, int to, int k, size_t i)
{
	return (unsigned char)mixed((uint64_t)(from * 64 + to), (uint64_t)k, i / 8);
}

static unsigned char *
message_memory(struct rank *me, size_t bytes)
{
	unsigned char *memory = malloc(bytes + 1);
	if (!job_need(me, memory != NULL, "no memory"))
		exit(97);
	return memory;
}

/* The call of one message; its memory, filled if it is sent. */
static unsigned char *
post(struct rank *me, blinkComm_t comm, bool sends, int peer, int k, size_t bytes)
{
	unsigned char *memory = message_memory(me, bytes);
	for (size_t i = 0; i < bytes; i++)
		memory[i] = sends ? message_byte(me->rank, peer, k, i) : 0x5a;
	memory[bytes] = 0x77;
	job_at(me, "%s %zu bytes, message %d, rank %d", sends ? "send" : "receive", bytes, k, peer);
	blinkResult_t result = sends ? blinkSend(memory, bytes, blinkUint8, peer, comm, NULL)
	    : blinkRecv(memory, bytes, blinkUint8, peer, comm, NULL);
	job_need(me, result == blinkSuccess, "message %d, rank %d: %d: %s", k, peer, (int)result,
	    blinkCommGetError(comm));
	return memory;
}

static void
judge_message(struct rank *me, unsigned char *memory, int from, int to, int k, size_t bytes)
{
	size_t wrong = 0;
	for (size_t i = 0; i < bytes; i++)
		wrong += memory[i] != message_byte(from, to, k, i);
	job_need(me, !wrong && memory[bytes] == 0x77, "message %d of %zu bytes from rank %d to %d: %zu bytes wrong", k,
	    bytes, from, to, wrong);
	free(memory);
}

/* In one group: messages between all, and of each to itself. */
static void
all_to_all(struct rank *me, blinkComm_t comm, uint64_t seed, int messages)
{
	unsigned char *sent[JOB_RANKS][16], *received[JOB_RANKS][16];
	group(me, true);
	for (int k = 0; k < messages; k++)
		for (int p = 0; p < me->n; p++) {
			sent[p][k] = post(me, comm, true, p, k, message_bytes(seed, me->rank, p, k));
			received[p][k] = post(me, comm, false, p, k, message_bytes(seed, p, me->rank, k));
		}
	group(me, false);
	wait_for(me, comm);
	for (int k = 0; k < messages; k++)
		for (int p = 0; p < me->n; p++) {
			judge_message(me, sent[p][k], me->rank, p, k, message_bytes(seed, me->rank, p, k));
			judge_message(me, received[p][k], p, me->rank, k, message_bytes(seed, p, me->rank, k));
		}
}

/* Each receives from the rank before it and sends to the next: around in one group; along without groups. */
static void
ring(struct rank *me, blinkComm_t comm, uint64_t seed, bool around)
{
	int before = (me->rank + me->n - 1) % me->n, next = (me->rank + 1) % me->n;
	unsigned char *received[40] = { NULL }, *sent[40] = { NULL };
	bool receives = around || me->rank > 0, sends = around || me->rank < me->n - 1;
	for (int k = 0; k < 40; k++) {
		if (around)
			group(me, true);
		if (receives)
			received[k] = post(me, comm, false, before, k, message_bytes(seed, before, me->rank, k));
		if (sends)
			sent[k] = post(me, comm, true, next, k, message_bytes(seed, me->rank, next, k));
		if (around)
			group(me, false);
	}
	wait_for(me, comm);
	for (int k = 0; k < 40; k++) {
		if (receives)
			judge_message(me, received[k], before, me->rank, k, message_bytes(seed, before, me->rank, k));
		if (sends)
			judge_message(me, sent[k], me->rank, next, k, message_bytes(seed, me->rank, next, k));
	}
}

/* Rank 0 receives from whoever has sent, and learns how much; the others send several, of other lengths. */
static void
from_any(struct rank *me, blinkComm_t comm, uint64_t seed)
{
	enum { MESSAGES = 5 };
	int taken[JOB_RANKS] = { 0 }, left = (me->n - 1) * MESSAGES;
	size_t bytes = 0;
	job_need(me, blinkCommProbe(comm, me->n, &bytes) == blinkInvalidArgument, "a probe of no rank");
	job_need(me, blinkCommProbe(comm, me->rank, &bytes) == blinkInProgress, "a message of its own");
	for (int k = 0; k < MESSAGES && me->rank; k++) {
		size_t n = 1 + message_bytes(seed, me->rank, 0, k);
		unsigned char *sent = post(me, comm, true, 0, k, n);
		wait_for(me, comm);
		free(sent);
	}
	for (int p = 1; me->rank == 0 && left > 0; p = p % (me->n - 1) + 1) {
		blinkResult_t result = blinkCommProbe(comm, p, &bytes);
		if (result == blinkInProgress) {
			sched_yield();
			continue;
		}
		size_t want = 1 + message_bytes(seed, p, 0, taken[p]);
		if (!job_need(me, result == blinkSuccess && bytes == want, "probe: %d, %zu bytes: want %zu",
		    (int)result, bytes, want))
			break;
		unsigned char *got = post(me, comm, false, p, taken[p], bytes);
		wait_for(me, comm);
		judge_message(me, got, p, 0, taken[p]++, bytes);
		left--;
	}
}

void
messages(struct rank *me)
{
	const struct order *o = me->arg;
	blinkComm_t comm = job_join(me, NULL);
	if (!comm)
		return;
	for (uint64_t round = 0; round < 6; round++) {
		all_to_all(me, comm, o->seed + round, 1 + (int)round * 3);
		ring(me, comm, o->seed + round, round % 2);
		from_any(me, comm, o->seed + round);
		flight_run(me, comm, 5, 1025, round);
	}
	job_leave(me, comm);
}
