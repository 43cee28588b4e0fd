/* What changed between a machine and the schedules that were made for it before: each link once, whatever the number of
 * schedules that have it. Workers note it in shared memory. */
#ifndef BLINK_CHECK_CHANGES_H
#define BLINK_CHECK_CHANGES_H

#include "model/model.h"

typedef struct Changes Changes;

Changes *changes_new(void);		/* NULL: no memory */
void changes_free(Changes *changes);	/* or NULL */

/* In a worker: a schedule is for a machine of another digest. ask: which links it may use. Fails: NO_MEMORY. */
Status changes_note(Ctx *ctx, Changes *changes, const Topology *machine, const Ask *ask, const Schedule *sched);

/* What was noted: how many schedules are for another machine, and how many of these have other links; a line for each
 * change, sorted, as "link gpu0 -> gpu3, nvlink: 20 GB/s, was 25 GB/s"; and whether there are more than were kept. */
typedef struct {
	int n_schedules, n_with_links;
	int n;
	const char **line;
	bool more;
} ChangesList;

Status changes_list(Ctx *ctx, const Changes *changes, ChangesList *out);

#endif
