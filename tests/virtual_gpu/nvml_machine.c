#include "nvml_machine.h"
#include "base/file_read.h"
#include "format/format.h"
#include "format/link_rates.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GB BYTES_PER_GB

static const struct nvml_model models[] = {
	{ "Tesla P100-SXM2-16GB", 60, 4, 3, 20 * GB, 19375, 1 },
	{ "Tesla V100-SXM2-32GB", 70, 6, 3, 25 * GB, 25781, 2 },
	{ "NVIDIA A100-SXM4-40GB", 80, 12, 4, 25 * GB, 25000, 4 },
	{ "NVIDIA H100 80GB HBM3", 90, 18, 5, 25 * GB, 26562, 6 },
	{ "NVIDIA B200", 100, 18, 5, 50 * GB, 53125, 7 },
	{ "NVIDIA L40S", 89, 0, 4, 0, 0, 0 },
};

static _Noreturn void
give_up(const char *what)
{
	fprintf(stderr, "virtual GPUs: %s\n", what);
	_Exit(99);
}

/* ---- the tree of PCIe ---- */

static int
least_gpu(const struct nvml_machine *m, int v)
{
	int least = m->topo->vertex[v].kind == VERTEX_GPU ? v : MACHINE_MOST;
	for (int i = 0; i < m->topo->n_vertices; i++) {
		if (m->above[i] == v) {
			int below = least_gpu(m, i);
			least = below < least ? below : least;
		}
	}
	return least;
}

/* Below v, those with the lowest GPUs first: switches and NICs get a bus, and a switch one more for its ports. */
static void
number_below(struct nvml_machine *m, int v, int *bus)
{
	bool done[MACHINE_MOST] = { false };
	for (;;) {
		int next = -1;
		for (int i = 0; i < m->topo->n_vertices; i++)
			if (m->above[i] == v && !done[i] && (next < 0 || least_gpu(m, i) < least_gpu(m, next)))
				next = i;
		if (next < 0)
			return;
		done[next] = true;
		if (m->topo->vertex[next].kind != VERTEX_GPU)
			m->bus[next] = (*bus)++;
		*bus += m->topo->vertex[next].kind == VERTEX_SWITCH;
		number_below(m, next, bus);
	}
}

static bool
is_top(const Topology *topo, int v)
{
	return topo->vertex[v].kind == VERTEX_CPU;
}

/* From the CPUs down, by breadth. */
static void
find_tree(struct nvml_machine *m)
{
	const Topology *topo = m->topo;
	bool grown = true;
	while (grown) {
		grown = false;
		for (int l = 0; l < topo->n_links; l++) {
			const Link *link = &topo->link[l];
			int v = link->from, up = link->to;
			bool placed = is_top(topo, up) || m->above[up] >= 0;
			if (link->class != LINK_PCIE || is_top(topo, v) || m->above[v] >= 0 || !placed)
				continue;
			m->above[v] = up;
			m->up[v] = link->capacity;
			grown = true;
		}
	}
}

/* The buses of GPUs are those that the virtual driver of CUDA gives them. */
static void
number_gpus(struct nvml_machine *m)
{
	int bus = 0x40;
	for (int v = 0; v < m->topo->n_vertices; v++)
		if (is_top(m->topo, v))
			number_below(m, v, &bus);
	for (int v = 0; v < m->topo->n_ranks; v++) {
		m->bus[v] = 0x10 + v;
		m->number[v] = v;
		m->gpu[m->n_gpus++] = v;
	}
}

static const struct nvml_model *
find_model(const Topology *topo)
{
	const struct nvml_model *model = models;
	int64_t rate = 0;
	int links = 0;
	for (int l = 0; l < topo->n_links; l++) {
		if (topo->link[l].class != LINK_NVLINK || topo->link[l].from != 0)
			continue;
		links += topo->link[l].count;
		rate = topo->link[l].capacity / topo->link[l].count;
	}
	while (model->rate && (model->rate != rate || model->links < links))
		model++;
	return model;
}

static Ctx ctx;
static char read[512];		/* the file that was read last */

__attribute__((destructor)) static void
forget(void)
{
	if (*read)
		ctx_free(&ctx);
}

const struct nvml_machine *
nvml_machine(void)
{
	static struct nvml_machine machine;
	const char *path = getenv("VIRTUAL_GPU_TOPOLOGY");
	Text text = { 0 };
	Topology *topo;
	if (path && strcmp(path, read) == 0)
		return &machine;
	if (*read)
		ctx_free(&ctx);
	ctx_init(&ctx);
	if (!path || file_read_regular(&ctx, path, &text) != OK
	    || topo_read(&ctx, path, NULL, text.data, text.size, &topo) != OK)
		give_up(path ? ctx.error.text : "VIRTUAL_GPU_TOPOLOGY is not set");
	text_free(&text);
	if (topo->n_vertices > MACHINE_MOST || topo->n_nodes != 1)
		give_up("VIRTUAL_GPU_TOPOLOGY: want one server");
	snprintf(read, sizeof read, "%s", path);
	machine = (struct nvml_machine){ .topo = topo };
	memset(machine.above, -1, sizeof machine.above);
	machine.model = find_model(topo);
	find_tree(&machine);
	number_gpus(&machine);
	return &machine;
}

int
nvml_pcie(int64_t capacity, int *width)
{
	for (*width = 16; *width >= 1; *width /= 2)
		for (int generation = 1; generation <= 6; generation++)
			if (pcie_capacity(*width, generation) == capacity)
				return generation;
	*width = 16;
	return 3;
}

int
nvml_links(int a, int b)
{
	const Topology *topo = nvml_machine()->topo;
	int direct = 0, up[2] = { 0 };
	for (int l = 0; l < topo->n_links; l++) {
		const Link *link = &topo->link[l];
		bool at_switch = topo->vertex[link->to].kind == VERTEX_SWITCH;
		if (link->class != LINK_NVLINK)
			continue;
		direct += link->from == a && link->to == b ? link->count : 0;
		up[0] += link->from == a && at_switch ? link->count : 0;
		up[1] += link->from == b && at_switch ? link->count : 0;
	}
	return direct ? direct : up[0] && up[1] ? up[0] : 0;
}

/* ---- faults ---- */

static struct {
	const char *function;
	int calls;
} counts[64];

void
nvml_count_anew(void)
{
	memset(counts, 0, sizeof counts);
}

static int
count_call(const char *function)
{
	int i = 0;
	while (counts[i].function && strcmp(counts[i].function, function) != 0)
		i++;
	counts[i].function = function;
	return ++counts[i].calls;
}

int
nvml_fails(const char *function)
{
	const char *ask = getenv("VIRTUAL_GPU_FAIL"), *log = getenv("VIRTUAL_GPU_CALLS");
	int nth = count_call(function), any = count_call("any"), n = 0, code = 999;
	char name[64] = "";
	FILE *f = log ? fopen(log, "ae") : NULL;
	if (f) {
		fprintf(f, "%s\n", function);
		fclose(f);
	}
	if (!ask || sscanf(ask, "%63[^:]:%d:%d", name, &n, &code) < 2)
		return 0;
	bool here = strcmp(name, function) == 0 && (n == 0 || n == nth);
	return here || (strcmp(name, "any") == 0 && n == any) ? code : 0;
}
