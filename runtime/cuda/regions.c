/* Regions of a rank: its own, and what it imports of its peers'. */
#include "cuda/regions.h"
#include "support/debug.h"
#include "support/error.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHECK(g, call, err, ...) driver_check((g)->d, (g)->d->call, err, __VA_ARGS__)

/* ---- memory that a descriptor stands for ---- */

CUmemAllocationProp
gpu_memory_of(CUdevice device)
{
	return (CUmemAllocationProp){ .type = CU_MEM_ALLOCATION_TYPE_PINNED,
	    .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
	    .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device } };
}

void
gpu_unmap(const struct driver *d, CUdeviceptr at, size_t bytes)
{
	d->vmm_unmap(at, bytes);
	d->address_free(at, bytes);
}

int
gpu_map(struct gpu *g, CUmemGenericAllocationHandle handle, size_t bytes, const CUdevice *devices, int n,
    CUdeviceptr *out, struct blink_error *err)
{
	CUmemAccessDesc access[GPU_DEVICES];
	for (int i = 0; i < n; i++)
		access[i] = (CUmemAccessDesc){ .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = devices[i] },
		    .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
	if (CHECK(g, address_reserve(out, bytes, 0, 0, 0), err, "reserve %zu bytes of addresses", bytes)
	    != blinkSuccess)
		return err->code;
	if (CHECK(g, vmm_map(*out, bytes, 0, handle, 0), err, "map %zu bytes", bytes) != blinkSuccess) {
		g->d->address_free(*out, bytes);
		return err->code;
	}
	if (CHECK(g, vmm_access(*out, bytes, access, (size_t)n), err, "let %d devices access memory of device %d", n,
	    (int)devices[0]) != blinkSuccess)
		gpu_unmap(g->d, *out, bytes);
	return err->code;
}

/* The mapping keeps the memory. */
static int
create(struct gpu *g, size_t *bytes, const CUdevice *devices, int n, CUdeviceptr *out, int *fd,
    struct blink_error *err)
{
	const CUmemAllocationProp what = gpu_memory_of(g->device);
	CUmemGenericAllocationHandle handle;
	size_t grain = 0;
	if (CHECK(g, vmm_granularity(&grain, &what, CU_MEM_ALLOC_GRANULARITY_MINIMUM), err,
	    "granularity of memory on device %d", (int)g->device) != blinkSuccess)
		return err->code;
	*bytes = (*bytes + grain - 1) / grain * grain;
	if (CHECK(g, vmm_create(&handle, *bytes, &what, 0), err, "allocate %zu bytes on device %d", *bytes,
	    (int)g->device) != blinkSuccess)
		return err->code;
	if (CHECK(g, vmm_export(fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0), err,
	    "export memory of device %d", (int)g->device) == blinkSuccess
	    && gpu_map(g, handle, *bytes, devices, n, out, err) != blinkSuccess)
		close(*fd);
	g->d->vmm_release(handle);
	return err->code;
}

static int
import(struct gpu *g, int fd, size_t bytes, CUdeviceptr *out, int rank, struct blink_error *err)
{
	CUmemGenericAllocationHandle handle;
	if (CHECK(g, vmm_import(&handle, (void *)(uintptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR), err,
	    "import memory of rank %d", rank) != blinkSuccess)
		return err->code;
	gpu_map(g, handle, bytes, &g->device, 1, out, err);
	g->d->vmm_release(handle);
	return err->code;
}

/* ---- the own regions, which threads of this process share ---- */

/* A region outlives its rank while peers of this process still set flags in it; and without VMM, while those of other
 * processes do: then it is left, and freed when a region is opened or freed later and they have closed it. */
struct own_region {
	const struct driver *d;
	CUdevice device;
	CUcontext context;		/* retained once more */
	enum gpu_sharing sharing;
	CUdeviceptr memory;		/* of the GPU; 0: it is registered memory of the host */
	size_t bytes;
	void *host;
	struct gpu_users *users;	/* of IPC's; NULL: none */
	struct own_region *next;	/* that is left */
};

static pthread_mutex_t left_lock = PTHREAD_MUTEX_INITIALIZER;
static struct own_region *left;

static void
free_now(struct own_region *r)
{
	const struct driver *d = r->d;
	if (d->context_push(r->context) == CUDA_SUCCESS) {
		if (!r->memory)
			d->host_unregister(r->host);
		else if (r->sharing == GPU_SHARING_VMM)
			gpu_unmap(d, r->memory, r->bytes);
		else
			d->memory_free(r->memory);
		d->context_pop(&r->context);
	}
	if (r->users)
		munmap(r->users, sizeof *r->users);
	d->primary_release(r->device);
	free(r);
}

static void
free_left(void)
{
	struct own_region **at = &left, *r;
	pthread_mutex_lock(&left_lock);
	while ((r = *at)) {
		if (r->users->n > 0) {
			at = &r->next;
			continue;
		}
		*at = r->next;
		free_now(r);
	}
	pthread_mutex_unlock(&left_lock);
}

static void
free_region(void *of, bool forked)
{
	struct own_region *r = of;
	if (forked) {
		free(r);
		return;
	}
	if (!r->users) {
		free_now(r);
		return;
	}
	pthread_mutex_lock(&left_lock);
	r->next = left;
	left = r;
	pthread_mutex_unlock(&left_lock);
	free_left();
}

/* A page that nobody can cut short while it is mapped. */
static struct gpu_users *
map_users(int fd, struct blink_error *err)
{
	struct stat is;
	int seals = fcntl(fd, F_GET_SEALS);
	if (fstat(fd, &is) != 0 || is.st_size < (off_t)sizeof(struct gpu_users) || seals < 0
	    || !(seals & F_SEAL_SHRINK)) {
		set_error(err, blinkRemoteError, "the users of a region: no such memory");
		return NULL;
	}
	void *at = mmap(NULL, sizeof(struct gpu_users), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		set_error(err, blinkSystemError, "map the users of a region: %m");
	return at == MAP_FAILED ? NULL : at;
}

static int
open_users(struct own_region *r, int *fd, struct blink_error *err)
{
	*fd = memfd_create("blink-users", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (*fd < 0 || ftruncate(*fd, sizeof(struct gpu_users)) != 0
	    || fcntl(*fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
		return set_error(err, blinkSystemError, "memory for the users of a region: %m");
	r->users = map_users(*fd, err);
	return err->code;
}

static struct own_region *
new_region(struct gpu *g, struct blink_error *err)
{
	struct own_region *r = calloc(1, sizeof *r);
	if (!r)
		set_error_memory(err);
	else if (CHECK(g, primary_retain(&r->context, g->device), err, "the context of device %d", (int)g->device)
	    != blinkSuccess)
		free(r);
	if (err->code != blinkSuccess)
		return NULL;
	r->d = g->d;
	r->device = g->device;
	r->sharing = g->regions->sharing;
	return r;
}

int
gpu_zero(struct gpu *g, CUdeviceptr at, size_t bytes, struct blink_error *err)
{
	CUstream stream = g->stream;
	if (CHECK(g, set8_async(at, 0, bytes, stream), err, "clear memory of device %d", (int)g->device)
	    == blinkSuccess)
		CHECK(g, stream_synchronize(stream), err, "clear memory of device %d", (int)g->device);
	return err->code;
}

/* Rings are not read before they are written, but for the greeting at the begin of the first (routes.c); flags and
 * packets are. */
static int
zero_region(struct gpu *g, CUdeviceptr at, struct blink_error *err)
{
	const struct gpu_layout *l = &g->layout;
	for (int i = 0; i < l->n_local && err->code == blinkSuccess; i++)
		gpu_zero(g, at + (size_t)i * l->peer_bytes, l->rings_at + GPU_GREETING_BYTES, err);
	return err->code;
}

static int
allocate(struct gpu *g, struct own_region *r, const CUdevice *devices, int n, int *fd, struct gpu_offer *offer,
    struct blink_error *err)
{
	*fd = -1;
	r->bytes = g->layout.bytes;
	if (r->sharing == GPU_SHARING_VMM)
		return create(g, &r->bytes, devices, n, &r->memory, fd, err);
	if (CHECK(g, memory_alloc(&r->memory, r->bytes), err, "allocate %zu bytes on device %d", r->bytes,
	    (int)g->device) != blinkSuccess)
		return err->code;
	if (r->sharing == GPU_SHARING_IPC && CHECK(g, ipc_get(&offer->ipc, r->memory), err,
	    "share memory of device %d", (int)g->device) == blinkSuccess)
		open_users(r, fd, err);
	if (err->code != blinkSuccess) {
		g->d->memory_free(r->memory);
		if (*fd >= 0)
			close(*fd);
	}
	return err->code;
}

int
gpu_region_open(struct gpu *g, const CUdevice *devices, int n, struct gpu_offer *offer, struct blink_error *err)
{
	struct gpu_regions *regions = g->regions;
	struct shm **shm = &regions->shm[GPU_ROUTE_DIRECT];
	int fd;
	free_left();
	struct own_region *r = new_region(g, err);
	if (!r)
		return err->code;
	if (allocate(g, r, devices, n, &fd, offer, err) != blinkSuccess) {
		g->d->primary_release(r->device);
		free(r);
		return err->code;
	}
	if (shm_open_handle(fd, host_pointer(r->memory), &g->self->keys, offer->shm[GPU_ROUTE_DIRECT], shm, err)
	    != blinkSuccess) {
		if (fd >= 0)
			close(fd);
		free_region(r, false);
		return err->code;
	}
	shm_when_free(*shm, free_region, r);
	g->own[GPU_ROUTE_DIRECT] = host_pointer(r->memory);
	offer->bytes = r->bytes;
	return zero_region(g, r->memory, err);
}

static int
host_register(struct gpu *g, void *memory, size_t bytes, char **out, struct blink_error *err)
{
	CUdeviceptr seen = 0;
	if (CHECK(g, host_register(memory, bytes, CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP), err,
	    "register %zu bytes of the host", bytes) != blinkSuccess)
		return err->code;
	if (CHECK(g, host_device_pointer(&seen, memory, 0), err, "memory of the host, seen by device %d",
	    (int)g->device) != blinkSuccess)
		g->d->host_unregister(memory);
	*out = host_pointer(seen);
	return err->code;
}

int
gpu_host_region_open(struct gpu *g, struct gpu_offer *offer, struct blink_error *err)
{
	struct shm **shm = &g->regions->shm[GPU_ROUTE_HOST];
	if (shm_open_own(g->layout.bytes, &g->self->keys, offer->shm[GPU_ROUTE_HOST], shm, err) != blinkSuccess)
		return err->code;
	struct own_region *r = new_region(g, err);
	if (!r)
		return err->code;
	r->host = shm_memory(*shm);
	if (host_register(g, r->host, g->layout.bytes, &g->own[GPU_ROUTE_HOST], err) != blinkSuccess) {
		g->d->primary_release(r->device);
		free(r);
		return err->code;
	}
	shm_when_free(*shm, free_region, r);
	return err->code;
}

/* ---- regions of peers ---- */

/* In this process a pointer means the same to all; another GPU has to be let in, where memory is not VMM's. */
static int
use_thread_of_process(struct gpu *g, int rank, void *memory, struct blink_error *err)
{
	struct gpu_peer *peer = &g->peer[rank];
	CUcontext theirs;
	peer->region[GPU_ROUTE_DIRECT] = memory;
	if (peer->device == g->device || g->regions->sharing == GPU_SHARING_VMM)
		return blinkSuccess;
	if (CHECK(g, primary_retain(&theirs, peer->device), err, "the context of device %d", (int)peer->device)
	    != blinkSuccess)
		return err->code;
	CUresult r = g->d->peer_enable(theirs, 0);
	g->d->primary_release(peer->device);
	return r == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED ? blinkSuccess
	    : driver_check(g->d, r, err, "let device %d access device %d", (int)g->device, (int)peer->device);
}

static int
open_handle(struct gpu *g, int fd, const struct gpu_offer *offer, struct gpu_import *in, CUdeviceptr *out, int rank,
    struct blink_error *err)
{
	struct gpu_users *users = map_users(fd, err);
	if (!users)
		return err->code;
	if (CHECK(g, ipc_open(out, offer->ipc, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS), err, "map memory of rank %d", rank)
	    != blinkSuccess) {
		munmap(users, sizeof *users);
		return err->code;
	}
	users->n++;
	in->users = users;
	return blinkSuccess;
}

/* *fd: of its memory, or of its users; is closed, and -1 then. */
static int
take_region(struct gpu *g, int rank, int *fd, const struct gpu_offer *offer, struct blink_error *err)
{
	struct gpu_import *in = &g->regions->import[rank];
	CUdeviceptr memory = 0;
	if (g->regions->sharing == GPU_SHARING_VMM)
		import(g, *fd, offer->bytes, &memory, rank, err);
	else
		open_handle(g, *fd, offer, in, &memory, rank, err);
	close(*fd);
	*fd = -1;
	if (err->code != blinkSuccess)
		return err->code;
	in->memory = memory;
	in->bytes = offer->bytes;
	in->how = g->regions->sharing;
	g->peer[rank].region[GPU_ROUTE_DIRECT] = host_pointer(memory);
	return blinkSuccess;
}

/* The peers to exchange with; the number of them. */
static int
list_peers(const struct gpu *g, const struct gpu_offer *all, enum gpu_route route, const unsigned char *reach,
    struct shm_peer *out)
{
	int n = 0;
	for (int i = 0; i < g->self->n_ranks; i++) {
		if (i == g->self->rank || g->peer[i].local < 0
		    || (reach && reach[i] != GPU_REACH_DIRECT
		    && reach[i] != GPU_REACH_UNSEEN))
			continue;
		out[n].rank = i;
		out[n].fd = -1;
		memcpy(out[n++].address, all[i].shm[route], SHM_ADDRESS);
	}
	return n;
}

/* Memory of a GPU that this process does not see, if that can be. */
static unsigned char
try_region(struct gpu *g, int rank, int *fd, const struct gpu_offer *offer)
{
	struct blink_error why = { 0 };
	if (take_region(g, rank, fd, offer, &why) == blinkSuccess)
		return GPU_REACH_DIRECT;
	debug_say(DEBUG_INFO, g->self->rank, "%s", why.text);
	return GPU_REACH_UNMAPPED;
}

int
gpu_regions_import(struct gpu *g, const struct gpu_offer *all, unsigned char *reach, struct blink_error *err)
{
	const struct rank_state *self = g->self;
	struct shm_peer *peer = calloc((size_t)g->layout.n_local, sizeof *peer);
	struct shm *own = g->regions->shm[GPU_ROUTE_DIRECT];
	if (!peer)
		return set_error_memory(err);
	int n = list_peers(g, all, GPU_ROUTE_DIRECT, reach, peer);
	shm_exchange(own, self->rank, peer, n, g->self->deadline, &self->stop, err);
	for (int i = 0; i < n && err->code == blinkSuccess; i++) {
		if (peer[i].memory)
			use_thread_of_process(g, peer[i].rank, peer[i].memory, err);
		else if (reach[peer[i].rank] == GPU_REACH_UNSEEN)
			reach[peer[i].rank] = try_region(g, peer[i].rank, &peer[i].fd, &all[peer[i].rank]);
		else
			take_region(g, peer[i].rank, &peer[i].fd, &all[peer[i].rank], err);
	}
	for (int i = 0; i < n; i++)
		if (peer[i].fd >= 0)
			close(peer[i].fd);
	free(peer);
	return err->code;
}

/* Of another process's memory only the part is registered that this rank uses. */
static int
take_host_region(struct gpu *g, int rank, char *memory, struct blink_error *err)
{
	const struct gpu_layout *l = &g->layout;
	size_t at = (size_t)g->peer[g->self->rank].local * l->peer_bytes;
	char **out = &g->peer[rank].region[GPU_ROUTE_HOST];
	CUdeviceptr seen = 0;
	if (g->peer[rank].device >= 0) {
		CHECK(g, host_device_pointer(&seen, memory, 0), err, "memory of the host, seen by device %d",
		    (int)g->device);
		*out = host_pointer(seen);
		return err->code;
	}
	if (host_register(g, memory + at, l->peer_bytes, out, err) == blinkSuccess) {
		g->regions->import[rank].host = memory + at;
		*out -= at;
	}
	return err->code;
}

int
gpu_host_regions_import(struct gpu *g, const struct gpu_offer *all, struct blink_error *err)
{
	const struct rank_state *self = g->self;
	struct shm_peer *peer = calloc((size_t)g->layout.n_local, sizeof *peer);
	if (!peer)
		return set_error_memory(err);
	int n = list_peers(g, all, GPU_ROUTE_HOST, NULL, peer);
	for (int i = 0; i < n; i++)
		peer[i].least = g->layout.bytes;
	shm_exchange(g->regions->shm[GPU_ROUTE_HOST], self->rank, peer, n, g->self->deadline, &self->stop, err);
	for (int i = 0; i < n && err->code == blinkSuccess; i++)
		take_host_region(g, peer[i].rank, peer[i].memory, err);
	free(peer);
	return err->code;
}

/* ---- close ---- */

static void
forget_import(const struct driver *d, const struct gpu_import *in)
{
	if (in->host)
		d->host_unregister(in->host);
	if (in->memory && in->how == GPU_SHARING_VMM)
		gpu_unmap(d, in->memory, in->bytes);
	else if (in->memory)
		d->ipc_close(in->memory);
	if (in->users) {
		in->users->n--;
		munmap(in->users, sizeof *in->users);
	}
}

void
gpu_regions_close(struct gpu *g, bool forked)
{
	struct gpu_regions *r = g->regions;
	struct blink_error ignored = { 0 };
	for (int i = 0; i < g->self->n_ranks && r->import && !forked; i++)
		forget_import(g->d, &r->import[i]);
	for (int route = 0; route < 2; route++)
		shm_close(r->shm[route]);
	if (g->state && !forked)
		gpu_give(g, device_pointer(g->state), &ignored);
	if (g->status && !forked)
		gpu_give_host(g, g->status);
	free(r->import);
	free(r);
}
