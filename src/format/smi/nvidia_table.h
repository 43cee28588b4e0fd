/* The table of `nvidia-smi topo -m`: nvidia_table.c reads it, nvidia.c makes a Topology of it. */
#ifndef BLINK_FORMAT_SMI_NVIDIA_TABLE_H
#define BLINK_FORMAT_SMI_NVIDIA_TABLE_H

#include "format/smi/smi.h"

typedef enum { PIX, PXB, PHB, NODE, SYS, N_NEAR, SELF, HIDDEN, MISSING } Near;

struct device {
	const char *column;	/* "GPU0", "NIC0", "mlx5_0" */
	const char *name;	/* column, or that of the legend */
	const char *affinity;	/* of CPUs; "" where the row has none */
	int gpu;		/* its number; -1: a NIC */
	int row;		/* the line with it; 0: none */
	int vertex;
};

struct cell {
	Near near;
	int nvlinks;
};

struct matrix {
	SmiText text;
	const GpuModel *model;
	TopologyBuilder *b;
	int n;
	struct device *device;
	struct cell *cell;	/* n * n, by row */
	int header;		/* its line */
	int cut;		/* columns of the last row, if it has not all; 0: it does */
	int *class[N_NEAR];	/* of each device: the first device that is as near; [NODE]: of its CPU */
	int *component;		/* of GPUs joined by NVLinks: the first of them */
	int node;
	int64_t pcie;
};

static inline struct cell *
cell_at(const struct matrix *m, int i, int j)
{
	return &m->cell[i * m->n + j];
}

/* Messages are about the row of a device, or about the header where it has none. */
static inline void
stand_at(struct matrix *m, int i)
{
	m->text.line = m->device[i].row ? m->device[i].row : m->header;
}

/* All of it: each pair is there both ways, and is the same. Fails: BAD_INPUT, LIMIT, NO_MEMORY. */
Status nvidia_table_read(struct matrix *m);

#endif
