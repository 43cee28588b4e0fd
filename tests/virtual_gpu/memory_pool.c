/* Pools of memory, whose pieces are taken and given back in the order of streams: nothing waits for kernels. Memory can
 * be used from when the stream has come to it until it comes to where it is given back. */
#include "memory.h"
#include "streams.h"

#include <stdlib.h>

/* All pools of a device are alike. */
static struct memory_pool {
	int device;
} of_device[DEVICES_MOST];

struct step {
	struct operation operation;
	char *at;
};

static bool
supported(void)
{
	return setting("VIRTUAL_GPU_POOLS", 1) != 0;
}

CUresult
cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *what)
{
	ENTER(cuMemPoolCreate);
	if (!supported())
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!pool || !what || (int)what->allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
	    (int)what->location.type != CU_MEM_LOCATION_TYPE_DEVICE || !device_valid(what->location.id) ||
	    (int)what->handleTypes != 0 || what->maxSize != 0 || what->win32SecurityAttributes)
		return CUDA_ERROR_INVALID_VALUE;
	state_lock();
	struct memory_pool *p = &of_device[what->location.id];
	p->device = what->location.id;
	*pool = handle_new(POOL, p);
	return state_unlock(CUDA_SUCCESS);
}

/* What is taken of it stays until it is given back. */
CUresult
cuMemPoolDestroy(CUmemoryPool pool)
{
	ENTER(cuMemPoolDestroy);
	state_lock();
	struct memory_pool *p = handle_find(POOL, pool);
	if (p)
		handle_end(pool);
	return state_unlock(p ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

CUresult
cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute what, void *value)
{
	ENTER(cuMemPoolSetAttribute);
	state_lock();
	bool good = handle_find(POOL, pool) && value && (int)what == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
	return state_unlock(good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

/* The memory that begins here; NULL: there is none of a pool. Between memory_lock and memory_unlock. */
static struct mapping *
pooled(const char *at)
{
	int i = mapping_at(at);
	struct mapping *m = i >= 0 ? mapping_number(i) : NULL;
	return m && m->base == at && m->pool ? m : NULL;
}

static void
become_ready(struct operation *self, struct context *c)
{
	(void)c;
	memory_lock();
	struct mapping *m = pooled(((struct step *)self)->at);
	if (m)
		m->ready = true;
	memory_unlock();
}

static void
go_back(struct operation *self, struct context *c)
{
	const char *at = ((struct step *)self)->at;
	(void)c;
	memory_lock();
	if (pooled(at))
		mapping_drop(mapping_at(at));
	memory_unlock();
}

/* In a capture it would be a node of the graph, which has none of these. */
static CUresult
put(CUstream stream, struct context *c, void (*run)(struct operation *, struct context *), char *at)
{
	struct step step = { { .run = run, .bytes = sizeof step }, at };
	struct stream *s;
	state_lock();
	CUresult r = stream_find(stream, c, &s);
	if (r == CUDA_SUCCESS)
		r = s->c != c ? CUDA_ERROR_INVALID_CONTEXT : s->capture ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
		    : stream_put(s, &step.operation);
	return state_unlock(r);
}

CUresult
cuMemAllocFromPoolAsync(CUdeviceptr *memory, size_t bytes, CUmemoryPool pool, CUstream stream)
{
	char *at;
	ENTER_CONTEXT(cuMemAllocFromPoolAsync, c);
	state_lock();
	struct memory_pool *p = handle_find(POOL, pool);
	state_unlock(CUDA_SUCCESS);
	if (!memory || bytes == 0 || !p || p->device != c->device)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult r = memory_allocate(c, bytes, p, &at);
	if (r == CUDA_SUCCESS && (r = put(stream, c, become_ready, at)) != CUDA_SUCCESS)
		mapping_drop_when_idle(at, MAPPING_ALLOC);
	if (r == CUDA_SUCCESS)
		*memory = (CUdeviceptr)(uintptr_t)at;
	return r;
}

CUresult
cuMemFreeAsync(CUdeviceptr memory, CUstream stream)
{
	char *at = (char *)(uintptr_t)memory;
	ENTER_CONTEXT(cuMemFreeAsync, c);
	memory_lock();
	bool good = pooled(at);
	memory_unlock();
	return good ? put(stream, c, go_back, at) : CUDA_ERROR_INVALID_VALUE;
}
