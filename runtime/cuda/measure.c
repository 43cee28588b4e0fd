/* What a chunk costs: measured when a process makes its first communicator on a GPU, by a kernel of one block that
 * moves chunks as calls do, into memory of a peer which nobody uses yet (kernels/measure.h). That takes some 100 us.
 * No peer has to take part: none can hold it up. Twice as many chunks take more by n chunks, and chunks of twice the
 * length by n c bytes: a byte has the latter, and a chunk what is left of the former. The block's last fence is in
 * neither. Chunks must be the same on all ranks, so that they exchange what they have, and the worst counts; who has no
 * peer whose memory it can store into has nothing. Without any, or with BLINK_MEASURE=0, values are assumed: 0.9 us for
 * flags, barriers and the loop of a chunk, 0.6 us for a fence, 50 GB/s, as an H200 has them towards its own memory. */
#include "cuda/calls.h"
#include "cuda/routes.h"
#include "support/debug.h"
#include "support/error.h"

#include <stdlib.h>

enum { CHUNK_NS = 900, FENCE_NS = 600, RATE = 50000, NS_MOST = 1000000, RATE_MOST = 1000000, MEASURE = 4 };

static struct {
	pthread_mutex_t lock;
	struct gpu_cost cost;		/* rate 0: not measured */
} known[GPU_DEVICES] = { [0 ... GPU_DEVICES - 1] = { .lock = PTHREAD_MUTEX_INITIALIZER } };

static int64_t
between(int64_t least, int64_t x, int64_t most)
{
	return x < least ? least : x > most ? most : x;
}

/* Rate 0: the kernel took no time, as one that does nothing. */
static struct gpu_cost
cost_of(const struct gpu_status *s)
{
	int64_t bytes = (int64_t)GPU_MEASURED_BYTES * GPU_MEASURED_CHUNKS, few = (int64_t)s->chunks;
	int64_t longer = between(1, (int64_t)s->twice_as_long - few, INT64_MAX);
	int64_t rate = s->chunks ? between(1, bytes * 1000 / longer, RATE_MOST) : 0;
	int64_t left = rate ? (int64_t)s->twice_as_many - few - longer : 0;
	return (struct gpu_cost){ between(0, left / GPU_MEASURED_CHUNKS, NS_MOST),
	    between(0, (int64_t)s->fences / GPU_MEASURED_FENCES, NS_MOST), rate };
}

static int
measure(struct gpu *g, int peer, struct gpu_cost *out, struct blink_error *err)
{
	struct gpu_pair pair;
	struct gpu_entry entry;
	CUfunction kernel;
	gpu_pair_of(g, g->self->rank, peer, GPU_ROUTE_DIRECT, &pair);
	struct gpu_measure m = { .status = g->status, .to = pair.ring[0], .own = (char *)g->state->pending,
	    .flag = &gpu_meeting_of(g, peer, g->self->rank, GPU_ROUTE_DIRECT)->unused };
	void *parameters[] = { &m };
	CUstream stream = g->stream;
	if (gpu_function(g, "move", MEASURE, &kernel, err) != blinkSuccess || gpu_enter(g, &entry, err) != blinkSuccess)
		return err->code;
	if (driver_check(g->d, g->d->launch(kernel, 1, 1, 1, (unsigned)g->threads, 1, 1, 0, stream, parameters, NULL),
	    err, "launch a kernel that measures") == blinkSuccess)
		driver_check(g->d, g->d->stream_synchronize(stream), err, "measure what chunks cost");
	gpu_leave(g, &entry);
	*out = cost_of(g->status);
	return err->code;
}

/* The next rank whose memory can be accessed, on another GPU if there is one; -1: none. */
static int
peer_of(const struct gpu *g)
{
	int n = g->self->n_ranks, here = -1;
	for (int i = n - 1; i > 0; i--) {
		int peer = (g->self->rank + i) % n;
		if (g->peer[peer].direct && (here < 0 || g->peer[peer].device != g->device
		    || g->peer[here].device == g->device))
			here = peer;
	}
	return here;
}

static int
measure_once(struct gpu *g, struct gpu_cost *out, struct blink_error *err)
{
	int peer = g->self->settings.measure ? peer_of(g) : -1;
	if (peer < 0)
		return blinkSuccess;
	pthread_mutex_lock(&known[g->device].lock);
	if (known[g->device].cost.rate == 0)
		measure(g, peer, &known[g->device].cost, err);
	*out = known[g->device].cost;
	pthread_mutex_unlock(&known[g->device].lock);
	return err->code;
}

int
gpu_measure_costs(struct gpu *g, struct blink_error *err)
{
	struct gpu_cost mine = { .rate = 0 }, worst = { .rate = RATE_MOST };
	struct gpu_cost *all = calloc((size_t)g->self->n_ranks, sizeof *all);
	bool measured = false;
	if (!all)
		return set_error_memory(err);
	if (measure_once(g, &mine, err) == blinkSuccess)
		gpu_gather(g, &mine, sizeof mine, all, err);
	for (int i = 0; i < g->self->n_ranks && err->code == blinkSuccess; i++) {
		if (all[i].rate <= 0)
			continue;
		measured = true;
		worst.rate = all[i].rate < worst.rate ? all[i].rate : worst.rate;
		worst.chunk_ns = all[i].chunk_ns > worst.chunk_ns ? all[i].chunk_ns : worst.chunk_ns;
		worst.fence_ns = all[i].fence_ns > worst.fence_ns ? all[i].fence_ns : worst.fence_ns;
	}
	free(all);
	g->cost = measured ? worst : (struct gpu_cost){ CHUNK_NS, FENCE_NS, RATE };
	debug_say(DEBUG_INFO, g->self->rank, "chunks, %s: %lld ns each, %lld ns a fence, a block moves %lld MB/s",
	    measured ? "measured" : "assumed", (long long)g->cost.chunk_ns, (long long)g->cost.fence_ns,
	    (long long)g->cost.rate);
	return err->code;
}
