/* Ranks of one server that share its memory, as libblink's host backend executes a schedule.
 *
 * A network's steps cost the sender; here the readers work. A rank has a task for each value that it makes: it waits
 * until all whom it reads from have published a chunk and a slot of its own ring is free, moves the chunk, and
 * publishes it (runtime/engine/collective.c). Tasks are looked at in the order of the program, each as long as it can
 * go on. Chunks and slots are those of the runtime (model/host_chunks.h). A chunk takes
 *
 *	`task`		once, `lane` for each rank that it comes from or goes to, and `reduce_step` if it is added up
 *	its bytes	each time that they are read or written, in rings or the callers' buffers: by `cached` as far as
 *			caches have them, but by `exchange` in rings of small calls, which have so many places in turn
 *			that no processor's own cache has them; else by `memory`, which other processors share that
 *			read there, but at most `memory_alone`; results that are written past the caches
 *			(HOST_STREAMING_BYTES) by `stream`; what is added, by `reduce`, for each operand but one
 *
 * Caches have what was touched lately: of a piece of memory 1 / (1 + B / `cache`), where B bytes have come from memory
 * since. So of buffers that are used again and again and larger than the caches a part stays, as in caches that do not
 * give up the oldest line first. Some calls are simulated, and the last one counts.
 *
 * Before that a rank makes the call, and when it can go on no more, it begins to wait for the end: both together take
 * `call` of its processor. A rank that can go on with nothing looks at its flags. Where there are more ranks than
 * `cores`, some share one, and take turns: who has nothing to do gives way to the next, whether that has or not, and
 * each turn takes `turn`. After 64 turns in vain, or a while alone, it sleeps until there is something to do, and then
 * takes `wake`. A rank's own block, that no tree carries, is copied when nothing else is to do.
 *
 * Not simulated: that the kernel moves ranks between processors; turns of other programs, and of ranks that have ended
 * their call. */
#include "simulate/shared.h"
#include "model/host_chunks.h"
#include "schedule/schedule.h"
#include "simulate/run.h"

#include <math.h>

enum { OWN_COPY = 256 << 10, TURNS = 64, EVENT_NS = 200, CALLS = 3, PIECES_MOST = 1 << 20 };

enum { PATIENCE_NS = 30000 };		/* what 64 turns in vain take of a rank alone */

/* What a rank does until `at`. */
enum { DOES_NOTHING = -1, DOES_COPY = -2 };

typedef enum { RANK_QUEUED, RANK_BUSY, RANK_WAITS, RANK_ENDED } RankState;

struct shared_task {
	const RankTask *task;
	int *from, *to;			/* tasks of others, by number */
	int64_t bytes, chunk, n_chunks;
	int input, output, ring;	/* first pieces, of each chunk, and of each slot */
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
	int own_input, own_output;	/* pieces of its own block */
	bool far;			/* what it does wants the memory */
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
	bool streams, large;		/* results are written past the caches; rings have two places in turn */
	int64_t call;
	int n_pieces;
	double *touched, from_memory;	/* bytes that have come from memory: when each piece was touched; so far */
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

/* The runtime writes results past the caches. */
static bool
streams(const struct shared *s)
{
	Collective coll = s->plan->sched->coll;
	bool whole = coll == ALLREDUCE || coll == BROADCAST || coll == REDUCE;
	return (whole ? s->ask->m : s->ask->m / s->n_ranks) > HOST_STREAMING_BYTES;
}

static double
per_byte(int64_t rate)
{
	return rate ? (double)PS_PER_S / (double)rate : 0;
}

/* Memory that ranks touch, in pieces: of each task the chunks of input and output, and the slots of its ring, which
 * large calls have in two places by turns. Of very many no cache holds any. */
static Status
find_pieces(struct shared *s)
{
	int64_t n = 0, places = s->large ? 2 : 1;
	for (int t = 0; t < s->n_tasks && n < PIECES_MOST; t++) {
		struct shared_task *task = &s->task[t];
		task->input = (int)n;
		task->output = (int)(n += task->task->own ? task->n_chunks : 0);
		task->ring = (int)(n += task->task->output ? task->n_chunks : 0);
		n += task->task->n_to > 0 ? places * s->slots : 0;
	}
	for (int r = 0; r < s->n_ranks && n < PIECES_MOST; r++) {
		int64_t own = (own_block(s, r) + OWN_COPY - 1) / OWN_COPY;
		s->rank[r].own_input = (int)n;
		s->rank[r].own_output = (int)(n + own);
		n += 2 * own;
	}
	s->n_pieces = n < PIECES_MOST ? (int)n : 0;
	TRY(TEMP(s->ctx, s->touched, s->n_pieces));
	for (int i = 0; i < s->n_pieces; i++)
		s->touched[i] = -INFINITY;
	return OK;
}

static Status
cut(struct shared *s)
{
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
	s->streams = streams(s);
	s->large = rings * s->slots * s->chunk > HOST_SMALL_BYTES;
	return find_pieces(s);
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

/* ps for a byte of memory, which is slower while other processors want it, too. */
static double
memory_byte(const struct shared *s)
{
	const SimParameters *p = &s->ask->p;
	int wanting = 1;
	for (int r = 0; r < s->n_ranks; r++)
		wanting += s->rank[r].state == RANK_BUSY && s->rank[r].at > s->now && s->rank[r].far;
	double shared = per_byte(p->memory) * wanting / s->cores, alone = per_byte(p->memory_alone);
	return shared > alone ? shared : alone;
}

/* The part of a piece that caches have no more. */
static double
missed(const struct shared *s, int64_t piece)
{
	if (s->ask->p.cache == 0)
		return 0;
	return s->n_pieces > 0 ? 1 - 1 / (1 + (s->from_memory - s->touched[piece]) / (double)s->ask->p.cache) : 1;
}

/* ps for a rank to read or write bytes of a piece, which caches have then; rate: where they have it already. */
static double
touch(struct shared *s, struct shared_rank *rank, int64_t piece, int64_t bytes, int64_t rate)
{
	double far = missed(s, piece), near = 1 - far;
	rank->far = rank->far || far > 0.5;
	s->from_memory += far * (double)bytes;
	if (s->n_pieces > 0)
		s->touched[piece] = s->from_memory;
	return (double)bytes * (near * per_byte(rate) + (far > 0 ? far * memory_byte(s) : 0));
}

/* Of a result. */
static double
put_out(struct shared *s, struct shared_rank *rank, int64_t piece, int64_t bytes)
{
	if (!s->streams)
		return touch(s, rank, piece, bytes, s->ask->p.cached);
	if (s->n_pieces > 0)
		s->touched[piece] = -INFINITY;
	return (double)bytes * per_byte(s->ask->p.stream);
}

static int64_t
slot_of(const struct shared *s, const struct shared_task *publisher, int64_t chunk)
{
	return publisher->ring + (s->large ? s->call % 2 * s->slots : 0) + chunk % s->slots;
}

static int64_t
chunk_time(struct shared *s, struct shared_rank *rank, const struct shared_task *t)
{
	const SimParameters *p = &s->ask->p;
	int64_t left = t->bytes - t->chunk * s->chunk, bytes = left < s->chunk ? left : s->chunk;
	int64_t added = collective_reduces(s->plan->sched->coll) ? t->task->n_from + t->task->own - 1 : 0;
	int64_t ring = s->large ? p->cached : p->exchange;
	int lanes = t->task->n_from + t->task->n_to;
	double time = (double)((p->task + lanes * p->lane + (added > 0 ? p->reduce_step : 0)) * PS_PER_NS);
	rank->far = false;
	if (t->task->own)
		time += touch(s, rank, t->input + t->chunk, bytes, p->cached);
	for (int i = 0; i < t->task->n_from; i++)
		time += touch(s, rank, slot_of(s, &s->task[t->from[i]], t->chunk), bytes, ring);
	if (t->task->n_to > 0)
		time += touch(s, rank, slot_of(s, t, t->chunk), bytes, ring);
	if (t->task->output)
		time += put_out(s, rank, t->output + t->chunk, bytes);
	return (int64_t)time + (added > 0 ? time_at_rate(bytes * added, p->reduce) : 0);
}

/* Of the rank's own block. */
static int64_t
copy_time(struct shared *s, struct shared_rank *rank)
{
	int64_t at = rank->own_left / OWN_COPY - (rank->own_left % OWN_COPY == 0), bytes = rank->own_chunk;
	rank->far = false;
	double time = touch(s, rank, rank->own_input + at, bytes, s->ask->p.cached);
	return (int64_t)(time + put_out(s, rank, rank->own_output + at, bytes));
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
				run_at(s, rank, rank->cursor, chunk_time(s, rank, &s->task[rank->cursor]));
				rank->turns = 0;
				return;
			}
		}
	}
	if (rank->own_left > 0) {
		rank->own_chunk = rank->own_left < OWN_COPY ? rank->own_left : OWN_COPY;
		run_at(s, rank, DOES_COPY, copy_time(s, rank));
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
static void
begin(struct shared *s)
{
	for (int t = 0; t < s->n_tasks; t++)
		s->task[t].chunk = 0;
	for (int r = 0; r < s->n_ranks; r++) {
		struct shared_rank *rank = &s->rank[r];
		rank->cursor = rank->first;
		rank->own_left = own_block(s, r);
		rank->turns = 0;
		rank->begun = rank->waits = false;
		s->rank[r].slept = s->n_ranks - s->cores > r % s->cores;
		if (s->core[r % s->cores].busy) {
			queue_up(s, &s->rank[r]);
		} else {
			s->core[r % s->cores].busy = s->n_ranks > s->cores;
			run_at(s, &s->rank[r], DOES_NOTHING, s->rank[r].slept ? s->ask->p.wake * PS_PER_NS : 0);
			s->rank[r].slept = false;
		}
	}
}

static Status
simulate(struct shared *s)
{
	struct shared_rank *rank;
	begin(s);
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
	return OK;
}

/* Calls one after the other, until the caches have what they have at every further one. */
static Status
simulate_all(struct shared *s)
{
	TRY(TEMP(s->ctx, s->core, s->cores));
	for (int c = 0; c < s->cores; c++)
		TRY(TEMP(s->ctx, s->core[c].queue, s->n_ranks + 1));
	for (s->call = 0; s->call < CALLS; s->call++) {
		int64_t began = s->now;
		TRY(simulate(s));
		s->out->time = s->now - began;
	}
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
	TRY(simulate_all(&s));
	arena_release(&ctx->run, programs);
	arena_release(&ctx->scratch, mark);
	*out = result;
	return OK;
}
