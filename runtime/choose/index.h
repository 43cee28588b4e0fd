/* Indexes: the schedules of a machine, and the job of one that a communicator's job is isomorphic to. */
#ifndef BLINK_CHOOSE_INDEX_H
#define BLINK_CHOOSE_INDEX_H

#include "blink.h"
#include "format/format.h"

#include <pthread.h>

struct blinkIndex {
	blinkIndexInfo_t info;
	const Index *index;		/* without entries, if they are in `lookup` */
	Lookup *lookup;			/* NULL: there is none */
	const char *file;		/* its name in its directory */
	struct kept_file *kept;		/* files of entries that were given out */
	pthread_mutex_t lock;		/* of kept, and of ctx once it is loaded */
	Ctx ctx;			/* its memory */
};

/* A job of an index that a communicator's job is, or is isomorphic to. */
struct indexed_job {
	const struct blinkIndex *index;
	int n_entries;
	const IndexEntry *entry;	/* its entries, in order; NULL: there is no such job */
	int *rank;			/* of each rank of the communicator: its number in the first entry's file */
	char lacks[100];		/* what the index has not, for people; "": it has all GPUs of the job */
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

#endif
