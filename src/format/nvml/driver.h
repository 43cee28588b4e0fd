/* The GPUs of this machine as the CUDA driver tells of them, libcuda.so.1, for containers that have it and not NVML. */
#ifndef BLINK_FORMAT_NVML_DRIVER_H
#define BLINK_FORMAT_NVML_DRIVER_H

#include "format/nvml/gpus.h"

#define CUDA_SONAME "libcuda.so.1"

/* Of cuda.h, held against it by a test: name, value. */
#define CUDA_CONSTANT_LIST(X) \
	X(CUDA_SUCCESS, 0) \
	X(CUDA_ERROR_NO_DEVICE, 100) \
	X(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, 33) \
	X(CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, 34) \
	X(CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, 50) \
	X(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 75) \
	X(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 76) \
	X(CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK, 1) \
	X(CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED, 3)

enum {
#define X(name, value) BY_##name = value,
	CUDA_CONSTANT_LIST(X)
#undef X
};

/* name, arguments; a device is a number. */
#define CUDA_FUNCTION_LIST(X) \
	X(cuInit, (unsigned flags)) \
	X(cuDriverGetVersion, (int *version)) \
	X(cuDeviceGetCount, (int *count)) \
	X(cuDeviceGet, (int *device, int ordinal)) \
	X(cuDeviceGetName, (char *name, int length, int device)) \
	X(cuDeviceGetAttribute, (int *value, int attribute, int device)) \
	X(cuDeviceCanAccessPeer, (int *can, int device, int peer)) \
	X(cuDeviceGetP2PAttribute, (int *value, int attribute, int from, int to)) \
	X(cuGetErrorString, (int result, const char **text))

/* As gpus_see_nvml, of what the driver shows: CUDA_VISIBLE_DEVICES counts. It tells which pairs of GPUs are joined by
 * NVLinks, as only these have atomic operations on each other's memory, and which pairs are faster. How many links a
 * pair has is assumed, by the model: gpus->assumed. */
Status gpus_see_driver(Ctx *ctx, SeenGpus *out);

#endif
