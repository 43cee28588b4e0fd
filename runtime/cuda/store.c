/* The store: what a process has on a device for all of its communicators there.
 *
 * Kernels wait for those of other ranks, which may be launched by what the calling thread does next, or by a thread
 * that shares the context. So nothing that a call does may wait for kernels: with several ranks on a GPU, or one thread
 * for several ranks, none would go on. CUDA has two kinds of such waits, and the store does without both:
 *
 * Memory. cuMemFree, cuMemFreeHost and cuMemHostUnregister wait for all that the context does, cuMemAlloc and
 * cuMemHostAlloc may. Memory of the GPU comes from a pool (CUDA 11.2), and is taken and given back in the order of the
 * store's stream. The pool keeps KEPT bytes that are not in use, so that small pieces cost no calls of the system, and
 * gives the rest to other programs. Of the host's memory there are two slabs from the beginning, one of which has room
 * for small pieces alone; what is given back stays for others, and is freed when the last communicator of the device
 * closes.
 *
 * Streams. They share the connections of a device to the host, of which there are 8 unless CUDA_DEVICE_MAX_CONNECTIONS
 * says otherwise, whatever their priority. What waits behind a kernel in one stream holds up other streams of that
 * connection. So the library has one stream on a device, whose work is short and waits for nobody. */
#include "cuda/gpu.h"
#include "support/error.h"

#include <pthread.h>
#include <stdlib.h>

enum { KEPT = 64 << 20, LARGE_SLAB = 8 << 20, SMALL_SLAB = 128 << 10, ALIGNED = 256 };

/* Memory of the host: one allocation has several, the first of which is freed. */
struct piece {
	char *at;
	size_t bytes;
	bool begins, used;		/* begins: an allocation */
	struct piece *next;
};

static struct store {
	CUstream stream;
	CUmemoryPool pool;		/* NULL: the driver has none */
	struct piece *piece;
	int uses;
} of_device[GPU_DEVICES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- memory of the host: the lock is held ---- */

static struct piece *
new_piece(struct store *s, char *at, size_t bytes, bool begins, struct blink_error *err)
{
	struct piece *p = calloc(1, sizeof *p);
	if (!p) {
		set_error_memory(err);
		return NULL;
	}
	*p = (struct piece){ .at = at, .bytes = bytes, .begins = begins, .next = s->piece };
	s->piece = p;
	return p;
}

static struct piece *
allocate(struct gpu *g, struct store *s, size_t bytes, struct blink_error *err)
{
	void *at = NULL;
	if (driver_check(g->d, g->d->host_alloc(&at, bytes, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP), err,
	    "allocate %zu bytes of the host", bytes) != blinkSuccess)
		return NULL;
	struct piece *p = new_piece(s, at, bytes, true, err);
	if (!p)
		g->d->host_free(at);
	return p;
}

/* The smallest that has room; NULL: none has. */
static struct piece *
find(const struct store *s, size_t bytes)
{
	struct piece *best = NULL;
	for (struct piece *p = s->piece; p; p = p->next)
		if (!p->used && p->bytes >= bytes && (!best || p->bytes < best->bytes))
			best = p;
	return best;
}

/* What is left of the piece is one of its own. */
static int
use(struct store *s, struct piece *p, size_t bytes, struct blink_error *err)
{
	if (p->bytes > bytes && !new_piece(s, p->at + bytes, p->bytes - bytes, false, err))
		return err->code;
	p->bytes = bytes;
	p->used = true;
	return blinkSuccess;
}

int
gpu_take_host(struct gpu *g, size_t bytes, bool must, void **out, struct blink_error *err)
{
	struct store *s = &of_device[g->device];
	size_t size = (bytes + ALIGNED - 1) / ALIGNED * ALIGNED;
	pthread_mutex_lock(&lock);
	struct piece *p = find(s, size);
	if (!p && must)
		p = allocate(g, s, size, err);
	if (p && use(s, p, size, err) == blinkSuccess)
		*out = p->at;
	pthread_mutex_unlock(&lock);
	return err->code;
}

/* Behind a piece is what was cut off it, if it is free: they are one again. */
static void
unite(struct store *s, struct piece *p)
{
	for (struct piece **at = &s->piece, *q; (q = *at);) {
		if (q->used || q->begins || q->at != p->at + p->bytes) {
			at = &q->next;
			continue;
		}
		*at = q->next;
		p->bytes += q->bytes;
		free(q);
		at = &s->piece;
	}
}

void
gpu_give_host(struct gpu *g, void *memory)
{
	struct store *s = &of_device[g->device];
	pthread_mutex_lock(&lock);
	for (struct piece *p = s->piece; p; p = p->next)
		if (p->at == memory)
			p->used = false;
	for (struct piece *p = s->piece; p; p = p->next)
		if (!p->used)
			unite(s, p);
	pthread_mutex_unlock(&lock);
}

/* ---- memory of the GPU ---- */

static bool
has_pools(const struct gpu *g)
{
	const struct driver *d = g->d;
	int can = 0;
	return d->pool_create && d->pool_destroy && d->pool_set && d->pool_alloc && d->pool_free
	    && d->device_attribute(&can, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, g->device) == CUDA_SUCCESS && can;
}

int
gpu_take(struct gpu *g, size_t bytes, CUdeviceptr *out, struct blink_error *err)
{
	const struct driver *d = g->d;
	CUmemoryPool pool = of_device[g->device].pool;
	CUdeviceptr memory = 0;
	CUresult r = pool ? d->pool_alloc(&memory, bytes, pool, g->stream) : d->memory_alloc(&memory, bytes);
	if (driver_check(d, r, err, "allocate %zu bytes on device %d", bytes, (int)g->device) != blinkSuccess)
		return err->code;
	if (pool && driver_check(d, d->stream_synchronize(g->stream), err, "allocate %zu bytes on device %d", bytes,
	    (int)g->device) != blinkSuccess)
		return err->code;
	*out = memory;
	return blinkSuccess;
}

int
gpu_give(struct gpu *g, CUdeviceptr memory, struct blink_error *err)
{
	CUresult r = of_device[g->device].pool ? g->d->pool_free(memory, g->stream) : g->d->memory_free(memory);
	return driver_check(g->d, r, err, "free memory of device %d", (int)g->device);
}

/* ---- open and close ---- */

static int
open_pool(struct gpu *g, struct store *s, struct blink_error *err)
{
	CUmemPoolProps what = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
	    .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = g->device } };
	cuuint64_t kept = KEPT;
	if (!has_pools(g))
		return blinkSuccess;
	if (driver_check(g->d, g->d->pool_create(&s->pool, &what), err, "make a pool of memory on device %d",
	    (int)g->device) == blinkSuccess)
		driver_check(g->d, g->d->pool_set(s->pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &kept), err,
		    "keep memory of device %d", (int)g->device);
	return err->code;
}

/* entered: else the process forked, or the context is gone. */
static void
close_store(struct gpu *g, struct store *s, bool entered)
{
	for (struct piece *p = s->piece, *next; p; p = next) {
		next = p->next;
		if (p->begins && entered)
			g->d->host_free(p->at);
		free(p);
	}
	if (s->pool && entered)
		g->d->pool_destroy(s->pool);
	if (s->stream && entered)
		g->d->stream_destroy(s->stream);
	*s = (struct store){ .uses = 0 };
}

static int
open_store(struct gpu *g, struct store *s, struct blink_error *err)
{
	if (driver_check(g->d, g->d->stream_create(&s->stream, CU_STREAM_NON_BLOCKING), err, "make a stream")
	    != blinkSuccess || open_pool(g, s, err) != blinkSuccess || !allocate(g, s, LARGE_SLAB, err)
	    || !allocate(g, s, SMALL_SLAB, err))
		close_store(g, s, true);
	return err->code;
}

int
gpu_store_open(struct gpu *g, struct blink_error *err)
{
	if (g->device < 0 || g->device >= GPU_DEVICES)
		return set_error(err, blinkLimit, "cuda: device %d: want one below %d", (int)g->device,
		    (int)GPU_DEVICES);
	struct store *s = &of_device[g->device];
	pthread_mutex_lock(&lock);
	if (s->uses > 0 || open_store(g, s, err) == blinkSuccess) {
		s->uses++;
		g->stream = s->stream;
	}
	pthread_mutex_unlock(&lock);
	return err->code;
}

void
gpu_store_close(struct gpu *g, bool entered)
{
	if (!g->stream)
		return;
	pthread_mutex_lock(&lock);
	if (--of_device[g->device].uses == 0)
		close_store(g, &of_device[g->device], entered);
	pthread_mutex_unlock(&lock);
}
