/* Choice: which schedule a communicator uses for a call. */
#ifndef BLINK_CHOOSE_H
#define BLINK_CHOOSE_H

#include "base/digest.h"
#include "model/model.h"
#include "model/rank_program.h"
#include "probe/probe.h"

enum { MACHINE_BYTES = 80 };

/* What a rank states of the machine that its GPU is in: the machine's name in an index, or its digest, with or without
 * "sha256:", whole or its first 12 hex digits and more. */
struct stated {
	int rank;			/* the first that states it */
	char machine[MACHINE_BYTES];
};

/* The ranks of a communicator, as each knows them all after init. */
struct job {
	int n_ranks;
	const char *const *gpu;		/* of each rank: id or number of its GPU in the machine of an index; "": not
					 * given; NULL: of no rank */
	const int *server;		/* of each rank: its server, 0 upwards in order of their lowest rank */
	int n_servers;
	int n_stated;			/* machines, each as it is stated; by order of ranks */
	const struct stated *stated;
	const struct gpu_card *card;	/* of each rank: its GPU's NVLinks; NULL: not known of all ranks */
};

/* Is it a name, or as much of a digest as tells machines apart? Begins it with "sha256:", 12 hex digits must follow. */
bool machine_valid(const char *stated);

/* The schedules that BLINK_SCHEDULES names: indexes (files or directories that have one) and schedule files, in
 * order. */
struct library;

/* paths: separated by ':'; NULL or "": an empty library. small: bytes; up to this size a message uses the built-in
 * schedule of least latency, if all ranks are on one server and no entry states a range of sizes that holds them
 * (BLINK_SMALL). Every file that is named is read here, which for schedule files shows their jobs; what indexes name,
 * and schedule files once more, when they are chosen. Fails as file_read, index_read and sched_read do; NO_MEMORY.
 * The caller frees *out by library_close, also in a forked child. */
Status library_open(Ctx *ctx, const char *paths, int64_t small, struct library **out);

/* Likewise for one rank of a job of n_ranks: of a schedule file over as many ranks, if blinkc has written it, its part
 * is kept, and the file is not read again. So a file of any size takes the memory of one tree and of the part. */
Status library_open_part(Ctx *ctx, const char *paths, int64_t small, int n_ranks, int rank, struct library **out);
void library_close(struct library *lib);

bool library_has_index(const struct library *lib);

/* GPUs of the machine of its first index, of those that are of the machine which ranks of the job state; 0: there is
 * none. */
int library_gpus(const struct library *lib, const struct job *job);

/* One of the schedules that need no topology. */
struct built_in {
	Collective coll;
	int root;			/* ignored unless the collective has one */
	bool small;			/* for small messages: of few hops */
};

typedef struct {
	const Schedule *sched;		/* in the ranks of the job; NULL: built in */
	RankProgram *prog;		/* of library_open_part's rank, and then `sched` may be without trees; both as
					 * long as the library. NULL: to be projected */
	struct built_in built_in;
	char digest[DIGEST_ROOM];	/* of its file; of a built-in one: of its name and the job */
	int64_t from, to;		/* it is the choice for messages of from <= bytes <= to, bytes as
					 * blink-schedule(5) counts M */
	bool unserved;			/* schedules were named, and none is for this call: `what` says why */
	char what[300];			/* for people: "onehop over 8 ranks, built in", "dgx1v/any.json: trees,
					 * 140 GB/s" */
} Choice;

/* In order: entries whose range of sizes holds the message; a built-in one for small messages; entries and schedule
 * files without a range; a built-in one. An entry is for exactly the job's GPUs, or found by their isomorphic form;
 * rank i of the job is GPU gpu[i], and without ids GPU i. With cards, and where there are no ids, or the index has
 * not all of them, the job's GPUs are those with the NVLinks of the cards (probe_match), if the index has its machine;
 * if it does not, and there are no ids, those of the driver's numbers, where the driver shows as many GPUs.
 * An index that lacks some, or has the same for two ranks, is passed over, and so is one whose machine is not what each
 * rank says that states one; of the others the first one with an entry counts. A schedule file is for as many ranks as
 * the job has, the same collective and root. All ranks of a job make the same choice if their libraries have the same
 * contents.
 * bytes >= 0. root: ignored unless the collective has one. Memory of *out: run arena of ctx.
 * Fails: USAGE root; as file_read and sched_read do, and UNVERIFIED, where what is chosen is broken; NO_MEMORY. */
Status library_choose(Ctx *ctx, struct library *lib, const struct job *job, Collective coll, int root, int64_t bytes,
    Choice *out);

/* What one rank does by a built-in schedule:
 *   gather, scatter, alltoall   each block goes straight from its rank to the one that needs it
 *   allgather, reducescatter    one tree for each block, from its rank
 *   large, one server           every rank in one hop from every other: allreduce tree r reduces and broadcasts the
 *                               r-th part; reduce has a tree by each other rank; broadcast has one
 *   large, several servers      chains that cross each server once, with one hop in each
 *   small                       one tree for allreduce, broadcast and reduce, of few hops
 * All ranks get the same bits of an allreduce. built_in.c has the order of additions. job: at most LIMIT_COMM_RANKS
 * ranks; `gpu` is not read. A root is a rank. Memory: run arena, as much as the rank has lanes and tasks. Time:
 * n_ranks, and that of its tasks, where a broadcast, reduce or allreduce has one tree, or trees of at most 2^17
 * edges; heaps of small messages n_ranks^2 / 8 steps at most. For 2048 ranks some ms and 1 MB. */
Status built_in_program(Ctx *ctx, const struct job *job, const struct built_in *which, int rank, RankProgram **out);

/* Its name for people, and what tells it apart from all others: a digest of the name, the collective and the job. */
const char *built_in_form(const struct job *job, const struct built_in *which);
Status built_in_digest(Ctx *ctx, const struct job *job, const struct built_in *which, char digest[DIGEST_ROOM]);

/* A rank's program for an allreduce in which each rank reads what all publish, and reduces it in the order of the
 * ranks. */
Status exchange_program(Ctx *ctx, int n_ranks, int rank, RankProgram **out);

#endif
