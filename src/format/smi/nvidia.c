/* What `nvidia-smi topo -m` prints: how each pair of devices is joined.
 *
 *         GPU0  GPU1  mlx5_0  CPU Affinity
 *   GPU0   X    NV2   PIX     0-19
 *   GPU1  NV2    X    PHB     0-19
 *   mlx5_0 PIX  PHB    X
 *
 * NV2: two NVLinks. Otherwise the worst that a path crosses: PIX one PCIe switch, PXB several, PHB a host bridge, NODE
 * the links between host bridges of a NUMA node, SYS (once SOC) those between NUMA nodes. "At least as near as" is an
 * equivalence for each of these, so classes of devices are nested, and that is the tree. NV# hides how a pair is joined
 * over PCIe; what it has in common with others still shows. */
#include "format/smi/nvidia_table.h"
#include "format/sniff.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- classes ---- */

static void
unite(int *class, int n, int i, int j)
{
	int keep = class[i] < class[j] ? class[i] : class[j], drop = class[i] < class[j] ? class[j] : class[i];
	for (int k = 0; k < n && keep != drop; k++)
		if (class[k] == drop)
			class[k] = keep;
}

/* Devices that are at least as near as `near`. */
static Status
find_class(struct matrix *m, Near near)
{
	int *class;
	TRY(TEMP(m->text.ctx, class, m->n));
	for (int i = 0; i < m->n; i++)
		class[i] = i;
	for (int i = 0; i < m->n; i++)
		for (int j = 0; j < i; j++)
			if (cell_at(m, i, j)->near <= near)
				unite(class, m->n, i, j);
	for (int i = 0; i < m->n; i++)
		for (int j = 0; j < i; j++)
			if (class[i] == class[j] && cell_at(m, i, j)->near > near && cell_at(m, i, j)->near < N_NEAR) {
				stand_at(m, i);
				return smi_fail(&m->text, BAD_INPUT,
				    "%.24s and %.24s: not as near as others of the table make them: want a table of "
				    "one machine",
				    m->device[j].column, m->device[i].column);
			}
	m->class[near] = class;
	return OK;
}

/* Devices with the same CPUs are below the same CPU, even where the table has SYS, as in virtual machines. */
static void
unite_affinities(struct matrix *m)
{
	bool contradicted = false;
	for (int i = 0; i < m->n; i++) {
		for (int j = 0; j < i; j++) {
			if (!*m->device[i].affinity || strcmp(m->device[i].affinity, m->device[j].affinity) != 0)
				continue;
			contradicted |= cell_at(m, i, j)->near == SYS;
			unite(m->class[NODE], m->n, i, j);
		}
	}
	if (contradicted)
		builder_assume(
		    m->b, "CPUs: one for all devices with the same CPU affinity, though the table has SYS for some");
}

/* May the devices of two classes be below one CPU, as far as the table says? */
static bool
may_unite(const struct matrix *m, int a, int b)
{
	const int *class = m->class[NODE];
	for (int i = 0; i < m->n; i++) {
		for (int j = 0; class[i] == a && j < m->n; j++) {
			const char *p = m->device[i].affinity, *q = m->device[j].affinity;
			if (class[j] == b && (cell_at(m, i, j)->near == SYS || (*p && *q && strcmp(p, q) != 0)))
				return false;
		}
	}
	return true;
}

/* NVLinks hide where GPUs are: those that nothing tells apart are taken to be below one CPU. */
static void
unite_hidden(struct matrix *m)
{
	const int *class = m->class[NODE];
	bool any = false;
	for (int i = 0; i < m->n; i++) {
		for (int j = 0; j < i; j++) {
			if (cell_at(m, i, j)->near != HIDDEN || class[i] == class[j]
			    || !may_unite(m, class[i], class[j]))
				continue;
			unite(m->class[NODE], m->n, i, j);
			any = true;
		}
	}
	if (any)
		builder_assume(m->b, "CPUs: one for GPUs of which the table has nothing but NVLinks to each other");
}

/* ---- NVLinks ---- */

static Status
find_components(struct matrix *m)
{
	TRY(TEMP(m->text.ctx, m->component, m->n));
	for (int i = 0; i < m->n; i++)
		m->component[i] = i;
	for (int i = 0; i < m->n; i++)
		for (int j = 0; j < i; j++)
			if (cell_at(m, i, j)->nvlinks)
				unite(m->component, m->n, i, j);
	return OK;
}

/* NVLinks of a GPU, if all were between two GPUs; and are they the same to all GPUs of its component? */
static int
count_links(const struct matrix *m, int i, bool *uniform)
{
	int sum = 0, each = 0;
	for (int j = 0; j < m->n; j++) {
		if (j == i || m->component[j] != m->component[i])
			continue;
		int n = cell_at(m, i, j)->nvlinks;
		each = each ? each : n;
		*uniform &= n == each && n > 0;
		sum += n;
	}
	return sum;
}

/* GPUs have NVLinks to a switch if they would need more for links to each other. */
static Status
is_switched(struct matrix *m, int first, bool *out)
{
	bool uniform = true, above = false;
	int each = 0, most = 0, last = first;
	for (int i = first; i < m->n; i++) {
		if (m->component[i] != first)
			continue;
		int sum = count_links(m, i, &uniform);
		above |= sum > m->model->links;
		most = sum > most ? sum : most;
		last = i;
	}
	each = last > first ? cell_at(m, first, last)->nvlinks : 0;
	*out = above && uniform;
	stand_at(m, first);
	if (each > m->model->links || (above && !uniform))
		return smi_fail(&m->text, BAD_INPUT,
		    "%.24s and others have %d NVLinks each, model %s has %d: want another --gpu-model",
		    m->device[first].column, *out ? each : most, m->model->name, m->model->links);
	return OK;
}

static int
put_switch(struct matrix *m, int first)
{
	char id[32] = "nvswitch";
	int n = 0, each = 0;
	if (first > 0)
		snprintf(id, sizeof id, "nvswitch-gpu%d", m->device[first].gpu);
	int vertex = builder_vertex(m->b, VERTEX_SWITCH, m->node, id);
	for (int i = first; i < m->n; i++) {
		n += m->component[i] == first;
		each = m->component[i] == first && i > first ? cell_at(m, first, i)->nvlinks : each;
	}
	builder_assume(m->b,
	    "NVSwitch: each of %d GPUs has NV%d to all others, and model %s %d NVLinks: they lead to a switch",
	    n, each, m->model->name, m->model->links);
	for (int i = first; i < m->n; i++)
		if (m->component[i] == first)
			builder_link(
			    m->b, m->device[i].vertex, vertex, LINK_NVLINK, each, m->model->rate, DUPLEX, NULL);
	return vertex;
}

static void
put_direct(struct matrix *m, int first)
{
	for (int i = first; i < m->n; i++)
		for (int j = i + 1; j < m->n; j++)
			if (m->component[i] == first && cell_at(m, i, j)->nvlinks)
				builder_link(m->b, m->device[i].vertex, m->device[j].vertex, LINK_NVLINK,
				    cell_at(m, i, j)->nvlinks, m->model->rate, DUPLEX, NULL);
}

/* A component at a time. */
static Status
place_nvlinks(struct matrix *m)
{
	bool any = false, all_switched = true, *switched;
	TRY(TEMP(m->text.ctx, switched, m->n));
	TRY(find_components(m));
	for (int i = 0; i < m->n * m->n; i++)
		any |= m->cell[i].nvlinks > 0;
	if (!any)
		return OK;
	if (!m->model)
		return smi_no_model(&m->text, LINK_NVLINK, "NVLinks");
	for (int i = 0; i < m->n; i++) {
		if (m->component[i] != i || m->device[i].gpu < 0)
			continue;
		TRY(is_switched(m, i, &switched[i]));
		bool linked = false;
		for (int j = i + 1; j < m->n; j++)
			linked |= m->component[j] == i;
		all_switched &= switched[i] || !linked;
	}
	builder_gpu_links(m->b, m->model, all_switched);
	builder_assume(m->b, "NVLink: %.6g GB/s for each link and direction, model %s",
	    (double)m->model->rate / 1e9, m->model->name);
	for (int i = 0; i < m->n; i++) {
		if (m->component[i] == i && switched[i])
			put_switch(m, i);
		else if (m->component[i] == i)
			put_direct(m, i);
	}
	return builder_status(m->b);
}

/* ---- PCIe ---- */

static int
count_class(const int *class, int n, int first)
{
	int count = 0;
	for (int i = first; i < n; i++)
		count += class[i] == first;
	return count;
}

static int
put_pcie_switch(struct matrix *m, int *number, int above)
{
	char id[32];
	snprintf(id, sizeof id, "plx%d", (*number)++);
	int vertex = builder_vertex(m->b, VERTEX_SWITCH, m->node, id);
	if (builder_status(m->b) == OK)
		builder_link(m->b, vertex, above, LINK_PCIE, 1, m->pcie, DUPLEX, NULL);
	if (!m->model)
		builder_link_assumed(m->b);
	return vertex;
}

/* To what is above a device. A GPU beside a Grace CPU shares the CPU's NVLink-C2C with the others of its board. */
static void
link_device(const struct matrix *m, int i, int above, int cpu)
{
	builder_link(m->b, m->device[i].vertex, above, LINK_PCIE, 1, m->pcie, DUPLEX, NULL);
	if (!m->model)
		builder_link_assumed(m->b);
	if (m->device[i].gpu < 0 || !gpu_model_has_grace(m->model))
		return;
	builder_class(m->b, LINK_C2C, 0, link_class_latency(LINK_C2C), "nominal, NVLink-C2C, each direction: a Grace "
	    "CPU's 450, divided among the GPUs of its board: NVIDIA, Blackwell Architecture Technical Brief, 2024");
	builder_assume(m->b, "NVLink-C2C: each GPU to its CPU, as of model %s", m->model->name);
	builder_link(m->b, m->device[i].vertex, cpu, LINK_C2C, 1,
	    450 * BYTES_PER_GB / (strncmp(m->model->name, "GB", 2) == 0 ? 2 : 1), DUPLEX, NULL);
}

/* Devices of a class of PXB are below one bridge, which is a switch where they are of several classes of PIX; those
 * of a class of PIX are below one switch. bridge, above: vertices, by the first device of a class. */
static void
place_device(struct matrix *m, int i, int cpu, int *number, int *bridge, int *above)
{
	const int *pix = m->class[PIX], *pxb = m->class[PXB];
	if (pxb[i] == i)
		bridge[i] = count_class(pxb, m->n, i) > count_class(pix, m->n, pix[i])
		    ? put_pcie_switch(m, number, cpu)
		    : cpu;
	if (pix[i] == i)
		above[i] = count_class(pix, m->n, i) > 1 ? put_pcie_switch(m, number, bridge[pxb[i]]) : bridge[pxb[i]];
	if (builder_status(m->b) == OK)
		link_device(m, i, above[pix[i]], cpu);
}

/* "0-63,128-191" -> 64: ranges of equal length are those of threads of the same cores. 0: no numbers. */
static int
count_cores(const char *affinity)
{
	int n_ranges = 0, first = 0, all = 0;
	bool equal = true;
	for (const char *at = affinity; *at >= '0' && *at <= '9';) {
		char *end;
		long low = strtol(at, &end, 10), high = *end == '-' ? strtol(end + 1, &end, 10) : low;
		if (high < low || high - low > 100000)
			return 0;
		int n = (int)(high - low) + 1;
		first = n_ranges++ ? first : n;
		equal &= n == first;
		all += n;
		at = *end == ',' ? end + 1 : "";
	}
	return n_ranges == 2 && equal ? first : all;
}

static void
join_cpus(const struct matrix *m, const int *cpu, int n)
{
	CpuModel likely = { .family = -1, .model = -1 };
	for (int i = 0; i < m->n; i++) {
		int cores = count_cores(m->device[i].affinity);
		likely.cores = cores > likely.cores ? cores : likely.cores;
	}
	smi_join_cpus(m->b, cpu, n, likely, m->model);
}

/* A CPU for each NUMA node. */
static Status
place_pcie(struct matrix *m)
{
	Ctx *ctx = m->text.ctx;
	int *bridge, *above, *cpu, *of_class, n_cpus = 0, number = 0;
	char id[32];
	TRY(TEMP(ctx, bridge, m->n));
	TRY(TEMP(ctx, above, m->n));
	TRY(TEMP(ctx, cpu, m->n));
	TRY(TEMP(ctx, of_class, m->n));
	for (int i = 0; i < m->n; i++) {
		if (m->class[NODE][i] != i)
			continue;
		snprintf(id, sizeof id, "cpu%d", n_cpus);
		of_class[i] = cpu[n_cpus++] = builder_vertex(m->b, VERTEX_CPU, m->node, id);
	}
	m->pcie = smi_pcie(m->b, m->model);
	for (int i = 0; i < m->n; i++) {
		TRY(builder_status(m->b));
		place_device(m, i, of_class[m->class[NODE][i]], &number, bridge, above);
	}
	join_cpus(m, cpu, n_cpus);
	return builder_status(m->b);
}

/* ---- the whole ---- */

static Status
place_devices(struct matrix *m)
{
	char id[LIMIT_ID_BYTES];
	int nics = 0;
	m->node = builder_node(m->b, "node0");
	for (int i = 0; i < m->n; i++) {
		struct device *device = &m->device[i];
		snprintf(id, sizeof id, "gpu%d", device->gpu);
		nics += device->gpu < 0;
		device->vertex = builder_vertex(m->b, device->gpu < 0 ? VERTEX_NIC : VERTEX_GPU, m->node,
		    device->gpu < 0 ? device->name : id);
	}
	if (nics)
		builder_class(m->b, LINK_NET, 0, link_class_latency(LINK_NET), link_class_latency_source(LINK_NET));
	if (nics)
		builder_assume(
		    m->b, "NICs: the table has no rates of network ports; --nic-rate sets them for a cluster");
	return builder_status(m->b);
}

static Status
read_matrix(struct matrix *m, Topology **out)
{
	char name[LIMIT_ID_BYTES];
	SmiText *text = &m->text;
	TRY(nvidia_table_read(m));
	TRY(builder_new(text->ctx, text->label, sniff_name(text->label, name, sizeof name),
	    "nvidia-smi topo -m; rates: see classes and links", &m->b));
	builder_gpus(m->b, m->model);
	for (int near = PIX; near <= NODE; near++)
		TRY(find_class(m, (Near)near));
	unite_affinities(m);
	unite_hidden(m);
	TRY(place_devices(m));
	TRY(place_nvlinks(m));
	TRY(place_pcie(m));
	return builder_finish(m->b, out);
}

/* Of a text that no NUL ends. */
static size_t
blanks(const char *data, size_t size)
{
	size_t n = 0;
	while (n < size && (data[n] == ' ' || data[n] == '\t'))
		n++;
	return n;
}

/* A line with GPU0 and X: a row. */
bool
topo_is_nvidia_smi(const char *data, size_t size)
{
	enum { SNIFFED = 1 << 16 };
	for (size_t at = 0; at < size && at < SNIFFED;) {
		const char *end = memchr(data + at, '\n', size - at);
		size_t n = end ? (size_t)(end - data) - at : size - at, i = at + blanks(data + at, n);
		if (at + n - i > 5 && memcmp(data + i, "GPU0", 4) == 0) {
			i += 4 + blanks(data + i + 4, at + n - i - 4);
			if (i < at + n && data[i] == 'X' && (i + 1 == at + n || strchr(" \t\r", data[i + 1])))
				return true;
		}
		at += n + 1;
	}
	return false;
}

Status
topo_read_nvidia_smi(Ctx *ctx, const char *label, TopologyFiles *files, const char *data, size_t size, Topology **out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct matrix m = { .n = 0 };
	TRY(smi_open(ctx, label, files, data, size, &m.text, &m.model));
	TRY(read_matrix(&m, out));
	arena_release(&ctx->scratch, mark);
	return OK;
}
