/* The primary contexts of devices, which of them is each thread's, and peer access. */
#include "more.h"
#include "virtual_gpu.h"

enum { STACK_MOST = 16 };

/* `lifecycle` is held while a context comes and goes. */
static pthread_mutex_t lifecycle = PTHREAD_MUTEX_INITIALIZER;
static struct context contexts[DEVICES_MOST];

static __thread struct {
	int n;
	struct context *context[STACK_MOST];
} stack;

struct context *
context_of(int device)
{
	return &contexts[device];
}

void
context_fail(struct context *c, CUresult error)
{
	CUresult none = CUDA_SUCCESS;
	__atomic_compare_exchange_n(&c->error, &none, error, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

bool
current_context(struct context **c)
{
	*c = stack.n ? stack.context[stack.n - 1] : NULL;
	return *c && __atomic_load_n(&(*c)->retained, __ATOMIC_ACQUIRE) > 0;
}

static struct context *
context_of_handle(CUcontext handle)
{
	for (int i = 0; i < devices(); i++)
		if ((CUcontext)&contexts[i] == handle)
			return &contexts[i];
	return NULL;
}

static bool
alive(const struct context *c)
{
	return c && __atomic_load_n(&c->retained, __ATOMIC_ACQUIRE) > 0;
}

CUresult
cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
	ENTER(cuDevicePrimaryCtxRetain);
	if (!context)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	pthread_mutex_lock(&lifecycle);
	__atomic_add_fetch(&contexts[device].retained, 1, __ATOMIC_ACQ_REL);
	pthread_mutex_unlock(&lifecycle);
	*context = (CUcontext)&contexts[device];
	return CUDA_SUCCESS;
}

/* All that a context has goes; with `lifecycle` held. */
static void
destroy(struct context *c)
{
	streams_forget(c);
	memory_forget(c);
	for (int i = 0; i < DEVICES_MOST; i++) {
		__atomic_store_n(&c->peer[i], false, __ATOMIC_RELEASE);
		__atomic_store_n(&contexts[i].peer[c->device], false, __ATOMIC_RELEASE);
	}
	__atomic_store_n(&c->error, CUDA_SUCCESS, __ATOMIC_RELEASE);
	memory_changed();
}

CUresult
cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
	CUresult result = CUDA_SUCCESS;
	ENTER(cuDevicePrimaryCtxRelease_v2);
	if (!device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	struct context *c = &contexts[device];
	pthread_mutex_lock(&lifecycle);
	if (c->retained == 0)
		result = CUDA_ERROR_INVALID_CONTEXT;
	else if (__atomic_sub_fetch(&c->retained, 1, __ATOMIC_ACQ_REL) == 0)
		destroy(c);
	pthread_mutex_unlock(&lifecycle);
	return result;
}

/* Who has retained it may go on with an empty one. */
CUresult
cuDevicePrimaryCtxReset_v2(CUdevice device)
{
	ENTER(cuDevicePrimaryCtxReset_v2);
	if (!device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	pthread_mutex_lock(&lifecycle);
	destroy(&contexts[device]);
	pthread_mutex_unlock(&lifecycle);
	return CUDA_SUCCESS;
}

CUresult
cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active)
{
	ENTER(cuDevicePrimaryCtxGetState);
	if (!flags || !active)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	*flags = 0;
	*active = alive(&contexts[device]);
	return CUDA_SUCCESS;
}

CUresult
cuCtxSetCurrent(CUcontext context)
{
	struct context *c = context_of_handle(context);
	ENTER(cuCtxSetCurrent);
	if (context && !c)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (context && !alive(c))
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	if (stack.n > 0)
		stack.n--;
	if (context)
		stack.context[stack.n++] = c;
	return CUDA_SUCCESS;
}

CUresult
cuCtxGetCurrent(CUcontext *context)
{
	ENTER(cuCtxGetCurrent);
	if (!context)
		return CUDA_ERROR_INVALID_VALUE;
	*context = stack.n ? (CUcontext)stack.context[stack.n - 1] : NULL;
	return CUDA_SUCCESS;
}

CUresult
cuCtxGetDevice(CUdevice *device)
{
	struct context *c;
	ENTER(cuCtxGetDevice);
	if (!current_context(&c))
		return c ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_ERROR_INVALID_CONTEXT;
	if (!device)
		return CUDA_ERROR_INVALID_VALUE;
	*device = c->device;
	return CUDA_SUCCESS;
}

CUresult
cuCtxPushCurrent_v2(CUcontext context)
{
	struct context *c = context_of_handle(context);
	ENTER(cuCtxPushCurrent_v2);
	if (!c)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!alive(c))
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	if (stack.n == STACK_MOST)
		return CUDA_ERROR_INVALID_VALUE;
	stack.context[stack.n++] = c;
	return CUDA_SUCCESS;
}

CUresult
cuCtxPopCurrent_v2(CUcontext *context)
{
	ENTER(cuCtxPopCurrent_v2);
	if (stack.n == 0)
		return CUDA_ERROR_INVALID_CONTEXT;
	stack.n--;
	if (context)
		*context = (CUcontext)stack.context[stack.n];
	return CUDA_SUCCESS;
}

CUresult
cuCtxSynchronize(void)
{
	ENTER_UNSAFE(cuCtxSynchronize, c);
	return streams_synchronize(c);
}

CUresult
cuCtxEnablePeerAccess(CUcontext peer, unsigned flags)
{
	struct context *other = context_of_handle(peer);
	ENTER_UNSAFE(cuCtxEnablePeerAccess, c);
	if (flags != 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (!alive(other) || other == c)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!linked(c->device, other->device))
		return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
	if (__atomic_exchange_n(&c->peer[other->device], true, __ATOMIC_ACQ_REL))
		return CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
	memory_changed();
	return CUDA_SUCCESS;
}

CUresult
cuCtxDisablePeerAccess(CUcontext peer)
{
	struct context *other = context_of_handle(peer);
	ENTER_UNSAFE(cuCtxDisablePeerAccess, c);
	if (!alive(other))
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!__atomic_exchange_n(&c->peer[other->device], false, __ATOMIC_ACQ_REL))
		return CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
	memory_changed();
	return CUDA_SUCCESS;
}
