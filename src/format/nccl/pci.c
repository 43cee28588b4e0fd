/* The PCI tree: what leads to a GPU or a NIC. A bridge with one such device below it is only a longer link, as slow as
 * its slowest part; one with several is a switch. */
#include "base/array.h"
#include "format/nccl/nccl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What is above a device: a vertex, and the link up to it so far. */
struct above {
	int cpu, vertex;
	int64_t capacity;	/* of the bridges between; INT64_MAX: none */
	int generation;		/* of the slowest of them; 0: none, or not known */
	bool assumed;		/* some width or speed is */
};

static bool
relevant(const struct nccl_reading *r, const Doc *pci)
{
	const Doc *below = nccl_children(pci, "pcis"), *nics = nccl_children(pci, "nics");
	if (nccl_children(pci, "gpus")->n || (r->template && (nccl_is_gpu(pci) || nccl_is_card(pci))))
		return true;
	for (int i = 0; i < nics->n; i++)
		if (nccl_children(nics->child[i], "nets")->n)
			return true;
	for (int i = 0; i < below->n; i++)
		if (relevant(r, below->child[i]))
			return true;
	return false;
}

static int
count_relevant(const struct nccl_reading *r, const Doc *pci)
{
	const Doc *below = nccl_children(pci, "pcis");
	int n = 0;
	for (int i = 0; i < below->n; i++)
		n += relevant(r, below->child[i]);
	return n;
}

static bool
is_device(const struct nccl_reading *r, const Doc *pci)
{
	return nccl_children(pci, "gpus")->n || nccl_children(pci, "nics")->n
	    || (r->template && (nccl_is_gpu(pci) || nccl_is_card(pci)));
}

/* The link from a device up: its own, or a slower one above. A switch is as fast as it is to the device below. */
static Status
link_up(struct nccl_reading *r, const Doc *pci, struct above *above)
{
	int64_t width;
	int generation = pcie_generation(nccl_text(pci, "link_speed"));
	TRY(nccl_int(r, pci, "link_width", 0, 64, 0, &width));
	if (generation == 0 || width == 0) {
		nccl_add_name(&r->unknown, nccl_text(pci, "busid"));
		above->assumed = true;
	}
	width = width ? width : PCIE_WIDTH_UNKNOWN;
	generation = generation ? generation : PCIE_GENERATION_UNKNOWN;
	int64_t capacity = pcie_capacity((int)width, generation);
	above->capacity = capacity < above->capacity ? capacity : above->capacity;
	above->generation = above->generation && above->generation < generation ? above->generation : generation;
	return builder_status(r->b);
}

static void
put_link(struct nccl_reading *r, int vertex, const struct above *above)
{
	builder_link(r->b, vertex, above->vertex, LINK_PCIE, 1, above->capacity, DUPLEX, above->assumed
	    ? "effective; width or speed is not in the file: as NCCL assumes them" : NULL);
	if (above->assumed)
		builder_link_assumed(r->b);
}

/* ---- NICs ---- */

/* Mb/s of a port, as plugins state it, some in another unit; 0: not known. */
static int64_t
speed_of(const Doc *net)
{
	enum { MOST = 100000000 };
	const Doc *at = doc_get(net, "speed");
	const char *text = at && at->kind == DOC_STRING ? at->text : "";
	size_t digits = strspn(text, "0123456789");
	int64_t speed = 0;
	return digits && !text[digits] && decimal_parse(text, digits, 1, &speed) && speed <= MOST ? speed : 0;
}

/* A NIC whose speed is not known has no port. */
static Status
set_port(struct nccl_reading *r, const Doc *net, int vertex)
{
	const char *text = nccl_text(net, "speed"), *id = builder_id(r->b, vertex);
	int64_t speed = speed_of(net);
	if (speed > 0)
		builder_port(r->b, vertex, speed * (BYTES_PER_GB / 8000));
	else if (*text && strcmp(text, "0") != 0 && strcmp(text, "-1") != 0)
		builder_assume(r->b, "speed of NIC %s: %.24s Mb/s in the file, which no port has: left out; --nic-rate "
		    "sets it for a cluster", id, text);
	else
		builder_assume(r->b, "speed of NIC %s: not in the file; --nic-rate sets it for a cluster", id);
	return builder_status(r->b);
}

/* A network card of a template. */
static Status
place_card(struct nccl_reading *r, const Doc *pci, const struct above *above)
{
	char id[128];
	snprintf(id, sizeof id, "nic-%.100s", nccl_text(pci, "busid"));
	int vertex = builder_vertex(r->b, VERTEX_NIC, r->host[r->cpu[above->cpu].host].node, id);
	TRY(builder_status(r->b));
	put_link(r, vertex, above);
	builder_assume(r->b, "speeds of NICs: not in the file; --nic-rate sets them for a cluster");
	return builder_status(r->b);
}

static Status
place_net(struct nccl_reading *r, const Doc *net, const struct above *above)
{
	const char *name = nccl_text(net, "name");
	int vertex = builder_vertex(r->b, VERTEX_NIC, r->host[r->cpu[above->cpu].host].node, *name ? name : "nic");
	TRY(builder_status(r->b));
	put_link(r, vertex, above);
	return set_port(r, net, vertex);
}

/* The ports of a NIC share its PCIe link: behind a switch, if there are several. */
static Status
place_nics(struct nccl_reading *r, const Doc *pci, struct above above)
{
	const Doc *nics = nccl_children(pci, "nics");
	char id[128];
	int n = 0;
	for (int i = 0; i < nics->n; i++)
		n += nccl_children(nics->child[i], "nets")->n;
	if (n > 1) {
		snprintf(id, sizeof id, "nic-%.100s", nccl_text(pci, "busid"));
		int vertex = builder_vertex(r->b, VERTEX_SWITCH, r->host[r->cpu[above.cpu].host].node, id);
		TRY(builder_status(r->b));
		put_link(r, vertex, &above);
		above.vertex = vertex;
	}
	for (int i = 0; i < nics->n; i++) {
		const Doc *nets = nccl_children(nics->child[i], "nets");
		for (int k = 0; k < nets->n; k++)
			TRY(place_net(r, nets->child[k], &above));
	}
	return OK;
}

/* ---- the tree ---- */

static int
vertex_of(const struct nccl_reading *r, const Doc *gpu)
{
	int i = 0;
	while (i + 1 < r->n_gpus && r->gpu[i].at != gpu)
		i++;
	return r->gpu[i].vertex;
}

static Status place(struct nccl_reading *r, const Doc *pci, struct above above);

static Status
place_below(struct nccl_reading *r, const Doc *pci, const struct above *above)
{
	const Doc *below = nccl_children(pci, "pcis");
	for (int i = 0; i < below->n; i++)
		if (relevant(r, below->child[i]))
			TRY(place(r, below->child[i], *above));
	return OK;
}

/* A switch with several devices. Links that save power look slow. */
static Status
place_switch(struct nccl_reading *r, const Doc *pci, struct above above)
{
	int vertex = builder_vertex(r->b, VERTEX_SWITCH, r->host[r->cpu[above.cpu].host].node, nccl_text(pci, "busid"));
	const Doc *below = nccl_children(pci, "pcis");
	TRY(builder_status(r->b));
	put_link(r, vertex, &above);
	for (int i = 0; i < below->n; i++) {
		const char *speed = nccl_text(below->child[i], "link_speed");
		if (relevant(r, below->child[i]) && pcie_generation(speed) > above.generation + 1) {
			nccl_add_name(&r->slow, nccl_text(pci, "busid"));
			break;
		}
	}
	return place_below(r, pci, &(struct above){ .cpu = above.cpu, .vertex = vertex, .capacity = INT64_MAX });
}

static Status
place(struct nccl_reading *r, const Doc *pci, struct above above)
{
	const Doc *gpus = nccl_children(pci, "gpus");
	TRY(link_up(r, pci, &above));
	for (int i = 0; i < gpus->n; i++)
		put_link(r, vertex_of(r, gpus->child[i]), &above);
	if (r->template && nccl_is_gpu(pci))
		put_link(r, vertex_of(r, pci), &above);
	if (r->template && nccl_is_card(pci))
		TRY(place_card(r, pci, &above));
	if (is_device(r, pci)) {
		TRY(place_nics(r, pci, above));
		return place_below(r, pci, &above);
	}
	return count_relevant(r, pci) > 1 ? place_switch(r, pci, above) : place_below(r, pci, &above);
}

/* ---- CPUs ---- */

/* A network interface without a PCI device. */
struct interface {
	int host, cpu;
	const char *name;
	const Doc *net;
};

static int
by_name(const void *a, const void *b)
{
	const struct interface *p = a, *q = b;
	int order = p->host != q->host ? p->host - q->host : strcmp(p->name, q->name);
	return order ? order : p->cpu != q->cpu ? p->cpu - q->cpu : p->net->line - q->net->line;
}

static bool
same_name(const struct interface *a, const struct interface *b)
{
	return a->host == b->host && strcmp(a->name, b->name) == 0;
}

static Status
place_interface(struct nccl_reading *r, const struct interface *interface)
{
	const struct nccl_cpu *cpu = &r->cpu[interface->cpu];
	int64_t speed = speed_of(interface->net);
	if (speed <= 0 || cpu->vertex < 0) {
		nccl_add_name(&r->virtual, interface->name);
		return OK;
	}
	int64_t rate = speed * (BYTES_PER_GB / 8000);
	int vertex = builder_vertex(r->b, VERTEX_NIC, r->host[cpu->host].node,
	    *interface->name ? interface->name : "nic");
	TRY(builder_status(r->b));
	builder_port(r->b, vertex, rate);
	builder_link(r->b, vertex, cpu->vertex, LINK_PCIE, 1, rate, DUPLEX,
	    "that of the network port, as the file has no PCI device for it");
	builder_assume(r->b, "network interface %s: joined to %s at the rate of its port, as it has no PCI device",
	    interface->name, builder_id(r->b, cpu->vertex));
	return builder_status(r->b);
}

static Status
collect_interfaces(struct nccl_reading *r, int c, struct interface **list, int *n, int *room)
{
	const Doc *nics = nccl_children(r->cpu[c].at, "nics");
	for (int i = 0; i < nics->n; i++) {
		const Doc *nets = nccl_children(nics->child[i], "nets");
		for (int k = 0; k < nets->n; k++) {
			TRY(GROW(r->ctx, *list, *n, *room));
			(*list)[(*n)++] = (struct interface){ r->cpu[c].host, c, nccl_text(nets->child[k], "name"),
				nets->child[k] };
		}
	}
	return OK;
}

/* NCCL lists virtual interfaces below every CPU of a host: those are no hardware. */
static Status
place_interfaces(struct nccl_reading *r)
{
	struct interface *list = NULL;
	int n = 0, room = 0;
	for (int c = 0; c < r->n_cpus; c++)
		TRY(collect_interfaces(r, c, &list, &n, &room));
	if (n)
		qsort(list, (size_t)n, sizeof *list, by_name);
	for (int first = 0, next; first < n; first = next) {
		for (next = first + 1; next < n && same_name(&list[first], &list[next]);)
			next++;
		if (next == first + 1)
			TRY(place_interface(r, &list[first]));
		else
			nccl_add_name(&r->virtual, list[first].name);
	}
	return OK;
}

static Status
place_cpu(struct nccl_reading *r, struct nccl_cpu *cpu)
{
	const Doc *below = nccl_children(cpu->at, "pcis");
	char id[48];
	bool used = false;
	for (int i = 0; i < below->n; i++)
		used |= relevant(r, below->child[i]);
	if (!used)
		return OK;
	if (r->n_hosts > 1)
		snprintf(id, sizeof id, "node%d/cpu%d", cpu->host, (int)cpu->numa);
	else
		snprintf(id, sizeof id, "cpu%d", (int)cpu->numa);
	cpu->vertex = builder_vertex(r->b, VERTEX_CPU, r->host[cpu->host].node, id);
	return builder_status(r->b);
}

Status
nccl_place_cpus(struct nccl_reading *r)
{
	for (int c = 0; c < r->n_cpus; c++)
		TRY(place_cpu(r, &r->cpu[c]));
	return OK;
}

static Status
place_tree(struct nccl_reading *r, int c)
{
	const Doc *below = nccl_children(r->cpu[c].at, "pcis");
	for (int i = 0; i < below->n; i++)
		if (relevant(r, below->child[i]))
			TRY(place(r, below->child[i], (struct above){ .cpu = c, .vertex = r->cpu[c].vertex,
			    .capacity = INT64_MAX }));
	return OK;
}

/* An Arm CPU with NVLink-C2C is a Grace. */
static SocketLink
link_of(const struct nccl_reading *r, int c)
{
	CpuModel cpu = r->cpu[c].model;
	int nodes = 0;
	for (int i = 0; i < r->n_gpus; i++)
		if (r->gpu[i].cpu == c && strcmp(cpu.arch, "arm64") == 0 && nccl_children(r->gpu[i].at, "c2cs")->n)
			cpu.vendor = "NVIDIA";
	for (int i = 0; i < r->n_cpus; i++)
		nodes += r->cpu[i].vertex >= 0 && r->cpu[i].host == r->cpu[c].host;
	return socket_link(cpu, r->gpu[0].model, nodes);
}

static void
join_pair(struct nccl_reading *r, int a, int b, SocketLink *of_class)
{
	SocketLink p = link_of(r, a), q = link_of(r, b), link = p.capacity < q.capacity ? p : q;
	if (!of_class->capacity) {
		*of_class = link;
		builder_class(r->b, LINK_QPI, link.capacity, link_class_latency(LINK_QPI), link.source);
	}
	builder_link(r->b, r->cpu[a].vertex, r->cpu[b].vertex, LINK_QPI, 1, link.capacity, DUPLEX,
	    strcmp(link.source, of_class->source) == 0 ? NULL : link.source);
	if (!link.assumed)
		return;
	builder_link_assumed(r->b);
	builder_sockets(r->b, r->n_cpus, &link);
}

/* CPUs of a host, all pairs, as NCCL joins them. */
static Status
join_cpus(struct nccl_reading *r)
{
	SocketLink of_class = { .capacity = 0 };
	for (int a = 0; a < r->n_cpus; a++) {
		int n = 0;
		for (int b = a + 1; b < r->n_cpus; b++) {
			if (r->cpu[a].vertex < 0 || r->cpu[b].vertex < 0 || r->cpu[a].host != r->cpu[b].host)
				continue;
			n++;
			join_pair(r, a, b, &of_class);
			TRY(builder_status(r->b));
		}
		if (n > 1)
			builder_assume(
			    r->b, "NUMA nodes: each pair of a server has a link of its own, as NCCL counts them");
	}
	return builder_status(r->b);
}

Status
nccl_place_pci(struct nccl_reading *r)
{
	char source[512];
	snprintf(source, sizeof source, "%s, of link_width and link_speed in the file; %s", pcie_capacity_source(),
	    link_class_latency_source(LINK_PCIE));
	builder_class(r->b, LINK_PCIE, 0, link_class_latency(LINK_PCIE), source);
	snprintf(source, sizeof source, "capacity: that of each NIC, its speed in the file; %s",
	    link_class_latency_source(LINK_NET));
	if (r->n_nets)
		builder_class(r->b, LINK_NET, 0, link_class_latency(LINK_NET), source);
	for (int c = 0; c < r->n_cpus; c++)
		TRY(place_tree(r, c));
	TRY(place_interfaces(r));
	return join_cpus(r);
}
