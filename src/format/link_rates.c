#include "format/link_rates.h"

#include <stdlib.h>
#include <string.h>

#define TUNING "src/graph/tuning.cc of NCCL 2.30.7"
#define TOPO "src/graph/topo.h of NCCL 2.30.7"

static const struct {
	int64_t ns;
	const char *source;
} latencies[N_LINK_CLASSES] = {
	[LINK_NVLINK] = { 3400, "latency: the ring/Simple hop over NVLink in " TUNING },
	[LINK_XGMI] = { 0, "latency: none published, 0" },
	[LINK_C2C] = { 0, "latency: none published, 0" },
	[LINK_PCIE] = { 2850, "latency: half of 5.7, the ring/Simple hop over PCIe in " TUNING
	    ", as a hop between the two GPUs of a switch takes two links" },
	[LINK_QPI] = { 0, "latency: none published, 0" },
	[LINK_NET] = { 1300, "latency: an estimate, (14 - 4 x 2.85) / 2, so that four links of PCIe and two of the "
	    "network make the 14 of a ring/Simple hop over the network in " TUNING },
};

int64_t
link_class_latency(LinkClass class)
{
	return latencies[class].ns;
}

const char *
link_class_latency_source(LinkClass class)
{
	return latencies[class].source;
}

int64_t
nvswitch_latency(void)
{
	return latencies[LINK_NVLINK].ns / 2;
}

const char *
nvswitch_latency_source(void)
{
	return "latency: half of 3.4, the ring/Simple hop over NVLink in " TUNING
	    ", as a hop between two GPUs takes two links";
}

/* ---- PCI Express ---- */

/* GT/s by generation, and what NCCL counts for a lane, GB/s times 80. */
static const struct {
	double gt;
	int lane;
} generations[] = { { 2.5, 15 }, { 5, 30 }, { 8, 60 }, { 16, 120 }, { 32, 240 }, { 64, 480 } };

enum { N_GENERATIONS = sizeof generations / sizeof *generations };

int
pcie_generation(const char *speed)
{
	static const char digits[] = "0123456789.";
	size_t n = strspn(speed, digits);
	const char *unit = speed + n + strspn(speed + n, " ");
	if (n == 0 || n > 8 || strncmp(unit, "GT/s", 4) != 0)
		return 0;
	for (int i = 0; i < N_GENERATIONS; i++)
		if (strtod(speed, NULL) == generations[i].gt)
			return i + 1;
	return 0;
}

int64_t
pcie_capacity(int width, int generation)
{
	return (int64_t)width * generations[generation - 1].lane * (BYTES_PER_GB / 80);
}

const char *
pcie_capacity_source(void)
{
	return "effective: width times 15, 30, 60, 120, 240 or 480 / 80 GB/s of generations 1 to 6, as "
	    "src/graph/xml.cc and topo.cc of NCCL 2.30.7 count it (x16 of generation 3: 12, nominal 15.75)";
}

/* ---- sockets ---- */

/* The first row that fits: arch and vendor by their starts, "" fits all; family -1 fits all; model: at least. */
static const struct {
	const char *key, *arch, *vendor;
	int family, model;
	SocketLink link;
} sockets[] = {
	{ "emerald-rapids", "x86", "GenuineIntel", 6, 0xcf, { "Xeon Emerald Rapids or later, UPI", 40 * BYTES_PER_GB,
	    "effective: ERP_QPI_BW in " TOPO, false } },
	{ "sapphire-rapids", "x86", "GenuineIntel", 6, 0x8f, { "Xeon Sapphire Rapids, UPI", 22 * BYTES_PER_GB,
	    "effective: SRP_QPI_BW in " TOPO, false } },
	{ "skylake", "x86", "GenuineIntel", 6, 0x55, { "Xeon Skylake to Ice Lake, UPI", 10 * BYTES_PER_GB,
	    "effective: SKL_QPI_BW in " TOPO, false } },
	{ "broadwell", "x86", "GenuineIntel", -1, 0, { "Xeon Broadwell or earlier, QPI", 6 * BYTES_PER_GB,
	    "effective: BDW_QPI_BW in " TOPO, false } },
	{ "epyc", "x86", "AuthenticAMD", -1, -1, { "EPYC, xGMI", 16 * BYTES_PER_GB,
	    "effective: AMD_BW in " TOPO, false } },
	{ "hygon", "x86", "HygonGenuine", -1, -1, { "Hygon, xGMI", 16 * BYTES_PER_GB,
	    "effective: as AMD_BW in " TOPO, false } },
	{ "zhaoxin", "x86", "CentaurHauls", -1, -1, { "Zhaoxin, ZPI", 6 * BYTES_PER_GB,
	    "effective: ZPI_BW in " TOPO, false } },
	{ "power9", "ppc64", "", -1, -1, { "POWER9, X-Bus", 32 * BYTES_PER_GB, "effective: P9_BW in " TOPO, false } },
	{ "grace", "arm64", "NVIDIA", -1, -1, { "Grace, NVLink-C2C", 110 * BYTES_PER_GB,
	    "measured from CPU to CPU, by one user: https://github.com/ForceInjection/AI-fundamentals/issues/22",
	    false } },
	{ "arm", "arm64", "", -1, -1, { "Arm", 6 * BYTES_PER_GB, "effective: ARM_BW in " TOPO, false } },
	{ "arm", "aarch64", "", -1, -1, { "Arm", 6 * BYTES_PER_GB, "effective: ARM_BW in " TOPO, false } },
};

enum { N_SOCKETS = sizeof sockets / sizeof *sockets };

static bool
begins(const char *text, const char *with)
{
	return strncmp(text ? text : "", with, strlen(with)) == 0;
}

int
pcie_generation_of_cpu(CpuModel cpu)
{
	/* By CPUID: Naples, Rome, Milan, Genoa, Turin; up to Cascade Lake, Ice Lake, Sapphire Rapids. */
	static const struct {
		const char *arch, *vendor;
		int family, model, generation;
	} known[] = { { "x86", "AuthenticAMD", 26, 0, 5 }, { "x86", "AuthenticAMD", 25, 0x10, 5 },
		{ "x86", "AuthenticAMD", 25, 0, 4 }, { "x86", "AuthenticAMD", 23, 0x30, 4 },
		{ "x86", "AuthenticAMD", 23, 0, 3 }, { "x86", "GenuineIntel", 6, 0x8f, 5 },
		{ "x86", "GenuineIntel", 6, 0x6a, 4 }, { "x86", "GenuineIntel", 6, 0, 3 } };
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (begins(cpu.arch, known[i].arch) && begins(cpu.vendor, known[i].vendor)
		    && cpu.family == known[i].family && cpu.model >= known[i].model)
			return known[i].generation;
	return 0;
}

static bool
find_socket(const char *name, SocketLink *out)
{
	for (int i = 0; i < N_SOCKETS; i++) {
		if (strcmp(sockets[i].key, name) == 0) {
			*out = sockets[i].link;
			return true;
		}
	}
	return false;
}

Status
socket_link_parse(Ctx *ctx, const char *name, SocketLink *out)
{
	Text list = { 0 };
	if (find_socket(name, out))
		return OK;
	for (int i = 0; i < N_SOCKETS; i++)
		if (i == 0 || strcmp(sockets[i].key, sockets[i - 1].key) != 0)
			text_printf(&list, "%s%s", i ? ", " : "", sockets[i].key);
	Status status = fail(ctx, USAGE, "--cpu: \"%.60s\": want one of %s", name, list.data ? list.data : "");
	text_free(&list);
	return status;
}

/* Grace comes with its GPUs. Four NUMA nodes with devices, or more cores than a Xeon of their time has, are an EPYC.
 * The Xeons of a time are those that have the generation of PCIe, but for Ada, whose hosts are ahead of it. */
static const char *
likely_cpu(const GpuModel *gpus, int n_nodes, int cores)
{
	int age = !gpus ? 3 : strcmp(gpus->arch, "sm89") == 0 ? 5 : gpus->pcie;
	int most_cores = age >= 5 ? 60 : age == 4 ? 40 : 28;
	if (gpu_model_has_grace(gpus))
		return "grace";
	if ((gpus && gpus->class == LINK_XGMI) || n_nodes >= 4 || cores > most_cores)
		return "epyc";
	return age >= 5 ? "sapphire-rapids" : "skylake";
}

SocketLink
socket_link(CpuModel cpu, const GpuModel *gpus, int n_nodes)
{
	SocketLink link;
	bool arm = begins(cpu.arch, "arm64") || begins(cpu.arch, "aarch64");
	for (int i = 0; i < N_SOCKETS && !(arm && gpu_model_has_grace(gpus)); i++)
		if (begins(cpu.arch, sockets[i].arch) && begins(cpu.vendor, sockets[i].vendor)
		    && cpu.model >= sockets[i].model && (sockets[i].family < 0 || cpu.family == sockets[i].family))
			return sockets[i].link;
	find_socket(likely_cpu(gpus, n_nodes, cpu.cores), &link);
	link.assumed = !arm;
	return link;
}
