/* Reader of the schedule file (blink-schedule(5)). Members that it does not know are left alone: "fields may be
 * added". Everything that it does know is checked here or in sched_check before anyone uses it. */
#include "read/doc.h"

#include "passes.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

struct reader {
	Ctx *ctx;
	const char *label;
	Topology *topo;
	Schedule *sched;
	struct named { const char *id; int vertex; } *named;	/* switches and NICs by id, ascending */
	int n_named;
	DocList trees;
	int n_edges;		/* of all trees so far */
};

static Status
bad(struct reader *r, const Doc *at, const char *found, const char *want)
{
	return doc_fail(r->ctx, r->label, at, BAD_INPUT, "%.80s: want %s", found, want);
}

static Status
read_int(struct reader *r, const Doc *at, int lo, int hi, int *out)
{
	int64_t value;
	TRY(doc_int(r->ctx, r->label, at, lo, hi, &value));
	*out = (int)value;
	return OK;
}

static Status
need(struct reader *r, const Doc *object, const char *name, DocKind kind, const Doc **out)
{
	return doc_need(r->ctx, r->label, object, name, kind, out);
}

static Status
within(struct reader *r, const Doc *array, int n, int limit)
{
	return n <= limit ? OK : doc_fail(r->ctx, r->label, array, LIMIT, "%d entries: want at most %d", n, limit);
}

static Status
count_within(struct reader *r, const Doc *array, int limit)
{
	return within(r, array, array->n, limit);
}

/* ---- topology ---- */

static Status
read_ranks(struct reader *r, const Doc *ranks)
{
	Topology *topo = r->topo;
	TRY(count_within(r, ranks, LIMIT_RANKS));
	if (ranks->n == 0)
		return bad(r, ranks, "no rank", "at least 2");
	topo->n_ranks = ranks->n;
	TRY(NEW(r->ctx, topo->node, ranks->n));
	for (int i = 0; i < ranks->n; i++) {
		const char *node;
		int s = topo->n_nodes - 1;
		if (ranks->child[i]->kind != DOC_OBJECT)
			return bad(r, ranks->child[i], "not an object", "{ \"gpu\": id, \"node\": id }");
		TRY(doc_string(r->ctx, r->label, ranks->child[i], "gpu", &topo->vertex[i].id));
		TRY(doc_string(r->ctx, r->label, ranks->child[i], "node", &node));
		topo->vertex[i].kind = VERTEX_GPU;
		while (s >= 0 && strcmp(topo->node[s], node) != 0)
			s--;
		if (s < 0) {
			topo->node[topo->n_nodes] = node;
			s = topo->n_nodes++;
		}
		topo->vertex[i].node = s;
	}
	return OK;
}

static int
by_id(const void *a, const void *b)
{
	const struct named *m = a, *n = b;
	int order = strcmp(m->id, n->id);
	return order ? order : (m->vertex > n->vertex) - (m->vertex < n->vertex);
}

static int
by_vertex(const void *a, const void *b)
{
	const struct named *m = a, *n = b;
	return (m->vertex > n->vertex) - (m->vertex < n->vertex);
}

/* Every string among the ends of links is a switch or NIC; numbered in order of first appearance. */
static Status
read_switches(struct reader *r, const Doc *links)
{
	Topology *topo = r->topo;
	struct named *named;
	int n = 0, unique = 0;
	TRY(TEMP(r->ctx, named, 2 * (size_t)links->n));
	for (int l = 0; l < links->n; l++) {
		static const char *const ends[] = { "from", "to" };
		for (int e = 0; e < 2; e++) {
			const Doc *end = doc_get(links->child[l], ends[e]);
			if (end && end->kind == DOC_STRING)
				named[n++] = (struct named){ end->text, 2 * l + e };
		}
	}
	qsort(named, (size_t)n, sizeof *named, by_id);
	for (int i = 0; i < n; i++)
		if (i == 0 || strcmp(named[i].id, named[i - 1].id) != 0)
			named[unique++] = named[i];
	if (unique > LIMIT_VERTICES - topo->n_ranks)
		return doc_fail(r->ctx, r->label, links, LIMIT, "%d vertices: want at most %d", topo->n_ranks + unique,
		    LIMIT_VERTICES);
	topo->n_vertices = topo->n_ranks + unique;
	Vertex *vertex;
	TRY(NEW(r->ctx, vertex, topo->n_vertices));
	memcpy(vertex, topo->vertex, (size_t)topo->n_ranks * sizeof *vertex);
	topo->vertex = vertex;
	qsort(named, (size_t)unique, sizeof *named, by_vertex);
	for (int i = 0; i < unique; i++) {
		named[i].vertex = topo->n_ranks + i;
		vertex[named[i].vertex] = (Vertex){ .id = named[i].id, .kind = VERTEX_SWITCH, .node = -1 };
	}
	qsort(named, (size_t)unique, sizeof *named, by_id);
	r->named = named;
	r->n_named = unique;
	return OK;
}

/* A rank, or the id of a switch that a link names. */
static Status
read_vertex(struct reader *r, const Doc *at, int *out)
{
	if (at->kind != DOC_STRING)
		return read_int(r, at, 0, r->topo->n_ranks - 1, out);
	int lo = 0, hi = r->n_named;
	while (lo < hi) {
		int mid = (lo + hi) / 2;
		if (strcmp(r->named[mid].id, at->text) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo == r->n_named || strcmp(r->named[lo].id, at->text) != 0)
		return bad(r, at, doc_found(at).text, "a rank or a switch of topology.links");
	*out = r->named[lo].vertex;
	return OK;
}

/* A member that must be there, of whatever kind. */
static Status
need_any(struct reader *r, const Doc *object, const char *name, const Doc **out)
{
	*out = doc_get(object, name);
	return *out ? OK : doc_fail(r->ctx, r->label, object, BAD_INPUT, "no \"%s\"", name);
}

static Status
read_links(struct reader *r, const Doc *links)
{
	Topology *topo = r->topo;
	TRY(count_within(r, links, LIMIT_LINKS));
	for (int l = 0; l < links->n; l++)
		if (links->child[l]->kind != DOC_OBJECT)
			return bad(r, links->child[l], "not an object", "{ \"from\", \"to\", \"class\", \"capacity\", \"latency\" }");
	TRY(read_switches(r, links));
	topo->n_links = links->n;
	TRY(NEW(r->ctx, topo->link, links->n));
	for (int l = 0; l < links->n; l++) {
		Link *link = &topo->link[l];
		const Doc *at = links->child[l], *from, *to, *capacity, *latency;
		const char *class;
		TRY(need_any(r, at, "from", &from));
		TRY(need_any(r, at, "to", &to));
		TRY(need_any(r, at, "capacity", &capacity));
		TRY(need_any(r, at, "latency", &latency));
		TRY(read_vertex(r, from, &link->from));
		TRY(read_vertex(r, to, &link->to));
		TRY(doc_string(r->ctx, r->label, at, "class", &class));
		if (!link_class_parse(class, &link->class))
			return bad(r, doc_get(at, "class"), doc_found(doc_get(at, "class")).text,
			    "nvlink, xgmi, c2c, pcie, qpi or net");
		/* Here a capacity is that of all physical links together. */
		link->count = 1;
		TRY(doc_scaled(r->ctx, r->label, capacity, BYTES_PER_GB, LIMIT_CAPACITY_MIN,
		    LIMIT_CAPACITY_MAX * LIMIT_LINK_COUNT, "GB/s", &link->capacity));
		TRY(doc_scaled(r->ctx, r->label, latency, NS_PER_US, 0, LIMIT_LATENCY_NS, "us", &link->latency));
	}
	return OK;
}

static Status
read_flag(struct reader *r, const Doc *object, const char *name, bool *out)
{
	const Doc *at = doc_get(object, name);
	if (at && at->kind != DOC_BOOL)
		return bad(r, at, doc_found(at).text, "true or false");
	*out = at && at->flag;
	return OK;
}

/* What switches can do beyond forwarding; those that are not named can do nothing more. */
static Status
read_abilities(struct reader *r, const Doc *topology)
{
	const Doc *switches = doc_get(topology, "switches"), *id;
	if (!switches)
		return OK;
	TRY(need(r, topology, "switches", DOC_ARRAY, &switches));
	for (int i = 0; i < switches->n; i++) {
		int v;
		if (switches->child[i]->kind != DOC_OBJECT)
			return bad(r, switches->child[i], "not an object", "{ \"id\": id, \"multicast\": true, \"reduce\": true }");
		TRY(need(r, switches->child[i], "id", DOC_STRING, &id));
		TRY(read_vertex(r, id, &v));
		TRY(read_flag(r, switches->child[i], "multicast", &r->topo->vertex[v].multicast));
		TRY(read_flag(r, switches->child[i], "reduce", &r->topo->vertex[v].reduce));
	}
	return OK;
}

static Status
read_topology(struct reader *r, const Doc *root)
{
	const Doc *at, *ranks, *links;
	TRY(need(r, root, "topology", DOC_OBJECT, &at));
	TRY(doc_string(r->ctx, r->label, at, "name", &r->topo->name));
	TRY(doc_string(r->ctx, r->label, at, "digest", &r->topo->digest));
	TRY(need(r, at, "ranks", DOC_ARRAY, &ranks));
	TRY(need(r, at, "links", DOC_ARRAY, &links));
	TRY(TEMP(r->ctx, r->topo->vertex, ranks->n));
	TRY(read_ranks(r, ranks));
	TRY(read_links(r, links));
	TRY(read_abilities(r, at));
	return topo_index(r->ctx, r->topo);
}

/* ---- trees ---- */

/* Links of all edges together, as far as they are well formed: read_edges refuses what is not. */
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
		const Doc *at = edges->child[e];
		Edge *edge = &(*out)[e];
		if (at->kind != DOC_ARRAY || at->n != 3 || at->child[2]->kind != DOC_ARRAY)
			return bad(r, at, "not an edge", "[src, dst, [link, ...]]");
		TRY(read_int(r, at->child[0], 0, r->topo->n_ranks - 1, &edge->src));
		TRY(read_int(r, at->child[1], 0, r->topo->n_ranks - 1, &edge->dst));
		TRY(count_within(r, at->child[2], LIMIT_ROUTE_LINKS));
		for (int i = 0; i < at->child[2]->n; i++)
			TRY(read_int(r, at->child[2]->child[i], 0, r->topo->n_links - 1, &link[i]));
		edge->n_links = at->child[2]->n;
		edge->link = link;
		link += edge->n_links;
	}
	*n = edges->n;
	return OK;
}

static int
ascending(const void *a, const void *b)
{
	const int *x = a, *y = b;
	return (*x > *y) - (*x < *y);
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
	qsort(segment->to, (size_t)to->n, sizeof *segment->to, ascending);
	return OK;
}

static Status
read_fraction(struct reader *r, const Doc *at, int64_t most, const char *want, Frac *out)
{
	if (at->kind != DOC_STRING || !frac_parse(at->text, out) || frac_cmp(*out, (Frac){ most, 1 }) > 0)
		return bad(r, at, doc_found(at).text, want);
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

static Status
read_trees(struct reader *r, const Doc *root)
{
	const Doc *trees;
	TRY(need(r, root, "trees", DOC_ARRAY, &trees));
	TRY(within(r, trees, r->trees.n, LIMIT_TREES));
	r->sched->n_segments = r->trees.n;
	TRY(NEW(r->ctx, r->sched->segment, r->trees.n));
	for (int t = 0; t < r->trees.n; t++) {
		ArenaMark mark = arena_mark(&r->ctx->scratch);
		const Doc *tree;
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
			return bad(r, links->child[i], doc_found(links->child[i]).text, "nvlink, xgmi, c2c, pcie, qpi or net");
		if (*out >> class & 1)
			return bad(r, links->child[i], doc_found(links->child[i]).text, "each class once");
		*out |= 1u << class;
	}
	return OK;
}

static Status
read_parts(struct reader *r, const Doc *root)
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

/* ---- rate ---- */

static Status
read_side(struct reader *r, const Doc *side, int p, int *part)
{
	if (side->kind != DOC_ARRAY)
		return bad(r, side, "not an array", "[vertex, ...]");
	for (int i = 0; i < side->n; i++) {
		int v;
		TRY(read_vertex(r, side->child[i], &v));
		if (part[v] >= 0)
			return bad(r, side->child[i], r->topo->vertex[v].id, "each vertex once");
		part[v] = p;
	}
	return OK;
}

enum { PRICE_MAX = 1000 };	/* no proof needs more than 1, which makes a tree with that link cost enough */

static Status
read_prices(struct reader *r, const Doc *at, Bound *bound)
{
	const Doc *prices;
	/* Lengths count each block as 1/n. */
	int64_t most = bound->kind == CERTIFICATE_LENGTHS ? (int64_t)PRICE_MAX * r->topo->n_ranks : PRICE_MAX;
	TRY(need(r, at, bound->kind == CERTIFICATE_LENGTHS ? "length" : "price", DOC_ARRAY, &prices));
	if (prices->n != r->topo->n_links)
		return doc_fail(r->ctx, r->label, prices, BAD_INPUT, "%d prices: want one per link, %d", prices->n,
		    r->topo->n_links);
	TRY(NEW(r->ctx, bound->price, prices->n));
	for (int l = 0; l < prices->n; l++) {
		const Doc *price = prices->child[l];
		int64_t billionths;
		if (price->kind == DOC_STRING) {
			TRY(read_fraction(r, price, most, "a fraction \"p/q\" in lowest terms, 0/1 to 1000/1", &bound->price[l]));
			continue;
		}
		TRY(doc_scaled(r->ctx, r->label, price, BYTES_PER_GB, 0, most * BYTES_PER_GB, "", &billionths));
		frac_make(billionths, BYTES_PER_GB, &bound->price[l]);
	}
	return OK;
}

static Status
read_certificate(struct reader *r, const Doc *rate, Bound *bound)
{
	const Doc *at, *parts;
	const char *kind;
	TRY(need(r, rate, "certificate", DOC_OBJECT, &at));
	TRY(doc_string(r->ctx, r->label, at, "kind", &kind));
	if (!certificate_parse(kind, &bound->kind))
		return bad(r, doc_get(at, "kind"), doc_found(doc_get(at, "kind")).text, "cut, partition, prices or lengths");
	TRY(NEW(r->ctx, bound->part, r->topo->n_vertices));
	memset(bound->part, -1, (size_t)r->topo->n_vertices * sizeof *bound->part);
	switch (bound->kind) {
	case CERTIFICATE_CUT:
		TRY(need(r, at, "side", DOC_ARRAY, &parts));
		TRY(read_side(r, parts, 1, bound->part));
		for (int v = 0; v < r->topo->n_vertices; v++)
			bound->part[v] = bound->part[v] == 1;
		return OK;
	case CERTIFICATE_PARTITION:
		TRY(need(r, at, "parts", DOC_ARRAY, &parts));
		TRY(count_within(r, parts, r->topo->n_ranks));
		for (int p = 0; p < parts->n; p++)
			TRY(read_side(r, parts->child[p], p, bound->part));
		bound->n_parts = parts->n;
		return OK;
	default:
		return read_prices(r, at, bound);
	}
}

static Status
read_rate(struct reader *r, const Doc *root)
{
	const Doc *rate, *achieved, *bound;
	TRY(need(r, root, "rate", DOC_OBJECT, &rate));
	TRY(need(r, rate, "achieved", DOC_NUMBER, &achieved));
	TRY(need(r, rate, "bound", DOC_NUMBER, &bound));
	r->sched->stated_achieved = achieved->number;
	r->sched->stated_bound = bound->number;
	return read_certificate(r, rate, &r->sched->bound);
}

/* ---- the rest ---- */

/* Scalars and arrays of scalars, as JSON text again. */
static void
put_value(Text *out, const Doc *at)
{
	char digits[48];
	switch (at->kind) {
	case DOC_STRING:
		text_json(out, at->text);
		break;
	case DOC_NUMBER:
		/* Options of ours are small; what a stranger added is kept where it fits. */
		if (at->number >= 0 && at->number < 1e9) {
			decimal_text((int64_t)(at->number * 1e9 + 0.5), BYTES_PER_GB, 15, digits);
			text_put(out, digits);
		} else {
			text_put(out, "null");
		}
		break;
	case DOC_BOOL:
		text_put(out, at->flag ? "true" : "false");
		break;
	case DOC_ARRAY:
		text_put(out, "[");
		for (int i = 0; i < at->n; i++) {
			if (i)
				text_put(out, ", ");
			put_value(out, at->child[i]);
		}
		text_put(out, "]");
		break;
	default:
		text_put(out, "null");
		break;
	}
}

static Status
read_options(struct reader *r, const Doc *options)
{
	Schedule *sched = r->sched;
	TRY(NEW(r->ctx, sched->option, options->n));
	for (int i = 0; i < options->n; i++) {
		const Doc *at = options->child[i];
		Text text = { 0 };
		put_value(&text, at);
		const char *value = text.failed ? NULL : arena_text(&r->ctx->run, text.data, text.size);
		text_free(&text);
		if (!value)
			return fail_memory(r->ctx);
		sched->option[sched->n_options++] = (Option){ at->name, value };
	}
	return OK;
}

static Status
read_generator(struct reader *r, const Doc *root)
{
	const Doc *generator, *options;
	TRY(need(r, root, "generator", DOC_OBJECT, &generator));
	TRY(doc_string(r->ctx, r->label, generator, "name", &r->sched->generator));
	TRY(doc_string(r->ctx, r->label, generator, "version", &r->sched->version));
	TRY(need(r, generator, "options", DOC_OBJECT, &options));
	return read_options(r, options);
}

static Status
read_header(struct reader *r, const Doc *root)
{
	const char *text;
	const Doc *version;
	if (root->kind != DOC_OBJECT)
		return bad(r, root, "not an object", "a schedule");
	TRY(doc_string(r->ctx, r->label, root, "format", &text));
	if (strcmp(text, "blink-schedule") != 0)
		return bad(r, doc_get(root, "format"), doc_found(doc_get(root, "format")).text, "\"blink-schedule\"");
	TRY(need(r, root, "version", DOC_NUMBER, &version));
	if (version->number != 1)
		return doc_fail(r->ctx, r->label, version, BAD_INPUT, "%g: want 1", version->number);
	TRY(doc_string(r->ctx, r->label, root, "collective", &text));
	if (!collective_parse(text, &r->sched->coll))
		return bad(r, doc_get(root, "collective"), doc_found(doc_get(root, "collective")).text,
		    "a collective, as \"allreduce\"");
	return doc_string(r->ctx, r->label, root, "algorithm", &r->sched->algorithm);
}

static Status
read_root(struct reader *r, const Doc *root)
{
	const Doc *at;
	TRY(need_any(r, root, "root", &at));
	r->sched->root = -1;
	if (collective_rooted(r->sched->coll))
		return read_int(r, at, 0, r->topo->n_ranks - 1, &r->sched->root);
	return at->kind == DOC_NULL ? OK : bad(r, at, doc_found(at).text, "null: the collective has no root");
}

Status
sched_read(Ctx *ctx, const char *label, const char *data, size_t size, Schedule **out)
{
	ArenaMark mark = arena_mark(&ctx->scratch);
	struct reader r = { .ctx = ctx, .label = label };
	Schedule *sched;
	Doc *root;
	TRY(NEW(ctx, sched, 1));
	TRY(NEW(ctx, r.topo, 1));
	r.sched = sched;
	sched->topo = r.topo;
	TRY(doc_read_json_list(ctx, label, data, size, "trees", &root, &r.trees));
	TRY(read_header(&r, root));
	TRY(read_generator(&r, root));
	TRY(read_topology(&r, root));
	TRY(read_root(&r, root));
	TRY(read_parts(&r, root));
	TRY(read_trees(&r, root));
	TRY(read_rate(&r, root));
	TRY(sched_check(ctx, label, sched));
	TRY(sched_achieved(ctx, label, sched, &sched->achieved));
	TRY(sched_parts(ctx, label, sched, sched->part));
	TRY(bound_from_certificate(ctx, label, sched->topo, sched->coll, sched->root, &sched->bound, &sched->bound.rate));
	arena_release(&ctx->scratch, mark);
	*out = sched;
	return OK;
}
