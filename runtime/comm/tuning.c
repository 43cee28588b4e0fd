/* BLINK_MIAD: a communicator tries sizes of chunks while it works, and keeps them in a file if it has been given one.
 *
 * All ranks change sizes in the same calls, so they have one table of searches, which begins as rank 0 read it. */
#include "comm/comm.h"
#include "support/debug.h"
#include "support/clock.h"
#include "support/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The ranks agree on what a trial took: that of the slowest. */
static struct call *
agreement(struct rank_comm *r)
{
	struct call *call = calloc(1, sizeof *call);
	if (!call)
		return NULL;
	*call = (struct call){ .coll = ALLREDUCE, .root = -1, .send = &r->tuner->mine, .recv = &r->tuner->all,
	    .count = 1, .asked_op = blinkMax, .internal = true };
	reduction_make(blinkFloat64, blinkMax, r->self.n_ranks, &call->reduction);
	return call;
}

static int
begins(void *context, const struct call *call, struct call **before, struct blink_error *err)
{
	struct rank_comm *r = context;
	int64_t bytes = call_message_bytes(call, r->self.n_ranks), chunk = 0;
	struct search *s = tuner_find(r->tuner, call->coll, bytes);
	if (!call->internal && !tuner_begin(r->tuner, s, bytes, now_ns(), &chunk)) {
		*before = agreement(r);
		return *before ? blinkSuccess : set_error_memory(err);
	}
	r->self.chunk_bytes = chunk;
	return blinkSuccess;
}

static void
ended(void *context, const struct call *call)
{
	struct rank_comm *r = context;
	struct search *s = r->tuner->timed;
	int64_t bytes = call_message_bytes(call, r->self.n_ranks);
	tuner_end(r->tuner, now_ns());
	if (s && s->calls == 1)
		debug_say(DEBUG_TRACE, r->self.rank, "%s of %lld bytes: chunks of %lld bytes took %.0f us",
		    collective_name(call->coll), (long long)bytes, (long long)s->miad.chunk, s->seconds * 1e6);
}

/* What rank 0 knows, or why it does not. */
struct known {
	TunerChunks chunks;
	int32_t code;
	char why[400];
};

static int
share(struct rank_comm *r, struct known *all, struct blink_error *err)
{
	struct known *mine = calloc(1, sizeof *mine);
	if (!mine)
		return set_error_memory(err);
	if (r->tuner_path && r->self.rank == 0) {
		mine->code = (int32_t)tuner_load(&r->ctx, r->tuner_path, r->self.n_ranks, r->job.n_servers,
		    mine->chunks);
		snprintf(mine->why, sizeof mine->why, "%.399s", r->ctx.error.text);
	}
	bootstrap_allgather(r->bootstrap, mine, sizeof *mine, all, r->self.deadline, err);
	free(mine);
	if (err->code == blinkSuccess && all[0].code != blinkSuccess)
		set_error(err, all[0].code, "BLINK_MIAD: rank 0: %.*s", (int)sizeof all->why, all[0].why);
	return err->code;
}

bool
tuning_wanted(const struct rank_comm *r)
{
	const char *miad = r->self.settings.miad;
	return miad && strcmp(miad, "0") != 0 && r->self.settings.chunk == 0;
}

int
tuning_open(struct rank_comm *r, struct blink_error *err)
{
	const char *miad = r->self.settings.miad;
	if (!tuning_wanted(r))
		return blinkSuccess;
	struct known *all = calloc((size_t)r->self.n_ranks, sizeof *all);
	r->tuner = calloc(1, sizeof *r->tuner);
	r->tuner_path = strcmp(miad, "1") == 0 ? NULL : strdup(miad);
	if (!all || !r->tuner || (strcmp(miad, "1") != 0 && !r->tuner_path))
		set_error_memory(err);
	else if (share(r, all, err) == blinkSuccess)
		tuner_take(r->tuner, all[0].chunks);
	free(all);
	r->self.events.begins = begins;
	r->self.events.ended = ended;
	return err->code;
}

/* What has been found, by rank 0. That it cannot be written is no reason to fail. */
void
tuning_close(struct rank_comm *r)
{
	TunerChunks *chunks = r->tuner && r->tuner_path && r->self.rank == 0 ? malloc(sizeof *chunks) : NULL;
	Ctx ctx;
	ctx_init(&ctx);
	if (chunks) {
		tuner_give(r->tuner, *chunks);
		if (tuner_save(&ctx, r->tuner_path, r->self.n_ranks, r->job.n_servers, *chunks) != OK)
			debug_say(DEBUG_WARN, r->self.rank, "BLINK_MIAD: %s", ctx.error.text);
	}
	ctx_free(&ctx);
	free(chunks);
	free(r->tuner);
	free((char *)r->tuner_path);
}
