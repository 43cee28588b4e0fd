/* Links between GPUs from hwloc's matrices.
 *
 * NVLinkBandwidth counts the links of a pair: their number times what hwloc takes for one, 20000 MB/s of version 1,
 * 25000 of 2 to 4, 50000 of 5. hwloc 2.9.0 alone takes 50000 for versions 3 and 4, which is both directions together;
 * 2.9.1 halved it. Peers are GPUs, NVSwitches, and the packages of POWER CPUs. Sources: hwloc/topology-nvml.c of these
 * versions; the NEWS of 2.5 and 2.12.
 *
 * XGMIBandwidth is 100000 MB/s for all pairs that xGMI connects, over however many hops, unless hwloc 2.14 or later
 * found AMD SMI: hwloc/topology-rsmi.c. A matrix that is the same everywhere says no more than that. */
#include "format/hwloc/machine.h"
#include "format/known_machines.h"
#include "format/link_rates.h"

#include <stdio.h>
#include <string.h>

#define BYTES_PER_MB INT64_C(1000000)

/* A matrix between vertices: switches are one, and devices that have no vertex are left out. */
struct bandwidth {
	int n, n_switches;
	int *vertex;			/* handles */
	bool *gpu;
	int64_t *value;			/* MB/s, n * n */
};

/* What hwloc counts as a link, and what a link has, in one direction. */
struct unit {
	int64_t counted, rate;		/* MB/s, bytes/s */
	const char *source;		/* of the rate */
};

static const HwMatrix *
find_matrix(const HwMachine *m, const char *name)
{
	for (int i = 0; i < m->tree->n_matrices; i++)
		if (strcmp(m->tree->matrix[i].name, name) == 0)
			return &m->tree->matrix[i];
	return NULL;
}

/* ---- from objects to vertices ---- */

/* -1: it is none that links lead to. */
static int
vertex_of(HwMachine *m, int object, int *nvswitch)
{
	int device = hwloc_device_of(m->tree, object);
	HwKind kind = m->tree->object[object].kind;
	if (m->role[device] == ROLE_GPU)
		return m->vertex[device];
	if (kind == HW_PACKAGE || kind == HW_NUMA)
		return hwloc_cpu_near(m, object);
	if (m->role[device] != ROLE_NVSWITCH)
		return -1;
	if (*nvswitch < 0)
		*nvswitch = builder_vertex(m->b, VERTEX_SWITCH, m->node, "nvswitch");
	return *nvswitch;
}

/* place[i]: of the matrix's object i among the vertices, or -1. */
static Status
find_places(HwMachine *m, const HwMatrix *matrix, struct bandwidth *bw, int *place)
{
	int nvswitch = -1;
	TRY(TEMP(m->ctx, bw->vertex, matrix->n));
	TRY(TEMP(m->ctx, bw->gpu, matrix->n));
	for (int i = 0; i < matrix->n; i++) {
		int v = vertex_of(m, matrix->object[i], &nvswitch);
		TRY(builder_status(m->b));
		bw->n_switches += v >= 0 && v == nvswitch;
		if (v < 0)
			builder_assume(m->b, "%.40s has a row for %s, which is no GPU, NVSwitch or CPU: left out",
			    matrix->name,
			    hwloc_bus_id(&m->tree->object[matrix->object[i]]).text);
		place[i] = -1;
		for (int j = 0; v >= 0 && j < bw->n && place[i] < 0; j++)
			place[i] = bw->vertex[j] == v ? j : -1;
		if (v < 0 || place[i] >= 0)
			continue;
		place[i] = bw->n++;
		bw->vertex[place[i]] = v;
		bw->gpu[place[i]] = m->role[hwloc_device_of(m->tree, matrix->object[i])] == ROLE_GPU;
	}
	return OK;
}

static Status
sum_by_vertex(HwMachine *m, const HwMatrix *matrix, struct bandwidth *bw)
{
	int *place;
	*bw = (struct bandwidth){ 0 };
	TRY(TEMP(m->ctx, place, matrix->n));
	TRY(find_places(m, matrix, bw, place));
	TRY(TEMP(m->ctx, bw->value, (int64_t)bw->n * bw->n));
	for (int i = 0; i < matrix->n; i++)
		for (int j = 0; j < matrix->n; j++)
			if (place[i] >= 0 && place[j] >= 0 && place[i] != place[j])
				bw->value[place[i] * bw->n + place[j]] += matrix->value[(int64_t)i * matrix->n + j];
	return OK;
}

/* Both directions of a pair. Where only one is given between a GPU and what is none, the other is the same. */
static void
pair_of(const struct bandwidth *bw, int i, int j, int64_t *there, int64_t *back)
{
	*there = bw->value[i * bw->n + j];
	*back = bw->value[j * bw->n + i];
	if (!bw->gpu[i] || !bw->gpu[j]) {
		*there = *there ? *there : *back;
		*back = *back ? *back : *there;
	}
	if (!bw->gpu[i] && !bw->gpu[j])
		*there = *back = 0;
}

/* ---- NVLink ---- */

/* Are all values multiples of it? */
static bool
all_multiples(const struct bandwidth *bw, int64_t of)
{
	for (int i = 0; i < bw->n * bw->n; i++)
		if (bw->value[i] % of != 0)
			return false;
	return true;
}

/* The most that a GPU has to all others, MB/s. */
static int64_t
most_of_gpu(const struct bandwidth *bw)
{
	int64_t most = 0;
	for (int i = 0; i < bw->n; i++) {
		int64_t sum = 0, there, back;
		for (int j = 0; j < bw->n && bw->gpu[i]; j++) {
			if (j != i) {
				pair_of(bw, i, j, &there, &back);
				sum += there;
			}
		}
		most = sum > most ? sum : most;
	}
	return most;
}

static bool
counts_both_ways(const HwMachine *m, const struct bandwidth *bw)
{
	const char *by = hwloc_machine_info(m->tree, "hwlocVersion");
	return all_multiples(bw, 50000) && ((by && strncmp(by, "2.9.0", 5) == 0)
	    || most_of_gpu(bw) > m->model->links * INT64_C(25000));
}

static struct unit
nvlink_unit(HwMachine *m, const struct bandwidth *bw)
{
	const GpuModel *model = m->model;
	if (model && model->class == LINK_NVLINK && model->rate) {
		int64_t counted = model->generation == 1 ? 20000 : model->generation >= 5 ? 50000 : 25000;
		if (counted == 25000 && model->generation >= 3 && counts_both_ways(m, bw)) {
			builder_assume(m->b, "NVLinkBandwidth halved: this hwloc counts 50000 MB/s for a link of an "
			    "%s, both directions together", model->name);
			counted = 50000;
		}
		if (all_multiples(bw, counted))
			return (struct unit){ counted, model->rate, model->source };
	}
	static const int64_t usual[] = { 25000, 20000 };
	for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
		if (all_multiples(bw, usual[i]))
			return (struct unit){ usual[i], usual[i] * BYTES_PER_MB, "NVLinkBandwidth of hwloc" };
	builder_assume(m->b, "NVLinkBandwidth has no multiples of 20000 or 25000 MB/s: each pair has one link");
	return (struct unit){ 0, 0, "NVLinkBandwidth of hwloc" };
}

static Status
link_one_way(HwMachine *m, const HwMatrix *matrix, int from, int to, LinkClass class, int64_t value,
    const struct unit *unit, Duplex duplex)
{
	int64_t count = unit->counted ? value / unit->counted : 1;
	if (value == 0)
		return OK;
	if (count > LIMIT_LINK_COUNT || value > LIMIT_CAPACITY_MAX / BYTES_PER_MB)
		return doc_fail(m->ctx, m->tree->label, matrix->doc, LIMIT, "%lld MB/s between two objects: want "
		    "at most %d links and %lld MB/s", (long long)value, LIMIT_LINK_COUNT,
		    (long long)(LIMIT_CAPACITY_MAX / BYTES_PER_MB));
	builder_link(m->b, from, to, class, (int)count, unit->counted ? unit->rate : value * BYTES_PER_MB, duplex,
	    NULL);
	return builder_status(m->b);
}

static Status
link_pairs(HwMachine *m, const HwMatrix *matrix, const struct bandwidth *bw, LinkClass class, const struct unit *unit)
{
	int n_differ = 0;
	for (int i = 0; i < bw->n; i++) {
		for (int j = i + 1; j < bw->n; j++) {
			int from = bw->vertex[i], to = bw->vertex[j];
			int64_t there, back;
			pair_of(bw, i, j, &there, &back);
			if (there != back && n_differ++ == 0)
				builder_assume(m->b, "%.40s differs by direction, as for %s and %s: links one way",
				    matrix->name,
				    builder_id(m->b, from), builder_id(m->b, to));
			TRY(link_one_way(m, matrix, from, to, class, there, unit, there == back ? DUPLEX : SIMPLEX));
			if (there != back)
				TRY(link_one_way(m, matrix, to, from, class, back, unit, SIMPLEX));
		}
	}
	return OK;
}

static void
set_class(HwMachine *m, LinkClass class, const struct unit *unit, bool switched)
{
	char source[512];
	int64_t latency = switched ? nvswitch_latency() : link_class_latency(class);
	snprintf(source, sizeof source, "nominal, each direction: %s; %s", unit->source,
	    switched ? nvswitch_latency_source() : link_class_latency_source(class));
	builder_class(m->b, class, unit->rate, latency, source);
}

static Status
add_nvlinks(HwMachine *m, const HwMatrix *matrix)
{
	struct bandwidth bw;
	TRY(sum_by_vertex(m, matrix, &bw));
	struct unit unit = nvlink_unit(m, &bw);
	if (m->model && unit.source == m->model->source)
		builder_gpu_links(m->b, m->model, bw.n_switches > 0);
	else
		set_class(m, LINK_NVLINK, &unit, bw.n_switches > 0);
	if (bw.n_switches > 1)
		builder_assume(m->b, "%d NVSwitches are one switch, as data is striped over them", bw.n_switches);
	return link_pairs(m, matrix, &bw, LINK_NVLINK, &unit);
}

/* ---- what the file does not have ---- */

/* False: no machine that is known has such GPUs. numbered: also those in which it matters which GPU is which. */
static bool
add_known_links(HwMachine *m, bool numbered, Status *status)
{
	const char *arch = hwloc_machine_info(m->tree, "Architecture");
	int *gpu, *cpu;
	*status = NEW(m->ctx, gpu, m->n_gpus);
	*status = *status == OK ? NEW(m->ctx, cpu, m->n_gpus) : *status;
	if (*status != OK)
		return true;
	for (int i = 0; i < m->n_gpus; i++) {
		gpu[i] = m->vertex[m->gpu[i]];
		cpu[i] = hwloc_cpu_near(m, m->gpu[i]);
	}
	return known_machine_links(m->b, &(KnownGpus){ .model = m->model, .node = m->node, .n = m->n_gpus, .gpu = gpu,
	    .cpu = cpu, .power = arch && strncmp(arch, "ppc64", 5) == 0, .numbered = numbered });
}

/* ---- xGMI ---- */

/* Is every pair of GPUs given the same, and some? */
static bool
is_uniform(const struct bandwidth *bw)
{
	int64_t first = bw->n > 1 ? bw->value[1] : 0;
	for (int i = 0; i < bw->n; i++)
		for (int j = 0; j < bw->n; j++)
			if (i != j && bw->value[i * bw->n + j] != first)
				return false;
	return first > 0;
}

/* Only pairs that are one hop apart have links. */
static Status
keep_neighbours(HwMachine *m, struct bandwidth *bw)
{
	const HwMatrix *matrix = find_matrix(m, "XGMIHops");
	struct bandwidth hops;
	int *place;
	if (!matrix)
		return OK;
	TRY(sum_by_vertex(m, matrix, &hops));
	TRY(TEMP(m->ctx, place, hops.n));
	for (int i = 0; i < hops.n; i++)
		while (place[i] < bw->n && bw->vertex[place[i]] != hops.vertex[i])
			place[i]++;
	for (int i = 0; i < hops.n; i++)
		for (int j = 0; j < hops.n; j++)
			if (hops.value[i * hops.n + j] > 1 && place[i] < bw->n && place[j] < bw->n)
				bw->value[place[i] * bw->n + place[j]] = 0;
	return OK;
}

/* One link between every pair, if the model has so many. */
static Status
add_xgmi_mesh(HwMachine *m, const HwMatrix *matrix, struct bandwidth *bw)
{
	const GpuModel *model = m->model;
	int64_t value = bw->value[1];
	Status status;
	if (model && model->die_links && bw->n == m->n_gpus && add_known_links(m, true, &status))
		return status;
	if (!model || model->class != LINK_XGMI || !model->rate || model->die_links || model->links < bw->n - 1) {
		builder_assume(m->b, "no xGMI links: XGMIBandwidth is %lld MB/s for every pair of GPUs, also for those "
		    "without a "
		    "link of their own; a file by RCCL with NCCL_TOPO_DUMP_FILE has the links", (long long)value);
		return OK;
	}
	struct unit unit = { value, model->rate, model->source };
	builder_assume(m->b, "XGMIBandwidth is %lld MB/s for every pair of GPUs, which is no rate: each pair has one "
	    "link of an %s", (long long)value, model->name);
	builder_gpu_links(m->b, model, false);
	return link_pairs(m, matrix, bw, LINK_XGMI, &unit);
}

static Status
add_xgmi(HwMachine *m, const HwMatrix *matrix)
{
	struct bandwidth bw;
	TRY(sum_by_vertex(m, matrix, &bw));
	if (is_uniform(&bw))
		return add_xgmi_mesh(m, matrix, &bw);
	TRY(keep_neighbours(m, &bw));
	struct unit unit = { 0, 0, "XGMIBandwidth of hwloc" };
	if (all_multiples(&bw, 50000))
		unit = (struct unit){ 50000, 50000 * BYTES_PER_MB, "XGMIBandwidth of hwloc, 50000 MB/s a link" };
	set_class(m, LINK_XGMI, &unit, false);
	return link_pairs(m, matrix, &bw, LINK_XGMI, &unit);
}

/* ---- the whole ---- */

/* Would its GPUs have NVLinks? */
static bool
may_have_nvlink(const HwMachine *m)
{
	bool nvidia = m->tree->object[m->gpu[0]].pci.vendor == HW_NVIDIA;
	return m->n_gpus > 1 && (m->model ? m->model->class == LINK_NVLINK && m->model->rate : nvidia);
}

static void
note_missing(HwMachine *m)
{
	if (may_have_nvlink(m))
		builder_assume(m->b, "no NVLinks: %s; nvidia-smi topo -m prints how many the GPUs have",
		    m->tree->version == 1 ? "hwloc 1.x does not know them"
		    : "hwloc gave no NVLinkBandwidth (from 2.5 on it does, if it was built with NVML)");
	else if (m->n_gpus > 1 && m->tree->object[m->gpu[0]].pci.vendor == HW_AMD)
		builder_assume(m->b, "no xGMI links: hwloc gave no XGMIBandwidth; a file by RCCL with "
		    "NCCL_TOPO_DUMP_FILE has them");
}

Status
hwloc_add_bandwidths(HwMachine *m)
{
	const HwMatrix *nvlink = find_matrix(m, "NVLinkBandwidth"), *xgmi = find_matrix(m, "XGMIBandwidth");
	Status status = OK;
	if (!nvlink && !xgmi && !(m->n_gpus > 1 && add_known_links(m, false, &status)))
		note_missing(m);
	TRY(status);
	if (nvlink)
		TRY(add_nvlinks(m, nvlink));
	if (xgmi)
		TRY(add_xgmi(m, xgmi));
	for (int i = 0; i < m->tree->n_matrices; i++) {
		const HwMatrix *matrix = &m->tree->matrix[i];
		if (matrix != nvlink && matrix != xgmi && strcmp(matrix->name, "XGMIHops") != 0)
			builder_assume(m->b, "the matrix %.60s is not used", matrix->name);
	}
	return builder_status(m->b);
}
