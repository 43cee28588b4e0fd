/* A machine of a topology file, as the virtual NVML and the virtual hwloc tell of it: the first server of
 * VIRTUAL_GPU_TOPOLOGY, whose parts get PCI addresses. GPUs are counted by these, as NVML does. */
#ifndef BLINK_TESTS_NVML_MACHINE_H
#define BLINK_TESTS_NVML_MACHINE_H

#include "model/model.h"

enum { MACHINE_MOST = 256 };

/* What a model of GPU says of itself. */
struct nvml_model {
	const char *name;
	int sm, links, pcie;
	int64_t rate;			/* of a link, by the topology */
	unsigned told, version;		/* MB/s and nvmlNvlinkVersion_t, by the driver */
};

struct nvml_machine {
	const Topology *topo;
	const struct nvml_model *model;
	int n_gpus;
	int gpu[MACHINE_MOST];			/* vertices, by number */
	int number[MACHINE_MOST];		/* of a vertex that is a GPU */
	int above[MACHINE_MOST];		/* of a vertex: the switch or CPU above it on PCIe; -1: none */
	int bus[MACHINE_MOST];			/* of a GPU, NIC or switch */
	int64_t up[MACHINE_MOST];		/* capacity of its PCIe link up, bytes/s */
};

/* Of the environment, read anew where it names another file. Ends the process with a line where it cannot be read. */
const struct nvml_machine *nvml_machine(void);

/* Generation of PCIe whose x16 has this capacity; 3 where none has, and *width its width. */
int nvml_pcie(int64_t capacity, int *width);

/* NVLinks between two GPUs, by vertex; at a switch those of the first. */
int nvml_links(int a, int b);

/* Should this call fail? VIRTUAL_GPU_FAIL is FUNCTION:N or FUNCTION:N:CODE: the N-th call of this function fails, of 0
 * each; "any" is any function. Returns the code, without one 999; 0: it should not. VIRTUAL_GPU_CALLS names a file that
 * gets a line with the function for each call. */
int nvml_fails(const char *function);

/* From now on calls are counted from 1. */
void nvml_count_anew(void);

#endif
