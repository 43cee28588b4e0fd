/* Words of lines, and what both readers assume where the text does not say. */
#include "format/doc.h"
#include "format/smi/smi.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The rest of one, as "[4m", where a copy has lost the ESC. */
static size_t
colour_length(const char *data, size_t size, size_t at)
{
	size_t i = at + 1;
	while (i < size && ((data[i] >= '0' && data[i] <= '9') || data[i] == ';'))
		i++;
	return i > at + 1 && i < size && data[i] == 'm' ? i + 1 - at : 0;
}

/* Length of an escape sequence of a terminal at `at`, such as ESC [ 4 m; 0: none. */
static size_t
escape_length(const char *data, size_t size, size_t at)
{
	size_t i = at + 2;
	if (data[at] == '[')
		return colour_length(data, size, at);
	if (data[at] != '\033' || at + 1 >= size || data[at + 1] != '[')
		return 0;
	while (i < size && data[i] >= 0x20 && data[i] < 0x40)
		i++;
	return i < size ? i + 1 - at : 0;
}

Status
smi_open(Ctx *ctx, const char *label, const TopologyFiles *files, const char *data, size_t size, SmiText *out,
    const GpuModel **model)
{
	char *copy;
	size_t n = 0;
	TRY(doc_check_bytes(ctx, label, data, size));
	TRY(TEMP(ctx, copy, size + 1));
	for (size_t i = 0; i < size;) {
		size_t escape = escape_length(data, size, i);
		if (!escape)
			copy[n++] = data[i];
		i += escape ? escape : 1;
	}
	*out = (SmiText){ .ctx = ctx, .label = label, .next = copy };
	TRY(TEMP(ctx, out->word, SMI_WORDS));
	*model = NULL;
	return files->hints.gpu_model ? gpu_model_parse(ctx, files->hints.gpu_model, model) : OK;
}

/* Splits the line where it lies. */
static void
split_line(SmiText *text, char *line)
{
	static const char blanks[] = " \t\r\v\f";
	text->n = 0;
	for (line += strspn(line, blanks); *line; line += strspn(line, blanks)) {
		size_t n = strcspn(line, blanks);
		if (text->n < SMI_WORDS)
			text->word[text->n++] = line;
		if (!line[n])
			return;
		line[n] = 0;
		line += n + 1;
	}
}

bool
smi_line(SmiText *text)
{
	while (text->next) {
		char *line = text->next, *end = strchr(line, '\n');
		text->next = end ? end + 1 : NULL;
		if (end)
			*end = 0;
		text->line++;
		split_line(text, line);
		if (text->n)
			return true;
	}
	return false;
}

int
smi_gpu(const char *word)
{
	size_t digits = strncmp(word, "GPU", 3) == 0 ? strspn(word + 3, "0123456789") : 0;
	int number = 0;
	if (digits < 1 || digits > 5 || word[3 + digits])
		return -1;
	for (const char *c = word + 3; *c; c++)
		number = 10 * number + (*c - '0');
	return number;
}

Status
smi_fail(const SmiText *text, Status status, const char *format, ...)
{
	char message[sizeof text->ctx->error.text];
	va_list args;
	va_start(args, format);
	vsnprintf(message, sizeof message, format, args);
	va_end(args);
	return fail(text->ctx, status, "%s:%d: %s", text->label, text->line, message);
}

bool
smi_has(const char *data, size_t size, const char *phrase)
{
	enum { SNIFFED = 1 << 16 };
	size_t at = 0;
	while (at < size && data[at] && strchr(" \t\r\n", data[at]))
		at++;
	if (at < size && (data[at] == '{' || data[at] == '<'))
		return false;
	return memmem(data, size < SNIFFED ? size : SNIFFED, phrase, strlen(phrase));
}

/* ---- what the text does not say ---- */

Status
smi_no_model(const SmiText *text, LinkClass class, const char *links)
{
	Text list = { 0 };
	gpu_models_list(&list, class);
	Status status = fail(text->ctx, BAD_INPUT,
	    "%s: %s, whose rate depends on the model of the GPUs, which is not in the file: want --gpu-model with one "
	    "of %s",
	    text->label, links, list.data ? list.data : "");
	text_free(&list);
	return status;
}

int64_t
smi_pcie(TopologyBuilder *b, const GpuModel *model)
{
	int generation = model ? model->pcie : PCIE_GENERATION_UNKNOWN;
	int64_t capacity = pcie_capacity(16, generation);
	char source[640];
	snprintf(source, sizeof source, "x16 of generation %d%s%s; %s; %s", generation, model ? ", that of model " :
	    ", assumed", model ? model->name : "", pcie_capacity_source(), link_class_latency_source(LINK_PCIE));
	builder_class(b, LINK_PCIE, capacity, link_class_latency(LINK_PCIE), source);
	if (model)
		builder_assume(b, "PCIe: x16 of generation %d everywhere, as of model %s", generation, model->name);
	else
		builder_assume(b, "PCIe: x16 of generation %d everywhere; --gpu-model states another", generation);
	return capacity;
}

void
smi_join_cpus(TopologyBuilder *b, const int *cpu, int n, CpuModel likely, const GpuModel *gpus)
{
	SocketLink link = socket_link(likely, gpus, n);
	link.assumed = true;
	builder_join_cpus(b, cpu, n, &link);
}
