/* A target for each reader of another tool's files: refused, with one line that names the file; or accepted, and what
 * is written of it, with its notes, reads as the same machine. A target defines `kind` and `dictionary`. */
#ifndef BLINK_FUZZ_FOREIGN_H
#define BLINK_FUZZ_FOREIGN_H

#include "driver.h"
#include "format/format.h"
#include "topology/topology.h"

extern const char kind[];

static const char label[] = "input";

/* What was written reads as the same, and is written the same. */
static void
survives(Ctx *ctx, const Topology *topo, void (*write)(const Topology *topo, Text *out))
{
	Text text = { 0 }, again = { 0 };
	Topology *copy;
	write(topo, &text);
	REQUIRE(!text.failed, "no memory");
	Status status = topo_read(ctx, label, NULL, text.data, text.size, &copy);
	REQUIRE(status == OK, "%s\nfor what we wrote:\n%s", ctx->error.text, text.data);
	REQUIRE(strcmp(copy->digest, topo->digest) == 0, "%s became %s in\n%s", topo->digest, copy->digest, text.data);
	write(copy, &again);
	REQUIRE(!again.failed && again.size == text.size && memcmp(again.data, text.data, text.size) == 0,
	    "%s\nbecame\n%s", text.data, again.data);
	text_free(&text);
	text_free(&again);
}

/* Every link has a source, its own or of its class; links of these readers have no more than they ask for. */
static void
check_sources(const Topology *topo)
{
	for (int l = 0; l < topo->n_links; l++)
		REQUIRE(topo->link[l].source || topo->class[topo->link[l].class].source, "link %d has no source", l);
	for (int i = 0; i < topo->n_notes; i++)
		REQUIRE(*topo->note[i], "note %d is empty", i);
}

static void
test_input(const uint8_t *data, size_t size)
{
	static const char *const models[] = { NULL, "V100", "H100-SXM", "MI250X", "K80" };
	Ctx ctx;
	Topology *topo;
	TopologyHints hints = { .from = kind, .gpu_model = models[hash_bytes(1, data, size) % 5] };
	ctx_init(&ctx);
	Status status = topo_read_as(&ctx, label, &hints, (const char *)data, size, &topo);
	if (status != OK) {
		judge_refusal(&ctx, status, 1u << BAD_INPUT | 1u << LIMIT, label);
	} else {
		n_accepted++;
		outcome = (uint64_t)topo->n_vertices << 16 | (uint64_t)topo->n_links << 4 | (uint64_t)topo->n_notes;
		check_sources(topo);
		survives(&ctx, topo, topo_write_json);
		survives(&ctx, topo, topo_write_xml);
	}
	ctx_free(&ctx);
}

#endif
