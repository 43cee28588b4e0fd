/* Twins of kernels without virtual GPUs: every thread of every block is a fiber of this thread, and at each access to
 * memory chance says who goes on. All runs with one seed are the same. Memory is the process's own; a GPU's accesses
 * are held against the regions that it may use. Weak: stores to memory of others are seen late and in any order, until
 * a thread of the block executes a fence; a barrier does not make them seen.
 *
 * For ThreadSanitizer a fiber is a thread, which only barriers of its block order: what threads of a block share
 * without one, it reports. Of what is here it knows nothing (APART). */
#include "../virtual_gpu/twin.h"
#include "../virtual_gpu/virtual_gpu.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#define FIBER_TSAN(x) x
#define APART __attribute__((no_sanitize("thread")))
#else
#define FIBER_TSAN(x)
#define APART
#endif
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#define FIBER_ASAN(x) x
#else
#define FIBER_ASAN(x)
#endif

enum {
	REGIONS = 1024, FIBERS = 4096, FIBER_STACK = 64 << 10, LATE = 64, SHARED_ROOM = 48 << 10,
	NOBODY = -1,			/* an owner: host memory */
	SWITCH_ODDS = 8			/* one in so many accesses is followed by another fiber */
};

/* Memory that kernels may use: of its owner's GPU, if `open` also from others. */
struct region {
	const char *at;
	size_t bytes;
	int owner;
	bool open;
};

struct late {
	char *to;
	char value[128];		/* more than 8: a line, which is seen at once */
	unsigned bytes;
};

struct group {				/* a block */
	struct barrier {
		unsigned arrived;
		uint64_t turn;
	} barrier[3];
	unsigned left;
	struct late late[LATE];
	unsigned n_late;
	_Alignas(64) char shared[SHARED_ROOM];
};

struct grid {				/* a kernel that runs */
	int gpu;
	unsigned left;			/* threads */
};

struct fiber {
	ucontext_t context;
	char *stack;
	struct virtual_thread place;
	struct group *group;
	struct grid *grid;
	void (*run)(const void *parameter);
	const void *parameter;
	bool ended, begun;
	unsigned pace;			/* it is passed over but one in so many times */
	FIBER_TSAN(void *tsan;)
	FIBER_ASAN(void *asan;)
};

/* Memory at one address of all GPUs: that of GPU i is at own[i]. */
struct team {
	char *all;			/* NULL: none */
	size_t bytes;
	char *own[DEVICES_MOST];
	int n;
};

static struct region regions[REGIONS];
static struct team team;
static int n_regions, n_running, n_violations;
static struct fiber *running[FIBERS], *spare[FIBERS], *current;
static int n_spare;
static ucontext_t host;
static bool weak, uneven;		/* uneven: fibers, and GPUs, go at different paces */
static uint64_t chance = 1;
FIBER_TSAN(static void *host_tsan;)
FIBER_ASAN(static void *host_asan; static const void *host_stack; static size_t host_bytes;)

APART static unsigned
draw(unsigned n)
{
	chance = chance * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)((chance >> 33) % n);
}

APART static void
add_region(const void *at, size_t bytes, int owner, bool open)
{
	if (n_regions == REGIONS) {
		printf("Bail out! more regions than %d\n", REGIONS);
		exit(1);
	}
	regions[n_regions++] = (struct region){ at, bytes, owner, open };
}

/* ---- switches ---- */

APART static void
to_host(bool ends)
{
	struct fiber *f = current;
	(void)ends;
	FIBER_ASAN(__sanitizer_start_switch_fiber(ends ? NULL : &f->asan, host_stack, host_bytes);)
	FIBER_TSAN(__tsan_switch_to_fiber(host_tsan, ends ? 0 : __tsan_switch_to_fiber_no_sync);)
	swapcontext(&f->context, &host);
	FIBER_ASAN(__sanitizer_finish_switch_fiber(f->asan, NULL, NULL);)
}

APART static void
to_fiber(struct fiber *f)
{
	current = f;
	FIBER_ASAN(__sanitizer_start_switch_fiber(&host_asan, f->stack, FIBER_STACK);)
	FIBER_TSAN(__tsan_switch_to_fiber(f->tsan, f->begun ? __tsan_switch_to_fiber_no_sync : 0);)
	f->begun = true;
	swapcontext(&host, &f->context);
	FIBER_ASAN(__sanitizer_finish_switch_fiber(host_asan, NULL, NULL);)
	current = NULL;
}

APART static void
release_late(struct group *g, unsigned i)
{
	struct late *l = &g->late[i];
	for (unsigned j = 0; j < i; j++)	/* an older one to the same bytes goes first */
		if (g->late[j].to < l->to + l->bytes && l->to < g->late[j].to + g->late[j].bytes) {
			release_late(g, j);
			release_late(g, i - 1);
			return;
		}
	for (unsigned k = 0; k < l->bytes; k++)
		__atomic_store_n(l->to + k, l->value[k], __ATOMIC_RELAXED);
	for (g->n_late--; i < g->n_late; i++)
		g->late[i] = g->late[i + 1];
}

APART static void
release_all(struct group *g)
{
	while (g->n_late)
		release_late(g, draw(g->n_late));
}

APART static void
start_fiber(void)
{
	struct fiber *f = current;
	FIBER_ASAN(__sanitizer_finish_switch_fiber(NULL, &host_stack, &host_bytes);)
	f->run(f->parameter);
	if (--f->group->left == 0) {
		release_all(f->group);
		free(f->group);
	}
	f->grid->left--;
	f->ended = true;
	to_host(true);
}

APART static void
add_fiber(const struct virtual_kernel *kernel, const void *parameter, struct virtual_thread place, struct group *g,
    struct grid *grid)
{
	struct fiber *f = n_spare ? spare[--n_spare] : calloc(1, sizeof *f);
	if (!f || n_running == FIBERS || (!f->stack && !(f->stack = malloc(FIBER_STACK)))) {
		printf("Bail out! too many fibers\n");
		exit(1);
	}
	*f = (struct fiber){ .stack = f->stack, .place = place, .group = g, .grid = grid, .run = kernel->run,
		.parameter = parameter, .pace = uneven && draw(3) == 0 ? 1 << draw(6) : 1 };
	FIBER_TSAN(f->tsan = __tsan_create_fiber(0);)
	getcontext(&f->context);
	f->context.uc_stack = (stack_t){ .ss_sp = f->stack, .ss_size = FIBER_STACK };
	makecontext(&f->context, start_fiber, 0);
	running[n_running++] = f;
}

/* As cuLaunchKernel. parameter stays until the kernel has ended: grid->left == 0. */
APART static void
launch(const struct virtual_kernel *kernel, int gpu, unsigned blocks, unsigned threads, const void *parameter,
    struct grid *grid)
{
	*grid = (struct grid){ gpu, blocks * threads };
	FIBER_TSAN(host_tsan = __tsan_get_current_fiber();)
	for (unsigned b = 0; b < blocks; b++) {
		struct group *g = aligned_alloc(64, sizeof *g);
		if (!g)
			exit(1);
		memset(g, 0, sizeof *g);
		g->left = threads;
		for (unsigned t = 0; t < threads; t++)
			add_fiber(kernel, parameter, (struct virtual_thread){ b, blocks, t, threads, g->shared }, g,
			    grid);
	}
}

APART static bool
ended(const struct grid *grid)
{
	return grid->left == 0;
}

/* Each fiber may go on for a while; those of a GPU that is behind, seldom. */
APART static void
run_round(void)
{
	static int behind;
	if (draw(64) == 0)
		behind = (int)draw(8);
	for (int i = 0; i < n_running; i++) {
		struct fiber *f = running[i];
		if (draw(f->pace) != 0 || (f->grid->gpu == behind && uneven && draw(16) != 0))
			continue;
		to_fiber(f);
		if (f->ended) {
			FIBER_TSAN(__tsan_destroy_fiber(f->tsan);)
			running[i--] = running[--n_running];
			spare[n_spare++] = f;
		}
	}
}

APART static void
free_fibers(void)
{
	while (n_spare) {
		free(spare[--n_spare]->stack);
		free(spare[n_spare]);
	}
}

/* ---- twin.h ---- */

APART const struct virtual_thread *
virtual_gpu_thread(void)
{
	return &current->place;
}

APART void
virtual_gpu_barrier_of(int number, unsigned threads)
{
	struct barrier *b = &current->group->barrier[number];
	uint64_t turn = b->turn;
	FIBER_TSAN(__tsan_release(b);)
	if (++b->arrived == threads) {
		b->arrived = 0;
		b->turn++;
	}
	while (b->turn == turn)
		to_host(false);
	FIBER_TSAN(__tsan_acquire(b);)
}

APART void
virtual_gpu_tell_block(uint32_t *at, uint32_t value)
{
	FIBER_TSAN(__tsan_release(at);)
	__atomic_store_n(at, value, __ATOMIC_RELAXED);
}

APART uint32_t
virtual_gpu_hear_block(const uint32_t *at)
{
	uint32_t value = __atomic_load_n(at, __ATOMIC_RELAXED);
	FIBER_TSAN(__tsan_acquire((void *)(uintptr_t)at);)
	return value;
}

APART uint32_t
virtual_gpu_hear_more(const uint32_t *at, uint32_t heard)
{
	uint32_t value;
	while ((value = virtual_gpu_hear_block(at)) == heard)
		to_host(false);
	return value;
}

/* The owner of memory that the current GPU may access. */
APART static int
owner_of(const void *memory, unsigned bytes, const char *what)
{
	const char *at = memory;
	static int last;
	for (int i = -1; i < n_regions && (uintptr_t)at % bytes == 0; i++) {
		const struct region *r = &regions[i < 0 ? last : i];
		if (at >= r->at && at + bytes <= r->at + r->bytes && (r->open || r->owner == current->grid->gpu)) {
			last = (int)(r - regions);
			return r->owner;
		}
	}
	if (n_violations++ == 0)
		printf("# GPU %d: %s of %u bytes at %p, which it must not\n", current->grid->gpu, what, bytes, memory);
	return NOBODY - 1;
}

/* What the block has stored itself, over what was loaded. */
APART static void
see_own(char *to, const char *from, unsigned bytes)
{
	const struct group *g = current->group;
	for (unsigned l = 0; l < g->n_late; l++)
		for (unsigned k = 0; k < g->late[l].bytes; k++)
			if (g->late[l].to + k >= from && g->late[l].to + k < from + bytes)
				to[g->late[l].to + k - from] = g->late[l].value[k];
}

APART void
virtual_gpu_load(const void *from, void *to, unsigned bytes)
{
	memset(to, 0, bytes);
	if (owner_of(from, bytes, "load") < NOBODY)
		return;
	if (draw(SWITCH_ODDS) == 0)
		to_host(false);
	for (unsigned i = 0; i < bytes; i++) {
		if (i == 8 && draw(SWITCH_ODDS) == 0)
			to_host(false);
		((char *)to)[i] = __atomic_load_n((const char *)from + i, __ATOMIC_RELAXED);
	}
	see_own(to, from, bytes);
}

/* Up to 8 bytes, or a line. */
APART static void
store_at(char *to, const char *from, unsigned bytes, int owner)
{
	struct group *g = current->group;
	if (weak && owner != current->grid->gpu) {
		if (g->n_late == LATE)
			release_late(g, draw(g->n_late));
		struct late *l = &g->late[g->n_late++];
		*l = (struct late){ .to = to, .bytes = bytes };
		for (unsigned k = 0; k < bytes; k++)
			l->value[k] = from[k];
	} else {
		for (unsigned k = 0; k < bytes; k++)
			__atomic_store_n(to + k, from[k], __ATOMIC_RELAXED);
	}
}

APART void
virtual_gpu_store(void *to, const void *from, unsigned bytes)
{
	int owner = owner_of(to, bytes, "store");
	if (owner < NOBODY)
		return;
	if (draw(SWITCH_ODDS) == 0)
		to_host(false);
	for (unsigned i = 0; i < bytes; i += 8) {
		unsigned n = bytes - i < 8 ? bytes - i : 8;
		if (i == 8 && draw(SWITCH_ODDS) == 0)
			to_host(false);
		store_at((char *)to + i, (const char *)from + i, n, owner);
	}
}

/* Where that is in the memory of each GPU. */
APART static bool
find_in_team(const void *at, unsigned bytes, const char *what, size_t *out)
{
	*out = (size_t)((const char *)at - team.all);
	if (team.all && (const char *)at >= team.all && *out + bytes <= team.bytes && *out % bytes == 0)
		return true;
	if (n_violations++ == 0)
		printf("# GPU %d: %s of all GPUs' memory at %p, which is none\n", current->grid->gpu, what, at);
	return false;
}

APART void
virtual_gpu_multimem_load(const char *how, const void *from, void *to, unsigned bytes)
{
	char value[DEVICES_MOST][16], *values[DEVICES_MOST];
	size_t at;
	memset(to, 0, bytes);
	if (!find_in_team(from, bytes, "load", &at))
		return;
	for (int i = 0; i < team.n; i++) {
		if (draw(SWITCH_ODDS) == 0)
			to_host(false);
		for (unsigned k = 0; k < bytes; k++)
			value[i][k] = __atomic_load_n(team.own[i] + at + k, __ATOMIC_RELAXED);
		values[i] = value[i];
	}
	n_violations += !switch_reduce(how, values, team.n, bytes, to);
}

APART void
virtual_gpu_multimem_store(void *to, const void *from)
{
	size_t at;
	if (!find_in_team(to, 16, "store", &at))
		return;
	for (int i = 0; i < team.n; i++) {
		if (draw(SWITCH_ODDS) == 0)
			to_host(false);
		for (unsigned k = 0; k < 16; k += 8)
			store_at(team.own[i] + at + k, (const char *)from + k, 8, i);
	}
}

APART void
virtual_gpu_store_flag(void *to, const void *from, unsigned bytes)
{
	virtual_gpu_store(to, from, bytes);
}

/* No other fiber in between. */
APART void
virtual_gpu_load_line(const void *from, void *to, unsigned bytes)
{
	memset(to, 0, bytes);
	if (owner_of(from, bytes, "load") < NOBODY)
		return;
	if (draw(SWITCH_ODDS) == 0)
		to_host(false);
	for (unsigned i = 0; i < bytes; i++)
		((char *)to)[i] = __atomic_load_n((const char *)from + i, __ATOMIC_RELAXED);
	see_own(to, from, bytes);
}

APART void
virtual_gpu_store_line(void *to, const void *from, unsigned bytes)
{
	int owner = owner_of(to, bytes, "store");
	if (owner < NOBODY)
		return;
	if (draw(SWITCH_ODDS) == 0)
		to_host(false);
	store_at(to, from, bytes, owner);
}

APART void
virtual_gpu_fence(void)
{
	release_all(current->group);
}

APART void
virtual_gpu_acquire(void)
{
}

APART uint64_t
virtual_gpu_add(uint64_t *at, uint64_t value)
{
	if (owner_of(at, sizeof *at, "atomicAdd") != current->grid->gpu)
		return 0;
	return __atomic_fetch_add(at, value, __ATOMIC_RELAXED);
}

APART void
virtual_gpu_pause(void)
{
	struct group *g = current->group;
	if (g->n_late && draw(4) == 0)
		release_late(g, draw(g->n_late));
	to_host(false);
}

APART uint64_t
virtual_gpu_device_time(void)
{
	return virtual_gpu_time();
}

APART uint64_t
virtual_gpu_time(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}
