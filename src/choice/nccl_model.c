/* NCCL's model of its own times, one server:
 *
 *     time = base + hops * hop + m / (bandwidth * correction)
 *
 * with base and hop by algorithm, protocol and medium; hops 2 (n - 1) for an allreduce by ring or tree, n - 1 for
 * allgather and reducescatter, and for broadcast and reduce n, or 1 where all channels have one order; and bandwidth
 * that of the channels, less what a protocol spends on flags, within what a channel of it reaches, times n / hops of a
 * ring (for broadcast and reduce 1), or a half of a tree. Trees do worse at sizes between, by a correction for each
 * power of two.
 *
 * DGX-1V, 8 GPUs, 6 channels of 20 GB/s, 2.30.7, allreduce of 1 MB:
 *
 *     ring, LL        6.6 + 14 * 0.6 + 10^6 / (1000 * min(39, 60) * 8 / 14) = 15.0 + 44.9 = 59.9 us
 *     ring, LL128    14.0 + 14 * 1.9 + 10^6 / (1000 * min(110.4, 120) * 8 / 14) = 40.6 + 15.9 = 56.5 us, the least
 *     tree, LL128    14.0 + 14 * 1.25 + 10^6 / (1000 * 42.9 * 0.6) = 31.5 + 38.8 = 70.3 us
 *
 * 2.4.8 has no such model: in one server it has rings alone, and takes LL up to a number of bytes for each thread.
 *
 * What is left out: NVLS, CollNet and PAT, several servers, environment variables. */
#include "choice/nccl_model.h"

#include <math.h>

enum { N_STEPS = 23, N_SPEEDS = 20 };

const char *const nccl_algorithm_name[N_NCCL_ALGORITHMS] = {
#define X(name, text) text,
	NCCL_ALGORITHM_LIST(X)
#undef X
};

const char *const nccl_protocol_name[N_NCCL_PROTOCOLS] = {
#define X(name, text) text,
	NCCL_PROTOCOL_LIST(X)
#undef X
};

const char *const nccl_version_name[N_NCCL_VERSIONS] = { "2.4.8", "2.8.4", "2.19.4", "2.30.7" };

enum { V_2_4_8, V_2_8_4 };

typedef double Costs[N_NCCL_ALGORITHMS][N_NCCL_PROTOCOLS];

/* Of a version. Rates in GB/s, latencies in us; what depends on GPUs has an entry for each generation. */
struct constants {
	double nvlink[N_NCCL_GPUS];
	int most_channels;
	const double *speed[N_NCCL_GPUS];	/* that channels may have, descending, ended by 0 */
	Costs base, hop[2];			/* hop: over NVLink, over anything else */
	double ring_ll, ring_ll_one_way;	/* part of the bandwidth: allreduce and reduce; the others */
	double ll_most[N_NCCL_GPUS];
	double ring_ll128[N_NCCL_GPUS], tree_ll128[N_NCCL_GPUS];	/* of a channel; 0: by collective */
	double tree[N_NCCL_GPUS];		/* of a channel */
	bool ll128[N_NCCL_GPUS], ll128_through;	/* which have LL128; also through a GPU */
	double correction[N_NCCL_PROTOCOLS][N_STEPS];	/* of trees, for powers of two from 64 bytes on */
};

static const double speeds_2_8[N_SPEEDS] = { 42, 30, 24, 21, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3, 2.4, 1.2, .24, .12 };
static const double speeds_2_19[N_SPEEDS] = { 40, 30, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3 };
static const double speeds_hopper[N_SPEEDS] = { 60, 50, 40, 30, 24, 20, 15, 12, 11, 6, 3 };
static const double speeds_blackwell[N_SPEEDS] = { 90, 80, 70, 60, 50, 45, 40, 30, 24, 20, 19, 18 };

#define CORRECTION_LL { 1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1 }
#define CORRECTION_SIMPLE \
	{ .9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9 }

/* Generations that a version does not know are as the last one that it knows. */
static const struct constants constants[N_NCCL_VERSIONS] = {
	{ .most_channels = 16 },
	{
		.nvlink = { 18, 21, 21, 21, 21 },
		.most_channels = 32,
		.speed = { speeds_2_8, speeds_2_8, speeds_2_8, speeds_2_8, speeds_2_8 },
		.base = { { 4.4, 4.4, 0 }, { 3.6, 10, 8.4 } },
		.hop = { { { .52, 1.25, 28 }, { .47, 1.9, 3.4 } }, { { 1, 1.9, 28 }, { 1, 2.5, 5.7 } } },
		.ring_ll = 1. / 4, .ring_ll_one_way = 1. / 3,
		.ll_most = { 39, 39, 87.7, 39, 39 },
		.tree = { 26.5, 26.5, 24, 26.5, 26.5 },
		.ll128 = { false, true, true, false, false },
		.correction = { CORRECTION_LL,
		    { 1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .5, .6, .6, .7, .7, .8, .9, .9, .92, .92 },
		    CORRECTION_SIMPLE },
	},
	{
		.nvlink = { 18, 20, 20, 20, 20 },
		.most_channels = 32,
		.speed = { speeds_2_19, speeds_2_19, speeds_2_19, speeds_hopper, speeds_hopper },
		.base = { { 6.8, 14, 0 }, { 6.6, 14, 8.4 } },
		.hop = { { { .6, 1.25, 28 }, { .6, 1.9, 3.4 } }, { { 1, 1.9, 28 }, { 1, 2.5, 5.7 } } },
		.ring_ll = 1. / 4, .ring_ll_one_way = 1. / 3,
		.ll_most = { 39, 39, 87.7, 87.7, 87.7 },
		.ring_ll128 = { 20, 20, 20, 36.7, 36.7 },
		.tree_ll128 = { 20, 20, 20, 36.7, 36.7 },
		.tree = { 26.5, 26.5, 24, 38.7, 38.7 },
		.ll128 = { false, true, true, true, false }, .ll128_through = true,
		.correction = { CORRECTION_LL,
		    { 1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1 },
		    CORRECTION_SIMPLE },
	},
	{
		.nvlink = { 18, 20, 20, 20.6, 40.1 },
		.most_channels = 64,
		.speed = { speeds_2_19, speeds_2_19, speeds_2_19, speeds_hopper, speeds_blackwell },
		.base = { { 6.8, 14, 8.4 }, { 6.6, 14, 8.4 } },
		.hop = { { { .6, 1.25, 4 }, { .6, 1.9, 3.4 } }, { { 1, 1.9, 4 }, { 1, 2.5, 5.7 } } },
		.ring_ll = 1. / 2, .ring_ll_one_way = 1. / 2,
		.ll_most = { 39, 39, 87.7, 141, 282 },
		.ring_ll128 = { 20, 20, 20, 36.7, 40 },
		.tree_ll128 = { 20, 20, 20, 36.7, 55.6 },
		.tree = { 26.5, 26.5, 24, 38.7, 70 },
		.ll128 = { false, true, true, true, true }, .ll128_through = true,
		.correction = { CORRECTION_LL,
		    { 1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1 },
		    CORRECTION_SIMPLE },
	},
};

bool
nccl_serves(Collective coll)
{
	return coll == BROADCAST || coll == REDUCE || coll == ALLREDUCE || coll == ALLGATHER || coll == REDUCESCATTER;
}

/* 2.4.8 counts links, and no GB/s: as 2.8.4 does, for the sake of nccl_channels. */
double
nccl_nvlink_speed(int version, NcclGpu gpu)
{
	return constants[version == V_2_4_8 ? V_2_8_4 : version].nvlink[gpu];
}

/* ---- channels ---- */

/* A ring for each NVLink, two through an NVSwitch, one over PCIe. */
static void
channels_2_4(NcclGpu gpu, double total, double hop, bool switched, NcclGraph *out)
{
	int most = constants[V_2_4_8].most_channels;
	double link = nccl_nvlink_speed(V_2_4_8, gpu);
	int n = !out->nvlink ? 1 : (int)(total / link + 1e-6) * (switched ? 2 : 1);
	out->channels = n < 1 ? 1 : n > most ? most : n;
	out->speed = out->channels == 1 ? hop : total / out->channels;
}

/* Channels of a wide speed are divided in two. */
static void
duplicate(int version, NcclGpu gpu, int most, NcclGraph *out)
{
	bool keeps = version > V_2_8_4 && gpu >= NCCL_HOPPER && out->speed < 50 && out->channels > 4;
	if (out->speed < 25 || keeps)
		return;
	int n = 2 * out->channels < most ? 2 * out->channels : most;
	out->speed /= (n + out->channels - 1) / out->channels;
	out->channels = n;
}

/* The highest speed at which channels reach most together, down to about half of the first that fits at all. */
void
nccl_channels(int version, NcclGpu gpu, double total, double hop, bool switched, NcclGraph *out)
{
	if (version == V_2_4_8) {
		channels_2_4(gpu, total, hop, switched, out);
		return;
	}
	const double *speed = constants[version].speed[gpu];
	int most = constants[version].most_channels / 2;
	double best = 0;
	out->channels = 1;
	out->speed = hop < total ? hop : total;
	for (int i = 0; speed[i] > 0 && (best == 0 || (speed[i] > .49 * out->speed && best < total)); i++) {
		int n = (int)(total / speed[i] + 1e-6);
		n = n < most ? n : most;
		if (speed[i] > hop * (1 + 1e-6) || n * speed[i] <= best)
			continue;
		best = n * speed[i];
		out->channels = n;
		out->speed = speed[i];
	}
	duplicate(version, gpu, most, out);
}

/* ---- what a version expects ---- */

/* Hops of a ring. */
static int
hops_of(Collective coll, int n)
{
	return coll == ALLREDUCE ? 2 * (n - 1) : coll == ALLGATHER || coll == REDUCESCATTER ? n - 1 : n;
}

/* 2.8.4, of a channel by LL128. */
static double
ll128_of_collective(Collective coll)
{
	switch (coll) {
	case BROADCAST:
		return 18.8;
	case REDUCE:
		return 12;
	case ALLGATHER:
		return 18.3;
	case REDUCESCATTER:
		return 15.2;
	default:
		return 16.9;
	}
}

static double
ring_bandwidth(const struct constants *k, const NcclJob *job, Collective coll, NcclProtocol protocol, double all)
{
	bool both_ways = coll == ALLREDUCE || coll == REDUCE;
	double channel = k->ring_ll128[job->gpu];
	if (protocol == NCCL_LL)
		all = fmin(k->ll_most[job->gpu], all * (both_ways ? k->ring_ll : k->ring_ll_one_way));
	if (protocol == NCCL_LL128)
		all = fmin(all * .92, (channel > 0 ? channel : ll128_of_collective(coll)) * job->graph.channels);
	return all * job->n_ranks / hops_of(coll, job->n_ranks);
}

static double
tree_bandwidth(const struct constants *k, const NcclJob *job, Collective coll, NcclProtocol protocol, double all)
{
	double channel = k->tree_ll128[job->gpu];
	all = fmin(all * .92, job->graph.channels * k->tree[job->gpu]);
	if (protocol == NCCL_LL)
		all = fmin(all / 3.8, k->ll_most[job->gpu]);
	if (protocol == NCCL_LL128)
		all = fmin(all * 7 / 9, (channel > 0 ? channel : ll128_of_collective(coll)) * job->graph.channels);
	return all / 2;
}

/* Ranks after one another wait for each other in broadcast and reduce, where channels differ; a hop is then that of
 * trees, whose chunks are long. */
static double
latency(const struct constants *k, const NcclJob *job, Collective coll, NcclAlgorithm a, NcclProtocol p)
{
	const NcclGraph *graph = &job->graph;
	const Costs *hop = &k->hop[!graph->nvlink || graph->through];
	bool whole = coll == BROADCAST || coll == REDUCE;
	double one = (*hop)[a][p];
	if (whole && graph->same)
		return k->base[a][p] + one;
	if (whole && p == NCCL_SIMPLE)
		one = (*hop)[NCCL_TREE][p];
	return k->base[a][p] + one * hops_of(coll, job->n_ranks);
}

static double
correction(const struct constants *k, NcclProtocol protocol, int64_t m)
{
	int step = 0;
	while (m >> 7 >> step && step < N_STEPS)
		step++;
	return step < N_STEPS ? k->correction[protocol][step] : 1;
}

static bool
considers(const struct constants *k, const NcclJob *job, Collective coll, NcclAlgorithm a, NcclProtocol p)
{
	const NcclGraph *graph = &job->graph;
	if (a == NCCL_TREE && coll != ALLREDUCE)
		return false;
	return p != NCCL_LL128
	    || (k->ll128[job->gpu] && graph->nvlink && (k->ll128_through || !graph->through));
}

double
nccl_expected_time(int version, const NcclJob *job, Collective coll, NcclAlgorithm algorithm,
    NcclProtocol protocol, int64_t m)
{
	enum { AMPERE_MOST = 235 };	/* GB/s, 2.8.4 */
	const struct constants *k = &constants[version];
	double all = job->graph.channels * job->graph.speed, bandwidth;
	if (version == V_2_4_8 || !considers(k, job, coll, algorithm, protocol))
		return -1;
	if (version == V_2_8_4 && job->gpu == NCCL_AMPERE)
		all = fmin(all, AMPERE_MOST);
	if (algorithm == NCCL_TREE)
		bandwidth = tree_bandwidth(k, job, coll, protocol, all) * correction(k, protocol, m);
	else
		bandwidth = ring_bandwidth(k, job, coll, protocol, all);
	return latency(k, job, coll, algorithm, protocol) + (double)m / (1000 * bandwidth);
}

/* ---- the choice ---- */

static int64_t
divide_up(int64_t a, int64_t b)
{
	return (a - 1) / b + 1;
}

/* Threads and channels grow until each thread has few bytes; LL serves up to many more of them. */
static void
choose_2_4(const NcclJob *job, Collective coll, int64_t m, NcclChoice *out)
{
	enum { LEAST_THREADS = 64, MOST_THREADS = 256, FEW = 8, MANY = 64, MANY_PASCAL = 32 };
	int64_t parts = coll == BROADCAST || coll == REDUCE ? 1 : job->n_ranks, threads = LEAST_THREADS, n;
	int64_t many = job->gpu == NCCL_PASCAL ? MANY_PASCAL : MANY;
	while (divide_up(m, threads * parts) > FEW && 2 * threads <= MOST_THREADS)
		threads *= 2;
	n = divide_up(m, threads * parts * FEW);
	n = n < job->graph.channels ? n : job->graph.channels;
	bool few = m <= n * threads * parts * many;
	*out = (NcclChoice){ .algorithm = NCCL_RING, .protocol = few ? NCCL_LL : NCCL_SIMPLE,
		.channels = few ? (int)n : job->graph.channels };
}

/* Fewer channels where these have too few bytes for each of their threads. */
static int
channels_used(int version, const NcclJob *job, const NcclChoice *choice, int64_t m)
{
	enum { PCIE = 12 };	/* GB/s: up to here Simple has fewer threads */
	static const int threads[N_NCCL_PROTOCOLS] = { 512, 640, 512 }, bytes[N_NCCL_PROTOCOLS] = { 8, 8, 64 };
	const NcclGraph *graph = &job->graph;
	bool ring = choice->algorithm == NCCL_RING;
	int64_t each = (int64_t)threads[choice->protocol] * bytes[choice->protocol];
	int n = 2 * graph->channels;
	if (ring && choice->protocol == NCCL_LL)
		each *= job->n_ranks;
	if (ring && choice->protocol == NCCL_SIMPLE && graph->speed * graph->channels <= PCIE)
		each /= 2;
	n = n < constants[version].most_channels ? n : constants[version].most_channels;
	while (n > 1 && m < n * each)
		n--;
	return n;
}

void
nccl_choose(int version, const NcclJob *job, Collective coll, int64_t m, NcclChoice *out)
{
	NcclChoice best = { .time = -1 };
	if (version == V_2_4_8) {
		choose_2_4(job, coll, m, out);
		return;
	}
	for (int a = 0; a < N_NCCL_ALGORITHMS; a++)
		for (int p = 0; p < N_NCCL_PROTOCOLS; p++) {
			double time = nccl_expected_time(version, job, coll, (NcclAlgorithm)a, (NcclProtocol)p, m);
			if (time >= 0 && (best.time < 0 || time < best.time))
				best = (NcclChoice){ (NcclAlgorithm)a, (NcclProtocol)p, 0, time };
		}
	best.channels = channels_used(version, job, &best, m);
	*out = best;
}
