/* Ranks on virtual GPUs, as threads and as processes, and what they play there: whether it went well. */
#ifndef TESTS_UNIT_GPU_MEMORY_PLAY_H
#define TESTS_UNIT_GPU_MEMORY_PLAY_H

#include "comm/comm.h"
#include "cuda/gpu.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

enum { MOST = 8, SECONDS = 60 };

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

/* What holds for each process that plays, before it knows of GPUs. */
extern struct processes {
	bool see_own_gpu, lack_vmm;
	bool on_servers;		/* ranks 0 and 1 on one, the others on another */
	bool stay;			/* until all have left */
} processes;
extern _Atomic int *n_left;		/* ranks that have destroyed their communicator; shared by processes */

/* ---- ranks ---- */

struct gpu *gpu_of(const struct rank *r);
void make_id(blinkUniqueId_t *id);
void init(struct rank *r);
void without_vmm(void);			/* a driver before VMM */
bool meet(struct rank *r);
bool content(const struct rank *r);	/* if not, says why */
void as_threads(struct rank *r, int n, bool (*play)(struct rank *));
bool threads_play(int n, bool (*play)(struct rank *));
/* Of a process that is no rank, and knows nothing of GPUs. */
bool processes_play(int n, bool (*play)(struct rank *));
/* A child that waits for the id, which its parent makes when it has forked all: before, it has no thread. 0: the
 * child, which has the id; its deadline is set. */
pid_t fork_rank(int to_child[2], blinkUniqueId_t *id);
bool ends_well(pid_t child);

/* ---- what they do with regions ---- */

bool regions(struct rank *r);
bool one_leaves(struct rank *r);
bool one_leaves_ipc(void);
bool threads_direct(struct rank *r);
bool processes_direct(struct rank *r);
bool ipc(struct rank *r);
bool some_direct(struct rank *r);
bool unseen_direct(struct rank *r);
bool none_direct(struct rank *r);
bool lost_is_found(struct rank *r);

/* ---- what they are given, and what is refused ---- */

bool shared_gpu(struct rank *r);
bool least_blocks(struct rank *r);
bool capped_blocks(struct rank *r);
bool caller_memory(struct rank *r);
bool split(struct rank *r);
bool on_servers(struct rank *r);
bool child_destroys(struct rank *r);
bool devices_of_threads(void);
bool refuses_map(const char *text);
bool backends_differ(void);
bool unknown_backend(void);
bool all_refuse(const struct rank *r, int n, blinkResult_t code, const char *text);

#endif
