/* Of the libcudart for tests, what PyTorch calls beyond cudart.c. PyTorch itself is a binary for CUDA 13: with another
 * version this file has nothing. */
#include "cudart_call.h"

#include <string.h>

#if CUDART_VERSION >= 13000

/* ---- versions, errors ---- */

cudaError_t
cudaDriverGetVersion(int *version)
{
	return runtime_result(cuDriverGetVersion(version));
}

cudaError_t
cudaRuntimeGetVersion(int *version)
{
	*version = CUDART_VERSION;
	return cudaSuccess;
}

const char *
cudaGetErrorName(cudaError_t error)
{
	const char *name;
	return cuGetErrorName((CUresult)error, &name) == CUDA_SUCCESS ? name : "cudaErrorUnknown";
}

/* Of the driver, by name. That it has none is no error, but said in *found. */
cudaError_t
cudaGetDriverEntryPointByVersion(const char *name, void **function, unsigned version, unsigned long long flags,
    enum cudaDriverEntryPointQueryResult *found)
{
	CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
	CUresult r = runtime_begin();
	if (r == CUDA_SUCCESS)
		r = cuGetProcAddress(name, function, (int)version, flags, &status);
	if (found)
		*found = (enum cudaDriverEntryPointQueryResult)status;
	return runtime_result(r == CUDA_ERROR_NOT_FOUND ? CUDA_SUCCESS : r);
}

/* ---- devices ---- */

cudaError_t
cudaDeviceGetPCIBusId(char *id, int size, int device)
{
	STARTED(cuDeviceGetPCIBusId(id, size, device));
}

/* That of NVIDIA's GPUs. The virtual ones have no use for it. */
cudaError_t
cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
	*least = 0;
	*greatest = -5;
	return cudaSuccess;
}

cudaError_t
cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode)
{
	STARTED(cuThreadExchangeStreamCaptureMode((CUstreamCaptureMode *)mode));
}

/* ---- memory ---- */

cudaError_t
cudaMallocHost(void **memory, size_t bytes)
{
	return cudaHostAlloc(memory, bytes, cudaHostAllocPortable);
}

cudaError_t
cudaHostRegister(void *memory, size_t bytes, unsigned flags)
{
	IN_CONTEXT(cuMemHostRegister(memory, bytes, flags));
}

cudaError_t
cudaHostUnregister(void *memory)
{
	IN_CONTEXT(cuMemHostUnregister(memory));
}

cudaError_t
cudaMemsetAsync(void *memory, int value, size_t bytes, cudaStream_t stream)
{
	IN_CONTEXT(cuMemsetD8Async((CUdeviceptr)(uintptr_t)memory, (unsigned char)value, bytes, stream));
}

/* Memory that CUDA does not know is no error. */
cudaError_t
cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *memory)
{
	unsigned type = 0;
	int device = -2;
	CUpointer_attribute what[] = { CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL };
	void *values[] = { &type, &device };
	CUresult r = runtime_begin();
	if (r == CUDA_SUCCESS)
		r = cuPointerGetAttributes(2, what, values, (CUdeviceptr)(uintptr_t)memory);
	memset(attributes, 0, sizeof *attributes);
	attributes->type = (enum cudaMemoryType)type;
	attributes->device = device;
	attributes->devicePointer = type == CU_MEMORYTYPE_DEVICE ? (void *)(uintptr_t)memory : NULL;
	attributes->hostPointer = type == CU_MEMORYTYPE_HOST ? (void *)(uintptr_t)memory : NULL;
	return runtime_result(r);
}

/* ---- streams, events, graphs ---- */

cudaError_t
cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority)
{
	IN_CONTEXT(cuStreamCreateWithPriority(stream, flags, priority));
}

cudaError_t
cudaStreamGetPriority(cudaStream_t stream, int *priority)
{
	(void)stream;
	*priority = 0;
	return cudaSuccess;
}

cudaError_t
cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status)
{
	IN_CONTEXT(cuStreamIsCapturing(stream, (CUstreamCaptureStatus *)status));
}

/* Nothing is said of edges. */
cudaError_t
cudaStreamGetCaptureInfo(cudaStream_t stream, enum cudaStreamCaptureStatus *status, unsigned long long *id,
    cudaGraph_t *graph, const cudaGraphNode_t **nodes, const cudaGraphEdgeData **edges, size_t *n_nodes)
{
	cuuint64_t number = 0;
	CUcontext c;
	CUresult r = runtime_current(&c);
	if (r == CUDA_SUCCESS)
		r = cuStreamGetCaptureInfo_v2(stream, (CUstreamCaptureStatus *)status, &number, graph, nodes, n_nodes);
	if (id)
		*id = number;
	if (edges)
		*edges = NULL;
	return runtime_result(r);
}

cudaError_t
cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *n)
{
	IN_CONTEXT(cuGraphGetNodes(graph, nodes, n));
}

/* Two flags have no effect: graphs allocate no memory here, and priorities are nothing to virtual GPUs. */
cudaError_t
cudaGraphInstantiateWithFlags(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags)
{
	const unsigned long long known = cudaGraphInstantiateFlagAutoFreeOnLaunch
	    | cudaGraphInstantiateFlagUseNodePriority;
	IN_CONTEXT(cuGraphInstantiateWithFlags(exec, graph, flags & ~known));
}

cudaError_t
cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags)
{
	return flags == cudaEventRecordDefault ? cudaEventRecord(event, stream)
	    : runtime_result(CUDA_ERROR_NOT_SUPPORTED);
}

cudaError_t
cudaEventQuery(cudaEvent_t event)
{
	IN_CONTEXT(cuEventQuery(event));
}

cudaError_t
cudaEventSynchronize(cudaEvent_t event)
{
	IN_CONTEXT(cuEventSynchronize(event));
}

#endif
