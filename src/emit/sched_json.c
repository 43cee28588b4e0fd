/* The schedule file (blink-schedule(5)). */
#include "passes.h"

static void
put_vertex(Text *out, const Topology *topo, int v)
{
	if (v < topo->n_ranks)
		text_int(out, v);
	else
		text_json(out, topo->vertex[v].id);
}

/* Those that do more than forward. */
static void
put_switches(Text *out, const Topology *topo)
{
	bool any = false;
	for (int v = topo->n_ranks; v < topo->n_vertices; v++) {
		const Vertex *vertex = &topo->vertex[v];
		if (!vertex->multicast && !vertex->reduce)
			continue;
		text_put(out, any ? ",\n      { \"id\": " : ",\n    \"switches\": [\n      { \"id\": ");
		text_json(out, vertex->id);
		text_put(out, vertex->multicast ? ", \"multicast\": true" : "");
		text_put(out, vertex->reduce ? ", \"reduce\": true }" : " }");
		any = true;
	}
	text_put(out, any ? "\n    ]" : "");
}

static void
put_topology(Text *out, const Topology *topo)
{
	text_put(out, "  \"topology\": {\n    \"name\": ");
	text_json(out, topo->name);
	text_put(out, ",\n    \"digest\": ");
	text_json(out, topo->digest);
	text_put(out, ",\n    \"ranks\": [");
	for (int r = 0; r < topo->n_ranks; r++) {
		int node = topo->vertex[r].node;
		text_put(out, r ? ",\n      { \"gpu\": " : "\n      { \"gpu\": ");
		text_json(out, topo->vertex[r].id);
		text_put(out, ", \"node\": ");
		text_json(out, node < 0 ? "" : topo->node[node]);
		text_put(out, " }");
	}
	text_put(out, "\n    ],\n    \"links\": [");
	for (int l = 0; l < topo->n_links; l++) {
		const Link *link = &topo->link[l];
		text_put(out, l ? ",\n      { \"from\": " : "\n      { \"from\": ");
		put_vertex(out, topo, link->from);
		text_put(out, ", \"to\": ");
		put_vertex(out, topo, link->to);
		text_printf(out, ", \"class\": \"%s\", \"capacity\": ", link_class_name(link->class));
		text_gb(out, (Frac){ link->capacity, 1 });
		text_put(out, ", \"latency\": ");
		text_us(out, link->latency);
		text_put(out, " }");
	}
	text_put(out, "\n    ]");
	put_switches(out, topo);
	text_put(out, "\n  },\n");
}

static void
put_side(Text *out, const Topology *topo, const int *part, int p)
{
	bool any = false;
	text_put(out, "[");
	for (int v = 0; v < topo->n_vertices; v++) {
		if (part[v] != p)
			continue;
		if (any)
			text_put(out, ", ");
		put_vertex(out, topo, v);
		any = true;
	}
	text_put(out, "]");
}

static void
put_certificate(Text *out, const Topology *topo, const Bound *bound)
{
	text_printf(out, "{ \"kind\": \"%s\", ", certificate_name(bound->kind));
	switch (bound->kind) {
	case CERTIFICATE_CUT:
		text_put(out, "\"side\": ");
		put_side(out, topo, bound->part, 1);
		break;
	case CERTIFICATE_PARTITION:
		text_put(out, "\"parts\": [");
		for (int p = 0; p < bound->n_parts; p++) {
			if (p)
				text_put(out, ", ");
			put_side(out, topo, bound->part, p);
		}
		text_put(out, "]");
		break;
	default:
		text_put(out, bound->kind == CERTIFICATE_LENGTHS ? "\"length\": [" : "\"price\": [");
		for (int l = 0; l < topo->n_links; l++) {
			const Frac *price = &bound->price[l];
			/* Whole numbers as numbers, others exactly. */
			text_printf(out, price->den == 1 ? "%s%lld" : "%s\"%lld/%lld\"", l ? ", " : "", (long long)price->num,
			    (long long)price->den);
		}
		text_put(out, "]");
		break;
	}
	text_put(out, " }");
}

static void
put_parts(Text *out, const Schedule *sched)
{
	for (int i = 0; i < sched->n_parts; i++) {
		const Part *part = &sched->part[i];
		bool any = false;
		text_put(out, i ? ",\n    { \"links\": [" : "  \"parts\": [\n    { \"links\": [");
		for (int c = 0; c < N_LINK_CLASSES; c++) {
			if (!(part->classes >> c & 1))
				continue;
			text_printf(out, "%s\"%s\"", any ? ", " : "", link_class_name((LinkClass)c));
			any = true;
		}
		text_put(out, "], \"rate\": ");
		text_gb(out, part->rate);
		text_put(out, ", \"setup\": ");
		text_us(out, part->setup);
		text_put(out, " }");
	}
	text_put(out, sched->n_parts ? "\n  ],\n" : "");
}

static void
put_ints(Text *out, const int *value, int n)
{
	text_put(out, "[");
	for (int i = 0; i < n; i++) {
		if (i)
			text_put(out, ", ");
		text_int(out, value[i]);
	}
	text_put(out, "]");
}

static void
put_edges(Text *out, const char *phase, const Edge *edge, int n)
{
	text_printf(out, ",\n      \"%s\": [", phase);
	for (int e = 0; e < n; e++) {
		text_put(out, e ? ", [" : "[");
		text_int(out, edge[e].src);
		text_put(out, ", ");
		text_int(out, edge[e].dst);
		text_put(out, ", ");
		put_ints(out, edge[e].link, edge[e].n_links);
		text_put(out, "]");
	}
	text_put(out, "]");
}

static void
put_tree(Text *out, const Segment *segment, bool has_part)
{
	text_printf(out, "    {\n      \"segment\": [\"%lld/%lld\", \"%lld/%lld\"],\n      \"root\": %d",
	    (long long)segment->offset.num, (long long)segment->offset.den, (long long)segment->length.num,
	    (long long)segment->length.den, segment->tree.root);
	if (has_part)
		text_printf(out, ",\n      \"part\": %d", segment->part);
	if (segment->tree.n_down)
		put_edges(out, "down", segment->tree.down, segment->tree.n_down);
	if (segment->tree.n_up)
		put_edges(out, "up", segment->tree.up, segment->tree.n_up);
	if (segment->n_to) {
		text_put(out, ",\n      \"to\": ");
		put_ints(out, segment->to, segment->n_to);
	}
	text_put(out, "\n    }");
}

void
emit_sched_json(const Schedule *sched, Text *out)
{
	text_put(out, "{\n  \"format\": \"blink-schedule\",\n  \"version\": 1,\n  \"generator\": {\n    \"name\": ");
	text_json(out, sched->generator);
	text_put(out, ",\n    \"version\": ");
	text_json(out, sched->version);
	text_put(out, ",\n    \"options\": {");
	for (int i = 0; i < sched->n_options; i++) {
		text_put(out, i ? ",\n      " : "\n      ");
		text_json(out, sched->option[i].key);
		text_put(out, ": ");
		text_put(out, sched->option[i].value);
	}
	text_put(out, sched->n_options ? "\n    }\n  },\n" : "}\n  },\n");
	put_topology(out, sched->topo);
	text_printf(out, "  \"collective\": \"%s\",\n", collective_name(sched->coll));
	text_printf(out, sched->root < 0 ? "  \"root\": null,\n" : "  \"root\": %d,\n", sched->root);
	text_put(out, "  \"algorithm\": ");
	text_json(out, sched->algorithm);
	text_put(out, ",\n  \"rate\": {\n    \"achieved\": ");
	text_gb(out, sched->achieved);
	text_put(out, ",\n    \"bound\": ");
	text_gb(out, sched->bound.rate);
	text_put(out, ",\n    \"certificate\": ");
	put_certificate(out, sched->topo, &sched->bound);
	text_put(out, "\n  },\n");
	put_parts(out, sched);
	text_put(out, "  \"trees\": [\n");
	for (int t = 0; t < sched->n_segments; t++) {
		put_tree(out, &sched->segment[t], sched->n_parts > 0);
		text_put(out, t + 1 < sched->n_segments ? ",\n" : "\n");
	}
	text_put(out, "  ]\n}\n");
}
