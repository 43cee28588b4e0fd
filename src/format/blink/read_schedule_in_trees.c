/* Trees of each rank, of a schedule file of version 3: of links, into each, or of edges. */
#include "format/blink/schedule_reader.h"

#include <string.h>

/* Numbers of links or edges. */
static Status
read_numbers(struct reader *r, const Doc *tree, int64_t *n_all, InTree *out)
{
	const Doc *numbers;
	bool edges = r->sched->n_edges > 0;
	int *number, most = edges ? r->topo->n_ranks : r->topo->n_vertices;
	TRY(need(r, tree, edges ? "edges" : "links", DOC_ARRAY, &numbers));
	TRY(count_within(r, numbers, most));
	*n_all += numbers->n;
	if (*n_all > LIMIT_IN_LINKS)
		return doc_fail(r->ctx, r->label, numbers, LIMIT, "more than %d %s in all trees", LIMIT_IN_LINKS,
		    edges ? "edges" : "links");
	TRY(NEW(r->ctx, number, numbers->n));
	for (int i = 0; i < numbers->n; i++)
		TRY(read_int(r, numbers->child[i], 0, (edges ? r->sched->n_edges : r->topo->n_links) - 1, &number[i]));
	out->n_links = numbers->n;
	out->link = number;
	return OK;
}

static Status
read_in_tree(struct reader *r, const Doc *at, int64_t *n_numbers, InTree *out)
{
	static const char want_part[] = "a fraction \"p/q\" of a block in lowest terms, 0/1 to 1/1";
	const Doc *span, *root;
	if (at->kind != DOC_OBJECT)
		return bad(r, at, "not an object", "a tree");
	TRY(need(r, at, "root", DOC_NUMBER, &root));
	TRY(read_int(r, root, 0, r->topo->n_ranks - 1, &out->root));
	TRY(need(r, at, "segment", DOC_ARRAY, &span));
	if (span->n != 2)
		return bad(r, span, "not two fractions", "[offset, length]");
	TRY(read_fraction(r, span->child[0], 1, want_part, &out->offset));
	TRY(read_fraction(r, span->child[1], 1, want_part, &out->length));
	return read_numbers(r, at, n_numbers, out);
}

/* There are no members that speak of segments, and edges only where trees have these. */
static Status
check_members(struct reader *r, const Doc *root)
{
	Collective coll = r->sched->coll;
	static const char *const other[] = { "parts", "symmetry", "matrix" };
	for (int i = 0; i < 3; i++)
		if (doc_get(root, other[i]))
			return bad(r, doc_get(root, other[i]), "with trees of each rank", "none in version 3");
	if (coll == ALLTOALL && doc_get(root, "edges"))
		return bad(r, doc_get(root, "edges"), "of an alltoall", "none: its trees have links");
	return coll == ALLTOALL || coll == ALLGATHER || coll == REDUCESCATTER ? OK : doc_want(r->ctx, r->label,
	    doc_get(root, "collective"), "alltoall, allgather or reducescatter, with trees of each rank");
}

/* One by one, what their tokens do not tell. */
static Status
read_edges(struct reader *r, Edge *out)
{
	int *own, *link;
	TRY(TEMP(r->ctx, own, LIMIT_ROUTE_LINKS));
	for (int e = 0; e < r->edges.n; e++) {
		ArenaMark mark = arena_mark(&r->ctx->scratch);
		const Doc *at;
		TRY(doc_list_next(r->ctx, r->label, &r->edges, &at));
		TRY(schedule_read_edge(r, at, own, &out[e]));
		arena_release(&r->ctx->scratch, mark);
		TRY(NEW(r->ctx, link, out[e].n_links));
		out[e].link = memcpy(link, own, (size_t)out[e].n_links * sizeof *link);
	}
	return OK;
}

static Status
read_table(struct reader *r, const Doc *root)
{
	const Doc *edges;
	Edge *edge;
	bool done;
	if (r->sched->coll == ALLTOALL)
		return OK;
	TRY(need(r, root, "edges", DOC_ARRAY, &edges));
	if (r->edges.n == 0)
		return bad(r, edges, "no edge", "at least one");
	TRY(within(r, edges, r->edges.n, LIMIT_TREE_EDGES));
	TRY(schedule_edge_tokens(r, &edge, &done));
	if (!done) {
		TRY(NEW(r->ctx, edge, r->edges.n));
		TRY(read_edges(r, edge));
	}
	r->sched->n_edges = r->edges.n;
	r->sched->edge = edge;
	return OK;
}

Status
schedule_read_in_trees(struct reader *r, const Doc *root)
{
	const Doc *trees;
	InTree *tree;
	int64_t n_numbers = 0;
	TRY(check_members(r, root));
	TRY(read_table(r, root));
	TRY(need(r, root, "trees", DOC_ARRAY, &trees));
	TRY(within(r, trees, r->trees.n, LIMIT_TREES));
	TRY(NEW(r->ctx, tree, r->trees.n));
	for (int t = 0; t < r->trees.n; t++) {
		const Doc *at;
		ArenaMark mark = arena_mark(&r->ctx->scratch);
		TRY(doc_list_next(r->ctx, r->label, &r->trees, &at));
		TRY(read_in_tree(r, at, &n_numbers, &tree[t]));
		arena_release(&r->ctx->scratch, mark);
	}
	r->sched->n_in_trees = r->trees.n;
	r->sched->in_tree = tree;
	return OK;
}
