/* A virtual NVML, for tests: build/tests/virtual_gpu/libnvidia-ml.so.1 answers from a topology file, and is as strict
 * as NVML. LD_LIBRARY_PATH chooses it.
 *
 *   VIRTUAL_GPU_TOPOLOGY=topologies/dgx1v.xml	the machine; without it no driver is loaded
 *   VIRTUAL_GPU_FAIL=FUNCTION:N:CODE		a call that fails (nvml_machine.h)
 *   VIRTUAL_GPU_SHOW=0,2			only these GPUs are shown, as to a container
 *   VIRTUAL_GPU_MIG=1				this GPU is in MIG mode
 *   VIRTUAL_GPU_DOWN=0:3			NVLink 3 of GPU 0 is down, at this end
 *   VIRTUAL_GPU_NAME=TEXT			what every GPU is called
 *   VIRTUAL_GPU_TOLD=MBYTES			the rate of every link
 *
 * A program that ends without nvmlShutdown gets a line on standard error. */
#include "format/nvml/nvml.h"
#include "nvml_machine.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

static int initialised;
static int shown[MACHINE_MOST], n_shown;	/* numbers in the machine */
static struct NvmlDevice { int number; } devices[MACHINE_MOST];

/* A link of a GPU: what it leads to. */
struct end {
	unsigned type;
	int peer;		/* a GPU's number, or which of the switches */
};

/* One call at a time: NVML may be called by several threads. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static pthread_mutex_t *
take_lock(void)
{
	pthread_mutex_lock(&lock);
	return &lock;
}

static void
give_lock(pthread_mutex_t **taken)
{
	pthread_mutex_unlock(*taken);
}

#define LOCKED __attribute__((cleanup(give_lock), unused)) pthread_mutex_t *taken = take_lock()

#define ENTER()                                                                                                        \
	LOCKED;                                                                                                        \
	do {                                                                                                           \
		int failure = nvml_fails(__func__);                                                                    \
		if (failure)                                                                                           \
			return failure;                                                                                \
		if (!initialised)                                                                                      \
			return NV_ERROR_UNINITIALIZED;                                                                 \
	} while (0)

#define WANT(good)                                                                                                     \
	do {                                                                                                           \
		if (!(good))                                                                                           \
			return NV_ERROR_INVALID_ARGUMENT;                                                              \
	} while (0)

/* ---- the library ---- */

static void
read_shown(void)
{
	const char *list = getenv("VIRTUAL_GPU_SHOW");
	n_shown = 0;
	for (int g = 0; g < nvml_machine()->n_gpus && !list; g++)
		shown[n_shown++] = g;
	while (list && *list && n_shown < MACHINE_MOST) {
		char *end;
		shown[n_shown++] = (int)strtol(list, &end, 10);
		list = *end ? end + 1 : end;
	}
	for (int i = 0; i < n_shown; i++)
		devices[i].number = shown[i];
}

static const char *
text_of(const char *variable, const char *otherwise)
{
	const char *value = getenv(variable);
	return value ? value : otherwise;
}

EXPORT NvmlResult nvmlInit_v2(void);
EXPORT NvmlResult
nvmlInit_v2(void)
{
	LOCKED;
	int failure;
	if (!initialised)
		nvml_count_anew();
	failure = nvml_fails(__func__);
	if (failure)
		return failure;
	if (!getenv("VIRTUAL_GPU_TOPOLOGY"))
		return NV_ERROR_DRIVER_NOT_LOADED;
	read_shown();
	initialised++;
	return NV_SUCCESS;
}

EXPORT NvmlResult nvmlShutdown(void);
EXPORT NvmlResult
nvmlShutdown(void)
{
	ENTER();
	initialised--;
	return NV_SUCCESS;
}

__attribute__((destructor)) static void
complain(void)
{
	if (initialised)
		fputs("virtual NVML: not shut down\n", stderr);
}

EXPORT const char *nvmlErrorString(NvmlResult result);
EXPORT const char *
nvmlErrorString(NvmlResult result)
{
	return result == NV_ERROR_UNKNOWN ? "Unknown Error" : result == NV_ERROR_UNINITIALIZED ? "Uninitialized"
	    : result == NV_ERROR_INVALID_ARGUMENT ? "Invalid Argument" : "Odd\033[2J Error";
}

/* A text for a caller's buffer. */
static NvmlResult
put_text(char *out, unsigned length, const char *text)
{
	WANT(out);
	if (length <= strlen(text))
		return NV_ERROR_INSUFFICIENT_SIZE;
	strcpy(out, text);
	return NV_SUCCESS;
}

EXPORT NvmlResult nvmlSystemGetDriverVersion(char *version, unsigned length);
EXPORT NvmlResult
nvmlSystemGetDriverVersion(char *version, unsigned length)
{
	ENTER();
	return put_text(version, length, "999.99.01");
}

/* ---- GPUs ---- */

static bool
is_gpu(NvmlGpu gpu)
{
	return (struct NvmlDevice *)gpu >= devices && (struct NvmlDevice *)gpu < devices + n_shown;
}

static int
vertex_of(NvmlGpu gpu)
{
	return nvml_machine()->gpu[((struct NvmlDevice *)gpu)->number];
}

EXPORT NvmlResult nvmlDeviceGetCount_v2(unsigned *count);
EXPORT NvmlResult
nvmlDeviceGetCount_v2(unsigned *count)
{
	ENTER();
	WANT(count);
	*count = (unsigned)n_shown;
	return NV_SUCCESS;
}

EXPORT NvmlResult nvmlDeviceGetHandleByIndex_v2(unsigned index, NvmlGpu *gpu);
EXPORT NvmlResult
nvmlDeviceGetHandleByIndex_v2(unsigned index, NvmlGpu *gpu)
{
	ENTER();
	WANT(gpu && index < (unsigned)n_shown);
	*gpu = &devices[index];
	return NV_SUCCESS;
}

EXPORT NvmlResult nvmlDeviceGetHandleByPciBusId_v2(const char *address, NvmlGpu *gpu);
EXPORT NvmlResult
nvmlDeviceGetHandleByPciBusId_v2(const char *address, NvmlGpu *gpu)
{
	unsigned domain, bus, slot, function;
	ENTER();
	WANT(gpu && address && sscanf(address, "%x:%x:%x.%x", &domain, &bus, &slot, &function) == 4);
	for (int i = 0; i < n_shown; i++) {
		*gpu = &devices[i];
		if (domain == 0 && slot == 0 && (unsigned)nvml_machine()->bus[vertex_of(*gpu)] == bus)
			return NV_SUCCESS;
	}
	return NV_ERROR_NOT_FOUND;
}

/* Of what is asked, NVLink alone. */
EXPORT NvmlResult nvmlDeviceGetP2PStatus(NvmlGpu gpu, NvmlGpu peer, unsigned what, unsigned *status);
EXPORT NvmlResult
nvmlDeviceGetP2PStatus(NvmlGpu gpu, NvmlGpu peer, unsigned what, unsigned *status)
{
	ENTER();
	WANT(is_gpu(gpu) && is_gpu(peer) && gpu != peer && what == NV_P2P_CAPS_INDEX_NVLINK && status);
	*status = nvml_links(vertex_of(gpu), vertex_of(peer)) > 0 ? NV_P2P_STATUS_OK : NV_P2P_STATUS_NOT_SUPPORTED;
	return NV_SUCCESS;
}

static void
put_pci(NvmlPci *out, unsigned bus, unsigned id)
{
	*out = (NvmlPci){ .bus = bus, .pciDeviceId = id };
	snprintf(out->busId, sizeof out->busId, "%08X:%02X:%02X.0", 0u, bus & 255, 0u);
	snprintf(out->busIdLegacy, sizeof out->busIdLegacy, "%04X:%02X:%02X.0", 0u, bus & 255, 0u);
}

EXPORT NvmlResult nvmlDeviceGetPciInfo_v3(NvmlGpu gpu, NvmlPci *pci);
EXPORT NvmlResult
nvmlDeviceGetPciInfo_v3(NvmlGpu gpu, NvmlPci *pci)
{
	ENTER();
	WANT(is_gpu(gpu) && pci);
	put_pci(pci, (unsigned)nvml_machine()->bus[vertex_of(gpu)], 0x1db110de);
	return NV_SUCCESS;
}

EXPORT NvmlResult nvmlDeviceGetName(NvmlGpu gpu, char *name, unsigned length);
EXPORT NvmlResult
nvmlDeviceGetName(NvmlGpu gpu, char *name, unsigned length)
{
	ENTER();
	WANT(is_gpu(gpu));
	return put_text(name, length, text_of("VIRTUAL_GPU_NAME", nvml_machine()->model->name));
}

EXPORT NvmlResult nvmlDeviceGetUUID(NvmlGpu gpu, char *uuid, unsigned length);
EXPORT NvmlResult
nvmlDeviceGetUUID(NvmlGpu gpu, char *uuid, unsigned length)
{
	char text[64];
	ENTER();
	WANT(is_gpu(gpu));
	snprintf(text, sizeof text, "GPU-00000000-0000-0000-0000-%012d", vertex_of(gpu));
	return put_text(uuid, length, text);
}

EXPORT NvmlResult nvmlDeviceGetCudaComputeCapability(NvmlGpu gpu, int *major, int *minor);
EXPORT NvmlResult
nvmlDeviceGetCudaComputeCapability(NvmlGpu gpu, int *major, int *minor)
{
	ENTER();
	WANT(is_gpu(gpu) && major && minor);
	*major = nvml_machine()->model->sm / 10;
	*minor = nvml_machine()->model->sm % 10;
	return NV_SUCCESS;
}

/* Of a GPU without PCIe in the topology: not known. */
static NvmlResult
put_pcie(NvmlGpu gpu, bool generation, unsigned *out)
{
	int v, width, g;
	WANT(is_gpu(gpu) && out);
	v = vertex_of(gpu);
	if (nvml_machine()->up[v] == 0)
		return NV_ERROR_NOT_SUPPORTED;
	g = nvml_pcie(nvml_machine()->up[v], &width);
	*out = (unsigned)(generation ? g : width);
	return NV_SUCCESS;
}

EXPORT NvmlResult nvmlDeviceGetMaxPcieLinkGeneration(NvmlGpu gpu, unsigned *generation);
EXPORT NvmlResult
nvmlDeviceGetMaxPcieLinkGeneration(NvmlGpu gpu, unsigned *generation)
{
	ENTER();
	return put_pcie(gpu, true, generation);
}

EXPORT NvmlResult nvmlDeviceGetMaxPcieLinkWidth(NvmlGpu gpu, unsigned *width);
EXPORT NvmlResult
nvmlDeviceGetMaxPcieLinkWidth(NvmlGpu gpu, unsigned *width)
{
	ENTER();
	return put_pcie(gpu, false, width);
}

EXPORT NvmlResult nvmlDeviceGetMigMode(NvmlGpu gpu, unsigned *current, unsigned *pending);
EXPORT NvmlResult
nvmlDeviceGetMigMode(NvmlGpu gpu, unsigned *current, unsigned *pending)
{
	const char *mig = getenv("VIRTUAL_GPU_MIG");
	ENTER();
	WANT(is_gpu(gpu) && current && pending);
	if (nvml_machine()->model->sm < 80 && !mig)
		return NV_ERROR_NOT_SUPPORTED;
	*current = *pending = mig && atoi(mig) == ((struct NvmlDevice *)gpu)->number;
	return NV_SUCCESS;
}

/* The CPU above it: nodes are numbered as the CPUs of the topology. */
EXPORT NvmlResult nvmlDeviceGetMemoryAffinity(NvmlGpu gpu, unsigned longs, unsigned long *nodes, unsigned scope);
EXPORT NvmlResult
nvmlDeviceGetMemoryAffinity(NvmlGpu gpu, unsigned longs, unsigned long *nodes, unsigned scope)
{
	int node = 0, v;
	ENTER();
	const struct nvml_machine *m = nvml_machine();
	WANT(is_gpu(gpu) && longs && nodes && scope <= 1);
	for (v = vertex_of(gpu); m->above[v] >= 0;)
		v = m->above[v];
	if (m->topo->vertex[v].kind != VERTEX_CPU)
		return NV_ERROR_NOT_SUPPORTED;
	for (int c = 0; c < v; c++)
		node += m->topo->vertex[c].kind == VERTEX_CPU;
	memset(nodes, 0, longs * sizeof *nodes);
	nodes[0] = 1ul << node;
	return NV_SUCCESS;
}

EXPORT NvmlResult nvmlDeviceGetFieldValues(NvmlGpu gpu, int n, NvmlField *value);
EXPORT NvmlResult
nvmlDeviceGetFieldValues(NvmlGpu gpu, int n, NvmlField *value)
{
	ENTER();
	WANT(is_gpu(gpu) && n > 0 && value);
	for (int i = 0; i < n; i++) {
		bool known = value[i].fieldId == NV_FI_DEV_NVLINK_SPEED_MBPS_COMMON;
		value[i].nvmlReturn = known ? NV_SUCCESS : NV_ERROR_NOT_SUPPORTED;
		value[i].valueType = NV_VALUE_TYPE_UNSIGNED_INT;
		value[i].value.ullVal = ~0ull;
		value[i].value.uiVal = getenv("VIRTUAL_GPU_TOLD") ? (unsigned)atoi(getenv("VIRTUAL_GPU_TOLD"))
		    : nvml_machine()->model->told;
	}
	return NV_SUCCESS;
}

/* ---- links ---- */

/* Links are counted by the links of the topology, each as often as it says. False: this number leads nowhere. */
static bool
find_end(NvmlGpu gpu, unsigned number, struct end *out)
{
	const struct nvml_machine *m = nvml_machine();
	int v = vertex_of(gpu);
	unsigned first = 0;
	for (int l = 0; l < m->topo->n_links; l++) {
		const Link *link = &m->topo->link[l];
		if (link->class != LINK_NVLINK || link->from != v)
			continue;
		if (number < first + (unsigned)link->count) {
			VertexKind kind = m->topo->vertex[link->to].kind;
			*out = (struct end){ kind == VERTEX_GPU ? NV_NVLINK_DEVICE_TYPE_GPU : kind == VERTEX_CPU
			    ? NV_NVLINK_DEVICE_TYPE_IBMNPU : NV_NVLINK_DEVICE_TYPE_SWITCH,
			    kind == VERTEX_GPU ? m->number[link->to] : (int)number % 6 };
			return true;
		}
		first += (unsigned)link->count;
	}
	return false;
}

static bool
is_down(NvmlGpu gpu, unsigned link)
{
	const char *down = getenv("VIRTUAL_GPU_DOWN");
	int number;
	unsigned which;
	return down && sscanf(down, "%d:%u", &number, &which) == 2 && which == link
	    && number == ((struct NvmlDevice *)gpu)->number;
}

/* GPUs have links by their model, and what is asked of an inactive one is an error. */
#define ENTER_LINK(out)                                                                                                \
	struct end end;                                                                                                \
	ENTER();                                                                                                       \
	WANT(is_gpu(gpu) && (out));                                                                                    \
	if (nvml_machine()->model->links == 0)                                                                         \
		return NV_ERROR_NOT_SUPPORTED;                                                                         \
	WANT(link < (unsigned)nvml_machine()->model->links)

#define ENTER_ACTIVE(out)                                                                                              \
	ENTER_LINK(out);                                                                                               \
	if (!find_end(gpu, link, &end) || is_down(gpu, link))                                                          \
		return NV_ERROR_NOT_SUPPORTED

EXPORT NvmlResult nvmlDeviceGetNvLinkState(NvmlGpu gpu, unsigned link, unsigned *active);
EXPORT NvmlResult
nvmlDeviceGetNvLinkState(NvmlGpu gpu, unsigned link, unsigned *active)
{
	ENTER_LINK(active);
	*active = find_end(gpu, link, &end) && !is_down(gpu, link) ? NV_FEATURE_ENABLED : NV_FEATURE_DISABLED;
	return NV_SUCCESS;
}

EXPORT NvmlResult nvmlDeviceGetNvLinkCapability(NvmlGpu gpu, unsigned link, unsigned capability, unsigned *has);
EXPORT NvmlResult
nvmlDeviceGetNvLinkCapability(NvmlGpu gpu, unsigned link, unsigned capability, unsigned *has)
{
	ENTER_ACTIVE(has && capability <= 5);
	*has = 1;
	return NV_SUCCESS;
}

EXPORT NvmlResult nvmlDeviceGetNvLinkVersion(NvmlGpu gpu, unsigned link, unsigned *version);
EXPORT NvmlResult
nvmlDeviceGetNvLinkVersion(NvmlGpu gpu, unsigned link, unsigned *version)
{
	ENTER_ACTIVE(version);
	*version = nvml_machine()->model->version;
	return NV_SUCCESS;
}

/* Switches and CPUs are behind all other devices. */
EXPORT NvmlResult nvmlDeviceGetNvLinkRemotePciInfo_v2(NvmlGpu gpu, unsigned link, NvmlPci *pci);
EXPORT NvmlResult
nvmlDeviceGetNvLinkRemotePciInfo_v2(NvmlGpu gpu, unsigned link, NvmlPci *pci)
{
	ENTER_ACTIVE(pci);
	const struct nvml_machine *m = nvml_machine();
	put_pci(pci, end.type == NV_NVLINK_DEVICE_TYPE_GPU ? (unsigned)m->bus[m->gpu[end.peer]]
	    : 0xc0u + (unsigned)end.peer, 0);
	return NV_SUCCESS;
}

EXPORT NvmlResult nvmlDeviceGetNvLinkRemoteDeviceType(NvmlGpu gpu, unsigned link, unsigned *type);
EXPORT NvmlResult
nvmlDeviceGetNvLinkRemoteDeviceType(NvmlGpu gpu, unsigned link, unsigned *type)
{
	ENTER_ACTIVE(type);
	*type = end.type;
	return NV_SUCCESS;
}
