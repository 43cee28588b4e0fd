/* Plans, loaded by MSCCL++'s own loader and executed by its own kernel, compiled for the host: twins.hpp. Of each file:
 * "FILE: right", or what is not. Every GPU calls the plan several times, with other inputs, and waits for no other in
 * between. Messages are small, and so are units of pipelines, so that there are several of both. */
#include <stubs.hpp>
#include "execution_common.hpp"
namespace mscclpp {
__shared__ int4 sharedMem[sizeof(DeviceExecutionPlan) / sizeof(int4)];
}
#include "execution_kernel.hpp"
#include "execution_plan.hpp"

#include <cstdio>
#include <fstream>
#include <iostream>
#include <random>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

using namespace mscclpp;

enum { THREADS = 16, CALLS = 3, STACK = 64 << 10, UNIT = 64, PATIENCE = 3000 };

Index threadIdx, blockIdx, blockDim = { THREADS };
std::vector<Multicast> mscclpp::multicasts;
extern "C" char __start_of_block, __stop_of_block, __start_of_gpu, __stop_of_gpu;

struct Gpu;

struct Block {
	Gpu *gpu;
	unsigned id;
	std::vector<char> shared;
	int arrived, round;
};

struct Fiber {
	Block *block;
	unsigned id;
	ucontext_t context;
	void *stack;
	bool ended, begun;
};

struct Gpu {
	std::unique_ptr<ExecutionPlan::Impl> plan;
	int rank, call;
	size_t in, out, scratch;
	std::vector<char> memory, scratch_memory, device;
	char *input, *output, *temporary;
	std::vector<uint64_t> came, waited;	/* of memory channels */
	std::deque<Port> port;
	std::vector<uint64_t> port_came, port_waited;
	std::vector<char *> ids;
	std::vector<DeviceExecutionPlan> blocks;
	std::vector<DeviceSemaphore> semaphores;
	std::deque<Block> block;
	std::vector<Fiber *> fiber;
};

static ucontext_t scheduler;
static Fiber *current;
static bool moved;
static std::mt19937 rng;

/* ---- fibers ---- */

void give_way()
{
	swapcontext(&current->context, &scheduler);
}

void __syncthreads()
{
	Block *b = current->block;
	int round = b->round;
	moved = true;
	if (++b->arrived == THREADS) {
		b->arrived = 0;
		b->round++;
	}
	while (b->round == round)
		give_way();
}

static void enter()
{
	Gpu *g = current->block->gpu;
	bool half = g->plan->doubleScratchBuffer && g->call % 2 == 1;
	executionKernel<int32_t, LL16Packet, false>(g->rank, (int32_t *)g->input, (int32_t *)g->output,
	    (int32_t *)g->temporary, half ? (uint32_t)(g->scratch / 2) : 0, 0, g->blocks.data(), g->semaphores.data(),
	    0, (uint32_t)g->call + 1);
	current->ended = true;
	moved = true;
	swapcontext(&current->context, &scheduler);
}

static void run(Fiber *fiber)
{
	Block *b = fiber->block;
	current = fiber;
	threadIdx.x = fiber->id;
	blockIdx.x = b->id;
	if (!fiber->begun) {
		fiber->begun = true;
		getcontext(&fiber->context);
		fiber->context.uc_stack.ss_sp = fiber->stack;
		fiber->context.uc_stack.ss_size = STACK;
		fiber->context.uc_link = nullptr;
		makecontext(&fiber->context, enter, 0);
		moved = true;
	}
	swapcontext(&scheduler, &fiber->context);
}

static void run_block(Block *b)
{
	std::vector<Fiber *> those;
	for (Fiber *f : b->gpu->fiber)
		if (f->block == b && !f->ended && rng() % 4)
			those.push_back(f);
	if (those.empty())
		return;
	std::shuffle(those.begin(), those.end(), rng);
	memcpy(&__start_of_block, b->shared.data(), b->shared.size());
	memcpy(&__start_of_gpu, b->gpu->device.data(), b->gpu->device.size());
	for (Fiber *f : those)
		run(f);
	memcpy(b->shared.data(), &__start_of_block, b->shared.size());
	memcpy(b->gpu->device.data(), &__start_of_gpu, b->gpu->device.size());
}

/* ---- GPUs ---- */

static uint32_t input_of(int rank, int call, size_t i)
{
	return (uint32_t)(i * 2654435761u + (unsigned)rank * 40503u + (unsigned)call * 977u) ^ (uint32_t)(i >> 3);
}

/* Element i of the output of a rank; false: it may be anything. */
static bool wanted(const std::string &coll, int n, int rank, int root, int call, size_t i, size_t block, uint32_t *out)
{
	*out = 0;
	if ((coll == "reduce" || coll == "gather") && rank != root)
		return false;
	if (coll == "allreduce" || coll == "reduce" || coll == "reducescatter")
		for (int r = 0; r < n; r++)
			*out += input_of(r, call, coll == "reducescatter" ? rank * block + i : i);
	else if (coll == "broadcast")
		*out = input_of(root, call, i);
	else if (coll == "scatter")
		*out = input_of(root, call, rank * block + i);
	else if (coll == "allgather" || coll == "gather")
		*out = input_of((int)(i / block), call, i % block);
	else
		*out = input_of((int)(i / block), call, rank * block + i % block);
	return true;
}

static void begin(Gpu *g)
{
	if (!g->plan->isInPlace)
		memset(g->output, 0xee, g->out);
	if (g->plan->isInPlace && g->plan->collective == "allgather")
		memset(g->output, 0xee, g->out);
	for (size_t i = 0; i < g->in / 4; i++)
		((uint32_t *)g->input)[i] = input_of(g->rank, g->call, i);
	for (Fiber *f : g->fiber)
		f->begun = f->ended = false;
	for (Block &b : g->block)
		b.arrived = b.round = 0;
}

struct Run {
	std::deque<Gpu> gpu;
	std::string coll;
	std::vector<bool> right;	/* for each root */
};

static void end(Run *run, Gpu *g)
{
	int n = (int)run->gpu.size();
	bool many = run->coll == "allgather" || run->coll == "gather" || run->coll == "alltoall";
	size_t block = g->out / 4 / (many ? n : 1);
	for (int root = 0; root < n; root++)
		for (size_t i = 0; i < g->out / 4; i++) {
			uint32_t want;
			if (wanted(run->coll, n, g->rank, root, g->call, i, block, &want)
			    && ((uint32_t *)g->output)[i] != want)
				run->right[root] = false;
		}
}

/* Sizes of buffers, and their places. */
static void place(Gpu *g, const nlohmann::json &json)
{
	const auto &of = json["gpus"][g->rank];
	size_t chunk = 16 * 10, in = of["input_chunks"], out = of["output_chunks"];
	if (in == 0 || out == 0)
		throw std::runtime_error("no chunks of input, or of output: the loader divides by both");
	g->in = in * chunk;
	g->out = out * chunk;
	g->plan->loadExecutionPlan(g->in, g->out, 0, 0);
	g->scratch = g->plan->calScratchBufferSize(g->in, g->out);
	g->memory.resize(g->in + g->out + 64);
	g->scratch_memory.resize(g->scratch + 64);
	g->temporary = (char *)(((uintptr_t)g->scratch_memory.data() + 63) / 64 * 64);
	g->output = (char *)(((uintptr_t)g->memory.data() + 63) / 64 * 64);
	g->input = g->output + g->out;
	if (!g->plan->isInPlace)
		return;
	std::string coll = json["collective"];
	g->input = g->output;
	if (coll == "allgather")
		g->input += g->rank * g->in;
	if (coll == "reducescatter")
		g->output += g->rank * g->out;
}

static char *buffer_of(Gpu *g, BufferType type)
{
	return type == BufferType::INPUT ? g->input : type == BufferType::OUTPUT ? g->output : g->temporary;
}

static std::vector<int> peers_of(const Gpu *g, ChannelType type)
{
	std::vector<int> out;
	for (const auto &info : g->plan->getChannelInfos(type))
		out.insert(out.end(), info.connectedPeers.begin(), info.connectedPeers.end());
	return out;
}

/* The k-th channel of a to b is one with the k-th of b to a. */
static size_t other_end(Run *run, const Gpu *g, ChannelType type, const std::vector<int> &peers, size_t k)
{
	std::vector<int> theirs = peers_of(&run->gpu[peers[k]], type);
	long nth = std::count(peers.begin(), peers.begin() + (long)k, peers[k]);
	for (size_t i = 0; i < theirs.size(); i++)
		if (theirs[i] == g->rank && nth-- == 0)
			return i;
	throw std::runtime_error("a channel without another end");
}

static Counters counters_of(Run *run, Gpu *g, ChannelType type, const std::vector<int> &peers, size_t k)
{
	Gpu *peer = &run->gpu[peers[k]];
	size_t other = other_end(run, g, type, peers, k);
	if (type == ChannelType::MEMORY)
		return { &g->came[k], &g->waited[k], &peer->came[other] };
	return { &g->port_came[k], &g->port_waited[k], &peer->port_came[other] };
}

/* As the executor does for a GPU (src/core/executor/executor.cc). */
static void make_blocks(Run *run, Gpu *g)
{
	std::vector<int> memory = peers_of(g, ChannelType::MEMORY), port = peers_of(g, ChannelType::PORT);
	std::vector<char *> addresses;
	std::vector<MemoryId> ids;
	g->ids = { g->input, g->output, g->temporary };
	for (const auto &info : g->plan->getRemoteBufferInfos())
		for (ChannelType type : info.accessChannelTypes) {
			char *buffer = buffer_of(&run->gpu[info.rank], info.bufferType);
			if (type == ChannelType::MEMORY) {
				addresses.push_back(buffer);
			} else if (type == ChannelType::PORT) {
				ids.push_back((MemoryId)g->ids.size());
				g->ids.push_back(buffer);
			}
		}
	for (size_t k = 0; k < port.size(); k++) {
		g->port[k].memory = &g->ids;
		g->port[k].counters = counters_of(run, g, ChannelType::PORT, port, k);
	}
	for (const SemaphoreInfo &info : g->plan->semaphoreInfos)
		g->semaphores.emplace_back(info.initValue);
	std::vector<char *> switches;
	auto found = g->plan->nvlsInfos.find(g->rank);
	if (found != g->plan->nvlsInfos.end())
		for (const NvlsInfo &info : found->second) {
			Multicast m = { nullptr, std::max(g->in, g->out), {} };
			m.base = (char *)mmap(nullptr, m.size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
			for (int rank : info.ranks)
				m.buffer.push_back(buffer_of(&run->gpu[rank], info.bufferType));
			multicasts.push_back(m);
			switches.push_back(m.base);
		}
	for (int t = 0; t < g->plan->getThreadblockCount(); t++) {
		DeviceExecutionPlan block = {};
		std::vector<Operation> ops = g->plan->getOperations(t);
		int i = 0;
		block.nOperations = (uint16_t)ops.size();
		for (int k : g->plan->threadblockMemoryChannels.at(t))
			static_cast<Counters &>(block.channels.memoryChannels[i++])
			    = counters_of(run, g, ChannelType::MEMORY, memory, k);
		i = 0;
		for (int k : g->plan->threadblockPortChannels.at(t))
			block.channels.portChannels[i++].port = &g->port[k];
		i = 0;
		for (int k : g->plan->threadblockNvlsChannels.at(t))
			block.channels.nvlsChannels[i++].mcPtr = switches.at(k);
		i = 0;
		for (const auto &pair : g->plan->threadblockMemoryChannelBuffers.at(t)) {
			block.remoteBuffers.memoryChannelBufferPtrs[i] = addresses.at(pair.first);
			block.remoteBuffers.memoryChannelBufferTypes[i++] = pair.second;
		}
		i = 0;
		for (const auto &pair : g->plan->threadblockPortChannelBuffers.at(t)) {
			block.remoteBuffers.portChannelBufferIds[i] = ids.at(pair.first);
			block.remoteBuffers.portChannelBufferTypes[i++] = pair.second;
		}
		std::copy(ops.begin(), ops.end(), block.operations);
		g->blocks.push_back(block);
	}
}

static void make_fibers(Gpu *g)
{
	g->device.resize((size_t)(&__stop_of_gpu - &__start_of_gpu));
	for (size_t t = 0; t < g->blocks.size(); t++) {
		std::vector<char> shared((size_t)(&__stop_of_block - &__start_of_block));
		g->block.push_back({ g, (unsigned)t, shared, 0, 0 });
		for (unsigned k = 0; k < THREADS; k++)
			g->fiber.push_back(new Fiber{ &g->block.back(), k, {}, malloc(STACK), false, false });
	}
}

/* ---- runs ---- */

static void run_ports(Run *run)
{
	for (Gpu &g : run->gpu)
		for (Port &port : g.port)
			while (!port.requests.empty() && rng() % 3) {
				Request r = port.requests.front();
				if (r.size)
					memcpy(r.to, r.from, r.size);
				if (r.signals)
					++*port.counters.other;
				port.requests.pop_front();
				moved = true;
			}
}

/* False: nothing goes on any more. */
static bool run_calls(Run *run)
{
	int idle = 0;
	for (;;) {
		std::vector<Block *> blocks;
		moved = false;
		for (Gpu &g : run->gpu) {
			bool ended = g.call < CALLS;
			for (Fiber *f : g.fiber)
				ended = ended && f->ended;
			if (ended) {
				end(run, &g);
				moved = true;
				if (++g.call < CALLS)
					begin(&g);
			}
			for (Block &b : g.block)
				if (g.call < CALLS && rng() % 4)
					blocks.push_back(&b);
		}
		std::shuffle(blocks.begin(), blocks.end(), rng);
		for (Block *b : blocks)
			run_block(b);
		run_ports(run);
		bool all = true;
		for (Gpu &g : run->gpu)
			all = all && g.call == CALLS;
		if (all)
			return true;
		idle = moved ? 0 : idle + 1;
		if (idle > PATIENCE)
			return false;
	}
}

static void make_small(nlohmann::json *json)
{
	(*json)["min_message_size"] = 0;
	(*json)["max_message_size"] = (uint64_t)-1;
	for (auto &gpu : (*json)["gpus"])
		for (auto &block : gpu["threadblocks"])
			for (auto &op : block["ops"])
				if (op["name"] == "pipeline")
					op["iter_context"]["unit_size"] = (int)UNIT;
}

static std::string execute(const std::string &path, unsigned seed)
{
	char copy[] = "/tmp/plan.XXXXXX";
	std::ifstream file(path);
	nlohmann::json json = nlohmann::json::parse(file);
	Run run;
	int n = (int)json["gpus"].size();
	rng.seed(seed);
	multicasts.clear();
	make_small(&json);
	close(mkstemp(copy));
	std::ofstream(copy) << json;
	run.coll = json["collective"];
	run.right.assign(n, true);
	for (int r = 0; r < n; r++) {
		Gpu &g = run.gpu.emplace_back();
		g.rank = r;
		g.plan = std::make_unique<ExecutionPlan::Impl>(copy, r);
		place(&g, json);
		g.came.resize(peers_of(&g, ChannelType::MEMORY).size());
		g.waited.resize(g.came.size());
		g.port_came.resize(peers_of(&g, ChannelType::PORT).size());
		g.port_waited.resize(g.port_came.size());
		g.port.resize(g.port_came.size());
	}
	unlink(copy);
	for (Gpu &g : run.gpu) {
		make_blocks(&run, &g);
		make_fibers(&g);
	}
	for (Gpu &g : run.gpu)
		begin(&g);
	bool ended = run_calls(&run), rooted = run.coll == "broadcast" || run.coll == "reduce" || run.coll == "gather"
	    || run.coll == "scatter", right = false;
	for (int root = 0; root < (rooted ? n : 1); root++)
		right = right || run.right[root];
	for (Gpu &g : run.gpu)
		for (Fiber *f : g.fiber) {
			free(f->stack);
			delete f;
		}
	return !ended ? "hangs" : right ? "right" : "wrong";
}

int main(int argc, char **argv)
{
	int failed = 0;
	for (int i = 2; i < argc; i++) {
		std::string said;
		try {
			said = execute(argv[i], (unsigned)atoi(argv[1]));
		} catch (const std::exception &e) {
			said = e.what();
		}
		std::cout << argv[i] << ": " << said << std::endl;
		failed += said != "right";
	}
	return failed > 0;
}
