/* Models of GPUs: what they are called, and the nominal rates of their links. The only place that knows them. */
#ifndef BLINK_FORMAT_GPU_MODELS_H
#define BLINK_FORMAT_GPU_MODELS_H

#include "model/model.h"

typedef struct {
	const char *name;	/* for --gpu-model: "V100-SXM2" */
	const char *words;	/* in lower case, all of them in what nvidia-smi and rocm-smi call it: "v100 sxm2" */
	const char *arch;	/* "sm70", "gfx908" */
	LinkClass class;	/* of its links to other GPUs: nvlink or xgmi */
	int generation;		/* of these */
	int64_t rate;		/* nominal, of one link in each direction, bytes/s; 0: it has none */
	int links;		/* of a GPU */
	int pcie;		/* generation of PCI Express, 16 lanes */
	int die_links;		/* two GPUs in a row are dies of a package with this many links between; 0: not so */
	const char *source;	/* of rate and links */
} GpuModel;

/* By a short name, or as nvidia-smi or rocm-smi print it: "Tesla V100-SXM2-16GB", "AMD Instinct MI250X". Case, vendor,
 * memory size and the like do not matter. NULL: none that is known. */
const GpuModel *gpu_model_find(const char *name);

/* The same, of what a user gave. Fails: USAGE, with all names. */
Status gpu_model_parse(Ctx *ctx, const char *name, const GpuModel **out);

/* The first model of a compute capability: 70; or of what RCCL calls gcn: "gfx908", "908", "910" (gfx90a). All models
 * of one have links of one rate. NULL: none that is known. */
const GpuModel *gpu_model_of_sm(int sm);
const GpuModel *gpu_model_of_gcn(const char *gcn);

/* Is it on a board with NVIDIA's CPU, as GH200 and GB200 are? model: NULL: no. */
bool gpu_model_has_grace(const GpuModel *model);

/* Has it its links by bridges, which a machine may lack? */
bool gpu_model_bridged(const GpuModel *model);

/* "P100, V100-SXM2, ...": the short names of those with links of a class; N_LINK_CLASSES: of all. */
void gpu_models_list(Text *out, LinkClass class);

#endif
