/* Backends: where the buffers of a rank are, and who executes its calls there. */
#ifndef BLINK_BACKEND_H
#define BLINK_BACKEND_H

#include "backend/rank.h"

enum { BACKEND_ADDRESS = 32 };

/* Memory of blinkMemAlloc. */
struct memory {
	void *at;
	size_t bytes;
	struct shm *shm;		/* NULL: not of the host */
	unsigned char address[SHM_ADDRESS];
	int registered;			/* number of its window; 0: none */
	struct memory *next;
};

/* A row for each; comm/backends.c has the table. BLINK_BACKEND and blinkConfig_t.backend choose by name, and all ranks
 * of a communicator the same. `of` is what `open` has made. Functions return a blinkResult_t, and set *err. */
struct backend {
	const char *name;
	bool on_device;			/* calls take streams; an index is searched for the GPUs, if none is named */
	bool flat;			/* executes plans that are flat */

	/* Once it is known which ranks there are and where; they have not exchanged anything yet. address: for them,
	 * zeroed before. Whatever it returns, `close` frees *of, unless that is NULL. */
	int (*open)(struct rank_state *rank, unsigned char address[BACKEND_ADDRESS], void **of,
	    struct blink_error *err);
	/* All ranks call it. Their addresses: the first rank's, each other's `step` bytes after the one before. From
	 * its end on calls can be made. */
	int (*connect)(void *of, const void *addresses, size_t step, struct blink_error *err);

	/* Of the net, where there are ranks that only it reaches: from `open` to `finish`. The context is `of`. */
	struct net_events net;

	/* Take a call: it is executed after those before it. Takes it, whatever is returned; sets call->number. stream:
	 * of the caller, where buffers are on a device. */
	int (*submit)(void *of, struct call *call, blinkStream_t stream, struct blink_error *err);
	/* Until that call is done (0: all); or the error of the rank, with its text in *err. wait: else
	 * blinkInProgress. */
	int (*wait)(void *of, uint64_t number, bool wait, struct blink_error *err);
	uint64_t (*last_call)(void *of);
	/* Whether a message of that rank is there, for which no call has been made: its bytes, or blinkInProgress, also
	 * while calls are not done. NULL: it cannot say. */
	int (*probe)(void *of, int from, size_t *bytes, struct blink_error *err);
	uint64_t (*begun)(void *of);		/* collectives so far */

	/* By any thread. The rank has failed (rank->stop), or a peer has gone: whoever waits looks again. */
	void (*wake)(void *of);
	void (*status)(void *of, struct rank_status *out);

	/* Memory of m->bytes for the caller, and copies from and to it, which are done when they return. */
	int (*memory_open)(void *of, struct memory *m, struct blink_error *err);
	int (*memory_close)(void *of, struct memory *m, bool forked, struct blink_error *err);
	int (*copy)(void *of, void *to, const void *from, size_t bytes, struct blink_error *err);
	/* All ranks call it, each with memory of its own, or with NULL: what its caller gave is not valid. */
	int (*memory_register)(void *of, struct memory *m, struct blink_error *err);
	int (*memory_deregister)(void *of, struct memory *m, struct blink_error *err);

	/* The end, in this order, with the net's between: nothing is sent after `finish`, no thread runs after it, and
	 * the network closes; then it hears nothing more; then memory of the caller is freed; then the rest. forked:
	 * frees memory of the process alone, and `finish` is not called. */
	void (*finish)(void *of);
	void (*close)(void *of, bool forked);
};

/* Ended by NULL; the first is that of who names none. */
extern const struct backend *const backends[];

#endif
