#include "verb/show_machine.h"
#include "format/file_kind.h"
#include "topology/topology.h"
#include "verb/request.h"
#include "verb/verb.h"
#include "view/view.h"

#include <string.h>

/* A topology of any format that is read but JSON, which schedules are, too. */
static bool
is_foreign(const Text *in)
{
	for (const TopologyFormat *f = topology_formats; f->name; f++)
		if (f->sniff && strcmp(f->name, "json") != 0 && f->sniff(in->data, in->size))
			return true;
	return false;
}

bool
is_machine(const Text *in)
{
	switch (file_kind(in->data, in->size)) {
	case FILE_TOPOLOGY:
	case FILE_NCCL:
	case FILE_HWLOC:
	case FILE_NVIDIA_SMI:
	case FILE_ROCM_SMI:
		return true;
	case FILE_OTHER:
	case FILE_TEXT:
		return in->size > 0 && is_foreign(in);
	default:
		return false;
	}
}

static Status
check_options(Ctx *ctx, const Options *opt, const char *label)
{
	static const int schedules[] = { OPT_COLLECTIVE, OPT_ROOT, OPT_TREE, OPT_LINKS };
	for (size_t i = 0; i < sizeof schedules / sizeof *schedules; i++)
		if (opt->value[schedules[i]])
			return fail(ctx, USAGE, "%s: a topology: want -c, -r, -t and -l only with schedules", label);
	return OK;
}

/* The machine, whose name is printable on one line, with the GPUs of -g. */
static Status
read_shown(Ctx *ctx, const Options *opt, const char *label, const Text *in, const Topology **out)
{
	Topology *machine, *part;
	int *gpu, n;
	TRY(read_topology(ctx, opt, label, in, &machine));
	TRY(printable_line(ctx, machine->name, &machine->name));
	*out = machine;
	if (!opt->value[OPT_GPUS])
		return OK;
	TRY(NEW(ctx, gpu, machine->n_ranks));
	TRY(request_gpus(ctx, machine, opt->value[OPT_GPUS], gpu, &n));
	TRY(topo_restrict(ctx, machine, gpu, n, &part));
	*out = part;
	return OK;
}

Status
show_machine(Ctx *ctx, const Options *opt, const char *format, const char *label, const Text *in, Text *out)
{
	const char *layout = opt->value[OPT_LAYOUT];
	const Topology *machine;
	Explained e;
	TRY(check_options(ctx, opt, label));
	TRY(read_shown(ctx, opt, label, in, &machine));
	TRY(explain_machine(ctx, machine, &e));
	if (strcmp(format, "svg") == 0)
		return machine_svg(ctx, &e, layout && strcmp(layout, "own") != 0 ? layout : NULL, out);
	return strcmp(format, "dot") == 0 ? machine_dot(ctx, &e, out) : machine_text(ctx, &e, out);
}
