/* Time of each phase of a compile, and its peak memory: medians on this machine, and the spread of the whole. Nothing is
 * asserted: machines are noisy. Each line is a process of its own. */
#include "base/file.h"
#include "passes.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST_RUNS = 21, N_PHASES = 9 };

static const char *const phases[N_PHASES] = { "read", "induce", "bound", "plan", "build", "write", "read back", "verify", "all" };

struct job {
	const char *path;	/* of a topology; or NULL: boxes */
	int boxes, dies;	/* boxes of 8 GPUs as DGX A100, or of `dies` MI250 dies, the others left out */
	int racks, pods;	/* of 32 servers: of ABCI, or on 8 rails; as tests/oracle/fabric.py has them */
	const char *gpus;
	Collective coll;
	PackingKind packing;
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

/* ---- topologies of several boxes ---- */

/* Each GPU on its box's switch at 300 GB/s, and on the network's at 25 GB/s. */
static void
put_a100(Text *out, int boxes)
{
	for (int b = 0; b < boxes; b++) {
		text_printf(out, "%s{\"id\":\"n%d\",\"switches\":[{\"id\":\"n%d/sw\"}],\"gpus\":[", b ? "," : "", b, b);
		for (int g = 0; g < 8; g++)
			text_printf(out, "%s{\"id\":\"n%d/g%d\"}", g ? "," : "", b, g);
		text_put(out, "]}");
	}
	text_put(out, "],\"links\":[");
	for (int b = 0; b < boxes; b++)
		for (int g = 0; g < 8; g++) {
			text_printf(out, "%s{\"from\":\"n%d/g%d\",\"to\":\"n%d/sw\",\"class\":\"nvlink\",\"capacity\":300}",
			    b || g ? "," : "", b, g, b);
			if (boxes > 1)
				text_printf(out, ",{\"from\":\"n%d/g%d\",\"to\":\"ib\",\"class\":\"net\",\"capacity\":25}", b, g);
		}
}

/* ForestColl's model of the links between the 16 dies of a box, GB/s; and 16 GB/s of each to the network. */
static void
put_mi250(Text *out, int boxes, int dies)
{
	static const struct { int a, b, capacity; } xgmi[] = {
		{ 0, 1, 200 }, { 2, 3, 200 }, { 4, 5, 200 }, { 6, 7, 200 }, { 8, 9, 200 }, { 10, 11, 200 }, { 12, 13, 200 },
		{ 14, 15, 200 }, { 0, 4, 100 }, { 3, 7, 100 }, { 8, 12, 100 }, { 11, 15, 100 }, { 0, 8, 50 }, { 1, 5, 50 },
		{ 1, 9, 50 }, { 1, 10, 50 }, { 2, 6, 50 }, { 2, 9, 50 }, { 2, 10, 50 }, { 3, 11, 50 }, { 4, 6, 50 }, { 5, 6, 50 },
		{ 5, 7, 50 }, { 9, 13, 50 }, { 10, 14, 50 }, { 12, 14, 50 }, { 13, 14, 50 }, { 13, 15, 50 },
	};
	for (int b = 0; b < boxes; b++) {
		text_printf(out, "%s{\"id\":\"n%d\",\"gpus\":[", b ? "," : "", b);
		for (int g = 0; g < dies; g++)
			text_printf(out, "%s{\"id\":\"n%d/d%d\"}", g ? "," : "", b, g);
		text_put(out, "]}");
	}
	text_put(out, "],\"links\":[");
	for (int b = 0; b < boxes; b++) {
		for (size_t i = 0; i < sizeof xgmi / sizeof *xgmi; i++)
			if (xgmi[i].a < dies && xgmi[i].b < dies)
				text_printf(out, "%s{\"from\":\"n%d/d%d\",\"to\":\"n%d/d%d\",\"class\":\"xgmi\",\"capacity\":%d}",
				    b || i ? "," : "", b, xgmi[i].a, b, xgmi[i].b, xgmi[i].capacity);
		for (int g = 0; g < dies && boxes > 1; g++)
			text_printf(out, ",{\"from\":\"n%d/d%d\",\"to\":\"ib\",\"class\":\"net\",\"capacity\":16}", b, g);
	}
}

/* A NIC and its PCIe switch, a way out and a way in, for GPUs first to last of server s. */
static void
put_nic(Text *out, int s, int j, int first, int last, const char *leaf, double pcie, double net)
{
	static const char *const ways[2][2] = { { "from", "to" }, { "to", "from" } };
	for (int in = 0; in < 2; in++) {
		const char *a = ways[in][0], *b = ways[in][1], *way = in ? "in" : "out";
		for (int g = first; g <= last; g++)
			text_printf(out, ",{\"%s\":\"n%d/g%d\",\"%s\":\"n%d/plx%d:%s\",\"class\":\"pcie\",\"capacity\":%g,\"duplex\":\"simplex\"}",
			    a, s, g, b, s, j, way, pcie);
		text_printf(out, ",{\"%s\":\"n%d/plx%d:%s\",\"%s\":\"n%d/nic%d:%s\",\"class\":\"pcie\",\"capacity\":%g,\"duplex\":\"simplex\"}",
		    a, s, j, way, b, s, j, way, pcie);
		text_printf(out, ",{\"%s\":\"n%d/nic%d:%s\",\"%s\":\"%s\",\"class\":\"net\",\"capacity\":%g,\"duplex\":\"simplex\"}",
		    a, s, j, way, b, leaf, net);
	}
}

static void
put_server(Text *out, int s, int gpus, int nics, bool nvswitch)
{
	text_printf(out, "%s{\"id\":\"n%d\",\"switches\":[", s ? "," : "", s);
	for (int j = 0; j < nics; j++)
		for (int in = 0; in < 2; in++)
			text_printf(out, "%s{\"id\":\"n%d/plx%d:%s\"},{\"id\":\"n%d/nic%d:%s\"}", j || in ? "," : "", s, j, in ? "in" : "out",
			    s, j, in ? "in" : "out");
	if (nvswitch)
		text_printf(out, ",{\"id\":\"n%d/nvswitch\"}", s);
	text_put(out, "],\"gpus\":[");
	for (int g = 0; g < gpus; g++)
		text_printf(out, "%s{\"id\":\"n%d/g%d\"}", g ? "," : "", s, g);
	text_put(out, "]}");
}

/* 4 V100 a server with two NVLinks between any two, 2 NICs; uplinks of a rack a third of what its NICs have. */
static void
put_abci(Text *out, int racks)
{
	for (int s = 0; s < 32 * racks; s++)
		put_server(out, s, 4, 2, false);
	text_put(out, "],\"links\":[");
	for (int r = 0; r < racks; r++)
		text_printf(out, "%s{\"from\":\"leaf%d\",\"to\":\"spine\",\"class\":\"net\",\"capacity\":266.666667}", r ? "," : "", r);
	for (int s = 0; s < 32 * racks; s++) {
		char leaf[20];
		snprintf(leaf, sizeof leaf, "leaf%d", s / 32);
		for (int a = 0; a < 4; a++)
			for (int b = a + 1; b < 4; b++)
				text_printf(out, ",{\"from\":\"n%d/g%d\",\"to\":\"n%d/g%d\",\"class\":\"nvlink\",\"capacity\":50}", s, a, s, b);
		for (int j = 0; j < 2; j++)
			put_nic(out, s, j, 2 * j, 2 * j + 1, leaf, 12, 12.5);
	}
}

/* 8 GPUs a server on an NVSwitch, a NIC each; NIC j of a pod's servers on the pod's leaf j. */
static void
put_rails(Text *out, int pods)
{
	for (int s = 0; s < 32 * pods; s++)
		put_server(out, s, 8, 8, true);
	text_put(out, "],\"links\":[");
	for (int i = 0; i < 8 * pods; i++)
		text_printf(out, "%s{\"from\":\"leaf%d\",\"to\":\"spine\",\"class\":\"net\",\"capacity\":1600}", i ? "," : "", i);
	for (int s = 0; s < 32 * pods; s++) {
		for (int g = 0; g < 8; g++) {
			char leaf[20];
			snprintf(leaf, sizeof leaf, "leaf%d", s / 32 * 8 + g);
			text_printf(out, ",{\"from\":\"n%d/g%d\",\"to\":\"n%d/nvswitch\",\"class\":\"nvlink\",\"capacity\":450}", s, g, s);
			put_nic(out, s, g, g, g, leaf, 64, 50);
		}
	}
}

static Status
make_topology(Ctx *ctx, const struct job *job, Text *out)
{
	if (job->path)
		return file_read(ctx, job->path, out);
	text_put(out, "{\"format\":\"blink-topology\",\"version\":1,\"name\":\"boxes\",");
	if (job->boxes > 1)
		text_put(out, "\"switches\":[{\"id\":\"ib\"}],");
	if (job->racks || job->pods)
		text_put(out, "\"switches\":[{\"id\":\"spine\"}");
	for (int i = 0; i < job->racks + 8 * job->pods; i++)
		text_printf(out, ",{\"id\":\"leaf%d\"}", i);
	if (job->racks || job->pods)
		text_put(out, "],");
	text_put(out, "\"nodes\":[");
	if (job->racks)
		put_abci(out, job->racks);
	else if (job->pods)
		put_rails(out, job->pods);
	else if (job->dies)
		put_mi250(out, job->boxes, job->dies);
	else
		put_a100(out, job->boxes);
	text_put(out, "]}");
	return out->failed ? fail_memory(ctx) : OK;
}

/* ---- one compile ---- */

static Status
compile_once(Ctx *ctx, const struct job *job, const Text *in, double us[N_PHASES], Schedule **out)
{
	Request ask = { .coll = job->coll, .root = collective_rooted(job->coll) ? 0 : -1, .epsilon = { 1, 20 },
		.tolerance = job->packing == PACKING_MWU ? (Frac){ 1, 20 } : FRAC_ZERO, .packing = job->packing, .minimise = true };
	Topology *machine, *topo;
	Symmetry *sym;
	Bound bound, proof;
	Packing *pack;
	Schedule *sched;
	Text json = { 0 };
	unsigned classes;
	int *gpu, n, phase = 0;
	double start = now_us(), last = start;
#define LAP() (us[phase++] = now_us() - last, last = now_us())
	TRY(topo_read(ctx, "bench", NULL, in->data, in->size, &machine));
	LAP();
	TRY(NEW(ctx, gpu, machine->n_ranks));
	TRY(topo_select(ctx, machine, job->gpus, gpu, &n));
	if (job->racks || job->pods)
		classes = (1u << N_LINK_CLASSES) - 1;
	else
		TRY(topo_default_classes(ctx, machine, gpu, n, &classes));
	TRY(topo_induce(ctx, machine, gpu, n, classes, &topo));
	LAP();
	TRY(topo_symmetry(ctx, topo, ask.root, plan_by_symmetry(topo, &ask), &sym));
	TRY(bound_compute(ctx, topo, sym, ask.coll, ask.root, &bound));
	LAP();
	TRY(plan_trees(ctx, topo, sym, &bound, &ask, &pack, &proof));
	LAP();
	TRY(sched_build(ctx, topo, &proof, &ask, "trees", pack, &sched));
	LAP();
	emit_sched_json(sched, &json);
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
	if (job->path)
		snprintf(name, sizeof name, "%s%s%s", job->path + sizeof "topologies", job->gpus ? " " : "", job->gpus ? job->gpus : "");
	else if (job->racks || job->pods)
		snprintf(name, sizeof name, job->racks ? "%d GPUs of ABCI" : "%d GPUs on rails", job->racks * 128 + job->pods * 256);
	else
		snprintf(name, sizeof name, job->dies ? "%d x %d MI250 dies" : "%d x 8 A100", job->boxes, job->dies);
	printf("%-20s %-13s %-5s %s", name, collective_name(job->coll), job->packing == PACKING_MWU ? "mwu" : "exact", result);
	for (int p = 0; p < N_PHASES; p++) {
		qsort(us[p], (size_t)n_runs, sizeof us[p][0], ascending);
		printf(" %9.2f", us[p][n_runs / 2] / 1e3);
	}
	getrusage(RUSAGE_SELF, &usage);
	printf(" %9.2f %9.2f %7.1f\n", us[N_PHASES - 1][0] / 1e3, us[N_PHASES - 1][n_runs - 1] / 1e3, (double)usage.ru_maxrss / 1024);
	text_free(&in);
	return 0;
}

int
main(void)
{
	static const struct job jobs[] = {
		{ .path = "topologies/dgx1v.xml", .coll = BROADCAST },
		{ .path = "topologies/dgx1v.xml", .coll = BROADCAST, .packing = PACKING_EXACT },
		{ .path = "topologies/dgx1v.xml", .coll = ALLREDUCE },
		{ .path = "topologies/dgx1v.xml", .coll = ALLREDUCE, .packing = PACKING_EXACT },
		{ .path = "topologies/dgx1v.xml", .gpus = "0,1,2,4,5", .coll = ALLREDUCE, .packing = PACKING_EXACT },
		{ .path = "topologies/dgx1v.xml", .coll = ALLGATHER, .packing = PACKING_EXACT },
		{ .path = "topologies/dgx1v.xml", .coll = ALLTOALL, .packing = PACKING_EXACT },
		{ .path = "topologies/dgx1p.xml", .coll = ALLREDUCE, .packing = PACKING_EXACT },
		{ .boxes = 1, .coll = ALLGATHER, .packing = PACKING_EXACT },
		{ .boxes = 1, .coll = ALLREDUCE, .packing = PACKING_EXACT },
		{ .boxes = 8, .coll = ALLGATHER, .packing = PACKING_EXACT },
		{ .boxes = 8, .coll = ALLREDUCE, .packing = PACKING_EXACT },
		{ .boxes = 8, .coll = BROADCAST, .packing = PACKING_EXACT },
		{ .boxes = 32, .coll = ALLGATHER, .packing = PACKING_EXACT },
		{ .boxes = 32, .coll = ALLREDUCE, .packing = PACKING_EXACT },
		{ .boxes = 128, .coll = ALLGATHER, .packing = PACKING_EXACT },
		{ .boxes = 128, .coll = REDUCESCATTER, .packing = PACKING_EXACT },
		{ .boxes = 128, .coll = ALLREDUCE, .packing = PACKING_EXACT },
		{ .racks = 1, .coll = ALLREDUCE, .packing = PACKING_EXACT },
		{ .racks = 4, .coll = ALLREDUCE, .packing = PACKING_EXACT },
		{ .racks = 16, .coll = ALLREDUCE, .packing = PACKING_EXACT },
		{ .racks = 16, .coll = ALLGATHER, .packing = PACKING_EXACT },
		{ .racks = 16, .coll = REDUCESCATTER, .packing = PACKING_EXACT },
		{ .racks = 1, .coll = BROADCAST, .packing = PACKING_EXACT },
		{ .racks = 4, .coll = BROADCAST, .packing = PACKING_EXACT },
		{ .racks = 16, .coll = BROADCAST, .packing = PACKING_EXACT },
		{ .pods = 4, .coll = ALLREDUCE, .packing = PACKING_EXACT },
		{ .pods = 4, .coll = ALLGATHER, .packing = PACKING_EXACT },
		{ .pods = 4, .coll = BROADCAST, .packing = PACKING_EXACT },
		{ .boxes = 1, .dies = 16, .coll = ALLREDUCE, .packing = PACKING_EXACT },
		{ .boxes = 2, .dies = 16, .coll = ALLREDUCE, .packing = PACKING_EXACT },
		{ .boxes = 4, .dies = 16, .coll = ALLREDUCE, .packing = PACKING_EXACT },
		{ .boxes = 2, .dies = 8, .coll = ALLREDUCE, .packing = PACKING_EXACT },
		{ .boxes = 2, .dies = 16, .coll = ALLGATHER, .packing = PACKING_EXACT },
	};
	printf("compile in one process: medians, ms, of up to %d runs; the least and most of all phases; peak memory, MiB\n", MOST_RUNS);
	printf("%-20s %-13s %-5s %6s %5s %8s", "topology", "collective", "plan", "trees", "depth", "ratio");
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
