/* The files that read what nvidia-smi and rocm-smi print about a topology: lines of words, and matrices with a row and
 * a column for each device. */
#ifndef BLINK_FORMAT_SMI_H
#define BLINK_FORMAT_SMI_H

#include "format/builder.h"
#include "format/format.h"
#include "format/gpu_models.h"
#include "format/link_rates.h"

enum { SMI_DEVICES = 256, SMI_WORDS = SMI_DEVICES + 16, SMI_WORD_SHOWN = 24 };

/* A text without escape sequences, and the line that was read last. */
typedef struct {
	Ctx *ctx;
	const char *label;
	char *next;		/* ended by a NUL; NULL: there is no more */
	int line;		/* the number of that line, from 1 */
	int n;			/* its words, at most SMI_WORDS; the others are not kept */
	char **word;
} SmiText;

/* The text, and what a reader needs to know of the GPUs: NULL if --gpu-model is not given. Memory: scratch arena.
 * Fails: BAD_INPUT not UTF-8, or NUL bytes, or no such model; LIMIT, NO_MEMORY. */
Status smi_open(Ctx *ctx, const char *label, const TopologyFiles *files, const char *data, size_t size, SmiText *out,
    const GpuModel **model);

/* The next line with a word in it; false: there is none. */
bool smi_line(SmiText *text);

/* "GPU12" -> 12; -1: no such word. */
int smi_gpu(const char *word);

/* Fail with "label:LINE: <message>". */
Status smi_fail(const SmiText *text, Status status, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Has the text this phrase, among the first bytes, and is it neither JSON nor XML, whose names may have any? For
 * sniffing. */
bool smi_has(const char *data, size_t size, const char *phrase);

/* A GPU model is needed for the rates of links, and is not given: with all names of models that have such links. */
Status smi_no_model(const SmiText *text, LinkClass class, const char *links);

/* PCI Express: its class, and the rate of x16 of the model's generation, or what NCCL takes where no model is known. */
int64_t smi_pcie(TopologyBuilder *b, const GpuModel *model);

/* Links between all pairs of CPUs, whose model the text does not state. cpu: vertices; likely: what it may be. */
void smi_join_cpus(TopologyBuilder *b, const int *cpu, int n, CpuModel likely, const GpuModel *gpus);

#endif
