/* The chunk size with the least simulated time, among powers of two of at least 4 KiB.
 *
 * Small chunks fill the pipeline sooner, and pay more start-ups: along d hops a segment of S bytes takes about (k + d
 * - 1) (step + S / (k B)) in k chunks, least for k = sqrt((d - 1) S / (B step)). Around that the time falls, and then
 * rises, so the search starts there and goes downhill, in the order of chunk sizes, until a neighbour is no better:
 * four or five simulations. A message that does not fill a pipeline has one chunk. Ties go to the larger chunk.
 *
 * What libblink takes itself (runtime/cuda/sizes.c) is a rule for all machines, within 8 to 128 KiB for kernels, bound
 * by its rings; `--chunk` simulates that, too. The best size shows what a schedule can do, and is what a schedule's
 * chunk can be set to (BLINK_CHUNK). */
#include "schedule/schedule.h"
#include "simulate/run.h"

enum { LEAST_SHIFT = 12 };

static int64_t
longest_segment(Ctx *ctx, const SimPlan *plan, int64_t m)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	int n = plan->sched->n_segments;
	int64_t *bytes = arena_array(&ctx->scratch, (size_t)n, sizeof *bytes), longest = 0;
	if (!bytes)
		return -1;
	sim_segment_bytes(plan, m, bytes);
	for (int s = 0; s < n; s++)
		longest = bytes[s] > longest ? bytes[s] : longest;
	arena_release(&ctx->scratch, mark);
	return longest;
}

/* The shift of the chunk size where the search begins. */
static int
first_shift(const SimPlan *plan, const SimAsk *ask, int depth, int most)
{
	const Schedule *sched = plan->sched;
	double rate = 1, step = (double)(by_packets(ask) ? ask->p.packet_step : ask->p.step) + 1;
	for (int h = 0; h < plan->n_hops; h++)
		for (int i = 0; i < plan->hop[h].n_links; i++) {
			double one = (double)sim_link_rate(&ask->p, &sched->topo->link[plan->hop[h].link[i]]);
			rate = one > rate ? one : rate;
		}
	/* chunk^2 = S B step / (d - 1), S = 2^most */
	double square = (double)(INT64_C(1) << most) * rate * step / 1e9 / (depth > 1 ? depth - 1 : 1);
	int shift = LEAST_SHIFT;
	while (shift < most && (double)(INT64_C(1) << shift) * (double)(INT64_C(1) << shift) < square)
		shift++;
	return shift;
}

/* Steps of chunks of this size, of the longest segment, over all edges: at least what a simulation counts. */
static bool
too_many(const SimPlan *plan, const SimAsk *ask, int64_t longest, int shift)
{
	int64_t most = ask->steps ? LIMIT_SIM_KEPT : LIMIT_SIM_STEPS;
	return ((longest - 1) >> shift) + 1 > most / (plan->n_hops ? plan->n_hops : 1);
}

/* One more simulation; what a worse one has left in the run arena is given back. */
static Status
try_shift(Ctx *ctx, const SimPlan *plan, const SimAsk *ask, int shift, SimResult *best, bool *better)
{
	ArenaMark mark = arena_mark(&ctx->run);
	SimAsk one = *ask;
	SimResult result;
	one.chunk = INT64_C(1) << shift;
	one.steps = false;
	TRY(sim_run(ctx, plan, &one, &result));
	*better = result.time < best->time;
	if (*better)
		*best = result;
	else
		arena_release(&ctx->run, mark);
	return OK;
}

static Status
descend(Ctx *ctx, const SimPlan *plan, const SimAsk *ask, int64_t longest, int most, SimResult *best, int *shift)
{
	bool better;
	for (int direction = 1; direction >= -1; direction -= 2) {
		int start = *shift;
		do {
			int next = *shift + direction;
			better = next >= LEAST_SHIFT && next <= most && !too_many(plan, ask, longest, next);
			if (better)
				TRY(try_shift(ctx, plan, ask, next, best, &better));
			*shift = better ? next : *shift;
		} while (better);
		if (*shift != start)
			break;
	}
	return OK;
}

Status
sim_run_best(Ctx *ctx, const SimPlan *plan, const SimAsk *ask, SimResult *out)
{
	int64_t longest = longest_segment(ctx, plan, ask->m);
	int most = LEAST_SHIFT, depth, shift;
	SimResult best = { .time = INT64_MAX };
	bool better;
	if (longest < 0)
		return fail_memory(ctx);
	while (most < 60 && INT64_C(1) << most < longest)
		most++;
	TRY(sched_depth(ctx, plan->sched, &depth));
	shift = first_shift(plan, ask, depth, most);
	while (shift < most && too_many(plan, ask, longest, shift))
		shift++;
	TRY(try_shift(ctx, plan, ask, shift, &best, &better));
	TRY(descend(ctx, plan, ask, longest, most, &best, &shift));
	if (ask->steps) {
		SimAsk kept = *ask;
		kept.chunk = INT64_C(1) << shift;
		return sim_run(ctx, plan, &kept, out);
	}
	*out = best;
	return OK;
}
