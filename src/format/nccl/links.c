/* NVLinks, xGMI and C2C of a topology of NCCL. Each direction is listed at the GPU that sends: two entries make one
 * duplex link. A switch and a CPU list nothing. */
#include "base/array.h"
#include "format/nccl/nccl.h"

#include <stdlib.h>
#include <string.h>

enum { TO_SWITCH = -1, TO_CPU = -2, ABSENT = -3 };

/* Links that leave a GPU. */
struct bundle {
	int from, to;		/* GPUs, or one of the above */
	int count;
	LinkClass class;
};

struct links {
	struct nccl_reading *r;
	const struct nccl_gpu **by_bus;
	int n, room;
	struct bundle *bundle;
	int *last;		/* of each target, GPUs after the CPU and the switch: its last bundle, or -1 */
	int n_switched, n_direct;
	int vertex;		/* of the switch; -1: none yet */
};

static int
by_bus(const void *a, const void *b)
{
	const struct nccl_gpu *p = *(const struct nccl_gpu *const *)a, *q = *(const struct nccl_gpu *const *)b;
	return p->bus != q->bus ? (p->bus > q->bus) - (p->bus < q->bus) : p->host - q->host;
}

/* The GPU with this bus id, in the same host, else in the first that has it; -1: none. */
static int
find_gpu(const struct links *links, int64_t bus, int host)
{
	int low = 0, high = links->r->n_gpus, found = -1;
	while (low < high) {
		int middle = low + (high - low) / 2;
		if (links->by_bus[middle]->bus < bus)
			low = middle + 1;
		else
			high = middle;
	}
	for (int i = low; i < links->r->n_gpus && links->by_bus[i]->bus == bus; i++)
		if (found < 0 || links->by_bus[i]->host == host)
			found = (int)(links->by_bus[i] - links->r->gpu);
	return found;
}

/* Where a link leads, by the PCI class of its target, as NCCL decides it. */
static Status
find_target(const struct links *links, const struct nccl_gpu *gpu, const Doc *at, int *out)
{
	struct nccl_reading *r = links->r;
	const Doc *target = doc_get(at, "target");
	const char *class = nccl_text(at, "tclass");
	int64_t bus;
	if (!*nccl_text(at, "target"))
		return doc_missing(r->ctx, r->label, at, "target", "a bus id, as 0000:06:00.0");
	if (!nccl_bus(target->text, &bus))
		return doc_want(r->ctx, r->label, target, "a bus id, as 0000:06:00.0");
	*out = strcmp(target->text, NCCL_UNKNOWN_BUS) == 0 || strcmp(class, "0x068000") == 0 ? TO_SWITCH
	    : strcmp(class, "0x068001") == 0 ? TO_CPU : find_gpu(links, bus, gpu->host);
	if (*out == -1 && strcmp(class, "0x068000") != 0 && strcmp(target->text, NCCL_UNKNOWN_BUS) != 0)
		*out = ABSENT;
	return OK;
}

/* Rates are needed only where there are links. */
static Status
check_rate(const struct links *links, const struct nccl_gpu *gpu)
{
	struct nccl_reading *r = links->r;
	const char *gcn = nccl_text(gpu->at, "gcn"), *sm = nccl_text(gpu->at, "sm");
	if (gpu->model && gpu->model->rate > 0)
		return OK;
	if (r->gpu_model)
		return doc_fail(r->ctx, r->label, gpu->at, BAD_INPUT,
		    "it has links to others, but model %s has none: want another --gpu-model", gpu->model->name);
	return doc_fail(r->ctx, r->label, gpu->at, BAD_INPUT,
	    "%s \"%.20s\": no rate is known for its links to other GPUs: want --gpu-model NAME", *gcn ? "gcn" : "sm",
	    *gcn ? gcn : sm);
}

static Status
add_bundle(struct links *links, struct bundle new)
{
	struct nccl_reading *r = links->r;
	int *last = &links->last[new.to - TO_CPU];
	struct bundle *old = *last >= 0 ? &links->bundle[*last] : NULL;
	if (old && old->from == new.from && old->class == new.class) {
		old->count += new.count;
		return old->count <= LIMIT_LINK_COUNT ? OK
		    : doc_fail(r->ctx, r->label, r->gpu[new.from].at, LIMIT, "%d links to one device: want at most %d",
		    old->count, LIMIT_LINK_COUNT);
	}
	*last = links->n;
	TRY(GROW(r->ctx, links->bundle, links->n, links->room));
	links->bundle[links->n++] = new;
	return OK;
}

static Status
collect_links(struct links *links, int g, const char *plural, LinkClass class)
{
	struct nccl_reading *r = links->r;
	const Doc *list = nccl_children(r->gpu[g].at, plural);
	for (int i = 0; i < list->n; i++) {
		struct bundle new = { .from = g, .class = class };
		int64_t count;
		TRY(nccl_int(r, list->child[i], "count", 1, LIMIT_LINK_COUNT, 1, &count));
		TRY(find_target(links, &r->gpu[g], list->child[i], &new.to));
		if (new.to == g) {
			nccl_add_name(&r->self, nccl_text(r->gpu[g].pci, "busid"));
			continue;
		}
		TRY(check_rate(links, &r->gpu[g]));
		if (new.to == ABSENT) {
			r->n_absent += (int)count;
			nccl_add_name(&r->absent, nccl_text(list->child[i], "target"));
			continue;
		}
		new.count = (int)count;
		links->n_switched += new.to == TO_SWITCH;
		links->n_direct += new.to != TO_SWITCH;
		TRY(add_bundle(links, new));
	}
	return OK;
}

/* ---- placing ---- */

/* The source of a rate, where it is not that of the class. */
static const char *
source_of(const struct nccl_reading *r, const GpuModel *model)
{
	return model == r->gpu[0].model ? NULL : model->source;
}

static void
put_bundle(struct links *links, const struct bundle *bundle, int count, int to, Duplex duplex, const GpuModel *model)
{
	builder_link(links->r->b, links->r->gpu[bundle->from].vertex, to, bundle->class, count, model->rate, duplex,
	    source_of(links->r, model));
}

/* All NVSwitches of a server, or of several with NVLinks between them, are one switch: all GPUs have links to each. */
static void
place_switched(struct links *links, const struct bundle *bundle)
{
	struct nccl_reading *r = links->r;
	if (links->vertex < 0)
		links->vertex = builder_vertex(r->b, VERTEX_SWITCH, r->n_hosts > 1 ? -1 : r->host[0].node, "nvswitch");
	if (builder_status(r->b) == OK)
		put_bundle(links, bundle, bundle->count, links->vertex, DUPLEX, r->gpu[bundle->from].model);
}

static int
by_ends(const void *a, const void *b)
{
	const struct bundle *p = a, *q = b;
	return p->from != q->from ? p->from - q->from : p->to != q->to ? p->to - q->to : (int)p->class - (int)q->class;
}

static const struct bundle *
find_reverse(const struct links *links, const struct bundle *bundle)
{
	struct bundle key = { .from = bundle->to, .to = bundle->from, .class = bundle->class };
	return bsearch(&key, links->bundle, (size_t)links->n, sizeof key, by_ends);
}

/* Between two GPUs: once, from the entry of the lower one, or from the only entry. */
static void
place_direct(struct links *links, const struct bundle *bundle)
{
	struct nccl_reading *r = links->r;
	const struct bundle *back = find_reverse(links, bundle);
	const GpuModel *a = r->gpu[bundle->from].model, *b = r->gpu[bundle->to].model;
	const GpuModel *model = b && b->rate && b->rate < a->rate ? b : a;
	int to = r->gpu[bundle->to].vertex;
	if (back && bundle->from > bundle->to)
		return;
	bool same = back && back->count == bundle->count;
	put_bundle(links, bundle, bundle->count, to, same ? DUPLEX : SIMPLEX, model);
	if (same)
		return;
	builder_assume(r->b, "%s to %s: %d links, and back %d, as the file has it", builder_id(r->b,
	    r->gpu[bundle->from].vertex), builder_id(r->b, to), bundle->count, back ? back->count : 0);
	if (back)
		put_bundle(links, back, back->count, r->gpu[bundle->from].vertex, SIMPLEX, model);
}

/* C2C: count links of bw MB/s each to the CPU of the GPU. NVLinks to a CPU, as on POWER, likewise. */
static Status
place_to_cpu(struct links *links, const struct nccl_gpu *gpu)
{
	struct nccl_reading *r = links->r;
	const Doc *list = nccl_children(gpu->at, "c2cs");
	for (int i = 0; i < list->n; i++) {
		int64_t bw, count;
		TRY(nccl_int(r, list->child[i], "count", 1, LIMIT_LINK_COUNT, 1, &count));
		if (!*nccl_text(list->child[i], "bw"))
			return doc_missing(r->ctx, r->label, list->child[i], "bw", "a rate (MB/s)");
		TRY(nccl_int(r, list->child[i], "bw", 1, 100000000, 1, &bw));
		builder_class(r->b, LINK_C2C, 0, link_class_latency(LINK_C2C),
		    "bw of <c2c> in the file, each direction");
		builder_link(r->b, gpu->vertex, r->cpu[gpu->cpu].vertex, LINK_C2C, (int)count,
		    bw * (BYTES_PER_GB / 1000), DUPLEX, NULL);
	}
	return builder_status(r->b);
}

static Status
place_all(struct links *links)
{
	struct nccl_reading *r = links->r;
	if (links->n)
		qsort(links->bundle, (size_t)links->n, sizeof *links->bundle, by_ends);
	if (r->gpu[0].model && r->gpu[0].model->rate && links->n)
		builder_gpu_links(r->b, r->gpu[0].model, links->n_direct == 0);
	for (int i = 0; i < links->n; i++) {
		const struct bundle *bundle = &links->bundle[i];
		if (bundle->to == TO_SWITCH)
			place_switched(links, bundle);
		else if (bundle->to == TO_CPU)
			put_bundle(links, bundle, bundle->count, r->cpu[r->gpu[bundle->from].cpu].vertex, DUPLEX,
			    r->gpu[bundle->from].model);
		else
			place_direct(links, bundle);
		TRY(builder_status(r->b));
	}
	for (int g = 0; g < r->n_gpus; g++)
		TRY(place_to_cpu(links, &r->gpu[g]));
	return OK;
}

Status
nccl_place_links(struct nccl_reading *r)
{
	struct links links = { .r = r, .vertex = -1 };
	TRY(TEMP(r->ctx, links.by_bus, r->n_gpus));
	TRY(TEMP(r->ctx, links.last, r->n_gpus - TO_CPU));
	for (int g = 0; g < r->n_gpus; g++)
		links.by_bus[g] = &r->gpu[g];
	for (int i = 0; i < r->n_gpus - TO_CPU; i++)
		links.last[i] = -1;
	qsort(links.by_bus, (size_t)r->n_gpus, sizeof(struct nccl_gpu *), by_bus);
	for (int g = 0; g < r->n_gpus; g++) {
		TRY(collect_links(&links, g, "nvlinks", LINK_NVLINK));
		TRY(collect_links(&links, g, "xgmis", LINK_XGMI));
	}
	return place_all(&links);
}
