/* blinkc tune --format mscclpp: plans of MSCCL++ for ranges of sizes, and the Python lines that register them.
 *
 * For each size the schedules that are fastest themselves are written as plans, in both protocols, and these are
 * simulated. The executor rounds no message up, so register.py has of how many bytes a message is a multiple. */
#include "base/limits.h"
#include "format/format.h"
#include "format/mscclpp/mscclpp.h"
#include "simulate/mscclpp.h"
#include "verb/batch/batch.h"
#include "verb/progress.h"
#include "verb/simulate/ways.h"

#include <string.h>

/* FASTEST: schedules of a size that are tried as plans. Packets are not for messages above PACKETS_MOST. */
enum { FASTEST = 4, PACKETS_MOST = 8 << 20 };

/* A candidate in one of the protocols. */
struct way {
	bool tried, fits;
	Mscclpp *plan;
	SimMscclpp sim;
};

struct ways {
	const Batch *b;
	Choices *choices;
	struct way *way;	/* of each candidate: in packets, and not */
	int64_t *time;		/* of each candidate as a schedule */
};

/* Plans that MSCCL++ has no room for, or that packets cannot do, are not there. */
static Status
make_way(Ctx *ctx, struct ways *w, int i)
{
	struct way *way = &w->way[i];
	const Candidate *c = &w->choices->candidate[i / 2];
	SimRoute *route;
	if (way->tried)
		return OK;
	way->tried = true;
	Status status = mscclpp_from_schedule(ctx, c->sched, i % 2, w->b->tuning->in_place, &way->plan);
	if (status == INFEASIBLE || status == LIMIT) {
		ctx->error = (Error){ .status = OK };
		return OK;
	}
	TRY(status);
	TRY(sim_mscclpp_list(ctx, way->plan, &way->sim));
	TRY(NEW(ctx, route, way->sim.n_pairs));
	TRY(ways_over(ctx, c->sched->topo, way->sim.pair, way->sim.n_pairs, route, &way->fits));
	return way->fits ? sim_mscclpp_route(ctx, c->sched->topo->name, c->sched, route, &way->sim) : OK;
}

static Status
time_of(Ctx *ctx, const struct ways *w, int i, int64_t m, int64_t *out)
{
	ArenaMark mark = arena_mark(&ctx->run);
	const struct way *way = &w->way[i];
	const SimAsk ask = { .p = sim_mscclpp_parameters(way->plan, &w->b->tuning->p), .m = m, .chunk = 1 };
	SimResult result;
	progress(ctx, "message of %lld bytes by a plan of %s", (long long)m, w->choices->candidate[i / 2].name);
	TRY(sim_mscclpp_run(ctx, &way->sim, &ask, &result));
	arena_release(&ctx->run, mark);
	*out = result.time;
	return OK;
}

/* Of those not taken yet. -1: none. */
static int
next_fastest(const struct ways *w, const bool *taken)
{
	int best = -1;
	for (int c = 0; c < w->choices->n; c++)
		if (!taken[c] && w->time[c] >= 0 && (best < 0 || w->time[c] < w->time[best]))
			best = c;
	return best;
}

static Status
best_of_size(Ctx *ctx, const Sweep *s, int64_t m, ChoicePoint *out)
{
	struct ways *w = s->of;
	bool taken[CANDIDATES_MOST] = { false };
	ChoicePoint of_schedules;
	TRY(choice_of_size(ctx, w->choices, m, &of_schedules));
	TRY(choice_times(ctx, w->choices, m, w->time, NULL));
	*out = (ChoicePoint){ .m = m, .best = -1, .time = INT64_MAX, .least = of_schedules.least };
	TRY(choice_least(ctx, w->choices, m, &out->least));
	for (int tried = 0, c; tried < FASTEST && (c = next_fastest(w, taken)) >= 0; taken[c] = true) {
		bool any = false;
		for (int i = 2 * c; i < 2 * c + (m <= PACKETS_MOST ? 2 : 1); i++) {
			int64_t time;
			TRY(make_way(ctx, w, i));
			if (!w->way[i].fits)
				continue;
			any = true;
			TRY(time_of(ctx, w, i, m, &time));
			if (time >= out->time)
				continue;
			out->best = i;
			out->time = time;
		}
		tried += any;
	}
	return out->best >= 0 ? OK : fail(ctx, LIMIT, "%s: no schedule that MSCCL++ has room for",
	    w->choices->candidate[0].sched->topo->name);
}

/* "allreduce/0-7.trees-depth-5-packets.1024.json" */
static Status
plan_file(Ctx *ctx, const BatchPlan *plan, const TunedRange *range, const char **out)
{
	const char *file;
	Text name = { 0 };
	TRY(tuned_file(ctx, plan, range, &file));
	text_add(&name, file, strlen(file) - strlen("json"));
	text_printf(&name, "%lld.json", (long long)range->from);
	*out = text_keep(&ctx->run, &name);
	return *out ? OK : fail_memory(ctx);
}

static Status
write_range(Ctx *ctx, const struct ways *w, int p, int way, TunedRange *range)
{
	const Batch *b = w->b;
	const Candidate *c = &w->choices->candidate[way / 2];
	Mscclpp plan = *w->way[way].plan;
	Text text = { 0 };
	char path[FILE_PATH_ROOM];
	const char *file;
	snprintf(range->way, sizeof range->way, "%.*s%s", (int)(sizeof range->way - sizeof ", packets"), c->name,
	    way % 2 ? ", packets" : "");
	if ((uint64_t)range->to > plan.max_bytes)
		range->to = (int64_t)plan.max_bytes;
	TRY(plan_file(ctx, &b->plan[p], range, &file));
	plan.name = file;
	plan.min_bytes = range->from;
	plan.max_bytes = (uint64_t)range->to;
	range->multiple = plan.alignment * sim_mscclpp_chunks(&plan);
	range->trees = c->trees;
	range->depth = c->depth;
	TRY(batch_path(ctx, b, file, path));
	mscclpp_write(&plan, &text);
	Status status = text.failed ? fail_memory(ctx) : file_write_soon(ctx, path, &text);
	text_free(&text);
	return status;
}

Status
tune_mscclpp_plan(Ctx *ctx, const Batch *b, const Job *job, int p)
{
	struct ways w = { .b = b };
	Sweep s = { .at = best_of_size, .of = &w, .range = b->range + (size_t)p * TUNED_RANGES };
	TRY(choice_prepare(ctx, job, &b->tuning->p, &w.choices));
	TRY(NEW(ctx, w.way, 2 * w.choices->n));
	TRY(NEW(ctx, w.time, w.choices->n));
	TRY(tune_sweep(ctx, &s, &b->tuning->sizes));
	for (int i = 0; i < s.n; i++)
		TRY(write_range(ctx, &w, p, s.way[i], &s.range[i]));
	b->result[p].trees = s.range[0].trees;
	b->result[p].depth = s.range[0].depth;
	b->result[p].n_ranges = s.n;
	return OK;
}

Status
tune_mscclpp_check(Ctx *ctx, const Options *opt, Batch *b)
{
	const Sizes *sizes = &b->tuning->sizes;
	for (int c = 0; c < N_COLLECTIVES; c++)
		if (b->colls >> c & 1 && (collective_rooted((Collective)c) || (c == ALLTOALL && b->tuning->in_place)))
			return fail(ctx, USAGE, "--collectives: %s%s: want %s", collective_name((Collective)c),
			    c == ALLTOALL ? " in place" : "", c == ALLTOALL ? "it out of place"
			    : "those without a root, which MSCCL++ does not look at");
	if (sizes->m[sizes->n - 1] > INT32_MAX)
		return fail(ctx, USAGE, "--size: want sizes below 2G, as MSCCL++ reads their limits");
	if (b->distinct)
		return fail(ctx, USAGE, "--distinct: want none with --format mscclpp, which is for one set of GPUs");
	if (b->n_jobs != 1)
		return fail(ctx, USAGE, "%d sets of GPUs: --format mscclpp: want one set, whose plans are registered",
		    b->n_jobs);
	for (int i = 1; i < b->job->n; i++)
		if (b->job->gpu[i] < b->job->gpu[i - 1])
			return fail(ctx, USAGE, "%s: --format mscclpp: want GPUs in ascending order, as ranks of plans",
			    opt->value[OPT_GPUS]);
	return OK;
}

/* ---- Python ---- */

static const char head[] =
    "import os\n"
    "\n"
    "import mscclpp\n"
    "import mscclpp.ext\n"
    "\n";

static const char body[] =
    "\n"
    "\n"
    "def algorithms(rank):\n"
    "    \"\"\"Those of this rank, for a communicator of one's own.\"\"\"\n"
    "    here = os.path.dirname(os.path.abspath(__file__))\n"
    "    constraint = mscclpp.Algorithm.Constraint(world_size=WORLD_SIZE, n_ranks_per_node=RANKS_PER_NODE)\n"
    "    return [\n"
    "        mscclpp.Algorithm(\n"
    "            id=file, execution_plan=mscclpp.ExecutionPlan(os.path.join(here, file), rank), constraint=constraint\n"
    "        )\n"
    "        for _, _, _, _, file in PLANS\n"
    "    ]\n"
    "\n"
    "\n"
    "def file_for(collective, message_size):\n"
    "    \"\"\"message_size: bytes of the output of an allgather, else of the input. None: no plan is for it.\"\"\"\n"
    "    for name, least, most, multiple, file in PLANS:\n"
    "        if name == collective and least <= message_size <= most and message_size % multiple == 0:\n"
    "            return file\n"
    "    return None\n"
    "\n"
    "\n"
    "def select(algorithms, request):\n"
    "    \"\"\"For the library of NCCL's functions. None: what it chooses itself.\"\"\"\n"
    "    ranks = request.world_size if request.collective == \"allgather\" else 1\n"
    "    file = file_for(request.collective, request.message_size * ranks)\n"
    "    if file is None or (request.world_size, request.n_ranks_per_node) != (WORLD_SIZE, RANKS_PER_NODE):\n"
    "        return None\n"
    "    algorithm = algorithms[request.collective][file]\n"
    "    return algorithm if request.buffer_mode() == algorithm.buffer_mode else None\n"
    "\n"
    "\n"
    "def register(rank):\n"
    "    \"\"\"Before the process group is made.\"\"\"\n"
    "    builder = mscclpp.ext.AlgorithmCollectionBuilder()\n"
    "    for algorithm in algorithms(rank):\n"
    "        builder.add_algorithm_builder(algorithm)\n"
    "    builder.set_algorithm_selector(select)\n";

/* GPUs of the first server. */
static int
ranks_per_node(const Batch *b)
{
	const GpuSet *job = b->job;
	int n = 0;
	while (n < job->n && b->machine->vertex[job->gpu[n]].node == b->machine->vertex[job->gpu[0]].node)
		n++;
	return n;
}

Status
tune_mscclpp_register(Ctx *ctx, const Batch *b)
{
	Text text = { 0 };
	char path[FILE_PATH_ROOM];
	TRY(batch_path(ctx, b, "register.py", path));
	text_printf(&text, "\"\"\"Plans by blinkc for MSCCL++ 0.9, %s.\n\nRank i of the job has GPU i of these:",
	    b->tuning->in_place ? "in place" : "out of place");
	for (int i = 0; i < b->job->n; i++) {
		text_put(&text, i % 8 ? " " : "\n    ");
		text_printable(&text, b->machine->vertex[b->job->gpu[i]].id);
	}
	text_printf(&text, "\n\nAs MSCCL++ keeps one mode of buffers for all plans of a process, register no others "
	    "that are %s place.\n\"\"\"\n", b->tuning->in_place ? "out of" : "in");
	text_put(&text, head);
	text_printf(&text, "WORLD_SIZE, RANKS_PER_NODE = %d, %d\n\n# collective, least and most bytes of a message, of "
	    "which it is a multiple, file\nPLANS = [\n", b->job->n, ranks_per_node(b));
	for (int p = 0; p < b->n_plans; p++)
		for (int i = 0; i < b->result[p].n_ranges; i++) {
			const TunedRange *range = &b->range[(size_t)p * TUNED_RANGES + (size_t)i];
			const char *file;
			TRY(plan_file(ctx, &b->plan[p], range, &file));
			text_printf(&text, "    (\"%s\", %lld, %lld, %lld, \"%s\"),\n",
			    collective_name(b->plan[p].coll), (long long)range->from, (long long)range->to,
			    (long long)range->multiple, file);
		}
	text_put(&text, "]\n");
	text_put(&text, body);
	Status status = text.failed ? fail_memory(ctx) : file_write(ctx, path, &text);
	text_free(&text);
	return status;
}
