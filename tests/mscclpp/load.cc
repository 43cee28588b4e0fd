/* Plans, loaded by MSCCL++'s own loader for every rank, for a small message and a larger one. Of each file: "FILE:
 * loaded for N ranks", or why not. What the executor checks when it copies a plan to a GPU, or does not check there, is
 * checked here: its arrays have room for everything. */
#include "execution_plan.hpp"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iostream>

using namespace mscclpp;

static void want(bool holds, const std::string &what)
{
	if (!holds)
		throw std::runtime_error("no room for " + what);
}

static void load(const std::string &path, int rank, size_t input, size_t output)
{
	ExecutionPlan::Impl plan(path, rank);
	plan.loadExecutionPlan(input, output, 0, 0);
	for (int t = 0; t < plan.getThreadblockCount(); t++) {
		want(plan.getOperations(t).size() <= MAX_OPERATION, "operations");
		want(plan.threadblockMemoryChannels.at(t).size() <= MAX_CHANNEL, "memory channels");
		want(plan.threadblockPortChannels.at(t).size() <= MAX_CHANNEL, "port channels");
		want(plan.threadblockNvlsChannels.at(t).size() <= MAX_CHANNEL, "switch channels");
		want(plan.threadblockMemoryChannelBuffers.at(t).size() <= MAX_CHANNEL, "remote buffers");
		want(plan.threadblockPortChannelBuffers.at(t).size() <= MAX_CHANNEL, "remote buffers of ports");
		for (const Operation &op : plan.getOperations(t))
			if (op.type != OperationType::PIPELINE && op.type != OperationType::SEM_ACQUIRE
			    && op.type != OperationType::SEM_RELEASE && op.type != OperationType::BARRIER)
				want(op.nChannels <= MAX_CHANNEL_PER_OPERATION && op.nInputs
				    <= MAX_LOCAL_BUFFER_PER_OPERATION + MAX_CHANNEL_PER_OPERATION && op.nOutputs
				    <= MAX_LOCAL_BUFFER_PER_OPERATION + MAX_CHANNEL_PER_OPERATION, "ranges");
	}
	plan.calScratchBufferSize(input, output);
}

static void load_all(const std::string &path)
{
	std::ifstream file(path);
	nlohmann::json plan = nlohmann::json::parse(file);
	int n = 0;
	for (const auto &gpu : plan["gpus"]) {
		size_t in = gpu["input_chunks"], out = gpu["output_chunks"], chunk = 16;
		if (in == 0 || out == 0)	/* it would divide by them */
			throw std::runtime_error("no chunks of input, or of output: the loader divides by both");
		size_t message = (plan["collective"] == "allgather" ? out : in) * chunk;
		size_t least = plan.value("min_message_size", size_t(0)) / message + 1;
		size_t most = plan.value("max_message_size", size_t(-1)) / message;
		for (size_t times : { least, std::min(most, least + 4095) })
			load(path, n, in * chunk * times, out * chunk * times);
		n++;
	}
	std::cout << path << ": loaded for " << n << " ranks\n";
}

int main(int argc, char **argv)
{
	int failed = 0;
	for (int i = 1; i < argc; i++)
		try {
			load_all(argv[i]);
		} catch (const std::exception &e) {
			std::cout << argv[i] << ": " << e.what() << "\n";
			failed++;
		}
	return failed > 0;
}
