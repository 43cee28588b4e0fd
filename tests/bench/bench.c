/* Time of each phase of a compile: medians on this machine, and the spread of the whole. Nothing is asserted: machines
 * are noisy. */
#include "base/digest.h"
#include "base/file.h"
#include "passes.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

enum { N_RUNS = 21, N_PHASES = 12 };

static const char *const phases[N_PHASES] = { "read", "induce", "bound", "mwu", "ilp", "build", "write", "read back",
	"verify", "lower", "emit cu", "all" };

struct job {
	const char *path, *gpus;
	Collective coll;
};

static double
now_us(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int
ascending(const void *a, const void *b)
{
	const double *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

/* One compile; us[] gets the time of each phase. */
static Status
compile_once(Ctx *ctx, const struct job *job, const Text *in, double us[N_PHASES], int *n_trees)
{
	Request ask = { .coll = job->coll, .root = job->coll == ALLREDUCE ? -1 : 0, .epsilon = { 1, 20 },
		.tolerance = { 1, 20 }, .minimise = true };
	Topology *machine, *topo;
	Bound bound, proof;
	Packing *many, *few;
	Schedule *sched, *again;
	Program *prog;
	Text json = { 0 }, cu = { 0 };
	Frac optimum;
	unsigned classes;
	int gpu[64], n, phase = 0;
	double start = now_us(), last = start;
#define LAP() (us[phase++] = now_us() - last, last = now_us())
	TRY(topo_read(ctx, job->path, in->data, in->size, &machine));
	LAP();
	TRY(topo_select(ctx, machine, job->gpus, gpu, &n));
	TRY(topo_default_classes(ctx, machine, gpu, n, &classes));
	TRY(topo_induce(ctx, machine, gpu, n, classes, &topo));
	LAP();
	TRY(bound_compute(ctx, topo, ask.coll, ask.root, &bound));
	LAP();
	/* The planner runs MWU first; what it takes beyond that is the ILP and MWU's further variants. */
	TRY(pack_mwu(ctx, topo, &bound, &ask, &many, &optimum));
	LAP();
	TRY(plan_trees(ctx, topo, &bound, &ask, &few, &proof));
	LAP();
	double mwu = us[phase - 2];
	us[phase - 1] -= mwu;
	TRY(sched_build(ctx, topo, &bound, &ask, "trees", few, &sched));
	LAP();
	emit_sched_json(sched, &json);
	LAP();
	TRY(sched_read(ctx, "bench", json.data, json.size, &again));
	LAP();
	TRY(sched_verify(ctx, "bench", again));
	LAP();
	TRY(lower(ctx, again, &prog));
	LAP();
	char digest[DIGEST_ROOM];
	digest_of(json.data, json.size, digest);
	TRY(emit_cu(ctx, prog, digest, &cu));
	LAP();
	us[phase] = last - start - mwu;
	*n_trees = sched->n_segments;
	text_free(&json);
	text_free(&cu);
	return OK;
}

static int
bench_compile(const struct job *job)
{
	static double us[N_PHASES][N_RUNS];
	Text in = { 0 };
	int n_trees = 0;
	for (int run = 0; run < N_RUNS; run++) {
		double once[N_PHASES];
		Ctx ctx;
		ctx_init(&ctx);
		Status status = in.data ? OK : file_read(&ctx, job->path, &in);
		if (status == OK)
			status = compile_once(&ctx, job, &in, once, &n_trees);
		if (status != OK) {
			fprintf(stderr, "bench: %s\n", ctx.error.text);
			return 1;
		}
		for (int p = 0; p < N_PHASES; p++)
			us[p][run] = once[p];
		ctx_free(&ctx);
	}
	text_free(&in);
	printf("%-22s %-10s %-9s %5d", job->path, job->gpus ? job->gpus : "all", collective_name(job->coll), n_trees);
	for (int p = 0; p < N_PHASES; p++) {
		qsort(us[p], N_RUNS, sizeof us[p][0], ascending);
		printf(" %9.3f", us[p][N_RUNS / 2] / 1e3);
	}
	printf("   %.3f .. %.3f\n", us[N_PHASES - 1][0] / 1e3, us[N_PHASES - 1][N_RUNS - 1] / 1e3);
	return 0;
}

int
main(void)
{
	static const struct job jobs[] = {
		{ "topologies/dgx1v.xml", NULL, BROADCAST },
		{ "topologies/dgx1v.xml", NULL, REDUCE },
		{ "topologies/dgx1v.xml", NULL, ALLREDUCE },
		{ "topologies/dgx1v.json", NULL, ALLREDUCE },
		{ "topologies/dgx1v.xml", "0,1,2,4,5", ALLREDUCE },
		{ "topologies/dgx1v.xml", "0,7", ALLREDUCE },
		{ "topologies/dgx1p.xml", NULL, BROADCAST },
		{ "topologies/dgx1p.xml", NULL, ALLREDUCE },
	};
	struct rusage usage;
	printf("compile: median of %d runs in one process, ms; last: least .. most\n", N_RUNS);
	printf("%-22s %-10s %-9s %5s", "topology", "gpus", "collective", "trees");
	for (int p = 0; p < N_PHASES; p++)
		printf(" %9s", phases[p]);
	printf("\n");
	for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++)
		if (bench_compile(&jobs[i]))
			return 1;
	getrusage(RUSAGE_SELF, &usage);
	printf("peak memory: %.1f MiB\n", (double)usage.ru_maxrss / 1024);
	return 0;
}
