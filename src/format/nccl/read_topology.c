/* Topology XML of NCCL and RCCL (NCCL_TOPO_DUMP_FILE): the whole, and collecting what a file has. */
#include "base/array.h"
#include "format/known_machines.h"
#include "format/nccl/nccl.h"
#include "format/sniff.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const plural[] = { "cpu", "cpus", "pci", "pcis", "gpu", "gpus", "nvlink", "nvlinks", "xgmi", "xgmis",
	"c2c", "c2cs", "nic", "nics", "net", "nets", NULL };

/* ---- collecting ---- */

static Status
find_host(struct nccl_reading *r, const char *hash, int *out)
{
	int i = 0;
	while (i < r->n_hosts && strcmp(r->host[i].hash, hash) != 0)
		i++;
	*out = i;
	if (i < r->n_hosts)
		return OK;
	if (i == LIMIT_NODES)
		return fail(r->ctx, LIMIT, "%s: more than %d hosts", r->label, LIMIT_NODES);
	TRY(GROW(r->ctx, r->host, i, r->room_hosts));
	r->host[r->n_hosts++] = (struct nccl_host){ .hash = hash };
	return OK;
}

/* The model that --gpu-model names, else that of the compute capability or gcn; NULL where neither is known. */
static Status
find_model(struct nccl_reading *r, const Doc *gpu, const GpuModel **out)
{
	int64_t sm = 0;
	const char *gcn = nccl_text(gpu, "gcn");
	if (r->gpu_model)
		return gpu_model_parse(r->ctx, r->gpu_model, out);
	TRY(nccl_int(r, gpu, "sm", 0, 100000, 0, &sm));
	*out = *gcn ? gpu_model_of_gcn(gcn) : gpu_model_of_sm((int)sm);
	return OK;
}

static Status
collect_gpu(struct nccl_reading *r, const Doc *pci, const Doc *gpu, int cpu)
{
	struct nccl_gpu new = { .at = gpu, .pci = pci, .cpu = cpu, .host = r->cpu[cpu].host };
	int64_t dev;
	if (!*nccl_text(gpu, "dev"))
		return doc_missing(r->ctx, r->label, gpu, "dev", "a device number");
	TRY(nccl_int(r, gpu, "dev", 0, 65535, 0, &dev));
	if (!*nccl_text(pci, "busid"))
		return doc_missing(r->ctx, r->label, pci, "busid", "a bus id, as 0000:06:00.0");
	if (!nccl_bus(nccl_text(pci, "busid"), &new.bus))
		return doc_want(r->ctx, r->label, doc_get(pci, "busid"), "a bus id, as 0000:06:00.0");
	if (r->n_gpus == LIMIT_RANKS)
		return doc_fail(r->ctx, r->label, gpu, LIMIT, "more than %d GPUs", LIMIT_RANKS);
	new.dev = (int)dev;
	TRY(find_model(r, gpu, &new.model));
	r->rccl |= *nccl_text(gpu, "gcn") != 0;
	TRY(GROW(r->ctx, r->gpu, r->n_gpus, r->room_gpus));
	r->gpu[r->n_gpus++] = new;
	return OK;
}

/* A GPU of a template, which has no <gpu>. */
static Status
collect_device(struct nccl_reading *r, const Doc *pci, int cpu)
{
	struct nccl_gpu new = { .at = pci, .pci = pci, .cpu = cpu, .host = r->cpu[cpu].host };
	if (!nccl_bus(nccl_text(pci, "busid"), &new.bus))
		return doc_missing(r->ctx, r->label, pci, "busid", "a bus id, as 0000:06:00.0");
	if (r->n_gpus == LIMIT_RANKS)
		return doc_fail(r->ctx, r->label, pci, LIMIT, "more than %d GPUs", LIMIT_RANKS);
	if (r->gpu_model)
		TRY(gpu_model_parse(r->ctx, r->gpu_model, &new.model));
	TRY(GROW(r->ctx, r->gpu, r->n_gpus, r->room_gpus));
	r->gpu[r->n_gpus++] = new;
	return OK;
}

/* GPUs at or below a PCI device; the depth of files is limited. */
static Status
collect_pci(struct nccl_reading *r, const Doc *pci, int cpu)
{
	const Doc *gpus = nccl_children(pci, "gpus"), *below = nccl_children(pci, "pcis");
	const Doc *nics = nccl_children(pci, "nics");
	r->n_devices += below->n == 0 && !r->template;
	r->n_classless += below->n == 0 && !r->template && !*nccl_text(pci, "class");
	for (int i = 0; i < nics->n && !r->template; i++)
		r->n_nets += nccl_children(nics->child[i], "nets")->n;
	for (int i = 0; i < gpus->n; i++)
		TRY(collect_gpu(r, pci, gpus->child[i], cpu));
	if (r->template && nccl_is_gpu(pci))
		TRY(collect_device(r, pci, cpu));
	for (int i = 0; i < below->n; i++)
		TRY(collect_pci(r, below->child[i], cpu));
	return OK;
}

static Status
collect_cpu(struct nccl_reading *r, const Doc *at)
{
	struct nccl_cpu cpu = { .at = at, .vertex = -1 };
	const Doc *below = nccl_children(at, "pcis");
	int64_t family, model;
	TRY(nccl_int(r, at, "numaid", -1, 65535, 0, &cpu.numa));
	TRY(nccl_int(r, at, "familyid", -1, 65535, -1, &family));
	TRY(nccl_int(r, at, "modelid", -1, 65535, -1, &model));
	cpu.model = (CpuModel){ nccl_text(at, "arch"), nccl_text(at, "vendor"), (int)family, (int)model, 0 };
	TRY(find_host(r, nccl_text(at, "host_hash"), &cpu.host));
	TRY(GROW(r->ctx, r->cpu, r->n_cpus, r->room_cpus));
	r->cpu[r->n_cpus++] = cpu;
	for (int i = 0; i < below->n; i++)
		TRY(collect_pci(r, below->child[i], r->n_cpus - 1));
	return OK;
}

static int
by_dev(const void *a, const void *b)
{
	const struct nccl_gpu *p = a, *q = b;
	return p->host != q->host ? p->host - q->host : p->dev != q->dev ? p->dev - q->dev : p->at->line - q->at->line;
}

static int
by_bus(const void *a, const void *b)
{
	const struct nccl_gpu *p = *(const struct nccl_gpu *const *)a, *q = *(const struct nccl_gpu *const *)b;
	return p->host != q->host ? p->host - q->host : p->bus != q->bus ? (p->bus > q->bus) - (p->bus < q->bus)
	    : p->at->line - q->at->line;
}

/* Each device number and each bus id is there once. */
static Status
check_gpus(struct nccl_reading *r)
{
	const struct nccl_gpu **sorted;
	TRY(TEMP(r->ctx, sorted, r->n_gpus));
	for (int i = 0; i < r->n_gpus; i++) {
		const struct nccl_gpu *gpu = sorted[i] = &r->gpu[i];
		if (i > 0 && gpu->host == gpu[-1].host && gpu->dev == gpu[-1].dev)
			return doc_fail(r->ctx, r->label, doc_get(gpu->at, "dev"), BAD_INPUT,
			    "%d: given twice: want each device once", gpu->dev);
	}
	qsort(sorted, (size_t)r->n_gpus, sizeof(struct nccl_gpu *), by_bus);
	for (int i = 1; i < r->n_gpus; i++)
		if (sorted[i]->host == sorted[i - 1]->host && sorted[i]->bus == sorted[i - 1]->bus)
			return doc_fail(r->ctx, r->label, doc_get(sorted[i]->pci, "busid"), BAD_INPUT,
			    "%s: given twice: want each GPU once", doc_found(doc_get(sorted[i]->pci, "busid")).text);
	return OK;
}

/* Clouds hand out inputs of NCCL, which it completes as it runs: a PCI tree. Their GPUs are told by their class, and
 * numbered by their bus ids, as NCCL numbers them. */
static Status
collect_template(struct nccl_reading *r)
{
	const struct nccl_gpu **sorted;
	struct nccl_gpu *gpu;
	r->template = true;
	for (int c = 0; c < r->n_cpus; c++) {
		const Doc *below = nccl_children(r->cpu[c].at, "pcis");
		for (int i = 0; i < below->n; i++)
			TRY(collect_pci(r, below->child[i], c));
	}
	if (r->n_gpus == 0)
		return OK;
	TRY(TEMP(r->ctx, sorted, r->n_gpus));
	TRY(NEW(r->ctx, gpu, r->n_gpus));
	for (int i = 0; i < r->n_gpus; i++)
		sorted[i] = &r->gpu[i];
	qsort(sorted, (size_t)r->n_gpus, sizeof(struct nccl_gpu *), by_bus);
	for (int i = 0; i < r->n_gpus; i++) {
		gpu[i] = *sorted[i];
		gpu[i].dev = i;
	}
	r->gpu = gpu;
	return OK;
}

/* An input of NCCL has a PCI tree, which the dump completes: that of AWS g5 has no classes, that of p5 no GPUs. */
static Status
fail_no_gpu(struct nccl_reading *r)
{
	char classless[100] = "";
	if (r->n_classless > 0)
		snprintf(classless, sizeof classless, ", %d of them without a class, which tells GPUs,",
		    r->n_classless);
	return doc_fail(r->ctx, r->label, r->root, BAD_INPUT,
	    "a topology of NCCL without a GPU, as it is made for NCCL to read (NCCL_TOPO_FILE): it has %d PCI "
	    "device%s%s and no NVLinks: want what NCCL writes: run any job of NCCL on all GPUs of the machine with "
	    "NCCL_TOPO_DUMP_FILE=topo.xml in its environment%s; or a machine that blinkc list has",
	    r->n_devices, r->n_devices == 1 ? "" : "s", classless,
	    r->n_classless > 0 ? "; or class=\"0x030200\" on each device that is a GPU" : "");
}

static Status
collect(struct nccl_reading *r)
{
	const Doc *cpus = nccl_children(r->root, "cpus");
	int64_t version;
	TRY(nccl_int(r, r->root, "version", 1, 2, 1, &version));
	r->rccl = version == 2;
	if (cpus->n == 0)
		return doc_fail(r->ctx, r->label, r->root, BAD_INPUT, "no <cpu>: want a topology of NCCL or RCCL");
	for (int i = 0; i < cpus->n; i++)
		TRY(collect_cpu(r, cpus->child[i]));
	if (r->n_gpus == 0)
		TRY(collect_template(r));
	if (r->n_gpus == 0)
		return fail_no_gpu(r);
	qsort(r->gpu, (size_t)r->n_gpus, sizeof *r->gpu, by_dev);
	return check_gpus(r);
}

/* ---- the whole ---- */

static void
put_notes(struct nccl_reading *r)
{
	char absent[80];
	nccl_note_names(r->b, &r->unknown, "PCIe of",
	    "where the file has no width or speed, x16 of generation 3, as NCCL takes it");
	nccl_note_names(r->b, &r->slow, "PCIe of",
	    "much slower than a link below it, as the file has it: if the link only saved power, it is faster");
	snprintf(absent, sizeof absent, "%d link%s to", r->n_absent, r->n_absent == 1 ? "" : "s");
	nccl_note_names(r->b, &r->absent, absent,
	    "left out, as the file does not have the other end: no GPU of this job");
	nccl_note_names(r->b, &r->virtual, "network interfaces", "left out, as they have no PCI device");
	nccl_note_names(r->b, &r->self, "NVLinks of",
	    "left out, as the file has them lead to the GPU itself; nvidia-smi topo -m prints where they lead");
}

/* GPUs come first, in the order of their device numbers. */
static Status
place_gpus(struct nccl_reading *r)
{
	char id[32];
	for (int i = 0; i < r->n_hosts; i++) {
		snprintf(id, sizeof id, "node%d", i);
		r->host[i].node = builder_node(r->b, id);
	}
	for (int i = 0; i < r->n_gpus; i++) {
		struct nccl_gpu *gpu = &r->gpu[i];
		if (r->n_hosts > 1)
			snprintf(id, sizeof id, "node%d/gpu%d", gpu->host, gpu->dev);
		else
			snprintf(id, sizeof id, "gpu%d", gpu->dev);
		gpu->vertex = builder_vertex(r->b, VERTEX_GPU, r->host[gpu->host].node, id);
	}
	return builder_status(r->b);
}

/* Links of a template: of the machine that has such GPUs. */
static Status
place_known(struct nccl_reading *r)
{
	int *vertex, *cpu;
	TRY(TEMP(r->ctx, vertex, r->n_gpus));
	TRY(TEMP(r->ctx, cpu, r->n_gpus));
	for (int i = 0; i < r->n_gpus; i++) {
		vertex[i] = r->gpu[i].vertex;
		cpu[i] = r->cpu[r->gpu[i].cpu].vertex;
	}
	builder_gpus(r->b, r->gpu[0].model);
	builder_assume(r->b, "GPUs: %d PCI devices, by their class, as the file is made for NCCL to complete "
	    "(NCCL_TOPO_FILE)", r->n_gpus);
	if (r->n_hosts == 1 && known_machine_links(r->b, &(KnownGpus){ .model = r->gpu[0].model,
	    .node = r->host[0].node, .n = r->n_gpus, .gpu = vertex, .cpu = cpu, .numbered = true }))
		return builder_status(r->b);
	if (!r->gpu_model)
		builder_assume(r->b, "no links between the GPUs: --gpu-model states what they are, as V100-SXM2 of "
		    "Azure NDv2, A100-SXM4 of Azure NDv4 and AWS p4d and p4de, H100-SXM of Azure NDv5, A10G of AWS g5");
	else if (r->gpu[0].model->rate)
		builder_assume(r->b, "no links between the GPUs: no machine is known that has %d %s; what NCCL writes "
		    "with NCCL_TOPO_DUMP_FILE has them", r->n_gpus, r->gpu[0].model->name);
	return builder_status(r->b);
}

static Status
read_system(struct nccl_reading *r, Topology **out)
{
	char name[LIMIT_ID_BYTES];
	if (strcmp(r->root->text, "system") != 0)
		return doc_fail(
		    r->ctx, r->label, r->root, BAD_INPUT, "unknown element: want <system>, as NCCL writes it");
	TRY(collect(r));
	TRY(builder_new(r->ctx, r->label, sniff_name(r->label, name, sizeof name), r->rccl
	    ? "topology that RCCL found (NCCL_TOPO_DUMP_FILE); rates: see classes and links"
	    : "topology that NCCL found (NCCL_TOPO_DUMP_FILE); rates: see classes and links", &r->b));
	TRY(place_gpus(r));
	TRY(nccl_place_cpus(r));
	TRY(nccl_place_links(r));
	if (r->template)
		TRY(place_known(r));
	else if (r->gpu_model)
		builder_gpus(r->b, r->gpu[0].model);
	TRY(nccl_place_pci(r));
	put_notes(r);
	return builder_finish(r->b, out);
}

bool
topo_is_nccl(const char *data, size_t size)
{
	return sniff_element(data, size, "system");
}

Status
topo_read_nccl(Ctx *ctx, const char *label, TopologyFiles *files, const char *data, size_t size, Topology **out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct nccl_reading r = { .ctx = ctx, .label = label, .gpu_model = files->hints.gpu_model };
	const char *text = data;
	Doc *root = NULL;
	Status status = sniff_no_doctype(ctx, &text, size);
	if (status == OK)
		status = doc_read_xml(ctx, label, text, size, plural, &root);
	r.root = root;
	if (status == OK)
		status = read_system(&r, out);
	arena_release(&ctx->scratch, mark);
	return status;
}
