/* GPUs and NVLinks of the machine that this runs on, as NVIDIA's driver has them, among the objects of hwloc. */
#include "base/array.h"
#include "format/hwloc/machine.h"
#include "format/link_rates.h"

#include <stdio.h>
#include <string.h>

/* ---- objects ---- */

static bool
is_at(const HwObject *object, PciAddress address)
{
	const HwPci *pci = &object->pci;
	return object->kind == HW_PCI && pci->known && pci->function == 0
	    && pci_same((PciAddress){ pci->domain, pci->bus, pci->device }, address);
}

/* -1: none. */
static int
object_at(const HwTree *tree, PciAddress address)
{
	int i = 0;
	while (i < tree->n_objects && !is_at(&tree->object[i], address))
		i++;
	return i < tree->n_objects ? i : -1;
}

static int
numa_node(const HwTree *tree, int os_index)
{
	for (int i = 0; i < tree->n_objects && os_index >= 0; i++)
		if (tree->object[i].kind == HW_NUMA && tree->object[i].os_index == os_index)
			return i;
	return 0;
}

/* Behind all others, so that it comes after its parent. */
static Status
add_object(Ctx *ctx, HwTree *tree, int *room, const SeenGpu *gpu)
{
	const PciAddress at = gpu->pci;
	int self = tree->n_objects, parent = numa_node(tree, gpu->numa);
	TRY(GROW_TEMP(ctx, tree->object, self, *room));
	tree->object[self] = (HwObject){ .kind = HW_PCI, .parent = parent, .end = self + 1, .os_index = -1,
		.name = "", .subtype = "", .pci = { .known = true, .domain = at.domain, .bus = at.bus,
		.device = at.device, .class = 0x0302, .vendor = HW_NVIDIA } };
	tree->n_objects++;
	return OK;
}

/* Both ends of its link. */
static void
set_speed(HwTree *tree, int object, const SeenGpu *gpu)
{
	HwObject *all = tree->object;
	int64_t speed = gpu->pcie_generation ? hwloc_pcie_speed(gpu->pcie_width, gpu->pcie_generation) : 0;
	int port = all[object].parent;
	if (speed == 0)
		return;
	all[object].speed = speed;
	if (port >= 0 && all[port].kind == HW_BRIDGE)
		all[port].speed = speed;
}

Status
hwloc_tree_add_seen(Ctx *ctx, HwTree *tree, const SeenGpus *seen)
{
	int room = tree->n_objects;
	for (int i = 0; i < seen->n; i++) {
		int object = object_at(tree, seen->gpu[i].pci);
		if (object < 0) {
			object = tree->n_objects;
			TRY(add_object(ctx, tree, &room, &seen->gpu[i]));
		}
		set_speed(tree, object, &seen->gpu[i]);
	}
	return OK;
}

void
hwloc_find_seen(HwMachine *m)
{
	for (int i = 0; i < m->seen->n; i++) {
		const SeenGpu *gpu = &m->seen->gpu[i];
		int object = m->gpu[m->n_gpus++] = object_at(m->tree, gpu->pci);
		m->role[object] = ROLE_GPU;
		if (!m->tree->object[object].doc)
			builder_assume(m->b, "GPU %d, %s, is not among the PCI devices of hwloc: joined to a CPU",
			    gpu->number, hwloc_bus_id(&m->tree->object[object]).text);
	}
}

/* ---- NVLinks ---- */

/* By version of nvmlNvlinkVersion_t: 1.0, 2.0, 2.2, 3.0, 3.1, 4.0, 5.0. */
static int64_t
rate_of_version(int version)
{
	return version == 1 ? 20 * BYTES_PER_GB : version >= 7 ? 50 * BYTES_PER_GB : 25 * BYTES_PER_GB;
}

/* The nominal rate of the model, which the driver's is near: 25.78 GB/s for the 25 of a V100. */
static int64_t
rate_of(HwMachine *m, const SeenGpu *gpu)
{
	const GpuModel *model = m->model ? m->model : gpu->sm ? gpu_model_of_sm(gpu->sm) : NULL;
	int64_t nominal = model && model->class == LINK_NVLINK ? model->rate : 0, told = gpu->link_rate;
	if (told == 0 && nominal == 0)
		builder_assume(m->b, "NVLinks of %.60s: by their version, as neither the driver nor the model tells "
		    "their rate", gpu->name);
	if (told == 0)
		return nominal ? nominal : rate_of_version(gpu->link_version);
	if (nominal && told > nominal / 10 * 9 && told < nominal / 10 * 11)
		return nominal;
	if (nominal)
		builder_assume(m->b, "NVLinks of %.60s: %.6g GB/s, as the driver says, not %.6g as model %s has",
		    gpu->name, (double)told / 1e9, (double)nominal / 1e9, model->name);
	return told;
}

static int
count_ends(const SeenGpu *gpu, LinkEnd end)
{
	int n = 0;
	for (int l = 0; l < gpu->n_links; l++)
		n += gpu->link[l].end == end;
	return n;
}

static void
set_class(HwMachine *m, int64_t rate, bool switched)
{
	char source[512];
	if (m->model && m->model->class == LINK_NVLINK && m->model->rate == rate) {
		builder_gpu_links(m->b, m->model, switched);
		return;
	}
	snprintf(source, sizeof source, "NVML, each direction; %s",
	    switched ? nvswitch_latency_source() : link_class_latency_source(LINK_NVLINK));
	builder_class(m->b, LINK_NVLINK, rate, switched ? nvswitch_latency() : link_class_latency(LINK_NVLINK), source);
}

/* Those of GPU i to later ones, to switches and to its CPU. nvswitch: a handle; -1: not yet made. */
static void
link_gpu(HwMachine *m, int i, const int64_t *rate, int *nvswitch)
{
	const SeenGpus *seen = m->seen;
	int self = m->vertex[m->gpu[i]], n;
	for (int j = i + 1; j < seen->n; j++)
		if ((n = gpu_links_to(&seen->gpu[i], j)) > 0)
			builder_link(m->b, self, m->vertex[m->gpu[j]], LINK_NVLINK, n,
			    rate[i] < rate[j] ? rate[i] : rate[j], DUPLEX, NULL);
	if ((n = count_ends(&seen->gpu[i], END_SWITCH)) > 0) {
		if (*nvswitch < 0)
			*nvswitch = builder_vertex(m->b, VERTEX_SWITCH, m->node, "nvswitch");
		builder_link(m->b, self, *nvswitch, LINK_NVLINK, n, rate[i], DUPLEX, NULL);
	}
	if ((n = count_ends(&seen->gpu[i], END_CPU)) > 0)
		builder_link(m->b, self, hwloc_cpu_near(m, m->gpu[i]), LINK_NVLINK, n, rate[i], DUPLEX, NULL);
}

/* What is not as one would think. */
static void
note_links(HwMachine *m)
{
	if (m->seen->assumed)
		builder_assume(m->b, "no NVML, so that only pairs of GPUs with NVLinks are known: how many links they "
		    "have is by the model%s%.60s", m->model ? " " : ", which is not known: none",
		    m->model ? m->model->name : "");
	for (int i = 0; i < m->seen->n; i++) {
		const SeenGpu *gpu = &m->seen->gpu[i];
		int absent = count_ends(gpu, END_ABSENT);
		if (gpu->mig)
			builder_assume(m->b, "GPU %d is in MIG mode: written as one GPU, and without NVLinks, which "
			    "instances do not use", gpu->number);
		if (absent)
			builder_assume(m->b, "GPU %d: left out: %d NVLinks to GPUs that are not written", gpu->number,
			    absent);
		if (gpu->n_down && !gpu->mig)
			builder_assume(m->b, "GPU %d: left out: %d NVLinks that are down", gpu->number, gpu->n_down);
	}
}

Status
hwloc_add_seen_links(HwMachine *m)
{
	const SeenGpus *seen = m->seen;
	int64_t *rate, most = 0;
	int nvswitch = -1;
	bool switched = false;
	TRY(TEMP(m->ctx, rate, seen->n));
	note_links(m);
	for (int i = 0; i < seen->n; i++) {
		bool linked = seen->gpu[i].n_links > count_ends(&seen->gpu[i], END_ABSENT);
		rate[i] = linked ? rate_of(m, &seen->gpu[i]) : 0;
		switched |= count_ends(&seen->gpu[i], END_SWITCH) > 0;
		most = rate[i] > most ? rate[i] : most;
	}
	if (most > 0)
		set_class(m, most, switched);
	for (int i = 0; i < seen->n && builder_status(m->b) == OK; i++)
		link_gpu(m, i, rate, &nvswitch);
	return builder_status(m->b);
}
