/* Memory of multicast objects: each rank has a part of its own, at the same place behind one address for all of them.
 *
 * It holds the values of calls by the switch (kernels/multicast.h): for each rank as a root, two halves of a ring, as
 * large as a pair's. So no two roots write into the same bytes, whatever the lengths of two calls that follow each
 * other, and a root knows by its own readers' flags when they have done with a half (device.h). Flags stay in regions.
 *
 * The driver wants these steps in this order on all ranks: to bind or map waits until all devices have been added. So
 * after each step ranks tell each other whether it is done, and if one says no, all let go of what they have:
 *
 *	object	rank 0 makes it, of as many devices as there are ranks, and hands over its descriptor
 *	add	each adds its device
 *	bind	each binds memory of its own, and maps the object
 *
 * A communicator that ends in order has no kernel of any rank at work on this rank's memory (kernels/multicast.h). One
 * that has failed may: it leaves its memory bound, which goes with the object. */
#include "cuda/multicast.h"
#include "cuda/calls.h"
#include "cuda/kernels.h"
#include "cuda/regions.h"
#include "cuda/routes.h"
#include "cuda/sizes.h"
#include "support/debug.h"
#include "support/error.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define CHECK(g, call, err, ...) driver_check((g)->d, (g)->d->call, err, __VA_ARGS__)

struct gpu_multicast {
	struct shm *shm;		/* by which the descriptor is handed over; NULL: it has been, or cannot be */
	int fd;				/* of the object; of other ranks than 0, of nothing */
	bool has_object, bound;
	CUmemGenericAllocationHandle object;
	CUdeviceptr own, all;		/* 0: not mapped */
	size_t bytes, all_bytes;
};

/* What ranks tell each other after a step. */
struct step {
	int32_t done, unused;
	uint64_t all_bytes;		/* of rank 0: of the object */
	unsigned char address[SHM_ADDRESS];
};

bool
gpu_can_multicast(const struct gpu *g)
{
	const struct driver *d = g->d;
	int can = 0;
	/* A driver that does not know the attribute has none. */
	return g->self->settings.nvls && kernel_multicast && d->multicast_create && d->multicast_add
	    && d->multicast_bind && d->multicast_unbind && d->multicast_granularity
	    && d->device_attribute(&can, CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED, g->device) == CUDA_SUCCESS && can;
}

/* ---- steps ---- */

static size_t
round_up(size_t bytes, size_t grain)
{
	return (bytes + grain - 1) / grain * grain;
}

/* Of this rank's part, and of the object, which is as large as drivers like it: granularities are powers of 2. */
static int
choose_bytes(struct gpu *g, struct gpu_multicast *m, CUmulticastObjectProp *what, struct blink_error *err)
{
	const CUmemAllocationProp memory = gpu_memory_of(g->device);
	size_t grain = 0, least = 0, most = 0;
	*what = (CUmulticastObjectProp){ .numDevices = (unsigned)g->self->n_ranks,
	    .size = 2 * (size_t)g->self->n_ranks * g->layout.ring_bytes,
	    .handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR };
	if (CHECK(g, vmm_granularity(&grain, &memory, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED), err,
	    "granularity of memory on device %d", (int)g->device) != blinkSuccess
	    || CHECK(g, multicast_granularity(&least, what, CU_MULTICAST_GRANULARITY_MINIMUM), err,
	    "granularity of a multicast object") != blinkSuccess
	    || CHECK(g, multicast_granularity(&most, what, CU_MULTICAST_GRANULARITY_RECOMMENDED), err,
	    "granularity of a multicast object") != blinkSuccess)
		return err->code;
	m->bytes = round_up(what->size, grain > least ? grain : least);
	m->all_bytes = what->size = round_up(m->bytes, most);
	return blinkSuccess;
}

static int
make_object(struct gpu *g, struct gpu_multicast *m, const CUmulticastObjectProp *what, struct blink_error *err)
{
	if (CHECK(g, multicast_create(&m->object, what), err, "make a multicast object of %zu bytes", what->size)
	    != blinkSuccess)
		return err->code;
	m->has_object = true;
	return CHECK(g, vmm_export(&m->fd, m->object, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0), err,
	    "export a multicast object");
}

static int
offer(struct gpu *g, struct gpu_multicast *m, unsigned char address[SHM_ADDRESS], struct blink_error *err)
{
	const struct rank_state *self = g->self;
	CUmulticastObjectProp what;
	for (int i = 0; i < self->n_ranks && err->code == blinkSuccess; i++)
		if (!g->peer[i].direct)
			set_error(err, blinkSystemError, "rank %d's memory is not accessed", i);
	if (err->code == blinkSuccess && !g->launches->multicast)
		set_error(err, blinkSystemError, "the kernel for multicast objects is not loaded");
	if (err->code != blinkSuccess || choose_bytes(g, m, &what, err) != blinkSuccess
	    || (self->rank == 0 && make_object(g, m, &what, err) != blinkSuccess))
		return err->code;
	if (self->rank != 0 && (m->fd = memfd_create("blink-nothing", MFD_CLOEXEC)) < 0)
		return set_error(err, blinkSystemError, "memfd_create: %m");
	if (shm_open_handle(m->fd, &m->fd, &self->keys, address, &m->shm, err) != blinkSuccess && m->fd >= 0)
		close(m->fd);
	return err->code;
}

static int
import_object(struct gpu *g, struct gpu_multicast *m, int fd, struct blink_error *err)
{
	if (CHECK(g, vmm_import(&m->object, (void *)(uintptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR), err,
	    "import a multicast object") == blinkSuccess)
		m->has_object = true;
	return err->code;
}

/* Rank 0 hands over to all, who hand over nothing. A thread of its process takes the descriptor as it is. */
static int
add(struct gpu *g, struct gpu_multicast *m, const struct step *all, struct blink_error *err)
{
	const struct rank_state *self = g->self;
	int n = self->rank == 0 ? self->n_ranks - 1 : 1;
	struct shm_peer *peer = calloc((size_t)n, sizeof *peer);
	if (!peer)
		return set_error_memory(err);
	for (int i = 0; i < n; i++) {
		peer[i].rank = self->rank == 0 ? i + 1 : 0;
		peer[i].fd = -1;
		memcpy(peer[i].address, all[peer[i].rank].address, SHM_ADDRESS);
	}
	shm_exchange(m->shm, self->rank, peer, n, self->deadline, &self->stop, err);
	if (err->code == blinkSuccess && self->rank != 0)
		import_object(g, m, peer->memory ? *(const int *)peer->memory : peer->fd, err);
	for (int i = 0; i < n; i++)
		if (peer[i].fd >= 0)
			close(peer[i].fd);
	free(peer);
	return err->code == blinkSuccess ? CHECK(g, multicast_add(m->object, g->device), err,
	    "add device %d to a multicast object", (int)g->device) : err->code;
}

static int
bind(struct gpu *g, struct gpu_multicast *m, struct blink_error *err)
{
	const CUmemAllocationProp what = gpu_memory_of(g->device);
	CUmemGenericAllocationHandle memory;
	if (CHECK(g, vmm_create(&memory, m->bytes, &what, 0), err, "allocate %zu bytes on device %d", m->bytes,
	    (int)g->device) != blinkSuccess)
		return err->code;
	if (CHECK(g, multicast_bind(m->object, 0, memory, 0, m->bytes, 0), err, "bind %zu bytes to a multicast object",
	    m->bytes) == blinkSuccess) {
		m->bound = true;
		if (gpu_map(g, memory, m->bytes, &g->device, 1, &m->own, err) != blinkSuccess)
			m->own = 0;
		else if (gpu_map(g, m->object, m->all_bytes, &g->device, 1, &m->all, err) != blinkSuccess)
			m->all = 0;
	}
	g->d->vmm_release(memory);
	return err->code;
}

/* ---- all ranks ---- */

/* Whether all have done their step. `why` of this rank's own; what fails in `err` is the exchange. */
static bool
all_done(struct gpu *g, struct step *mine, struct step *all, const struct blink_error *why, struct blink_error *err)
{
	int n = g->self->n_ranks, not = 0;
	mine->done = why->code == blinkSuccess;
	if (gpu_gather(g, mine, sizeof *mine, all, err) != blinkSuccess)
		return false;
	while (not < n && all[not].done)
		not++;
	if (!mine->done)
		debug_say(DEBUG_INFO, g->self->rank, "no multicast object: %s", why->text);
	else if (not < n)
		debug_say(DEBUG_INFO, g->self->rank, "no multicast object: rank %d cannot", not);
	return not == n;
}

static bool
make(struct gpu *g, struct gpu_multicast *m, struct step *all, struct blink_error *err)
{
	struct blink_error why = { 0 };
	struct step mine = { .done = 0 };
	offer(g, m, mine.address, &why);
	mine.all_bytes = m->all_bytes;
	if (!all_done(g, &mine, all, &why, err))
		return false;
	m->all_bytes = all[0].all_bytes;
	add(g, m, all, &why);
	if (!all_done(g, &mine, all, &why, err))
		return false;
	shm_close(m->shm);
	m->shm = NULL;
	bind(g, m, &why);
	return all_done(g, &mine, all, &why, err);
}

int
gpu_multicast_open(struct gpu *g, struct blink_error *err)
{
	struct gpu_entry entry;
	if (!g->all_multicast)
		return err->code;
	struct gpu_multicast *m = calloc(1, sizeof *m);
	struct step *all = calloc((size_t)g->self->n_ranks, sizeof *all);
	if (!m || !all || gpu_enter(g, &entry, err) != blinkSuccess) {
		free(m);
		free(all);
		return err->code == blinkSuccess ? set_error_memory(err) : err->code;
	}
	g->multicast = m;
	m->fd = -1;
	if (!make(g, m, all, err))
		gpu_multicast_close(g, false);
	else if (g->self->rank == 0)
		debug_say(DEBUG_INFO, 0, "a multicast object of %d GPUs, %zu bytes of each", g->self->n_ranks,
		    m->bytes);
	gpu_leave(g, &entry);
	free(all);
	return err->code;
}

void
gpu_multicast_close(struct gpu *g, bool forked)
{
	struct gpu_multicast *m = g->multicast;
	struct blink_error failed = { 0 };
	if (!m)
		return;
	g->multicast = NULL;
	rank_error(g->self, &failed);
	shm_close(m->shm);
	if (m->all && !forked)
		gpu_unmap(g->d, m->all, m->all_bytes);
	if (m->bound && !forked && failed.code == blinkSuccess)
		g->d->multicast_unbind(m->object, g->device, 0, m->bytes);
	if (m->own && !forked)
		gpu_unmap(g->d, m->own, m->bytes);
	if (m->has_object && !forked)
		g->d->vmm_release(m->object);
	free(m);
}

/* ---- calls ---- */

char *
gpu_multicast_ring(const struct gpu *g, int root, int half)
{
	return (char *)host_pointer(g->multicast->own) + ((size_t)root * 2 + (size_t)half) * g->layout.ring_bytes;
}

int
gpu_multicast_stages(Collective coll)
{
	return coll == ALLREDUCE ? 2 : 1;
}

/* A reduction that scales or divides is left to kernels that have its type's arithmetic. */
static bool
find_sum(const struct call *call, enum multicast_sum *out)
{
	static const unsigned char sums[][4] = {	/* by type, and as gpu_ops */
		[blinkInt32] = { MULTICAST_SUM_INT32, 0, MULTICAST_MAX_INT32, MULTICAST_MIN_INT32 },
		[blinkUint32] = { MULTICAST_SUM_INT32, 0, MULTICAST_MAX_UINT32, MULTICAST_MIN_UINT32 },
		[blinkInt64] = { MULTICAST_SUM_INT64, 0, MULTICAST_MAX_INT64, MULTICAST_MIN_INT64 },
		[blinkUint64] = { MULTICAST_SUM_INT64, 0, MULTICAST_MAX_UINT64, MULTICAST_MIN_UINT64 },
		[blinkFloat16] = { MULTICAST_SUM_FLOAT16 },
		[blinkBfloat16] = { MULTICAST_SUM_BFLOAT16 },
		[blinkFloat32] = { MULTICAST_SUM_FLOAT32 },
		[blinkFloat64] = { MULTICAST_SUM_FLOAT64 },
	};
	const struct reduction *r = &call->reduction;
	*out = MULTICAST_NONE;
	if (!collective_reduces(call->coll))
		return true;
	if (r->scales || r->divide != 0 || (size_t)r->type >= sizeof sums / sizeof *sums)
		return false;
	*out = (enum multicast_sum)sums[r->type][r->op];
	return *out != MULTICAST_NONE;
}

bool
gpu_multicast_serves(const struct gpu *g, const struct call *call, const struct gpu_asked *asked,
    struct gpu_multicast_call *out)
{
	const struct gpu_multicast *m = g->multicast;
	enum multicast_sum sum;
	struct gpu_sizes sizes;
	struct blink_error none = { 0 };
	bool has_trees = call->coll == ALLREDUCE || call->coll == REDUCE || call->coll == REDUCESCATTER
	    || call->coll == BROADCAST || call->coll == ALLGATHER;
	if (!m || !has_trees || !call->plan->prog->switched || !find_sum(call, &sum)
	    || (gpu_sizes_choose(asked, &sizes, &none) == blinkSuccess && sizes.slots == 0))
		return false;
	out->sum = sum;
	out->to_all = (int64_t)(m->all - m->own);
	return true;
}
