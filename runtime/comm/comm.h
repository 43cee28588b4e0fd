/* Communicators: what a blinkComm_t is. */
#ifndef BLINK_COMM_H
#define BLINK_COMM_H

#include "bootstrap/bootstrap.h"
#include "bootstrap/port.h"
#include "choose/choose.h"
#include "engine/engine.h"
#include "runtime.h"
#include "settings.h"
#include "transport/shm.h"
#include "tune/tuner.h"

enum { GPU_BYTES = 64, USER_OPS = 64 };

struct gpu;
struct gpu_relay;

/* One rank of a job. */
struct rank_comm {
	struct engine engine;
	struct bell early_bell;		/* of the engine, before there is shared memory */
	int64_t deadline;		/* of init */
	struct bootstrap *bootstrap;	/* NULL: before the ranks have met, and after a farewell */
	struct bootstrap_port *port;	/* for a shrink; NULL: none */
	blinkUniqueId_t *place;		/* of each rank's port; of one that has none all 0 */
	_Atomic int culprit;		/* the rank that has ended or failed first, as the hub says; -1: none */
	struct shm *shm;		/* NULL: no peer on this server, or BLINK_SHM=0 */
	struct memory *memory;		/* of blinkMemAlloc */
	struct net_keys keys;
	struct settings settings;
	char gpu[GPU_BYTES];
	struct gpu_card card;		/* of its GPU, where that is given by its PCI address */
	char machine[MACHINE_BYTES];	/* "": not stated */
	char *schedules;

	Ctx ctx;			/* of the library and of what plans are made with */
	pthread_mutex_t library_lock;	/* of `library` */
	struct library *library;
	struct job job;
	char (*gpus)[GPU_BYTES];	/* of each rank */
	const char **gpu_of;
	int *server;
	struct stated *stated;
	bool wants_gpu;			/* the backend is cuda */
	struct gpu *cuda;		/* NULL: before it is made */
	_Atomic(struct gpu_relay *) relay;	/* of its calls to other servers; NULL: none */
	bool on_gpu;			/* it is complete: calls go there */
	pthread_mutex_t gpu_lock;	/* of what follows: held by events that go to the GPU */
	bool gpu_hears;
	struct gpu_card *cards;		/* of each rank; NULL: not known of all */
	struct tuner *tuner;		/* NULL: BLINK_MIAD is not set, or chunks have a size */
	const char *tuner_path;		/* NULL: what is found is not kept */
	struct plan *plan[N_COLLECTIVES];	/* in the order in which they were first chosen */

	pthread_mutex_t lock;		/* of the operations */
	bool has_op[USER_OPS];
	struct reduction op[USER_OPS];	/* of the user */
};

/* Read the library, and wire the engine's events: comm/plans.c. */
int plans_open(struct rank_comm *r, struct blink_error *err);
void plans_close(struct rank_comm *r);
int plans_choose(void *rank_comm, const struct call *call, struct plan **out, struct blink_error *err);

/* Has one of its schedules parts that go over PCIe, beside others that do not? */
bool plans_have_routes(struct rank_comm *r);

/* Sizes of chunks by trying: comm/tuning.c. tuning_open: once the ranks have met; rank 0 reads the file, for all. */
int tuning_open(struct rank_comm *r, struct blink_error *err);
void tuning_close(struct rank_comm *r);

/* Meet the other ranks: comm/init.c. Whatever it returns, rank_comm_close frees it. */
int rank_comm_open(struct rank_comm *r, int n, const blinkUniqueId_t *id, int rank, const blinkConfig_t *config,
    struct blink_error *err);
void rank_comm_close(struct rank_comm *r, bool forked);

/* It has failed: kernels end. */
void rank_comm_stop(struct rank_comm *r);
int64_t rank_comm_deadline(const struct rank_comm *r);

/* The ranks on this server: comm/local.c. rank_is_local: their memory can be mapped. local_index: number of a rank
 * among those on its server, in order. */
bool rank_is_local(const struct rank_comm *r, int rank);
int local_index(const struct rank_comm *r, int rank);

/* Exchange memory with all local ranks, which do the same (shm_exchange). addresses: the first rank's, of SHM_ADDRESS
 * bytes; each other's `step` bytes after the one before. least: bytes of each memory. memory: of each rank; set for the
 * local ones but this. */
int map_local(const struct rank_comm *r, struct shm *own, const void *addresses, size_t step, size_t least,
    int64_t deadline, char **memory, struct blink_error *err);

/* The caller's handle of a new rank. */
blinkResult_t comm_open(blinkComm_t *out, int n, const blinkUniqueId_t *id, int rank, const blinkConfig_t *config,
    struct blink_error *err);

/* Start a call in a stream, of the host: NULL. Takes the call, whatever it returns. */
int rank_comm_submit(struct rank_comm *r, struct call *call, blinkStream_t stream, struct blink_error *err);

/* As engine_wait and engine_last_call, where the calls are: on the GPU, or on the host. */
int rank_comm_wait(struct rank_comm *r, uint64_t number, bool wait, struct blink_error *err);
uint64_t rank_comm_last_call(struct rank_comm *r);

/* Calls of a group wait in the thread until it ends: comm/group.c. True: it has taken the call, or freed it
 * with *err set. */
bool group_takes(blinkComm_t comm, struct call *call, blinkStream_t stream, struct blink_error *err);

/* A call in it could not be taken: blinkGroupEnd returns this code, and makes none of its calls. Without a group
 * nothing happens. */
void group_fails(int code);

/* A communicator ends: this thread's group fails if it has calls of it. */
void group_forgets(blinkComm_t comm);

/* The same for a rank of this one, on its GPU, whatever the thread's context is. config NULL: that of this one. */
int rank_comm_open_child(struct rank_comm *r, blinkComm_t *out, int n, const blinkUniqueId_t *id, int rank,
    const blinkConfig_t *config, struct blink_error *err);

/* The rank of a communicator that this process may use; NULL, with its error set. */
struct rank_comm *comm_rank(blinkComm_t comm);
blinkResult_t comm_error(blinkComm_t comm, const struct blink_error *err);
blinkResult_t give_blink_error(blinkError_t *error, const struct blink_error *err);

#endif
