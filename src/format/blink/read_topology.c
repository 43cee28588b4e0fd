/* A topology file (blink-topology(5)) to a Topology. One reader serves both spellings, since doc_read_xml gives what
 * doc_read_json gives. Errors are reported here, where their place in the file is known; topo_check then holds the
 * invariants of the result. */
#include "format/blink/topology_reader.h"
#include "format/file_kind.h"
#include "topology/topology.h"

#include <stdlib.h>
#include <string.h>

static const char *const plural[] = {
	"note", "notes",
	"class", "classes", "node", "nodes", "fabric", "fabrics", "link", "links", "peer_access", "peer_accesses",
#define X(name, one, many) one, many,
	VERTEX_LIST(X)
#undef X
	NULL
};

/* ---- head and classes ---- */

/* Files of other tools are named before (file_kind.h). */
static Status
check_root(struct reading *r)
{
	const Doc *root = r->root;
	if (root->kind != DOC_OBJECT)
		return doc_want(r->ctx, r->label, root, "an object");
	if (root->line && strcmp(root->text, "topology") != 0)
		return doc_fail(r->ctx, r->label, root, BAD_INPUT,
		    "unknown element: want a <topology format=\"blink-topology\"> element");
	return OK;
}

/* Strings in JSON, elements with a text in XML. */
static Status
read_notes(struct reading *r)
{
	static const char *const members[] = { "text", NULL };
	const Doc *list = doc_get(r->root, "notes");
	bool xml = r->root->line > 0;
	if (!list)
		return OK;
	TRY(doc_need(r->ctx, r->label, r->root, "notes", DOC_ARRAY, &list));
	if (list->n > LIMIT_NOTES)
		return doc_fail(r->ctx, r->label, list, LIMIT, "%d notes: want at most %d", list->n, LIMIT_NOTES);
	TRY(NEW(r->ctx, r->topo->note, list->n));
	for (int i = 0; i < list->n; i++) {
		const Doc *entry = list->child[i];
		if (xml)
			TRY(doc_only(r->ctx, r->label, entry, members));
		TRY(xml ? read_text(r, entry, "text", &r->topo->note[i]) : read_line(r, entry, &r->topo->note[i]));
	}
	r->topo->n_notes = r->room_notes = list->n;
	return OK;
}

static Status
read_head(struct reading *r)
{
	static const char *const members[] = { "format", "version", "name", "source", "gpu_model", "notes", "classes",
		"nodes", "switches", "fabrics", "links", "peer_accesses", "parameters", NULL };
	int64_t version;
	TRY(check_root(r));
	TRY(doc_format(r->ctx, r->label, r->root, "blink-topology"));
	const Doc *at = doc_get(r->root, "version");
	if (!at)
		return doc_missing(r->ctx, r->label, r->root, "version", "1");
	TRY(doc_int(r->ctx, r->label, at, 1, 1, &version));
	TRY(doc_only(r->ctx, r->label, r->root, members));
	TRY(read_text(r, r->root, "name", &r->topo->name));
	TRY(read_source(r, r->root, &r->topo->source));
	if (doc_get(r->root, "gpu_model"))
		TRY(read_text(r, r->root, "gpu_model", &r->topo->gpu_model));
	return read_notes(r);
}

static Status
read_class(struct reading *r, const Doc *object)
{
	static const char *const members[] = { "name", "capacity", "latency", "source", NULL };
	LinkClass class;
	TRY(doc_only(r->ctx, r->label, object, members));
	TRY(read_class_name(r, object, "name", &class));
	ClassDefault *given = &r->topo->class[class];
	if (given->given)
		return doc_fail(r->ctx, r->label, doc_get(object, "name"), BAD_INPUT,
		    "\"%s\": given twice: want each class once", link_class_name(class));
	given->given = true;
	TRY(read_capacity(r, object, &given->capacity));
	TRY(read_latency(r, object, &given->latency));
	return read_source(r, object, &given->source);
}

static Status
read_classes(struct reading *r)
{
	const Doc *classes;
	TRY(read_children(r, r->root, "classes", &classes));
	for (int i = 0; i < classes->n; i++)
		TRY(read_class(r, classes->child[i]));
	return OK;
}

static int
by_gpus(const void *a, const void *b)
{
	const PeerAccess *p = a, *q = b;
	return (p->gpus > q->gpus) - (p->gpus < q->gpus);
}

static Status
read_peer_access(struct reading *r, const Doc *object, PeerAccess *out)
{
	static const char *const members[] = { "gpus", "time", "source", NULL };
	int64_t gpus;
	TRY(doc_only(r->ctx, r->label, object, members));
	if (!doc_get(object, "gpus"))
		return doc_missing(r->ctx, r->label, object, "gpus", "a number of GPUs");
	if (!doc_get(object, "time"))
		return doc_missing(r->ctx, r->label, object, "time", "a number (us)");
	TRY(doc_int(r->ctx, r->label, doc_get(object, "gpus"), 2, LIMIT_RANKS, &gpus));
	TRY(doc_scaled(r->ctx, r->label, doc_get(object, "time"), NS_PER_US, 0, LIMIT_SETUP_NS, "us", &out->time));
	out->gpus = (int)gpus;
	return read_source(r, object, &out->source);
}

static Status
read_peer_accesses(struct reading *r)
{
	const Doc *list;
	bool *given;
	TRY(read_children(r, r->root, "peer_accesses", &list));
	/* Without them, those of the first file by reference that has some. */
	if (list->n == 0)
		return OK;
	TRY(TEMP(r->ctx, given, LIMIT_RANKS + 1));
	if (list->n > LIMIT_RANKS)
		return doc_fail(r->ctx, r->label, list, LIMIT, "%d entries: want at most %d", list->n, LIMIT_RANKS);
	TRY(NEW(r->ctx, r->topo->peer_access, list->n));
	for (int i = 0; i < list->n; i++) {
		PeerAccess *entry = &r->topo->peer_access[i];
		TRY(read_peer_access(r, list->child[i], entry));
		if (given[entry->gpus])
			return doc_fail(r->ctx, r->label, doc_get(list->child[i], "gpus"), BAD_INPUT,
			    "%d: given twice: want each number once", entry->gpus);
		given[entry->gpus] = true;
	}
	r->topo->n_peer_accesses = list->n;
	qsort(r->topo->peer_access, (size_t)list->n, sizeof *r->topo->peer_access, by_gpus);
	return OK;
}

/* ---- the whole ---- */

/* The first character that is not a blank; NUL: there is none. */
static char
first_character(const char *data, size_t size)
{
	size_t i = size >= 3 && memcmp(data, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
	while (i < size && strchr(" \t\r\n", data[i]) && data[i])
		i++;
	return i < size ? data[i] : 0;
}

bool
topo_is_xml(const char *data, size_t size)
{
	return first_character(data, size) == '<';
}

bool
topo_is_json(const char *data, size_t size)
{
	char first = first_character(data, size);
	return !first || strchr("{[]}\",:-0123456789tfn", first);
}

static Status
read_root(struct reading *r, Topology **out)
{
	TRY(NEW(r->ctx, r->topo, 1));
	TRY(read_head(r));
	TRY(read_classes(r));
	TRY(read_peer_accesses(r));
	TRY(parameters_member(r->ctx, r->label, r->root, &r->topo->parameters));
	TRY(vertices_read(r));
	TRY(links_read(r));
	TRY(topo_index(r->ctx, r->topo));
	TRY(topo_check(r->ctx, r->label, r->topo));
	TRY(topo_digest(r->ctx, r->topo, &r->topo->digest));
	*out = r->topo;
	return OK;
}

static Status
read_file(Ctx *ctx, const char *label, TopologyFiles *files, const char *data, size_t size, bool xml, Topology **out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	Doc *root;
	TRY(file_kind_check(ctx, label, data, size, FILE_TOPOLOGY));
	Status status = xml ? doc_read_xml(ctx, label, data, size, plural, &root)
	    : doc_read_json(ctx, label, data, size, &root);
	if (status == OK)
		status = read_root(&(struct reading){ .ctx = ctx, .label = label, .files = files, .root = root }, out);
	arena_release(&ctx->scratch, mark);
	return status;
}

Status
topo_read_json(Ctx *ctx, const char *label, TopologyFiles *files, const char *data, size_t size, Topology **out)
{
	return read_file(ctx, label, files, data, size, false, out);
}

Status
topo_read_xml(Ctx *ctx, const char *label, TopologyFiles *files, const char *data, size_t size, Topology **out)
{
	return read_file(ctx, label, files, data, size, true, out);
}
