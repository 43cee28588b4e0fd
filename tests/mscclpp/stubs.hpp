/* What the loader of MSCCL++ (src/core/executor/execution_plan.cc) needs of the rest of it, to be compiled alone: types
 * that it has sizes of, in twins.hpp, and the class that it fills in. */
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

#include <twins.hpp>
#include <mscclpp/copy_device.hpp>

namespace mscclpp {
enum class ErrorCode { ExecutorError };
struct Error : std::runtime_error {
	Error(const std::string &what, ErrorCode) : std::runtime_error(what) {}
};

namespace detail {
template <class T> inline void hashCombine(std::size_t &seed, const T &value)
{
	seed ^= std::hash<T>()(value) + 0x9e3779b9 + (seed << 6) + (seed >> 2);
}
}

class ExecutionPlan {
public:
	ExecutionPlan(const std::string &path, int rank);
	const std::string &name() const;
	const std::string &collective() const;
	size_t minMessageSize() const;
	size_t maxMessageSize() const;
	bool isInPlace() const;
	struct Impl;
	std::shared_ptr<Impl> impl_;
};
}
