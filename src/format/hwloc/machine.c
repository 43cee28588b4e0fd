/* Which objects of a machine are GPUs, NICs and NVSwitches, and which CPUs are next to them. */
#include "format/hwloc/machine.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Below this a PCI link is that of a NIC for management: x4 of generation 3 has 3.9 GB/s. */
#define NIC_SPEED INT64_C(3500000000)

/* ---- devices ---- */

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

/* A GPU for computing by its PCI class: 3D controller, other display controller, processing accelerator. Many a server
 * has a VGA controller of these vendors (0300) that is none, but so are cards for desktops. */
static bool
is_gpu_class(const HwObject *object, bool vga)
{
	unsigned class = object->pci.class;
	return object->kind == HW_PCI && (object->pci.vendor == HW_NVIDIA || object->pci.vendor == HW_AMD)
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
		builder_assume(m->b, "left out: %d PCI device%s of the class of GPUs that NVML, CUDA, RSMI and OpenCL "
		    "do not have", n_hidden, n_hidden == 1 ? "" : "s");
	qsort_r(m->gpu, (size_t)m->n_gpus, sizeof *m->gpu, compare_devices, (void *)(uintptr_t)tree);
	if (m->n_gpus && by_class)
		builder_assume(m->b, "%d PCI devices are GPUs, by their class and vendor: hwloc has no NVML, CUDA or "
		    "RSMI devices", m->n_gpus);
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
			if (object->kind != HW_OS || !(object->os_types & want) || device == i
			    || m->role[device] != ROLE_NONE)
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
	if (m->n_nics && !m->sysfs)
		builder_assume(m->b, "ports of NICs: hwloc has no rates; --nic-rate sets them for a cluster");
	qsort_r(m->nic, (size_t)m->n_nics, sizeof *m->nic, compare_devices, (void *)(uintptr_t)tree);
}

static void
find_nvswitches(HwMachine *m)
{
	for (int i = 0; i < m->tree->n_objects; i++) {
		const HwObject *object = &m->tree->object[i];
		bool bridge = object->pci.vendor == HW_NVIDIA && object->pci.class == 0x0680;
		if (object->kind == HW_PCI && m->role[i] == ROLE_NONE && (bridge || strcmp(object->subtype,
		    "NVSwitch") == 0))
			m->role[i] = ROLE_NVSWITCH;
	}
}

bool
hwloc_is_bridge(const HwObject *object)
{
	return object->kind == HW_BRIDGE || object->kind == HW_HOST_BRIDGE;
}

bool
hwloc_is_device(const HwMachine *m, int object)
{
	return m->role[object] == ROLE_GPU || m->role[object] == ROLE_NIC;
}

/* ---- CPUs ---- */

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
		if (hwloc_is_bridge(&tree->object[parent]) && (hwloc_is_device(m, i) || m->branches[i]))
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

static int
number_of(const char *text)
{
	long n = text ? strtol(text, NULL, 10) : -1;
	return n >= 0 && n < 100000 ? (int)n : -1;
}

CpuModel
hwloc_cpu_model(const HwMachine *m)
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

Status
hwloc_find_devices(HwMachine *m)
{
	if (!m->seen && !m->cpu_ranks)
		find_gpus(m);
	find_nics(m);
	find_nvswitches(m);
	return count_below(m);
}
