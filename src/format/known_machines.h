/* Links between the GPUs of machines that vendors build, for files that have the GPUs and not their links. */
#ifndef BLINK_FORMAT_KNOWN_MACHINES_H
#define BLINK_FORMAT_KNOWN_MACHINES_H

#include "format/builder.h"

/* GPUs of one server in the order of their PCI addresses. */
typedef struct {
	const GpuModel *model;	/* NULL: not known, and so no machine is */
	int node;		/* of the builder */
	int n;
	const int *gpu, *cpu;	/* vertices; cpu[i]: that of GPU i */
	bool power;		/* the CPUs are POWER8 or POWER9, to which NVLinks lead */
	bool numbered;		/* also machines in which it matters which GPU is which */
} KnownGpus;

/* Their links, which are marked as assumed, and a line that names the machine. False: no machine has such GPUs. */
bool known_machine_links(TopologyBuilder *b, const KnownGpus *gpus);

#endif
