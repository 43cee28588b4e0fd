/* What a topology has against the model of its GPUs. */
#include "format/format.h"
#include "format/gpu_models.h"
#include "format/link_rates.h"
#include "topology/lint.h"

#include <stdio.h>
#include <string.h>

#define PCIE_LEAST 1.0			/* GB/s */

struct model_lint {
	Ctx *ctx;
	const Topology *topo;
	const GpuModel *model;
	LintFinding found[LINT_MOST];
	int n;
};

static Status
add(struct model_lint *lint, const char *at, const char *text)
{
	LintFinding *found = &lint->found[lint->n];
	if (lint->n == LINT_MOST)
		return OK;
	lint->n++;
	*found = (LintFinding){ LINT_MODEL, arena_text(&lint->ctx->run, at, strlen(at)),
		arena_text(&lint->ctx->run, text, strlen(text)) };
	return found->at && found->text ? OK : fail_memory(lint->ctx);
}

/* All that leave a GPU, of a class: how many, and the slowest and fastest of one, GB/s. */
struct leaving {
	int count;
	double least, most;
};

static struct leaving
links_of(const Topology *topo, int r, LinkClass class)
{
	struct leaving out = { 0 };
	for (int i = topo->first_out[r]; i < topo->first_out[r + 1]; i++) {
		const Link *link = &topo->link[topo->out[i]];
		double each = (double)link->capacity / link->count / 1e9;
		if (link->class != class)
			continue;
		out.least = out.count == 0 || each < out.least ? each : out.least;
		out.most = each > out.most ? each : out.most;
		out.count += link->count;
	}
	return out;
}

/* A GPU with PCIe slower than a quarter of what it has: fewer lanes than 4, or an idle link. Of a model that is not
 * known, slower than any: two lanes of generation 3 have twice that. */
static Status
look_at_pcie(struct model_lint *lint, int r)
{
	char text[160];
	double want = lint->model ? (double)pcie_capacity(16, lint->model->pcie) / 1e9 : 4 * PCIE_LEAST;
	struct leaving pcie = links_of(lint->topo, r, LINK_PCIE);
	if (pcie.count == 0 || 4 * pcie.most >= want)
		return OK;
	if (!lint->model)
		snprintf(text, sizeof text, "%.6g GB/s over pcie: want %g or more: an idle link, or not the way of its "
		    "data to the CPU", pcie.most, PCIE_LEAST);
	else
		snprintf(text, sizeof text, "%.6g GB/s over pcie: want up to %.6g, as %s has x16 of generation %d",
		    pcie.most, want, lint->model->name, lint->model->pcie);
	return add(lint, lint->topo->vertex[r].id, text);
}

/* Measured rates may be a half of nominal ones. */
static Status
look_at_links(struct model_lint *lint, int r)
{
	const GpuModel *model = lint->model;
	const char *id = lint->topo->vertex[r].id, *class = link_class_name(model->class);
	char text[160];
	double rate = (double)model->rate / 1e9;
	struct leaving own = links_of(lint->topo, r, model->class);
	if (own.count > model->links) {
		snprintf(text, sizeof text, "%d %s links: want at most %d, as %s has", own.count, class, model->links,
		    model->name);
		TRY(add(lint, id, text));
	}
	if (own.count == 0 || model->rate == 0 || (own.least >= 0.4 * rate && own.most <= 1.1 * rate))
		return OK;
	snprintf(text, sizeof text, "%.6g GB/s in a %s link: want about %.6g, as %s has",
	    own.least < 0.4 * rate ? own.least : own.most, class, rate, model->name);
	return add(lint, id, text);
}

static Status
look_for_links(struct model_lint *lint)
{
	const GpuModel *model = lint->model;
	char text[160];
	if (lint->topo->n_ranks < 2 || model->rate == 0 || gpu_model_bridged(model)
	    || topo_classes(lint->topo) >> model->class & 1)
		return OK;
	snprintf(text, sizeof text, "no %s links: want up to %d of a GPU, as %s has; %s lists them",
	    link_class_name(model->class), model->links, model->name,
	    model->class == LINK_XGMI ? "rocm-smi --showtopo" : "nvidia-smi topo -m");
	return add(lint, "", text);
}

Status
topo_lint_model(Ctx *ctx, const Topology *topo, unsigned classes, LintFinding **out, int *n)
{
	struct model_lint lint = { .ctx = ctx, .topo = topo };
	lint.model = topo->gpu_model ? gpu_model_find(topo->gpu_model) : NULL;
	if (lint.model)
		TRY(look_for_links(&lint));
	for (int r = 0; r < topo->n_ranks; r++) {
		if (classes >> LINK_PCIE & 1)
			TRY(look_at_pcie(&lint, r));
		if (lint.model && classes >> lint.model->class & 1)
			TRY(look_at_links(&lint, r));
	}
	TRY(NEW(ctx, *out, lint.n));
	memcpy(*out, lint.found, (size_t)lint.n * sizeof **out);
	*n = lint.n;
	return OK;
}
