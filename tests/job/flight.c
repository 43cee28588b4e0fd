#include "flight.h"

#include "device.h"

#include <stdlib.h>

void
flight_make(struct flight *f, int n, int rank, int n_calls, size_t most, size_t rare, uint64_t seed)
{
	uint64_t state = seed;
	size_t bytes = 0, at = 0;
	*f = (struct flight){ .n_ranks = n, .rank = rank, .n_calls = n_calls };
	f->calls = calloc((size_t)n_calls, sizeof *f->calls);
	f->buffers = calloc((size_t)n_calls, sizeof *f->buffers);
	for (int k = 0; f->calls && k < n_calls; k++) {
		struct call *c = &f->calls[k];
		call_combination((int)(next_random(&state) % (uint64_t)call_combinations()), c);
		call_random(c, n, next_random(&state) % 100 ? most : rare, &state);
		bytes += call_need(c, n, rank);
	}
	f->bytes = bytes ? bytes : 64;
	f->memory = aligned_alloc(64, f->bytes);
	if (!f->calls || !f->buffers || !f->memory)
		exit(97);
	for (int k = 0; k < n_calls; k++) {
		call_place(&f->calls[k], n, rank, f->memory + at, &f->buffers[k]);
		at += f->buffers[k].bytes;
	}
}

/* Memory and a stream on the GPU, where calls are there. */
static void
board(struct flight *f, struct rank *me, blinkComm_t comm)
{
	if (f->comm)
		return;
	f->comm = comm;
	f->stream = device_stream(me);
	f->device = device_memory(me, comm, f->bytes);
	for (int k = 0; k < f->n_calls; k++) {
		f->buffers[k].stream = f->stream;
		if (f->device)
			f->buffers[k].device = f->device + (f->buffers[k].memory - f->memory);
	}
}

bool
flight_start_one(struct flight *f, struct rank *me, blinkComm_t comm, int k)
{
	char text[160];
	job_at(me, "start call %d of %d: %s", k, f->n_calls, call_text(&f->calls[k], text));
	board(f, me, comm);
	blinkResult_t result = call_start(&f->calls[k], f->rank, &f->buffers[k], comm);
	return job_need(me, result == blinkSuccess, "call %d: %s: %d: %s", k, text, (int)result,
	    blinkCommGetError(comm));
}

void
flight_land(struct flight *f, struct rank *me)
{
	char text[160], why[256];
	device_out(me, f->comm, f->memory, f->device, f->bytes);
	for (int k = 0; k < f->n_calls; k++)
		job_need(me, call_right(&f->calls[k], f->n_ranks, f->rank, &f->buffers[k], why),
		    "call %d of %d: %s: %s", k, f->n_calls, call_text(&f->calls[k], text), why);
	flight_free(f, me);
}

void
flight_free(struct flight *f, struct rank *me)
{
	/* Its memory on the GPU goes with the communicator: to free it waits for all kernels there, also those of other
	 * communicators, whose peers may do the same. */
	device_stream_end(me, f->stream);
	free(f->calls);
	free(f->buffers);
	free(f->memory);
}

bool
fine(struct rank *me, blinkResult_t result, blinkComm_t comm, const char *what)
{
	return job_need(me, result == blinkSuccess, "%s: %d: %s", what, (int)result, blinkCommGetError(comm));
}

bool
wait_for(struct rank *me, blinkComm_t comm)
{
	job_at(me, "wait");
	return fine(me, blinkCommWait(comm, 0), comm, "wait");
}

blinkResult_t
flight_try(struct rank *me, blinkComm_t comm, int n_calls, size_t most, uint64_t seed)
{
	struct flight f;
	int n = 0, rank = 0;
	blinkResult_t result = blinkCommCount(comm, &n);
	result = result == blinkSuccess ? blinkCommUserRank(comm, &rank) : result;
	if (result != blinkSuccess)
		return result;
	flight_make(&f, n, rank, n_calls, most, most, seed);
	board(&f, me, comm);
	for (int k = 0; k < n_calls && result == blinkSuccess; k++)
		result = call_start(&f.calls[k], rank, &f.buffers[k], comm);
	job_at(me, "wait for %d calls", n_calls);
	/* Also after an error: the buffers are the communicator's until then. */
	blinkResult_t waited = blinkCommWait(comm, 0);
	result = result == blinkSuccess ? waited : result;
	if (result == blinkSuccess)
		flight_land(&f, me);
	else
		flight_free(&f, me);
	return result;
}

bool
flight_run(struct rank *me, blinkComm_t comm, int n_calls, size_t most, uint64_t seed)
{
	return fine(me, flight_try(me, comm, n_calls, most, seed), comm, "calls");
}

size_t
message_bytes(uint64_t seed, int from, int to, int k)
{
	static const size_t sizes[] = { 0, 1, 7, 64, 1000, 4096, 65537, 300000 };
	return sizes[mixed(seed, (uint64_t)(from * 64 + to), (uint64_t)k) % (k % 8 ? 6 : 8)];
}
