/* A CUDA driver for tests: libcuda.so.1 whose devices are memory and threads of this process, or of several. This
 * header is between its files; what programs see is CUDA's interface. It is strict: what CUDA refuses, it refuses. */
#ifndef VIRTUAL_GPU_H
#define VIRTUAL_GPU_H

#include "driver/driver.h"

#include <pthread.h>
#include <stdbool.h>

/* What the environment asks.
 *
 *	VIRTUAL_GPU_TOPOLOGY	a topology file of one server; its GPUs are the devices. Unset: VIRTUAL_GPU_COUNT of
 *				them (default 8), each linked with each
 *	CUDA_VISIBLE_DEVICES	as CUDA has it: numbers of devices, which this process has in this order
 *	VIRTUAL_GPU_SCALE	links are that many times slower than the file has them; 0, the default: no limit
 *	VIRTUAL_GPU_FENCE	ns, times the scale: what a thread's first fence after a barrier takes; 2000 by default
 *	VIRTUAL_GPU_FLAG	the same: until a flag that another device or the host has stored is seen; 1000
 *	VIRTUAL_GPU_LAUNCH	the same: before the first block of a kernel begins; 3000
 *	VIRTUAL_GPU_STATE	a file that processes share: what links are in use by all of them. Unset: this process
 *	VIRTUAL_GPU_DELAY	a seed: operations of streams, blocks and stores are late by random times
 *	VIRTUAL_GPU_FAIL	FUNCTION:N[:WHAT], comma-separated: the N-th call of cuFUNCTION in this process fails
 *				with WHAT: an error's name without CUDA_ERROR_ (default UNKNOWN), or die: SIGKILL.
 *				ILLEGAL_ADDRESS and LAUNCH_FAILED also fail the current context
 *	VIRTUAL_GPU_DIE		the number of a fence of kernels in this process, which kills it
 *	VIRTUAL_GPU_CALLS	a file: each call appends the name of its function, a line, and "flush" where a stream
 *				waits for a value and flushes remote writes, and "freed while others have it
 *				open", of memory that another process has by cuIpcOpenMemHandle
 *	VIRTUAL_GPU_KERNELS	libraries of twins (twin.h)
 *	VIRTUAL_GPU_THREADS	threads of a block, 1 by default
 *	VIRTUAL_GPU_BLOCKS	blocks that a device executes at once, 64 by default; others wait
 *	VIRTUAL_GPU_MEMORY	bytes of each device, 16 GiB by default
 *	VIRTUAL_GPU_POOLS	0: there are no pools of memory
 *	VIRTUAL_GPU_VALUES	0: streams can neither wait for values in memory nor write them
 *	VIRTUAL_GPU_LOST	FROM:TO, comma-separated: what device FROM writes to memory of TO is lost
 *	VIRTUAL_GPU_WEAK	1: stores become visible late, loads get what was there before (twin.h) */
enum { DEVICES_MOST = 16, HOST = -1 };

/* ---- device.c: init, devices, errors, failures on request; context.c: contexts ---- */

struct context {
	int device;
	int retained;			/* cuDevicePrimaryCtxRetain; at 0 all of it is gone */
	CUresult error;			/* sticky: every later call in this context fails with it */
	bool peer[DEVICES_MOST];	/* cuCtxEnablePeerAccess: this device may access memory of that one */
};

/* Every exported function begins with ENTER(name) or, where it needs a current context, ENTER_CONTEXT(name, c), which
 * declares it. Both return what VIRTUAL_GPU_FAIL asks, NOT_INITIALIZED before cuInit, INVALID_CONTEXT, or the sticky
 * error; ENTER_UNSAFE also refuses where a capture of this thread or process forbids the call (capture_forbids). */
CUresult enter(const char *name, struct context **context);
#define ENTER(name)                                                            \
	do {                                                                   \
		CUresult failed_ = enter(#name, NULL);                         \
		if (failed_ != CUDA_SUCCESS)                                   \
			return failed_;                                        \
	} while (0)
#define ENTER_CONTEXT(name, c)                                                 \
	struct context *c;                                                     \
	do {                                                                   \
		CUresult failed_ = enter(#name, &c);                           \
		if (failed_ != CUDA_SUCCESS)                                   \
			return failed_;                                        \
	} while (0)
#define ENTER_UNSAFE(name, c)                                                  \
	ENTER_CONTEXT(name, c);                                                \
	do {                                                                   \
		CUresult failed_ = capture_forbids();                          \
		if (failed_ != CUDA_SUCCESS)                                   \
			return failed_;                                        \
	} while (0)

#define EXPORT __attribute__((visibility("default")))

/* What programs see; what the list has not, its file declares. */
#pragma GCC visibility push(default)
#define PROTOTYPE(member, name, must, parameters) CUresult name parameters;
DRIVER_LIST(PROTOTYPE)
#undef PROTOTYPE
#pragma GCC visibility pop

/* A line of VIRTUAL_GPU_CALLS: what a call was that its name does not tell. */
void call_list(const char *what);

/* The same for functions that need no cuInit. */
CUresult enter_early(const char *name);

int devices(void);					/* how many; 0 before cuInit */
bool device_valid(CUdevice device);			/* is it one of these? */
struct context *context_of(int device);			/* its primary context */
void context_fail(struct context *c, CUresult error);	/* the first error counts */
bool current_context(struct context **c);		/* of this thread; false: none, or it is gone */

/* A number of the environment, 0 or above. After one that is not, and after setting_refused, which says
 * "VARIABLE: text", every call fails with INVALID_VALUE. */
int64_t setting(const char *variable, int64_t otherwise);
CUresult setting_refused(const char *variable, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- memory.c, host.c: memory of devices and of the host, mappings, IPC ---- */

/* An allocation is a memfd, mapped at one address. As with CUDA, the host cannot access it there: who executes work of
 * a device touches the bytes at memory_bytes(pointer). Memory that other processes import stays theirs, too, until all
 * have closed it. */
struct allocation {
	char *base;
	size_t bytes;
	int device;			/* whose memory; HOST */
	bool portable;			/* HOST: every device may access it */
};

/* The allocation that has these bytes now, or the first of several of one device that follow each other; *out is a
 * copy. false: there is none. */
bool memory_find(const void *at, size_t bytes, struct allocation *out);

/* May a kernel or copy of `device` access these bytes now? *owner: whose memory it is. Else ILLEGAL_ADDRESS. Fast
 * where it was asked of the same memory before: `cache` belongs to the calling thread, zeroed at first. copy: the
 * driver itself copies, and may access memory of the host that CUDA does not know, and of devices without peer
 * access. */
struct memory_cache {
	uint64_t generation;		/* of all mappings: grows with each change */
	struct {
		const char *begin, *end;
		int device, owner;
		bool writes, copy;
	} hit[4];
	unsigned next;
};
CUresult memory_access(int device, const void *at, size_t bytes, bool writes, bool copy, struct memory_cache *cache,
    int *owner);

/* Memory that belongs to a context is freed, as its device's own is: no work is left that uses it. */
void memory_forget(struct context *c);

/* Peer access of some context changed. */
void memory_changed(void);

/* Do stores and copies between two devices go straight from one to the other? Else through memory of the host: neither
 * has peer access to the other, or to some memory of it. */
bool memory_direct(int a, int b);

/* Bytes of each device. */
size_t memory_total(void);

/* Where the bytes of a pointer are, which memory_access has allowed: of the host or of a device. */
void *memory_bytes(const void *at);

/* multicast.c. The bytes that all members have at an address of a multicast object, and whose they are: in the order of
 * their numbers, *n of them. Fails: ILLEGAL_ADDRESS. */
CUresult multicast_access(int device, const void *at, size_t bytes, bool writes, char *out[DEVICES_MOST],
    int owner[DEVICES_MOST], int *n);

/* switch.c. What an NVSwitch makes of the values that n members have: `how` as multimem.ld_reduce has it behind its
 * scope, without .vN: "add.u32", "add.acc::f32.f16x2". false: there is no such instruction. */
bool switch_reduce(const char *how, char *const value[], int n, unsigned bytes, char *to);

/* ---- links.c: the topology, and how long data take ---- */

/* Read the topology: for cuInit. Fails: INVALID_VALUE, after a message; NO_DEVICE. *n: devices that are visible: 0 to
 * *n - 1. Behind them are those that are not, as owners of memory of other processes. */
CUresult links_open(int *n);

/* What a device is in all processes, and back (-1: no device). */
int device_number(int device);
int device_of_number(int number);

/* VIRTUAL_GPU_LOST: whether what one device writes to memory of another is lost. */
bool link_loses(int from, int to);

/* What the topology file says of devices, as device.c and memory.c need it. */
bool linked(int from, int to);				/* peer access is possible */
bool fast_link(int from, int to);				/* by NVLink or xGMI, which have atomics of their own */
int link_rank(int from, int to);			/* CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK */
const char *device_pci_id(int device);			/* "0000:1a:00.0" */
const char *device_name(int device);
int device_capability(int device);			/* 70: 7.0 */
bool device_multicasts(int device);			/* behind a switch that adds and copies */

/* Wait until `bytes` more may have crossed the links from one device to another (HOST: host memory): straight, or,
 * without memory_direct, over PCIe and memory of the host. Returns at once where there is no limit. Links have a rate
 * in each direction and a backlog of a few ms. */
void link_cross(int from, int to, size_t bytes);

/* The same of several pairs at once, at most one more than there are devices: no pair waits for another. */
struct crossing_bytes {
	int from, to;
	size_t bytes;
};
void links_cross(const struct crossing_bytes *crossing, int n);

/* What takes time besides bytes: ns times the scale; 0 where there is no limit. */
enum cost { COST_FENCE, COST_FLAG, COST_LAUNCH, COSTS };
int64_t cost_ns(enum cost of);
void pay_cost(enum cost of);
void sleep_until(int64_t ns);		/* of the monotonic clock */

/* Late by a random time, if VIRTUAL_GPU_DELAY asks for it. */
void random_delay(void);

/* ---- stream.c: streams, events, operations on memory. graph.c: capture, replay. kernel.c: modules, launches ---- */

/* Wait for all work of a device: cuMemFree and cuCtxSynchronize do. Returns the context's error. */
CUresult streams_finish(struct context *c);

/* cuCtxSynchronize: refuses while a stream of the context captures; else streams_finish. */
CUresult streams_synchronize(struct context *c);

/* Is the caller a function of cuLaunchHostFunc? `enter` refuses it with NOT_PERMITTED. */
bool in_host_function(void);

/* The device's contexts are gone: its streams, events and modules with them. What runs is ended. */
void streams_forget(struct context *c);

/* CUDA_SUCCESS, or STREAM_CAPTURE_UNSUPPORTED after it has invalidated the capture, where a call that is not safe in a
 * capture is made while this thread captures (or any thread, in mode GLOBAL), unless the thread's mode is RELAXED. */
CUresult capture_forbids(void);

#endif
