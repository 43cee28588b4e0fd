/* Do schedules, and the entries of an index for them, fit a machine? */
#ifndef BLINK_MATCH_H
#define BLINK_MATCH_H

#include "model/model.h"
#include "topology/topology.h"

/* A schedule whose ranks and links are those of its GPUs in the machine. */
typedef struct {
	const Topology *machine;
	Ask ask;					/* which links the schedule may use */
	unsigned char form[CANONICAL_FORM_BYTES];	/* of its job, each of whose ranks has a mark of its own */
} Match;

/* The number in the machine of each rank's GPU, by its id; -1: it has none of this id. gpu: topo->n_ranks.
 * Cost: a sort of the ranks, and a search among them for each GPU of the machine. Fails: NO_MEMORY. */
Status find_gpus(Ctx *ctx, const Topology *machine, const Topology *topo, int *gpu);

/* Are its links those that the machine has between its GPUs, of the classes that it was made for? label: of the
 * schedule. *out: also where they are not because the digest of the machine differs, but without the form.
 * Fails: BAD_INPUT they are not. */
Status match_schedule(Ctx *ctx, const char *label, const Topology *machine, const Schedule *sched, Match *out);

/* Is the job of an entry the same as the schedule's, with GPU i in the place of rank[i]? Checked by canonical forms, so
 * it holds for switches, too. entry: its GPUs are below the machine's. Fails: BAD_INPUT it is not. */
Status match_entry(Ctx *ctx, const char *label, const Match *match, const IndexEntry *entry);

#endif
