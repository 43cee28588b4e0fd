/* What the files of this program share: its ranks, what they send and expect, and how they are started. program.c has
 * the table of scenarios. */
#ifndef NCCL_PROGRAM_H
#define NCCL_PROGRAM_H

#include "driver/driver.h"
#include "nccl/nccl.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#define DECLARE(name, parameters, ...) ncclResult_t nccl##name parameters; ncclResult_t pnccl##name parameters;
NCCL_SERVED_LIST(DECLARE)
NCCL_LATER_LIST(DECLARE)
NCCL_CONFIG_LIST(DECLARE)
const char *ncclGetErrorString(ncclResult_t result);
const char *ncclGetLastError(ncclComm_t comm);
ncclResult_t ncclCommSuspend(ncclComm_t comm, int flags);

enum { MOST = 16, COUNT = 5000, CALLS = 4 };	/* ranks, elements of a block, calls */

extern const struct driver *driver;	/* NULL: host */
extern int n_ranks;
extern int n_servers;			/* that ranks in processes of their own are on */

struct rank {
	int number, device;
	ncclUniqueId id;
	ncclComm_t comm;
	CUstream stream;
	float *send, *recv;
	bool good;
	pthread_t thread;
};

/* ---- program_ranks.c ---- */

/* A case of TAP, and how many there were. */
void ok(bool good, const char *what);
int n_cases(void);

/* A call that has to succeed; else what it returned is printed. */
bool fine(ncclResult_t result, const char *what);
#define TRY_NCCL(call) fine(call, #call)

bool use_device(int device);
bool finish(CUstream stream);
void copy(void *to, const void *from, size_t bytes);

/* `send` has value(rank, i); both have n_ranks blocks of COUNT elements. */
bool open_buffers(struct rank *r);
void close_buffers(struct rank *r);

/* Element i of what a rank sends; of what it receives when all are added. */
float value(int rank, size_t i);
float sum(int rank, size_t i);

/* Are the first `count` elements of `recv` want(rank, i)? what: names the call where not. */
bool receives(const struct rank *r, size_t count, float (*want)(int rank, size_t i), const char *what);

/* A thread for each rank, with one id for all: one case, good where each rank's `good` is in the end. */
void on_threads(struct rank *r, void *(*run)(void *), const char *what);

/* As with MPI: the id reaches the others by another way. dies: the number of a rank whose process is killed on the way;
 * -1: none. */
void on_processes(struct rank *r, bool (*run)(struct rank *r), int dies, const char *what);

/* ---- program_collectives.c ---- */

/* Every collective, as a program of one rank calls them. */
bool collectives(struct rank *r);

/* Does a communicator say of itself what it is? */
bool asks(const struct rank *r);

/* A rank that makes its communicator, uses and destroys it. */
bool one_rank(struct rank *r);

/* ---- scenarios ---- */

void threads(struct rank *r);
void one_thread(struct rank *r);
void processes(struct rank *r);
void groups(struct rank *r);

/* program_comms.c */
void nonblocking(struct rank *r);
void scalable(struct rank *r);
void split(struct rank *r);

/* program_resize.c */
void shrink(struct rank *r);
void deaths(struct rank *r);
void servers(struct rank *r);

/* program_operations.c */
void operations(struct rank *r);

/* program_errors.c */
void errors(struct rank *r);
void failing(struct rank *r);

#endif
