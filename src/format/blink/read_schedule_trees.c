/* The trees of a schedule file, and its parts. */
#include "format/blink/schedule_reader.h"
#include "base/sort.h"

/* ---- trees ---- */

/* Links of all edges that are well formed: read_edges refuses the others. */
static size_t
count_links(const Doc *edges)
{
	size_t n = 0;
	for (int e = 0; e < edges->n; e++) {
		const Doc *edge = edges->child[e];
		if (edge->kind == DOC_ARRAY && edge->n == 3 && edge->child[2]->n <= LIMIT_ROUTE_LINKS)
			n += (size_t)edge->child[2]->n;
	}
	return n;
}

Status
schedule_read_edge(struct reader *r, const Doc *at, int *link, Edge *out)
{
	if (at->kind != DOC_ARRAY || at->n != 3 || at->child[2]->kind != DOC_ARRAY)
		return bad(r, at, "not an edge", "[src, dst, [link, ...]]");
	TRY(read_int(r, at->child[0], 0, r->topo->n_ranks - 1, &out->src));
	TRY(read_int(r, at->child[1], 0, r->topo->n_ranks - 1, &out->dst));
	TRY(count_within(r, at->child[2], LIMIT_ROUTE_LINKS));
	for (int i = 0; i < at->child[2]->n; i++)
		TRY(read_int(r, at->child[2]->child[i], 0, r->topo->n_links - 1, &link[i]));
	out->n_links = at->child[2]->n;
	out->link = link;
	return OK;
}

static Status
read_edges(struct reader *r, const Doc *tree, const char *phase, Edge **out, int *n)
{
	const Doc *edges = doc_get(tree, phase);
	int *link;
	*n = 0;
	if (!edges)
		return OK;
	TRY(need(r, tree, phase, DOC_ARRAY, &edges));
	TRY(count_within(r, edges, LIMIT_RANKS));
	r->n_edges += edges->n;
	if (r->n_edges > LIMIT_TREE_EDGES)
		return doc_fail(r->ctx, r->label, edges, LIMIT, "more than %d edges in all trees", LIMIT_TREE_EDGES);
	TRY(NEW(r->ctx, *out, edges->n));
	TRY(NEW(r->ctx, link, count_links(edges)));
	for (int e = 0; e < edges->n; e++) {
		TRY(schedule_read_edge(r, edges->child[e], link, &(*out)[e]));
		link += (*out)[e].n_links;
	}
	*n = edges->n;
	return OK;
}

static Status
read_to(struct reader *r, const Doc *tree, Segment *segment)
{
	const Doc *to = doc_get(tree, "to");
	if (!to)
		return OK;
	TRY(need(r, tree, "to", DOC_ARRAY, &to));
	TRY(count_within(r, to, r->topo->n_ranks));
	if (to->n == 0)
		return bad(r, to, "no rank", "at least one, or no \"to\"");
	TRY(NEW(r->ctx, segment->to, to->n));
	for (int i = 0; i < to->n; i++)
		TRY(read_int(r, to->child[i], 0, r->topo->n_ranks - 1, &segment->to[i]));
	segment->n_to = to->n;
	sort_array(segment->to, to->n, sizeof *segment->to, order_of_ints);
	return OK;
}

static Status
read_tree(struct reader *r, const Doc *at, Segment *segment)
{
	const Doc *span, *root, *part;
	if (at->kind != DOC_OBJECT)
		return bad(r, at, "not an object", "a tree");
	TRY(need(r, at, "segment", DOC_ARRAY, &span));
	if (span->n != 2)
		return bad(r, span, "not two fractions", "[offset, length]");
	static const char want_part[] = "a fraction \"p/q\" of the buffer in lowest terms, 0/1 to 1/1";
	TRY(read_fraction(r, span->child[0], 1, want_part, &segment->offset));
	TRY(read_fraction(r, span->child[1], 1, want_part, &segment->length));
	TRY(need(r, at, "root", DOC_NUMBER, &root));
	TRY(read_int(r, root, 0, r->topo->n_ranks - 1, &segment->tree.root));
	if (r->sched->n_parts) {
		TRY(need(r, at, "part", DOC_NUMBER, &part));
		TRY(read_int(r, part, 0, r->sched->n_parts - 1, &segment->part));
	}
	TRY(read_edges(r, at, "down", &segment->tree.down, &segment->tree.n_down));
	TRY(read_edges(r, at, "up", &segment->tree.up, &segment->tree.n_up));
	return read_to(r, at, segment);
}

Status
schedule_read_trees(struct reader *r, const Doc *root)
{
	const Doc *trees;
	TRY(need(r, root, "trees", DOC_ARRAY, &trees));
	TRY(within(r, trees, r->trees.n, LIMIT_TREES));
	r->sched->n_segments = r->trees.n;
	TRY(NEW(r->ctx, r->sched->segment, r->trees.n));
	for (int t = 0; t < r->trees.n; t++) {
		const Doc *tree;
		bool done;
		TRY(schedule_tree_tokens(r, &r->sched->segment[t], &done));
		if (done)
			continue;
		ArenaMark mark = arena_mark(&r->ctx->scratch);
		TRY(doc_list_next(r->ctx, r->label, &r->trees, &tree));
		TRY(read_tree(r, tree, &r->sched->segment[t]));
		arena_release(&r->ctx->scratch, mark);
	}
	return OK;
}

/* ---- parts ---- */

static Status
read_classes(struct reader *r, const Doc *links, unsigned *out)
{
	*out = 0;
	for (int i = 0; i < links->n; i++) {
		LinkClass class;
		if (links->child[i]->kind != DOC_STRING || !link_class_parse(links->child[i]->text, &class))
			return doc_want(r->ctx, r->label, links->child[i], names_wanted(link_class_names).text);
		if (*out >> class & 1)
			return doc_want(r->ctx, r->label, links->child[i], "each class once");
		*out |= 1u << class;
	}
	return OK;
}

Status
schedule_read_parts(struct reader *r, const Doc *root)
{
	const Doc *parts = doc_get(root, "parts"), *links, *rate, *setup;
	if (!parts)
		return OK;
	TRY(need(r, root, "parts", DOC_ARRAY, &parts));
	TRY(count_within(r, parts, N_LINK_CLASSES));
	if (parts->n == 0)
		return bad(r, parts, "no part", "at least one, or no \"parts\"");
	r->sched->n_parts = parts->n;
	TRY(NEW(r->ctx, r->sched->part, parts->n));
	for (int i = 0; i < parts->n; i++) {
		const Doc *at = parts->child[i];
		Part *part = &r->sched->part[i];
		if (at->kind != DOC_OBJECT)
			return bad(r, at, "not an object", "{ \"links\", \"rate\", \"setup\" }");
		TRY(need(r, at, "links", DOC_ARRAY, &links));
		TRY(need(r, at, "rate", DOC_NUMBER, &rate));
		TRY(need(r, at, "setup", DOC_NUMBER, &setup));
		TRY(read_classes(r, links, &part->classes));
		TRY(doc_scaled(r->ctx, r->label, setup, NS_PER_US, 0, LIMIT_SETUP_NS, "us", &part->setup));
		part->stated_rate = rate->number;
	}
	return OK;
}
