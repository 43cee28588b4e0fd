/* Memory of ranks on virtual GPUs (tests/virtual_gpu): what peers see of it, by every route, as threads and as
 * processes; what each rank is given; and every call of the driver failing once. Prints TAP. Each case is a process,
 * since the virtual driver reads its environment once: this program starts itself, with the name of the case. */
#include "comm/comm.h"
#include "cuda/gpu.h"
#include "cuda/kernels.h"
#include "cuda/regions.h"
#include "support/error.h"
#include "quick.h"
#include "tap.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 8, SECONDS = 60 };

/* In place of the library's: nothing here is launched. The code is for GPUs of capability 7.0, as those of the virtual
 * driver are where no topology says more. */
static char ptx[] = ".version 6.0 .target sm_60 .entry blink_move() { } .entry blink_messages() { } "
    ".entry blink_copies_begin() { } .entry blink_copies_end() { } .entry blink_measure() { }";
static const uint32_t cubins[] = { 0xba55ed50, 0x00100001, 64, 0, 0x01010002, 64, 0, 0, 0, 0, 0, 70, 0, 0, 0, 0, 0, 0,
    0, 0 };
const struct kernel_module kernel_modules[] = {
	{ "move", ptx, NULL, cubins },
	{ .name = NULL }
};
const char *const kernel_multicast = NULL;

/* ---- a case, in its own process ---- */

struct rank {
	int number, n;
	const blinkUniqueId_t *id;
	blinkComm_t comm;
	blinkResult_t result;
	blinkError_t error;
	const char *backend, *wrong;	/* why the rank is not content; NULL: it is */
	bool (*play)(struct rank *);
	pthread_t thread;
};

#define WANT(r, condition)                                                     \
	do {                                                                   \
		if (!(condition))                                              \
			return (r)->wrong = #condition, false;                 \
	} while (0)

static struct gpu *
gpu_of(const struct rank *r)
{
	return r->comm->rank->of_backend;
}

static bool
meet(struct rank *r)
{
	struct blink_error err = { 0 };
	struct rank_comm *comm = r->comm->rank;
	char mine = 0, all[MOST];
	return bootstrap_allgather(comm->bootstrap, &mine, 1, all, rank_comm_deadline(comm), &err) == blinkSuccess;
}

static void
init(struct rank *r)
{
	const blinkConfig_t config = { .timeoutMs = SECONDS * 1000 / 2, .backend = r->backend };
	r->result = blinkCommInitRank(&r->comm, r->n, r->id, r->number, &config, &r->error);
}

static _Atomic int *n_left;		/* ranks that have destroyed their communicator; shared by processes */

static void *
run(void *rank)
{
	struct rank *r = rank;
	init(r);
	if (r->result != blinkSuccess)
		return NULL;
	if (r->play && !r->play(r) && !r->wrong)
		r->wrong = "play";
	blinkCommDestroy(r->comm);
	++*n_left;
	return NULL;
}

static void
make_id(blinkUniqueId_t *id)
{
	blinkError_t error = { "" };
	if (blinkGetUniqueId(id, &error) != blinkSuccess) {
		printf("# %s\n", error.text);
		exit(1);
	}
}

static bool
content(const struct rank *r)
{
	if (r->result != blinkSuccess)
		printf("# rank %d: %d %s\n", r->number, (int)r->result, r->error.text);
	else if (r->wrong)
		printf("# rank %d: not so: %s\n", r->number, r->wrong);
	return r->result == blinkSuccess && !r->wrong;
}

static bool ipc(struct rank *r);
static void without_vmm(void);

static void
as_threads(struct rank *r, int n, bool (*play)(struct rank *))
{
	static blinkUniqueId_t id;
	make_id(&id);
	for (int i = 0; i < n; i++) {
		r[i] = (struct rank){ .number = i, .n = n, .id = &id, .play = play, .backend = "cuda" };
		if (pthread_create(&r[i].thread, NULL, run, &r[i]))
			abort();
	}
	for (int i = 0; i < n; i++)
		pthread_join(r[i].thread, NULL);
}

static bool
threads_play(int n, bool (*play)(struct rank *))
{
	struct rank r[MOST];
	bool good = true;
	as_threads(r, n, play);
	for (int i = 0; i < n; i++)
		good = content(&r[i]) && good;
	return good;
}

static bool ipc(struct rank *r);
static bool on_servers(struct rank *r);
static void without_vmm(void);

static bool sees_own_gpu, lacks_vmm, stays;	/* of processes; until all have left */

/* A child that waits for the id, which its parent makes when it has forked all: before, it has no thread. 0: the
 * child, which has the id; its deadline is set. */
static pid_t
fork_rank(int to_child[2], blinkUniqueId_t *id)
{
	if (pipe(to_child) != 0)
		abort();
	fflush(stdout);
	pid_t child = fork();
	if (child == 0) {
		alarm(SECONDS);
		if (read(to_child[0], id, sizeof *id) != (ssize_t)sizeof *id)
			_exit(1);
	}
	return child;
}

static bool
ends_well(pid_t child)
{
	int status;
	return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

/* This process is no rank, and knows nothing of GPUs. */
static bool
processes_play(int n, bool (*play)(struct rank *))
{
	blinkUniqueId_t id;
	pid_t child[MOST];
	int to_child[MOST][2];
	bool good = true;
	for (int i = 0; i < n; i++) {
		child[i] = fork_rank(to_child[i], &id);
		if (child[i] == 0) {
			struct rank r = { .number = i, .n = n, .id = &id, .play = play, .backend = "cuda" };
			if (sees_own_gpu) {
				char number[16];
				snprintf(number, sizeof number, "%d", i);
				setenv("CUDA_VISIBLE_DEVICES", number, 1);
			}
			if (play == ipc || lacks_vmm)
				without_vmm();
			if (play == on_servers)
				setenv("BLINK_HOST_ID", i < 2 ? "one" : "another", 1);
			run(&r);
			int failed = !content(&r);
			fflush(stdout);
			while (stays && !failed && *n_left < n)
				nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
			_exit(failed);
		}
	}
	make_id(&id);
	for (int i = 0; i < n; i++)
		good = write(to_child[i][1], &id, sizeof id) == (ssize_t)sizeof id && good;
	for (int i = 0; i < n; i++)
		good = ends_well(child[i]) && good;
	return good;
}

/* ---- regions ---- */

/* Places of a pair: those in the reader's memory, which the publisher writes, and those in the publisher's. */
enum { IN_READER = 12, IN_PUBLISHER = 4, PLACES = IN_READER + IN_PUBLISHER };

static void
places_of(const struct gpu *g, int publisher, int reader, enum gpu_route route, void *place[PLACES])
{
	const struct gpu_layout *l = &g->layout;
	struct gpu_pair p;
	struct gpu_channels c;
	gpu_pair_of(g, publisher, reader, route, &p);
	gpu_channels_of(g, publisher, reader, route, &c);
	void *const all[PLACES] = { &p.ready[0].value, &p.ready[GPU_FLAGS - 1].signature[1], p.packets[0],
	    p.packets[0] + l->packet_bytes - 8, p.packets[1], p.ring[0], p.ring[1], p.ring[1] + l->ring_bytes - 8,
	    &c.in[0].ready.value, &c.in[GPU_CHANNELS - 1].bytes[1], c.slots,
	    c.slots + (size_t)l->channels * l->channel_bytes - 8, &p.done[0], &p.done[GPU_FLAGS - 1], c.done,
	    (char *)c.done + (GPU_CHANNELS - 1) * sizeof(struct gpu_channel) };
	memcpy(place, all, sizeof all);
}

static uint64_t
number_of(int publisher, int reader, enum gpu_route route, int place)
{
	int pair = (publisher * MOST + reader) * 2 + (int)route;
	return UINT64_C(0x1234567800000000) + (uint64_t)(pair * PLACES + place);
}

/* Everyone waits on memory of its own. */
static bool
is_at_owner(const struct rank *r, int owner, enum gpu_route route, const void *place)
{
	const struct gpu *g = gpu_of(r);
	const char *own = g->own[route];
	bool here = (const char *)place >= own && (const char *)place < own + g->layout.bytes;
	return here == (owner == r->number);
}

/* Write what belongs to the other of a pair, or compare what the other has written here. */
static bool
move_pair(struct rank *r, int publisher, int reader, enum gpu_route route, bool writes)
{
	struct gpu *g = gpu_of(r);
	struct blink_error err = { 0 };
	void *place[PLACES];
	places_of(g, publisher, reader, route, place);
	for (int i = 0; i < PLACES; i++) {
		int owner = i < IN_READER ? reader : publisher, writer = i < IN_READER ? publisher : reader;
		uint64_t number = number_of(publisher, reader, route, i), found = 1;
		if (!is_at_owner(r, owner, route, place[i]))
			return printf("# rank %d: place %d is not at rank %d\n", r->number, i, owner), false;
		if ((writes ? writer : owner) != r->number)
			continue;
		if (writes ? gpu_copy(g, place[i], &number, 8, &err) : gpu_copy(g, &found, place[i], 8, &err)) {
			printf("# rank %d: %s\n", r->number, err.text);
			return false;
		}
		if (!writes && found != number) {
			printf("# rank %d: %d to %d, route %d, place %d: %llx\n", r->number, publisher, reader,
			    (int)route, i, (unsigned long long)found);
			return false;
		}
	}
	return true;
}

static bool
has_route(const struct gpu *g, int a, int b, enum gpu_route route)
{
	int rank = g->self->rank, other = a == rank ? b : a;
	return other == rank ? g->own[route] != NULL : g->peer[other].region[route] != NULL;
}

static bool
move_all(struct rank *r, bool writes)
{
	struct gpu *g = gpu_of(r);
	bool good = true;
	for (int peer = 0; peer < r->n; peer++)
		for (enum gpu_route route = GPU_ROUTE_DIRECT; route <= GPU_ROUTE_HOST; route++)
			if (has_route(g, r->number, peer, route))
				good = good && move_pair(r, r->number, peer, route, writes)
				    && (peer == r->number || move_pair(r, peer, r->number, route, writes));
	return good;
}

/* Flags and packets of all peers are 0 at first: the first and the last of what is cleared. */
static bool
is_clear(struct rank *r)
{
	struct blink_error err = { 0 };
	void *place[PLACES];
	bool clear = true;
	for (int peer = 0; peer < r->n; peer++) {
		places_of(gpu_of(r), peer, r->number, GPU_ROUTE_DIRECT, place);
		for (int i = 0; i < 5; i++) {
			uint64_t found = 1;
			clear = gpu_copy(gpu_of(r), &found, place[i], 8, &err) == blinkSuccess && found == 0 && clear;
		}
	}
	return clear;
}

static bool
regions(struct rank *r)
{
	WANT(r, is_clear(r));
	WANT(r, meet(r));
	WANT(r, move_all(r, true));
	WANT(r, meet(r));
	WANT(r, move_all(r, false));
	WANT(r, meet(r));
	return true;
}

/* Rank 0 has left, and others have still to tell it what they have done with. */
static bool
one_leaves(struct rank *r)
{
	WANT(r, meet(r));
	if (r->number == 0)
		return true;
	for (int i = 0; i < SECONDS * 100 && *n_left == 0; i++)
		nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
	WANT(r, *n_left > 0);
	WANT(r, move_pair(r, 0, r->number, GPU_ROUTE_DIRECT, true));
	WANT(r, move_pair(r, r->number, 0, GPU_ROUTE_DIRECT, true));
	WANT(r, !gpu_of(r)->own[GPU_ROUTE_HOST] || move_pair(r, 0, r->number, GPU_ROUTE_HOST, true));
	return true;
}

/* As it does between processes without VMM: what one of them has open, the driver does not free. */
static bool
one_leaves_ipc(void)
{
	char line[64];
	FILE *calls;
	bool freed = false;
	lacks_vmm = stays = true;
	if (!processes_play(3, one_leaves) || !(calls = fopen(getenv("VIRTUAL_GPU_CALLS"), "r")))
		return false;
	while (fgets(line, sizeof line, calls))
		freed |= strcmp(line, "freed while others have it open\n") == 0;
	fclose(calls);
	return !freed;
}

static bool
state_is_clear(struct rank *r)
{
	struct gpu *g = gpu_of(r);
	struct blink_error err = { 0 };
	struct gpu_state *copy = calloc(1, sizeof *copy);
	uint64_t counts[2 * MOST * GPU_CHANNELS];
	int n = r->n * GPU_CHANNELS;
	bool good = copy && gpu_copy(g, copy, g->state, sizeof *copy, &err) == blinkSuccess && copy->call == 0
	    && copy->n_pending[0] == 0 && copy->received == copy->sent + n
	    && gpu_copy(g, counts, copy->sent, 2 * (size_t)n * 8, &err) == blinkSuccess;
	for (int i = 0; i < 2 * n; i++)
		good = good && counts[i] == 0;
	free(copy);
	return good && g->status->stop == 0 && g->status->awaits == -1;
}

static bool
all_direct(struct rank *r)
{
	struct gpu *g = gpu_of(r);
	for (int i = 0; i < r->n; i++)
		WANT(r, g->peer[i].direct && (i == r->number || g->peer[i].region[GPU_ROUTE_DIRECT]));
	WANT(r, !g->own[GPU_ROUTE_HOST]);
	WANT(r, g->regions->sharing == GPU_SHARING_VMM);
	WANT(r, (int)g->device == r->number && g->blocks == 16 && g->threads == GPU_THREADS);
	WANT(r, state_is_clear(r));
	return regions(r);
}

/* ranks as threads find each other's memory at its own address */
static bool
threads_direct(struct rank *r)
{
	struct gpu *g = gpu_of(r);
	for (int i = 0; i < r->n; i++)
		WANT(r, i == r->number || !g->regions->import[i].memory);
	return all_direct(r);
}

static bool
processes_direct(struct rank *r)
{
	struct gpu *g = gpu_of(r);
	for (int i = 0; i < r->n; i++)
		WANT(r, i == r->number || g->regions->import[i].memory);
	return all_direct(r);
}

/* A driver before VMM. */
static void
without_vmm(void)
{
	struct blink_error err = { 0 };
	const struct driver *d = NULL;
	if (driver_open(&d, &err) != blinkSuccess)
		exit(1);
	((struct driver *)(uintptr_t)d)->vmm_create = NULL;
}

static bool
ipc(struct rank *r)
{
	WANT(r, gpu_of(r)->regions->sharing == GPU_SHARING_IPC);
	WANT(r, !gpu_of(r)->own[GPU_ROUTE_HOST]);
	return regions(r);
}

/* GPU 0 of a DGX-1V reaches 1, 2, 3 and 6 by NVLink, and not 5 and 7. */
static bool
some_direct(struct rank *r)
{
	struct gpu *g = gpu_of(r);
	int n = 0;
	for (int i = 0; i < r->n; i++) {
		n += g->peer[i].direct;
		WANT(r, !g->peer[i].direct == !(i == r->number || g->peer[i].region[GPU_ROUTE_DIRECT]));
		WANT(r, i == r->number || g->peer[i].region[GPU_ROUTE_HOST]);
	}
	WANT(r, n > 1 && n < r->n && g->own[GPU_ROUTE_HOST] && g->own[GPU_ROUTE_DIRECT]);
	return regions(r);
}

/* Each process sees its own GPU alone, and has the memory of the others' all the same. */
static bool
unseen_direct(struct rank *r)
{
	struct gpu *g = gpu_of(r);
	WANT(r, g->device == 0);
	for (int i = 0; i < r->n; i++)
		WANT(r, g->peer[i].direct && (i == r->number || g->regions->import[i].memory));
	WANT(r, !g->own[GPU_ROUTE_HOST]);
	return regions(r);
}

static bool
none_direct(struct rank *r)
{
	struct gpu *g = gpu_of(r);
	for (int i = 0; i < r->n; i++)
		WANT(r, i == r->number || (!g->peer[i].direct && g->peer[i].region[GPU_ROUTE_HOST]));
	return regions(r);
}

/* What GPU 0 writes to GPU 2 does not arrive: neither of the two takes the direct way, others do. */
static bool
lost_is_found(struct rank *r)
{
	struct gpu *g = gpu_of(r);
	for (int i = 0; i < r->n; i++)
		WANT(r, g->peer[i].direct == ((i != 0 || r->number != 2) && (i != 2 || r->number != 0)));
	WANT(r, meet(r));
	for (int writes = 1; writes >= 0; writes--) {
		for (int i = 0; i < r->n; i++) {
			enum gpu_route route = g->peer[i].direct ? GPU_ROUTE_DIRECT : GPU_ROUTE_HOST;
			WANT(r, move_pair(r, r->number, i, route, writes));
			WANT(r, move_pair(r, i, r->number, route, writes));
		}
		WANT(r, meet(r));
	}
	return true;
}

/* Two ranks on each of two GPUs: each has half of a quarter of 64 blocks, or of those that the other has left. */
static bool
shared_gpu(struct rank *r)
{
	struct gpu *g = gpu_of(r);
	WANT(r, (int)g->device == r->number / 2);
	WANT(r, g->blocks == 7 || g->blocks == 8);
	return regions(r);
}

/* Two ranks on one GPU, and one on another, which has twice as many blocks for it. */
static bool
least_blocks(struct rank *r)
{
	WANT(r, gpu_of(r)->blocks == 7);
	return true;
}

static bool
capped_blocks(struct rank *r)
{
	WANT(r, gpu_of(r)->blocks == 7);
	return true;
}

/* ---- memory of the caller ---- */

static bool
caller_memory(struct rank *r)
{
	blinkComm_t comm = r->comm;
	char text[] = "from the host to the GPU", back[sizeof text] = "";
	void *memory = NULL, *handle = NULL, *again = NULL;
	WANT(r, blinkMemAlloc(comm, r->number, 1 << 20, &memory) == blinkSuccess && memory);
	WANT(r, blinkCopyIn(comm, r->number, (char *)memory + 1000, text, sizeof text) == blinkSuccess);
	WANT(r, blinkCopyOut(comm, r->number, back, (char *)memory + 1000, sizeof text) == blinkSuccess);
	WANT(r, memcmp(text, back, sizeof text) == 0);
	WANT(r, blinkMemAlloc(comm, r->number + 1, 8, &again) == blinkInvalidArgument);
	WANT(r, blinkCommRegister(comm, memory, 1 << 20, &handle) == blinkSuccess);
	WANT(r, blinkCommRegister(comm, memory, 1 << 20, &again) == blinkInvalidArgument);
	WANT(r, blinkMemFree(comm, r->number, memory) == blinkInvalidArgument);
	WANT(r, blinkCommDeregister(comm, handle) == blinkSuccess);
	WANT(r, blinkMemFree(comm, r->number, memory) == blinkSuccess);
	WANT(r, blinkMemFree(comm, r->number, memory) == blinkInvalidArgument);
	WANT(r, blinkMemAlloc(comm, r->number, (size_t)1 << 46, &memory) == blinkOutOfMemory);
	WANT(r, strncmp(blinkCommGetError(comm), "cuda: allocate 70368744177664 bytes on device ", 46) == 0);
	WANT(r, blinkMemAlloc(comm, r->number, 100, &memory) == blinkSuccess);	/* freed with the communicator */
	return true;
}

/* Ranks 0 and 2, 1 and 3: on the devices of their parent's, whatever their numbers are. */
static bool
split(struct rank *r)
{
	blinkComm_t half = NULL;
	CUcontext current = (CUcontext)1;
	WANT(r, blinkCommSplit(r->comm, r->number % 2, 0, &half, NULL, NULL) == blinkSuccess);
	WANT(r, ((struct gpu *)half->rank->of_backend)->device == gpu_of(r)->device);
	WANT(r, gpu_of(r)->d->context_get(&current) == CUDA_SUCCESS && current == NULL);
	WANT(r, blinkCommDestroy(half) == blinkSuccess);
	return true;
}

/* A thread that has chosen a device has that one. */
static void *
run_on_device(void *rank)
{
	struct rank *r = rank;
	struct blink_error err = { 0 };
	const struct driver *d = NULL;
	CUdevice device;
	CUcontext context, found = NULL;
	if (driver_open(&d, &err) != blinkSuccess || d->device_get(&device, 5 - r->number) != CUDA_SUCCESS
	    || d->primary_retain(&context, device) != CUDA_SUCCESS || d->context_set(context) != CUDA_SUCCESS)
		return r->wrong = "no context", NULL;
	init(r);
	if (r->result != blinkSuccess)
		return NULL;
	if (gpu_of(r)->device != device)
		r->wrong = "another device";
	blinkCommDestroy(r->comm);
	if (d->context_get(&found) != CUDA_SUCCESS || found != context)
		r->wrong = "another context is current";
	d->primary_release(device);
	return NULL;
}

static bool
devices_of_threads(void)
{
	struct rank r[2];
	blinkUniqueId_t id;
	make_id(&id);
	for (int i = 0; i < 2; i++) {
		r[i] = (struct rank){ .number = i, .n = 2, .id = &id, .backend = "cuda" };
		if (pthread_create(&r[i].thread, NULL, run_on_device, &r[i]))
			abort();
	}
	for (int i = 0; i < 2; i++)
		pthread_join(r[i].thread, NULL);
	return content(&r[0]) & content(&r[1]);
}

/* ---- what is refused ---- */

/* All ranks fail, with this code and a text that has that. */
static bool
all_refuse(const struct rank *r, int n, blinkResult_t code, const char *text)
{
	for (int i = 0; i < n; i++)
		if (r[i].result != code || !strstr(r[i].error.text, text)) {
			printf("# rank %d: %d %s\n", i, (int)r[i].result, r[i].error.text);
			return false;
		}
	return true;
}

/* Ranks 0 and 1 on one server and rank 2 on another: numbers and devices are those of each server, and none has memory
 * of a GPU on another one. */
static bool
on_servers(struct rank *r)
{
	const struct gpu *g = gpu_of(r);
	struct gpu_pair far, back;
	int other = r->number == 2 ? 0 : 2;
	WANT(r, g->layout.n_local == (r->number == 2 ? 1 : 2) && g->layout.packet_bytes == 0);
	WANT(r, g->device == (r->number == 1 ? 6 : 5));
	WANT(r, g->peer[other].local < 0 && !g->peer[other].direct && !g->peer[other].region[GPU_ROUTE_DIRECT]);
	WANT(r, g->peer[r->number].local == r->number % 2);
	WANT(r, r->number == 2 || g->peer[1 - r->number].region[GPU_ROUTE_DIRECT]);
	gpu_pair_of(g, r->number, other, GPU_ROUTE_NET, &far);
	gpu_pair_of(g, other, r->number, GPU_ROUTE_NET, &back);
	WANT(r, far.letter && !back.letter && far.ring[1] - far.ring[0] == (ptrdiff_t)g->layout.ring_bytes);
	return meet(r);
}

static bool
refuses_map(const char *text)
{
	struct rank r[2];
	as_threads(r, 2, NULL);
	bool good = r[1].result == blinkInvalidArgument && r[0].result != blinkSuccess
	    && strstr(r[1].error.text, text) && strstr(r[0].error.text, "rank 1: BLINK_DEVICE_MAP");
	if (!good)
		printf("# %s; %s\n", r[0].error.text, r[1].error.text);
	return good;
}

static bool
backends_differ(void)
{
	blinkUniqueId_t id;
	int to_child[2];
	pid_t child = fork_rank(to_child, &id);
	if (child != 0)
		make_id(&id);
	struct rank r = { .number = child == 0, .n = 2, .id = &id, .backend = child == 0 ? "host" : "cuda" };
	bool good = child == 0 || write(to_child[1], &id, sizeof id) == (ssize_t)sizeof id;
	init(&r);
	good = good && r.result == blinkMismatch && strstr(r.error.text,
	    "backend: rank 1 has host, rank 0 has cuda: want the same on all ranks");
	if (!good)
		printf("# rank %d: %d %s\n", r.number, (int)r.result, r.error.text);
	fflush(stdout);
	if (child == 0)
		_exit(!good);
	return ends_well(child) && good;
}

static bool
unknown_backend(void)
{
	struct rank r = { .n = 1, .backend = "rocm" };
	blinkUniqueId_t id;
	make_id(&id);
	r.id = &id;
	init(&r);
	return all_refuse(&r, 1, blinkInvalidArgument, "backend: \"rocm\": want host or cuda");
}

/* Without PTX that a driver could compile. */
static bool
runs_code(bool fits)
{
	struct rank r;
	*ptx = '\0';
	if (fits)
		return threads_play(1, caller_memory);
	as_threads(&r, 1, NULL);
	return all_refuse(&r, 1, blinkSystemError, "cuda: load the kernels for move: ");
}

/* ---- a forked child ---- */

static bool
child_destroys(struct rank *r)
{
	WANT(r, meet(r));
	fflush(stdout);
	pid_t child = fork();
	if (child == 0) {
		alarm(SECONDS);
		_exit(blinkCommDestroy(r->comm) != blinkSuccess);
	}
	WANT(r, ends_well(child));
	WANT(r, meet(r));
	return regions(r);
}

/* ---- failures ---- */

/* Calls of the driver fail, each once: every rank of that communicator hears of it, or of what it did later, and the
 * next one of the process finds out about the next call, until none fails. A call that only frees may fail unheard. */
static bool
failures(int n)
{
	struct rank r[MOST];
	for (int turn = 0; turn < 100; turn++) {
		int joined = 0, content = 0;
		as_threads(r, n, caller_memory);
		for (int i = 0; i < n; i++) {
			joined += r[i].result == blinkSuccess;
			content += r[i].result == blinkSuccess && !r[i].wrong;
			if (r[i].result != blinkSuccess && !strstr(r[i].error.text, "cuda: "))
				return printf("# rank %d: %s\n", i, r[i].error.text), false;
		}
		if (joined > 0 && joined < n)
			return printf("# %d of %d ranks have joined\n", joined, n), false;
		if (content == n)
			return true;
	}
	return printf("# no end of failures\n"), false;
}

/* ---- cases ---- */

static bool
play_case(const char *name)
{
#define CASE(text, expression)                                                 \
	if (strcmp(name, text) == 0)                                           \
		return expression;
	CASE("threads", threads_play(4, threads_direct))
	CASE("processes", processes_play(4, processes_direct))
	CASE("shared threads", threads_play(4, shared_gpu))
	CASE("shared processes", processes_play(4, shared_gpu))
	CASE("least", threads_play(3, least_blocks))
	CASE("capped", threads_play(2, capped_blocks))
	CASE("some threads", threads_play(8, some_direct))
	CASE("some processes", processes_play(8, some_direct))
	CASE("ipc threads", (without_vmm(), threads_play(4, ipc)))
	CASE("ipc processes", processes_play(3, ipc))
	CASE("unseen", (sees_own_gpu = true, processes_play(4, unseen_direct)))
	CASE("unseen ipc", (sees_own_gpu = lacks_vmm = true, processes_play(3, unseen_direct)))
	CASE("some unseen", (sees_own_gpu = true, processes_play(8, some_direct)))
	CASE("off", threads_play(3, none_direct))
	CASE("off processes", processes_play(3, none_direct))
	CASE("lost", threads_play(4, lost_is_found))
	CASE("lost unseen", (sees_own_gpu = true, processes_play(4, lost_is_found)))
	CASE("leave", threads_play(3, one_leaves))
	CASE("leave ipc", (without_vmm(), threads_play(2, one_leaves)))
	CASE("leave ipc processes", one_leaves_ipc())
	CASE("memory", threads_play(2, caller_memory))
	CASE("alone", threads_play(1, caller_memory))
	CASE("split", threads_play(4, split))
	CASE("current", devices_of_threads())
	CASE("map short", refuses_map("BLINK_DEVICE_MAP: \"3\": no device for rank 1 of this server: want a number "
	    "from 0 to 7"))
	CASE("map large", refuses_map("BLINK_DEVICE_MAP: \"0,8\": no device for rank 1"))
	CASE("map text", refuses_map("BLINK_DEVICE_MAP: \"0,1x\": no device for rank 1"))
	CASE("servers", processes_play(3, on_servers))
	CASE("backends", backends_differ())
	CASE("backend", unknown_backend())
	CASE("code", runs_code(true))
	CASE("other code", runs_code(false))
	CASE("fork", threads_play(1, child_destroys))
	CASE("failures", failures(2))
	return false;
}

/* ---- the program that starts them ---- */

static char self[PATH_MAX], place[PATH_MAX];

/* A process of its own; variable: "NAME=value", NULL: none. */
static bool
runs(const char *name, const char *variable)
{
	char path[PATH_MAX + 40], twins[PATH_MAX + 40];
	int status;
	fflush(stdout);
	pid_t child = fork();
	if (child == 0) {
		snprintf(path, sizeof path, "%s/../virtual_gpu", place);
		snprintf(twins, sizeof twins, "%s/../cuda/twins.so", place);
		setenv("LD_LIBRARY_PATH", path, 1);
		setenv("VIRTUAL_GPU_KERNELS", twins, 1);
		if (variable)
			putenv((char *)variable);
		execl(self, self, "case", name, (char *)NULL);
		_exit(127);
	}
	if (child < 0 || waitpid(child, &status, 0) != child)
		return false;
	if (status != 0)
		printf("# %s, %s: status %x\n", name, variable ? variable : "", (unsigned)status);
	return status == 0;
}

/* All calls that there are, FAILURES at a time: call number k of each. */
static bool
all_failures(int k)
{
#define NAME(member, name, must, parameters) #name,
	static const char *const names[] = { DRIVER_LIST(NAME) };
#undef NAME
	enum { FAILURES = 16, N = sizeof names / sizeof *names };
	bool good = true;
	for (int i = 0; i < N; i += FAILURES) {
		char text[FAILURES * 60] = "VIRTUAL_GPU_FAIL=";
		for (int f = i; f < N && f < i + FAILURES; f++)
			snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s:%d", f > i ? "," : "", names[f],
			    k);
		good = runs("failures", text) && good;
	}
	return good;
}

int
main(int argc, char **argv)
{
	bool good = true;
	char calls[PATH_MAX + 40];
	setvbuf(stdout, NULL, _IOLBF, 0);
	alarm(600);
	n_left = mmap(NULL, sizeof *n_left, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (n_left == MAP_FAILED)
		return 1;
	if (argc == 3 && strcmp(argv[1], "case") == 0)
		return !play_case(argv[2]);
	if (readlink("/proc/self/exe", self, sizeof self - 1) <= 0)
		return 1;
	memcpy(place, self, sizeof place);
	*strrchr(place, '/') = '\0';
	snprintf(calls, sizeof calls, "VIRTUAL_GPU_CALLS=/tmp/test_gpu_memory.%d", (int)getpid());
	unsetenv("BLINK_DEVICE_MAP");
	unsetenv("BLINK_BLOCKS");
	setenv("VIRTUAL_GPU_COUNT", "8", 1);
	ok(runs("threads", NULL), "regions of threads");
	ok(runs("processes", NULL), "regions of processes, by descriptors");
	ok(runs("ipc threads", NULL) && runs("ipc processes", NULL), "regions where the driver has no VMM");
	ok(runs("shared threads", "BLINK_DEVICE_MAP=0,0,1,1")
	    && (quick_check() || runs("shared processes", "BLINK_DEVICE_MAP=0,0,1,1")),
	    "two ranks on a GPU");
	ok(runs("least", "BLINK_DEVICE_MAP=1,1,0") && runs("capped", "BLINK_BLOCKS=7"), "blocks: the least of all");
	ok(runs("some threads", "VIRTUAL_GPU_TOPOLOGY=topologies/dgx1v.xml"),
	    "GPUs without peer access: through the host, threads");
	if (!quick_check())
		ok(runs("some processes", "VIRTUAL_GPU_TOPOLOGY=topologies/dgx1v.xml"),
		    "GPUs without peer access: through the host, processes");
	ok(runs("unseen", NULL) && (quick_check() || runs("unseen ipc", NULL)),
	    "each process sees its own GPU alone: peers' memory is mapped");
	ok(runs("some unseen", "VIRTUAL_GPU_TOPOLOGY=topologies/dgx1v.xml"), "so where only some GPUs have access");
	ok(runs("off", "BLINK_P2P=0") && (quick_check() || runs("off processes", "BLINK_P2P=0")),
	    "BLINK_P2P=0: through the host");
	ok(runs("lost", "VIRTUAL_GPU_LOST=0:2") && (quick_check() || runs("lost unseen", "VIRTUAL_GPU_LOST=0:2")),
	    "what is written to a peer and does not arrive: through the host");
	ok(runs("leave", "BLINK_DEVICE_MAP=0,1,1") && runs("leave", "VIRTUAL_GPU_TOPOLOGY=topologies/dgx1p.xml")
	    && runs("leave ipc", NULL) && runs("leave ipc processes", calls),
	    "memory of a rank that has left stays for its peers");
	ok(runs("memory", NULL) && runs("alone", NULL), "memory of the caller");
	ok(runs("split", NULL) && runs("current", NULL), "the device of the parent, and of the current context");
	ok(runs("map short", "BLINK_DEVICE_MAP=3") && runs("map large", "BLINK_DEVICE_MAP=0,8")
	    && runs("map text", "BLINK_DEVICE_MAP=0,1x"), "a map that has no device for a rank");
	ok(runs("servers", "BLINK_DEVICE_MAP=5,6"), "ranks on two servers");
	ok(runs("backends", NULL) && runs("backend", NULL), "backends that differ, or are none");
	ok(runs("code", NULL) && runs("other code", "VIRTUAL_GPU_TOPOLOGY=topologies/dgx1p.xml")
	    && runs("alone", "VIRTUAL_GPU_TOPOLOGY=topologies/dgx1p.xml"), "kernels as code for a GPU; else as PTX");
	ok(runs("fork", NULL), "a forked child destroys its copy");
	for (int k = 1; k <= (quick_check() ? 1 : 4); k++)
		good = all_failures(k) && good;
	ok(good, "each call of the driver fails once: all ranks hear of it");
	unlink(strchr(calls, '=') + 1);
	return end_tests();
}
