/* Cells of the table of `nvidia-smi topo -m`, and the legend of NICs below it. The text may be cut in its last row. */
#include "format/smi/nvidia_table.h"

#include <stdlib.h>
#include <string.h>

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

Status
nvidia_table_read(struct matrix *m)
{
	TRY(read_header(m));
	TRY(read_rows(m));
	return complete(m);
}
