/* Rates and latencies of links that a description of hardware does not state, each with its source. GPUs and their
 * links: gpu_models.h. */
#ifndef BLINK_FORMAT_LINK_RATES_H
#define BLINK_FORMAT_LINK_RATES_H

#include "format/gpu_models.h"
#include "model/model.h"

/* Latency of a link of this class, ns, and its source. Of NVLinks to an NVSwitch it is half of that between GPUs, since
 * a hop takes two of them. */
int64_t link_class_latency(LinkClass class);
const char *link_class_latency_source(LinkClass class);
int64_t nvswitch_latency(void);
const char *nvswitch_latency_source(void);

/* Generation of PCI Express, 1 to 6, from text like "8 GT/s" or "16.0 GT/s PCIe"; 0: none that is known. */
int pcie_generation(const char *speed);

/* Effective capacity of a link of this width and generation in each direction, bytes/s: width * {15, 30, 60, 120, 240,
 * 480} / 80 GB/s by generation, as NCCL counts it. 1 <= width <= 64, 1 <= generation <= 6. */
int64_t pcie_capacity(int width, int generation);
const char *pcie_capacity_source(void);

/* What NCCL assumes where a width or speed is not known. */
enum { PCIE_WIDTH_UNKNOWN = 16, PCIE_GENERATION_UNKNOWN = 3 };

/* Between CPU sockets, or between the NUMA nodes of a socket. Families and models of x86 as CPUID has them, with their
 * extended parts; -1: not known. Any of the texts may be NULL. */
typedef struct {
	const char *arch, *vendor;	/* "x86_64", "arm64", "ppc64"; "GenuineIntel", "AuthenticAMD" */
	int family, model;
	int cores;			/* of one CPU; 0: not known */
} CpuModel;

/* The generation of a CPU's PCI Express; 0: not known. */
int pcie_generation_of_cpu(CpuModel cpu);

typedef struct {
	const char *name;		/* "Xeon Skylake, UPI" */
	int64_t capacity;		/* bytes/s in each direction, effective */
	const char *source;
	bool assumed;			/* the CPU is not known: a guess */
} SocketLink;

/* That of a known CPU; else a guess from the age of the GPUs (NULL: no model is known), the number of NUMA nodes and
 * their cores. */
SocketLink socket_link(CpuModel cpu, const GpuModel *gpus, int n_nodes);

/* By name, as "sapphire-rapids". Fails: USAGE, with all names. */
Status socket_link_parse(Ctx *ctx, const char *name, SocketLink *out);

#endif
