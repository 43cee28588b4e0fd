/* The machine of an index: its canonical topology, as topo_canonical_text writes it, whose digest is that of the
 * index. */
#include "format/doc.h"
#include "format/blink/index_reader.h"
#include "topology/topology.h"

#include <string.h>

struct reader {
	Ctx *ctx;
	const char *label;
	Topology *topo;
};

static Status
fail_entry(const struct reader *r, const Doc *at, const char *want)
{
	return doc_want(r->ctx, r->label, at, want);
}

static Status
take_int(const struct reader *r, const Doc *array, int i, int64_t lo, int64_t hi, int64_t *out)
{
	if (i >= array->n || array->child[i]->kind != DOC_NUMBER)
		return fail_entry(r, i < array->n ? array->child[i] : array, "numbers");
	return doc_int(r->ctx, r->label, array->child[i], lo, hi, out);
}

static bool
find_kind(const char *text, VertexKind *out)
{
	for (int k = 0; k < N_VERTEX_KINDS; k++)
		if (strcmp(vertex_kind_name((VertexKind)k), text) == 0) {
			*out = (VertexKind)k;
			return true;
		}
	return false;
}

/* [ID, KIND, SERVER, "multicast", "reduce"] */
static Status
read_vertex(const struct reader *r, const Doc *at, Vertex *out)
{
	int64_t node;
	if (at->kind != DOC_ARRAY || at->n < 3 || at->n > 5 || at->child[0]->kind != DOC_STRING
	    || at->child[1]->kind != DOC_STRING || !find_kind(at->child[1]->text, &out->kind))
		return fail_entry(r, at, "a vertex, as [\"gpu0\",\"gpu\",0]");
	out->id = at->child[0]->text;
	TRY(take_int(r, at, 2, -1, r->topo->n_nodes - 1, &node));
	out->node = (int)node;
	for (int i = 3; i < at->n; i++) {
		const Doc *word = at->child[i];
		bool multicast = word->kind == DOC_STRING && strcmp(word->text, "multicast") == 0;
		if (!multicast && (word->kind != DOC_STRING || strcmp(word->text, "reduce") != 0))
			return fail_entry(r, word, "\"multicast\" or \"reduce\"");
		*(multicast ? &out->multicast : &out->reduce) = true;
	}
	return OK;
}

/* [FROM, TO, CLASS, COUNT, bytes/s, ns] */
static Status
read_link(const struct reader *r, const Doc *at, Link *out)
{
	int64_t value[5];
	static const int place[5] = { 0, 1, 3, 4, 5 };
	const int64_t most[5] = { r->topo->n_vertices - 1, r->topo->n_vertices - 1, LIMIT_LINK_COUNT,
	    INT64_C(1) << 53, LIMIT_LATENCY_NS };
	if (at->kind != DOC_ARRAY || at->n != 6 || at->child[2]->kind != DOC_STRING
	    || !link_class_parse(at->child[2]->text, &out->class))
		return fail_entry(r, at, "a link, as [0,1,\"nvlink\",1,25000000000,0]");
	for (int i = 0; i < 5; i++)
		TRY(take_int(r, at, place[i], i == 2 ? 1 : 0, most[i], &value[i]));
	if (value[3] % value[2])
		return fail_entry(r, at->child[4], "a multiple of the number of links");
	out->from = (int)value[0];
	out->to = (int)value[1];
	out->count = (int)value[2];
	out->capacity = value[3];
	out->latency = value[4];
	return OK;
}

static Status
read_nodes(struct reader *r, const Doc *list)
{
	Topology *topo = r->topo;
	TRY(NEW(r->ctx, topo->node, list->n));
	for (int i = 0; i < list->n; i++) {
		if (list->child[i]->kind != DOC_STRING)
			return fail_entry(r, list->child[i], "the id of a server");
		topo->node[topo->n_nodes++] = list->child[i]->text;
	}
	return OK;
}

static Status
read_all(struct reader *r, const Doc *machine)
{
	const Doc *nodes, *vertices, *links;
	Topology *topo = r->topo;
	TRY(doc_need(r->ctx, r->label, machine, "nodes", DOC_ARRAY, &nodes));
	TRY(doc_need(r->ctx, r->label, machine, "vertices", DOC_ARRAY, &vertices));
	TRY(doc_need(r->ctx, r->label, machine, "links", DOC_ARRAY, &links));
	if (nodes->n > LIMIT_NODES || vertices->n > LIMIT_VERTICES || links->n > LIMIT_LINKS)
		return doc_fail(r->ctx, r->label, machine, LIMIT, "a machine larger than topologies may be");
	TRY(read_nodes(r, nodes));
	TRY(NEW(r->ctx, topo->vertex, vertices->n));
	TRY(NEW(r->ctx, topo->link, links->n));
	topo->n_vertices = vertices->n;
	topo->n_links = links->n;
	for (int v = 0; v < vertices->n; v++) {
		TRY(read_vertex(r, vertices->child[v], &topo->vertex[v]));
		topo->n_ranks += topo->vertex[v].kind == VERTEX_GPU;
	}
	for (int v = 0; v < topo->n_vertices; v++)
		if ((topo->vertex[v].kind == VERTEX_GPU) != (v < topo->n_ranks))
			return fail_entry(r, vertices->child[v], "GPUs first");
	for (int l = 0; l < links->n; l++)
		TRY(read_link(r, links->child[l], &topo->link[l]));
	return OK;
}

Status
index_read_machine(Ctx *ctx, const char *label, const Doc *machine, Index *index)
{
	struct reader r = { .ctx = ctx, .label = label };
	TRY(NEW(ctx, r.topo, 1));
	TRY(read_all(&r, machine));
	r.topo->name = index->name;
	TRY(topo_check(ctx, label, r.topo));
	TRY(topo_digest(ctx, r.topo, &r.topo->digest));
	if (strcmp(r.topo->digest, index->digest) != 0)
		return doc_fail(ctx, label, machine, BAD_INPUT, "its digest is %.80s: want that of the index, %.80s",
		    r.topo->digest, index->digest);
	TRY(topo_index(ctx, r.topo));
	index->machine = r.topo;
	return OK;
}
