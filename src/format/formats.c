/* The tables of formats, and which of them a file has. */
#include "format/builder.h"
#include "format/doc.h"
#include "format/file_kind.h"
#include "format/format.h"
#include "topology/topology.h"

#include <stdio.h>
#include <string.h>

/* Those of a file that is read are tried in this order. Formats of others come first, so that each is known by what
 * only its files have; ours take all other JSON and XML, and report what is wrong with it. */
const TopologyFormat topology_formats[] = {
	{ "nccl", NULL, "what NCCL or RCCL writes to NCCL_TOPO_DUMP_FILE", topo_is_nccl, topo_read_nccl, NULL },
	{ "hwloc", NULL, "XML of hwloc, by lstopo", topo_is_hwloc, topo_read_hwloc, NULL },
	{ "nvidia-smi", NULL, "what nvidia-smi topo -m prints", topo_is_nvidia_smi, topo_read_nvidia_smi, NULL },
	{ "rocm-smi", NULL, "what rocm-smi or amd-smi prints about topology", topo_is_rocm_smi, topo_read_rocm_smi,
	    NULL },
	{ "json", "json", "blink-topology(5)", topo_is_json, topo_read_json, topo_write_json },
	{ "xml", "xml", "blink-topology(5)", topo_is_xml, topo_read_xml, topo_write_xml },
	{ "canonical", "canonical", "the text that the digest is of", NULL, NULL, topo_canonical_text },
	{ .name = NULL },
};

const ScheduleFormat schedule_formats[] = {
	{ "json", "json", NULL, NULL, false, NULL },
	{ SCHEDULE_COMPACT, SCHEDULE_COMPACT, NULL, NULL, false, NULL },
	{ "cu", "cu", sched_write_cu, NULL, false, NULL },
	{ "cuda-kernel", "cuda-kernel", sched_write_cu_kernel, NULL, false, NULL },
	{ "nccl-graph", "nccl-graph", sched_write_nccl_graph, sched_note_nccl_graph, true, NULL },
	{ SCHEDULE_MSCCL, "msccl", sched_write_msccl, sched_note_msccl, false, NULL },
	{ SCHEDULE_MSCCLPP, "mscclpp.json", sched_write_mscclpp, sched_note_mscclpp, false, NULL },
	{ SCHEDULE_MSCCLPP_PACKETS, "mscclpp-packets.json", sched_write_mscclpp_packets, sched_note_mscclpp_packets,
	    false, NULL },
	{ "chakra", "chakra", sched_write_chakra, NULL, false, "et" },
	{ .name = NULL },
};

const TopologyFormat *
topology_format(const char *name)
{
	const TopologyFormat *format = topology_formats;
	while (format->name && strcmp(format->name, name) != 0)
		format++;
	return format->name ? format : NULL;
}

const ScheduleFormat *
schedule_format(const char *name)
{
	const ScheduleFormat *format = schedule_formats;
	while (format->name && strcmp(format->name, name) != 0)
		format++;
	return format->name ? format : NULL;
}

/* By content; NULL: of no format. */
static const TopologyFormat *
sniff(const char *data, size_t size)
{
	const TopologyFormat *format = topology_formats;
	while (format->name && !(format->sniff && format->sniff(data, size)))
		format++;
	return format->name ? format : NULL;
}

/* With those that are read. */
static Status
fail_unknown(Ctx *ctx, const char *label, const char *data, size_t size)
{
	char list[256] = "";
	size_t used = 0;
	if (file_kind(data, size) != FILE_TEXT)
		TRY(file_kind_check(ctx, label, data, size, FILE_TOPOLOGY));
	TRY(doc_check_bytes(ctx, label, data, size));
	TRY(file_kind_check(ctx, label, data, size, FILE_TOPOLOGY));
	for (const TopologyFormat *f = topology_formats; f->name; f++)
		if (f->read && used < sizeof list)
			used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", used ? ", " : "", f->name);
	return fail(ctx, BAD_INPUT, "%s: no topology of a known kind: want one of %s", label, list);
}

/* A file, or one that it names. */
static Status
read_any(Ctx *ctx, const char *label, TopologyFiles *files, const char *data, size_t size, Topology **out)
{
	const TopologyHints *hints = &files->hints;
	bool named = hints->from && hints->from_files == (files->depth > 0);
	const TopologyFormat *format = named ? topology_format(hints->from) : sniff(data, size);
	if (!format || !format->read)
		return fail_unknown(ctx, label, data, size);
	if (hints->cpu_ranks && format->read != topo_read_hwloc)
		return fail(ctx, USAGE, "--cpu-ranks: %s: want XML of hwloc, by `lstopo FILE.xml`", label);
	return format->read(ctx, label, files, data, size, out);
}

/* Links between CPUs are as the options state them, and nothing else is said of them. */
static Status
state_sockets(Ctx *ctx, const TopologyHints *hints, Topology *topo)
{
	SocketLink link = { .name = "--cpu-link", .source = "stated by --cpu-link" };
	int n = 0;
	if (hints->cpu)
		TRY(socket_link_parse(ctx, hints->cpu, &link));
	link.capacity = hints->cpu_link ? hints->cpu_link : link.capacity;
	link.source = hints->cpu_link ? "stated by --cpu-link" : link.source;
	for (int l = 0; l < topo->n_links; l++) {
		Link *of = &topo->link[l];
		/* Ranks that are CPUs have such links, too: what a core copies. */
		if (of->class != LINK_QPI || of->from < topo->n_ranks || of->to < topo->n_ranks)
			continue;
		of->capacity = link.capacity * of->count;
		of->source = NULL;
		of->assumed = false;
	}
	if (topo->class[LINK_QPI].given) {
		topo->class[LINK_QPI].capacity = link.capacity;
		topo->class[LINK_QPI].source = link.source;
	}
	for (int i = 0; i < topo->n_notes; i++)
		if (strncmp(topo->note[i], SOCKET_NOTE, strlen(SOCKET_NOTE)) != 0)
			topo->note[n++] = topo->note[i];
	topo->n_notes = n;
	TRY(topo_check(ctx, topo->name, topo));
	return topo_digest(ctx, topo, &topo->digest);
}

Status
topo_read_as(Ctx *ctx, const char *label, const TopologyHints *hints, const char *data, size_t size, Topology **out)
{
	TopologyFiles files = { .hints = *hints, .dirs = hints->dirs, .read = read_any };
	TRY(read_any(ctx, label, &files, data, size, out));
	return hints->cpu || hints->cpu_link ? state_sockets(ctx, hints, *out) : OK;
}

Status
topo_read(Ctx *ctx, const char *label, const char *const *dirs, const char *data, size_t size, Topology **out)
{
	return topo_read_as(ctx, label, &(TopologyHints){ .dirs = dirs }, data, size, out);
}
