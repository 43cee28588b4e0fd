/* Between kernel.c, which launches grids, and twin.c, which executes the threads of their blocks. */
#ifndef VIRTUAL_GPU_GRID_H
#define VIRTUAL_GPU_GRID_H

#include "streams.h"
#include "twin.h"

enum { LINE_BYTES = 128, SHARED_BYTES = 48 << 10, PARAMETER_BYTES_MOST = 4096, THREADS_MOST = 1024 };

struct grid {
	struct grid *next;		/* of those whose blocks wait for room on the device */
	const struct virtual_kernel *kernel;
	const void *parameter;
	struct context *c;
	const _Atomic bool *gone;
	unsigned blocks, begun;		/* begun: under the lock of the device's queue */
	_Atomic unsigned left;		/* blocks that have not ended */
	unsigned threads;		/* of a block, as they are executed */
	struct moment *done;
};

/* A block that runs. */
struct block {
	struct grid *grid;
	unsigned number;
	_Atomic unsigned left;		/* threads */
	pthread_mutex_t lock;		/* of the barriers */
	unsigned ended;			/* threads that will not come any more */
	struct barrier {
		pthread_cond_t all_there;
		unsigned there, threads;	/* at the barrier now; that it is for */
		uint64_t turn;			/* so far */
	} barrier[3];
	_Atomic unsigned fences;	/* so far, of all threads */
	_Alignas(16) char shared[SHARED_BYTES];
	struct seat {
		struct block *block;
		unsigned thread;
	} seat[];
};

/* Execute a block; in the end, from any of its threads, block_ended, which takes it. */
void block_start(struct grid *grid, unsigned number);
void block_ended(struct block *block);

/* At once, relaxed: 1, 2, 4 or 8 bytes, aligned. Of 16 to LINE_BYTES the last 8, which are a flag, come last. */
void store_bytes(char *to, const char *from, unsigned bytes);

/* ---- flags.c ---- */

/* Store these bytes after a while; returns a number to wait for, above 0. */
uint64_t flag_send(char *at, const char *value, unsigned bytes, int64_t after_ns);
void flag_wait(uint64_t number);	/* 0: for nothing */

/* ---- waiting.c ---- */

/* What a thread that waits for memory looks at, in each turn of its loop. */
enum { WATCHED_MOST = 16 };
struct watch {
	unsigned turns;			/* so far; 0: it does not wait */
	unsigned yields;		/* in how many of them it does not sleep: fewer, the more threads there are */
	bool woken, ended_by_store;	/* the last pause, the last wait */
	int n;
	struct {
		uintptr_t line;
		struct place *place;
		uint32_t stores;	/* before its last load */
		unsigned turn;		/* of that load */
	} on[WATCHED_MOST];
};

void watch_begin(void);			/* a thread begins, and ends */
void watch_leave(struct watch *w);
void watch_load(struct watch *w, const void *at);	/* before the load; from the turn before it sleeps */
bool watches(const struct watch *w, const void *at);
void watch_pause(struct watch *w);
void watch_end(struct watch *w);	/* it goes on */

#endif
