/* Libraries of schedules, for the files of this folder. */
#ifndef BLINK_LIBRARY_INSIDE_H
#define BLINK_LIBRARY_INSIDE_H

#include "choose/choose.h"
#include "choose/index.h"

/* A schedule file that has been read for one rank: its schedule, without trees unless it is compact, and the rank's
 * program. Each has an arena of its own, as trees come and go in the one. */
struct part {
	Ctx ctx, own;
	SchedulePart of;
};

struct item {
	const char *path;
	struct blinkIndex *index;	/* NULL: a schedule file, for the job of the members below */
	Collective coll;
	int n_ranks, root;
	struct part *part;		/* NULL: it is read again when it is chosen */
};

struct library {
	Ctx ctx;			/* its memory */
	int64_t small;
	int n_ranks, rank;		/* of the job whose parts are read at once; 0: of none */
	int n_items;
	struct item *item;
};

/* Is the index of the machine that ranks state? */
bool library_is_stated(const Index *index, const struct job *job);

/* Nobody says which GPU it has, but the driver does. */
bool library_by_links(const struct job *job);

/* The job's job of an index; without entries where the item is none, or has not all of its GPUs. As index_find_job. */
Status library_find(Ctx *ctx, const struct item *item, const struct job *job, Collective coll, int root,
    struct indexed_job *out);

#endif
