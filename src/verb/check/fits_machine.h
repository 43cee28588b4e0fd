/* Do schedules, and the entries of an index for them, fit a machine? */
#ifndef BLINK_MATCH_H
#define BLINK_MATCH_H

#include "model/model.h"
#include "topology/topology.h"

/* A schedule whose ranks and links are those of its GPUs in the machine. */
typedef struct {
	const Topology *whole;				/* the machine */
	const Topology *machine;			/* what is left of it, if the schedule is for that */
	const Topology *entry_machine;			/* the same for entries (match_index) */
	const int *entry_gpu;				/* of each GPU its number there; NULL: the same */
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

/* What entries of this index are for: the machine, or what is left of it. Fails: BAD_INPUT (label) it has no such
 * parts, or another digest. */
Status match_index(Ctx *ctx, const char *label, const Index *index, Match *match);

/* Is the job of an entry the same as the schedule's, with GPU i in the place of rank[i]? Checked by canonical forms,
 * so it holds for switches, too. entry: its GPUs are below the machine's; after match_index. Fails: BAD_INPUT it is
 * not. */
Status match_entry(Ctx *ctx, const char *label, const Match *match, const IndexEntry *entry);

#endif
