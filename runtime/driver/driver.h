/* Driver: what libblink uses of the CUDA driver's interface, opened at run time. Nothing of CUDA is needed to build. */
#ifndef BLINK_DRIVER_H
#define BLINK_DRIVER_H

#include <stddef.h>
#include <stdint.h>

/* The interface does not change between versions of CUDA: a function that changed has another name (_v2). What follows
 * was declared from its documentation; tests/unit/test_driver.c holds every constant, size and signature against
 * NVIDIA's cuda.h where that is installed, and then includes it instead (BLINK_REAL_CUDA_H). */
#ifdef BLINK_REAL_CUDA_H
#include <cuda.h>
#if CUDA_VERSION >= 13000	/* drivers have them, headers not any more */
CUresult cuStreamGetCaptureInfo_v2(CUstream, CUstreamCaptureStatus *, cuuint64_t *, CUgraph *, const CUgraphNode **,
    size_t *);
#undef cuMemcpyBatchAsync
CUresult cuMemcpyBatchAsync(CUdeviceptr *, CUdeviceptr *, size_t *, size_t, CUmemcpyAttributes *, size_t *, size_t,
    size_t *, CUstream);
#endif
#else
typedef int CUresult, CUdevice, CUdevice_attribute, CUdevice_P2PAttribute, CUpointer_attribute, CUfunction_attribute,
    CUmemAllocationHandleType, CUmemAllocationGranularity_flags, CUmulticastGranularity_flags, CUstreamCaptureMode,
    CUstreamCaptureStatus, CUmemcpySrcAccessOrder, CUmemPool_attribute;
typedef unsigned long long CUdeviceptr, CUmemGenericAllocationHandle, cuuint64_t;
typedef unsigned int cuuint32_t;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUmemPoolHandle_st *CUmemoryPool;
typedef void (*CUhostFn)(void *data);

typedef struct {
	char bytes[16];
} CUuuid;

typedef struct {
	char reserved[64];
} CUipcMemHandle;

typedef struct {
	int type, id;			/* CU_MEM_LOCATION_TYPE_DEVICE: number of the device */
} CUmemLocation;

typedef struct {
	int type;			/* CU_MEM_ALLOCATION_TYPE_PINNED */
	CUmemAllocationHandleType requestedHandleTypes;
	CUmemLocation location;
	void *win32HandleMetaData;
	struct {
		unsigned char compressionType, gpuDirectRDMACapable;
		unsigned short usage;
		unsigned char reserved[4];
	} allocFlags;
} CUmemAllocationProp;

typedef struct {
	CUmemLocation location;
	int flags;			/* CU_MEM_ACCESS_FLAGS_PROT_READWRITE */
} CUmemAccessDesc;

/* Of a pool; maxSize: 0: of any size. */
typedef struct {
	int allocType;			/* CU_MEM_ALLOCATION_TYPE_PINNED */
	CUmemAllocationHandleType handleTypes;
	CUmemLocation location;
	void *win32SecurityAttributes;
	size_t maxSize;
	unsigned short usage;
	unsigned char reserved[54];
} CUmemPoolProps;

/* Of a multicast object. */
typedef struct {
	unsigned int numDevices;
	size_t size;
	unsigned long long handleTypes, flags;
} CUmulticastObjectProp;

/* Of copies in a batch. */
typedef struct {
	CUmemcpySrcAccessOrder srcAccessOrder;
	CUmemLocation srcLocHint, dstLocHint;	/* of managed memory alone */
	unsigned int flags;
} CUmemcpyAttributes;

/* An operation of a stream on memory: wait until *address >= value, or write it. */
typedef union {
	int operation;
	struct {
		int operation;
		CUdeviceptr address;
		union {
			cuuint32_t value;
			cuuint64_t value64;
		};
		unsigned int flags;
		CUdeviceptr alias;
	} waitValue, writeValue;
	cuuint64_t pad[6];
} CUstreamBatchMemOpParams;
#endif

/* Names and values. */
#define DRIVER_CONSTANT_LIST(X)                                                \
	X(CUDA_SUCCESS, 0)                                                     \
	X(CUDA_ERROR_INVALID_VALUE, 1)                                         \
	X(CUDA_ERROR_OUT_OF_MEMORY, 2)                                         \
	X(CUDA_ERROR_NOT_INITIALIZED, 3)                                       \
	X(CUDA_ERROR_DEINITIALIZED, 4)                                         \
	X(CUDA_ERROR_NO_DEVICE, 100)                                           \
	X(CUDA_ERROR_INVALID_DEVICE, 101)                                      \
	X(CUDA_ERROR_INVALID_IMAGE, 200)                                       \
	X(CUDA_ERROR_INVALID_CONTEXT, 201)                                     \
	X(CUDA_ERROR_MAP_FAILED, 205)                                          \
	X(CUDA_ERROR_ALREADY_MAPPED, 208)                                      \
	X(CUDA_ERROR_NO_BINARY_FOR_GPU, 209)                                   \
	X(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, 217)                             \
	X(CUDA_ERROR_INVALID_PTX, 218)                                         \
	X(CUDA_ERROR_UNSUPPORTED_PTX_VERSION, 222)                             \
	X(CUDA_ERROR_INVALID_HANDLE, 400)                                      \
	X(CUDA_ERROR_NOT_FOUND, 500)                                           \
	X(CUDA_ERROR_NOT_READY, 600)                                           \
	X(CUDA_ERROR_ILLEGAL_ADDRESS, 700)                                     \
	X(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, 701)                             \
	X(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, 704)                         \
	X(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, 705)                             \
	X(CUDA_ERROR_CONTEXT_IS_DESTROYED, 709)                                \
	X(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, 712)                      \
	X(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, 713)                          \
	X(CUDA_ERROR_LAUNCH_FAILED, 719)                                       \
	X(CUDA_ERROR_NOT_PERMITTED, 800)                                       \
	X(CUDA_ERROR_NOT_SUPPORTED, 801)                                       \
	X(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, 900)                          \
	X(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, 901)                          \
	X(CUDA_ERROR_STREAM_CAPTURE_MERGE, 902)                                \
	X(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, 903)                            \
	X(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, 904)                             \
	X(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, 905)                            \
	X(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, 906)                             \
	X(CUDA_ERROR_CAPTURED_EVENT, 907)                                      \
	X(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, 908)                         \
	X(CUDA_ERROR_UNKNOWN, 999)                                             \
	X(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1)                        \
	X(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 16)                        \
	X(CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 19)                         \
	X(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, 33)                                  \
	X(CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, 34)                               \
	X(CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 41)                          \
	X(CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, 50)                               \
	X(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 75)                    \
	X(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 76)                    \
	X(CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES, 98)                     \
	X(CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, 122)              \
	X(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 102)        \
	X(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 103) \
	X(CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED, 132)                        \
	X(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 115)                     \
	X(CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, 4)                                \
	X(CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK, 1)                         \
	X(CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 2)                         \
	X(CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED, 3)                  \
	X(CU_POINTER_ATTRIBUTE_CONTEXT, 1)                                     \
	X(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 2)                                 \
	X(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, 9)                              \
	X(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, 11)                           \
	X(CU_POINTER_ATTRIBUTE_RANGE_SIZE, 12)                                 \
	X(CU_MEMORYTYPE_HOST, 1)                                               \
	X(CU_MEMORYTYPE_DEVICE, 2)                                             \
	X(CU_MEMHOSTALLOC_PORTABLE, 1)                                         \
	X(CU_MEMHOSTALLOC_DEVICEMAP, 2)                                        \
	X(CU_MEMHOSTREGISTER_PORTABLE, 1)                                      \
	X(CU_MEMHOSTREGISTER_DEVICEMAP, 2)                                     \
	X(CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS, 1)                               \
	X(CU_MEM_ALLOCATION_TYPE_PINNED, 1)                                    \
	X(CU_MEM_LOCATION_TYPE_DEVICE, 1)                                      \
	X(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 1)                         \
	X(CU_MEM_ACCESS_FLAGS_PROT_NONE, 0)                                    \
	X(CU_MEM_ACCESS_FLAGS_PROT_READ, 1)                                    \
	X(CU_MEM_ACCESS_FLAGS_PROT_READWRITE, 3)                               \
	X(CU_MEM_ALLOC_GRANULARITY_MINIMUM, 0)                                 \
	X(CU_MEM_ALLOC_GRANULARITY_RECOMMENDED, 1)                             \
	X(CU_MULTICAST_GRANULARITY_MINIMUM, 0)                                 \
	X(CU_MULTICAST_GRANULARITY_RECOMMENDED, 1)                             \
	X(CU_STREAM_DEFAULT, 0)                                                \
	X(CU_STREAM_NON_BLOCKING, 1)                                           \
	X(CU_EVENT_DEFAULT, 0)                                                 \
	X(CU_EVENT_DISABLE_TIMING, 2)                                          \
	X(CU_STREAM_CAPTURE_STATUS_NONE, 0)                                    \
	X(CU_STREAM_CAPTURE_STATUS_ACTIVE, 1)                                  \
	X(CU_STREAM_CAPTURE_STATUS_INVALIDATED, 2)                             \
	X(CU_STREAM_CAPTURE_MODE_GLOBAL, 0)                                    \
	X(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, 1)                              \
	X(CU_STREAM_CAPTURE_MODE_RELAXED, 2)                                   \
	X(CU_STREAM_WAIT_VALUE_GEQ, 0)                                         \
	X(CU_STREAM_WAIT_VALUE_EQ, 1)                                          \
	X(CU_STREAM_WAIT_VALUE_FLUSH, 1 << 30)                                 \
	X(CU_STREAM_WRITE_VALUE_DEFAULT, 0)                                    \
	X(CU_STREAM_MEM_OP_WAIT_VALUE_32, 1)                                   \
	X(CU_STREAM_MEM_OP_WRITE_VALUE_32, 2)                                  \
	X(CU_STREAM_MEM_OP_WAIT_VALUE_64, 4)                                   \
	X(CU_STREAM_MEM_OP_WRITE_VALUE_64, 5)                                  \
	X(CU_MEMCPY_SRC_ACCESS_ORDER_STREAM, 1)                                \
	X(CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL, 2)                       \
	X(CU_MEMCPY_SRC_ACCESS_ORDER_ANY, 3)                                   \
	X(CU_MEMCPY_FLAG_DEFAULT, 0)                                           \
	X(CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE, 1)                       \
	X(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 0)                          \
	X(CU_FUNC_ATTRIBUTE_NUM_REGS, 4)                                       \
	X(CU_GET_PROC_ADDRESS_DEFAULT, 0)

#ifndef BLINK_REAL_CUDA_H
enum driver_constant {
#define DRIVER_CONSTANT(name, value) name = value,
	DRIVER_CONSTANT_LIST(DRIVER_CONSTANT)
#undef DRIVER_CONSTANT
};
/* A stream of the caller that is not one of cuStreamCreate: that of the thread, and the legacy one. */
#define CU_STREAM_LEGACY ((CUstream)0x1)
#define CU_STREAM_PER_THREAD ((CUstream)0x2)
#endif

/* Functions: member of `struct driver`, exported name, 1: the driver must have it (0: since a later version than CUDA
 * 11.0, or not on every platform: the member is NULL then), parameters. */
#define DRIVER_LIST(X)                                                         \
	X(init, cuInit, 1, (unsigned flags))                                   \
	X(version, cuDriverGetVersion, 1, (int *version))                      \
	X(error_name, cuGetErrorName, 1, (CUresult r, const char **name))      \
	X(error_text, cuGetErrorString, 1, (CUresult r, const char **text))    \
	X(device_get, cuDeviceGet, 1, (CUdevice *device, int number))          \
	X(device_count, cuDeviceGetCount, 1, (int *n))                         \
	X(device_name, cuDeviceGetName, 1, (char *name, int size, CUdevice device)) \
	X(device_attribute, cuDeviceGetAttribute, 1, (int *value, CUdevice_attribute what, CUdevice device)) \
	X(device_uuid, cuDeviceGetUuid, 1, (CUuuid *uuid, CUdevice device))    \
	X(device_pci_id, cuDeviceGetPCIBusId, 1, (char *id, int size, CUdevice device)) \
	X(device_total_memory, cuDeviceTotalMem_v2, 1, (size_t *bytes, CUdevice device)) \
	X(device_can_access, cuDeviceCanAccessPeer, 1, (int *can, CUdevice device, CUdevice peer)) \
	X(device_p2p, cuDeviceGetP2PAttribute, 1,                              \
	    (int *value, CUdevice_P2PAttribute what, CUdevice from, CUdevice to)) \
	X(primary_retain, cuDevicePrimaryCtxRetain, 1, (CUcontext *context, CUdevice device)) \
	X(primary_release, cuDevicePrimaryCtxRelease_v2, 1, (CUdevice device)) \
	X(context_set, cuCtxSetCurrent, 1, (CUcontext context))                \
	X(context_get, cuCtxGetCurrent, 1, (CUcontext *context))               \
	X(context_device, cuCtxGetDevice, 1, (CUdevice *device))               \
	X(context_push, cuCtxPushCurrent_v2, 1, (CUcontext context))           \
	X(context_pop, cuCtxPopCurrent_v2, 1, (CUcontext *context))            \
	X(context_synchronize, cuCtxSynchronize, 1, (void))                    \
	X(peer_enable, cuCtxEnablePeerAccess, 1, (CUcontext peer, unsigned flags)) \
	X(peer_disable, cuCtxDisablePeerAccess, 1, (CUcontext peer))           \
	X(memory_info, cuMemGetInfo_v2, 1, (size_t *left, size_t *total))      \
	X(memory_alloc, cuMemAlloc_v2, 1, (CUdeviceptr *memory, size_t bytes)) \
	X(memory_free, cuMemFree_v2, 1, (CUdeviceptr memory))                  \
	X(pool_create, cuMemPoolCreate, 0, (CUmemoryPool *pool, const CUmemPoolProps *what)) \
	X(pool_destroy, cuMemPoolDestroy, 0, (CUmemoryPool pool))              \
	X(pool_set, cuMemPoolSetAttribute, 0, (CUmemoryPool pool, CUmemPool_attribute what, void *value)) \
	X(pool_alloc, cuMemAllocFromPoolAsync, 0,                              \
	    (CUdeviceptr *memory, size_t bytes, CUmemoryPool pool, CUstream stream)) \
	X(pool_free, cuMemFreeAsync, 0, (CUdeviceptr memory, CUstream stream)) \
	X(memory_range, cuMemGetAddressRange_v2, 1, (CUdeviceptr *base, size_t *bytes, CUdeviceptr memory)) \
	X(host_alloc, cuMemHostAlloc, 1, (void **memory, size_t bytes, unsigned flags)) \
	X(host_free, cuMemFreeHost, 1, (void *memory))                         \
	X(host_register, cuMemHostRegister_v2, 1, (void *memory, size_t bytes, unsigned flags)) \
	X(host_unregister, cuMemHostUnregister, 1, (void *memory))             \
	X(host_device_pointer, cuMemHostGetDevicePointer_v2, 1, (CUdeviceptr *device, void *memory, unsigned flags)) \
	X(pointer_attribute, cuPointerGetAttribute, 1, (void *value, CUpointer_attribute what, CUdeviceptr memory)) \
	X(pointer_attributes, cuPointerGetAttributes, 1,                       \
	    (unsigned n, CUpointer_attribute *what, void **values, CUdeviceptr memory)) \
	X(address_reserve, cuMemAddressReserve, 0,                             \
	    (CUdeviceptr *address, size_t bytes, size_t alignment, CUdeviceptr wanted, unsigned long long flags)) \
	X(address_free, cuMemAddressFree, 0, (CUdeviceptr address, size_t bytes)) \
	X(vmm_create, cuMemCreate, 0, (CUmemGenericAllocationHandle *handle, size_t bytes, \
	    const CUmemAllocationProp *what, unsigned long long flags))        \
	X(vmm_release, cuMemRelease, 0, (CUmemGenericAllocationHandle handle)) \
	X(vmm_map, cuMemMap, 0, (CUdeviceptr address, size_t bytes, size_t offset, \
	    CUmemGenericAllocationHandle handle, unsigned long long flags))    \
	X(vmm_unmap, cuMemUnmap, 0, (CUdeviceptr address, size_t bytes))       \
	X(vmm_access, cuMemSetAccess, 0, (CUdeviceptr address, size_t bytes, const CUmemAccessDesc *access, size_t n)) \
	X(vmm_granularity, cuMemGetAllocationGranularity, 0,                   \
	    (size_t *bytes, const CUmemAllocationProp *what, CUmemAllocationGranularity_flags which)) \
	X(vmm_export, cuMemExportToShareableHandle, 0, (void *out, CUmemGenericAllocationHandle handle, \
	    CUmemAllocationHandleType type, unsigned long long flags))         \
	X(vmm_import, cuMemImportFromShareableHandle, 0,                       \
	    (CUmemGenericAllocationHandle *handle, void *in, CUmemAllocationHandleType type)) \
	X(vmm_retain, cuMemRetainAllocationHandle, 0, (CUmemGenericAllocationHandle *handle, void *address)) \
	X(multicast_create, cuMulticastCreate, 0,                              \
	    (CUmemGenericAllocationHandle *object, const CUmulticastObjectProp *what)) \
	X(multicast_add, cuMulticastAddDevice, 0, (CUmemGenericAllocationHandle object, CUdevice device)) \
	X(multicast_bind, cuMulticastBindMem, 0, (CUmemGenericAllocationHandle object, size_t at, \
	    CUmemGenericAllocationHandle memory, size_t offset, size_t bytes, unsigned long long flags)) \
	X(multicast_unbind, cuMulticastUnbind, 0,                              \
	    (CUmemGenericAllocationHandle object, CUdevice device, size_t at, size_t bytes)) \
	X(multicast_granularity, cuMulticastGetGranularity, 0,                 \
	    (size_t *bytes, const CUmulticastObjectProp *what, CUmulticastGranularity_flags which)) \
	X(ipc_get, cuIpcGetMemHandle, 1, (CUipcMemHandle *handle, CUdeviceptr memory)) \
	X(ipc_open, cuIpcOpenMemHandle_v2, 1, (CUdeviceptr *memory, CUipcMemHandle handle, unsigned flags)) \
	X(ipc_close, cuIpcCloseMemHandle, 1, (CUdeviceptr memory))             \
	X(stream_create, cuStreamCreate, 1, (CUstream *stream, unsigned flags)) \
	X(stream_create_priority, cuStreamCreateWithPriority, 1, (CUstream *stream, unsigned flags, int priority)) \
	X(stream_destroy, cuStreamDestroy_v2, 1, (CUstream stream))            \
	X(stream_query, cuStreamQuery, 1, (CUstream stream))                   \
	X(stream_synchronize, cuStreamSynchronize, 1, (CUstream stream))       \
	X(stream_wait_event, cuStreamWaitEvent, 1, (CUstream stream, CUevent event, unsigned flags)) \
	X(stream_context, cuStreamGetCtx, 1, (CUstream stream, CUcontext *context)) \
	X(stream_capturing, cuStreamIsCapturing, 1, (CUstream stream, CUstreamCaptureStatus *status)) \
	X(capture_info, cuStreamGetCaptureInfo_v2, 0, (CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, \
	    CUgraph *graph, const CUgraphNode **nodes, size_t *n_nodes))       \
	X(capture_begin, cuStreamBeginCapture_v2, 1, (CUstream stream, CUstreamCaptureMode mode)) \
	X(capture_end, cuStreamEndCapture, 1, (CUstream stream, CUgraph *graph)) \
	X(capture_mode, cuThreadExchangeStreamCaptureMode, 1, (CUstreamCaptureMode *mode)) \
	X(graph_instantiate, cuGraphInstantiateWithFlags, 0,                   \
	    (CUgraphExec *exec, CUgraph graph, unsigned long long flags))      \
	X(graph_upload, cuGraphUpload, 0, (CUgraphExec exec, CUstream stream)) \
	X(graph_launch, cuGraphLaunch, 1, (CUgraphExec exec, CUstream stream)) \
	X(graph_exec_destroy, cuGraphExecDestroy, 1, (CUgraphExec exec))       \
	X(graph_destroy, cuGraphDestroy, 1, (CUgraph graph))                   \
	X(stream_batch, cuStreamBatchMemOp_v2, 0,                              \
	    (CUstream stream, unsigned n, CUstreamBatchMemOpParams *operation, unsigned flags)) \
	X(stream_wait_value, cuStreamWaitValue32_v2, 0,                        \
	    (CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned flags)) \
	X(stream_write_value, cuStreamWriteValue32_v2, 0,                      \
	    (CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned flags)) \
	X(stream_wait_value64, cuStreamWaitValue64_v2, 0,                      \
	    (CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned flags)) \
	X(stream_write_value64, cuStreamWriteValue64_v2, 0,                    \
	    (CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned flags)) \
	X(event_create, cuEventCreate, 1, (CUevent *event, unsigned flags))    \
	X(event_destroy, cuEventDestroy_v2, 1, (CUevent event))                \
	X(event_record, cuEventRecord, 1, (CUevent event, CUstream stream))    \
	X(event_query, cuEventQuery, 1, (CUevent event))                       \
	X(event_synchronize, cuEventSynchronize, 1, (CUevent event))           \
	X(event_elapsed, cuEventElapsedTime, 1, (float *ms, CUevent from, CUevent to)) \
	X(copy, cuMemcpy, 1, (CUdeviceptr to, CUdeviceptr from, size_t bytes)) \
	X(copy_async, cuMemcpyAsync, 1, (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)) \
	X(copy_batch, cuMemcpyBatchAsync, 0, (CUdeviceptr *to, CUdeviceptr *from, size_t *bytes, size_t n, \
	    CUmemcpyAttributes *how, size_t *first_of_how, size_t n_how, size_t *failed, CUstream stream)) \
	X(copy_in_async, cuMemcpyHtoDAsync_v2, 1, (CUdeviceptr to, const void *from, size_t bytes, CUstream stream)) \
	X(copy_out_async, cuMemcpyDtoHAsync_v2, 1, (void *to, CUdeviceptr from, size_t bytes, CUstream stream)) \
	X(set32_async, cuMemsetD32Async, 1, (CUdeviceptr to, unsigned value, size_t n, CUstream stream)) \
	X(set8_async, cuMemsetD8Async, 1, (CUdeviceptr to, unsigned char value, size_t n, CUstream stream)) \
	X(module_load, cuModuleLoadData, 1, (CUmodule *module, const void *image)) \
	X(module_unload, cuModuleUnload, 1, (CUmodule module))                 \
	X(module_function, cuModuleGetFunction, 1, (CUfunction *function, CUmodule module, const char *name)) \
	X(function_load, cuFuncLoad, 0, (CUfunction function))                 \
	X(function_attribute, cuFuncGetAttribute, 1, (int *value, CUfunction_attribute what, CUfunction function)) \
	X(occupancy, cuOccupancyMaxActiveBlocksPerMultiprocessor, 1,           \
	    (int *blocks, CUfunction function, int threads, size_t shared))    \
	X(launch, cuLaunchKernel, 1, (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, \
	    unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared, CUstream stream, void **parameters, \
	    void **extra))                                                     \
	X(launch_host, cuLaunchHostFunc, 1, (CUstream stream, CUhostFn function, void *data))

struct driver {
#define DRIVER_MEMBER(member, name, must, parameters) CUresult (*member) parameters;
	DRIVER_LIST(DRIVER_MEMBER)
#undef DRIVER_MEMBER
};

struct blink_error;

/* Open libcuda.so.1, once for the process; it stays open. Fails: blinkSystemError: there is none, it lacks a function
 * that it must have, or it does not start; the text names the library and the reason. From any thread. */
int driver_open(const struct driver **out, struct blink_error *err);

/* blinkSuccess; or blinkOutOfMemory or blinkSystemError, as *err, with what was tried and the driver's own words:
 * "cuda: allocate 64 bytes on device 3: out of memory". */
int driver_check(const struct driver *d, CUresult r, struct blink_error *err, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
