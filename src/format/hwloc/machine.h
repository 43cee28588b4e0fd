/* A Topology in the making from a machine of hwloc. machine.c finds what its objects are, bandwidth.c makes links of
 * its matrices, cpu_ranks.c those of ranks that are CPUs, read_topology.c all others. Of the machine that this runs on,
 * NVIDIA's driver and the kernel know more: seen.c takes GPUs and NVLinks of the one, ports.c rates of NICs of the
 * other. */
#ifndef BLINK_FORMAT_HWLOC_MACHINE_H
#define BLINK_FORMAT_HWLOC_MACHINE_H

#include "format/builder.h"
#include "format/gpu_models.h"
#include "format/hwloc/tree.h"
#include "format/nvml/gpus.h"

typedef enum { ROLE_NONE, ROLE_GPU, ROLE_NIC, ROLE_NVSWITCH } HwRole;

typedef struct {
	Ctx *ctx;
	const HwTree *tree;
	const SeenGpus *seen;		/* NULL: the driver was not asked, hwloc says which are GPUs */
	bool cpu_ranks;			/* GPUs are not looked for */
	const char *sysfs;		/* "/sys", for the ports of NICs; NULL: they are not looked up */
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

/* Of links between every two of them. */
enum { HW_CPUS_MOST = 128 };

/* PCI ids of vendors. */
enum { HW_NVIDIA = 0x10de, HW_AMD = 0x1002 };

/* Sets role, gpu, nic, branches, numa and n_numa; GPUs not where hwloc_find_seen has done so. Notes what was left out.
 * Cost: O(n log n). */
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

/* Of the first package that says it. */
CpuModel hwloc_cpu_model(const HwMachine *m);

/* ---- cpu_ranks.c ---- */

/* Ranks that are sets of cores, NUMA nodes and packages, and the links between them, after hwloc_find_devices.
 * n_ranks: 0: one for each NUMA node with cores. Fails: BAD_INPUT, LIMIT, NO_MEMORY; USAGE n_ranks. Memory: scratch
 * arena. Cost: O(n^2) for n NUMA nodes. */
Status hwloc_add_cpu_ranks(HwMachine *m, int n_ranks);

/* ---- seen.c ---- */

/* Before the HwMachine is made: PCI devices for GPUs that the driver has and hwloc has not, as in containers that hide
 * /sys; PCIe links of GPUs have the most speed that they can have, as those of idle GPUs are slow. */
Status hwloc_tree_add_seen(Ctx *ctx, HwTree *tree, const SeenGpus *seen);

/* Before hwloc_find_devices: m->gpu and their roles; gpu[i] is seen->gpu[i]. */
void hwloc_find_seen(HwMachine *m);

/* NVLinks, as the driver has them. */
Status hwloc_add_seen_links(HwMachine *m);

/* ---- speed.c ---- */

/* What hwloc calls the speed of a PCI link, bytes/s. 1 <= generation <= 6. */
int64_t hwloc_pcie_speed(int width, int generation);

/* Width and generation whose speed this is, to 1 %, x16 first. Of 15.75 GB/s several are, with one effective rate. */
bool hwloc_pcie_of_speed(int64_t speed, int *width, int *generation);

/* ---- ports.c ---- */

/* The rate of a NIC's port, bytes/s: of an InfiniBand device the fastest that is active, of a network device its own.
 * 0: not known, or down. sysfs: "/sys". name: of the device. */
int64_t nic_port_rate(const char *sysfs, const char *name);

#endif
