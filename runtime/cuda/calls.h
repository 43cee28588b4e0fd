/* Calls: between the files that put calls on a GPU. */
#ifndef BLINK_CUDA_CALLS_H
#define BLINK_CUDA_CALLS_H

#include "cuda/gpu.h"

enum {
	GPU_MODULES = 13,
	GPU_TEXTS = 32,
	GPU_SEGMENTS = 64		/* whose lengths are looked at: of more, no rank has a block for each */
};

/* The program of a plan. */
struct gpu_table {
	const struct plan *plan;
	struct gpu_program program;
	uint16_t order[GPU_COUNTED];	/* of its tasks: by deals, then by the link to their first reader */
	const uint16_t *order_at;	/* in memory of the GPU */
	const struct gpu_partner *partner;	/* where copy engines are used */
	bool switched;			/* its values are in the memory of multicast.c */
	bool has_lines;			/* all lanes of all ranks may have lines */
	int n_partners;
	int roots_trees;		/* of switched ones: the most that have one root */
	struct gpu_table *next;
};

/* A launch that may not have ended. */
struct gpu_flight {
	uint64_t number;		/* of the call */
	CUevent event;			/* recorded after it */
	int n_messages;			/* above 0: an exchange */
	struct gpu_sheet *sheet;	/* to be given back; NULL: it has none */
	struct gpu_flight *next;
};

/* A table of messages or blocks, of one launch. That of a capture belongs to its graph for ever. */
struct gpu_sheet {
	struct gpu_messages *host;	/* where it is written */
	const struct gpu_messages *gpu;	/* where kernels read it: the same memory, or gpu_sheet_put copies it there */
	struct gpu_sheet *next;		/* that no launch has */
	struct gpu_sheet *made;		/* before it: of all */
};

/* Memory that is given back when a call has ended. */
struct gpu_owed {
	CUdeviceptr memory;
	uint64_t number;		/* of the call */
	struct gpu_owed *next;
};

struct gpu_slab {
	CUdeviceptr memory;
	size_t bytes, used;
	struct gpu_slab *next;
};

struct gpu_launches {
	const struct gpu_module *module;	/* [GPU_MODULES], in the order of kernel_modules; NULL: not loaded */
	CUfunction multicast;		/* blink_multicast; NULL: none */
	int resident;			/* blocks that a multiprocessor holds at once of any kernel, at most 1 */
	struct gpu_generated *generated;	/* NULL: none */

	/* Of the thread that makes calls. */
	struct gpu_slab *slab;
	struct gpu_table *table;
	struct gpu_copier *copier;	/* of copies.c; NULL: none */
	CUdeviceptr kept;		/* copies of inputs that are sent in place */
	size_t kept_bytes;
	CUevent captured;		/* of the last call in a capture */
	uint64_t capture;		/* its capture; 0: none yet */
	int64_t segment[GPU_SEGMENTS];	/* elements, of the call that is made */
	CUstream checked;		/* a stream that is of this context */
	bool has_checked;

	pthread_mutex_t lock;		/* of what follows */
	uint64_t n_made;
	struct gpu_flight *first, *last, *unused;
	int n_flights;			/* from first to last */
	struct gpu_owed *owed, **owed_end;	/* in the order of calls */
	struct gpu_sheet *sheet, *sheets;	/* that no launch has; all */
	void *first_sheets;		/* memory of the host, of those that the communicator began with */
	struct gpu_messages *staged;	/* memory of the process, of all others while they are written */
	bool has_captured;		/* graphs may run without a call */
	struct { uint64_t signature; char text[112]; } text[GPU_TEXTS];	/* of calls: what a signature means */
	int next_text;

	pthread_cond_t wake;		/* of the watcher */
	pthread_t watcher;
	bool has_watcher, idle, quit;
	_Atomic int stopping;		/* an error of this rank has been told */
};

/* A stream of the caller, while a call is put into it. */
struct gpu_target {
	CUstream stream;
	bool capturing;
	uint64_t capture;		/* number of its capture */
};

/* ---- slabs.c ---- */

/* Memory of the GPU that stays until the communicator closes; graphs may use it. Aligned to 256 bytes. */
int gpu_keep(struct gpu *g, size_t bytes, CUdeviceptr *out, struct blink_error *err);
/* By the library's own stream, as that of the caller may capture. */
int gpu_upload(struct gpu *g, CUdeviceptr to, const void *from, size_t bytes, struct blink_error *err);
void gpu_slabs_close(struct gpu *g, bool forked);

/* ---- tables.c ---- */

int gpu_table_of(struct gpu *g, const struct plan *plan, bool switched, const struct gpu_table **out,
    struct blink_error *err);
void gpu_tables_close(struct gpu *g);

/* By which route a part of a plan goes between this rank and a peer. */
enum gpu_route gpu_route_of(const struct gpu *g, const RankProgram *prog, int part, int peer);

/* ---- modules.c ---- */

/* All kernels, and where the rank can use it that of multicast objects, if it loads. The context is current; it may
 * take seconds where the driver has not seen them before. */
int gpu_modules_open(struct gpu *g, struct blink_error *err);
void gpu_modules_close(struct gpu *g);

/* ---- flights.c ---- */

/* After the launch of a call, or of one of several of its exchanges. Takes the sheet (NULL: none), whatever it
 * returns. */
int gpu_launched(struct gpu *g, const struct gpu_target *to, uint64_t number, int n_messages, struct gpu_sheet *sheet,
    struct blink_error *err);

/* The calls before it in other streams end first. */
int gpu_order(struct gpu *g, const struct gpu_target *to, struct blink_error *err);

/* Let go of calls that have ended; the lock is held. Returns what the driver said of the first that has not:
 * CUDA_ERROR_NOT_READY, or its error; CUDA_SUCCESS: all have ended. */
CUresult gpu_reap(struct gpu *g);

/* Memory of gpu_take, when the calls so far have ended. */
int gpu_give_later(struct gpu *g, CUdeviceptr memory, struct blink_error *err);

int gpu_flights_open(struct gpu *g, struct blink_error *err);

/* A sheet that no launch has, which is to be written at once, and put; for a launch in a capture or not. NULL: fails.
 * gpu_sheet_return: no launch took it. */
struct gpu_sheet *gpu_sheet_take(struct gpu *g, bool capturing, struct blink_error *err);
int gpu_sheet_put(struct gpu *g, const struct gpu_sheet *sheet, struct blink_error *err);
void gpu_sheet_return(struct gpu *g, struct gpu_sheet *sheet);

/* Of calls that have been made. */
uint64_t gpu_last_call(void *of);
void gpu_flights_close(struct gpu *g, bool forked);

/* ---- copies.c ---- */

struct gpu_asked;

/* Streams and tables of calls by copies. gpu_copies_close: after their last one. */
int gpu_copies_open(struct gpu *g, struct blink_error *err);
void gpu_copies_close(struct gpu *g, bool forked);

/* Is that call one for copy engines? If so: in chunks of *out. The same on all ranks. */
struct gpu_copy_sizes;
bool gpu_copies_serve(const struct gpu *g, const struct call *call, const struct gpu_asked *asked,
    struct gpu_copy_sizes *out);

/* Put the call into the stream, and copies into others that branch from it and come back to it. p: its parameters, with
 * buffers. */
int gpu_copies_submit(struct gpu *g, const struct call *call, struct gpu_call *p, const struct gpu_copy_sizes *sizes,
    const struct gpu_target *to, struct blink_error *err);

/* All that waits for peers in a stream goes on: for a communicator that has failed, as often as it is looked at. */
void gpu_copies_release(struct gpu *g);

/* ---- uneven.c ---- */

/* An alltoall whose blocks differ in length. gpu_uneven_plan: as if its message had some length that is the same on all
 * ranks, which sets call->count, its plan is chosen; by_messages: it is to go by messages, which the call has then.
 * gpu_uneven_blocks: the blocks for the kernel with those parameters, in a sheet. Fails: blinkMismatch,
 * blinkLimit, blinkOutOfMemory. */
int gpu_uneven_plan(struct gpu *g, struct call *call, bool *by_messages, struct blink_error *err);
int gpu_uneven_blocks(struct gpu *g, const struct call *call, struct gpu_call *p, bool capturing,
    struct gpu_sheet **sheet, struct blink_error *err);

/* ---- messages.c ---- */

int gpu_submit_messages(struct gpu *g, struct call *call, const struct gpu_target *to, struct blink_error *err);

/* ---- watch.c ---- */

int gpu_watch_open(struct gpu *g, struct blink_error *err);
void gpu_watch_close(struct gpu *g);

/* As `struct backend` has them; `of` is a struct gpu. */
int gpu_wait(void *of, uint64_t number, bool wait, struct blink_error *err);
void gpu_status_of(void *of, struct rank_status *out);
void gpu_wake(void *of);

/* What failed here, told to all. */
void gpu_fail(struct gpu *g, const struct blink_error *err);

#endif
