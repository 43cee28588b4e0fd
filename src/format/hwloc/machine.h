/* A Topology in the making from a machine of hwloc. machine.c finds what its objects are, bandwidth.c makes links of
 * its matrices, read_topology.c all others. */
#ifndef BLINK_FORMAT_HWLOC_MACHINE_H
#define BLINK_FORMAT_HWLOC_MACHINE_H

#include "format/builder.h"
#include "format/gpu_models.h"
#include "format/hwloc/tree.h"

typedef enum { ROLE_NONE, ROLE_GPU, ROLE_NIC, ROLE_NVSWITCH } HwRole;

typedef struct {
	Ctx *ctx;
	const HwTree *tree;
	TopologyBuilder *b;
	int node;
	const GpuModel *model;		/* of its GPUs; NULL: not known */
	HwRole *role;			/* of each object; that of an OS device is with its PCI device */
	int *vertex;			/* of each object: its handle, -1: none */
	int *branches;			/* of each bridge: children that lead to a GPU or NIC */
	int *numa;			/* of each object: the first NUMA node that it is or has below; -1: none */
	int *n_numa;			/* NUMA nodes that it is or has below */
	int n_cpus, *cpu;		/* handles */
	int n_gpus, *gpu;		/* objects, in the order of their PCI addresses */
	int n_nics, *nic;		/* likewise */
} HwMachine;

/* PCI ids of vendors. */
enum { HW_NVIDIA = 0x10de, HW_AMD = 0x1002 };

/* Sets role, gpu, nic, branches, numa and n_numa; notes what was left out. Cost: O(n log n). */
Status hwloc_find_devices(HwMachine *m);

bool hwloc_is_bridge(const HwObject *object);		/* also a host bridge */
bool hwloc_is_device(const HwMachine *m, int object);	/* a GPU or a NIC */

/* The PCI device of an OS device, or the object itself where it has none. */
int hwloc_device_of(const HwTree *tree, int object);

/* The vertex of the CPUs next to an object, which is made where there is none yet. */
int hwloc_cpu_near(HwMachine *m, int object);

/* Links from the matrices NVLinkBandwidth, XGMIBandwidth and XGMIHops, and notes where there are none or they say too
 * little. Fails: BAD_INPUT, LIMIT, NO_MEMORY. Memory: scratch arena. Cost: O(n^2) for matrices of n objects. */
Status hwloc_add_bandwidths(HwMachine *m);

#endif
