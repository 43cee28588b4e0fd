/* What rocm-smi --showtopo prints. */
#define COST_FLOOR_MS 1000
#include "foreign.h"
#include "table_mutator.h"

const char kind[] = "rocm-smi";

const Mutator mutators[] = { table_mutate, NULL };

const char *const dictionary[] = { "GPU0", "GPU1", "GPU2", "GPU[0]", "GPU[1]", "0", "1", "2", "3", "15", "30", "40",
	"72", "XGMI", "PCIE", "PCIe", "N/A", "X", "\t", "\n", "\r\n", "  ", "====", "Weight between two GPUs",
	"Hops between two GPUs", "Link Type between two GPUs", "Numa Nodes", ": (Topology) Numa Node: ",
	": (Topology) Numa Affinity: ", "End of ROCm SMI Log", "\x1b[0m", "\xff", NULL };
