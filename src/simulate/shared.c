/* Ranks of one server that share its memory, as libblink's host backend executes a schedule.
 *
 * A network's steps cost the sender; here the readers work. A rank has a task for each value that it makes: it waits
 * until all whom it reads from have published a chunk and a slot of its own ring is free, moves the chunk, and
 * publishes it (runtime/engine/collective.c). Tasks are looked at in the order of the program, each as long as it can
 * go on. Chunks and slots are those of the runtime (model/host_chunks.h). A chunk takes
 *
 *	`task`		once, `lane` for each rank that it comes from or goes to, and `reduce_step` if it is added up
 *	its bytes	in rings, by the rate `exchange`, each time that they are read or written; those of the callers'
 *			buffers in no time as far as the caches of the processors hold them (`near_cache`, of all
 *			together), else by `cached`, and
 *			by `memory` as far as they are more than `cache`, which other processors share that read there,
 *			but at most `memory_alone`; rings that are more than that, too; what is added, by `reduce`, for
 *			each operand but one. Results that are written past the caches (HOST_STREAMING_BYTES) go by
 *			`stream`
 *
 * Before that a rank makes the call, and when it can go on no more, it begins to wait for the end: both together take
 * `call` of its processor. A rank that can go on with nothing looks at
 * its flags. Where there are more ranks than `cores`, some share one, and take turns: who has nothing to do gives way
 * to the next, whether that has or not, and each turn takes `turn`. After 64 turns in vain, or a while alone, it sleeps
 * until there is something to do, and then takes `wake`. A rank's own block, that no tree carries, is copied when
 * nothing else is to do.
 *
 * Not simulated: that the kernel moves ranks between processors; turns of other programs, and of ranks that have ended
 * their call. */
#include "simulate/shared.h"
#include "model/host_chunks.h"
#include "schedule/schedule.h"
#include "simulate/run.h"

enum { OWN_COPY = 256 << 10, TURNS = 64, EVENT_NS = 200 };

enum { PATIENCE_NS = 30000 };		/* what 64 turns in vain take of a rank alone */

/* What a rank does until `at`. */
enum { DOES_NOTHING = -1, DOES_COPY = -2 };

typedef enum { RANK_QUEUED, RANK_BUSY, RANK_WAITS, RANK_ENDED } RankState;

struct shared_task {
	const RankTask *task;
	int *from, *to;			/* tasks of others, by number */
	int64_t bytes, chunk, n_chunks;
};

struct shared_rank {
	const RankProgram *prog;
	RankState state;
	int doing;			/* a task, or DOES_... */
	int cursor;			/* of the pass over its tasks */
	int first, end;			/* its tasks */
	int turns;			/* in vain */
	bool begun, waits, slept;	/* it has made the call; and has begun to wait for its end */
	int64_t at, since, own_left, own_chunk;	/* since: it waits */
};

/* A processor that several ranks share, by turns. */
struct shared_core {
	bool busy;
	int *queue, n;			/* ranks that come next */
};

struct shared {
	Ctx *ctx;
	const SimPlan *plan;
	const SimAsk *ask;
	SimResult *out;
	int n_ranks, n_tasks, cores;
	struct shared_rank *rank;
	struct shared_task *task;
	int *rank_of;			/* of each task */
	int *first_lane;		/* of each ordered pair, publisher and reader */
	int *publisher;			/* of each lane: its task */
	struct shared_core *core;
	int64_t chunk, slots, now;
	double far;			/* part of the callers' buffers that no cache holds */
	double slot_byte, input_byte, output_byte;	/* ps to read or write a byte */
};

/* ---- what there is to do ---- */

static int
pair(const struct shared *s, int from, int to)
{
	return from * s->n_ranks + to;
}

static Status
project_all(struct shared *s)
{
	TRY(TEMP(s->ctx, s->rank, s->n_ranks));
	for (int r = 0; r < s->n_ranks; r++) {
		RankProgram *prog;
		TRY(sched_project(s->ctx, s->plan->sched, r, &prog));
		s->rank[r] = (struct shared_rank){ .prog = prog, .first = s->n_tasks,
			.end = s->n_tasks + prog->n_tasks };
		s->n_tasks += prog->n_tasks;
	}
	return OK;
}

static Status
count_lanes(struct shared *s)
{
	int n = 0;
	TRY(TEMP(s->ctx, s->first_lane, s->n_ranks * s->n_ranks + 1));
	for (int r = 0; r < s->n_ranks; r++)
		for (int t = 0; t < s->rank[r].prog->n_tasks; t++)
			for (int i = 0; i < s->rank[r].prog->task[t].n_to; i++)
				s->first_lane[pair(s, r, s->rank[r].prog->task[t].to[i].rank)]++;
	for (int p = 0; p <= s->n_ranks * s->n_ranks; p++) {
		int lanes = p < s->n_ranks * s->n_ranks ? s->first_lane[p] : 0;
		s->first_lane[p] = n;
		n += lanes;
	}
	return TEMP(s->ctx, s->publisher, n);
}

static Status
join_tasks(struct shared *s)
{
	TRY(TEMP(s->ctx, s->task, s->n_tasks));
	TRY(TEMP(s->ctx, s->rank_of, s->n_tasks));
	for (int r = 0; r < s->n_ranks; r++) {
		for (int t = s->rank[r].first; t < s->rank[r].end; t++) {
			const RankTask *task = &s->rank[r].prog->task[t - s->rank[r].first];
			s->task[t].task = task;
			s->rank_of[t] = r;
			TRY(TEMP(s->ctx, s->task[t].from, task->n_from));
			TRY(TEMP(s->ctx, s->task[t].to, task->n_to));
			for (int i = 0; i < task->n_to; i++)
				s->publisher[s->first_lane[pair(s, r, task->to[i].rank)] + task->to[i].lane] = t;
		}
	}
	int *n_to;
	TRY(TEMP(s->ctx, n_to, s->n_tasks));
	for (int t = 0; t < s->n_tasks; t++) {
		const RankTask *task = s->task[t].task;
		for (int i = 0; i < task->n_from; i++) {
			const RankLane *lane = &task->from[i];
			int other = s->publisher[s->first_lane[pair(s, lane->rank, s->rank_of[t])] + lane->lane];
			s->task[t].from[i] = other;
			s->task[other].to[n_to[other]++] = t;
		}
	}
	return OK;
}

/* Bytes of its own block that a rank copies, where it sends and receives in different buffers. */
static int64_t
own_block(const struct shared *s, int r)
{
	const Schedule *sched = s->plan->sched;
	int64_t m = s->ask->m;
	bool at_root = sched->root == r;
	switch (sched->coll) {
	case BROADCAST:
		return at_root ? m : 0;
	case GATHER:
	case SCATTER:
		return at_root ? m / s->n_ranks : 0;
	case ALLGATHER:
	case ALLTOALL:
		return m / s->n_ranks;
	default:
		return 0;
	}
}

/* Of the callers' buffers. */
static int64_t
inputs(const struct shared *s)
{
	Collective coll = s->plan->sched->coll;
	bool each = collective_reduces(coll) || coll == ALLTOALL;
	return each ? s->n_ranks * s->ask->m : s->ask->m;
}

static int64_t
outputs(const struct shared *s)
{
	Collective coll = s->plan->sched->coll;
	bool each = coll == ALLREDUCE || coll == ALLTOALL || coll == ALLGATHER || coll == BROADCAST;
	return each ? s->n_ranks * s->ask->m : s->ask->m;
}

/* The runtime writes results past the caches. */
static bool
streams(const struct shared *s)
{
	Collective coll = s->plan->sched->coll;
	bool whole = coll == ALLREDUCE || coll == BROADCAST || coll == REDUCE;
	return (whole ? s->ask->m : s->ask->m / s->n_ranks) > HOST_STREAMING_BYTES;
}

/* The part of `bytes`, which are used again in the next call, that a cache has no more. */
static double
missed(int64_t cache, int64_t bytes)
{
	return cache > 0 && bytes > cache ? 1 - (double)cache / (double)bytes : 0;
}

static double
per_byte(int64_t rate)
{
	return rate ? (double)PS_PER_S / (double)rate : 0;
}

/* ps for a byte of the callers' buffers, which have `bytes` in all, as far as a cache has them. */
static double
user_byte(const SimParameters *p, int64_t bytes)
{
	double far = missed(p->cache, bytes), away = missed(p->near_cache, bytes);
	return (away > far ? away - far : 0) * per_byte(p->cached);
}

/* Of rings. */
static double
slot_byte(const SimParameters *p, int64_t bytes)
{
	double far = missed(p->cache, bytes);
	return (1 - far) * per_byte(p->exchange) + far * per_byte(p->memory);
}

static Status
cut(struct shared *s)
{
	const SimParameters *p = &s->ask->p;
	int64_t *bytes, longest = 0, steps = 0, rings = s->rank[0].prog->rings_max;
	TRY(TEMP(s->ctx, bytes, s->plan->sched->n_segments));
	sim_segment_bytes(s->plan, s->ask->m, bytes);
	for (int i = 0; i < s->plan->sched->n_segments; i++)
		longest = bytes[i] > longest ? bytes[i] : longest;
	rings = rings > 0 ? rings : 1;
	s->chunk = host_chunk_bytes(longest > 0 ? longest : 1, rings, s->ask->chunk);
	s->slots = host_ring_slots(rings, s->chunk);
	int64_t n = (longest + s->chunk - 1) / s->chunk;
	s->slots = s->slots < n ? s->slots : n;
	for (int t = 0; t < s->n_tasks; t++) {
		struct shared_task *task = &s->task[t];
		task->bytes = bytes[task->task->segment];
		task->n_chunks = (task->bytes + s->chunk - 1) / s->chunk;
		steps += task->n_chunks * task->task->n_from;
	}
	if (steps > LIMIT_SIM_STEPS)
		return fail(s->ctx, LIMIT, "%s: a message of %lld bytes in chunks of %lld: %lld steps to simulate: "
		    "want at most %lld", s->plan->sched->topo->name, (long long)s->ask->m, (long long)s->chunk,
		    (long long)steps, (long long)LIMIT_SIM_STEPS);
	s->out->n_steps = steps;
	s->out->n_chunks = n;
	s->out->chunk = longest < s->chunk ? longest : s->chunk;
	s->slot_byte = slot_byte(p, s->n_ranks * rings * s->slots * s->chunk);
	bool past = streams(s);
	int64_t buffers = inputs(s) + (past ? 0 : outputs(s));
	s->far = missed(p->cache, buffers);
	s->input_byte = user_byte(p, buffers);
	s->output_byte = past ? per_byte(p->stream) : s->input_byte + s->far * per_byte(p->memory);
	for (int r = 0; r < s->n_ranks; r++)
		s->rank[r].own_left = own_block(s, r);
	return OK;
}

/* ---- what a rank can do ---- */

static bool
can_go_on(const struct shared *s, const struct shared_task *t)
{
	if (t->chunk == t->n_chunks)
		return false;
	for (int i = 0; i < t->task->n_from; i++)
		if (s->task[t->from[i]].chunk <= t->chunk)
			return false;
	for (int i = 0; i < t->task->n_to; i++)
		if (s->task[t->to[i]].chunk < t->chunk + 1 - s->slots)
			return false;
	return true;
}

static bool
is_done(const struct shared *s, const struct shared_rank *rank)
{
	for (int t = rank->first; t < rank->end; t++)
		if (s->task[t].chunk < s->task[t].n_chunks)
			return false;
	return rank->own_left == 0;
}

/* ps for a byte of an input, which is slower while other processors read from the memory, too. */
static double
own_byte(const struct shared *s)
{
	const SimParameters *p = &s->ask->p;
	int reading = 1;
	for (int r = 0; r < s->n_ranks && s->far > 0; r++) {
		const struct shared_rank *rank = &s->rank[r];
		reading += rank->state == RANK_BUSY && rank->at > s->now
		    && (rank->doing == DOES_COPY || (rank->doing >= 0 && s->task[rank->doing].task->own));
	}
	double shared = per_byte(p->memory) * reading / s->cores, alone = per_byte(p->memory_alone);
	return s->input_byte + s->far * (shared > alone ? shared : alone);
}

static int64_t
chunk_time(const struct shared *s, const struct shared_task *t)
{
	const SimParameters *p = &s->ask->p;
	int64_t left = t->bytes - t->chunk * s->chunk, bytes = left < s->chunk ? left : s->chunk;
	double slots = t->task->n_from + (t->task->n_to > 0);
	int64_t added = collective_reduces(s->plan->sched->coll) ? t->task->n_from + t->task->own - 1 : 0;
	int lanes = t->task->n_from + t->task->n_to;
	return (p->task + lanes * p->lane + (added > 0 ? p->reduce_step : 0)) * PS_PER_NS
	    + (int64_t)((double)bytes * (slots * s->slot_byte + t->task->own * own_byte(s)
	    + t->task->output * s->output_byte)) + (added > 0 ? time_at_rate(bytes * added, p->reduce) : 0);
}

/* ---- processors ---- */

static void
run_at(struct shared *s, struct shared_rank *rank, int doing, int64_t wait)
{
	rank->state = RANK_BUSY;
	rank->doing = doing;
	rank->at = s->now + wait;
}

static struct shared_core *
core_of(const struct shared *s, const struct shared_rank *rank)
{
	return &s->core[(rank - s->rank) % s->cores];
}

/* The next rank in the order of turns of a processor, which nobody has. */
static void
pass_on(struct shared *s, struct shared_core *core)
{
	core->busy = core->n > 0;
	if (core->n == 0)
		return;
	int next = core->queue[0];
	core->n--;
	for (int i = 0; i < core->n; i++)
		core->queue[i] = core->queue[i + 1];
	bool slept = s->rank[next].slept;
	s->rank[next].slept = false;
	run_at(s, &s->rank[next], DOES_NOTHING, (slept ? s->ask->p.wake : s->ask->p.turn) * PS_PER_NS);
}

static void
queue_up(struct shared *s, struct shared_rank *rank)
{
	struct shared_core *core = core_of(s, rank);
	rank->state = RANK_QUEUED;
	core->queue[core->n++] = (int)(rank - s->rank);
	if (!core->busy)
		pass_on(s, core);
}

/* Whoever sleeps, or looks alone at its flags, since a task has one chunk more. */
static void
tell(struct shared *s, const struct shared_task *t)
{
	for (int k = 0; k < 2; k++) {
		const int *other = k ? t->to : t->from;
		for (int i = 0; i < (k ? t->task->n_to : t->task->n_from); i++) {
			struct shared_rank *rank = &s->rank[s->rank_of[other[i]]];
			if (rank->state != RANK_WAITS || !can_go_on(s, &s->task[other[i]]))
				continue;
			if (s->now - rank->since > PATIENCE_NS * PS_PER_NS)
				rank->slept = true;
			if (s->n_ranks <= s->cores)
				run_at(s, rank, DOES_NOTHING, rank->slept ? s->ask->p.wake * PS_PER_NS : 0);
			else if (!rank->slept && !core_of(s, rank)->busy)
				core_of(s, rank)->busy = true, run_at(s, rank, DOES_NOTHING, 0);
			else
				queue_up(s, rank);
		}
	}
}

/* Nothing to do: it gives way, or, after some turns in vain, sleeps. */
static void
give_way(struct shared *s, struct shared_rank *rank)
{
	struct shared_core *core = core_of(s, rank);
	rank->state = RANK_WAITS;
	rank->since = s->now;
	rank->slept = false;
	if (s->n_ranks <= s->cores)
		return;
	if (++rank->turns > TURNS)
		rank->slept = true;
	else if (core->n > 0)
		queue_up(s, rank);
	pass_on(s, core);
}

/* What a rank does next, that has a processor. */
static void
proceed(struct shared *s, struct shared_rank *rank)
{
	if (!rank->begun) {
		rank->begun = true;
		run_at(s, rank, DOES_NOTHING, s->ask->p.call * PS_PER_NS / 2);
		return;
	}
	for (int pass = 0; pass < 2; pass++, rank->cursor = rank->first) {
		for (; rank->cursor < rank->end; rank->cursor++) {
			if (can_go_on(s, &s->task[rank->cursor])) {
				run_at(s, rank, rank->cursor, chunk_time(s, &s->task[rank->cursor]));
				rank->turns = 0;
				return;
			}
		}
	}
	if (rank->own_left > 0) {
		rank->own_chunk = rank->own_left < OWN_COPY ? rank->own_left : OWN_COPY;
		run_at(s, rank, DOES_COPY, (int64_t)((double)rank->own_chunk * (own_byte(s) + s->output_byte)));
		return;
	}
	if (!rank->waits) {
		rank->waits = true;
		run_at(s, rank, DOES_NOTHING, s->ask->p.call * PS_PER_NS / 2);
		return;
	}
	if (!is_done(s, rank)) {
		give_way(s, rank);
		return;
	}
	rank->state = RANK_ENDED;
	if (s->n_ranks > s->cores)
		pass_on(s, core_of(s, rank));
}

static void
take_event(struct shared *s, struct shared_rank *rank)
{
	if (rank->doing == DOES_COPY) {
		rank->own_left -= rank->own_chunk;
	} else if (rank->doing >= 0) {
		struct shared_task *t = &s->task[rank->doing];
		t->chunk++;
		tell(s, t);
	}
	proceed(s, rank);
}

static struct shared_rank *
first_event(const struct shared *s)
{
	struct shared_rank *first = NULL;
	for (int r = 0; r < s->n_ranks; r++)
		if (s->rank[r].state == RANK_BUSY && (!first || s->rank[r].at < first->at))
			first = &s->rank[r];
	return first;
}

/* All ranks make the call at once. */
static Status
begin(struct shared *s)
{
	TRY(TEMP(s->ctx, s->core, s->cores));
	for (int c = 0; c < s->cores; c++)
		TRY(TEMP(s->ctx, s->core[c].queue, s->n_ranks + 1));
	for (int r = 0; r < s->n_ranks; r++) {
		s->rank[r].cursor = s->rank[r].first;
		s->rank[r].slept = s->n_ranks - s->cores > r % s->cores;
		if (s->core[r % s->cores].busy) {
			queue_up(s, &s->rank[r]);
		} else {
			s->core[r % s->cores].busy = s->n_ranks > s->cores;
			run_at(s, &s->rank[r], DOES_NOTHING, s->rank[r].slept ? s->ask->p.wake * PS_PER_NS : 0);
			s->rank[r].slept = false;
		}
	}
	return OK;
}

static Status
simulate(struct shared *s)
{
	struct shared_rank *rank;
	TRY(begin(s));
	while ((rank = first_event(s))) {
		s->now = rank->at;
		if (s->now > SIM_TIME_MOST / 2)
			return fail(s->ctx, LIMIT, "%s: a message of %lld bytes takes more than 53 days",
			    s->plan->sched->topo->name, (long long)s->ask->m);
		take_event(s, rank);
		if (s->ask->timed && out_of_time(s->ctx, EVENT_NS))
			return fail_asked(s->ctx, LIMIT, "budget", "%s: a message of %lld bytes: want more time",
			    s->plan->sched->topo->name, (long long)s->ask->m);
	}
	s->out->time = s->now;
	return OK;
}

/* What links carry, as if data went over them. */
static Status
count_links(struct shared *s)
{
	int n_links = s->plan->sched->topo->n_links;
	int64_t *bytes;
	TRY(NEW_EACH(s->ctx, n_links, s->out->moved, s->out->busy));
	TRY(TEMP(s->ctx, bytes, s->plan->sched->n_segments));
	sim_segment_bytes(s->plan, s->ask->m, bytes);
	for (int h = 0; h < s->plan->n_hops; h++)
		for (int i = 0; i < s->plan->hop[h].n_links; i++)
			s->out->moved[s->plan->hop[h].link[i]] += bytes[s->plan->hop[h].segment];
	return OK;
}

Status
sim_shared(Ctx *ctx, const SimPlan *plan, const SimAsk *ask, SimResult *out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	SimResult result = { .last = -1 };
	struct shared s = { .ctx = ctx, .plan = plan, .ask = ask, .out = &result, .n_ranks = plan->sched->topo->n_ranks,
		.cores = ask->p.cores ? (int)ask->p.cores : plan->sched->topo->n_ranks };
	if (s.n_ranks > LIMIT_SHARED_RANKS)
		return fail(ctx, LIMIT, "%s: by_memory: %d ranks share memory: want at most %d",
		    plan->sched->topo->name, s.n_ranks, LIMIT_SHARED_RANKS);
	TRY(count_links(&s));
	ArenaMark programs = arena_mark(&ctx->run);
	TRY(project_all(&s));
	TRY(count_lanes(&s));
	TRY(join_tasks(&s));
	TRY(cut(&s));
	TRY(simulate(&s));
	arena_release(&ctx->run, programs);
	arena_release(&ctx->scratch, mark);
	*out = result;
	return OK;
}
