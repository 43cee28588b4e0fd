/* A schedule of rings as a graph file of NCCL. With one server the orders of GPUs are given twice, as rings and as the
 * chains that NCCL calls trees: by its reckoning a chain sends s / 2 over each of its hops, both ways, where a
 * ring of speed s sends s in one. If rings of speed s fit links that are as fast both ways, so do these chains.
 * Trees between servers go by other NICs than rings, so that NCCL finds those itself. */
#include "format/nccl/graph.h"
#include "base/xml_write.h"
#include "format/format.h"

#include <inttypes.h>
#include <stdio.h>

enum { RINGS = 0, TREES = 1, PATTERN_TREES = 1, PATTERN_RINGS = 4 };	/* NCCL's numbers */

static Status
find_graph(Ctx *ctx, const Schedule *sched, const FormatInput *in, NcclGraph *out)
{
	*out = (NcclGraph){ 0 };
	TRY(nccl_graph_rings(ctx, sched, out));
	TRY(nccl_graph_ways(ctx, sched, in->server, out));
	nccl_graph_channels(out);
	return OK;
}

/* As NCCL writes them: 0, 0x3, 0xa. */
static void
put_device(XmlWriter *w, const char *name, int dev)
{
	char text[16];
	snprintf(text, sizeof text, dev ? "0x%x" : "0", (unsigned)dev);
	xml_begin(w, name);
	xml_attribute(w, "dev", text);
	xml_end(w);
}

static void
put_channel(XmlWriter *w, const NcclGraph *graph, const struct nccl_way *way)
{
	xml_begin(w, "channel");
	if (way->in >= 0)
		put_device(w, "net", way->in);
	for (int i = 0; i < graph->n_gpus; i++)
		put_device(w, "gpu", way->gpu[i]);
	if (way->in >= 0)
		put_device(w, "net", way->out);
	xml_end(w);
}

/* crossnic is 0 also where rings leave a server by another NIC than they entered it: where it is 1, NCCL 2.20 to 2.25
 * exchange the rings of every other server, each with its neighbour (connect.cc). */
static void
put_graph(XmlWriter *w, const NcclGraph *graph, int id, int pattern)
{
	static const char *const path[] = { "NVL", "PIX", "PHB", "SYS" };
	Frac speed = { (Wide)graph->speed * NCCL_GRAPH_UNIT, 1 };
	xml_begin(w, "graph");
	xml_attribute_int(w, "id", id);
	xml_attribute_int(w, "pattern", pattern);
	xml_attribute_int(w, "crossnic", 0);
	xml_attribute_int(w, "nchannels", graph->n_channels);
	xml_attribute_gb(w, "speedintra", speed);
	xml_attribute_gb(w, "speedinter", speed);
	xml_attribute(w, "latencyinter", "0");
	xml_attribute(w, "typeintra", path[graph->intra]);
	xml_attribute(w, "typeinter", path[graph->inter]);
	xml_attribute_int(w, "samechannels", graph->ring[0].copies == graph->n_channels);
	for (int i = 0; i < graph->n_rings; i++)
		for (int c = 0; c < graph->ring[i].copies; c++)
			put_channel(w, graph, &graph->way[i]);
	xml_end(w);
}

Status
sched_write_nccl_graph(Ctx *ctx, const Schedule *sched, const FormatInput *in, Text *out)
{
	XmlWriter w = { .out = out };
	NcclGraph graph;
	TRY(find_graph(ctx, sched, in, &graph));
	xml_begin(&w, "graphs");
	xml_attribute_int(&w, "version", 1);
	put_graph(&w, &graph, RINGS, PATTERN_RINGS);
	if (graph.both_ways)
		put_graph(&w, &graph, TREES, PATTERN_TREES);
	xml_end(&w);
	return out->failed ? fail_memory(ctx) : OK;
}

Status
sched_note_nccl_graph(Ctx *ctx, const Schedule *sched, const FormatInput *in, Text *out)
{
	NcclGraph graph;
	TRY(find_graph(ctx, sched, in, &graph));
	text_printf(out, "nccl-graph  %d channel%s of ", graph.n_channels, graph.n_channels == 1 ? "" : "s");
	text_gb(out, (Frac){ (Wide)graph.speed * NCCL_GRAPH_UNIT, 1 });
	text_put(out, " GB/s; ");
	if (graph.lost == 0)
		text_put(out, "nothing of the rings is lost\n");
	else {
		text_gb(out, (Frac){ (Wide)graph.lost * NCCL_GRAPH_UNIT, 1 });
		text_put(out, " GB/s of the rings are lost, since all channels have one speed\n");
	}
	return out->failed ? fail_memory(ctx) : OK;
}
