/* XML of hwloc is refused, or it becomes a topology of one server that passes topo_check, and survives
 * writing and reading, with its notes: of GPUs, or of CPUs. */
#include "xml_mutator.h"
#include "format/format.h"

const Mutator mutators[] = { xml_mutate, NULL };

const char *const dictionary[] = {
	"<object ", "</object>", "type=\"Package\"", "type=\"NUMANode\"", "type=\"Bridge\"", "type=\"PCIDev\"",
	"type=\"OSDev\"", "type=\"Socket\"", "type=\"Machine\"", "bridge_type=\"0-1\"", "bridge_type=\"1-1\"",
	"os_index=\"", "gp_index=\"", "pci_busid=\"0000:3b:00.0\"", "pci_type=\"0302 [10de:1db1]",
	"pci_type=\"0680 [10de:1ac2]", "pci_link_speed=\"15.753846\"", "osdev_type=\"", "name=\"nvml0\"",
	"name=\"rsmi1\"", "name=\"opencl0d0\"", "subtype=\"NVSwitch\"", "<info name=\"GPUModel\" value=\"",
	"hwlocVersion", "2.9.0", "Tesla V100-SXM2-16GB", "A100-SXM4-40GB", "AMD Instinct MI300X", "<distances2 ",
	"<distances2hetero ", "</distances2>", "nbobjs=\"", "NVLinkBandwidth", "XGMIBandwidth", "XGMIHops",
	"indexing=\"gp\"", "<indexes length=\"", "</indexes>", "<u64values length=\"", "</u64values>", "OSDev:",
	"PCIDev:", " 25000 ", " 50000 ", " 20000 ", " 0 ", "4294967295", "65537", "18446744073709551615", "-1",
	"nan", "version=\"2.0\"", "version=\"3.0\"", "<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">",
	"[<!ENTITY a \"b\">]", "&a;", "&#0;", "<![CDATA[", "]]>", "<!--", "-->", "<?xml", "<topology>",
	"</topology>", "type=\"Core\"", "type=\"PU\"", "cpuset=\"0x0000000f", "0xffffffff",
	"NUMALatency", "NUMABandwidth", "indexing=\"os\"", "CoreBandwidth",
	NULL };

static const char label[] = "input";

static void
round_trip(Ctx *ctx, const Topology *topo)
{
	void (*const write[])(const Topology *topo, Text *out) = { topo_write_json, topo_write_xml };
	for (size_t i = 0; i < sizeof write / sizeof *write; i++) {
		Text text = { 0 };
		Topology *again;
		write[i](topo, &text);
		REQUIRE(!text.failed, "no memory");
		Status status = topo_read(ctx, label, NULL, text.data, text.size, &again);
		REQUIRE(status == OK, "%s\nfor what we wrote:\n%s", ctx->error.text, text.data);
		REQUIRE(strcmp(again->digest, topo->digest) == 0, "%s became %s in\n%s", topo->digest, again->digest,
		    text.data);
		REQUIRE(again->n_notes == topo->n_notes, "%d notes became %d in\n%s", topo->n_notes, again->n_notes,
		    text.data);
		text_free(&text);
	}
}

static void
read_as(const uint8_t *data, size_t size, bool cpu_ranks)
{
	Ctx ctx;
	Topology *topo;
	ctx_init(&ctx);
	TopologyHints hints = { .from = "hwloc", .cpu_ranks = cpu_ranks };
	Status status = topo_read_as(&ctx, label, &hints, (const char *)data, size, &topo);
	if (status != OK) {
		judge_refusal(&ctx, status, 1u << BAD_INPUT | 1u << LIMIT, label);
	} else {
		REQUIRE(topo_check(&ctx, label, topo) == OK, "%s", ctx.error.text);
		REQUIRE(topo->n_ranks > 0 && topo->n_nodes == 1 && topo->source, "no GPU, several servers, or no "
		    "source");
		n_accepted += !cpu_ranks;
		outcome = outcome << 32 | (uint64_t)topo->n_vertices << 16 | (uint64_t)topo->n_links << 4
		    | (uint64_t)topo->n_notes;
		round_trip(&ctx, topo);
	}
	ctx_free(&ctx);
}

static void
test_input(const uint8_t *data, size_t size)
{
	outcome = 0;
	read_as(data, size, false);
	read_as(data, size, true);
}
