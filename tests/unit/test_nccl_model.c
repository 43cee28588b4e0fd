/* NCCL's choices: its times worked by hand from the formulas of its source, choices where these cross, and the channels
 * of machines whose logs are public. Prints TAP. Arguments: seed, effort; not looked at. */
#include "choice/nccl.h"
#include "compiled.h"
#include "schedule/schedule.h"

#include <math.h>
#include <string.h>

static int
report(int wrong, const char *name)
{
	if (wrong)
		printf("not ok %s: %d wrong\n", name, wrong);
	else
		printf("ok %s\n", name);
	return wrong;
}

enum { V_2_4_8, V_2_8_4, V_2_19_4, V_2_30_7 };

/* Six rings of single links, three each way round. */
static const NcclJob dgx1v = { .gpu = NCCL_VOLTA, .n_ranks = 8,
	.graph = { .channels = 6, .speed = 20, .nvlink = true } };
static const NcclJob dgx1v_2_8 = { .gpu = NCCL_VOLTA, .n_ranks = 8,
	.graph = { .channels = 6, .speed = 21, .nvlink = true } };
static const NcclJob dgx2_2_8 = { .gpu = NCCL_VOLTA, .n_ranks = 16,
	.graph = { .channels = 6, .speed = 21, .nvlink = true, .same = true } };
static const NcclJob dgx_a100 = { .gpu = NCCL_AMPERE, .n_ranks = 8,
	.graph = { .channels = 12, .speed = 20, .nvlink = true, .same = true } };
static const NcclJob dgx_h100 = { .gpu = NCCL_HOPPER, .n_ranks = 8,
	.graph = { .channels = 12, .speed = 30, .nvlink = true, .same = true } };
static const NcclJob four_p100 = { .gpu = NCCL_PASCAL, .n_ranks = 4,
	.graph = { .channels = 4, .speed = 18, .nvlink = true } };
static const NcclJob three_pcie = { .gpu = NCCL_VOLTA, .n_ranks = 3,
	.graph = { .channels = 1, .speed = 6, .same = true } };
static const NcclJob through = { .gpu = NCCL_VOLTA, .n_ranks = 6,
	.graph = { .channels = 2, .speed = 20, .nvlink = true, .through = true } };

/* Four DGX A100 with 8 network cards each, two with 16 of 12.5 GB/s, two DGX-1V, eight servers of one H100. */
static const NcclJob four_a100 = { .gpu = NCCL_AMPERE, .n_ranks = 32, .n_servers = 4, .cpu = NCCL_AMD,
	.graph = { .channels = 8, .speed = 24, .nvlink = true, .tree_speed = 30 } };
static const NcclJob two_a100 = { .gpu = NCCL_AMPERE, .n_ranks = 16, .n_servers = 2, .cpu = NCCL_AMD,
	.graph = { .channels = 16, .speed = 12, .nvlink = true, .tree_speed = 15 } };
static const NcclJob two_dgx1v = { .gpu = NCCL_VOLTA, .n_ranks = 16, .n_servers = 2,
	.graph = { .channels = 4, .speed = 12, .nvlink = true, .tree_speed = 21 } };
static const NcclJob eight_h100 = { .gpu = NCCL_HOPPER, .n_ranks = 8, .n_servers = 8, .net_latency = 10,
	.graph = { .channels = 2, .speed = 24, .same = true, .tree_speed = 24 } };

struct expected {
	const char *how;	/* in us; GB/s, divided by 1000 us */
	int version;
	const NcclJob *job;
	Collective coll;
	NcclAlgorithm algorithm;
	NcclProtocol protocol;
	int64_t m;
	double time;
};

static const struct expected times[] = {
	{ "6.6 + 14 * .6 + m / (39 * 8 / 14)", V_2_30_7, &dgx1v, ALLREDUCE, NCCL_RING, NCCL_LL, 65536, 17.9407 },
	{ "14 + 14 * 1.9 + m / (110.4 * 8 / 14)", V_2_30_7, &dgx1v, ALLREDUCE, NCCL_RING, NCCL_LL128, 65536, 41.6388 },
	{ "8.4 + 14 * 3.4 + m / (120 * 8 / 14)", V_2_30_7, &dgx1v, ALLREDUCE, NCCL_RING, NCCL_SIMPLE, 1 << 30,
	    15714.7349 },
	{ "6.8 + 14 * .6 + m / (110.4 / 3.8 / 2)", V_2_30_7, &dgx1v, ALLREDUCE, NCCL_TREE, NCCL_LL, 64, 15.2044 },
	{ "the same * .9, 2^4 times 64", V_2_30_7, &dgx1v, ALLREDUCE, NCCL_TREE, NCCL_LL, 1024, 15.2783 },
	{ "the same * .6, 2^10 times 64", V_2_30_7, &dgx1v, ALLREDUCE, NCCL_TREE, NCCL_LL, 65536, 22.7192 },
	{ "14 + 14 * 1.25 + m / (110.4 * 7 / 9 / 2 * .6)", V_2_30_7, &dgx1v, ALLREDUCE, NCCL_TREE, NCCL_LL128, 65536,
	    34.0441 },
	{ "8.4 + 14 * 4 + m / (110.4 / 2 * .6)", V_2_30_7, &dgx1v, ALLREDUCE, NCCL_TREE, NCCL_SIMPLE, 65536, 66.3787 },
	{ "4.4 + 14 * .52 + m / (115.92 / 3.8 / 2 * .6)", V_2_8_4, &dgx1v_2_8, ALLREDUCE, NCCL_TREE, NCCL_LL, 65536,
	    18.8412 },
	{ "3.6 + 14 * .47 + m / (126 / 4 * 8 / 14)", V_2_8_4, &dgx1v_2_8, ALLREDUCE, NCCL_RING, NCCL_LL, 65536,
	    13.8209 },
	{ "10 + 14 * 1.9 + m / (6 * 16.9 * 8 / 14)", V_2_8_4, &dgx1v_2_8, ALLREDUCE, NCCL_RING, NCCL_LL128, 1 << 20,
	    54.6967 },
	{ "3.6 + 8 * .47 + m / 39", V_2_8_4, &dgx1v_2_8, BROADCAST, NCCL_RING, NCCL_LL, 65536, 9.0404 },
	{ "8.4 + 8 * 28 + m / 126", V_2_8_4, &dgx1v_2_8, BROADCAST, NCCL_RING, NCCL_SIMPLE, 1 << 26, 765.0100 },
	{ "10 + 8 * 1.9 + m / (6 * 18.8)", V_2_8_4, &dgx1v_2_8, BROADCAST, NCCL_RING, NCCL_LL128, 1 << 26, 620.1367 },
	{ "0 + 14 * 28 + m / (240 * .92 / 2)", V_2_19_4, &dgx_a100, ALLREDUCE, NCCL_TREE, NCCL_SIMPLE, 1 << 30,
	    10117.9223 },
	{ "6.6 + .6 + m / 80", V_2_19_4, &dgx_a100, BROADCAST, NCCL_RING, NCCL_LL, 1024, 7.2128 },
	{ "14 + 7 * 1.9 + m / (220.8 * 8 / 7)", V_2_19_4, &dgx_a100, ALLGATHER, NCCL_RING, NCCL_LL128, 1 << 20,
	    31.4554 },
	{ "14 + 7 * 1.9 + m / (331.2 * 8 / 7)", V_2_30_7, &dgx_h100, REDUCESCATTER, NCCL_RING, NCCL_LL128, 1 << 20,
	    30.0702 },
	{ "6.6 + 6 * .6 + m / (36 * 4 / 6)", V_2_30_7, &four_p100, ALLREDUCE, NCCL_RING, NCCL_LL, 1 << 20, 53.8907 },
	{ "no LL128 on a P100", V_2_30_7, &four_p100, ALLREDUCE, NCCL_RING, NCCL_LL128, 1 << 20, -1 },
	{ "6.6 + 4 * 1 + m / (3 * 3 / 4)", V_2_30_7, &three_pcie, ALLREDUCE, NCCL_RING, NCCL_LL, 65536, 39.7271 },
	{ "8.4 + 4 * 5.7 + m / (6 * 3 / 4)", V_2_30_7, &three_pcie, ALLREDUCE, NCCL_RING, NCCL_SIMPLE, 1 << 20,
	    264.2169 },
	{ "no LL128 over PCIe", V_2_30_7, &three_pcie, ALLREDUCE, NCCL_RING, NCCL_LL128, 1 << 20, -1 },
	{ "through a GPU hops are PCIe's: 14 + 10 * 2.5 + m / (36.8 * 6 / 10)", V_2_30_7, &through, ALLREDUCE,
	    NCCL_RING, NCCL_LL128, 1 << 20, 86.4899 },
	{ "2.8.4 has no LL128 there", V_2_8_4, &through, ALLREDUCE, NCCL_RING, NCCL_LL128, 1 << 20, -1 },
	{ "trees are for allreduce", V_2_30_7, &dgx1v, BROADCAST, NCCL_TREE, NCCL_LL, 1 << 20, -1 },
	{ "four servers: 14 + 56 * 2 + 6 * 4 + m / (160 * 32 / 62)", V_2_30_7, &four_a100, ALLREDUCE, NCCL_RING,
	    NCCL_LL128, 1000000, 162.1094 },
	{ "14 + 14 * 1.25 + 4 * 8.5 + m / (142.4 * .9375 / 2 * .6)", V_2_30_7, &four_a100, ALLREDUCE, NCCL_TREE,
	    NCCL_LL128, 1000000, 90.4688 },
	{ "3.6 + 56 * .47 * 1.8 + 6 * 2.7 + m / (19 * 32 / 62)", V_2_8_4, &four_a100, ALLREDUCE, NCCL_RING, NCCL_LL,
	    65536, 73.8589 },
	{ "4.4 + 14 * .52 * 1.8 + 4 * 5 + m / (128 / 3.8 -> 19 / 2 * .6)", V_2_8_4, &four_a100, ALLREDUCE, NCCL_TREE,
	    NCCL_LL, 65536, 49.0015 },
	{ "1.4 * (8.4 + 54 * 6 + 8 * 14) + m / (192 * 32 / 62)", V_2_19_4, &four_a100, ALLREDUCE, NCCL_RING,
	    NCCL_SIMPLE, 1 << 30, 11457.4453 },
	{ "without the plateau", V_2_19_4, &four_a100, ALLREDUCE, NCCL_RING, NCCL_SIMPLE, 16 * 32 * 64 - 1, 444.7307 },
	{ "with it", V_2_19_4, &four_a100, ALLREDUCE, NCCL_RING, NCCL_SIMPLE, 16 * 32 * 64, 622.4907 },
	{ "two servers: 28 * 14 + 2 * 28 + m / (240 * .92 / 2)", V_2_19_4, &two_a100, ALLREDUCE, NCCL_TREE,
	    NCCL_SIMPLE, 1 << 30, 10173.9223 },
	{ "of Intel, 1.9 times: 8.4 + 28 * 3.4 + 2 * 14, a post 3", V_2_30_7, &two_dgx1v, ALLREDUCE, NCCL_RING,
	    NCCL_SIMPLE, 1 << 20, 291.0000 },
	{ "6.6 + 14 * 1 + 1 * 2.7 + m / (24 * 16 / 15)", V_2_30_7, &two_dgx1v, ALLGATHER, NCCL_RING, NCCL_LL, 65536,
	    25.8600 },
	{ "8.4 + 16 * 14 + m / 48", V_2_30_7, &two_dgx1v, BROADCAST, NCCL_RING, NCCL_SIMPLE, 1 << 26, 1630.5013 },
	{ "a plugin's latency: 14 + 14 * (8.5 + 10) + m / (44.16 * 8 / 14)", V_2_30_7, &eight_h100, ALLREDUCE,
	    NCCL_RING, NCCL_LL128, 1 << 20, 314.5536 },
	{ "8.4 + 6 * (14 + 20) + m / (48 * .92 / 2 * .85 * .5)", V_2_30_7, &eight_h100, ALLREDUCE, NCCL_TREE,
	    NCCL_SIMPLE, 1 << 20, 324.1408 },
	{ "2.4.8 expects nothing", V_2_4_8, &dgx1v, ALLREDUCE, NCCL_RING, NCCL_LL, 1 << 20, -1 },
};

static int
expected_times(void)
{
	int wrong = 0;
	for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
		const struct expected *t = &times[i];
		double time = nccl_expected_time(t->version, t->job, t->coll, t->algorithm, t->protocol, t->m);
		if (fabs(time - t->time) <= 1e-4)
			continue;
		printf("# %s: %.4f us: want %.4f\n", t->how, time, t->time);
		wrong++;
	}
	return report(wrong, "times as worked by hand");
}

struct chosen {
	int version;
	const NcclJob *job;
	Collective coll;
	int64_t m;
	NcclAlgorithm algorithm;
	NcclProtocol protocol;
	int channels;
};

/* 2.4.8: 256 threads on each of 6 channels, 8 parts, 64 bytes for each thread: 6 * 256 * 8 * 64 = 786432.
 * 2.8.4, 16 GPUs, 1.2 MB: ring LL 17.7 + 71.4, ring LL128 67 + 22.2, tree LL128 41.9 + 44.4, the least. */
static const struct chosen choices[] = {
	{ V_2_4_8, &dgx1v, ALLREDUCE, 1024, NCCL_RING, NCCL_LL, 1 },
	{ V_2_4_8, &dgx1v, ALLREDUCE, 32769, NCCL_RING, NCCL_LL, 3 },
	{ V_2_4_8, &dgx1v, ALLREDUCE, 786432, NCCL_RING, NCCL_LL, 6 },
	{ V_2_4_8, &dgx1v, ALLREDUCE, 786433, NCCL_RING, NCCL_SIMPLE, 6 },
	{ V_2_4_8, &dgx1v, BROADCAST, 98304, NCCL_RING, NCCL_LL, 6 },
	{ V_2_4_8, &dgx1v, BROADCAST, 98305, NCCL_RING, NCCL_SIMPLE, 6 },
	{ V_2_4_8, &four_p100, ALLREDUCE, 131072, NCCL_RING, NCCL_LL, 4 },
	{ V_2_4_8, &four_p100, ALLREDUCE, 131073, NCCL_RING, NCCL_SIMPLE, 4 },
	{ V_2_8_4, &dgx2_2_8, ALLREDUCE, 1 << 20, NCCL_RING, NCCL_LL, 12 },
	{ V_2_8_4, &dgx2_2_8, ALLREDUCE, 1200000, NCCL_TREE, NCCL_LL128, 12 },
	{ V_2_8_4, &dgx2_2_8, ALLREDUCE, 1500000, NCCL_RING, NCCL_LL128, 12 },
	/* 2.4.8 over four servers: trees up to 3 * 40000 * (31 * 6 - 2 * 15 - 7 * 4) bytes, over two for all. */
	{ V_2_4_8, &four_a100, ALLREDUCE, 15360000, NCCL_TREE, NCCL_SIMPLE, 8 },
	{ V_2_4_8, &four_a100, ALLREDUCE, 15360001, NCCL_RING, NCCL_SIMPLE, 8 },
	{ V_2_4_8, &four_a100, ALLREDUCE, 524288, NCCL_TREE, NCCL_LL, 8 },
	{ V_2_4_8, &four_a100, ALLREDUCE, 524289, NCCL_TREE, NCCL_SIMPLE, 8 },
	{ V_2_4_8, &two_dgx1v, ALLREDUCE, 1 << 30, NCCL_TREE, NCCL_SIMPLE, 4 },
	{ V_2_4_8, &two_dgx1v, ALLGATHER, 1024, NCCL_RING, NCCL_LL, 1 },
	{ V_2_30_7, &four_a100, ALLREDUCE, 1 << 20, NCCL_TREE, NCCL_LL128, 16 },
	{ V_2_30_7, &four_a100, ALLREDUCE, 1 << 30, NCCL_RING, NCCL_SIMPLE, 16 },
	{ V_2_30_7, &dgx1v, ALLREDUCE, 65536, NCCL_RING, NCCL_LL, 2 },
	{ V_2_30_7, &dgx1v, ALLREDUCE, 1 << 20, NCCL_RING, NCCL_LL128, 12 },
	{ V_2_30_7, &dgx1v, ALLREDUCE, 1 << 30, NCCL_RING, NCCL_SIMPLE, 12 },
	{ V_2_30_7, &dgx1v, BROADCAST, 1024, NCCL_RING, NCCL_LL, 1 },
	{ V_2_30_7, &three_pcie, ALLREDUCE, 1 << 20, NCCL_RING, NCCL_SIMPLE, 2 },
};

static int
right_choices(void)
{
	int wrong = 0;
	for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
		const struct chosen *c = &choices[i];
		NcclChoice choice;
		nccl_choose(c->version, c->job, c->coll, c->m, &choice);
		if (choice.algorithm == c->algorithm && choice.protocol == c->protocol
		    && choice.channels == c->channels)
			continue;
		printf("# %s, %lld bytes: %s, %s, %d: want %s, %s, %d\n", nccl_version_name[c->version],
		    (long long)c->m, nccl_algorithm_name[choice.algorithm], nccl_protocol_name[choice.protocol],
		    choice.channels, nccl_algorithm_name[c->algorithm], nccl_protocol_name[c->protocol], c->channels);
		wrong++;
	}
	return report(wrong, "choices where times cross");
}

/* NCCL's logs: 24 channels of a DGX A100 and of a DGX H100 are twice those of the search; 12 of a DGX-1V. */
static int
right_channels(void)
{
	static const struct {
		int version;
		NcclGpu gpu;
		double total, hop;
		bool switched;
		NcclGraph want;
	} rows[] = {
		{ V_2_30_7, NCCL_VOLTA, 120, 20, false, { .channels = 6, .speed = 20 } },
		{ V_2_8_4, NCCL_VOLTA, 126, 21, false, { .channels = 6, .speed = 21 } },
		{ V_2_30_7, NCCL_AMPERE, 240, 240, true, { .channels = 12, .speed = 20 } },
		{ V_2_30_7, NCCL_HOPPER, 370.8, 370.8, true, { .channels = 12, .speed = 30 } },
		{ V_2_30_7, NCCL_PASCAL, 72, 18, false, { .channels = 4, .speed = 18 } },
		{ V_2_30_7, NCCL_VOLTA, 6, 6, false, { .channels = 1, .speed = 6 } },
		{ V_2_30_7, NCCL_VOLTA, 2, 2, false, { .channels = 1, .speed = 2 } },
		{ V_2_4_8, NCCL_VOLTA, 126, 21, false, { .channels = 6, .speed = 21 } },
		{ V_2_4_8, NCCL_VOLTA, 126, 126, true, { .channels = 12, .speed = 10.5 } },
	};
	int wrong = 0;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		NcclGraph graph = { .nvlink = true };
		nccl_channels(rows[i].version, rows[i].gpu, rows[i].total, rows[i].hop, rows[i].switched, &graph);
		if (graph.channels == rows[i].want.channels && fabs(graph.speed - rows[i].want.speed) < 1e-6)
			continue;
		printf("# row %d: %d of %g GB/s\n", (int)i, graph.channels, graph.speed);
		wrong++;
	}
	return report(wrong, "channels of known machines");
}

/* Logs: 8 x 48 for two servers of eight H100 with 400 Gb/s each; 4 x 24 for two H20 with two cards of 50 GB/s,
 * NVIDIA/nccl, issue 1189; 4 x 1.2 for four cards of 10 Gb/s, issue 601. Those of A100 are worked by hand: 24 within 25
 * and x16 gen4, trees 30 as 8 * 30 is all of 12 links. */
static int
right_net_channels(void)
{
	static const struct {
		int version;
		NcclGpu gpu;
		NcclCards cards;
		double total, hop;
		NcclGraph want;
	} rows[] = {
		{ V_2_19_4, NCCL_HOPPER, { 8, 48, 8 }, 360, 360, { .channels = 8, .speed = 48, .tree_speed = 48 } },
		{ V_2_30_7, NCCL_HOPPER, { 8, 48, 8 }, 370.8, 370.8, { .channels = 8, .speed = 48, .tree_speed = 48 } },
		{ V_2_30_7, NCCL_HOPPER, { 2, 48, 2 }, 370.8, 370.8, { .channels = 4, .speed = 24, .tree_speed = 48 } },
		{ V_2_8_4, NCCL_VOLTA, { 4, 1.25, 4 }, 6, 6, { .channels = 4, .speed = 1.2, .tree_speed = 1.2 } },
		{ V_2_19_4, NCCL_AMPERE, { 8, 24, 8 }, 240, 240, { .channels = 8, .speed = 24, .tree_speed = 30 } },
		{ V_2_19_4, NCCL_AMPERE, { 16, 12.5, 8 }, 240, 240, { .channels = 16, .speed = 12, .tree_speed = 15 } },
		{ V_2_19_4, NCCL_AMPERE, { 4, 12.5, 8 }, 240, 240, { .channels = 4, .speed = 12, .tree_speed = 24 } },
		{ V_2_8_4, NCCL_VOLTA, { 4, 12, 8 }, 126, 21, { .channels = 4, .speed = 12, .tree_speed = 21 } },
		{ V_2_4_8, NCCL_VOLTA, { 4, 12, 8 }, 126, 21, { .channels = 8, .speed = 6, .tree_speed = 6 } },
		{ V_2_30_7, NCCL_VOLTA, { 1, 12, 1 }, 0, 0, { .channels = 1, .speed = 12, .tree_speed = 12 } },
	};
	int wrong = 0;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		NcclGraph graph = { .nvlink = true };
		nccl_net_channels(rows[i].version, rows[i].gpu, &rows[i].cards, rows[i].total, rows[i].hop, &graph);
		if (graph.channels == rows[i].want.channels && fabs(graph.speed - rows[i].want.speed) < 1e-6
		    && fabs(graph.tree_speed - rows[i].want.tree_speed) < 1e-6)
			continue;
		printf("# row %d: %d of %g GB/s, trees %g\n", (int)i, graph.channels, graph.speed, graph.tree_speed);
		wrong++;
	}
	return report(wrong, "channels over servers");
}

/* ---- jobs ---- */

static NcclBeside *
beside_of(Ctx *ctx, const char *path, const int *gpu, int n, Collective coll)
{
	static Job job;
	const Ask ask = { .coll = coll, .root = collective_rooted(coll) ? 0 : -1, .minimise = true };
	SimParameters p;
	NcclBeside *beside;
	sim_defaults(EXECUTOR_KERNEL, &p);
	if (job_induce(ctx, machine(ctx, path), gpu, n, &ask, &job) != OK
	    || nccl_prepare(ctx, &job, &p, &beside) != OK) {
		printf("Bail out! %s\n", ctx->error.text);
		exit(1);
	}
	return beside;
}

/* GPUs 1, 4 and 5 are a chain: 2.4.8 goes over PCIe, and later versions through GPU 5 from 1 to 4 and back. */
static int
a_chain(Ctx *ctx)
{
	static const int gpu[] = { 1, 4, 5 };
	NcclBeside *beside = beside_of(ctx, "topologies/dgx1v.xml", gpu, 3, ALLREDUCE);
	const NcclGraph *old = &beside->job[V_2_4_8].graph, *new = &beside->job[V_2_30_7].graph;
	NcclChoice choice;
	int64_t slow, fast;
	int wrong = old->nvlink || old->through || !new->nvlink || !new->through || beside->why_not;
	wrong += nccl_time(ctx, beside, V_2_4_8, 1 << 26, &choice, &slow) != OK || choice.time != 0;
	wrong += nccl_time(ctx, beside, V_2_30_7, 1 << 26, &choice, &fast) != OK || choice.protocol != NCCL_SIMPLE;
	wrong += slow <= 0 || fast <= 0 || slow < 2 * fast;
	return report(wrong, "a chain of GPUs: over PCIe, or through a GPU");
}

/* An allreduce of all eight GPUs over six rings: m * 14 / 8 bytes over 150 GB/s, of which a kernel gets 84 %, and up to
 * 5 % more for adding at 462 GB/s; NCCL's 20 GB/s for a link of 25 are no part of the simulation. */
static int
all_of_a_dgx1v(Ctx *ctx)
{
	static const int gpu[] = { 0, 1, 2, 3, 4, 5, 6, 7 };
	NcclBeside *beside = beside_of(ctx, "topologies/dgx1v.xml", gpu, 8, ALLREDUCE);
	const NcclGraph *graph = &beside->job[V_2_30_7].graph;
	NcclChoice choice;
	int64_t ring, same, packets;
	double want = (double)(1 << 30) * 14 / 8 / (150e9 * .84) * 1e12;
	int wrong = graph->channels != 6 || graph->speed != 20 || graph->same || beside->job[0].gpu != NCCL_VOLTA;
	wrong += nccl_ring_time(ctx, beside, 1, 1 << 30, &ring) != OK || (double)ring < want
	    || (double)ring > 1.05 * want;
	wrong += nccl_time(ctx, beside, V_2_30_7, 1 << 30, &choice, &same) != OK || same != ring;
	wrong += nccl_time(ctx, beside, V_2_30_7, 1024, &choice, &packets) != OK || choice.protocol != NCCL_LL
	    || nccl_ring_time(ctx, beside, 1, 1024, &ring) != OK || packets != ring;
	/* LL goes on for longer than ours: half of the data are flags. */
	wrong += nccl_time(ctx, beside, V_2_4_8, 786432, &choice, &packets) != OK || choice.protocol != NCCL_LL
	    || nccl_time(ctx, beside, V_2_4_8, 786433, &choice, &same) != OK || packets == same;
	return report(wrong, "all of a DGX-1V");
}

/* All GPUs of two DGX-1V: four network cards of 12.5 GB/s on PCIe of 12, near their GPUs; trees of chains over NVLink,
 * valid and planned with all four cards each way, so twice 2 trees in each. */
static int
two_servers(Ctx *ctx)
{
	static const int gpu[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 }, four[] = { 1, 3, 9, 11 };
	NcclBeside *beside = beside_of(ctx, "topologies/two-dgx1v.xml", gpu, 16, ALLREDUCE);
	const NcclGraph *graph = &beside->job[V_2_30_7].graph;
	const Schedule *trees = beside->rings[1]->sched[NCCL_TREE];
	NcclChoice choice;
	int64_t few, many;
	int wrong = beside->why_not || beside->servers.n != 2 || beside->cards.n != 4 || beside->far || graph->far;
	wrong += graph->channels != 4 || graph->speed != 12 || graph->tree_speed != 20 || !graph->nvlink || graph->same;
	wrong += !trees || trees->n_segments != 8 || sched_check(ctx, "trees", trees) != OK;
	wrong += nccl_time(ctx, beside, V_2_30_7, 1 << 10, &choice, &few) != OK || choice.algorithm != NCCL_TREE
	    || choice.protocol != NCCL_LL;
	wrong += nccl_time(ctx, beside, V_2_4_8, 1 << 28, &choice, &many) != OK || choice.algorithm != NCCL_TREE
	    || choice.protocol != NCCL_SIMPLE;
	/* All of it twice over four cards, of which the simulator has .92. */
	double least = (double)(1 << 28) / (4 * 12e9 * .92) * 1e12;
	wrong += few <= 0 || (double)many < least || (double)many > 1.25 * least;
	beside = beside_of(ctx, "topologies/two-dgx1v.xml", four, 4, ALLREDUCE);
	trees = beside->rings[1]->sched[NCCL_TREE];
	wrong += beside->cards.n != 2 || beside->job[V_2_30_7].graph.channels != 2 || !trees
	    || sched_check(ctx, "trees", trees) != OK;
	return report(wrong, "two servers");
}

static int
what_is_left_out(Ctx *ctx)
{
	static const int gpu[] = { 0, 1, 2, 3, 4, 5, 6, 7 }, apart[] = { 0, 8 }, unequal[] = { 0, 1, 8 };
	NcclBeside *h100 = beside_of(ctx, "topologies/dgx-h100.xml", gpu, 8, ALLREDUCE);
	NcclBeside *a100 = beside_of(ctx, "topologies/dgx-a100.xml", gpu, 8, ALLREDUCE);
	int wrong = !h100->left_out || strcmp(h100->left_out, "NVLS") != 0 || a100->left_out;
	wrong += h100->job[V_2_30_7].graph.channels != 12 || a100->job[V_2_30_7].graph.channels != 12;
	wrong += h100->job[0].gpu != NCCL_HOPPER || a100->job[0].gpu != NCCL_AMPERE;
	wrong += !beside_of(ctx, "topologies/mi300x.xml", gpu, 8, ALLREDUCE)->why_not;
	wrong += beside_of(ctx, "topologies/two-dgx1v.xml", apart, 2, ALLREDUCE)->why_not != NULL;
	wrong += !beside_of(ctx, "topologies/two-dgx1v.xml", unequal, 3, ALLREDUCE)->why_not;
	wrong += strcmp(beside_of(ctx, "topologies/two-dgx1v.xml", apart, 2, ALLGATHER)->left_out, "PAT") != 0;
	wrong += !beside_of(ctx, "topologies/dgx1v.xml", gpu, 8, ALLTOALL)->why_not;
	return report(wrong, "what is left out, visibly");
}

int
main(void)
{
	Ctx ctx;
	ctx_init(&ctx);
	int wrong = expected_times() + right_choices() + right_channels() + right_net_channels();
	wrong += a_chain(&ctx) + all_of_a_dgx1v(&ctx) + two_servers(&ctx);
	wrong += what_is_left_out(&ctx);
	ctx_free(&ctx);
	return wrong != 0;
}
