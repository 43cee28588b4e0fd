/* Time of each phase of a compile, and its peak memory: medians on this machine, and the spread of the whole. Nothing
 * is
 * asserted: machines are noisy. Each line is a process of its own. */
#include "base/file.h"
#include "format/format.h"
#include "plan/plan.h"
#include "schedule/schedule.h"
#include "topology/topology.h"
#include "verb/request.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST_RUNS = 21, N_PHASES = 9 };

static const char *const phases[N_PHASES] = { "read", "induce", "bound", "plan", "build", "write", "read back",
	"verify", "all" };

struct job {
	const char *name;	/* NULL: that of the file */
	const char *file;	/* of a topology; or of a server, */
	const char *cluster;	/* if this is not NULL: how many there are, and what joins them */
	const char *gpus;
	Collective coll;
	PackingKind packing;
};

/* Members of a cluster file: so many servers, and a fabric. */
#define SERVERS(n, fabric) "\"count\":" #n "}],\"fabrics\":[{" fabric "}]"

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

static Status
make_topology(Ctx *ctx, const struct job *job, Text *out)
{
	if (!job->cluster)
		return file_read(ctx, job->file, out);
	text_put(out, "{\"format\":\"blink-topology\",\"version\":1,\"name\":\"cluster\","
	    "\"nodes\":[{\"id\":\"s\",\"file\":");
	text_json(out, job->file + sizeof "topologies");
	text_printf(out, ",%s}", job->cluster);
	return out->failed ? fail_memory(ctx) : OK;
}

/* ---- one compile ---- */

static Status
compile_once(Ctx *ctx, const struct job *job, const Text *in, double us[N_PHASES], Schedule **out)
{
	Ask ask = { .coll = job->coll, .root = collective_rooted(job->coll) ? 0 : -1, .epsilon = { 1, 20 },
		.tolerance = job->packing == PACKING_MWU ? (Frac){ 1, 20 } : FRAC_ZERO, .packing = job->packing,
		.minimise = true };
	static const char *const dirs[] = { "topologies", NULL };
	Topology *machine, *topo;
	Symmetry *sym;
	Bound bound;
	Plan plan;
	Schedule *sched;
	Text json = { 0 };
	JobLinks links;
	int *gpu, n, phase = 0;
	double start = now_us(), last = start;
#define LAP() (us[phase++] = now_us() - last, last = now_us())
	TRY(topo_read(ctx, "bench", dirs, in->data, in->size, &machine));
	LAP();
	TRY(NEW(ctx, gpu, machine->n_ranks));
	TRY(request_gpus(ctx, machine, job->gpus, gpu, &n));
	TRY(topo_choose_links(ctx, machine, gpu, n, ROUTES_ANY, &links));
	TRY(topo_induce(ctx, machine, gpu, n, &links, &topo));
	LAP();
	TRY(topo_symmetry(ctx, topo, ask.root, trees_symmetry(topo, &ask), &sym));
	TRY(bound_compute(ctx, topo, sym, ask.coll, ask.root, &bound));
	LAP();
	TRY(plan_trees(ctx, &(Planning){ .topo = topo, .sym = sym, .bound = &bound, .ask = &ask }, &plan));
	LAP();
	TRY(sched_build(ctx, topo, &plan.proof, &ask, "trees", plan.pack, &sched));
	LAP();
	sched_write_json(sched, &json);
	LAP();
	TRY(sched_read(ctx, "bench", json.data, json.size, out));
	LAP();
	TRY(sched_verify(ctx, "bench", *out));
	LAP();
	us[phase] = last - start;
	text_free(&json);
	return OK;
}

/* The child's work: its lines go to standard output, its status is the exit code. */
static int
bench_compile(const struct job *job)
{
	static double us[N_PHASES][MOST_RUNS];
	Text in = { 0 };
	char name[40], result[100] = "";
	int n_runs = MOST_RUNS;
	struct rusage usage;
	for (int run = 0; run < n_runs; run++) {
		double once[N_PHASES];
		int depth;
		Schedule *sched;
		Ctx ctx;
		ctx_init(&ctx);
		Status status = in.data ? OK : make_topology(&ctx, job, &in);
		if (status == OK)
			status = compile_once(&ctx, job, &in, once, &sched);
		if (status == OK)
			status = sched_depth(&ctx, sched, &depth);
		if (status != OK) {
			fprintf(stderr, "bench: %s\n", ctx.error.text);
			return 1;
		}
		for (int p = 0; p < N_PHASES; p++)
			us[p][run] = once[p];
		/* What takes long is not run so often. */
		n_runs = once[N_PHASES - 1] > 1e6 ? 3 : once[N_PHASES - 1] > 1e5 ? 7 : n_runs;
		snprintf(result, sizeof result, "%6d %5d %8.3f", sched->n_segments, depth,
		    frac_double(sched->achieved) / frac_double(sched->bound.rate));
		ctx_free(&ctx);
	}
	snprintf(name, sizeof name, "%s%s%s", job->name ? job->name : job->file + sizeof "topologies",
	    job->gpus && !job->name ? " " : "", job->gpus && !job->name ? job->gpus : "");
	printf("%-21s %-13s %-5s %s", name, collective_name(job->coll),
	    job->packing == PACKING_MWU ? "mwu" : "exact", result);
	for (int p = 0; p < N_PHASES; p++) {
		qsort(us[p], (size_t)n_runs, sizeof us[p][0], ascending);
		printf(" %9.2f", us[p][n_runs / 2] / 1e3);
	}
	getrusage(RUSAGE_SELF, &usage);
	printf(" %9.2f %9.2f %7.1f\n", us[N_PHASES - 1][0] / 1e3, us[N_PHASES - 1][n_runs - 1] / 1e3,
	    (double)usage.ru_maxrss / 1024);
	text_free(&in);
	return 0;
}

/* Ports of GPUs as ForestColl has them; racks of ABCI. */
#define DIRECT "\"ports\":\"gpus\",\"capacity\":25"
#define DIES "\"ports\":\"gpus\",\"capacity\":16"
#define RAILS "\"rails\":true,\"servers\":32"
#define RACKS "\"servers\":32,\"oversubscription\":3"

int
main(void)
{
	static const struct job jobs[] = {
		{ .file = "topologies/dgx1v.xml", .coll = BROADCAST, .packing = PACKING_MWU },
		{ .file = "topologies/dgx1v.xml", .coll = BROADCAST, .packing = PACKING_EXACT },
		{ .file = "topologies/dgx1v.xml", .coll = ALLREDUCE, .packing = PACKING_MWU },
		{ .file = "topologies/dgx1v.xml", .coll = ALLREDUCE, .packing = PACKING_EXACT },
		{ .file = "topologies/dgx1v.xml", .gpus = "0,1,2,4,5", .coll = ALLREDUCE, .packing = PACKING_EXACT },
		{ .file = "topologies/dgx1v.xml", .coll = ALLGATHER, .packing = PACKING_EXACT },
		{ .file = "topologies/dgx1v.xml", .coll = ALLTOALL, .packing = PACKING_EXACT },
		{ .file = "topologies/dgx1p.xml", .coll = ALLREDUCE, .packing = PACKING_EXACT },
		{ .file = "topologies/dgx2.xml", .coll = ALLREDUCE, .packing = PACKING_EXACT },
		{ .name = "1 x 8 A100", .file = "topologies/dgx-a100.xml",
		    .coll = ALLGATHER, .packing = PACKING_EXACT },
		{ .name = "1 x 8 A100", .file = "topologies/dgx-a100.xml",
		    .coll = ALLREDUCE, .packing = PACKING_EXACT },
		{ .name = "2 x 8 A100", .file = "topologies/dgx-a100.xml", .cluster = SERVERS(2, DIRECT),
		    .coll = ALLREDUCE, .packing = PACKING_EXACT },
		{ .name = "4 x 8 A100", .file = "topologies/dgx-a100.xml", .cluster = SERVERS(4, DIRECT),
		    .coll = ALLREDUCE, .packing = PACKING_EXACT },
		{ .name = "8 x 8 A100", .file = "topologies/dgx-a100.xml", .cluster = SERVERS(8, DIRECT),
		    .coll = ALLGATHER, .packing = PACKING_EXACT },
		{ .name = "8 x 8 A100", .file = "topologies/dgx-a100.xml", .cluster = SERVERS(8, DIRECT),
		    .coll = ALLREDUCE, .packing = PACKING_EXACT },
		{ .name = "8 x 8 A100", .file = "topologies/dgx-a100.xml", .cluster = SERVERS(8, DIRECT),
		    .coll = BROADCAST, .packing = PACKING_EXACT },
		{ .name = "16 x 8 A100", .file = "topologies/dgx-a100.xml", .cluster = SERVERS(16, DIRECT),
		    .coll = ALLREDUCE, .packing = PACKING_EXACT },
		{ .name = "32 x 8 A100", .file = "topologies/dgx-a100.xml", .cluster = SERVERS(32, DIRECT),
		    .coll = ALLGATHER, .packing = PACKING_EXACT },
		{ .name = "32 x 8 A100", .file = "topologies/dgx-a100.xml", .cluster = SERVERS(32, DIRECT),
		    .coll = ALLREDUCE, .packing = PACKING_EXACT },
		{ .name = "128 x 8 A100", .file = "topologies/dgx-a100.xml", .cluster = SERVERS(128, DIRECT),
		    .coll = ALLGATHER, .packing = PACKING_EXACT },
		{ .name = "128 x 8 A100", .file = "topologies/dgx-a100.xml", .cluster = SERVERS(128, DIRECT),
		    .coll = REDUCESCATTER, .packing = PACKING_EXACT },
		{ .name = "128 x 8 A100", .file = "topologies/dgx-a100.xml", .cluster = SERVERS(128, DIRECT),
		    .coll = ALLREDUCE, .packing = PACKING_EXACT },
		{ .name = "1 x 16 MI250", .file = "topologies/mi250.xml", .coll = ALLREDUCE, .packing = PACKING_EXACT },
		{ .name = "2 x 16 MI250", .file = "topologies/mi250.xml", .cluster = SERVERS(2, DIES),
		    .coll = ALLREDUCE, .packing = PACKING_EXACT },
		{ .name = "4 x 16 MI250", .file = "topologies/mi250.xml", .cluster = SERVERS(4, DIES),
		    .coll = ALLREDUCE, .packing = PACKING_EXACT },
		{ .name = "2 x 16 MI250", .file = "topologies/mi250.xml", .cluster = SERVERS(2, DIES),
		    .coll = ALLGATHER, .packing = PACKING_EXACT },
		{ .name = "8 + 8 dies of MI250", .file = "topologies/mi250.xml", .cluster = SERVERS(2, DIES),
		    .gpus = "0,1,2,3,4,5,6,7,16,17,18,19,20,21,22,23", .coll = ALLREDUCE, .packing = PACKING_EXACT },
		{ .name = "3 + 5 GPUs of DGX-1V", .file = "topologies/two-dgx1v.xml", .gpus = "0,1,2,11,12,13,14,15",
		    .coll = ALLREDUCE, .packing = PACKING_EXACT },
		{ .name = "128 GPUs of ABCI", .file = "topologies/abci.xml", .cluster = SERVERS(32, RACKS),
		    .coll = ALLREDUCE, .packing = PACKING_EXACT },
		{ .name = "128 GPUs of ABCI", .file = "topologies/abci.xml", .cluster = SERVERS(32, RACKS),
		    .coll = BROADCAST, .packing = PACKING_EXACT },
		{ .name = "512 GPUs of ABCI", .file = "topologies/abci.xml", .cluster = SERVERS(128, RACKS),
		    .coll = ALLREDUCE, .packing = PACKING_EXACT },
		{ .name = "512 GPUs of ABCI", .file = "topologies/abci.xml", .cluster = SERVERS(128, RACKS),
		    .coll = BROADCAST, .packing = PACKING_EXACT },
		{ .name = "2048 GPUs of ABCI", .file = "topologies/abci.xml", .cluster = SERVERS(512, RACKS),
		    .coll = ALLREDUCE, .packing = PACKING_EXACT },
		{ .name = "2048 GPUs of ABCI", .file = "topologies/abci.xml", .cluster = SERVERS(512, RACKS),
		    .coll = ALLGATHER, .packing = PACKING_EXACT },
		{ .name = "2048 GPUs of ABCI", .file = "topologies/abci.xml", .cluster = SERVERS(512, RACKS),
		    .coll = REDUCESCATTER, .packing = PACKING_EXACT },
		{ .name = "2048 GPUs of ABCI", .file = "topologies/abci.xml", .cluster = SERVERS(512, RACKS),
		    .coll = BROADCAST, .packing = PACKING_EXACT },
		{ .name = "1024 GPUs of SuperPOD", .file = "topologies/dgx-h100.xml", .cluster = SERVERS(128, RAILS),
		    .coll = ALLREDUCE, .packing = PACKING_EXACT },
		{ .name = "1024 GPUs of SuperPOD", .file = "topologies/dgx-h100.xml", .cluster = SERVERS(128, RAILS),
		    .coll = ALLGATHER, .packing = PACKING_EXACT },
		{ .name = "1024 GPUs of SuperPOD", .file = "topologies/dgx-h100.xml", .cluster = SERVERS(128, RAILS),
		    .coll = BROADCAST, .packing = PACKING_EXACT },
	};
	printf("compile in one process: medians, ms, of up to %d runs; the least and most of all phases; "
	    "peak memory, MiB\n", MOST_RUNS);
	printf("%-21s %-13s %-5s %6s %5s %8s", "topology", "collective", "plan", "trees", "depth", "ratio");
	for (int p = 0; p < N_PHASES; p++)
		printf(" %9s", phases[p]);
	printf(" %9s %9s %7s\n", "least", "most", "MiB");
	for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++) {
		int status;
		fflush(stdout);
		pid_t child = fork();
		if (child == 0) {
			status = bench_compile(&jobs[i]);
			fflush(stdout);
			_exit(status);
		}
		if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
			return 1;
	}
	return 0;
}
