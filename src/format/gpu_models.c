/* Rates are nominal, of one link in one direction: data sheets give those of all links in both directions together,
 * which the source repeats. Of models with one architecture the first is that which has links, if any. */
#include "format/gpu_models.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define GB BYTES_PER_GB
#define MB (BYTES_PER_GB / 1000)
#define KB (MB / 1000)
#define NONE 0, 0
#define NVLINK LINK_NVLINK
#define XGMI LINK_XGMI

/* name, words, architecture, class, generation, rate, links, PCIe, links of a package, source */
static const GpuModel models[] = {
	{ "K80", "k80", "sm37", NVLINK, 0, NONE, 3, 0, "NVIDIA, Tesla K80 board specification: PCIe only" },
	{ "M40", "m40", "sm52", NVLINK, 0, NONE, 3, 0, "NVIDIA, Tesla M40 data sheet: PCIe only" },
	{ "P100", "p100", "sm60", NVLINK, 1, 20 * GB, 4, 3, 0,
	    "NVIDIA, Tesla P100 white paper WP-08019-001: 4 links, 160 GB/s both ways" },
	{ "P100-PCIE", "p100 pcie", "sm60", NVLINK, 0, NONE, 3, 0, "NVIDIA, Tesla P100 PCIe data sheet: PCIe only" },
	{ "P40", "p40", "sm61", NVLINK, 0, NONE, 3, 0, "NVIDIA, Tesla P40 data sheet: PCIe only" },
	{ "P4", "p4", "sm61", NVLINK, 0, NONE, 3, 0, "NVIDIA, Tesla P4 data sheet: PCIe only" },
	{ "V100-SXM2", "v100 sxm2", "sm70", NVLINK, 2, 25 * GB, 6, 3, 0,
	    "NVIDIA, Tesla V100 GPU Architecture, WP-08608-001: 6 links, 300 GB/s both ways" },
	{ "V100-SXM3", "v100 sxm3", "sm70", NVLINK, 2, 25 * GB, 6, 3, 0,
	    "NVIDIA, Tesla V100 GPU Architecture, WP-08608-001: 6 links, 300 GB/s both ways" },
	{ "V100", "v100", "sm70", NVLINK, 2, 25 * GB, 6, 3, 0,
	    "NVIDIA, Tesla V100 GPU Architecture, WP-08608-001: 6 links, 300 GB/s both ways" },
	{ "V100-PCIE", "v100 pcie", "sm70", NVLINK, 0, NONE, 3, 0,
	    "NVIDIA, V100 data sheet: the PCIe card has no NVLink" },
	{ "V100S", "v100s", "sm70", NVLINK, 0, NONE, 3, 0, "NVIDIA, V100 data sheet: the PCIe card has no NVLink" },
	{ "GV100", "gv100", "sm70", NVLINK, 2, 25 * GB, 4, 3, 0,
	    "NVIDIA, Quadro GV100 data sheet: 200 GB/s both ways by two bridges" },
	{ "RTX-8000", "rtx 8000", "sm75", NVLINK, 2, 25 * GB, 2, 3, 0,
	    "NVIDIA, Turing GPU Architecture, WP-09183-001: TU102 with 2 links, 100 GB/s both ways" },
	{ "TITAN-RTX", "titan rtx", "sm75", NVLINK, 2, 25 * GB, 2, 3, 0,
	    "NVIDIA, Turing GPU Architecture, WP-09183-001: TU102 with 2 links, 100 GB/s both ways" },
	{ "T4", "t4", "sm75", NVLINK, 0, NONE, 3, 0, "NVIDIA, T4 data sheet: PCIe only" },
	{ "A100", "a100", "sm80", NVLINK, 3, 25 * GB, 12, 4, 0,
	    "NVIDIA, A100 Tensor Core GPU Architecture, white paper (2020): 12 links, 600 GB/s both ways" },
	{ "A100-SXM4", "a100 sxm4", "sm80", NVLINK, 3, 25 * GB, 12, 4, 0,
	    "NVIDIA, A100 Tensor Core GPU Architecture, white paper (2020): 12 links, 600 GB/s both ways" },
	{ "A100-PCIE", "a100 pcie", "sm80", NVLINK, 3, 25 * GB, 12, 4, 0,
	    "NVIDIA, A100 80GB PCIe product brief: three bridges, 600 GB/s both ways" },
	{ "A800", "a800", "sm80", NVLINK, 3, 25 * GB, 8, 4, 0, "NVIDIA, A800 data sheet: 400 GB/s both ways" },
	{ "A30", "a30", "sm80", NVLINK, 3, 25 * GB, 4, 4, 0, "NVIDIA, A30 data sheet: 200 GB/s both ways" },
	{ "A40", "a40", "sm86", NVLINK, 3, 14062500 * KB, 4, 4, 0,
	    "NVIDIA, A40 data sheet: 112.5 GB/s both ways, of 4 links (NVIDIA Ampere GA102 white paper)" },
	{ "RTX-A6000", "rtx a6000", "sm86", NVLINK, 3, 14062500 * KB, 4, 4, 0,
	    "NVIDIA, RTX A6000 data sheet: 112.5 GB/s both ways, of 4 links (NVIDIA Ampere GA102 white paper)" },
	{ "RTX-A5000", "rtx a5000", "sm86", NVLINK, 3, 14062500 * KB, 4, 4, 0,
	    "NVIDIA, RTX A5000 data sheet: 112.5 GB/s both ways, of 4 links (NVIDIA Ampere GA102 white paper)" },
	{ "RTX-3090", "rtx 3090", "sm86", NVLINK, 3, 14062500 * KB, 4, 4, 0,
	    "NVIDIA, Ampere GA102 GPU Architecture, white paper: 4 links, 112.5 GB/s both ways" },
	{ "A10", "a10", "sm86", NVLINK, 0, NONE, 4, 0, "NVIDIA, A10 data sheet: PCIe only" },
	{ "A10G", "a10g", "sm86", NVLINK, 0, NONE, 4, 0, "AWS, EC2 G5 instances: PCIe only" },
	{ "L40", "l40", "sm89", NVLINK, 0, NONE, 4, 0, "NVIDIA, L40 data sheet: no NVLink" },
	{ "L40S", "l40s", "sm89", NVLINK, 0, NONE, 4, 0, "NVIDIA, L40S data sheet: no NVLink" },
	{ "L4", "l4", "sm89", NVLINK, 0, NONE, 4, 0, "NVIDIA, L4 data sheet: no NVLink" },
	{ "RTX-4090", "rtx 4090", "sm89", NVLINK, 0, NONE, 4, 0,
	    "NVIDIA, Ada GPU Architecture, white paper: no NVLink" },
	{ "RTX-6000-ADA", "rtx 6000 ada", "sm89", NVLINK, 0, NONE, 4, 0,
	    "NVIDIA, RTX 6000 Ada Generation data sheet: no NVLink" },
	{ "H100", "h100", "sm90", NVLINK, 4, 25 * GB, 18, 5, 0,
	    "NVIDIA, H100 Tensor Core GPU Architecture, white paper (2022): 18 links, 900 GB/s both ways" },
	{ "H100-SXM", "h100 sxm", "sm90", NVLINK, 4, 25 * GB, 18, 5, 0,
	    "NVIDIA, H100 Tensor Core GPU Architecture, white paper (2022): 18 links, 900 GB/s both ways" },
	{ "H100-PCIE", "h100 pcie", "sm90", NVLINK, 4, 25 * GB, 12, 5, 0,
	    "NVIDIA, H100 PCIe product brief: three bridges, 600 GB/s both ways" },
	{ "H100-NVL", "h100 nvl", "sm90", NVLINK, 4, 25 * GB, 12, 5, 0,
	    "NVIDIA, H100 NVL product brief: three bridges, 600 GB/s both ways" },
	{ "H800", "h800", "sm90", NVLINK, 4, 25 * GB, 8, 5, 0, "NVIDIA, H800 data sheet: 400 GB/s both ways" },
	{ "H20", "h20", "sm90", NVLINK, 4, 25 * GB, 18, 5, 0, "NVIDIA, H20 data sheet: 900 GB/s both ways" },
	{ "H200", "h200", "sm90", NVLINK, 4, 25 * GB, 18, 5, 0, "NVIDIA, H200 data sheet: 900 GB/s both ways" },
	{ "H200-NVL", "h200 nvl", "sm90", NVLINK, 4, 25 * GB, 18, 5, 0,
	    "NVIDIA, H200 data sheet: 900 GB/s both ways by a bridge of 2 or 4" },
	{ "GH200", "gh200", "sm90", NVLINK, 4, 25 * GB, 18, 5, 0,
	    "NVIDIA, GH200 Grace Hopper Superchip Architecture, white paper: 18 links, 900 GB/s both ways" },
	{ "B200", "b200", "sm100", NVLINK, 5, 50 * GB, 18, 5, 0,
	    "NVIDIA, Blackwell Architecture Technical Brief (2024): 18 links, 1800 GB/s both ways" },
	{ "GB200", "gb200", "sm100", NVLINK, 5, 50 * GB, 18, 5, 0,
	    "NVIDIA, Blackwell Architecture Technical Brief (2024): 18 links, 1800 GB/s both ways" },
	{ "B300", "b300", "sm103", NVLINK, 5, 50 * GB, 18, 6, 0,
	    "NVIDIA, Blackwell Ultra data sheet: 18 links, 1800 GB/s both ways" },
	{ "GB300", "gb300", "sm103", NVLINK, 5, 50 * GB, 18, 6, 0,
	    "NVIDIA, Blackwell Ultra data sheet: 18 links, 1800 GB/s both ways" },
	{ "RTX-5090", "rtx 5090", "sm120", NVLINK, 0, NONE, 5, 0, "NVIDIA, RTX Blackwell white paper: no NVLink" },
	{ "RTX-PRO-6000", "rtx pro 6000", "sm120", NVLINK, 0, NONE, 5, 0,
	    "NVIDIA, RTX Blackwell white paper: no NVLink" },
	{ "MI25", "mi25", "gfx900", XGMI, 0, NONE, 3, 0, "AMD, Radeon Instinct MI25 data sheet: PCIe only" },
	{ "MI50", "mi50", "gfx906", XGMI, 1, 46 * GB, 2, 4, 0,
	    "AMD, Radeon Instinct MI50 data sheet: 2 links, 184 GB/s both ways" },
	{ "MI60", "mi60", "gfx906", XGMI, 1, 46 * GB, 2, 4, 0,
	    "AMD, Radeon Instinct MI60 data sheet: 2 links, 184 GB/s both ways" },
	{ "MI100", "mi100", "gfx908", XGMI, 2, 46 * GB, 3, 4, 0,
	    "AMD, Instinct MI100 data sheet: 3 links, 276 GB/s both ways (16 lanes of 23 GT/s each)" },
	{ "MI250X", "mi250x", "gfx90a", XGMI, 3, 50 * GB, 8, 4, 4,
	    "AMD, Instinct MI250 microarchitecture, https://rocm.docs.amd.com: 100 GB/s both ways a link" },
	{ "MI250", "mi250", "gfx90a", XGMI, 3, 50 * GB, 8, 4, 4,
	    "AMD, Instinct MI250 microarchitecture, https://rocm.docs.amd.com: 100 GB/s both ways a link" },
	{ "MI210", "mi210", "gfx90a", XGMI, 3, 50 * GB, 3, 4, 0,
	    "AMD, Instinct MI210 data sheet: 3 links, 300 GB/s both ways" },
	{ "MI300X", "mi300x", "gfx942", XGMI, 4, 64 * GB, 7, 5, 0,
	    "AMD, Instinct MI300X data sheet: 7 links of 128 GB/s both ways" },
	{ "MI325X", "mi325x", "gfx942", XGMI, 4, 64 * GB, 7, 5, 0,
	    "AMD, Instinct MI325X data sheet: 7 links of 128 GB/s both ways" },
	{ "MI355X", "mi355x", "gfx950", XGMI, 4, 76800 * MB, 7, 5, 0,
	    "AMD, Instinct MI355X data sheet: 7 links of 153.6 GB/s both ways" },
	{ "MI350X", "mi350x", "gfx950", XGMI, 4, 76800 * MB, 7, 5, 0,
	    "AMD, Instinct MI350X data sheet: 7 links of 153.6 GB/s both ways" },
};

enum { N_MODELS = sizeof models / sizeof *models, WORDS_MAX = 16, WORD_ROOM = 24 };

/* ---- by name ---- */

struct words {
	int n;
	char word[WORDS_MAX][WORD_ROOM];
};

/* Runs of letters and digits, in lower case. False: too many, or too long. */
static bool
split(const char *text, struct words *out)
{
	out->n = 0;
	while (*text) {
		size_t n = 0;
		while (isalnum((unsigned char)text[n]))
			n++;
		if (n >= WORD_ROOM || (n && out->n == WORDS_MAX))
			return false;
		for (size_t i = 0; i < n; i++)
			out->word[out->n][i] = (char)tolower((unsigned char)text[i]);
		if (n)
			out->word[out->n++][n] = 0;
		text += n + (text[n] != 0);
	}
	return true;
}

static bool
has_word(const struct words *words, const char *word)
{
	int i = 0;
	while (i < words->n && strcmp(words->word[i], word) != 0)
		i++;
	return i < words->n;
}

/* What a name may have besides the words of its model: 16gb, hbm3, and these. */
static bool
means_nothing(const char *word)
{
	static const char *const more[] = { "nvidia", "amd", "tesla", "quadro", "geforce", "radeon", "instinct",
		"gpu", "graphics", "device", "generation", "oam", "mcm", "ac", "mba", "hpc", "ts", "ls", "sxm2",
		"sxm4", "sxm5", "sxm6", "blackwell", "server", "workstation", "edition", "max", "q", "h" };
	size_t digits = strspn(word, "0123456789");
	if ((digits && strcmp(word + digits, "gb") == 0) || strncmp(word, "hbm", 3) == 0)
		return true;
	for (size_t i = 0; i < sizeof more / sizeof *more; i++)
		if (strcmp(word, more[i]) == 0)
			return true;
	return false;
}

/* Cards are named without it, too: A6000 is an RTX A6000. */
static bool
may_be_left_out(const struct words *own, int i)
{
	return own->n > 1 && strcmp(own->word[i], "rtx") == 0;
}

/* The number of words of a model, if all of them are in `name`, and nothing else that means something; else 0. */
static int
fit(const GpuModel *model, const struct words *name)
{
	struct words own;
	if (!split(model->words, &own))
		return 0;
	for (int i = 0; i < own.n; i++)
		if (!has_word(name, own.word[i]) && !may_be_left_out(&own, i))
			return 0;
	for (int i = 0; i < name->n; i++)
		if (!has_word(&own, name->word[i]) && !means_nothing(name->word[i]))
			return 0;
	return own.n;
}

const GpuModel *
gpu_model_find(const char *name)
{
	struct words words;
	const GpuModel *best = NULL;
	int most = 0;
	if (!split(name, &words))
		return NULL;
	for (int i = 0; i < N_MODELS; i++) {
		int n = fit(&models[i], &words);
		if (n > most) {
			most = n;
			best = &models[i];
		}
	}
	return best;
}

void
gpu_models_list(Text *out, LinkClass class)
{
	for (int i = 0; i < N_MODELS; i++) {
		if (class != N_LINK_CLASSES && (models[i].class != class || models[i].rate == 0))
			continue;
		text_put(out, out->size ? ", " : "");
		text_put(out, models[i].name);
	}
}

Status
gpu_model_parse(Ctx *ctx, const char *name, const GpuModel **out)
{
	Text list = { 0 };
	*out = gpu_model_find(name);
	if (*out)
		return OK;
	gpu_models_list(&list, N_LINK_CLASSES);
	Status status = fail(ctx, USAGE, "--gpu-model: \"%.60s\": want one of %s", name, list.data ? list.data : "");
	text_free(&list);
	return status;
}

bool
gpu_model_has_grace(const GpuModel *model)
{
	return model && (strncmp(model->name, "GH", 2) == 0 || strncmp(model->name, "GB", 2) == 0);
}

bool
gpu_model_bridged(const GpuModel *model)
{
	static const char *const cards[] = { "PCIE", "NVL", "RTX", "TITAN", "GV100", "A30", "A40", "A800", "H800",
		"MI50", "MI60", "MI100", "MI210" };
	for (size_t i = 0; i < sizeof cards / sizeof *cards; i++)
		if (strstr(model->name, cards[i]))
			return true;
	return false;
}

/* ---- by architecture ---- */

static const GpuModel *
of_arch(const char *arch)
{
	for (int i = 0; i < N_MODELS; i++)
		if (strcmp(models[i].arch, arch) == 0)
			return &models[i];
	return NULL;
}

const GpuModel *
gpu_model_of_sm(int sm)
{
	char arch[24];
	snprintf(arch, sizeof arch, "sm%d", sm);
	return of_arch(arch);
}

const GpuModel *
gpu_model_of_gcn(const char *gcn)
{
	static const struct {
		const char *gcn, *arch;
	} others[] = { { "910", "gfx90a" }, { "gfx910", "gfx90a" }, { "90a", "gfx90a" }, { "940", "gfx942" },
		{ "gfx940", "gfx942" }, { "941", "gfx942" }, { "gfx941", "gfx942" } };
	char arch[24];
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		if (strcmp(gcn, others[i].gcn) == 0)
			return of_arch(others[i].arch);
	snprintf(arch, sizeof arch, "%s%.16s", strncmp(gcn, "gfx", 3) == 0 ? "" : "gfx", gcn);
	arch[strcspn(arch, ":")] = 0;	/* gfx90a:sramecc+:xnack- */
	return of_arch(arch);
}
