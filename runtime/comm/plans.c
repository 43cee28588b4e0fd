/* Plans of a communicator: for each call what this rank does by the schedule that its library has for the collective,
 * root and size, made when it is first needed: a file's schedule is projected to the rank. All ranks choose the same,
 * if their libraries are the same; if they are not, signatures of calls differ. */
#include "choose/parts.h"
#include "comm/comm.h"
#include "support/debug.h"
#include "support/error.h"
#include "schedule/schedule.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

int
plans_open(struct rank_comm *r, struct blink_error *err)
{
	pthread_mutex_init(&r->library_lock, NULL);
	const struct rank_state *self = &r->self;
	if (library_open_part(&r->ctx, r->schedules, self->settings.small, self->n_ranks, self->rank, &r->library)
	    != OK)
		return set_error(err, (int)r->ctx.error.status, "%.500s", r->ctx.error.text);
	return blinkSuccess;
}

void
plans_close(struct rank_comm *r)
{
	for (int c = 0; c < N_COLLECTIVES; c++) {
		while (r->plan[c]) {
			struct plan *next = r->plan[c]->next;
			ctx_free(&r->plan[c]->ctx);
			free(r->plan[c]);
			r->plan[c] = next;
		}
	}
	library_close(r->library);
}

static int
fail_with(struct blink_error *err, const Ctx *ctx)
{
	return set_error(err, (int)ctx->error.status, "%.500s", ctx->error.text);
}

/* The largest built-in allreduce that is an exchange: the bytes of its message times the number of ranks. */
#define EXCHANGE_BYTES ((int64_t)32 << 10)

/* Likewise of this job, in bytes; below 0: there is none. Of two ranks a tree would have two hops for the one of an
 * exchange, whatever the size, and between servers too. */
static int64_t
exchange_most(const struct rank_comm *r)
{
	const struct rank_state *self = &r->self;
	int64_t most = EXCHANGE_BYTES / self->n_ranks, small = r->self.settings.small;
	if (self->n_ranks == 2)
		return small;
	return self->n_ranks == 1 || self->n_local < self->n_ranks ? -1 : most < small ? most : small;
}

/* Of more ranks the reads of all from all take longer than a tree. */
enum { FLAT_RANKS = 64 };

/* The largest message of a built-in plan that is flat, in bytes; below 0: there is none. Where trees began to take as
 * little time on two cores, for 2, 4 and 8 ranks (docs/results.md). times: bytes times ranks, where a rank reads all
 * that each gives. What a rank gives has room in a small place of the arena (engine/region.h). */
static int64_t
flat_most(const struct rank_comm *r, Collective coll)
{
	static const struct {
		int64_t bytes, times;
	} most[N_COLLECTIVES] = {
		[BROADCAST] = { 128 << 10, INT64_MAX }, [REDUCE] = { 128 << 10, 512 << 10 },
		[ALLREDUCE] = { 128 << 10, 256 << 10 }, [GATHER] = { 128 << 10, INT64_MAX },
		[SCATTER] = { 128 << 10, INT64_MAX }, [ALLGATHER] = { 128 << 10, INT64_MAX },
		[REDUCESCATTER] = { 64 << 10, INT64_MAX }, [ALLTOALL] = { 32 << 10, INT64_MAX }
	};
	const struct rank_state *self = &r->self;
	int64_t times = most[coll].times / self->n_ranks;
	if (!r->backend->flat || self->n_ranks == 1 || self->n_local < self->n_ranks || self->n_ranks > FLAT_RANKS
	    || self->settings.small == 0)
		return -1;
	return most[coll].bytes < times ? most[coll].bytes : times;
}

/* What a flat plan has in the place of tasks. */
static Status
flat_program(Ctx *ctx, const struct rank_comm *r, const struct built_in *which, RankProgram **out)
{
	RankProgram *prog;
	TRY(NEW(ctx, prog, 1));
	*prog = (RankProgram){ .coll = which->coll, .root = which->root, .n_ranks = r->self.n_ranks,
	    .rank = r->self.rank, .n_parts = 1 };
	*out = prog;
	return OK;
}

static bool
is_exchange(const struct rank_comm *r, const Choice *choice, int64_t bytes)
{
	return !choice->sched && choice->built_in.coll == ALLREDUCE && bytes <= exchange_most(r);
}

/* Messages of a choice that are flat, those that are exchanged, and the others have plans of their own. */
static Status
project(struct rank_comm *r, struct plan *plan, const Choice *choice, int64_t bytes)
{
	const struct rank_state *self = &r->self;
	int64_t most = exchange_most(r), flat = choice->sched ? -1 : flat_most(r, choice->built_in.coll);
	plan->from_bytes = choice->from;
	plan->to_bytes = choice->to;
	plan->flat = bytes <= flat;
	if (plan->flat) {
		plan->to_bytes = flat < plan->to_bytes ? flat : plan->to_bytes;
		plan->digest = 2;
		return flat_program(&plan->ctx, r, &choice->built_in, &plan->prog);
	}
	if (plan->from_bytes <= flat)
		plan->from_bytes = flat + 1;
	if (is_exchange(r, choice, bytes)) {
		plan->to_bytes = most < plan->to_bytes ? most : plan->to_bytes;
		plan->digest = 1;
		return exchange_program(&plan->ctx, self->n_ranks, self->rank, &plan->prog);
	}
	if (is_exchange(r, choice, plan->from_bytes))
		plan->from_bytes = most + 1;
	if (choice->prog) {
		plan->prog = choice->prog;
		return OK;
	}
	return choice->sched ? sched_project(&plan->ctx, choice->sched, self->rank, &plan->prog)
	    : built_in_program(&plan->ctx, &r->job, &choice->built_in, self->rank, &plan->prog);
}

static int
fill_plan(struct rank_comm *r, struct plan *plan, const Choice *choice, int64_t bytes, struct blink_error *err)
{
	const RankProgram *prog;
	struct blink_part_end *end;
	if (project(r, plan, choice, bytes) != OK)
		return fail_with(err, &plan->ctx);
	prog = plan->prog;
	if (part_ends(&plan->ctx, prog->part_end, prog->n_parts, &end) != OK)
		return fail_with(err, &plan->ctx);
	plan->parts = (struct blink_program){ .collective = (int)prog->coll, .n_ranks = prog->n_ranks,
	    .n_parts = prog->n_parts, .part_end = end };
	for (const char *p = choice->digest; *p; p++)
		plan->digest = (plan->digest ^ (unsigned char)*p) * 0x100000001b3u;
	if (!choice->sched)
		snprintf(plan->name, sizeof plan->name, "built-in schedule");
	else
		snprintf(plan->name, sizeof plan->name, "schedule %.19s", choice->digest);
	if (choice->sched && choice->sched->achieved.den > 0)
		plan->rate = (int64_t)(choice->sched->achieved.num / choice->sched->achieved.den / 1000000);
	if (choice->sched)
		snprintf(plan->schedule, sizeof plan->schedule, "%s", choice->digest);
	arena_free(&plan->ctx.scratch);
	return blinkSuccess;
}

static Status
choose(Ctx *ctx, struct rank_comm *r, Collective coll, int root, int64_t bytes, Choice *out)
{
	pthread_mutex_lock(&r->library_lock);
	Status status = library_choose(ctx, r->library, &r->job, coll, root, bytes, out);
	pthread_mutex_unlock(&r->library_lock);
	return status;
}

/* A schedule that somebody has named may be for other GPUs, or for the same in another order: its results are right,
 * but its rate is not what was promised. Rank 0 says so. */
static void
warn_of_links(const struct rank_comm *r, const Choice *choice)
{
	struct probe_lack l;
	char peer[24] = "switches";
	if (!choice->sched || !r->job.card || r->self.rank != 0
	    || !probe_lacks(choice->sched->topo, r->job.card, r->job.server, &l))
		return;
	if (l.to >= 0)
		snprintf(peer, sizeof peer, "rank %d", l.to);
	debug_say(DEBUG_WARN, 0, "%s: NVLinks of rank %d to %s: %d in its machine, %d of the GPUs here", choice->what,
	    l.from, peer, l.wanted, l.found);
}

/* That none of the schedules that were named is used is said unasked, but once; not of the library's own calls. */
static enum debug_level
level_of(const struct rank_comm *r, const Choice *choice, bool internal)
{
	static atomic_bool said;
	if (internal || !choice->unserved || r->self.rank != 0)
		return DEBUG_INFO;
	return atomic_exchange(&said, true) ? DEBUG_WARN : DEBUG_SETTING;
}

/* The schedule of a file is needed only meanwhile, unless the library keeps it. */
static int
make_plan(struct rank_comm *r, const struct call *call, int64_t bytes, struct plan **out, struct blink_error *err)
{
	Choice choice;
	struct plan *plan = calloc(1, sizeof *plan);
	Ctx *ctx = calloc(1, sizeof *ctx);	/* not on the stack: it has room for a message */
	if (!plan || !ctx) {
		free(plan);
		free(ctx);
		return set_error_memory(err);
	}
	ctx_init(ctx);
	ctx_init(&plan->ctx);
	if (choose(ctx, r, call->coll, call->root, bytes, &choice) != OK)
		fail_with(err, ctx);
	else if (warn_of_links(r, &choice), fill_plan(r, plan, &choice, bytes, err) == blinkSuccess)
		debug_say(level_of(r, &choice, call->internal), r->self.rank, "%s of %lld to %lld bytes: %s",
		    collective_name(call->coll), (long long)plan->from_bytes, (long long)plan->to_bytes,
		    plan->flat ? "flat, built in"
		    : is_exchange(r, &choice, bytes) ? "exchange, built in" : choice.what);
	ctx_free(ctx);
	free(ctx);
	if (err->code != blinkSuccess) {
		ctx_free(&plan->ctx);
		free(plan);
		return err->code;
	}
	*out = plan;
	return blinkSuccess;
}

/* Of the schedules for large messages, one for each collective. That one cannot be read is said when it is needed. */
bool
plans_have_routes(void *rank_comm)
{
	struct rank_comm *r = rank_comm;
	Ctx *ctx = calloc(1, sizeof *ctx);
	bool found = false;
	for (int c = 0; c < N_COLLECTIVES && ctx && r->schedules && !found; c++) {
		Choice choice = { .sched = NULL };
		ctx_init(ctx);
		Status status = library_choose(ctx, r->library, &r->job, (Collective)c, 0, INT64_MAX, &choice);
		for (int p = 0; status == OK && choice.sched && p < choice.sched->n_parts; p++)
			found = found || choice.sched->part[p].classes & 1u << LINK_PCIE;
		ctx_free(ctx);
	}
	free(ctx);
	return found;
}

int
plans_choose(void *rank_comm, const struct call *call, struct plan **out, struct blink_error *err)
{
	struct rank_comm *r = rank_comm;
	int64_t bytes = call_message_bytes(call, r->self.n_ranks);
	struct plan **at = &r->plan[call->coll];
	for (; *at; at = &(*at)->next) {
		if ((*at)->prog->root == call->root && (*at)->from_bytes <= bytes && bytes <= (*at)->to_bytes) {
			*out = *at;
			return blinkSuccess;
		}
	}
	if (make_plan(r, call, bytes, at, err) == blinkSuccess)
		*out = *at;
	return err->code;
}

static int
find_choice(struct rank_comm *r, Collective coll, int root, int64_t bytes, blinkChoice_t *out, struct blink_error *err)
{
	Choice choice;
	Ctx *ctx = calloc(1, sizeof *ctx);	/* not on the stack: it has room for a message */
	if (!ctx)
		return set_error_memory(err);
	ctx_init(ctx);
	if (choose(ctx, r, coll, root, bytes, &choice) == OK) {
		*out = (blinkChoice_t){ .builtIn = !choice.sched, .fromBytes = (size_t)choice.from,
		    .toBytes = (size_t)choice.to };
		snprintf(out->text, sizeof out->text, "%.255s", choice.what);
	} else {
		fail_with(err, ctx);
	}
	ctx_free(ctx);
	free(ctx);
	return err->code;
}

blinkResult_t
blinkCommGetChoice(blinkComm_t comm, blinkCollective_t collective, int root, size_t bytes, blinkChoice_t *choice)
{
	struct blink_error err = { 0 };
	struct rank_comm *r = comm_rank(comm);
	if (!r || !choice)
		return blinkInvalidArgument;
	if ((int)collective < 0 || (int)collective >= N_COLLECTIVES || bytes > INT64_MAX)
		set_error(&err, blinkInvalidArgument, "collective or bytes: not valid");
	else if (collective_rooted((Collective)collective) && (root < 0 || root >= r->self.n_ranks))
		set_error(&err, blinkInvalidArgument, "root: %d: want 0 to %d", root, r->self.n_ranks - 1);
	else
		find_choice(r, (Collective)collective, root, (int64_t)bytes, choice, &err);
	return err.code == blinkSuccess ? blinkSuccess : comm_error(comm, &err);
}
