/* Settings: what the environment asks of libblink, read once for each communicator. */
#ifndef BLINK_SETTINGS_H
#define BLINK_SETTINGS_H

#include "blink_program.h"

#include <stdbool.h>

/* What a variable needs to have an effect: in a warning and in the man page after "no effect without". */
#define SETTING_NEED_LIST(X)                                                   \
	X(NOTHING, "")                                                         \
	X(GPUS, "BLINK_BACKEND=cuda")                                          \
	X(HOST, "buffers on the host")                                         \
	X(INDEX, "an index in BLINK_SCHEDULES")                                \
	X(GPU_LIST, "an index in BLINK_SCHEDULES, or with a schedule file a PCI address") \
	X(NETWORK, "ranks on several servers, or BLINK_SHM=0")                 \
	X(TCP, "TCP between ranks: several servers, or BLINK_SHM=0, and no other BLINK_NET") \
	X(SEARCH, "buffers on the host, and chunks whose size is not set")

enum setting_need {
#define X(name, text) NEEDS_##name,
	SETTING_NEED_LIST(X)
#undef X
	N_SETTING_NEEDS
};

/* name of the variable, member, how it is read, default, what it needs, what it is (man page, error messages) */
#define SETTING_LIST(X)                                                        \
	X("BLINK_SCHEDULES", schedules, TEXT, NULL, NOTHING, "indexes and schedule files, separated by ':'") \
	X("BLINK_GPU", gpu, TEXT, NULL, GPU_LIST, \
	    "id or number of this rank's GPU in the machine of the index, or its PCI address") \
	X("BLINK_MACHINE", machine, TEXT, NULL, INDEX, \
	    "name or digest of the machine: indexes of others do not count") \
	X("BLINK_BACKEND", backend, TEXT, NULL, NOTHING, "where buffers are: host, as where it is unset, or cuda") \
	X("BLINK_DEVICE_MAP", device_map, TEXT, NULL, GPUS, \
	    "CUDA devices of the ranks of this server, in order: 0,1,2,3; a device may have several ranks") \
	X("BLINK_BLOCKS", blocks, NUMBER, 0, GPUS, \
	    "blocks of a GPU for this communicator; 0: a quarter of those that others have left") \
	X("BLINK_P2P", p2p, FLAG, 1, GPUS, \
	    "GPUs write into each other's memory; 0: through memory of the host") \
	X("BLINK_NVLS", nvls, FLAG, 1, GPUS, \
	    "schedules for NVSwitches that add and copy are executed by them; 0: by the GPUs") \
	X("BLINK_KERNELS", kernels, TEXT, NULL, GPUS, "modules with kernels of schedules, separated by ':'") \
	X("BLINK_PROTOCOL", protocol, TEXT, NULL, GPUS, \
	    "how data of collectives go from GPU to GPU, where it is possible: packets, lines, flags; unset: by the " \
	    "length of the message") \
	X("BLINK_COPY_ENGINES", copy_engines, AUTO, -1, GPUS, \
	    "copy engines of GPUs for calls that do not reduce: 0, auto (for long ones) or 1 (for all)") \
	X("BLINK_TIMEOUT", timeout_ms, MS, 600000, NOTHING, \
	    "how long a rank waits: 90s, 100ms, 10m; a plain number is seconds") \
	X("BLINK_SMALL", small, BYTES, 8192, NOTHING, \
	    "messages up to this size go by the built-in schedule of least latency") \
	X("BLINK_MEASURE", measure, FLAG, 1, GPUS, \
	    "measure what chunks cost on GPUs when a communicator is made; 0: assume it") \
	X("BLINK_CHUNK", chunk, BYTES, 0, NOTHING, \
	    "bytes that the tree of the largest share moves at a time, over a network others less, " \
	    "each by its share; 0: chosen by the size of the message, " \
	    "and over a network by the rate that calls before have shown") \
	X("BLINK_PIN", pin, FLAG, 1, HOST, "bind threads to cores, where libhwloc is installed") \
	X("BLINK_SHM", shm, FLAG, 1, NOTHING, "shared memory between ranks of a server; 0: the network there, too") \
	X("BLINK_NET", net, TEXT, NULL, NETWORK, \
	    "the network between servers: tcp, ucx; auto, as where it is unset: tcp") \
	X("BLINK_TCP_ZEROCOPY", zero_copy, AUTO, 0, TCP, "zero copy of long messages by TCP: auto, 0 or 1") \
	X("BLINK_SOCKET_IFNAME", interface, TEXT, NULL, NOTHING, \
	    "interfaces to use, by prefix: eth, =eth0, ^docker") \
	X("BLINK_HOST_ID", host_id, TEXT, NULL, NOTHING, \
	    "what tells servers apart, if not the boot id and network namespace") \
	X("BLINK_SECRET_FILE", secret, TEXT, NULL, NOTHING, "a file with a secret that all ranks have beside the id") \
	X("BLINK_MIAD", miad, TEXT, NULL, SEARCH, "a file that keeps the chunk sizes found by measuring (libblink(3))")

struct settings {
#define SETTING_TEXT const char *
#define SETTING_MS int64_t
#define SETTING_BYTES int64_t
#define SETTING_NUMBER int64_t
#define SETTING_FLAG bool
#define SETTING_AUTO int	/* 0: auto, 1: 1, -1: 0 */
#define SETTING_MEMBER(variable, member, how, value, need, what) SETTING_##how member;
	SETTING_LIST(SETTING_MEMBER)
#undef SETTING_MEMBER
};

/* Names of the environment that begin with BLINK_ and that nothing here reads, comma-separated: the first few. Empty:
 * there are none. */
void settings_unknown(char *out, size_t room);

/* Names of the variables that are set and that need this: likewise. */
void settings_that_need(enum setting_need need, char *out, size_t room);

/* "BLINK_BACKEND=cuda" for NEEDS_GPUS. */
const char *setting_need_text(enum setting_need need);

/* Defaults where a variable is unset or empty. Text points into the environment. Fails: blinkInvalidArgument, with the
 * variable, what it holds and what is wanted. */
int settings_read(struct settings *out, struct blink_error *err);

#endif
