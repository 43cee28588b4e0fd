/* Messages between GPUs. */
#include "gpu.h"

#include <stdlib.h>
#include <string.h>

static void
put_message(struct rank *me, blinkComm_t comm, char *at, bool sends, int peer, size_t bytes, void *stream)
{
	blinkResult_t result = sends ? blinkSend(at, bytes, blinkUint8, peer, comm, stream)
	    : blinkRecv(at, bytes, blinkUint8, peer, comm, stream);
	fine(me, result, comm, "message");
}

/* Where message k to (or from) a peer lies: `room` for each. */
enum { ROOM = 300032 };

static char *
message_at(char *memory, const struct rank *me, bool sends, int peer, int k, int n_messages)
{
	return memory + (size_t)((sends * me->n + peer) * n_messages + k) * ROOM;
}

static void
fill_messages(const struct rank *me, char *host, int n_messages, uint64_t seed)
{
	memset(host, 0x5a, (size_t)(2 * me->n * n_messages) * ROOM);
	for (int p = 0; p < me->n; p++)
		for (int k = 0; k < n_messages; k++)
			memset(message_at(host, me, true, p, k, n_messages),
			    (int)(mixed(seed, (uint64_t)(me->rank * 64 + p), (uint64_t)k) & 127),
			    message_bytes(seed, me->rank, p, k));
}

static void
judge_messages(struct rank *me, const char *host, int n_messages, uint64_t seed)
{
	for (int p = 0; p < me->n; p++) {
		for (int k = 0; k < n_messages; k++) {
			const char *at = message_at((char *)host, me, false, p, k, n_messages);
			size_t bytes = message_bytes(seed, p, me->rank, k), wrong = 0;
			char want = (char)(mixed(seed, (uint64_t)(p * 64 + me->rank), (uint64_t)k) & 127);
			for (size_t i = 0; i < bytes; i++)
				wrong += at[i] != want;
			job_need(me, !wrong && at[bytes] == 0x5a, "message %d of %zu bytes from rank %d: %zu wrong", k,
			    bytes, p, wrong);
		}
	}
}

/* Each rank to each, itself too, in one group. Many of them take several kernels. */
static void
exchange(struct rank *me, blinkComm_t comm, int n_messages, uint64_t seed)
{
	size_t bytes = (size_t)(2 * me->n * n_messages) * ROOM;
	char *host = malloc(bytes), *device = device_memory(me, comm, bytes);
	void *stream = device_stream(me);
	if (!job_need(me, host && device, "no memory"))
		exit(97);
	fill_messages(me, host, n_messages, seed);
	device_in(me, comm, device, host, bytes);
	job_at(me, "%d messages of each pair", n_messages);
	blinkGroupStart();
	for (int k = 0; k < n_messages; k++)
		for (int i = 0; i < 2 * me->n; i++) {
			int p = i / 2;
			bool sends = i % 2;
			put_message(me, comm, message_at(device, me, sends, p, k, n_messages), sends, p, sends
			    ? message_bytes(seed, me->rank, p, k) : message_bytes(seed, p, me->rank, k), stream);
		}
	blinkResult_t result = blinkGroupEnd();
	job_need(me, result == blinkSuccess, "blinkGroupEnd: %d", (int)result);
	if (wait_for(me, comm)) {
		device_out(me, comm, host, device, bytes);
		judge_messages(me, host, n_messages, seed);
	}
	/* Its memory on the GPU goes with the communicator, as that of flights (flight_free). */
	device_stream_end(me, stream);
	free(host);
}

void
messages(struct rank *me)
{
	const struct test *test = me->arg;
	static const int counts[] = { 1, 4, 20, 2 };
	blinkComm_t comm = job_join(me, NULL);
	for (int round = 0; comm && round < 4; round++) {
		exchange(me, comm, counts[round], test->seed + (uint64_t)round);
		flight_run(me, comm, 3, 331, (uint64_t)round);
	}
	if (comm)
		job_leave(me, comm);
}
