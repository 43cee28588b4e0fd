#include "format/known_machines.h"

#include <stdio.h>
#include <string.h>

/* links: of each pair; EACH: to a switch; else LIST: "01x2", from GPU 0 to GPU 1 two links. */
enum { LIST = 0, EACH = -1 };

static const struct {
	const char *model;	/* for --gpu-model */
	int gpus, links;
	const char *list, *name, *source;
} machines[] = {
	{ "P100", 8, LIST, "01x1 02x1 03x1 04x1 12x1 13x1 15x1 23x1 26x1 37x1 45x1 46x1 47x1 56x1 57x1 67x1", "DGX-1P",
	    "NVIDIA, DGX-1 With Tesla V100 System Architecture, WP-08437-002" },
	{ "V100-SXM2", 8, LIST, "01x1 02x1 03x2 04x2 12x2 13x1 15x2 23x2 26x1 37x1 45x1 46x1 47x2 56x2 57x1 67x2",
	    "DGX-1V", "NVIDIA, DGX-1 With Tesla V100 System Architecture, WP-08437-002" },
	{ "V100-SXM3", 16, EACH, NULL, "DGX-2", "NVIDIA, DGX-2 data sheet" },
	{ "A100-SXM4", 8, EACH, NULL, "HGX A100 8-GPU", "NVIDIA, HGX A100 data sheet" },
	{ "A100-SXM4", 4, 4, NULL, "HGX A100 4-GPU", "NVIDIA, HGX A100 data sheet" },
	{ "H100-SXM", 8, EACH, NULL, "HGX H100 8-GPU", "NVIDIA, HGX H100 data sheet" },
	{ "H100-SXM", 4, 6, NULL, "HGX H100 4-GPU", "NVIDIA, HGX H100 data sheet" },
	{ "H200", 8, EACH, NULL, "HGX H200 8-GPU", "NVIDIA, HGX H200 data sheet" },
	{ "B200", 8, EACH, NULL, "HGX B200", "NVIDIA, HGX B200 data sheet" },
	{ "B300", 8, EACH, NULL, "HGX B300", "NVIDIA, HGX B300 data sheet" },
	{ "MI250X", 8, LIST, "01x4 23x4 45x4 67x4 06x2 24x2 02x1 13x1 15x1 37x1 46x1 57x1", "HPE Cray EX235a",
	    "C. Pearson, Interconnect Bandwidth Heterogeneity on AMD MI250x and Infinity Fabric, arXiv:2302.14827" },
	{ "MI300X", 8, 1, NULL, "Instinct MI300X platform", "AMD, Instinct MI300X platform data sheet" },
	{ "MI325X", 8, 1, NULL, "Instinct MI325X platform", "AMD, Instinct MI325X platform data sheet" },
	{ "MI350X", 8, 1, NULL, "Instinct MI350X platform", "AMD, Instinct MI350X platform data sheet" },
	{ "MI355X", 8, 1, NULL, "Instinct MI355X platform", "AMD, Instinct MI355X platform data sheet" },
};

static void
join(TopologyBuilder *b, const KnownGpus *gpus, int from, int to, int count)
{
	builder_link(b, from, to, gpus->model->class, count, gpus->model->rate, DUPLEX, NULL);
	builder_link_assumed(b);
}

static void
begin(TopologyBuilder *b, const KnownGpus *gpus, bool switched, const char *name, const char *source)
{
	builder_gpu_links(b, gpus->model, switched);
	builder_assume(b, "links between the GPUs: none in the file; as in %s (%s)", name, source);
}

/* The links of each GPU are divided evenly among its CPU and the other GPUs of that CPU. */
static bool
power_links(TopologyBuilder *b, const KnownGpus *gpus)
{
	int most = 0;
	for (int i = 0; i < gpus->n; i++) {
		int n = 0;
		for (int j = 0; j < gpus->n; j++)
			n += gpus->cpu[j] == gpus->cpu[i];
		if (most && n != most)
			return false;
		most = n;
	}
	if (!most || gpus->model->class != LINK_NVLINK || gpus->model->links % most)
		return false;
	begin(b, gpus, false, "an IBM Power System AC922 or S822LC", "IBM, Redpapers REDP-5494 and REDP-5405");
	for (int i = 0; i < gpus->n; i++) {
		join(b, gpus, gpus->gpu[i], gpus->cpu[i], gpus->model->links / most);
		for (int j = i + 1; j < gpus->n; j++)
			if (gpus->cpu[j] == gpus->cpu[i])
				join(b, gpus, gpus->gpu[i], gpus->gpu[j], gpus->model->links / most);
	}
	return true;
}

static void
link_machine(TopologyBuilder *b, const KnownGpus *gpus, size_t m)
{
	begin(b, gpus, machines[m].links == EACH, machines[m].name, machines[m].source);
	int nvswitch = machines[m].links == EACH ? builder_vertex(b, VERTEX_SWITCH, gpus->node, "nvswitch") : -1;
	for (int i = 0; i < gpus->n && builder_status(b) == OK; i++) {
		if (nvswitch >= 0)
			join(b, gpus, gpus->gpu[i], nvswitch, gpus->model->links);
		for (int j = i + 1; j < gpus->n && machines[m].links > 0; j++)
			join(b, gpus, gpus->gpu[i], gpus->gpu[j], machines[m].links);
	}
	for (const char *at = machines[m].list; at && *at && builder_status(b) == OK; at += at[4] ? 5 : 4)
		join(b, gpus, gpus->gpu[at[0] - '0'], gpus->gpu[at[1] - '0'], at[3] - '0');
}

/* "H100" stands for "H100-SXM", too. */
static bool
same_model(const char *row, const char *name)
{
	size_t n = strlen(name);
	return strncmp(row, name, n) == 0 && (!row[n] || strncmp(row + n, "-SXM", 4) == 0);
}

bool
known_machine_links(TopologyBuilder *b, const KnownGpus *gpus)
{
	if (!gpus->model || gpus->model->rate == 0 || builder_status(b) != OK)
		return false;
	if (gpus->power)
		return power_links(b, gpus);
	for (size_t m = 0; m < sizeof machines / sizeof *machines; m++) {
		if (!same_model(machines[m].model, gpus->model->name) || machines[m].gpus != gpus->n
		    || (machines[m].list && !gpus->numbered))
			continue;
		link_machine(b, gpus, m);
		return true;
	}
	return false;
}
