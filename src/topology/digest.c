/* Digest of a topology: of its canonical text. */
#include "base/digest.h"
#include "topology/topology.h"

#include <inttypes.h>

/* Integers only: a decimal has more than one spelling. */
void
topo_canonical_text(const Topology *topo, Text *out)
{
	text_put(out, "{\"format\":\"blink-topology\",\"version\":1,\"nodes\":[");
	for (int i = 0; i < topo->n_nodes; i++) {
		text_put(out, i ? "," : "");
		text_json(out, topo->node[i]);
	}
	text_put(out, "],\"vertices\":[");
	for (int v = 0; v < topo->n_vertices; v++) {
		text_put(out, v ? ",[" : "[");
		text_json(out, topo->vertex[v].id);
		text_printf(out, ",\"%s\",%d", vertex_kind_name(topo->vertex[v].kind), topo->vertex[v].node);
		text_put(out, topo->vertex[v].multicast ? ",\"multicast\"" : "");
		text_put(out, topo->vertex[v].reduce ? ",\"reduce\"]" : "]");
	}
	text_put(out, "],\"links\":[");
	for (int l = 0; l < topo->n_links; l++) {
		const Link *link = &topo->link[l];
		text_printf(out, "%s[%d,%d,\"%s\",%d,%" PRId64 ",%" PRId64 "]", l ? "," : "", link->from, link->to,
		    link_class_name(link->class), link->count, link->capacity, link->latency);
	}
	text_put(out, "]}");
}

Status
topo_digest(Ctx *ctx, const Topology *topo, const char **out)
{
	Text canonical = { 0 };
	char text[DIGEST_ROOM];
	topo_canonical_text(topo, &canonical);
	bool failed = canonical.failed;
	if (!failed)
		digest_of(canonical.data, canonical.size, text);
	text_free(&canonical);
	if (failed)
		return fail_memory(ctx);
	const char *copy = arena_text(&ctx->run, text, DIGEST_ROOM - 1);
	if (!copy)
		return fail_memory(ctx);
	*out = copy;
	return OK;
}
