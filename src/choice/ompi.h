/* Open MPI: which of its algorithms are ours, by its numbers, and the file in which it reads rules (component tuned of
 * its collectives, coll_tuned_dynamic_rules_filename).
 *
 * The numbers and the file are those of Open MPI 4.1.4: ompi/mca/coll/tuned/coll_tuned_*_decision.c and
 * coll_tuned_dynamic_file.c; 5.0.9 has the same numbers, and reads the same file. Its ranks stand in an order that
 * follows from their numbers, and ours are planned in that order: tests/ompi/traffic.py holds what each of its
 * algorithms sends from rank to rank against ours. Left out are algorithms that we do not have, as those with two
 * trees or a fan-out, its linear reduce-scatters and neighbour exchange; that differ, as Rabenseifner's reduce; and
 * its linear reduce, since simulated times do not count what it takes the root to receive. Blocks of an alltoall that
 * go straight to their ranks are two algorithms, of which it chooses one itself. */
#ifndef BLINK_CHOICE_OMPI_H
#define BLINK_CHOICE_OMPI_H

#include "base/text.h"
#include "choice/choice.h"

/* A rule: messages of `from` bytes and more are this algorithm's. */
typedef struct {
	int64_t from;
	int algorithm;		/* Open MPI's number */
	const char *name;	/* of it, as Open MPI has it */
	int64_t segment;	/* bytes; 0: whole messages, or one that has none */
	int64_t time, least;	/* ps at `from`: ChoicePoint */
} OmpiRule;

/* For a collective over n_ranks ranks. */
typedef struct {
	Collective coll;
	int n_ranks, n;
	OmpiRule *rule;		/* ascending */
} OmpiRules;

enum { OMPI_RULES = 64 };	/* of a collective over a number of ranks, at most */

/* The fastest of Open MPI's algorithms for each of these sizes, ascending. No rules: it has none over these links.
 * job: of this collective. Fails: LIMIT. */
Status ompi_rules_find(Ctx *ctx, const Job *job, const SimParameters *p, const int64_t *size, int n_sizes,
    OmpiRules *out);

/* The file. rules: n of them, by collective, then ascending by ranks. machine: for a comment. */
void ompi_rules_write(const OmpiRules *rules, int n, const char *machine, Text *out);

#endif
