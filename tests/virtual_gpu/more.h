/* What the virtual driver exports of contexts, memory and streams, beyond the functions that libblink uses: for
 * programs of other people. */
#ifndef VIRTUAL_GPU_MORE_H
#define VIRTUAL_GPU_MORE_H

#include "driver/driver.h"

#define CONTEXT_MORE_LIST(X)                                                   \
	X(cuDevicePrimaryCtxReset_v2, (CUdevice device))                       \
	X(cuDevicePrimaryCtxGetState, (CUdevice device, unsigned *flags, int *active))

#define MEMORY_MORE_LIST(X)                                                    \
	X(cuMemGetAllocationPropertiesFromHandle, (CUmemAllocationProp *what, CUmemGenericAllocationHandle handle))

#define STREAM_MORE_LIST(X)                                                           \
	X(cuStreamCreateWithPriority, (CUstream *stream, unsigned flags, int priority)) \
	X(cuEventElapsedTime_v2, (float *ms, CUevent from, CUevent to))        \
	X(cuGraphGetNodes, (CUgraph graph, CUgraphNode *nodes, size_t *n))     \
	X(cuMemcpyDtoDAsync_v2, (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)) \
	X(cuMemcpyPeerAsync, (CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, \
	    size_t bytes, CUstream stream))                                    \
	X(cuMemcpyHtoD_v2, (CUdeviceptr to, const void *from, size_t bytes))   \
	X(cuMemcpyDtoH_v2, (void *to, CUdeviceptr from, size_t bytes))         \
	X(cuMemcpyDtoD_v2, (CUdeviceptr to, CUdeviceptr from, size_t bytes))   \
	X(cuMemsetD8_v2, (CUdeviceptr to, unsigned char value, size_t n))      \
	X(cuMemsetD32_v2, (CUdeviceptr to, unsigned value, size_t n))

#pragma GCC visibility push(default)
#define MORE_PROTOTYPE(name, parameters) CUresult name parameters;
CONTEXT_MORE_LIST(MORE_PROTOTYPE)
MEMORY_MORE_LIST(MORE_PROTOTYPE)
STREAM_MORE_LIST(MORE_PROTOTYPE)
#undef MORE_PROTOTYPE
#pragma GCC visibility pop

#endif
