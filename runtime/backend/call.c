/* Calls: their end, their signatures, and their names. */
#include "backend/call.h"
#include "support/error.h"

#include <stdio.h>
#include <stdlib.h>

void
call_free(struct call *call)
{
	while (call->message) {
		struct message *next = call->message->next;
		free(call->message);
		call->message = next;
	}
	free(call->uneven);
	free(call);
}

/* To and from each rank, in order of distance, so that not all send to one at first. */
int
call_to_messages(struct call *call, int rank, int n_ranks, struct blink_error *err)
{
	const struct uneven *u = call->uneven;
	struct message **end = &call->message;
	size_t size = call->reduction.size;
	for (int i = 0; i < 2 * n_ranks; i++) {
		bool sends = i % 2 == 0;
		int peer = (rank + (sends ? i / 2 : n_ranks - i / 2)) % n_ranks;
		int64_t count = sends ? u->count[rank * n_ranks + peer] : u->expected[peer];
		if (count == 0)
			continue;
		char *data = sends ? (char *)call->send + (size_t)u->send_at[peer] * size
		    : (char *)call->recv + (size_t)u->recv_at[peer] * size;
		if (!(*end = calloc(1, sizeof **end)))
			return set_error_memory(err);
		**end = (struct message){ .sends = sends, .peer = peer, .data = data, .bytes = (uint64_t)count * size,
		    .signature = (uint64_t)call->reduction.type };
		end = &(*end)->next;
		call->n_messages++;
	}
	return blinkSuccess;
}

int64_t
call_message_bytes(const struct call *call, int n_ranks)
{
	const struct blink_program job = { .collective = (int)call->coll, .n_ranks = n_ranks };
	int64_t elements = call->uneven ? call->uneven->most : call->count * blink_message_blocks(&job);
	return elements * (int64_t)call->reduction.size;
}

static uint64_t
mix(uint64_t h, uint64_t x)
{
	h = (h ^ x) * 0x9e3779b97f4a7c15u;
	return h ^ h >> 29;
}

uint64_t
call_signature(const struct call *call, int64_t chunk_bytes, uint64_t number)
{
	const uint64_t all[] = { (uint64_t)call->coll, (uint64_t)call->root, (uint64_t)call->count,
	    (uint64_t)call->reduction.type, collective_reduces(call->coll) ? (uint64_t)call->asked_op : 0,
	    call->plan->digest, (uint64_t)chunk_bytes, (uint64_t)call->exchanges_counts << 1 | (call->uneven != NULL) };
	uint64_t h = mix(0x243f6a8885a308d3u, number);
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		h = mix(h, all[i]);
	return h;
}

void
call_describe(const struct call *call, char *text, size_t size)
{
	static const char *const types[] = { "int8", "uint8", "int32", "uint32", "int64", "uint64", "float16",
	    "float32", "float64", "bfloat16", "float8e4m3", "float8e5m2" };
	static const char *const ops[] = { "sum", "prod", "max", "min", "avg" };
	const char *op = !collective_reduces(call->coll) ? "" : call->asked_op > blinkAvg ? ", a user's sum"
	    : ops[call->asked_op];
	char root[24] = "";
	if (call->root >= 0)
		snprintf(root, sizeof root, ", root %d", call->root);
	if (call->exchanges_counts) {
		snprintf(text, size, "alltoallv, whose ranks exchange counts");
		return;
	}
	if (call->uneven && !call->uneven->known) {
		snprintf(text, size, "alltoallv of %s, %s", types[call->reduction.type], call->plan->name);
		return;
	}
	snprintf(text, size, "%s%s of %lld %s%s%s%s, %s", collective_name(call->coll), call->uneven ? "v" : "",
	    (long long)call->count, types[call->reduction.type], *op && *op != ',' ? ", " : "", op, root,
	    call->plan->name);
}
