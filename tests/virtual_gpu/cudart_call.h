/* What the files of the libcudart for tests share: how a call of it becomes one of the driver. */
#ifndef VIRTUAL_GPU_CUDART_CALL_H
#define VIRTUAL_GPU_CUDART_CALL_H

#define BLINK_REAL_CUDA_H
#include "driver/driver.h"

/* All that NVIDIA's header declares is exported. */
#pragma GCC visibility push(default)
#include <cuda_runtime_api.h>
#pragma GCC visibility pop

/* The same error of the runtime; kept for cudaGetLastError, if it is one. */
cudaError_t runtime_result(CUresult r);

/* Start the driver, at the first call. */
CUresult runtime_begin(void);

/* A device's primary context; the calling thread's context, which becomes that of device 0 where it has none. */
CUresult runtime_context_of(int device, CUcontext *out);
CUresult runtime_current(CUcontext *out);

/* `call` in the current context. */
#define IN_CONTEXT(call)                                                       \
	do {                                                                   \
		CUcontext context_;                                            \
		CUresult r_ = runtime_current(&context_);                      \
		return runtime_result(r_ == CUDA_SUCCESS ? (call) : r_);       \
	} while (0)

/* `call`, which needs none. */
#define STARTED(call)                                                          \
	do {                                                                   \
		CUresult r_ = runtime_begin();                                 \
		return runtime_result(r_ == CUDA_SUCCESS ? (call) : r_);       \
	} while (0)

#endif
