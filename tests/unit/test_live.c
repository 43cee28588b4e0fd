/* What libhwloc finds is what the reader of its XML reads.
 *
 *   test_live                  this machine: XML of hwloc, which is read or has no GPU
 *   test_live print            the machine that libhwloc finds, with its variables HWLOC_* as they are, as JSON
 *   test_live cpus N           that machine, whose ranks are N CPUs, 0: one for each NUMA node
 *   test_live again FILE 1|2   FILE, as libhwloc reads it and writes it in that version */
#include "base/file_read.h"
#include "format/format.h"

#include <hwloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int
look(Ctx *ctx, bool print, const TopologyHints *hints)
{
	Text xml = { 0 }, json = { 0 };
	Topology *topo;
	Status status = live_write(ctx, false, &xml);
	bool hwloc = status == OK && topo_is_hwloc(xml.data, xml.size);
	if (hwloc)
		status = topo_read_as(ctx, "this machine", hints, xml.data, xml.size, &topo);
	if (status == OK && print) {
		topo_write_json(topo, &json);
		fwrite(json.data, 1, json.size, stdout);
	}
	text_free(&xml);
	text_free(&json);
	if (status != OK)
		fprintf(stderr, "%s\n", ctx->error.text);
	return hwloc && (status == OK || (!print && status == BAD_INPUT && strstr(ctx->error.text, "no GPU"))) ? 0 : 1;
}

static int
again(Ctx *ctx, const char *path, int version)
{
	hwloc_topology_t topology;
	Text in = { 0 };
	unsigned long flags = version == 1 ? HWLOC_TOPOLOGY_EXPORT_XML_FLAG_V1 : 0;
	int failed = file_read(ctx, path, &in) != OK || hwloc_topology_init(&topology) != 0;
	if (failed)
		return 1;
	/* The size has the NUL. */
	failed = hwloc_topology_set_xmlbuffer(topology, in.data, (int)in.size + 1) != 0
	    || hwloc_topology_set_io_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_ALL) != 0
	    || hwloc_topology_load(topology) != 0 || hwloc_topology_export_xml(topology, "-", flags) != 0;
	hwloc_topology_destroy(topology);
	text_free(&in);
	return failed;
}

int
main(int argc, char **argv)
{
	Ctx ctx;
	ctx_init(&ctx);
	bool cpus = argc == 3 && strcmp(argv[1], "cpus") == 0;
	TopologyHints hints = { .cpu_ranks = cpus, .n_cpu_ranks = cpus ? atoi(argv[2]) : 0 };
	bool prints = argc == 2 || cpus;	/* all tests of units are given two numbers */
	int failed = argc == 4 ? again(&ctx, argv[2], atoi(argv[3])) : look(&ctx, prints, &hints);
	ctx_free(&ctx);
	if (!prints && argc != 4)
		printf("%s this machine by libhwloc\n", failed ? "not ok" : "ok");
	return failed;
}
