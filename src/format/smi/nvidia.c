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
#include "base/array.h"
#include "format/sniff.h"
#include "format/smi/smi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum { PIX, PXB, PHB, NODE, SYS, N_NEAR, SELF, HIDDEN, MISSING } Near;

struct device {
	const char *column;	/* "GPU0", "NIC0", "mlx5_0" */
	const char *name;	/* column, or that of the legend */
	const char *affinity;	/* of CPUs; "" where the row has none */
	int gpu;		/* its number; -1: a NIC */
	int row;		/* the line with it; 0: none */
	int vertex;
};

struct cell {
	Near near;
	int nvlinks;
};

struct matrix {
	SmiText text;
	const GpuModel *model;
	TopologyBuilder *b;
	int n;
	struct device *device;
	struct cell *cell;	/* n * n, by row */
	int header;		/* its line */
	int cut;		/* columns of the last row, if it has not all; 0: it does */
	int *class[N_NEAR];	/* of each device: the first device that is as near; [NODE]: of its CPU */
	int *component;		/* of GPUs joined by NVLinks: the first of them */
	int node;
	int64_t pcie;
};

static struct cell *
cell_at(const struct matrix *m, int i, int j)
{
	return &m->cell[i * m->n + j];
}

/* ---- reading ---- */

static bool
parse_cell(const char *word, struct cell *out)
{
	static const struct {
		const char *word;
		Near near;
	} known[] = { { "X", SELF }, { "PIX", PIX }, { "PXB", PXB }, { "PHB", PHB }, { "NODE", NODE }, { "SYS", SYS },
		{ "SOC", SYS } };
	size_t digits = strncmp(word, "NV", 2) == 0 ? strspn(word + 2, "0123456789") : 0;
	*out = (struct cell){ .near = MISSING };
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (strcmp(word, known[i].word) == 0)
			out->near = known[i].near;
	if (digits >= 1 && digits <= 3 && !word[2 + digits]) {
		out->near = HIDDEN;
		out->nvlinks = atoi(word + 2);
		return out->nvlinks > 0;
	}
	return out->near != MISSING;
}

/* Columns of devices end where those of affinities begin. */
static int
count_devices(const SmiText *text)
{
	static const char *const after[] = { "CPU", "NUMA", "GPU", "Affinity" };
	for (int i = 0; i < text->n; i++)
		for (size_t k = 0; k < sizeof after / sizeof *after; k++)
			if (strcmp(text->word[i], after[k]) == 0)
				return i;
	return text->n;
}

/* The line with the columns: the first that begins with GPU0 and is not a row. */
static bool
find_header(SmiText *text)
{
	while (smi_line(text))
		if (strcmp(text->word[0], "GPU0") == 0 && (text->n < 2 || strcmp(text->word[1], "X") != 0))
			return true;
	return false;
}

static Status
read_header(struct matrix *m)
{
	SmiText *text = &m->text;
	if (!find_header(text))
		return fail(text->ctx, BAD_INPUT,
		    "%s: no line with GPU0, GPU1, ...: want what nvidia-smi topo -m prints", text->label);
	m->header = text->line;
	m->n = count_devices(text);
	if (m->n > SMI_DEVICES || text->n == SMI_WORDS)
		return smi_fail(text, LIMIT, "more than %d devices", SMI_DEVICES);
	TRY(TEMP(text->ctx, m->device, m->n));
	TRY(TEMP(text->ctx, m->cell, m->n * m->n));
	for (int i = 0; i < m->n * m->n; i++)
		m->cell[i].near = MISSING;
	for (int i = 0; i < m->n; i++) {
		const char *word = text->word[i];
		m->device[i] = (struct device){ .column = word, .name = word, .affinity = "", .gpu = smi_gpu(word) };
		for (int k = 0; k < i; k++)
			if (strcmp(m->device[k].column, word) == 0)
				return smi_fail(
				    text, BAD_INPUT, "column %.24s: given twice: want each device once", word);
	}
	return OK;
}

static int
find_device(const struct matrix *m, const char *word, size_t length)
{
	int i = 0;
	while (i < m->n && !(strlen(m->device[i].column) == length && memcmp(m->device[i].column, word, length) == 0))
		i++;
	return i < m->n ? i : -1;
}

/* The start of a word that a cell may have. */
static bool
is_cut(const char *word)
{
	static const char *const words[] = { "PIX", "PXB", "PHB", "NODE", "SYS", "SOC", "NV" };
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (strncmp(words[i], word, strlen(word)) == 0)
			return true;
	return false;
}

static Status
fail_cell(const struct matrix *m, int i, int j)
{
	return smi_fail(&m->text, BAD_INPUT, "row %.24s, column %.24s: \"%.24s\": want %s", m->device[i].column,
	    m->device[j].column, m->text.word[j + 1], i == j ? "X" : m->device[i].gpu < 0 || m->device[j].gpu < 0
	    ? "PIX, PXB, PHB, NODE or SYS" : "NV and a number, PIX, PXB, PHB, NODE or SYS");
}

/* The last row may be cut. */
static Status
read_row(struct matrix *m, int i)
{
	const SmiText *text = &m->text;
	if (m->device[i].row)
		return smi_fail(text, BAD_INPUT, "row %.24s: given twice: want each device once", m->device[i].column);
	if (m->cut)
		return smi_fail(text, BAD_INPUT, "the row before has %d columns: want %d", m->cut, m->n);
	m->device[i].row = text->line;
	m->cut = text->n - 1 < m->n ? text->n - 1 : 0;
	for (int j = 0; j < m->n && j + 1 < text->n; j++) {
		struct cell cell;
		bool known = parse_cell(text->word[j + 1], &cell);
		if (!known && j + 2 == text->n && is_cut(text->word[j + 1])) {
			m->cut = j + 1;
			continue;
		}
		if (!known || (cell.near == SELF) != (i == j) || (cell.near == HIDDEN && (m->device[i].gpu < 0
		    || m->device[j].gpu < 0)))
			return fail_cell(m, i, j);
		*cell_at(m, i, j) = cell;
	}
	if (text->n > m->n + 1 && strcmp(text->word[m->n + 1], "N/A") != 0)
		m->device[i].affinity = text->word[m->n + 1];
	return OK;
}

/* "NIC0: mlx5_0" */
static void
read_legend(struct matrix *m)
{
	const SmiText *text = &m->text;
	size_t length = strlen(text->word[0]);
	if (text->n == 2 && length > 1 && text->word[0][length - 1] == ':') {
		int i = find_device(m, text->word[0], length - 1);
		if (i >= 0 && m->device[i].gpu < 0)
			m->device[i].name = text->word[1];
	}
}

static Status
read_rows(struct matrix *m)
{
	while (smi_line(&m->text)) {
		int i = find_device(m, m->text.word[0], strlen(m->text.word[0]));
		if (i >= 0)
			TRY(read_row(m, i));
		else
			read_legend(m);
	}
	return OK;
}

static bool
same_cell(const struct cell *a, const struct cell *b)
{
	return a->near == b->near && a->nvlinks == b->nvlinks;
}

/* Messages are about the row of a device, or about the header where it has none. */
static void
stand_at(struct matrix *m, int i)
{
	m->text.line = m->device[i].row ? m->device[i].row : m->header;
}

/* Each pair is there twice, or once where a row is cut or missing. */
static Status
complete(struct matrix *m)
{
	for (int i = 0; i < m->n; i++) {
		for (int j = 0; j < i; j++) {
			struct cell *a = cell_at(m, i, j), *b = cell_at(m, j, i);
			stand_at(m, m->device[i].row ? i : j);
			if (a->near == MISSING && b->near == MISSING)
				return smi_fail(&m->text, BAD_INPUT,
				    "%.24s and %.24s: nothing about this pair: the table is cut", m->device[j].column,
				    m->device[i].column);
			if (a->near == MISSING)
				*a = *b;
			if (b->near == MISSING)
				*b = *a;
			if (!same_cell(a, b))
				return smi_fail(&m->text, BAD_INPUT,
				    "row %.24s, column %.24s: not what row %.24s has: want the same both ways",
				    m->device[i].column, m->device[j].column, m->device[j].column);
		}
	}
	return OK;
}

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
	return vertex;
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
		builder_link(m->b, m->device[i].vertex, above[pix[i]], LINK_PCIE, 1, m->pcie, DUPLEX, NULL);
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
	smi_join_cpus(m->b, cpu, n_cpus, (CpuModel){ .family = -1, .model = -1 });
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
	TRY(read_header(m));
	TRY(read_rows(m));
	TRY(complete(m));
	TRY(builder_new(text->ctx, text->label, sniff_name(text->label, name, sizeof name),
	    "nvidia-smi topo -m; rates: see classes and links", &m->b));
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
