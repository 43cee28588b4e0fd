/* The GPUs of a communicator: which rank is on which, and how data get from one to another.
 *
 * Each rank makes a region in memory of its GPU, into which all others write (device.h has what). For that their GPUs
 * have to reach it, and their processes need an address of it. Ranks open their regions in these steps, each of them an
 * exchange:
 *
 *	who	process, and PCI address of the GPU, by which a rank finds a peer's GPU among those that its own
 *		process sees, where it may have another number
 *	reach	whose GPU this rank's may reach (routes.h). A process that does not see a GPU cannot ask its driver:
 *		it tries
 *	offer	the region is there and zeroed: how to get it
 *	greet	the rank has the regions that it could get, and has written a greeting into each
 *	found	whose greetings have come. A pair is direct if those of both have: data go one way, and `done` the other
 *	host	where pairs are not direct: the region in memory of the host is there
 *
 * How a region gets to a peer:
 *
 *	the same process	its address serves as it is. The region has been made for the GPUs of all threads
 *				that may access it; or, where the driver has no VMM, cuCtxEnablePeerAccess lets one in,
 *				which stays: others in the process may have asked for it too
 *	another process		a descriptor (cuMemExportToShareableHandle) over the Unix socket of transport/shm.h,
 *				to who proves to be of the job. Without VMM: cuIpcGetMemHandle, and such a descriptor of
 *				the count of its users. Either way also memory of a GPU that CUDA_VISIBLE_DEVICES
 *				hides from this process
 *
 * Pairs that are not direct go through memory of the host: a second region with the same layout, a memfd that both
 * processes register with their drivers, so that both GPUs read and write it. It exists if some pair needs it, or if
 * the schedules that the user named may have parts over PCIe (hybrid): those do not cross NVLink, as was planned, while
 * the other parts do.
 *
 * Ranks on other servers have no part in any of this but the exchanges; relay.c has what they reach.
 *
 * A region is used after its rank has left: a reader sets `done` for what it has read last. So a region of VMM, and one
 * of the host, live until the last process has unmapped it, and in a process until the last thread has. */
#include "cuda/kernels.h"
#include "cuda/calls.h"
#include "cuda/multicast.h"
#include "cuda/regions.h"
#include "cuda/relay.h"
#include "cuda/routes.h"
#include "support/error.h"

#include "bootstrap/system.h"

#include <stdlib.h>
#include <string.h>

#define CHECK(g, call, err, ...) driver_check((g)->d, (g)->d->call, err, __VA_ARGS__)

/* ---- the own device ---- */

/* Element number `at` of a comma-separated list of numbers; -1: it has none, or what is no number. */
static int
number_in(const char *list, int at)
{
	int value = -1;
	for (; *list && at > 0; list++)
		at -= *list == ',';
	for (; at == 0 && *list >= '0' && *list <= '9' && value < 1 << 20; list++)
		value = 10 * (value < 0 ? 0 : value) + (*list - '0');
	return *list && *list != ',' ? -1 : value;
}

static int
mapped_device(const struct rank_state *self, int n_devices, struct blink_error *err)
{
	const char *map = self->settings.device_map;
	int local = local_index(self, self->rank), device = map ? number_in(map, local) : local % n_devices;
	if (device < 0 || device >= n_devices)
		set_error(err, blinkInvalidArgument, "BLINK_DEVICE_MAP: \"%.100s\": no device for rank %d of this "
		    "server: want a number from 0 to %d for each, separated by ','", map, local, n_devices - 1);
	return device;
}

static int
choose_device(struct gpu *g, struct blink_error *err)
{
	const struct gpu *parent = g->self->parent;
	CUcontext current = NULL;
	int n = 0, number;
	if (parent) {
		g->device = parent->device;
		return blinkSuccess;
	}
	if (CHECK(g, device_count(&n), err, "count devices") != blinkSuccess)
		return err->code;
	if (n == 0)
		return set_error(err, blinkSystemError, "cuda: there is no device");
	if (CHECK(g, context_get(&current), err, "the current context") != blinkSuccess)
		return err->code;
	if (current)
		return CHECK(g, context_device(&g->device), err, "the device of the current context");
	number = mapped_device(g->self, n, err);
	if (err->code != blinkSuccess)
		return err->code;
	return CHECK(g, device_get(&g->device, number), err, "device %d", number);
}

static int
attribute(struct gpu *g, CUdevice_attribute what, struct blink_error *err)
{
	int value = 0;
	CHECK(g, device_attribute(&value, what, g->device), err, "attribute %d of device %d", (int)what,
	    (int)g->device);
	return value;
}

static enum gpu_sharing
sharing_of(struct gpu *g, struct blink_error *err)
{
	const struct driver *d = g->d;
	bool functions = d->address_reserve && d->address_free && d->vmm_create && d->vmm_release && d->vmm_map
	    && d->vmm_unmap && d->vmm_access && d->vmm_granularity && d->vmm_export && d->vmm_import;
	return functions && attribute(g, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, err)
	    && attribute(g, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, err)
	    ? GPU_SHARING_VMM : GPU_SHARING_IPC;
}

/* Streams that wait for memory: since CUDA 11.7 all can, where the driver is not told otherwise. */
static enum gpu_copies
copies_of(struct gpu *g, struct blink_error *err)
{
	int wanted = g->self->settings.copy_engines;
	if (wanted < 0 || !g->d->stream_wait_value
	    || !attribute(g, CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, err))
		return GPU_COPIES_NONE;
	return wanted > 0 ? GPU_COPIES_ALL : GPU_COPIES_LONG;
}

static int
describe_own(struct gpu *g, struct gpu_who *out, struct blink_error *err)
{
	g->can_multicast = gpu_can_multicast(g);
	*out = (struct gpu_who){ .process = process_number(), .copies = copies_of(g, err),
	    .multicasts = g->can_multicast, .protocol = (int32_t)g->protocol };
	if (!attribute(g, CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, err))
		set_error(err, blinkSystemError, "cuda: device %d has no unified addressing", (int)g->device);
	out->sharing = sharing_of(g, err);
	if (attribute(g, CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES, err))
		g->flush = CU_STREAM_WAIT_VALUE_FLUSH;
	if (err->code == blinkSuccess)
		CHECK(g, device_pci_id(out->pci, GPU_PCI_BYTES, g->device), err, "PCI address of device %d",
		    (int)g->device);
	snprintf(g->self->device, sizeof g->self->device, "%.*s", GPU_PCI_BYTES, out->pci);
	return err->code;
}

/* ---- all of them ---- */

/* What all can do; and how many ranks share this one's GPU. Ranks of one GPU have no copies: their streams may have to
 * wait for one another, where a rank waits for what the other's does next. Nor have ranks of several servers: copies
 * leave no letters for the relay. Multicast objects take each GPU once, and of one server. */
static void
agree_on_sharing(struct gpu *g, const struct gpu_who *who)
{
	int rank = g->self->rank, n = g->self->n_ranks;
	g->copies = g->layout.n_local < n ? GPU_COPIES_NONE : GPU_COPIES_ALL;
	g->all_multicast = g->layout.n_local == n && n >= GPU_MULTICAST_RANKS;
	for (int i = 0; i < n; i++) {
		if (g->peer[i].local < 0)
			continue;
		g->regions->n_on_gpu += strncmp(who[i].pci, who[rank].pci, GPU_PCI_BYTES) == 0;
		if (who[i].sharing < (int)g->regions->sharing)
			g->regions->sharing = (enum gpu_sharing)who[i].sharing;
		if (who[i].copies < (int)g->copies)
			g->copies = (enum gpu_copies)who[i].copies;
		g->all_multicast = g->all_multicast && who[i].multicasts && who[i].sharing == GPU_SHARING_VMM;
		for (int k = 0; k < i; k++)
			if (strncmp(who[i].pci, who[k].pci, GPU_PCI_BYTES) == 0) {
				g->copies = GPU_COPIES_NONE;
				g->all_multicast = false;
			}
	}
}

/* Ranks that look for data at different places would wait for ever. */
static int
compare_protocols(const struct gpu *g, const struct gpu_who *who, struct blink_error *err)
{
	for (int i = 1; i < g->self->n_ranks; i++)
		if (who[i].protocol != who[0].protocol)
			return set_error(err, blinkMismatch, "BLINK_PROTOCOL: rank %d has another than rank 0: want "
			    "the same on all ranks", i);
	return blinkSuccess;
}

/* ---- open ---- */

/* The regions in memory of GPUs, and which pairs are direct. *host: some pair or rank needs memory of the host. */
static int
open_direct(struct gpu *g, const struct gpu_who *who, struct gpu_offer *all, bool *host, struct blink_error *err)
{
	struct gpu_offer mine = { .bytes = 0 };
	struct gpu_routes routes;
	if (gpu_routes_open(g, who, &routes, err) == blinkSuccess
	    && gpu_region_open(g, routes.device, routes.n_devices, &mine, err) == blinkSuccess
	    && gpu_state_open(g, err) == blinkSuccess && gpu_relay_open(g, err) == blinkSuccess
	    && gpu_gather(g, &mine, sizeof mine, all, err) == blinkSuccess
	    && gpu_regions_import(g, all, routes.reach, err) == blinkSuccess)
		gpu_routes_find(g, who, &routes, host, err);
	gpu_routes_close(&routes);
	return err->code;
}

static int
open_regions(struct gpu *g, const struct gpu_who *who, struct blink_error *err)
{
	struct gpu_offer mine = { .bytes = 0 }, *all = calloc((size_t)g->self->n_ranks, sizeof *all);
	bool host = false;
	if (!all)
		set_error_memory(err);
	else if (open_direct(g, who, all, &host, err) == blinkSuccess && host
	    && gpu_host_region_open(g, &mine, err) == blinkSuccess
	    && gpu_gather(g, &mine, sizeof mine, all, err) == blinkSuccess)
		gpu_host_regions_import(g, all, err);
	free(all);
	return err->code;
}

static int
meet(struct gpu *g, struct blink_error *err)
{
	struct gpu_who mine, *who = calloc((size_t)g->self->n_ranks, sizeof *who);
	if (!who)
		set_error_memory(err);
	else if (gpu_store_open(g, err) == blinkSuccess && describe_own(g, &mine, err) == blinkSuccess
	    && gpu_gather(g, &mine, sizeof mine, who, err) == blinkSuccess
	    && compare_protocols(g, who, err) == blinkSuccess) {
		agree_on_sharing(g, who);
		if (open_regions(g, who, err) == blinkSuccess)
			gpu_lines_find(g, who, err);
	}
	free(who);
	return err->code;
}

static int
find_protocol(const char *name, enum gpu_protocol *out, struct blink_error *err)
{
	static const char *const names[] = { [GPU_CHOSEN] = "", [GPU_PACKETS] = "packets", [GPU_LINES] = "lines",
	    [GPU_FLAGS_ALONE] = "flags" };
	for (int i = GPU_CHOSEN; i <= GPU_FLAGS_ALONE; i++)
		if (strcmp(name ? name : "", names[i]) == 0) {
			*out = (enum gpu_protocol)i;
			return blinkSuccess;
		}
	return set_error(err, blinkInvalidArgument, "BLINK_PROTOCOL: \"%.40s\": want packets, lines or flags", name);
}

int
gpu_new(struct rank_state *self, struct gpu **out, struct blink_error *err)
{
	size_t n = (size_t)self->n_ranks;
	int n_local = 0;
	if (!kernel_modules[0].name)
		return set_error(err, blinkSystemError, "backend cuda: libblink was built without kernels: want nvcc "
		    "or clang where it is built");
	if (n > GPU_RANKS)
		return set_error(err, blinkLimit, "backend cuda: %d ranks: want %d at most", self->n_ranks,
		    (int)GPU_RANKS);
	struct gpu *g = *out = calloc(1, sizeof *g);
	if (!g)
		return set_error_memory(err);
	g->self = self;
	g->threads = GPU_THREADS;
	if (find_protocol(self->settings.protocol, &g->protocol, err) != blinkSuccess)
		return err->code;
	g->peer = calloc(n, sizeof *g->peer);
	g->regions = calloc(1, sizeof *g->regions);
	if (g->regions)
		g->regions->import = calloc(n, sizeof *g->regions->import);
	if (!g->peer || !g->regions || !g->regions->import)
		return set_error_memory(err);
	g->regions->sharing = GPU_SHARING_VMM;
	for (size_t i = 0; i < n; i++)
		g->peer[i].local = self->server[i] == self->server[self->rank] ? n_local++ : -1;
	gpu_layout_of(n_local, (int)n, &g->layout);
	return blinkSuccess;
}

int
gpu_open(struct gpu *g, struct blink_error *err)
{
	struct gpu_entry entry;
	if (driver_open(&g->d, err) != blinkSuccess || choose_device(g, err) != blinkSuccess
	    || CHECK(g, primary_retain(&g->context, g->device), err, "the context of device %d", (int)g->device)
	    != blinkSuccess || gpu_enter(g, &entry, err) != blinkSuccess)
		return err->code;
	meet(g, err);
	gpu_leave(g, &entry);
	return err->code;
}

/* ---- blocks ---- */

/* Kernels of several communicators may be at work at once, in as many streams, and each waits for peers until all its
 * blocks are resident. Two that do not fit together would wait for each other, where another rank has begun with the
 * other one. So the communicators of a process take blocks of a device for as long as they are open. */
static pthread_mutex_t taken_lock = PTHREAD_MUTEX_INITIALIZER;
static int taken[GPU_DEVICES], n_taken[GPU_DEVICES];

static void
give_back_blocks(struct gpu *g, int keep)
{
	pthread_mutex_lock(&taken_lock);
	taken[g->device] -= g->taken - keep;
	n_taken[g->device] -= keep == 0 && g->taken > 0;
	g->taken = keep;
	pthread_mutex_unlock(&taken_lock);
}

/* held: blocks that the device holds at once. */
static int
take_blocks(struct gpu *g, int held, struct blink_error *err)
{
	int here = g->regions->n_on_gpu, asked = (int)g->self->settings.blocks, most = held / here;
	if (most < 1)
		return set_error(err, blinkLimit, "cuda: device %d: %d ranks: more than it holds blocks",
		    (int)g->device, here);
	pthread_mutex_lock(&taken_lock);
	int left = held - taken[g->device], quarter = left / 4 / here;
	int n = asked > 0 ? asked : quarter > 1 ? quarter : 1;
	n = n < most ? n : most;
	g->taken = n < left ? n : left;
	taken[g->device] += g->taken;
	n_taken[g->device] += g->taken > 0;
	n = n_taken[g->device];
	pthread_mutex_unlock(&taken_lock);
	if (g->taken < 1)
		set_error(err, blinkLimit, "cuda: device %d: %d communicators of this process have all its %d blocks: "
		    "want fewer, or fewer blocks of each (BLINK_BLOCKS)", (int)g->device, n, held);
	return err->code;
}

int
gpu_share_blocks(struct gpu *g, struct blink_error *err)
{
	int n = g->self->n_ranks, held = 0;
	int32_t mine = 0, *all = calloc((size_t)n, sizeof *all);
	struct gpu_entry entry;
	if (!all)
		return set_error_memory(err);
	if (gpu_enter(g, &entry, err) == blinkSuccess) {
		held = g->launches->resident * attribute(g, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, err);
		held = held < GPU_BLOCKS_MOST ? held : GPU_BLOCKS_MOST;
		gpu_leave(g, &entry);
	}
	if (err->code == blinkSuccess && take_blocks(g, held, err) == blinkSuccess) {
		mine = g->taken;
		gpu_gather(g, &mine, sizeof mine, all, err);
	}
	g->blocks = g->taken;
	for (int i = 0; i < n && err->code == blinkSuccess; i++)
		g->blocks = all[i] < g->blocks ? all[i] : g->blocks;
	if (g->blocks > 0)
		give_back_blocks(g, g->blocks);
	free(all);
	return err->code;
}

void
gpu_close(struct gpu *g, bool forked)
{
	struct gpu_entry entry;
	struct blink_error ignored = { 0 };
	bool entered = !forked && g->context && gpu_enter(g, &entry, &ignored) == blinkSuccess;
	if (g->taken > 0)
		give_back_blocks(g, 0);
	gpu_relay_close(g, !entered);
	gpu_multicast_close(g, !entered);
	if (g->regions)
		gpu_regions_close(g, !entered);
	if (!forked)
		gpu_store_close(g, entered);
	if (entered)
		gpu_leave(g, &entry);
	if (!forked && g->context)
		g->d->primary_release(g->device);
	free(g->peer);
	free(g->has_lines);
	free(g);
}
