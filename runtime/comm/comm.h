/* Communicators: what a blinkComm_t is. */
#ifndef BLINK_COMM_H
#define BLINK_COMM_H

#include "backend/backend.h"
#include "bootstrap/port.h"
#include "choose/choose.h"
#include "tune/tuner.h"

enum { GPU_BYTES = 64, USER_OPS = 64 };

struct rank_comm;

/* Of all ranks, which this process drives by one schedule; or of one rank of a job. */
struct blinkComm {
	struct rank_comm *rank;		/* NULL: of all ranks */
	struct all_ranks *all;		/* all_ranks/all_ranks.h */
	pid_t owner;			/* the process that made it: a forked child may only destroy it */
	struct blink_error err;		/* of the last call that failed */
	pthread_mutex_t lock;		/* of err: a job's communicator is used by several threads */
};

/* One rank of a job. */
struct rank_comm {
	struct rank_state self;
	const struct backend *backend;
	void *of_backend;		/* its state; NULL: before it is made */
	struct bootstrap *bootstrap;	/* NULL: before the ranks have met, and after a farewell */
	struct bootstrap_port *port;	/* for a shrink; NULL: none */
	blinkUniqueId_t *place;		/* of each rank's port; of one that has none all 0 */
	_Atomic int culprit;		/* the rank that has ended or failed first, as the hub says; -1: none */
	struct memory *memory;		/* of blinkMemAlloc */
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
	struct gpu_card *cards;		/* of each rank; NULL: not known of all */
	struct tuner *tuner;		/* NULL: BLINK_MIAD is not set, or chunks have a size */
	const char *tuner_path;		/* NULL: what is found is not kept */
	struct plan *plan[N_COLLECTIVES];	/* in the order in which they were first chosen */

	pthread_mutex_t lock;		/* of the operations */
	bool has_op[USER_OPS];
	struct reduction op[USER_OPS];	/* of the user */
};

/* Read the library: comm/plans.c. */
int plans_open(struct rank_comm *r, struct blink_error *err);
void plans_close(struct rank_comm *r);
int plans_choose(void *rank_comm, const struct call *call, struct plan **out, struct blink_error *err);

/* Has one of its schedules parts that go over PCIe, beside others that do not? */
bool plans_have_routes(void *rank_comm);

/* Sizes of chunks by trying: comm/tuning.c. tuning_open: once the ranks have met, which all want it or none; rank 0
 * reads the file, for all. */
bool tuning_wanted(const struct rank_comm *r);
int tuning_open(struct rank_comm *r, struct blink_error *err);
void tuning_close(struct rank_comm *r);

/* Meet the other ranks: comm/init.c. Whatever it returns, rank_comm_close frees it. */
int rank_comm_open(struct rank_comm *r, int n, const blinkUniqueId_t *id, int rank, const blinkConfig_t *config,
    const struct rank_comm *parent, struct blink_error *err);
void rank_comm_close(struct rank_comm *r, bool forked);

int64_t rank_comm_deadline(const struct rank_comm *r);

/* The caller's handle of a new rank; parent: the one that it is made of, or NULL. */
int comm_open(blinkComm_t *out, int n, const blinkUniqueId_t *id, int rank, const blinkConfig_t *config,
    const struct rank_comm *parent, struct blink_error *err);

/* As `submit` and `wait` of its backend. */
int rank_comm_submit(struct rank_comm *r, struct call *call, blinkStream_t stream, struct blink_error *err);
int rank_comm_wait(struct rank_comm *r, uint64_t number, bool wait, struct blink_error *err);

/* Calls of a group wait in the thread until it ends: comm/group.c. True: it has taken the call, or freed it
 * with *err set. */
bool group_takes(blinkComm_t comm, struct call *call, blinkStream_t stream, struct blink_error *err);

/* A call in it could not be taken: blinkGroupEnd returns this code, and makes none of its calls. Without a group
 * nothing happens. */
void group_fails(int code);

/* A communicator ends: this thread's group fails if it has calls of it. */
void group_forgets(blinkComm_t comm);

/* A communicator of some ranks of this one, and maybe others. config NULL: that of this one. */
int rank_comm_open_child(struct rank_comm *r, blinkComm_t *out, int n, const blinkUniqueId_t *id, int rank,
    const blinkConfig_t *config, struct blink_error *err);

/* The rank of a communicator that this process may use; NULL, with its error set. */
struct rank_comm *comm_rank(blinkComm_t comm);
blinkResult_t comm_error(blinkComm_t comm, const struct blink_error *err);
blinkResult_t give_blink_error(blinkError_t *error, const struct blink_error *err);

#endif
