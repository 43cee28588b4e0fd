/* Threads of blocks, and what twins call (twin.h).
 *
 * Memory is accessed by atomic operations, of at most 8 bytes. Between fences they are in no order (relaxed).
 * ThreadSanitizer knows nothing of fences: for it, each access acquires or releases, so that who has seen a flag has
 * seen what was stored before it, whether or not there was a fence. That fences are where they must be, the weak mode
 * shows: there, a thread keeps its stores to other devices and to the host for a while, and lets go of them in any
 * order, one by one; of bytes that overlap, in the order of the program. Its own loads see what it keeps. And it loads
 * early: it looks at places that it has loaded from before, and a later load may get what was there then, unless a
 * fence comes between, its own or that of a thread that it has met at a barrier since, or a newer value of the place
 * was seen.
 *
 * What crosses links is counted by each thread, and paid for in pieces and at fences. A thread whose context has failed
 * ends at its next call here, by longjmp: twins own nothing. */
#include "grid.h"

#include <pthread.h>
#include <limits.h>
#include <linux/futex.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifdef __SANITIZE_THREAD__
#define THREAD_SANITIZER 1
#elif defined __has_feature
#if __has_feature(thread_sanitizer)
#define THREAD_SANITIZER 1
#endif
#endif
#ifdef THREAD_SANITIZER
enum { LOADS = __ATOMIC_ACQUIRE, STORES = __ATOMIC_RELEASE, ADDS = __ATOMIC_ACQ_REL };
#else
enum { LOADS = __ATOMIC_RELAXED, STORES = __ATOMIC_RELAXED, ADDS = __ATOMIC_RELAXED };
#endif

enum {
	CUDA_ERROR_ILLEGAL_INSTRUCTION = 715,
	CUDA_ERROR_MISALIGNED_ADDRESS = 716,
	LATE_MOST = 64,			/* stores that a thread keeps in the weak mode */
	LATE_ODDS = 4,			/* one in so many occasions lets go of one */
	EARLY_MOST = 8,			/* values that it has loaded early */
	EARLY_ODDS = 4,			/* one in so many loads does so for another */
	RECENT = 64,			/* places of its last loads */
	PIECE = 8 << 10,		/* bytes over a link until they are paid for */
	REPORT_BYTES = 8,		/* to or from the host: what kernels report or ask, again and again (links.c) */
	BARRIER_LOOKS_NS = 20000000	/* how often who is at a barrier looks whether the context has failed */
};

struct late {
	char *at;
	unsigned bytes;
	char value[LINE_BYTES];
};

struct early {
	const char *pointer;		/* as the device has it */
	unsigned bytes;
	char value[8];
};

struct runner {
	struct virtual_thread place;
	struct block *block;
	struct context *c;
	struct memory_cache cache;
	jmp_buf end;
	bool weak;
	struct watch watch;
	uint64_t random;
	size_t in[DEVICES_MOST + 1], out[DEVICES_MOST + 1];	/* by owner of the memory + 1: bytes not paid for */
	struct late late[LATE_MOST];
	unsigned n_late;
	struct early early[EARLY_MOST], recent[RECENT];
	unsigned n_early, n_recent;	/* n_recent: so far */
	unsigned fences;		/* of the block, at its last barrier */
	bool has_fenced;		/* since its last barrier, or since it heard more */
	uint64_t flag;			/* the last that it has sent (flags.c) */
};

static _Thread_local struct runner *self;

/* ---- threads ---- */

static bool
lost(const struct runner *r)
{
	return work_lost(r->c, r->block->grid->gone);
}

static void
end_if_lost(struct runner *r)
{
	if (lost(r))
		longjmp(r->end, 1);
}

static void
fail(struct runner *r, CUresult error)
{
	context_fail(r->c, error);
	longjmp(r->end, 1);
}

/* A barrier opens when all are there that still come. Under the lock. */
static void
open_barrier(struct block *b, struct barrier *at)
{
	if (at->there == 0 || at->there + b->ended < at->threads)
		return;
	at->there = 0;
	at->turn++;
	pthread_cond_broadcast(&at->all_there);
}

static void
leave(struct block *b)
{
	pthread_mutex_lock(&b->lock);
	b->ended++;
	for (int i = 0; i < 3; i++)
		open_barrier(b, &b->barrier[i]);
	pthread_mutex_unlock(&b->lock);
	if (atomic_fetch_sub(&b->left, 1) == 1)
		block_ended(b);
}

static void fence(struct runner *r, bool waits);

static void
run_thread(void *arg)
{
	const struct seat *seat = arg;
	struct block *b = seat->block;
	const struct grid *g = b->grid;
	struct runner r = {
		.place = { b->number, g->blocks, seat->thread, g->threads, b->shared },
		.block = b, .c = g->c, .weak = setting("VIRTUAL_GPU_WEAK", 0) != 0,
		.random = 0x9e3779b97f4a7c15 * (uint64_t)(clock_ns() + b->number * THREADS_MOST + seat->thread) | 1,
	};
	if (seat->thread == 0)
		random_delay();
	watch_begin();
	self = &r;
	if (!setjmp(r.end) && !lost(&r)) {
		g->kernel->run(g->parameter);
		fence(&r, false);
	}
	watch_leave(&r.watch);
	flag_wait(r.flag);
	self = NULL;
	leave(b);
}

void
block_start(struct grid *grid, unsigned number)
{
	struct block *b = new_bytes(sizeof *b + grid->threads * sizeof *b->seat);
	b->grid = grid;
	b->number = number;
	atomic_init(&b->left, grid->threads);
	pthread_mutex_init(&b->lock, NULL);
	for (int i = 0; i < 3; i++)
		pthread_cond_init(&b->barrier[i].all_there, NULL);
	unsigned n = grid->threads;	/* with its last thread the block may be gone */
	for (unsigned i = 0; i < n; i++) {
		b->seat[i] = (struct seat){ b, i };
		pool_start(run_thread, &b->seat[i]);
	}
}

/* ---- stores that are late ---- */

static uint64_t
draw(struct runner *r, unsigned n)
{
	r->random ^= r->random << 13;
	r->random ^= r->random >> 7;
	r->random ^= r->random << 17;
	return (r->random >> 11) % n;
}

/* The last word is stored last. */
static void
store_line(char *to, const char *from, unsigned bytes)
{
	uint64_t word[LINE_BYTES / 8];
	unsigned last = bytes / 8 - 1;
	memcpy(word, from, bytes);
	for (unsigned i = 0; i < last; i++)
		__atomic_store_n((uint64_t *)to + i, word[i], STORES);
	__atomic_store_n((uint64_t *)to + last, word[last], __ATOMIC_RELEASE);
}

void
store_bytes(char *to, const char *from, unsigned bytes)
{
#define PUT(type)                                                              \
	do {                                                                   \
		type value;                                                    \
		memcpy(&value, from, sizeof value);                            \
		__atomic_store_n((type *)to, value, STORES);                   \
	} while (0)
	switch (bytes) {
	case 1: PUT(uint8_t); break;
	case 2: PUT(uint16_t); break;
	case 4: PUT(uint32_t); break;
	case 8: PUT(uint64_t); break;
	default: store_line(to, from, bytes);
	}
#undef PUT
}

static void
get(char *to, const char *from, unsigned bytes)
{
#define GET(type)                                                              \
	do {                                                                   \
		type value = __atomic_load_n((const type *)from, LOADS);       \
		memcpy(to, &value, sizeof value);                              \
	} while (0)
	switch (bytes) {
	case 1: GET(uint8_t); break;
	case 2: GET(uint16_t); break;
	case 4: GET(uint32_t); break;
	default: GET(uint64_t);
	}
#undef GET
}

static bool
overlap(const struct late *a, const struct late *b)
{
	return a->at < b->at + b->bytes && b->at < a->at + a->bytes;
}

/* Any of the late stores, but none before an older one to the same bytes. */
static void
let_one_go(struct runner *r)
{
	unsigned i = (unsigned)draw(r, r->n_late);
	for (unsigned j = 0; j < i; j++)
		if (overlap(&r->late[j], &r->late[i])) {
			i = j;
			j = -1u;
		}
	store_bytes(r->late[i].at, r->late[i].value, r->late[i].bytes);
	memory_stored(r->late[i].at, r->late[i].bytes);
	r->n_late--;
	memmove(&r->late[i], &r->late[i + 1], (r->n_late - i) * sizeof *r->late);
}

static void
let_go(struct runner *r)
{
	while (r->n_late)
		let_one_go(r);
}

static void
keep(struct runner *r, char *to, const char *from, unsigned bytes)
{
	if (r->n_late == LATE_MOST)
		let_one_go(r);
	struct late *late = &r->late[r->n_late++];
	late->at = to;
	late->bytes = bytes;
	memcpy(late->value, from, bytes);
	if (draw(r, LATE_ODDS) == 0)
		let_one_go(r);
}

/* What the thread has stored itself, over what it loaded. */
static void
see_own(const struct runner *r, char *to, const char *from, unsigned bytes)
{
	for (unsigned i = 0; i < r->n_late; i++)
		for (unsigned k = 0; k < r->late[i].bytes; k++) {
			const char *at = r->late[i].at + k;
			if (at >= from && at < from + bytes)
				to[at - from] = r->late[i].value[k];
		}
}

/* ---- loads that are early ---- */

static bool
same_bytes(const struct early *e, const char *pointer, unsigned bytes)
{
	return e->pointer < pointer + bytes && pointer < e->pointer + e->bytes;
}

/* What was loaded early of these bytes does not count any more. */
static void
forget_early(struct runner *r, const char *pointer, unsigned bytes)
{
	for (unsigned i = r->n_early; i-- > 0;)
		if (same_bytes(&r->early[i], pointer, bytes))
			r->early[i] = r->early[--r->n_early];
}

/* Load from one of the last places, for later. */
static void
look_around(struct runner *r)
{
	struct early e = r->recent[draw(r, r->n_recent < RECENT ? r->n_recent : RECENT)];
	int owner;
	if (r->n_early == EARLY_MOST || memory_access(r->c->device, e.pointer, e.bytes, false, false, &r->cache,
	    &owner) != CUDA_SUCCESS)
		return;
	for (unsigned i = 0; i < r->n_early; i++)
		if (same_bytes(&r->early[i], e.pointer, e.bytes))
			return;
	const char *at = memory_bytes(e.pointer);
	get(e.value, at, e.bytes);
	see_own(r, e.value, at, e.bytes);
	r->early[r->n_early++] = e;
}

/* Has the thread loaded these bytes early, and may it use them? */
static bool
load_early(struct runner *r, bool may, const char *pointer, char *to, unsigned bytes)
{
	bool found = false;
	for (unsigned i = 0; i < r->n_early && may && !found; i++)
		if (r->early[i].pointer == pointer && r->early[i].bytes == bytes) {
			memcpy(to, r->early[i].value, bytes);
			found = true;
		}
	forget_early(r, pointer, bytes);
	r->recent[r->n_recent++ % RECENT] = (struct early){ pointer, bytes, "" };
	return found;
}

/* ---- what twins call ---- */

/* What was read, or written, over links: of all owners together, since links do not wait for each other. */
static void
pay(struct runner *r, size_t *bytes, bool writes)
{
	struct crossing_bytes crossing[DEVICES_MOST + 1];
	int n = 0;
	for (int owner = HOST; owner < devices(); owner++) {
		if (bytes[owner + 1])
			crossing[n++] = writes ? (struct crossing_bytes){ r->c->device, owner, bytes[owner + 1] }
			    : (struct crossing_bytes){ owner, r->c->device, bytes[owner + 1] };
		bytes[owner + 1] = 0;
	}
	links_cross(crossing, n);
}

/* Where the bytes are that a pointer names. Ends the thread where they must not be accessed. */
static char *
bytes_at(struct runner *r, const void *at, unsigned bytes, bool writes, int *owner)
{
	if (bytes == 0 || (bytes & (bytes - 1)) || bytes > LINE_BYTES || (uintptr_t)at % bytes)
		fail(r, CUDA_ERROR_MISALIGNED_ADDRESS);
	CUresult error = memory_access(r->c->device, at, bytes, writes, false, &r->cache, owner);
	if (error != CUDA_SUCCESS)
		fail(r, error);
	end_if_lost(r);
	if (*owner != r->c->device && (*owner != HOST || bytes > REPORT_BYTES)) {
		size_t *counted = writes ? r->out : r->in;
		counted[*owner + 1] += bytes;
		if (counted[*owner + 1] >= PIECE)
			pay(r, counted, writes);
	}
	return memory_bytes(at);
}

const struct virtual_thread *
virtual_gpu_thread(void)
{
	return &self->place;
}

void
virtual_gpu_load(const void *from, void *to, unsigned bytes)
{
	struct runner *r = self;
	int owner;
	const char *at = bytes_at(r, from, bytes, false, &owner);
	/* Who is about to sleep until the value changes must have seen it. */
	bool may = !watches(&r->watch, at);
	if (owner != HOST)
		watch_load(&r->watch, at);
	for (unsigned i = 0; i < bytes; i += 8) {
		unsigned n = bytes < 8 ? bytes : 8;
		if (!r->weak || !load_early(r, may, (const char *)from + i, (char *)to + i, n))
			get((char *)to + i, at + i, n);
		see_own(r, (char *)to + i, at + i, n);
	}
	if (r->weak && draw(r, EARLY_ODDS) == 0)
		look_around(r);
}

static void
store(struct runner *r, void *to, const void *from, unsigned bytes, bool flag)
{
	int owner;
	char *at = bytes_at(r, to, bytes, true, &owner);
	bool late = r->weak && owner != r->c->device;
	forget_early(r, to, bytes);
	if (owner != HOST && link_loses(r->c->device, owner))
		return;
	if (owner != HOST)		/* who reports to the host goes on waiting */
		watch_end(&r->watch);
	int64_t after = flag && owner != r->c->device ? cost_ns(COST_FLAG) : 0;
	for (unsigned i = 0; i < bytes; i += 8) {
		unsigned n = bytes < 8 ? bytes : 8;
		if (after > 0)
			r->flag = flag_send(at + i, (const char *)from + i, n, after);
		else if (late)
			keep(r, at + i, (const char *)from + i, n);
		else
			store_bytes(at + i, (const char *)from + i, n);
	}
	if (after == 0 && !late && owner != HOST)
		memory_stored(at, bytes);
}

void
virtual_gpu_store(void *to, const void *from, unsigned bytes)
{
	store(self, to, from, bytes, false);
}

void
virtual_gpu_store_flag(void *to, const void *from, unsigned bytes)
{
	store(self, to, from, bytes, true);
}

void
virtual_gpu_load_line(const void *from, void *to, unsigned bytes)
{
	struct runner *r = self;
	int owner;
	unsigned flag = bytes - 8;
	uint64_t number;
	const char *at = bytes_at(r, from, bytes, false, &owner);
	if (owner != HOST)
		watch_load(&r->watch, at + flag);
	forget_early(r, from, bytes);
	number = __atomic_load_n((const uint64_t *)(at + flag), __ATOMIC_ACQUIRE);
	memcpy((char *)to + flag, &number, sizeof number);
	for (unsigned i = 0; i < flag; i += 8)
		get((char *)to + i, at + i, 8);
	see_own(r, to, at, bytes);
}

void
virtual_gpu_store_line(void *to, const void *from, unsigned bytes)
{
	struct runner *r = self;
	int owner;
	char *at = bytes_at(r, to, bytes, true, &owner);
	bool elsewhere = owner != r->c->device;
	int64_t after = elsewhere ? cost_ns(COST_FLAG) : 0;
	forget_early(r, to, bytes);
	if (owner != HOST && link_loses(r->c->device, owner))
		return;
	watch_end(&r->watch);
	if (after > 0)
		r->flag = flag_send(at, from, bytes, after);
	else if (r->weak && elsewhere)
		keep(r, at, from, bytes);
	else {
		store_bytes(at, from, bytes);
		memory_stored(at, bytes);
	}
}

/* The bytes of all members; in the weak mode, too, loads come in order with what the thread itself has loaded early. */
static int
multicast_bytes(struct runner *r, const void *at, unsigned bytes, bool writes, char *out[DEVICES_MOST],
    int owner[DEVICES_MOST])
{
	int n = 0;
	if ((uintptr_t)at % bytes)
		fail(r, CUDA_ERROR_MISALIGNED_ADDRESS);
	CUresult error = multicast_access(r->c->device, at, bytes, writes, out, owner, &n);
	if (error != CUDA_SUCCESS)
		fail(r, error);
	end_if_lost(r);
	return n;
}

void
virtual_gpu_multimem_load(const char *how, const void *from, void *to, unsigned bytes)
{
	struct runner *r = self;
	char *at[DEVICES_MOST], value[DEVICES_MOST][16], *values[DEVICES_MOST];
	int owner[DEVICES_MOST];
	int n = multicast_bytes(r, from, bytes, false, at, owner);
	for (int i = 0; i < n; i++) {
		values[i] = value[i];
		for (unsigned k = 0; k < bytes; k += 8)
			get(value[i] + k, at[i] + k, bytes < 8 ? bytes : 8);
	}
	if (!switch_reduce(how, values, n, bytes, to))
		fail(r, CUDA_ERROR_ILLEGAL_INSTRUCTION);
}

void
virtual_gpu_multimem_store(void *to, const void *from)
{
	struct runner *r = self;
	char *at[DEVICES_MOST];
	int owner[DEVICES_MOST];
	int n = multicast_bytes(r, to, 16, true, at, owner);
	for (int i = 0; i < n; i++) {
		bool late = r->weak && owner[i] != r->c->device;
		for (unsigned k = 0; k < 16; k += 8) {
			if (late)
				keep(r, at[i] + k, (const char *)from + k, 8);
			else
				store_bytes(at[i] + k, (const char *)from + k, 8);
		}
		if (!late)
			memory_stored(at[i], 16);
	}
}

static int64_t fences_left;
static pthread_once_t fences_once = PTHREAD_ONCE_INIT;

static void
read_fences(void)
{
	fences_left = setting("VIRTUAL_GPU_DIE", 0);
}

/* At the fence that VIRTUAL_GPU_DIE says, before what it would let go of. */
static void
die_in_time(void)
{
	pthread_once(&fences_once, read_fences);
	if (fences_left > 0 && __atomic_fetch_sub(&fences_left, 1, __ATOMIC_RELAXED) == 1)
		kill(getpid(), SIGKILL);
}

/* waits: for what was stored. */
static void
fence(struct runner *r, bool waits)
{
	die_in_time();
	pay(r, r->in, false);
	pay(r, r->out, true);
	if (waits && !r->has_fenced) {
		pay_cost(COST_FENCE);
		flag_wait(r->flag);
	}
	r->has_fenced |= waits;
	let_go(r);
	r->n_early = 0;
	atomic_fetch_add(&r->block->fences, 1);
	random_delay();
#ifdef THREAD_SANITIZER
	static _Atomic unsigned fences;
	atomic_fetch_add(&fences, 1);
#else
	atomic_thread_fence(memory_order_seq_cst);
#endif
}

void
virtual_gpu_fence(void)
{
	fence(self, true);
}

void
virtual_gpu_acquire(void)
{
	fence(self, false);
}

uint64_t
virtual_gpu_add(uint64_t *at, uint64_t value)
{
	struct runner *r = self;
	int owner;
	char *bytes = bytes_at(r, at, sizeof *at, true, &owner);
	if (owner != r->c->device)
		fail(r, CUDA_ERROR_ILLEGAL_ADDRESS);
	forget_early(r, (const char *)at, sizeof *at);
	uint64_t before = __atomic_fetch_add((uint64_t *)bytes, value, ADDS);
	memory_stored(bytes, sizeof *at);
	return before;
}

void
virtual_gpu_pause(void)
{
	struct runner *r = self;
	end_if_lost(r);
	if (r->watch.turns >= r->watch.yields)
		let_go(r);
	if (r->n_late && draw(r, LATE_ODDS) == 0)
		let_one_go(r);
	watch_pause(&r->watch);
}

uint64_t
virtual_gpu_time(void)
{
	return (uint64_t)clock_ns();
}

uint64_t
virtual_gpu_device_time(void)
{
	int64_t scale = setting("VIRTUAL_GPU_SCALE", 0);
	return (uint64_t)(clock_ns() / (scale > 0 ? scale : 1));
}

void
virtual_gpu_barrier_of(int number, unsigned threads)
{
	struct runner *r = self;
	struct block *b = r->block;
	struct barrier *at = &b->barrier[number];
	let_go(r);
	pthread_mutex_lock(&b->lock);
	uint64_t turn = at->turn;
	at->threads = threads;
	at->there++;
	open_barrier(b, at);
	while (turn == at->turn && !lost(r)) {
		struct timespec until;
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += BARRIER_LOOKS_NS;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		pthread_cond_timedwait(&at->all_there, &b->lock, &until);
	}
	pthread_mutex_unlock(&b->lock);
	unsigned fences = atomic_load(&b->fences);
	if (fences != r->fences)
		r->n_early = 0;
	r->fences = fences;
	r->has_fenced = false;
	end_if_lost(r);
}

void
virtual_gpu_tell_block(uint32_t *at, uint32_t value)
{
	let_go(self);
	__atomic_store_n(at, value, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, at, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

uint32_t
virtual_gpu_hear_block(const uint32_t *at)
{
	return __atomic_load_n(at, __ATOMIC_SEQ_CST);
}

uint32_t
virtual_gpu_hear_more(const uint32_t *at, uint32_t heard)
{
	static const struct timespec look = { .tv_nsec = BARRIER_LOOKS_NS };
	uint32_t value;
	while ((value = virtual_gpu_hear_block(at)) == heard) {
		let_go(self);
		syscall(SYS_futex, at, FUTEX_WAIT_PRIVATE, heard, &look, NULL, 0);
		end_if_lost(self);
	}
	self->has_fenced = false;
	return value;
}
