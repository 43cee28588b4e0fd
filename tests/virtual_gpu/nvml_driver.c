/* A virtual libcuda of what blinkc probe asks where there is no NVML: build/tests/virtual_gpu/driver/libcuda.so.1
 * tells of the GPUs of VIRTUAL_GPU_TOPOLOGY, in reverse order, and which of them are joined by NVLinks: a pair with
 * more links than others has rank 0, others 1. */
#include "format/nvml/driver.h"
#include "nvml_machine.h"

#include <stdio.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

enum { INVALID_VALUE = 1, NOT_INITIALIZED = 3, INVALID_DEVICE = 101 };

static bool initialised;

#define ENTER()                                                                                                        \
	do {                                                                                                           \
		int failure = nvml_fails(__func__);                                                                    \
		if (failure)                                                                                           \
			return failure;                                                                                \
		if (!initialised)                                                                                      \
			return NOT_INITIALIZED;                                                                        \
	} while (0)

#define X(name, arguments) EXPORT int name arguments;
CUDA_FUNCTION_LIST(X)
#undef X

int
cuInit(unsigned flags)
{
	int failure = nvml_fails(__func__);
	if (failure)
		return failure;
	initialised = flags == 0;
	return flags ? INVALID_VALUE : 0;
}

int
cuDriverGetVersion(int *version)
{
	*version = 12040;
	return nvml_fails(__func__);
}

int
cuGetErrorString(int result, const char **text)
{
	*text = result == 999 ? "unknown error" : NULL;
	return *text ? 0 : INVALID_VALUE;
}

static bool
is_device(int device)
{
	return device >= 0 && device < nvml_machine()->n_gpus;
}

static int
vertex_of(int device)
{
	const struct nvml_machine *m = nvml_machine();
	return m->gpu[m->n_gpus - 1 - device];
}

int
cuDeviceGetCount(int *count)
{
	ENTER();
	*count = nvml_machine()->n_gpus;
	return 0;
}

int
cuDeviceGet(int *device, int ordinal)
{
	ENTER();
	*device = ordinal;
	return is_device(ordinal) ? 0 : INVALID_DEVICE;
}

int
cuDeviceGetName(char *name, int length, int device)
{
	ENTER();
	if (!is_device(device))
		return INVALID_DEVICE;
	snprintf(name, (size_t)length, "%s", nvml_machine()->model->name);
	return 0;
}

int
cuDeviceGetAttribute(int *value, int attribute, int device)
{
	const struct nvml_machine *m = nvml_machine();
	ENTER();
	if (!is_device(device))
		return INVALID_DEVICE;
	switch (attribute) {
	case BY_CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
		*value = m->bus[vertex_of(device)];
		return 0;
	case BY_CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID:
	case BY_CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID:
		*value = 0;
		return 0;
	case BY_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
		*value = m->model->sm / 10;
		return 0;
	case BY_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
		*value = m->model->sm % 10;
		return 0;
	default:
		return INVALID_VALUE;
	}
}

int
cuDeviceCanAccessPeer(int *can, int device, int peer)
{
	ENTER();
	*can = device != peer;
	return is_device(device) && is_device(peer) ? 0 : INVALID_DEVICE;
}

int
cuDeviceGetP2PAttribute(int *value, int attribute, int from, int to)
{
	const struct nvml_machine *m = nvml_machine();
	int most = 0;
	ENTER();
	if (!is_device(from) || !is_device(to) || from == to)
		return INVALID_DEVICE;
	for (int g = 0; g < m->n_gpus; g++) {
		int n = nvml_links(vertex_of(from), m->gpu[g]);
		most = n > most ? n : most;
	}
	if (attribute == BY_CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED)
		*value = nvml_links(vertex_of(from), vertex_of(to)) > 0;
	else if (attribute == BY_CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK)
		*value = nvml_links(vertex_of(from), vertex_of(to)) < most;
	else
		return INVALID_VALUE;
	return 0;
}
