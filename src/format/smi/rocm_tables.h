/* What rocm-smi and amd-smi know about pairs of GPUs: rocm.c reads it from tables and makes a Topology of it,
 * rocm_json.c reads it from JSON. */
#ifndef BLINK_FORMAT_SMI_ROCM_TABLES_H
#define BLINK_FORMAT_SMI_ROCM_TABLES_H

#include "format/smi/smi.h"

typedef enum { WEIGHT, HOPS, TYPE, N_TABLES } Table;

enum { XGMI = 1, PCIE = 2 };	/* cells of TYPE; 0: itself, or none */

struct tables {
	SmiText text;
	const GpuModel *model;
	TopologyBuilder *b;
	int n;			/* GPUs; 0: no table yet */
	int *gpu;		/* their numbers */
	int *numa;		/* -1: not known */
	int *cell[N_TABLES];	/* n * n; NULL: not in the text */
	int *vertex;
	int xgmi;		/* the least weight of a pair of type XGMI; 0: no weights */
	int n_indirect;		/* pairs */
	bool dies;		/* the dies of packages have links of their own number */
};

/* JSON of `rocm-smi --showtopo --json` or `amd-smi topology --json`? By what it begins with. */
bool rocm_is_json(const char *data, size_t size);

/* All tables of it. Fails: BAD_INPUT, LIMIT, NO_MEMORY. */
Status rocm_read_json(struct tables *t, const char *data, size_t size);

#endif
