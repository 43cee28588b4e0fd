/* What `rocm-smi --showtopo` prints: matrices of weights, hops and link types of all pairs of GPUs, and their NUMA
 * nodes.
 *
 *   ==== Link Type between two GPUs ====
 *          GPU0         GPU1
 *   GPU0   0            XGMI
 *   GPU1   XGMI         0
 *
 * XGMI is also the type of pairs without a link of their own, with 1 hop. Their weight is larger: 15 for each link
 * between them, as the driver counts (amdkfd). How many links a pair has is in no matrix. */
#include "format/sniff.h"
#include "format/smi/rocm_tables.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const titles[N_TABLES] = { "Weight between two GPUs", "Hops between two GPUs",
	"Link Type between two GPUs" };

/* ---- reading ---- */

static int
find_gpu(const struct tables *t, int number)
{
	int i = 0;
	while (i < t->n && t->gpu[i] != number)
		i++;
	return number >= 0 && i < t->n ? i : -1;
}

/* The first table says which GPUs there are. */
static Status
read_columns(struct tables *t)
{
	const SmiText *text = &t->text;
	bool first = t->n == 0;
	if (first) {
		if (text->n > SMI_DEVICES)
			return smi_fail(text, LIMIT, "more than %d GPUs", SMI_DEVICES);
		TRY(TEMP(text->ctx, t->gpu, text->n));
		TRY(TEMP(text->ctx, t->numa, text->n));
	}
	for (int i = 0; i < text->n; i++) {
		int number = smi_gpu(text->word[i]);
		if (number < 0 || (first && find_gpu(t, number) >= 0) || (!first && (i >= t->n || number != t->gpu[i])))
			return smi_fail(text, BAD_INPUT, "\"%.24s\": want %s", text->word[i], first
			    ? "GPU0, GPU1 and so on, each once" : "the columns of the first table");
		if (first) {
			t->gpu[t->n] = number;
			t->numa[t->n++] = -1;
		}
	}
	return t->n == text->n ? OK : smi_fail(text, BAD_INPUT, "%d columns: want the %d of the first table", text->n,
	    t->n);
}

static bool
parse_cell(const char *word, Table table, int *out)
{
	size_t digits = strspn(word, "0123456789");
	if (table == TYPE) {
		bool pcie = strcmp(word, "PCIE") == 0 || strcmp(word, "PCIe") == 0;
		*out = strcmp(word, "XGMI") == 0 ? XGMI : pcie ? PCIE : 0;
		return *out || strcmp(word, "0") == 0 || strcmp(word, "X") == 0 || strcmp(word, "N/A") == 0;
	}
	*out = digits && digits < 7 ? atoi(word) : 0;
	return (digits && digits < 7 && !word[digits]) || strcmp(word, "N/A") == 0 || strcmp(word, "X") == 0;
}

static Status
read_row(struct tables *t, Table table, int i)
{
	const SmiText *text = &t->text;
	if (text->n != t->n + 1)
		return smi_fail(text, BAD_INPUT, "row GPU%d: %d columns: want %d", t->gpu[i], text->n - 1, t->n);
	for (int j = 0; j < t->n; j++) {
		int *cell = &t->cell[table][i * t->n + j];
		if (!parse_cell(text->word[j + 1], table, cell) || (table == TYPE && (i == j) == (*cell != 0)))
			return smi_fail(text, BAD_INPUT, "row GPU%d, column GPU%d: \"%.24s\": want %s", t->gpu[i],
			    t->gpu[j], text->word[j + 1],
			    table != TYPE ? "a number" : i == j ? "0" : "XGMI or PCIE");
	}
	return OK;
}

/* The header and the rows below a title. */
static Status
read_table(struct tables *t, Table table)
{
	bool *row;
	int n_rows = 0;
	if (t->cell[table])
		return smi_fail(&t->text, BAD_INPUT, "%s: given twice: want the output of one command", titles[table]);
	if (!smi_line(&t->text))
		return smi_fail(&t->text, BAD_INPUT, "%s: no table below: the text is cut", titles[table]);
	TRY(read_columns(t));
	TRY(TEMP(t->text.ctx, t->cell[table], t->n * t->n));
	TRY(TEMP(t->text.ctx, row, t->n));
	while (n_rows < t->n && smi_line(&t->text)) {
		int i = find_gpu(t, smi_gpu(t->text.word[0]));
		if (i < 0 || row[i])
			return smi_fail(&t->text, BAD_INPUT, "\"%.24s\": want the row of another of the %d GPUs",
			    t->text.word[0], t->n);
		row[i] = true;
		n_rows++;
		TRY(read_row(t, table, i));
	}
	return n_rows == t->n ? OK : smi_fail(&t->text, BAD_INPUT, "%s: %d rows: want %d: the text is cut",
	    titles[table], n_rows, t->n);
}

/* Is the line this title, between signs? */
static bool
is_title(const SmiText *text, const char *title)
{
	const char *at = title;
	int i = 0;
	while (i < text->n && *text->word[i] == '=')
		i++;
	for (; i < text->n && *at; i++) {
		size_t n = strcspn(at, " ");
		if (strlen(text->word[i]) != n || memcmp(text->word[i], at, n) != 0)
			return false;
		at += n + (at[n] == ' ');
	}
	return !*at && (i == text->n || *text->word[i] == '=');
}

/* "GPU[3]  : (Topology) Numa Node: 1" */
static void
read_numa(struct tables *t)
{
	const SmiText *text = &t->text;
	char *end;
	if (text->n < 6 || strncmp(text->word[0], "GPU[", 4) != 0 || strcmp(text->word[3], "Numa") != 0
	    || strcmp(text->word[4], "Node:") != 0)
		return;
	int i = find_gpu(t, (int)strtol(text->word[0] + 4, &end, 10));
	if (i >= 0 && strspn(text->word[5], "0123456789") == strlen(text->word[5]) && strlen(text->word[5]) < 5)
		t->numa[i] = atoi(text->word[5]);
}

static Status
read_tables(struct tables *t)
{
	while (smi_line(&t->text)) {
		for (int table = 0; table < N_TABLES; table++) {
			if (is_title(&t->text, titles[table])) {
				TRY(read_table(t, (Table)table));
				t->text.n = 0;
			}
		}
		read_numa(t);
	}
	if (t->cell[TYPE])
		return OK;
	return fail(t->text.ctx, BAD_INPUT, "%s: no table \"%s\": want all that rocm-smi --showtopo prints",
	    t->text.label, titles[TYPE]);
}

static Status
check_symmetry(struct tables *t)
{
	for (int table = 0; table < N_TABLES; table++)
		for (int i = 0; t->cell[table] && i < t->n; i++)
			for (int j = 0; j < i; j++)
				if (t->cell[table][i * t->n + j] != t->cell[table][j * t->n + i])
					return fail(t->text.ctx, BAD_INPUT,
					    "%s: %s: GPU%d to GPU%d and back: want the same both ways", t->text.label,
					    titles[table], t->gpu[j], t->gpu[i]);
	return OK;
}

/* ---- xGMI ---- */

static bool
is_xgmi(const struct tables *t, int i, int j)
{
	return i != j && t->cell[TYPE][i * t->n + j] == XGMI;
}

/* Without weights every pair of type XGMI is taken to have a link. */
static bool
is_direct(const struct tables *t, int i, int j)
{
	return is_xgmi(t, i, j) && (!t->xgmi || t->cell[WEIGHT][i * t->n + j] <= t->xgmi);
}

static void
find_direct(struct tables *t)
{
	for (int i = 0; t->cell[WEIGHT] && i < t->n; i++)
		for (int j = 0; j < i; j++) {
			int weight = t->cell[WEIGHT][i * t->n + j];
			if (is_xgmi(t, i, j) && weight > 0 && (!t->xgmi || weight < t->xgmi))
				t->xgmi = weight;
		}
	for (int i = 0; i < t->n; i++)
		for (int j = 0; j < i; j++)
			t->n_indirect += is_xgmi(t, i, j) && !is_direct(t, i, j);
}

/* Two dies of a package follow each other. */
static int
count_links(struct tables *t, int i, int j)
{
	int low = t->gpu[i] < t->gpu[j] ? t->gpu[i] : t->gpu[j], high = t->gpu[i] + t->gpu[j] - low;
	bool package = t->model->die_links && low % 2 == 0 && high == low + 1;
	t->dies |= package;
	return package ? t->model->die_links : 1;
}

/* No more links than a GPU has: else the matrices do not tell which pairs have one. */
static Status
check_links(struct tables *t)
{
	for (int i = 0; i < t->n; i++) {
		int sum = 0;
		for (int j = 0; j < t->n; j++)
			sum += is_direct(t, i, j) ? count_links(t, i, j) : 0;
		if (sum > t->model->links)
			return fail(t->text.ctx, BAD_INPUT,
			    "%s: GPU%d: %d links at least by these tables, model %s has %d: they do not tell which "
			    "pairs have links: want a topology that RCCL writes (NCCL_TOPO_DUMP_FILE), or another "
			    "--gpu-model",
			    t->text.label, t->gpu[i], sum, t->model->name, t->model->links);
	}
	return OK;
}

static Status
place_xgmi(struct tables *t)
{
	bool any = false;
	for (int i = 0; i < t->n * t->n; i++)
		any |= t->cell[TYPE][i] == XGMI;
	if (!any)
		return OK;
	if (!t->model)
		return smi_no_model(&t->text, LINK_XGMI, "xGMI links");
	if (t->model->rate == 0 || t->model->class != LINK_XGMI)
		return fail(t->text.ctx, BAD_INPUT, "%s: xGMI links, but model %s has none: want another --gpu-model",
		    t->text.label, t->model->name);
	find_direct(t);
	TRY(check_links(t));
	builder_gpu_links(t->b, t->model, false);
	for (int i = 0; i < t->n; i++)
		for (int j = i + 1; j < t->n; j++)
			if (is_direct(t, i, j))
				builder_link(t->b, t->vertex[i], t->vertex[j], LINK_XGMI, count_links(t, i, j),
				    t->model->rate, DUPLEX, NULL);
	builder_assume(t->b, "xGMI: %.6g GB/s for each link and direction, model %s",
	    (double)t->model->rate / 1e9, t->model->name);
	builder_assume(t->b, "xGMI: one link for each pair that has any%s, as the tables have no numbers of links",
	    t->dies ? ", and those of a package between its two dies" : "");
	if (t->n_indirect)
		builder_assume(t->b, "xGMI: no link for %d pair%s with a weight above %d", t->n_indirect,
		    t->n_indirect == 1 ? "" : "s", t->xgmi);
	return builder_status(t->b);
}

/* ---- PCIe ---- */

/* The CPU of each NUMA node; all GPUs are on one where the text has none. */
static Status
place_pcie(struct tables *t, int node)
{
	int *cpu, n_cpus = 0;
	char id[32];
	int64_t capacity = smi_pcie(t->b, t->model);
	TRY(TEMP(t->text.ctx, cpu, t->n));
	for (int i = 0; i < t->n; i++) {
		int first = 0;
		while (t->numa[first] != t->numa[i])
			first++;
		snprintf(id, sizeof id, "cpu%d", t->numa[i] < 0 ? 0 : t->numa[i]);
		if (first == i)
			cpu[n_cpus++] = builder_vertex(t->b, VERTEX_CPU, node, id);
		/* CPUs in the order of their first GPUs. */
		int k = 0;
		for (int j = 0; j < first; j++) {
			int before = 0;
			while (t->numa[before] != t->numa[j])
				before++;
			k += before == j;
		}
		TRY(builder_status(t->b));
		builder_link(t->b, t->vertex[i], cpu[k], LINK_PCIE, 1, capacity, DUPLEX, NULL);
		if (!t->model)
			builder_link_assumed(t->b);
	}
	if (t->n > 1 && n_cpus == 1 && t->numa[0] < 0)
		builder_assume(t->b, "CPUs: one for all GPUs, as the text has no NUMA nodes");
	builder_assume(
	    t->b, "PCIe: a link of each GPU to the CPU of its NUMA node, as the tables have no PCIe switches");
	smi_join_cpus(t->b, cpu, n_cpus,
	    (CpuModel){ .arch = "x86_64", .vendor = "AuthenticAMD", .family = -1, .model = -1 }, t->model);
	return builder_status(t->b);
}

/* ---- the whole ---- */

static Status
read_all(struct tables *t, const char *data, size_t size, Topology **out)
{
	char name[LIMIT_ID_BYTES], id[32];
	TRY(rocm_is_json(data, size) ? rocm_read_json(t, data, size) : read_tables(t));
	TRY(check_symmetry(t));
	TRY(builder_new(t->text.ctx, t->text.label, sniff_name(t->text.label, name, sizeof name),
	    "rocm-smi --showtopo; rates: see classes and links", &t->b));
	int node = builder_node(t->b, "node0");
	builder_gpus(t->b, t->model);
	TRY(TEMP(t->text.ctx, t->vertex, t->n));
	for (int i = 0; i < t->n; i++) {
		snprintf(id, sizeof id, "gpu%d", t->gpu[i]);
		t->vertex[i] = builder_vertex(t->b, VERTEX_GPU, node, id);
	}
	TRY(builder_status(t->b));
	TRY(place_xgmi(t));
	TRY(place_pcie(t, node));
	return builder_finish(t->b, out);
}

bool
topo_is_rocm_smi(const char *data, size_t size)
{
	for (int table = 0; table < N_TABLES; table++)
		if (smi_has(data, size, titles[table]))
			return true;
	return rocm_is_json(data, size);
}

Status
topo_read_rocm_smi(Ctx *ctx, const char *label, TopologyFiles *files, const char *data, size_t size, Topology **out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct tables t = { .n = 0 };
	TRY(smi_open(ctx, label, files, data, size, &t.text, &t.model));
	TRY(read_all(&t, data, size, out));
	arena_release(&ctx->scratch, mark);
	return OK;
}
