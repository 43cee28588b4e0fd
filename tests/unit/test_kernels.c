/* The kernels of the CUDA backend (runtime/cuda/kernels), as twins whose threads are fibers (fibers.h): jobs of several
 * ranks whose tables are made of rank programs, call after call, against a plain execution of the same programs by the
 * host's reductions. Prints TAP. Arguments: seed, jobs. */
#include "kernel_calls.h"
#include "kernel_messages.h"
#include "kernel_switch.h"
#include "kernel_uneven.h"
#include "quick.h"

#include <unistd.h>

enum { CALLS = 5 };

/* ---- runs ---- */

static int rounds_alone;		/* of rank 0, before the others make their first call */
static uint64_t calls_alone;		/* those that it has ended by then */

/* The calls of each rank one after the other, each rank for itself; rank r goes through call[r][0 .. n - 1]. */
static void
run_calls(struct gpus *g, struct call *(*call)[CALLS], int n)
{
	int at[MAX_RANKS], left = g->n, alone = rounds_alone;
	for (int r = 0; r < g->n; r++)
		at[r] = -1;
	while (left > 0) {
		left = alone;
		calls_alone = alone > 0 ? GPU_CALLS(g->state[0]->calls) : calls_alone;
		for (int r = 0; r < (alone > 0 ? 1 : g->n); r++) {
			if (at[r] < n && (at[r] < 0 || ended(&call[r][at[r]]->grid[r])) && ++at[r] < n) {
				struct call *c = call[r][at[r]];
				launch(c->kernel, r, c->blocks[r], c->threads, c->plan->switched ?
				    (const void *)&c->switched[r] : &c->given[r], &c->grid[r]);
			}
			left += at[r] < n;
		}
		alone -= alone > 0;
		run_round();
		stop_together(g);
	}
}

static bool
status_holds(const struct gpus *g, uint64_t calls)
{
	for (int r = 0; r < g->n; r++)
		if (g->status[r].begun != calls || g->status[r].done != calls
		    || g->state[r]->calls != GPU_COUNT(calls, 0, 0)
		    || g->status[r].differs || g->status[r].awaits != -1)
			return false;
	return true;
}

/* Several calls of several plans on the same GPUs. */
static bool
run_same(struct gpus *g, struct call **list, int n)
{
	struct call *call[MAX_RANKS][CALLS];
	bool good = true;
	uint64_t before = GPU_CALLS(g->state[0]->calls);
	n_violations = 0;
	for (int i = 0; i < n; i++) {
		if (!list[i]->as_wanted)
			execute(list[i]);
		for (int r = 0; r < g->n; r++)
			call[r][i] = list[i];
	}
	run_calls(g, call, n);
	for (int i = 0; i < n; i++) {
		good = call_holds(list[i]) && good;
		free_call(list[i]);
	}
	return good && n_violations == 0 && status_holds(g, before + (uint64_t)n);
}

static int64_t
random_count(void)
{
	static const int64_t counts[] = { 0, 1, 2, 3, 7, 16, 64, 97, 331, 1000, 2500 };
	return counts[below(sizeof counts / sizeof counts[0])];
}

static bool
random_job(void)
{
	Ctx ctx;
	ctx_init(&ctx);
	struct gpus *g = gpus_new(1 + below(5));
	struct call *list[CALLS];
	for (int i = 0; i < CALLS; i++) {
		Collective coll = (Collective)below(N_COLLECTIVES);
		const struct plan *plan = below(2) ? random_plan(&ctx, g, coll)
		    : built_in_plan(&ctx, g, coll, below(2));
		int type = below(blinkFloat8e5m2 + 1);
		if (coll == ALLTOALL && plan->n_parts == 1 && below(2))
			list[i] = uneven_call(g, plan, type);
		else
			list[i] = new_call(g, plan, type, below(blinkAvg + 2), random_count(),
			    GPU_PACKETS + below(3), -1);
	}
	bool good = run_same(g, list, CALLS);
	gpus_free(g);
	ctx_free(&ctx);
	return good;
}

/* The root of a broadcast, whose values all fit into its readers' slots, ends two calls before they make their first,
 * and no more: the third has the memory of the first. */
static bool
root_alone(int protocol)
{
	Ctx ctx;
	ctx_init(&ctx);
	struct gpus *g = gpus_new(3);
	const struct plan *plan = built_in_plan(&ctx, g, BROADCAST, false);
	struct call *list[CALLS];
	for (int i = 0; i < CALLS; i++)
		list[i] = new_call(g, plan, blinkFloat32, blinkSum, 7, protocol, 0);
	rounds_alone = 2000;
	bool good = run_same(g, list, CALLS) && calls_alone == 2;
	rounds_alone = 0;
	gpus_free(g);
	ctx_free(&ctx);
	return good;
}

/* As many threads as on a GPU, of which each warp takes a part of the parameters; with a factor in memory. */
static bool
all_threads_of_block(void)
{
	bool good = true;
	Ctx ctx;
	ctx_init(&ctx);
	struct gpus *g = gpus_new(2);
	const struct plan *plan = built_in_plan(&ctx, g, ALLREDUCE, false);
	int base = n_regions;
	for (int protocol = GPU_PACKETS; protocol <= GPU_FLAGS_ALONE; protocol++) {
		struct call *c = new_call(g, plan, blinkFloat32, blinkAvg + 2, 100 + below(1000), protocol, 1);
		c->threads = GPU_THREADS;
		good = run_same(g, &c, 1) && good;
		n_regions = base;
	}
	gpus_free(g);
	ctx_free(&ctx);
	return good;
}

/* Every type with every operation, long and short. */
static bool
all_types(int protocol)
{
	bool good = true;
	Ctx ctx;
	ctx_init(&ctx);
	struct gpus *g = gpus_new(3);
	const struct plan *plan = built_in_plan(&ctx, g, ALLREDUCE, false);
	int base = n_regions;
	for (int type = 0; type <= blinkFloat8e5m2; type++)
		for (int op = 0; op <= blinkAvg + 1; op++) {
			struct call *c = new_call(g, plan, type, op, 300 + below(100), protocol, -1);
			good = run_same(g, &c, 1) && good;
			n_regions = base;
		}
	gpus_free(g);
	ctx_free(&ctx);
	return good;
}

/* Calls by a switch, of one kind after another: short or long, of every collective, and all its instructions. */
static bool
switched_job(void)
{
	Ctx ctx;
	ctx_init(&ctx);
	struct gpus *g = gpus_new(3 + below(2));
	struct call *list[CALLS];
	team_open(g);
	for (int i = 0; i < CALLS; i++) {
		const struct plan *plan = switched_plan(&ctx, g, switched_collective());
		list[i] = switched_call(g, plan, random_count());
	}
	bool good = run_same(g, list, CALLS);
	team_close();
	gpus_free(g);
	ctx_free(&ctx);
	return good;
}

/* ---- what goes wrong ---- */

/* Rank 1 makes another call: its signature is another, or, where `missing`, it makes none, and the host stops all. */
static bool
run_wrong(int protocol, int turns, bool missing)
{
	Ctx ctx;
	ctx_init(&ctx);
	struct gpus *g = gpus_new(3);
	const struct plan *plan = built_in_plan(&ctx, g, ALLREDUCE, false);
	struct call *right = new_call(g, plan, blinkFloat32, blinkSum, 500, protocol, turns);
	struct call *call[MAX_RANKS][CALLS] = { { right }, { right }, { right } };
	uint64_t deadline = virtual_gpu_time() + 20 * UINT64_C(1000000000);
	bool named[3] = { false, true, false };
	bool good = true;
	right->given[1].signature += 2;
	if (missing)
		for (int r = 0; r < 3; r += 2)
			launch(right->kernel, r, right->blocks[r], right->threads, &right->given[r], &right->grid[r]);
	else
		run_calls(g, call, 1);
	while (missing && n_running > 0 && virtual_gpu_time() < deadline) {
		run_round();
		for (int r = 0; r < 3; r++)	/* each may also wait for the other, which waits for rank 1 */
			named[r] = named[r] || now_of((uint32_t *)&g->status[r].awaits) == 1;
		__atomic_store_n(&g->status[0].stop, named[0] && named[2], __ATOMIC_RELAXED);
		stop_together(g);
	}
	int differs = 0;
	for (int r = 0; r < 3; r++) {
		differs += g->status[r].differs != 0;
		good = good && (missing && r == 1 ? g->status[r].begun == 0 : g->status[r].begun == 1)
		    && g->status[r].done == 0;
	}
	good = good && n_running == 0 && (missing ? named[0] && named[2] && !differs : differs > 0);
	free_call(right);
	gpus_free(g);
	ctx_free(&ctx);
	return good;
}

/* Rank 0 sends one element more than rank 2 expects. */
static bool
uneven_differs(void)
{
	Ctx ctx;
	ctx_init(&ctx);
	struct gpus *g = gpus_new(3);
	const struct plan *plan = built_in_plan(&ctx, g, ALLTOALL, false);
	struct call *c = uneven_call(g, plan, blinkInt32), *call[MAX_RANKS][CALLS] = { { c }, { c }, { c } };
	struct gpu_blocks *blocks = (struct gpu_blocks *)(uintptr_t)c->given[2].blocks;
	blocks->received[0] += blocks->received[0] > 0 ? -1 : 1;
	run_calls(g, call, 1);
	bool good = g->status[2].differs == GPU_DIFFERS_MESSAGE + 0 + 1 && g->status[2].done == 0 && n_running == 0;
	free_call(c);
	gpus_free(g);
	ctx_free(&ctx);
	return good;
}

/* ---- the program ---- */

static bool
another_call(int protocol)
{
	return run_wrong(protocol, 0, false);
}

static bool
no_call(int protocol)
{
	return run_wrong(protocol, 0, true);
}

static bool
of_protocols(bool (*what)(int protocol))
{
	return what(GPU_PACKETS) && what(GPU_LINES) && what(GPU_FLAGS_ALONE);
}

static bool
times(int n, bool (*what)(void))
{
	bool good = true;
	for (int i = 0; i < n && good; i++)
		good = what();
	return good;
}

int
main(int argc, char **argv)
{
	int jobs = quick_check() ? 2 : argc > 2 ? atoi(argv[2]) / 3 : 10;
	state = chance = argc > 1 ? (uint64_t)atoi(argv[1]) : 1;
	alarm(300);
	ok(all_types(GPU_FLAGS_ALONE), "every type and operation, by flags");
	ok(all_types(GPU_PACKETS), "every type and operation, by packets");
	ok(all_types(GPU_LINES), "every type and operation, by lines");
	ok(all_threads_of_block(), "as many threads as on a GPU");
	ok(of_protocols(root_alone), "a root waits for the readers of the call before the last");
	uneven = true;
	ok(times(jobs, random_job), "calls of random plans, one after the other");
	ok(times(jobs, switched_job), "calls by a switch that adds and copies");
	uneven = false;
	ok(times(jobs, messages), "messages");
	weak = true;
	ok(times(jobs, random_job), "random plans, where stores are seen late");
	ok(times(jobs, switched_job), "calls by a switch, where stores are seen late");
	ok(times(jobs, messages), "messages, where stores are seen late");
	weak = false;
	ok(of_protocols(another_call) && run_wrong(GPU_FLAGS_ALONE, 1, false),
	    "a rank in another call: all end, and somebody says who");
	ok(messages_differ(), "a message of another length: all end");
	ok(times(jobs, uneven_differs), "a block of another length: all end");
	ok(of_protocols(no_call) && run_wrong(GPU_FLAGS_ALONE, 1, true),
	    "a rank that does not come is named, and who waits for it can be stopped");
	free_fibers();
	return end_tests();
}
