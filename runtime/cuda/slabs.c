/* Slabs: memory of the GPU that a communicator keeps, in pieces, and what is written there: tables, sheets, inputs. */
#include "cuda/calls.h"
#include "support/error.h"

#include <stdlib.h>

enum { SLAB = 1 << 20, ALIGNED = 256 };

/* One that is full from the beginning goes behind the first, which has room. */
static void
link_slab(struct gpu_launches *l, struct gpu_slab *slab, bool is_full)
{
	struct gpu_slab **at = is_full && l->slab ? &l->slab->next : &l->slab;
	slab->next = *at;
	*at = slab;
}

int
gpu_keep(struct gpu *g, size_t bytes, CUdeviceptr *out, struct blink_error *err)
{
	struct gpu_launches *l = g->launches;
	struct gpu_slab *slab = l->slab;
	bytes = (bytes + ALIGNED - 1) / ALIGNED * ALIGNED;
	if (!slab || slab->bytes - slab->used < bytes) {
		size_t need = bytes > SLAB ? bytes : SLAB;
		if (!(slab = calloc(1, sizeof *slab)))
			return set_error_memory(err);
		if (gpu_take(g, need, &slab->memory, err) != blinkSuccess) {
			free(slab);
			return err->code;
		}
		slab->bytes = need;
		link_slab(l, slab, need > SLAB);
	}
	*out = slab->memory + slab->used;
	slab->used += bytes;
	return blinkSuccess;
}

int
gpu_upload(struct gpu *g, CUdeviceptr to, const void *from, size_t bytes, struct blink_error *err)
{
	const struct driver *d = g->d;
	if (driver_check(d, d->copy_in_async(to, from, bytes, g->stream), err, "copy %zu bytes to device %d", bytes,
	    (int)g->device) == blinkSuccess)
		driver_check(d, d->stream_synchronize(g->stream), err, "copy %zu bytes to device %d", bytes,
		    (int)g->device);
	return err->code;
}

void
gpu_slabs_close(struct gpu *g, bool forked)
{
	struct gpu_launches *l = g->launches;
	struct blink_error ignored = { 0 };
	while (l->slab) {
		struct gpu_slab *next = l->slab->next;
		if (!forked)
			gpu_give(g, l->slab->memory, &ignored);
		free(l->slab);
		l->slab = next;
	}
}
