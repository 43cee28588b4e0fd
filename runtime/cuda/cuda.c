/* The backend of GPUs. */
#include "cuda/calls.h"
#include "cuda/multicast.h"
#include "cuda/relay.h"
#include "support/error.h"

#include <stdlib.h>

/* Peers learn of a rank's GPU by exchanges of its own (peers.c). */
static int
open(struct rank_state *self, unsigned char *address, void **of, struct blink_error *err)
{
	struct gpu *g = NULL;
	(void)address;
	gpu_new(self, &g, err);
	*of = g;
	return err->code;
}

static int
connect(void *of, const void *addresses, size_t step, struct blink_error *err)
{
	struct gpu *g = of;
	(void)addresses, (void)step;
	if (gpu_open(g, err) != blinkSuccess || gpu_launches_open(g, err) != blinkSuccess
	    || gpu_multicast_open(g, err) != blinkSuccess || gpu_share_blocks(g, err) != blinkSuccess
	    || gpu_measure_costs(g, err) != blinkSuccess)
		return err->code;
	/* What has happened before was not heard. */
	atomic_store(&g->open, true);
	gpu_wake(g);
	return blinkSuccess;
}

static uint64_t
begun(void *of)
{
	const struct gpu *g = of;
	return g->status ? __atomic_load_n(&g->status->begun, __ATOMIC_ACQUIRE) : 0;
}

/* Kernels write into regions of the library: to register memory changes nothing yet, on no rank. */
static int
memory_register(void *of, struct memory *m, struct blink_error *err)
{
	(void)of;
	if (!m || m->registered)
		return set_error(err, blinkInvalidArgument, "memory: %s", m ? "is registered" :
		    "not of this communicator's blinkMemAlloc");
	m->registered = 1;
	return blinkSuccess;
}

static int
memory_deregister(void *of, struct memory *m, struct blink_error *err)
{
	(void)of, (void)err;
	m->registered = 0;
	return blinkSuccess;
}

/* What is not sent when a communicator has failed is not waited for. */
static void
finish(void *of)
{
	struct gpu *g = of;
	struct blink_error failed = { 0 };
	if (g->launches) {
		gpu_watch_close(g);
		gpu_relay_end(g);
	}
	rank_error(g->self, &failed);
	if (g->self->net && failed.code != blinkSuccess)
		g->self->net->abandon(g->self->net_handle);
}

static void
close(void *of, bool forked)
{
	struct gpu *g = of;
	gpu_launches_close(g, forked);
	gpu_close(g, forked);
}

const struct backend cuda_backend = {
	.name = "cuda",
	.on_device = true,
	.open = open,
	.connect = connect,
	.net = { NULL, gpu_relay_place, gpu_relay_arrived, gpu_relay_broken, gpu_relay_short_of },
	.submit = gpu_submit,
	.wait = gpu_wait,
	.last_call = gpu_last_call,
	.begun = begun,
	.wake = gpu_wake,
	.status = gpu_status_of,
	.memory_open = gpu_memory_open,
	.memory_close = gpu_memory_close,
	.copy = gpu_copy,
	.memory_register = memory_register,
	.memory_deregister = memory_deregister,
	.finish = finish,
	.close = close,
};
