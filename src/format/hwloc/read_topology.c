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
#include "format/hwloc/machine.h"
#include "format/format.h"
#include "format/link_rates.h"
#include "format/sniff.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* ---- vertices ---- */

static void
add_gpus(HwMachine *m)
{
	char id[16];
	for (int i = 0; i < m->n_gpus; i++) {
		snprintf(id, sizeof id, "gpu%d", m->seen ? m->seen->gpu[i].number : i);
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
add_nics(HwMachine *m)
{
	const char *first = NULL;
	int n = 0;
	for (int i = 0; i < m->n_nics; i++) {
		const char *name = nic_name(m, m->nic[i]);
		int64_t rate = m->sysfs ? nic_port_rate(m->sysfs, name) : 0;
		int nic = m->vertex[m->nic[i]] = builder_vertex(m->b, VERTEX_NIC, m->node, name);
		if (rate > 0)
			builder_port(m->b, nic, rate);
		else if (n++ == 0)
			first = name;
	}
	if (n && m->sysfs)
		builder_assume(m->b, "%.40s%s: no port that is up, with a rate; --nic-rate sets it for a cluster",
		    first, n > 1 ? " and other NICs" : "");
}

static void
add_switches(HwMachine *m)
{
	const HwTree *tree = m->tree;
	char id[16];
	int n_switches = 0;
	for (int i = 0; i < tree->n_objects; i++) {
		if (tree->object[i].kind != HW_BRIDGE || m->branches[i] < 2)
			continue;
		snprintf(id, sizeof id, "pcie%d", n_switches++);
		m->vertex[i] = builder_vertex(m->b, VERTEX_SWITCH, m->node, id);
	}
}

/* ---- PCIe links ---- */

/* Whole MB/s as GB/s. */
static void
put_speed(char *out, size_t size, int64_t speed)
{
	snprintf(out, size, "%lld.%02lld GB/s", (long long)(speed / BYTES_PER_GB),
	    (long long)(speed % BYTES_PER_GB / 10000000));
}

static bool
leads_to_gpu(const HwMachine *m, int object)
{
	int i = object;
	while (i < m->tree->object[object].end && m->role[i] != ROLE_GPU)
		i++;
	return i < m->tree->object[object].end;
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
	} else if (hwloc_pcie_of_speed(speed, &width, &generation)) {
		snprintf(source, sizeof source, "hwloc: %s at %s, x%d of generation %d", rate, of, width, generation);
	} else {
		snprintf(source, sizeof source, "hwloc: %s at %s; effective: 3/4 of it", rate, of);
		builder_link(m->b, from, to, LINK_PCIE, 1, speed / 4 * 3 > 0 ? speed / 4 * 3 : 1, DUPLEX, source);
		return;
	}
	builder_link(m->b, from, to, LINK_PCIE, 1, pcie_capacity(width, generation), DUPLEX, source);
	if (speed == 0)
		builder_link_assumed(m->b);
}

/* A link of generation 1 that leads to GPUs, where these have a later one, saves power while they idle. It is as wide
 * as it will be, but those of AMD have fewer lanes then, too. The result, what it can do, is a guess; 0: it does not
 * idle. *generation, *width: as they were seen. */
static int64_t
awake(const HwMachine *m, int at, int *width, int *generation)
{
	const HwObject *port = &m->tree->object[at];
	int most = m->model ? m->model->pcie : PCIE_GENERATION_UNKNOWN;
	int of_cpu = pcie_generation_of_cpu(hwloc_cpu_model(m));
	most = of_cpu && of_cpu < most ? of_cpu : most;
	if (port->speed == 0 || !hwloc_pcie_of_speed(port->speed, width, generation) || *generation > 1 || most < 2)
		return 0;
	return hwloc_pcie_speed(m->tree->object[m->gpu[0]].pci.vendor == HW_AMD ? 16 : *width, most);
}

/* From a GPU, NIC or switch up to the next switch or CPU. */
static void
link_up(HwMachine *m, int object)
{
	const HwObject *all = m->tree->object;
	int64_t least = 0;
	int at = object, slowest = object, width, generation;
	bool idle = false, may_idle = (!m->seen || m->seen->assumed) && leads_to_gpu(m, object);
	do {
		int64_t now = all[at].speed, then = may_idle ? awake(m, at, &width, &generation) : 0;
		if (then) {
			builder_assume(m->b, "PCIe links to GPUs that idle, x%d of generation %d, are what they can "
			    "be: %.4g GB/s; export the topology while the GPUs work", width, generation,
			    (double)then / 1e9);
			now = then;
		}
		if (now > 0 && (least == 0 || now < least)) {
			least = now;
			slowest = at;
			idle = then > 0;
		}
		at = all[at].parent;
	} while (at >= 0 && hwloc_is_bridge(&all[at]) && m->vertex[at] < 0);
	int to = at >= 0 && m->vertex[at] >= 0 && hwloc_is_bridge(&all[at]) ? m->vertex[at] : hwloc_cpu_near(m,
	    at >= 0 ? at : 0);
	link_pcie(m, m->vertex[object], to, least, hwloc_bus_id(&all[slowest]).text);
	if (idle)
		builder_link_assumed(m->b);
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
		if (m->vertex[i] < 0 || (!hwloc_is_device(m, i) && tree->object[i].kind != HW_BRIDGE))
			continue;
		if (tree->object[i].kind == HW_OS)
			builder_assume(m->b, "%.40s has no PCI device: no PCIe link", tree->object[i].name);
		else
			link_up(m, i);
	}
}

/* Every pair, as NCCL counts them. */
static void
add_sockets(HwMachine *m)
{
	SocketLink link = socket_link(hwloc_cpu_model(m), m->model, m->n_cpus);
	builder_join_cpus(m->b, m->cpu, m->n_cpus, &link);
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
	} amd[] = { { 0x66a0, "MI50" }, { 0x66a1, "MI60" }, { 0x738c, "MI100" }, { 0x7408, "MI250X" }, { 0x740c,
	    "MI250X" },
		{ 0x740f, "MI210" }, { 0x74a1, "MI300X" }, { 0x74a5, "MI325X" } };
	const HwObject *all = m->tree->object, *gpu = &all[m->gpu[0]];
	if (given)
		return gpu_model_parse(m->ctx, given, &m->model);
	if (m->seen)
		m->model = gpu_model_find(m->seen->gpu[0].name);
	if (m->seen)
		return OK;
	for (int i = m->gpu[0]; i < gpu->end; i++) {
		const char *name = hwloc_info(all[i].doc, "GPUModel");
		if (name && (m->model = gpu_model_find(name)) != NULL)
			return OK;
	}
	for (size_t i = 0; gpu->pci.vendor == HW_AMD && i < sizeof amd / sizeof *amd; i++)
		if (gpu->pci.model == amd[i].model)
			m->model = gpu_model_find(amd[i].name);
	return OK;
}

static Status
new_machine(HwMachine *m)
{
	const HwTree *tree = m->tree;
	const char *name = hwloc_machine_info(tree, "DMIProductName"), *by = hwloc_machine_info(tree, "hwlocVersion");
	char source[384], space[LIMIT_ID_BYTES];
	name = name ? name : hwloc_machine_info(tree, "PlatformModel");
	if (!name)
		name = sniff_name(tree->label, space, sizeof space);
	int n = snprintf(source, sizeof source, "machine that hwloc%s%.60s found (XML %d.x)", by ? " " : "",
	    by ? by : "", tree->version);
	if (m->seen && m->seen->assumed)
		n += snprintf(source + n, sizeof source - (size_t)n, "; GPUs and pairs with NVLinks: the driver %s",
		    m->seen->driver);
	else if (m->seen)
		n += snprintf(source + n, sizeof source - (size_t)n, "; GPUs and NVLinks: NVML%s%s",
		    *m->seen->driver ? " of driver " : "", m->seen->driver);
	snprintf(source + n, sizeof source - (size_t)n, "; rates: see classes and links");
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
read_hwloc(Ctx *ctx, const char *label, const char *gpu_model, const MachineSeen *seen, const char *data, size_t size,
    Topology **out)
{
	HwTree *tree;
	HwMachine m = { .ctx = ctx, .seen = seen ? seen->gpus : NULL, .sysfs = seen ? seen->sysfs : NULL };
	TRY(hwloc_tree_read(ctx, label, data, size, false, &tree));
	if (m.seen)
		TRY(hwloc_tree_add_seen(ctx, tree, m.seen));
	m.tree = tree;
	TRY(new_machine(&m));
	if (m.seen)
		hwloc_find_seen(&m);
	TRY(hwloc_find_devices(&m));
	if (m.n_gpus == 0)
		return no_gpus(ctx, tree);
	TRY(find_model(&m, gpu_model));
	builder_gpus(m.b, m.model);
	add_gpus(&m);
	add_nics(&m);
	add_switches(&m);
	add_pcie(&m);
	TRY(m.seen ? hwloc_add_seen_links(&m) : hwloc_add_bandwidths(&m));
	if (m.n_cpus > HW_CPUS_MOST)
		return fail(ctx, LIMIT, "%s: devices at %d NUMA nodes: want at most %d", label, m.n_cpus,
		    HW_CPUS_MOST);
	add_sockets(&m);
	return builder_finish(m.b, out);
}

/* Its ranks are CPUs. */
static Status
read_cpus(Ctx *ctx, const char *label, int n_ranks, const char *data, size_t size, Topology **out)
{
	HwTree *tree;
	HwMachine m = { .ctx = ctx, .cpu_ranks = true };
	TRY(hwloc_tree_read(ctx, label, data, size, true, &tree));
	m.tree = tree;
	TRY(new_machine(&m));
	TRY(hwloc_find_devices(&m));
	TRY(hwloc_add_cpu_ranks(&m, n_ranks));
	if (m.n_nics) {
		add_nics(&m);
		add_switches(&m);
		add_pcie(&m);
	}
	return builder_finish(m.b, out);
}

Status
topo_read_hwloc(Ctx *ctx, const char *label, TopologyFiles *files, const char *data, size_t size, Topology **out)
{
	const TopologyHints *hints = &files->hints;
	ArenaMark mark = arena_mark(&ctx->scratch);
	Status status = hints->cpu_ranks ? read_cpus(ctx, label, hints->n_cpu_ranks, data, size, out)
	    : read_hwloc(ctx, label, hints->gpu_model, NULL, data, size, out);
	arena_release(&ctx->scratch, mark);
	return status;
}

Status
topo_of_machine(Ctx *ctx, const char *label, const MachineSeen *seen, const char *gpu_model, Topology **out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	Status status = read_hwloc(ctx, label, gpu_model, seen, seen->hwloc->data ? seen->hwloc->data : "",
	    seen->hwloc->size, out);
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
