/* What each rank is given, and what is refused. */
#include "play.h"
#include "support/error.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- blocks ---- */

/* Two ranks on each of two GPUs: each has half of a quarter of 64 blocks, or of those that the other has left. */
bool
shared_gpu(struct rank *r)
{
	struct gpu *g = gpu_of(r);
	WANT(r, (int)g->device == r->number / 2);
	WANT(r, g->blocks == 7 || g->blocks == 8);
	return regions(r);
}

/* Two ranks on one GPU, and one on another, which has twice as many blocks for it. */
bool
least_blocks(struct rank *r)
{
	WANT(r, gpu_of(r)->blocks == 7);
	return true;
}

bool
capped_blocks(struct rank *r)
{
	WANT(r, gpu_of(r)->blocks == 7);
	return true;
}

/* ---- memory of the caller ---- */

bool
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
bool
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

bool
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
bool
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
bool
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

bool
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

bool
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

bool
unknown_backend(void)
{
	struct rank r = { .n = 1, .backend = "rocm" };
	blinkUniqueId_t id;
	make_id(&id);
	r.id = &id;
	init(&r);
	return all_refuse(&r, 1, blinkInvalidArgument, "backend: \"rocm\": want host or cuda");
}

/* ---- a forked child ---- */

bool
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
