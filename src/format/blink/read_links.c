/* Links of a topology file: those of files by reference, of fabrics, and its own. */
#include "format/blink/topology_reader.h"

#include <string.h>

static Status
read_duplex(struct reading *r, const Doc *object, bool *full)
{
	const char *text = "full";
	if (doc_get(object, "duplex"))
		TRY(doc_string(r->ctx, r->label, object, "duplex", &text));
	*full = strcmp(text, "full") == 0;
	if (!*full && strcmp(text, "simplex") != 0)
		return doc_want(r->ctx, r->label, doc_get(object, "duplex"), "\"full\" or \"simplex\"");
	return OK;
}

static Status
read_end(struct reading *r, const Doc *object, const char *member, int *out)
{
	const char *id;
	TRY(doc_string(r->ctx, r->label, object, member, &id));
	*out = vertex_find(r, id);
	if (*out < 0)
		return doc_want(r->ctx, r->label, doc_get(object, member),
		    "the id of a GPU, CPU, switch or NIC of this file");
	return OK;
}

/* Capacity of all physical links of the bundle, and latency: the link's own, or its class's. */
static Status
read_numbers(struct reading *r, const Doc *object, Link *link)
{
	const ClassDefault *given = &r->topo->class[link->class];
	link->capacity = given->capacity;
	link->latency = given->latency;
	TRY(read_capacity(r, object, &link->capacity));
	if (link->capacity == 0)
		return doc_missing(r->ctx, r->label, object, "capacity", "a number (GB/s), here or in its class");
	TRY(read_latency(r, object, &link->latency));
	link->capacity *= link->count;
	return OK;
}

static Status
read_link(struct reading *r, const Doc *object, Link *link)
{
	static const char *const members[] = { "from", "to", "class", "count", "capacity", "latency", "duplex",
	    "source", "assumed", NULL };
	TRY(doc_only(r->ctx, r->label, object, members));
	TRY(read_end(r, object, "from", &link->from));
	TRY(read_end(r, object, "to", &link->to));
	if (link->from == link->to)
		return doc_want(r->ctx, r->label, doc_get(object, "to"), "a vertex other than \"from\"");
	TRY(read_class_name(r, object, "class", &link->class));
	TRY(read_count(r, object, LIMIT_LINK_COUNT, &link->count));
	TRY(read_numbers(r, object, link));
	TRY(read_flag(r, object, "assumed", &link->assumed));
	return read_source(r, object, &link->source);
}

/* Before links are allocated: one or two for each entry. */
static Status
count_links(struct reading *r, const Doc *links)
{
	int64_t n = r->n_grafted + fabrics_links(r);
	bool full;
	for (int i = 0; i < links->n; i++) {
		TRY(read_duplex(r, links->child[i], &full));
		n += full ? 2 : 1;
	}
	if (n > LIMIT_LINKS)
		return doc_fail(r->ctx, r->label, links->n ? links : r->root, LIMIT,
		    "%lld links, one for each direction: want at most %d", (long long)n, LIMIT_LINKS);
	r->topo->n_links = (int)n;
	return OK;
}

/* Links of files by reference, of fabrics, then the file's own. */
Status
links_read(struct reading *r)
{
	const Doc *links;
	bool full;
	TRY(read_children(r, r->root, "links", &links));
	TRY(count_links(r, links));
	TRY(NEW(r->ctx, r->topo->link, r->topo->n_links));
	Link *link = r->topo->link;
	if (r->n_grafted)
		memcpy(link, r->grafted, (size_t)r->n_grafted * sizeof *link);
	link += r->n_grafted;
	TRY(fabrics_link(r, link));
	link += fabrics_links(r);
	for (int i = 0; i < links->n; i++, link++) {
		const Doc *object = links->child[i];
		TRY(read_link(r, object, link));
		TRY(read_duplex(r, object, &full));
		TRY(read_capacity_sum(r, object, link->capacity * (full ? 2 : 1)));
		if (full) {
			link[1] = link[0];
			link[1].from = link->to;
			link[1].to = link->from;
			link++;
		}
	}
	return OK;
}
