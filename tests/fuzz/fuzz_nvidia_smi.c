/* What nvidia-smi topo -m prints. */
#define COST_FLOOR_MS 1000
#include "foreign.h"
#include "table_mutator.h"

const char kind[] = "nvidia-smi";

const Mutator mutators[] = { table_mutate, NULL };

const char *const dictionary[] = { "GPU0", "GPU1", "GPU2", "GPU16", "NIC0", "NIC1", "mlx5_0", " X ", "NV1", "NV2",
	"NV6", "NV12", "NV18", "PIX", "PXB", "PHB", "NODE", "SYS", "SOC", "N/A", "\t", "\n", "\r\n", "  ",
	"CPU Affinity", "NUMA Affinity", "GPU NUMA ID", "0-19,40-59", "Legend:", "NIC Legend:", "NIC0: mlx5_0",
	"\x1b[4m", "\x1b[0m", "\x1b[", "\xff", "\xc3\xa9", NULL };
