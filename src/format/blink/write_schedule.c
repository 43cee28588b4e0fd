/* The schedule file (blink-schedule(5)). */
#include "format/blink/schedule_writer.h"
#include "format/format.h"

#include <string.h>

static void
put_generator(JsonWriter *w, const Schedule *sched)
{
	json_object(w, "generator", JSON_BLOCK);
	json_string(w, "name", sched->generator);
	json_string(w, "version", sched->version);
	json_object(w, "options", sched->n_options ? JSON_BLOCK : JSON_TIGHT);
	for (int i = 0; i < sched->n_options; i++)
		json_raw(w, sched->option[i].key, sched->option[i].value);
	json_end(w);
	json_end(w);
}

/* ---- topology ---- */

static void
put_vertex(JsonWriter *w, const char *name, const Topology *topo, int v)
{
	if (v < topo->n_ranks)
		json_int(w, name, v);
	else
		json_string(w, name, topo->vertex[v].id);
}

static void
put_ranks(JsonWriter *w, const Topology *topo)
{
	json_array(w, "ranks", JSON_BLOCK);
	for (int r = 0; r < topo->n_ranks; r++) {
		int node = topo->vertex[r].node;
		json_object(w, NULL, JSON_LINE);
		json_string(w, "gpu", topo->vertex[r].id);
		json_string(w, "node", node < 0 ? "" : topo->node[node]);
		json_end(w);
	}
	json_end(w);
}

static void
put_links(JsonWriter *w, const Topology *topo)
{
	json_array(w, "links", JSON_BLOCK);
	for (int l = 0; l < topo->n_links; l++) {
		const Link *link = &topo->link[l];
		json_object(w, NULL, JSON_LINE);
		put_vertex(w, "from", topo, link->from);
		put_vertex(w, "to", topo, link->to);
		json_string(w, "class", link_class_name(link->class));
		json_gb(w, "capacity", (Frac){ link->capacity, 1 });
		json_us(w, "latency", link->latency);
		if (link->assumed)
			json_bool(w, "assumed", true);
		json_end(w);
	}
	json_end(w);
}

/* Those that do more than forward. */
static void
put_switches(JsonWriter *w, const Topology *topo)
{
	if (!topo_active(topo))
		return;
	json_array(w, "switches", JSON_BLOCK);
	for (int v = topo->n_ranks; v < topo->n_vertices; v++) {
		const Vertex *vertex = &topo->vertex[v];
		if (!vertex->multicast && !vertex->reduce)
			continue;
		json_object(w, NULL, JSON_LINE);
		json_string(w, "id", vertex->id);
		if (vertex->multicast)
			json_bool(w, "multicast", true);
		if (vertex->reduce)
			json_bool(w, "reduce", true);
		json_end(w);
	}
	json_end(w);
}

void
schedule_put_topology(JsonWriter *w, const Topology *topo)
{
	json_object(w, "topology", JSON_BLOCK);
	json_string(w, "name", topo->name);
	json_string(w, "digest", topo->digest);
	put_ranks(w, topo);
	put_links(w, topo);
	put_switches(w, topo);
	json_end(w);
}

/* ---- rate ---- */

static void
put_side(JsonWriter *w, const char *name, const Topology *topo, const int *part, int p)
{
	json_array(w, name, JSON_LINE);
	for (int v = 0; v < topo->n_vertices; v++)
		if (part[v] == p)
			put_vertex(w, NULL, topo, v);
	json_end(w);
}

/* Whole numbers as numbers, others exactly. */
static void
put_prices(JsonWriter *w, const char *name, const Frac *price, int n)
{
	json_array(w, name, JSON_LINE);
	for (int l = 0; l < n; l++) {
		if (price[l].den == 1)
			json_int64(w, NULL, (int64_t)price[l].num);
		else
			json_frac(w, NULL, price[l]);
	}
	json_end(w);
}

static void
put_certificate(JsonWriter *w, const Topology *topo, const Bound *bound)
{
	json_object(w, "certificate", JSON_LINE);
	json_string(w, "kind", certificate_name(bound->kind));
	switch (bound->kind) {
	case CERTIFICATE_CUT:
		put_side(w, "side", topo, bound->part, 1);
		break;
	case CERTIFICATE_PARTITION:
		json_array(w, "parts", JSON_LINE);
		for (int p = 0; p < bound->n_parts; p++)
			put_side(w, NULL, topo, bound->part, p);
		json_end(w);
		break;
	default:
		put_prices(w, bound->kind == CERTIFICATE_LENGTHS ? "length" : "price", bound->price, topo->n_links);
		break;
	}
	json_end(w);
}

static void
put_rate(JsonWriter *w, const Schedule *sched)
{
	json_object(w, "rate", JSON_BLOCK);
	json_gb(w, "achieved", sched->achieved);
	json_gb(w, "bound", sched->bound.rate);
	put_certificate(w, sched->topo, &sched->bound);
	json_end(w);
}

/* A line for each rank that sends. */
static void
put_matrix(JsonWriter *w, const Schedule *sched)
{
	const ByteMatrix *matrix = sched->matrix;
	int n = sched->topo->n_ranks;
	if (!matrix)
		return;
	json_object(w, "matrix", JSON_BLOCK);
	json_number(w, "time", matrix->time);
	json_number(w, "bound", matrix->bound);
	json_array(w, "length", JSON_LINE);
	for (int l = 0; l < sched->topo->n_links; l++)
		json_int64(w, NULL, matrix->length[l]);
	json_end(w);
	json_array(w, "bytes", JSON_BLOCK);
	for (int i = 0; i < n; i++) {
		json_array(w, NULL, JSON_LINE);
		for (int j = 0; j < n; j++)
			json_int64(w, NULL, matrix->bytes[(size_t)i * (size_t)n + (size_t)j]);
		json_end(w);
	}
	json_end(w);
	json_end(w);
}

/* ---- baselines ---- */

static void
put_baseline(JsonWriter *w, const Baseline *baseline)
{
	json_object(w, NULL, JSON_LINE);
	json_string(w, "name", baseline->name);
	json_names(w, "links", link_class_names, baseline->classes);
	json_int(w, "rings", baseline->rings);
	json_bool(w, "through", baseline->through);
	json_number(w, "rate", baseline->rate);
	json_end(w);
}

static void
put_baselines(JsonWriter *w, const Schedule *sched)
{
	if (!sched->n_baselines)
		return;
	json_array(w, "baselines", JSON_BLOCK);
	for (int i = 0; i < sched->n_baselines; i++)
		put_baseline(w, &sched->baseline[i]);
	json_end(w);
}

/* ---- parts and trees ---- */

static void
put_parts(JsonWriter *w, const Schedule *sched)
{
	if (!sched->n_parts)
		return;
	json_array(w, "parts", JSON_BLOCK);
	for (int i = 0; i < sched->n_parts; i++) {
		const Part *part = &sched->part[i];
		json_object(w, NULL, JSON_LINE);
		json_names(w, "links", link_class_names, part->classes);
		json_gb(w, "rate", part->rate);
		json_us(w, "setup", part->setup);
		json_end(w);
	}
	json_end(w);
}

enum {
	INT_BYTES = 12,		/* of a number and what parts it from the next */
	TREE_BYTES = 160	/* of a tree, about, without its edges */
};

/* [src, dst, [link, ...]] as JsonWriter would put them, at once. */
static void
put_edge(Text *out, const Edge *edge, bool first)
{
	if (!text_reserve(out, (4 + (size_t)edge->n_links) * INT_BYTES))
		return;
	char *to = out->data + out->size;
	if (!first)
		to = mempcpy(to, ", ", 2);
	*to++ = '[';
	to = mempcpy(text_digits(to, edge->src), ", ", 2);
	to = mempcpy(text_digits(to, edge->dst), ", [", 3);
	for (int i = 0; i < edge->n_links; i++) {
		if (i)
			to = mempcpy(to, ", ", 2);
		to = text_digits(to, edge->link[i]);
	}
	to = mempcpy(to, "]]", 2);
	*to = 0;
	out->size = (size_t)(to - out->data);
}

static void
put_edges(JsonWriter *w, const char *phase, const Edge *edge, int n)
{
	if (n == 0)
		return;
	json_array(w, phase, JSON_LINE);
	for (int e = 0; e < n; e++)
		put_edge(w->out, &edge[e], e == 0);
	json_end(w);
}

static void
put_tree(JsonWriter *w, const Segment *segment, bool has_part)
{
	json_object(w, NULL, JSON_BLOCK);
	json_array(w, "segment", JSON_LINE);
	json_frac(w, NULL, segment->offset);
	json_frac(w, NULL, segment->length);
	json_end(w);
	json_int(w, "root", segment->tree.root);
	if (has_part)
		json_int(w, "part", segment->part);
	put_edges(w, "down", segment->tree.down, segment->tree.n_down);
	put_edges(w, "up", segment->tree.up, segment->tree.n_up);
	if (segment->n_to)
		json_ints(w, "to", segment->to, segment->n_to);
	json_end(w);
}

static void
put_in_tree(JsonWriter *w, const InTree *tree, const char *numbers)
{
	json_object(w, NULL, JSON_TIGHT);
	json_int(w, "root", tree->root);
	json_array(w, "segment", JSON_TIGHT);
	json_frac(w, NULL, tree->offset);
	json_frac(w, NULL, tree->length);
	json_end(w);
	json_ints(w, numbers, tree->link, tree->n_links);
	json_end(w);
}

static size_t
digits_of(int most)
{
	size_t n = 1;
	while ((most /= 10) > 0)
		n++;
	return n;
}

/* Of the edges of all trees, or a little more. */
static size_t
edge_bytes(const Schedule *sched)
{
	size_t n_edges = 0, n_links = 0;
	for (int t = 0; t < sched->n_segments; t++) {
		const Tree *tree = &sched->segment[t].tree;
		n_edges += (size_t)tree->n_down + (size_t)tree->n_up;
		for (int e = 0; e < tree->n_down; e++)
			n_links += (size_t)tree->down[e].n_links;
		for (int e = 0; e < tree->n_up; e++)
			n_links += (size_t)tree->up[e].n_links;
	}
	/* ", [src, dst, [" and "]]" about the links of an edge, and ", " after each. */
	return n_edges * (10 + 2 * digits_of(sched->topo->n_ranks)) + n_links * (2 + digits_of(sched->topo->n_links));
}

/* Where each map takes each rank and link; where it takes switches follows. */
static void
put_symmetry(JsonWriter *w, const Topology *topo, const Symmetry *sym)
{
	json_array(w, "symmetry", JSON_BLOCK);
	for (int i = 0; i < sym->n_maps; i++) {
		json_object(w, NULL, JSON_BLOCK);
		json_int(w, "order", sym->map[i].order);
		json_ints(w, "ranks", sym->map[i].vertex, topo->n_ranks);
		json_ints(w, "links", sym->map[i].link, topo->n_links);
		json_end(w);
	}
	json_end(w);
}

void
sched_write_json(const Schedule *sched, Text *out)
{
	JsonWriter w = { .out = out };
	json_object(&w, NULL, JSON_BLOCK);
	json_string(&w, "format", "blink-schedule");
	json_int(&w, "version", sched->n_in_trees ? 3 : sched->symmetry ? 2 : 1);
	put_generator(&w, sched);
	schedule_put_topology(&w, sched->topo);
	json_string(&w, "collective", collective_name(sched->coll));
	json_rank(&w, "root", sched->root);
	json_string(&w, "algorithm", sched->algorithm);
	put_rate(&w, sched);
	put_matrix(&w, sched);
	put_baselines(&w, sched);
	put_parts(&w, sched);
	if (sched->symmetry)
		put_symmetry(&w, sched->topo, sched->symmetry);
	put_edges(&w, "edges", sched->edge, sched->n_edges);
	json_array(&w, "trees", JSON_BLOCK);
	text_reserve(out, edge_bytes(sched) + (size_t)sched->n_segments * TREE_BYTES);
	for (int t = 0; t < sched->n_segments; t++)
		put_tree(&w, &sched->segment[t], sched->n_parts > 0);
	for (int t = 0; t < sched->n_in_trees; t++)
		put_in_tree(&w, &sched->in_tree[t], sched->n_edges ? "edges" : "links");
	json_end(&w);
	json_end(&w);
	text_put(out, "\n");
}
