/* Settings: what the environment asks of libblink, read once for each communicator. */
#ifndef BLINK_SETTINGS_H
#define BLINK_SETTINGS_H

#include "blink_program.h"

#include <stdbool.h>

/* name of the variable, member, how it is read, default, what it is (man page, error messages) */
#define SETTING_LIST(X)                                                        \
	X("BLINK_SCHEDULES", schedules, TEXT, NULL, "indexes and schedule files, separated by ':'") \
	X("BLINK_GPU", gpu, TEXT, NULL, \
	    "id or number of this rank's GPU in the machine of the index, or its PCI address") \
	X("BLINK_MACHINE", machine, TEXT, NULL, "name or digest of the machine: indexes of others do not count") \
	X("BLINK_BACKEND", backend, TEXT, NULL, "where buffers are: host, as where it is unset, or cuda") \
	X("BLINK_DEVICE_MAP", device_map, TEXT, NULL, \
	    "CUDA devices of the ranks of this server, in order: 0,1,2,3; a device may have several ranks") \
	X("BLINK_BLOCKS", blocks, NUMBER, 0, \
	    "blocks of a GPU for this communicator; 0: a quarter of those that others have left") \
	X("BLINK_P2P", p2p, FLAG, 1, \
	    "GPUs write into each other's memory; 0: through memory of the host") \
	X("BLINK_NVLS", nvls, FLAG, 1, \
	    "schedules for NVSwitches that add and copy are executed by them; 0: by the GPUs") \
	X("BLINK_KERNELS", kernels, TEXT, NULL, "modules with kernels of schedules, separated by ':'") \
	X("BLINK_COPY_ENGINES", copy_engines, AUTO, -1, \
	    "copy engines of GPUs for calls that do not reduce: 0, auto (for long ones) or 1 (for all)") \
	X("BLINK_TIMEOUT", timeout_ms, MS, 600000, \
	    "how long a rank waits: 90s, 100ms, 10m; a plain number is seconds") \
	X("BLINK_SMALL", small, BYTES, 8192, "messages up to this size go by the built-in schedule of least latency") \
	X("BLINK_MEASURE", measure, FLAG, 1, \
	    "measure what chunks cost on GPUs when a communicator is made; 0: assume it") \
	X("BLINK_CHUNK", chunk, BYTES, 0, \
	    "bytes that the tree of the largest share moves at a time, over a network others less, " \
	    "each by its share; 0: chosen by the size of the message, " \
	    "and over a network by the rate that calls before have shown") \
	X("BLINK_PIN", pin, FLAG, 1, "bind threads to cores, where libhwloc is installed") \
	X("BLINK_SHM", shm, FLAG, 1, "shared memory between ranks of a server; 0: the network there, too") \
	X("BLINK_NET", net, TEXT, NULL, "the network between servers: tcp, ucx; auto, as where it is unset: tcp") \
	X("BLINK_TCP_ZEROCOPY", zero_copy, AUTO, 0, "zero copy of long messages by TCP: auto, 0 or 1") \
	X("BLINK_SOCKET_IFNAME", interface, TEXT, NULL, "interfaces to use, by prefix: eth, =eth0, ^docker") \
	X("BLINK_HOST_ID", host_id, TEXT, NULL, "what tells servers apart, if not the boot id and network namespace") \
	X("BLINK_SECRET_FILE", secret, TEXT, NULL, "a file with a secret that all ranks have beside the id") \
	X("BLINK_MIAD", miad, TEXT, NULL, "a file that keeps the chunk sizes found by measuring (libblink(3))")

struct settings {
#define SETTING_TEXT const char *
#define SETTING_MS int64_t
#define SETTING_BYTES int64_t
#define SETTING_NUMBER int64_t
#define SETTING_FLAG bool
#define SETTING_AUTO int	/* 0: auto, 1: 1, -1: 0 */
#define SETTING_MEMBER(variable, member, how, value, what) SETTING_##how member;
	SETTING_LIST(SETTING_MEMBER)
#undef SETTING_MEMBER
};

/* Names of the environment that begin with BLINK_ and that nothing here reads, comma-separated: the first few. Empty:
 * there are none. */
void settings_unknown(char *out, size_t room);

/* Defaults where a variable is unset or empty. Text points into the environment. Fails: blinkInvalidArgument, with the
 * variable, what it holds and what is wanted. */
int settings_read(struct settings *out, struct blink_error *err);

#endif
