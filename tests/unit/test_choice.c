/* The choice: it is the best of all candidates, by their own simulations; floors and the least time are below them;
 * planning with symmetries, bound and proofs in common gives the schedules that each algorithm gives alone. */
#include "choice/choice.h"
#include "compiled.h"
#include "quick.h"

#include <string.h>
#include <sys/resource.h>

static int number, failures;

static void
ok(bool good, const char *what, const char *of)
{
	if (!good)
		failures++;
	if (!good || strcmp(of, "all") == 0)
		printf("%s %d - %s: %s\n", good ? "ok" : "not ok", ++number, what, of);
}

static Choices *
choices_of(Ctx *ctx, const Topology *topo, const int *gpu, int n, Collective coll, const SimParameters *p)
{
	const Ask ask = { .coll = coll, .root = collective_rooted(coll) ? 0 : -1, .packing = PACKING_EXACT,
		.epsilon = { 1, 20 }, .tolerance = FRAC_ZERO, .minimise = true };
	Job *job;
	Choices *choices = NULL;
	if (NEW(ctx, job, 1) != OK || job_induce(ctx, topo, gpu, n, &ask, job) != OK
	    || choice_prepare(ctx, job, p, &choices) != OK) {
		printf("Bail out! %s\n", ctx->error.text);
		exit(1);
	}
	return choices;
}

/* The best of all; and none below its floors, or the least time. */
static void
check_size(Ctx *ctx, Choices *choices, int64_t m, const char *of)
{
	int64_t time[CANDIDATES_MOST], chunk[CANDIDATES_MOST];
	ChoicePoint point;
	bool first = true, least = true, floors = true;
	if (choice_of_size(ctx, choices, m, &point) != OK || choice_times(ctx, choices, m, time, chunk) != OK) {
		printf("Bail out! %s\n", ctx->error.text);
		exit(1);
	}
	for (int i = 0; i < choices->n; i++) {
		first &= i < point.best ? time[i] > point.time : time[i] >= point.time;
		least &= time[i] >= point.least;
		floors &= choice_floor(choices, i, m, chunk[i]) <= time[i];
	}
	ok(first && time[point.best] == point.time && chunk[point.best] == point.chunk, "the best is chosen", of);
	ok(least, "no time is below the least", of);
	ok(floors, "no time is below its floor", of);
}

/* Alone, the bytes are the same. */
static void
check_alone(Ctx *ctx, const Candidate *c)
{
	Compiled shared = { 0 }, alone = { 0 };
	Job job = c->job;
	bool good = job_finish(ctx, &c->job, &c->plan, &shared) == OK && job_compile(ctx, &job, &alone) == OK;
	good = good && shared.json.size == alone.json.size
	    && memcmp(shared.json.data, alone.json.data, alone.json.size) == 0;
	ok(good, "planned alone it is the same", c->name);
	text_free(&shared.json);
	text_free(&alone.json);
}

static void
check_job(const char *path, const int *gpu, int n, Collective coll, Executor executor)
{
	Ctx ctx;
	SimParameters p;
	ctx_init(&ctx);
	sim_defaults(executor, &p);
	const Topology *topo = machine(&ctx, path);
	Choices *choices = choices_of(&ctx, topo, gpu, n, coll, &p);
	for (int64_t m = 1; m <= INT64_C(1) << 30; m *= quick_check() ? 512 : 32)
		check_size(&ctx, choices, m, collective_name(coll));
	for (int i = 0; i < choices->n && n < 8; i++)
		check_alone(&ctx, &choices->candidate[i]);
	ctx_free(&ctx);
}

int
main(void)
{
	bool few = quick_check();
	static const int odd[] = { 1, 4, 5, 6, 7 }, all[] = { 0, 1, 2, 3, 4, 5, 6, 7 };
	setrlimit(RLIMIT_CPU, &(struct rlimit){ 120, 120 });
	for (int coll = 0; coll < N_COLLECTIVES; coll++) {
		if (!few || coll % 2 == 0)
			check_job("topologies/dgx1v.xml", odd, 5, (Collective)coll, EXECUTOR_KERNEL);
		if (!few || coll % 2 == 1)
			check_job("topologies/dgx1v.xml", all, 8, (Collective)coll, EXECUTOR_COPY);
	}
	check_job("topologies/pcie-8gpu.xml", all, 8, BROADCAST, EXECUTOR_HOST);
	ok(true, "choices", "all");
	printf("1..%d\n", number);
	return failures != 0;
}
