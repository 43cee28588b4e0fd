/* Types and functions that the files of libblink share. */
#ifndef BLINK_RUNTIME_H
#define BLINK_RUNTIME_H

#include "base/digest.h"
#include "base/text.h"
#include "blink_program.h"
#include "format/format.h"
#include "model/model.h"

#include <pthread.h>
#include <stdio.h>
#include <sys/types.h>

struct blinkSchedule {
	blinkScheduleInfo_t info;
	const struct blink_program *program;
	struct blink_program built;	/* from a file: what `program` points to, a table without steps */
	const Schedule *read;		/* from a file, compact if that is; NULL: `program` has all its steps */
	struct blink_program lowered;	/* the table with its steps, once is_lowered */
	bool is_lowered;
	pthread_mutex_t lock;		/* of the two, and of ctx once it is loaded */
	char digest[DIGEST_ROOM];
	Ctx ctx;			/* its memory */
	void *object;			/* a shared object: from dlopen */
};

struct rank_comm;

/* Of all ranks, which this process drives by one schedule; or of one rank of a job (comm/comm.h). */
struct blinkComm {
	struct rank_comm *rank;		/* NULL: of all ranks */
	const struct blink_program *program;
	size_t chunk_bytes;
	void *device;
	pid_t owner;			/* the process that made it: a forked child may only destroy it */
	struct blink_error err;		/* of the last call that failed */
	pthread_mutex_t lock;		/* of err: a job's communicator is used by several threads */
};

struct blinkIndex {
	blinkIndexInfo_t info;
	const Index *index;		/* without entries, if they are in `lookup` */
	Lookup *lookup;			/* NULL: there is none */
	const char *file;		/* its name in its directory */
	struct kept_file *kept;		/* files of entries that were given out */
	pthread_mutex_t lock;		/* of kept, and of ctx once it is loaded */
	Ctx ctx;			/* its memory */
};

/* The entry of an index for a job. */
struct found {
	const Index *index;
	const IndexEntry *entry;
	const int *rank;		/* of each rank of the job: its number in the file */
};

/* A job of an index that a communicator's job is, or is isomorphic to. */
struct indexed_job {
	const struct blinkIndex *index;
	int n_entries;
	const IndexEntry *entry;	/* its entries, in order; NULL: there is no such job */
	int *rank;			/* of each rank of the communicator: its number in the first entry's file */
};

/* index: zero, with a ctx that ctx_init made; path: a file or a directory. Fails as file_read and index_read do. The
 * caller calls index_unload, whatever is returned. */
Status index_load(struct blinkIndex *index, const char *path);
void index_unload(struct blinkIndex *index);

/* gpus[n]: numbers of GPUs; root is ignored unless the collective has one. Memory of *out: run arena. Fails: USAGE
 * where these are no job of the index's machine; as sched_read does, where a file was needed to find the job. */
Status index_find_job(Ctx *ctx, const struct blinkIndex *index, const int *gpus, int n, int collective, int root,
    struct indexed_job *out);

/* The entry for a size of message (index_of_size), and the numbers of ranks in its file; NULL: none. job: has entries.
 * Memory: run arena. */
Status index_choose(Ctx *ctx, const struct indexed_job *job, int64_t size, const IndexEntry **out, int **rank);

/* Where the file of an entry is. Memory: run arena. */
Status index_path(Ctx *ctx, const struct blinkIndex *index, const IndexEntry *entry, char **out);

/* A schedule file in memory, compact if it is, verified, and relabelled if `found` is not NULL. */
Status schedule_parse(Ctx *ctx, const char *name, const char *json, size_t size, const struct found *found,
    Schedule **out);

/* Likewise a regular file, which must not be a shared object. digest: of the file. Fails: also IO. */
Status schedule_read(Ctx *ctx, const char *path, const struct found *found, char digest[DIGEST_ROOM], Schedule **out);

/* The rest of an open file. out: the caller frees it, whatever is returned. Fails: IO, LIMIT, NO_MEMORY. */
Status runtime_read(Ctx *ctx, const char *path, int fd, Text *out);

/* blinkScheduleLoad of a file that an index names, in the ranks of the job. */
blinkResult_t schedule_load(const char *path, const struct found *found, blinkSchedule_t *out, blinkError_t *error);

/* `error` unless it is NULL, and the result. */
blinkResult_t give_error(blinkError_t *error, Status status, const char *text);

/* Where parts end, as programs have it. n_parts stages of n_parts - 1 each. Memory: run arena. */
Status part_ends(Ctx *ctx, const PartEnd *end, int n_parts, struct blink_part_end **out);

/* The table with the steps of all ranks. A file is lowered at the first call, as a schedule that is loaded to be looked
 * at, or to be divided, needs no steps. Any number of threads may call it. Fails: LIMIT a compact schedule with too
 * many trees to list; NO_MEMORY. */
Status schedule_lower(blinkSchedule_t sched, const struct blink_program **out, struct blink_error *err);

/* The table of a schedule without its steps; it may be compact. digest: of the file. Memory: run arena. */
Status exec_describe(Ctx *ctx, const Schedule *sched, const char *digest, struct blink_program *out);

/* The table of a lowered schedule, executed by the host backend. digest: of the file. Memory: run arena. */
Status exec_program(Ctx *ctx, const Program *prog, const char *digest, struct blink_program *out);

#endif
