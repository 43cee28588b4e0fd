#include "base/printable.h"
#include "base/sort.h"
#include "format/nvml/gpus.h"
#include "verb/progress.h"
#include "verb/request.h"
#include "verb/verb.h"

#include <stdlib.h>
#include <string.h>

#define LABEL "this machine"

/* "found 8 GPUs, Tesla V100-SXM2-16GB, 6 NVLinks each, driver 535.104.05", before what was assumed. */
static void
print_seen(const Options *opt, const SeenGpus *gpus)
{
	const SeenGpu *first = &gpus->gpu[0];
	int most = 0, alike = 0, same = 0;
	for (int i = 0; i < gpus->n; i++) {
		const SeenGpu *gpu = &gpus->gpu[i];
		most = gpu->n_links > most ? gpu->n_links : most;
		same += gpu->n_links == first->n_links;
		alike += strcmp(gpu->name, first->name) == 0;
	}
	if (opt->value[OPT_QUIET])
		return;
	progress_hide();
	fprintf(stderr, "found       %d GPU%s, ", gpus->n, gpus->n == 1 ? "" : "s");
	print_name(stderr, first->name);
	fprintf(stderr, "%s, %s%d NVLink%s%s, driver ", alike < gpus->n ? " and others" : "",
	    same < gpus->n ? "up to " : "", most, most == 1 ? "" : "s", gpus->n > 1 ? " each" : "");
	print_name(stderr, *gpus->driver ? gpus->driver : "of unknown version");
	fputc('\n', stderr);
}

/* -g: of the GPUs of the whole machine. The others stay out of the file, whatever the order of the list. */
static Status
keep_gpus(Ctx *ctx, const char *list, const Topology *whole, SeenGpus *gpus)
{
	int *gpu, n;
	TRY(TEMP(ctx, gpu, whole->n_ranks));
	TRY(request_gpus(ctx, whole, list, gpu, &n));
	qsort(gpu, (size_t)n, sizeof *gpu, order_of_ints);
	gpus_keep(gpus, gpu, n);
	return OK;
}

static Status
probe(Ctx *ctx, const Options *opt, Text *hwloc, Topology **out)
{
	const char *model = opt->value[OPT_GPU_MODEL];
	SeenGpus gpus;
	MachineSeen seen = { &gpus, hwloc, "/sys" };
	TRY(gpus_see(ctx, &gpus));
	TRY(read_live(ctx, false, hwloc));
	TRY(topo_of_machine(ctx, LABEL, &seen, model, out));
	if (opt->value[OPT_GPUS]) {
		TRY(keep_gpus(ctx, opt->value[OPT_GPUS], *out, &gpus));
		TRY(topo_of_machine(ctx, LABEL, &seen, model, out));
	}
	print_seen(opt, &gpus);
	print_notes(opt, *out);
	return OK;
}

Status
verb_probe(Ctx *ctx, const Options *opt)
{
	const char *format;
	Topology *topo;
	Text hwloc = { 0 }, out = { 0 };
	TRY(request_format(ctx, opt, PROBE, &format));
	if (opt->n_files)
		return fail(ctx, USAGE, "%.80s: want no file: blinkc probe looks at this machine", opt->file[0]);
	Status status = probe(ctx, opt, &hwloc, &topo);
	if (status == OK)
		topology_format(format)->write(topo, &out);
	text_free(&hwloc);
	return output_text(ctx, opt, status, &out);
}
