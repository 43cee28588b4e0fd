/* The GPUs of this machine, as NVIDIA's driver tells of them. */
#ifndef BLINK_FORMAT_NVML_GPUS_H
#define BLINK_FORMAT_NVML_GPUS_H

#include "format/nvml/nvml.h"
#include "model/units.h"

typedef struct {
	unsigned domain, bus, device;
} PciAddress;

bool pci_same(PciAddress a, PciAddress b);

/* What is at the other end of an NVLink. A GPU that the driver does not show to this process is ABSENT. */
typedef enum { END_GPU, END_SWITCH, END_CPU, END_ABSENT } LinkEnd;

typedef struct {
	LinkEnd end;
	int gpu;			/* END_GPU: its place in SeenGpus; else -1 */
	PciAddress remote;
} SeenLink;

typedef struct {
	int number;			/* by which the driver counts it, in the order of PCI addresses */
	char name[NV_DEVICE_NAME_V2_BUFFER_SIZE], uuid[NV_DEVICE_UUID_V2_BUFFER_SIZE];	/* printable; "": not known */
	PciAddress pci;
	int sm;				/* compute capability: 70; 0: not known */
	int pcie_generation, pcie_width;	/* the most that GPU and slot have; 0: not known */
	int numa;			/* the node next to it; -1: not known */
	bool mig;			/* divided into instances, which use no NVLinks */
	int n_links;			/* that are up, and carry data between peers */
	int n_down;			/* the others */
	SeenLink link[NV_NVLINK_MAX_LINKS];
	int64_t link_rate;		/* of a link in one direction, bytes/s, as the driver has it; 0: not known */
	int link_version;		/* nvmlNvlinkVersion_t; 0: not known */
} SeenGpu;

typedef struct SeenGpus {
	char driver[NV_SYSTEM_DRIVER_VERSION_BUFFER_SIZE];	/* printable: "535.104.05"; "": not known */
	bool assumed;			/* NVML was not there: numbers of links are assumed (driver.h) */
	int n;
	SeenGpu *gpu;			/* in the order of their numbers */
} SeenGpus;

enum { SEEN_GPUS_MOST = 128 };

/* All GPUs that the driver shows to this process, whatever CUDA_VISIBLE_DEVICES says. *out: n >= 1, addresses differ.
 * A link that one of two GPUs says is down is so for both. Fails: IO, as nvml_open, and where a GPU is lost or a call
 * fails; BAD_INPUT no GPU, or two with one address; LIMIT; NO_MEMORY. Memory: run arena. The driver itself may take
 * some 100 ms, and any stack. */
Status gpus_see_nvml(Ctx *ctx, SeenGpus *out);

/* The same; where there is no NVML, but libcuda, by gpus_see_driver. */
Status gpus_see(Ctx *ctx, SeenGpus *out);

/* Does NVLink join the GPU at a PCI address, as "0000:3b:00.0", to each of others, straight or through switches? As the
 * driver answers, whatever CUDA_VISIBLE_DEVICES says. One that it does not show to this process is not joined. Fails:
 * IO, as nvml_open, and where the driver does not show the first GPU, or cannot answer. */
Status gpus_joined_nvml(Ctx *ctx, const char *address, const char *const *peer, int n, bool *joined);

/* Links that lead to the GPU in this place. */
int gpu_links_to(const SeenGpu *gpu, int peer);

/* Only gpu[0 .. n-1], by place, ascending; links to others become ABSENT. */
void gpus_keep(SeenGpus *gpus, const int *gpu, int n);

#endif
