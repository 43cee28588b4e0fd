/* The machine that this runs on. libhwloc looks, and writes what it found as XML, which tree.c reads like any file:
 * there is one way from hwloc to a Topology. */
#include "format/format.h"
#include "format/hwloc/measure.h"

#include <errno.h>
#include <hwloc.h>
#include <string.h>

/* All devices, also those of CPUs that this process may not run on. Displays (gl) and OpenCL are not asked: they start
 * programs and libraries of their own, and GPUs are found without them. */
static int
load(hwloc_topology_t topology)
{
	static const char *const slow[] = { "gl", "opencl" };
	if (hwloc_topology_set_io_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_ALL) < 0
	    || hwloc_topology_set_flags(topology, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED) < 0)
		return -1;
	for (size_t i = 0; i < sizeof slow / sizeof *slow; i++)
		hwloc_topology_set_components(topology, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, slow[i]);
	return hwloc_topology_load(topology);
}

static Status
export(Ctx *ctx, hwloc_topology_t topology, Text *out)
{
	char *xml;
	int size;
	if (hwloc_topology_export_xmlbuffer(topology, &xml, &size, 0) < 0)
		return fail(ctx, IO, "this machine: libhwloc: cannot write what it found: %s", strerror(errno));
	text_add(out, xml, strnlen(xml, (size_t)size));
	hwloc_free_xmlbuffer(topology, xml);
	return out->failed ? fail_memory(ctx) : OK;
}

Status
live_write(Ctx *ctx, bool measure, Text *out)
{
	hwloc_topology_t topology;
	if (hwloc_topology_init(&topology) < 0)
		return fail_memory(ctx);
	Status status = load(topology) == 0 ? OK
	    : fail(ctx, IO, "this machine: libhwloc: cannot look at it: %s", strerror(errno));
	if (status == OK && measure)
		status = measure_memory(ctx, topology);
	if (status == OK)
		status = export(ctx, topology, out);
	hwloc_topology_destroy(topology);
	return status;
}
