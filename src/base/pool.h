/* Many independent tasks over several processes. */
#ifndef BLINK_POOL_H
#define BLINK_POOL_H

#include "base/status.h"

#include <stddef.h>
#include <stdbool.h>

/* n zeroed elements in memory that all workers and their parent share; NULL: no memory. Pages that are never written
 * take none. */
void *shared_array(size_t n, size_t size);
void shared_free(void *array);	/* or NULL */

enum { POOL_WORKERS = 1024 };	/* at most */

/* CPUs that this process may use. */
int pool_cpus(void);

/* Result of a task. */
typedef struct {
	Status status;
	char text[512];		/* where it failed: the message */
} TaskEnd;

typedef struct {
	int n_tasks, n_workers;	/* n_workers: 1: no process is made */
	/* In a worker: its only results are what it writes to shared arrays and files, and its error in *end. */
	Status (*run)(Ctx *ctx, void *of, int task);
	void (*done)(void *of, int n_done);	/* in the parent, now and then; or NULL */
	void *of;
} Pool;

/* Every task once, each with a Ctx of its own, in order of their numbers as workers become free.
 * end: n_tasks, by shared_array. A worker that dies fails its task with INTERNAL, and others go on.
 * Fails: NO_MEMORY, IO no process can be made. What tasks failed with is in `end` only. */
Status pool_run(Ctx *ctx, const Pool *pool, TaskEnd *end);

/* The same; the first task that failed fails here, too. */
Status pool_run_all(Ctx *ctx, const Pool *pool);

#endif
