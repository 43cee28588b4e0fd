/* Tuner: searches for chunk sizes while a communicator works, one for each collective and size of message. */
#ifndef BLINK_TUNER_H
#define BLINK_TUNER_H

#include "blink_program.h"
#include "model/model.h"
#include "tune/miad.h"

enum { TUNER_CLASSES = 41 };		/* messages of 2^k up to 2^(k+1) - 1 bytes */

/* All ranks try the same sizes in the same calls. What a trial took is the least of a few calls, of the slowest rank:
 * the ranks agree on it by an allreduce of one number, after the last call of a trial. */
struct search {
	struct miad miad;
	int calls;			/* of the current trial, so far */
	bool began;
	double seconds;			/* the least of them, of this rank */
};

struct tuner {
	struct search search[N_COLLECTIVES][TUNER_CLASSES];
	struct search *timed;		/* of the call under way */
	struct search *agrees;		/* whose trial the ranks are agreeing on */
	int64_t began;			/* ns */
	double mine, all;		/* seconds, before and after they have agreed */
};

enum { TUNER_CALLS = 3 };		/* of a trial */

struct search *tuner_find(struct tuner *t, Collective coll, int64_t bytes);

/* A call begins, or has ended. tuner_begin: false: first the ranks have to agree: an allreduce, float64, max, of
 * t->mine to t->all; then again. *chunk: bytes to use. */
bool tuner_begin(struct tuner *t, struct search *s, int64_t bytes, int64_t now, int64_t *chunk);
void tuner_end(struct tuner *t, int64_t now);

/* Sizes that were found, as ranks hand them to each other: 0 where none was. Those of a run with as many ranks. */
typedef int64_t TunerChunks[N_COLLECTIVES][TUNER_CLASSES];
void tuner_take(struct tuner *t, const TunerChunks chunks);
void tuner_give(const struct tuner *t, TunerChunks chunks);

/* The file that keeps them: of communicators with so many ranks on so many servers. A file that is not there has none.
 * tuner_save keeps what the file has for others. Fails: BAD_INPUT, LIMIT, IO, NO_MEMORY. */
Status tuner_load(Ctx *ctx, const char *path, int n_ranks, int n_servers, TunerChunks chunks);
Status tuner_save(Ctx *ctx, const char *path, int n_ranks, int n_servers, const TunerChunks chunks);

#endif
