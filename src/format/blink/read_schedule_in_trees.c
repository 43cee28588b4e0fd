/* Trees into each rank, of a schedule file of version 3. */
#include "format/blink/schedule_reader.h"

static Status
read_links(struct reader *r, const Doc *tree, int64_t *n_all, InTree *out)
{
	const Doc *links;
	int *link;
	TRY(need(r, tree, "links", DOC_ARRAY, &links));
	TRY(count_within(r, links, r->topo->n_vertices));
	*n_all += links->n;
	if (*n_all > LIMIT_IN_LINKS)
		return doc_fail(r->ctx, r->label, links, LIMIT, "more than %d links in all trees", LIMIT_IN_LINKS);
	TRY(NEW(r->ctx, link, links->n));
	for (int i = 0; i < links->n; i++)
		TRY(read_int(r, links->child[i], 0, r->topo->n_links - 1, &link[i]));
	out->n_links = links->n;
	out->link = link;
	return OK;
}

static Status
read_in_tree(struct reader *r, const Doc *at, int64_t *n_links, InTree *out)
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
	return read_links(r, at, n_links, out);
}

/* There are no members that speak of segments. */
static Status
check_members(struct reader *r, const Doc *root)
{
	static const char *const other[] = { "parts", "symmetry", "matrix" };
	for (int i = 0; i < 3; i++)
		if (doc_get(root, other[i]))
			return bad(r, doc_get(root, other[i]), "with trees into each rank", "none in version 3");
	return OK;
}

Status
schedule_read_in_trees(struct reader *r, const Doc *root)
{
	const Doc *trees;
	InTree *tree;
	int64_t n_links = 0;
	TRY(check_members(r, root));
	TRY(need(r, root, "trees", DOC_ARRAY, &trees));
	TRY(within(r, trees, r->trees.n, LIMIT_TREES));
	TRY(NEW(r->ctx, tree, r->trees.n));
	for (int t = 0; t < r->trees.n; t++) {
		const Doc *at;
		ArenaMark mark = arena_mark(&r->ctx->scratch);
		TRY(doc_list_next(r->ctx, r->label, &r->trees, &at));
		TRY(read_in_tree(r, at, &n_links, &tree[t]));
		arena_release(&r->ctx->scratch, mark);
	}
	r->sched->n_in_trees = r->trees.n;
	r->sched->in_tree = tree;
	return OK;
}
