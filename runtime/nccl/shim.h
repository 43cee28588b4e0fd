/* NCCL's interface on top of libblink: what the files of libblink-nccl.so share.
 *
 * Beside a real NCCL every communicator of the program is one of that library: its pointer is the handle, so that
 * functions that this library does not know work with it. Ours stands beside it in a table, found by the handle, and
 * does the collectives for which it has a schedule. Alone there is no other: a handle is an address that nobody may
 * write. */
#ifndef BLINK_NCCL_SHIM_H
#define BLINK_NCCL_SHIM_H

#include "blink_program.h"
#include "driver/driver.h"
#include "nccl/nccl.h"

#include <pthread.h>
#include <stdbool.h>

/* ---- real.c: the real NCCL ---- */

struct real {
	const char *path;		/* NULL: there is none */
	int version;			/* as of ncclGetVersion */
#define REAL_MEMBER(name, parameters, ...) ncclResult_t (*name) parameters;
	NCCL_SERVED_LIST(REAL_MEMBER)
	NCCL_LATER_LIST(REAL_MEMBER)
	NCCL_CONFIG_LIST(REAL_MEMBER)
#undef REAL_MEMBER
#define REAL_MEMBER(name, parameters, arguments) const char *(*name) parameters;
	NCCL_TEXT_LIST(REAL_MEMBER)
#undef REAL_MEMBER
};

/* Found at the first call: BLINK_NCCL, a path, or "none"; else what the process has loaded; else what the dynamic
 * linker finds. Its own names (pncclX) are used where it has them, since it calls itself by the others. Functions that
 * it lacks fail with ncclInvalidUsage. */
const struct real *real_nccl(void);

/* Why BLINK_NCCL is of no use; NULL: it is, or is not set. */
const char *real_wrong(void);

/* This thread is inside of a call of the real library: what comes from there belongs to it. */
void real_enter(void);
void real_leave(void);
bool inside_real(void);

/* The same around one call: the value of a REAL(AllReduce, (send, ...)). */
#define REAL(name, arguments)                                                  \
	__extension__({                                                        \
		real_enter();                                                  \
		ncclResult_t real_result_ = real_nccl()->name arguments;       \
		real_leave();                                                  \
		real_result_;                                                  \
	})

/* What nccl*X does unless it is called from inside the real library, or the real one does it alone: comms.c, calls.c,
 * ends.c. */
#define SERVED(name, parameters, ...) ncclResult_t served_##name parameters;
NCCL_SERVED_LIST(SERVED)
NCCL_LATER_LIST(SERVED)
NCCL_CONFIG_LIST(SERVED)
#undef SERVED

/* ---- errors.c ---- */

struct shim_comm;

/* The result, with its text for ncclGetLastError: of this thread, and of the communicator unless NULL. */
ncclResult_t comm_error(struct shim_comm *c, ncclResult_t result, const char *text);

/* The last error of this thread becomes the communicator's, for the caller that waits for its maker. */
void comm_keeps_error(struct shim_comm *c);
ncclResult_t result_of(blinkResult_t result);

/* Text of the last error of this thread: 512 bytes. */
char *last_error(void);

/* ---- comm_table.c: communicators ---- */

/* What programs see alone: NCCL 2.28.9, the newest version of which all functions that they need are served. */
enum { ALONE_VERSION = 22809, SHIM_OPS = 64, SHIM_COLLECTIVES = 8 };

/* NCCL's tools read in a handle what they take for a communicator: zeros, and no magic number of theirs. */
enum { HANDLE_BYTES = 256 << 10 };

struct shim_window {
	void *memory;
	struct shim_window *next;
};

struct shim_comm {
	ncclComm_t handle;
	ncclComm_t *out;		/* where the caller gets it, until it is made */
	blinkComm_t blink;		/* NULL: the real one does everything */
	bool beside;
	bool blocking;
	int n, rank, device;
	ncclResult_t state;		/* ncclInProgress until it is made; under the lock of the table */
	bool revoked, finalized;
	bool left;			/* by the caller, before it was made: its maker ends it; under the lock, too */
	char text[512];			/* of the last error */
	struct shim_window *windows;

	/* Of its making, in a thread: ranks of one process need not wait for each other's. */
	pthread_t maker;
	bool has_maker;
	CUcontext context;
	ncclUniqueId id;
	struct shim_comm *parent;	/* of what is made of another; NULL: of an id alone */
	int n_children;			/* that are being made of this one; under the lock */
	enum { OF_SPLIT, OF_SHRINK, OF_GROW } how;
	int color, key;			/* of a split */
	int *excluded, n_excluded;	/* of a shrink */
	bool aborts;
	bool has_id;			/* of a grow */

	struct {
		ncclRedOp_t theirs;
		blinkRedOp_t ours;
		bool used;
	} op[SHIM_OPS];			/* of the user */
	struct {
		bool known, ours;
		int root;
		size_t from, to;
	} served[SHIM_COLLECTIVES];	/* the last answer of comm_serves */
	struct shim_comm *next;
};

/* The communicator of a handle; NULL: none of ours. */
struct shim_comm *comm_of(ncclComm_t handle);

/* The same, once it is made; *result: why not. */
struct shim_comm *comm_ready(ncclComm_t handle, ncclResult_t *result);

/* The same for calls: neither revoked nor finalized. */
struct shim_comm *comm_open_for_calls(ncclComm_t handle, ncclResult_t *result);

/* Into the table; out of it, and freed. */
void comm_adds(struct shim_comm *c);
void comm_forget(struct shim_comm *c);

/* Of its making. True of comm_set_state: the caller has left it. */
ncclResult_t comm_state(struct shim_comm *c);
bool comm_set_state(struct shim_comm *c, ncclResult_t state);

/* One that waits for ranks by an id is left to its maker, which ends it when its time is up; false: it is not. */
bool comm_leave(struct shim_comm *c);

/* A maker needs the parent, which may not end before: count its children, or wait until there are none. NULL: no
 * parent. */
void comm_counts_child(struct shim_comm *parent, int more);
void comm_awaits_children(struct shim_comm *c);

/* ---- comm_make.c: how they are made ---- */

/* What of the environment is of no use: ncclInvalidUsage, with a text. */
ncclResult_t comm_check_settings(void);

/* Not yet in the table; NULL: *result says why not, and the group fails. */
struct shim_comm *comm_new(ncclComm_t *out, int n, int rank, const ncclConfig_t *config, ncclResult_t *result);

/* Begin to make one, at the end of a group if there is one: ranks of one process begin together. */
ncclResult_t comm_begin(struct shim_comm *c);

/* Begin to make one that a group has held back; wait until it is made, unless it does not block. */
ncclResult_t comm_start(struct shim_comm *c);
ncclResult_t comm_take(struct shim_comm *c);
void comm_drop(struct shim_comm *c);	/* it will not be begun */

/* ---- serves.c: what ours does ---- */

/* Does ours do this call? The same on all ranks. bytes: of the message, as blink-schedule(5) counts M. */
bool comm_serves(struct shim_comm *c, blinkCollective_t coll, int root, size_t bytes);
bool comm_serves_messages(const struct shim_comm *c);

/* What of BLINK_COLLECTIVES is not understood; NULL: nothing. */
const char *serves_wrong(void);

/* ---- group.c ---- */

struct shim_list {
	struct shim_comm **comm;
	size_t n, capacity;
};

/* Of this thread. */
extern __thread struct shim_group {
	int depth;
	struct shim_list made, used;
	ncclResult_t failed;		/* of the first call that could not be made */
} group;

bool in_group(void);

/* At its end it is made, and waited for. */
void group_adds(struct shim_comm *made);

/* A call returns this: if it has failed inside a group, so does the group. */
ncclResult_t group_fails(ncclResult_t result);

void group_forgets(struct shim_comm *c);

/* A call of ours has been made: on the host, it ends here, or at the end of the group. */
ncclResult_t group_uses(struct shim_comm *c);

/* Wait for its calls. */
ncclResult_t group_finish(struct shim_comm *c);

/* ---- device.c: the caller's GPU ---- */

/* The driver; NULL: calls are for the host (BLINK_BACKEND=host), where they return when they are done. */
const struct driver *shim_driver(void);
bool on_host(void);

/* What BLINK_BACKEND has instead of a backend; NULL: it has one, or is not set. */
const char *device_wrong(void);

/* The current device of this thread, and its context; device 0 becomes the current one where there is none. On the
 * host: device 0. */
ncclResult_t device_current(int *device, CUcontext *context);

/* Make a device current, and what was before it. */
ncclResult_t device_use(int device, CUcontext *before);
void device_restore(CUcontext before);

void *device_alloc(size_t bytes);
bool device_free(void *memory);

/* Rank 0's bytes for all ranks of a communicator of the real NCCL. */
ncclResult_t device_broadcast(ncclComm_t comm, void *data, size_t bytes);

#endif
