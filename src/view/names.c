/* Names of vertices, as people and pictures show them. */
#include "view/parts.h"
#include "base/sort.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

Status
printable_line(Ctx *ctx, const char *text, const char **out)
{
	char *line = arena_text(&ctx->run, text, strlen(text));
	if (!line)
		return fail_memory(ctx);
	make_printable(line);
	*out = line;
	return OK;
}

static Status
all_differ(Ctx *ctx, const char *const *name, int n, bool *out)
{
	const char **sorted;
	TRY(TEMP(ctx, sorted, n));
	memcpy(sorted, name, (size_t)n * sizeof *sorted);
	qsort(sorted, (size_t)n, sizeof *sorted, order_of_texts);
	*out = true;
	for (int i = 1; i < n; i++)
		*out = *out && strcmp(sorted[i - 1], sorted[i]) != 0;
	return OK;
}

/* Ids; those of GPUs after their servers, if an id is that of several GPUs. */
static Status
take_ids(Ctx *ctx, Explained *e)
{
	const Topology *topo = e->topo;
	bool differ;
	for (int v = 0; v < topo->n_vertices; v++)
		TRY(printable_line(ctx, topo->vertex[v].id, &e->name[v]));
	TRY(all_differ(ctx, e->name, topo->n_ranks, &differ));
	for (int r = 0; r < topo->n_ranks && !differ; r++) {
		char name[2 * LIMIT_ID_BYTES + 8];
		int node = topo->vertex[r].node;
		snprintf(name, sizeof name, "%.64s/%.64s", node < 0 ? "" : topo->node[node], topo->vertex[r].id);
		TRY(printable_line(ctx, name, &e->name[r]));
	}
	for (int r = 0; r < topo->n_ranks; r++) {
		size_t n = strlen(e->name[r]);
		while (n > 0 && e->name[r][n - 1] >= '0' && e->name[r][n - 1] <= '9')
			n--;
		const char *digits = e->name[r] + n;
		e->shows_ranks = e->shows_ranks || !*digits || strlen(digits) > 5 || atoi(digits) != r;
	}
	return OK;
}

/* The digits of names, if they are few and differ for all ranks; else the ranks. */
static Status
shorten_names(Ctx *ctx, Explained *e)
{
	int n = e->topo->n_ranks;
	bool fit = true, differ;
	for (int r = 0; r < n; r++) {
		char digits[8];
		size_t k = 0;
		for (const char *c = e->name[r]; *c && k < 6; c++) {
			if (*c >= '0' && *c <= '9')
				digits[k++] = *c;
			else if (k > 0 && digits[k - 1] != '/')
				digits[k++] = '/';
		}
		fit = fit && k > 0 && k < 6;
		while (k > 0 && digits[k - 1] == '/')
			k--;
		if (!(e->short_name[r] = arena_text(&ctx->run, digits, k)))
			return fail_memory(ctx);
	}
	/* Leave out the server if all names have the same. */
	size_t common = strcspn(e->short_name[0], "/") + 1;
	for (int r = 0; r < n; r++)
		if (strlen(e->short_name[r]) <= common || strncmp(e->short_name[r], e->short_name[0], common) != 0)
			common = 0;
	for (int r = 0; r < n; r++)
		e->short_name[r] += common;
	TRY(all_differ(ctx, e->short_name, n, &differ));
	for (int r = 0; r < n && !(fit && differ); r++) {
		char digits[16];
		int k = snprintf(digits, sizeof digits, "%d", r);
		if (!(e->short_name[r] = arena_text(&ctx->run, digits, (size_t)k)))
			return fail_memory(ctx);
	}
	return OK;
}

size_t
device_length(const char *id)
{
	size_t n = strlen(id);
	if (n > 4 && strcmp(id + n - 4, ":out") == 0)
		return n - 4;
	return n > 3 && strcmp(id + n - 3, ":in") == 0 ? n - 3 : n;
}

struct device {
	const char *id;
	size_t length;
	int vertex;
};

static int
by_device(const void *a, const void *b)
{
	const struct device *x = a, *y = b;
	int order = strncmp(x->id, y->id, x->length < y->length ? x->length : y->length);
	if (order || x->length != y->length)
		return order ? order : x->length < y->length ? -1 : 1;
	return (x->vertex > y->vertex) - (x->vertex < y->vertex);
}

/* A device on the route to the network has two vertices, such as plx0:out and plx0:in. */
static Status
find_devices(Ctx *ctx, Explained *e)
{
	const Topology *topo = e->topo;
	struct device *device;
	int n = 0;
	TRY(TEMP(ctx, device, topo->n_vertices));
	for (int v = 0; v < topo->n_vertices; v++) {
		e->device[v] = v;
		if (v >= topo->n_ranks)
			device[n++] = (struct device){ topo->vertex[v].id, device_length(topo->vertex[v].id), v };
	}
	qsort(device, (size_t)n, sizeof *device, by_device);
	for (int i = 1; i < n; i++)
		if (device[i].length == device[i - 1].length
		    && strncmp(device[i].id, device[i - 1].id, device[i].length) == 0)
			e->device[device[i].vertex] = e->device[device[i - 1].vertex];
	return OK;
}

Status
name_vertices(Ctx *ctx, Explained *e)
{
	TRY(take_ids(ctx, e));
	TRY(shorten_names(ctx, e));
	return find_devices(ctx, e);
}
