/* A machine whose ranks are CPUs, not GPUs: a set of cores each, in a NUMA node. They take the place of GPUs in a
 * Topology, so that all planners serve them.
 *
 *   numa0   numa1      numa2   numa3     ranks, "numa1.0" and so on where a node has several
 *     | 10    | 10       | 10    | 10    what one core copies
 *   cpu0    cpu1       cpu2    cpu3      NUMA nodes, to which NICs are joined, too
 *      \ 27  / 27         \ 27  / 27     within a package: by distance
 *     package0 ---- 16 ---- package1     what NCCL counts for these CPUs
 *
 * A package with one node is that node. Rates are those that blinkc has measured (measure.c), where the file has them:
 * the matrix NUMABandwidth, and CoreBandwidth, an <info> of NUMA nodes. Else they are assumed: links between packages
 * have the rate of NCCL at the least distance of packages, and less in proportion at greater ones; nodes of a package
 * have that rate times 20 / d at distance d, as 20 is ACPI's distance of a remote node. Packages that are farther from
 * each other than both are from a third have no link: what they exchange goes through the third. */
#include "format/hwloc/machine.h"
#include "base/array.h"
#include "format/link_rates.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* What one core copies from memory to memory, bytes/s: Zen 2 to 5 and Xeons from Skylake on have 8 to 14 GB/s. */
#define CORE_COPY (10 * BYTES_PER_GB)

/* ACPI's distance of a remote node where a machine gives none. */
enum { REMOTE = 20 };

enum { PUS_MOST = 65536, PU_WORDS = PUS_MOST / 32 };

/* PUs, a bit each. */
typedef struct {
	int n;			/* words */
	unsigned *word;
} PuSet;

struct numa_node {
	int object, package;	/* package: an object; of a node that is in none the node itself */
	int first_core, n_cores;
	PuSet pus;
};

struct cpus {
	HwMachine *m;
	int n_nodes, n_cores, n_packages;
	struct numa_node *node;
	PuSet *core;		/* those of a node side by side, in the order of the file */
	int *package, *place;	/* place: of each node's package among them */
	int *vertex;		/* of each package */
	int64_t *distance, *rate;	/* of each pair of packages; rate: bytes/s, measured */
	SocketLink socket;
};

/* ---- sets of PUs ---- */

/* "0x0000ffff,,0x1": words of 32 bits, the highest first; an empty one is 0. */
static Status
read_pus(HwMachine *m, const Doc *object, PuSet *out)
{
	const Doc *doc = doc_get(object, "cpuset");
	const char *text = doc && doc->kind == DOC_STRING ? doc->text : "";
	int n = *text ? 1 : 0;
	for (const char *c = text; *c; c++)
		n += *c == ',';
	if (n > PU_WORDS)
		return doc_fail(m->ctx, m->tree->label, doc, LIMIT, "more than %d PUs", PUS_MOST);
	out->n = n;
	TRY(TEMP(m->ctx, out->word, n));
	for (int i = n - 1; i >= 0; i--) {
		unsigned value = 0;
		int digits = 0;
		text += strncmp(text, "0x", 2) == 0 ? 2 : 0;
		for (; isxdigit((unsigned char)*text); text++, digits++)
			value = value * 16 + (unsigned)(isdigit((unsigned char)*text) ? *text - '0'
			    : tolower((unsigned char)*text) - 'a' + 10);
		if (digits > 8 || *text != (i ? ',' : '\0'))
			return doc_want(m->ctx, m->tree->label, doc, "PUs as 0x0000ffff,0xffffffff");
		text += i ? 1 : 0;
		out->word[i] = value;
	}
	return OK;
}

static bool
has_pu(const PuSet *set, int pu)
{
	return pu / 32 < set->n && set->word[pu / 32] >> pu % 32 & 1;
}

/* From `from` on; -1: none. */
static int
next_pu(const PuSet *set, int from)
{
	while (from < 32 * set->n && !has_pu(set, from))
		from++;
	return from < 32 * set->n ? from : -1;
}

/* Those of several cores as "0-3,8-11", as taskset and numactl have them. */
static void
put_pus(char *out, size_t size, const PuSet *core, int n)
{
	int most = 0;
	size_t used = 0;
	*out = '\0';
	for (int c = 0; c < n; c++)
		most = core[c].n > most ? core[c].n : most;
	for (int pu = 0, first = -1; pu <= 32 * most; pu++) {
		bool in = false;
		for (int c = 0; c < n && !in; c++)
			in = has_pu(&core[c], pu);
		if (in && first < 0)
			first = pu;
		if (in || first < 0)
			continue;
		if (used + 24 > size) {
			snprintf(out + used, size - used, ",...");
			return;
		}
		used += (size_t)snprintf(out + used, size - used, first < pu - 1 ? "%s%d-%d" : "%s%d", used ? "," : "",
		    first, pu - 1);
		first = -1;
	}
}

/* ---- nodes, packages, cores ---- */

/* The package that it is in, or else, as in files of hwloc 1.x, the one below it; itself where there is none. */
static int
package_of(const HwTree *tree, int object)
{
	const HwObject *all = tree->object;
	for (int i = object; i >= 0; i = all[i].parent)
		if (all[i].kind == HW_PACKAGE)
			return i;
	for (int i = object; i < all[object].end; i++)
		if (all[i].kind == HW_PACKAGE)
			return i;
	return object;
}

/* NUMA nodes with CPUs that no node before has: memory of another kind has the CPUs of a node. The machine itself,
 * where there are none. */
static Status
find_nodes(struct cpus *s)
{
	const HwTree *tree = s->m->tree;
	int n_left = 0;
	TRY(TEMP(s->m->ctx, s->node, tree->n_objects));
	for (int i = 0; i < tree->n_objects; i++) {
		struct numa_node node = { .object = i, .package = package_of(tree, i) };
		if (tree->object[i].kind != HW_NUMA)
			continue;
		TRY(read_pus(s->m, tree->object[i].doc, &node.pus));
		int pu = next_pu(&node.pus, 0);
		bool other = pu < 0;
		for (int k = 0; k < s->n_nodes && !other; k++)
			other = has_pu(&s->node[k].pus, pu);
		n_left += other;
		if (!other)
			s->node[s->n_nodes++] = node;
	}
	if (n_left)
		builder_assume(s->m->b, "left out: %d NUMA nodes without CPUs of their own", n_left);
	if (s->n_nodes == 0) {
		s->node[s->n_nodes++] = (struct numa_node){ .object = 0, .package = 0 };
		TRY(read_pus(s->m, tree->object[0].doc, &s->node[0].pus));
	}
	return OK;
}

static int
node_of(const struct cpus *s, const PuSet *core)
{
	int pu = next_pu(core, 0);
	for (int k = 0; k < s->n_nodes && pu >= 0; k++)
		if (has_pu(&s->node[k].pus, pu))
			return k;
	return -1;
}

/* PUs where there are no cores. Nodes without any are left out. */
static Status
find_cores(struct cpus *s)
{
	const HwTree *tree = s->m->tree;
	HwKind kind = HW_PU;
	PuSet *all;
	int *home, n_all = 0, n = 0;
	for (int i = 0; i < tree->n_objects; i++)
		kind = tree->object[i].kind == HW_CORE ? HW_CORE : kind;
	TRY(TEMP(s->m->ctx, s->core, tree->n_objects));
	TRY(TEMP(s->m->ctx, all, tree->n_objects));
	TRY(TEMP(s->m->ctx, home, tree->n_objects));
	for (int i = 0; i < tree->n_objects; i++) {
		if (tree->object[i].kind != kind)
			continue;
		TRY(read_pus(s->m, tree->object[i].doc, &all[n_all]));
		home[n_all] = node_of(s, &all[n_all]);
		n_all++;
	}
	for (int k = 0; k < s->n_nodes; k++) {
		struct numa_node node = s->node[k];
		node.first_core = s->n_cores;
		for (int i = 0; i < n_all; i++)
			if (home[i] == k)
				s->core[s->n_cores++] = all[i];
		node.n_cores = s->n_cores - node.first_core;
		if (node.n_cores)
			s->node[n++] = node;
	}
	s->n_nodes = n;
	if (n == 0)
		return fail(s->m->ctx, BAD_INPUT, "%s: no cores with a cpuset: want a machine by `lstopo FILE.xml`",
		    tree->label);
	return OK;
}

static Status
find_packages(struct cpus *s)
{
	TRY(TEMP(s->m->ctx, s->package, s->n_nodes));
	TRY(TEMP(s->m->ctx, s->place, s->n_nodes));
	TRY(TEMP(s->m->ctx, s->vertex, s->n_nodes));
	for (int k = 0; k < s->n_nodes; k++) {
		int p = 0;
		while (p < s->n_packages && s->package[p] != s->node[k].package)
			p++;
		if (p == s->n_packages)
			s->package[s->n_packages++] = s->node[k].package;
		s->place[k] = p;
	}
	return OK;
}

/* ---- what a matrix has of two nodes ---- */

static const HwMatrix *
matrix_of(const HwTree *tree, const char *name)
{
	for (int i = 0; i < tree->n_matrices; i++)
		if (strcmp(tree->matrix[i].name, name) == 0)
			return &tree->matrix[i];
	return NULL;
}

static int64_t
value_of(const HwMatrix *of, int from, int to)
{
	int i = 0, j = 0;
	while (of && i < of->n && of->object[i] != from)
		i++;
	while (of && j < of->n && of->object[j] != to)
		j++;
	return of && i < of->n && j < of->n ? of->value[(int64_t)i * of->n + j] : 0;
}

/* Of packages, from the two nodes that are nearest, or fastest, of a pair: distances are the greater of both
 * directions, rates the lower. */
static Status
find_pairs(struct cpus *s)
{
	const HwMatrix *distance = matrix_of(s->m->tree, "NUMALatency"), *rate = matrix_of(s->m->tree, "NUMABandwidth");
	int n = s->n_packages;
	TRY(TEMP(s->m->ctx, s->distance, n * n));
	TRY(TEMP(s->m->ctx, s->rate, n * n));
	for (int i = 0; i < s->n_nodes; i++) {
		for (int j = 0; j < s->n_nodes; j++) {
			int a = s->node[i].object, b = s->node[j].object, pair = s->place[i] * n + s->place[j];
			int64_t d = value_of(distance, a, b), back = value_of(distance, b, a);
			d = d > back ? d : back;
			if (i != j && d > 0 && (s->distance[pair] == 0 || d < s->distance[pair]))
				s->distance[pair] = d;
			d = value_of(rate, a, b);
			back = value_of(rate, b, a);
			d = (d < back ? d : back) * (BYTES_PER_GB / 1000);
			s->rate[pair] = i != j && d > s->rate[pair] ? d : s->rate[pair];
		}
	}
	for (int pair = 0; pair < n * n; pair++)
		s->distance[pair] = s->distance[pair] ? s->distance[pair] : REMOTE;
	return OK;
}

static int64_t
distance_of(const struct cpus *s, int p, int q)
{
	return s->distance[p * s->n_packages + q];
}

/* 0: not measured. */
static int64_t
measured_rate(const struct cpus *s, int p, int q)
{
	return s->rate[p * s->n_packages + q];
}

/* ---- links ---- */

#define MEASURED "measured by blinkc topology --measure"

/* What one core of the node copies; NULL: not measured. */
static const char *
core_rate(const struct cpus *s, int node, int64_t *rate)
{
	const char *text = hwloc_info(s->m->tree->object[s->node[node].object].doc, "CoreBandwidth");
	long long mbytes = 0;
	*rate = CORE_COPY;
	if (!text || sscanf(text, "%9lld", &mbytes) != 1 || mbytes < 1)
		return NULL;
	*rate = mbytes * (BYTES_PER_GB / 1000);
	return text;
}

/* The ranks of a node have its cores in equal parts; those left over go to the first ones. */
static void
link_ranks(struct cpus *s, int node, const int *rank, int n)
{
	const struct numa_node *of = &s->node[node];
	int cpu = hwloc_cpu_near(s->m, of->object);
	int64_t rate;
	const char *measured = core_rate(s, node, &rate);
	for (int r = 0; r < n && builder_status(s->m->b) == OK; r++) {
		int first = r * (of->n_cores / n) + (r < of->n_cores % n ? r : of->n_cores % n);
		int cores = of->n_cores / n + (r < of->n_cores % n);
		char pus[128], source[256];
		put_pus(pus, sizeof pus, &s->core[of->first_core + first], cores);
		snprintf(source, sizeof source, "PUs %s; what one core copies: %s", pus,
		    measured ? MEASURED : "assumed");
		builder_link(s->m->b, rank[r], cpu, LINK_QPI, 1, rate, DUPLEX, source);
		if (!measured)
			builder_link_assumed(s->m->b);
	}
	if (!measured)
		builder_assume(s->m->b, "a rank copies %d GB/s, as one core: --measure measures it",
		    (int)(CORE_COPY / BYTES_PER_GB));
}

static void
link_rate(const struct cpus *s, int from, int to, int64_t rate, int64_t measured, const char *source)
{
	builder_link(s->m->b, from, to, LINK_QPI, 1, measured ? measured : rate, DUPLEX, measured ? MEASURED : source);
	if (!measured)
		builder_link_assumed(s->m->b);
}

/* Nodes of a package, of which there are several. */
static void
link_nodes(struct cpus *s, int p)
{
	char id[32], source[256];
	int number = s->m->tree->object[s->package[p]].os_index, n = 0;
	for (int k = 0; k < s->n_nodes; k++)
		n += s->place[k] == p;
	for (int k = 0; k < s->n_nodes && n == 1; k++)
		if (s->place[k] == p)
			s->vertex[p] = hwloc_cpu_near(s->m, s->node[k].object);
	if (n == 1)
		return;
	snprintf(id, sizeof id, "package%d", number < 0 ? p : number);
	s->vertex[p] = builder_vertex(s->m->b, VERTEX_CPU, s->m->node, id);
	int64_t d = distance_of(s, p, p), rate = s->socket.capacity * REMOTE / d, measured = measured_rate(s, p, p);
	snprintf(source, sizeof source, "%s, times %d by the distance of NUMA nodes, %d", s->socket.source, REMOTE,
	    (int)d);
	for (int k = 0; k < s->n_nodes && builder_status(s->m->b) == OK; k++)
		if (s->place[k] == p)
			link_rate(s, hwloc_cpu_near(s->m, s->node[k].object), s->vertex[p], rate, measured, source);
	if (!measured)
		builder_assume(s->m->b, "NUMA nodes of a package: %.4g GB/s, by their distance of %d and the rate of "
		    "%s: --measure measures it", (double)rate / 1e9, (int)d, s->socket.name);
}

/* Is a third package nearer to both? */
static bool
is_indirect(const struct cpus *s, int p, int q)
{
	int64_t d = distance_of(s, p, q);
	for (int r = 0; r < s->n_packages; r++)
		if (r != p && r != q && distance_of(s, p, r) < d && distance_of(s, r, q) < d)
			return true;
	return false;
}

static void
link_packages(struct cpus *s)
{
	int64_t least = INT64_MAX, d;
	char source[256];
	for (int p = 0; p < s->n_packages; p++)
		for (int q = p + 1; q < s->n_packages; q++)
			least = (d = distance_of(s, p, q)) < least ? d : least;
	for (int p = 0; p < s->n_packages; p++) {
		for (int q = p + 1; q < s->n_packages && builder_status(s->m->b) == OK; q++) {
			int64_t measured = measured_rate(s, p, q);
			d = distance_of(s, p, q);
			if (is_indirect(s, p, q))
				continue;
			snprintf(source, sizeof source, "%s, times %d by the distance, %d", s->socket.source,
			    (int)least, (int)d);
			link_rate(s, s->vertex[p], s->vertex[q], s->socket.capacity * least / d, measured,
			    d == least ? s->socket.source : source);
			if (!measured)
				builder_assume(s->m->b, "packages at distance %d: %.4g GB/s (%s): --measure measures "
				    "it", (int)d, (double)(s->socket.capacity * least / d) / 1e9, s->socket.name);
		}
	}
}

/* ---- the whole ---- */

static Status
add_ranks(struct cpus *s, int n_ranks, int **rank)
{
	int each = n_ranks ? n_ranks / s->n_nodes : 1;
	bool fits = n_ranks % s->n_nodes == 0;
	char id[32];
	for (int k = 0; k < s->n_nodes; k++)
		fits &= each <= s->node[k].n_cores;
	if (!fits)
		return fail(s->m->ctx, USAGE, "--cpu-ranks: %d: want a multiple of the NUMA nodes with cores, %d, and "
		    "no more for a node than it has cores; there are %d", n_ranks, s->n_nodes, s->n_cores);
	TRY(TEMP(s->m->ctx, *rank, s->n_nodes * each));
	for (int k = 0; k < s->n_nodes; k++) {
		int number = s->m->tree->object[s->node[k].object].os_index;
		for (int r = 0; r < each; r++) {
			snprintf(id, sizeof id, each > 1 ? "numa%d.%d" : "numa%d", number < 0 ? k : number, r);
			(*rank)[k * each + r] = builder_vertex(s->m->b, VERTEX_GPU, s->m->node, id);
		}
	}
	return builder_status(s->m->b);
}

Status
hwloc_add_cpu_ranks(HwMachine *m, int n_ranks)
{
	struct cpus s = { .m = m };
	char source[512];
	int *rank = NULL;
	TRY(find_nodes(&s));
	TRY(find_cores(&s));
	if (s.n_nodes > HW_CPUS_MOST)
		return fail(m->ctx, LIMIT, "%s: %d NUMA nodes: want at most %d", m->tree->label, s.n_nodes,
		    HW_CPUS_MOST);
	TRY(find_packages(&s));
	TRY(find_pairs(&s));
	TRY(add_ranks(&s, n_ranks, &rank));
	s.socket = socket_link(hwloc_cpu_model(m), NULL, s.n_nodes);
	snprintf(source, sizeof source, "between CPUs: %s%s; %s", s.socket.source,
	    s.socket.assumed ? ", as the CPU is not known" : "", link_class_latency_source(LINK_QPI));
	builder_class(m->b, LINK_QPI, s.socket.capacity, link_class_latency(LINK_QPI), source);
	int each = n_ranks ? n_ranks / s.n_nodes : 1;
	for (int k = 0; k < s.n_nodes; k++)
		link_ranks(&s, k, rank + k * each, each);
	for (int p = 0; p < s.n_packages; p++)
		link_nodes(&s, p);
	link_packages(&s);
	return builder_status(m->b);
}
