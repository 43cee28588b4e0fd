/* Of the libcudart for tests, what PyTorch is linked with, but nothing in the tests calls: whatever its parameters are,
 * cudaErrorNotSupported. NVIDIA's header, which has other prototypes, is not here. */
enum { NOT_SUPPORTED = 801 };

#define REFUSED_LIST(X)                                                        \
	X(cudaDeviceGetDefaultMemPool)                                         \
	X(cudaDeviceGetGraphMemAttribute)                                      \
	X(cudaDeviceSetGraphMemAttribute)                                      \
	X(cudaFreeAsync)                                                       \
	X(cudaFuncGetAttributes)                                               \
	X(cudaFuncSetAttribute)                                                \
	X(cudaGetSymbolAddress)                                                \
	X(cudaGraphAddNode)                                                    \
	X(cudaGraphConditionalHandleCreate)                                    \
	X(cudaGraphNodeGetDependencies)                                        \
	X(cudaGraphRetainUserObject)                                           \
	X(cudaIpcCloseMemHandle)                                               \
	X(cudaIpcGetEventHandle)                                               \
	X(cudaIpcGetMemHandle)                                                 \
	X(cudaIpcOpenEventHandle)                                              \
	X(cudaIpcOpenMemHandle)                                                \
	X(cudaKernelSetAttributeForDevice)                                     \
	X(cudaLaunchCooperativeKernel)                                         \
	X(cudaLaunchHostFunc)                                                  \
	X(cudaLaunchKernelExC)                                                 \
	X(cudaLibraryGetGlobal)                                                \
	X(cudaLibraryGetKernel)                                                \
	X(cudaLibraryGetKernelCount)                                           \
	X(cudaLibraryGetManaged)                                               \
	X(cudaLibraryGetUnifiedFunction)                                       \
	X(cudaLibraryLoadData)                                                 \
	X(cudaLibraryLoadFromFile)                                             \
	X(cudaLibraryUnload)                                                   \
	X(cudaMallocAsync)                                                     \
	X(cudaMallocManaged)                                                   \
	X(cudaMemPoolGetAttribute)                                             \
	X(cudaMemPoolSetAccess)                                                \
	X(cudaMemPoolSetAttribute)                                             \
	X(cudaMemPoolTrimTo)                                                   \
	X(cudaMemcpy2DAsync)                                                   \
	X(cudaMemcpyToSymbol)                                                  \
	X(cudaOccupancyMaxActiveBlocksPerMultiprocessor)                       \
	X(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags)              \
	X(cudaProfilerStart)                                                   \
	X(cudaProfilerStop)                                                    \
	X(cudaStreamAddCallback)                                               \
	X(cudaStreamBeginCaptureToGraph)                                       \
	X(cudaStreamCreate)                                                    \
	X(cudaStreamUpdateCaptureDependencies)                                 \
	X(cudaUserObjectCreate)                                                \
	X(cudaUserObjectRelease)

#pragma GCC visibility push(default)
#define REFUSED(name)                                                          \
	int name(void);                                                        \
	int name(void) { return NOT_SUPPORTED; }
REFUSED_LIST(REFUSED)

/* A variable of the device: known by its name to nobody. */
void __cudaRegisterVar(void);
void
__cudaRegisterVar(void)
{
}
