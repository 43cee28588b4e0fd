/* What this program uses of NVML, the management library of NVIDIA's driver. It is declared here and opened when it is
 * needed, so that neither CUDA nor a driver is there at build time; a test holds it against nvml.h where there is one.
 * Names are those of nvml.h without their prefix. */
#ifndef BLINK_FORMAT_NVML_NVML_H
#define BLINK_FORMAT_NVML_NVML_H

#include "base/status.h"

#define NVML_SONAME "libnvidia-ml.so.1"

/* Fails with NV_ERROR_... */
#define NVML_RESULT_LIST(X) \
	X(SUCCESS, 0) \
	X(ERROR_UNINITIALIZED, 1) \
	X(ERROR_INVALID_ARGUMENT, 2) \
	X(ERROR_NOT_SUPPORTED, 3) \
	X(ERROR_NO_PERMISSION, 4) \
	X(ERROR_NOT_FOUND, 6) \
	X(ERROR_INSUFFICIENT_SIZE, 7) \
	X(ERROR_DRIVER_NOT_LOADED, 9) \
	X(ERROR_FUNCTION_NOT_FOUND, 13) \
	X(ERROR_GPU_IS_LOST, 15) \
	X(ERROR_LIB_RM_VERSION_MISMATCH, 18) \
	X(ERROR_UNKNOWN, 999)

typedef enum {
#define X(name, value) NV_##name = value,
	NVML_RESULT_LIST(X)
#undef X
} NvmlResult;

/* Constants of other enumerations and macros. */
#define NVML_CONSTANT_LIST(X) \
	X(FEATURE_DISABLED, 0) \
	X(FEATURE_ENABLED, 1) \
	X(NVLINK_CAP_P2P_SUPPORTED, 0) \
	X(NVLINK_DEVICE_TYPE_GPU, 0) \
	X(NVLINK_DEVICE_TYPE_IBMNPU, 1) \
	X(NVLINK_DEVICE_TYPE_SWITCH, 2) \
	X(NVLINK_DEVICE_TYPE_UNKNOWN, 255) \
	X(P2P_CAPS_INDEX_NVLINK, 2) \
	X(P2P_STATUS_OK, 0) \
	X(P2P_STATUS_NOT_SUPPORTED, 5) \
	X(VALUE_TYPE_UNSIGNED_INT, 1) \
	X(VALUE_TYPE_UNSIGNED_LONG, 2) \
	X(VALUE_TYPE_UNSIGNED_LONG_LONG, 3) \
	X(FI_DEV_NVLINK_SPEED_MBPS_COMMON, 90) \
	X(AFFINITY_SCOPE_NODE, 0) \
	X(DEVICE_MIG_ENABLE, 1) \
	X(DEVICE_NAME_V2_BUFFER_SIZE, 96) \
	X(DEVICE_UUID_V2_BUFFER_SIZE, 96) \
	X(SYSTEM_DRIVER_VERSION_BUFFER_SIZE, 80)

enum {
#define X(name, value) NV_##name = value,
	NVML_CONSTANT_LIST(X)
#undef X
	NV_NVLINK_MAX_LINKS = 36	/* of the newest; 6, 12 and 18 of earlier ones */
};

typedef struct NvmlDevice *NvmlGpu;

/* nvmlPciInfo_t */
typedef struct {
	char busIdLegacy[16];
	unsigned domain, bus, device, pciDeviceId, pciSubSystemId;
	char busId[32];
} NvmlPci;

/* nvmlFieldValue_t */
typedef struct {
	unsigned fieldId, scopeId;
	long long timestamp, latencyUsec;
	unsigned valueType, nvmlReturn;
	union {
		double dVal;
		unsigned uiVal;
		unsigned long ulVal;
		unsigned long long ullVal;
	} value;
} NvmlField;

/* Is it in every driver that is asked? name, arguments. Sets a function to NULL that an old driver has not. */
#define NVML_FUNCTION_LIST(X) \
	X(true, nvmlInit_v2, (void)) \
	X(true, nvmlShutdown, (void)) \
	X(false, nvmlSystemGetDriverVersion, (char *version, unsigned length)) \
	X(true, nvmlDeviceGetCount_v2, (unsigned *count)) \
	X(true, nvmlDeviceGetHandleByIndex_v2, (unsigned index, NvmlGpu *gpu)) \
	X(false, nvmlDeviceGetHandleByPciBusId_v2, (const char *address, NvmlGpu *gpu)) \
	X(true, nvmlDeviceGetPciInfo_v3, (NvmlGpu gpu, NvmlPci *pci)) \
	X(true, nvmlDeviceGetName, (NvmlGpu gpu, char *name, unsigned length)) \
	X(false, nvmlDeviceGetUUID, (NvmlGpu gpu, char *uuid, unsigned length)) \
	X(false, nvmlDeviceGetCudaComputeCapability, (NvmlGpu gpu, int *major, int *minor)) \
	X(false, nvmlDeviceGetMaxPcieLinkGeneration, (NvmlGpu gpu, unsigned *generation)) \
	X(false, nvmlDeviceGetMaxPcieLinkWidth, (NvmlGpu gpu, unsigned *width)) \
	X(false, nvmlDeviceGetMigMode, (NvmlGpu gpu, unsigned *current, unsigned *pending)) \
	X(false, nvmlDeviceGetMemoryAffinity, (NvmlGpu gpu, unsigned longs, unsigned long *nodes, unsigned scope)) \
	X(false, nvmlDeviceGetP2PStatus, (NvmlGpu gpu, NvmlGpu peer, unsigned what, unsigned *status)) \
	X(false, nvmlDeviceGetFieldValues, (NvmlGpu gpu, int n, NvmlField *value)) \
	X(true, nvmlDeviceGetNvLinkState, (NvmlGpu gpu, unsigned link, unsigned *active)) \
	X(true, nvmlDeviceGetNvLinkCapability, (NvmlGpu gpu, unsigned link, unsigned capability, unsigned *has)) \
	X(false, nvmlDeviceGetNvLinkVersion, (NvmlGpu gpu, unsigned link, unsigned *version)) \
	X(true, nvmlDeviceGetNvLinkRemotePciInfo_v2, (NvmlGpu gpu, unsigned link, NvmlPci *pci)) \
	X(false, nvmlDeviceGetNvLinkRemoteDeviceType, (NvmlGpu gpu, unsigned link, unsigned *type))

typedef struct {
	void *handle;
	const char *(*nvmlErrorString)(NvmlResult result);	/* or NULL */
#define X(needed, name, arguments) NvmlResult (*name) arguments;
	NVML_FUNCTION_LIST(X)
#undef X
} Nvml;

/* Open the library by its soname, and initialise it. Fails: IO, saying what to do: no driver, one that is not loaded,
 * library and kernel module of two versions. nvml_close follows only what succeeded. */
Status nvml_open(Ctx *ctx, Nvml *out);
void nvml_close(Nvml *nvml);

/* Fail with what a function returned. where: "GPU 3", or "" of no GPU. */
Status nvml_fail(Ctx *ctx, const Nvml *nvml, const char *where, const char *function, NvmlResult result);

#endif
