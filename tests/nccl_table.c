/* What src/choice/nccl_model.c says of many jobs, for tests/oracle/nccl_model.py: lines of channels, times and choices.
 *
 *	cards VERSION GPU CARDS SPEED GPUS TOTAL HOP -> CHANNELS SPEED TREE_SPEED
 *	job VERSION GPU CPU SERVERS RANKS CHANNELS SPEED TREE_SPEED NVLINK THROUGH FAR SAME LATENCY
 *	time COLLECTIVE ALGORITHM PROTOCOL BYTES US		of the job before; -1: not considered
 *	choice COLLECTIVE BYTES ALGORITHM PROTOCOL CHANNELS US */
#include "choice/nccl_model.h"

#include <stdio.h>

static const char *const gpu_name[N_NCCL_GPUS] = { "P100", "V100", "A100", "H100", "B200" };
static const char *const cpu_name[] = { "Intel", "AMD" };
static const Collective collectives[] = { BROADCAST, REDUCE, ALLREDUCE, ALLGATHER, REDUCESCATTER };

struct machine {
	NcclGpu gpu;
	NcclCpu cpu;
	int gpus;		/* of a server */
	double nvlink;		/* GB/s of each ring's hop, as GPUs have them: so many links */
	NcclCards cards;
	bool through, far;
};

/* 2 of 8 A100, one; PCIe. */
static const struct machine machines[] = {
	{ NCCL_PASCAL, NCCL_INTEL, 8, 4, { 4, 12, 8 }, false, false },
	{ NCCL_VOLTA, NCCL_INTEL, 8, 6, { 4, 12, 8 }, false, false },
	{ NCCL_VOLTA, NCCL_INTEL, 6, 2, { 2, 12, 6 }, true, true },
	{ NCCL_VOLTA, NCCL_INTEL, 4, 0, { 1, 12, 4 }, false, true },
	{ NCCL_AMPERE, NCCL_AMD, 8, 12, { 8, 24, 8 }, false, false },
	{ NCCL_AMPERE, NCCL_AMD, 8, 12, { 16, 12.5, 8 }, false, false },
	{ NCCL_AMPERE, NCCL_INTEL, 8, 12, { 4, 12.5, 8 }, false, false },
	{ NCCL_AMPERE, NCCL_AMD, 2, 12, { 1, 24, 2 }, false, false },
	{ NCCL_AMPERE, NCCL_AMD, 1, 12, { 1, 24, 1 }, false, false },
	{ NCCL_HOPPER, NCCL_INTEL, 8, 18, { 8, 48, 8 }, false, false },
	{ NCCL_HOPPER, NCCL_INTEL, 4, 18, { 4, 48, 4 }, false, false },
	{ NCCL_HOPPER, NCCL_AMD, 1, 18, { 1, 48, 1 }, false, true },
	{ NCCL_BLACKWELL, NCCL_INTEL, 8, 18, { 8, 48, 8 }, false, false },
	{ NCCL_BLACKWELL, NCCL_INTEL, 4, 18, { 4, 96, 4 }, false, false },
};

static void
print_size(int version, const NcclJob *job, Collective coll, int64_t m)
{
	NcclChoice choice;
	for (int a = 0; a < N_NCCL_ALGORITHMS && version > 0; a++)
		for (int p = 0; p < N_NCCL_PROTOCOLS; p++)
			printf("time %s %s %s %lld %.12g\n", collective_name(coll), nccl_algorithm_name[a],
			    nccl_protocol_name[p], (long long)m,
			    nccl_expected_time(version, job, coll, (NcclAlgorithm)a, (NcclProtocol)p, m));
	nccl_choose(version, job, coll, m, &choice);
	printf("choice %s %lld %s %s %d %.12g\n", collective_name(coll), (long long)m,
	    nccl_algorithm_name[choice.algorithm], nccl_protocol_name[choice.protocol], choice.channels, choice.time);
}

static void
print_job(int version, const NcclJob *job)
{
	const NcclGraph *graph = &job->graph;
	printf("job %s %s %s %d %d %d %.12g %.12g %d %d %d %d %g\n", nccl_version_name[version], gpu_name[job->gpu],
	    cpu_name[job->cpu], job->n_servers, job->n_ranks, graph->channels, graph->speed, graph->tree_speed,
	    graph->nvlink, graph->through, graph->far, graph->same, job->net_latency);
	for (size_t i = 0; i < sizeof collectives / sizeof *collectives; i++)
		for (int power = 3; power <= 33; power += power % 5 ? 1 : 2)
			print_size(version, job, collectives[i], (INT64_C(1) << power) + power % 3 * 1001);
}

static void
print_machine(int version, const struct machine *machine, int servers)
{
	bool nvlink = machine->nvlink > 0;
	double link = nvlink ? nccl_nvlink_speed(version, machine->gpu) : 6;
	bool switched = machine->gpu >= NCCL_AMPERE;
	double total = nvlink ? machine->nvlink * link : link, hop = switched ? total : link;
	NcclJob job = { .gpu = machine->gpu, .cpu = machine->cpu, .n_servers = servers,
		.n_ranks = servers * machine->gpus, .net_latency = servers % 4 == 3 ? 75 : 0,
		.graph = { .nvlink = nvlink, .through = machine->through, .far = machine->far,
		    .same = machine->cards.n == 1 } };
	if (servers == 1) {
		nccl_channels(version, machine->gpu, total, hop, switched && nvlink, &job.graph);
		job.graph.tree_speed = job.graph.speed;
	} else {
		nccl_net_channels(version, machine->gpu, &machine->cards, total, hop, &job.graph);
		printf("cards %s %s %d %g %d %g %g %d %.12g %.12g\n", nccl_version_name[version],
		    gpu_name[machine->gpu], machine->cards.n, machine->cards.speed, machine->gpus, total, hop,
		    job.graph.channels, job.graph.speed, job.graph.tree_speed);
	}
	if (job.n_ranks > 1)
		print_job(version, &job);
}

int
main(void)
{
	static const int servers[] = { 1, 2, 3, 4, 7, 16, 33, 64 };
	for (int version = 0; version < N_NCCL_VERSIONS; version++)
		for (size_t i = 0; i < sizeof machines / sizeof *machines; i++)
			for (size_t s = 0; s < sizeof servers / sizeof *servers; s++)
				print_machine(version, &machines[i], servers[s]);
	return 0;
}
