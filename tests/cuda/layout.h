/* Sizes and places in the driver's structures, on machines of 64 bits: of those that runtime/driver/driver.h declares,
 * and of NVIDIA's. */
#include <stddef.h>

#define SIZE_LIST(X)                                                           \
	X(CUresult, 4)                                                         \
	X(CUdevice, 4)                                                         \
	X(CUdevice_attribute, 4)                                               \
	X(CUdevice_P2PAttribute, 4)                                            \
	X(CUpointer_attribute, 4)                                              \
	X(CUfunction_attribute, 4)                                             \
	X(CUmemAllocationHandleType, 4)                                        \
	X(CUmemAllocationGranularity_flags, 4)                                 \
	X(CUmulticastGranularity_flags, 4)                                     \
	X(CUstreamCaptureMode, 4)                                              \
	X(CUstreamCaptureStatus, 4)                                            \
	X(CUdeviceptr, 8)                                                      \
	X(CUmemGenericAllocationHandle, 8)                                     \
	X(cuuint32_t, 4)                                                       \
	X(cuuint64_t, 8)                                                       \
	X(CUcontext, 8)                                                        \
	X(CUuuid, 16)                                                          \
	X(CUipcMemHandle, 64)                                                  \
	X(CUmemLocation, 8)                                                    \
	X(CUmemAllocationProp, 32)                                             \
	X(CUmemAccessDesc, 12)                                                 \
	X(CUmemPoolProps, 88)                                                  \
	X(CUmulticastObjectProp, 32)                                           \
	X(CUmemcpyAttributes, 24)                                              \
	X(CUstreamBatchMemOpParams, 48)

#define PLACE_LIST(X)                                                          \
	X(CUmemLocation, type, 0)                                              \
	X(CUmemLocation, id, 4)                                                \
	X(CUmemAllocationProp, type, 0)                                        \
	X(CUmemAllocationProp, requestedHandleTypes, 4)                        \
	X(CUmemAllocationProp, location, 8)                                    \
	X(CUmemAllocationProp, win32HandleMetaData, 16)                        \
	X(CUmemAllocationProp, allocFlags.compressionType, 24)                 \
	X(CUmemAllocationProp, allocFlags.gpuDirectRDMACapable, 25)            \
	X(CUmemAllocationProp, allocFlags.usage, 26)                           \
	X(CUmemPoolProps, allocType, 0)                                        \
	X(CUmemPoolProps, handleTypes, 4)                                      \
	X(CUmemPoolProps, location, 8)                                         \
	X(CUmemPoolProps, win32SecurityAttributes, 16)                         \
	X(CUmemPoolProps, maxSize, 24)                                         \
	X(CUmemPoolProps, usage, 32)                                           \
	X(CUmulticastObjectProp, numDevices, 0)                                \
	X(CUmulticastObjectProp, size, 8)                                      \
	X(CUmulticastObjectProp, handleTypes, 16)                              \
	X(CUmulticastObjectProp, flags, 24)                                    \
	X(CUmemAccessDesc, location, 0)                                        \
	X(CUmemAccessDesc, flags, 8)                                           \
	X(CUmemcpyAttributes, srcLocHint, 4)                                   \
	X(CUmemcpyAttributes, dstLocHint, 12)                                  \
	X(CUmemcpyAttributes, flags, 20)                                       \
	X(CUstreamBatchMemOpParams, waitValue.address, 8)                      \
	X(CUstreamBatchMemOpParams, waitValue.value, 16)                       \
	X(CUstreamBatchMemOpParams, waitValue.value64, 16)                     \
	X(CUstreamBatchMemOpParams, waitValue.flags, 24)                       \
	X(CUstreamBatchMemOpParams, waitValue.alias, 32)                       \
	X(CUstreamBatchMemOpParams, writeValue.address, 8)                     \
	X(CUstreamBatchMemOpParams, writeValue.value64, 16)                    \
	X(CUstreamBatchMemOpParams, writeValue.flags, 24)                      \
	X(CUstreamBatchMemOpParams, writeValue.alias, 32)

#define SAME_SIZE(type, size) _Static_assert(sizeof(type) == (size), #type);
#define SAME_PLACE(type, member, place) _Static_assert(offsetof(type, member) == (place), #type "." #member);
SIZE_LIST(SAME_SIZE)
PLACE_LIST(SAME_PLACE)
