/* A libcudart for tests: CUDA's runtime over the driver's interface, so that programs which nvcc compiled are executed
 * on virtual GPUs. It has what generated programs and NVIDIA's nccl-tests call, and is compiled with NVIDIA's headers.
 *
 * The driver keeps all state: which context is current, what is in use, what is refused. A device's context is its
 * primary one, retained by the first call that needs it. Errors of both interfaces have the same numbers.
 *
 * nvcc's code registers, when it is loaded, each kernel: a function of the host that stands for it, and its mangled
 * name. Of the code for GPUs that it brings nothing is read: for each kernel and device the driver is given a module
 * that has the name alone, which is what finds its twin (cudart_twins.cc). */
#include "cudart.h"
#include "cudart_call.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEVICES_MOST = 64, IMAGE_BYTES = 512 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static CUcontext primary[DEVICES_MOST];	/* NULL: not retained; under the lock */

/* ---- errors ---- */

static _Thread_local cudaError_t last;

cudaError_t
runtime_result(CUresult r)
{
	if (r != CUDA_SUCCESS && r != CUDA_ERROR_NOT_READY)
		last = (cudaError_t)r;
	return (cudaError_t)r;
}

cudaError_t
cudaGetLastError(void)
{
	cudaError_t error = last;
	last = cudaSuccess;
	return error;
}

cudaError_t
cudaPeekAtLastError(void)
{
	return last;
}

const char *
cudaGetErrorString(cudaError_t error)
{
	const char *text;
	if (error == cudaErrorInvalidDeviceFunction)	/* of the runtime alone */
		return "invalid device function";
	return cuGetErrorString((CUresult)error, &text) == CUDA_SUCCESS ? text : "unrecognized error code";
}

/* ---- devices ---- */

static CUresult started;

static void
start(void)
{
	started = cuInit(0);
}

CUresult
runtime_begin(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, start);
	return started;
}

CUresult
runtime_context_of(int device, CUcontext *out)
{
	int n;
	CUresult r = runtime_begin();
	if (r == CUDA_SUCCESS)
		r = cuDeviceGetCount(&n);
	if (r != CUDA_SUCCESS)
		return r;
	if (device < 0 || device >= n || device >= DEVICES_MOST)
		return CUDA_ERROR_INVALID_DEVICE;
	pthread_mutex_lock(&lock);
	if (!primary[device])
		r = cuDevicePrimaryCtxRetain(&primary[device], device);
	*out = primary[device];
	pthread_mutex_unlock(&lock);
	return r;
}

/* The calling thread's context; that of device 0, where it has none. */
CUresult
runtime_current(CUcontext *out)
{
	CUresult r = runtime_begin();
	if (r == CUDA_SUCCESS)
		r = cuCtxGetCurrent(out);
	if (r != CUDA_SUCCESS || *out)
		return r;
	r = runtime_context_of(0, out);
	return r == CUDA_SUCCESS ? cuCtxSetCurrent(*out) : r;
}

cudaError_t
cudaGetDeviceCount(int *n)
{
	*n = 0;
	STARTED(cuDeviceGetCount(n));
}

cudaError_t
cudaSetDevice(int device)
{
	CUcontext c;
	CUresult r = runtime_context_of(device, &c);
	return runtime_result(r == CUDA_SUCCESS ? cuCtxSetCurrent(c) : r);
}

cudaError_t
cudaGetDevice(int *device)
{
	CUcontext c;
	CUresult r = runtime_begin();
	*device = 0;
	if (r == CUDA_SUCCESS)
		r = cuCtxGetCurrent(&c);
	return runtime_result(r == CUDA_SUCCESS && c ? cuCtxGetDevice(device) : r);
}

cudaError_t
cudaDeviceSynchronize(void)
{
	IN_CONTEXT(cuCtxSynchronize());
}

cudaError_t
cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr what, int device)
{
	STARTED(cuDeviceGetAttribute(value, (CUdevice_attribute)what, device));
}

/* What identifies a device, and says how large it is; the rest is 0. */
static CUresult
properties(struct cudaDeviceProp *p, int device)
{
	const struct {
		CUdevice_attribute what;
		int *value;
	} numbers[] = {
		{ CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, &p->pciDomainID },
		{ CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, &p->pciBusID },
		{ CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, &p->pciDeviceID },
		{ CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &p->major },
		{ CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &p->minor },
		{ CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &p->multiProcessorCount },
		{ CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &p->maxThreadsPerBlock },
		{ CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &p->maxThreadsPerMultiProcessor },
	};
	p->warpSize = 32;
	CUresult r = cuDeviceGetName(p->name, sizeof p->name, device);
	if (r == CUDA_SUCCESS)
		r = cuDeviceTotalMem(&p->totalGlobalMem, device);
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers && r == CUDA_SUCCESS; i++)
		r = cuDeviceGetAttribute(numbers[i].value, numbers[i].what, device);
	return r;
}

cudaError_t
cudaGetDeviceProperties(struct cudaDeviceProp *p, int device)
{
	memset(p, 0, sizeof *p);
	STARTED(properties(p, device));
}

cudaError_t
cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
	STARTED(cuDeviceCanAccessPeer(can, device, peer));
}

cudaError_t
cudaDeviceEnablePeerAccess(int peer, unsigned flags)
{
	CUcontext c;
	CUresult r = runtime_context_of(peer, &c);
	if (r != CUDA_SUCCESS)
		return runtime_result(r);
	IN_CONTEXT(cuCtxEnablePeerAccess(c, flags));
}

/* ---- memory ---- */

cudaError_t
cudaMalloc(void **memory, size_t bytes)
{
	CUdeviceptr at = 0;
	CUcontext c;
	CUresult r = runtime_current(&c);
	if (r == CUDA_SUCCESS && bytes)
		r = cuMemAlloc(&at, bytes);
	*memory = (void *)(uintptr_t)at;
	return runtime_result(r);
}

cudaError_t
cudaFree(void *memory)
{
	IN_CONTEXT(memory ? cuMemFree((CUdeviceptr)(uintptr_t)memory) : CUDA_SUCCESS);
}

cudaError_t
cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
	CUdeviceptr t = (CUdeviceptr)(uintptr_t)to, f = (CUdeviceptr)(uintptr_t)from;
	switch (kind) {
	case cudaMemcpyHostToDevice:
		IN_CONTEXT(cuMemcpyHtoD(t, from, bytes));
	case cudaMemcpyDeviceToHost:
		IN_CONTEXT(cuMemcpyDtoH(to, f, bytes));
	case cudaMemcpyDeviceToDevice:
		IN_CONTEXT(cuMemcpyDtoD(t, f, bytes));
	default:
		IN_CONTEXT(cuMemcpy(t, f, bytes));
	}
}

cudaError_t
cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream)
{
	CUdeviceptr t = (CUdeviceptr)(uintptr_t)to, f = (CUdeviceptr)(uintptr_t)from;
	switch (kind) {
	case cudaMemcpyHostToDevice:
		IN_CONTEXT(cuMemcpyHtoDAsync(t, from, bytes, stream));
	case cudaMemcpyDeviceToHost:
		IN_CONTEXT(cuMemcpyDtoHAsync(to, f, bytes, stream));
	case cudaMemcpyDeviceToDevice:
		IN_CONTEXT(cuMemcpyDtoDAsync(t, f, bytes, stream));
	default:
		IN_CONTEXT(cuMemcpyAsync(t, f, bytes, stream));
	}
}

cudaError_t
cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t bytes, cudaStream_t stream)
{
	CUcontext to_context, from_context;
	CUresult r = runtime_context_of(to_device, &to_context);
	if (r == CUDA_SUCCESS)
		r = runtime_context_of(from_device, &from_context);
	if (r != CUDA_SUCCESS)
		return runtime_result(r);
	IN_CONTEXT(cuMemcpyPeerAsync((CUdeviceptr)(uintptr_t)to, to_context, (CUdeviceptr)(uintptr_t)from, from_context,
	    bytes, stream));
}

cudaError_t
cudaMemset(void *memory, int value, size_t bytes)
{
	IN_CONTEXT(cuMemsetD8((CUdeviceptr)(uintptr_t)memory, (unsigned char)value, bytes));
}

cudaError_t
cudaHostAlloc(void **memory, size_t bytes, unsigned flags)
{
	IN_CONTEXT(cuMemHostAlloc(memory, bytes, flags));
}

cudaError_t
cudaFreeHost(void *memory)
{
	IN_CONTEXT(memory ? cuMemFreeHost(memory) : CUDA_SUCCESS);
}

cudaError_t
cudaMemGetInfo(size_t *left, size_t *total)
{
	IN_CONTEXT(cuMemGetInfo(left, total));
}

/* ---- streams, events, graphs ---- */

cudaError_t
cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
	IN_CONTEXT(cuStreamCreate(stream, flags));
}

cudaError_t
cudaStreamDestroy(cudaStream_t stream)
{
	IN_CONTEXT(cuStreamDestroy(stream));
}

cudaError_t
cudaStreamSynchronize(cudaStream_t stream)
{
	IN_CONTEXT(cuStreamSynchronize(stream));
}

cudaError_t
cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
	IN_CONTEXT(cuStreamWaitEvent(stream, event, flags));
}

cudaError_t
cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
	IN_CONTEXT(cuEventCreate(event, flags));
}

cudaError_t
cudaEventDestroy(cudaEvent_t event)
{
	IN_CONTEXT(cuEventDestroy(event));
}

cudaError_t
cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
	IN_CONTEXT(cuEventRecord(event, stream));
}

cudaError_t
cudaStreamQuery(cudaStream_t stream)
{
	IN_CONTEXT(cuStreamQuery(stream));
}

cudaError_t
cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
	IN_CONTEXT(cuStreamBeginCapture(stream, (CUstreamCaptureMode)mode));
}

cudaError_t
cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
	IN_CONTEXT(cuStreamEndCapture(stream, graph));
}

cudaError_t
cudaEventCreate(cudaEvent_t *event)
{
	IN_CONTEXT(cuEventCreate(event, CU_EVENT_DEFAULT));
}

cudaError_t
cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to)
{
	IN_CONTEXT(cuEventElapsedTime(ms, from, to));
}

#if CUDART_VERSION >= 12000	/* other parameters before */
cudaError_t
cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags)
{
	IN_CONTEXT(cuGraphInstantiateWithFlags(exec, graph, flags));
}
#endif

cudaError_t
cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
	IN_CONTEXT(cuGraphLaunch(exec, stream));
}

cudaError_t
cudaGraphExecDestroy(cudaGraphExec_t exec)
{
	IN_CONTEXT(cuGraphExecDestroy(exec));
}

cudaError_t
cudaGraphDestroy(cudaGraph_t graph)
{
	IN_CONTEXT(cuGraphDestroy(graph));
}

/* ---- kernels: called by what nvcc puts into programs, which declares these itself ---- */

struct kernel {
	struct kernel *next;
	void **binary;			/* of which registration */
	const void *stub;
	const char *name;
	CUfunction function[DEVICES_MOST];	/* NULL: not loaded; under the lock */
};

static struct kernel *kernels;		/* under the lock */

#pragma GCC visibility push(default)
void **__cudaRegisterFatBinary(void *code);
void __cudaRegisterFatBinaryEnd(void **binary);
void __cudaUnregisterFatBinary(void **binary);
char __cudaInitModule(void **binary);
void __cudaRegisterFunction(void **binary, const char *stub, char *function, const char *name, int threads_most,
    void *thread, void *block, void *block_size, void *grid_size, int *warp);
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, struct CUstream_st *stream);
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream);
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *stub);
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments, size_t shared,
    cudaStream_t stream);
#pragma GCC visibility pop

void **
__cudaRegisterFatBinary(void *code)
{
	void **binary = calloc(1, sizeof *binary);
	if (!binary)
		abort();
	*binary = code;
	return binary;
}

void
__cudaRegisterFatBinaryEnd(void **binary)
{
	(void)binary;
}

void
__cudaUnregisterFatBinary(void **binary)
{
	pthread_mutex_lock(&lock);
	for (struct kernel **at = &kernels, *k; (k = *at);) {
		if (k->binary == binary) {
			*at = k->next;
			free(k);
		} else {
			at = &k->next;
		}
	}
	pthread_mutex_unlock(&lock);
	free(binary);
}

void
__cudaRegisterFunction(void **binary, const char *stub, char *function, const char *name, int threads_most,
    void *thread, void *block, void *block_size, void *grid_size, int *warp)
{
	struct kernel *k = calloc(1, sizeof *k);
	(void)function, (void)threads_most, (void)thread, (void)block, (void)block_size, (void)grid_size, (void)warp;
	if (!k)
		abort();
	pthread_mutex_lock(&lock);
	k->binary = binary;
	k->stub = stub;
	k->name = name;
	k->next = kernels;
	kernels = k;
	pthread_mutex_unlock(&lock);
}

/* Of a program with PTX alone, before its first launch. */
char
__cudaInitModule(void **binary)
{
	return binary != NULL;
}

/* What <<< >>> has, until the function of the host takes it. */
static _Thread_local struct {
	bool there;
	dim3 grid, block;
	size_t shared;
	cudaStream_t stream;
} configured;

unsigned
__cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, struct CUstream_st *stream)
{
	if (configured.there)
		abort();		/* a launch among the arguments of another */
	configured.there = true;
	configured.grid = grid;
	configured.block = block;
	configured.shared = shared;
	configured.stream = stream;
	return 0;
}

cudaError_t
__cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream)
{
	if (!configured.there)
		return last = cudaErrorMissingConfiguration;
	configured.there = false;
	*grid = configured.grid;
	*block = configured.block;
	*shared = configured.shared;
	*(cudaStream_t *)stream = configured.stream;
	return cudaSuccess;
}

cudaError_t
__cudaGetKernel(cudaKernel_t *kernel, const void *stub)
{
	pthread_mutex_lock(&lock);
	struct kernel *k = kernels;
	while (k && k->stub != stub)
		k = k->next;
	pthread_mutex_unlock(&lock);
	*kernel = (cudaKernel_t)k;
	return k ? cudaSuccess : (last = cudaErrorInvalidDeviceFunction);
}

/* In the current context, under the lock. */
static CUresult
load_kernel(const struct kernel *k, CUfunction *out)
{
	char image[IMAGE_BYTES];
	CUmodule module;
	int length = snprintf(image, sizeof image, ".version 6.0\n.target sm_60\n.visible .entry %s()\n", k->name);
	if (length < 0 || length >= (int)sizeof image)
		return CUDA_ERROR_INVALID_IMAGE;
	CUresult r = cuModuleLoadData(&module, image);
	if (r == CUDA_SUCCESS)
		r = cuModuleGetFunction(out, module, k->name);
	return r == CUDA_ERROR_NOT_FOUND ? (CUresult)cudaErrorInvalidDeviceFunction : r;
}

static CUresult
function_of(struct kernel *k, CUfunction *out)
{
	CUcontext c;
	CUdevice device;
	CUresult r = runtime_current(&c);
	if (r == CUDA_SUCCESS)
		r = cuCtxGetDevice(&device);
	if (r != CUDA_SUCCESS)
		return r;
	pthread_mutex_lock(&lock);
	if (!k->function[device])
		r = load_kernel(k, &k->function[device]);
	*out = k->function[device];
	pthread_mutex_unlock(&lock);
	return r;
}

cudaError_t
__cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments, size_t shared, cudaStream_t stream)
{
	CUfunction function;
	CUresult r = kernel ? function_of((struct kernel *)kernel, &function)
	    : (CUresult)cudaErrorInvalidDeviceFunction;
	if (r != CUDA_SUCCESS)
		return runtime_result(r);
	struct cudart_parameters p = { *(void **)arguments[0], *(const void **)arguments[1],
			*(const void **)arguments[2],
		*(int *)arguments[3], *(size_t *)arguments[4] };
	void *parameters[] = { &p };
	return runtime_result(cuLaunchKernel(function, grid.x, grid.y, grid.z, block.x, block.y, block.z,
	    (unsigned)shared, stream, parameters, NULL));
}

cudaError_t
cudaLaunchKernel(const void *stub, dim3 grid, dim3 block, void **arguments, size_t shared, cudaStream_t stream)
{
	cudaKernel_t kernel;
	cudaError_t error = __cudaGetKernel(&kernel, stub);
	return error == cudaSuccess ? __cudaLaunchKernel(kernel, grid, block, arguments, shared, stream) : error;
}

/* The current device as it was at first: handles and memory are gone. */
cudaError_t
cudaDeviceReset(void)
{
	CUcontext c;
	CUdevice device;
	CUresult r = runtime_current(&c);
	if (r == CUDA_SUCCESS)
		r = cuCtxGetDevice(&device);
	if (r != CUDA_SUCCESS)
		return runtime_result(r);
	pthread_mutex_lock(&lock);
	for (struct kernel *k = kernels; k; k = k->next)
		k->function[device] = NULL;
	pthread_mutex_unlock(&lock);
	return runtime_result(cuDevicePrimaryCtxReset(device));
}
