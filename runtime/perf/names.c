#include "perf/names.h"

const struct type types[N_TYPES] = {
	{ "int8", "char", blinkInt8, 8, true, false, 0, 0 },
	{ "uint8", NULL, blinkUint8, 8, false, false, 0, 0 },
	{ "int32", "int", blinkInt32, 32, true, false, 0, 0 },
	{ "uint32", NULL, blinkUint32, 32, false, false, 0, 0 },
	{ "int64", NULL, blinkInt64, 64, true, false, 0, 0 },
	{ "uint64", NULL, blinkUint64, 64, false, false, 0, 0 },
	{ "half", "float16", blinkFloat16, 16, true, true, 11, 15 },
	{ "float", "float32", blinkFloat32, 32, true, true, 24, 64 },
	{ "double", "float64", blinkFloat64, 64, true, true, 53, 64 },
	{ "bfloat16", "bf16", blinkBfloat16, 16, true, true, 8, 64 },
	{ "fp8_e4m3", "f8e4m3", blinkFloat8e4m3, 8, true, true, 4, 8 },
	{ "fp8_e5m2", "f8e5m2", blinkFloat8e5m2, 8, true, true, 3, 15 },
};

const struct op ops[N_OPS] = { { "sum", blinkSum }, { "prod", blinkProd }, { "max", blinkMax }, { "min", blinkMin },
	{ "avg", blinkAvg } };

const char *const format_names[] = { [FORMAT_TEXT] = "text", [FORMAT_CSV] = "csv", [FORMAT_JSON] = "json", NULL };
const char *const backend_names[] = { "host", "cuda", NULL };

const char *const collectives[] = {
	[blinkCollBroadcast] = "broadcast", [blinkCollReduce] = "reduce", [blinkCollAllReduce] = "allreduce",
	    [blinkCollGather] = "gather",
	[blinkCollScatter] = "scatter", [blinkCollAllGather] = "allgather", [blinkCollReduceScatter] = "reducescatter",
	    [blinkCollAlltoAll] = "alltoall", NULL,
};

