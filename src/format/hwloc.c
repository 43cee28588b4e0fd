/* A machine of hwloc as a Topology. Bridges that lead to two or more GPUs and NICs are switches of PCIe; the others are
 * part of a link, whose speed is the least of theirs. The I/O of a NUMA node hangs on its vertex:
 *
 *   Package                                        cpu0
 *     NUMANode P#0                                   |  12 GB/s: the least of A, B and D
 *     HostBridge                                   pcie0
 *       Bridge A  (root port)                       /  \  E and F: an end of each link is the port above it
 *         Bridge B  (upstream port of a switch)   gpu0  mlx5_0
 *           Bridge E - PCIDev 0302 - OSDev nvml0
 *           Bridge F - PCIDev 0207 - OSDev mlx5_0
 */
#include "format/hwloc_machine.h"
#include "format/format.h"
#include "format/link_rates.h"
#include "format/sniff.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VENDOR_NVIDIA = 0x10de, VENDOR_AMD = 0x1002 };

/* Below this a PCI link is that of a NIC for management: x4 of generation 3 has 3.9 GB/s. */
#define NIC_SPEED INT64_C(3500000000)

/* x16 of generation 1. */
#define IDLE_SPEED INT64_C(4000000000)

/* ---- which objects are GPUs and NICs ---- */

int
hwloc_device_of(const HwTree *tree, int object)
{
	int i = object;
	while (i >= 0 && tree->object[i].kind == HW_OS)
		i = tree->object[i].parent;
	return i >= 0 && tree->object[i].kind == HW_PCI ? i : object;
}

/* "nvml3", "cuda0", "rsmi1", "opencl0d2", "ze0": a handle by which programs use a GPU. */
static bool
is_gpu_handle(const HwObject *object)
{
	static const char *const names[] = { "nvml", "cuda", "rsmi", "ze", "opencl" };
	const char *type = hwloc_info(object->doc, "OpenCLDeviceType");
	for (size_t i = 0; object->kind == HW_OS && i < sizeof names / sizeof *names; i++) {
		size_t n = strlen(names[i]);
		if (strncmp(object->name, names[i], n) == 0 && isdigit((unsigned char)object->name[n]))
			return !type || strcmp(type, "GPU") == 0;
	}
	return false;
}

/* A GPU for computing by its PCI class: 3D controller, other display controller, processing accelerator. Many a server has
 * a VGA controller of these vendors (0300) that is none, but so are cards for desktops. */
static bool
is_gpu_class(const HwObject *object, bool vga)
{
	unsigned class = object->pci.class;
	return object->kind == HW_PCI && (object->pci.vendor == VENDOR_NVIDIA || object->pci.vendor == VENDOR_AMD)
	    && (vga ? class == 0x0300 : class == 0x0302 || class == 0x0380 || class == 0x1200);
}

static void
add_gpu(HwMachine *m, int object)
{
	if (m->role[object] == ROLE_GPU)
		return;
	m->role[object] = ROLE_GPU;
	m->gpu[m->n_gpus++] = object;
}

/* By PCI address; those without one last, in the order of the file. */
static int
compare_devices(const void *a, const void *b, void *of)
{
	const HwTree *tree = of;
	int i = *(const int *)a, j = *(const int *)b;
	const HwPci *p = &tree->object[i].pci, *q = &tree->object[j].pci;
	const unsigned key[][2] = { { !p->known, !q->known }, { p->domain, q->domain }, { p->bus, q->bus },
		{ p->device, q->device }, { p->function, q->function } };
	for (size_t k = 0; k < sizeof key / sizeof *key; k++)
		if (key[k][0] != key[k][1])
			return key[k][0] < key[k][1] ? -1 : 1;
	return i - j;
}

/* By PCI class only where nothing else is known. */
static void
find_gpus(HwMachine *m)
{
	const HwTree *tree = m->tree;
	for (int i = 0; i < tree->n_objects; i++) {
		int device = hwloc_device_of(tree, i);
		const HwObject *object = &tree->object[i];
		/* OpenCL also has CPUs, without a PCI device. */
		if (is_gpu_handle(object) && (device != i || strncmp(object->name, "opencl", 6) != 0))
			add_gpu(m, device);
	}
	bool by_class = m->n_gpus == 0;
	int n_hidden = 0;
	for (int vga = 0; vga < 2 && (vga == 0 || m->n_gpus == 0); vga++) {
		for (int i = 0; i < tree->n_objects; i++) {
			if (!is_gpu_class(&tree->object[i], vga) || m->role[i] == ROLE_GPU)
				continue;
			if (by_class)
				add_gpu(m, i);
			else
				n_hidden++;
		}
	}
	if (n_hidden)
		builder_assume(m->b, "left out: %d PCI device%s of the class of GPUs that NVML, CUDA, RSMI and OpenCL do not "
		    "have", n_hidden, n_hidden == 1 ? "" : "s");
	qsort_r(m->gpu, (size_t)m->n_gpus, sizeof *m->gpu, compare_devices, (void *)(uintptr_t)tree);
	if (m->n_gpus && by_class)
		builder_assume(m->b, "%d PCI devices are GPUs, by their class and vendor: hwloc has no NVML, CUDA or RSMI "
		    "devices", m->n_gpus);
}

/* A device that has an OpenFabrics device is one NIC, whatever else it is called. */
static void
find_nics(HwMachine *m)
{
	const HwTree *tree = m->tree;
	const char *slow = NULL;
	int n_slow = 0;
	for (int pass = 0; pass < 2; pass++) {
		for (int i = 0; i < tree->n_objects; i++) {
			const HwObject *object = &tree->object[i];
			unsigned want = pass == 0 ? HW_OS_OPENFABRICS : HW_OS_NETWORK;
			int device = hwloc_device_of(tree, i);
			if (object->kind != HW_OS || !(object->os_types & want) || device == i || m->role[device] != ROLE_NONE)
				continue;
			if (pass == 1 && tree->object[device].speed < NIC_SPEED) {
				slow = n_slow++ ? slow : object->name;
				continue;
			}
			m->role[device] = ROLE_NIC;
			m->nic[m->n_nics++] = device;
		}
	}
	if (n_slow)
		builder_assume(m->b, "left out: %.40s%s, network devices without a PCIe link of 3.5 GB/s or more", slow,
		    n_slow > 1 ? " and others" : "");
	if (m->n_nics)
		builder_assume(m->b, "ports of NICs: hwloc has no rates; --nic-rate sets them for a cluster");
	qsort_r(m->nic, (size_t)m->n_nics, sizeof *m->nic, compare_devices, (void *)(uintptr_t)tree);
}

static void
find_nvswitches(HwMachine *m)
{
	for (int i = 0; i < m->tree->n_objects; i++) {
		const HwObject *object = &m->tree->object[i];
		bool bridge = object->pci.vendor == VENDOR_NVIDIA && object->pci.class == 0x0680;
		if (object->kind == HW_PCI && m->role[i] == ROLE_NONE && (bridge || strcmp(object->subtype, "NVSwitch") == 0))
			m->role[i] = ROLE_NVSWITCH;
	}
}

/* ---- vertices ---- */

static bool
is_bridge(const HwObject *object)
{
	return object->kind == HW_BRIDGE || object->kind == HW_HOST_BRIDGE;
}

static bool
is_device(const HwMachine *m, int object)
{
	return m->role[object] == ROLE_GPU || m->role[object] == ROLE_NIC;
}

/* Children come after their parents. */
static Status
count_below(HwMachine *m)
{
	const HwTree *tree = m->tree;
	TRY(TEMP(m->ctx, m->branches, tree->n_objects));
	TRY(TEMP(m->ctx, m->numa, tree->n_objects));
	TRY(TEMP(m->ctx, m->n_numa, tree->n_objects));
	for (int i = 0; i < tree->n_objects; i++)
		m->numa[i] = -1;
	for (int i = tree->n_objects - 1; i >= 0; i--) {
		int parent = tree->object[i].parent;
		if (tree->object[i].kind == HW_NUMA) {
			m->numa[i] = i;
			m->n_numa[i]++;
		}
		if (parent < 0)
			continue;
		if (m->numa[i] >= 0)
			m->numa[parent] = m->numa[i];
		m->n_numa[parent] += m->n_numa[i];
		if (is_bridge(&tree->object[parent]) && (is_device(m, i) || m->branches[i]))
			m->branches[parent]++;
	}
	return OK;
}

/* Up to the first object with NUMA nodes below it: the first of these. Without any: the package, or the machine. */
static int
locality_of(HwMachine *m, int object)
{
	const HwObject *all = m->tree->object;
	int i = object;
	while (i >= 0 && m->numa[i] < 0)
		i = all[i].parent;
	if (i >= 0) {
		/* Several may also be kinds of memory of the same CPUs: siblings. */
		int last = m->n_numa[i] > 1 ? all[m->numa[i]].parent : i;
		if (m->n_numa[i] > 1 && last != i)
			builder_assume(m->b, "%s is near %d NUMA nodes: joined to the first, P#%d",
			    hwloc_bus_id(&all[object]).text, m->n_numa[i], all[m->numa[i]].os_index);
		return m->numa[i];
	}
	for (i = object; i >= 0 && all[i].kind != HW_PACKAGE;)
		i = all[i].parent;
	return i >= 0 ? i : 0;
}

int
hwloc_cpu_near(HwMachine *m, int object)
{
	char id[16];
	int at = locality_of(m, object), number = m->tree->object[at].os_index;
	if (m->vertex[at] < 0) {
		snprintf(id, sizeof id, "cpu%d", number < 0 ? 0 : number);
		m->vertex[at] = builder_vertex(m->b, VERTEX_CPU, m->node, id);
		m->cpu[m->n_cpus++] = m->vertex[at];
	}
	return m->vertex[at];
}

static void
add_gpus(HwMachine *m)
{
	char id[16];
	for (int i = 0; i < m->n_gpus; i++) {
		snprintf(id, sizeof id, "gpu%d", i);
		m->vertex[m->gpu[i]] = builder_vertex(m->b, VERTEX_GPU, m->node, id);
	}
}

/* Of the OpenFabrics device, else of the first network device. */
static const char *
nic_name(const HwMachine *m, int device)
{
	const HwObject *all = m->tree->object;
	const char *name = NULL;
	for (int i = device; i < all[device].end; i++) {
		if (all[i].os_types & HW_OS_OPENFABRICS && *all[i].name)
			return all[i].name;
		if (!name && all[i].os_types & HW_OS_NETWORK && *all[i].name)
			name = all[i].name;
	}
	return name ? name : "nic";
}

static void
add_others(HwMachine *m)
{
	const HwTree *tree = m->tree;
	char id[16];
	int n_switches = 0;
	for (int i = 0; i < m->n_nics; i++)
		m->vertex[m->nic[i]] = builder_vertex(m->b, VERTEX_NIC, m->node, nic_name(m, m->nic[i]));
	for (int i = 0; i < tree->n_objects; i++) {
		if (tree->object[i].kind != HW_BRIDGE || m->branches[i] < 2)
			continue;
		snprintf(id, sizeof id, "pcie%d", n_switches++);
		m->vertex[i] = builder_vertex(m->b, VERTEX_SWITCH, m->node, id);
	}
}

/* ---- PCIe links ---- */

/* Width and generation whose rate this is, to 1 %, x16 first. Of 15.75 GB/s several are, with one effective rate. */
static bool
pcie_of_speed(int64_t speed, int *width, int *generation)
{
	static const int64_t lanes[] = { 250000000, 500000000, 984615385, 1969230769, 3938461538, 7562500000 };
	static const int widths[] = { 16, 8, 4, 2, 1, 32, 12 };
	for (size_t w = 0; w < sizeof widths / sizeof *widths; w++) {
		for (size_t g = 0; g < sizeof lanes / sizeof *lanes; g++) {
			int64_t rate = widths[w] * lanes[g], off = speed > rate ? speed - rate : rate - speed;
			if (off <= rate / 200) {
				*width = widths[w];
				*generation = (int)g + 1;
				return true;
			}
		}
	}
	return false;
}

/* Whole MB/s as GB/s. */
static void
put_speed(char *out, size_t size, int64_t speed)
{
	snprintf(out, size, "%lld.%02lld GB/s", (long long)(speed / BYTES_PER_GB),
	    (long long)(speed % BYTES_PER_GB / 10000000));
}

static void
link_pcie(HwMachine *m, int from, int to, int64_t speed, const char *of)
{
	char source[128], rate[32];
	int width = PCIE_WIDTH_UNKNOWN, generation = PCIE_GENERATION_UNKNOWN;
	put_speed(rate, sizeof rate, speed);
	if (speed == 0) {
		builder_assume(m->b, "PCIe links without a speed are x16 of generation 3");
		snprintf(source, sizeof source, "no speed in hwloc: as x16 of generation 3");
	} else if (pcie_of_speed(speed, &width, &generation)) {
		snprintf(source, sizeof source, "hwloc: %s at %s, x%d of generation %d", rate, of, width, generation);
	} else {
		snprintf(source, sizeof source, "hwloc: %s at %s; effective: 3/4 of it", rate, of);
		builder_link(m->b, from, to, LINK_PCIE, 1, speed / 4 * 3 > 0 ? speed / 4 * 3 : 1, DUPLEX, source);
		return;
	}
	builder_link(m->b, from, to, LINK_PCIE, 1, pcie_capacity(width, generation), DUPLEX, source);
}

/* From a GPU, NIC or switch up to the next switch or CPU. */
static void
link_up(HwMachine *m, int object)
{
	const HwObject *all = m->tree->object;
	int64_t least = 0;
	int at = object, slowest = object;
	do {
		if (all[at].speed > 0 && (least == 0 || all[at].speed < least)) {
			least = all[at].speed;
			slowest = at;
		}
		at = all[at].parent;
	} while (at >= 0 && is_bridge(&all[at]) && m->vertex[at] < 0);
	if (m->role[object] == ROLE_GPU && least > 0 && least <= IDLE_SPEED)
		builder_assume(m->b, "PCIe links of GPUs with 4 GB/s or less: where they have a higher generation and were idle, "
		    "export the topology while they work");
	int to = at >= 0 && m->vertex[at] >= 0 && is_bridge(&all[at]) ? m->vertex[at] : hwloc_cpu_near(m, at >= 0 ? at : 0);
	link_pcie(m, m->vertex[object], to, least, hwloc_bus_id(&all[slowest]).text);
}

/* A GPU that has no place on PCI gets no link. */
static void
add_pcie(HwMachine *m)
{
	const HwTree *tree = m->tree;
	char source[512];
	snprintf(source, sizeof source, "%s, of pci_link_speed in the file; %s", pcie_capacity_source(),
	    link_class_latency_source(LINK_PCIE));
	builder_class(m->b, LINK_PCIE, 0, link_class_latency(LINK_PCIE), source);
	for (int i = 0; i < tree->n_objects && builder_status(m->b) == OK; i++) {
		if (m->vertex[i] < 0 || (!is_device(m, i) && tree->object[i].kind != HW_BRIDGE))
			continue;
		if (tree->object[i].kind == HW_OS)
			builder_assume(m->b, "%.40s has no PCI device: no PCIe link", tree->object[i].name);
		else
			link_up(m, i);
	}
}

/* ---- links between CPUs ---- */

static int
number_of(const char *text)
{
	long n = text ? strtol(text, NULL, 10) : -1;
	return n >= 0 && n < 100000 ? (int)n : -1;
}

static CpuModel
cpu_model(const HwMachine *m)
{
	CpuModel cpu = { .arch = hwloc_machine_info(m->tree, "Architecture"), .family = -1, .model = -1 };
	for (int i = 0; i < m->tree->n_objects; i++) {
		const Doc *doc = m->tree->object[i].doc;
		cpu.vendor = m->tree->object[i].kind == HW_PACKAGE ? hwloc_info(doc, "CPUVendor") : NULL;
		if (!cpu.vendor)
			continue;
		cpu.family = number_of(hwloc_info(doc, "CPUFamilyNumber"));
		cpu.model = number_of(hwloc_info(doc, "CPUModelNumber"));
		break;
	}
	if (!cpu.arch && cpu.vendor && cpu.family >= 0)
		cpu.arch = "x86_64";
	return cpu;
}

/* Every pair, as NCCL counts them. */
static void
add_sockets(HwMachine *m)
{
	const SocketLink *rate = socket_link(cpu_model(m));
	for (int i = 0; i < m->n_cpus; i++)
		for (int j = i + 1; j < m->n_cpus && builder_status(m->b) == OK; j++)
			builder_link(m->b, m->cpu[i], m->cpu[j], LINK_QPI, 1, rate->capacity, DUPLEX, NULL);
	if (m->n_cpus < 2)
		return;
	builder_class(m->b, LINK_QPI, rate->capacity, link_class_latency(LINK_QPI), rate->source);
	builder_assume(m->b, "%sNUMA nodes: %d GB/s (%s)", m->n_cpus > 2 ? "each pair of " : "between ",
	    (int)(rate->capacity / BYTES_PER_GB), rate->name);
}

/* ---- the whole ---- */

static Status
no_gpus(Ctx *ctx, const HwTree *tree)
{
	bool pci = false;
	for (int i = 0; i < tree->n_objects; i++)
		pci |= tree->object[i].kind == HW_PCI;
	return fail(ctx, BAD_INPUT, "%s: %s: want the machine with GPUs, by `lstopo --whole-io FILE.xml` there; or: "
	    "nvidia-smi topo -m | blinkc convert - -o topology.xml", tree->label,
	    pci ? "no GPU among the PCI devices that hwloc has" : "no GPU, as hwloc has no PCI devices here");
}

/* From the handles of the GPUs, else from a PCI id, else from the command line. */
static Status
find_model(HwMachine *m, const char *given)
{
	static const struct {
		unsigned model;
		const char *name;
	} amd[] = { { 0x66a0, "MI50" }, { 0x66a1, "MI60" }, { 0x738c, "MI100" }, { 0x7408, "MI250X" }, { 0x740c, "MI250X" },
		{ 0x740f, "MI210" }, { 0x74a1, "MI300X" }, { 0x74a5, "MI325X" } };
	const HwObject *all = m->tree->object, *gpu = &all[m->gpu[0]];
	if (given)
		return gpu_model_parse(m->ctx, given, &m->model);
	for (int i = m->gpu[0]; i < gpu->end; i++) {
		const char *name = hwloc_info(all[i].doc, "GPUModel");
		if (name && (m->model = gpu_model_find(name)) != NULL)
			return OK;
	}
	for (size_t i = 0; gpu->pci.vendor == VENDOR_AMD && i < sizeof amd / sizeof *amd; i++)
		if (gpu->pci.model == amd[i].model)
			m->model = gpu_model_find(amd[i].name);
	return OK;
}

static Status
new_machine(HwMachine *m)
{
	const HwTree *tree = m->tree;
	const char *name = hwloc_machine_info(tree, "DMIProductName"), *by = hwloc_machine_info(tree, "hwlocVersion");
	char source[256], space[LIMIT_ID_BYTES];
	name = name ? name : hwloc_machine_info(tree, "PlatformModel");
	if (!name)
		name = sniff_name(tree->label, space, sizeof space);
	snprintf(source, sizeof source, "machine that hwloc%s%.60s found (XML %d.x); rates: see classes and links",
	    by ? " " : "", by ? by : "", tree->version);
	TRY(builder_new(m->ctx, tree->label, name, source, &m->b));
	m->node = builder_node(m->b, "node0");
	TRY(TEMP(m->ctx, m->role, tree->n_objects));
	TRY(TEMP(m->ctx, m->gpu, tree->n_objects));
	TRY(TEMP(m->ctx, m->nic, tree->n_objects));
	TRY(TEMP(m->ctx, m->vertex, tree->n_objects));
	TRY(TEMP(m->ctx, m->cpu, tree->n_objects));
	for (int i = 0; i < tree->n_objects; i++)
		m->vertex[i] = -1;
	return OK;
}

static Status
read_hwloc(Ctx *ctx, const char *label, const TopologyHints *hints, const char *data, size_t size, Topology **out)
{
	HwTree *tree;
	HwMachine m = { .ctx = ctx };
	TRY(hwloc_tree_read(ctx, label, data, size, &tree));
	m.tree = tree;
	TRY(new_machine(&m));
	find_gpus(&m);
	if (m.n_gpus == 0)
		return no_gpus(ctx, tree);
	find_nics(&m);
	find_nvswitches(&m);
	TRY(count_below(&m));
	TRY(find_model(&m, hints->gpu_model));
	add_gpus(&m);
	add_others(&m);
	add_pcie(&m);
	TRY(hwloc_add_bandwidths(&m));
	add_sockets(&m);
	return builder_finish(m.b, out);
}

Status
topo_read_hwloc(Ctx *ctx, const char *label, TopologyFiles *files, const char *data, size_t size, Topology **out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	Status status = read_hwloc(ctx, label, &files->hints, data, size, out);
	arena_release(&ctx->scratch, mark);
	return status;
}

/* A <topology> with the DOCTYPE of hwloc, or one that is not ours and begins with an <object>. */
bool
topo_is_hwloc(const char *data, size_t size)
{
	enum { START = 4096 };
	size_t n = size < START ? size : START;
	const char *root = memmem(data, n, "<topology", 9), *object;
	if (!sniff_element(data, size, "topology") || !root)
		return false;
	if (memmem(data, (size_t)(root - data), "<!DOCTYPE topology SYSTEM \"hwloc", 32))
		return true;
	n -= (size_t)(root - data);
	const char *end = memchr(root, '>', n);
	object = end ? end + 1 : root + n;
	if (memmem(root, (size_t)(object - root), "blink-topology", 14))
		return false;
	while (object < root + n && isspace((unsigned char)*object))
		object++;
	return (size_t)(root + n - object) >= 7 && memcmp(object, "<object", 7) == 0;
}
