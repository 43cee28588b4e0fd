/* hwloc XML of all versions into one tree. We read it ourselves, since libhwloc trusts its files: 2.9.0 multiplies the
 * size of a matrix in 32 bits and then reads outside of it. It also refuses files of 3.x.
 *
 *   1.x   <distances> are latencies of NUMA nodes, without matrices between devices; packages are "Socket"
 *   2.x   <distances2>: objects of one type; <distances2hetero>: "OSDev:802 PCIDev:449"; osdev_type is a number
 *   3.x   osdev_type is a set of bits; pci_type has another number; some <info> are of the file, not of the machine */
#include "format/hwloc/tree.h"
#include "base/array.h"
#include "base/limits.h"
#include "format/sniff.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const plurals[] = {
	"object", "objects", "info", "infos", "distances2", "distances2s", "distances2hetero", "distances2heteros",
	"indexes", "index_lists", "u64values", "value_lists", "distances", "distances_v1", "latency", "latencies",
	"page_type", "page_types", "support", "supports", "cpukind", "cpukinds", "memattr", "memattrs",
	"memattr_value", "memattr_values", "memtier", "memtiers", "pci_locality", "pci_localities", "userdata",
	"userdatas", NULL,
};
static const char *const texts[] = { "indexes", "u64values", "userdata", NULL };

/* GB/s as hwloc prints them, in bytes/s. More than any PCI link. */
#define MOST_SPEED INT64_C(10000000000000)

/* Objects of a matrix: every two may have links. A server has 16 GPUs and 18 switches today. */
enum { MATRIX_MOST = 128 };

/* MB/s; more than any link. */
#define MOST_MBYTES INT64_C(1000000000)

struct reader {
	Ctx *ctx;
	HwTree *tree;
	int room_objects, room_matrices;
	bool distances;
	struct by_gp *by_gp;
	int n_gp;
};

/* An object by its gp_index. */
struct by_gp {
	int64_t gp;
	int object;
};

/* ---- attributes ---- */

static const char *
attribute(const Doc *element, const char *name)
{
	const Doc *member = doc_get(element, name);
	return member && member->kind == DOC_STRING ? member->text : NULL;
}

static const char *
attribute_or_none(const Doc *element, const char *name)
{
	const char *text = attribute(element, name);
	return text ? text : "";
}

/* A number of 1 to `most` hexadecimal digits; NULL: there is none. */
static const char *
read_hex(const char *text, int most, unsigned *out)
{
	int n = 0;
	*out = 0;
	for (; n < most && isxdigit((unsigned char)text[n]); n++)
		*out = *out * 16 + (unsigned)(isdigit((unsigned char)text[n]) ? text[n] - '0'
		    : tolower((unsigned char)text[n]) - 'a' + 10);
	return n ? text + n : NULL;
}

static const char *
read_mark(const char *text, char mark)
{
	return text && *text == mark ? text + 1 : NULL;
}

/* Hexadecimal numbers, each but the last followed by its mark. */
static const char *
read_hexes(const char *text, const char *marks, const int *most, unsigned **out)
{
	for (int i = 0; text && out[i]; i++) {
		text = read_hex(text, most[i], out[i]);
		if (text && marks[i])
			text = read_mark(text, marks[i]);
		else if (!marks[i])
			break;
	}
	return text;
}

static Status
read_pci(struct reader *r, const Doc *doc, HwPci *out)
{
	const Doc *id = doc_get(doc, "pci_busid"), *type = doc_get(doc, "pci_type");
	if (id) {
		unsigned *part[] = { &out->domain, &out->bus, &out->device, &out->function, NULL };
		const char *end = read_hexes(id->text, "::.", (const int[]){ 8, 2, 2, 1 }, part);
		if (!end || *end)
			return doc_want(r->ctx, r->tree->label, id, "a PCI address as 0000:3b:00.0");
		out->known = true;
	}
	if (type) {
		unsigned *class[] = { &out->class, NULL }, *device[] = { &out->vendor, &out->model, NULL };
		const char *end = read_hexes(type->text, "", (const int[]){ 4 }, class);
		end = read_mark(read_mark(end, ' '), '[');
		end = read_hexes(end, ":", (const int[]){ 4, 4 }, device);
		if (!end || *end != ']')
			return doc_want(r->ctx, r->tree->label, type, "a class and a device as 0302 [10de:1db8]");
	}
	return OK;
}

/* A whole number lo..hi, or `without`. */
static Status
read_int(struct reader *r, const Doc *doc, const char *name, int64_t lo, int64_t hi, int64_t without, int64_t *out)
{
	const Doc *member = doc_get(doc, name);
	*out = without;
	return member ? doc_int(r->ctx, r->tree->label, member, lo, hi, out) : OK;
}

/* ---- objects ---- */

static HwKind
kind_of(const Doc *doc, const char *type)
{
	static const struct {
		const char *type;
		HwKind kind;
	} kinds[] = {
		{ "Machine", HW_MACHINE }, { "System", HW_MACHINE }, { "Package", HW_PACKAGE }, { "Socket",
		    HW_PACKAGE },
		{ "NUMANode", HW_NUMA }, { "PCIDev", HW_PCI }, { "OSDev", HW_OS }, { "Core", HW_CORE }, { "PU", HW_PU },
	};
	if (strcmp(type, "Bridge") == 0)
		return strncmp(attribute_or_none(doc, "bridge_type"), "0-", 2) == 0 ? HW_HOST_BRIDGE : HW_BRIDGE;
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (strcmp(type, kinds[i].type) == 0)
			return kinds[i].kind;
	return HW_OTHER;
}

/* The types of OS devices before version 3 are numbers: block, gpu, network, openfabrics, dma, coproc. */
static unsigned
os_types(int version, int64_t type)
{
	static const unsigned bits[] = { 1, 4, HW_OS_NETWORK, HW_OS_NETWORK | HW_OS_OPENFABRICS, 1 << 6, 8 };
	if (version >= 3)
		return (unsigned)type;
	return type < (int64_t)(sizeof bits / sizeof *bits) ? bits[type] : 0;
}

static Status
read_object(struct reader *r, const Doc *doc, int parent, HwObject *out)
{
	Ctx *ctx = r->ctx;
	const char *label = r->tree->label, *type;
	int64_t os_index, os_type;
	TRY(doc_string(ctx, label, doc, "type", &type));
	*out = (HwObject){ .kind = kind_of(doc, type), .parent = parent, .doc = doc };
	out->name = attribute_or_none(doc, "name");
	out->subtype = attribute_or_none(doc, "subtype");
	bool cpus = out->kind == HW_NUMA || out->kind == HW_PACKAGE;
	TRY(cpus ? read_int(r, doc, "os_index", -1, UINT32_MAX, -1, &os_index) : OK);
	out->os_index = cpus && os_index < INT32_MAX ? (int)os_index : -1;
	if (out->kind == HW_OS) {
		TRY(read_int(r, doc, "osdev_type", 0, UINT32_MAX, 0, &os_type));
		out->os_types = os_types(r->tree->version, os_type);
	}
	if (out->kind == HW_PCI || out->kind == HW_BRIDGE) {
		const Doc *speed = doc_get(doc, "pci_link_speed");
		TRY(read_pci(r, doc, &out->pci));
		if (speed)
			TRY(doc_scaled(ctx, label, speed, BYTES_PER_GB, 0, MOST_SPEED, "GB/s", &out->speed));
	}
	return OK;
}

/* An object and its descendants. The reader of XML has limited the depth. */
static Status
add_object(struct reader *r, const Doc *doc, int parent)
{
	HwTree *tree = r->tree;
	const Doc *children = doc_get(doc, "objects");
	TRY(GROW_TEMP(r->ctx, tree->object, tree->n_objects, r->room_objects));
	int self = tree->n_objects++;
	TRY(read_object(r, doc, parent, &tree->object[self]));
	for (int i = 0; children && i < children->n; i++)
		TRY(add_object(r, children->child[i], self));
	tree->object[self].end = tree->n_objects;
	return OK;
}

/* ---- matrices ---- */

static int
compare_gp(const void *a, const void *b)
{
	const struct by_gp *p = a, *q = b;
	return p->gp != q->gp ? (p->gp > q->gp) - (p->gp < q->gp) : p->object - q->object;
}

static Status
sort_by_gp(struct reader *r)
{
	const HwTree *tree = r->tree;
	TRY(TEMP(r->ctx, r->by_gp, tree->n_objects));
	for (int i = 0; i < tree->n_objects; i++) {
		struct by_gp *entry = &r->by_gp[r->n_gp];
		TRY(read_int(r, tree->object[i].doc, "gp_index", -1, INT64_MAX, -1, &entry->gp));
		entry->object = i;
		r->n_gp += entry->gp >= 0;
	}
	qsort(r->by_gp, (size_t)r->n_gp, sizeof *r->by_gp, compare_gp);
	return OK;
}

/* The first entry of this gp_index or a larger one. */
static int
find_gp(const struct reader *r, int64_t gp)
{
	int lo = 0, hi = r->n_gp;
	while (lo < hi) {
		int middle = lo + (hi - lo) / 2;
		if (r->by_gp[middle].gp < gp)
			lo = middle + 1;
		else
			hi = middle;
	}
	return lo;
}

static Status
object_of_gp(struct reader *r, const Doc *at, int64_t gp, int *out)
{
	int i = find_gp(r, gp);
	if (i == r->n_gp || r->by_gp[i].gp != gp)
		return doc_fail(r->ctx, r->tree->label, at, BAD_INPUT, "no object has gp_index %lld", (long long)gp);
	if (i + 1 < r->n_gp && r->by_gp[i + 1].gp == gp)
		return doc_fail(r->ctx, r->tree->label, at, BAD_INPUT, "two objects have gp_index %lld", (long long)gp);
	*out = r->by_gp[i].object;
	return OK;
}

/* A NUMA node: matrices of these alone have the numbers of the operating system. */
static Status
object_of_os(struct reader *r, const Doc *at, int64_t os, int *out)
{
	const HwTree *tree = r->tree;
	int i = 0;
	while (i < tree->n_objects && (tree->object[i].kind != HW_NUMA || tree->object[i].os_index != os))
		i++;
	if (i == tree->n_objects)
		return doc_fail(r->ctx, tree->label, at, BAD_INPUT, "no NUMA node has os_index %lld", (long long)os);
	*out = i;
	return OK;
}

/* The numbers of a list, one after another, over all its elements. */
struct numbers {
	const Doc *lists;		/* NULL: none */
	int list;
	const char *next;
};

static struct numbers
numbers_of(const Doc *matrix, const char *name)
{
	return (struct numbers){ .lists = doc_get(matrix, name), .list = -1 };
}

/* The next word; NULL: there is none. */
static const char *
next_word(struct numbers *of, size_t *length)
{
	for (;;) {
		if (of->next)
			of->next += strspn(of->next, " \t\r\n");
		if (of->next && *of->next) {
			const char *word = of->next;
			*length = strcspn(word, " \t\r\n");
			of->next += *length;
			return word;
		}
		if (!of->lists || ++of->list >= of->lists->n)
			return NULL;
		of->next = attribute_or_none(of->lists->child[of->list], "text");
	}
}

/* The word's number, of at most 18 digits. "OSDev:802": what is before the colon is not looked at, as no two objects
 * have one gp_index. */
static Status
word_number(struct reader *r, const Doc *matrix, const char *word, size_t length, bool typed, int64_t *out)
{
	size_t digits = 0;
	if (typed)
		for (const char *colon = memchr(word, ':', length); colon; colon = NULL) {
			length -= (size_t)(colon + 1 - word);
			word = colon + 1;
		}
	*out = 0;
	for (; digits < length && digits < 18 && isdigit((unsigned char)word[digits]); digits++)
		*out = *out * 10 + (word[digits] - '0');
	if (digits == 0 || digits != length)
		return doc_fail(r->ctx, r->tree->label, matrix, BAD_INPUT, "%s of a matrix: \"%.*s\": want a whole "
		    "number",
		    typed ? "an index" : "a value", length < 20 ? (int)length : 20, word);
	return OK;
}

static Status
read_members(struct reader *r, const Doc *doc, bool by_os, HwMatrix *m)
{
	struct numbers indexes = numbers_of(doc, "index_lists");
	const char *word;
	size_t length;
	bool *seen;
	int n = 0;
	TRY(TEMP(r->ctx, m->object, m->n));
	TRY(TEMP(r->ctx, seen, r->tree->n_objects));
	while ((word = next_word(&indexes, &length)) != NULL) {
		int64_t gp;
		if (n == m->n)
			break;
		TRY(word_number(r, doc, word, length, true, &gp));
		TRY(by_os ? object_of_os(r, doc, gp, &m->object[n]) : object_of_gp(r, doc, gp, &m->object[n]));
		if (seen[m->object[n]])
			return doc_fail(r->ctx, r->tree->label, doc, BAD_INPUT, "object %lld is in the matrix twice",
			    (long long)gp);
		seen[m->object[n++]] = true;
	}
	if (word || n != m->n)
		return doc_fail(r->ctx, r->tree->label, doc, BAD_INPUT, "%s indexes: want %d, as many as nbobjs",
		    word ? "too many" : "too few", m->n);
	return OK;
}

/* Room grows with the values that are there, so that a large nbobjs alone takes none. */
static Status
read_values(struct reader *r, const Doc *doc, HwMatrix *m)
{
	struct numbers values = numbers_of(doc, "value_lists");
	int64_t want = (int64_t)m->n * m->n;
	const char *word;
	size_t length;
	int n = 0, room = 0;
	while ((word = next_word(&values, &length)) != NULL && n < want) {
		TRY(GROW_TEMP(r->ctx, m->value, n, room));
		TRY(word_number(r, doc, word, length, false, &m->value[n]));
		if (m->value[n] > MOST_MBYTES)
			return doc_fail(r->ctx, r->tree->label, doc, LIMIT, "a bandwidth of %lld MB/s: want at most "
			    "%lld",
			    (long long)m->value[n], (long long)MOST_MBYTES);
		n++;
	}
	if (word || n != want)
		return doc_fail(r->ctx, r->tree->label, doc, BAD_INPUT, "too %s values: want %lld, %d times %d",
		    word ? "many" : "few", (long long)want, m->n, m->n);
	return OK;
}

static bool
is_wanted(const struct reader *r, const char *name)
{
	static const char *const ends[] = { "Bandwidth", "Hops" };
	size_t n = strlen(name);
	if (r->distances && strcmp(name, "NUMALatency") == 0)
		return true;
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
		if (n >= strlen(ends[i]) && strcmp(name + n - strlen(ends[i]), ends[i]) == 0)
			return true;
	return false;
}

/* Of matrices with one name, hwloc adds the second to the first: we want one. */
static Status
check_name(struct reader *r, const Doc *doc, const char *name)
{
	for (int i = 0; i < r->tree->n_matrices; i++)
		if (strcmp(r->tree->matrix[i].name, name) == 0)
			return doc_fail(r->ctx, r->tree->label, doc, BAD_INPUT, "two matrices %s: want one",
			    doc_found(doc_get(doc, "name")).text);
	return OK;
}

static Status
read_matrix(struct reader *r, const Doc *doc)
{
	HwTree *tree = r->tree;
	int64_t n;
	const char *indexing = attribute(doc, "indexing");
	HwMatrix m = { .name = attribute_or_none(doc, "name"), .doc = doc };
	if (!is_wanted(r, m.name))
		return OK;
	TRY(check_name(r, doc, m.name));
	bool by_os = indexing && strcmp(indexing, "os") == 0 && strncmp(m.name, "NUMA", 4) == 0;
	if (indexing && !by_os && strcmp(indexing, "gp") != 0)
		return doc_fail(r->ctx, tree->label, doc, BAD_INPUT, "indexing: want gp for devices");
	if (!doc_get(doc, "nbobjs"))
		return doc_missing(r->ctx, tree->label, doc, "nbobjs", "the number of objects");
	TRY(read_int(r, doc, "nbobjs", 1, MATRIX_MOST, 0, &n));
	m.n = (int)n;
	if (!r->by_gp)
		TRY(sort_by_gp(r));
	TRY(read_members(r, doc, by_os, &m));
	TRY(read_values(r, doc, &m));
	TRY(GROW_TEMP(r->ctx, tree->matrix, tree->n_matrices, r->room_matrices));
	tree->matrix[tree->n_matrices++] = m;
	return OK;
}

static Status
read_matrices(struct reader *r, const char *name)
{
	const Doc *list = doc_get(r->tree->doc, name);
	for (int i = 0; list && i < list->n; i++)
		TRY(read_matrix(r, list->child[i]));
	return OK;
}

/* ---- the whole ---- */

/* 1.x files have no version. */
static Status
read_version(struct reader *r)
{
	const Doc *version = doc_get(r->tree->doc, "version");
	r->tree->version = 1;
	if (!version)
		return OK;
	if (version->kind != DOC_STRING || version->text[0] < '1' || version->text[0] > '3' || version->text[1] != '.')
		return doc_want(r->ctx, r->tree->label, version,
		    "1.x, 2.x or 3.x; lstopo of the hwloc that wrote it can write an earlier one "
		    "(lstopo --export-xml-flags v2 FILE.xml)");
	r->tree->version = version->text[0] - '0';
	return OK;
}

Status
hwloc_tree_read(Ctx *ctx, const char *label, const char *data, size_t size, bool distances, HwTree **out)
{
	Doc *doc;
	struct reader r = { .ctx = ctx, .distances = distances };
	TRY(sniff_no_doctype(ctx, &data, size));
	TRY(doc_read_xml_texts(ctx, label, data, size, plurals, texts, &doc));
	TRY(TEMP(ctx, r.tree, 1));
	*r.tree = (HwTree){ .label = label, .doc = doc };
	if (!doc->text || strcmp(doc->text, "topology") != 0)
		return doc_fail(ctx, label, doc, BAD_INPUT, "want a <topology> of hwloc");
	TRY(read_version(&r));
	const Doc *objects = doc_get(doc, "objects");
	if (!objects)
		return doc_fail(ctx, label, doc, BAD_INPUT, "no <object>: want the file of a machine, by "
		    "`lstopo FILE.xml`");
	for (int i = 0; i < objects->n; i++)
		TRY(add_object(&r, objects->child[i], -1));
	if (r.tree->object[0].kind != HW_MACHINE)
		return doc_want(ctx, label, doc_get(objects->child[0], "type"), "a machine around all others");
	TRY(read_matrices(&r, "distances2s"));
	TRY(read_matrices(&r, "distances2heteros"));
	*out = r.tree;
	return OK;
}

const char *
hwloc_info(const Doc *element, const char *name)
{
	const Doc *list = doc_get(element, "infos");
	for (int i = 0; list && i < list->n; i++)
		if (strcmp(attribute_or_none(list->child[i], "name"), name) == 0)
			return attribute(list->child[i], "value");
	return NULL;
}

const char *
hwloc_machine_info(const HwTree *tree, const char *name)
{
	const char *value = hwloc_info(tree->object[0].doc, name);
	return value ? value : hwloc_info(tree->doc, name);
}

HwBusId
hwloc_bus_id(const HwObject *object)
{
	HwBusId id = { "" };
	const HwPci *pci = &object->pci;
	if (pci->known)
		snprintf(id.text, sizeof id.text, "%04x:%02x:%02x.%x", pci->domain, pci->bus, pci->device,
		    pci->function);
	else
		snprintf(id.text, sizeof id.text, "%.31s", *object->name ? object->name : "a device");
	return id;
}
