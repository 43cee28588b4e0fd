/* Links that are assumed, of the number that a GPU of the model has:
 *
 *   every two GPUs of a group are joined, 2 to 4 of them, and the number is divisible	as many to each
 *   every two are joined, otherwise							all to a switch
 *   some are not; two for the faster pairs and one for the others makes the number	so
 *   some are not, otherwise								one for each pair */
#include "format/nvml/driver.h"
#include "base/printable.h"
#include "format/gpu_models.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct asking {
	Ctx *ctx;
	void *handle;
#define X(name, arguments) int (*name) arguments;
	CUDA_FUNCTION_LIST(X)
#undef X
	SeenGpus *gpus;
	int *device;			/* of each GPU */
	int *rank;			/* n * n: of a pair that is joined, less is faster; -1: it is not */
};

/* ---- calls ---- */

static Status
want(struct asking *a, const char *function, int result)
{
	char words[160] = "";
	const char *text = NULL;
	if (result == BY_CUDA_SUCCESS)
		return OK;
	if (result == BY_CUDA_ERROR_NO_DEVICE)
		return fail(a->ctx, BAD_INPUT, "no GPU: the CUDA driver shows none to this process: want one at least");
	if (a->cuGetErrorString(result, &text) == BY_CUDA_SUCCESS && text)
		snprintf(words, sizeof words, ": %.150s", text);
	make_printable(words);
	return fail(a->ctx, IO, CUDA_SONAME ": %s: error %d%s", function, result, words);
}
#define WANT(a, function, ...) want(a, #function, (a)->function(__VA_ARGS__))

static Status
find_functions(struct asking *a)
{
#define X(name, arguments)                                                                                             \
	*(void **)&a->name = dlsym(a->handle, #name);                                                                  \
	if (!a->name)                                                                                                  \
		return fail(a->ctx, IO, CUDA_SONAME " has no " #name ": want a driver of CUDA 11 or later");
	CUDA_FUNCTION_LIST(X)
#undef X
	return OK;
}

/* ---- GPUs ---- */

static Status
ask_gpu(struct asking *a, int i)
{
	SeenGpu *gpu = &a->gpus->gpu[i];
	int domain = 0, bus = 0, slot = 0, major = 0, minor = 0, device = 0;
	TRY(WANT(a, cuDeviceGet, &device, i));
	TRY(WANT(a, cuDeviceGetName, gpu->name, sizeof gpu->name, device));
	gpu->name[sizeof gpu->name - 1] = 0;
	make_printable(gpu->name);
	TRY(WANT(a, cuDeviceGetAttribute, &domain, BY_CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, device));
	TRY(WANT(a, cuDeviceGetAttribute, &bus, BY_CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, device));
	TRY(WANT(a, cuDeviceGetAttribute, &slot, BY_CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, device));
	TRY(WANT(a, cuDeviceGetAttribute, &major, BY_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device));
	TRY(WANT(a, cuDeviceGetAttribute, &minor, BY_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device));
	gpu->pci = (PciAddress){ (unsigned)domain, (unsigned)bus & 255, (unsigned)slot & 31 };
	gpu->sm = major > 0 && major < 1000 && minor >= 0 && minor < 10 ? 10 * major + minor : 0;
	gpu->numa = -1;
	/* Its device, until they are in order. */
	gpu->number = device;
	return OK;
}

static int
by_address(const void *x, const void *y)
{
	const PciAddress *a = &((const SeenGpu *)x)->pci, *b = &((const SeenGpu *)y)->pci;
	const unsigned key[][2] = { { a->domain, b->domain }, { a->bus, b->bus }, { a->device, b->device } };
	for (size_t i = 0; i < sizeof key / sizeof *key; i++)
		if (key[i][0] != key[i][1])
			return key[i][0] < key[i][1] ? -1 : 1;
	return 0;
}

static Status
ask_gpus(struct asking *a)
{
	SeenGpus *gpus = a->gpus;
	int version = 0, n = 0;
	TRY(WANT(a, cuInit, 0));
	TRY(WANT(a, cuDriverGetVersion, &version));
	snprintf(gpus->driver, sizeof gpus->driver, "of CUDA %d.%d", version / 1000, version % 1000 / 10);
	TRY(WANT(a, cuDeviceGetCount, &n));
	if (n <= 0)
		return want(a, "cuDeviceGetCount", BY_CUDA_ERROR_NO_DEVICE);
	if (n > SEEN_GPUS_MOST)
		return fail(a->ctx, LIMIT, "%d GPUs: want at most %d", n, SEEN_GPUS_MOST);
	TRY(NEW(a->ctx, gpus->gpu, n));
	TRY(TEMP(a->ctx, a->device, n));
	for (int i = 0; i < n; i++)
		TRY(ask_gpu(a, i));
	qsort(gpus->gpu, (size_t)n, sizeof *gpus->gpu, by_address);
	for (int i = 0; i < n; i++) {
		a->device[i] = gpus->gpu[i].number;
		gpus->gpu[i].number = i;
	}
	gpus->n = n;
	gpus->assumed = true;
	return OK;
}

/* ---- links ---- */

static Status
ask_pair(struct asking *a, int i, int j)
{
	int can = 0, atomics = 0, *rank = &a->rank[i * a->gpus->n + j];
	*rank = -1;
	if (i == j)
		return OK;
	TRY(WANT(a, cuDeviceCanAccessPeer, &can, a->device[i], a->device[j]));
	if (!can)
		return OK;
	TRY(WANT(a, cuDeviceGetP2PAttribute, &atomics, BY_CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED,
	    a->device[i], a->device[j]));
	if (!atomics)
		return OK;
	TRY(WANT(a, cuDeviceGetP2PAttribute, rank, BY_CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK, a->device[i],
	    a->device[j]));
	*rank = *rank < 0 ? 0 : *rank;
	return OK;
}

/* A pair is joined if both say so. */
static Status
ask_pairs(struct asking *a)
{
	int n = a->gpus->n;
	TRY(TEMP(a->ctx, a->rank, n * n));
	for (int i = 0; i < n; i++)
		for (int j = 0; j < n; j++)
			TRY(ask_pair(a, i, j));
	for (int i = 0; i < n; i++)
		for (int j = 0; j < n; j++)
			if (a->rank[j * n + i] < 0)
				a->rank[i * n + j] = -1;
	return OK;
}

static bool
is_joined(const struct asking *a, int i, int j)
{
	return a->rank[i * a->gpus->n + j] >= 0;
}

static int
count_peers(const struct asking *a, int i)
{
	int n = 0;
	for (int j = 0; j < a->gpus->n; j++)
		n += is_joined(a, i, j);
	return n;
}

/* Are all peers of GPU i joined with each other, too, and with nobody else? */
static bool
is_group(const struct asking *a, int i)
{
	for (int j = 0; j < a->gpus->n; j++) {
		if (!is_joined(a, i, j))
			continue;
		for (int k = 0; k < a->gpus->n; k++)
			if (k != i && k != j && is_joined(a, i, k) != is_joined(a, j, k))
				return false;
	}
	return true;
}

static int
least_rank(const struct asking *a)
{
	int least = -1;
	for (int i = 0; i < a->gpus->n * a->gpus->n; i++)
		if (a->rank[i] >= 0 && (least < 0 || a->rank[i] < least))
			least = a->rank[i];
	return least;
}

/* Two for the faster pairs, and one for the others. */
static int
by_rank(const struct asking *a, int i, int j, int least)
{
	return !is_joined(a, i, j) ? 0 : a->rank[i * a->gpus->n + j] == least ? 2 : 1;
}

static bool
ranks_count(const struct asking *a, int links)
{
	int least = least_rank(a);
	for (int i = 0; i < a->gpus->n; i++) {
		int sum = 0;
		for (int j = 0; j < a->gpus->n; j++)
			sum += by_rank(a, i, j, least);
		if (sum > 0 && sum != links)
			return false;
	}
	return true;
}

static void
add_links(SeenGpus *gpus, int i, LinkEnd end, int peer, int n)
{
	SeenGpu *gpu = &gpus->gpu[i];
	for (int l = 0; l < n && gpu->n_links < NV_NVLINK_MAX_LINKS; l++)
		gpu->link[gpu->n_links++] = (SeenLink){ .end = end, .gpu = peer,
			.remote = peer >= 0 ? gpus->gpu[peer].pci : (PciAddress){ .domain = 0 } };
}

static void
assume_links(struct asking *a, int i, int links, bool counted)
{
	SeenGpus *gpus = a->gpus;
	int peers = count_peers(a, i), least = least_rank(a);
	bool group = is_group(a, i), direct = peers <= 3 && peers > 0 && links % peers == 0;
	if (peers > 0 && group && !direct) {
		add_links(gpus, i, END_SWITCH, -1, links);
		return;
	}
	for (int j = 0; j < gpus->n; j++)
		if (is_joined(a, i, j))
			add_links(gpus, i, END_GPU, j, group ? links / peers : counted ? by_rank(a, i, j, least) : 1);
}

/* Of the model of the first GPU; without one: no links. */
static void
assume_all(struct asking *a)
{
	const SeenGpu *first = &a->gpus->gpu[0];
	const GpuModel *model = gpu_model_find(first->name);
	model = model ? model : gpu_model_of_sm(first->sm);
	if (!model || model->class != LINK_NVLINK || model->rate == 0)
		return;
	bool counted = ranks_count(a, model->links);
	for (int i = 0; i < a->gpus->n; i++)
		assume_links(a, i, model->links, counted);
}

Status
gpus_see_driver(Ctx *ctx, SeenGpus *out)
{
	SeenGpus *gpus;
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct asking a = { .ctx = ctx, .handle = dlopen(CUDA_SONAME, RTLD_NOW | RTLD_LOCAL) };
	if (!a.handle)
		return fail(ctx, IO, CUDA_SONAME ": not found: want NVIDIA's driver");
	TRY(NEW(ctx, gpus, 1));
	a.gpus = gpus;
	Status status = find_functions(&a);
	if (status == OK)
		status = ask_gpus(&a);
	if (status == OK)
		status = ask_pairs(&a);
	if (status == OK)
		assume_all(&a);
	arena_release(&ctx->scratch, mark);
	/* The driver is not made to be unloaded. */
	if (status == OK)
		*out = *gpus;
	return status;
}
