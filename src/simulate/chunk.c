/* The chunk size with the least simulated time, among powers of two of at least 4 KiB; of packets, of at least 256
 * bytes, since each carries its own flag: a warp sends on the 32 times 8 bytes that it has without waiting for others.
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
#include "simulate/run.h"

enum { LEAST_SHIFT = 12, LEAST_SHIFT_PACKETS = 8, PATIENCE = 2 };

int64_t
sim_least_chunk(const SimAsk *ask)
{
	return INT64_C(1) << (by_packets(ask) ? LEAST_SHIFT_PACKETS : LEAST_SHIFT);
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

/* One more simulation; what a worse one has left in the run arena is given back. */
static Status
try_chunk(Ctx *ctx, const struct net *net, const SimAsk *ask, int64_t chunk, SimResult *best, bool *better)
{
	ArenaMark mark = arena_mark(&ctx->run);
	SimAsk one = *ask;
	SimResult result;
	one.chunk = chunk;
	one.steps = false;
	TRY(sim_run_net(ctx, net, &one, &result));
	*better = result.time < best->time;
	if (*better)
		*best = result;
	else
		arena_release(&ctx->run, mark);
	return OK;
}

static Status
search(Ctx *ctx, const struct net *net, const SimAsk *ask, SimResult *best, int64_t *best_chunk)
{
	int64_t longest = longest_segment(net), chunk = sim_least_chunk(ask);
	int worse = 0;
	bool better;
	while (chunk < longest)
		chunk *= 2;
	*best_chunk = chunk;
	TRY(try_chunk(ctx, net, ask, chunk, best, &better));
	while ((chunk /= 2) >= sim_least_chunk(ask) && worse < PATIENCE && !too_many(net, longest, chunk)) {
		TRY(try_chunk(ctx, net, ask, chunk, best, &better));
		worse = better ? 0 : worse + 1;
		*best_chunk = better ? chunk : *best_chunk;
	}
	return OK;
}

Status
sim_run_best(Ctx *ctx, const SimPlan *plan, const SimAsk *ask, SimResult *out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	SimResult best = { .time = INT64_MAX };
	SimAsk one = *ask;
	struct net net;
	one.steps = false;
	TRY(net_new(ctx, plan, &one, &net));
	TRY(search(ctx, &net, ask, &best, &one.chunk));
	arena_release(&ctx->scratch, mark);
	if (ask->steps) {
		one.steps = true;
		return sim_run(ctx, plan, &one, out);
	}
	*out = best;
	return OK;
}
