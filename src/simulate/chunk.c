/* The chunk size with the least simulated time, among powers of two of at least 4 KiB.
 *
 * Small chunks fill the pipeline sooner, and pay more start-ups: along d hops a segment of S bytes takes about
 * (k + d - 1) (step + S / (k B)) in k chunks, least for k = sqrt((d - 1) S / (B step)). Around that the time falls,
 * and then rises, so the search starts there and goes downhill, in the order of chunk sizes, until a neighbour is no
 * better; and at last one chunk is tried, which trees of one hop are best with: five or six simulations. Of equal
 * times the size that was tried first is kept. None has more than LIMIT_SIM_SEARCH steps, or one chunk: with k
 * chunks a pipeline of d hops is filled for (d - 1) / k of its time, which many more chunks hardly change.
 *
 * What libblink takes itself (runtime/cuda/sizes.c) is a rule for all machines, within 8 to 128 KiB for kernels, bound
 * by its rings; `--chunk` simulates that, too. The best size shows what a schedule can do, and is what a schedule's
 * chunk can be set to (BLINK_CHUNK). */
#include "schedule/schedule.h"
#include "simulate/run.h"

enum { LEAST_SHIFT = 12 };

static int64_t
longest_segment(const struct net *net)
{
	int64_t longest = 0;
	for (int s = 0; s < net->plan->sched->n_segments; s++)
		longest = net->bytes[s] > longest ? net->bytes[s] : longest;
	return longest;
}

/* The shift of the chunk size where the search begins. */
static int
first_shift(const struct net *net, const SimAsk *ask, int depth, int most)
{
	double rate = 1, step = (double)(by_packets(ask) ? ask->p.packet_step : ask->p.step) + 1;
	for (int h = 0; h < net->n_hops; h++)
		for (int i = 0; i < net->hop[h].n_places; i++) {
			double one = (double)net->rate[net->place[net->hop[h].first_place + i].link];
			rate = one > rate ? one : rate;
		}
	/* chunk^2 = S B step / (d - 1), S = 2^most */
	double square = (double)(INT64_C(1) << most) * rate * step / 1e9 / (depth > 1 ? depth - 1 : 1);
	int shift = LEAST_SHIFT;
	while (shift < most && (double)(INT64_C(1) << shift) * (double)(INT64_C(1) << shift) < square)
		shift++;
	return shift;
}

/* Steps of chunks of this size, of the longest segment, over all hops: at least what a simulation takes. */
static bool
too_many(const struct net *net, int64_t longest, int shift)
{
	return ((longest - 1) >> shift) + 1 > LIMIT_SIM_SEARCH / (net->n_hops ? net->n_hops : 1);
}

/* One more simulation; what a worse one has left in the run arena is given back. */
static Status
try_shift(Ctx *ctx, const struct net *net, const SimAsk *ask, int shift, SimResult *best, bool *better)
{
	ArenaMark mark = arena_mark(&ctx->run);
	SimAsk one = *ask;
	SimResult result;
	one.chunk = INT64_C(1) << shift;
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
descend(Ctx *ctx, const struct net *net, const SimAsk *ask, int64_t longest, int most, SimResult *best, int *shift)
{
	bool better;
	for (int direction = 1; direction >= -1; direction -= 2) {
		int start = *shift;
		do {
			int next = *shift + direction;
			better = next >= LEAST_SHIFT && next <= most && !too_many(net, longest, next);
			if (better)
				TRY(try_shift(ctx, net, ask, next, best, &better));
			*shift = better ? next : *shift;
		} while (better);
		if (*shift != start)
			break;
	}
	return OK;
}

static Status
search(Ctx *ctx, const struct net *net, const SimAsk *ask, SimResult *best, int *out)
{
	int64_t longest = longest_segment(net);
	int most = LEAST_SHIFT, depth, shift;
	bool better;
	while (most < 60 && INT64_C(1) << most < longest)
		most++;
	TRY(sched_depth(ctx, net->plan->sched, &depth));
	shift = first_shift(net, ask, depth, most);
	while (shift < most && too_many(net, longest, shift))
		shift++;
	TRY(try_shift(ctx, net, ask, shift, best, &better));
	TRY(descend(ctx, net, ask, longest, most, best, &shift));
	TRY(try_shift(ctx, net, ask, most, best, &better));
	*out = better ? most : shift;
	return OK;
}

Status
sim_run_best(Ctx *ctx, const SimPlan *plan, const SimAsk *ask, SimResult *out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	SimResult best = { .time = INT64_MAX };
	SimAsk one = *ask;
	struct net net;
	int shift = 0;
	one.steps = false;
	TRY(net_new(ctx, plan, &one, &net));
	TRY(search(ctx, &net, ask, &best, &shift));
	arena_release(&ctx->scratch, mark);
	if (ask->steps) {
		one.steps = true;
		one.chunk = INT64_C(1) << shift;
		return sim_run(ctx, plan, &one, out);
	}
	*out = best;
	return OK;
}
