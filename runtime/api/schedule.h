/* Schedules as callers have them. */
#ifndef BLINK_API_SCHEDULE_H
#define BLINK_API_SCHEDULE_H

#include "blink_program.h"
#include "choose/read.h"

#include <pthread.h>

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

/* blinkScheduleLoad of a file that an index names, in the ranks of the job. */
blinkResult_t schedule_load(const char *path, const struct found *found, blinkSchedule_t *out, blinkError_t *error);

/* The table with the steps of all ranks. A file is lowered at the first call, as a schedule that is loaded to be looked
 * at, or to be divided, needs no steps. Any number of threads may call it. Fails: LIMIT a compact schedule with too
 * many trees to list; NO_MEMORY. */
Status schedule_lower(blinkSchedule_t sched, const struct blink_program **out, struct blink_error *err);

#endif
