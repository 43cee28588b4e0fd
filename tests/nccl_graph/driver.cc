/* NCCL's src/graph, alone: the rings that NCCL makes of topologies, by its own search or from a graph file.
 *
 *     driver TOPOLOGY GPUS GRAPH [TOPOLOGY GPUS GRAPH]...
 *
 * For each server of a job: its topology as NCCL writes it, the numbers of the job's GPUs (0,1,3), and the file that
 * NCCL_GRAPH_FILE would name; -: none. Ranks are those of the servers in this order, and of each the GPUs in theirs.
 * Prints, for each server and of rings and trees, what NCCL has after ncclTopoCompute, and then the rings of the whole
 * job, as ncclTopoPreset and ncclTopoPostset join them. Exit status 1: NCCL refused, and why.
 *
 * The steps are those of initTransportsRank in src/init.cc; no peer of a rank is asked for what it can reach, so that
 * GPUs are reached as their topology has it. Below are stubs for what src/graph needs of the rest of NCCL. */
#include "comm.h"
#include "graph.h"
#include "topo.h"
#include "transport.h"
#include "xml.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

static const char *graph_file;		/* of the server that is searched */

/* ---- stubs ---- */

thread_local int ncclDebugNoWarn;

static void say(const char *format, va_list ap)
{
	vfprintf(stderr, format, ap);
	fputc('\n', stderr);
}

int ncclDebugLevel = NCCL_LOG_WARN;
uint64_t ncclDebugMask;

#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 30, 0)
void ncclDebugLogInternal(ncclDebugLogLevel level, unsigned long, const char *, const char *, int, const char *format,
    ...)
#else
void ncclDebugLog(ncclDebugLogLevel level, unsigned long, const char *, int, const char *format, ...)
#endif
{
	va_list ap;
	va_start(ap, format);
	if (level == NCCL_LOG_WARN)
		say(format, ap);
	va_end(ap);
}

const char *ncclGetEnv(const char *name)
{
	if (strcmp(name, "NCCL_GRAPH_FILE") == 0)
		return graph_file;
	return getenv(name);
}

/* As it was set, or its default. That peers may reach each other is not asked of NVML. */
static int64_t parameter(const char *name, int64_t otherwise)
{
	const char *value = getenv(name);
	if (strcmp(name, "NCCL_IGNORE_DISABLED_P2P") == 0)
		return 2;
	return value ? atoll(value) : otherwise;
}

#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 29, 0)
int64_t ncclLoadParam(const char *name, int64_t otherwise, int64_t, int64_t *cache, int8_t *)
{
	return *cache = parameter(name, otherwise);
}
#else
void ncclLoadParam(const char *name, int64_t otherwise, int64_t, int64_t *cache)
{
	*cache = parameter(name, otherwise);
}
#endif

int64_t ncclParamWorkArgsBytes()
{
	return INT64_MAX;
}

uint64_t getHostHash()
{
	return 0;
}

ncclResult_t busIdToInt64(const char *busId, int64_t *id)
{
	std::string digits;
	for (; *busId; busId++)
		if (isxdigit((unsigned char)*busId))
			digits += *busId;
	*id = strtoll(digits.c_str(), nullptr, 16);
	return ncclSuccess;
}

/* ---- the search ---- */

#define CHECK(call) do { \
		ncclResult_t result = (call); \
		if (result != ncclSuccess) { \
			fprintf(stderr, "%s: result %d\n", #call, result); \
			exit(1); \
		} \
	} while (0)

struct Server {
	struct ncclTopoSystem *topo;
	struct ncclTopoGraph graph[NCCL_NUM_ALGORITHMS];
	int first, n;		/* ranks */
};

static struct ncclXml *read_xml(const char *path)
{
	struct ncclXml *xml;
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 21, 0)
	CHECK(xmlAlloc(&xml, NCCL_TOPO_XML_MAX_NODES));
#else
	CHECK(ncclCalloc(&xml, 1));
#endif
	CHECK(ncclTopoGetXmlFromFile(path, xml, 1));
	return xml;
}

/* The GPUs of a job are those that have a rank; the others go, as do PCI devices with nothing below them. */
static void mark(struct ncclXml *xml, const std::vector<int> &gpus, int first)
{
	for (int i = 0; i < xml->maxIndex; i++) {
		struct ncclXmlNode *node = &xml->nodes[i];
		int dev, index;
		if (strcmp(node->name, "net") == 0)
			CHECK(xmlSetAttrInt(node, "keep", 1));
		if (strcmp(node->name, "cpu") == 0) {
			CHECK(xmlSetAttr(node, "host_hash", "0x0"));
			CHECK(xmlGetAttrIndex(node, "affinity", &index));
			if (index >= 0)
				CHECK(xmlUnsetAttr(node, "affinity"));
		}
		if (strcmp(node->name, "gpu") != 0)
			continue;
		CHECK(xmlGetAttrInt(node, "dev", &dev));
		CHECK(xmlGetAttrIndex(node, "rank", &index));
		if (index >= 0)
			CHECK(xmlUnsetAttr(node, "rank"));
		for (size_t r = 0; r < gpus.size(); r++)
			if (gpus[r] == dev) {
				CHECK(xmlSetAttrInt(node, "keep", 1));
				CHECK(xmlSetAttrInt(node, "rank", first + (int)r));
			}
	}
	CHECK(ncclTopoTrimXml(xml));
}

static struct ncclTopoSystem *read_system(const char *path, const std::vector<int> &gpus, int first, int nranks)
{
	struct ncclXml *xml = read_xml(path);
	struct ncclTopoSystem *topo;
	static struct ncclComm all;
	mark(xml, gpus, first);
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 21, 0)
	CHECK(ncclTopoGetSystemFromXml(xml, &topo, getHostHash()));
#else
	CHECK(ncclTopoGetSystemFromXml(xml, &topo));
#endif
	free(xml);
	if (topo->nodes[GPU].count != (int)gpus.size()) {
		fprintf(stderr, "%s: it has %d of the %zu GPUs\n", path, topo->nodes[GPU].count, gpus.size());
		exit(1);
	}
	all.rank = first;
	all.nRanks = nranks;
	CHECK(ncclTopoComputePaths(topo, nullptr));
	CHECK(ncclTopoTrimSystem(topo, &all));
	CHECK(ncclTopoComputePaths(topo, nullptr));
	CHECK(ncclTopoSearchInit(topo));
	return topo;
}

static void search(Server *server)
{
	struct ncclTopoGraph *ring = &server->graph[NCCL_ALGO_RING], *tree = &server->graph[NCCL_ALGO_TREE];
	ring->id = 0;
	ring->pattern = NCCL_TOPO_PATTERN_RING;
	ring->minChannels = 1;
	ring->maxChannels = MAXCHANNELS / 2;
	CHECK(ncclTopoCompute(server->topo, ring));
	tree->id = 1;
	tree->pattern = NCCL_TOPO_PATTERN_BALANCED_TREE;
	tree->minChannels = tree->maxChannels = ring->nChannels;
	CHECK(ncclTopoCompute(server->topo, tree));
}

static int number_of_net(const struct ncclTopoSystem *topo, int64_t id)
{
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 21, 0)
	for (int i = 0; i < topo->nodes[NET].count; i++)
		if (topo->nodes[NET].nodes[i].id == id)
			return topo->nodes[NET].nodes[i].net.dev;
	return -1;
#else
	return (int)id;
#endif
}

static int number_of_gpu(const struct ncclTopoSystem *topo, int rank)
{
	for (int i = 0; i < topo->nodes[GPU].count; i++)
		if (topo->nodes[GPU].nodes[i].gpu.rank == rank)
			return topo->nodes[GPU].nodes[i].gpu.dev;
	return -1;
}

/* A line for each channel: its NICs, and the numbers of GPUs. */
static void print_graph(const Server *server, int s, const char *name, const struct ncclTopoGraph *graph)
{
	bool far = server->n < server->topo->nodes[GPU].count || graph->inter[0] || graph->inter[1];
	printf("server %d %s pattern %d channels %d speed %g %g path %s %s\n", s, name, graph->pattern,
	    graph->nChannels, graph->bwIntra, graph->bwInter, topoPathTypeStr[graph->typeIntra],
	    topoPathTypeStr[graph->typeInter]);
	for (int c = 0; c < graph->nChannels; c++) {
		printf("server %d %s channel %d gpus", s, name, c);
		for (int i = 0; i < server->n; i++)
			printf(" %d", number_of_gpu(server->topo, graph->intra[c * server->n + i]));
		if (far)
			printf(" nets %d %d", number_of_net(server->topo, graph->inter[2 * c]),
			    number_of_net(server->topo, graph->inter[2 * c + 1]));
		putchar('\n');
	}
}

/* ---- joined ---- */

struct Rank {
	struct ncclComm *comm;
	struct ncclTopoGraph own[NCCL_NUM_ALGORITHMS], *graph[NCCL_NUM_ALGORITHMS];
	struct ncclTopoRanks topo;
};

/* What all ranks have in common: the least that any has. */
static void level(std::vector<Rank> &rank)
{
	for (int a : { NCCL_ALGO_RING, NCCL_ALGO_TREE }) {
		int channels = MAXCHANNELS, cross = 0;
		for (Rank &r : rank) {
			channels = std::min(channels, r.own[a].nChannels);
			cross = std::max(cross, r.own[a].crossNic);
		}
		for (Rank &r : rank) {
			r.own[a].nChannels = channels;
			r.own[a].crossNic = cross;
		}
	}
}

static void prepare(Rank *r, const Server &server, int s, int number, int nranks, int nservers)
{
	struct ncclComm *comm;
	CHECK(ncclCalloc(&r->comm, 1));
	comm = r->comm;
	CHECK(ncclCalloc(&comm->sharedRes, 1));
	CHECK(ncclCalloc(&comm->rankToNode, nranks));
	comm->sharedRes->owner = comm;
	comm->config.minCTAs = 1;
	comm->config.maxCTAs = MAXCHANNELS;
	comm->rank = number;
	comm->nRanks = nranks;
	comm->nNodes = nservers;
	comm->node = s;
	comm->localRanks = comm->maxLocalRanks = server.n;
	comm->topo = server.topo;
	comm->minCompCap = comm->maxCompCap = server.topo->nodes[GPU].nodes[0].gpu.cudaCompCap;
	memcpy(r->own, server.graph, sizeof r->own);
	for (int a = 0; a < NCCL_NUM_ALGORITHMS; a++)
		r->graph[a] = &r->own[a];
	comm->nChannels = std::min(r->own[NCCL_ALGO_RING].nChannels, r->own[NCCL_ALGO_TREE].nChannels);
	CHECK(ncclTopoPreset(comm, r->graph, &r->topo));
}

/* Rings over all servers; each rank builds them, and has to find the same. */
static void join(const std::vector<Server> &servers, int nranks)
{
	std::vector<Rank> rank(nranks);
	std::vector<struct ncclTopoRanks *> topo(nranks);
	std::vector<int> first, patterns, node(nranks), mine(nranks * MAXCHANNELS), rings;
	for (size_t s = 0; s < servers.size(); s++) {
		for (int i = 0; i < servers[s].n; i++) {
			int r = servers[s].first + i;
			prepare(&rank[r], servers[s], (int)s, r, nranks, (int)servers.size());
			node[r] = (int)s;
		}
		first.push_back(servers[s].first);
		patterns.push_back(servers[s].graph[NCCL_ALGO_TREE].pattern);
	}
	level(rank);
	int channels = std::min(rank[0].own[NCCL_ALGO_RING].nChannels, rank[0].own[NCCL_ALGO_TREE].nChannels), all = 0;
	for (int r = 0; r < nranks; r++) {
		struct ncclComm *comm = rank[r].comm;
		/* Rings of servers with an odd number are exchanged in place: each rank has its own copy. */
		std::vector<struct ncclTopoRanks> copy(nranks);
		for (int k = 0; k < nranks; k++) {
			copy[k] = rank[k].topo;
			topo[k] = &copy[k];
		}
		memcpy(comm->rankToNode, node.data(), nranks * sizeof(int));
		for (int c = 0; c < channels; c++)
			comm->channels[channels + c] = comm->channels[comm->nChannels + c];
		comm->nChannels = channels;
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 21, 0)
		CHECK(ncclTopoPostset(comm, first.data(), patterns.data(), topo.data(), mine.data(), rank[r].graph, nullptr));
#else
		CHECK(ncclTopoPostset(comm, first.data(), patterns.data(), topo.data(), mine.data(), rank[r].graph));
#endif
		all = comm->nChannels;
		for (int c = 0; c < all; c++) {
			auto ring = mine.begin() + c * nranks;
			std::rotate(ring, std::find(ring, ring + nranks, 0), ring + nranks);
		}
		if (r > 0 && !std::equal(rings.begin(), rings.end(), mine.begin())) {
			fprintf(stderr, "rank %d has other rings than rank 0\n", r);
			exit(1);
		}
		rings.assign(mine.begin(), mine.begin() + all * nranks);
	}
	printf("job channels %d nvlink %g\n", all, ncclTopoNVLinkBw(rank[0].comm->minCompCap));
	for (int c = 0; c < all; c++) {
		printf("job channel %d ranks", c);
		for (int i = 0; i < nranks; i++)
			printf(" %d", rings[c * nranks + i]);
		putchar('\n');
	}
}

int main(int argc, char **argv)
{
	std::vector<std::vector<int>> gpus;
	std::vector<Server> servers((argc - 1) / 3);
	int nranks = 0;
	for (int i = 1; i + 2 < argc; i += 3) {
		std::vector<int> list;
		for (char *at = argv[i + 1]; *at; at += *at == ',')
			list.push_back((int)strtol(at, &at, 10));
		gpus.push_back(list);
		nranks += (int)list.size();
	}
	for (size_t s = 0, first = 0; s < servers.size(); first += servers[s++].n) {
		Server *server = &servers[s];
		*server = {};
		server->first = (int)first;
		server->n = (int)gpus[s].size();
		server->topo = read_system(argv[3 * s + 1], gpus[s], server->first, nranks);
		graph_file = strcmp(argv[3 * s + 3], "-") == 0 ? nullptr : argv[3 * s + 3];
		search(server);
		print_graph(server, (int)s, "ring", &server->graph[NCCL_ALGO_RING]);
		print_graph(server, (int)s, "tree", &server->graph[NCCL_ALGO_TREE]);
	}
	join(servers, nranks);
	return 0;
}
