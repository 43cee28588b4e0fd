/* A virtual libhwloc, for tests: build/tests/virtual_gpu/hwloc/libhwloc.so.15 tells of the machine of
 * VIRTUAL_GPU_TOPOLOGY what libhwloc would, but for NVLinks: PCIe with its bridges, CPUs, NICs. GPUs are idle, so that
 * the speed that their links have now is an eighth. With VIRTUAL_GPU_NO_PCI there are no PCI devices, as where /sys is
 * hidden. */
#include "base/text.h"
#include "nvml_machine.h"

#include <hwloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

static int gp_index;

/* ---- XML ---- */

static void
open_object(Text *out, const char *type)
{
	text_printf(out, "<object type=\"%s\" gp_index=\"%d\"", type, ++gp_index);
}

static void
put_speed(Text *out, int64_t capacity)
{
	static const double lanes[] = { 0.25, 0.5, 0.984615385, 1.969230769, 3.938461538, 7.5625 };
	int width, generation = nvml_pcie(capacity, &width);
	text_printf(out, " pci_link_speed=\"%.6f\"", width * lanes[generation - 1]);
}

static void
open_bridge(Text *out, int bus, int slot, int64_t capacity)
{
	open_object(out, "Bridge");
	text_printf(out, " bridge_type=\"1-1\" depth=\"1\" bridge_pci=\"0000:[%02x-ff]\" "
	    "pci_busid=\"0000:%02x:%02x.0\" pci_type=\"0604 [10b5:9765] [0000:0000] ca\"",
		    bus & 255, bus & 255, slot & 31);
	put_speed(out, capacity);
	text_put(out, ">");
}

static void
put_device(Text *out, const struct nvml_machine *m, int v)
{
	const Vertex *vertex = &m->topo->vertex[v];
	bool gpu = vertex->kind == VERTEX_GPU;
	open_object(out, "PCIDev");
	text_printf(out, " pci_busid=\"0000:%02x:00.0\" pci_type=\"%s [0000:0000] a1\"", m->bus[v] & 255,
	    gpu ? "0302 [10de:1db1]" : "0207 [15b3:1013]");
	put_speed(out, gpu ? m->up[v] / 8 : m->up[v]);
	text_put(out, ">");
	for (int kind = 2; kind <= 3 && !gpu; kind++) {
		open_object(out, "OSDev");
		text_printf(out, " name=\"%s%s\" osdev_type=\"%d\"/>", kind == 2 ? "net-" : "", vertex->id, kind);
	}
	text_put(out, "</object>");
}

/* Each device and switch is below a port of its own. */
static void
put_below(Text *out, const struct nvml_machine *m, int v, int bus, int *slot)
{
	for (int b = 1; b < 256; b++) {
		for (int i = 0; i < m->topo->n_vertices; i++) {
			const Vertex *vertex = &m->topo->vertex[i];
			if (m->above[i] != v || m->bus[i] != b)
				continue;
			open_bridge(out, bus, (*slot)++, vertex->kind == VERTEX_GPU ? m->up[i] / 8 : m->up[i]);
			if (vertex->kind == VERTEX_SWITCH) {
				int ports = 0;
				open_bridge(out, b, 0, m->up[i]);
				put_below(out, m, i, b + 1, &ports);
				text_put(out, "</object>");
			} else {
				put_device(out, m, i);
			}
			text_put(out, "</object>");
		}
	}
}

/* By the rate between two CPUs. */
static const char *
cpu_infos(const Topology *topo)
{
	static const struct {
		int64_t rate;
		const char *infos;
	} cpus[] = { { 6, "GenuineIntel 6 79" }, { 10, "GenuineIntel 6 85" }, { 22, "GenuineIntel 6 143" },
		{ 40, "GenuineIntel 6 207" }, { 16, "AuthenticAMD 23 49" } };
	for (int l = 0; l < topo->n_links; l++)
		for (size_t i = 0; i < sizeof cpus / sizeof *cpus; i++)
			if (topo->link[l].class == LINK_QPI && topo->link[l].capacity == cpus[i].rate * BYTES_PER_GB)
				return cpus[i].infos;
	return "";
}

static void
put_package(Text *out, const struct nvml_machine *m, int v, int number, int *slot)
{
	char vendor[32], infos[64];
	int family, model;
	open_object(out, "Package");
	text_printf(out, " os_index=\"%d\">", number);
	snprintf(infos, sizeof infos, "%s", cpu_infos(m->topo));
	if (sscanf(infos, "%31s %d %d", vendor, &family, &model) == 3)
		text_printf(out, "<info name=\"CPUVendor\" value=\"%s\"/><info name=\"CPUFamilyNumber\" value=\"%d\"/>"
		    "<info name=\"CPUModelNumber\" value=\"%d\"/>", vendor, family, model);
	open_object(out, "NUMANode");
	text_printf(out, " os_index=\"%d\"/>", number);
	if (!getenv("VIRTUAL_GPU_NO_PCI")) {
		open_object(out, "Bridge");
		text_put(out, " bridge_type=\"0-1\" depth=\"0\" bridge_pci=\"0000:[00-ff]\">");
		put_below(out, m, v, 0, slot);
		text_put(out, "</object>");
	}
	text_put(out, "</object>");
}

static void
put_machine(Text *out)
{
	const struct nvml_machine *m = nvml_machine();
	int number = 0, slot = 1;
	gp_index = 0;
	text_put(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n"
	    "<topology version=\"2.0\">");
	open_object(out, "Machine");
	text_printf(out, "><info name=\"DMIProductName\" value=\"%s\"/><info name=\"hwlocVersion\" value=\"2.9.0\"/>"
	    "<info name=\"Architecture\" value=\"x86_64\"/>", m->topo->name);
	for (int v = 0; v < m->topo->n_vertices; v++)
		if (m->topo->vertex[v].kind == VERTEX_CPU)
			put_package(out, m, v, number++, &slot);
	text_put(out, "</object></topology>\n");
}

/* ---- what blinkc calls ---- */

EXPORT int
hwloc_topology_init(hwloc_topology_t *topology)
{
	*topology = malloc(1);
	return *topology ? 0 : -1;
}

EXPORT int
hwloc_topology_set_io_types_filter(hwloc_topology_t topology, enum hwloc_type_filter_e filter)
{
	return topology && filter == HWLOC_TYPE_FILTER_KEEP_ALL ? 0 : -1;
}

EXPORT int
hwloc_topology_set_flags(hwloc_topology_t topology, unsigned long flags)
{
	return topology && flags == HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED ? 0 : -1;
}

EXPORT int
hwloc_topology_set_components(hwloc_topology_t topology, unsigned long flags, const char *name)
{
	return topology && flags == HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST && name ? 0 : -1;
}

EXPORT int
hwloc_topology_load(hwloc_topology_t topology)
{
	return topology && !nvml_fails("hwloc_topology_load") ? 0 : -1;
}

EXPORT int
hwloc_topology_export_xmlbuffer(hwloc_topology_t topology, char **xml, int *size, unsigned long flags)
{
	Text text = { 0 };
	if (!topology || flags || nvml_fails("hwloc_topology_export_xmlbuffer"))
		return -1;
	put_machine(&text);
	*xml = malloc(text.size + 1);
	if (!*xml)
		return -1;
	memcpy(*xml, text.data, text.size);
	(*xml)[text.size] = 0;
	*size = (int)text.size + 1;
	text_free(&text);
	return 0;
}

EXPORT void
hwloc_free_xmlbuffer(hwloc_topology_t topology, char *xml)
{
	(void)topology;
	free(xml);
}

EXPORT void
hwloc_topology_destroy(hwloc_topology_t topology)
{
	free(topology);
}

/* ---- what blinkc topology --measure calls: there are no NUMA nodes to bind to ---- */

EXPORT int
hwloc_get_type_depth(hwloc_topology_t topology, hwloc_obj_type_t type)
{
	return topology && type == HWLOC_OBJ_NUMANODE ? HWLOC_TYPE_DEPTH_NUMANODE : HWLOC_TYPE_DEPTH_UNKNOWN;
}

EXPORT hwloc_obj_t
hwloc_get_obj_by_depth(hwloc_topology_t topology, int depth, unsigned index)
{
	(void)topology, (void)depth, (void)index;
	return NULL;
}

/* They are not called, but have to be there. */
#define REFUSES(type, name, ...) \
	EXPORT type name(__VA_ARGS__) \
	{ \
		return 0; \
	}
#pragma GCC diagnostic ignored "-Wunused-parameter"
REFUSES(int, hwloc_bitmap_iszero, hwloc_const_bitmap_t set)
REFUSES(int, hwloc_bitmap_isincluded, hwloc_const_bitmap_t sub, hwloc_const_bitmap_t super)
REFUSES(int, hwloc_set_cpubind, hwloc_topology_t t, hwloc_const_cpuset_t set, int flags)
REFUSES(void *, hwloc_alloc_membind, hwloc_topology_t t, size_t size, hwloc_const_bitmap_t set,
    hwloc_membind_policy_t policy, int flags)
REFUSES(int, hwloc_free, hwloc_topology_t t, void *at, size_t size)
REFUSES(int, hwloc_obj_add_info, hwloc_obj_t object, const char *name, const char *value)
REFUSES(hwloc_distances_add_handle_t, hwloc_distances_add_create, hwloc_topology_t t, const char *name,
    unsigned long kind, unsigned long flags)
REFUSES(int, hwloc_distances_add_values, hwloc_topology_t t, hwloc_distances_add_handle_t handle, unsigned n,
    hwloc_obj_t *objects, hwloc_uint64_t *values, unsigned long flags)
REFUSES(int, hwloc_distances_add_commit, hwloc_topology_t t, hwloc_distances_add_handle_t handle, unsigned long flags)
