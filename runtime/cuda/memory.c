/* Memory of a rank on its GPU besides regions: its state, and what its caller asks for. */
#include "cuda/calls.h"
#include "cuda/regions.h"
#include "support/error.h"

#include <string.h>

#define CHECK(g, call, err, ...) driver_check((g)->d, (g)->d->call, err, __VA_ARGS__)

/* ---- state and status ---- */

int
gpu_state_open(struct gpu *g, struct blink_error *err)
{
	size_t counts = (size_t)g->self->n_ranks * GPU_CHANNELS * sizeof(uint64_t);
	size_t bytes = sizeof *g->state + 2 * counts;
	CUdeviceptr state = 0;
	void *status = NULL;
	if (gpu_take(g, bytes, &state, err) != blinkSuccess)
		return err->code;
	g->state = host_pointer(state);
	CUdeviceptr sent = state + sizeof *g->state;
	uint64_t *pointer[2] = { host_pointer(sent), host_pointer(sent + counts) };
	if (gpu_zero(g, state, bytes, err) != blinkSuccess
	    || gpu_copy(g, &g->state->sent, pointer, sizeof pointer, err) != blinkSuccess)
		return err->code;
	if (gpu_take_host(g, sizeof *g->status, true, &status, err) != blinkSuccess)
		return err->code;
	memset(status, 0, sizeof *g->status);
	g->status = status;
	g->status->awaits = -1;
	return blinkSuccess;
}

/* ---- memory of the caller ---- */

int
gpu_memory_open(void *of, struct memory *m, struct blink_error *err)
{
	struct gpu *g = of;
	struct gpu_entry entry;
	CUdeviceptr memory = 0;
	if (gpu_enter(g, &entry, err) != blinkSuccess)
		return err->code;
	gpu_take(g, m->bytes, &memory, err);
	gpu_leave(g, &entry);
	m->at = host_pointer(memory);
	return err->code;
}

/* Calls that are under way may use it: it is given back when they have ended. */
int
gpu_memory_close(void *of, struct memory *m, bool forked, struct blink_error *err)
{
	struct gpu *g = of;
	struct gpu_entry entry;
	if (forked || gpu_enter(g, &entry, err) != blinkSuccess)
		return err->code;
	gpu_give_later(g, device_pointer(m->at), err);
	gpu_leave(g, &entry);
	return err->code;
}

int
gpu_copy(void *of, void *to, const void *from, size_t bytes, struct blink_error *err)
{
	struct gpu *g = of;
	struct gpu_entry entry;
	CUstream stream = g->stream;
	if (gpu_enter(g, &entry, err) != blinkSuccess)
		return err->code;
	if (CHECK(g, copy_async(device_pointer(to), device_pointer(from), bytes, stream), err, "copy %zu bytes", bytes)
	    == blinkSuccess)
		CHECK(g, stream_synchronize(stream), err, "copy %zu bytes", bytes);
	gpu_leave(g, &entry);
	return err->code;
}
