#include "format/nvml/gpus.h"
#include "base/printable.h"

#include <stdio.h>
#include <string.h>

struct asking {
	Ctx *ctx;
	Nvml nvml;
	SeenGpus *gpus;
	NvmlGpu handle;			/* of the GPU that is asked */
	SeenGpu *gpu;
	char where[24];			/* "GPU 3" */
};

bool
pci_same(PciAddress a, PciAddress b)
{
	return a.domain == b.domain && a.bus == b.bus && a.device == b.device;
}

static PciAddress
address_of(const NvmlPci *pci)
{
	return (PciAddress){ pci->domain, pci->bus, pci->device };
}

/* ---- calls ---- */

/* Is what it returned there? It is not where the GPU or the driver has no such thing. */
static Status
take(struct asking *a, const char *function, NvmlResult result, bool *there)
{
	*there = result == NV_SUCCESS;
	if (*there || result == NV_ERROR_NOT_SUPPORTED || result == NV_ERROR_FUNCTION_NOT_FOUND)
		return OK;
	return nvml_fail(a->ctx, &a->nvml, a->where, function, result);
}

/* Of a function that a driver may not have. */
#define ASK(a, there, function, ...) \
	take(a, #function, (a)->nvml.function ? (a)->nvml.function(__VA_ARGS__) : NV_ERROR_FUNCTION_NOT_FOUND, there)

/* Of one without which nothing is known. */
static Status
want(struct asking *a, const char *function, NvmlResult result)
{
	return result == NV_SUCCESS ? OK : nvml_fail(a->ctx, &a->nvml, a->where, function, result);
}
#define WANT(a, function, ...) want(a, #function, (a)->nvml.function(__VA_ARGS__))

/* A text of the driver: any bytes, perhaps without an end. */
static void
tidy(char *text, size_t size, bool there)
{
	text[there ? size - 1 : 0] = 0;
	make_printable(text);
}

/* ---- links ---- */

/* Drivers before 460 do not say what is there: a GPU, or else a switch, as also where that is not known, as in some
 * virtual machines. */
static Status
ask_end(struct asking *a, unsigned link, SeenLink *out)
{
	static const LinkEnd ends[] = { [NV_NVLINK_DEVICE_TYPE_GPU] = END_GPU, [NV_NVLINK_DEVICE_TYPE_IBMNPU] = END_CPU,
		[NV_NVLINK_DEVICE_TYPE_SWITCH] = END_SWITCH };
	NvmlPci pci = { .bus = 0 };
	unsigned type = NV_NVLINK_DEVICE_TYPE_UNKNOWN;
	bool there;
	TRY(WANT(a, nvmlDeviceGetNvLinkRemotePciInfo_v2, a->handle, link, &pci));
	TRY(ASK(a, &there, nvmlDeviceGetNvLinkRemoteDeviceType, a->handle, link, &type));
	*out = (SeenLink){ .end = there && type < sizeof ends / sizeof *ends ? ends[type] : END_SWITCH, .gpu = -1,
		.remote = address_of(&pci) };
	return OK;
}

static Status
ask_link(struct asking *a, unsigned link, bool *more)
{
	SeenGpu *gpu = a->gpu;
	unsigned active = NV_FEATURE_DISABLED, peers = 0, version = 0;
	bool there;
	NvmlResult result = a->nvml.nvmlDeviceGetNvLinkState(a->handle, link, &active);
	*more = result != NV_ERROR_INVALID_ARGUMENT;
	if (!*more)
		return OK;
	TRY(take(a, "nvmlDeviceGetNvLinkState", result, &there));
	if (there && active == NV_FEATURE_ENABLED)
		TRY(ASK(a, &there, nvmlDeviceGetNvLinkCapability, a->handle, link, NV_NVLINK_CAP_P2P_SUPPORTED,
		    &peers));
	gpu->n_down += there && !peers;
	if (!there || !peers)
		return OK;
	TRY(ASK(a, &there, nvmlDeviceGetNvLinkVersion, a->handle, link, &version));
	gpu->link_version = there && version < 100 ? (int)version : 0;
	return ask_end(a, link, &gpu->link[gpu->n_links++]);
}

/* Links of GPUs without any do not even have a number. */
static Status
ask_links(struct asking *a)
{
	bool more = true;
	for (unsigned link = 0; link < NV_NVLINK_MAX_LINKS && more; link++)
		TRY(ask_link(a, link, &more));
	return OK;
}

static Status
ask_link_rate(struct asking *a)
{
	enum { MBYTES_MOST = 10000000 };
	NvmlField field = { .fieldId = NV_FI_DEV_NVLINK_SPEED_MBPS_COMMON };
	uint64_t mbytes = 0;
	bool there;
	TRY(ASK(a, &there, nvmlDeviceGetFieldValues, a->handle, 1, &field));
	if (there)
		TRY(take(a, "nvmlDeviceGetFieldValues", field.nvmlReturn, &there));
	if (there && field.valueType == NV_VALUE_TYPE_UNSIGNED_INT)
		mbytes = field.value.uiVal;
	else if (there && (field.valueType == NV_VALUE_TYPE_UNSIGNED_LONG
	    || field.valueType == NV_VALUE_TYPE_UNSIGNED_LONG_LONG))
		mbytes = field.value.ullVal;
	a->gpu->link_rate = mbytes <= MBYTES_MOST ? (int64_t)mbytes * 1000000 : 0;
	return OK;
}

/* ---- a GPU ---- */

static Status
ask_names(struct asking *a)
{
	SeenGpu *gpu = a->gpu;
	NvmlPci pci = { .bus = 0 };
	bool there;
	TRY(WANT(a, nvmlDeviceGetPciInfo_v3, a->handle, &pci));
	gpu->pci = address_of(&pci);
	TRY(ASK(a, &there, nvmlDeviceGetName, a->handle, gpu->name, sizeof gpu->name));
	tidy(gpu->name, sizeof gpu->name, there);
	TRY(ASK(a, &there, nvmlDeviceGetUUID, a->handle, gpu->uuid, sizeof gpu->uuid));
	tidy(gpu->uuid, sizeof gpu->uuid, there);
	return OK;
}

static Status
ask_numa(struct asking *a)
{
	enum { LONGS = 16, BITS = 8 * sizeof(unsigned long) };
	unsigned long nodes[LONGS] = { 0 };
	bool there;
	a->gpu->numa = -1;
	TRY(ASK(a, &there, nvmlDeviceGetMemoryAffinity, a->handle, LONGS, nodes, NV_AFFINITY_SCOPE_NODE));
	for (int i = 0; there && i < LONGS * (int)BITS && a->gpu->numa < 0; i++)
		if (nodes[i / BITS] >> i % BITS & 1)
			a->gpu->numa = i;
	return OK;
}

static Status
ask_properties(struct asking *a)
{
	SeenGpu *gpu = a->gpu;
	unsigned generation = 0, width = 0, mig = 0, pending = 0;
	int major = 0, minor = 0;
	bool there;
	TRY(ASK(a, &there, nvmlDeviceGetCudaComputeCapability, a->handle, &major, &minor));
	gpu->sm = there && major > 0 && major < 1000 && minor >= 0 && minor < 10 ? 10 * major + minor : 0;
	TRY(ASK(a, &there, nvmlDeviceGetMaxPcieLinkGeneration, a->handle, &generation));
	gpu->pcie_generation = there && generation <= 6 ? (int)generation : 0;
	TRY(ASK(a, &there, nvmlDeviceGetMaxPcieLinkWidth, a->handle, &width));
	gpu->pcie_width = there && width <= 32 ? (int)width : 0;
	TRY(ASK(a, &there, nvmlDeviceGetMigMode, a->handle, &mig, &pending));
	gpu->mig = there && mig == NV_DEVICE_MIG_ENABLE;
	return ask_numa(a);
}

static Status
ask_gpu(struct asking *a, int i)
{
	a->gpu = &a->gpus->gpu[i];
	a->gpu->number = i;
	snprintf(a->where, sizeof a->where, "GPU %d", i);
	TRY(WANT(a, nvmlDeviceGetHandleByIndex_v2, (unsigned)i, &a->handle));
	TRY(ask_names(a));
	TRY(ask_properties(a));
	TRY(a->gpu->mig ? OK : ask_links(a));
	return a->gpu->n_links ? ask_link_rate(a) : OK;
}

/* ---- the whole ---- */

static Status
check_addresses(Ctx *ctx, const SeenGpus *gpus)
{
	for (int i = 0; i < gpus->n; i++)
		for (int j = 0; j < i; j++)
			if (pci_same(gpus->gpu[i].pci, gpus->gpu[j].pci))
				return fail(ctx, BAD_INPUT, "GPU %d: its PCI address is that of GPU %d: want one "
				    "each", i, j);
	return OK;
}

/* Old drivers call a GPU at the other end a switch, like all that they do not know. */
static void
find_peers(SeenGpus *gpus)
{
	for (int i = 0; i < gpus->n; i++) {
		for (int l = 0; l < gpus->gpu[i].n_links; l++) {
			SeenLink *link = &gpus->gpu[i].link[l];
			for (int j = 0; j < gpus->n; j++)
				if (j != i && pci_same(link->remote, gpus->gpu[j].pci))
					link->gpu = j;
			if (link->gpu >= 0)
				link->end = END_GPU;
			else if (link->end == END_GPU)
				link->end = END_ABSENT;
		}
	}
}

int
gpu_links_to(const SeenGpu *gpu, int peer)
{
	int n = 0;
	for (int l = 0; l < gpu->n_links; l++)
		n += gpu->link[l].gpu == peer;
	return n;
}

static void
drop_link_to(SeenGpu *gpu, int peer)
{
	int l = gpu->n_links - 1;
	while (gpu->link[l].gpu != peer)
		l--;
	memmove(&gpu->link[l], &gpu->link[l + 1], (size_t)(--gpu->n_links - l) * sizeof *gpu->link);
	gpu->n_down++;
}

/* A link has two ends. */
static void
match_ends(SeenGpus *gpus)
{
	for (int i = 0; i < gpus->n; i++)
		for (int j = 0; j < gpus->n; j++)
			while (i != j && gpu_links_to(&gpus->gpu[i], j) > gpu_links_to(&gpus->gpu[j], i))
				drop_link_to(&gpus->gpu[i], j);
}

static Status
ask_all(struct asking *a)
{
	Ctx *ctx = a->ctx;
	SeenGpus *gpus = a->gpus;
	unsigned n = 0;
	bool there;
	TRY(ASK(a, &there, nvmlSystemGetDriverVersion, gpus->driver, sizeof gpus->driver));
	tidy(gpus->driver, sizeof gpus->driver, there);
	TRY(WANT(a, nvmlDeviceGetCount_v2, &n));
	if (n == 0)
		return fail(ctx, BAD_INPUT, "no GPU: NVIDIA's driver shows none to this process: want one at least");
	if (n > SEEN_GPUS_MOST)
		return fail(ctx, LIMIT, "%u GPUs: want at most %d", n, SEEN_GPUS_MOST);
	TRY(NEW(ctx, gpus->gpu, n));
	gpus->n = (int)n;
	for (int i = 0; i < gpus->n; i++)
		TRY(ask_gpu(a, i));
	TRY(check_addresses(ctx, gpus));
	find_peers(gpus);
	match_ends(gpus);
	return OK;
}

Status
gpus_see_nvml(Ctx *ctx, SeenGpus *out)
{
	SeenGpus *gpus;
	struct asking a = { .ctx = ctx };
	TRY(NEW(ctx, gpus, 1));
	a.gpus = gpus;
	TRY(nvml_open(ctx, &a.nvml));
	Status status = ask_all(&a);
	nvml_close(&a.nvml);
	if (status == OK)
		*out = *gpus;
	return status;
}

void
gpus_keep(SeenGpus *gpus, const int *gpu, int n)
{
	for (int i = 0; i < n; i++)
		gpus->gpu[i] = gpus->gpu[gpu[i]];
	gpus->n = n;
	for (int i = 0; i < n; i++) {
		for (int l = 0; l < gpus->gpu[i].n_links; l++) {
			SeenLink *link = &gpus->gpu[i].link[l];
			int at = 0;
			while (at < n && gpu[at] != link->gpu)
				at++;
			link->end = link->end == END_GPU && at == n ? END_ABSENT : link->end;
			link->gpu = at < n ? at : -1;
		}
	}
}
