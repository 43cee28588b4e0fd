/* What rocm-smi and amd-smi print as JSON. rocm-smi has each pair once, as two texts:
 *
 *   { "card0": { "(Topology) Numa Node": "0" }, ...
 *     "system": { "(Topology) Weight between DRM devices 0 and 1": "15",
 *                 "(Topology) Link type between DRM devices 0 and 1": "XGMI", ... } }
 *
 * amd-smi topology has a list of the links of each GPU, also to itself:
 *
 *   [ { "gpu": 0, "links": [ { "gpu": 1, "weight": 15, "link_type": "XGMI", "num_hops": 1 }, ... ] }, ... ] */
#include "format/doc.h"
#include "format/smi/rocm_tables.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char pair_words[] = " between DRM devices ";

/* ---- both ---- */

static Status
new_tables(struct tables *t, int n)
{
	Ctx *ctx = t->text.ctx;
	if (n < 1 || n > SMI_DEVICES)
		return fail(ctx, n < 1 ? BAD_INPUT : LIMIT, "%s: %d GPUs: want 1 to %d", t->text.label, n, SMI_DEVICES);
	t->n = n;
	TRY(TEMP(ctx, t->gpu, n));
	TRY(TEMP(ctx, t->numa, n));
	for (int i = 0; i < n; i++) {
		t->gpu[i] = i;
		t->numa[i] = -1;
	}
	TRY(TEMP(ctx, t->cell[TYPE], n * n));
	return OK;
}

static Status
put_type(struct tables *t, const Doc *at, const char *word, int i, int j)
{
	int type = strcasecmp(word, "XGMI") == 0 ? XGMI : strcasecmp(word, "PCIE") == 0 ? PCIE : 0;
	if (i != j && !type)
		return doc_want(t->text.ctx, t->text.label, at, "XGMI or PCIE");
	t->cell[TYPE][i * t->n + j] = i == j ? 0 : type;
	return OK;
}

static Status
put_number(struct tables *t, Table table, int value, int i, int j)
{
	if (!t->cell[table])
		TRY(TEMP(t->text.ctx, t->cell[table], t->n * t->n));
	t->cell[table][i * t->n + j] = value;
	return OK;
}

static Status
check_types(const struct tables *t)
{
	for (int i = 0; i < t->n; i++)
		for (int j = 0; j < t->n; j++)
			if (i != j && !t->cell[TYPE][i * t->n + j])
				return fail(t->text.ctx, BAD_INPUT,
				    "%s: GPU%d and GPU%d: no link type: want all of the topology", t->text.label,
				    t->gpu[i], t->gpu[j]);
	return OK;
}

/* ---- rocm-smi ---- */

/* "(Topology) Weight between DRM devices 0 and 1" */
static bool
parse_pair(const char *name, Table *table, int *i, int *j)
{
	static const char *const words[N_TABLES] = { "Weight", "Hops", "Link type" };
	const char *devices = strstr(name, pair_words);
	int k = 0;
	if (!devices || sscanf(devices + sizeof pair_words - 1, "%4d and %4d", i, j) != 2)
		return false;
	if (*i < 0 || *j < 0 || *i == *j)
		return false;
	while (k < N_TABLES && !strstr(name, words[k]))
		k++;
	*table = (Table)k;
	return k < N_TABLES;
}

static int
card_number(const char *name)
{
	int number = -1;
	return sscanf(name, "card%4d", &number) == 1 ? number : -1;
}

static Status
read_pairs(struct tables *t, const Doc *system)
{
	for (int k = 0; k < system->n; k++) {
		const Doc *at = system->child[k];
		int i, j;
		Table table;
		if (!parse_pair(at->name, &table, &i, &j) || at->kind != DOC_STRING)
			continue;
		for (int way = 0; way < 2; way++) {
			int from = way ? j : i, to = way ? i : j;
			TRY(table == TYPE ? put_type(t, at, at->text, from, to)
			    : put_number(t, table, atoi(at->text), from, to));
		}
	}
	return check_types(t);
}

static Status
read_rocm_smi(struct tables *t, const Doc *root)
{
	static const Doc none = { .kind = DOC_OBJECT };
	const Doc *system = doc_get(root, "system"), *node;
	int most = -1, i, j;
	Table table;
	system = system && system->kind == DOC_OBJECT ? system : &none;
	for (int k = 0; k < root->n; k++) {
		int number = card_number(root->child[k]->name);
		most = number > most ? number : most;
	}
	for (int k = 0; k < system->n; k++)
		if (parse_pair(system->child[k]->name, &table, &i, &j))
			most = i > most && i > j ? i : j > most ? j : most;
	TRY(new_tables(t, most + 1));
	for (int k = 0; k < root->n; k++) {
		int number = card_number(root->child[k]->name);
		node = number < 0 || root->child[k]->kind != DOC_OBJECT ? NULL
		    : doc_get(root->child[k], "(Topology) Numa Node");
		if (node && node->kind == DOC_STRING && strspn(node->text, "0123456789") == strlen(node->text)
		    && *node->text && strlen(node->text) < 5)
			t->numa[number] = atoi(node->text);
	}
	return read_pairs(t, system);
}

/* ---- amd-smi ---- */

static Status
find_gpu(const struct tables *t, const Doc *object, int *out)
{
	int64_t number;
	const Doc *at;
	int i = 0;
	TRY(doc_need(t->text.ctx, t->text.label, object, "gpu", DOC_NUMBER, &at));
	TRY(doc_int(t->text.ctx, t->text.label, at, 0, 99999, &number));
	while (i < t->n && t->gpu[i] != (int)number)
		i++;
	*out = i;
	return i < t->n ? OK : doc_want(t->text.ctx, t->text.label, at, "a GPU of the list");
}

static Status
read_numbers(struct tables *t, const Doc *link, int i, int j)
{
	static const struct {
		const char *name;
		Table table;
	} members[] = { { "weight", WEIGHT }, { "num_hops", HOPS } };
	for (size_t k = 0; k < sizeof members / sizeof *members; k++) {
		const Doc *at = doc_get(link, members[k].name);
		int64_t value;
		if (!at || at->kind != DOC_NUMBER)
			continue;
		TRY(doc_int(t->text.ctx, t->text.label, at, 0, 999999, &value));
		TRY(put_number(t, members[k].table, (int)value, i, j));
	}
	return OK;
}

static Status
read_amd_smi(struct tables *t, const Doc *root)
{
	Ctx *ctx = t->text.ctx;
	const char *label = t->text.label, *type;
	TRY(new_tables(t, root->n));
	for (int k = 0; k < root->n; k++) {
		const Doc *at;
		int64_t number;
		TRY(doc_need(ctx, label, root->child[k], "gpu", DOC_NUMBER, &at));
		TRY(doc_int(ctx, label, at, 0, 99999, &number));
		for (int before = 0; before < k; before++)
			if (t->gpu[before] == (int)number)
				return doc_want(ctx, label, at, "each GPU once");
		t->gpu[k] = (int)number;
	}
	for (int i = 0; i < root->n; i++) {
		const Doc *links;
		int j;
		TRY(doc_need(ctx, label, root->child[i], "links", DOC_ARRAY, &links));
		for (int k = 0; k < links->n; k++) {
			TRY(find_gpu(t, links->child[k], &j));
			TRY(doc_string(ctx, label, links->child[k], "link_type", &type));
			TRY(put_type(t, doc_get(links->child[k], "link_type"), type, i, j));
			TRY(i == j ? OK : read_numbers(t, links->child[k], i, j));
		}
	}
	return check_types(t);
}

/* ---- the whole ---- */

bool
rocm_is_json(const char *data, size_t size)
{
	enum { SNIFFED = 1 << 16 };
	size_t at = 0, n = size < SNIFFED ? size : SNIFFED;
	while (at < n && data[at] && strchr(" \t\r\n", data[at]))
		at++;
	if (at == n || (data[at] != '{' && data[at] != '['))
		return false;
	return data[at] == '[' ? memmem(data, n, "\"link_type\"", 11) != NULL
	    : memmem(data, n, pair_words, sizeof pair_words - 1) || memmem(data, n, "\"(Topology) Numa Node\"", 22);
}

Status
rocm_read_json(struct tables *t, const char *data, size_t size)
{
	Doc *root;
	TRY(doc_read_json(t->text.ctx, t->text.label, data, size, &root));
	if (root->kind == DOC_OBJECT)
		return read_rocm_smi(t, root);
	if (root->kind == DOC_ARRAY)
		return read_amd_smi(t, root);
	return doc_want(t->text.ctx, t->text.label, root,
	    "what rocm-smi --showtopo --json or amd-smi topology --json prints");
}
