#include "cuda/routes.h"
#include "probe/probe.h"
#include "support/debug.h"
#include "support/error.h"

#include <stdlib.h>
#include <string.h>

#define CHECK(g, call, err, ...) driver_check((g)->d, (g)->d->call, err, __VA_ARGS__)

enum { GREETING = GPU_GREETING_BYTES / 8 };

static bool
same_gpu(const struct gpu_who *a, const struct gpu_who *b)
{
	return strncmp(a->pci, b->pci, GPU_PCI_BYTES) == 0;
}

int
gpu_gather(struct gpu *g, const void *mine, size_t bytes, void *all, struct blink_error *err)
{
	return g->self->events.exchange(g->self->events.context, mine, bytes, all, g->self->deadline, err);
}

/* ---- what the driver says ---- */

/* The number here of the device at that address; -1: this process does not see it. */
static int
find_device(struct gpu *g, const char *pci, CUdevice *out, struct blink_error *err)
{
	int n = 0;
	char found[GPU_PCI_BYTES] = "";
	CHECK(g, device_count(&n), err, "count devices");
	for (int i = 0; i < n && err->code == blinkSuccess; i++) {
		if (CHECK(g, device_get(out, i), err, "device %d", i) == blinkSuccess
		    && CHECK(g, device_pci_id(found, GPU_PCI_BYTES, *out), err, "PCI address of device %d", i)
		    == blinkSuccess && strncmp(found, pci, GPU_PCI_BYTES) == 0)
			return i;
	}
	return -1;
}

static bool
can_access(struct gpu *g, CUdevice device, CUdevice peer, struct blink_error *err)
{
	int can = 0;
	if (device == peer)
		return true;
	CHECK(g, device_can_access(&can, device, peer), err, "access of device %d to device %d", (int)device,
	    (int)peer);
	return can;
}

/* In another process a GPU may be out of sight: its memory can be mapped all the same, since CUDA 10.1. */
static enum gpu_reach
reach_of(struct gpu *g, const struct gpu_who *mine, const struct gpu_who *peer, bool seen, CUdevice device,
    struct blink_error *err)
{
	if (!g->self->settings.p2p && !same_gpu(mine, peer))
		return GPU_REACH_OFF;
	if (!seen)
		return GPU_REACH_UNSEEN;
	return can_access(g, g->device, device, err) ? GPU_REACH_DIRECT : GPU_REACH_NONE;
}

static int
look_at_peers(struct gpu *g, const struct gpu_who *who, struct gpu_routes *routes, struct blink_error *err)
{
	int rank = g->self->rank, *n = &routes->n_devices;
	routes->device[(*n)++] = g->device;
	for (int i = 0; i < g->self->n_ranks && err->code == blinkSuccess; i++) {
		CUdevice device = -1;
		if (g->peer[i].local < 0)
			continue;
		bool seen = find_device(g, who[i].pci, &device, err) >= 0;
		bool here = seen && who[i].process == who[rank].process;
		routes->reach[i] = (unsigned char)reach_of(g, &who[rank], &who[i], seen, device, err);
		g->peer[i].device = here ? device : -1;
		int at = 0;
		while (at < *n && routes->device[at] != device)
			at++;
		if (here && at == *n && at < GPU_DEVICES && can_access(g, device, g->device, err))
			routes->device[(*n)++] = device;
	}
	return err->code;
}

/* ---- what all have ---- */

static size_t
row_bytes(const struct gpu *g)
{
	return (size_t)g->self->n_ranks + 1;
}

static enum gpu_reach
reach_from(const struct gpu *g, const struct gpu_routes *routes, int from, int to)
{
	return (enum gpu_reach)routes->all[(size_t)from * row_bytes(g) + (size_t)to];
}

/* The worse of both ways. */
static enum gpu_reach
reach_between(const struct gpu *g, const struct gpu_routes *routes, int a, int b)
{
	enum gpu_reach there = reach_from(g, routes, a, b), back = reach_from(g, routes, b, a);
	return there < back ? there : back;
}

static int
exchange(struct gpu *g, struct gpu_routes *routes, struct blink_error *err)
{
	return gpu_gather(g, routes->reach, row_bytes(g), routes->all, err);
}

int
gpu_routes_open(struct gpu *g, const struct gpu_who *who, struct gpu_routes *routes, struct blink_error *err)
{
	int n = g->self->n_ranks;
	*routes = (struct gpu_routes){ .reach = calloc(row_bytes(g), row_bytes(g)) };
	if (!routes->reach)
		return set_error_memory(err);
	routes->all = routes->reach + row_bytes(g);
	routes->reach[n] = g->self->events.has_routes(g->self->events.context);
	if (look_at_peers(g, who, routes, err) == blinkSuccess)
		exchange(g, routes, err);
	for (int i = 0; i < n && err->code == blinkSuccess; i++)
		if (reach_between(g, routes, g->self->rank, i) < GPU_REACH_UNSEEN
		    && routes->reach[i] >= GPU_REACH_UNSEEN)
			routes->reach[i] = (unsigned char)reach_from(g, routes, i, g->self->rank);
	return err->code;
}

void
gpu_routes_close(struct gpu_routes *routes)
{
	free(routes->reach);
}

/* ---- greetings ---- */

/* Where the machine has PCIe ACS or an IOMMU between two GPUs, a driver may say that they reach each other, and what is
 * written does not arrive. The greeting is in the first ring of the pair, which is written before it is read. */
static void
greeting_of(int from, int to, uint64_t out[GREETING])
{
	for (int i = 0; i < GREETING; i++)
		out[i] = UINT64_C(0x9e3779b97f4a7c15) * (uint64_t)(i + 1) ^ ((uint64_t)from << 32 | (uint64_t)to);
}

static char *
greeting_at(const struct gpu *g, int from, int to)
{
	struct gpu_pair pair;
	gpu_pair_of(g, from, to, GPU_ROUTE_DIRECT, &pair);
	return pair.ring[0];
}

/* From memory of the own GPU, as kernels and copy engines do. */
static int
greet(struct gpu *g, int peer, struct blink_error *err)
{
	uint64_t text[GREETING];
	char *own = greeting_at(g, g->self->rank, g->self->rank);
	greeting_of(g->self->rank, peer, text);
	return gpu_copy(g, own, text, sizeof text, err) == blinkSuccess
	    ? gpu_copy(g, greeting_at(g, g->self->rank, peer), own, sizeof text, err) : err->code;
}

static bool
greeted(struct gpu *g, int peer, struct blink_error *err)
{
	uint64_t text[GREETING], found[GREETING] = { 0 };
	greeting_of(peer, g->self->rank, text);
	return gpu_copy(g, found, greeting_at(g, peer, g->self->rank), sizeof found, err) == blinkSuccess
	    && memcmp(found, text, sizeof text) == 0;
}

/* ---- what is left to the host ---- */

static const char *const reasons[] = {
	[GPU_REACH_NONE] = "the driver gives them no access to each other",
	[GPU_REACH_OFF] = "BLINK_P2P=0",
	[GPU_REACH_UNSEEN] = "one does not see the other",
	[GPU_REACH_UNMAPPED] = "one does not see the other (CUDA_VISIBLE_DEVICES), and cannot map its memory",
	[GPU_REACH_LOST] = "what one writes to the other does not arrive: PCIe ACS or an IOMMU is in the way",
};

static const char blind[] = "; built-in schedules use all pairs, those of blinkc the links that are there "
    "(BLINK_SCHEDULES)";

/* By one rank of each server: the first pair of each reason, and how many there are. */
static void
warn(const struct gpu *g, const struct gpu_who *who, const struct gpu_routes *routes)
{
	for (enum gpu_reach why = GPU_REACH_NONE; why < GPU_REACH_DIRECT; why++) {
		int n = 0, a = 0, b = 0;
		for (int i = 0; i < g->self->n_ranks; i++) {
			for (int k = 0; k < i; k++) {
				if (g->peer[i].local < 0 || g->peer[k].local < 0
				    || reach_between(g, routes, k, i) != why || n++ > 0)
					continue;
				a = k;
				b = i;
			}
		}
		if (n > 0)
			debug_say(DEBUG_WARN, g->self->rank, "cuda: %d pair%s of GPUs through memory of the host, as "
			    "ranks %d (%.*s) and %d (%.*s): %s%s", n, n > 1 ? "s" : "", a, GPU_PCI_BYTES, who[a].pci, b,
			    GPU_PCI_BYTES, who[b].pci, reasons[why], g->self->settings.schedules ? "" : blind);
	}
}

/* ---- what is found ---- */

/* DIRECT: this rank has the peer's memory, and the peer this one's. */
static bool
has_memory(const struct gpu *g, const struct gpu_routes *routes, int peer)
{
	return peer != g->self->rank && g->peer[peer].local >= 0
	    && reach_between(g, routes, g->self->rank, peer) == GPU_REACH_DIRECT;
}

/* May a pair have lines, and who has to be asked? */
enum { LINES_NO, LINES_YES, LINES_UNSEEN };

/* Does NVLink connect them? It alone has atomic operations of its own. */
static unsigned char
lines_to(struct gpu *g, const struct gpu_who *mine, const struct gpu_who *peer, struct blink_error *err)
{
	CUdevice device = -1;
	int atomics = 0;
	if (same_gpu(mine, peer))
		return LINES_YES;
	if (find_device(g, peer->pci, &device, err) < 0)
		return LINES_UNSEEN;
	return g->d->device_p2p(&atomics, CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED, g->device, device)
	    == CUDA_SUCCESS && atomics ? LINES_YES : LINES_NO;
}

/* Of those that this process does not see (CUDA_VISIBLE_DEVICES): NVML shows them all the same. */
static int
ask_unseen(struct gpu *g, const struct gpu_who *who, unsigned char *mine, struct blink_error *err)
{
	size_t n = 0, ranks = (size_t)g->self->n_ranks;
	if (!memchr(mine, LINES_UNSEEN, ranks))
		return err->code;
	char (*address)[GPU_PCI_BYTES + 1] = calloc(ranks, sizeof *address);
	const char **peer = calloc(ranks, sizeof *peer);
	bool *joined = calloc(ranks, sizeof *joined);
	Ctx *ctx = calloc(1, sizeof *ctx);
	if (!address || !peer || !joined || !ctx) {
		set_error_memory(err);
	} else {
		ctx_init(ctx);
		for (size_t i = 0; i < ranks; i++)
			if (mine[i] == LINES_UNSEEN)
				peer[n++] = memcpy(address[i], who[i].pci, GPU_PCI_BYTES);
		if (n > 0 && probe_joined(ctx, g->self->device, peer, (int)n, joined) != OK)
			debug_say(DEBUG_INFO, g->self->rank, "cuda: no lines to GPUs out of sight: %s",
			    ctx->error.text);
		for (size_t i = 0, k = 0; i < ranks; i++)
			if (mine[i] == LINES_UNSEEN)
				mine[i] = joined[k++] ? LINES_YES : LINES_NO;
		ctx_free(ctx);
	}
	free(ctx);
	free(joined);
	free(peer);
	free(address);
	return err->code;
}

/* False: no call of this communicator goes by lines. */
static bool
wants_lines(struct gpu *g, struct blink_error *err)
{
	enum { CAPABILITY = 7 };
	int capability = 0;
	if (g->layout.line_bytes == 0 || g->protocol == GPU_PACKETS || g->protocol == GPU_FLAGS_ALONE)
		return false;
	CHECK(g, device_attribute(&capability, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, g->device), err,
	    "the capability of device %d", (int)g->device);
	return capability >= CAPABILITY;
}

int
gpu_lines_find(struct gpu *g, const struct gpu_who *who, struct blink_error *err)
{
	int n = g->self->n_ranks, rank = g->self->rank;
	unsigned char *mine = calloc((size_t)n, 1);
	g->has_lines = calloc((size_t)n, (size_t)n);
	if (!mine || !g->has_lines)
		set_error_memory(err);
	else if (wants_lines(g, err))
		for (int i = 0; i < n && err->code == blinkSuccess; i++)
			mine[i] = i != rank && g->peer[i].direct ? lines_to(g, &who[rank], &who[i], err) : LINES_NO;
	if (err->code == blinkSuccess && ask_unseen(g, who, mine, err) == blinkSuccess)
		gpu_gather(g, mine, (size_t)n, g->has_lines, err);
	free(mine);
	return err->code;
}

int
gpu_routes_find(struct gpu *g, const struct gpu_who *who, struct gpu_routes *routes, bool *host,
    struct blink_error *err)
{
	int n = g->self->n_ranks, rank = g->self->rank;
	for (int i = 0; i < n && err->code == blinkSuccess; i++)
		if (i != rank && g->peer[i].local >= 0 && routes->reach[i] == GPU_REACH_DIRECT)
			greet(g, i, err);
	if (err->code != blinkSuccess || exchange(g, routes, err) != blinkSuccess)
		return err->code;
	for (int i = 0; i < n && err->code == blinkSuccess; i++)
		if (has_memory(g, routes, i) && !greeted(g, i, err))
			routes->reach[i] = GPU_REACH_LOST;
	if (err->code != blinkSuccess || exchange(g, routes, err) != blinkSuccess)
		return err->code;
	for (int i = 0; i < n; i++) {
		g->peer[i].direct = g->peer[i].local >= 0 && (i == rank || has_memory(g, routes, i));
		*host = *host || routes->all[(size_t)i * row_bytes(g) + (size_t)n];
		for (int k = 0; k < i; k++)
			*host = *host || (g->self->server[k] == g->self->server[i]
			    && reach_between(g, routes, i, k) != GPU_REACH_DIRECT);
	}
	if (g->peer[rank].local == 0)
		warn(g, who, routes);
	return err->code;
}
