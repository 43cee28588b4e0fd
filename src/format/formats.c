/* The tables of formats, and which of them a file has. */
#include "format/format.h"
#include "topology/topology.h"

#include <string.h>

/* Those of a file that is read are tried in this order; the first reports what is in no format. */
const TopologyFormat topology_formats[] = {
	{ "json", "json", topo_is_json, topo_read_json, topo_write_json },
	{ "xml", "xml", topo_is_xml, topo_read_xml, topo_write_xml },
	{ "canonical", "canonical", NULL, NULL, topo_canonical_text },	/* the text that the digest is of */
	{ .name = NULL },
};

const ScheduleFormat schedule_formats[] = {
	{ "json", "json", NULL },
	{ "cu", "cu", sched_write_cu },
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

/* A file, or one that it names. */
static Status
read_any(Ctx *ctx, const char *label, TopologyFiles *files, const char *data, size_t size, Topology **out)
{
	const TopologyFormat *format = topology_formats;
	while (format->name && !(format->sniff && format->sniff(data, size)))
		format++;
	return (format->name ? format : topology_formats)->read(ctx, label, files, data, size, out);
}

Status
topo_read(Ctx *ctx, const char *label, const char *const *dirs, const char *data, size_t size, Topology **out)
{
	TopologyFiles files = { .dirs = dirs, .read = read_any };
	return read_any(ctx, label, &files, data, size, out);
}
