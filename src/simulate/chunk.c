/* The chunk size with the least simulated time, among powers of two of at least 4 KiB; of packets, of at least 256
 * bytes, since each carries its own flag: a warp sends on the 32 times 8 bytes that it has without waiting for others;
 * of lines, of at least 1 KiB, as a warp sends on four lines, or eight where all warps have as many.
 *
 * Small chunks fill the pipeline sooner, and pay more start-ups: along d hops a segment of S bytes takes about
 * (k + d - 1) (step + S / (k B)) in k chunks, least for k = sqrt((d - 1) S / (B step)). Trees that share links are not
 * so smooth: there a size has its own rhythm of who waits for whom, and a neighbour may be 10 % off. So the search
 * begins with one chunk, halves it again and again, and ends once two sizes in a row have brought nothing. Each
 * simulation has twice the steps of the one before: all together take twice as long as the last, and that
 * takes four times as long as the best. Of equal times the larger chunk is kept. None has more than LIMIT_SIM_SEARCH
 * steps, or one chunk: with k chunks a pipeline of d hops is filled for (d - 1) / k of its time, which many more
 * chunks hardly change.
 *
 * What libblink takes itself (runtime/cuda/sizes.c) is a rule for all machines, within 8 to 128 KiB for kernels, bound
 * by its rings; `--chunk` simulates that, too. The best size shows what a schedule can do, and is what a schedule's
 * chunk can be set to (BLINK_CHUNK). */
#include "model/host_chunks.h"
#include "schedule/schedule.h"
#include "simulate/floor.h"
#include "simulate/run.h"
#include "simulate/shared.h"

enum { PATIENCE = 2, TRIALS = 4 };

int64_t
sim_least_chunk(SimProtocol protocol)
{
	static const int shift[] = { [SIM_CHUNKS] = 12, [SIM_PACKETS] = 8, [SIM_LINES] = 10 };
	return INT64_C(1) << shift[protocol];
}

static int64_t
longest_segment(const struct net *net)
{
	int64_t longest = 0;
	for (int s = 0; s < net->plan->sched->n_segments; s++)
		longest = net->bytes[s] > longest ? net->bytes[s] : longest;
	return longest;
}

/* Steps of chunks of this size, of the longest segment, over all hops: at least what a simulation takes. */
static bool
too_many(const struct net *net, int64_t longest, int64_t chunk)
{
	return (longest - 1) / chunk + 1 > LIMIT_SIM_SEARCH / (net->n_hops ? net->n_hops : 1);
}

struct search {
	Ctx *ctx;
	const struct net *net;
	const SimAsk *ask;
	int64_t least;		/* chunk */
	const Floor *floor;	/* NULL: none is known */
	int64_t longest;	/* bytes */
	int64_t most;		/* ps: a longer time than that need not be known */
	SimResult best;
	int64_t chunk;		/* with which it is */
};

/* Of a chunk size. result->time: INT64_MAX: above `most`. */
static Status
run_within(const struct search *s, int64_t chunk, int64_t most, SimResult *result)
{
	SimAsk one = *s->ask;
	one.chunk = chunk;
	one.steps = false;
	*result = (SimResult){ .time = INT64_MAX };
	return s->floor && floor_of_chunk(s->floor, chunk) > most ? OK
	    : sim_run_net(s->ctx, s->net, &one, most, result);
}

/* One more simulation; what a worse one has left in the run arena is given back. */
static Status
try_chunk(struct search *s, int64_t chunk, bool *better)
{
	ArenaMark mark = arena_mark(&s->ctx->run);
	SimResult result;
	TRY(run_within(s, chunk, s->best.time - 1, &result));
	*better = result.time < s->best.time;
	if (*better) {
		s->best = result;
		s->chunk = chunk;
	} else {
		arena_release(&s->ctx->run, mark);
	}
	return OK;
}

/* No message needs a larger chunk. */
static int64_t
largest_chunk(const struct search *s)
{
	int64_t chunk = s->least;
	while (chunk < s->longest)
		chunk *= 2;
	return chunk;
}

static bool
has_chunk(const struct search *s, int64_t chunk)
{
	return chunk >= s->least && !too_many(s->net, s->longest, chunk);
}

/* The chunk with the least floor: the search will hardly end before. */
static int64_t
best_floor(const struct search *s)
{
	int64_t best = largest_chunk(s), least = floor_of_chunk(s->floor, best);
	for (int64_t chunk = best / 2; has_chunk(s, chunk); chunk /= 2) {
		int64_t floor = floor_of_chunk(s->floor, chunk);
		best = floor < least ? chunk : best;
		least = floor < least ? floor : least;
	}
	return best;
}

static int64_t
steps_of(const struct search *s, int64_t chunk)
{
	return ((s->longest - 1) / chunk + 1) * s->net->n_hops;
}

/* Do the floors of this chunk and of all smaller ones leave a time that is wanted? */
static bool
is_wanted(const struct search *s, int64_t chunk)
{
	bool any = !s->floor || s->best.time <= s->most;
	for (; !any && has_chunk(s, chunk); chunk /= 2)
		any = floor_of_chunk(s->floor, chunk) <= s->most;
	return any;
}

/* Has any chunk size, of those that the search may try, at most this time? *found: true, too, if it takes so many steps
 * to tell that the search may be faster. A time above it is mostly certain early, since links are busy. */
static Status
any_within(const struct search *s, bool *found)
{
	ArenaMark mark = arena_mark(&s->ctx->run);
	SimResult result;
	int64_t chunk = largest_chunk(s), steps = 0, most = steps_of(s, best_floor(s)) * TRIALS;
	do {
		TRY(run_within(s, chunk, s->most, &result));
		arena_release(&s->ctx->run, mark);
		steps += result.n_steps;
		*found = result.time <= s->most || steps > most;
	} while (!*found && has_chunk(s, chunk /= 2));
	return OK;
}

static Status
find_best(struct search *s)
{
	int64_t chunk = largest_chunk(s);
	int worse = 0;
	bool better;
	s->best.time = INT64_MAX;
	TRY(try_chunk(s, chunk, &better));
	while (has_chunk(s, chunk /= 2) && worse < PATIENCE && is_wanted(s, chunk)) {
		TRY(try_chunk(s, chunk, &better));
		worse = better ? 0 : worse + 1;
	}
	s->best.limited = worse == 0 && chunk >= s->least && too_many(s->net, s->longest, chunk);
	return OK;
}

/* What libblink's host backend takes over a network, once calls of 256 KiB and more have shown the rate: here that of
 * the plan. */
static Status
host_chunk(Ctx *ctx, const SimPlan *plan, const SimAsk *ask, int64_t *out)
{
	const Schedule *sched = plan->sched;
	int64_t *bytes, longest = 1;
	int depth, *rings, rings_max = 1, class = sched->topo->n_links ? (int)sched->topo->link[0].class : 0;
	bool known = ask->m >= HOST_NET_TELLING;
	TRY(TEMP(ctx, bytes, sched->n_segments));
	TRY(TEMP(ctx, rings, sched->topo->n_ranks));
	TRY(sched_depth(ctx, sched, &depth));
	sim_segment_bytes(plan, ask->m, bytes);
	for (int s = 0; s < sched->n_segments; s++)
		longest = bytes[s] > longest ? bytes[s] : longest;
	for (int h = 0; h < plan->n_hops; h++) {
		const SimHop *hop = &plan->hop[h];
		if (plan->out[plan->first_out[hop->from]] == h)
			rings[hop->src]++;
		rings_max = rings[hop->src] > rings_max ? rings[hop->src] : rings_max;
	}
	double rate = known ? frac_double(sched->achieved) * (double)ask->p.efficiency[class] / (double)PPM
	    : HOST_NET_ASSUMED;
	int64_t asked = host_net_chunk_bytes(longest, rate * (double)longest / (double)ask->m, known, depth, rings_max);
	*out = host_chunk_bytes(longest, rings_max, asked);
	return OK;
}

Status
sim_run_best_within(Ctx *ctx, const SimPlan *plan, const SimAsk *ask, Floor *floor, int64_t most,
    SimResult *out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct search s = { .ctx = ctx, .ask = ask, .floor = floor,
		.least = sim_least_chunk(sim_protocol(plan, &ask->p, ask->m)) };
	SimAsk one = *ask;
	struct net net;
	bool found = true;
	if (plan->too_large) {
		TRY(sim_at_least(ctx, plan, ask, out));
		if (out->time > most)
			*out = (SimResult){ .time = INT64_MAX };
		return OK;
	}
	one.steps = false;
	one.chunk = 0;
	if (ask->p.by_memory)
		return sim_shared(ctx, plan, &one, out);
	if (ask->p.cores > 0) {
		TRY(host_chunk(ctx, plan, ask, &one.chunk));
		return sim_run(ctx, plan, &one, out);
	}
	if (floor)
		floor_of_message(floor, ask->m);
	TRY(net_new(ctx, plan, &one, &net));
	s.net = &net;
	s.longest = longest_segment(&net);
	s.most = most;
	if (floor && most < SIM_TIME_MOST)
		TRY(any_within(&s, &found));
	if (found)
		TRY(find_best(&s));
	arena_release(&ctx->scratch, mark);
	*out = s.best;
	if (!found || s.best.time > most)
		*out = (SimResult){ .time = INT64_MAX };
	one.chunk = s.chunk;
	one.steps = ask->steps;
	if (ask->steps && out->time < INT64_MAX)
		TRY(sim_run(ctx, plan, &one, out));
	out->limited = s.best.limited;
	return OK;
}

Status
sim_run_best(Ctx *ctx, const SimPlan *plan, const SimAsk *ask, SimResult *out)
{
	return sim_run_best_within(ctx, plan, ask, NULL, SIM_TIME_MOST, out);
}
