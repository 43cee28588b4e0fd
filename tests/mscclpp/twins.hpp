/* Twins on the host of what the kernel of MSCCL++'s executor (src/core/include/execution_kernel.hpp) has on a GPU. A
 * thread is a fiber, which gives way where it waits; channels are counters in memory; a proxy is a list of what its
 * ports were told to do. Variables of a threadblock, and of a GPU, lie in sections of their own, which are exchanged
 * when another one goes on. execute.cc has the fibers. */
#pragma once
#include <cassert>
#include <cstdint>
#include <cstring>
#include <deque>
#include <vector>

#define MSCCLPP_DEVICE_COMPILE
#define MSCCLPP_INLINE inline
#define MSCCLPP_DEVICE_INLINE inline
#define MSCCLPP_HOST_DEVICE_INLINE inline
#define __CUDA_ARCH__ 900
#define __global__
#define __launch_bounds__(...)
#define __shared__ __attribute__((section("of_block")))
#define __device__ __attribute__((section("of_gpu")))
#define __builtin_nontemporal_store(value, to) (*(to) = (value))

struct Index { unsigned x; };
extern Index threadIdx, blockIdx, blockDim;
void give_way();
void __syncthreads();
inline void __syncshm() { __syncthreads(); }

#define POLL_MAYBE_JAILBREAK(condition, most) \
	while (condition) \
		give_way();

struct alignas(16) int4 { int x, y, z, w; };
struct alignas(8) uint2 { unsigned x, y; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
struct alignas(16) ulonglong2 { unsigned long long x, y; };
struct alignas(16) longlong2 { long long x, y; };
inline uint2 make_uint2(unsigned x, unsigned y) { return { x, y }; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return { x, y, z, w }; }
inline ulonglong2 make_ulonglong2(unsigned long long x, unsigned long long y) { return { x, y }; }
inline uint32_t min(uint32_t a, uint32_t b) { return a < b ? a : b; }
using cudaStream_t = void *;

namespace mscclpp {
enum ReduceOp { SUM, MIN };
enum class DataType { INT32 };
using MemoryId = uint32_t;
using std::size_t;

template <class P> using PacketPayload = typename P::Payload;
template <class T, int N> struct VectorType { T data[N]; };
using f32x2 = VectorType<float, 2>;
using f32x4 = VectorType<float, 4>;
using u32x1 = VectorType<uint32_t, 1>;

/* Sums of whole numbers, four bytes each. */
template <class T, ReduceOp op, class Data> inline Data calVector(const Data &a, const Data &b)
{
	static_assert(sizeof(T) == 4 && op == SUM, "whole numbers of four bytes are added");
	uint32_t x[sizeof(Data) / 4], y[sizeof(Data) / 4];
	Data out;
	memcpy(x, &a, sizeof a);
	memcpy(y, &b, sizeof b);
	for (size_t i = 0; i < sizeof(Data) / 4; i++)
		x[i] += y[i];
	memcpy(&out, x, sizeof out);
	return out;
}

/* An end of a channel: signals that came, those that were waited for, those of the other end. */
struct Counters {
	uint64_t *came, *waited, *other;
	void signal() { ++*other; }
	void relaxedSignal() { ++*other; }
	void wait()
	{
		uint64_t want = ++*waited;
		while (*came < want)
			give_way();
	}
	void relaxedWait() { wait(); }
};

/* What a port is told; size 0 and no memory: a signal. */
struct Request {
	char *to, *from;
	size_t size;
	bool signals;
};

struct Port {
	std::deque<Request> requests;
	std::vector<char *> *memory;	/* of its GPU, by id */
	Counters counters;
};

struct BaseMemoryChannel {};
struct BasePortChannel {};
struct SwitchChannel {};
template <class T> struct DeviceHandle {};
template <> struct DeviceHandle<BaseMemoryChannel> : Counters {};

template <> struct DeviceHandle<BasePortChannel> {
	Port *port;
	void tell(MemoryId to, uint64_t at, MemoryId from, uint64_t from_at, uint64_t size, bool signals)
	{
		std::vector<char *> &memory = *port->memory;
		port->requests.push_back({ memory.at(to) + at, memory.at(from) + from_at, size, signals });
	}
	void put(MemoryId to, uint64_t at, MemoryId from, uint64_t from_at, uint64_t size)
	{
		tell(to, at, from, from_at, size, false);
	}
	void putWithSignal(MemoryId to, uint64_t at, MemoryId from, uint64_t from_at, uint64_t size)
	{
		tell(to, at, from, from_at, size, true);
	}
	void putWithSignalAndFlush(MemoryId to, uint64_t at, MemoryId from, uint64_t from_at, uint64_t size)
	{
		tell(to, at, from, from_at, size, true);
		flush();
	}
	void signal() { port->requests.push_back({ nullptr, nullptr, 0, true }); }
	void wait() { port->counters.wait(); }
	void flush()
	{
		while (!port->requests.empty())
			give_way();
	}
};

/* An address of a switch channel stands for the same offset in a buffer of each of its GPUs. */
struct Multicast {
	char *base;
	size_t size;
	std::vector<char *> buffer;
};
extern std::vector<Multicast> multicasts;

template <> struct DeviceHandle<SwitchChannel> { void *mcPtr; };

struct SwitchChannelDeviceHandle {
	static std::vector<char *> places(const void *at)
	{
		std::vector<char *> out;
		for (const Multicast &m : multicasts)
			if ((char *)at >= m.base && (char *)at < m.base + m.size)
				for (char *buffer : m.buffer)
					out.push_back(buffer + ((char *)at - m.base));
		assert(!out.empty());
		return out;
	}
	template <class V> static V multimemLoadReduce(V *at)
	{
		V sum = {};
		for (char *place : places(at)) {
			V value;
			memcpy(&value, place, sizeof value);
			sum = calVector<int32_t, SUM>(sum, value);
		}
		return sum;
	}
	template <class V, class Place> static void multimemStore(const V &value, Place *at)
	{
		for (char *place : places(at))
			memcpy(place, &value, sizeof value);
	}
};
}
