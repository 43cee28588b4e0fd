/* NCCL's model of its own times:
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
 * Over S servers some of a ring's hops are over the network: of an allreduce 2 (S - 1), in 2.19.4 2 S. A tree goes
 * along the n / S GPUs of a server, and from server to server: 2 (n / S - 1) hops, and 2 log2 S over the network; it
 * has other rates for one server, two, and more. LL is slower, by what CPU the servers have; Simple's rings of large
 * allreduces have a latency of 1.4 or 1.9 times. Four DGX A100, 8 channels of 24 GB/s, 2.30.7, allreduce of 1 MB:
 *
 *     ring, LL128    14.0 + 56 * 2 + 6 * 4 + 10^6 / (1000 * min(176.6, 160) * 32 / 62) = 150.0 + 12.1 = 162.1 us
 *     tree, LL128    14.0 + 2 * (7 * 1.25 + 2 * 8.5) + 10^6 / (1000 * min(142.4 * .9375, 160) / 2 * .6)
 *                    = 65.5 + 25.0 = 90.5 us, the least
 *
 * 2.4.8 has no such model: in one server it has rings alone, over servers trees up to a number of bytes; and it takes
 * LL up to a number of bytes for each thread.
 *
 * What is left out: NVLS, CollNet and PAT; servers that differ; environment variables. */
#include "choice/nccl_model.h"
#include "choice/nccl_constants.h"

#include <math.h>

const char *const nccl_algorithm_name[N_NCCL_ALGORITHMS] = { NCCL_ALGORITHM_LIST(ROW_TEXT) };

const char *const nccl_protocol_name[N_NCCL_PROTOCOLS] = { NCCL_PROTOCOL_LIST(ROW_TEXT) };

const char *const nccl_version_name[N_NCCL_VERSIONS] = { "2.4.8", "2.8.4", "2.19.4", "2.30.7" };

/* GB/s of LL over servers, by CPU: two, more. All versions. */
static const double net_ll_most[][2] = { [NCCL_INTEL] = { 39, 20.4 }, [NCCL_AMD] = { 22.5, 19 } };

/* us of a post to the network; three of them for Simple. */
static const double post[] = { [NCCL_INTEL] = 1, [NCCL_AMD] = 2 };

bool
nccl_serves(Collective coll)
{
	return coll == BROADCAST || coll == REDUCE || coll == ALLREDUCE || coll == ALLGATHER || coll == REDUCESCATTER;
}

/* 2.4.8 counts links, and no GB/s: as 2.8.4 does, for the sake of nccl_channels. */
double
nccl_nvlink_speed(int version, NcclGpu gpu)
{
	return nccl_constants[version == V_2_4_8 ? V_2_8_4 : version].nvlink[gpu];
}

/* ---- channels ---- */

/* A ring for each NVLink, two through an NVSwitch, one over PCIe. */
static void
channels_2_4(NcclGpu gpu, double total, double hop, bool switched, NcclGraph *out)
{
	int most = nccl_constants[V_2_4_8].most_channels;
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

/* Channels of this speed: what the links of a server take, and over several their network cards. Over these a chain of
 * the GPUs of a server has a hop less, and its ends are not the same GPUs in all. cards: NULL: one server. */
static int
channels_at(const NcclCards *cards, double total, double hop, int most, double speed)
{
	int n = cards ? cards->n * (int)(cards->speed / speed + 1e-6) : most;
	if (!cards || cards->gpus > 1) {
		double chains = cards ? total / speed * cards->gpus / (cards->gpus - 1) : total / speed;
		int within = (int)(chains + 1e-6);
		n = speed > hop * (1 + 1e-6) ? 0 : n < within ? n : within;
	}
	return n < most ? n : most;
}

/* The highest speed at which channels reach most together, down to about half of the first that fits at all; out->speed
 * is that of a single channel. */
static void
choose_speed(int version, NcclGpu gpu, const double *speed, const NcclCards *cards, double total, double hop,
    NcclGraph *out)
{
	int most = nccl_constants[version].most_channels / 2;
	double best = 0;
	out->channels = 1;
	for (int i = 0; speed[i] > 0 && (best == 0 || (speed[i] > .49 * out->speed && best < total)); i++) {
		int n = channels_at(cards, total, hop, most, speed[i]);
		if (n * speed[i] <= best)
			continue;
		best = n * speed[i];
		out->channels = n;
		out->speed = speed[i];
	}
	duplicate(version, gpu, most, out);
}

void
nccl_channels(int version, NcclGpu gpu, double total, double hop, bool switched, NcclGraph *out)
{
	if (version == V_2_4_8) {
		channels_2_4(gpu, total, hop, switched, out);
		return;
	}
	out->speed = hop < total ? hop : total;
	choose_speed(version, gpu, nccl_constants[version].speed[gpu], NULL, total, hop, out);
}

/* Trees have as many channels as rings, and within servers up to twice the speed. */
static double
tree_speed(const NcclCards *cards, double total, double hop, const double *speed, const NcclGraph *graph)
{
	int i = 0;
	double best = graph->speed;
	while (speed[i] > best)
		i++;
	if (cards->gpus == 1 || speed[i] < best)
		return best;
	while (i-- > 0 && best < 2 * graph->speed && speed[i] <= hop * (1 + 1e-6)
	    && graph->channels * speed[i] * (cards->gpus - 1) <= total * cards->gpus * (1 + 1e-6))
		best = speed[i];
	return best;
}

/* A ring for each card, two of them with NVLink. */
static void
net_channels_2_4(const NcclCards *cards, NcclGraph *out)
{
	int most = nccl_constants[V_2_4_8].most_channels, n = cards->n * (out->nvlink ? 2 : 1);
	out->channels = n < most ? n : most;
	out->speed = out->tree_speed = cards->n * cards->speed / out->channels;
}

void
nccl_net_channels(int version, NcclGpu gpu, const NcclCards *cards, double total, double hop, NcclGraph *out)
{
	if (version == V_2_4_8) {
		net_channels_2_4(cards, out);
		return;
	}
	const double *speed = nccl_constants[version].net_speed[gpu];
	out->speed = cards->gpus > 1 ? fmin(cards->speed, hop) : cards->speed;
	choose_speed(version, gpu, speed, cards, total, hop, out);
	out->tree_speed = tree_speed(cards, total, hop, speed, out);
}

/* ---- what a version expects ---- */

static int
servers(const NcclJob *job)
{
	return job->n_servers > 1 ? job->n_servers : 1;
}

static bool
alone(const NcclJob *job)
{
	return job->n_ranks == servers(job);
}

/* 0: one server, 1: two, 2: more. */
static int
scale(const NcclJob *job)
{
	return servers(job) < N_SCALES ? servers(job) - 1 : N_SCALES - 1;
}

/* Hops of a ring. */
static int
hops_of(Collective coll, int n)
{
	return coll == ALLREDUCE ? 2 * (n - 1) : coll == ALLGATHER || coll == REDUCESCATTER ? n - 1 : n;
}

/* Those of them between servers. */
static int
net_hops_of(const struct constants *k, const NcclJob *job, Collective coll)
{
	int n = servers(job);
	if (n == 1)
		return 0;
	return coll == ALLREDUCE ? 2 * (n - 1) + k->net_hops : n - 1;
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
ll_most(const struct constants *k, const NcclJob *job)
{
	return servers(job) == 1 ? k->ll_most[job->gpu] : net_ll_most[job->cpu][scale(job) - 1];
}

static double
ring_bandwidth(const struct constants *k, const NcclJob *job, Collective coll, NcclProtocol protocol, double all)
{
	bool both_ways = coll == ALLREDUCE || coll == REDUCE || servers(job) > 1;
	double channel = k->ring_ll128[job->gpu];
	if (protocol == NCCL_LL)
		all = fmin(ll_most(k, job), all * (both_ways ? k->ring_ll : k->ring_ll_one_way));
	if (protocol == NCCL_LL128)
		all = fmin(all * (alone(job) ? k->alone_ll128 : .92),
		    (channel > 0 ? channel : ll128_of_collective(coll)) * job->graph.channels);
	return all * job->n_ranks / hops_of(coll, job->n_ranks);
}

static double
tree_bandwidth(const struct constants *k, const NcclJob *job, Collective coll, NcclProtocol protocol, double all)
{
	double channel = k->tree_ll128[job->gpu][scale(job)];
	all = fmin(all * .92, job->graph.channels * k->tree[job->gpu][scale(job)]);
	if (protocol == NCCL_LL)
		all = fmin(all / 3.8, ll_most(k, job));
	if (protocol == NCCL_LL128)
		all = fmin(all * (servers(job) == 1 ? 7. / 9 : k->net_tree_ll128),
		    (channel > 0 ? channel : ll128_of_collective(coll)) * job->graph.channels);
	return all / 2 * (alone(job) ? k->alone_tree : 1);
}

/* us of a hop over the network, as a plugin has it: Simple waits for its data once more, until they are in the GPU. */
static double
net_hop(const struct constants *k, const NcclJob *job, NcclAlgorithm a, NcclProtocol p)
{
	if (k->alone_tree_hop && alone(job))
		a = NCCL_TREE;
	return k->net[a][p] + (k->net_delays ? job->net_latency * (p == NCCL_SIMPLE ? 2 : 1) : 0);
}

/* us of a hop within a server. */
static double
inner_hop(const struct constants *k, const NcclJob *job, NcclAlgorithm a, NcclProtocol p)
{
	const NcclGraph *graph = &job->graph;
	double hop = k->hop[!graph->nvlink || graph->through || (servers(job) > 1 && alone(job))][a][p];
	return servers(job) > 1 && p == NCCL_LL ? hop * k->net_ll_hop : hop;
}

/* Ranks after one another wait for each other in broadcast and reduce, where channels differ; a hop is then that of
 * trees, whose chunks are long. */
static double
whole_latency(const struct constants *k, const NcclJob *job, Collective coll, NcclProtocol p)
{
	const NcclGraph *graph = &job->graph;
	const Costs *hop = servers(job) > 1 ? &k->net : &k->hop[!graph->nvlink || graph->through];
	NcclAlgorithm as = p == NCCL_SIMPLE && !graph->same ? NCCL_TREE : NCCL_RING;
	return k->base[NCCL_RING][p] + (*hop)[as][p] * (graph->same ? 1 : hops_of(coll, job->n_ranks));
}

static double
ring_latency(const struct constants *k, const NcclJob *job, Collective coll, NcclProtocol p)
{
	int all = hops_of(coll, job->n_ranks), net = net_hops_of(k, job, coll);
	double inner = inner_hop(k, job, NCCL_RING, p);
	if (coll == BROADCAST || coll == REDUCE)
		return whole_latency(k, job, coll, p);
	if (servers(job) > 1 && k->net_delays)
		inner = fmax(inner, post[job->cpu] * (p == NCCL_SIMPLE ? 3 : 1));
	return k->base[NCCL_RING][p] + (all - net) * inner + net * net_hop(k, job, NCCL_RING, p);
}

static int
floor_log2(int n)
{
	int log = 0;
	while (n >>= 1)
		log++;
	return log;
}

static double
tree_latency(const struct constants *k, const NcclJob *job, NcclProtocol p)
{
	int chain = job->n_ranks / servers(job) - 1;
	return k->base[NCCL_TREE][p] + 2 * (chain * inner_hop(k, job, NCCL_TREE, p)
	    + floor_log2(servers(job)) * net_hop(k, job, NCCL_TREE, p));
}

static double
correction(const struct constants *k, NcclProtocol protocol, int64_t m)
{
	int step = 0;
	while (m >> 7 >> step && step < N_STEPS)
		step++;
	return step < N_STEPS ? k->correction[protocol][step] : 1;
}

/* Channels of kernels: two for each that is found; with fast network cards for each of few GPUs four. */
static int
all_channels(int version, const NcclJob *job)
{
	enum { FAST = 45, MANY = 16 };
	int most = nccl_constants[version].most_channels, n = 2 * job->graph.channels;
	n = n < most ? n : most;
	if (servers(job) == 1 || job->graph.speed <= FAST)
		return n;
	if (version == V_2_19_4 && job->gpu == NCCL_HOPPER && 2 * n <= most)
		n *= 2;
	if (version == V_2_30_7 && job->gpu >= NCCL_HOPPER && n < MANY)
		n *= 2;
	return n;
}

/* Rings of Simple take longer over servers, once each channel has some data for each rank. */
static double
plateau(int version, const NcclJob *job, Collective coll, NcclProtocol protocol, int64_t m)
{
	enum { BYTES = 64, BYTES_2_8_4 = 4096 };
	int64_t each = version == V_2_8_4 ? BYTES_2_8_4 : BYTES * (int64_t)all_channels(version, job);
	if (servers(job) == 1 || coll != ALLREDUCE || protocol != NCCL_SIMPLE || m < each * job->n_ranks)
		return 1;
	return version == V_2_8_4 || job->gpu < NCCL_AMPERE ? 1.9 : 1.4;
}

static bool
considers(const struct constants *k, const NcclJob *job, Collective coll, NcclAlgorithm a, NcclProtocol p)
{
	const NcclGraph *graph = &job->graph;
	if (a == NCCL_TREE && coll != ALLREDUCE)
		return false;
	if (p != NCCL_LL128)
		return true;
	if (!k->ll128[job->gpu] || (servers(job) > 1 && graph->far))
		return false;
	return (servers(job) > 1 && alone(job)) || (graph->nvlink && (k->ll128_through || !graph->through));
}

double
nccl_expected_time(int version, const NcclJob *job, Collective coll, NcclAlgorithm algorithm,
    NcclProtocol protocol, int64_t m)
{
	enum { AMPERE_MOST = 235 };	/* GB/s, 2.8.4 */
	const struct constants *k = &nccl_constants[version];
	const NcclGraph *graph = &job->graph;
	bool inner = algorithm == NCCL_TREE && servers(job) == 2;
	double all = graph->channels * (inner ? graph->tree_speed : graph->speed);
	if (version == V_2_4_8 || !considers(k, job, coll, algorithm, protocol))
		return -1;
	if (version == V_2_8_4 && job->gpu == NCCL_AMPERE)
		all = fmin(all, AMPERE_MOST);
	if (algorithm == NCCL_TREE)
		return tree_latency(k, job, protocol) + (double)m
		    / (1000 * tree_bandwidth(k, job, coll, protocol, all) * correction(k, protocol, m));
	return ring_latency(k, job, coll, protocol) * plateau(version, job, coll, protocol, m)
	    + (double)m / (1000 * ring_bandwidth(k, job, coll, protocol, all));
}

/* ---- the choice ---- */

static int64_t
divide_up(int64_t a, int64_t b)
{
	return (a - 1) / b + 1;
}

/* 2.4.8: allreduces over servers up to this number of bytes go over trees: until what these lose of the bandwidth is
 * as much as what they gain of the latency. A chain of the GPUs of each server, and a tree over servers. */
static int64_t
tree_most_2_4(const NcclJob *job)
{
	enum { RING_HOP = 6, INNER_HOP = 4, TREE_HOP = 15, CHANNEL = 5000 };	/* us; bytes/us */
	int n = servers(job);
	bool nvlink = job->graph.nvlink;
	double rings = nvlink ? CHANNEL * job->graph.channels : CHANNEL, trees = nvlink ? rings * 3 / 4 : rings * 2 / 3;
	int gain = RING_HOP * (job->n_ranks - 1) - TREE_HOP * floor_log2(n) - INNER_HOP * (job->n_ranks / n - 1);
	if (n == 1 || gain <= 0)
		return 0;
	if (nvlink && n == 2)
		return INT64_MAX;
	return (int64_t)(rings * trees / (rings - trees) * gain);
}

/* Threads and channels grow until each thread has few bytes; LL serves up to many more of them. */
static void
choose_2_4(const NcclJob *job, Collective coll, int64_t m, NcclChoice *out)
{
	enum { LEAST_THREADS = 64, MOST_THREADS = 256, FEW = 8, MANY = 64, MANY_PASCAL = 32, TREE_TIMES = 4 };
	bool tree = coll == ALLREDUCE && m <= tree_most_2_4(job);
	int64_t parts = coll == BROADCAST || coll == REDUCE || tree ? 1 : job->n_ranks, threads = LEAST_THREADS, n;
	int64_t many = (job->gpu == NCCL_PASCAL ? MANY_PASCAL : MANY) * (tree ? TREE_TIMES : 1);
	while (divide_up(m, threads * parts) > FEW && 2 * threads <= MOST_THREADS)
		threads *= 2;
	n = divide_up(m, threads * parts * FEW);
	n = n < job->graph.channels ? n : job->graph.channels;
	bool few = m <= n * threads * parts * many;
	*out = (NcclChoice){ .algorithm = tree ? NCCL_TREE : NCCL_RING, .protocol = few ? NCCL_LL : NCCL_SIMPLE,
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
	int n = all_channels(version, job);
	if (ring && choice->protocol == NCCL_LL)
		each *= job->n_ranks;
	if (ring && choice->protocol == NCCL_SIMPLE && graph->speed * graph->channels <= PCIE)
		each /= 2;
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
